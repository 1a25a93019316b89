package schema

import (
	"context"
	"errors"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	ptahv1 "ptah.run/ptah/operator/api/v1alpha1"
	"ptah.run/ptah/operator/realm"
)

// contestedCheck bounds how long a resource that the census holds goes without looking again.
const contestedCheck = time.Minute

// Indexes of the cache: resources by the database they claim, and by the realm they name.
const (
	indexDatabase = "coordinationDigest"
	indexRealm    = "realmRef"
)

func indexClaims(indexer client.FieldIndexer) error {
	err := errors.Join(
		indexer.IndexField(context.Background(), &ptahv1.PtahSchema{}, indexDatabase, databaseOf),
		indexer.IndexField(context.Background(), &ptahv1.PtahSchema{}, indexRealm, realmOf))
	if err != nil {
		return fmt.Errorf("index the claims of PtahSchemas: %w", err)
	}
	return nil
}

func databaseOf(object client.Object) []string {
	schema, ok := object.(*ptahv1.PtahSchema)
	if !ok {
		return nil
	}
	digest, err := realm.Digest(schema.Namespace, schema.Spec.Target)
	if err != nil {
		return nil
	}
	return []string{digest}
}

func realmOf(object client.Object) []string {
	schema, ok := object.(*ptahv1.PtahSchema)
	if !ok || schema.Spec.Target.RealmRef == nil {
		return nil
	}
	return []string{schema.Spec.Target.RealmRef.Name}
}

// Cached is the transform of the manager's cache for PtahSchemas: of each it keeps what names it and what the census
// looks at. The reconciler reads the rest live, so that status and plans of a whole cluster take no memory.
func Cached(object any) (any, error) {
	schema, ok := object.(*ptahv1.PtahSchema)
	if !ok {
		return object, nil
	}
	return &ptahv1.PtahSchema{
		TypeMeta: schema.TypeMeta,
		ObjectMeta: metav1.ObjectMeta{
			Namespace: schema.Namespace, Name: schema.Name, UID: schema.UID, ResourceVersion: schema.ResourceVersion,
			Generation: schema.Generation, CreationTimestamp: schema.CreationTimestamp, DeletionTimestamp: schema.DeletionTimestamp,
		},
		Spec: ptahv1.PtahSchemaSpec{Target: schema.Spec.Target, Suspend: schema.Spec.Suspend},
	}, nil
}

func claimant(schema *ptahv1.PtahSchema) realm.Claimant {
	return realm.Claimant{
		UID: string(schema.UID), Namespace: schema.Namespace, Target: schema.Spec.Target,
		Idle: schema.Spec.Suspend || !schema.DeletionTimestamp.IsZero(),
	}
}

// census says whether the resource may work on the database it names. It reads the caches alone, so that it costs no
// request: what they do not hold yet wakes the resource when they do, and the Lease keeps two from working meanwhile.
func (p *pass) census(ctx context.Context) (realm.Verdict, error) {
	if p.verdict != nil {
		return *p.verdict, nil
	}
	granted, err := p.grant(ctx)
	if err != nil {
		return realm.Verdict{}, err
	}
	digests := databaseOf(p.schema)
	others := &ptahv1.PtahSchemaList{}
	if len(digests) > 0 {
		if err := p.Client.List(ctx, others, client.MatchingFields{indexDatabase: digests[0]}); err != nil {
			return realm.Verdict{}, fmt.Errorf("count the claims on the database: %w", err)
		}
	}
	claimants := make([]realm.Claimant, len(others.Items))
	for i := range others.Items {
		claimants[i] = claimant(&others.Items[i])
	}
	verdict := realm.Judge(claimant(p.schema), claimants, granted)
	p.verdict = &verdict
	return verdict, nil
}

// grant is the PtahRealm that the resource names, nil where it names none or there is none.
func (p *pass) grant(ctx context.Context) (*ptahv1.PtahRealm, error) {
	reference := p.schema.Spec.Target.RealmRef
	if reference == nil {
		return nil, nil
	}
	granted := &ptahv1.PtahRealm{}
	err := p.Client.Get(ctx, client.ObjectKey{Name: reference.Name}, granted)
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read PtahRealm %s: %w", reference.Name, err)
	}
	return granted, nil
}

// unblock forgets that the census held the resource. What was read before it did was forgotten then.
func (p *pass) unblock() {
	if _, held := heldByRealm(p.schema); !held {
		return
	}
	for _, name := range []string{ptahv1.ConditionDatabaseReachable, ptahv1.ConditionDriftDetected, ptahv1.ConditionPlanReady, ptahv1.ConditionInSync} {
		p.set(name, unknown, ptahv1.ReasonNotYetKnown, "The database may be worked on again and was not read yet.")
	}
}

// claimChanged lets through what can change a census. Resources that are there when the manager starts look by
// themselves.
var claimChanged = predicate.Funcs{
	CreateFunc: func(e event.CreateEvent) bool { return !e.IsInInitialList },
	UpdateFunc: func(e event.UpdateEvent) bool {
		before, wasSchema := e.ObjectOld.(*ptahv1.PtahSchema)
		after, isSchema := e.ObjectNew.(*ptahv1.PtahSchema)
		return wasSchema && isSchema && !sameClaim(before, after)
	},
}

// sameClaim compares what the census looks at.
func sameClaim(a, b *ptahv1.PtahSchema) bool {
	first, second := databaseOf(a), databaseOf(b)
	if len(first) != len(second) || len(first) > 0 && first[0] != second[0] {
		return false
	}
	return a.UID == b.UID && claimant(a).Idle == claimant(b).Idle && a.Spec.Target.SharedRealm == b.Spec.Target.SharedRealm
}

// rivals are the other resources that claim the database of object.
func (r *Reconciler) rivals(ctx context.Context, object client.Object) []reconcile.Request {
	digests := databaseOf(object)
	if len(digests) == 0 {
		return nil
	}
	return r.requests(ctx, object, client.MatchingFields{indexDatabase: digests[0]})
}

// claimantsOfRealm are the resources that name a realm.
func (r *Reconciler) claimantsOfRealm(ctx context.Context, object client.Object) []reconcile.Request {
	return r.requests(ctx, object, client.MatchingFields{indexRealm: object.GetName()})
}

// requests asks for a pass of every resource that fields select, but of cause. A cache that cannot be read is only
// logged: the resources look again by themselves within contestedCheck.
func (r *Reconciler) requests(ctx context.Context, cause client.Object, fields client.MatchingFields) []reconcile.Request {
	list := &ptahv1.PtahSchemaList{}
	if err := r.Client.List(ctx, list, fields); err != nil {
		log.FromContext(ctx).Error(err, "Claimants of a database were not woken")
		return nil
	}
	requests := make([]reconcile.Request, 0, len(list.Items))
	for i := range list.Items {
		if list.Items[i].UID != cause.GetUID() {
			requests = append(requests, reconcile.Request{NamespacedName: client.ObjectKeyFromObject(&list.Items[i])})
		}
	}
	return requests
}
