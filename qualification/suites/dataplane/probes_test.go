package dataplane

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"ptah.run/ptah/operator/api/v1alpha1"
	"ptah.run/ptah/qualification/lab"
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

func TestARefusalIsOneForItsReason(t *testing.T) {
	resource := schema.GroupResource{Resource: "ptahschemas"}
	for name, test := range map[string]struct {
		err  error
		want bool
	}{
		"should take a refusal that says it":            {apierrors.NewForbidden(resource, "orders", errors.New("spec.policy is wrong")), true},
		"should not take a refusal for another reason":  {apierrors.NewForbidden(resource, "orders", errors.New("a quota is used up")), false},
		"should not take an answer that nobody gave":    {apierrors.NewInternalError(errors.New("failed calling webhook: spec.policy is wrong")), false},
		"should not take an object that does not exist": {apierrors.NewNotFound(resource, "spec.policy is wrong"), false},
		"should not take what was accepted":             {nil, false},
	} {
		if refusal(test.err, "spec.policy is wrong") != test.want {
			t.Errorf("%s: %v", name, test.err)
		}
	}
}

func TestRequestsOfARegistryAreCountedByNamespace(t *testing.T) {
	log := []string{
		`172.18.0.3 - - [30/Nov/2026:02:00:00 +0000] "GET /v2/ HTTP/1.1" 401 87 "" "ptah"`,
		`172.18.0.3 - lab [30/Nov/2026:02:00:00 +0000] "GET /v2/schemas/qualify-a/manifests/v1 HTTP/1.1" 200 87 "" "ptah"`,
		`172.18.0.3 - lab [30/Nov/2026:02:00:00 +0000] "HEAD /v2/schemas/qualify-a/blobs/sha256:1 HTTP/1.1" 200 87 "" "ptah"`,
		`172.18.0.3 - lab [30/Nov/2026:02:00:00 +0000] "GET /v2/schemas/qualify-ab/manifests/v1 HTTP/1.1" 200 87 "" "ptah"`,
		`2026/11/30 02:00:00 http: TLS handshake error from 172.18.0.3:4: remote error: tls: bad certificate`,
	}
	if requests(log, "qualify-a") != 2 || requests(log, "qualify-b") != 0 || len(refusedHandshakes(log)) != 1 {
		t.Errorf("%d, %d, %v", requests(log, "qualify-a"), requests(log, "qualify-b"), refusedHandshakes(log))
	}
}

func TestALargeVersionHoldsItsLetters(t *testing.T) {
	for _, letters := range []int{2 * largeTables * largeColumns, 8_000_001} {
		for engine, want := range map[string]int{lab.PostgreSQL: 1, lab.MySQL: largeTables * largeColumns} {
			sql := large(letters)[engine]
			comments := strings.Split(sql, "'")
			held := 0
			for i := 1; i < len(comments); i += 2 {
				held += len(comments[i])
				if len(comments[i]) == 0 || engine == lab.MySQL && len(comments[i]) > longest {
					t.Fatalf("%s: a comment of %d letters", engine, len(comments[i]))
				}
			}
			if held != letters || len(comments)/2 != want {
				t.Errorf("%s: %d letters in %d comments, want %d in %d", engine, held, len(comments)/2, letters, want)
			}
		}
	}
}

func TestAValueIsSetOrRemovedByItsPath(t *testing.T) {
	object := map[string]any{"spec": map[string]any{"a": map[string]any{"b": "c"}}}
	if err := errors.Join(set(object, "spec.a.b", nil), set(object, "spec.d", int64(7))); err != nil || fmt.Sprint(object) != "map[spec:map[a:map[] d:7]]" {
		t.Errorf("%v, %v", object, err)
	}
}
