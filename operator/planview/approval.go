package planview

import (
	"fmt"
	"io"

	"ptah.run/ptah/operator/api/v1alpha1"
)

// maxPrefixBytes keeps a generated name within 63 bytes.
const maxPrefixBytes = 57

// Approval writes the object that would authorise exactly this plan, for "kubectl create -f -". Who approves, and
// when, is written by the API server.
func (v *View) Approval(w io.Writer) error {
	prefix := v.Schema.Name[:min(len(v.Schema.Name), maxPrefixBytes)]
	_, err := fmt.Fprintf(w, `apiVersion: %s
kind: PtahSchemaApproval
metadata:
  generateName: %s-
  namespace: %s
spec:
  schemaRef:
    name: %s
    uid: %s
  planRef:
    name: %s
    uid: %s
  planFingerprint: %s
`, v1alpha1.GroupVersion, prefix, v.Schema.Namespace, v.Schema.Name, v.Schema.UID, v.Plan.Name, v.Plan.UID, v.Plan.Spec.Fingerprint)
	return err
}
