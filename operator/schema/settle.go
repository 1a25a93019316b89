package schema

import (
	"context"
	"errors"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	ptahv1 "ptah.run/ptah/operator/api/v1alpha1"
	"ptah.run/ptah/operator/operation/identity"
	"ptah.run/ptah/operator/plan"
	"ptah.run/ptah/operator/telemetry"
)

// recordOutcome takes over what a verdict means for plan, proof and conditions. Publishing a plan is the only thing it
// writes; that comes first, so that the status never names a plan which is not stored.
func (p *pass) recordOutcome(ctx context.Context, claim *ptahv1.ActiveOperationStatus, v verdict) error {
	status := &p.schema.Status
	pending := status.PendingObservation
	if f := v.failure; f != nil {
		if f.refused && (pending == nil || f.read) {
			p.refuse(claim, f)
			return p.settleProof(ctx, pending, false)
		}
		p.fail(f)
		p.abandonProof(pending)
		return nil
	}
	if !v.converged {
		if pending == nil || pending.ApplyGeneration == p.schema.Generation {
			if err := p.publish(ctx, claim, v); err != nil {
				return err
			}
		} else {
			p.set(ptahv1.ConditionPlanReady, unknown, ptahv1.ReasonDesiredStateChanged, "The spec changed during the Apply; it is planned anew.")
		}
		p.succeed()
		status.RefreshedGeneration = p.refreshedGeneration(claim)
		status.Converged = nil
		p.set(ptahv1.ConditionInSync, no, ptahv1.ReasonScopedChanges, "The managed scope differs from the artifact.")
		return p.settleProof(ctx, pending, false)
	}
	in, err := p.claimInputs(claim)
	if err != nil {
		return err
	}
	p.succeed()
	status.RefreshedGeneration = p.refreshedGeneration(claim)
	status.Converged = &ptahv1.ConvergedStatus{
		ArtifactDigest: v.source.Digest, PolicyFingerprint: in.policyFingerprint,
		TargetIdentityDigest: v.target.IdentityDigest, StateFingerprint: v.target.StateFingerprint,
		ExecutionBindingID: claim.ExecutionBindingID,
	}
	p.set(ptahv1.ConditionPlanReady, no, ptahv1.ReasonNoChanges, "There is nothing to change.")
	p.recordInSync()
	if pending != nil {
		status.Plan = nil
	}
	p.retirePlan("the database needs no change any more.")
	return p.settleProof(ctx, pending, true)
}

// recordInSync says that the database converged. The reason of a proof without credit stays until another Apply.
func (p *pass) recordInSync() {
	reason, message := ptahv1.ReasonScopedConverged, "The database matches the verified artifact."
	pending := p.schema.Status.PendingObservation
	before, already := conditionIs(p.schema, ptahv1.ConditionInSync, yes)
	if pending != nil && pending.Outcome == ptahv1.OutcomeUnknown && pending.Refusal == "" ||
		pending == nil && already && before.Reason == string(ptahv1.ReasonConvergedAfterUnknownOutcome) {
		reason = ptahv1.ReasonConvergedAfterUnknownOutcome
		message = "The database matches the verified artifact; no Apply is credited, because the outcome of the last one was never established."
	}
	p.set(ptahv1.ConditionInSync, yes, reason, message)
}

// refreshedGeneration is the generation whose inputs were read.
func (p *pass) refreshedGeneration(claim *ptahv1.ActiveOperationStatus) int64 {
	if pending := p.schema.Status.PendingObservation; claim.ProofOf != "" && pending != nil {
		return pending.ApplyGeneration
	}
	return claim.Generation
}

// refuse records a refusal that only another input can end. It is no failure; the database is read again on the
// interval.
func (p *pass) refuse(claim *ptahv1.ActiveOperationStatus, f *failure) {
	status := &p.schema.Status
	p.succeed()
	status.RefreshedGeneration = p.refreshedGeneration(claim)
	status.Converged = nil
	p.retirePlan(f.message)
	p.set(f.condition, no, f.reason, f.message)
	if f.condition == ptahv1.ConditionArtifactVerified {
		p.set(ptahv1.ConditionPlanReady, no, ptahv1.ReasonArtifactUnverified, "There is no plan, because the artifact was not verified.")
		p.set(ptahv1.ConditionInSync, unknown, ptahv1.ReasonSourceFreshnessUnknown, "The database was not read for this artifact.")
	} else {
		p.set(ptahv1.ConditionInSync, no, f.reason, f.message)
	}
	if before, ok := conditionBefore(p.stored, f.condition); !ok || before != string(f.reason) {
		event := map[ptahv1.Reason]ptahv1.EventReason{
			ptahv1.ReasonPolicyRefused: ptahv1.EventArtifactVerificationRefused, ptahv1.ReasonProtectedTable: ptahv1.EventProtectedTableRefused,
		}[f.reason]
		if event == "" {
			event = ptahv1.EventPlanRefused
		}
		p.warn(event, "Refresh", "%s", f.message)
	}
}

func conditionBefore(schema *ptahv1.PtahSchema, name string) (string, bool) {
	condition, ok := conditionIs(schema, name, no)
	if !ok {
		return "", false
	}
	return condition.Reason, true
}

// publish makes the plan of a verdict current: it keeps the one that is stored when its fingerprint is the same, and
// stores a new one otherwise.
func (p *pass) publish(ctx context.Context, claim *ptahv1.ActiveOperationStatus, v verdict) error {
	status := &p.schema.Status
	in, err := p.claimInputs(claim)
	if err != nil {
		return err
	}
	spec := p.planSpec(claim, in, v)
	if current := status.Plan; current != nil {
		spec.SchemaRef = ptahv1.ImmutableObjectReference{Name: p.schema.Name, UID: string(p.schema.UID)}
		spec.ContractVersion = ptahv1.PlanContractVersion
		spec.ContentDigest = ptahv1.Digest(v.plan.PlanDigest)
		fingerprint, err := plan.Fingerprint(spec)
		if err != nil {
			return err
		}
		if fingerprint == current.Fingerprint {
			p.set(ptahv1.ConditionPlanReady, yes, ptahv1.ReasonPlanReady, fmt.Sprintf("Plan %s is stored.", current.Name))
			return nil
		}
	}
	data := v.bytes
	if data == nil {
		// The bytes are the same, but what they are bound to changed: they are taken from the plan that holds them.
		_, data, err = plan.Read(ctx, p.Live, p.schema.Namespace, status.Plan.ImmutableObjectReference)
		if lost(err) { // since the runner was told that it is held
			p.forgetPlan()
			status.NextReconciliationTime = nil
			return nil
		}
		if err != nil {
			return err
		}
	}
	stored, err := p.plans().Publish(ctx, p.schema, spec, data)
	if err != nil {
		return err
	}
	p.adoptPlan(stored)
	return nil
}

func (p *pass) adoptPlan(stored *ptahv1.PtahSchemaPlan) {
	status := &p.schema.Status
	current := currentPlan(stored)
	if pending := status.PendingObservation; pending != nil && pending.Plan.UID == current.UID {
		current.Attempted = true
	}
	if status.Plan != nil {
		p.retirePlan("another plan took its place.")
	}
	status.Plan = current
	p.Metrics.Published(telemetry.FamilySchema, string(p.schema.Spec.Target.Engine), stored.Spec.Destructive)
	p.set(ptahv1.ConditionPlanReady, yes, ptahv1.ReasonPlanReady, fmt.Sprintf("Plan %s is stored.", current.Name))
	if granted, _ := permit(p.schema.Spec.Policy, current); granted == permissionNeedsApproval {
		p.Metrics.Approval(telemetry.FamilySchema, telemetry.OutcomeRequired)
		p.inform(ptahv1.EventApprovalRequired, "Plan", "Plan %s with %d statements waits for an approval.", current.Name, current.StatementCount)
	}
}

// planSpec binds a plan to everything it was computed from.
func (p *pass) planSpec(claim *ptahv1.ActiveOperationStatus, in inputs, v verdict) ptahv1.PtahSchemaPlanSpec {
	changes := []ptahv1.PrivilegeChange{}
	for _, change := range v.plan.PrivilegeChanges {
		changes = append(changes, ptahv1.PrivilegeChange(change))
	}
	if len(changes) == 0 {
		changes = nil
	}
	return ptahv1.PtahSchemaPlanSpec{
		ArtifactDigest:           ptahv1.Digest(v.source.Digest),
		CoordinationDigest:       ptahv1.Digest(claim.CoordinationDigest),
		TargetIdentityDigest:     ptahv1.Digest(v.target.IdentityDigest),
		ActualStateFingerprint:   ptahv1.Digest(v.plan.FromFingerprint),
		DesiredStateFingerprint:  ptahv1.Digest(v.plan.ToFingerprint),
		PolicyFingerprint:        ptahv1.Digest(in.policyFingerprint),
		VerificationPolicyUID:    claim.Source.VerificationPolicy.UID,
		VerificationPolicyDigest: ptahv1.Digest(claim.Source.VerificationPolicy.Digest),
		ExecutionBindingID:       claim.ExecutionBindingID,
		ControllerStateVersion:   ptahv1.ControllerStateVersion,
		PtahVersion:              p.Config.PtahVersion,
		ExecutorImage:            p.Config.ExecutorImage,
		RunnerProtocolVersion:    ptahv1.RunnerProtocolVersion,
		CreatedBy:                p.Config.Manager,
		Dialect:                  v.plan.Dialect,
		TransactionMode:          in.policy.TransactionMode,
		Destructive:              v.plan.Destructive,
		PrivilegeChanges:         changes,
		StatementCount:           int32(v.plan.Statements),
	}
}

func currentPlan(stored *ptahv1.PtahSchemaPlan) *ptahv1.CurrentPlanStatus {
	spec := &stored.Spec
	current := &ptahv1.CurrentPlanStatus{
		ImmutableObjectReference: ptahv1.ImmutableObjectReference{Name: stored.Name, UID: string(stored.UID)},
		Fingerprint:              string(spec.Fingerprint),
		ContentDigest:            string(spec.ContentDigest),
		Size:                     spec.Size,
		ArtifactDigest:           string(spec.ArtifactDigest),
		CoordinationDigest:       string(spec.CoordinationDigest),
		TargetIdentityDigest:     string(spec.TargetIdentityDigest),
		ActualStateFingerprint:   string(spec.ActualStateFingerprint),
		DesiredStateFingerprint:  string(spec.DesiredStateFingerprint),
		PolicyFingerprint:        string(spec.PolicyFingerprint),
		VerificationPolicyUID:    spec.VerificationPolicyUID,
		VerificationPolicyDigest: string(spec.VerificationPolicyDigest),
		ExecutionBindingID:       spec.ExecutionBindingID,
		ControllerStateVersion:   spec.ControllerStateVersion,
		Destructive:              spec.Destructive,
		StatementCount:           spec.StatementCount,
		TransactionMode:          spec.TransactionMode,
		CreatedAt:                stored.CreationTimestamp,
	}
	for _, change := range spec.PrivilegeChanges {
		current.PrivilegeChanges = append(current.PrivilegeChanges, string(change))
	}
	return current
}

// settleProof ends the proof that was owed, if any: the database was read. An Apply is credited only when it said that
// it applied the plan and the reading found nothing left to do.
func (p *pass) settleProof(ctx context.Context, pending *ptahv1.PendingObservationStatus, converged bool) error {
	if pending == nil {
		return nil
	}
	status := &p.schema.Status
	// Approvals given for this or an earlier plan must not let anything run again: they are void before the plan can
	// be current again.
	approvals, err := p.listApprovals(ctx)
	if err != nil {
		return err
	}
	open := sortApprovals(approvals, p.schema, &pending.Plan)
	if open.chosen != nil {
		open.superseded = append(open.superseded, open.chosen)
	}
	if err := errors.Join(p.markSuperseded(ctx, open.superseded), p.markOutdated(ctx, open.outdated)); err != nil {
		return err
	}
	status.PendingObservation = nil
	if converged && pending.Outcome == ptahv1.ApplySucceeded {
		status.Applied = &ptahv1.AppliedStatus{
			ArtifactDigest: pending.Plan.ArtifactDigest, PlanRef: pending.Plan.ImmutableObjectReference,
			PlanFingerprint: pending.Plan.Fingerprint, CoordinationDigest: pending.Plan.CoordinationDigest,
			TargetIdentityDigest: pending.Plan.TargetIdentityDigest, ExecutionBindingID: pending.Plan.ExecutionBindingID,
			ControllerStateVersion: pending.Plan.ControllerStateVersion, DispatchedBy: pending.DispatchedBy, CompletedAt: metav1.NewTime(p.now),
		}
		p.Metrics.Apply(telemetry.FamilySchema, telemetry.OutcomeCompleted)
		p.inform(ptahv1.EventOperationCompleted, "Prove", "Plan %s was applied and the database converged.", pending.Plan.Name)
	}
	p.oweRelease(pending.Inputs.CoordinationDigest, pending.ApplyOperationID, pending.LeaseEpoch, pending.LeaseDurationSeconds, false)
	return nil
}

// abandonProof gives up a proof that failed while the resource is being deleted: nobody would read its outcome, and a
// database that cannot be read must not keep the resource for ever.
func (p *pass) abandonProof(pending *ptahv1.PendingObservationStatus) {
	if pending == nil || p.schema.DeletionTimestamp.IsZero() {
		return
	}
	p.warn(ptahv1.EventApplyOutcomeUnknown, "Delete", "The resource is deleted although the outcome of Apply %s on plan %s could not be proven.", pending.ApplyJobName, pending.Plan.Name)
	p.schema.Status.PendingObservation = nil
	p.oweRelease(pending.Inputs.CoordinationDigest, pending.ApplyOperationID, pending.LeaseEpoch, pending.LeaseDurationSeconds, false)
}

// forgetApply deletes the result records of an Apply that is settled. Those of a refresh go with their Job.
func (p *pass) forgetApply(ctx context.Context, pending *ptahv1.PendingObservationStatus) error {
	err := p.Client.DeleteAllOf(ctx, &ptahv1.PtahResultRecord{}, client.InNamespace(p.schema.Namespace), client.MatchingLabels{
		ptahv1.LabelSchema: p.schema.Name, ptahv1.LabelOperationID: identity.ShortID(pending.ApplyOperationID),
	})
	if err != nil {
		return fmt.Errorf("delete result records of Apply %s: %w", pending.ApplyJobName, err)
	}
	return nil
}
