package cluster

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/kind/pkg/cluster"
	"sigs.k8s.io/kind/pkg/cluster/nodes"
	"sigs.k8s.io/kind/pkg/cluster/nodeutils"
	kinderrors "sigs.k8s.io/kind/pkg/errors"
	"sigs.k8s.io/kind/pkg/exec"
)

// Label is the label that kind puts on each container of a cluster; its value is the cluster's name.
const Label = "io.x-k8s.kind.cluster"

// NetworkVariable names the engine's network to kind. It is also how processes that kind started for a lab are
// recognised.
const NetworkVariable = "KIND_EXPERIMENTAL_DOCKER_NETWORK"

const snapshotterVariable = "KIND_EXPERIMENTAL_CONTAINERD_SNAPSHOTTER"

const (
	readyLimit = 5 * time.Minute
	lookPeriod = 500 * time.Millisecond
)

// creating keeps two clusters of one process apart: kind reads the environment of the process.
var creating sync.Mutex

// Place is where a cluster is made.
type Place struct {
	Network     string    // of the engine; it must exist
	Kubeconfig  string    // file to write
	FuseOverlay bool      // the engine keeps containers on fuse-overlayfs
	Log         io.Writer // what kind says
}

// Create makes the cluster, its Pod network included, and returns when its nodes and its DNS are ready. What exists
// after an error is left for the caller to look at and to remove.
func Create(ctx context.Context, spec Spec, place Place) error {
	config, err := Config(spec)
	if err != nil {
		return err
	}
	provider, restore, err := prepare(place)
	if err != nil {
		return err
	}
	err = provider.Create(spec.Name,
		cluster.CreateWithV1Alpha4Config(config),
		cluster.CreateWithRetain(true),
		cluster.CreateWithKubeconfigPath(place.Kubeconfig),
		cluster.CreateWithWaitForReady(0), // nothing is ready before the Pod network is there
	)
	restore()
	if err != nil {
		return fmt.Errorf("create the cluster %s: %w", spec.Name, explain(err))
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	client, err := Client(place.Kubeconfig)
	if err != nil {
		return err
	}
	if err := installNetwork(ctx, provider, spec, client); err != nil {
		return fmt.Errorf("give the cluster %s its Pod network: %w", spec.Name, err)
	}
	return waitReady(ctx, spec, client)
}

// prepare sets what kind reads from the environment until restore is called.
func prepare(place Place) (*cluster.Provider, func(), error) {
	creating.Lock()
	settings := map[string]string{NetworkVariable: place.Network}
	if place.FuseOverlay {
		// kind takes a fuse root for a reason to change the snapshotter; containerd's data lies on a volume.
		settings[snapshotterVariable] = "overlayfs"
	}
	var undo []func()
	restore := func() {
		for _, one := range undo {
			one()
		}
		creating.Unlock()
	}
	for name, value := range settings {
		before, was := os.LookupEnv(name)
		if err := os.Setenv(name, value); err != nil {
			restore()
			return nil, nil, fmt.Errorf("tell kind its network: %w", err)
		}
		undo = append(undo, func() {
			if was {
				_ = os.Setenv(name, before) // it was set a moment ago
			} else {
				_ = os.Unsetenv(name)
			}
		})
	}
	return cluster.NewProvider(cluster.ProviderWithDocker(), cluster.ProviderWithLogger(&logger{out: place.Log})), restore, nil
}

// explain adds the last lines of a failed command of kind's to its error.
func explain(err error) error {
	var run *exec.RunError
	if !errors.As(err, &run) {
		for _, one := range kinderrors.Errors(err) {
			if found := exec.RunErrorForError(one); found != nil {
				run = found
			}
		}
	}
	if run == nil {
		return err
	}
	lines := strings.Split(strings.TrimSpace(string(run.Output)), "\n")
	if len(lines) > 4 {
		lines = lines[len(lines)-4:]
	}
	return fmt.Errorf("%w: %s", err, strings.Join(lines, "; "))
}

// Client returns a client of a cluster.
func Client(kubeconfig string) (kubernetes.Interface, error) {
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		return nil, fmt.Errorf("read the cluster's kubeconfig: %w", err)
	}
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("make a client of the cluster: %w", err)
	}
	return client, nil
}

// UID returns the UID of the kube-system namespace, which stands for the cluster.
func UID(ctx context.Context, client kubernetes.Interface) (string, error) {
	namespace, err := client.CoreV1().Namespaces().Get(ctx, metav1.NamespaceSystem, metav1.GetOptions{})
	if err != nil {
		return "", fmt.Errorf("read the cluster's identity: %w", err)
	}
	return string(namespace.UID), nil
}

func installNetwork(ctx context.Context, provider *cluster.Provider, spec Spec, client kubernetes.Interface) error {
	addresses, err := nodeAddresses(ctx, client, spec.ControlPlanes+spec.Workers)
	if err != nil {
		return err
	}
	containers, err := provider.ListInternalNodes(spec.Name)
	if err != nil {
		return explain(err)
	}
	byName := map[string]nodes.Node{}
	for _, node := range containers {
		byName[node.String()] = node
	}
	for _, address := range addresses {
		node, found := byName[address.Name]
		if !found {
			return fmt.Errorf("node %s has no container", address.Name)
		}
		script, err := NetworkScript(address, addresses)
		if err != nil {
			return err
		}
		if err := node.CommandContext(ctx, "sh", "-c", script).Run(); err != nil {
			return explain(err)
		}
		config, err := NetworkConfig(address)
		if err != nil {
			return err
		}
		// The file comes last: with it the node says that it is ready.
		if err := nodeutils.WriteFile(node, "/etc/cni/net.d/10-lab.conflist", string(config)); err != nil {
			return explain(err)
		}
	}
	return nil
}

// nodeAddresses waits until each node has its Pod range.
func nodeAddresses(ctx context.Context, client kubernetes.Interface, count int) ([]NodeAddress, error) {
	ctx, cancel := context.WithTimeout(ctx, readyLimit)
	defer cancel()
	for {
		list, err := client.CoreV1().Nodes().List(ctx, metav1.ListOptions{})
		if err != nil {
			return nil, fmt.Errorf("list the nodes: %w", err)
		}
		var addresses []NodeAddress
		for _, node := range list.Items {
			for _, address := range node.Status.Addresses {
				if address.Type == corev1.NodeInternalIP && node.Spec.PodCIDR != "" {
					addresses = append(addresses, NodeAddress{Name: node.Name, Address: address.Address, PodCIDR: node.Spec.PodCIDR})
					break
				}
			}
		}
		if len(addresses) == count {
			return addresses, nil
		}
		select {
		case <-ctx.Done():
			return nil, fmt.Errorf("%d of %d nodes have an address and a Pod range: %w", len(addresses), count, ctx.Err())
		case <-time.After(lookPeriod):
		}
	}
}

// waitReady returns when all nodes are ready and the cluster's DNS serves on every replica.
func waitReady(ctx context.Context, spec Spec, client kubernetes.Interface) error {
	ctx, cancel := context.WithTimeout(ctx, readyLimit)
	defer cancel()
	for {
		missing, err := notReady(ctx, client, spec.ControlPlanes+spec.Workers)
		if err == nil && missing == "" {
			return nil
		}
		if err != nil {
			missing = err.Error()
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("the cluster %s is not ready after %s: %s", spec.Name, readyLimit, missing)
		case <-time.After(lookPeriod):
		}
	}
}

func notReady(ctx context.Context, client kubernetes.Interface, count int) (string, error) {
	list, err := client.CoreV1().Nodes().List(ctx, metav1.ListOptions{})
	if err != nil {
		return "", err
	}
	ready := 0
	for _, node := range list.Items {
		for _, condition := range node.Status.Conditions {
			if condition.Type == corev1.NodeReady && condition.Status == corev1.ConditionTrue {
				ready++
			}
		}
	}
	if ready != count {
		return fmt.Sprintf("%d of %d nodes are ready", ready, count), nil
	}
	dns, err := client.AppsV1().Deployments(metav1.NamespaceSystem).Get(ctx, "coredns", metav1.GetOptions{})
	if err != nil {
		return "", err
	}
	if !available(dns) {
		return "the cluster's DNS does not serve yet", nil
	}
	_, err = client.CoreV1().ServiceAccounts(metav1.NamespaceDefault).Get(ctx, "default", metav1.GetOptions{})
	return "", err
}

func available(deployment *appsv1.Deployment) bool {
	wanted := int32(1)
	if deployment.Spec.Replicas != nil {
		wanted = *deployment.Spec.Replicas
	}
	return deployment.Status.ObservedGeneration >= deployment.Generation && deployment.Status.AvailableReplicas == wanted
}

// CollectLogs writes what the nodes of a cluster logged into a folder.
func CollectLogs(name, dir string, log io.Writer) error {
	provider := cluster.NewProvider(cluster.ProviderWithDocker(), cluster.ProviderWithLogger(&logger{out: log}))
	if err := provider.CollectLogs(name, dir); err != nil {
		return fmt.Errorf("collect the logs of the cluster %s: %w", name, explain(err))
	}
	return nil
}
