package receiver

import (
	"bytes"
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-logr/logr"
	authenticationv1 "k8s.io/api/authentication/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	clocktesting "k8s.io/utils/clock/testing"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"ptah.run/ptah/operator/api/v1alpha1"
	"ptah.run/ptah/operator/operation/identity"
	"ptah.run/ptah/operator/operation/result"
	"ptah.run/ptah/operator/plan"
	"ptah.run/ptah/operator/plan/report"
	"ptah.run/ptah/operator/receiver/delivery"
)

var (
	start  = time.Date(2026, 11, 29, 12, 0, 0, 0, time.UTC)
	digest = func(c string) string { return "sha256:" + strings.Repeat(c, 64) }
	epoch  = "v1-" + strings.Repeat("a", 32)
)

const token = "header.payload.signature"

// world is an API server with one operation in flight, and a receiver beside it.
type world struct {
	t      *testing.T
	client client.Client
	clock  *clocktesting.FakePassiveClock
	server *Server
	id     identity.Identity
	review authenticationv1.TokenReviewStatus
	// reviewError makes the review fail; requests are those to the API server, in order.
	reviewError error
	mutex       sync.Mutex
	requests    []string
	// fail is asked before each request.
	fail func(request string) error
}

func newScheme(t *testing.T) *runtime.Scheme {
	t.Helper()
	scheme := runtime.NewScheme()
	if err := errors.Join(clientgoscheme.AddToScheme(scheme), v1alpha1.AddToScheme(scheme)); err != nil {
		t.Fatal(err)
	}
	return scheme
}

func newWorld(t *testing.T, operation string) *world {
	t.Helper()
	w := &world{t: t, clock: clocktesting.NewFakePassiveClock(start)}
	w.id = identity.Identity{
		Namespace: "shop", Kind: "PtahSchema", Name: "orders", UID: "schema-uid", Generation: 3, ExecutionBindingID: epoch,
		InputFingerprint: digest("1"), Operation: operation, OperationID: digest("2"), JobName: "ptah-job", JobUID: "job-uid",
		PodName: "ptah-job-abcde", PodUID: "pod-uid",
	}
	w.review = authenticationv1.TokenReviewStatus{
		Authenticated: true, Audiences: []string{v1alpha1.ResultTokenAudience},
		User: authenticationv1.UserInfo{Username: "system:serviceaccount:shop:default", Extra: map[string]authenticationv1.ExtraValue{
			extraPodName: {w.id.PodName}, extraPodUID: {w.id.PodUID},
		}},
	}
	base := fake.NewClientBuilder().WithScheme(newScheme(t)).WithObjects(w.objects()...).
		WithStatusSubresource(append(w.objects(), &v1alpha1.PtahSchemaPlan{})...).Build()
	w.client = interceptor.NewClient(base, interceptor.Funcs{
		Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, into client.Object, options ...client.GetOption) error {
			if err := w.note("get " + kindOf(into) + " " + key.Name); err != nil {
				return err
			}
			return c.Get(ctx, key, into, options...)
		},
		Create: func(ctx context.Context, c client.WithWatch, object client.Object, options ...client.CreateOption) error {
			if err := w.note("create " + kindOf(object) + " " + object.GetName()); err != nil {
				return err
			}
			// The fake client invents no UIDs.
			object.SetUID(types.UID("uid-of-" + object.GetName()))
			return c.Create(ctx, object, options...)
		},
	})
	var err error
	w.server, err = New(Options{Client: w.client, Reader: w.client, TokenReviewer: w, Clock: w.clock, Logger: logr.Discard()})
	if err != nil {
		t.Fatal(err)
	}
	return w
}

func kindOf(object client.Object) string {
	switch object.(type) {
	case *v1alpha1.PtahSchema:
		return "schema"
	case *v1alpha1.PtahSchemaPlan:
		return "plan"
	case *v1alpha1.PtahSchemaPlanChunk:
		return "planchunk"
	case *v1alpha1.PtahResultRecord:
		return "record"
	case *batchv1.Job:
		return "job"
	case *corev1.Pod:
		return "pod"
	}
	return "other"
}

func (w *world) note(request string) error {
	w.mutex.Lock()
	defer w.mutex.Unlock()
	w.requests = append(w.requests, request)
	if w.fail != nil {
		return w.fail(request)
	}
	return nil
}

// Review is the world's TokenReviewer.
func (w *world) Review(_ context.Context, given string, audiences []string) (*authenticationv1.TokenReviewStatus, error) {
	if err := w.note("review"); err != nil {
		return nil, err
	}
	if given != token || len(audiences) != 1 || audiences[0] != v1alpha1.ResultTokenAudience {
		w.t.Errorf("review of %q for %v", given, audiences)
	}
	return w.review.DeepCopy(), w.reviewError
}

func (w *world) objects() []client.Object {
	controller := ptr.To(true)
	schema := &v1alpha1.PtahSchema{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "orders", UID: "schema-uid", Generation: 3},
		Status: v1alpha1.PtahSchemaStatus{
			ExecutionBinding: &v1alpha1.ExecutionBindingStatus{Epoch: epoch},
			ActiveOperation: &v1alpha1.ActiveOperationStatus{
				Type: v1alpha1.OperationType(w.id.Operation), ID: w.id.OperationID, InputFingerprint: w.id.InputFingerprint, Generation: 3,
				JobName: w.id.JobName, ExecutionBindingID: epoch, DispatchStarted: true,
			},
		},
	}
	if w.id.Operation == delivery.OperationApply {
		schema.Status.ActiveOperation.DispatchNotAfter = ptr.To(metav1.NewTime(start.Add(time.Minute)))
	}
	return []client.Object{
		schema,
		&batchv1.Job{ObjectMeta: metav1.ObjectMeta{
			Namespace: "shop", Name: w.id.JobName, UID: "job-uid",
			Annotations:     map[string]string{v1alpha1.AnnotationOperationID: w.id.OperationID, v1alpha1.AnnotationInputs: w.id.InputFingerprint, v1alpha1.AnnotationBinding: epoch},
			OwnerReferences: []metav1.OwnerReference{{APIVersion: v1alpha1.GroupVersion.String(), Kind: "PtahSchema", Name: "orders", UID: "schema-uid", Controller: controller, BlockOwnerDeletion: controller}},
		}},
		&corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{
				Namespace: "shop", Name: w.id.PodName, UID: "pod-uid",
				OwnerReferences: []metav1.OwnerReference{{APIVersion: "batch/v1", Kind: "Job", Name: w.id.JobName, UID: "job-uid", Controller: controller}},
			},
			Spec:   corev1.PodSpec{ServiceAccountName: "default"},
			Status: corev1.PodStatus{Phase: corev1.PodRunning},
		},
	}
}

// change edits a stored object.
func change[T client.Object](w *world, object T, name string, edit func(T)) {
	w.t.Helper()
	ctx := context.Background()
	if err := w.client.Get(ctx, client.ObjectKey{Namespace: "shop", Name: name}, object); err != nil {
		w.t.Fatal(err)
	}
	edit(object)
	if err := w.client.Update(ctx, object.DeepCopyObject().(client.Object)); err != nil {
		w.t.Fatal(err)
	}
	if err := w.client.Status().Update(ctx, object); err != nil && !strings.Contains(err.Error(), "not found") {
		// The first update moved the resource version; status goes on the fresh object.
		fresh := object.DeepCopyObject().(T)
		if err := w.client.Get(ctx, client.ObjectKeyFromObject(object), fresh); err != nil {
			w.t.Fatal(err)
		}
		object.SetResourceVersion(fresh.GetResourceVersion())
		if err := w.client.Status().Update(ctx, object); err != nil {
			w.t.Fatal(err)
		}
	}
	w.requests = nil
}

// document is a valid result of the world's operation.
func (w *world) document(t *testing.T) []byte {
	t.Helper()
	d := &result.Document{ProtocolVersion: result.ProtocolVersion, Operation: w.id.Operation, OperationID: w.id.OperationID}
	step := result.StepResolve
	if w.id.Operation == delivery.OperationApply {
		step = result.StepApply
	}
	d.Steps = []result.Step{{Name: step, StartedAt: start, FinishedAt: start, Error: &result.Error{Code: result.ErrorExecution, Message: "it did not work"}}}
	data, err := result.Encode(d)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// planOf is a plan with a literal of so many bytes.
func planOf(t *testing.T, size int) []byte {
	t.Helper()
	p := report.Plan{
		FormatVersion: 1, Dialect: report.DialectPostgreSQL, ServerMajor: "17", TransactionMode: report.TransactionFile,
		FromFingerprint: digest("3"), ToFingerprint: digest("4"),
		Statements: []report.Statement{{SQL: "SELECT '" + strings.Repeat("x", size) + "'", Kind: "SELECT", Severity: report.SeveritySafe, LockClass: "none", RewriteRisk: report.RewriteNone}},
	}
	p.Summarise()
	data, err := report.EncodePlan(p)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// largeDocument is a valid refresh whose plan needs several chunks.
func (w *world) largeDocument(t *testing.T) []byte {
	t.Helper()
	encoded, err := result.Encode(w.refreshOf(planOf(t, 900<<10)))
	if err != nil {
		t.Fatal(err)
	}
	return encoded
}

// refreshOf is a refresh that found a plan.
func (w *world) refreshOf(data []byte) *result.Document {
	d := &result.Document{
		ProtocolVersion: result.ProtocolVersion, Operation: w.id.Operation, OperationID: w.id.OperationID,
		Resolve: &report.Resolve{Outcome: report.OutcomeFound}, Verify: &report.Verify{Outcome: report.OutcomeFound}, Observe: &report.Drift{},
		Plan:      &report.SchemaPlan{Outcome: report.OutcomeChanges, PlanDigest: report.Digest(data), PlanSize: int64(len(data))},
		PlanBytes: data,
	}
	for _, name := range []result.StepName{result.StepResolve, result.StepVerify, result.StepFetch, result.StepObserve, result.StepPlan} {
		d.Steps = append(d.Steps, result.Step{Name: name, StartedAt: start, FinishedAt: start})
	}
	return d
}

// ask is one request; edit spoils it.
func (w *world) ask(method, path string, body []byte, edits ...func(*http.Request)) *httptest.ResponseRecorder {
	w.t.Helper()
	request := httptest.NewRequest(method, path, nil)
	if body != nil {
		request = httptest.NewRequest(method, path, bytes.NewReader(body))
		request.Header.Set("Content-Type", result.MediaType)
		request.Header.Set(delivery.DigestHeader, report.Digest(body))
	}
	header, err := delivery.Encode(w.id)
	if err != nil {
		w.t.Fatal(err)
	}
	request.Header.Set(delivery.IdentityHeader, header)
	request.Header.Set("Authorization", "Bearer "+token)
	for _, edit := range edits {
		edit(request)
	}
	w.requests = nil
	response := httptest.NewRecorder()
	w.server.Handler().ServeHTTP(response, request)
	if response.Header().Get("Cache-Control") != "no-store" {
		w.t.Error("an answer may be cached")
	}
	return response
}

func (w *world) path() string { return delivery.ResultsPath + delivery.Publication(w.id) }

func (w *world) put(body []byte, edits ...func(*http.Request)) *httptest.ResponseRecorder {
	w.t.Helper()
	return w.ask(http.MethodPut, w.path(), body, edits...)
}

func (w *world) records() []v1alpha1.PtahResultRecord {
	w.t.Helper()
	var list v1alpha1.PtahResultRecordList
	if err := w.client.List(context.Background(), &list); err != nil {
		w.t.Fatal(err)
	}
	return list.Items
}

// publishPlan stores a plan of one chunk and lets the claim name it.
func (w *world) publishPlan(t *testing.T) []byte {
	t.Helper()
	data := []byte(`{"a":"plan"}` + "\n")
	w.publish(t, data)
	return data
}

func (w *world) publish(t *testing.T, data []byte) {
	t.Helper()
	var schema v1alpha1.PtahSchema
	if err := w.client.Get(context.Background(), client.ObjectKey{Namespace: "shop", Name: "orders"}, &schema); err != nil {
		t.Fatal(err)
	}
	store := plan.Store{Writer: w.client, Reader: w.client}
	stored, err := store.Publish(context.Background(), &schema, v1alpha1.PtahSchemaPlanSpec{
		ArtifactDigest: v1alpha1.Digest(digest("5")), CoordinationDigest: v1alpha1.Digest(digest("6")), TargetIdentityDigest: v1alpha1.Digest(digest("7")),
		ActualStateFingerprint: v1alpha1.Digest(digest("3")), DesiredStateFingerprint: v1alpha1.Digest(digest("4")), PolicyFingerprint: v1alpha1.Digest(digest("8")),
		VerificationPolicyUID: "policy-uid", VerificationPolicyDigest: v1alpha1.Digest(digest("9")), ExecutionBindingID: epoch, ControllerStateVersion: 1,
		PtahVersion: "0.1.0", ExecutorImage: "executor@" + digest("a"), RunnerProtocolVersion: 1, Dialect: "postgresql", StatementCount: 1,
	}, data)
	if err != nil {
		t.Fatal(err)
	}
	change(w, &v1alpha1.PtahSchema{}, "orders", func(s *v1alpha1.PtahSchema) {
		s.Status.ActiveOperation.PlanRef = &v1alpha1.ImmutableObjectReference{Name: stored.Name, UID: string(stored.UID)}
	})
}
