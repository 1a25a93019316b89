package schema

import (
	"context"
	"fmt"
	"time"

	ptahv1 "ptah.run/ptah/operator/api/v1alpha1"
	"ptah.run/ptah/operator/realm"
)

// fence refuses to touch what a newer manager wrote.
func (p *pass) fence(context.Context) (decision, error) {
	status := &p.schema.Status
	versions := []int32{0}
	if status.ExecutionBinding != nil {
		versions = append(versions, status.ExecutionBinding.ControllerStateVersion)
	}
	if status.Plan != nil {
		versions = append(versions, status.Plan.ControllerStateVersion)
	}
	if status.PendingObservation != nil {
		versions = append(versions, status.PendingObservation.Plan.ControllerStateVersion)
	}
	if status.Applied != nil {
		versions = append(versions, status.Applied.ControllerStateVersion)
	}
	for _, version := range versions {
		if version > ptahv1.ControllerStateVersion || version < 0 {
			return stop(), fmt.Errorf("controller state version %d: %w", version, errStoredByNewer)
		}
	}
	return goOn, nil
}

// finishRelease gives back a Lease whose release was recorded.
func (p *pass) finishRelease(ctx context.Context) (decision, error) {
	owed := p.schema.Status.PendingLockRelease
	if owed == nil {
		return goOn, nil
	}
	if err := p.Leases.Release(ctx, owed.CoordinationDigest, p.holder(), owed.LeaseEpoch); err != nil {
		return stop(), err
	}
	p.schema.Status.PendingLockRelease = nil
	return goOn, nil
}

// binding keeps, mints or moves the execution epoch.
func (p *pass) binding(context.Context) (decision, error) {
	status := &p.schema.Status
	current := status.ExecutionBinding
	wanted := ptahv1.ExecutionBindingStatus{
		ControllerStateVersion: ptahv1.ControllerStateVersion, PtahVersion: p.Config.PtahVersion,
		ExecutorImage: p.Config.ExecutorImage, RunnerProtocolVersion: ptahv1.RunnerProtocolVersion,
	}
	if current != nil {
		wanted.Epoch = current.Epoch
		if wanted == *current {
			return goOn, nil
		}
		if claim := status.ActiveOperation; claim != nil && claim.Type == ptahv1.OperationRefresh {
			// A reading under the old epoch ends first; its result is discarded then.
			return goOn, nil
		}
	}
	epoch, err := realm.NewEpoch(p.Random)
	if err != nil {
		return stop(), err
	}
	wanted.Epoch = epoch
	if current != nil {
		p.retireEpoch()
	}
	status.ExecutionBinding = &wanted
	return goOn, nil
}

// retireEpoch ends everything that was established under the present epoch. An Apply that may run becomes a proof that
// is owed, in the same write.
func (p *pass) retireEpoch() {
	status := &p.schema.Status
	if claim := status.ActiveOperation; claim != nil && claim.DispatchStarted {
		p.oweProof(ended{outcome: ptahv1.OutcomeUnknown, after: executionEnd(claim)})
	} else if claim != nil {
		p.clearClaim()
	}
	message := "The executor changed; what was read and planned before authorises nothing any more."
	p.warn(ptahv1.EventExecutionBindingChanged, "Retire", "%s", message)
	p.retirePlan(message)
	status.Converged = nil
	status.RefreshedGeneration = 0
	for _, name := range []string{ptahv1.ConditionArtifactResolved, ptahv1.ConditionArtifactVerified, ptahv1.ConditionDatabaseReachable,
		ptahv1.ConditionDriftDetected, ptahv1.ConditionPlanReady, ptahv1.ConditionInSync} {
		p.set(name, unknown, ptahv1.ReasonExecutionBindingChanged, message)
	}
}

// retirePlan forgets the current plan. Its approvals become stale in the approval step.
func (p *pass) retirePlan(why string) {
	if current := p.schema.Status.Plan; current != nil {
		p.warn(ptahv1.EventPlanStale, "Retire", "Plan %s is no longer current: %s", current.Name, why)
		p.schema.Status.Plan = nil
	}
}

// strayFinalizer cleans up after a pass that ended between its durable write and letGo, and ends the pass over a
// resource that is being deleted and owes nothing any more.
func (p *pass) strayFinalizer(ctx context.Context) (decision, error) {
	if p.schema.Status.ActiveOperation != nil || p.schema.Status.PendingObservation != nil {
		return goOn, nil
	}
	d := goOn
	if !p.schema.DeletionTimestamp.IsZero() {
		p.gone = true
		d = stop()
	}
	if !p.hasFinalizer() {
		return d, nil
	}
	if in, err := specInputs(p.schema); err == nil {
		return d, p.letGo(ctx, in.coordination, "")
	}
	return d, p.setFinalizer(ctx, false)
}

// engine holds a resource whose engine is not implemented, until the spec changes.
func (p *pass) engine(ctx context.Context) (decision, error) {
	if engineSupported(p.schema) {
		return goOn, nil
	}
	p.block(ptahv1.ReasonUnsupportedEngine, "The engine is not implemented.")
	return stop(), p.staleApprovals(ctx)
}

// realm holds a resource whose realm does not admit it, and one whose database another resource claims as well. What
// ends that wakes it; it also looks again by itself, so that no lost event can hold it for long.
func (p *pass) realm(ctx context.Context) (decision, error) {
	verdict, err := p.census(ctx)
	if err != nil {
		return stop(), err
	}
	if verdict.Allowed() {
		p.unblock()
		return goOn, nil
	}
	p.block(verdict.Reason, verdict.Message)
	return wakeAfter(min(p.schema.Spec.Interval.Duration, contestedCheck)), p.staleApprovals(ctx)
}

// block clears what could lead to work. No deadline is set: only another spec helps, this one's or another resource's.
// What was read before does not count when work goes on.
func (p *pass) block(reason ptahv1.Reason, message string) {
	status := &p.schema.Status
	status.NextReconciliationTime, status.FailedAttempts, status.RefreshedGeneration = nil, 0, 0
	p.retirePlan(message)
	for _, name := range []string{ptahv1.ConditionDatabaseReachable, ptahv1.ConditionDriftDetected, ptahv1.ConditionInSync} {
		p.set(name, unknown, reason, message)
	}
	p.set(ptahv1.ConditionPlanReady, no, reason, message)
	if _, failed := conditionIs(p.schema, ptahv1.ConditionReconciliationFailed, yes); failed {
		p.set(ptahv1.ConditionReconciliationFailed, unknown, reason, "What failed is not tried again while the resource is blocked.")
	}
}

// suspension stops new work.
func (p *pass) suspension(context.Context) (decision, error) {
	if p.schema.Spec.Suspend {
		return stop(), nil
	}
	return goOn, nil
}

// wait ends a pass in which nothing was due.
func (p *pass) wait(context.Context) (decision, error) {
	if next := p.schema.Status.NextReconciliationTime; next != nil {
		return wakeAfter(next.Sub(p.now)), nil
	}
	return wakeAfter(time.Second), nil
}
