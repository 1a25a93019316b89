package schemaapprovals

import (
	"context"
	"fmt"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"ptah.run/ptah/operator/api/v1alpha1"
	"ptah.run/ptah/qualification/suites/bench"
	"ptah.run/ptah/qualification/suites/subject"
)

// untouched is how long the manager must leave a resource alone that it cannot interpret. It is several times the
// pause after which the refused Apply would be tried again.
const untouched = 6 * subject.Retry

// TestApprovalUnderForeignStateRefused writes into the status what another version of the product would have written,
// between approval and dispatch. It does not run beside the others: it replaces the manager's Pods.
func TestApprovalUnderForeignStateRefused(t *testing.T) {
	scenario(t, "approval-under-foreign-state-refused", func(ctx context.Context, s *bench.Scenario) {
		one := prepareApproved(ctx, s)
		written := one.patchBinding(ctx, fmt.Sprintf(`"controllerStateVersion":%d`, v1alpha1.ControllerStateVersion+1))
		one.ReleaseJobs(ctx)
		time.Sleep(untouched)
		now := &v1alpha1.PtahSchema{}
		s.Fixture(s.Bench.Client.Get(ctx, one.Key, now))
		s.Check("what a newer manager wrote is not written to", now.ResourceVersion == written.ResourceVersion,
			"the resource was at version %s and is at %s", written.ResourceVersion, now.ResourceVersion)
		applies := one.jobs.Applies(ctx)
		s.Check("and nothing is dispatched for it", len(applies) == one.applies, "Apply Jobs of the record: %v", applies)
		one.nothingSent("held")

		// The state is readable again, and speaks of a runner that this manager does not start. Another version of the
		// manager comes with other Pods; a status that is written under one that runs wakes it for nothing.
		one.patchBinding(ctx, fmt.Sprintf(`"controllerStateVersion":%d,"runnerProtocolVersion":%d`, v1alpha1.ControllerStateVersion, v1alpha1.RunnerProtocolVersion+1))
		replaced, err := s.Bench.RestartManagers(ctx)
		s.Fixture(err)
		s.Witness("Pods of the manager that were replaced", replaced)
		fresh := one.replanned(ctx, "held")
		s.Check("another epoch", fresh.Status.ExecutionBinding.Epoch != one.waiting.Status.ExecutionBinding.Epoch,
			"the execution binding is %v", fresh.Status.ExecutionBinding)
		one.AppliesOnce(ctx, one.jobs, fresh, "fresh")
		one.has(ctx, "customers.name")
	})
}

// patchBinding edits the execution binding in the status under the manager's name, which nobody else may write it by and
// which another version of it has too, and returns what came out.
func (a *approved) patchBinding(ctx context.Context, fields string) *v1alpha1.PtahSchema {
	a.T.Helper()
	manager, err := a.Bench.As(bench.ManagerUser, bench.ServiceAccountGroups(bench.ReleaseNamespace)...)
	a.Fixture(err)
	schema := &v1alpha1.PtahSchema{}
	schema.Namespace, schema.Name = a.Key.Namespace, a.Key.Name
	patch := client.RawPatch(types.MergePatchType, []byte(`{"status":{"executionBinding":{`+fields+`}}}`))
	a.Fixture(manager.Status().Patch(ctx, schema, patch))
	a.Witness("execution binding as it was written", schema.Status.ExecutionBinding)
	return schema
}

// TestRunningApplyOutlivesItsExecutor does not run beside the others: it replaces the manager's Pods.
func TestRunningApplyOutlivesItsExecutor(t *testing.T) {
	scenario(t, "running-apply-outlives-its-executor", func(ctx context.Context, s *bench.Scenario) {
		one := &approved{Subject: subject.Prepare(ctx, s, subject.First, subject.Seldom)}
		one.Shape = func(schema *v1alpha1.PtahSchema) {
			schema.Spec.Execution.ActiveDeadlineSeconds = deadline
			schema.Spec.Policy.LockTimeout.Duration = deadline * time.Second
		}
		one.jobs = one.RecordJobs(ctx)
		one.Converge(ctx)
		one.applies = len(one.jobs.Applies(ctx))
		one.waiting = one.PlanFor(ctx, subject.Second, "a plan for the second version")
		hold := one.HoldCustomers(ctx)
		one.since = time.Now()
		apply := one.BlockedApply(ctx, one.waiting, "second")
		horizon := one.horizon(ctx)

		other, err := relabelled(ctx, s.Bench.Lab, s.Bench.Lab.OperatorImages["executor"])
		s.Fixture(err)
		manage(ctx, s, "--executor-image", other)
		pending, _ := one.Await(ctx, "an Apply whose executor was replaced", func(now *v1alpha1.PtahSchema) bool {
			return now.Status.PendingObservation != nil && now.Status.ExecutionBinding.ExecutorImage == other
		})
		owed := pending.Status.PendingObservation
		s.Check("its outcome is unknown", owed.Outcome == v1alpha1.OutcomeUnknown && owed.ApplyOperationID == apply.OperationID, "the proof that is owed is %v", owed)
		s.Check("the proof waits for the whole execution horizon", owed.ObserveAfter != nil && owed.ObserveAfter.Time.Equal(horizon),
			"the Apply may run until %s, the proof begins after %v", horizon, owed.ObserveAfter)
		lease, err := s.Bench.RealmLease(ctx, owed.LeaseEpoch)
		s.Fixture(err)
		s.Check("the same Lease", lease != nil && apply.Lease != nil && *lease == *apply.Lease, "the Lease was %v and is %v", apply.Lease, lease)
		s.Check("the same session in the database", one.AwaitBlocked(ctx).Same(apply.Blocked), "the Apply must be left alone, the session was %v", apply.Blocked)
		hold.Release(ctx)
		one.settled(ctx, apply)
	})
}

// deadline is that of an Apply which is to outlive the replacement of the manager, in seconds.
const deadline = 150

// horizon is the time after which nothing of the claimed Apply can be running: its deadline, and what its Pod gets to end.
func (a *approved) horizon(ctx context.Context) time.Time {
	a.T.Helper()
	now := &v1alpha1.PtahSchema{}
	a.Fixture(a.Bench.Client.Get(ctx, a.Key, now))
	claim := now.Status.ActiveOperation
	if claim == nil || claim.ExecutionNotAfter == nil {
		a.Need("the claim of the Apply is bounded", fmt.Errorf("the claim is %v", claim))
	}
	return claim.ExecutionNotAfter.Add(time.Duration(claim.TerminationGracePeriodSeconds) * time.Second)
}

// settled waits for the proof of an Apply that a former executor finished. The database has what was approved, sent
// once, and nobody is credited.
func (a *approved) settled(ctx context.Context, apply subject.Apply) {
	a.T.Helper()
	bounded, cancel := context.WithTimeout(ctx, subject.Patience+deadline*time.Second)
	defer cancel()
	schema, seen, err := a.Bench.Await(bounded, a.Key, "convergence after an unknown outcome", bench.InSync)
	a.Observe("transitions until convergence after an unknown outcome", seen)
	a.Need("reached: convergence after an unknown outcome", err)
	a.has(ctx, "customers.name")
	a.Check("the Apply is not credited", schema.Status.Applied == nil || schema.Status.Applied.PlanFingerprint != a.waiting.Status.Plan.Fingerprint,
		"status.applied must not name the plan whose outcome was unknown")
	applies := a.jobs.Applies(ctx)
	a.Check("one Apply Job", len(applies) == a.applies+1 && applies[a.applies].UID == apply.JobUID, "Apply Jobs of the record: %v", applies)
	writes := a.Journal(a.since).Writes
	a.Check("the approved statements were sent once", len(writes) == int(a.waiting.Status.Plan.StatementCount),
		"the plan has %d statements, the journal shows %v", a.waiting.Status.Plan.StatementCount, writes)
}
