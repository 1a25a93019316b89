package schema

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	ptahv1 "ptah.run/ptah/operator/api/v1alpha1"
	"ptah.run/ptah/operator/plan"
	"ptah.run/ptah/operator/plan/report"
	"ptah.run/ptah/operator/realm"
)

// maxPolicyBytes bounds a verification policy.
const maxPolicyBytes = 1 << 20

// inputs are what a refresh reads. They come from the spec, or, for a proof, from what was frozen with the Apply.
type inputs struct {
	target       ptahv1.DatabaseTargetBinding
	coordination string
	source       ptahv1.OCISourceBinding
	// policy is complete: what it leaves to the engine is filled in.
	policy ptahv1.SchemaPolicy
	// policyFingerprint is of policy.
	policyFingerprint string
	// targetIdentity is the database that must be read, where it is known beforehand.
	targetIdentity string
	// proofOf is the operation ID of the Apply that is proven.
	proofOf string
	// generation that the inputs belong to.
	generation int64
}

// specInputs takes the inputs of an ordinary refresh from the spec.
func specInputs(schema *ptahv1.PtahSchema) (inputs, error) {
	spec := &schema.Spec
	coordination, err := realm.Digest(schema.Namespace, spec.Target)
	if err != nil {
		return inputs{}, err
	}
	fingerprint, err := plan.PolicyFingerprint(spec.Target.Engine, spec.Policy)
	if err != nil {
		return inputs{}, err
	}
	return inputs{
		target:       ptahv1.DatabaseTargetBinding{Engine: spec.Target.Engine, URLFrom: spec.Target.URLFrom},
		coordination: coordination,
		source: ptahv1.OCISourceBinding{
			RequestedReference: spec.Desired.OCIRef,
			RegistryAuthFrom:   spec.Desired.RegistryAuthFrom,
			Transport:          spec.Desired.Transport,
			VerificationPolicy: ptahv1.VerificationPolicyBinding{From: spec.Desired.VerificationPolicyFrom},
		},
		policy:            plan.EffectivePolicy(spec.Target.Engine, spec.Policy),
		policyFingerprint: fingerprint,
		generation:        schema.Generation,
	}, nil
}

// proofInputs takes the inputs of a proof from what was frozen with the Apply.
func proofInputs(pending *ptahv1.PendingObservationStatus) (inputs, error) {
	fingerprint, err := plan.PolicyFingerprint(pending.Inputs.Target.Engine, pending.Inputs.Policy)
	if err != nil {
		return inputs{}, err
	}
	return inputs{
		target:            pending.Inputs.Target,
		coordination:      pending.Inputs.CoordinationDigest,
		source:            pending.Inputs.Source,
		policy:            pending.Inputs.Policy,
		policyFingerprint: fingerprint,
		targetIdentity:    pending.Plan.TargetIdentityDigest,
		proofOf:           pending.ApplyOperationID,
		generation:        pending.ApplyGeneration,
	}, nil
}

// fingerprint is the digest of the inputs together with the epoch they are read under.
func (i *inputs) fingerprint(epoch string) (string, error) {
	return plan.CanonicalDigest(struct {
		Epoch          string                       `json:"epoch"`
		Target         ptahv1.DatabaseTargetBinding `json:"target"`
		Coordination   string                       `json:"coordination"`
		Source         ptahv1.OCISourceBinding      `json:"source"`
		Policy         string                       `json:"policy"`
		TargetIdentity string                       `json:"targetIdentity"`
		ProofOf        string                       `json:"proofOf"`
	}{epoch, i.target, i.coordination, i.source, i.policyFingerprint, i.targetIdentity, i.proofOf})
}

// readPolicy reads a verification policy past every cache. A missing or unusable one is a failure to report; an error
// is the API server's.
func readPolicy(ctx context.Context, live client.Reader, namespace string, from corev1.ConfigMapKeySelector) (ptahv1.VerificationPolicyBinding, *failure, error) {
	binding := ptahv1.VerificationPolicyBinding{From: from}
	unusable := func(message string) *failure {
		return &failure{
			condition: ptahv1.ConditionArtifactVerified, status: corev1.ConditionFalse,
			reason: ptahv1.ReasonConfigurationError, stage: stageController, message: message,
		}
	}
	config := &corev1.ConfigMap{}
	err := live.Get(ctx, client.ObjectKey{Namespace: namespace, Name: from.Name}, config)
	if apierrors.IsNotFound(err) {
		return binding, unusable(fmt.Sprintf("The verification policy ConfigMap %s does not exist; create it or correct spec.desired.verificationPolicyFrom.", from.Name)), nil
	}
	if err != nil {
		return binding, nil, fmt.Errorf("read verification policy ConfigMap %s: %w", from.Name, err)
	}
	data, found := config.BinaryData[from.Key]
	if text, ok := config.Data[from.Key]; ok {
		data, found = []byte(text), true
	}
	if !found || len(data) == 0 || len(data) > maxPolicyBytes {
		return binding, unusable(fmt.Sprintf("Key %s of the verification policy ConfigMap %s is missing, empty or larger than 1 MiB; correct the ConfigMap or spec.desired.verificationPolicyFrom.", from.Key, from.Name)), nil
	}
	binding.UID, binding.Digest = string(config.UID), report.Digest(data)
	return binding, nil, nil
}
