package schema

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"sigs.k8s.io/controller-runtime/pkg/client"

	ptahv1 "ptah.run/ptah/operator/api/v1alpha1"
	"ptah.run/ptah/operator/operation/result"
	"ptah.run/ptah/operator/plan/report"
)

func (w *world) suspend(suspended bool) {
	w.change(func(s *ptahv1.PtahSchema) { s.Spec.Suspend = suspended })
}

func TestASuspendedResourceDropsItsRefreshAndStartsNothing(t *testing.T) {
	everyWorld(t, func(t *testing.T, w *world) {
		w.create(newSchema())
		r := w.reconciler()
		w.mustPass(r)
		w.suspend(true)
		w.take()
		w.mustPass(r)
		s := w.get()
		expect(t, s, ptahv1.PhaseSuspended, map[string]string{"Ready": "False/Suspended", "Suspended": "True/Requested", "Reconciling": "False/Suspended"})
		if holder, _ := w.leaseHolder(); holder != "" || s.Status.ActiveOperation != nil || len(s.Finalizers) != 0 || len(w.openJobs()) != 0 {
			t.Error("the refresh was not dropped")
		}
		sameRequests(t, w.take(), "get PtahSchema", "delete Job", "update PtahSchema/status", "update Lease", "patch PtahSchema")
		w.clock.Step(time.Hour)
		if answer := w.mustPass(r); answer.RequeueAfter != 0 {
			t.Errorf("a suspended resource comes back after %s", answer.RequeueAfter)
		}
		sameRequests(t, w.take(), "get PtahSchema")
		w.suspend(false)
		expect(t, w.refreshed(r), ptahv1.PhaseAwaitingApproval, map[string]string{"Suspended": "False/Active"})
	})
}

func TestASuspendedResourceUsesNoApproval(t *testing.T) {
	w := newWorld(t)
	r := awaiting(t, w)
	w.approve("first")
	w.suspend(true)
	w.mustPass(r)
	if len(w.applyJobs) != 0 {
		t.Error("an approval was used under suspension")
	}
}

func TestSuspensionDuringAnApplyKeepsTheDatabaseReserved(t *testing.T) {
	w := newWorld(t)
	r := awaiting(t, w)
	w.approve("first")
	w.mustPass(r)
	w.suspend(true)
	w.mustPass(r)
	if claim := w.get().Status.ActiveOperation; claim == nil || claim.Type != ptahv1.OperationApply {
		t.Fatal("the Apply is not supervised to its end")
	}
	w.runPods()
	answer := w.mustPass(r)
	s := w.get()
	expect(t, s, ptahv1.PhaseSuspended, map[string]string{"Ready": "False/Suspended"})
	if s.Status.PendingObservation == nil || len(w.openJobs()) != 0 || answer.RequeueAfter != renewEvery(s.Status.PendingObservation.LeaseDurationSeconds) {
		t.Errorf("pending %+v, %d Jobs, again in %s", s.Status.PendingObservation, len(w.openJobs()), answer.RequeueAfter)
	}
	for range 10 {
		w.clock.Step(answer.RequeueAfter)
		w.take()
		w.mustPass(r)
		sameRequests(t, w.take(), "get PtahSchema", "update Lease")
	}
	if holder, epoch := w.leaseHolder(); holder == "" || epoch != s.Status.PendingObservation.LeaseEpoch {
		t.Error("the Lease was not kept")
	}
	w.suspend(false)
	w.mustPass(r)
	w.runPods()
	w.mustPass(r)
	if s = w.get(); s.Status.Applied == nil {
		t.Errorf("the Apply is not credited after the resource was resumed: phase %s", s.Status.Phase)
	}
}

func (w *world) delete() {
	w.t.Helper()
	if err := w.base.Delete(context.Background(), w.get()); err != nil {
		w.t.Fatal(err)
	}
}

func (w *world) gone() bool {
	w.t.Helper()
	err := w.base.Get(context.Background(), client.ObjectKey{Namespace: w.namespace, Name: testName}, &ptahv1.PtahSchema{})
	if err != nil && !apierrors.IsNotFound(err) {
		w.t.Fatal(err)
	}
	return err != nil
}

func TestAnIdleResourceIsDeletedWithoutTheManager(t *testing.T) {
	everyWorld(t, func(t *testing.T, w *world) {
		r := synced(t, w)
		w.delete()
		if !w.gone() {
			t.Error("a finalizer keeps an idle resource")
		}
		w.mustPass(r)
		sameRequests(t, w.take(), "get PtahSchema")
	})
}

func TestADeletedResourceDoesNotWaitForARefresh(t *testing.T) {
	everyWorld(t, func(t *testing.T, w *world) {
		w.create(newSchema())
		r := w.reconciler()
		w.mustPass(r)
		w.delete()
		if w.gone() {
			t.Fatal("nothing gave the Lease back")
		}
		w.take()
		w.mustPass(r)
		if !w.gone() {
			t.Error("the deletion waits for a refresh")
		}
		sameRequests(t, w.take(), "get PtahSchema", "update Lease", "patch PtahSchema")
		if holder, _ := w.leaseHolder(); holder != "" {
			t.Error("the Lease is still held")
		}
	})
}

func TestADeletedResourceWaitsForItsApplyAndForOneReading(t *testing.T) {
	everyWorld(t, func(t *testing.T, w *world) {
		r := awaiting(t, w)
		w.approve("first")
		w.mustPass(r)
		w.delete()
		w.mustPass(r)
		if w.gone() {
			t.Fatal("the resource went while its Apply runs")
		}
		w.runPods()
		w.mustPass(r)
		if w.gone() || w.get().Status.PendingObservation == nil {
			t.Fatal("the resource went before its Apply was read back")
		}
		w.runPods()
		w.mustPass(r)
		if !w.gone() {
			t.Errorf("the resource stays: %+v", w.get().Status.Phase)
		}
		if holder, _ := w.leaseHolder(); holder != "" || !slices.Contains(w.events.take(), "OperationCompleted") {
			t.Error("the Apply was not settled")
		}
	})
}

func TestADeletedResourceDoesNotWaitForAProofThatFails(t *testing.T) {
	for name, prevent := range map[string]func(*world){
		"the database is away": func(w *world) {
			w.broken = &result.Error{Code: result.ErrorPtah, Message: "Observe failed", Problem: &report.Problem{Code: report.CodeConnection, Message: "away"}}
		},
		"the namespace is going": func(w *world) {
			w.answer = func(request string) error {
				if request == "create Job refresh" {
					return refusals["namespace terminating"]
				}
				return nil
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			r := awaiting(t, w)
			w.approve("first")
			w.mustPass(r)
			w.delete()
			w.runPods()
			prevent(w)
			for range 3 {
				if w.gone() {
					break
				}
				w.mustPass(r)
				if !w.gone() {
					w.runPods()
				}
			}
			if !w.gone() {
				t.Fatalf("the resource stays: %s", condition(w.get(), ptahv1.ConditionReady))
			}
			if holder, _ := w.leaseHolder(); holder != "" {
				t.Error("the Lease is still held")
			}
			if !slices.Contains(w.events.take(), "ApplyOutcomeUnknown") {
				t.Error("nothing says that the outcome is not known")
			}
		})
	}
}

// upgrade is the same manager with another executor.
func (w *world) upgrade(image string, seed int64) *Reconciler {
	r := w.reconciler()
	r.Config.ExecutorImage = "registry.example/ptah/executor@sha256:" + strings.Repeat(image, 64)
	r.Random = strings.NewReader(strings.Repeat(string(rune('A'+seed)), 64))
	return r
}

func TestAnotherExecutorRetiresThePlanAndItsApproval(t *testing.T) {
	w := newWorld(t)
	awaiting(t, w)
	before := w.get().Status
	w.approve("first")
	r := w.upgrade("d", 1)
	w.mustPass(r)
	s := w.get()
	expect(t, s, ptahv1.PhaseRefreshing, map[string]string{"Ready": "False/Refreshing", "InSync": "Unknown/ExecutionBindingChanged"})
	if s.Status.ExecutionBinding.Epoch == before.ExecutionBinding.Epoch || s.Status.Plan != nil || len(w.applyJobs) != 0 {
		t.Error("the old epoch still authorises something")
	}
	if events := w.events.take(); !slices.Contains(events, "ExecutionBindingChanged") || !slices.Contains(events, "PlanStale") {
		t.Errorf("events %v", events)
	}
	w.runPods()
	w.mustPass(r)
	s = w.get()
	expect(t, s, ptahv1.PhaseAwaitingApproval, nil)
	if s.Status.Plan.Fingerprint == before.Plan.Fingerprint || s.Status.Plan.ContentDigest != before.Plan.ContentDigest {
		t.Error("the new plan is not bound to the new epoch")
	}
	if got := w.approvalCondition("first", ptahv1.ConditionStale); got != "PlanNoLongerCurrent" {
		t.Errorf("the approval is stale: %q", got)
	}
	// Back to the very same executor: the epoch is a third one, and the first plan stays retired.
	middle := s.Status.ExecutionBinding.Epoch
	r = w.reconciler()
	r.Random = strings.NewReader(strings.Repeat("Z", 64))
	w.mustPass(r)
	if got := w.get().Status.ExecutionBinding.Epoch; got == middle || got == before.ExecutionBinding.Epoch {
		t.Errorf("epoch %s was used before", got)
	}
}

func TestAnotherManagerWithTheSameExecutorChangesNothing(t *testing.T) {
	w := newWorld(t)
	awaiting(t, w)
	before := w.get()
	r := w.reconciler()
	r.Config.Manager = ptahv1.ManagerRecord{ControllerImage: "newer", ControllerRevision: "r2", RunnerImage: "newer"}
	r.Config.RunnerImage = "registry.example/ptah/runner@sha256:" + strings.Repeat("b", 64)
	w.mustPass(r)
	if got := w.get(); got.ResourceVersion != before.ResourceVersion {
		t.Error("a manager that changes no compared component wrote something")
	}
}

func TestAnotherExecutorDuringARefreshDiscardsItsResult(t *testing.T) {
	w := newWorld(t)
	w.create(newSchema())
	w.mustPass(w.reconciler())
	old := w.openJobs()[0].Name
	w.clock.Step(time.Second)
	r := w.upgrade("d", 2)
	w.mustPass(r)
	s := w.get()
	if jobs := w.openJobs(); len(jobs) != 1 || jobs[0].Name == old || s.Status.ActiveOperation.ExecutionBindingID != s.Status.ExecutionBinding.Epoch {
		t.Errorf("claim %+v", s.Status.ActiveOperation)
	}
	w.runPods()
	w.mustPass(r)
	expect(t, w.get(), ptahv1.PhaseAwaitingApproval, nil)
}

func TestAnotherExecutorDuringAnApplyMakesItsOutcomeUnknown(t *testing.T) {
	w := newWorld(t)
	r := awaiting(t, w)
	w.approve("first")
	w.mustPass(r)
	running := w.openJobs()[0]
	document := w.runPod(&running) // it took its plan and runs
	job := running.Name
	r = w.upgrade("d", 3)
	answer := w.mustPass(r)
	s := w.get()
	expect(t, s, ptahv1.PhaseVerifyingConvergence, map[string]string{"Ready": "False/ApplyOutcomeUnknown"})
	pending := s.Status.PendingObservation
	if pending == nil || pending.ApplyJobName != job || pending.ObserveAfter == nil || len(w.openJobs()) != 1 || answer.RequeueAfter == 0 {
		t.Fatalf("pending %+v", pending)
	}
	w.results[publicationOf(w, &running)] = document
	w.endJob(&running, false)
	w.mustPass(r)
	w.runPods() // the proof
	w.mustPass(r)
	s = w.get()
	if s.Status.Applied != nil || condition(s, ptahv1.ConditionInSync) != "True/ConvergedAfterUnknownOutcome" {
		t.Errorf("applied %v, InSync %s", s.Status.Applied, condition(s, ptahv1.ConditionInSync))
	}
	if len(w.executed) != 1 {
		t.Errorf("%d plans ran", len(w.executed))
	}
}

func TestAStatusOfANewerManagerIsNeitherReadNorWritten(t *testing.T) {
	for name, change := range map[string]func(*ptahv1.PtahSchemaStatus){
		"binding": func(s *ptahv1.PtahSchemaStatus) {
			s.ExecutionBinding.ControllerStateVersion = ptahv1.ControllerStateVersion + 1
		},
		"plan": func(s *ptahv1.PtahSchemaStatus) { s.Plan.ControllerStateVersion = ptahv1.ControllerStateVersion + 1 },
		"pending proof": func(s *ptahv1.PtahSchemaStatus) {
			s.PendingObservation = &ptahv1.PendingObservationStatus{Plan: ptahv1.CurrentPlanStatus{ControllerStateVersion: 99}}
		},
		"applied": func(s *ptahv1.PtahSchemaStatus) {
			s.Applied = &ptahv1.AppliedStatus{ControllerStateVersion: ptahv1.ControllerStateVersion + 1}
		},
		"malformed": func(s *ptahv1.PtahSchemaStatus) { s.Plan.ControllerStateVersion = -1 },
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			r := awaiting(t, w)
			w.approve("first")
			s := w.get()
			change(&s.Status)
			if err := w.base.Status().Update(context.Background(), s); err != nil {
				t.Fatal(err)
			}
			w.clock.Step(time.Hour)
			if answer := w.mustPass(r); answer.RequeueAfter != 0 {
				t.Errorf("it comes back after %s", answer.RequeueAfter)
			}
			sameRequests(t, w.take(), "get PtahSchema")
		})
	}
}

func TestAnEngineThatIsNotImplementedIsAStateAndNotAFailure(t *testing.T) {
	everyWorld(t, func(t *testing.T, w *world) {
		w.create(newSchema(func(s *ptahv1.PtahSchema) { s.Spec.Target.Engine = "Oracle" }))
		r := w.reconciler()
		if answer := w.mustPass(r); answer.RequeueAfter != 0 {
			t.Errorf("it comes back after %s", answer.RequeueAfter)
		}
		s := w.get()
		expect(t, s, ptahv1.PhaseBlocked, map[string]string{
			"EngineSupported": "False/UnsupportedEngine", "Ready": "False/UnsupportedEngine", "Stalled": "True/UnsupportedEngine", "Reconciling": "False/UnsupportedEngine",
			"DatabaseReachable": "Unknown/UnsupportedEngine", "DriftDetected": "Unknown/UnsupportedEngine", "InSync": "Unknown/UnsupportedEngine",
			"PlanReady": "False/UnsupportedEngine", "ApprovalRequired": "False/UnsupportedEngine", "Applying": "False/NotRequired",
		})
		if s.Status.NextReconciliationTime != nil || len(s.Finalizers) != 0 {
			t.Error("something is scheduled")
		}
		w.take()
		w.mustPass(r)
		sameRequests(t, w.take(), "get PtahSchema")
		if message := meta.FindStatusCondition(s.Status.Conditions, ptahv1.ConditionReady).Message; message != "Engine Oracle is not implemented; set spec.target.engine to PostgreSQL or MySQL." {
			t.Errorf("message %q", message)
		}
		w.change(func(s *ptahv1.PtahSchema) { s.Spec.Target.Engine = ptahv1.EnginePostgreSQL })
		expect(t, w.refreshed(r), ptahv1.PhaseAwaitingApproval, map[string]string{"EngineSupported": "True/SupportedEngine", "Stalled": "False/AwaitingApproval"})
	})
}

func TestAStrayFinalizerIsRemovedWithTheLeaseItStandsFor(t *testing.T) {
	w := newWorld(t)
	w.create(newSchema())
	r := w.reconciler()
	w.fault = func(_ int, request string) fault {
		if request == "update PtahSchema/status" {
			return killedBefore
		}
		return healthy
	}
	if _, err := w.pass(r); err == nil {
		t.Fatal("the fault did not bite")
	}
	w.fault = nil
	s := w.get()
	if holder, _ := w.leaseHolder(); len(s.Finalizers) != 1 || holder == "" {
		t.Fatal("the situation is not what the test is about")
	}
	w.suspend(true)
	w.mustPass(w.reconciler())
	s = w.get()
	if holder, _ := w.leaseHolder(); len(s.Finalizers) != 0 || holder != "" {
		t.Errorf("finalizers %v, holder %q", s.Finalizers, holder)
	}
}

func TestTheLeaseOfAnOldCoordinationKeyIsGivenBack(t *testing.T) {
	w := newWorld(t)
	w.create(newSchema())
	r := w.reconciler()
	w.mustPass(r)
	first, _ := w.leaseHolder()
	if first == "" {
		t.Fatal("there is no Lease")
	}
	w.clock.Step(time.Second)
	w.change(func(s *ptahv1.PtahSchema) { s.Spec.Target.CoordinationKey = "elsewhere" })
	for range 3 {
		w.mustPass(r)
		w.runPods()
		w.clock.Step(time.Second)
	}
	s := w.get()
	expect(t, s, ptahv1.PhaseAwaitingApproval, nil)
	if holder, _ := w.leaseHolder(); holder != "" || s.Status.PendingLockRelease != nil || len(s.Finalizers) != 0 {
		t.Errorf("holder %q, owed %+v, finalizers %v", holder, s.Status.PendingLockRelease, s.Finalizers)
	}
}

func TestASpecChangedDuringAnApplyWaitsBehindTheProof(t *testing.T) {
	w := newWorld(t)
	r := awaiting(t, w)
	w.approve("first")
	w.mustPass(r)
	first := w.artifact
	w.change(func(s *ptahv1.PtahSchema) { s.Spec.Desired.OCIRef = "oci://registry.example/orders:v2" })
	w.runPods()
	w.mustPass(r)
	s := w.get()
	claim := s.Status.ActiveOperation
	if claim == nil || claim.ProofOf == "" || claim.Source.RequestedReference != "oci://registry.example/orders@"+first {
		t.Fatalf("the proof does not read what was applied: %+v", claim)
	}
	w.runPods()
	w.mustPass(r)
	s = w.get()
	if s.Status.Applied == nil || s.Status.Applied.ArtifactDigest != first {
		t.Errorf("the Apply is not credited: %+v", s.Status.Applied)
	}
	expect(t, s, ptahv1.PhaseRefreshing, map[string]string{"Ready": "False/Refreshing", "InSync": "Unknown/DesiredStateChanged"})
	if claim := s.Status.ActiveOperation; claim == nil || claim.ProofOf != "" || claim.Source.RequestedReference != "oci://registry.example/orders:v2" {
		t.Errorf("the new spec is not read: %+v", claim)
	}
}

func TestAProofThatFindsTheLeaseLostBeginsAgain(t *testing.T) {
	w := newWorld(t)
	r := awaiting(t, w)
	w.approve("first")
	w.mustPass(r)
	w.runPods()
	w.mustPass(r)
	before := w.get().Status.ActiveOperation.ID
	w.freeLease()
	w.runPods()
	r = w.reconciler() // it cannot vouch for a Lease that another process took
	w.mustPass(r)
	s := w.get()
	if s.Status.PendingObservation == nil || s.Status.Applied != nil || s.Status.ActiveOperation != nil && s.Status.ActiveOperation.ID == before {
		t.Fatalf("a proof under a broken Lease counts: %+v", s.Status.ActiveOperation)
	}
	for range 3 {
		w.clock.Step(time.Second)
		w.mustPass(r)
		w.runPods()
	}
	expect(t, w.get(), ptahv1.PhaseInSync, map[string]string{"Ready": "True/InSync"})
}
