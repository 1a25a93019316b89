package schema

import (
	"context"
	"errors"
	"fmt"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	ptahv1 "ptah.run/ptah/operator/api/v1alpha1"
	"ptah.run/ptah/operator/operation"
	"ptah.run/ptah/operator/operation/result"
	"ptah.run/ptah/operator/plan/report"
	"ptah.run/ptah/operator/realm"
	"ptah.run/ptah/operator/telemetry"
)

// superviseApply continues an Apply from wherever it is. claim is a copy.
func (p *pass) superviseApply(ctx context.Context, claim *ptahv1.ActiveOperationStatus) (decision, error) {
	if !claim.DispatchStarted {
		return p.resumeApply(ctx, claim)
	}
	grant, err := p.Leases.Acquire(ctx, realm.Request{
		Digest: claim.CoordinationDigest, Holder: p.holder(), ExpectedEpoch: claim.LeaseEpoch,
		Duration: time.Duration(claim.LeaseDurationSeconds) * time.Second,
	})
	if err != nil {
		return stop(), err
	}
	if (!grant.Held || grant.ContinuityLost) && !claim.LeaseContinuityLost {
		// Whatever the Job says, somebody else may have worked on the database meanwhile.
		p.claim().LeaseContinuityLost = true
		p.warn(ptahv1.EventLeaseContinuityLost, "Apply", "The database was not reserved without a gap during the Apply; its result does not count.")
		if err := p.persist(ctx); err != nil {
			return stop(), err
		}
		claim = p.claim().DeepCopy()
	}
	job, err := p.findJob(ctx, claim)
	if err != nil {
		return stop(), err
	}
	if claim.JobUID == "" {
		return p.findApply(ctx, claim, job)
	}
	if job != nil {
		if finished, _ := operation.Finished(job); !finished {
			return wakeAfter(renewEvery(claim.LeaseDurationSeconds)), nil
		}
	}
	return p.readApply(ctx, claim, job)
}

// resumeApply continues a claim whose dispatch mark was never written, so that no Job exists.
func (p *pass) resumeApply(ctx context.Context, claim *ptahv1.ActiveOperationStatus) (decision, error) {
	current := p.schema.Status.Plan
	if claim.Generation != p.schema.Generation || p.schema.Spec.Suspend || current == nil ||
		claim.PlanRef.UID != current.UID || claim.ExecutionBindingID != p.schema.Status.ExecutionBinding.Epoch {
		return p.retireApply(ctx)
	}
	if verdict, err := p.census(ctx); err != nil || !verdict.Allowed() {
		if err != nil {
			return stop(), err
		}
		return p.retireApply(ctx)
	}
	if claim.RetryNotBefore != nil && p.now.Before(claim.RetryNotBefore.Time) {
		return wakeAfter(claim.RetryNotBefore.Sub(p.now)), nil
	}
	// Time may have passed since the claim, and the policy is no part of the resource, whose change would be seen.
	policy, unusable, err := readPolicy(ctx, p.Live, p.schema.Namespace, claim.Source.VerificationPolicy.From)
	if err != nil {
		return stop(), err
	}
	if unusable != nil || policy.UID != current.VerificationPolicyUID || policy.Digest != current.VerificationPolicyDigest {
		if _, err := p.invalidatePolicy(); err != nil {
			return stop(), err
		}
		return p.retireApply(ctx)
	}
	if claim.ApprovalRef == nil {
		return p.dispatchApply(ctx, nil)
	}
	approval := &ptahv1.PtahSchemaApproval{}
	err = p.Live.Get(ctx, client.ObjectKey{Namespace: p.schema.Namespace, Name: claim.ApprovalRef.Name}, approval)
	if err != nil && !apierrors.IsNotFound(err) {
		return stop(), fmt.Errorf("read approval %s: %w", claim.ApprovalRef.Name, err)
	}
	if err != nil || string(approval.UID) != claim.ApprovalRef.UID {
		d, _, err := p.revoke(ctx, claim.ApprovalRef.Name)
		return d, err
	}
	return p.dispatchApply(ctx, approval)
}

// findApply looks for the Job of a marked claim whose create was never confirmed. It is never created again. A Job that
// appears after the dispatch window cannot run a statement, because the runner refuses to begin then.
func (p *pass) findApply(ctx context.Context, claim *ptahv1.ActiveOperationStatus, job *batchv1.Job) (decision, error) {
	if job != nil {
		p.Metrics.Apply(telemetry.FamilySchema, telemetry.OutcomeStarted)
		return p.adoptApplyJob(ctx, string(job.UID))
	}
	if p.now.Before(claim.DispatchNotAfter.Time) {
		return wakeAfter(min(lookAgain, claim.DispatchNotAfter.Sub(p.now))), nil
	}
	return p.endApply(claim, ended{outcome: ptahv1.OutcomeUnknown, after: executionEnd(claim)})
}

// ended is what is known of an Apply that ended.
type ended struct {
	outcome ptahv1.ApplyOutcome
	refusal string
	// after is when its proof may begin, nil for at once.
	after *metav1.Time
	job   *batchv1.Job
	pods  podEvidence
}

// readApply reads what a finished Apply delivered, and which Pods it had. A result counts only where one Pod ran.
func (p *pass) readApply(ctx context.Context, claim *ptahv1.ActiveOperationStatus, job *batchv1.Job) (decision, error) {
	receipt, err := p.load(ctx, claim, claim.JobUID)
	unusable := errors.Is(err, operation.ErrNoResult) || errors.Is(err, operation.ErrInvalidResult)
	if err != nil && !unusable {
		return stop(), fmt.Errorf("read result of Job %s: %w", claim.JobName, err)
	}
	end := ended{outcome: ptahv1.OutcomeUnknown, job: job}
	end.pods, err = p.applyPods(ctx, types.UID(claim.JobUID), job, receipt.PodUID)
	if err != nil {
		return stop(), err
	}
	if end.pods.running || unusable && job == nil {
		// Somebody deleted the Job, or made a Pod of it that the Job does not know: it may still be running.
		end.after = executionEnd(claim)
	}
	if !unusable && !end.pods.several() {
		end.outcome, end.refusal = judgeApply(claim, p.schema.Status.Plan, receipt.Document)
	}
	return p.endApply(claim, end)
}

// judgeApply says what an authenticated result of an Apply is worth. Only "applied", of exactly the approved bytes, on
// the expected database, under an unbroken Lease, is a success. A refusal is named, and is still not believed without a
// reading: every outcome other than a success stays to be observed.
func judgeApply(claim *ptahv1.ActiveOperationStatus, plan *ptahv1.CurrentPlanStatus, document *result.Document) (ptahv1.ApplyOutcome, string) {
	if claim.LeaseContinuityLost {
		return ptahv1.OutcomeUnknown, ""
	}
	applied := document.Apply
	if document.Failed() == nil && applied != nil && applied.Outcome == report.OutcomeApplied && plan != nil &&
		applied.PlanDigest == plan.ContentDigest && applied.Executed == int(plan.StatementCount) &&
		(document.TargetIdentityDigest == "" || document.TargetIdentityDigest == claim.TargetIdentityDigest) {
		return ptahv1.ApplySucceeded, ""
	}
	if document.MutationStarted || applied != nil && (applied.MutationStarted || applied.Executed > 0) {
		if applied == nil || applied.Outcome != report.OutcomeRefused || applied.MutationStarted || applied.Executed > 0 {
			return ptahv1.OutcomeUnknown, ""
		}
	}
	return ptahv1.OutcomeUnknown, refusalOf(document)
}

// refusalOf names why nothing was executed.
func refusalOf(document *result.Document) string {
	if document.Apply != nil && document.Apply.Problem != nil {
		return string(document.Apply.Problem.Code)
	}
	failed := document.Failed()
	switch {
	case failed == nil:
		return ""
	case failed.Problem != nil:
		return string(failed.Problem.Code)
	}
	return string(failed.Code)
}

// endApply turns the claim into a proof that is owed. The write that records both is that of the proof's own claim, or
// that of the pass where the proof has to wait. The Lease stays.
func (p *pass) endApply(claim *ptahv1.ActiveOperationStatus, end ended) (decision, error) {
	name := telemetry.OutcomeUncertain
	switch {
	case end.outcome == ptahv1.ApplySucceeded:
		name = telemetry.OutcomeCompleted
	case end.refusal != "":
		name = telemetry.OutcomeRefused
	}
	p.Metrics.Operation(telemetry.FamilySchema, "apply", name, p.now.Sub(claim.StartedAt.Time))
	p.oweProof(end)
	return goOn, nil
}

// oweProof replaces the claim of an Apply by the proof that it owes, with everything the proof will read.
func (p *pass) oweProof(end ended) {
	status := &p.schema.Status
	claim := status.ActiveOperation
	plan := ptahv1.CurrentPlanStatus{}
	if status.Plan != nil {
		plan = *status.Plan
	}
	status.PendingObservation = &ptahv1.PendingObservationStatus{
		Outcome: end.outcome, Refusal: end.refusal, ObserveAfter: end.after,
		ApplyOperationID: claim.ID, ApplyJobName: claim.JobName, ApplyJobUID: claim.JobUID, ApplyGeneration: claim.Generation,
		Plan: plan, DispatchedBy: operation.DispatchedBy(end.job), LeaseEpoch: claim.LeaseEpoch, LeaseDurationSeconds: claim.LeaseDurationSeconds,
		Inputs: ptahv1.ProofInputs{
			Target: claim.Target, CoordinationDigest: claim.CoordinationDigest, Source: *claim.Source, Policy: *claim.Policy,
		},
	}
	end.pods.record(status.PendingObservation)
	status.ActiveOperation = nil
	status.Converged = nil
	status.FailedAttempts = 0
	status.Plan = nil
	p.set(ptahv1.ConditionInSync, unknown, ptahv1.ReasonVerifyingConvergence, "An Apply ended; the database was not read back yet.")
	p.set(ptahv1.ConditionReconciliationFailed, no, ptahv1.ReasonSucceeded, "The Apply ended.")
	switch {
	case end.refusal != "":
		p.set(ptahv1.ConditionPlanReady, no, ptahv1.ReasonStalePlan, "The executor refused the plan ("+end.refusal+").")
		p.warn(ptahv1.EventPlanStale, "Apply", "The executor refused plan %s (%s) and executed nothing; the database is read again.", plan.Name, end.refusal)
		p.Metrics.Apply(telemetry.FamilySchema, telemetry.OutcomeRefused)
	case end.pods.several():
		p.set(ptahv1.ConditionPlanReady, unknown, ptahv1.ReasonApplyOutcomeUnknown, "More than one Pod of the Apply was seen; its outcome is not established.")
		p.warn(ptahv1.EventApplyOutcomeUnknown, "Apply", "Job %s had %d Pods, so that no result of theirs counts; the database is read again and nothing is replayed.", claim.JobName, end.pods.count)
		p.Metrics.Apply(telemetry.FamilySchema, telemetry.OutcomeUncertain)
	case end.outcome == ptahv1.OutcomeUnknown:
		p.set(ptahv1.ConditionPlanReady, unknown, ptahv1.ReasonApplyOutcomeUnknown, "The outcome of the Apply is not established.")
		p.warn(ptahv1.EventApplyOutcomeUnknown, "Apply", "It is not known what Job %s did to the database; it is read again and nothing is replayed.", claim.JobName)
		p.Metrics.Apply(telemetry.FamilySchema, telemetry.OutcomeUncertain)
	default:
		p.set(ptahv1.ConditionPlanReady, no, ptahv1.ReasonJobCompleted, "The plan was applied.")
	}
}
