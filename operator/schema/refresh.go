package schema

import (
	"context"
	"errors"
	"strconv"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	ptahv1 "ptah.run/ptah/operator/api/v1alpha1"
	"ptah.run/ptah/operator/operation"
	"ptah.run/ptah/operator/plan"
	"ptah.run/ptah/operator/realm"
)

// lookAgain is how soon a Job is looked for whose create was uncertain.
const lookAgain = 5 * time.Second

// due says whether a refresh has to start now.
func due(schema *ptahv1.PtahSchema, observed int64, now time.Time) bool {
	status := &schema.Status
	if observed != schema.Generation || status.NextReconciliationTime == nil || !now.Before(status.NextReconciliationTime.Time) {
		return true
	}
	return status.RefreshedGeneration != schema.Generation && status.FailedAttempts == 0
}

// refresh claims and dispatches a refresh when one is due.
func (p *pass) refresh(ctx context.Context) (decision, error) {
	if !due(p.schema, p.stored.Status.ObservedGeneration, p.now) {
		return goOn, nil
	}
	if first, err := p.decisionFirst(ctx); first || err != nil {
		return goOn, err
	}
	if p.stored.Status.ObservedGeneration != p.schema.Generation {
		p.schema.Status.FailedAttempts = 0
	}
	in, err := specInputs(p.schema)
	if err != nil {
		p.fail(&failure{reason: ptahv1.ReasonConfigurationError, stage: stageController, message: sentence(err.Error())})
		return p.wait(ctx)
	}
	return p.startRefresh(ctx, in)
}

// decisionFirst says whether a decision on the plan goes before a refresh that is due. A refresh that takes longer than
// the interval ends when the next is due already; if that one always went first, no approval would ever be used. What
// such a refresh read is as fresh as it can be, for one more interval.
func (p *pass) decisionFirst(ctx context.Context) (bool, error) {
	status := &p.schema.Status
	if !late(p.schema, p.stored.Status.ObservedGeneration, p.now) {
		return false, nil
	}
	granted, _ := permit(p.schema.Spec.Policy, status.Plan)
	if granted != permissionNeedsApproval {
		return granted == permissionGranted, nil
	}
	approvals, err := p.listApprovals(ctx)
	if err != nil {
		return false, err
	}
	return sortApprovals(approvals, p.schema, status.Plan).chosen != nil, nil
}

// late says whether there is a plan from a refresh that ended after the next was due, less than an interval ago.
func late(schema *ptahv1.PtahSchema, observed int64, now time.Time) bool {
	status := &schema.Status
	ended, next := status.LastSuccessfulReconciliation, status.NextReconciliationTime
	if status.Plan == nil || status.FailedAttempts > 0 || ended == nil || next == nil || observed != schema.Generation || status.RefreshedGeneration != schema.Generation {
		return false
	}
	return !ended.Before(next) && now.Before(ended.Add(schema.Spec.Interval.Duration))
}

// startRefresh takes the Lease, writes the claim with its dispatch mark, and creates the Job.
func (p *pass) startRefresh(ctx context.Context, in inputs) (decision, error) {
	unusable, err := p.bindPolicy(ctx, &in)
	if err != nil {
		return stop(), err
	}
	if unusable != nil {
		return p.giveUp(ctx, unusable)
	}
	epoch, d, err := p.reserve(ctx, in)
	if epoch == "" || err != nil {
		return d, err
	}
	if err := p.checkPlan(ctx, in); err != nil {
		return stop(), err
	}
	if err := p.setFinalizer(ctx, true); err != nil {
		return stop(), err
	}
	claim, err := p.refreshClaim(in, epoch)
	if err != nil {
		return stop(), err
	}
	p.recordRefreshClaim(in, claim)
	if err := p.persist(ctx); err != nil {
		return stop(), err
	}
	return p.createRefresh(ctx, in)
}

// checkPlan looks whether the current plan is still stored. One that somebody deleted can neither be read nor approved;
// if the runner were told that it is held, nobody would ever store it again.
func (p *pass) checkPlan(ctx context.Context, in inputs) error {
	current := p.schema.Status.Plan
	if current == nil || in.proofOf != "" {
		return nil
	}
	_, err := plan.Open(ctx, p.Live, p.schema.Namespace, current.ImmutableObjectReference)
	if lost(err) {
		p.forgetPlan()
		p.schema.Status.RefreshedGeneration = 0
		return nil
	}
	return err
}

// lost says that a plan is not stored as it was.
func lost(err error) bool { return apierrors.IsNotFound(err) || errors.Is(err, plan.ErrAltered) }

func (p *pass) forgetPlan() {
	p.retirePlan("it is not stored any more.")
	p.set(ptahv1.ConditionPlanReady, unknown, ptahv1.ReasonStalePlan, "The plan is not stored any more; it is made anew.")
}

// bindPolicy reads the verification policy live. The first attempt of a proof takes what was frozen with the Apply: if
// that is outdated, the runner says so, and the next attempt reads.
func (p *pass) bindPolicy(ctx context.Context, in *inputs) (*failure, error) {
	if in.proofOf != "" && p.schema.Status.FailedAttempts == 0 {
		return nil, nil
	}
	policy, unusable, err := readPolicy(ctx, p.Live, p.schema.Namespace, in.source.VerificationPolicy.From)
	in.source.VerificationPolicy = policy
	return unusable, err
}

// reserve takes the Lease for a refresh. An empty epoch means that another resource has it.
func (p *pass) reserve(ctx context.Context, in inputs) (string, decision, error) {
	expected := ""
	if pending := p.schema.Status.PendingObservation; pending != nil {
		expected = pending.LeaseEpoch
		if p.Leases.Vouch(in.coordination, p.holder(), expected) {
			return expected, goOn, nil
		}
	}
	grant, err := p.Leases.Acquire(ctx, realm.Request{
		Digest: in.coordination, Holder: p.holder(), ExpectedEpoch: expected, Duration: p.leaseDuration(),
	})
	if err != nil {
		return "", stop(), err
	}
	if !grant.Held {
		return "", p.awaitTurn(ctx, grant.RetryAfter), nil
	}
	if grant.ContinuityLost {
		p.adoptEpoch(grant.Epoch)
	}
	return grant.Epoch, goOn, nil
}

func (p *pass) refreshClaim(in inputs, leaseEpoch string) (*ptahv1.ActiveOperationStatus, error) {
	epoch := p.schema.Status.ExecutionBinding.Epoch
	fingerprint, err := in.fingerprint(epoch)
	if err != nil {
		return nil, err
	}
	claim := &ptahv1.ActiveOperationStatus{
		Type: ptahv1.OperationRefresh, InputFingerprint: fingerprint, Generation: p.schema.Generation,
		StartedAt: metav1.NewTime(p.now.Truncate(time.Second)), Attempt: p.schema.Status.FailedAttempts + 1,
		ExecutionBindingID: epoch, DispatchStarted: true, TerminationGracePeriodSeconds: operation.GraceSeconds,
		CoordinationDigest: in.coordination, TargetIdentityDigest: in.targetIdentity, Target: in.target,
		Source: &in.source, ProofOf: in.proofOf, LeaseEpoch: leaseEpoch,
		LeaseDurationSeconds: int32(p.leaseDuration() / time.Second),
	}
	claim.ID, err = operation.ID(string(p.schema.UID), claim.Type, map[string]string{
		"inputs": fingerprint, "startedAt": claim.StartedAt.UTC().Format(time.RFC3339),
		"attempt": strconv.Itoa(int(claim.Attempt)), "leaseEpoch": leaseEpoch,
	})
	if err != nil {
		return nil, err
	}
	claim.JobName = operation.JobName(p.schema.Name, string(p.schema.UID), claim)
	return claim, nil
}

func (p *pass) recordRefreshClaim(in inputs, claim *ptahv1.ActiveOperationStatus) {
	status := &p.schema.Status
	interval := p.schema.Spec.Interval.Duration
	var wasDue *time.Time
	if status.NextReconciliationTime != nil && status.FailedAttempts == 0 && p.stored.Status.ObservedGeneration == p.schema.Generation {
		wasDue = &status.NextReconciliationTime.Time
	}
	next := metav1.NewTime(nextStart(scheduleBase(p.now, wasDue, interval), interval, string(p.schema.UID)))
	status.NextReconciliationTime = &next
	status.LastAttemptTime = &claim.StartedAt
	status.ActiveOperation = claim
	if in.proofOf == "" && status.RefreshedGeneration != p.schema.Generation && status.FailedAttempts == 0 && status.RefreshedGeneration != 0 {
		for _, name := range []string{ptahv1.ConditionDriftDetected, ptahv1.ConditionPlanReady, ptahv1.ConditionInSync} {
			p.set(name, unknown, ptahv1.ReasonDesiredStateChanged, "The spec changed; the database was not read for it yet.")
		}
	}
}

// giveUp records a failure before a Pod ran, and says when to try again.
func (p *pass) giveUp(ctx context.Context, f *failure) (decision, error) {
	p.fail(f)
	p.abandonProof(p.schema.Status.PendingObservation)
	if !p.schema.DeletionTimestamp.IsZero() {
		return wakeAfter(time.Second), nil
	}
	return p.wait(ctx)
}

// refreshOrder is the order of the refresh that is claimed. It depends only on what is stored with the claim.
func (p *pass) refreshOrder(in inputs) operation.Order {
	order := operation.Order{Subject: p.subject(), Claim: *p.schema.Status.ActiveOperation, Policy: in.policy}
	order.HeldPlanDigest, order.Proven = p.offered(in)
	return order
}

// offered is what the runner is told is known already: the plan that is stored, and the last proof of convergence
// where it holds for these inputs. A proof of an Apply gets neither: it has to see for itself.
func (p *pass) offered(in inputs) (held string, proven *ptahv1.ConvergedStatus) {
	status := &p.schema.Status
	if in.proofOf != "" {
		return "", nil
	}
	if status.Plan != nil && status.Plan.ExecutionBindingID == status.ActiveOperation.ExecutionBindingID {
		held = status.Plan.ContentDigest
	}
	if c := status.Converged; c != nil && c.PolicyFingerprint == in.policyFingerprint && c.ExecutionBindingID == status.ActiveOperation.ExecutionBindingID {
		proven = c
	}
	return held, proven
}

// createRefresh creates the Job of the claim, or finds it. A refresh changes nothing, so that an uncertain create may
// be repeated.
func (p *pass) createRefresh(ctx context.Context, in inputs) (decision, error) {
	job, err := operation.Build(p.Config, p.refreshOrder(in))
	if err != nil {
		return stop(), err
	}
	outcome, err := operation.Create(ctx, p.Client, job)
	switch outcome {
	case operation.Created:
		return wakeAfter(p.leaseDuration()), nil
	case operation.Refused:
		claim := p.claim().DeepCopy()
		p.clearClaim()
		d, _ := p.giveUp(ctx, &failure{reason: ptahv1.ReasonPodAdmissionRefused, stage: stageController, message: sentence("The API server refused the operation Job: " + err.Error())})
		if err := p.persist(ctx); err != nil || p.schema.Status.PendingObservation != nil {
			return d, err
		}
		return d, p.letGo(ctx, claim.CoordinationDigest, claim.LeaseEpoch)
	case operation.NotStarted:
		return stop(), err
	}
	p.logger(ctx).Info("Create of a refresh Job was not answered clearly", "job", job.Name, "error", err.Error())
	return wakeAfter(lookAgain), nil
}

// findJob returns the Job of the claim: from the cache, or live where the cache has none. Nil means that there is none
// of that name, or that the one there is not the claim's.
func (p *pass) findJob(ctx context.Context, claim *ptahv1.ActiveOperationStatus) (*batchv1.Job, error) {
	key := client.ObjectKey{Namespace: p.schema.Namespace, Name: claim.JobName}
	job := &batchv1.Job{}
	err := p.Client.Get(ctx, key, job)
	if apierrors.IsNotFound(err) {
		job = &batchv1.Job{}
		err = p.Live.Get(ctx, key, job)
	}
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	if !operation.IsFor(job, p.schema.UID, claim) || claim.JobUID != "" && claim.JobUID != string(job.UID) {
		return nil, nil
	}
	return job, nil
}

// deleteJob ends a refresh whose result nobody waits for.
func (p *pass) deleteJob(ctx context.Context, job *batchv1.Job) error {
	if job == nil {
		return nil
	}
	err := p.Client.Delete(ctx, job, client.PropagationPolicy(metav1.DeletePropagationBackground),
		client.Preconditions{UID: ptr.To(job.UID)})
	if err != nil && !apierrors.IsNotFound(err) && !apierrors.IsConflict(err) {
		return err
	}
	return nil
}
