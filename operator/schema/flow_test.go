package schema

import (
	"testing"
	"time"

	ptahv1 "ptah.run/ptah/operator/api/v1alpha1"
)

func TestASchemaConvergesFromAnEmptyDatabaseAfterAnApproval(t *testing.T) {
	everyWorld(t, flow)
}

func flow(t *testing.T, w *world) {
	w.create(newSchema())
	r := w.reconciler()
	s := w.refreshed(r)
	t.Log(s.Status.Phase, len(w.requests), w.requests)
	w.take()
	w.approve("first")
	w.mustPass(r)
	t.Log(w.get().Status.Phase, w.requests)
	w.runPods()
	w.mustPass(r)
	t.Log(w.get().Status.Phase, w.requests)
	w.runPods()
	w.mustPass(r)
	s = w.get()
	t.Log(s.Status.Phase, condition(s, ptahv1.ConditionReady), len(w.requests), w.take(), w.events.take())
	w.clock.Step(4 * time.Minute)
	s = w.refreshed(r)
	t.Log(s.Status.Phase, condition(s, ptahv1.ConditionReady), len(w.requests), w.take(), w.events.take())
}
