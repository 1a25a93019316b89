package bench

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"ptah.run/ptah/operator/api/v1alpha1"
	"ptah.run/ptah/qualification/lab/tenant"
)

// Schema is a PtahSchema as a user of the lab writes it.
func (b *Bench) Schema(namespace, name string, artifact tenant.Artifact, secret string, interval, retry time.Duration) *v1alpha1.PtahSchema {
	return &v1alpha1.PtahSchema{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name},
		Spec: v1alpha1.PtahSchemaSpec{
			Target: v1alpha1.DatabaseTargetSpec{Engine: b.Engine(), CoordinationKey: "qualify/" + name,
				URLFrom: corev1.SecretKeySelector{LocalObjectReference: corev1.LocalObjectReference{Name: secret}, Key: "url"}},
			Desired: v1alpha1.OCIArtifactSourceSpec{
				OCIRef:           artifact.Reference,
				RegistryAuthFrom: &v1alpha1.RegistryAuthSource{Name: tenant.RegistrySecret},
				VerificationPolicyFrom: corev1.ConfigMapKeySelector{
					LocalObjectReference: corev1.LocalObjectReference{Name: tenant.PolicyMap}, Key: "policy.yaml"},
				Transport: &v1alpha1.OCITransport{CAFrom: &corev1.ConfigMapKeySelector{
					LocalObjectReference: corev1.LocalObjectReference{Name: tenant.RegistryCA}, Key: "ca.crt"}},
			},
			// Durations have defaults that an empty Go value would override, so each is written.
			Policy: v1alpha1.SchemaPolicy{Apply: v1alpha1.ApplyOnApproval, LockTimeout: metav1.Duration{Duration: 30 * time.Second}},
			Execution: v1alpha1.ExecutionSpec{
				ActiveDeadlineSeconds: 300,
				ConnectTimeout:        metav1.Duration{Duration: 10 * time.Second},
				FailureRetryInterval:  metav1.Duration{Duration: retry},
				ImagePullSecrets:      []corev1.LocalObjectReference{{Name: tenant.PullSecret}},
			},
			Interval: metav1.Duration{Duration: interval},
		},
	}
}

// Transition is one state of a resource as a watch delivered it.
type Transition struct {
	At     time.Time                 `json:"at"`
	Phase  v1alpha1.Phase            `json:"phase"`
	Ready  string                    `json:"ready"`
	Reason string                    `json:"reason"`
	Claim  string                    `json:"claim,omitempty"` // type of the active operation
	Status v1alpha1.PtahSchemaStatus `json:"-"`
}

// Await follows a resource by watch until done says so, and returns the last state with everything seen on the way.
// It fails when the context ends, saying what was waited for and what the last state was.
func (b *Bench) Await(ctx context.Context, key client.ObjectKey, what string, done func(*v1alpha1.PtahSchema) bool) (*v1alpha1.PtahSchema, []Transition, error) {
	var seen []Transition
	var last *v1alpha1.PtahSchema
	for ctx.Err() == nil {
		stream, err := b.Client.Watch(ctx, &v1alpha1.PtahSchemaList{}, client.InNamespace(key.Namespace), client.MatchingFields{"metadata.name": key.Name})
		if err != nil {
			return last, seen, fmt.Errorf("watch PtahSchema %s: %w", key, err)
		}
		for event := range stream.ResultChan() {
			schema, ok := event.Object.(*v1alpha1.PtahSchema)
			if !ok || event.Type == watch.Deleted {
				continue
			}
			last = schema
			seen = append(seen, transition(schema))
			if done(schema) {
				stream.Stop()
				return schema, seen, nil
			}
		}
	}
	if last == nil {
		return nil, seen, fmt.Errorf("waited for %s: PtahSchema %s was never seen", what, key)
	}
	state := transition(last)
	return last, seen, fmt.Errorf("waited for %s: PtahSchema %s is %s, Ready %s (%s), claim %q, last seen %s", what, key,
		state.Phase, state.Ready, state.Reason, state.Claim, state.At.Format(time.TimeOnly))
}

func transition(schema *v1alpha1.PtahSchema) Transition {
	state := Transition{At: time.Now(), Phase: schema.Status.Phase, Status: schema.Status}
	if ready := meta.FindStatusCondition(schema.Status.Conditions, v1alpha1.ConditionReady); ready != nil {
		state.Ready, state.Reason = string(ready.Status), ready.Reason
	}
	if claim := schema.Status.ActiveOperation; claim != nil {
		state.Claim = string(claim.Type)
	}
	return state
}

// Condition is true where the condition has the status and, unless empty, the reason, for the current generation.
func Condition(schema *v1alpha1.PtahSchema, kind string, status metav1.ConditionStatus, reason v1alpha1.Reason) bool {
	condition := meta.FindStatusCondition(schema.Status.Conditions, kind)
	return condition != nil && condition.Status == status && condition.ObservedGeneration == schema.Generation &&
		(reason == "" || condition.Reason == string(reason))
}

// Settled is true where no operation is claimed and no proof is owed.
func Settled(schema *v1alpha1.PtahSchema) bool {
	return schema.Status.ActiveOperation == nil && schema.Status.PendingObservation == nil
}

// AwaitingApproval is true where an exact plan waits for a person.
func AwaitingApproval(schema *v1alpha1.PtahSchema) bool {
	return schema.Status.Plan != nil && Settled(schema) &&
		Condition(schema, v1alpha1.ConditionApprovalRequired, metav1.ConditionTrue, "")
}

// InSync is true where convergence is proven.
func InSync(schema *v1alpha1.PtahSchema) bool {
	return Settled(schema) && Condition(schema, v1alpha1.ConditionReady, metav1.ConditionTrue, "")
}

// Approval names the plan that waits. Who typed it does not matter: admission stamps who created it.
func Approval(schema *v1alpha1.PtahSchema, name string) *v1alpha1.PtahSchemaApproval {
	return &v1alpha1.PtahSchemaApproval{
		ObjectMeta: metav1.ObjectMeta{Namespace: schema.Namespace, Name: name},
		Spec: v1alpha1.PtahSchemaApprovalSpec{
			SchemaRef:       v1alpha1.ImmutableObjectReference{Name: schema.Name, UID: string(schema.UID)},
			PlanRef:         schema.Status.Plan.ImmutableObjectReference,
			PlanFingerprint: v1alpha1.Digest(schema.Status.Plan.Fingerprint),
		},
	}
}
