// Package gobuild runs the Go toolchain the way the lab wants every binary made: no path, no version control
// stamp and no build id in it, so that the same source gives the same bytes in any folder.
package gobuild

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
)

// Environment is what a build adds to the environment of the process.
type Environment struct {
	CGO   bool
	Flags []string // further NAME=value pairs
}

// Run runs the go command in dir and returns its standard output. The error carries the last lines of what the
// command wrote to standard error.
func Run(ctx context.Context, dir string, environment Environment, arguments ...string) ([]byte, error) {
	if _, err := exec.LookPath("go"); err != nil {
		return nil, errors.New("the go command is not in PATH: install Go from https://go.dev/dl/ and run `ptah-qualify doctor`")
	}
	command := exec.CommandContext(ctx, "go", arguments...)
	command.Dir = dir
	cgo := "CGO_ENABLED=0"
	if environment.CGO {
		cgo = "CGO_ENABLED=1"
	}
	command.Env = append(os.Environ(), cgo, "GOFLAGS=-buildvcs=false", "GOWORK=off", "GOOS=linux", "GOARCH="+runtime.GOARCH)
	command.Env = append(command.Env, environment.Flags...)
	var stdout, stderr bytes.Buffer
	command.Stdout, command.Stderr = &stdout, &stderr
	if err := command.Run(); err != nil {
		if ctx.Err() != nil {
			return nil, fmt.Errorf("go %s: %w", arguments[0], ctx.Err())
		}
		return nil, fmt.Errorf("go %s in %s: %w: %s", arguments[0], dir, err, lastLines(stderr.String(), 6))
	}
	return stdout.Bytes(), nil
}

// Program builds the package in dir into the file output with CGO_ENABLED=0.
func Program(ctx context.Context, dir, pkg, output, ldflags string) error {
	absolute, err := filepath.Abs(output)
	if err != nil {
		return fmt.Errorf("find the place for %s: %w", output, err)
	}
	flags := strings.TrimSpace("-s -w -buildid= " + ldflags)
	_, err = Run(ctx, dir, Environment{}, "build", "-trimpath", "-buildvcs=false", "-ldflags", flags, "-o", absolute, pkg)
	return err
}

// FromSource builds a program whose whole module is given as files.
func FromSource(ctx context.Context, files map[string][]byte, output string) error {
	dir, err := os.MkdirTemp("", "ptah-program-")
	if err != nil {
		return fmt.Errorf("make a folder for a scratch module: %w", err)
	}
	defer func() { _ = os.RemoveAll(dir) }() // what is left lies in the temporary folder
	for name, content := range files {
		if err := os.WriteFile(filepath.Join(dir, name), content, 0o600); err != nil {
			return fmt.Errorf("write the scratch module: %w", err)
		}
	}
	return Program(ctx, dir, ".", output, "")
}

func lastLines(text string, count int) string {
	lines := strings.Split(strings.TrimSpace(text), "\n")
	if len(lines) > count {
		lines = lines[len(lines)-count:]
	}
	return strings.Join(lines, "; ")
}
