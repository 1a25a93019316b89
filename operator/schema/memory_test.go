package schema

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"sync"

	batchv1 "k8s.io/api/batch/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	ptahv1 "ptah.run/ptah/operator/api/v1alpha1"
)

// memory is an API server without HTTP, JSON and validation, which is what a life costs on the others: a crash test
// lives thousands of them. It stores copies and keeps what the reconciler relies on: resource versions, the status apart
// from the rest, finalizers, UIDs. The tests that run on it and on a real API server compare the two.
type memory struct {
	client.WithWatch // what nobody uses

	scheme *runtime.Scheme
	clock  clock.PassiveClock

	mu      sync.Mutex
	objects map[memoryKey]client.Object
	version int
	lastUID int
}

type memoryKey struct {
	kind, namespace, name string
}

func newMemory(scheme *runtime.Scheme, clock clock.PassiveClock) *memory {
	return &memory{scheme: scheme, clock: clock, objects: map[memoryKey]client.Object{}}
}

func (m *memory) Scheme() *runtime.Scheme { return m.scheme }

func keyOf(object client.Object) memoryKey {
	return memoryKey{kindOf(object), object.GetNamespace(), object.GetName()}
}

func (k memoryKey) resource() schema.GroupResource { return schema.GroupResource{Resource: k.kind} }

func (k memoryKey) notFound() error { return apierrors.NewNotFound(k.resource(), k.name) }

// put stores a copy under a new resource version, and gives the caller what is stored.
func (m *memory) put(key memoryKey, stored, caller client.Object) {
	m.version++
	stored.SetResourceVersion(strconv.Itoa(m.version))
	m.objects[key] = stored
	give(stored, caller)
}

// give copies what is stored into an object of the same type.
func give(stored, into client.Object) {
	reflect.ValueOf(into).Elem().Set(reflect.ValueOf(stored.DeepCopyObject()).Elem())
}

// current returns what is stored, if it is what the caller read.
func (m *memory) current(object client.Object) (memoryKey, client.Object, error) {
	key := keyOf(object)
	stored, ok := m.objects[key]
	if !ok {
		return key, nil, key.notFound()
	}
	if version := object.GetResourceVersion(); version != "" && version != stored.GetResourceVersion() {
		return key, nil, apierrors.NewConflict(key.resource(), key.name, fmt.Errorf("it was changed"))
	}
	return key, stored.DeepCopyObject().(client.Object), nil
}

// moveStatus gives to the status of from; a kind without a status of its own stays as it is. A nil from empties it.
func moveStatus(to, from client.Object) {
	switch to := to.(type) {
	case *ptahv1.PtahSchema:
		from, _ := from.(*ptahv1.PtahSchema)
		to.Status = statusOf(from, func(o *ptahv1.PtahSchema) ptahv1.PtahSchemaStatus { return o.DeepCopy().Status })
	case *ptahv1.PtahSchemaPlan:
		from, _ := from.(*ptahv1.PtahSchemaPlan)
		to.Status = statusOf(from, func(o *ptahv1.PtahSchemaPlan) ptahv1.PtahSchemaPlanStatus { return o.DeepCopy().Status })
	case *ptahv1.PtahSchemaApproval:
		from, _ := from.(*ptahv1.PtahSchemaApproval)
		to.Status = statusOf(from, func(o *ptahv1.PtahSchemaApproval) ptahv1.PtahSchemaApprovalStatus { return o.DeepCopy().Status })
	case *batchv1.Job:
		from, _ := from.(*batchv1.Job)
		to.Status = statusOf(from, func(o *batchv1.Job) batchv1.JobStatus { return o.DeepCopy().Status })
	}
}

func statusOf[O, S any](object *O, status func(*O) S) S {
	if object == nil {
		var none S
		return none
	}
	return status(object)
}

func (m *memory) Get(_ context.Context, key client.ObjectKey, object client.Object, _ ...client.GetOption) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	at := memoryKey{kindOf(object), key.Namespace, key.Name}
	stored, ok := m.objects[at]
	if !ok {
		return at.notFound()
	}
	give(stored, object)
	return nil
}

func (m *memory) List(_ context.Context, list client.ObjectList, options ...client.ListOption) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	asked := client.ListOptions{}
	asked.ApplyOptions(options)
	if asked.FieldSelector != nil {
		return apierrors.NewBadRequest("field label not supported")
	}
	found := m.selected(strings.TrimSuffix(kindOf(list), "List"), &asked)
	items := make([]runtime.Object, len(found))
	for i, object := range found {
		items[i] = object.DeepCopyObject()
	}
	return meta.SetList(list, items)
}

// selected are the stored objects of a kind, by name.
func (m *memory) selected(kind string, asked *client.ListOptions) []client.Object {
	found := []client.Object{}
	for key, object := range m.objects {
		if key.kind == kind && (asked.Namespace == "" || key.namespace == asked.Namespace) &&
			(asked.LabelSelector == nil || asked.LabelSelector.Matches(labels.Set(object.GetLabels()))) {
			found = append(found, object)
		}
	}
	slices.SortFunc(found, func(a, b client.Object) int {
		return cmp.Or(cmp.Compare(a.GetNamespace(), b.GetNamespace()), cmp.Compare(a.GetName(), b.GetName()))
	})
	return found
}

func (m *memory) Create(_ context.Context, object client.Object, _ ...client.CreateOption) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	key := keyOf(object)
	if _, ok := m.objects[key]; ok {
		return apierrors.NewAlreadyExists(key.resource(), key.name)
	}
	if object.GetResourceVersion() != "" {
		return apierrors.NewBadRequest("resourceVersion should not be set on objects to be created")
	}
	stored := object.DeepCopyObject().(client.Object)
	m.lastUID++
	stored.SetUID(types.UID(fmt.Sprintf("00000000-0000-4000-8000-%012d", m.lastUID)))
	stored.SetGeneration(1)
	stored.SetCreationTimestamp(metav1.NewTime(m.clock.Now()))
	moveStatus(stored, nil)
	m.put(key, stored, object)
	return nil
}

func (m *memory) Update(_ context.Context, object client.Object, _ ...client.UpdateOption) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	key, stored, err := m.current(object)
	if err != nil {
		return err
	}
	next := object.DeepCopyObject().(client.Object)
	moveStatus(next, stored)
	next.SetUID(stored.GetUID())
	next.SetCreationTimestamp(stored.GetCreationTimestamp())
	next.SetDeletionTimestamp(stored.GetDeletionTimestamp())
	m.put(key, next, object)
	m.collect(key)
	return nil
}

// collect removes an object that is being deleted and has no finalizer left.
func (m *memory) collect(key memoryKey) {
	if object := m.objects[key]; object.GetDeletionTimestamp() != nil && len(object.GetFinalizers()) == 0 {
		delete(m.objects, key)
	}
}

// Patch takes the one kind of patch that the reconciler sends: finalizers, under a resource version.
func (m *memory) Patch(_ context.Context, object client.Object, patch client.Patch, _ ...client.PatchOption) error {
	data, err := patch.Data(object)
	if err != nil {
		return err
	}
	sent := struct {
		Metadata struct {
			Finalizers      []string `json:"finalizers"`
			ResourceVersion string   `json:"resourceVersion"`
		} `json:"metadata"`
	}{}
	decoder := json.NewDecoder(strings.NewReader(string(data)))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&sent); err != nil || !strings.Contains(string(data), `"finalizers"`) {
		return apierrors.NewBadRequest(fmt.Sprintf("patch %s: %v", data, err))
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	read := object.DeepCopyObject().(client.Object)
	read.SetResourceVersion(sent.Metadata.ResourceVersion)
	key, stored, err := m.current(read)
	if err != nil {
		return err
	}
	stored.SetFinalizers(sent.Metadata.Finalizers)
	m.put(key, stored, object)
	m.collect(key)
	return nil
}

func (m *memory) Delete(_ context.Context, object client.Object, options ...client.DeleteOption) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	asked := client.DeleteOptions{}
	asked.ApplyOptions(options)
	key := keyOf(object)
	stored, ok := m.objects[key]
	if !ok {
		return key.notFound()
	}
	if asked.Preconditions != nil && asked.Preconditions.UID != nil && *asked.Preconditions.UID != stored.GetUID() {
		return apierrors.NewConflict(key.resource(), key.name, fmt.Errorf("it has another UID"))
	}
	if len(stored.GetFinalizers()) == 0 {
		delete(m.objects, key)
		return nil
	}
	if stored.GetDeletionTimestamp() == nil {
		next := stored.DeepCopyObject().(client.Object)
		now := metav1.NewTime(m.clock.Now())
		next.SetDeletionTimestamp(&now)
		next.SetGeneration(next.GetGeneration() + 1)
		m.put(key, next, next)
	}
	return nil
}

func (m *memory) DeleteAllOf(_ context.Context, object client.Object, options ...client.DeleteAllOfOption) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	asked := client.DeleteAllOfOptions{}
	asked.ApplyOptions(options)
	for _, found := range m.selected(kindOf(object), &asked.ListOptions) {
		delete(m.objects, keyOf(found))
	}
	return nil
}

func (m *memory) Status() client.SubResourceWriter { return m.SubResource("status") }

func (m *memory) SubResource(string) client.SubResourceClient { return memoryStatus{memory: m} }

// memoryStatus writes statuses.
type memoryStatus struct {
	client.SubResourceClient // what nobody uses

	memory *memory
}

func (s memoryStatus) Update(_ context.Context, object client.Object, _ ...client.SubResourceUpdateOption) error {
	m := s.memory
	m.mu.Lock()
	defer m.mu.Unlock()
	key, stored, err := m.current(object)
	if err != nil {
		return err
	}
	moveStatus(stored, object)
	m.put(key, stored, object)
	return nil
}
