package admission

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"time"

	admissionv1 "k8s.io/api/admission/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"ptah.run/ptah/operator/api/v1alpha1"
)

// maxGroups is how many groups an approval records.
const maxGroups = 64

// stamp writes who approves and when. It works on the object as it was sent, so that fields it does not know stay for
// the API server to judge.
type stamp struct{ clock clock.PassiveClock }

// Handle replaces the three stamped fields of a new approval.
func (s *stamp) Handle(_ context.Context, request admission.Request) admission.Response {
	if request.Operation != admissionv1.Create {
		return admission.Allowed("")
	}
	var object map[string]any
	if err := json.Unmarshal(request.Object.Raw, &object); err != nil {
		return admission.Errored(http.StatusBadRequest, fmt.Errorf("the PtahSchemaApproval is not a JSON object: %w", err))
	}
	spec, ok := object["spec"].(map[string]any)
	if !ok {
		return admission.Denied("spec: is missing; an approval names schemaRef, planRef and planFingerprint")
	}
	spec["approver"] = approverOf(request.UserInfo)
	spec["approvedAt"] = s.clock.Now().UTC().Format(time.RFC3339)
	spec["mutationRequestUID"] = string(request.UID)
	stamped, err := json.Marshal(object)
	if err != nil {
		return admission.Errored(http.StatusInternalServerError, fmt.Errorf("the stamped PtahSchemaApproval could not be written: %w", err))
	}
	return admission.PatchResponseFromRaw(request.Object.Raw, stamped)
}

// approverOf is the identity as an approval records it.
func approverOf(user authenticationv1.UserInfo) v1alpha1.ApprovalIdentity {
	return v1alpha1.ApprovalIdentity{
		Username: user.Username,
		UID:      user.UID,
		Groups:   user.Groups[:min(len(user.Groups), maxGroups)],
	}
}
