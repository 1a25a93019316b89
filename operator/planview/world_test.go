package planview

import (
	"context"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"ptah.run/ptah/operator/api/v1alpha1"
	"ptah.run/ptah/operator/plan"
	"ptah.run/ptah/operator/plan/report"
)

var (
	start  = time.Date(2026, 11, 29, 12, 0, 0, 0, time.UTC)
	digest = func(c string) string { return "sha256:" + strings.Repeat(c, 64) }
)

// world is what is stored: a schema, its plan, and the plan's chunks.
type world struct {
	schema   *v1alpha1.PtahSchema
	plan     *v1alpha1.PtahSchemaPlan
	chunks   []*v1alpha1.PtahSchemaPlanChunk
	document report.Plan
	data     []byte
	requests []string
	readFail error // of what is not the PtahSchema
}

func exampleDocument() report.Plan {
	document := report.Plan{
		FormatVersion: 1, Dialect: report.DialectPostgreSQL, ServerMajor: "17", TransactionMode: report.TransactionFile,
		FromFingerprint: digest("4"), ToFingerprint: digest("5"), Exclude: []string{"audit.*"},
		Statements: []report.Statement{
			{SQL: "CREATE TABLE public.orders (\n    id bigint NOT NULL,\n    total numeric(12,2)\n)", Kind: "CREATE TABLE", Severity: report.SeveritySafe, LockClass: "none", RewriteRisk: report.RewriteNone},
			{SQL: "ALTER TABLE public.customers DROP COLUMN fax", Kind: "ALTER TABLE", Severity: report.SeverityDestructive, Reason: "drops a column and what it holds", LockClass: "ACCESS EXCLUSIVE", RewriteRisk: report.RewriteNone},
			{SQL: "GRANT SELECT ON public.orders TO reporting", Kind: "GRANT", Severity: report.SeverityWarning, LockClass: "none", RewriteRisk: report.RewriteNone, PrivilegeChanges: []report.PrivilegeChange{report.PrivilegeGrant}},
		},
	}
	document.Summarise()
	return document
}

func mysqlDocument() report.Plan {
	document := report.Plan{
		FormatVersion: 1, Dialect: report.DialectMySQL, ServerMajor: "9.7", TransactionMode: report.TransactionNone,
		FromFingerprint: digest("4"), ToFingerprint: digest("5"),
		Statements: []report.Statement{
			{SQL: "ALTER TABLE `orders` ADD KEY `by_customer` (`customer_id`)", Kind: "ALTER TABLE", Severity: report.SeveritySafe, LockClass: "LOCK=NONE", RewriteRisk: report.RewriteTable},
			{SQL: "ALTER TABLE `orders` ADD FULLTEXT KEY `by_note` (`note`)", Kind: "ALTER TABLE", Severity: report.SeveritySafe, LockClass: "LOCK=SHARED", RewriteRisk: report.RewriteTable},
			{SQL: "ALTER TABLE `orders` MODIFY COLUMN `total` int", Kind: "ALTER TABLE", Severity: report.SeverityDestructive, Reason: "values may be cut", LockClass: "LOCK=EXCLUSIVE", RewriteRisk: report.RewriteTable},
		},
	}
	document.Summarise()
	return document
}

func newWorld(t testing.TB, document report.Plan, chunkSize int) *world {
	t.Helper()
	data, err := report.EncodePlan(document)
	if err != nil {
		t.Fatal(err)
	}
	w := &world{document: document, data: data}
	var pieces [][]byte
	for rest := data; len(rest) > 0; {
		n := min(chunkSize, len(rest))
		pieces, rest = append(pieces, rest[:n]), rest[n:]
	}
	changes := []v1alpha1.PrivilegeChange{}
	for _, change := range document.PrivilegeChanges {
		changes = append(changes, v1alpha1.PrivilegeChange(change))
	}
	spec := v1alpha1.PtahSchemaPlanSpec{
		ContractVersion: v1alpha1.PlanContractVersion, SchemaRef: v1alpha1.ImmutableObjectReference{Name: "orders", UID: "schema-uid"},
		ContentDigest: v1alpha1.Digest(report.Digest(data)), Size: int64(len(data)),
		ArtifactDigest: v1alpha1.Digest(digest("1")), CoordinationDigest: v1alpha1.Digest(digest("2")), TargetIdentityDigest: v1alpha1.Digest(digest("3")),
		ActualStateFingerprint: v1alpha1.Digest(document.FromFingerprint), DesiredStateFingerprint: v1alpha1.Digest(document.ToFingerprint),
		PolicyFingerprint: v1alpha1.Digest(digest("6")), VerificationPolicyUID: "policy-uid", VerificationPolicyDigest: v1alpha1.Digest(digest("7")),
		ExecutionBindingID: "v1-" + strings.Repeat("a", 32), ControllerStateVersion: 1, PtahVersion: "0.1.0", ExecutorImage: "executor@" + digest("a"),
		RunnerProtocolVersion: 1, Dialect: document.Dialect, Destructive: document.Destructive, PrivilegeChanges: changes, StatementCount: int32(len(document.Statements)),
	}
	w.store(t, spec, pieces)
	return w
}

// store completes a manifest, so that it is consistent in itself, and makes everything around it.
func (w *world) store(t testing.TB, spec v1alpha1.PtahSchemaPlanSpec, pieces [][]byte) {
	t.Helper()
	fingerprint, err := plan.Fingerprint(spec)
	if err != nil {
		t.Fatal(err)
	}
	name := plan.Name(fingerprint)
	spec.Fingerprint = v1alpha1.Digest(fingerprint)
	spec.Chunks = plan.References(name, pieces)
	owner := []metav1.OwnerReference{{APIVersion: v1alpha1.GroupVersion.String(), Kind: "PtahSchema", Name: "orders", UID: "schema-uid", Controller: ptr.To(true)}}
	w.plan = &v1alpha1.PtahSchemaPlan{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name, UID: "plan-uid", CreationTimestamp: metav1.NewTime(start), OwnerReferences: owner},
		Spec:       spec,
	}
	w.plan.Status.Conditions = []metav1.Condition{{Type: v1alpha1.ConditionReady, Status: metav1.ConditionTrue, Reason: "Published", LastTransitionTime: metav1.NewTime(start)}}
	w.chunks = nil
	for i, piece := range pieces {
		chunk := &v1alpha1.PtahSchemaPlanChunk{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: plan.ChunkName(name, i), UID: "chunk-uid",
			OwnerReferences: []metav1.OwnerReference{{APIVersion: v1alpha1.GroupVersion.String(), Kind: "PtahSchemaPlan", Name: name, UID: "plan-uid", Controller: ptr.To(true)}}}}
		chunk.Spec.Data = append([]byte{}, piece...)
		w.chunks = append(w.chunks, chunk)
		w.plan.Status.PublishedChunks = append(w.plan.Status.PublishedChunks, v1alpha1.PublishedChunk{Name: chunk.Name, UID: "chunk-uid", Index: int32(i)})
	}
	reference := v1alpha1.ImmutableObjectReference{Name: name, UID: "plan-uid"}
	w.schema = &v1alpha1.PtahSchema{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "orders", UID: "schema-uid", Generation: 1},
		Status: v1alpha1.PtahSchemaStatus{
			Phase:      v1alpha1.PhaseAwaitingApproval,
			Plan:       &v1alpha1.CurrentPlanStatus{ImmutableObjectReference: reference, Fingerprint: fingerprint, ContentDigest: string(spec.ContentDigest), Size: spec.Size},
			Applied:    &v1alpha1.AppliedStatus{PlanRef: reference, PlanFingerprint: fingerprint, CompletedAt: metav1.NewTime(start.Add(time.Hour))},
			Conditions: []metav1.Condition{{Type: v1alpha1.ConditionApprovalRequired, Status: metav1.ConditionTrue, Reason: "AwaitingApproval", LastTransitionTime: metav1.NewTime(start)}},
		},
	}
}

func (w *world) reader(t testing.TB) client.Reader {
	t.Helper()
	scheme := runtime.NewScheme()
	if err := v1alpha1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	builder := fake.NewClientBuilder().WithScheme(scheme)
	if w.schema != nil {
		builder = builder.WithObjects(w.schema.DeepCopy())
	}
	if w.plan != nil {
		builder = builder.WithObjects(w.plan.DeepCopy())
	}
	for _, chunk := range w.chunks {
		builder = builder.WithObjects(chunk.DeepCopy())
	}
	return interceptor.NewClient(builder.Build(), interceptor.Funcs{
		Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, into client.Object, options ...client.GetOption) error {
			w.requests = append(w.requests, key.Name)
			if _, schema := into.(*v1alpha1.PtahSchema); w.readFail != nil && !schema {
				return w.readFail
			}
			return c.Get(ctx, key, into, options...)
		},
	})
}
