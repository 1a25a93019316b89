package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	goruntime "runtime"
	"slices"
	"strings"
	"sync"
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	ptahv1 "ptah.run/ptah/operator/api/v1alpha1"
)

const (
	foreignObjects = 3000
	foreignBytes   = 4 << 10
	foreignSpace   = "foreign"
	// foreignMargin is what a heap may differ by for other causes.
	foreignMargin = 4 << 20
)

// requests are what a client asked for, as "METHOD path".
type requests struct {
	sync.Mutex
	seen map[string]bool
}

type transport func(*http.Request) (*http.Response, error)

func (t transport) RoundTrip(r *http.Request) (*http.Response, error) { return t(r) }

// recorded is config with a record of every request.
func recorded(config *rest.Config) (*rest.Config, *requests) {
	asked := &requests{seen: map[string]bool{}}
	own := rest.CopyConfig(config)
	own.Wrap(func(next http.RoundTripper) http.RoundTripper {
		return transport(func(r *http.Request) (*http.Response, error) {
			asked.Lock()
			asked.seen[r.Method+" "+r.URL.Path] = true
			asked.Unlock()
			return next.RoundTrip(r)
		})
	})
	return own, asked
}

// cachesOnly looks at what the cache answers, and at what the manager asked the API server for.
func cachesOnly(t *testing.T, cached cache.Cache, asked *requests) {
	for name, list := range map[string]client.ObjectList{
		"Secret": &corev1.SecretList{}, "ConfigMap": &corev1.ConfigMapList{}, "Pod": &corev1.PodList{}, "ServiceAccount": &corev1.ServiceAccountList{},
		"PtahSchemaPlan": &ptahv1.PtahSchemaPlanList{}, "PtahSchemaPlanChunk": &ptahv1.PtahSchemaPlanChunkList{}, "PtahResultRecord": &ptahv1.PtahResultRecordList{},
	} {
		var missing *cache.ErrResourceNotCached
		if err := cached.List(t.Context(), list); !errors.As(err, &missing) {
			t.Errorf("%s is cached, or may be: %v", name, err)
		}
	}
	for name, list := range map[string]client.ObjectList{
		"Job": &batchv1.JobList{}, "PtahSchema": &ptahv1.PtahSchemaList{}, "PtahSchemaApproval": &ptahv1.PtahSchemaApprovalList{}, "PtahRealm": &ptahv1.PtahRealmList{},
	} {
		if err := cached.List(t.Context(), list); err != nil {
			t.Errorf("the control: %s is not cached: %v", name, err)
		}
	}
	asked.Lock()
	defer asked.Unlock()
	for _, path := range []string{"/apis/batch/v1/jobs", "/apis/operator.ptah.run/v1alpha1/ptahschemas"} {
		if !asked.seen["GET "+path] {
			t.Errorf("the control: %s was not asked for, of %v", path, asked.seen)
		}
	}
	for request := range asked.seen {
		for _, resource := range []string{"/secrets", "/configmaps", "/pods"} {
			if strings.Contains(request, resource) {
				t.Errorf("the manager asked for %s", request)
			}
		}
	}
}

// foreignObjectsTakeNoMemory adds many ConfigMaps and Jobs that nobody asked the manager to look at, and compares heaps.
func foreignObjectsTakeNoMemory(t *testing.T, cached cache.Cache, scheme *runtime.Scheme) {
	config := rest.CopyConfig(server.Config(t))
	config.QPS, config.Burst = 1000, 1000
	direct, err := client.New(config, client.Options{Scheme: scheme})
	if err != nil {
		t.Fatal(err)
	}
	if err := direct.Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: foreignSpace}}); err != nil {
		t.Fatal(err)
	}
	job := foreignJob("foreign")
	if err := direct.Create(t.Context(), job); err != nil {
		t.Fatal(err)
	}
	before := heap()
	createForeign(t, direct)
	own := foreignJob("own")
	own.Labels = map[string]string{ptahv1.LabelManagedBy: ptahv1.ManagedByValue}
	if err := direct.Create(t.Context(), own); err != nil {
		t.Fatal(err)
	}
	jobs := &batchv1.JobList{}
	eventually(t, "aware of its own Job", func() bool { return cached.List(t.Context(), jobs) == nil && len(jobs.Items) > 0 })
	if len(jobs.Items) != 1 || jobs.Items[0].Name != "own" || len(jobs.Items[0].Spec.Template.Spec.Containers) != 0 || jobs.Items[0].UID == "" {
		t.Errorf("the cache holds %d Jobs: %+v", len(jobs.Items), jobs.Items)
	}
	grown := heap() - before
	t.Logf("%d ConfigMaps of %d bytes: the heap with the manager's cache grew by %d bytes", foreignObjects, foreignBytes, grown)
	if grown > foreignMargin {
		t.Errorf("the heap grew by %d bytes", grown)
	}

	options := cacheOptions()
	options.Scheme = scheme
	options.ReaderFailOnMissingInformer = false
	control, err := cache.New(config, options)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	go func() { _ = control.Start(ctx) }()
	before = heap()
	held := &corev1.ConfigMapList{}
	if err := control.List(ctx, held, client.InNamespace(foreignSpace), client.UnsafeDisableDeepCopy); err != nil {
		t.Fatal(err)
	}
	grown = heap() - before
	t.Logf("the control: a cache with an informer holds %d of them and %d bytes more", len(held.Items), grown)
	if len(held.Items) < foreignObjects || grown < foreignObjects*foreignBytes {
		t.Errorf("the control: an informer of ConfigMaps holds %d objects in %d bytes, so that the measurement sees nothing", len(held.Items), grown)
	}
	goruntime.KeepAlive(held)
}

// heap is what lives, in bytes.
func heap() int64 {
	for range 3 {
		goruntime.GC()
	}
	stats := goruntime.MemStats{}
	goruntime.ReadMemStats(&stats)
	return int64(stats.HeapAlloc)
}

func createForeign(t *testing.T, direct client.Client) {
	t.Helper()
	const workers = 16
	errs := make([]error, workers)
	var group sync.WaitGroup
	for worker := range workers {
		group.Go(func() {
			for i := worker; i < foreignObjects && errs[worker] == nil; i += workers {
				errs[worker] = direct.Create(t.Context(), &corev1.ConfigMap{
					ObjectMeta: metav1.ObjectMeta{Namespace: foreignSpace, Name: fmt.Sprintf("foreign-%04d", i)},
					Data:       map[string]string{"data": strings.Repeat(string(rune('a'+i%26)), foreignBytes)},
				})
			}
		})
	}
	group.Wait()
	if at := slices.IndexFunc(errs, func(err error) bool { return err != nil }); at >= 0 {
		t.Fatal(errs[at])
	}
}

func foreignJob(name string) *batchv1.Job {
	return &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Namespace: foreignSpace, Name: name}, Spec: batchv1.JobSpec{Template: corev1.PodTemplateSpec{
		Spec: corev1.PodSpec{RestartPolicy: corev1.RestartPolicyNever, Containers: []corev1.Container{{Name: "a", Image: "a"}}},
	}}}
}
