package cell

import (
	"context"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"

	"ptah.run/ptah/qualification/evidence"
	"ptah.run/ptah/qualification/installation"
	"ptah.run/ptah/qualification/lab"
)

// addManagerLogs keeps the logs of the manager's Pods, for people who look for a cause, and refuses a cell whose
// manager is not the one that the release names.
func addManagerLogs(ctx context.Context, cell *evidence.Cell, description *lab.Description, manager string) error {
	config, err := clientcmd.BuildConfigFromFlags("", description.Kubeconfig)
	if err != nil {
		return fmt.Errorf("read the lab's kubeconfig %s: %w", description.Kubeconfig, err)
	}
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return fmt.Errorf("connect to the lab's cluster: %w", err)
	}
	pods, err := client.CoreV1().Pods(installation.Namespace).List(ctx, metav1.ListOptions{})
	if err != nil {
		return fmt.Errorf("list the Pods of %s: %w", installation.Namespace, err)
	}
	for _, pod := range pods.Items {
		if pod.Status.Phase != corev1.PodRunning {
			continue
		}
		if err := runsRelease(&pod, manager); err != nil {
			return err
		}
		stream, err := client.CoreV1().Pods(installation.Namespace).GetLogs(pod.Name, &corev1.PodLogOptions{}).Stream(ctx)
		if err != nil {
			return fmt.Errorf("read the log of Pod %s: %w", pod.Name, err)
		}
		_, err = cell.PutFile("cluster/"+pod.Name+".log", stream)
		_ = stream.Close()
		if err != nil {
			return err
		}
	}
	return nil
}

// runsRelease compares what the kubelet says it runs with the digest of the release.
func runsRelease(pod *corev1.Pod, digest string) error {
	for _, container := range pod.Status.ContainerStatuses {
		if !strings.HasSuffix(container.ImageID, "@"+digest) {
			return fmt.Errorf("the Pod %s runs image %s and the release names %s: install the release again", pod.Name, container.ImageID, digest)
		}
	}
	return nil
}
