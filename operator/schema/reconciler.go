package schema

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	ptahv1 "ptah.run/ptah/operator/api/v1alpha1"
	"ptah.run/ptah/operator/operation"
	"ptah.run/ptah/operator/plan"
	"ptah.run/ptah/operator/realm"
	"ptah.run/ptah/operator/telemetry"
)

// ControllerName names the controller in logs, events and metrics of the runtime.
const ControllerName = "ptahschema"

// Leases takes and releases realm Leases.
type Leases interface {
	Acquire(ctx context.Context, request realm.Request) (realm.Grant, error)
	Release(ctx context.Context, digest, holder, epoch string) error
	Vouch(digest, holder, epoch string) bool
}

// Reconciler reconciles PtahSchema. One worker per resource at a time; only the leader runs it.
type Reconciler struct {
	// Client writes, and reads Jobs and approvals from the cache.
	Client client.Client
	// Live reads past every cache.
	Live    client.Reader
	Leases  Leases
	Results operation.Results
	Config  operation.Config
	Clock   clock.PassiveClock
	// Random gives the bytes of execution epochs.
	Random  io.Reader
	Events  events.EventRecorder
	Metrics *telemetry.Metrics
}

// Reconcile does one pass.
func (r *Reconciler) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	schema := &ptahv1.PtahSchema{}
	err := r.Live.Get(ctx, request.NamespacedName, schema)
	if apierrors.IsNotFound(err) {
		return reconcile.Result{}, nil
	}
	if err != nil {
		return reconcile.Result{}, fmt.Errorf("read PtahSchema: %w", err)
	}
	p := &pass{Reconciler: r, schema: schema, stored: schema.DeepCopy(), now: r.Clock.Now()}
	wake, err := p.run(ctx)
	r.Metrics.Reconciled(telemetry.FamilySchema, err)
	if apierrors.IsConflict(err) {
		// Somebody else wrote in between; the next pass reads what.
		log.FromContext(ctx).V(1).Info("Status changed meanwhile", "error", err.Error())
		return reconcile.Result{RequeueAfter: time.Second}, nil
	}
	if errors.Is(err, errStoredByNewer) {
		log.FromContext(ctx).Error(err, "Resource is left alone")
		return reconcile.Result{}, nil
	}
	return reconcile.Result{RequeueAfter: wake}, err
}

// SetupWithManager registers the controller and what wakes it: a changed spec or a deletion, an operation Job that
// ended or went away, a new approval, another resource that begins or ends to claim the same database, and a changed
// realm. A written status wakes nothing.
func (r *Reconciler) SetupWithManager(mgr ctrl.Manager) error {
	if err := indexClaims(mgr.GetFieldIndexer()); err != nil {
		return err
	}
	return ctrl.NewControllerManagedBy(mgr).
		Named(ControllerName).
		For(&ptahv1.PtahSchema{}, builder.WithPredicates(predicate.GenerationChangedPredicate{})).
		Watches(&batchv1.Job{}, handler.EnqueueRequestForOwner(mgr.GetScheme(), mgr.GetRESTMapper(), &ptahv1.PtahSchema{}, handler.OnlyControllerOwner()),
			builder.WithPredicates(jobEnded)).
		Watches(&ptahv1.PtahSchemaApproval{}, handler.EnqueueRequestsFromMapFunc(schemaOfApproval), builder.WithPredicates(created)).
		Watches(&ptahv1.PtahSchema{}, handler.EnqueueRequestsFromMapFunc(r.rivals), builder.WithPredicates(claimChanged)).
		Watches(&ptahv1.PtahRealm{}, handler.EnqueueRequestsFromMapFunc(r.claimantsOfRealm), builder.WithPredicates(predicate.GenerationChangedPredicate{})).
		Complete(r)
}

// jobEnded lets through what can end a supervision. Starting, scheduling and readiness cannot.
var jobEnded = predicate.Funcs{
	CreateFunc: func(e event.CreateEvent) bool { return finishedJob(e.Object) },
	UpdateFunc: func(e event.UpdateEvent) bool { return finishedJob(e.ObjectNew) && !finishedJob(e.ObjectOld) },
	DeleteFunc: func(event.DeleteEvent) bool { return true },
}

var created = predicate.Funcs{
	UpdateFunc: func(event.UpdateEvent) bool { return false },
	DeleteFunc: func(event.DeleteEvent) bool { return false },
}

func finishedJob(object client.Object) bool {
	job, ok := object.(*batchv1.Job)
	if !ok {
		return false
	}
	finished, _ := operation.Finished(job)
	return finished
}

func schemaOfApproval(_ context.Context, object client.Object) []reconcile.Request {
	approval, ok := object.(*ptahv1.PtahSchemaApproval)
	if !ok {
		return nil
	}
	return []reconcile.Request{{NamespacedName: client.ObjectKey{Namespace: approval.Namespace, Name: approval.Spec.SchemaRef.Name}}}
}

func (r *Reconciler) plans() plan.Store { return plan.Store{Writer: r.Client, Reader: r.Live} }
