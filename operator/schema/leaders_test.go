package schema

import (
	"fmt"
	"strings"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"

	ptahv1 "ptah.run/ptah/operator/api/v1alpha1"
)

// paused lives a life whose first leader is paused for a while, at the first side of a request that here picks. Another
// leads meanwhile, and the first then goes on with its pass as if nothing had happened: nobody told it that its time was
// over. It returns what went wrong, and whether the leader was paused at all.
func paused(w *world, here func(index int, request string, when moment) bool, pause time.Duration) (problem string, happened bool) {
	l := newLife(w)
	w.pause = func(index int, request string, when moment) {
		if !here(index, request, when) {
			return
		}
		w.pause, happened = nil, true
		l.r = w.reconciler()
		for until := w.clock.Now().Add(pause); !w.clock.Now().After(until) && l.violation == ""; {
			if l.step() {
				w.clock.SetTime(until.Add(time.Second)) // nothing happens until then
			}
		}
	}
	problem = l.run()
	switch {
	case problem != "":
	case w.dbState != desired(w.artifact):
		problem = "the database did not converge"
	case len(w.executed) > 1:
		problem = fmt.Sprintf("%d plans ran", len(w.executed))
	}
	return problem, happened
}

// TestTwoLeaders pauses the leader on both sides of every request of a whole life while another leads: for a moment, for
// less and for more than the dispatch window, and for more than the Lease and the deadline of the Job.
func TestTwoLeaders(t *testing.T) {
	untouched := newLife(newWorld(t))
	if problem := untouched.run(); problem != "" {
		t.Fatalf("the undisturbed life fails: %s", problem)
	}
	total := len(untouched.take())
	for _, pause := range []time.Duration{0, 20 * time.Second, dispatchWindow + time.Minute, 20 * time.Minute} {
		for index := range total {
			for _, side := range []moment{beforeRequest, beforeAnswer} {
				at := ""
				problem, happened := paused(newWorld(t), func(i int, request string, when moment) bool {
					at = request
					return i == index && when == side
				}, pause)
				if problem == "" && !happened {
					problem = "nobody was paused"
				}
				if problem != "" {
					t.Errorf("paused for %s on side %d of request %d (%s): %s", pause, side, index, at, problem)
				}
			}
		}
	}
}

// The Job of a dispatch that was paused arrives when everybody gave it up. It finds out by itself that it is late: with a
// runner that does not look at its deadline, the same life runs two plans.
func TestADispatchThatArrivesTooLateRunsNothing(t *testing.T) {
	for careless, want := range map[bool]string{false: "", true: "2 plans ran"} {
		w := newWorld(t)
		w.careless = func(job *batchv1.Job) bool { return careless && w.late(job) }
		problem, happened := paused(w, func(_ int, request string, when moment) bool {
			return request == "create Job apply" && when == beforeRequest
		}, 20*time.Minute)
		if !happened || (problem == "") != (want == "") || !strings.Contains(problem, want) {
			t.Errorf("careless %t: %q instead of %q", careless, problem, want)
		}
		if s := w.get(); s.Status.Phase != ptahv1.PhaseInSync || len(w.applyJobs) != 2 {
			t.Errorf("phase %s, %d Applies", s.Status.Phase, len(w.applyJobs))
		}
	}
}
