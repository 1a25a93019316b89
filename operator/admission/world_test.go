package admission

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	admissionv1 "k8s.io/api/admission/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"ptah.run/ptah/operator/api/v1alpha1"
	"ptah.run/ptah/operator/plan"
	"ptah.run/ptah/operator/plan/report"
)

var (
	start  = time.Date(2026, 11, 29, 12, 0, 0, 0, time.UTC)
	digest = func(c string) string { return "sha256:" + strings.Repeat(c, 64) }
	epoch  = "v1-" + strings.Repeat("a", 32)
	alice  = authenticationv1.UserInfo{Username: "alice", UID: "alice-uid", Groups: []string{"dba", "system:authenticated"}}
)

const policyText = "version: 1\nartifact_types: [a]\n"

// world is a schema that waits for an approval of its plan, and the approval of exactly that.
type world struct {
	schema   *v1alpha1.PtahSchema
	plan     *v1alpha1.PtahSchemaPlan
	policy   *corev1.ConfigMap
	approval *v1alpha1.PtahSchemaApproval
	user     authenticationv1.UserInfo
	reads    int
	readFail error
	distinct bool
}

func newWorld(t *testing.T) *world {
	t.Helper()
	w := &world{user: alice}
	w.schema = &v1alpha1.PtahSchema{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "orders", UID: "schema-uid", Generation: 4},
		Spec: v1alpha1.PtahSchemaSpec{
			Target: v1alpha1.DatabaseTargetSpec{Engine: v1alpha1.EnginePostgreSQL, CoordinationKey: "orders", URLFrom: corev1.SecretKeySelector{LocalObjectReference: corev1.LocalObjectReference{Name: "db"}, Key: "url"}},
			Desired: v1alpha1.OCIArtifactSourceSpec{OCIRef: "oci://registry.example/shop/orders:1", VerificationPolicyFrom: corev1.ConfigMapKeySelector{
				LocalObjectReference: corev1.LocalObjectReference{Name: "policy"}, Key: "policy.yaml",
			}},
			Policy: v1alpha1.SchemaPolicy{Apply: v1alpha1.ApplyOnApproval, DriftSeverity: "all", LockTimeout: metav1.Duration{Duration: 30 * time.Second}, TransactionMode: "file"},
		},
	}
	w.policy = &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "policy", UID: "policy-uid"}, Data: map[string]string{"policy.yaml": policyText}}
	w.publish(t)
	return w
}

// publish makes the plan for what the schema and policy are now, and the status and approval that go with it.
func (w *world) publish(t *testing.T) {
	t.Helper()
	data := []byte("plan\n")
	policy, err := plan.PolicyFingerprint(w.schema.Spec.Target.Engine, w.schema.Spec.Policy)
	if err != nil {
		t.Fatal(err)
	}
	spec := v1alpha1.PtahSchemaPlanSpec{
		ContractVersion: v1alpha1.PlanContractVersion, SchemaRef: v1alpha1.ImmutableObjectReference{Name: "orders", UID: string(w.schema.UID)},
		ContentDigest: v1alpha1.Digest(report.Digest(data)), Size: int64(len(data)),
		ArtifactDigest: v1alpha1.Digest(digest("1")), CoordinationDigest: v1alpha1.Digest(digest("2")), TargetIdentityDigest: v1alpha1.Digest(digest("3")),
		ActualStateFingerprint: v1alpha1.Digest(digest("4")), DesiredStateFingerprint: v1alpha1.Digest(digest("5")), PolicyFingerprint: v1alpha1.Digest(policy),
		VerificationPolicyUID: string(w.policy.UID), VerificationPolicyDigest: v1alpha1.Digest(report.Digest([]byte(policyText))),
		ExecutionBindingID: epoch, ControllerStateVersion: 1, PtahVersion: "0.1.0", ExecutorImage: "executor@" + digest("a"),
		RunnerProtocolVersion: 1, Dialect: report.DialectPostgreSQL, StatementCount: 1,
	}
	fingerprint, err := plan.Fingerprint(spec)
	if err != nil {
		t.Fatal(err)
	}
	name := plan.Name(fingerprint)
	spec.Fingerprint = v1alpha1.Digest(fingerprint)
	spec.Chunks = plan.References(name, [][]byte{data})
	ready := metav1.Condition{Type: v1alpha1.ConditionReady, Status: metav1.ConditionTrue, Reason: string(v1alpha1.ReasonPublished), LastTransitionTime: metav1.NewTime(start)}
	w.plan = &v1alpha1.PtahSchemaPlan{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name, UID: "plan-uid", OwnerReferences: []metav1.OwnerReference{{
			APIVersion: v1alpha1.GroupVersion.String(), Kind: "PtahSchema", Name: "orders", UID: w.schema.UID, Controller: ptr.To(true),
		}}},
		Spec:   spec,
		Status: v1alpha1.PtahSchemaPlanStatus{Conditions: []metav1.Condition{ready}, PublishedChunks: []v1alpha1.PublishedChunk{{Name: name + "-000", UID: "chunk-uid"}}},
	}
	reference := v1alpha1.ImmutableObjectReference{Name: name, UID: string(w.plan.UID)}
	w.schema.Status = v1alpha1.PtahSchemaStatus{
		ObservedGeneration: 4, Phase: v1alpha1.PhaseAwaitingApproval,
		ExecutionBinding: &v1alpha1.ExecutionBindingStatus{Epoch: epoch, ControllerStateVersion: 1, PtahVersion: "0.1.0", ExecutorImage: "executor@" + digest("a"), RunnerProtocolVersion: 1},
		Source:           &v1alpha1.SchemaSourceStatus{RequestedReference: "r", ResolvedReference: "r", Digest: digest("1"), Verified: true},
		Target:           &v1alpha1.TargetStatus{Engine: v1alpha1.EnginePostgreSQL, CoordinationDigest: digest("2"), IdentityDigest: digest("3"), StateFingerprint: digest("4")},
		Plan: &v1alpha1.CurrentPlanStatus{
			ImmutableObjectReference: reference, Fingerprint: fingerprint, ContentDigest: string(spec.ContentDigest), Size: spec.Size, StatementCount: 1,
			CreatedAt: metav1.NewTime(start), ControllerStateVersion: 1,
		},
		Conditions: []metav1.Condition{{Type: v1alpha1.ConditionApprovalRequired, Status: metav1.ConditionTrue, Reason: string(v1alpha1.ReasonAwaitingApproval), ObservedGeneration: 4, LastTransitionTime: metav1.NewTime(start)}},
	}
	w.approval = &v1alpha1.PtahSchemaApproval{
		TypeMeta:   metav1.TypeMeta{APIVersion: v1alpha1.GroupVersion.String(), Kind: "PtahSchemaApproval"},
		ObjectMeta: metav1.ObjectMeta{Name: "go"},
		Spec: v1alpha1.PtahSchemaApprovalSpec{
			SchemaRef: v1alpha1.ImmutableObjectReference{Name: "orders", UID: string(w.schema.UID)}, PlanRef: reference, PlanFingerprint: v1alpha1.Digest(fingerprint),
			Approver: approverOf(alice), ApprovedAt: metav1.NewTime(start), MutationRequestUID: "request-uid",
		},
	}
}

func newScheme(t *testing.T) *runtime.Scheme {
	t.Helper()
	scheme := runtime.NewScheme()
	if err := errors.Join(corev1.AddToScheme(scheme), v1alpha1.AddToScheme(scheme)); err != nil {
		t.Fatal(err)
	}
	return scheme
}

func (w *world) request(t *testing.T, operation admissionv1.Operation) admission.Request {
	t.Helper()
	raw, err := json.Marshal(w.approval)
	if err != nil {
		t.Fatal(err)
	}
	return admission.Request{AdmissionRequest: admissionv1.AdmissionRequest{
		UID: types.UID("request-uid"), Operation: operation, Namespace: "shop", UserInfo: w.user,
		Object: runtime.RawExtension{Raw: raw}, OldObject: runtime.RawExtension{Raw: raw},
	}}
}

// validate asks the validating handler for a decision.
func (w *world) validate(t *testing.T, request admission.Request) admission.Response {
	t.Helper()
	scheme := newScheme(t)
	objects := []client.Object{}
	if w.schema != nil {
		objects = append(objects, w.schema.DeepCopy())
	}
	if w.plan != nil {
		objects = append(objects, w.plan.DeepCopy())
	}
	if w.policy != nil {
		objects = append(objects, w.policy.DeepCopy())
	}
	reader := interceptor.NewClient(fake.NewClientBuilder().WithScheme(scheme).WithObjects(objects...).Build(), interceptor.Funcs{
		Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, into client.Object, options ...client.GetOption) error {
			w.reads++
			if w.readFail != nil {
				return w.readFail
			}
			return c.Get(ctx, key, into, options...)
		},
	})
	return (&validate{reader: reader, decoder: admission.NewDecoder(scheme), distinct: w.distinct}).Handle(context.Background(), request)
}
