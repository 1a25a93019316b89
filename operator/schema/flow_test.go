package schema

import (
	"testing"
	"time"

	ptahv1 "ptah.run/ptah/operator/api/v1alpha1"
)

func TestASchemaConvergesFromAnEmptyDatabaseAfterAnApproval(t *testing.T) {
	w := newWorld(t)
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
