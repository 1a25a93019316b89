package dataplane

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"ptah.run/ptah/operator/api/v1alpha1"
	"ptah.run/ptah/qualification/suites/bench"
	"ptah.run/ptah/qualification/suites/subject"
)

// driftInterval is longer than a refresh takes while other scenarios run, so that the bound is the interval's own.
const driftInterval = 20 * time.Second

func TestDriftSeenWithinOneInterval(t *testing.T) {
	t.Parallel()
	scenario(t, "drift-seen-within-one-interval", func(ctx context.Context, s *bench.Scenario) {
		one := subject.Prepare(ctx, s, subject.First, driftInterval)
		schema := one.Converge(ctx)
		s.Check("control: no drift before", bench.Condition(schema, v1alpha1.ConditionDriftDetected, metav1.ConditionFalse, ""), "DriftDetected must be False before the change")
		s.Fixture(one.Database.Exec(ctx, "ALTER TABLE orders ADD COLUMN note text"))
		changed := time.Now()
		s.Witness("columns after the change by hand", one.Columns(ctx))
		drifted, seen := one.Await(ctx, "drift", func(now *v1alpha1.PtahSchema) bool {
			return bench.Settled(now) && bench.Condition(now, v1alpha1.ConditionDriftDetected, metav1.ConditionTrue, "")
		})
		// A refresh that was already reading when the change was made cannot have seen it; the next one starts
		// within an interval, its slot included, and must.
		refreshes := subject.Operations(seen, v1alpha1.OperationRefresh)
		s.Need("a refresh saw it", subject.ErrorUnless(len(refreshes) > 0, "no refresh was seen between the change and the drift"))
		started := refreshes[len(refreshes)-1].From
		s.Observe("seconds from the change to the refresh that saw it", started.Sub(changed).Seconds())
		s.Check("seen within one interval", started.Sub(changed) <= driftInterval+driftInterval/2, "the refresh that saw the drift began %s after the change, interval %s with at most half of it as slot", started.Sub(changed).Round(time.Millisecond), driftInterval)
		s.Check("not in sync", bench.Condition(drifted, v1alpha1.ConditionInSync, metav1.ConditionFalse, ""), "InSync must be False while the database differs")
		s.Check("counts, no names", drifted.Status.Target.DriftFindingCount > 0 && !mentions(drifted, "note"), "drift must be counted without naming objects")
		// The column is not declared, so that the plan drops it, which the policy does not allow.
		s.Check("nothing was repaired by itself", slices.Contains(one.Columns(ctx), "orders.note"), "the column made by hand must still be there")
	})
}

// mentions looks for a word in everything that a reader of the status sees.
func mentions(schema *v1alpha1.PtahSchema, word string) bool {
	for _, condition := range schema.Status.Conditions {
		if slices.Contains(strings.FieldsFunc(condition.Message, func(r rune) bool { return r == ' ' || r == '.' || r == '"' || r == ',' }), word) {
			return true
		}
	}
	return false
}

func TestChangeBeforeApplyRefused(t *testing.T) {
	t.Parallel()
	scenario(t, "change-before-apply-refused", func(ctx context.Context, s *bench.Scenario) {
		one := subject.Prepare(ctx, s, subject.First, 10*time.Minute)
		one.Converge(ctx)
		waiting := one.PlanFor(ctx, subject.Second, "a plan for the second version")
		one.ApproveHeld(ctx, waiting, "second")
		s.Fixture(one.Database.Exec(ctx, "ALTER TABLE customers ADD COLUMN phone text"))
		s.Witness("columns after the approval", one.Columns(ctx))
		changed := time.Now()
		one.ReleaseJobs(ctx)

		refused, seen := one.Await(ctx, "the refused Apply", func(now *v1alpha1.PtahSchema) bool {
			return bench.Settled(now) && (now.Status.Plan == nil || now.Status.Plan.Fingerprint != waiting.Status.Plan.Fingerprint)
		})
		journal := one.Journal(changed)
		s.Check("zero statements executed", len(journal.Writes) == 0, "the journal shows writing statements of the operator: %v", journal.Writes)
		s.Check("control: the Apply did reach the database", len(journal.Reads) > 0, "the journal shows no reading either, so it proves nothing")
		s.Check("an Apply ran", len(subject.Operations(seen, v1alpha1.OperationApply)) > 0, "no Apply was seen")
		s.Check("not in sync", !bench.InSync(refused), "a refused Apply must not end in sync")
		s.Check("not credited", refused.Status.Applied == nil || refused.Status.Applied.PlanFingerprint != waiting.Status.Plan.Fingerprint, "the refused plan must not be credited")
		s.Check("columns are as the person left them", !slices.Contains(one.Columns(ctx), "customers.name"), "the second version must not be there")

		one.Spent(ctx, "second")
		journal = one.Journal(changed)
		s.Check("nothing was replayed", len(journal.Writes) == 0, "the journal shows writing statements of the operator: %v", journal.Writes)
	})
}

func TestWrongPasswordBoundedRetry(t *testing.T) {
	t.Parallel()
	scenario(t, "wrong-password-bounded-retry", func(ctx context.Context, s *bench.Scenario) {
		one := subject.Prepare(ctx, s, subject.First, subject.Interval)
		one.PointAt(ctx, one.Database.WrongPasswordURL())
		began := time.Now()
		one.Declare(ctx)
		failed, _ := one.Await(ctx, "a condition that says so", func(now *v1alpha1.PtahSchema) bool {
			return bench.Condition(now, v1alpha1.ConditionDatabaseReachable, metav1.ConditionFalse, v1alpha1.ReasonAuthenticationFailed)
		})
		message := meta.FindStatusCondition(failed.Status.Conditions, v1alpha1.ConditionDatabaseReachable).Message
		s.Observe("message", message)
		s.Check("the message names the password", strings.Contains(message, "password"), "the message must say that the password was refused: %q", message)
		s.Check("no credential in the message", !strings.Contains(message, one.Database.Password), "the message must hold no credential")
		s.Check("not ready, same reason", bench.Condition(failed, v1alpha1.ConditionReady, metav1.ConditionFalse, v1alpha1.ReasonAuthenticationFailed), "Ready must be False with reason AuthenticationFailed")
		s.Witness("logins the server refused", one.Journal(began).AuthenticationFailures)

		const watched = 30 * time.Second
		attempts := map[string]time.Time{}
		bounded, cancel := context.WithTimeout(ctx, watched)
		_, seen, _ := s.Bench.Await(bounded, one.Key, "the end of the watch", func(*v1alpha1.PtahSchema) bool { return false })
		cancel()
		for _, state := range seen {
			if claim := state.Status.ActiveOperation; claim != nil {
				attempts[claim.ID+claim.JobName] = claim.StartedAt.Time
			}
		}
		s.Observe("attempts", attempts)
		s.Check("it tries again", len(attempts) >= 2, "%d attempts were seen in %s, the retry interval is %s", len(attempts), watched, subject.Retry)
		s.Check("and not without a pause", spaced(attempts, subject.Retry-time.Second), "attempts began at %v, the retry interval is %s", attempts, subject.Retry)
		jobs := &batchv1.JobList{}
		s.Fixture(s.Bench.Client.List(ctx, jobs, client.InNamespace(one.Key.Namespace)))
		s.Check("the number of Jobs is bounded", len(jobs.Items) <= 10, "%d Jobs exist", len(jobs.Items))

		// Control: with the right password the same fixture goes on by itself.
		one.PointAt(ctx, one.Database.ClusterURL())
		waiting, _ := one.Await(ctx, "a plan once the password is right", bench.AwaitingApproval)
		s.Check("control: the database is reachable with the right password", bench.Condition(waiting, v1alpha1.ConditionDatabaseReachable, metav1.ConditionTrue, ""), "DatabaseReachable must be True")
		s.Check("nothing written", len(one.Journal(began).Writes) == 0, "no statement may have been executed without an approval")
	})
}

// spaced is true where no two times lie closer than pause.
func spaced(times map[string]time.Time, pause time.Duration) bool {
	var sorted []time.Time
	for _, at := range times {
		sorted = append(sorted, at)
	}
	slices.SortFunc(sorted, time.Time.Compare)
	for i := 1; i < len(sorted); i++ {
		if sorted[i].Sub(sorted[i-1]) < pause {
			return false
		}
	}
	return true
}
