package admission

import (
	"context"
	"fmt"
	"net/http"

	admissionv1 "k8s.io/api/admission/v1"
	corev1 "k8s.io/api/core/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"ptah.run/ptah/operator/api/v1alpha1"
)

// validate reads what an approval is about, live, and lets decide judge.
type validate struct {
	reader  client.Reader
	decoder admission.Decoder
	// distinct refuses an approval by whoever wrote the spec.
	distinct bool
}

// Handle admits a new approval of exactly the plan that is waiting, and an update that leaves the spec alone. A
// creation takes at most three reads.
func (v *validate) Handle(ctx context.Context, request admission.Request) admission.Response {
	var approval v1alpha1.PtahSchemaApproval
	if err := v.decoder.DecodeRaw(request.Object, &approval); err != nil {
		return admission.Errored(http.StatusBadRequest, fmt.Errorf("the PtahSchemaApproval could not be read: %w", err))
	}
	switch request.Operation {
	case admissionv1.Create:
	case admissionv1.Update:
		return v.update(request, &approval)
	default:
		return admission.Allowed("")
	}
	// A name may still be generated, so the namespace is the request's.
	approval.Namespace = request.Namespace
	facts, refusal, err := v.gather(ctx, &approval)
	if err != nil {
		return admission.Errored(http.StatusInternalServerError, err)
	}
	if refusal == "" {
		facts.requester, facts.distinct = approverOf(request.UserInfo), v.distinct
		refusal = decide(facts)
	}
	if refusal != "" {
		return admission.Denied(refusal)
	}
	return admission.Allowed("")
}

func (v *validate) update(request admission.Request, approval *v1alpha1.PtahSchemaApproval) admission.Response {
	var before v1alpha1.PtahSchemaApproval
	if err := v.decoder.DecodeRaw(request.OldObject, &before); err != nil {
		return admission.Errored(http.StatusBadRequest, fmt.Errorf("the stored PtahSchemaApproval could not be read: %w", err))
	}
	if !apiequality.Semantic.DeepEqual(before.Spec, approval.Spec) {
		return admission.Denied("spec: an approval is immutable; delete it and create another")
	}
	return admission.Allowed("")
}

// gathered is everything that a decision looks at.
type gathered struct {
	requester v1alpha1.ApprovalIdentity
	distinct  bool // a second person is required
	approval  *v1alpha1.PtahSchemaApproval
	schema    *v1alpha1.PtahSchema
	plan      *v1alpha1.PtahSchemaPlan
	policy    *corev1.ConfigMap
}

// gather reads in the order in which things can be missing, and stops at the first that is.
func (v *validate) gather(ctx context.Context, approval *v1alpha1.PtahSchemaApproval) (*gathered, string, error) {
	facts := &gathered{approval: approval, schema: &v1alpha1.PtahSchema{}, plan: &v1alpha1.PtahSchemaPlan{}, policy: &corev1.ConfigMap{}}
	for _, wanted := range []struct {
		kind, field string
		name        func() string
		into        client.Object
	}{
		{"PtahSchema", "spec.schemaRef.name", func() string { return approval.Spec.SchemaRef.Name }, facts.schema},
		{"PtahSchemaPlan", "spec.planRef.name", func() string { return approval.Spec.PlanRef.Name }, facts.plan},
		{"verification policy ConfigMap", "spec.schemaRef", func() string { return facts.schema.Spec.Desired.VerificationPolicyFrom.Name }, facts.policy},
	} {
		name := wanted.name()
		err := v.reader.Get(ctx, client.ObjectKey{Namespace: approval.Namespace, Name: name}, wanted.into)
		if apierrors.IsNotFound(err) {
			return nil, fmt.Sprintf("%s: the %s %q does not exist in namespace %q", wanted.field, wanted.kind, name, approval.Namespace), nil
		}
		if err != nil {
			return nil, "", fmt.Errorf("the %s %q could not be read; try again: %w", wanted.kind, name, err)
		}
	}
	return facts, "", nil
}
