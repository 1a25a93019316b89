package admission

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	jsonpatch "gopkg.in/evanphx/json-patch.v4"
	admissionv1 "k8s.io/api/admission/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"ptah.run/ptah/operator/api/v1alpha1"
)

// stamped applies the webhook's answer as the API server does.
func stamped(t *testing.T, request admission.Request) (v1alpha1.PtahSchemaApproval, []string) {
	t.Helper()
	response := (&stamp{clock: clocktesting.NewFakePassiveClock(start)}).Handle(context.Background(), request)
	if !response.Allowed {
		t.Fatalf("refused: %+v", response.Result)
	}
	paths := []string{}
	for _, operation := range response.Patches {
		paths = append(paths, operation.Path)
	}
	data, err := json.Marshal(response.Patches)
	if err != nil {
		t.Fatal(err)
	}
	patch, err := jsonpatch.DecodePatch(data)
	if err != nil {
		t.Fatal(err)
	}
	changed, err := patch.Apply(request.Object.Raw)
	if err != nil {
		t.Fatal(err)
	}
	var approval v1alpha1.PtahSchemaApproval
	if err := json.Unmarshal(changed, &approval); err != nil {
		t.Fatal(err)
	}
	return approval, paths
}

func TestTheAuthenticatedIdentityReplacesWhateverWasTyped(t *testing.T) {
	for name, typed := range map[string]string{
		"nothing":        `{}`,
		"another person": `{"approver":{"username":"root","uid":"0","groups":["system:masters"]},"approvedAt":"2001-01-01T00:00:00Z","mutationRequestUID":"mine"}`,
		"half an answer": `{"approver":{"groups":["x"]}}`,
		"nulls":          `{"approver":null,"approvedAt":null,"mutationRequestUID":null}`,
		"another type":   `{"approver":"root","approvedAt":7}`,
	} {
		t.Run(name, func(t *testing.T) {
			request := admission.Request{AdmissionRequest: admissionv1.AdmissionRequest{
				UID: "request-uid", Operation: admissionv1.Create, UserInfo: alice,
				Object: runtime.RawExtension{Raw: []byte(`{"apiVersion":"operator.ptah.run/v1alpha1","kind":"PtahSchemaApproval","metadata":{"name":"go"},"spec":` + typed + `}`)},
			}}
			approval, paths := stamped(t, request)
			spec := approval.Spec
			if spec.Approver.Username != "alice" || spec.Approver.UID != "alice-uid" || !slices.Equal(spec.Approver.Groups, alice.Groups) {
				t.Errorf("approver %+v", spec.Approver)
			}
			if !spec.ApprovedAt.Time.Equal(start) || spec.MutationRequestUID != "request-uid" {
				t.Errorf("approved at %s by request %s", spec.ApprovedAt, spec.MutationRequestUID)
			}
			for _, path := range paths {
				if !strings.HasPrefix(path, "/spec/approver") && path != "/spec/approvedAt" && path != "/spec/mutationRequestUID" {
					t.Errorf("the webhook also changes %s", path)
				}
			}
		})
	}
}

func TestAtMost64GroupsAreRecorded(t *testing.T) {
	for _, count := range []int{0, 64, 65, 200} {
		w := newWorld(t)
		w.user.Groups = nil
		for i := range count {
			w.user.Groups = append(w.user.Groups, fmt.Sprintf("group-%d", i))
		}
		approval, _ := stamped(t, w.request(t, admissionv1.Create))
		if got := len(approval.Spec.Approver.Groups); got != min(count, 64) {
			t.Errorf("%d groups are recorded of %d", got, count)
		}
		// What is stamped is what is validated, whatever the number.
		w.approval = &approval
		if response := w.validate(t, w.request(t, admissionv1.Create)); !response.Allowed {
			t.Errorf("%d groups: %s", count, response.Result.Message)
		}
	}
}

func TestWhatCannotBeStampedIsRefused(t *testing.T) {
	for name, raw := range map[string]string{"no spec": `{"metadata":{}}`, "a spec that is none": `{"spec":7}`, "no JSON": `nothing`} {
		request := admission.Request{AdmissionRequest: admissionv1.AdmissionRequest{Operation: admissionv1.Create, Object: runtime.RawExtension{Raw: []byte(raw)}}}
		if response := (&stamp{clock: clocktesting.NewFakePassiveClock(start)}).Handle(context.Background(), request); response.Allowed {
			t.Errorf("%s: allowed", name)
		}
	}
}
