package schema

import (
	"context"
	"crypto/rand"
	"fmt"
	"strings"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/config"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/prometheus/client_golang/prometheus"

	ptahv1 "ptah.run/ptah/operator/api/v1alpha1"
	"ptah.run/ptah/operator/realm"
	"ptah.run/ptah/operator/telemetry"
)

// The specification allows a minute; what wakes a claimant takes moments. No step of this test may wait for the
// minute's own look, or a lost watch would go unseen.
const seenWithin = 30 * time.Second

// twoTenants are two namespaces with one resource each, on a real API server with a running manager and its caches.
type twoTenants struct {
	t      *testing.T
	client client.Client
	realm  *ptahv1.PtahRealm
	first  client.ObjectKey
	second client.ObjectKey
}

func newTwoTenants(t *testing.T) *twoTenants {
	t.Helper()
	server.Config(t)
	number := worlds.Add(1)
	tenants := &twoTenants{t: t}
	scheme := newScheme(t)
	direct, err := client.New(server.Config(t), client.Options{Scheme: scheme})
	if err != nil {
		t.Fatal(err)
	}
	tenants.client = direct
	tenants.first = client.ObjectKey{Namespace: fmt.Sprintf("tenant-one-%d", number), Name: "orders-one"}
	tenants.second = client.ObjectKey{Namespace: fmt.Sprintf("tenant-two-%d", number), Name: "orders-two"}
	coordination := fmt.Sprintf("coordination-%d", number)
	for _, name := range []string{tenants.first.Namespace, tenants.second.Namespace, coordination} {
		tenants.create(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}})
		policy := newPolicy()
		policy.Namespace = name
		tenants.create(policy)
	}
	tenants.realm = &ptahv1.PtahRealm{
		ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("orders-%d", number)},
		Spec: ptahv1.PtahRealmSpec{
			Engine: ptahv1.EnginePostgreSQL, Sharing: ptahv1.RealmShared,
			Namespaces: []ptahv1.RealmNamespace{ptahv1.RealmNamespace(tenants.first.Namespace), ptahv1.RealmNamespace(tenants.second.Namespace)},
		},
	}
	tenants.create(tenants.realm)
	tenants.manage(coordination)
	return tenants
}

// manage runs the controller as the manager does, with caches that fail on what they do not hold.
func (w *twoTenants) manage(coordination string) {
	w.t.Helper()
	mgr, err := ctrl.NewManager(server.Config(w.t), ctrl.Options{
		Cache: cache.Options{
			ReaderFailOnMissingInformer: true, DefaultTransform: cache.TransformStripManagedFields(),
			ByObject: map[client.Object]cache.ByObject{&ptahv1.PtahSchema{}: {Transform: Cached}},
		},
		Scheme: w.client.Scheme(), Metrics: metricsserver.Options{BindAddress: "0"}, Controller: config.Controller{SkipNameValidation: ptr.To(true)}, GracefulShutdownTimeout: ptr.To(10 * time.Second),
	})
	if err != nil {
		w.t.Fatal(err)
	}
	reconciler := emptyWorld(w.t, w.client.Scheme()).reconciler()
	reconciler.Client, reconciler.Live = mgr.GetClient(), mgr.GetAPIReader()
	reconciler.Clock, reconciler.Random = clock.RealClock{}, rand.Reader
	reconciler.Leases = &realm.Leases{Client: w.client, Namespace: coordination, Clock: clock.RealClock{}, Random: rand.Reader}
	reconciler.Metrics = telemetry.New(prometheus.NewRegistry())
	if err := reconciler.SetupWithManager(mgr); err != nil {
		w.t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- mgr.Start(ctx) }()
	w.t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			w.t.Errorf("the manager ended with %v", err)
		}
	})
}

func (w *twoTenants) create(object client.Object) {
	w.t.Helper()
	if err := w.client.Create(context.Background(), object); err != nil {
		w.t.Fatalf("create %s: %v", object.GetName(), err)
	}
}

// claim lets a tenant declare its resource.
func (w *twoTenants) claim(key client.ObjectKey) {
	w.t.Helper()
	w.create(newSchema(func(s *ptahv1.PtahSchema) {
		s.Namespace, s.Name = key.Namespace, key.Name
		s.Spec.Interval = metav1.Duration{Duration: 24 * time.Hour}
		s.Spec.Target.CoordinationKey, s.Spec.Target.RealmRef = "", &ptahv1.RealmReference{Name: w.realm.Name}
	}))
}

// edit changes a resource as a person does, against whatever the manager writes meanwhile.
func (w *twoTenants) edit(key client.ObjectKey, patch string) {
	w.t.Helper()
	schema := &ptahv1.PtahSchema{ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: key.Name}}
	if err := w.client.Patch(context.Background(), schema, client.RawPatch("application/merge-patch+json", []byte(patch))); err != nil {
		w.t.Fatalf("edit %s: %v", key, err)
	}
}

func (w *twoTenants) get(key client.ObjectKey) *ptahv1.PtahSchema {
	w.t.Helper()
	schema := &ptahv1.PtahSchema{}
	if err := w.client.Get(context.Background(), key, schema); err != nil {
		w.t.Fatal(err)
	}
	return schema
}

// jobs are those of both tenants.
func (w *twoTenants) jobs() []batchv1.Job {
	w.t.Helper()
	jobs := []batchv1.Job{}
	for _, key := range []client.ObjectKey{w.first, w.second} {
		list := &batchv1.JobList{}
		if err := w.client.List(context.Background(), list, client.InNamespace(key.Namespace)); err != nil {
			w.t.Fatal(err)
		}
		jobs = append(jobs, list.Items...)
	}
	return jobs
}

// soon waits until something is so.
func (w *twoTenants) soon(what string, is func() bool) {
	w.t.Helper()
	begun := time.Now()
	for time.Since(begun) < seenWithin {
		if is() {
			return
		}
		time.Sleep(50 * time.Millisecond)
	}
	w.t.Fatalf("not within %s: %s; %s has %q, %s has %q, %d Jobs", seenWithin, what, w.first, w.ready(w.first), w.second, w.ready(w.second), len(w.jobs()))
}

// ready is reason and message of Ready.
func (w *twoTenants) ready(key client.ObjectKey) string {
	for _, c := range w.get(key).Status.Conditions {
		if c.Type == ptahv1.ConditionReady {
			return c.Reason + ": " + c.Message
		}
	}
	return ""
}

// bothSay waits until both tenants read the same, and nothing of either runs.
func (w *twoTenants) bothSay(says string) {
	w.t.Helper()
	w.soon("both say "+says, func() bool {
		return strings.Contains(w.ready(w.first), says) && strings.Contains(w.ready(w.second), says) && len(w.jobs()) == 0
	})
	for key, other := range map[client.ObjectKey]client.ObjectKey{w.first: w.second, w.second: w.first} {
		s := w.get(key)
		for _, c := range s.Status.Conditions {
			if strings.Contains(c.Message, other.Namespace) || strings.Contains(c.Message, other.Name) {
				w.t.Errorf("%s learns of the other tenant: %s", key, c.Message)
			}
		}
		if s.Status.Phase != ptahv1.PhaseBlocked {
			w.t.Errorf("%s is in phase %s", key, s.Status.Phase)
		}
	}
}

func TestTwoTenantsOfOneDatabaseSeeTheirConflictAndItsEnd(t *testing.T) {
	w := newTwoTenants(t)
	works := func(key client.ObjectKey) func() bool {
		return func() bool {
			jobs := w.jobs()
			return len(jobs) == 1 && jobs[0].Namespace == key.Namespace && w.get(key).Status.Phase == ptahv1.PhaseRefreshing
		}
	}
	w.claim(w.first)
	w.soon("the only claimant works", works(w.first))
	w.claim(w.second)
	w.bothSay("RealmConflict: 2 resources claim this database and 2 of them do not set")
	w.edit(w.first, `{"spec":{"target":{"sharedRealm":true}}}`)
	w.bothSay("RealmConflict: 2 resources claim this database and 1 of them do not set")

	w.edit(w.second, `{"spec":{"target":{"sharedRealm":true}}}`)
	w.soon("both are free and one works", func() bool {
		return !strings.Contains(w.ready(w.first), "RealmConflict") && !strings.Contains(w.ready(w.second), "RealmConflict") && len(w.jobs()) == 1
	})

	// The administrator changes the realm under them.
	patch := client.RawPatch("application/merge-patch+json", []byte(`{"spec":{"sharing":"Exclusive"}}`))
	if err := w.client.Patch(context.Background(), w.realm, patch); err != nil {
		t.Fatal(err)
	}
	w.bothSay("RealmConflict: 2 resources claim the database of PtahRealm " + w.realm.Name + ", which admits one at a time")
	w.edit(w.second, `{"spec":{"suspend":true}}`)
	w.soon("the other works when one is suspended", works(w.first))
	w.edit(w.second, `{"spec":{"suspend":false}}`)
	w.bothSay("which admits one at a time")
	patch = client.RawPatch("application/merge-patch+json", []byte(`{"spec":{"namespaces":["`+w.second.Namespace+`"]}}`))
	if err := w.client.Patch(context.Background(), w.realm, patch); err != nil {
		t.Fatal(err)
	}
	w.soon("the one that is still listed works", works(w.second))
	w.soon("the other is not admitted", func() bool { return strings.Contains(w.ready(w.first), "RealmNotAuthorized") })
	if err := w.client.Delete(context.Background(), w.realm); err != nil {
		t.Fatal(err)
	}
	w.soon("a deleted realm admits nobody", func() bool { return strings.Contains(w.ready(w.first), "PtahRealm "+w.realm.Name+" does not exist") })
	if !works(w.second)() {
		t.Error("a deleted realm stopped a refresh that runs")
	}
}
