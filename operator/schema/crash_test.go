package schema

import (
	"context"
	"fmt"
	"math/rand"
	"strings"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"sigs.k8s.io/controller-runtime/pkg/client"

	ptahv1 "ptah.run/ptah/operator/api/v1alpha1"
	"ptah.run/ptah/operator/realm"
)

// maxSteps is far more than any interrupted life of a resource takes.
const maxSteps = 400

// life drives a resource from an empty database to InSync, whatever is done to the manager on the way. A person
// approves whatever waits. It returns how many approvals that took.
type life struct {
	*world
	r         *Reconciler
	approvals int
	rival     *realm.Leases
	last      *ptahv1.PtahSchema
	violation string
}

func newLife(w *world) *life {
	w.create(newSchema())
	l := &life{world: w, r: w.reconciler()}
	l.rival = &realm.Leases{Client: w.base, Namespace: w.coordination, Clock: w.clock, Random: rand.New(rand.NewSource(7))}
	return l
}

// check compares what is stored now with what was stored before the last request.
func (l *life) check() {
	now := l.get()
	claim, pending := now.Status.ActiveOperation, now.Status.PendingObservation
	if claim != nil && claim.Type == ptahv1.OperationApply && pending != nil {
		l.violation = "an Apply claim and its outcome are both stored"
	}
	if l.last != nil {
		if before := l.last.Status.ActiveOperation; before != nil && before.Type == ptahv1.OperationApply && before.DispatchStarted {
			kept := claim != nil && claim.ID == before.ID || pending != nil && pending.ApplyOperationID == before.ID
			if !kept {
				l.violation = "a dispatched Apply left neither claim nor outcome"
			}
		}
	}
	for id, jobs := range l.applyJobs {
		if len(jobs) > 1 {
			l.violation = fmt.Sprintf("claim %s created %d Apply Jobs", id, len(jobs))
		}
	}
	if consumed := l.consumed(); len(l.executed) > consumed {
		l.violation = fmt.Sprintf("%d plans ran on %d approvals", len(l.executed), consumed)
	}
	l.last = now
}

func (l *life) consumed() int {
	list := &ptahv1.PtahSchemaApprovalList{}
	if err := l.base.List(context.Background(), list, client.InNamespace(l.namespace)); err != nil {
		l.t.Fatal(err)
	}
	count := 0
	for _, approval := range list.Items {
		if meta.IsStatusConditionTrue(approval.Status.Conditions, ptahv1.ConditionConsumed) {
			count++
		}
	}
	return count
}

// tryRival lets another resource ask for the database. It must not get it while an Apply may run or is unproven.
func (l *life) tryRival() {
	in, err := specInputs(l.last)
	if err != nil {
		l.t.Fatal(err)
	}
	holder := realm.Holder("rival")
	grant, err := l.rival.Acquire(context.Background(), realm.Request{Digest: in.coordination, Holder: holder, Duration: time.Minute})
	if err != nil || !grant.Held {
		return
	}
	now := l.get()
	if claim := now.Status.ActiveOperation; claim != nil && claim.Type == ptahv1.OperationApply && claim.DispatchStarted {
		l.violation = "another resource got the database while an Apply may run"
	}
	if now.Status.PendingObservation != nil {
		l.violation = "another resource got the database before the Apply was proven"
	}
	if err := l.rival.Release(context.Background(), in.coordination, holder, grant.Epoch); err != nil {
		l.t.Fatal(err)
	}
}

func (l *life) settled() bool {
	s := l.last
	holder, _ := l.leaseHolder()
	return s.Status.Phase == ptahv1.PhaseInSync && s.Status.ActiveOperation == nil && s.Status.PendingObservation == nil &&
		s.Status.PendingLockRelease == nil && len(s.Finalizers) == 0 && holder == "" && len(l.openJobs()) == 0
}

// run lives until everything is settled. It returns "" or what went wrong.
func (l *life) run() string {
	l.last = l.get()
	for range maxSteps {
		settled := l.step()
		if l.violation != "" {
			return l.violation
		}
		if settled {
			return ""
		}
	}
	return fmt.Sprintf("not settled after %d steps: phase %s, %s", maxSteps, l.last.Status.Phase, condition(l.last, ptahv1.ConditionReady))
}

// step is one pass of the leader and what happens in the world until the next. It says whether everything is settled.
func (l *life) step() bool {
	leader := l.r
	answer, err := l.pass(leader)
	if l.isDead() {
		l.r = l.reconciler()
	}
	if l.violation == "" {
		l.check()
	}
	if l.violation == "" {
		l.tryRival()
	}
	if l.violation != "" || l.settled() {
		return true
	}
	l.people()
	wake := answer.RequeueAfter
	if len(l.openJobs()) > 0 {
		l.runPods()
		wake = time.Second
	}
	if err != nil || wake == 0 || l.r != leader {
		wake = time.Second
	}
	l.clock.Step(wake)
	return false
}

// people approve what waits.
func (l *life) people() {
	if condition(l.last, ptahv1.ConditionApprovalRequired) != "True/AwaitingApproval" {
		return
	}
	list := &ptahv1.PtahSchemaApprovalList{}
	if err := l.base.List(context.Background(), list, client.InNamespace(l.namespace)); err != nil {
		l.t.Fatal(err)
	}
	if sortApprovals(list.Items, l.last, l.last.Status.Plan).chosen == nil {
		l.approvals++
		l.approve(fmt.Sprintf("approval-%d", l.approvals))
	}
}

func (w *world) isDead() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.dead
}

// TestEveryRequestMayFailOrBeTheLast injects one fault at every request of a whole life: lost before it arrives, its
// answer lost, the manager killed before it, the manager killed after it.
func TestEveryRequestMayFailOrBeTheLast(t *testing.T) {
	untouched := newLife(newWorld(t))
	if problem := untouched.run(); problem != "" {
		t.Fatalf("the undisturbed life fails: %s", problem)
	}
	total := len(untouched.take())
	t.Logf("%d requests in an undisturbed life", total)
	for kind, name := range map[fault]string{
		lostRequest: "request lost", lostAnswer: "answer lost", killedBefore: "killed before", killedAfter: "killed after",
	} {
		for index := range total {
			w := newWorld(t)
			at := ""
			w.fault = func(i int, request string) fault {
				if i != index {
					return healthy
				}
				at = request
				return kind
			}
			l := newLife(w)
			problem := l.run()
			if problem == "" && w.dbState != desired(w.artifact) {
				problem = "the database did not converge"
			}
			if problem == "" && len(w.executed) != 1 {
				problem = fmt.Sprintf("%d plans ran", len(w.executed))
			}
			if problem != "" {
				t.Errorf("%s at request %d (%s): %s", name, index, at, problem)
			}
		}
	}
}

// TestRandomFaultsNeverBreakAnInvariant injects many faults into each life. The seed of a failing one is printed.
func TestRandomFaultsNeverBreakAnInvariant(t *testing.T) {
	lives, wanted := 250, 1000
	if testing.Short() {
		lives, wanted = 20, 50
	}
	lost, killed := 0, 0
	for seed := range lives {
		w := newWorld(t)
		random := rand.New(rand.NewSource(int64(seed)))
		faults := 0
		w.fault = func(int, string) fault {
			if faults >= 12 || random.Intn(6) != 0 {
				return healthy
			}
			faults++
			what := fault(1 + random.Intn(4))
			if what == killedBefore || what == killedAfter {
				killed++
			} else {
				lost++
			}
			return what
		}
		problem := newLife(w).run()
		if problem == "" && w.dbState != desired(w.artifact) {
			problem = "the database did not converge"
		}
		if problem != "" {
			t.Errorf("seed %d: %s", seed, problem)
		}
	}
	t.Logf("seeds 0 to %d: the manager was killed %d times and lost %d requests or answers", lives-1, killed, lost)
	if killed < wanted {
		t.Errorf("the manager was killed only %d times, not %d", killed, wanted)
	}
}

// TestTheInvariantsAreSeenWhenTheyBreak sabotages the API server so that each invariant breaks once.
func TestTheInvariantsAreSeenWhenTheyBreak(t *testing.T) {
	for name, test := range map[string]struct {
		sabotage func(*world)
		want     string
	}{
		"an approval is not used up": {
			func(w *world) {
				w.answer = func(request string) error {
					if request == "update PtahSchemaApproval/status" {
						return errSwallowed
					}
					return nil
				}
			}, "1 plans ran on 0 approvals",
		},
		"a claim creates two Jobs": {
			func(w *world) {
				w.after = func(request string) {
					if request == "create Job apply" {
						for id := range w.applyJobs {
							w.applyJobs[id] = append(w.applyJobs[id], "second")
						}
					}
				}
			}, "created 2 Apply Jobs",
		},
		"the Lease is lost during an Apply": {
			func(w *world) {
				w.after = func(request string) {
					if request == "create Job apply" {
						w.freeLease()
					}
				}
			}, "another resource got the database",
		},
		"an outcome is not stored": {
			func(w *world) {
				w.after = func(request string) {
					s := w.get()
					if request == "update PtahSchema/status" && s.Status.PendingObservation != nil {
						s.Status.PendingObservation, s.Status.ActiveOperation = nil, nil
						if err := w.base.Status().Update(context.Background(), s); err != nil {
							w.t.Fatal(err)
						}
					}
				}
			}, "neither claim nor outcome",
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			test.sabotage(w)
			if got := newLife(w).run(); !strings.Contains(got, test.want) {
				t.Errorf("the life ended in %q, not in %q", got, test.want)
			}
		})
	}
}

// freeLease takes the realm Lease away from whoever holds it, as a person could.
func (w *world) freeLease() {
	w.t.Helper()
	list := &coordinationv1.LeaseList{}
	if err := w.base.List(context.Background(), list, client.InNamespace(w.coordination)); err != nil {
		w.t.Fatal(err)
	}
	for _, lease := range list.Items {
		lease.Spec.HolderIdentity = nil
		if err := w.base.Update(context.Background(), &lease); err != nil {
			w.t.Fatal(err)
		}
	}
}
