package subject

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"ptah.run/ptah/operator/api/v1alpha1"
	"ptah.run/ptah/qualification/suites/bench"
)

func TestOnlyWholeOperationsOfTheAskedTypeAreSpans(t *testing.T) {
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
	if spans := Operations(seen, v1alpha1.OperationRefresh); len(spans) != 1 || spans[0] != (Span{at(1), at(5)}) {
		t.Errorf("one whole refresh lies between second 1 and 5, got %v", spans)
	}
	if spans := Operations(seen, v1alpha1.OperationApply); len(spans) != 1 || spans[0] != (Span{at(6), at(9)}) {
		t.Errorf("one Apply lies between second 6 and 9, got %v", spans)
	}
}
