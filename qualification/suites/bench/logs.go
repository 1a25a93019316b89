package bench

import (
	"context"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"

	"ptah.run/ptah/operator/api/v1alpha1"
)

// logPatience bounds the reading of all logs of one scenario.
const logPatience = time.Minute

// auditLogs closes a scenario: no log of an operation Pod of its namespaces may hold a credential that the scenario gave
// to the product. It reads what is there at the end, before the namespaces are removed.
func (s *Scenario) auditLogs() error {
	if len(s.namespaces) == 0 {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), logPatience)
	defer cancel()
	registry, err := os.ReadFile(s.Bench.Lab.Registry.PasswordFile)
	if err != nil {
		return fmt.Errorf("read the registry's password: %w", err)
	}
	secrets := append([]string{strings.TrimSpace(string(registry))}, s.credentials...)
	read := 0
	for _, namespace := range s.namespaces {
		logs, err := s.Bench.operationLogs(ctx, namespace)
		if err != nil {
			return err
		}
		for container, text := range logs {
			s.Check("closing audit: no credential in the log of "+container, !Discloses(text, secrets), "the log holds a password that the scenario made")
		}
		read += len(logs)
	}
	s.Observe("closing audit: logs read", read)
	return nil
}

// Discloses says whether a text holds one of some secrets.
func Discloses(text string, secrets []string) bool {
	for _, secret := range secrets {
		if secret != "" && strings.Contains(text, secret) {
			return true
		}
	}
	return false
}

// operationLogs reads the whole log of every container of every operation Pod in a namespace, by Pod and container.
func (b *Bench) operationLogs(ctx context.Context, namespace string) (map[string]string, error) {
	pods, err := corev1client.NewForConfig(b.Config)
	if err != nil {
		return nil, fmt.Errorf("connect to the lab's cluster: %w", err)
	}
	list, err := pods.Pods(namespace).List(ctx, metav1.ListOptions{LabelSelector: v1alpha1.LabelComponent + "=" + v1alpha1.SchemaOperation})
	if err != nil {
		return nil, fmt.Errorf("list the operation Pods of namespace %s: %w", namespace, err)
	}
	logs := map[string]string{}
	for _, pod := range list.Items {
		for _, container := range append(pod.Spec.InitContainers, pod.Spec.Containers...) {
			text, err := readLog(ctx, pods, &pod, container.Name)
			switch {
			case apierrors.IsBadRequest(err), apierrors.IsNotFound(err): // it never started, or its Job's time was up meanwhile
			case err != nil:
				return nil, fmt.Errorf("read the log of Pod %s/%s: %w", namespace, pod.Name, err)
			default:
				logs[pod.Name+"/"+container.Name] = text
			}
		}
	}
	return logs, nil
}

func readLog(ctx context.Context, pods corev1client.PodsGetter, pod *corev1.Pod, container string) (string, error) {
	stream, err := pods.Pods(pod.Namespace).GetLogs(pod.Name, &corev1.PodLogOptions{Container: container}).Stream(ctx)
	if err != nil {
		return "", err
	}
	defer func() { _ = stream.Close() }() // it was read
	text, err := io.ReadAll(stream)
	return string(text), err
}
