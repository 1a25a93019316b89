package schema

import (
	"fmt"
	"math/rand"
	"strings"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	"sigs.k8s.io/controller-runtime/pkg/event"

	ptahv1 "ptah.run/ptah/operator/api/v1alpha1"
	"ptah.run/ptah/operator/operation/result"
	"ptah.run/ptah/operator/plan/report"
)

// interrogation is a claimed refresh and the document that a good runner delivers for it.
func interrogation(t *testing.T) (question, *result.Document) {
	t.Helper()
	w := newWorld(t)
	w.create(newSchema())
	r := w.reconciler()
	w.mustPass(r)
	job := w.openJobs()[0]
	schema := w.get()
	in, err := specInputs(schema)
	if err != nil {
		t.Fatal(err)
	}
	claim := schema.Status.ActiveOperation
	in.source = *claim.Source
	return question{claim: claim, inputs: in, now: w.clock.Now()}, w.runPod(&job)
}

func TestAResultThatDoesNotFitItsClaimIsNeverUsed(t *testing.T) {
	for name, change := range map[string]func(*question, *result.Document){
		"Verify of another artifact":        func(_ *question, d *result.Document) { d.Verify.Digest = digestOf("other") },
		"Verify under another policy":       func(_ *question, d *result.Document) { d.Verify.PolicyDigest = digestOf("other") },
		"no verification":                   func(_ *question, d *result.Document) { d.Verify = nil },
		"no digest":                         func(_ *question, d *result.Document) { d.Resolve.Digest = "latest" },
		"no pinned reference":               func(_ *question, d *result.Document) { d.Resolve.PinnedReference = "" },
		"no database identity":              func(_ *question, d *result.Document) { d.TargetIdentityDigest = "" },
		"no state":                          func(_ *question, d *result.Document) { d.Plan.FromFingerprint = "" },
		"another database than the proof's": func(q *question, _ *result.Document) { q.inputs.targetIdentity = digestOf("other") },
		"no plan step":                      func(_ *question, d *result.Document) { d.Plan = nil },
		"a plan that is not one":            func(_ *question, d *result.Document) { d.PlanBytes = []byte("{}") },
		"a plan of another size":            func(_ *question, d *result.Document) { d.Plan.PlanSize++ },
		"a plan of other statements":        func(_ *question, d *result.Document) { d.Plan.Statements++ },
		"a destructive plan called safe":    func(_ *question, d *result.Document) { d.Plan.Destructive = true },
		"a plan from another state":         func(_ *question, d *result.Document) { d.Plan.FromFingerprint = digestOf("other") },
		"a plan to another state":           func(_ *question, d *result.Document) { d.Plan.ToFingerprint = digestOf("other") },
		"a plan for another engine":         func(_ *question, d *result.Document) { d.Plan.Dialect = report.DialectMySQL },
		"a database of another engine":      func(q *question, _ *result.Document) { q.claim.Target.Engine = ptahv1.EngineMySQL },
		"another transaction mode":          func(q *question, _ *result.Document) { q.inputs.policy.TransactionMode = "all" },
		"another scope":                     func(q *question, _ *result.Document) { q.inputs.policy.Exclude = []ptahv1.ExcludeSelector{"x"} },
		"a held plan that is not held":      func(_ *question, d *result.Document) { d.PlanBytes, d.PlanHeld = nil, true },
		"another held plan": func(q *question, d *result.Document) {
			q.held = digestOf("other")
			d.PlanBytes, d.PlanHeld = nil, true
		},
		"unchanged since no proof": func(_ *question, d *result.Document) {
			d.Plan.Outcome, d.Plan.Unchanged, d.PlanBytes = report.OutcomeNoChanges, true, nil
		},
		"unchanged since a proof of another state": func(q *question, d *result.Document) {
			d.Plan.Outcome, d.Plan.Unchanged, d.PlanBytes = report.OutcomeNoChanges, true, nil
			q.proven = &ptahv1.ConvergedStatus{ArtifactDigest: d.Resolve.Digest, StateFingerprint: digestOf("other"), TargetIdentityDigest: d.TargetIdentityDigest}
		},
		"an outcome without a problem": func(_ *question, d *result.Document) { d.Plan.Outcome = report.OutcomeRefused; d.PlanBytes = nil },
	} {
		t.Run(name, func(t *testing.T) {
			q, document := interrogation(t)
			change(&q, document)
			v := judge(q, document)
			if v.failure == nil || v.plan != nil && v.failure == nil || v.converged {
				t.Errorf("verdict %+v", v)
			}
			if v.failure != nil && !strings.Contains(v.failure.message, "cannot be used") {
				t.Errorf("message %q", v.failure.message)
			}
		})
	}
	q, document := interrogation(t)
	if v := judge(q, document); v.failure != nil || v.plan == nil || v.document == nil || !v.drift {
		t.Errorf("the control is refused: %+v", v.failure)
	}
	q, document = interrogation(t)
	q.held = document.Plan.PlanDigest
	document.PlanBytes, document.PlanHeld = nil, true
	if v := judge(q, document); v.failure != nil || v.plan == nil {
		t.Errorf("a plan that is held is refused: %+v", v.failure)
	}
	q, document = interrogation(t)
	q.proven = &ptahv1.ConvergedStatus{ArtifactDigest: document.Resolve.Digest, StateFingerprint: document.Plan.FromFingerprint, TargetIdentityDigest: document.TargetIdentityDigest}
	document.Plan.Outcome, document.Plan.Unchanged, document.PlanBytes = report.OutcomeNoChanges, true, nil
	if v := judge(q, document); v.failure != nil || !v.converged {
		t.Errorf("an unchanged database is refused: %+v", v.failure)
	}
}

func TestOnlyAnExactApplyIsASuccess(t *testing.T) {
	good := func() (*ptahv1.ActiveOperationStatus, *ptahv1.CurrentPlanStatus, *result.Document) {
		claim := &ptahv1.ActiveOperationStatus{TargetIdentityDigest: digestOf("database")}
		plan := &ptahv1.CurrentPlanStatus{ContentDigest: digestOf("plan"), StatementCount: 2}
		at := time.Unix(1, 0)
		return claim, plan, &result.Document{
			Operation: "Apply", Steps: []result.Step{{Name: result.StepApply, StartedAt: at, FinishedAt: at}}, TargetIdentityDigest: digestOf("database"), MutationStarted: true,
			Apply: &report.SchemaApply{Outcome: report.OutcomeApplied, PlanDigest: digestOf("plan"), Statements: 2, Executed: 2, MutationStarted: true},
		}
	}
	fail := func(d *result.Document, code report.Code) {
		d.Steps[0].Error = &result.Error{Code: result.ErrorPtah, Message: "no", Problem: &report.Problem{Code: code, Message: "no"}}
	}
	for name, test := range map[string]struct {
		change  func(*ptahv1.ActiveOperationStatus, *result.Document)
		outcome ptahv1.ApplyOutcome
		refusal string
	}{
		"exactly the plan":      {func(*ptahv1.ActiveOperationStatus, *result.Document) {}, ptahv1.ApplySucceeded, ""},
		"another plan":          {func(_ *ptahv1.ActiveOperationStatus, d *result.Document) { d.Apply.PlanDigest = digestOf("other") }, ptahv1.OutcomeUnknown, ""},
		"one statement missing": {func(_ *ptahv1.ActiveOperationStatus, d *result.Document) { d.Apply.Executed = 1 }, ptahv1.OutcomeUnknown, ""},
		"another database":      {func(_ *ptahv1.ActiveOperationStatus, d *result.Document) { d.TargetIdentityDigest = digestOf("other") }, ptahv1.OutcomeUnknown, ""},
		"a broken Lease":        {func(c *ptahv1.ActiveOperationStatus, _ *result.Document) { c.LeaseContinuityLost = true }, ptahv1.OutcomeUnknown, ""},
		"an unknown outcome": {func(_ *ptahv1.ActiveOperationStatus, d *result.Document) {
			d.Apply.Outcome = report.OutcomeUnknown
			fail(d, report.CodeConnection)
		}, ptahv1.OutcomeUnknown, ""},
		"a failed statement": {func(_ *ptahv1.ActiveOperationStatus, d *result.Document) {
			d.Apply.Outcome, d.Apply.Executed = report.OutcomeFailed, 0
			fail(d, report.CodeStatement)
		}, ptahv1.OutcomeUnknown, ""},
		"a dry run": {func(_ *ptahv1.ActiveOperationStatus, d *result.Document) {
			d.Apply.Outcome, d.Apply.Executed, d.Apply.MutationStarted = report.OutcomeDryRun, 0, false
			d.MutationStarted = false
		}, ptahv1.OutcomeUnknown, ""},
		"stale, nothing executed": {func(_ *ptahv1.ActiveOperationStatus, d *result.Document) {
			d.Apply.Outcome, d.Apply.Executed, d.Apply.MutationStarted = report.OutcomeRefused, 0, false
			fail(d, report.CodeStalePlan)
		}, ptahv1.OutcomeUnknown, "stale-plan"},
		"called refused, but something was executed": {func(_ *ptahv1.ActiveOperationStatus, d *result.Document) {
			d.Apply.Outcome, d.Apply.Executed = report.OutcomeRefused, 1
			fail(d, report.CodeStalePlan)
		}, ptahv1.OutcomeUnknown, ""},
		"the runner came too late": {func(_ *ptahv1.ActiveOperationStatus, d *result.Document) {
			d.Apply, d.MutationStarted = nil, false
			d.Steps[0].Error = &result.Error{Code: result.ErrorDispatchExpired, Message: "late"}
		}, ptahv1.OutcomeUnknown, "dispatch_deadline_expired"},
		"ptah died after it started": {func(_ *ptahv1.ActiveOperationStatus, d *result.Document) {
			d.Apply = nil
			d.Steps[0].Error = &result.Error{Code: result.ErrorExecution, Message: "killed"}
		}, ptahv1.OutcomeUnknown, ""},
	} {
		claim, plan, document := good()
		test.change(claim, document)
		outcome, refusal := judgeApply(claim, plan, document)
		if outcome != test.outcome || refusal != test.refusal {
			t.Errorf("%s is %s, refusal %q", name, outcome, refusal)
		}
	}
	claim, _, document := good()
	if outcome, _ := judgeApply(claim, nil, document); outcome != ptahv1.OutcomeUnknown {
		t.Error("an Apply without a plan is a success")
	}
}

func TestSlotsSpreadAndDelayByAtMostHalfAnInterval(t *testing.T) {
	random := rand.New(rand.NewSource(1))
	for range 2000 {
		interval := time.Duration(10+random.Intn(7200)) * time.Second
		uid := fmt.Sprint(random.Int63())
		base := time.Unix(1_800_000_000+random.Int63n(1_000_000), 0)
		next := nextStart(base, interval, uid)
		if delay := next.Sub(base.Add(interval)); delay < 0 || delay > interval/2+time.Second {
			t.Fatalf("interval %s, delay %s", interval, delay)
		}
		if again := nextStart(base, interval, uid); !again.Equal(next) {
			t.Fatal("the slot is not the same twice")
		}
		// After at most two refreshes the resource is on its slot, and stays there.
		second := nextStart(next, interval, uid)
		for range 3 {
			third := nextStart(second, interval, uid)
			if got := third.Sub(second); got != interval {
				t.Fatalf("interval %s: two starts are %s apart", interval, got)
			}
			second = third
		}
	}
	// Twenty resources of two minutes do not start together.
	seconds := map[time.Duration]int{}
	for i := range 20 {
		seconds[slot(fmt.Sprintf("uid-%d", i), 2*time.Minute)]++
	}
	for at, count := range seconds {
		if count > 3 {
			t.Errorf("%d of 20 resources start at %s", count, at)
		}
	}
}

func TestALateStartDoesNotShiftTheCadence(t *testing.T) {
	now := time.Unix(1_800_000_000, 0)
	at := func(before time.Duration) *time.Time { due := now.Add(-before); return &due }
	for name, test := range map[string]struct {
		due  *time.Time
		want time.Time
	}{
		"never scheduled":            {nil, now},
		"on time":                    {at(0), now},
		"three seconds late":         {at(3 * time.Second), now.Add(-3 * time.Second)},
		"just under half late":       {at(time.Minute - 1), now.Add(-time.Minute + 1)},
		"half an interval late":      {at(time.Minute), now},
		"after an outage of an hour": {at(time.Hour), now},
		"early, by a changed spec":   {at(-30 * time.Second), now},
	} {
		if got := scheduleBase(now, test.due, 2*time.Minute); !got.Equal(test.want) {
			t.Errorf("%s: %s", name, got.Sub(now))
		}
	}
}

func TestOnlyTheEndOfAJobWakesTheController(t *testing.T) {
	w := newWorld(t)
	w.create(newSchema())
	w.mustPass(w.reconciler())
	running := w.openJobs()[0]
	ended := *running.DeepCopy()
	w.endJob(&ended, false)
	for name, test := range map[string]struct {
		before, after *batchv1.Job
		wakes         bool
	}{"a Job that starts": {&running, &running, false}, "a Job that ends": {&running, &ended, true}, "a Job that ended before": {&ended, &ended, false}} {
		if got := jobEnded.Update(event.UpdateEvent{ObjectOld: test.before, ObjectNew: test.after}); got != test.wakes {
			t.Errorf("%s wakes: %v", name, got)
		}
	}
}
