// Package engine is the lab's connection to the Docker engine of this machine. It promises that every error of a
// connection names the engine's address and what to do, and it removes only objects it is given by name.
package engine

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/moby/moby/client"
)

// ConnectTimeout bounds how long Connect waits for the engine's first answer.
const ConnectTimeout = 10 * time.Second

// Engine is one Docker engine. It is safe for concurrent use.
type Engine struct {
	client *client.Client
}

// UnreachableError says that no engine answers.
type UnreachableError struct {
	Host string
	Err  error
}

func (e *UnreachableError) Error() string {
	return fmt.Sprintf("the Docker engine does not answer at %s: start it, or run `ptah-qualify doctor --fix` (as root on Debian) to install and start one (%v)", e.Host, e.Err)
}

// Unwrap returns what the client said.
func (e *UnreachableError) Unwrap() error { return e.Err }

// Connect reaches the engine that DOCKER_HOST names, or the local socket, and agrees on an API version with it.
// Its error is an *UnreachableError where nothing answers.
func Connect(ctx context.Context) (*Engine, error) {
	c, err := client.New(client.FromEnv)
	if err != nil {
		return nil, fmt.Errorf("prepare the Docker client from the environment (DOCKER_HOST and its kin): %w", err)
	}
	ctx, cancel := context.WithTimeout(ctx, ConnectTimeout)
	defer cancel()
	if _, err := c.Ping(ctx, client.PingOptions{NegotiateAPIVersion: true}); err != nil {
		_ = c.Close() // nothing was ever said through it
		return nil, &UnreachableError{Host: c.DaemonHost(), Err: oneLine(err)}
	}
	return &Engine{client: c}, nil
}

// Client returns the connection for calls that this package does not wrap.
func (e *Engine) Client() *client.Client { return e.client }

// Close releases the connection.
func (e *Engine) Close() error { return e.client.Close() }

// Facts are what the lab needs to know about an engine.
type Facts struct {
	Host           string
	Version        string
	APIVersion     string
	StorageDriver  string
	RootDir        string
	CgroupDriver   string
	CgroupVersion  string
	DefaultRuntime string
	Runtimes       map[string]string // name to path
	OSType         string
	Architecture   string
}

// FuseOverlay says that the engine keeps container file systems on fuse-overlayfs, where a node's containerd must
// be told to use overlayfs on its volume.
func (f Facts) FuseOverlay() bool { return f.StorageDriver == "fuse-overlayfs" }

// Facts asks the engine about itself.
func (e *Engine) Facts(ctx context.Context) (Facts, error) {
	result, err := e.client.Info(ctx, client.InfoOptions{})
	if err != nil {
		return Facts{}, fmt.Errorf("ask the Docker engine about itself: %w", oneLine(err))
	}
	info := result.Info
	facts := Facts{
		Host: e.client.DaemonHost(), Version: info.ServerVersion, APIVersion: e.client.ClientVersion(),
		StorageDriver: info.Driver, RootDir: info.DockerRootDir, CgroupDriver: info.CgroupDriver,
		CgroupVersion: info.CgroupVersion, DefaultRuntime: info.DefaultRuntime, OSType: info.OSType,
		Architecture: info.Architecture, Runtimes: map[string]string{},
	}
	for name, runtime := range info.Runtimes {
		facts.Runtimes[name] = runtime.Path
	}
	return facts, nil
}

type oneLineError struct{ error }

func (e oneLineError) Error() string {
	return strings.Join(strings.Fields(e.error.Error()), " ")
}

func (e oneLineError) Unwrap() error { return e.error }

// oneLine keeps an error's identity and folds its message into one line.
func oneLine(err error) error { return oneLineError{err} }
