package schema

import (
	"context"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	ptahv1 "ptah.run/ptah/operator/api/v1alpha1"
	"ptah.run/ptah/operator/operation"
	"ptah.run/ptah/operator/plan"
	"ptah.run/ptah/operator/realm"
	"ptah.run/ptah/operator/telemetry"
)

// dispatchWindow is how long after its dispatch mark an Apply may begin to run statements.
const dispatchWindow = 5 * time.Minute

// approval decides about the plan that waits, and claims its Apply.
func (p *pass) approval(ctx context.Context) (decision, error) {
	status := &p.schema.Status
	approvals, err := p.listApprovals(ctx)
	if err != nil {
		return stop(), err
	}
	if err := p.markOutdated(ctx, sortApprovals(approvals, p.schema, status.Plan).outdated); err != nil {
		return stop(), err
	}
	if status.Plan == nil || status.RefreshedGeneration != p.schema.Generation || status.FailedAttempts > 0 {
		return goOn, nil
	}
	granted, _ := permit(p.schema.Spec.Policy, status.Plan)
	switch granted {
	case permissionGranted:
		return p.claimApply(ctx, nil)
	case permissionBlocked:
		return goOn, nil
	}
	found := sortApprovals(approvals, p.schema, status.Plan)
	if found.chosen == nil {
		return goOn, nil
	}
	// The cached copy is enough: using it up is a write that carries its resource version, and nothing is dispatched
	// before that write succeeded.
	return p.claimApply(ctx, found.chosen)
}

// claimApply writes the claim of an Apply. From here on the claim is the one authorisation: a deadline that passes
// later does not reinterpret it.
func (p *pass) claimApply(ctx context.Context, approval *ptahv1.PtahSchemaApproval) (decision, error) {
	status := &p.schema.Status
	current := status.Plan
	policy, unusable, err := readPolicy(ctx, p.Live, p.schema.Namespace, p.schema.Spec.Desired.VerificationPolicyFrom)
	if err != nil {
		return stop(), err
	}
	if unusable != nil || policy.UID != current.VerificationPolicyUID || policy.Digest != current.VerificationPolicyDigest {
		return p.invalidatePolicy()
	}
	in, err := specInputs(p.schema)
	if err != nil {
		return stop(), err
	}
	if in.coordination != current.CoordinationDigest || in.policyFingerprint != current.PolicyFingerprint ||
		current.ExecutionBindingID != status.ExecutionBinding.Epoch || status.Source == nil || status.Source.Digest != current.ArtifactDigest {
		p.retirePlan("its inputs changed.")
		status.NextReconciliationTime = nil
		return wakeAfter(time.Second), nil
	}
	if err := p.setFinalizer(ctx, true); err != nil {
		return stop(), err
	}
	in.source.VerificationPolicy = policy
	in.source.RequestedReference = status.Source.ResolvedReference
	claim, err := p.applyClaim(in, approval)
	if err != nil {
		return stop(), err
	}
	status.ActiveOperation = claim
	if approval != nil {
		current.Approval = &ptahv1.PlanApprovalStatus{
			Name: approval.Name, UID: string(approval.UID), Approver: approval.Spec.Approver, ApprovedAt: approval.Spec.ApprovedAt,
		}
		p.Metrics.Approval(telemetry.FamilySchema, telemetry.OutcomeAccepted)
		p.inform(ptahv1.EventApprovalAccepted, "Apply", "Approval %s by %s authorises plan %s once.", approval.Name, approval.Spec.Approver.Username, current.Name)
	}
	if err := p.persist(ctx); err != nil {
		return stop(), err
	}
	return p.dispatchApply(ctx, approval)
}

// invalidatePolicy retires a plan whose artifact was verified under a policy that is gone or changed.
func (p *pass) invalidatePolicy() (decision, error) {
	message := "The verification policy changed since the artifact was verified."
	p.warn(ptahv1.EventVerificationPolicyChanged, "Apply", "%s", message)
	p.retirePlan(message)
	p.set(ptahv1.ConditionArtifactVerified, no, ptahv1.ReasonPolicyChanged, message)
	p.set(ptahv1.ConditionPlanReady, unknown, ptahv1.ReasonPolicyChanged, message)
	p.schema.Status.NextReconciliationTime = nil
	return wakeAfter(time.Second), nil
}

func (p *pass) applyClaim(in inputs, approval *ptahv1.PtahSchemaApproval) (*ptahv1.ActiveOperationStatus, error) {
	status := &p.schema.Status
	current := status.Plan
	reference := current.ImmutableObjectReference
	source, policy := in.source, in.policy
	claim := &ptahv1.ActiveOperationStatus{
		Type: ptahv1.OperationApply, Generation: p.schema.Generation, StartedAt: metav1.NewTime(p.now.Truncate(time.Second)),
		Attempt: 1, ExecutionBindingID: status.ExecutionBinding.Epoch, TerminationGracePeriodSeconds: operation.GraceSeconds,
		CoordinationDigest: in.coordination, TargetIdentityDigest: current.TargetIdentityDigest, Target: in.target,
		Source: &source, Policy: &policy, PlanRef: &reference, LeaseDurationSeconds: int32(p.leaseDuration() / time.Second),
	}
	approvalUID := ""
	if approval != nil {
		claim.ApprovalRef = &ptahv1.ImmutableObjectReference{Name: approval.Name, UID: string(approval.UID)}
		approvalUID = string(approval.UID)
	}
	fingerprint, err := plan.CanonicalDigest(map[string]any{
		"epoch": claim.ExecutionBindingID, "target": claim.Target, "coordination": claim.CoordinationDigest,
		"policy": in.policyFingerprint, "plan": current.Fingerprint, "planUID": current.UID, "approvalUID": approvalUID,
	})
	if err != nil {
		return nil, err
	}
	claim.InputFingerprint = fingerprint
	claim.ID, err = operation.ID(string(p.schema.UID), claim.Type, map[string]string{
		"inputs": fingerprint, "startedAt": claim.StartedAt.UTC().Format(time.RFC3339),
	})
	if err != nil {
		return nil, err
	}
	claim.JobName = operation.JobName(p.schema.Name, string(p.schema.UID), claim)
	claim.LeaseEpoch, err = realm.NewEpoch(p.Random)
	return claim, err
}

// dispatchApply goes from the claim to the Job. Every durable boundary is its own write, in this order: the Lease under
// the epoch that the claim names, approval consumed, dispatch mark, create, Job UID. It continues wherever an earlier
// pass ended before the mark.
func (p *pass) dispatchApply(ctx context.Context, approval *ptahv1.PtahSchemaApproval) (decision, error) {
	claim := p.claim()
	grant, err := p.Leases.Acquire(ctx, realm.Request{
		Digest: claim.CoordinationDigest, Holder: p.holder(), NewEpoch: claim.LeaseEpoch,
		Duration: time.Duration(claim.LeaseDurationSeconds) * time.Second,
	})
	if err != nil {
		return stop(), err
	}
	if !grant.Held {
		return p.awaitTurn(ctx, grant.RetryAfter), nil
	}
	if claim.LeaseEpoch != grant.Epoch {
		// The Lease was held already. Nothing was dispatched yet, so that another epoch is as good.
		claim.LeaseEpoch = grant.Epoch
		if err := p.persist(ctx); err != nil {
			return stop(), err
		}
	}
	if approval != nil {
		if d, ok, err := p.consume(ctx, approval); !ok || err != nil {
			return d, err
		}
	}
	if ctx.Err() != nil {
		return stop(), ctx.Err()
	}
	now := p.Clock.Now()
	window := min(dispatchWindow, time.Duration(p.schema.Spec.Execution.ActiveDeadlineSeconds)*time.Second)
	claim = p.claim()
	claim.DispatchStarted = true
	claim.DispatchNotAfter = &metav1.Time{Time: wholeSecond(now.Add(window))}
	claim.ExecutionNotAfter = &metav1.Time{Time: wholeSecond(now.Add(time.Duration(p.schema.Spec.Execution.ActiveDeadlineSeconds) * time.Second))}
	claim.RetryNotBefore = nil
	if err := p.persist(ctx); err != nil {
		return stop(), err
	}
	return p.createApply(ctx)
}

// consume uses the approval up. Only one claim ever gets past it: the write carries the approval's resource version.
func (p *pass) consume(ctx context.Context, approval *ptahv1.PtahSchemaApproval) (decision, bool, error) {
	claim := p.claim()
	if consumedBy(approval, claim) {
		return goOn, true, nil
	}
	if settled(approval) || !stamped(approval) || !matches(approval, p.schema, p.schema.Status.Plan) {
		return p.revoke(ctx, approval.Name)
	}
	err := p.markApproval(ctx, approval,
		mark{ptahv1.ConditionAccepted, ptahv1.ReasonCurrentPlan, "The approval matches the current plan."},
		mark{ptahv1.ConditionConsumed, ptahv1.ReasonDispatchCommitted, consumedMessage(claim)})
	return stop(), err == nil, err
}

func consumedMessage(claim *ptahv1.ActiveOperationStatus) string {
	return "The approval was used up by operation " + claim.ID + "."
}

// consumedBy says whether this very claim used the approval up.
func consumedBy(approval *ptahv1.PtahSchemaApproval, claim *ptahv1.ActiveOperationStatus) bool {
	condition := meta.FindStatusCondition(approval.Status.Conditions, ptahv1.ConditionConsumed)
	return condition != nil && condition.Status == yes && condition.Message == consumedMessage(claim)
}

// revoke retires an undispatched claim whose approval does not hold any more.
func (p *pass) revoke(ctx context.Context, approval string) (decision, bool, error) {
	p.warn(ptahv1.EventApprovalRevoked, "Apply", "Approval %s stopped being valid before anything was dispatched.", approval)
	d, err := p.retireApply(ctx)
	return d, false, err
}

// retireApply drops a claim of which nothing can be running.
func (p *pass) retireApply(ctx context.Context) (decision, error) {
	claim := p.claim().DeepCopy()
	if p.schema.Status.Plan != nil {
		p.schema.Status.Plan.Approval = nil
	}
	p.clearClaim()
	if err := p.persist(ctx); err != nil {
		return stop(), err
	}
	if err := p.letGo(ctx, claim.CoordinationDigest, claim.LeaseEpoch); err != nil {
		return stop(), err
	}
	return wakeAfter(time.Second), nil
}

// createApply creates the Job of a marked claim, exactly once.
func (p *pass) createApply(ctx context.Context) (decision, error) {
	claim := p.claim()
	// From the mark on, a stopping manager finishes what it began: the mark alone would have to be taken for an Apply.
	ctx = context.WithoutCancel(ctx)
	current := p.schema.Status.Plan
	job, err := operation.Build(p.Config, operation.Order{
		Subject: p.subject(), Claim: *claim, Policy: *claim.Policy,
		PlanFingerprint: current.Fingerprint, PlanContentDigest: current.ContentDigest,
	})
	if err != nil {
		return p.withdraw(ctx, err)
	}
	outcome, err := operation.Create(ctx, p.Client, job)
	switch outcome {
	case operation.Created:
		p.Metrics.Apply(telemetry.FamilySchema, telemetry.OutcomeStarted)
		return p.adoptApplyJob(ctx, string(job.UID))
	case operation.Refused, operation.NotStarted:
		return p.withdraw(ctx, err)
	}
	p.logger(ctx).Info("Create of an Apply Job was not answered clearly", "job", job.Name, "error", err.Error())
	return wakeAfter(time.Second), nil
}

func (p *pass) adoptApplyJob(ctx context.Context, uid string) (decision, error) {
	claim := p.claim()
	claim.JobUID = uid
	p.inform(ptahv1.EventOperationStarted, "Apply", "Job %s applies plan %s.", claim.JobName, claim.PlanRef.Name)
	if err := p.persist(ctx); err != nil {
		return stop(), err
	}
	return wakeAfter(renewEvery(p.claim().LeaseDurationSeconds)), nil
}

// withdraw takes the mark back after an answer which proves that no Job was stored. A later pass dispatches afresh.
func (p *pass) withdraw(ctx context.Context, cause error) (decision, error) {
	claim := p.claim()
	retry := p.schema.Spec.Execution.FailureRetryInterval.Duration
	claim.DispatchStarted, claim.DispatchNotAfter, claim.ExecutionNotAfter = false, nil, nil
	claim.RetryNotBefore = &metav1.Time{Time: wholeSecond(p.Clock.Now().Add(retry))}
	message := join(sentence("The API server refused the Apply Job, nothing was started: "+cause.Error()), fmt.Sprintf("It is tried again every %s.", retry))
	before, already := conditionIs(p.schema, ptahv1.ConditionReconciliationFailed, yes)
	if !already || before.Reason != string(ptahv1.ReasonPodAdmissionRefused) {
		p.warn(ptahv1.EventPodAdmissionRefused, "Apply", "%s", message)
	}
	p.set(ptahv1.ConditionReconciliationFailed, yes, ptahv1.ReasonPodAdmissionRefused, message)
	p.Metrics.Failed(telemetry.FamilySchema, "apply", telemetry.CategoryInfrastructure)
	return wakeAfter(retry), p.persist(ctx)
}

// renewEvery is how often a held Lease is renewed.
func renewEvery(seconds int32) time.Duration {
	return max(time.Duration(seconds)*time.Second/3, time.Second)
}
