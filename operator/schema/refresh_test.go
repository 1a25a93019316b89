package schema

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	ptahv1 "ptah.run/ptah/operator/api/v1alpha1"
	"ptah.run/ptah/operator/operation/env"
	"ptah.run/ptah/operator/operation/result"
	"ptah.run/ptah/operator/plan/report"
	"ptah.run/ptah/operator/realm"
)

// toDue moves the clock to the next scheduled refresh.
func (w *world) toDue() {
	w.t.Helper()
	w.clock.SetTime(w.get().Status.NextReconciliationTime.Time)
}

func TestAnUneventfulRefreshWritesStatusTwiceAndNothingElse(t *testing.T) {
	everyWorld(t, func(t *testing.T, w *world) {
		r := synced(t, w)
		w.toDue()
		w.mustPass(r)
		expect(t, w.get(), ptahv1.PhaseInSync, map[string]string{"Ready": "True/InSync", "Reconciling": "False/InSync"})
		job := w.openJobs()[0]
		if jobEnv(&job, env.ProvenArtifact) == "" || jobEnv(&job, env.ProvenDumpDigest) == "" || jobEnv(&job, env.ProvenTargetIdentity) == "" {
			t.Error("the runner is not told what was proven")
		}
		w.runPods()
		w.mustPass(r)
		s := w.get()
		expect(t, s, ptahv1.PhaseInSync, map[string]string{"Ready": "True/InSync"})
		requests := w.take()
		sameRequests(t, requests,
			"get PtahSchema", "get ConfigMap", "update Lease", "patch PtahSchema", "update PtahSchema/status", "create Job refresh",
			"get PtahSchema", "get PtahResultRecord", "update PtahSchema/status", "update Lease", "patch PtahSchema")
		// The receiver needs five requests to take the result.
		if all := len(requests) + 5; all > 25 {
			t.Errorf("a refresh takes %d requests", all)
		}
		if events := w.events.take(); len(events) != 0 {
			t.Errorf("events %v", events)
		}
		if len(w.executed) != 1 {
			t.Errorf("%d plans ran", len(w.executed))
		}
		if s.Status.Applied == nil {
			t.Error("the refresh forgot the Apply")
		}
	})
}

func TestAPassWithNothingDueReadsOnceAndWritesNothing(t *testing.T) {
	for name, prepare := range map[string]func(*testing.T, *world) *Reconciler{
		"in sync":              func(t *testing.T, w *world) *Reconciler { return synced(t, w) },
		"awaiting an approval": func(t *testing.T, w *world) *Reconciler { return awaiting(t, w) },
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			r := prepare(t, w)
			before := w.get()
			answer := w.mustPass(r)
			sameRequests(t, w.take(), "get PtahSchema")
			if got := w.get(); got.ResourceVersion != before.ResourceVersion {
				t.Error("the pass wrote")
			}
			if want := before.Status.NextReconciliationTime.Sub(w.clock.Now()); answer.RequeueAfter != want {
				t.Errorf("it comes back after %s instead of %s", answer.RequeueAfter, want)
			}
		})
	}
}

func TestAPlanThatDidNotChangeIsKept(t *testing.T) {
	w := newWorld(t)
	r := awaiting(t, w)
	before := w.get().Status.Plan
	w.approve("first") // given before the refresh, used after it
	w.toDue()
	w.mustPass(r)
	expect(t, w.get(), ptahv1.PhaseAwaitingApproval, map[string]string{"ApprovalRequired": "True/AwaitingApproval"})
	sameRequests(t, w.take(),
		"get PtahSchema", "get ConfigMap", "update Lease", "get PtahSchemaPlan", "patch PtahSchema", "update PtahSchema/status", "create Job refresh")
	job := w.openJobs()[0]
	if jobEnv(&job, env.HeldPlanDigest) != before.ContentDigest {
		t.Error("the runner is not told which plan is stored")
	}
	w.runPods()
	w.take()
	w.mustPass(r)
	requests := w.take()
	if slices.Contains(requests, "create PtahSchemaPlan") {
		t.Errorf("the plan was published again: %v", requests)
	}
	if got := w.get().Status.Plan; got.UID != before.UID || got.Fingerprint != before.Fingerprint {
		t.Error("another plan is current")
	}
	if !slices.Contains(requests, "create Job apply") {
		t.Error("the approval of the kept plan was not used")
	}
}

// deletePlan deletes a plan, and its chunk as its owner's deletion does.
func (w *world) deletePlan(name string) {
	w.t.Helper()
	stored := &ptahv1.PtahSchemaPlan{}
	if err := w.base.Get(context.Background(), clientKey(w, name), stored); err != nil {
		w.t.Fatal(err)
	}
	chunk := &ptahv1.PtahSchemaPlanChunk{}
	chunk.Name, chunk.Namespace = stored.Spec.Chunks[0].Name, w.namespace
	for _, object := range []client.Object{stored, chunk} {
		if err := w.base.Delete(context.Background(), object); err != nil {
			w.t.Fatal(err)
		}
	}
}

func TestAPlanThatSomebodyDeletedIsStoredAnewAtTheNextRefresh(t *testing.T) {
	w := newWorld(t)
	r := awaiting(t, w)
	before := w.get().Status.Plan
	w.approve("first")
	w.deletePlan(before.Name)
	w.toDue()
	w.mustPass(r)
	s := w.get()
	expect(t, s, ptahv1.PhaseRefreshing, map[string]string{"Ready": "False/Refreshing", "PlanReady": "Unknown/StalePlan"})
	job := w.openJobs()[0]
	if held := jobEnv(&job, env.HeldPlanDigest); held != "" || s.Status.Plan != nil || !slices.Contains(w.events.take(), "PlanStale") {
		t.Errorf("the runner is told that plan %q is stored, which is gone", held)
	}
	w.runPods()
	w.mustPass(r)
	s = w.get()
	expect(t, s, ptahv1.PhaseAwaitingApproval, map[string]string{"PlanReady": "True/PlanReady"})
	if s.Status.Plan.Fingerprint != before.Fingerprint || s.Status.Plan.UID == before.UID {
		t.Errorf("plan %+v", s.Status.Plan)
	}
	if got := w.approvalCondition("first", ptahv1.ConditionStale); got != "PlanNoLongerCurrent" || len(w.applyJobs) != 0 {
		t.Errorf("the approval of the deleted plan is stale: %q", got)
	}
}

func TestAPlanThatIsDeletedDuringARefreshIsMadeAnew(t *testing.T) {
	w := newWorld(t)
	r := awaiting(t, w)
	before := w.get().Status.Plan
	w.toDue()
	w.mustPass(r)
	job := w.openJobs()[0]
	document := w.runPod(&job)
	moved := digestOf("artifact-2") // another artifact that asks for the same statements: the plan must be bound anew
	document.Resolve.Digest, document.Verify.Digest = moved, moved
	w.results[publicationOf(w, &job)] = document
	w.endJob(&job, false)
	w.deletePlan(before.Name)
	w.mustPass(r)
	if s := w.get(); s.Status.Plan != nil || condition(s, ptahv1.ConditionPlanReady) != "Unknown/StalePlan" || s.Status.ActiveOperation == nil {
		t.Fatalf("plan %+v, %s", s.Status.Plan, condition(s, ptahv1.ConditionPlanReady))
	}
	w.runPods()
	w.mustPass(r)
	expect(t, w.get(), ptahv1.PhaseAwaitingApproval, map[string]string{"PlanReady": "True/PlanReady"})
}

func TestAPlanOfTheSameBytesForAnotherArtifactIsBoundAnew(t *testing.T) {
	w := newWorld(t)
	r := awaiting(t, w)
	before := w.get().Status.Plan
	w.approve("first")
	w.toDue()
	w.mustPass(r)
	job := w.openJobs()[0]
	// The tag moved to an artifact that asks for the same statements.
	document := w.runPod(&job)
	moved := digestOf("artifact-2")
	document.Resolve.Digest, document.Verify.Digest = moved, moved
	w.results[publicationOf(w, &job)] = document
	w.endJob(&job, false)
	w.mustPass(r)
	got := w.get().Status.Plan
	if got.UID == before.UID || got.ContentDigest != before.ContentDigest || got.ArtifactDigest != moved {
		t.Errorf("plan %+v", got)
	}
	if len(w.applyJobs) != 0 {
		t.Error("an approval of the old binding ran the new one")
	}
	if got := w.approvalCondition("first", ptahv1.ConditionStale); got != "PlanNoLongerCurrent" {
		t.Errorf("the old approval is stale: %q", got)
	}
}

func TestDriftMadeByHandIsSeenAtTheNextRefresh(t *testing.T) {
	w := newWorld(t)
	r := synced(t, w)
	w.dbState = digestOf("drifted")
	w.toDue()
	s := w.refreshed(r)
	expect(t, s, ptahv1.PhaseAwaitingApproval, map[string]string{"DriftDetected": "True/ScopedChanges", "InSync": "False/ScopedChanges", "Ready": "False/AwaitingApproval"})
	if s.Status.Target.DriftFindingCount != 1 || s.Status.Target.DriftFindings[0].Category != "tables_added" || s.Status.Converged != nil {
		t.Errorf("target %+v", s.Status.Target)
	}
}

func TestDriftThatGoesAwayByItselfRetiresThePlan(t *testing.T) {
	w := newWorld(t)
	r := awaiting(t, w)
	w.approve("first")
	w.fault = func(_ int, request string) fault {
		if request == "get ConfigMap" {
			return lostRequest
		}
		return healthy
	}
	_, _ = w.pass(r)
	w.fault = nil
	w.dbState = desired(w.artifact)
	w.toDue()
	s := w.refreshed(r)
	expect(t, s, ptahv1.PhaseInSync, map[string]string{"Ready": "True/InSync"})
	if s.Status.Plan != nil || s.Status.Applied != nil || !slices.Contains(w.events.take(), "PlanStale") {
		t.Error("the plan is still there")
	}
	if got := w.approvalCondition("first", ptahv1.ConditionStale); got != "PlanNoLongerCurrent" {
		t.Errorf("the approval is stale: %q", got)
	}
}

func TestAWrongPasswordIsNamedAndRetriedAtItsOwnPace(t *testing.T) {
	everyWorld(t, func(t *testing.T, w *world) {
		w.create(newSchema())
		r := w.reconciler()
		w.broken = &result.Error{Code: result.ErrorPtah, Message: "Observe failed", Problem: &report.Problem{Code: report.CodeAuthentication, Message: "password authentication failed", SQLState: "28P01"}}
		s := w.refreshed(r)
		expect(t, s, ptahv1.PhaseFailed, map[string]string{
			"DatabaseReachable": "False/AuthenticationFailed", "ReconciliationFailed": "True/AuthenticationFailed", "Ready": "False/AuthenticationFailed",
			"Reconciling": "True/AuthenticationFailed", "Stalled": "False/AuthenticationFailed", "ArtifactVerified": "True/PolicySatisfied",
		})
		for _, c := range s.Status.Conditions {
			if c.Type == ptahv1.ConditionReady && (!strings.Contains(c.Message, "Secret db") || !strings.Contains(c.Message, "key url") || !strings.Contains(c.Message, "30s")) {
				t.Errorf("the message does not say what to do: %s", c.Message)
			}
		}
		if events := w.events.take(); !slices.Equal(events, []string{"OperationFailed"}) {
			t.Errorf("events %v", events)
		}
		// Nothing happens before the retry interval is over, however often something asks.
		w.take()
		for range 3 {
			w.clock.Step(9 * time.Second)
			w.mustPass(r)
		}
		sameRequests(t, w.take(), "get PtahSchema", "get PtahSchema", "get PtahSchema")
		for attempt := int32(2); attempt < 5; attempt++ {
			w.clock.Step(30 * time.Second)
			s = w.refreshed(r)
			if s.Status.FailedAttempts != attempt {
				t.Errorf("failedAttempts %d instead of %d", s.Status.FailedAttempts, attempt)
			}
			if got := s.Status.NextReconciliationTime.Sub(w.clock.Now()); got != 30*time.Second {
				t.Errorf("the next attempt is in %s", got)
			}
			if got := len(w.take()); got != 11 {
				t.Errorf("a failed attempt takes %d requests", got)
			}
		}
		if events := w.events.take(); len(events) != 0 {
			t.Errorf("a repeated failure makes events: %v", events)
		}
		w.broken = nil
		w.clock.Step(30 * time.Second)
		expect(t, w.refreshed(r), ptahv1.PhaseAwaitingApproval, map[string]string{"ReconciliationFailed": "False/Succeeded", "DatabaseReachable": "True/Observed"})
	})
}

func TestARegistryOutageKeepsTheEvidenceAndClaimsNothing(t *testing.T) {
	w := newWorld(t)
	r := synced(t, w)
	before := w.get().Status
	w.broken = &result.Error{Code: result.ErrorPtah, Message: "Resolve failed", Problem: &report.Problem{Code: report.CodeConnection, Message: "no route"}}
	w.toDue()
	s := w.refreshed(r)
	expect(t, s, ptahv1.PhaseFailed, map[string]string{
		"ArtifactResolved": "Unknown/RefreshFailed", "PlanReady": "Unknown/SourceFreshnessUnknown", "InSync": "Unknown/SourceFreshnessUnknown", "Ready": "False/ConnectionFailed",
	})
	if s.Status.Source == nil || s.Status.Source.Digest != before.Source.Digest || s.Status.Target == nil || s.Status.Applied == nil || s.Status.Converged == nil {
		t.Error("evidence was thrown away")
	}
	w.broken = nil
	w.clock.Step(30 * time.Second)
	expect(t, w.refreshed(r), ptahv1.PhaseInSync, map[string]string{"Ready": "True/InSync", "PlanReady": "False/NoChanges"})
	if len(w.applyJobs) != 1 {
		t.Error("the outage led to an Apply")
	}
}

func TestATagIsResolvedAgainByEveryRefresh(t *testing.T) {
	w := newWorld(t)
	r := synced(t, w)
	before := w.get().Status.Source.Digest
	w.artifact = digestOf("artifact-2")
	w.toDue()
	w.mustPass(r)
	if asked := w.get().Status.ActiveOperation.Source.RequestedReference; asked != "oci://registry.example/orders:v1" {
		t.Errorf("the refresh resolves %s, not the tag", asked)
	}
	w.runPods()
	w.mustPass(r)
	s := w.get()
	expect(t, s, ptahv1.PhaseAwaitingApproval, map[string]string{"ArtifactResolved": "True/DigestPinned", "InSync": "False/ScopedChanges"})
	if s.Status.Source.Digest == before || s.Status.Plan.ArtifactDigest != s.Status.Source.Digest || s.Status.Applied.ArtifactDigest != before {
		t.Errorf("source %s, plan for %s, applied %s", s.Status.Source.Digest, s.Status.Plan.ArtifactDigest, s.Status.Applied.ArtifactDigest)
	}
}

func TestAPlanIsNotAppliedWhileRefreshesFail(t *testing.T) {
	w := newWorld(t)
	r := awaiting(t, w)
	w.broken = &result.Error{Code: result.ErrorPtah, Message: "Resolve failed", Problem: &report.Problem{Code: report.CodeConnection, Message: "no route"}}
	w.toDue()
	w.refreshed(r)
	w.approve("first")
	w.mustPass(r)
	if len(w.applyJobs) != 0 {
		t.Error("a plan ran that could not be refreshed")
	}
}

func TestWhatEndsARefreshAndHowItIsCalled(t *testing.T) {
	problem := func(step string, code report.Code) *result.Error {
		return &result.Error{Code: result.ErrorPtah, Message: step + " failed", Problem: &report.Problem{Code: code, Message: "because"}}
	}
	for name, test := range map[string]struct {
		broken *result.Error
		phase  ptahv1.Phase
		want   map[string]string
		retry  bool
	}{
		"the reference does not exist":       {problem("Resolve", report.CodeNotFound), ptahv1.PhaseFailed, map[string]string{"Ready": "False/ResolveFailed", "ArtifactResolved": "False/ResolveFailed"}, true},
		"the registry refuses the password":  {problem("Resolve", report.CodeAuthentication), ptahv1.PhaseFailed, map[string]string{"Ready": "False/AuthenticationFailed", "ArtifactResolved": "False/AuthenticationFailed", "DatabaseReachable": "Unknown/NotYetKnown"}, true},
		"the policy refuses the artifact":    {problem("Verify", report.CodePolicy), ptahv1.PhaseBlocked, map[string]string{"Ready": "False/PolicyRefused", "Stalled": "True/PolicyRefused", "ArtifactVerified": "False/PolicyRefused", "PlanReady": "False/ArtifactUnverified"}, false},
		"the policy file is broken":          {problem("Verify", report.CodeInvalidPolicy), ptahv1.PhaseFailed, map[string]string{"Ready": "False/ConfigurationError", "ArtifactVerified": "False/ConfigurationError"}, true},
		"the artifact is malformed":          {problem("Fetch", report.CodeInvalidArtifact), ptahv1.PhaseFailed, map[string]string{"Ready": "False/ConfigurationError"}, true},
		"the database is away":               {problem("Observe", report.CodeConnection), ptahv1.PhaseFailed, map[string]string{"Ready": "False/ConnectionFailed", "DatabaseReachable": "False/ConnectionFailed"}, true},
		"the database goes away in the plan": {problem("Plan", report.CodeConnection), ptahv1.PhaseFailed, map[string]string{"Ready": "False/ConnectionFailed", "DatabaseReachable": "False/ConnectionFailed"}, true},
		"a protected table would change":     {problem("Plan", report.CodeProtectedTable), ptahv1.PhaseBlocked, map[string]string{"Ready": "False/ProtectedTable", "PlanReady": "False/ProtectedTable", "InSync": "False/ProtectedTable", "ReconciliationFailed": "False/Succeeded"}, false},
		"no complete plan exists":            {problem("Plan", report.CodeUnsupported), ptahv1.PhaseBlocked, map[string]string{"Ready": "False/PlanRefused", "PlanReady": "False/PlanRefused", "DriftDetected": "True/ScopedChanges"}, false},
		"the schema does not load":           {problem("Plan", report.CodeInvalidSchema), ptahv1.PhaseBlocked, map[string]string{"Ready": "False/PlanRefused"}, false},
		"two computations differ":            {problem("Plan", report.CodeNondeterminism), ptahv1.PhaseFailed, map[string]string{"Ready": "False/OperationFailed"}, true},
		"the role may not read":              {problem("Observe", report.CodePermission), ptahv1.PhaseFailed, map[string]string{"Ready": "False/OperationFailed"}, true},
		"the runner speaks another protocol": {&result.Error{Code: result.ErrorProtocolMismatch, Message: "Resolve protocol"}, ptahv1.PhaseFailed, map[string]string{"Ready": "False/RunnerProtocolMismatch"}, true},
		"the policy moved under the Pod":     {&result.Error{Code: result.ErrorPolicyMismatch, Message: "Verify policy"}, ptahv1.PhaseFailed, map[string]string{"Ready": "False/PolicyChanged"}, true},
		"the grant is for another registry":  {&result.Error{Code: result.ErrorInvalidAccess, Message: "Resolve grant"}, ptahv1.PhaseFailed, map[string]string{"Ready": "False/ConfigurationError"}, true},
		"the registry is away":               {problem("Resolve", report.CodeConnection), ptahv1.PhaseFailed, map[string]string{"Ready": "False/ConnectionFailed", "ArtifactResolved": "False/ConnectionFailed"}, true},
		"the registry goes away":             {problem("Verify", report.CodeConnection), ptahv1.PhaseFailed, map[string]string{"Ready": "False/ConnectionFailed", "ArtifactVerified": "False/ConnectionFailed"}, true},
		"the registry refuses to verify":     {problem("Verify", report.CodeAuthentication), ptahv1.PhaseFailed, map[string]string{"Ready": "False/AuthenticationFailed", "ArtifactVerified": "False/AuthenticationFailed"}, true},
		"resolving cannot be run":            {&result.Error{Code: result.ErrorExecution, Message: "Resolve exec"}, ptahv1.PhaseFailed, map[string]string{"ArtifactResolved": "False/OperationFailed"}, true},
		"verifying cannot be run":            {&result.Error{Code: result.ErrorExecution, Message: "Verify exec"}, ptahv1.PhaseFailed, map[string]string{"ArtifactVerified": "False/OperationFailed"}, true},
		"the Secret has no URL":              {&result.Error{Code: result.ErrorMissingTarget, Message: "Observe target"}, ptahv1.PhaseFailed, map[string]string{"DatabaseReachable": "False/ConfigurationError"}, true},
		"an exclusion cannot be meant":       {problem("Plan", report.CodeInvalidInput), ptahv1.PhaseFailed, map[string]string{"PlanReady": "False/ConfigurationError"}, true},
		"the executor cannot be run":         {&result.Error{Code: result.ErrorExecution, Message: "Observe exec"}, ptahv1.PhaseFailed, map[string]string{"Ready": "False/OperationFailed"}, true},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.create(newSchema())
			r := w.reconciler()
			w.broken = test.broken
			s := w.refreshed(r)
			expect(t, s, test.phase, test.want)
			if holder, _ := w.leaseHolder(); holder != "" || len(s.Finalizers) != 0 {
				t.Error("Lease or finalizer stay")
			}
			next := s.Status.NextReconciliationTime.Sub(w.clock.Now())
			if retried := next == 30*time.Second; retried != test.retry {
				t.Errorf("it is read again in %s", next)
			}
			// Once the cause is gone, everything clears.
			w.broken = nil
			w.toDue()
			expect(t, w.refreshed(r), ptahv1.PhaseAwaitingApproval, map[string]string{"Stalled": "False/AwaitingApproval"})
		})
	}
}

func TestAMissingOrUnusablePolicyStartsNothing(t *testing.T) {
	for name, spoil := range map[string]func(*corev1.ConfigMap){
		"another key": func(c *corev1.ConfigMap) { c.Data = map[string]string{"other": "x"} },
		"empty":       func(c *corev1.ConfigMap) { c.Data = map[string]string{"policy.yaml": ""} },
		"too large":   func(c *corev1.ConfigMap) { c.Data = map[string]string{"policy.yaml": strings.Repeat("x", 1<<20+1)} },
		"missing":     nil,
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			config := &corev1.ConfigMap{}
			if err := w.base.Get(context.Background(), client.ObjectKey{Namespace: w.namespace, Name: policyName}, config); err != nil {
				t.Fatal(err)
			}
			var err error
			if spoil == nil {
				err = w.base.Delete(context.Background(), config)
			} else {
				spoil(config)
				err = w.base.Update(context.Background(), config)
			}
			if err != nil {
				t.Fatal(err)
			}
			w.create(newSchema())
			w.mustPass(w.reconciler())
			expect(t, w.get(), ptahv1.PhaseFailed, map[string]string{"Ready": "False/ConfigurationError", "ArtifactVerified": "False/ConfigurationError"})
			sameRequests(t, w.take(), "get PtahSchema", "get ConfigMap", "update PtahSchema/status")
		})
	}
}

func TestARefreshJobThatIsRefusedLeavesNothingHeld(t *testing.T) {
	for name, refusal := range refusals {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.create(newSchema())
			r := w.reconciler()
			w.answer = func(request string) error {
				if request == "create Job refresh" {
					return refusal
				}
				return nil
			}
			w.mustPass(r)
			s := w.get()
			expect(t, s, ptahv1.PhaseFailed, map[string]string{"Ready": "False/PodAdmissionRefused"})
			if holder, _ := w.leaseHolder(); holder != "" || len(s.Finalizers) != 0 || s.Status.ActiveOperation != nil {
				t.Error("something is still held")
			}
			w.answer = nil
			w.toDue()
			expect(t, w.refreshed(r), ptahv1.PhaseAwaitingApproval, nil)
		})
	}
}

func TestARefreshPodWithoutAResultIsRetriedWhole(t *testing.T) {
	w := newWorld(t)
	w.create(newSchema())
	r := w.reconciler()
	w.mute = true
	s := w.refreshed(r)
	expect(t, s, ptahv1.PhaseFailed, map[string]string{"Ready": "False/OperationFailed"})
	w.mute = false
	first := s.Status.LastAttemptTime
	w.clock.Step(30 * time.Second)
	s = w.refreshed(r)
	expect(t, s, ptahv1.PhaseAwaitingApproval, nil)
	if s.Status.LastAttemptTime.Equal(first) {
		t.Error("the attempts look alike")
	}
}

func TestARefreshJobThatVanishedIsCreatedAgainUntilItsTimeIsUp(t *testing.T) {
	w := newWorld(t)
	w.create(newSchema())
	r := w.reconciler()
	w.mustPass(r)
	vanish := func() {
		for _, job := range w.openJobs() {
			if err := w.base.Delete(context.Background(), &job); err != nil {
				t.Fatal(err)
			}
		}
	}
	vanish()
	w.mustPass(r)
	if len(w.openJobs()) != 1 {
		t.Fatal("the Job was not created again")
	}
	vanish()
	w.clock.Step(20 * time.Minute)
	w.mustPass(r)
	expect(t, w.get(), ptahv1.PhaseFailed, map[string]string{"Ready": "False/OperationFailed"})
}

func TestADatabaseInUseByAnotherResourceIsLeftAlone(t *testing.T) {
	w := newWorld(t)
	schema := newSchema()
	w.create(schema)
	in, err := specInputs(w.get())
	if err != nil {
		t.Fatal(err)
	}
	rival := &realm.Leases{Client: w.base, Namespace: w.coordination, Clock: w.clock, Random: strings.NewReader(strings.Repeat("x", 64))}
	if _, err := rival.Acquire(context.Background(), realm.Request{Digest: in.coordination, Holder: realm.Holder("rival"), Duration: time.Minute}); err != nil {
		t.Fatal(err)
	}
	r := w.reconciler()
	answer := w.mustPass(r)
	s := w.get()
	expect(t, s, ptahv1.PhasePending, map[string]string{"Ready": "False/TargetBusy", "Reconciling": "True/TargetBusy", "Stalled": "False/TargetBusy"})
	if got := w.events.take(); !slices.Equal(got, []string{"TargetBusy"}) || s.Status.TargetBusySince == nil {
		t.Errorf("events %v, waiting since %v", got, s.Status.TargetBusySince)
	}
	if s.Status.ActiveOperation != nil || len(s.Finalizers) != 0 || len(w.openJobs()) != 0 || answer.RequeueAfter <= 0 || answer.RequeueAfter > 5*time.Second {
		t.Errorf("it did not wait: %+v, %s", s.Status.ActiveOperation, answer.RequeueAfter)
	}
	w.take()
	w.mustPass(r)
	sameRequests(t, w.take(), "get PtahSchema", "get ConfigMap", "get Lease")
	if got := w.get(); got.ResourceVersion != s.ResourceVersion || len(w.events.take()) != 0 {
		t.Error("waiting on was written down again")
	}
	w.clock.Step(time.Minute)
	w.mustPass(r)
	if len(w.openJobs()) != 1 {
		t.Error("a Lease that lapsed was not taken over")
	}
	expect(t, w.get(), ptahv1.PhaseRefreshing, map[string]string{"Ready": "False/Refreshing", "Reconciling": "True/Refreshing"})
	if since := w.get().Status.TargetBusySince; since != nil {
		t.Errorf("it still waits, since %s", since)
	}
}

func TestAChangedSpecThrowsTheRunningRefreshAway(t *testing.T) {
	w := newWorld(t)
	w.create(newSchema())
	r := w.reconciler()
	w.mustPass(r)
	old := w.openJobs()[0].Name
	w.clock.Step(time.Second)
	w.change(func(s *ptahv1.PtahSchema) { s.Spec.Policy.TransactionMode = "all" })
	w.mustPass(r)
	jobs := w.openJobs()
	if len(jobs) != 1 || jobs[0].Name == old {
		t.Fatalf("%d Jobs, the first is %s, the old one was %s", len(jobs), jobs[0].Name, old)
	}
	if claim := w.get().Status.ActiveOperation; claim == nil || claim.JobName != jobs[0].Name || claim.Generation != 2 {
		t.Errorf("claim %+v", claim)
	}
}

func TestAChangedSpecMakesTheOldAnswerUnknownAtOnce(t *testing.T) {
	w := newWorld(t)
	r := synced(t, w)
	w.change(func(s *ptahv1.PtahSchema) { s.Spec.Policy.Exclude = []ptahv1.ExcludeSelector{"audit.*"} })
	w.mustPass(r)
	expect(t, w.get(), ptahv1.PhaseRefreshing, map[string]string{"InSync": "Unknown/DesiredStateChanged", "Ready": "False/Refreshing", "Reconciling": "True/Refreshing"})
	job := w.openJobs()[0]
	if jobEnv(&job, env.ProvenArtifact) != "" {
		t.Error("a proof under another policy is passed on")
	}
	if jobEnv(&job, env.Exclude) != `["audit.*"]` {
		t.Errorf("exclude is %s", jobEnv(&job, env.Exclude))
	}
}

func TestAConflictIsReadAgainAndNotReported(t *testing.T) {
	w := newWorld(t)
	r := synced(t, w)
	w.toDue()
	w.after = func(request string) {
		if request == "get PtahSchema" {
			w.after = nil
			w.change(func(s *ptahv1.PtahSchema) { s.Labels = map[string]string{"touched": "yes"} })
		}
	}
	answer := w.mustPass(r)
	if answer.RequeueAfter != time.Second || len(w.openJobs()) != 0 {
		t.Errorf("again after %s with %d Jobs", answer.RequeueAfter, len(w.openJobs()))
	}
}

func TestTheNextRefreshStaysOnItsSlot(t *testing.T) {
	w := newWorld(t)
	r := synced(t, w)
	w.toDue()
	var starts []metav1.Time
	for range 5 {
		// The manager is always a little late, and the refresh takes a while.
		w.clock.Step(3 * time.Second)
		w.mustPass(r)
		starts = append(starts, *w.get().Status.LastAttemptTime)
		w.clock.Step(20 * time.Second)
		w.runPods()
		w.mustPass(r)
		w.toDue()
	}
	for i := 2; i < len(starts); i++ {
		if got := starts[i].Sub(starts[i-1].Time); got != 2*time.Minute {
			t.Errorf("start %d is %s after the one before", i, got)
		}
	}
}
