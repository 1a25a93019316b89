package schemaapprovals

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"ptah.run/ptah/operator/api/v1alpha1"
	"ptah.run/ptah/qualification/lab/tenant"
	"ptah.run/ptah/qualification/suites/bench"
	"ptah.run/ptah/qualification/suites/subject"
)

// approved is a schema that converged once, with a second plan whose approval was accepted and whose Apply was refused
// its Job.
type approved struct {
	*subject.Subject
	jobs    *subject.Jobs
	applies int // Apply Jobs before the approval
	waiting *v1alpha1.PtahSchema
	since   time.Time
}

func prepareApproved(ctx context.Context, s *bench.Scenario) *approved {
	s.T.Helper()
	one := &approved{Subject: subject.Prepare(ctx, s, subject.First, subject.Seldom)}
	one.jobs = one.RecordJobs(ctx)
	one.Converge(ctx)
	one.applies = len(one.jobs.Applies(ctx))
	s.Check("control: the record shows the first Apply", one.applies == 1, "the record shows %d Apply Jobs after the first convergence", one.applies)
	one.hold(ctx, subject.Second, "held")
	return one
}

// hold plans for a version and has the plan approved while no Job can be created.
func (a *approved) hold(ctx context.Context, version subject.Version, approval string) {
	a.T.Helper()
	a.applies = len(a.jobs.Applies(ctx))
	a.waiting = a.PlanFor(ctx, version, "a plan for "+approval)
	a.since = time.Now()
	a.ApproveHeld(ctx, a.waiting, approval)
}

// replanned waits for another plan than the approved one, and checks that nothing was sent on the way there.
func (a *approved) replanned(ctx context.Context, approval string) *v1alpha1.PtahSchema {
	a.T.Helper()
	fresh, _ := a.Await(ctx, "another plan than "+approval, func(now *v1alpha1.PtahSchema) bool {
		return bench.AwaitingApproval(now) && now.Status.Plan.UID != a.waiting.Status.Plan.UID
	})
	applies := a.jobs.Applies(ctx)
	a.Check("no Apply was dispatched on "+approval, len(applies) == a.applies, "Apply Jobs of the record: %v", applies)
	a.nothingSent(approval)
	a.Spent(ctx, approval)
	return fresh
}

func (a *approved) nothingSent(approval string) {
	a.T.Helper()
	writes := a.Journal(a.since).Writes
	a.Check("nothing was sent on "+approval, len(writes) == 0, "the journal shows writing statements: %v", writes)
}

func (a *approved) has(ctx context.Context, column string) {
	a.T.Helper()
	columns := a.Columns(ctx)
	a.Check("the database has "+column, slices.Contains(columns, column), "columns are %v", columns)
}

func TestApprovalOfAnotherPolicyRefused(t *testing.T) {
	t.Parallel()
	scenario(t, "approval-of-another-policy-refused", func(ctx context.Context, s *bench.Scenario) {
		one := prepareApproved(ctx, s)
		one.Patch(ctx, `{"spec":{"policy":{"allowDestructive":true}}}`)
		one.ReleaseJobs(ctx)
		fresh := one.replanned(ctx, "held")

		// The scope of what is managed is bound as well.
		one.waiting, one.since = fresh, time.Now()
		one.ApproveHeld(ctx, fresh, "scope")
		one.Patch(ctx, `{"spec":{"policy":{"exclude":["public.ignored"]}}}`)
		one.ReleaseJobs(ctx)
		one.AppliesOnce(ctx, one.jobs, one.replanned(ctx, "scope"), "fresh")
		one.has(ctx, "customers.name")
	})
}

// TestApprovalOfAnotherVerificationPolicyRefused changes what the artifact was verified under, which lies outside of
// the resource.
func TestApprovalOfAnotherVerificationPolicyRefused(t *testing.T) {
	t.Parallel()
	scenario(t, "approval-of-another-verification-policy-refused", func(ctx context.Context, s *bench.Scenario) {
		one := prepareApproved(ctx, s)
		policy := &corev1.ConfigMap{}
		key := client.ObjectKey{Namespace: one.Key.Namespace, Name: tenant.PolicyMap}
		s.Fixture(s.Bench.Client.Get(ctx, key, policy))
		policy.Data["policy.yaml"] += "# reviewed again\n"
		s.Fixture(s.Bench.Client.Update(ctx, policy))
		one.ReleaseJobs(ctx)
		one.AppliesOnce(ctx, one.jobs, one.replanned(ctx, "held"), "fresh")
		one.has(ctx, "customers.name")

		// The same bytes in another object are another policy, because somebody else may have made it.
		one.hold(ctx, subject.Third, "same-bytes")
		s.Fixture(s.Bench.Client.Delete(ctx, policy))
		again := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: key.Name}, Data: policy.Data}
		s.Fixture(s.Bench.Client.Create(ctx, again))
		s.Witness("UID of the policy before and after", []string{string(policy.UID), string(again.UID)})
		one.ReleaseJobs(ctx)
		one.AppliesOnce(ctx, one.jobs, one.replanned(ctx, "same-bytes"), "fresh-again")
		one.has(ctx, "customers.phone")
	})
}

func TestApprovalOfAnotherTargetRefused(t *testing.T) {
	t.Parallel()
	scenario(t, "approval-of-another-target-refused", func(ctx context.Context, s *bench.Scenario) {
		one := prepareApproved(ctx, s)
		other := s.Database(ctx)
		one.PointAt(ctx, other.ClusterURL())
		one.ReleaseJobs(ctx)
		// The credential is read by the Pod alone, so that the Apply is dispatched and refuses by itself. What it did
		// can be read in the planned database only, which the Secret does not name.
		refused, _ := one.Await(ctx, "an Apply that refused the other database", func(now *v1alpha1.PtahSchema) bool {
			pending := now.Status.PendingObservation
			return pending != nil && pending.Refusal != "" && now.Status.FailedAttempts > 0
		})
		s.Observe("refusal", refused.Status.PendingObservation.Refusal)
		applies := one.jobs.Applies(ctx)
		s.Check("one Apply was dispatched", len(applies) == one.applies+1, "Apply Jobs of the record: %v", applies)
		one.nothingSent("held")
		there, err := other.Journal(one.since)
		s.Fixture(err)
		s.Check("nothing was sent to the other database", len(there.Writes) == 0, "its journal shows writing statements: %v", there.Writes)
		s.Check("control: the other database was reached", len(there.Reads) > 0, "its journal shows no reading either, so it proves nothing")
		s.Check("not in sync", !bench.InSync(refused), "a refused Apply must not end in sync")
		one.Spent(ctx, "held")

		one.PointAt(ctx, one.Database.ClusterURL())
		fresh, _ := one.Await(ctx, "a plan for the database it was planned for", bench.AwaitingApproval)
		one.AppliesOnce(ctx, one.jobs, fresh, "fresh")
		one.has(ctx, "customers.name")
		columns, err := other.Columns(ctx)
		s.Fixture(err)
		s.Check("the other database is still empty", len(columns) == 0, "its columns are %v", columns)
	})
}

func TestApprovalOfAReplacedResourceRefused(t *testing.T) {
	t.Parallel()
	scenario(t, "approval-of-a-replaced-resource-refused", func(ctx context.Context, s *bench.Scenario) {
		one := prepareApproved(ctx, s)
		s.Fixture(s.Bench.Client.Delete(ctx, one.waiting.DeepCopy()))
		s.Need("the resource is gone", one.gone(ctx))
		one.Declare(ctx)
		one.ReleaseJobs(ctx)
		fresh, _ := one.Await(ctx, "a plan of the resource of the same name", func(now *v1alpha1.PtahSchema) bool {
			return now.UID != one.waiting.UID && bench.AwaitingApproval(now)
		})
		s.Witness("UID of the resource before and after", []string{string(one.waiting.UID), string(fresh.UID)})
		applies := one.jobs.Applies(ctx)
		s.Check("no Apply was dispatched", len(applies) == one.applies, "Apply Jobs of the record: %v", applies)
		one.nothingSent("held")
		one.AppliesOnce(ctx, one.jobs, fresh, "fresh")
		one.has(ctx, "customers.name")
	})
}

// gone waits until the declared resource does not exist any more.
func (a *approved) gone(ctx context.Context) error {
	bounded, cancel := context.WithTimeout(ctx, subject.Patience)
	defer cancel()
	for {
		now := &v1alpha1.PtahSchema{}
		err := a.Bench.Client.Get(bounded, a.Key, now)
		if apierrors.IsNotFound(err) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("wait for the end of PtahSchema %s, whose finalizers are %v: %w", a.Key, now.Finalizers, err)
		}
		time.Sleep(200 * time.Millisecond)
	}
}

func TestFreshApprovalAppliesOnce(t *testing.T) {
	t.Parallel()
	scenario(t, "fresh-approval-applies-once", func(ctx context.Context, s *bench.Scenario) {
		one := prepareApproved(ctx, s)
		// A second person approves the same plan while the first approval is acted upon.
		second := s.Bench.Client.Create(ctx, bench.Approval(one.waiting, "second"))
		s.Check("a second approval meanwhile is refused", apierrors.IsForbidden(second) || apierrors.IsInvalid(second), "admission said %v", second)
		one.ReleaseJobs(ctx)
		one.Await(ctx, "proven convergence", func(now *v1alpha1.PtahSchema) bool {
			return bench.InSync(now) && now.Status.Applied != nil && now.Status.Applied.PlanFingerprint == one.waiting.Status.Plan.Fingerprint
		})
		applies := one.jobs.Applies(ctx)
		s.Check("the approval caused one Apply", len(applies) == one.applies+1, "Apply Jobs of the record: %v", applies)
		writes := one.Journal(one.since).Writes
		s.Check("its statements ran once", len(writes) == int(one.waiting.Status.Plan.StatementCount), "the plan has %d statements, the journal shows %v", one.waiting.Status.Plan.StatementCount, writes)
		one.has(ctx, "customers.name")
		one.Touch(ctx)
		one.Await(ctx, "a refresh after that", func(now *v1alpha1.PtahSchema) bool {
			return bench.InSync(now) && now.Status.RefreshedGeneration == now.Generation
		})
		one.Spent(ctx, "held")
		s.Check("and still one", len(one.jobs.Applies(ctx)) == one.applies+1, "Apply Jobs of the record: %v", one.jobs.Applies(ctx))
	})
}
