package schema

import (
	"context"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"

	ptahv1 "ptah.run/ptah/operator/api/v1alpha1"
	"ptah.run/ptah/operator/operation/result"
	"ptah.run/ptah/operator/plan/report"
)

const otherName = "orders-by-mistake"

func shared(s *ptahv1.PtahSchema) { s.Spec.Target.SharedRealm = true }

func inRealm(s *ptahv1.PtahSchema) {
	s.Spec.Target.CoordinationKey, s.Spec.Target.RealmRef = "", &ptahv1.RealmReference{Name: "orders"}
}

// rival creates another resource, of the same database unless changes say otherwise.
func (w *world) rival(changes ...func(*ptahv1.PtahSchema)) client.ObjectKey {
	w.t.Helper()
	schema := newSchema(append([]func(*ptahv1.PtahSchema){func(s *ptahv1.PtahSchema) { s.Name = otherName }}, changes...)...)
	w.create(schema)
	return client.ObjectKeyFromObject(schema)
}

// grantRealm creates or replaces PtahRealm orders.
func (w *world) grantRealm(engine ptahv1.DatabaseEngine, sharing ptahv1.RealmSharing, namespaces ...ptahv1.RealmNamespace) {
	w.t.Helper()
	realm := &ptahv1.PtahRealm{ObjectMeta: metav1.ObjectMeta{Name: "orders"}}
	if err := client.IgnoreNotFound(w.base.Delete(context.Background(), realm)); err != nil {
		w.t.Fatal(err)
	}
	realm = &ptahv1.PtahRealm{
		ObjectMeta: metav1.ObjectMeta{Name: "orders"},
		Spec:       ptahv1.PtahRealmSpec{Engine: engine, Namespaces: namespaces, Sharing: sharing},
	}
	if err := w.base.Create(context.Background(), realm); err != nil {
		w.t.Fatal(err)
	}
}

func (w *world) remove(key client.ObjectKey) {
	w.t.Helper()
	if err := w.base.Delete(context.Background(), w.getOther(key)); err != nil {
		w.t.Fatal(err)
	}
}

func blockedBy(t *testing.T, s *ptahv1.PtahSchema, reason ptahv1.Reason, says string) {
	t.Helper()
	name := string(reason)
	expect(t, s, ptahv1.PhaseBlocked, map[string]string{
		"Ready": "False/" + name, "Stalled": "True/" + name, "Reconciling": "False/" + name, "PlanReady": "False/" + name, "InSync": "Unknown/" + name,
		"DriftDetected": "Unknown/" + name, "DatabaseReachable": "Unknown/" + name, "ApprovalRequired": "False/" + name, "Applying": "False/NotRequired",
	})
	for _, c := range s.Status.Conditions {
		if c.Type == ptahv1.ConditionReady && !strings.Contains(c.Message, says) {
			t.Errorf("Ready says %q, not %q", c.Message, says)
		}
	}
	if s.Status.ActiveOperation != nil || s.Status.Plan != nil || len(s.Finalizers) != 0 {
		t.Errorf("a blocked resource holds a claim, a plan or a finalizer: %+v", s.Status)
	}
}

func TestEveryClaimantIsRefusedUntilOneLeavesOrAllAgree(t *testing.T) {
	for name, leave := range map[string]func(*world, client.ObjectKey){
		"the other is deleted": func(w *world, other client.ObjectKey) { w.remove(other) },
		"the other is suspended": func(w *world, other client.ObjectKey) {
			w.changeOther(other, func(s *ptahv1.PtahSchema) { s.Spec.Suspend = true })
		},
		"the other names another database": func(w *world, other client.ObjectKey) {
			w.changeOther(other, func(s *ptahv1.PtahSchema) { s.Spec.Target.CoordinationKey = "orders-test" })
		},
		"both declare a shared realm": func(w *world, other client.ObjectKey) {
			w.changeOther(other, shared)
			w.change(shared)
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			r := synced(t, w)
			other := w.rival()
			for _, key := range []client.ObjectKey{other, w.key()} {
				answer := w.mustPassOther(r, key)
				blockedBy(t, w.getOther(key), ptahv1.ReasonRealmConflict, "2 resources claim this database and 2 of them do not set spec.target.sharedRealm")
				sameRequests(t, w.take(), "get PtahSchema", "update PtahSchema/status")
				if answer.RequeueAfter != time.Minute {
					t.Errorf("%s looks again after %s", key.Name, answer.RequeueAfter)
				}
				w.mustPassOther(r, key)
				sameRequests(t, w.take(), "get PtahSchema")
			}
			if len(w.openJobs()) != 0 || w.get().Status.NextReconciliationTime != nil {
				t.Error("something is running or scheduled")
			}
			leave(w, other)
			w.take()
			w.mustPass(r)
			expect(t, w.get(), ptahv1.PhaseRefreshing, map[string]string{"Ready": "False/Refreshing", "Stalled": "False/Refreshing", "PlanReady": "Unknown/NotYetKnown", "InSync": "Unknown/NotYetKnown"})
			w.runPods()
			w.mustPass(r)
			s := w.get()
			expect(t, s, ptahv1.PhaseInSync, map[string]string{"Ready": "True/InSync", "DriftDetected": "False/ScopedConverged", "DatabaseReachable": "True/Observed"})
			if s.Status.Applied == nil {
				t.Error("the conflict made the resource forget what it applied")
			}
		})
	}
}

func TestADeclarationOfOneClaimantIsNotEnough(t *testing.T) {
	w := newWorld(t)
	r := synced(t, w)
	other := w.rival()
	w.mustPass(r)
	w.mustPassOther(r, other)
	w.change(shared)
	for _, key := range []client.ObjectKey{w.key(), other} {
		w.mustPassOther(r, key)
		blockedBy(t, w.getOther(key), ptahv1.ReasonRealmConflict, "2 resources claim this database and 1 of them do not set spec.target.sharedRealm")
	}
}

func TestAContestedResourceLooksAgainAtLeastEveryMinute(t *testing.T) {
	for interval, want := range map[time.Duration]time.Duration{
		30 * time.Second: 30 * time.Second, time.Minute: time.Minute, time.Minute + time.Second: time.Minute, 24 * time.Hour: time.Minute,
	} {
		w := newWorld(t)
		w.create(newSchema(func(s *ptahv1.PtahSchema) { s.Spec.Interval = metav1.Duration{Duration: interval} }))
		w.rival()
		if got := w.mustPass(w.reconciler()).RequeueAfter; got != want {
			t.Errorf("with an interval of %s it looks again after %s", interval, got)
		}
	}
}

func TestAConflictEndsARefreshThatRuns(t *testing.T) {
	w := newWorld(t)
	r := synced(t, w)
	w.toDue()
	w.mustPass(r)
	w.rival()
	w.take()
	w.mustPass(r)
	blockedBy(t, w.get(), ptahv1.ReasonRealmConflict, "2 resources")
	if holder, _ := w.leaseHolder(); len(w.openJobs()) != 0 || holder != "" {
		t.Errorf("%d Jobs run, the Lease is held by %q", len(w.openJobs()), holder)
	}
	sameRequests(t, w.take(), "get PtahSchema", "delete Job", "update PtahSchema/status", "update Lease", "patch PtahSchema", "update PtahSchema/status")
}

func TestAConflictDoesNotAbandonAnApply(t *testing.T) {
	w := newWorld(t)
	r := awaiting(t, w)
	w.approve("first")
	w.mustPass(r)
	other := w.rival()
	w.mustPassOther(r, other)
	blockedBy(t, w.getOther(other), ptahv1.ReasonRealmConflict, "2 resources")
	w.mustPass(r)
	expect(t, w.get(), ptahv1.PhaseApplying, nil)
	w.runPods()
	w.mustPass(r)
	expect(t, w.get(), ptahv1.PhaseVerifyingConvergence, nil)
	w.mustPass(r)
	w.runPods()
	w.mustPass(r)
	s := w.get()
	if s.Status.Applied == nil || s.Status.PendingObservation != nil {
		t.Error("the Apply was not proven")
	}
	blockedBy(t, s, ptahv1.ReasonRealmConflict, "2 resources")
	if holder, _ := w.leaseHolder(); holder != "" || len(w.openJobs()) != 0 || len(w.executed) != 1 {
		t.Errorf("holder %q, %d Jobs, %d plans ran", holder, len(w.openJobs()), len(w.executed))
	}
}

func TestAConflictRetiresAnApplyOfWhichNothingRuns(t *testing.T) {
	w := newWorld(t)
	r := awaiting(t, w)
	w.approve("first")
	w.refuseApplyJob(refusals["namespace terminating"])
	w.mustPass(r)
	if claim := w.get().Status.ActiveOperation; claim == nil || claim.DispatchStarted || claim.RetryNotBefore == nil {
		t.Fatalf("the situation is not what the test is about: %+v", claim)
	}
	w.answer = nil
	w.rival()
	w.clock.Step(time.Minute)
	w.mustPass(r)
	w.mustPass(r)
	blockedBy(t, w.get(), ptahv1.ReasonRealmConflict, "2 resources")
	if holder, _ := w.leaseHolder(); holder != "" || len(w.applyJobs) != 0 {
		t.Errorf("holder %q, Applies %v", holder, w.applyJobs)
	}
}

func TestAConflictUsesNoApprovalAndRetiresThePlan(t *testing.T) {
	w := newWorld(t)
	r := awaiting(t, w)
	w.approve("first")
	other := w.rival()
	w.mustPass(r)
	blockedBy(t, w.get(), ptahv1.ReasonRealmConflict, "2 resources")
	if got := w.approvalCondition("first", ptahv1.ConditionStale); got != "PlanNoLongerCurrent" || len(w.applyJobs) != 0 {
		t.Errorf("approval stale %q, Applies %v", got, w.applyJobs)
	}
	if events := w.events.take(); !slices.Contains(events, "PlanStale") {
		t.Errorf("events %v", events)
	}
	w.remove(other)
	expect(t, w.refreshed(r), ptahv1.PhaseAwaitingApproval, map[string]string{"ApprovalRequired": "True/AwaitingApproval"})
	if len(w.applyJobs) != 0 {
		t.Error("an approval from before the conflict was used")
	}
}

func TestAConflictEndsTheRetriesOfAFailure(t *testing.T) {
	w := newWorld(t)
	w.create(newSchema())
	r := w.reconciler()
	w.broken = &result.Error{Code: result.ErrorPtah, Message: "Observe failed", Problem: &report.Problem{Code: report.CodeConnection, Message: "away"}}
	w.refreshed(r)
	w.rival()
	w.mustPass(r)
	s := w.get()
	blockedBy(t, s, ptahv1.ReasonRealmConflict, "2 resources")
	if got := condition(s, ptahv1.ConditionReconciliationFailed); got != "Unknown/RealmConflict" || s.Status.FailedAttempts != 0 {
		t.Errorf("ReconciliationFailed is %s after %d attempts", got, s.Status.FailedAttempts)
	}
}

// What holds a resource also ends the retries of a failure, and says so.
func TestARefusalByRealmOrEngineEndsTheRetriesOfAFailure(t *testing.T) {
	for name, test := range map[string]struct {
		change func(*ptahv1.PtahSchema)
		want   string
	}{
		"a realm that does not exist": {func(s *ptahv1.PtahSchema) { s.Spec.Target.RealmRef.Name = "other" }, "RealmNotAuthorized"},
		"an engine without an implementation": {func(s *ptahv1.PtahSchema) {
			s.Spec.Target.Engine, s.Spec.Target.CoordinationKey, s.Spec.Target.RealmRef = "Oracle", "orders", nil
		}, "UnsupportedEngine"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.grantRealm(ptahv1.EnginePostgreSQL, ptahv1.RealmExclusive, testNamespace)
			w.create(newSchema(inRealm))
			r := w.reconciler()
			w.broken = &result.Error{Code: result.ErrorPtah, Message: "Observe failed", Problem: &report.Problem{Code: report.CodeConnection, Message: "away"}}
			w.refreshed(r)
			w.change(test.change)
			w.mustPass(r)
			expect(t, w.get(), ptahv1.PhaseBlocked, map[string]string{"Ready": "False/" + test.want, "ReconciliationFailed": "Unknown/" + test.want})
			if attempts := w.get().Status.FailedAttempts; attempts != 0 {
				t.Errorf("%d attempts are still counted", attempts)
			}
		})
	}
}

func TestARealmThatDoesNotAdmitTheResourceBlocksItUntilItDoes(t *testing.T) {
	for name, test := range map[string]struct {
		grant func(*world)
		says  string
	}{
		"there is no realm":                 {func(*world) {}, "PtahRealm orders does not exist"},
		"the realm is for another engine":   {func(w *world) { w.grantRealm(ptahv1.EngineMySQL, ptahv1.RealmShared, testNamespace) }, "PtahRealm orders is for MySQL"},
		"the realm lists another namespace": {func(w *world) { w.grantRealm(ptahv1.EnginePostgreSQL, ptahv1.RealmShared, "team-z") }, "does not list namespace team-a"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			test.grant(w)
			w.create(newSchema(inRealm))
			r := w.reconciler()
			answer := w.mustPass(r)
			s := w.get()
			blockedBy(t, s, ptahv1.ReasonRealmNotAuthorized, test.says)
			if strings.Contains(condition(s, "Ready"), "team-z") || answer.RequeueAfter != time.Minute {
				t.Errorf("again after %s", answer.RequeueAfter)
			}
			sameRequests(t, w.take(), "get PtahSchema", "update PtahSchema/status")
			w.mustPass(r)
			sameRequests(t, w.take(), "get PtahSchema")
			w.grantRealm(ptahv1.EnginePostgreSQL, ptahv1.RealmExclusive, testNamespace)
			expect(t, w.refreshed(r), ptahv1.PhaseAwaitingApproval, map[string]string{"Stalled": "False/AwaitingApproval"})
		})
	}
}

func TestARefreshInARealmTakesNoMoreRequestsThanByKey(t *testing.T) {
	w := newWorld(t)
	w.grantRealm(ptahv1.EnginePostgreSQL, ptahv1.RealmExclusive, testNamespace)
	r := synced(t, w, inRealm)
	w.toDue()
	expect(t, w.refreshed(r), ptahv1.PhaseInSync, nil)
	sameRequests(t, w.take(),
		"get PtahSchema", "get ConfigMap", "update Lease", "patch PtahSchema", "update PtahSchema/status", "create Job refresh",
		"get PtahSchema", "get PtahResultRecord", "update PtahSchema/status", "update Lease", "patch PtahSchema")
}

func TestANamespaceThatLeavesARealmEndsWhatItBeganAndBeginsNothing(t *testing.T) {
	for name, begin := range map[string]func(*testing.T, *world) *Reconciler{
		"a refresh": func(t *testing.T, w *world) *Reconciler {
			w.create(newSchema(inRealm))
			r := w.reconciler()
			w.mustPass(r)
			return r
		},
		"an Apply": func(t *testing.T, w *world) *Reconciler {
			r := awaiting(t, w, inRealm)
			w.approve("first")
			w.mustPass(r)
			return r
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.grantRealm(ptahv1.EnginePostgreSQL, ptahv1.RealmExclusive, testNamespace)
			r := begin(t, w)
			running := w.openJobs()
			w.grantRealm(ptahv1.EnginePostgreSQL, ptahv1.RealmExclusive, "team-z")
			w.mustPass(r)
			if jobs := w.openJobs(); len(jobs) != 1 || jobs[0].Name != running[0].Name {
				t.Errorf("%d Jobs run", len(jobs))
			}
			for range 3 {
				w.runPods()
				w.mustPass(r)
			}
			s := w.get()
			blockedBy(t, s, ptahv1.ReasonRealmNotAuthorized, "does not list namespace team-a")
			if s.Status.PendingObservation != nil || len(w.executed) > 0 && s.Status.Applied == nil {
				t.Error("what was begun was not ended")
			}
		})
	}
}

// Two namespaces that share a realm take turns: never are two Jobs of one database open at the same time.
func TestTwoNamespacesShareOneDatabaseOnlyInTurns(t *testing.T) {
	w := newWorld(t)
	w.grantRealm(ptahv1.EnginePostgreSQL, ptahv1.RealmExclusive, testNamespace, "team-b")
	w.create(newSchema(inRealm, shared))
	policy := newPolicy()
	policy.Namespace = "team-b"
	w.create(policy)
	other := w.rival(inRealm, shared, func(s *ptahv1.PtahSchema) { s.Namespace = "team-b" })
	r := w.reconciler()
	for _, key := range []client.ObjectKey{w.key(), other} {
		w.mustPassOther(r, key)
		s := w.getOther(key)
		blockedBy(t, s, ptahv1.ReasonRealmConflict, "2 resources claim the database of PtahRealm orders, which admits one at a time")
		for _, c := range s.Status.Conditions {
			if key == other && strings.Contains(c.Message, testNamespace) || key != other && (strings.Contains(c.Message, "team-b") || strings.Contains(c.Message, otherName)) {
				t.Errorf("a message names another tenant: %s", c.Message)
			}
		}
	}
	w.grantRealm(ptahv1.EnginePostgreSQL, ptahv1.RealmShared, testNamespace, "team-b")
	w.mustPass(r)
	answer := w.mustPassOther(r, other)
	if jobs := w.openJobs(); len(jobs) != 1 || jobs[0].Namespace != testNamespace {
		t.Fatalf("%d Jobs work on one database", len(jobs))
	}
	if answer.RequeueAfter == 0 || answer.RequeueAfter > 5*time.Second {
		t.Errorf("the other waits for %s", answer.RequeueAfter)
	}
	expect(t, w.getOther(other), ptahv1.PhasePending, map[string]string{"Ready": "False/TargetBusy", "Reconciling": "True/TargetBusy"})
	w.runPods()
	w.mustPass(r)
	w.mustPassOther(r, other)
	if jobs := w.openJobs(); len(jobs) != 1 || jobs[0].Namespace != "team-b" {
		t.Fatalf("%d Jobs are open when it is the other's turn", len(jobs))
	}
	w.runPods()
	w.mustPassOther(r, other)
	for _, key := range []client.ObjectKey{w.key(), other} {
		expect(t, w.getOther(key), ptahv1.PhaseAwaitingApproval, nil)
	}
	if first, second := w.get().Status.Target.CoordinationDigest, w.getOther(other).Status.Target.CoordinationDigest; first != second || first == "" {
		t.Errorf("digests %s and %s", first, second)
	}
}

func TestOnlyAChangedClaimWakesTheOthers(t *testing.T) {
	now := metav1.Now()
	for name, test := range map[string]struct {
		change func(*ptahv1.PtahSchema)
		wakes  bool
	}{
		"a status":                 {func(s *ptahv1.PtahSchema) { s.Status.Phase = ptahv1.PhaseFailed }, false},
		"a policy":                 {func(s *ptahv1.PtahSchema) { s.Spec.Policy.AllowDestructive = true }, false},
		"a declaration":            {shared, true},
		"a suspension":             {func(s *ptahv1.PtahSchema) { s.Spec.Suspend = true }, true},
		"a deletion that waits":    {func(s *ptahv1.PtahSchema) { s.DeletionTimestamp = &now }, true},
		"another key":              {func(s *ptahv1.PtahSchema) { s.Spec.Target.CoordinationKey = "other" }, true},
		"a realm":                  {inRealm, true},
		"an engine nobody knows":   {func(s *ptahv1.PtahSchema) { s.Spec.Target.Engine = "Oracle" }, true},
		"another of the same name": {func(s *ptahv1.PtahSchema) { s.UID = "another" }, true},
	} {
		after := newSchema(test.change)
		if got := claimChanged.Update(event.UpdateEvent{ObjectOld: newSchema(), ObjectNew: after}); got != test.wakes {
			t.Errorf("%s: wakes %t", name, got)
		}
	}
	if !claimChanged.Create(event.CreateEvent{Object: newSchema()}) || claimChanged.Create(event.CreateEvent{Object: newSchema(), IsInInitialList: true}) {
		t.Error("a new resource wakes the others, one of the initial list does not")
	}
	if !claimChanged.Delete(event.DeleteEvent{Object: newSchema()}) {
		t.Error("a deleted resource wakes the others")
	}
}

func TestTheCacheKeepsWhatTheCensusLooksAtAndNothingElse(t *testing.T) {
	now := metav1.Now()
	for name, change := range map[string]func(*ptahv1.PtahSchema){
		"a claim": func(*ptahv1.PtahSchema) {}, "a claim on a realm": inRealm, "a declaration": shared,
		"a suspension": func(s *ptahv1.PtahSchema) { s.Spec.Suspend = true },
		"a deletion":   func(s *ptahv1.PtahSchema) { s.DeletionTimestamp = &now },
	} {
		whole := newSchema(change, func(s *ptahv1.PtahSchema) {
			s.UID, s.Generation, s.ResourceVersion = "uid", 3, "7"
			s.Annotations = map[string]string{"note": "long"}
			s.Status.Plan = &ptahv1.CurrentPlanStatus{Size: 1}
		})
		stored, err := Cached(whole)
		kept, ok := stored.(*ptahv1.PtahSchema)
		if err != nil || !ok {
			t.Fatalf("%s: %T, %v", name, stored, err)
		}
		if !sameClaim(whole, kept) || !reflect.DeepEqual(claimant(whole), claimant(kept)) || client.ObjectKeyFromObject(whole) != client.ObjectKeyFromObject(kept) || kept.Generation != 3 || kept.ResourceVersion != "7" {
			t.Errorf("%s: %+v", name, kept)
		}
		if kept.Status.Plan != nil || kept.Annotations != nil || kept.Spec.Desired.OCIRef != "" || whole.Status.Plan == nil {
			t.Errorf("%s: the cache holds what nobody reads", name)
		}
	}
	if other, err := Cached(&ptahv1.PtahRealm{}); err != nil || other == nil {
		t.Errorf("another kind: %v, %v", other, err)
	}
}

func TestAClaimWakesItsRivalsAndNobodyElse(t *testing.T) {
	w := newWorld(t)
	w.create(newSchema())
	other := w.rival()
	w.create(newSchema(func(s *ptahv1.PtahSchema) { s.Name, s.Spec.Target.CoordinationKey = "billing", "billing" }))
	w.create(newSchema(inRealm, func(s *ptahv1.PtahSchema) { s.Name = "by-realm" }))
	r := w.reconciler()
	got := r.rivals(context.Background(), w.get())
	if len(got) != 1 || got[0].NamespacedName != other {
		t.Errorf("a claim wakes %v", got)
	}
	w.grantRealm(ptahv1.EnginePostgreSQL, ptahv1.RealmShared, testNamespace)
	got = r.claimantsOfRealm(context.Background(), &ptahv1.PtahRealm{ObjectMeta: metav1.ObjectMeta{Name: "orders", UID: "realm"}})
	if len(got) != 1 || got[0].Name != "by-realm" {
		t.Errorf("a realm wakes %v", got)
	}
	if got := r.rivals(context.Background(), newSchema(func(s *ptahv1.PtahSchema) { s.Spec.Target.Engine = "Oracle" })); len(got) != 0 {
		t.Errorf("a claim on nothing wakes %v", got)
	}
}
