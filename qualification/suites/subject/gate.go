package subject

import (
	"context"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"ptah.run/ptah/operator/api/v1alpha1"
)

const jobsOfNamespace = corev1.ResourceName("count/jobs.batch")

// HoldJobs lets no further Job of the namespace be created, by a quota as an administrator sets it. What is approved
// then is accepted and not dispatched, which leaves room for a change between the two.
func (s *Subject) HoldJobs(ctx context.Context) {
	s.T.Helper()
	quota := &corev1.ResourceQuota{ObjectMeta: s.quotaMeta(),
		Spec: corev1.ResourceQuotaSpec{Hard: corev1.ResourceList{jobsOfNamespace: resource.MustParse("0")}}}
	s.Fixture(s.Bench.Client.Create(ctx, quota))
	bounded, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	for {
		s.Fixture(s.Bench.Client.Get(bounded, client.ObjectKeyFromObject(quota), quota))
		if _, known := quota.Status.Hard[jobsOfNamespace]; known {
			return
		}
		time.Sleep(200 * time.Millisecond)
	}
}

// ReleaseJobs ends HoldJobs.
func (s *Subject) ReleaseJobs(ctx context.Context) {
	s.T.Helper()
	s.Fixture(s.Bench.Client.Delete(ctx, &corev1.ResourceQuota{ObjectMeta: s.quotaMeta()}))
}

func (s *Subject) quotaMeta() metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: s.Key.Namespace, Name: "no-jobs"}
}

// ApproveHeld approves the waiting plan while Jobs are held, and waits until the Apply that it authorises was refused
// its Job. Whatever is changed then is changed after the approval was accepted and before anything was dispatched.
func (s *Subject) ApproveHeld(ctx context.Context, waiting *v1alpha1.PtahSchema, name string) {
	s.T.Helper()
	s.HoldJobs(ctx)
	s.Approve(ctx, waiting, name)
	held, _ := s.Await(ctx, "an Apply that was refused its Job", func(now *v1alpha1.PtahSchema) bool {
		claim := now.Status.ActiveOperation
		return claim != nil && claim.Type == v1alpha1.OperationApply && claim.ApprovalRef != nil && claim.RetryNotBefore != nil
	})
	s.Witness("claim that was refused its Job", held.Status.ActiveOperation)
}
