package dataplane

import (
	"context"
	"slices"
	"testing"
	"time"

	authorizationv1 "k8s.io/api/authorization/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"ptah.run/ptah/operator/api/v1alpha1"
	"ptah.run/ptah/qualification/suites/bench"
	"ptah.run/ptah/qualification/suites/subject"
)

// approvalStatus is what the manager must write to use an approval up, before it may dispatch anything.
var approvalStatus = authorizationv1.ResourceAttributes{Verb: "update", Group: "operator.ptah.run", Resource: "ptahschemaapprovals", Subresource: "status"}

// TestStaleApprovalNeverDispatched does not run beside the others: it takes a right from the manager. That holds it
// between its claim of an Apply and the use of the approval, so that the approval goes stale in exactly that gap.
func TestStaleApprovalNeverDispatched(t *testing.T) {
	scenario(t, "stale-approval-never-dispatched", func(ctx context.Context, s *bench.Scenario) {
		one := subject.Prepare(ctx, s, subject.First, subject.Seldom)
		jobs := one.RecordJobs(ctx)
		one.Converge(ctx)
		waiting := one.PlanFor(ctx, subject.Second, "a plan for the second version")
		before := len(jobs.Applies(ctx))
		giveBack := withoutApprovalStatus(ctx, s)
		since := time.Now()
		one.Approve(ctx, waiting, "overtaken")
		claimed, _ := one.Await(ctx, "a claim of the Apply", func(now *v1alpha1.PtahSchema) bool {
			claim := now.Status.ActiveOperation
			return claim != nil && claim.Type == v1alpha1.OperationApply && claim.ApprovalRef != nil
		})
		s.Witness("claim that cannot use its approval", claimed.Status.ActiveOperation)
		s.Check("nothing is marked as dispatched", !claimed.Status.ActiveOperation.DispatchStarted, "the Apply is marked although its approval was not used up")
		one.Patch(ctx, `{"spec":{"policy":{"allowDestructive":true}}}`)
		time.Sleep(subject.Retry) // in which the manager tries again and again
		s.Check("no Apply Job while the approval is not used up", len(jobs.Applies(ctx)) == before, "Apply Jobs of the record: %v", jobs.Applies(ctx))
		giveBack()

		fresh, _ := one.Await(ctx, "another plan", func(now *v1alpha1.PtahSchema) bool {
			return bench.AwaitingApproval(now) && now.Status.Plan.UID != waiting.Status.Plan.UID
		})
		s.Check("the stale approval dispatched nothing", len(jobs.Applies(ctx)) == before, "Apply Jobs of the record: %v", jobs.Applies(ctx))
		writes := one.Journal(since).Writes
		s.Check("nothing was sent", len(writes) == 0, "the journal shows writing statements: %v", writes)
		one.Spent(ctx, "overtaken")
		one.AppliesOnce(ctx, jobs, fresh, "fresh")
	})
}

// withoutApprovalStatus takes the right to write the status of approvals from the manager, until what it returns is
// called or the test ends.
func withoutApprovalStatus(ctx context.Context, s *bench.Scenario) (giveBack func()) {
	s.T.Helper()
	role := &rbacv1.ClusterRole{}
	key := client.ObjectKey{Name: bench.ManagerDeployment}
	s.Fixture(s.Bench.Client.Get(ctx, key, role))
	whole := role.DeepCopy()
	taken := false
	for i := range role.Rules {
		resources := &role.Rules[i].Resources
		if at := slices.Index(*resources, "ptahschemaapprovals/status"); at >= 0 {
			*resources, taken = slices.Delete(*resources, at, at+1), true
		}
	}
	s.Need("the manager has the right", subject.ErrorUnless(taken, "no rule of ClusterRole "+key.Name+" lets the manager write the status of approvals"))
	s.Fixture(s.Bench.Client.Update(ctx, role))
	given := false
	giveBack = func() {
		if given {
			return
		}
		given = true
		now := &rbacv1.ClusterRole{}
		s.Fixture(s.Bench.Client.Get(context.Background(), key, now))
		now.Rules = whole.Rules
		s.Fixture(s.Bench.Client.Update(context.Background(), now))
		awaitRight(s, true)
	}
	s.T.Cleanup(giveBack)
	awaitRight(s, false)
	s.Witness("right that the manager lacks", approvalStatus)
	return giveBack
}

// awaitRight waits until the API server decides by the changed role.
func awaitRight(s *bench.Scenario, wanted bool) {
	s.T.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	for {
		may, err := s.Bench.May(ctx, bench.ManagerUser, bench.ServiceAccountGroups(bench.ReleaseNamespace), approvalStatus)
		s.Fixture(err)
		if may == wanted {
			return
		}
		time.Sleep(100 * time.Millisecond)
	}
}
