package schemaview

import (
	"time"

	"k8s.io/apimachinery/pkg/api/meta"

	"ptah.run/ptah/operator/api/v1alpha1"
)

// Of takes a view of a resource. now is only compared with the times in its status.
func Of(schema *v1alpha1.PtahSchema, now time.Time) *View {
	status := &schema.Status
	v := &View{
		ContractVersion: contractVersion, Name: schema.Name, Namespace: schema.Namespace, UID: string(schema.UID),
		Generation: schema.Generation, ObservedGeneration: status.ObservedGeneration, Phase: string(status.Phase),
		Artifact: artifactOf(schema), Target: targetOf(schema), Drift: driftOf(schema), Plan: planOf(status.Plan),
		Operation: operationOf(status.ActiveOperation), Proof: proofOf(status.PendingObservation), BusySince: status.TargetBusySince,
		Schedule: Schedule{
			Interval: schema.Spec.Interval.Duration.String(), LastAttempt: status.LastAttemptTime,
			LastSuccess: status.LastSuccessfulReconciliation, Next: status.NextReconciliationTime, FailedAttempts: status.FailedAttempts,
		},
		Conditions: conditionsOf(schema), schema: schema,
	}
	if applied := status.Applied; applied != nil {
		v.Applied = &Applied{Plan: applied.PlanRef.Name, ArtifactDigest: applied.ArtifactDigest, CompletedAt: applied.CompletedAt}
	}
	if ready := meta.FindStatusCondition(status.Conditions, v1alpha1.ConditionReady); ready != nil {
		v.Ready, v.Reason, v.Message = ready.Status == "True", ready.Reason, ready.Message
	}
	v.Next = nextOf(schema, v, now)
	return v
}

func artifactOf(schema *v1alpha1.PtahSchema) Artifact {
	a := Artifact{Reference: schema.Spec.Desired.OCIRef}
	if source := schema.Status.Source; source != nil {
		a.Digest, a.ArtifactType, a.Verified = source.Digest, source.ArtifactType, source.Verified
		a.ResolvedAt, a.VerifiedAt, a.PolicyDigest = source.ResolvedAt, source.VerifiedAt, source.VerificationPolicyDigest
	}
	return a
}

func targetOf(schema *v1alpha1.PtahSchema) Target {
	spec := &schema.Spec.Target
	t := Target{
		Engine: string(spec.Engine), CoordinationKey: spec.CoordinationKey, Secret: spec.URLFrom.Name, SecretKey: spec.URLFrom.Key,
	}
	if spec.RealmRef != nil {
		t.Realm = spec.RealmRef.Name
	}
	if observed := schema.Status.Target; observed != nil {
		t.CoordinationDigest, t.IdentityDigest = observed.CoordinationDigest, observed.IdentityDigest
		t.ServerVersion, t.ObservedAt = observed.ServerVersion, observed.LastObservedAt
	}
	return t
}

func driftOf(schema *v1alpha1.PtahSchema) *Drift {
	observed := schema.Status.Target
	if observed == nil {
		return nil
	}
	d := &Drift{
		Status: "Unknown", HighestSeverity: observed.HighestDriftSeverity, Count: observed.DriftFindingCount,
		Categories: []DriftOfKind{}, Truncated: observed.DriftFindingsTruncated,
	}
	if condition := meta.FindStatusCondition(schema.Status.Conditions, v1alpha1.ConditionDriftDetected); condition != nil {
		d.Status = string(condition.Status)
	}
	for _, finding := range observed.DriftFindings {
		d.Categories = append(d.Categories, DriftOfKind{finding.Category, finding.Count, finding.Severity})
	}
	return d
}

func planOf(current *v1alpha1.CurrentPlanStatus) *Plan {
	if current == nil {
		return nil
	}
	p := &Plan{
		Name: current.Name, UID: current.UID, Fingerprint: current.Fingerprint, ContentDigest: current.ContentDigest, Size: current.Size,
		Statements: current.StatementCount, Destructive: current.Destructive, PrivilegeChanges: append([]string{}, current.PrivilegeChanges...),
		CreatedAt: current.CreatedAt, Attempted: current.Attempted,
	}
	if given := current.Approval; given != nil {
		p.Approval = &Approval{Name: given.Name, Approver: given.Approver.Username, ApprovedAt: given.ApprovedAt}
	}
	return p
}

func operationOf(claim *v1alpha1.ActiveOperationStatus) *Operation {
	if claim == nil {
		return nil
	}
	return &Operation{
		Type: string(claim.Type), Job: claim.JobName, StartedAt: claim.StartedAt, Dispatched: claim.DispatchStarted,
		Proof: claim.ProofOf != "", RetryNotBefore: claim.RetryNotBefore,
	}
}

func proofOf(pending *v1alpha1.PendingObservationStatus) *Proof {
	if pending == nil {
		return nil
	}
	return &Proof{
		Outcome: string(pending.Outcome), Plan: pending.Plan.Name, Job: pending.ApplyJobName, Pods: pending.ApplyPodCount,
		Refusal: pending.Refusal, NotBefore: pending.ObserveAfter,
	}
}

func conditionsOf(schema *v1alpha1.PtahSchema) []Condition {
	conditions := make([]Condition, 0, len(schema.Status.Conditions))
	for _, c := range schema.Status.Conditions {
		conditions = append(conditions, Condition{
			Type: c.Type, Status: string(c.Status), Reason: c.Reason, Message: c.Message, Since: c.LastTransitionTime,
			Current: c.ObservedGeneration == schema.Generation,
		})
	}
	return conditions
}
