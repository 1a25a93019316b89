package lab

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"net"
	"net/netip"
	"os"
	"strconv"
	"sync"
	"time"

	"github.com/moby/moby/api/types/container"
	"github.com/moby/moby/api/types/network"
	"github.com/moby/moby/client"
	"github.com/testcontainers/testcontainers-go"
	containerlog "github.com/testcontainers/testcontainers-go/log"
	"github.com/testcontainers/testcontainers-go/wait"

	"ptah.run/ptah/qualification/lab/engine"
	"ptah.run/ptah/qualification/lab/journal"
)

// Ports inside the network of a lab.
const (
	registryPort   = 5000
	postgresqlPort = 5432
	mysqlPort      = 3306
)

const containerReadyLimit = 90 * time.Second

// quietContainers keeps testcontainers from starting its reaper, whose image cannot be pulled everywhere, and from
// writing to the terminal. A lab cleans up by its journal and by label. Ports are published on 127.0.0.1 only, and
// testcontainers would look for them elsewhere on a machine that was made from a container image.
var quietContainers = sync.OnceFunc(func() {
	_ = os.Setenv("TESTCONTAINERS_RYUK_DISABLED", "true") // only a name or value that cannot be is refused
	_ = os.Setenv("TESTCONTAINERS_HOST_OVERRIDE", "127.0.0.1")
	containerlog.SetDefault(containerlog.NewNoopLogger())
})

func networkName(id string) string  { return "ptah-" + id }
func clusterName(id string) string  { return "ptah-" + id }
func registryName(id string) string { return "ptah-" + id + "-registry" }

func (f *folder) makeNetwork(ctx context.Context, e *engine.Engine) error {
	name := networkName(f.id)
	if err := f.journal.Append(journal.Intended, journal.Network, name, ""); err != nil {
		return err
	}
	_, err := e.Client().NetworkCreate(ctx, name, client.NetworkCreateOptions{
		Driver:  "bridge",
		Labels:  map[string]string{Label: f.id},
		Options: map[string]string{"com.docker.network.bridge.enable_ip_masquerade": "true"},
	})
	if err != nil {
		return fmt.Errorf("make the network %s: %w", name, err)
	}
	return f.journal.Append(journal.Made, journal.Network, name, "")
}

// published binds a port of a container to 127.0.0.1 only. Host port 0 takes a free one.
func published(port, hostPort int) testcontainers.CustomizeRequestOption {
	text := ""
	if hostPort != 0 {
		text = strconv.Itoa(hostPort)
	}
	return testcontainers.WithHostConfigModifier(func(config *container.HostConfig) {
		config.PortBindings = network.PortMap{
			network.MustParsePort(fmt.Sprintf("%d/tcp", port)): {{HostIP: netip.AddrFrom4([4]byte{127, 0, 0, 1}), HostPort: text}},
		}
	})
}

// run starts a container of the lab, journalled before it can exist, and returns the published port.
func (f *folder) run(ctx context.Context, image, name string, port int, options ...testcontainers.ContainerCustomizer) (int, error) {
	quietContainers()
	if err := f.journal.Append(journal.Intended, journal.Container, name, ""); err != nil {
		return 0, err
	}
	options = append(options,
		testcontainers.WithName(name),
		testcontainers.WithLabels(map[string]string{Label: f.id}),
		testcontainers.WithExposedPorts(fmt.Sprintf("%d/tcp", port)),
		testcontainers.CustomizeRequestOption(func(request *testcontainers.GenericContainerRequest) error {
			request.Networks = []string{networkName(f.id)}
			return nil
		}),
	)
	started, err := testcontainers.Run(ctx, image, options...)
	if err != nil {
		return 0, fmt.Errorf("start the container %s: %w", name, err)
	}
	mapped, err := started.MappedPort(ctx, fmt.Sprintf("%d/tcp", port))
	if err != nil {
		return 0, fmt.Errorf("find the port of the container %s: %w", name, err)
	}
	return int(mapped.Num()), f.journal.Append(journal.Made, journal.Container, name, "")
}

func (f *folder) startRegistry(ctx context.Context, image string, hostPort int) (RegistryDescription, error) {
	name := registryName(f.id)
	user := fmt.Sprintf("%d:%d", os.Getuid(), os.Getgid()) // whoever can read the mounted files
	port, err := f.run(ctx, image, name, registryPort,
		published(registryPort, hostPort),
		testcontainers.WithConfigModifier(func(config *container.Config) { config.User = user }),
		testcontainers.WithHostConfigModifier(appendBind(f.path("registry"), "/etc/distribution", "ro")),
		testcontainers.WithWaitStrategyAndDeadline(containerReadyLimit, wait.ForListeningPort(fmt.Sprintf("%d/tcp", registryPort)).SkipInternalCheck()),
	)
	if err != nil {
		return RegistryDescription{}, err
	}
	description := RegistryDescription{
		ClusterHost: net.JoinHostPort(name, strconv.Itoa(registryPort)), LocalHost: net.JoinHostPort("127.0.0.1", strconv.Itoa(port)),
		Username: RegistryUser, PasswordFile: f.path("credentials", "registry-password"), CAFile: f.path("ca.crt"), ContainerName: name,
	}
	return description, registryAnswers(ctx, description)
}

// registryAnswers proves that the registry serves TLS with the lab's authority.
func registryAnswers(ctx context.Context, description RegistryDescription) error {
	pool, err := CertPool(description.CAFile)
	if err != nil {
		return err
	}
	dialer := tls.Dialer{Config: &tls.Config{RootCAs: pool, MinVersion: tls.VersionTLS12}}
	ctx, cancel := context.WithTimeout(ctx, containerReadyLimit)
	defer cancel()
	for {
		connection, err := dialer.DialContext(ctx, "tcp", description.LocalHost)
		if err == nil {
			return connection.Close()
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("the registry does not serve TLS at %s: %w", description.LocalHost, err)
		case <-time.After(100 * time.Millisecond):
		}
	}
}

// CertPool returns the certificates of a PEM file.
func CertPool(file string) (*x509.CertPool, error) {
	content, err := os.ReadFile(file)
	if err != nil {
		return nil, fmt.Errorf("read the lab's certificate authority: %w", err)
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(content) {
		return nil, fmt.Errorf("%s holds no certificate", file)
	}
	return pool, nil
}

func appendBind(from, to, mode string) func(*container.HostConfig) {
	return func(config *container.HostConfig) { config.Binds = append(config.Binds, from+":"+to+":"+mode) }
}
