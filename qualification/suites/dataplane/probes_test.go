package dataplane

import (
	"errors"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"ptah.run/ptah/operator/api/v1alpha1"
	"ptah.run/ptah/qualification/suites/bench"
)

// errorUnless turns a comparison into the error that Need takes.
func errorUnless(held bool, message string) error {
	if held {
		return nil
	}
	return errors.New(message)
}

// The probes of the suite are tested on broken input, so that an assertion made with them can fail.

func TestProbes(t *testing.T) {
	at := func(second int) time.Time { return time.Date(2026, 1, 1, 0, 0, second, 0, time.UTC) }
	state := func(second int, began time.Time, kind v1alpha1.OperationType, id string) bench.Transition {
		transition := bench.Transition{At: at(second)}
		if id != "" {
			transition.Status.ActiveOperation = &v1alpha1.ActiveOperationStatus{Type: kind, ID: id, StartedAt: metav1.NewTime(began)}
		}
		return transition
	}
	seen := []bench.Transition{state(0, at(0), "", ""), state(2, at(1), v1alpha1.OperationRefresh, "a"), state(3, at(1), v1alpha1.OperationRefresh, "a"),
		state(4, at(0), "", ""), state(6, at(6), v1alpha1.OperationApply, "b"), state(8, at(8), v1alpha1.OperationRefresh, "c")}
	if spans := operations(seen, v1alpha1.OperationRefresh); len(spans) != 1 || spans[0] != (span{at(1), at(5)}) {
		t.Errorf("one whole refresh lies between second 1 and 5, got %v", spans)
	}
	if spans := operations(seen, v1alpha1.OperationApply); len(spans) != 1 || spans[0] != (span{at(6), at(9)}) {
		t.Errorf("one Apply lies between second 6 and 9, got %v", spans)
	}
	if spaced(map[string]time.Time{"a": at(0), "b": at(10), "c": at(12)}, 9*time.Second) {
		t.Error("attempts two seconds apart passed as spaced by nine")
	}
	if !spaced(map[string]time.Time{"a": at(0), "b": at(10)}, 9*time.Second) {
		t.Error("attempts ten seconds apart did not pass as spaced by nine")
	}
	named := &v1alpha1.PtahSchema{}
	named.Status.Conditions = []metav1.Condition{{Message: `column "note" differs`}}
	if !mentions(named, "note") || mentions(named, "other") {
		t.Error("a message that names an object was not recognised, or another was")
	}
}
