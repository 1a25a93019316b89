package dataplane

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"ptah.run/ptah/operator/api/v1alpha1"
)

// The probes of the suite are tested on broken input, so that an assertion made with them can fail.
func TestProbes(t *testing.T) {
	at := func(second int) time.Time { return time.Date(2026, 1, 1, 0, 0, second, 0, time.UTC) }
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
