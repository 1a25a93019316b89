package schema

import (
	"context"

	ptahv1 "ptah.run/ptah/operator/api/v1alpha1"
)

// deletion lets a resource go. It waits for an Apply that may be running, and then for one reading of what it did. It
// waits for nothing else, and no statement ever runs because of a deletion.
func (p *pass) deletion(ctx context.Context) (decision, error) {
	if p.schema.DeletionTimestamp.IsZero() {
		return goOn, nil
	}
	if !p.hasFinalizer() {
		p.gone = true
		return stop(), nil
	}
	status := &p.schema.Status
	claim := status.ActiveOperation
	if claim != nil && claim.Type == ptahv1.OperationApply && claim.DispatchStarted || status.PendingObservation != nil {
		return goOn, nil
	}
	// Plans, chunks and Jobs go by their owner references.
	digest, epoch := "", ""
	if claim != nil {
		digest, epoch = claim.CoordinationDigest, claim.LeaseEpoch
	} else if in, err := specInputs(p.schema); err == nil {
		digest = in.coordination
	}
	if digest != "" {
		if err := p.Leases.Release(ctx, digest, p.holder(), epoch); err != nil {
			return stop(), err
		}
	}
	// Nothing is written after the last finalizer is gone.
	p.gone = true
	return stop(), p.setFinalizer(ctx, false)
}
