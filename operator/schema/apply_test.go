package schema

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	ptahv1 "ptah.run/ptah/operator/api/v1alpha1"
	"ptah.run/ptah/operator/operation/result"
	"ptah.run/ptah/operator/plan/report"
	"ptah.run/ptah/operator/realm"
)

// awaiting brings a new resource to a plan that waits for an approval.
func awaiting(t *testing.T, w *world, changes ...func(*ptahv1.PtahSchema)) *Reconciler {
	t.Helper()
	w.create(newSchema(changes...))
	r := w.reconciler()
	if s := w.refreshed(r); s.Status.Phase != ptahv1.PhaseAwaitingApproval {
		t.Fatalf("phase %s, %s", s.Status.Phase, condition(s, ptahv1.ConditionReady))
	}
	w.take()
	w.events.take()
	return r
}

// refusedOnce brings a new resource to a claimed Apply that the API server has refused to start, and still refuses.
func refusedOnce(t *testing.T, w *world) *Reconciler {
	t.Helper()
	r := awaiting(t, w)
	w.approve("first")
	w.refuseApplyJob(refusals["forbidden"])
	w.mustPass(r)
	return r
}

// synced brings a new resource to InSync by an approved Apply.
func synced(t *testing.T, w *world, changes ...func(*ptahv1.PtahSchema)) *Reconciler {
	t.Helper()
	r := awaiting(t, w, changes...)
	w.approve("first")
	for range 3 {
		w.mustPass(r)
		w.runPods()
	}
	if s := w.get(); s.Status.Phase != ptahv1.PhaseInSync {
		t.Fatalf("phase %s, %s", s.Status.Phase, condition(s, ptahv1.ConditionReady))
	}
	w.take()
	w.events.take()
	return r
}

func expect(t *testing.T, s *ptahv1.PtahSchema, phase ptahv1.Phase, conditions map[string]string) {
	t.Helper()
	if s.Status.Phase != phase {
		t.Errorf("phase %s instead of %s", s.Status.Phase, phase)
	}
	for name, want := range conditions {
		if got := condition(s, name); got != want {
			t.Errorf("%s is %s instead of %s", name, got, want)
		}
	}
	for _, c := range s.Status.Conditions {
		if len(c.Message) == 0 || len(c.Reason) == 0 {
			t.Errorf("condition %s has no reason or message", c.Type)
		}
	}
	if s.Status.ObservedGeneration != s.Generation {
		t.Errorf("observedGeneration %d instead of %d", s.Status.ObservedGeneration, s.Generation)
	}
	for _, name := range []string{ptahv1.ConditionReady, ptahv1.ConditionReconciling, ptahv1.ConditionStalled} {
		if condition(s, name) == "" {
			t.Errorf("condition %s is missing", name)
		}
	}
}

func TestASchemaConvergesFromAnEmptyDatabaseAfterAnApproval(t *testing.T) {
	everyWorld(t, func(t *testing.T, w *world) {
		w.create(newSchema())
		r := w.reconciler()

		w.mustPass(r)
		expect(t, w.get(), ptahv1.PhaseRefreshing, map[string]string{"Ready": "False/Refreshing", "Reconciling": "True/Refreshing", "Stalled": "False/Refreshing"})
		w.runPods()
		w.mustPass(r)
		s := w.get()
		expect(t, s, ptahv1.PhaseAwaitingApproval, map[string]string{
			"Ready": "False/AwaitingApproval", "Reconciling": "False/AwaitingApproval", "ApprovalRequired": "True/AwaitingApproval",
			"PlanReady": "True/PlanReady", "DriftDetected": "True/ScopedChanges", "InSync": "False/ScopedChanges",
			"ArtifactResolved": "True/DigestPinned", "ArtifactVerified": "True/PolicySatisfied", "DatabaseReachable": "True/Observed",
		})
		sameRequests(t, w.take(),
			"get PtahSchema", "get ConfigMap", "get Lease", "create Lease", "patch PtahSchema", "update PtahSchema/status", "create Job refresh",
			"get PtahSchema", "get PtahResultRecord", "create PtahSchemaPlan", "create PtahSchemaPlanChunk", "update PtahSchemaPlan/status",
			"update PtahSchema/status", "update Lease", "patch PtahSchema")
		if got := w.events.take(); !slices.Equal(got, []string{"ApprovalRequired"}) {
			t.Errorf("events %v", got)
		}

		w.approve("first")
		w.mustPass(r)
		s = w.get()
		expect(t, s, ptahv1.PhaseApplying, map[string]string{"Ready": "False/ApprovedPlan", "Applying": "True/ApprovedPlan", "ApprovalRequired": "False/Satisfied"})
		if claim := s.Status.ActiveOperation; claim.JobUID == "" || !claim.DispatchStarted || claim.LeaseEpoch == "" || claim.ApprovalRef.Name != "first" {
			t.Errorf("the claim lacks a durable boundary: %+v", claim)
		}
		w.runPods()
		w.mustPass(r)
		s = w.get()
		expect(t, s, ptahv1.PhaseVerifyingConvergence, map[string]string{"Ready": "False/VerifyingConvergence", "Applying": "False/JobCompleted", "InSync": "Unknown/VerifyingConvergence"})
		if s.Status.Applied != nil {
			t.Error("the Apply is credited before its proof")
		}
		if holder, epoch := w.leaseHolder(); holder == "" || epoch != s.Status.PendingObservation.LeaseEpoch {
			t.Errorf("the Lease is not held through the proof: %q, %q", holder, epoch)
		}
		w.runPods()
		w.mustPass(r)
		s = w.get()
		expect(t, s, ptahv1.PhaseInSync, map[string]string{
			"Ready": "True/InSync", "Reconciling": "False/InSync", "Stalled": "False/InSync", "InSync": "True/ScopedConverged",
			"PlanReady": "False/NoChanges", "DriftDetected": "False/ScopedConverged", "ApprovalRequired": "False/NoChanges", "ReconciliationFailed": "False/Succeeded",
		})
		if s.Status.Applied == nil || s.Status.Applied.DispatchedBy == nil || s.Status.Plan != nil || s.Status.PendingObservation != nil || len(s.Finalizers) != 0 {
			t.Errorf("the Apply is not settled: %+v", s.Status)
		}
		if holder, _ := w.leaseHolder(); holder != "" {
			t.Errorf("the Lease is still held by %s", holder)
		}
		requests := w.take()
		sameRequests(t, requests,
			"get PtahSchema", "get ConfigMap", "patch PtahSchema", "update PtahSchema/status", "update Lease",
			"update PtahSchemaApproval/status", "update PtahSchema/status", "create Job apply", "update PtahSchema/status",
			"get PtahSchema", "update Lease", "get PtahResultRecord", "list Pod", "update PtahSchema/status", "create Job refresh",
			"get PtahSchema", "get PtahResultRecord", "update PtahSchema/status", "deletecollection PtahResultRecord", "update Lease", "patch PtahSchema")
		events := w.events.take()
		if !slices.Equal(events, []string{"ApprovalAccepted", "OperationStarted", "OperationCompleted"}) {
			t.Errorf("events %v", events)
		}
		// The receiver needs six requests to serve the plan and five for each of two results.
		if all := len(requests) + len(events) + 16; all > 40 {
			t.Errorf("an Apply with its proof takes %d requests", all)
		}
		if got := w.approvalCondition("first", ptahv1.ConditionAccepted) + w.approvalCondition("first", ptahv1.ConditionConsumed); got != "CurrentPlanDispatchCommitted" {
			t.Errorf("the approval says %q", got)
		}
		if len(w.executed) != 1 {
			t.Errorf("%d plans ran", len(w.executed))
		}
	})
}

func TestADatabaseThatChangedAfterTheApprovalIsRefusedAndPlannedAnew(t *testing.T) {
	everyWorld(t, func(t *testing.T, w *world) {
		r := awaiting(t, w)
		old := w.get().Status.Plan
		w.approve("first")
		w.mustPass(r)
		w.dbState = digestOf("changed by hand")
		w.runPods()
		w.mustPass(r)
		s := w.get()
		expect(t, s, ptahv1.PhaseVerifyingConvergence, map[string]string{"Ready": "False/StalePlan", "PlanReady": "False/StalePlan"})
		if p := s.Status.PendingObservation; p == nil || p.Outcome != ptahv1.OutcomeUnknown || p.Refusal != "stale-plan" {
			t.Errorf("pending %+v", p)
		}
		if !slices.Contains(w.events.take(), "PlanStale") {
			t.Error("there is no PlanStale event")
		}
		w.runPods()
		w.mustPass(r)
		s = w.get()
		expect(t, s, ptahv1.PhaseAwaitingApproval, map[string]string{"Ready": "False/AwaitingApproval", "PlanReady": "True/PlanReady"})
		if s.Status.Plan.Fingerprint == old.Fingerprint || s.Status.Applied != nil || len(w.executed) != 0 {
			t.Errorf("plan %s, applied %v, executed %d", s.Status.Plan.Name, s.Status.Applied, len(w.executed))
		}
		// The used approval starts nothing any more.
		w.mustPass(r)
		if got := w.get(); got.Status.ActiveOperation != nil || len(w.openJobs()) != 0 {
			t.Error("something started without a new approval")
		}
		w.approve("second")
		for range 3 {
			w.mustPass(r)
			w.runPods()
		}
		expect(t, w.get(), ptahv1.PhaseInSync, map[string]string{"Ready": "True/InSync"})
	})
}

func TestAPlanThatChangesPrivilegesSaysThatThisIsWhyItAsks(t *testing.T) {
	w := newWorld(t)
	w.statement.PrivilegeChanges = []report.PrivilegeChange{report.PrivilegeGrant}
	awaiting(t, w, func(s *ptahv1.PtahSchema) { s.Spec.Policy.Apply = ptahv1.ApplyAlways })
	expect(t, w.get(), ptahv1.PhaseAwaitingApproval, map[string]string{"Ready": "False/AwaitingApproval", "ApprovalRequired": "True/PrivilegeChanges"})
}

func TestWhoDecidesThatAPlanRuns(t *testing.T) {
	destructive := func(w *world) { w.statement.Severity, w.statement.SQL = report.SeverityDestructive, "DROP TABLE t" }
	privileges := func(w *world) { w.statement.PrivilegeChanges = []report.PrivilegeChange{report.PrivilegeGrant} }
	policy := func(apply ptahv1.ApplyPolicy, allow bool) func(*ptahv1.PtahSchema) {
		return func(s *ptahv1.PtahSchema) { s.Spec.Policy.Apply, s.Spec.Policy.AllowDestructive = apply, allow }
	}
	for name, test := range map[string]struct {
		plan    func(*world)
		policy  func(*ptahv1.PtahSchema)
		phase   ptahv1.Phase
		ready   string
		runs    bool
		stalled bool
	}{
		"Always runs an ordinary plan by itself":              {nil, policy(ptahv1.ApplyAlways, false), ptahv1.PhaseApplying, "False/ApprovedPlan", true, false},
		"OnApproval asks for an ordinary plan":                {nil, policy(ptahv1.ApplyOnApproval, false), ptahv1.PhaseAwaitingApproval, "False/AwaitingApproval", false, false},
		"Never keeps the plan":                                {nil, policy(ptahv1.ApplyNever, false), ptahv1.PhaseBlocked, "False/ApplyDisabled", false, false},
		"Always asks for a destructive plan":                  {destructive, policy(ptahv1.ApplyAlways, true), ptahv1.PhaseAwaitingApproval, "False/AwaitingApproval", false, false},
		"Always refuses a destructive plan without leave":     {destructive, policy(ptahv1.ApplyAlways, false), ptahv1.PhaseBlocked, "False/DestructiveChangesDisabled", false, true},
		"OnApproval refuses a destructive plan without leave": {destructive, policy(ptahv1.ApplyOnApproval, false), ptahv1.PhaseBlocked, "False/DestructiveChangesDisabled", false, true},
		"OnApproval asks for a destructive plan with leave":   {destructive, policy(ptahv1.ApplyOnApproval, true), ptahv1.PhaseAwaitingApproval, "False/AwaitingApproval", false, false},
		"Always asks for a plan that changes privileges":      {privileges, policy(ptahv1.ApplyAlways, false), ptahv1.PhaseAwaitingApproval, "False/AwaitingApproval", false, false},
		"Never keeps a plan that changes privileges":          {privileges, policy(ptahv1.ApplyNever, true), ptahv1.PhaseBlocked, "False/ApplyDisabled", false, false},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			if test.plan != nil {
				test.plan(w)
			}
			w.create(newSchema(test.policy))
			s := w.refreshed(w.reconciler())
			expect(t, s, test.phase, map[string]string{"Ready": test.ready, "Stalled": fmt.Sprintf("%s/%s", map[bool]string{true: "True", false: "False"}[test.stalled], s.Status.Conditions[0].Reason)})
			if got := len(w.applyJobs) == 1; got != test.runs {
				t.Errorf("an Apply runs: %v", got)
			}
		})
	}
}

func TestAnApprovalDoesNotOverrideABlockedPlan(t *testing.T) {
	w := newWorld(t)
	w.create(newSchema(func(s *ptahv1.PtahSchema) { s.Spec.Policy.Apply = ptahv1.ApplyNever }))
	r := w.reconciler()
	w.refreshed(r)
	w.approve("first")
	w.mustPass(r)
	if len(w.applyJobs) != 0 || w.approvalCondition("first", ptahv1.ConditionConsumed) != "" {
		t.Error("an approval ran a plan that the policy keeps")
	}
}

func TestOnlyTheOldestStampedApprovalOfThePlanCounts(t *testing.T) {
	w := newWorld(t)
	r := awaiting(t, w)
	w.clock.Step(time.Second)
	w.approve("second")
	unstamped := w.approve("unstamped")
	unstamped.Spec.Approver.Username = ""
	other := w.approve("other-plan")
	other.Spec.PlanFingerprint = ptahv1.Digest(digestOf("another plan"))
	oldest := w.approve("oldest")
	oldest.Spec.ApprovedAt = metav1.NewTime(w.clock.Now().Add(-time.Hour))
	older := metav1.NewTime(w.clock.Now().Add(-2 * time.Hour))
	elsewhere, going := w.approve("another-schema"), w.approve("being-deleted")
	elsewhere.Spec.SchemaRef.Name, elsewhere.Spec.ApprovedAt = "another", older
	going.Finalizers, going.Spec.ApprovedAt = []string{"example.com/kept"}, older
	for _, approval := range []*ptahv1.PtahSchemaApproval{unstamped, other, oldest, elsewhere, going} {
		if err := w.base.Update(context.Background(), approval); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.base.Delete(context.Background(), going); err != nil {
		t.Fatal(err)
	}
	for range 3 {
		w.mustPass(r)
		w.runPods()
	}
	for name, want := range map[string]string{"oldest": "DispatchCommitted", "second": "", "unstamped": "", "other-plan": "", "another-schema": "", "being-deleted": ""} {
		if got := w.approvalCondition(name, ptahv1.ConditionConsumed); got != want {
			t.Errorf("%s is consumed: %q instead of %q", name, got, want)
		}
	}
	for name, want := range map[string]string{"oldest": "", "second": "SupersededApproval", "other-plan": "PlanNoLongerCurrent", "another-schema": "", "being-deleted": ""} {
		if got := w.approvalCondition(name, ptahv1.ConditionStale); got != want {
			t.Errorf("%s is stale: %q instead of %q", name, got, want)
		}
	}
}

func TestAnApplyThatChangedNothingIsNotRepeatedByItself(t *testing.T) {
	w := newWorld(t)
	w.create(newSchema(func(s *ptahv1.PtahSchema) { s.Spec.Policy.Apply = ptahv1.ApplyAlways }))
	r := w.reconciler()
	w.refreshed(r)
	w.broken = &result.Error{Code: result.ErrorPtah, Message: "a statement failed", Problem: &report.Problem{Code: report.CodeStatement, Message: "duplicate key"}}
	w.runPods()
	w.broken = nil
	w.mustPass(r)
	w.runPods()
	w.mustPass(r)
	s := w.get()
	expect(t, s, ptahv1.PhaseAwaitingApproval, map[string]string{"Ready": "False/AwaitingApproval"})
	if !s.Status.Plan.Attempted {
		t.Error("the plan is not marked as attempted")
	}
	for range 5 {
		w.clock.Step(3 * time.Minute)
		w.refreshed(r)
	}
	if len(w.applyJobs) != 1 {
		t.Errorf("%d Applies were started", len(w.applyJobs))
	}
	if !w.get().Status.Plan.Attempted {
		t.Error("a refresh forgot that the plan was attempted")
	}
	w.approve("again")
	for range 3 {
		w.mustPass(r)
		w.runPods()
	}
	expect(t, w.get(), ptahv1.PhaseInSync, map[string]string{"Ready": "True/InSync"})
}

// refusals are answers which prove that no Job was stored.
var refusals = map[string]error{
	"forbidden":             apierrors.NewForbidden(batchv1.Resource("jobs"), "j", fmt.Errorf("exceeded quota")),
	"namespace terminating": apierrors.NewForbidden(batchv1.Resource("jobs"), "j", fmt.Errorf("namespace team-a is being terminated")),
	"invalid":               apierrors.NewInvalid(schema.GroupKind{Group: "batch", Kind: "Job"}, "j", nil),
	"webhook unreachable":   apierrors.NewInternalError(fmt.Errorf(`failed calling webhook "x": connection refused`)),
	"webhook denial":        &apierrors.StatusError{ErrStatus: metav1.Status{Code: 409, Reason: metav1.StatusReasonConflict, Message: `admission webhook "x" denied the request: no`}},
}

// refuseApplyJob lets the API server answer the create of each Apply Job with an error.
func (w *world) refuseApplyJob(refusal error) {
	w.answer = func(request string) error {
		if request == "create Job apply" {
			return refusal
		}
		return nil
	}
}

func count(list []string, wanted string) (found int) {
	for _, item := range list {
		if item == wanted {
			found++
		}
	}
	return found
}

func TestADefiniteRefusalOfTheApplyJobWithdrawsTheMark(t *testing.T) {
	for name, refusal := range refusals {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			r := awaiting(t, w)
			w.approve("first")
			w.refuseApplyJob(refusal)
			answer := w.mustPass(r)
			s := w.get()
			expect(t, s, ptahv1.PhaseApplying, map[string]string{"Ready": "False/PodAdmissionRefused", "ReconciliationFailed": "True/PodAdmissionRefused"})
			claim := s.Status.ActiveOperation
			if claim.DispatchStarted || claim.DispatchNotAfter != nil || claim.RetryNotBefore == nil || answer.RequeueAfter != 30*time.Second {
				t.Errorf("the mark stands after a refusal: %+v, again in %s", claim, answer.RequeueAfter)
			}
			w.take()
			w.mustPass(r)
			sameRequests(t, w.take(), "get PtahSchema")
			if said := count(w.events.take(), "PodAdmissionRefused"); said != 1 {
				t.Errorf("the first refusal is told %d times", said)
			}
			w.clock.Step(31 * time.Second)
			w.mustPass(r)
			if said := count(w.events.take(), "PodAdmissionRefused"); said != 0 {
				t.Errorf("a refusal that lasts is told %d times more", said)
			}
			w.answer = nil
			w.clock.Step(31 * time.Second)
			for range 3 {
				w.mustPass(r)
				w.runPods()
			}
			expect(t, w.get(), ptahv1.PhaseInSync, map[string]string{"Ready": "True/InSync", "ReconciliationFailed": "False/Succeeded"})
			if len(w.executed) != 1 || len(w.applyJobs) != 1 {
				t.Errorf("%d plans ran in %d claims", len(w.executed), len(w.applyJobs))
			}
		})
	}
}

// policyChanges are what somebody can do to a verification policy between an approval and its dispatch.
var policyChanges = map[string]func(*testing.T, *world, *corev1.ConfigMap){
	"another content": func(t *testing.T, w *world, policy *corev1.ConfigMap) {
		policy.Data["policy.yaml"] += "# reviewed\n"
		if err := w.base.Update(context.Background(), policy); err != nil {
			t.Fatal(err)
		}
	},
	"created anew": func(t *testing.T, w *world, policy *corev1.ConfigMap) {
		if err := w.base.Delete(context.Background(), policy); err != nil {
			t.Fatal(err)
		}
		anew := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: policy.Namespace, Name: policy.Name}, Data: policy.Data}
		w.create(anew)
		if anew.UID == policy.UID {
			t.Fatal("it is the same object")
		}
	},
	"gone": func(t *testing.T, w *world, policy *corev1.ConfigMap) {
		if err := w.base.Delete(context.Background(), policy); err != nil {
			t.Fatal(err)
		}
	},
}

func TestAPolicyThatChangesWhileAnApprovedApplyWaitsRetiresIt(t *testing.T) {
	for name, change := range policyChanges {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			r := refusedOnce(t, w)
			policy := &corev1.ConfigMap{}
			if err := w.base.Get(context.Background(), client.ObjectKey{Namespace: testNamespace, Name: policyName}, policy); err != nil {
				t.Fatal(err)
			}
			change(t, w, policy)
			w.answer = nil
			w.clock.Step(31 * time.Second)
			for range 3 {
				w.mustPass(r)
				w.runPods()
			}
			s := w.get()
			if len(w.executed) != 0 || len(w.applyJobs) != 0 {
				t.Errorf("%d plans ran in %d claims after the policy changed", len(w.executed), len(w.applyJobs))
			}
			if claim := s.Status.ActiveOperation; claim != nil && claim.Type == ptahv1.OperationApply {
				t.Errorf("the claim stands: %+v", claim)
			}
			if s.Status.Plan != nil && s.Status.Plan.Approval != nil {
				t.Error("the plan still carries the approval")
			}
		})
	}
}

// TestAClaimThatWasNotDispatchedEndsWithWhatItWasMadeFor changes one thing at a time while the API server refuses the Job.
func TestAClaimThatWasNotDispatchedEndsWithWhatItWasMadeFor(t *testing.T) {
	same := func(_ *testing.T, w *world) *Reconciler { return w.reconciler() }
	spec := func(change func(*ptahv1.PtahSchema)) func(*testing.T, *world) *Reconciler {
		return func(_ *testing.T, w *world) *Reconciler {
			w.change(change)
			return w.reconciler()
		}
	}
	status := func(change func(*ptahv1.PtahSchemaStatus)) func(*testing.T, *world) *Reconciler {
		return func(t *testing.T, w *world) *Reconciler {
			s := w.get()
			change(&s.Status)
			if err := w.base.Status().Update(context.Background(), s); err != nil {
				t.Fatal(err)
			}
			return w.reconciler()
		}
	}
	for name, test := range map[string]struct {
		change func(*testing.T, *world) *Reconciler
		runs   bool
	}{
		"nothing":            {same, true},
		"policy":             {spec(func(s *ptahv1.PtahSchema) { s.Spec.Policy.Apply = ptahv1.ApplyNever }), false},
		"lock timeout":       {spec(func(s *ptahv1.PtahSchema) { s.Spec.Policy.LockTimeout.Duration = time.Second }), false},
		"suspension":         {spec(func(s *ptahv1.PtahSchema) { s.Spec.Suspend = true }), false},
		"executor":           {func(_ *testing.T, w *world) *Reconciler { return w.upgrade("d", 1) }, false},
		"epoch of the claim": {status(func(s *ptahv1.PtahSchemaStatus) { s.ActiveOperation.ExecutionBindingID = "v1-another" }), false},
		"current plan":       {status(func(s *ptahv1.PtahSchemaStatus) { s.Plan.UID = "another" }), false},
		"no plan":            {status(func(s *ptahv1.PtahSchemaStatus) { s.Plan = nil }), false},
		"another claimant":   {func(_ *testing.T, w *world) *Reconciler { w.rival(); w.schemas = 2; return w.reconciler() }, false},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			r := refusedOnce(t, w)
			if claim := w.get().Status.ActiveOperation; claim == nil || claim.DispatchStarted || claim.Type != ptahv1.OperationApply {
				t.Fatalf("the claim is %+v", claim)
			}
			w.answer = nil
			r = test.change(t, w)
			w.clock.Step(31 * time.Second)
			w.mustPass(r)
			claim := w.get().Status.ActiveOperation
			if applying := claim != nil && claim.Type == ptahv1.OperationApply; applying != test.runs || (len(w.applyJobs) == 1) != test.runs {
				t.Fatalf("the claim is %+v, %d Apply Jobs were created", claim, len(w.applyJobs))
			}
			for range 3 {
				w.runPods()
				w.mustPass(r)
			}
			if ran := len(w.executed) == 1; ran != test.runs {
				t.Errorf("%d plans ran", len(w.executed))
			}
		})
	}
}

func TestAnApplyThatThePolicyGrantsIsTriedAgainAfterARefusal(t *testing.T) {
	w := newWorld(t)
	w.create(newSchema(func(s *ptahv1.PtahSchema) { s.Spec.Policy.Apply = ptahv1.ApplyAlways }))
	r := w.reconciler()
	w.refuseApplyJob(refusals["forbidden"])
	w.refreshed(r)
	if claim := w.get().Status.ActiveOperation; claim == nil || claim.ApprovalRef != nil || claim.DispatchStarted || claim.RetryNotBefore == nil {
		t.Fatalf("the claim is %+v", claim)
	}
	w.answer = nil
	w.clock.Step(31 * time.Second)
	w.mustPass(w.reconciler())
	for range 2 {
		w.runPods()
		w.mustPass(r)
	}
	expect(t, w.get(), ptahv1.PhaseInSync, map[string]string{"Ready": "True/InSync"})
	if len(w.executed) != 1 || len(w.applyJobs) != 1 {
		t.Errorf("%d plans ran in %d claims", len(w.executed), len(w.applyJobs))
	}
}

func TestAnUncertainCreateIsAdoptedWhereTheJobExistsAndNeverRepeated(t *testing.T) {
	for name, test := range map[string]struct {
		fault fault
		jobs  int
	}{"the Job was stored": {lostAnswer, 1}, "the Job was not stored": {lostRequest, 0}} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			r := awaiting(t, w)
			w.approve("first")
			w.fault = func(_ int, request string) fault {
				if request == "create Job apply" {
					return test.fault
				}
				return healthy
			}
			w.mustPass(r)
			claim := w.get().Status.ActiveOperation
			if claim == nil || !claim.DispatchStarted || claim.JobUID != "" {
				t.Fatalf("the mark does not stand: %+v", claim)
			}
			w.fault = nil
			w.take()
			w.mustPass(r)
			if slices.Contains(w.take(), "create Job apply") {
				t.Fatal("the Apply Job was created again")
			}
			if test.jobs == 1 {
				if w.get().Status.ActiveOperation.JobUID == "" {
					t.Error("the Job was not adopted")
				}
				w.runPods()
				w.mustPass(r)
				w.runPods()
				w.mustPass(r)
				expect(t, w.get(), ptahv1.PhaseInSync, map[string]string{"Ready": "True/InSync"})
				return
			}
			w.clock.Step(dispatchWindow - 2*time.Second)
			w.mustPass(r)
			if w.get().Status.PendingObservation != nil {
				t.Error("the outcome was called unknown within the dispatch window")
			}
			w.clock.Step(3 * time.Second)
			answer := w.mustPass(r)
			s := w.get()
			expect(t, s, ptahv1.PhaseVerifyingConvergence, map[string]string{"Ready": "False/ApplyOutcomeUnknown"})
			if s.Status.PendingObservation.ObserveAfter == nil || answer.RequeueAfter <= 0 || len(w.openJobs()) != 0 {
				t.Error("the proof does not wait until nothing can be running")
			}
			w.clock.SetTime(s.Status.PendingObservation.ObserveAfter.Time)
			w.mustPass(r)
			w.runPods()
			w.mustPass(r)
			expect(t, w.get(), ptahv1.PhaseAwaitingApproval, nil)
			if len(w.executed) != 0 || len(w.applyJobs) != 0 {
				t.Error("something ran")
			}
		})
	}
}

func TestAnApplyWithoutAResultIsUnknownAndConvergesWithoutCredit(t *testing.T) {
	w := newWorld(t)
	r := awaiting(t, w)
	w.approve("first")
	w.mustPass(r)
	w.mute = true
	w.runPods()
	w.mute = false
	w.mustPass(r)
	expect(t, w.get(), ptahv1.PhaseVerifyingConvergence, map[string]string{"Ready": "False/ApplyOutcomeUnknown"})
	if !slices.Contains(w.events.take(), "ApplyOutcomeUnknown") {
		t.Error("there is no event")
	}
	w.runPods()
	w.mustPass(r)
	s := w.get()
	expect(t, s, ptahv1.PhaseInSync, map[string]string{"Ready": "True/ConvergedAfterUnknownOutcome", "InSync": "True/ConvergedAfterUnknownOutcome"})
	if s.Status.Applied != nil {
		t.Error("an Apply of unknown outcome is credited")
	}
	w.clock.Step(4 * time.Minute)
	expect(t, w.refreshed(r), ptahv1.PhaseInSync, map[string]string{"Ready": "True/ConvergedAfterUnknownOutcome"})
}

func TestAResultUnderABrokenLeaseDoesNotCount(t *testing.T) {
	w := newWorld(t)
	r := awaiting(t, w)
	w.approve("first")
	w.mustPass(r)
	w.freeLease()
	w.runPods()
	w.mustPass(r)
	s := w.get()
	if s.Status.PendingObservation == nil || s.Status.PendingObservation.Outcome != ptahv1.OutcomeUnknown {
		t.Errorf("pending %+v", s.Status.PendingObservation)
	}
	if !slices.Contains(w.events.take(), "LeaseContinuityLost") {
		t.Error("there is no event")
	}
	w.runPods()
	w.mustPass(r)
	s = w.get()
	expect(t, s, ptahv1.PhaseInSync, map[string]string{"Ready": "True/ConvergedAfterUnknownOutcome"})
	if s.Status.Applied != nil {
		t.Error("the Apply is credited")
	}
	if holder, _ := w.leaseHolder(); holder != "" {
		t.Error("the Lease is still held")
	}
}

func TestADueRefreshComesBeforeAnApproval(t *testing.T) {
	w := newWorld(t)
	r := awaiting(t, w)
	w.approve("first")
	w.clock.SetTime(w.get().Status.NextReconciliationTime.Time)
	w.mustPass(r)
	if claim := w.get().Status.ActiveOperation; claim == nil || claim.Type != ptahv1.OperationRefresh {
		t.Fatalf("claim %+v", claim)
	}
	if w.approvalCondition("first", ptahv1.ConditionConsumed) != "" {
		t.Error("the approval was used before the refresh")
	}
	w.runPods()
	w.mustPass(r)
	if claim := w.get().Status.ActiveOperation; claim == nil || claim.Type != ptahv1.OperationApply {
		t.Fatalf("the approval is not used after the refresh: %+v", claim)
	}
}

func TestAnApprovalIsUsedWhereARefreshTakesLongerThanTheInterval(t *testing.T) {
	for name, test := range map[string]struct {
		late     time.Duration // from when the next refresh is due to the end of the running one
		approved bool
		want     ptahv1.OperationType
	}{
		"should decide when the refresh ends after the next is due": {time.Second, true, ptahv1.OperationApply},
		"should decide when it ends just when the next is due":      {0, true, ptahv1.OperationApply},
		"should refresh again where there is nothing to decide":     {time.Second, false, ptahv1.OperationRefresh},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			r := awaiting(t, w)
			w.clock.SetTime(w.get().Status.NextReconciliationTime.Time)
			w.mustPass(r) // claims the refresh that will be slow
			if test.approved {
				w.approve("first")
			}
			w.runPods()
			w.clock.SetTime(w.get().Status.NextReconciliationTime.Add(test.late))
			w.mustPass(r) // takes its result
			if claim := w.get().Status.ActiveOperation; claim == nil || claim.Type != test.want {
				t.Fatalf("claim %+v, want one of type %s", claim, test.want)
			}
		})
	}
}

func TestWhichPlansAreFromARefreshThatWasLate(t *testing.T) {
	now := time.Date(2027, 3, 1, 8, 0, 0, 0, time.UTC)
	at := func(before time.Duration) *metav1.Time { return &metav1.Time{Time: now.Add(-before)} }
	for name, test := range map[string]struct {
		ended, next *metav1.Time
		want        bool
	}{
		"should be late where it ended after the next was due":            {at(time.Second), at(2 * time.Second), true},
		"should not be late where it ended before the next was due":       {at(2 * time.Second), at(time.Second), false},
		"should not count any more an interval after its end":             {at(time.Minute), at(2 * time.Minute), false},
		"should still count a second less than an interval after its end": {at(59 * time.Second), at(2 * time.Minute), true},
		"should not be late where nothing was ever read":                  {nil, at(time.Second), false},
	} {
		t.Run(name, func(t *testing.T) {
			schema := newSchema()
			schema.Spec.Interval = metav1.Duration{Duration: time.Minute}
			schema.Status.Plan = &ptahv1.CurrentPlanStatus{}
			schema.Status.RefreshedGeneration = schema.Generation
			schema.Status.LastSuccessfulReconciliation, schema.Status.NextReconciliationTime = test.ended, test.next
			if got := late(schema, schema.Generation, now); got != test.want {
				t.Errorf("late is %t", got)
			}
		})
	}
}

func TestAnApprovalOneSecondBeforeTheDeadlineIsUsed(t *testing.T) {
	w := newWorld(t)
	r := awaiting(t, w)
	w.approve("first")
	w.clock.SetTime(w.get().Status.NextReconciliationTime.Add(-time.Second))
	w.mustPass(r)
	claim := w.get().Status.ActiveOperation
	if claim == nil || claim.Type != ptahv1.OperationApply || !claim.StartedAt.Time.Equal(w.clock.Now()) {
		t.Fatalf("claim %+v", claim)
	}
}

func TestAPolicyThatChangedSinceThePlanRetiresIt(t *testing.T) {
	for name, edit := range map[string]func(*testing.T, *world, *corev1.ConfigMap){
		"another content": policyChanges["another content"],
		"the same content in another object": func(t *testing.T, w *world, policy *corev1.ConfigMap) {
			if err := w.base.Delete(context.Background(), policy); err != nil {
				t.Fatal(err)
			}
			w.create(newPolicy())
		},
	} {
		t.Run(name, func(t *testing.T) { policyRetiresPlan(t, edit) })
	}
}

func policyRetiresPlan(t *testing.T, edit func(*testing.T, *world, *corev1.ConfigMap)) {
	w := newWorld(t)
	r := awaiting(t, w)
	config := &corev1.ConfigMap{}
	if err := w.base.Get(context.Background(), client.ObjectKey{Namespace: w.namespace, Name: policyName}, config); err != nil {
		t.Fatal(err)
	}
	edit(t, w, config)
	w.approve("first")
	w.mustPass(r)
	s := w.get()
	if s.Status.Plan != nil || s.Status.ActiveOperation != nil || len(w.applyJobs) != 0 {
		t.Error("a plan that another policy accepted is still current")
	}
	if !slices.Contains(w.events.take(), "VerificationPolicyInvalidated") {
		t.Error("there is no event")
	}
	w.clock.Step(time.Second)
	w.refreshed(r)
	expect(t, w.get(), ptahv1.PhaseAwaitingApproval, nil)
	if got := w.approvalCondition("first", ptahv1.ConditionStale); got != "PlanNoLongerCurrent" {
		t.Errorf("the approval is stale: %q", got)
	}
}

func TestNothingIsDispatchedOnACancelledContext(t *testing.T) {
	w := newWorld(t)
	r := awaiting(t, w)
	w.approve("first")
	ctx, cancel := context.WithCancel(context.Background())
	w.after = func(request string) {
		if request == "update PtahSchemaApproval/status" {
			cancel()
		}
	}
	if _, err := r.Reconcile(ctx, reconcile.Request{NamespacedName: types.NamespacedName{Namespace: w.namespace, Name: testName}}); err == nil {
		t.Error("a cancelled pass reports nothing")
	}
	claim := w.get().Status.ActiveOperation
	if claim == nil || claim.DispatchStarted || len(w.openJobs()) != 0 {
		t.Fatalf("claim %+v, %d Jobs", claim, len(w.openJobs()))
	}
	w.after = nil
	r = w.reconciler()
	for range 3 {
		w.mustPass(r)
		w.runPods()
	}
	expect(t, w.get(), ptahv1.PhaseInSync, map[string]string{"Ready": "True/InSync"})
}

func TestAStartedDispatchFinishesWhenTheManagerIsToldToStop(t *testing.T) {
	w := newWorld(t)
	r := awaiting(t, w)
	w.approve("first")
	ctx, cancel := context.WithCancel(context.Background())
	marked := false
	w.after = func(request string) {
		if s := w.get(); request == "update PtahSchema/status" && !marked && s.Status.ActiveOperation != nil && s.Status.ActiveOperation.DispatchStarted {
			marked = true
			cancel()
		}
	}
	if _, err := r.Reconcile(ctx, reconcile.Request{NamespacedName: types.NamespacedName{Namespace: w.namespace, Name: testName}}); err != nil {
		t.Fatal(err)
	}
	if claim := w.get().Status.ActiveOperation; claim == nil || claim.JobUID == "" || !marked {
		t.Errorf("the dispatch was not finished: %+v", claim)
	}
}

func TestAnApplyThatWaitsForItsTurnSaysSoAndUsesNothingUp(t *testing.T) {
	w := newWorld(t)
	r := awaiting(t, w)
	rival := &realm.Leases{Client: w.base, Namespace: w.coordination, Clock: w.clock, Random: strings.NewReader(strings.Repeat("x", 64))}
	if _, err := rival.Acquire(context.Background(), realm.Request{Digest: w.get().Status.Target.CoordinationDigest, Holder: realm.Holder("rival"), Duration: time.Minute}); err != nil {
		t.Fatal(err)
	}
	w.approve("first")
	w.mustPass(r)
	s := w.get()
	expect(t, s, ptahv1.PhaseApplying, map[string]string{"Ready": "False/TargetBusy", "Reconciling": "True/TargetBusy"})
	if claim := s.Status.ActiveOperation; claim.DispatchStarted || s.Status.TargetBusySince == nil || w.approvalCondition("first", ptahv1.ConditionConsumed) != "" {
		t.Errorf("something was used up: %+v", claim)
	}
	w.take()
	w.mustPass(r)
	sameRequests(t, w.take(), "get PtahSchema", "get ConfigMap", "get PtahSchemaApproval", "get Lease")
	w.clock.Step(time.Minute)
	w.mustPass(r)
	claim := w.get().Status.ActiveOperation
	if _, epoch := w.leaseHolder(); !claim.DispatchStarted || claim.JobUID == "" || claim.LeaseEpoch != epoch || epoch != s.Status.ActiveOperation.LeaseEpoch {
		t.Errorf("the claim is under epoch %s, the Lease under %s", claim.LeaseEpoch, epoch)
	}
	expect(t, w.get(), ptahv1.PhaseApplying, map[string]string{"Ready": "False/ApprovedPlan"})
}

func TestARevokedApprovalRetiresAnUndispatchedClaim(t *testing.T) {
	mark := func(condition, message string) func(*testing.T, *world, *ptahv1.PtahSchemaApproval) {
		return func(t *testing.T, w *world, approval *ptahv1.PtahSchemaApproval) {
			approval.Status.Conditions = append(approval.Status.Conditions, metav1.Condition{
				Type: condition, Status: metav1.ConditionTrue, Reason: "Test", Message: message, LastTransitionTime: metav1.NewTime(w.clock.Now()),
			})
			if err := w.base.Status().Update(context.Background(), approval); err != nil {
				t.Fatal(err)
			}
		}
	}
	edit := func(change func(*ptahv1.PtahSchemaApprovalSpec)) func(*testing.T, *world, *ptahv1.PtahSchemaApproval) {
		return func(t *testing.T, w *world, approval *ptahv1.PtahSchemaApproval) {
			change(&approval.Spec)
			if err := w.base.Update(context.Background(), approval); err != nil {
				t.Fatal(err)
			}
		}
	}
	for name, revoke := range map[string]func(*testing.T, *world, *ptahv1.PtahSchemaApproval){
		"deleted": func(t *testing.T, w *world, approval *ptahv1.PtahSchemaApproval) {
			if err := w.base.Delete(context.Background(), approval); err != nil {
				t.Fatal(err)
			}
		},
		"replaced by one of the same name": func(t *testing.T, w *world, approval *ptahv1.PtahSchemaApproval) {
			if err := w.base.Delete(context.Background(), approval); err != nil {
				t.Fatal(err)
			}
			w.approve(approval.Name)
		},
		"void":                         mark(ptahv1.ConditionStale, "Another plan is current."),
		"used up by another operation": mark(ptahv1.ConditionConsumed, "The approval was used up by operation another."),
		"by nobody":                    edit(func(s *ptahv1.PtahSchemaApprovalSpec) { s.Approver.Username = "" }),
		"at no time":                   edit(func(s *ptahv1.PtahSchemaApprovalSpec) { s.ApprovedAt = metav1.Time{} }),
		"by no request":                edit(func(s *ptahv1.PtahSchemaApprovalSpec) { s.MutationRequestUID = "" }),
		"of an earlier resource":       edit(func(s *ptahv1.PtahSchemaApprovalSpec) { s.SchemaRef.UID = "earlier" }),
		"of a plan of another name":    edit(func(s *ptahv1.PtahSchemaApprovalSpec) { s.PlanRef.Name = "another" }),
		"of other bytes":               edit(func(s *ptahv1.PtahSchemaApprovalSpec) { s.PlanFingerprint = ptahv1.Digest(digestOf("others")) }),
		"of another plan":              edit(func(s *ptahv1.PtahSchemaApprovalSpec) { s.PlanRef.UID = "another" }),
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			r := awaiting(t, w)
			w.approve("first")
			w.fault = func(_ int, request string) fault {
				if request == "update PtahSchemaApproval/status" {
					return killedBefore
				}
				return healthy
			}
			if _, err := w.pass(r); err == nil {
				t.Fatal("the fault did not bite")
			}
			w.fault = nil
			approval := &ptahv1.PtahSchemaApproval{}
			if err := w.base.Get(context.Background(), clientKey(w, "first"), approval); err != nil {
				t.Fatal(err)
			}
			revoke(t, w, approval)
			r = w.reconciler()
			w.mustPass(r)
			s := w.get()
			expect(t, s, ptahv1.PhaseAwaitingApproval, nil)
			if s.Status.ActiveOperation != nil || len(s.Finalizers) != 0 || !slices.Contains(w.events.take(), "ApprovalRevoked") {
				t.Errorf("the claim stands: %+v", s.Status.ActiveOperation)
			}
			if s.Status.Plan == nil || s.Status.Plan.Approval != nil {
				t.Errorf("nobody can approve the plan again: %+v", s.Status.Plan)
			}
			if holder, _ := w.leaseHolder(); holder != "" {
				t.Error("the Lease is still held")
			}
			if len(w.openJobs()) != 0 {
				t.Error("something was dispatched")
			}
		})
	}
}

// TestAnApplyGoesUnderTheLeaseThatIsHeldAlready has a release that was not finished: what the claim names is what is held.
func TestAnApplyGoesUnderTheLeaseThatIsHeldAlready(t *testing.T) {
	w := newWorld(t)
	r := awaiting(t, w)
	s := w.get()
	earlier := &realm.Leases{Client: w.base, Namespace: w.coordination, Clock: w.clock, Random: strings.NewReader(strings.Repeat("x", 64))}
	held, err := earlier.Acquire(context.Background(), realm.Request{Digest: s.Status.Target.CoordinationDigest, Holder: realm.Holder(string(s.UID)), Duration: time.Minute})
	if err != nil || !held.Held {
		t.Fatal(held, err)
	}
	w.approve("first")
	w.mustPass(r)
	if claim := w.get().Status.ActiveOperation; claim == nil || claim.LeaseEpoch != held.Epoch || claim.JobUID == "" {
		t.Fatalf("the claim is %+v, the Lease under epoch %s", claim, held.Epoch)
	}
	w.runPods()
	w.mustPass(r)
	w.runPods()
	w.mustPass(r)
	expect(t, w.get(), ptahv1.PhaseInSync, map[string]string{"Ready": "True/InSync"})
}

func TestTheNameOfTheApproverIsKeptWithThePlan(t *testing.T) {
	w := newWorld(t)
	r := awaiting(t, w)
	w.approve("first")
	w.mustPass(r)
	got := w.get().Status.Plan.Approval
	if got == nil || got.Approver.Username != "alice" || !strings.Contains(strings.Join(w.events.notes, "\n"), "alice") {
		t.Errorf("approval %+v, events %v", got, w.events.notes)
	}
}
