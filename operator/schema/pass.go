package schema

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	ptahv1 "ptah.run/ptah/operator/api/v1alpha1"
	"ptah.run/ptah/operator/operation"
	"ptah.run/ptah/operator/realm"
	"ptah.run/ptah/operator/telemetry"
)

// errStoredByNewer says that a newer manager wrote the status. This one must neither interpret nor overwrite it.
var errStoredByNewer = errors.New("the status was written by a newer manager; run that version again")

// pass is one look at one resource.
type pass struct {
	*Reconciler

	schema *ptahv1.PtahSchema
	// stored is the resource as the API server has it.
	stored *ptahv1.PtahSchema
	now    time.Time
	// gone says that nothing is written any more.
	gone bool
	// busySince is when the resource began to wait for its turn, as an earlier pass wrote it.
	busySince *metav1.Time
	// verdict of the census, once it was taken.
	verdict *realm.Verdict
}

// decision is what a step says: go on with the next step, or end the pass and come back after wake (zero: when
// something happens).
type decision struct {
	stop bool
	wake time.Duration
}

var goOn = decision{}

func stop() decision { return decision{stop: true} }
func wakeAfter(after time.Duration) decision {
	return decision{stop: true, wake: max(after, time.Second)}
}

// steps in their order. The first that stops ends the pass.
var steps = []struct {
	name string
	run  func(*pass, context.Context) (decision, error)
}{
	{"fence", (*pass).fence},
	{"owed release", (*pass).finishRelease},
	{"deletion", (*pass).deletion},
	{"execution binding", (*pass).binding},
	{"supervision", (*pass).supervise},
	{"stray finalizer", (*pass).strayFinalizer},
	{"proof", (*pass).proof},
	{"engine", (*pass).engine},
	{"suspension", (*pass).suspension},
	{"realm", (*pass).realm},
	{"refresh", (*pass).refresh},
	{"approval", (*pass).approval},
	{"wait", (*pass).wait},
}

// run goes through the steps, then summarises and writes the status once, if anything in it changed. After an error
// nothing is written: the next pass begins from what is stored.
func (p *pass) run(ctx context.Context) (time.Duration, error) {
	wake := time.Duration(0)
	// Whether the resource waits for its turn is asked anew by every pass.
	p.busySince, p.schema.Status.TargetBusySince = p.schema.Status.TargetBusySince, nil
	for _, step := range steps {
		d, err := step.run(p, ctx)
		if err != nil {
			return 0, fmt.Errorf("%s: %w", step.name, err)
		}
		if d.stop {
			wake = d.wake
			break
		}
	}
	if p.gone {
		return 0, nil
	}
	if p.schema.Status.PendingLockRelease != nil {
		wake = time.Second
	}
	return wake, p.persist(ctx)
}

// persist summarises and writes the status if it differs from what is stored. The write carries the resource version
// that was read, so that it cannot overwrite what this pass did not see.
func (p *pass) persist(ctx context.Context) error {
	summarise(p.schema, p.now)
	if apiequality.Semantic.DeepEqual(p.schema.Status, p.stored.Status) {
		return nil
	}
	if err := p.Client.Status().Update(ctx, p.schema); err != nil {
		return fmt.Errorf("write status: %w", err)
	}
	p.stored = p.schema.DeepCopy()
	return nil
}

func (p *pass) set(name string, status metav1.ConditionStatus, reason ptahv1.Reason, message string) {
	setCondition(p.schema, p.now, name, status, reason, message)
}

func (p *pass) event(kind string, reason ptahv1.EventReason, action, note string, arguments ...any) {
	p.Events.Eventf(p.schema, nil, kind, string(reason), action, note, arguments...)
}

func (p *pass) warn(reason ptahv1.EventReason, action, note string, arguments ...any) {
	p.event(corev1.EventTypeWarning, reason, action, note, arguments...)
}

func (p *pass) inform(reason ptahv1.EventReason, action, note string, arguments ...any) {
	p.event(corev1.EventTypeNormal, reason, action, note, arguments...)
}

// claim is the live claim. It must be asked for again after every write, which replaces what it points to.
func (p *pass) claim() *ptahv1.ActiveOperationStatus { return p.schema.Status.ActiveOperation }

func (p *pass) holder() string { return realm.Holder(string(p.schema.UID)) }

func (p *pass) subject() operation.Subject {
	return operation.Subject{
		APIVersion: ptahv1.GroupVersion.String(), Kind: "PtahSchema", Namespace: p.schema.Namespace,
		Name: p.schema.Name, UID: p.schema.UID, NameLabel: ptahv1.LabelSchema, Component: ptahv1.SchemaOperation,
		Execution: p.schema.Spec.Execution,
	}
}

// leaseDuration covers a Job that uses its whole deadline, its grace, and a margin.
func (p *pass) leaseDuration() time.Duration {
	return time.Duration(p.schema.Spec.Execution.ActiveDeadlineSeconds)*time.Second + time.Minute
}

func (p *pass) hasFinalizer() bool {
	return slices.Contains(p.schema.Finalizers, ptahv1.FinalizerSchema)
}

// setFinalizer adds or removes the finalizer by a metadata patch that fails when the resource changed meanwhile.
func (p *pass) setFinalizer(ctx context.Context, present bool) error {
	if p.hasFinalizer() == present {
		return nil
	}
	changed := p.stored.DeepCopy()
	if present {
		changed.Finalizers = append(changed.Finalizers, ptahv1.FinalizerSchema)
	} else {
		changed.Finalizers = slices.DeleteFunc(changed.Finalizers, func(name string) bool { return name == ptahv1.FinalizerSchema })
	}
	patch := client.MergeFromWithOptions(p.stored, client.MergeFromWithOptimisticLock{})
	if err := p.Client.Patch(ctx, changed, patch); err != nil {
		return fmt.Errorf("set finalizer: %w", err)
	}
	p.schema.Finalizers, p.schema.ResourceVersion = changed.Finalizers, changed.ResourceVersion
	p.stored.Finalizers, p.stored.ResourceVersion = changed.Finalizers, changed.ResourceVersion
	return nil
}

// awaitTurn ends a pass because another resource works on the same database.
func (p *pass) awaitTurn(ctx context.Context, retryAfter time.Duration) decision {
	since := p.busySince
	if since == nil {
		at := metav1.NewTime(p.now.Truncate(time.Second))
		since = &at
		p.inform(ptahv1.EventTargetBusy, "Reserve", "%s", busyMessage)
	}
	p.schema.Status.TargetBusySince = since
	p.logger(ctx).Info("Database is in use by another resource", "since", since.UTC().Format(time.RFC3339), "retryAfter", retryAfter.String())
	return wakeAfter(retryAfter)
}

// letGo gives the Lease back and removes the finalizer. It must come after the durable write that ended the last
// reason to hold them. What does not work is caught up by the stray finalizer step.
func (p *pass) letGo(ctx context.Context, digest, epoch string) error {
	if _, err := p.finishRelease(ctx); err != nil {
		return err
	}
	if err := p.Leases.Release(ctx, digest, p.holder(), epoch); err != nil {
		return err
	}
	return p.setFinalizer(ctx, false)
}

// clearClaim ends the claim in memory. If the spec no longer tells which Lease it held, the release is recorded in the
// same write.
func (p *pass) clearClaim() {
	claim := p.schema.Status.ActiveOperation
	p.schema.Status.ActiveOperation = nil
	if p.schema.Status.PendingObservation != nil || claim == nil {
		return
	}
	p.oweRelease(claim.CoordinationDigest, claim.ID, claim.LeaseEpoch, claim.LeaseDurationSeconds, false)
}

// oweRelease records a release that must survive this process, always or only where the spec names another Lease.
func (p *pass) oweRelease(digest, operationID, epoch string, seconds int32, always bool) {
	if digest == "" || epoch == "" {
		return
	}
	if in, err := specInputs(p.schema); err == nil && in.coordination == digest && !always {
		return
	}
	p.schema.Status.PendingLockRelease = &ptahv1.TargetLockReleaseStatus{
		CoordinationDigest: digest, OperationID: operationID, LeaseEpoch: epoch, LeaseDurationSeconds: seconds,
	}
}

// fail records a failure of a refresh: it is retried after spec.execution.failureRetryInterval.
func (p *pass) fail(f *failure) {
	status := &p.schema.Status
	before, already := conditionIs(p.schema, ptahv1.ConditionReconciliationFailed, yes)
	repeated := already && before.Reason == string(f.reason) && status.FailedAttempts > 0
	retry := p.schema.Spec.Execution.FailureRetryInterval.Duration
	status.FailedAttempts++
	next := metav1.NewTime(wholeSecond(p.now.Add(retry)))
	status.NextReconciliationTime = &next
	message := join(f.message, fmt.Sprintf("It is tried again every %s.", retry))
	p.set(ptahv1.ConditionReconciliationFailed, yes, f.reason, message)
	reason := f.reason
	if f.condition == ptahv1.ConditionArtifactResolved && f.status == corev1.ConditionUnknown {
		reason = ptahv1.ReasonRefreshFailed
	}
	if f.condition != "" {
		p.set(f.condition, metav1.ConditionStatus(f.status), reason, f.message)
	}
	stale := "The last refresh did not complete, so that it is not known what the database looks like now."
	if f.condition != ptahv1.ConditionPlanReady {
		p.set(ptahv1.ConditionPlanReady, unknown, ptahv1.ReasonSourceFreshnessUnknown, stale)
	}
	p.set(ptahv1.ConditionInSync, unknown, ptahv1.ReasonSourceFreshnessUnknown, stale)
	p.Metrics.Failed(telemetry.FamilySchema, f.stage, f.category())
	if !repeated {
		p.warn(ptahv1.EventOperationFailed, "Refresh", "%s: %s", f.reason, message)
	}
}

// succeed clears a recorded failure.
func (p *pass) succeed() {
	p.schema.Status.FailedAttempts = 0
	at := metav1.NewTime(p.now)
	p.schema.Status.LastSuccessfulReconciliation = &at
	p.set(ptahv1.ConditionReconciliationFailed, no, ptahv1.ReasonSucceeded, "The last operation succeeded.")
}

func (p *pass) logger(ctx context.Context) interface {
	Info(msg string, keysAndValues ...any)
} {
	return log.FromContext(ctx)
}
