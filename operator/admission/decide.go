package admission

import (
	"fmt"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"ptah.run/ptah/operator/api/v1alpha1"
	"ptah.run/ptah/operator/plan"
	"ptah.run/ptah/operator/plan/report"
)

// checks in the order in which a person would want to hear of them. Each returns one sentence, or nothing.
var checks = []func(*gathered) string{
	checkStamp,
	checkFence,
	checkSchema,
	checkSecondPerson,
	checkWaiting,
	checkPlanReference,
	checkPlan,
	checkStillBound,
	checkPolicy,
}

// decide returns why an approval is refused, or nothing.
func decide(facts *gathered) string {
	for _, check := range checks {
		if refusal := check(facts); refusal != "" {
			return refusal
		}
	}
	return ""
}

func checkStamp(f *gathered) string {
	spec := &f.approval.Spec
	if spec.MutationRequestUID == "" || spec.ApprovedAt.IsZero() {
		return "spec.approver: the identity was not stamped; the mutating webhook of ptah-operator must run first"
	}
	if spec.Approver.Username != f.requester.Username || spec.Approver.UID != f.requester.UID ||
		!apiequality.Semantic.DeepEqual(spec.Approver.Groups, f.requester.Groups) {
		return fmt.Sprintf("spec.approver: is not the authenticated user %q; something changed it after it was stamped", f.requester.Username)
	}
	return ""
}

// checkFence refuses what a newer manager wrote: its meaning is not known here.
func checkFence(f *gathered) string {
	newest := f.plan.Spec.ControllerStateVersion
	if binding := f.schema.Status.ExecutionBinding; binding != nil {
		newest = max(newest, binding.ControllerStateVersion)
	}
	if newest > v1alpha1.ControllerStateVersion {
		return fmt.Sprintf("spec.planRef: was written by a newer manager (state version %d, this one knows %d); upgrade ptah-operator", newest, v1alpha1.ControllerStateVersion)
	}
	return ""
}

func checkSchema(f *gathered) string {
	reference := f.approval.Spec.SchemaRef
	status := &f.schema.Status
	switch {
	case string(f.schema.UID) != reference.UID:
		return fmt.Sprintf("spec.schemaRef.uid: PtahSchema %q was created anew and has UID %s; read the plan again", reference.Name, f.schema.UID)
	case f.schema.DeletionTimestamp != nil:
		return fmt.Sprintf("spec.schemaRef: PtahSchema %q is being deleted", reference.Name)
	case f.schema.Spec.Suspend:
		return fmt.Sprintf("spec.schemaRef: PtahSchema %q is suspended; resume it and read its plan again", reference.Name)
	case status.ObservedGeneration != f.schema.Generation:
		return fmt.Sprintf("spec.schemaRef: the spec of PtahSchema %q changed (generation %d) and was not looked at yet; wait for a new plan", reference.Name, f.schema.Generation)
	}
	return ""
}

// checkSecondPerson compares who approves with who wrote the spec last. What was recorded for another generation says
// nothing about this one: the spec was written while nobody recorded it.
func checkSecondPerson(f *gathered) string {
	if !f.distinct {
		return ""
	}
	name, recorded := f.schema.Name, f.schema.Annotations
	writer, uid := recorded[v1alpha1.AnnotationWriterName], recorded[v1alpha1.AnnotationWriterUID]
	switch {
	case writer == "" || recorded[v1alpha1.AnnotationWriterGeneration] != strconv.FormatInt(f.schema.Generation, 10):
		return fmt.Sprintf("spec.approver: it is not recorded who wrote the spec of PtahSchema %q (generation %d), so that nobody is known to be a second person; change the spec, and let somebody else approve the new plan", name, f.schema.Generation)
	case writer == f.requester.Username || uid != "" && uid == f.requester.UID:
		return fmt.Sprintf("spec.approver: %q wrote the spec of PtahSchema %q last; a second person must approve its plan", f.requester.Username, name)
	}
	return ""
}

func checkWaiting(f *gathered) string {
	name := f.schema.Name
	status := &f.schema.Status
	required := meta.FindStatusCondition(status.Conditions, v1alpha1.ConditionApprovalRequired)
	switch {
	// A refresh reads only and keeps the plan until it knows better; a plan that it replaces makes the approval stale.
	case status.ActiveOperation != nil && status.ActiveOperation.Type != v1alpha1.OperationRefresh:
		return fmt.Sprintf("spec.schemaRef: an operation (%s) of PtahSchema %q is running; wait for its outcome", status.ActiveOperation.Type, name)
	case status.PendingObservation != nil:
		return fmt.Sprintf("spec.schemaRef: the outcome of an Apply of PtahSchema %q is not proven yet; wait for a new plan", name)
	case status.Phase != v1alpha1.PhaseAwaitingApproval && status.ActiveOperation == nil:
		return fmt.Sprintf("spec.schemaRef: PtahSchema %q does not wait for an approval (phase %s)", name, status.Phase)
	case required == nil || required.Status != metav1.ConditionTrue || required.ObservedGeneration != f.schema.Generation:
		return fmt.Sprintf("spec.schemaRef: PtahSchema %q does not say that an approval is required (condition %s)", name, v1alpha1.ConditionApprovalRequired)
	case status.Plan == nil:
		return fmt.Sprintf("spec.schemaRef: PtahSchema %q has no plan", name)
	case status.Plan.Approval != nil:
		return fmt.Sprintf("spec.planRef: the plan of PtahSchema %q has an approval already (%s)", name, status.Plan.Approval.Name)
	}
	return ""
}

func checkPlanReference(f *gathered) string {
	spec, current := &f.approval.Spec, f.schema.Status.Plan
	switch {
	case spec.PlanRef.Name != current.Name:
		return fmt.Sprintf("spec.planRef.name: the current plan of PtahSchema %q is %q, not %q; read the new plan", f.schema.Name, current.Name, spec.PlanRef.Name)
	case spec.PlanRef.UID != current.UID || string(f.plan.UID) != current.UID:
		return fmt.Sprintf("spec.planRef.uid: the current plan %q has UID %s; read the plan again", current.Name, current.UID)
	case string(spec.PlanFingerprint) != current.Fingerprint:
		return fmt.Sprintf("spec.planFingerprint: the current plan has the fingerprint %s; read the plan again", current.Fingerprint)
	}
	return ""
}

func checkPlan(f *gathered) string {
	name := f.plan.Name
	owner := metav1.GetControllerOf(f.plan)
	if owner == nil || owner.UID != f.schema.UID || f.plan.Spec.SchemaRef.UID != string(f.schema.UID) {
		return fmt.Sprintf("spec.planRef: plan %q does not belong to PtahSchema %q", name, f.schema.Name)
	}
	if !meta.IsStatusConditionTrue(f.plan.Status.Conditions, v1alpha1.ConditionReady) {
		return fmt.Sprintf("spec.planRef: the bytes of plan %q are not all stored (condition %s is not True)", name, v1alpha1.ConditionReady)
	}
	if string(f.plan.Spec.Fingerprint) != f.schema.Status.Plan.Fingerprint {
		return fmt.Sprintf("spec.planRef: plan %q does not have the fingerprint that PtahSchema %q shows", name, f.schema.Name)
	}
	if err := plan.Check(f.plan, f.approval.Spec.PlanRef); err != nil {
		return fmt.Sprintf("spec.planRef: plan %q is not intact: %v", name, err)
	}
	return ""
}

// checkStillBound compares what the plan was computed from with what the schema's status shows now.
func checkStillBound(f *gathered) string {
	bound, status := &f.plan.Spec, &f.schema.Status
	switch {
	case status.ExecutionBinding == nil || bound.ExecutionBindingID != status.ExecutionBinding.Epoch:
		return fmt.Sprintf("spec.planRef: plan %q belongs to a retired execution binding; wait for a new plan", f.plan.Name)
	case status.Source == nil || !status.Source.Verified || string(bound.ArtifactDigest) != status.Source.Digest:
		return fmt.Sprintf("spec.planRef: plan %q was computed from another artifact than is current; wait for a new plan", f.plan.Name)
	case status.Target == nil || string(bound.CoordinationDigest) != status.Target.CoordinationDigest || string(bound.TargetIdentityDigest) != status.Target.IdentityDigest:
		return fmt.Sprintf("spec.planRef: plan %q was computed for another database than is current; wait for a new plan", f.plan.Name)
	case string(bound.ActualStateFingerprint) != status.Target.StateFingerprint:
		return fmt.Sprintf("spec.planRef: the database has changed since plan %q was computed; wait for a new plan", f.plan.Name)
	}
	fingerprint, err := plan.PolicyFingerprint(f.schema.Spec.Target.Engine, f.schema.Spec.Policy)
	if err != nil {
		return fmt.Sprintf("spec.schemaRef: the policy of PtahSchema %q could not be compared: %v", f.schema.Name, err)
	}
	if string(bound.PolicyFingerprint) != fingerprint {
		return fmt.Sprintf("spec.planRef: the policy of PtahSchema %q has changed since plan %q was computed; wait for a new plan", f.schema.Name, f.plan.Name)
	}
	return ""
}

// checkPolicy compares the verification policy's live object and bytes with those that accepted the artifact.
func checkPolicy(f *gathered) string {
	selector := f.schema.Spec.Desired.VerificationPolicyFrom
	data, found := policyBytes(f.policy, selector.Key)
	if !found || string(f.policy.UID) != f.plan.Spec.VerificationPolicyUID || report.Digest(data) != string(f.plan.Spec.VerificationPolicyDigest) {
		return fmt.Sprintf("spec.planRef: the verification policy %s/%s has changed since plan %q was computed; wait for a new plan", selector.Name, selector.Key, f.plan.Name)
	}
	return ""
}

func policyBytes(policy *corev1.ConfigMap, key string) ([]byte, bool) {
	if text, found := policy.Data[key]; found {
		return []byte(text), true
	}
	data, found := policy.BinaryData[key]
	return data, found
}
