package schema

import (
	"context"
	"errors"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	ptahv1 "ptah.run/ptah/operator/api/v1alpha1"
	"ptah.run/ptah/operator/operation"
	"ptah.run/ptah/operator/realm"
)

// proof starts the reading that an Apply owes. It comes before suspension, a newer spec, the engine and the realm:
// nothing but a reading of that database settles what an Apply did.
func (p *pass) proof(ctx context.Context) (decision, error) {
	pending := p.schema.Status.PendingObservation
	if pending == nil {
		return goOn, nil
	}
	wait, err := p.proofDelay(ctx, pending)
	if err != nil {
		return stop(), err
	}
	if p.schema.Spec.Suspend && p.schema.DeletionTimestamp.IsZero() || wait > 0 {
		if err := p.keepLease(ctx, pending); err != nil {
			return stop(), err
		}
		keep := renewEvery(pending.LeaseDurationSeconds)
		if wait > 0 {
			keep = min(keep, wait)
		}
		return wakeAfter(keep), nil
	}
	in, err := proofInputs(pending)
	if err != nil {
		return stop(), err
	}
	d, err := p.startRefresh(ctx, in)
	if err != nil && p.claim() == nil {
		// What the Apply came to is recorded even where its proof cannot be started.
		return d, errors.Join(err, p.persist(ctx))
	}
	return d, err
}

// proofDelay says how long the proof has to wait: for a retry, or until nothing of the Apply can be running any more.
func (p *pass) proofDelay(ctx context.Context, pending *ptahv1.PendingObservationStatus) (time.Duration, error) {
	if next := p.schema.Status.NextReconciliationTime; p.schema.Status.FailedAttempts > 0 && next != nil && p.now.Before(next.Time) {
		return next.Sub(p.now), nil
	}
	if pending.ObserveAfter == nil || !p.now.Before(pending.ObserveAfter.Time) {
		return 0, nil
	}
	job := &batchv1.Job{}
	err := p.Live.Get(ctx, client.ObjectKey{Namespace: p.schema.Namespace, Name: pending.ApplyJobName}, job)
	if err != nil && !apierrors.IsNotFound(err) {
		return 0, err
	}
	if err == nil && job.Annotations[ptahv1.AnnotationOperationID] == pending.ApplyOperationID {
		if finished, _ := operation.Finished(job); finished {
			pods, err := p.applyPods(ctx, job.UID, job, "")
			if err != nil || !pods.running {
				return 0, err
			}
		}
	}
	return pending.ObserveAfter.Sub(p.now), nil
}

// keepLease renews the Lease while the proof has to wait.
func (p *pass) keepLease(ctx context.Context, pending *ptahv1.PendingObservationStatus) error {
	grant, err := p.Leases.Acquire(ctx, realm.Request{
		Digest: pending.Inputs.CoordinationDigest, Holder: p.holder(), ExpectedEpoch: pending.LeaseEpoch,
		Duration: time.Duration(pending.LeaseDurationSeconds) * time.Second,
	})
	if err != nil {
		return err
	}
	if grant.Held && grant.ContinuityLost {
		p.adoptEpoch(grant.Epoch)
	}
	return nil
}
