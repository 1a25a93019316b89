package admission

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"reflect"
	"strconv"

	admissionv1 "k8s.io/api/admission/v1"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"ptah.run/ptah/operator/api/v1alpha1"
)

// author records who wrote a PtahSchema's spec last, in annotations that nobody else can write. Like stamp it works on
// the object as it was sent.
type author struct{}

// sent is what author looks at of an object.
type sent struct {
	object      map[string]any
	annotations map[string]any
	generation  int64
}

// Handle writes down the authenticated user of a creation and of a change of the spec, and puts back what was recorded
// before where the spec stays as it is.
func (author) Handle(_ context.Context, request admission.Request) admission.Response {
	now, err := readSent(request.Object.Raw)
	if err != nil {
		return admission.Errored(http.StatusBadRequest, fmt.Errorf("the PtahSchema could not be read: %w", err))
	}
	recorded := map[string]string{
		v1alpha1.AnnotationWriterName: request.UserInfo.Username, v1alpha1.AnnotationWriterUID: request.UserInfo.UID,
		v1alpha1.AnnotationWriterGeneration: "1", // of every object that is new
	}
	if request.Operation == admissionv1.Update {
		before, err := readSent(request.OldObject.Raw)
		if err != nil {
			return admission.Errored(http.StatusBadRequest, fmt.Errorf("the stored PtahSchema could not be read: %w", err))
		}
		// The API server counts the generation up after admission, for exactly such a change.
		recorded[v1alpha1.AnnotationWriterGeneration] = strconv.FormatInt(before.generation+1, 10)
		if reflect.DeepEqual(now.object["spec"], before.object["spec"]) {
			for name := range recorded {
				recorded[name], _ = before.annotations[name].(string)
			}
		}
	}
	for name, value := range recorded {
		now.record(name, value)
	}
	changed, err := json.Marshal(now.object)
	if err != nil {
		return admission.Errored(http.StatusInternalServerError, fmt.Errorf("the PtahSchema could not be written: %w", err))
	}
	return admission.PatchResponseFromRaw(request.Object.Raw, changed)
}

func readSent(raw []byte) (*sent, error) {
	s := &sent{}
	if err := json.Unmarshal(raw, &s.object); err != nil {
		return nil, fmt.Errorf("not a JSON object: %w", err)
	}
	metadata, ok := s.object["metadata"].(map[string]any)
	if !ok {
		return nil, fmt.Errorf("metadata is missing")
	}
	s.annotations, _ = metadata["annotations"].(map[string]any)
	generation, _ := metadata["generation"].(float64)
	s.generation = int64(generation)
	return s, nil
}

// record writes an annotation; an empty value removes it.
func (s *sent) record(name, value string) {
	if value == "" {
		delete(s.annotations, name)
		return
	}
	if s.annotations == nil {
		s.annotations = map[string]any{}
		s.object["metadata"].(map[string]any)["annotations"] = s.annotations //nolint:forcetypeassert // readSent saw it
	}
	s.annotations[name] = value
}
