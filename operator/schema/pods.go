package schema

import (
	"context"
	"fmt"
	"slices"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	ptahv1 "ptah.run/ptah/operator/api/v1alpha1"
)

const (
	// maxPodUIDs is how many Pods of an Apply a status names.
	maxPodUIDs = 8
	// podPage is how many Pods one request returns.
	podPage = 500
)

// podEvidence is which Pods of an Apply were seen.
type podEvidence struct {
	// uids are sorted and without repetition.
	uids []string
	// count is at least how many uids there are: the Job controller also counts Pods that are gone.
	count int32
	// running says that one of them may still run a statement.
	running bool
}

// several says that no result counts: of two Pods nobody knows what the other did.
func (e podEvidence) several() bool { return e.count > 1 }

// applyPods looks at every Pod of the namespace that belongs to the Job of an Apply, by the UID of its owner and
// whatever its labels say. deliverer is the Pod whose result is stored, "" for none; it counts where it is gone by now.
func (p *pass) applyPods(ctx context.Context, jobUID types.UID, job *batchv1.Job, deliverer string) (podEvidence, error) {
	found := podEvidence{}
	if deliverer != "" {
		found.uids = append(found.uids, deliverer)
	}
	for next := ""; ; {
		list := &corev1.PodList{}
		err := p.Live.List(ctx, list, client.InNamespace(p.schema.Namespace), client.Limit(podPage), client.Continue(next))
		if err != nil {
			return podEvidence{}, fmt.Errorf("list the Pods of an Apply: %w", err)
		}
		for i := range list.Items {
			pod := &list.Items[i]
			if !ownedBy(pod, jobUID) {
				continue
			}
			found.uids = append(found.uids, string(pod.UID))
			found.running = found.running || pod.Status.Phase != corev1.PodSucceeded && pod.Status.Phase != corev1.PodFailed
		}
		if next = list.Continue; next == "" {
			break
		}
	}
	slices.Sort(found.uids)
	found.uids = slices.Compact(found.uids)
	found.count = max(int32(len(found.uids)), counted(job))
	return found, nil
}

func ownedBy(pod *corev1.Pod, uid types.UID) bool {
	return slices.ContainsFunc(pod.OwnerReferences, func(owner metav1.OwnerReference) bool { return owner.UID == uid })
}

// counted is how many Pods the Job controller saw.
func counted(job *batchv1.Job) int32 {
	if job == nil {
		return 0
	}
	status := &job.Status
	return status.Active + status.Succeeded + status.Failed + ptr.Deref(status.Terminating, 0)
}

// record writes the evidence into a status.
func (e podEvidence) record(pending *ptahv1.PendingObservationStatus) {
	pending.ApplyPodUIDs = e.uids[:min(len(e.uids), maxPodUIDs)]
	pending.ApplyPodCount = e.count
}

// executionEnd is when the last statement of an Apply ends, whatever became of its Job.
func executionEnd(claim *ptahv1.ActiveOperationStatus) *metav1.Time {
	end := metav1.NewTime(claim.ExecutionNotAfter.Add(time.Duration(claim.TerminationGracePeriodSeconds) * time.Second))
	return &end
}
