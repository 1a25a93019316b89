// Package admission decides which approvals the API server stores. It promises that a stored approval names who the
// API server authenticated, whatever was typed, and that at the moment of its creation it authorised exactly the plan
// that the schema was waiting with, as live reads show both. It refuses everything else in one sentence. It writes
// nothing: what becomes of an approval is the reconciler's business.
//
// Where an installation requires a second person it also records who wrote a PtahSchema's spec last, and refuses an
// approval by that person.
package admission

import (
	"errors"

	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/webhook"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"
)

// Paths of the webhooks. The chart names them.
const (
	MutateSchemaApprovalPath   = "/mutate-operator-ptah-run-v1alpha1-ptahschemaapproval"
	ValidateSchemaApprovalPath = "/validate-operator-ptah-run-v1alpha1-ptahschemaapproval"
	MutateSchemaPath           = "/mutate-operator-ptah-run-v1alpha1-ptahschema"
)

// Options of the webhooks.
type Options struct {
	// Reader reads past every cache.
	Reader client.Reader
	// Clock; nil means the real one.
	Clock clock.PassiveClock
	// RequireDistinctApprover lets nobody approve a plan of a spec that they wrote themselves. The chart then sends
	// every write of a PtahSchema to MutateSchemaPath.
	RequireDistinctApprover bool
}

// Register adds the webhooks to the manager's webhook server.
func Register(mgr ctrl.Manager, options Options) error {
	if options.Reader == nil {
		return errors.New("register webhooks: an uncached reader is required")
	}
	if options.Clock == nil {
		options.Clock = clock.RealClock{}
	}
	decoder := admission.NewDecoder(mgr.GetScheme())
	server := mgr.GetWebhookServer()
	server.Register(MutateSchemaApprovalPath, &webhook.Admission{Handler: &stamp{clock: options.Clock}})
	server.Register(ValidateSchemaApprovalPath, &webhook.Admission{Handler: &validate{
		reader: options.Reader, decoder: decoder, distinct: options.RequireDistinctApprover,
	}})
	if options.RequireDistinctApprover {
		server.Register(MutateSchemaPath, &webhook.Admission{Handler: author{}})
	}
	return nil
}
