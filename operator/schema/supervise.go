package schema

import (
	"context"
	"errors"
	"fmt"
	"time"

	batchv1 "k8s.io/api/batch/v1"

	ptahv1 "ptah.run/ptah/operator/api/v1alpha1"
	"ptah.run/ptah/operator/operation"
	"ptah.run/ptah/operator/operation/identity"
	"ptah.run/ptah/operator/realm"
	"ptah.run/ptah/operator/telemetry"
)

// supervise looks after the claim, if there is one.
func (p *pass) supervise(ctx context.Context) (decision, error) {
	claim := p.claim().DeepCopy()
	switch {
	case claim == nil:
		return goOn, nil
	case claim.Type == ptahv1.OperationApply:
		return p.superviseApply(ctx, claim)
	}
	return p.superviseRefresh(ctx, claim)
}

// claimInputs are the inputs that a refresh claim was made from.
func (p *pass) claimInputs(claim *ptahv1.ActiveOperationStatus) (inputs, error) {
	var in inputs
	var err error
	if pending := p.schema.Status.PendingObservation; claim.ProofOf != "" && pending != nil {
		in, err = proofInputs(pending)
	} else {
		in, err = specInputs(p.schema)
	}
	if err != nil {
		return inputs{}, err
	}
	in.source = *claim.Source
	return in, nil
}

// obsolete says why the result of a refresh claim would be thrown away, "" if it would not.
func (p *pass) obsolete(claim *ptahv1.ActiveOperationStatus) string {
	binding := p.schema.Status.ExecutionBinding
	switch {
	case p.schema.Spec.Suspend:
		return "the resource was suspended"
	case claim.ExecutionBindingID != binding.Epoch || binding.ExecutorImage != p.Config.ExecutorImage ||
		binding.PtahVersion != p.Config.PtahVersion || binding.RunnerProtocolVersion != ptahv1.RunnerProtocolVersion:
		return "the executor changed"
	case claim.ProofOf == "" && claim.Generation != p.schema.Generation:
		return "the spec changed"
	case claim.ProofOf != "" && p.schema.Status.PendingObservation == nil:
		return "nothing is left to prove"
	}
	return ""
}

// contested says whether a refresh reads a database that another resource claims by now. A proof goes on: nothing else
// settles what an Apply did. So does a refresh that the realm stopped admitting; only the next one is refused.
func (p *pass) contested(ctx context.Context, claim *ptahv1.ActiveOperationStatus) (bool, error) {
	if claim.ProofOf != "" {
		return false, nil
	}
	verdict, err := p.census(ctx)
	return verdict.Reason == ptahv1.ReasonRealmConflict, err
}

func (p *pass) superviseRefresh(ctx context.Context, claim *ptahv1.ActiveOperationStatus) (decision, error) {
	job, err := p.findJob(ctx, claim)
	if err != nil {
		return stop(), err
	}
	why := p.obsolete(claim)
	if why == "" {
		contested, err := p.contested(ctx, claim)
		if err != nil {
			return stop(), err
		}
		if contested {
			why = "another resource claims the database"
		}
	}
	if why != "" {
		return p.discardRefresh(ctx, claim, job, why)
	}
	deadline := claim.StartedAt.Add(time.Duration(claim.LeaseDurationSeconds) * time.Second)
	if job == nil {
		if p.now.After(deadline) {
			return p.settleRefresh(ctx, claim, verdictOf(&failure{
				reason: ptahv1.ReasonOperationFailed, stage: stageController, message: "The operation Job is gone and left no result.",
			}))
		}
		in, err := p.claimInputs(claim)
		if err != nil {
			return stop(), err
		}
		return p.createRefresh(ctx, in)
	}
	finished, why := operation.Finished(job)
	if !finished {
		if p.now.After(deadline) {
			// The Job controller is late; the Job ends by its own deadline, and then something happens.
			return wakeAfter(time.Minute), nil
		}
		return wakeAfter(deadline.Sub(p.now)), nil
	}
	return p.readRefresh(ctx, claim, job, why)
}

// discardRefresh drops a claim whose result is of no use, ends its Job, and goes on with what is due now.
func (p *pass) discardRefresh(ctx context.Context, claim *ptahv1.ActiveOperationStatus, job *batchv1.Job, why string) (decision, error) {
	p.logger(ctx).Info("Refresh is discarded", "job", claim.JobName, "why", why)
	if err := p.deleteJob(ctx, job); err != nil {
		return stop(), err
	}
	p.clearClaim()
	p.schema.Status.NextReconciliationTime = nil
	if err := p.persist(ctx); err != nil {
		return stop(), err
	}
	// A changed executor mints its epoch now, which had to wait for the claim.
	return p.binding(ctx)
}

func verdictOf(f *failure) verdict { return verdict{failure: f} }

// readRefresh reads the durable result of a finished Job and settles the claim by it.
func (p *pass) readRefresh(ctx context.Context, claim *ptahv1.ActiveOperationStatus, job *batchv1.Job, why string) (decision, error) {
	receipt, err := p.load(ctx, claim, string(job.UID))
	switch {
	case errors.Is(err, operation.ErrNoResult):
		message := "The operation Pod ended without a result."
		if why != "" {
			message = join(message, sentence(why))
		}
		return p.settleRefresh(ctx, claim, verdictOf(&failure{reason: ptahv1.ReasonOperationFailed, stage: stageController, message: message}))
	case errors.Is(err, operation.ErrInvalidResult):
		return p.settleRefresh(ctx, claim, verdictOf(&failure{reason: ptahv1.ReasonOperationFailed, stage: stageController, message: sentence(err.Error())}))
	case err != nil:
		return stop(), fmt.Errorf("read result of Job %s: %w", job.Name, err)
	}
	if claim.ProofOf != "" {
		if d, lost, err := p.renewed(ctx, claim.CoordinationDigest, claim.LeaseEpoch); lost || err != nil {
			return d, err
		}
	}
	in, err := p.claimInputs(claim)
	if err != nil {
		return stop(), err
	}
	q := question{claim: claim, inputs: in, resolvedBefore: p.schema.Status.Source != nil, now: p.now}
	q.held, q.proven = p.offered(in)
	return p.settleRefresh(ctx, claim, judge(q, receipt.Document))
}

func (p *pass) load(ctx context.Context, claim *ptahv1.ActiveOperationStatus, jobUID string) (operation.Receipt, error) {
	publication := identity.Publication(string(p.schema.UID), claim.ID, jobUID)
	receipt, err := p.Results.Load(ctx, p.schema.Namespace, publication)
	if err != nil {
		return operation.Receipt{}, err
	}
	return receipt, operation.CheckOperation(receipt.Document, claim)
}

// renewed renews the Lease of a proof. When it was not held without a gap, the proof is worth nothing: it is discarded
// and begun again under the epoch that holds now.
func (p *pass) renewed(ctx context.Context, digest, epoch string) (decision, bool, error) {
	if p.Leases.Vouch(digest, p.holder(), epoch) {
		return goOn, false, nil
	}
	grant, err := p.Leases.Acquire(ctx, realm.Request{Digest: digest, Holder: p.holder(), ExpectedEpoch: epoch, Duration: p.leaseDuration()})
	if err != nil {
		return stop(), false, err
	}
	if grant.Held && !grant.ContinuityLost {
		return goOn, false, nil
	}
	p.schema.Status.ActiveOperation = nil
	if !grant.Held {
		p.lostContinuity("")
		return wakeAfter(grant.RetryAfter), true, nil
	}
	p.adoptEpoch(grant.Epoch)
	return wakeAfter(time.Second), true, nil
}

// adoptEpoch records that the Lease is held anew for a proof.
func (p *pass) adoptEpoch(epoch string) { p.lostContinuity(epoch) }

func (p *pass) lostContinuity(epoch string) {
	if pending := p.schema.Status.PendingObservation; pending != nil {
		p.warn(ptahv1.EventLeaseContinuityLost, "Prove", "The database was not reserved without a gap since the Apply; the proof begins again.")
		if epoch != "" {
			pending.LeaseEpoch = epoch
		}
	}
}

// settleRefresh records what a refresh established and clears its claim, in one write.
func (p *pass) settleRefresh(ctx context.Context, claim *ptahv1.ActiveOperationStatus, v verdict) (decision, error) {
	outcome := telemetry.OutcomeCompleted
	if v.failure != nil && !v.failure.refused {
		outcome = telemetry.OutcomeFailed
	}
	p.Metrics.Operation(telemetry.FamilySchema, "refresh", outcome, p.now.Sub(claim.StartedAt.Time))
	p.recordEvidence(v)
	before := p.schema.Status.PendingObservation
	if err := p.recordOutcome(ctx, claim, v); err != nil {
		return stop(), err
	}
	p.clearClaim()
	if err := p.persist(ctx); err != nil {
		return stop(), err
	}
	if p.schema.Status.PendingObservation != nil {
		return goOn, nil
	}
	if before != nil {
		if err := p.forgetApply(ctx, before); err != nil {
			return stop(), err
		}
	}
	return goOn, p.letGo(ctx, claim.CoordinationDigest, claim.LeaseEpoch)
}

// recordEvidence takes over what was read, however far the chain came.
func (p *pass) recordEvidence(v verdict) {
	status := &p.schema.Status
	if v.source != nil {
		status.Source = v.source
		p.set(ptahv1.ConditionArtifactResolved, yes, ptahv1.ReasonDigestPinned, "The reference was resolved to "+v.source.Digest+".")
		if v.source.Verified {
			p.set(ptahv1.ConditionArtifactVerified, yes, ptahv1.ReasonPolicySatisfied, "The artifact satisfies the verification policy.")
		}
	}
	if v.target == nil {
		return
	}
	status.Target = v.target
	p.set(ptahv1.ConditionDatabaseReachable, yes, ptahv1.ReasonObserved, "The database was read.")
	outcome, reason, message := telemetry.OutcomeInSync, ptahv1.ReasonScopedConverged, "The managed scope has no differences."
	if v.drift {
		outcome, reason, message = telemetry.OutcomeDrift, ptahv1.ReasonScopedChanges, "The managed scope differs from the artifact."
	}
	p.Metrics.Observed(string(v.target.Engine), outcome)
	p.set(ptahv1.ConditionDriftDetected, truth(v.drift), reason, message)
}
