package bench

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"ptah.run/ptah/operator/api/v1alpha1"
)

// Where the qualified installation runs. They are the names of package installation, which would link Helm into every
// suite.
const (
	ReleaseNamespace  = "ptah-system"
	ManagerDeployment = "ptah-operator"
)

const (
	managerComponent  = "manager"
	coordinationLabel = "operator.ptah.run/coordination"
	rolloutPatience   = 2 * time.Minute
)

// Managers lists the Pods of the manager.
func (b *Bench) Managers(ctx context.Context) ([]corev1.Pod, error) {
	pods := &corev1.PodList{}
	err := b.Client.List(ctx, pods, client.InNamespace(ReleaseNamespace), client.MatchingLabels{v1alpha1.LabelComponent: managerComponent})
	if err != nil {
		return nil, fmt.Errorf("list the manager's Pods: %w", err)
	}
	return pods.Items, nil
}

// RestartManagers deletes every Pod of the manager at once and waits until others are available in their place. It
// returns the names of the Pods that were deleted.
func (b *Bench) RestartManagers(ctx context.Context) ([]string, error) {
	pods, err := b.Managers(ctx)
	if err != nil {
		return nil, err
	}
	if len(pods) == 0 {
		return nil, fmt.Errorf("no Pod of the manager runs in namespace %s", ReleaseNamespace)
	}
	var names []string
	for i := range pods {
		if err := b.Client.Delete(ctx, &pods[i]); err != nil {
			return nil, fmt.Errorf("delete Pod %s of the manager: %w", pods[i].Name, err)
		}
		names = append(names, pods[i].Name)
	}
	return names, b.awaitManagers(ctx, func(pods []corev1.Pod) bool {
		return !slices.ContainsFunc(pods, func(pod corev1.Pod) bool { return slices.Contains(names, pod.Name) })
	})
}

// SetManagerArgument gives the manager another value of a command line flag, as an upgrade does, and waits until only
// Pods with it run. It returns the value it had.
func (b *Bench) SetManagerArgument(ctx context.Context, flag, value string) (before string, err error) {
	deployment := &appsv1.Deployment{}
	key := client.ObjectKey{Namespace: ReleaseNamespace, Name: ManagerDeployment}
	if err := b.Client.Get(ctx, key, deployment); err != nil {
		return "", fmt.Errorf("read the manager's Deployment: %w", err)
	}
	changed := deployment.DeepCopy()
	arguments := changed.Spec.Template.Spec.Containers[0].Args
	at := slices.IndexFunc(arguments, func(argument string) bool { return strings.HasPrefix(argument, flag+"=") })
	if at < 0 {
		return "", fmt.Errorf("the manager's Deployment has no argument %s", flag)
	}
	before = strings.TrimPrefix(arguments[at], flag+"=")
	arguments[at] = flag + "=" + value
	if err := b.Client.Patch(ctx, changed, client.MergeFrom(deployment)); err != nil {
		return before, fmt.Errorf("change %s of the manager: %w", flag, err)
	}
	return before, b.awaitManagers(ctx, func(pods []corev1.Pod) bool {
		return !slices.ContainsFunc(pods, func(pod corev1.Pod) bool {
			return !slices.Contains(pod.Spec.Containers[0].Args, flag+"="+value)
		})
	})
}

// ScaleManagers changes how many replicas the manager has and waits until exactly these run. It returns how many it had.
func (b *Bench) ScaleManagers(ctx context.Context, replicas int32) (before int32, err error) {
	deployment := &appsv1.Deployment{}
	if err := b.Client.Get(ctx, client.ObjectKey{Namespace: ReleaseNamespace, Name: ManagerDeployment}, deployment); err != nil {
		return 0, fmt.Errorf("read the manager's Deployment: %w", err)
	}
	changed := deployment.DeepCopy()
	before, changed.Spec.Replicas = *deployment.Spec.Replicas, &replicas
	if err := b.Client.Patch(ctx, changed, client.MergeFrom(deployment)); err != nil {
		return before, fmt.Errorf("scale the manager to %d replicas: %w", replicas, err)
	}
	return before, b.awaitManagers(ctx, func([]corev1.Pod) bool { return true })
}

// awaitManagers waits until the manager's Deployment is rolled out and its Pods are as wanted.
func (b *Bench) awaitManagers(ctx context.Context, wanted func([]corev1.Pod) bool) error {
	bounded, cancel := context.WithTimeout(ctx, rolloutPatience)
	defer cancel()
	for {
		deployment := &appsv1.Deployment{}
		if err := b.Client.Get(bounded, client.ObjectKey{Namespace: ReleaseNamespace, Name: ManagerDeployment}, deployment); err != nil {
			return fmt.Errorf("wait until the manager is available: %w", err)
		}
		pods, err := b.Managers(bounded)
		if err != nil {
			return err
		}
		replicas := *deployment.Spec.Replicas
		if deployment.Status.ObservedGeneration == deployment.Generation && deployment.Status.UpdatedReplicas == replicas &&
			deployment.Status.AvailableReplicas == replicas && int(replicas) == len(pods) && wanted(pods) {
			return nil
		}
		time.Sleep(500 * time.Millisecond)
	}
}

// RealmLease is what a Lease of the coordination namespace says about one epoch.
type RealmLease struct {
	Name   string `json:"name"`
	Holder string `json:"holder"`
	Epoch  string `json:"epoch"`
}

// RealmLease finds the Lease that is held under an epoch. It is nil where no Lease is.
func (b *Bench) RealmLease(ctx context.Context, epoch string) (*RealmLease, error) {
	leases := &coordinationv1.LeaseList{}
	if err := b.Client.List(ctx, leases, client.InNamespace(ReleaseNamespace), client.HasLabels{coordinationLabel}); err != nil {
		return nil, fmt.Errorf("list the realm Leases: %w", err)
	}
	for _, lease := range leases.Items {
		if epoch != "" && lease.Annotations[v1alpha1.AnnotationLeaseEpoch] == epoch && lease.Spec.HolderIdentity != nil {
			return &RealmLease{Name: lease.Name, Holder: *lease.Spec.HolderIdentity, Epoch: epoch}, nil
		}
	}
	return nil, nil
}
