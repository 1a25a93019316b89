package schema

import (
	"testing"

	"k8s.io/apimachinery/pkg/api/meta"

	ptahv1 "ptah.run/ptah/operator/api/v1alpha1"
	"ptah.run/ptah/operator/operation/env"
)

// onMySQL is a resource of MySQL that leaves the transaction mode to the engine.
func onMySQL(schema *ptahv1.PtahSchema) {
	schema.Spec.Target.Engine, schema.Spec.Policy.TransactionMode = ptahv1.EngineMySQL, ""
}

func leftOut(schema *ptahv1.PtahSchema) { schema.Spec.Policy.TransactionMode = "" }

// What a resource that names no transaction mode runs in is decided by its engine, told to the Pods and shown.
func TestTheEngineDecidesTheTransactionModeThatAResourceLeavesOut(t *testing.T) {
	for name, test := range map[string]struct {
		shape         func(*ptahv1.PtahSchema)
		dialect, mode string
	}{
		"PostgreSQL takes file": {leftOut, "postgresql", "file"},
		"MySQL takes none":      {onMySQL, "mysql", "none"},
	} {
		t.Run(name, func(t *testing.T) {
			everyWorld(t, func(t *testing.T, w *world) {
				w.create(newSchema(test.shape))
				r := w.reconciler()
				w.mustPass(r)
				told := func(what string) {
					t.Helper()
					jobs := w.openJobs()
					if len(jobs) == 0 {
						t.Fatalf("there is no Job of %s", what)
					}
					if dialect, mode := jobEnv(&jobs[0], env.ExpectedDialect), jobEnv(&jobs[0], env.TransactionMode); dialect != test.dialect || mode != test.mode {
						t.Errorf("%s is told %s in mode %q", what, dialect, mode)
					}
				}
				told("the refresh")
				w.runPods()
				w.mustPass(r)
				s := w.get()
				expect(t, s, ptahv1.PhaseAwaitingApproval, map[string]string{"EngineSupported": "True/SupportedEngine"})
				if s.Status.Plan.TransactionMode != test.mode {
					t.Errorf("the status shows mode %q", s.Status.Plan.TransactionMode)
				}
				w.approve("first")
				w.mustPass(r)
				told("the Apply")
				if policy := w.get().Status.ActiveOperation.Policy; policy.TransactionMode != test.mode {
					t.Errorf("the proof would run in mode %q", policy.TransactionMode)
				}
				w.runPods()
				w.mustPass(r)
				told("the proof")
				w.runPods()
				w.mustPass(r)
				expect(t, w.get(), ptahv1.PhaseInSync, map[string]string{"Ready": "True/InSync"})
			})
		})
	}
}

// A plan that waits stays when somebody writes down what the engine means anyway, and goes when the mode is another.
func TestAWrittenModeRetiresAPlanOnlyWhereItIsAnother(t *testing.T) {
	for name, test := range map[string]struct {
		shape  func(*ptahv1.PtahSchema)
		write  string
		retire bool
	}{
		"none for MySQL is what it means": {onMySQL, "none", false},
		"file for PostgreSQL is, too":     {leftOut, "file", false},
		"all for PostgreSQL is another":   {leftOut, "all", true},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			r := awaiting(t, w, test.shape)
			before := w.get().Status.Plan
			w.change(func(s *ptahv1.PtahSchema) { s.Spec.Policy.TransactionMode = test.write })
			w.mustPass(r)
			w.runPods()
			w.mustPass(r)
			after := w.get().Status.Plan
			if after == nil || (after.Name != before.Name) != test.retire || after.TransactionMode != test.write {
				t.Errorf("plan %+v after %+v", after, before)
			}
			if ready := meta.FindStatusCondition(w.get().Status.Conditions, ptahv1.ConditionPlanReady); ready.Status != yes {
				t.Errorf("PlanReady %+v", ready)
			}
		})
	}
}
