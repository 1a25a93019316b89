package admission

import (
	"context"
	"encoding/json"
	"maps"
	"net/http"
	"strings"
	"testing"

	jsonpatch "gopkg.in/evanphx/json-patch.v4"
	admissionv1 "k8s.io/api/admission/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"ptah.run/ptah/operator/api/v1alpha1"
)

const (
	specA = `"spec":{"interval":"10m","policy":{"apply":"OnApproval"}}`
	specB = `"spec":{"interval":"11m","policy":{"apply":"OnApproval"}}`
)

var bob = authenticationv1.UserInfo{Username: "bob", UID: "bob-uid"}

// recordedBy are the annotations that say that a user made a generation.
func recordedBy(username, uid, generation string) map[string]string {
	return map[string]string{v1alpha1.AnnotationWriterName: username, v1alpha1.AnnotationWriterUID: uid, v1alpha1.AnnotationWriterGeneration: generation}
}

func sentSchema(t *testing.T, generation, spec string, annotations map[string]string) []byte {
	t.Helper()
	written, err := json.Marshal(annotations)
	if err != nil {
		t.Fatal(err)
	}
	return []byte(`{"kind":"PtahSchema","metadata":{"name":"orders","generation":` + generation + `,"annotations":` + string(written) + `},` + spec + `}`)
}

// written applies the webhook's answer as the API server does, and returns the annotations and the paths that changed.
func written(t *testing.T, request admission.Request) (annotations map[string]string, paths []string) {
	t.Helper()
	response := author{}.Handle(context.Background(), request)
	if !response.Allowed {
		t.Fatalf("refused: %+v", response.Result)
	}
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
	var object struct {
		Metadata struct {
			Annotations map[string]string `json:"annotations"`
		} `json:"metadata"`
	}
	if err := json.Unmarshal(changed, &object); err != nil {
		t.Fatal(err)
	}
	return object.Metadata.Annotations, paths
}

func TestWhoWroteTheSpecIsRecordedWhateverWasTyped(t *testing.T) {
	forged := recordedBy("carol", "carol-uid", "9")
	for name, test := range map[string]struct {
		operation   admissionv1.Operation
		user        authenticationv1.UserInfo
		before, now []byte
		want        map[string]string
	}{
		"a creation":                         {admissionv1.Create, alice, nil, sentSchema(t, "1", specA, nil), recordedBy("alice", "alice-uid", "1")},
		"a creation with a forged record":    {admissionv1.Create, alice, nil, sentSchema(t, "1", specA, forged), recordedBy("alice", "alice-uid", "1")},
		"a creation without a generation":    {admissionv1.Create, alice, nil, sentSchema(t, "0", specA, nil), recordedBy("alice", "alice-uid", "1")},
		"a change of the spec":               {admissionv1.Update, bob, sentSchema(t, "4", specA, recordedBy("alice", "alice-uid", "4")), sentSchema(t, "4", specB, recordedBy("alice", "alice-uid", "4")), recordedBy("bob", "bob-uid", "5")},
		"a change of the spec with a forged": {admissionv1.Update, bob, sentSchema(t, "4", specA, recordedBy("alice", "alice-uid", "4")), sentSchema(t, "4", specB, forged), recordedBy("bob", "bob-uid", "5")},
		"a forged record alone":              {admissionv1.Update, bob, sentSchema(t, "4", specA, recordedBy("alice", "alice-uid", "4")), sentSchema(t, "4", specA, forged), recordedBy("alice", "alice-uid", "4")},
		"a removed record":                   {admissionv1.Update, bob, sentSchema(t, "4", specA, recordedBy("alice", "alice-uid", "4")), sentSchema(t, "4", specA, nil), recordedBy("alice", "alice-uid", "4")},
		"a record where none was":            {admissionv1.Update, bob, sentSchema(t, "4", specA, nil), sentSchema(t, "4", specA, forged), map[string]string{}},
		"a user without a UID":               {admissionv1.Update, authenticationv1.UserInfo{Username: "bob"}, sentSchema(t, "4", specA, recordedBy("alice", "alice-uid", "4")), sentSchema(t, "4", specB, recordedBy("alice", "alice-uid", "4")), map[string]string{v1alpha1.AnnotationWriterName: "bob", v1alpha1.AnnotationWriterGeneration: "5"}},
		"another annotation":                 {admissionv1.Update, bob, sentSchema(t, "4", specA, recordedBy("alice", "alice-uid", "4")), sentSchema(t, "4", specA, map[string]string{"note": "x"}), with(recordedBy("alice", "alice-uid", "4"), "note", "x")},
	} {
		t.Run(name, func(t *testing.T) {
			got, paths := written(t, admission.Request{AdmissionRequest: admissionv1.AdmissionRequest{
				Operation: test.operation, UserInfo: test.user, Object: runtime.RawExtension{Raw: test.now}, OldObject: runtime.RawExtension{Raw: test.before},
			}})
			if !maps.Equal(got, test.want) {
				t.Errorf("annotations %v, want %v", got, test.want)
			}
			for _, path := range paths {
				if !strings.HasPrefix(path, "/metadata/annotations") {
					t.Errorf("the webhook also changes %s", path)
				}
			}
		})
	}
}

func with(values map[string]string, key, value string) map[string]string {
	values[key] = value
	return values
}

func TestWhatIsNoPtahSchemaIsNotRecorded(t *testing.T) {
	whole := sentSchema(t, "1", specA, nil)
	for name, test := range map[string]struct{ before, now []byte }{
		"no JSON":           {whole, []byte(`{`)},
		"no metadata":       {whole, []byte(`{}`)},
		"no object before":  {[]byte(`[]`), whole},
		"no stored version": {nil, whole},
	} {
		t.Run(name, func(t *testing.T) {
			response := author{}.Handle(context.Background(), admission.Request{AdmissionRequest: admissionv1.AdmissionRequest{
				Operation: admissionv1.Update, UserInfo: alice, Object: runtime.RawExtension{Raw: test.now}, OldObject: runtime.RawExtension{Raw: test.before},
			}})
			if response.Allowed || response.Result.Code != http.StatusBadRequest || !strings.Contains(response.Result.Message, "could not be read") {
				t.Errorf("allowed %v, %+v", response.Allowed, response.Result)
			}
		})
	}
}

func TestASecondPersonIsNeededWhereTheInstallationSaysSo(t *testing.T) {
	for name, test := range map[string]struct {
		distinct bool
		recorded map[string]string
		want     string // empty: admitted
	}{
		"should admit a second person":                               {true, recordedBy("bob", "bob-uid", "4"), ""},
		"should admit a second person who has no UID":                {true, recordedBy("bob", "", "4"), ""},
		"should refuse the author":                                   {true, recordedBy("alice", "alice-uid", "4"), `spec.approver: "alice" wrote the spec of PtahSchema "orders" last`},
		"should refuse the author under another UID":                 {true, recordedBy("alice", "older-uid", "4"), `"alice" wrote the spec`},
		"should refuse the author under another name":                {true, recordedBy("alice.maiden", "alice-uid", "4"), `"alice" wrote the spec`},
		"should refuse where nobody is recorded":                     {true, nil, "spec.approver: it is not recorded who wrote the spec"},
		"should refuse where the record has no name":                 {true, recordedBy("", "bob-uid", "4"), "it is not recorded who wrote the spec"},
		"should refuse where the record is of an earlier generation": {true, recordedBy("bob", "bob-uid", "3"), "it is not recorded who wrote the spec"},
		"should refuse where the record is of a later generation":    {true, recordedBy("bob", "bob-uid", "5"), "it is not recorded who wrote the spec"},
		"should not ask where one person is enough":                  {false, recordedBy("alice", "alice-uid", "4"), ""},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.distinct, w.schema.Annotations = test.distinct, test.recorded
			response := w.validate(t, w.request(t, admissionv1.Create))
			if test.want == "" {
				if !response.Allowed {
					t.Errorf("refused: %s", response.Result.Message)
				}
				return
			}
			if response.Allowed || response.Result.Code != http.StatusForbidden || !strings.Contains(response.Result.Message, test.want) {
				t.Errorf("allowed %v, %+v, want %q", response.Allowed, response.Result, test.want)
			}
		})
	}
}
