package schemafaults

import (
	"context"
	"slices"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"ptah.run/ptah/operator/api/v1alpha1"
	"ptah.run/ptah/qualification/suites/bench"
	"ptah.run/ptah/qualification/suites/subject"
)

func TestApplyPastItsDeadlineIsUnknown(t *testing.T) {
	t.Parallel()
	scenario(t, "apply-past-its-deadline-is-unknown", func(ctx context.Context, s *bench.Scenario) {
		one := begin(ctx, s, short, lockWait)
		one.unknown(ctx, "an Apply that its deadline ended")
		one.hold.Release(ctx)
		fresh := one.unreplayed(ctx)
		one.AppliesOnce(ctx, one.jobs, fresh, "fresh")
		s.Check("the database has the column", slices.Contains(one.Columns(ctx), planned), "columns are %v", one.Columns(ctx))
	})
}

// TestLostApplyIsNeverReplayed loses the Pod of one Apply and the Job of another.
func TestLostApplyIsNeverReplayed(t *testing.T) {
	t.Parallel()
	scenario(t, "lost-apply-is-never-replayed", func(ctx context.Context, s *bench.Scenario) {
		killed := begin(ctx, s, short, lockWait)
		pod := killed.apply.Pod()
		s.Fixture(s.Bench.Client.Delete(ctx, pod, &client.DeleteOptions{GracePeriodSeconds: ptr.To(int64(0))}))
		s.Witness("Pod that was killed", pod.Name)
		killed.unknown(ctx, "an Apply whose Pod was killed")
		killed.AwaitGone(ctx, killed.apply.Blocked)
		killed.hold.Release(ctx)
		killed.AppliesOnce(ctx, killed.jobs, killed.unreplayed(ctx), "fresh")

		deleted := begin(ctx, s, short, lockWait)
		job := &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Namespace: deleted.Key.Namespace, Name: deleted.apply.Job}}
		s.Fixture(s.Bench.Client.Delete(ctx, job, client.PropagationPolicy(metav1.DeletePropagationBackground)))
		s.Witness("Job that was deleted", job.Name)
		state := deleted.unknown(ctx, "an Apply whose Job was deleted")
		s.Check("the proof waits until its Pod cannot run any more", state.Status.PendingObservation.ObserveAfter != nil, "the Pod may outlive its Job, the proof must wait for the execution deadline")
		deleted.AwaitGone(ctx, deleted.apply.Blocked)
		deleted.hold.Release(ctx)
		deleted.AppliesOnce(ctx, deleted.jobs, deleted.unreplayed(ctx), "fresh")
	})
}

// TestApplySurvivesManagerRestart does not run beside the others: it replaces the manager's Pods.
func TestApplySurvivesManagerRestart(t *testing.T) {
	scenario(t, "apply-survives-manager-restart", func(ctx context.Context, s *bench.Scenario) {
		one := begin(ctx, s, long, patient)
		replaced, err := s.Bench.RestartManagers(ctx)
		s.Fixture(err)
		s.Witness("Pods of the manager that were replaced", replaced)
		// A new leader looks after the Apply as soon as it leads; its first look renews the Lease.
		after := one.Running(ctx)
		after.Blocked = one.AwaitBlocked(ctx)
		s.Check("the same claim", after.OperationID == one.apply.OperationID, "the claim was %s and is %s", one.apply.OperationID, after.OperationID)
		s.Check("the same Job and Pod", after.JobUID == one.apply.JobUID && after.PodUID == one.apply.PodUID, "Job and Pod were %s, %s and are %s, %s", one.apply.JobUID, one.apply.PodUID, after.JobUID, after.PodUID)
		s.Check("the same Lease", after.Lease != nil && *after.Lease == *one.apply.Lease, "the Lease was %v and is %v", one.apply.Lease, after.Lease)
		s.Check("the same session in the database", after.Blocked.Same(one.apply.Blocked), "the session was %v and is %v", one.apply.Blocked, after.Blocked)
		one.hold.Release(ctx)
		schema, _ := one.Await(ctx, "proven convergence", bench.InSync)
		s.Check("the Apply is credited", schema.Status.Applied != nil && schema.Status.Applied.PlanFingerprint == one.waiting.Status.Plan.Fingerprint, "status.applied must name the approved plan")
		one.once(ctx, "the Apply that survived")
		s.Check("the database has the column", slices.Contains(one.Columns(ctx), planned), "columns are %v", one.Columns(ctx))
	})
}

func TestDriftBeforeDispatchRefused(t *testing.T) {
	t.Parallel()
	scenario(t, "drift-before-dispatch-refused", func(ctx context.Context, s *bench.Scenario) {
		one := &underway{Subject: subject.Prepare(ctx, s, subject.First, subject.Seldom)}
		one.jobs = one.RecordJobs(ctx)
		one.Converge(ctx)
		waiting := one.PlanFor(ctx, subject.Second, "a plan for the second version")
		one.ApproveHeld(ctx, waiting, "second")
		s.Fixture(one.Database.Exec(ctx, "CREATE INDEX by_hand ON orders (total)"))
		s.Witness("made by hand after the approval", "index by_hand")
		one.since, one.waiting = time.Now(), waiting
		one.ReleaseJobs(ctx)
		fresh, seen := one.Await(ctx, "another plan", func(now *v1alpha1.PtahSchema) bool {
			return bench.Settled(now) && now.Status.Plan != nil && now.Status.Plan.UID != waiting.Status.Plan.UID
		})
		s.Check("one Apply ran and refused", len(subject.Operations(seen, v1alpha1.OperationApply)) == 1, "%d operations of type Apply were seen", len(subject.Operations(seen, v1alpha1.OperationApply)))
		s.Check("one reading settled it", len(subject.Operations(seen, v1alpha1.OperationRefresh)) == 1, "%d operations of type Refresh were seen", len(subject.Operations(seen, v1alpha1.OperationRefresh)))
		journal := one.Journal(one.since)
		s.Check("nothing was sent", len(journal.Writes) == 0, "the journal shows writing statements: %v", journal.Writes)
		s.Check("control: the Apply did reach the database", len(journal.Reads) > 0, "the journal shows no reading either, so it proves nothing")
		s.Check("not credited", fresh.Status.Applied == nil || fresh.Status.Applied.PlanFingerprint != waiting.Status.Plan.Fingerprint, "the refused plan must not be credited")
		one.Spent(ctx, "second")
	})
}
