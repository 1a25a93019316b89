package lab

import (
	"bytes"
	"context"
	"fmt"
	"net"
	"net/netip"
	"strings"
	"time"

	"github.com/moby/moby/api/pkg/stdcopy"
	"github.com/moby/moby/api/types/network"
	"github.com/moby/moby/client"

	"ptah.run/ptah/qualification/lab/engine"
)

// StopRegistry ends the registry of a lab, as a machine that fails does. What it stored stays.
func StopRegistry(ctx context.Context, description *Description) error {
	return withEngine(ctx, func(e *engine.Engine) error {
		name := description.Registry.ContainerName
		if _, err := e.Client().ContainerStop(ctx, name, client.ContainerStopOptions{}); err != nil {
			return fmt.Errorf("stop the registry %s: %w", name, err)
		}
		return nil
	})
}

// StartRegistry starts a registry that was stopped and waits until it answers. A lab that took a free port gets another
// one here, which it writes into the description and into the file at path.
func StartRegistry(ctx context.Context, description *Description, path string) error {
	return withEngine(ctx, func(e *engine.Engine) error {
		name := description.Registry.ContainerName
		if _, err := e.Client().ContainerStart(ctx, name, client.ContainerStartOptions{}); err != nil {
			return fmt.Errorf("start the registry %s: %w", name, err)
		}
		found, err := e.Client().ContainerInspect(ctx, name, client.ContainerInspectOptions{})
		if err != nil {
			return fmt.Errorf("find the port of the registry %s: %w", name, err)
		}
		bindings := found.Container.NetworkSettings.Ports[network.MustParsePort(fmt.Sprintf("%d/tcp", registryPort))]
		if len(bindings) == 0 {
			return fmt.Errorf("find the port of the registry %s: it publishes none", name)
		}
		if host := net.JoinHostPort("127.0.0.1", bindings[0].HostPort); host != description.Registry.LocalHost {
			description.Registry.LocalHost = host
			if err := description.Save(path); err != nil {
				return err
			}
		}
		return registryAnswers(ctx, description.Registry)
	})
}

// RegistryLog returns the lines that the registry of a lab wrote since a time: each request that it answered, and each
// connection on which no request came.
func RegistryLog(ctx context.Context, description *Description, since time.Time) ([]string, error) {
	var lines []string
	err := withEngine(ctx, func(e *engine.Engine) error {
		name := description.Registry.ContainerName
		logs, err := e.Client().ContainerLogs(ctx, name, client.ContainerLogsOptions{ShowStdout: true, ShowStderr: true,
			Since: fmt.Sprintf("%d.%09d", since.Unix(), since.Nanosecond())})
		if err != nil {
			return fmt.Errorf("read the log of the registry %s: %w", name, err)
		}
		defer func() { _ = logs.Close() }() // it was read
		var text bytes.Buffer
		if _, err := stdcopy.StdCopy(&text, &text, logs); err != nil {
			return fmt.Errorf("read the log of the registry %s: %w", name, err)
		}
		lines = strings.Split(strings.TrimSpace(text.String()), "\n")
		return nil
	})
	return lines, err
}

// Gateway returns the address by which Pods of a lab reach this machine.
func Gateway(ctx context.Context, description *Description) (netip.Addr, error) {
	var gateway netip.Addr
	err := withEngine(ctx, func(e *engine.Engine) error {
		found, err := e.Client().NetworkInspect(ctx, description.Network, client.NetworkInspectOptions{})
		if err != nil {
			return fmt.Errorf("find this machine's address in the network %s: %w", description.Network, err)
		}
		for _, config := range found.Network.IPAM.Config {
			if config.Gateway.Is4() {
				gateway = config.Gateway
				return nil
			}
		}
		return fmt.Errorf("find this machine's address in the network %s: it has no IPv4 gateway", description.Network)
	})
	return gateway, err
}

// RegistryAddress returns the address of a lab's registry in the lab's network. Its certificate names the registry by its
// name alone.
func RegistryAddress(ctx context.Context, description *Description) (netip.Addr, error) {
	var address netip.Addr
	err := withEngine(ctx, func(e *engine.Engine) error {
		name := description.Registry.ContainerName
		found, err := e.Client().ContainerInspect(ctx, name, client.ContainerInspectOptions{})
		if err != nil {
			return fmt.Errorf("find the address of the registry %s: %w", name, err)
		}
		endpoint := found.Container.NetworkSettings.Networks[description.Network]
		if endpoint == nil || !endpoint.IPAddress.IsValid() {
			return fmt.Errorf("find the address of the registry %s: it has none in the network %s", name, description.Network)
		}
		address = endpoint.IPAddress
		return nil
	})
	return address, err
}

func withEngine(ctx context.Context, work func(*engine.Engine) error) error {
	e, err := engine.Connect(ctx)
	if err != nil {
		return err
	}
	defer func() { _ = e.Close() }() // nothing is under way any more
	return work(e)
}
