package schema

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	testclock "k8s.io/utils/clock/testing"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	ptahv1 "ptah.run/ptah/operator/api/v1alpha1"
	"ptah.run/ptah/operator/operation"
	"ptah.run/ptah/operator/operation/env"
	"ptah.run/ptah/operator/operation/identity"
	"ptah.run/ptah/operator/operation/result"
	"ptah.run/ptah/operator/plan"
	"ptah.run/ptah/operator/plan/report"
	"ptah.run/ptah/operator/realm"
)

const (
	testNamespace    = "team-a"
	testName         = "orders"
	testCoordination = "ptah-system"
	policyName       = "policy"
)

var testExecutor = "registry.example/ptah/executor@sha256:" + strings.Repeat("e", 64)

// fault is what happens to a request.
type fault int

const (
	healthy fault = iota
	// lostRequest: it never arrives.
	lostRequest
	// lostAnswer: it is carried out and the answer is lost.
	lostAnswer
	// killedBefore and killedAfter: the manager stops just before or just after it.
	killedBefore
	killedAfter
)

// moment is a side of a request.
type moment int

const (
	beforeRequest moment = iota
	beforeAnswer
)

var errTransport = errors.New("connection reset by peer")

// world is a cluster, a registry and a database, as far as the reconciler can tell.
type world struct {
	t       testing.TB
	clock   *testclock.FakeClock
	base    client.WithWatch // not counted, never faulty
	scheme  *runtime.Scheme
	results map[string]*result.Document
	events  *eventLog

	mu       sync.Mutex
	requests []string
	// fault decides about a counted request.
	fault func(index int, request string) fault
	// answer replaces the API server's answer to a request that is not carried out; nil lets it through.
	answer func(request string) error
	// after runs behind a request that was carried out.
	after func(request string)
	// pause runs on both sides of a request: before it arrives and before its answer does.
	pause func(index int, request string, when moment)
	dead  bool

	// serverSide: the API server is a real one, which counts generations by itself and holds other worlds as well.
	serverSide bool
	namespace  string
	// coordination is the namespace of realm Leases.
	coordination string
	// schemas ever created.
	schemas int

	// The registry and the database.
	artifact  string
	dbState   string
	identity  string
	executed  []string // Job UIDs of Applies that ran statements
	statement report.Statement
	// broken makes the next operation Pods fail.
	broken *result.Error
	// mute makes Pods end without delivering.
	mute bool
	// tamper changes the status of a Job that ends.
	tamper func(*batchv1.JobStatus)
	// podsPerPage is how many Pods one answer holds, as a large namespace would have it; 0 is all of them.
	podsPerPage int
	// careless picks Apply Pods that run their statements without looking at anything.
	careless func(job *batchv1.Job) bool
	// applyJobs are the UIDs of all Apply Jobs ever created, by claim.
	applyJobs map[string][]string
}

// testScheme is one for all worlds, because registering kinds costs more than a life.
var testScheme = sync.OnceValues(func() (*runtime.Scheme, error) {
	scheme := runtime.NewScheme()
	return scheme, errors.Join(corev1.AddToScheme(scheme), batchv1.AddToScheme(scheme), coordinationv1.AddToScheme(scheme), ptahv1.AddToScheme(scheme))
})

func newScheme(t testing.TB) *runtime.Scheme {
	t.Helper()
	scheme, err := testScheme()
	if err != nil {
		t.Fatal(err)
	}
	return scheme
}

func digestOf(text string) string { return report.Digest([]byte(text)) }

// newWorld has a policy and an empty database, and no resource.
func newWorld(t testing.TB) *world {
	t.Helper()
	scheme := newScheme(t)
	w := emptyWorld(t, scheme)
	w.base = newMemory(scheme, w.clock)
	w.create(newPolicy())
	return w
}

func newPolicy() *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: policyName}, Data: map[string]string{"policy.yaml": "version: 1\n"}}
}

func emptyWorld(t testing.TB, scheme *runtime.Scheme) *world {
	return &world{
		t: t, scheme: scheme, clock: testclock.NewFakeClock(time.Date(2027, 3, 1, 8, 0, 0, 0, time.UTC)),
		results: map[string]*result.Document{}, events: &eventLog{}, namespace: testNamespace, coordination: testCoordination,
		artifact: digestOf("artifact-1"), dbState: digestOf("empty"), identity: digestOf("database"),
		statement: report.Statement{SQL: "CREATE TABLE t (id bigint)", Kind: "CREATE TABLE", Severity: report.SeveritySafe, LockClass: "none", RewriteRisk: report.RewriteNone},
		applyJobs: map[string][]string{},
	}
}

func (w *world) create(objects ...client.Object) {
	w.t.Helper()
	for _, object := range objects {
		if object.GetNamespace() == "" || object.GetNamespace() == testNamespace {
			object.SetNamespace(w.namespace)
		}
		if _, ok := object.(*ptahv1.PtahSchema); ok {
			w.schemas++
		}
		if err := w.base.Create(context.Background(), object); err != nil {
			w.t.Fatalf("create %s: %v", object.GetName(), err)
		}
	}
}

// newSchema is a resource as the API server defaults it.
func newSchema(changes ...func(*ptahv1.PtahSchema)) *ptahv1.PtahSchema {
	schema := &ptahv1.PtahSchema{
		ObjectMeta: metav1.ObjectMeta{Name: testName, Namespace: testNamespace},
		Spec: ptahv1.PtahSchemaSpec{
			Target: ptahv1.DatabaseTargetSpec{
				Engine: ptahv1.EnginePostgreSQL, CoordinationKey: "orders",
				URLFrom: corev1.SecretKeySelector{LocalObjectReference: corev1.LocalObjectReference{Name: "db"}, Key: "url"},
			},
			Desired: ptahv1.OCIArtifactSourceSpec{
				OCIRef: "oci://registry.example/orders:v1",
				VerificationPolicyFrom: corev1.ConfigMapKeySelector{
					LocalObjectReference: corev1.LocalObjectReference{Name: policyName}, Key: "policy.yaml",
				},
			},
			Policy: ptahv1.SchemaPolicy{
				Apply: ptahv1.ApplyOnApproval, DriftSeverity: "all", LockTimeout: metav1.Duration{Duration: 30 * time.Second}, TransactionMode: "file",
			},
			Interval: metav1.Duration{Duration: 2 * time.Minute},
			Execution: ptahv1.ExecutionSpec{
				ActiveDeadlineSeconds: 900, FailureRetryInterval: metav1.Duration{Duration: 30 * time.Second},
				ConnectTimeout: metav1.Duration{Duration: 10 * time.Second},
			},
		},
	}
	for _, change := range changes {
		change(schema)
	}
	return schema
}

// reconciler is a new manager process: it remembers nothing.
func (w *world) reconciler() *Reconciler {
	w.mu.Lock()
	w.dead = false
	w.mu.Unlock()
	work := interceptor.NewClient(w.base, w.funcs(false))
	live := interceptor.NewClient(w.base, w.funcs(true))
	return &Reconciler{
		Client: work, Live: live,
		Leases:  &realm.Leases{Client: live, Namespace: w.coordination, Clock: w.clock, Random: rand.New(rand.NewSource(w.clock.Now().UnixNano()))},
		Results: w,
		Config: operation.Config{
			ExecutorImage: testExecutor, RunnerImage: "registry.example/ptah/runner@sha256:" + strings.Repeat("a", 64), PtahVersion: "1.0.0",
			ResultsURL: "https://results.example", TrustPEM: func() (string, error) { return "PEM", nil },
			Manager: ptahv1.ManagerRecord{ControllerImage: "manager", ControllerRevision: "r1", RunnerImage: "runner"},
		},
		Clock: w.clock, Random: rand.New(rand.NewSource(1)), Events: w.events, Metrics: w.measured(),
	}
}

// count records a request and carries it out, or not.
func (w *world) count(request string, do func() error) error {
	w.mu.Lock()
	if w.dead {
		w.mu.Unlock()
		return errTransport
	}
	index := len(w.requests)
	w.requests = append(w.requests, request)
	what := healthy
	if w.fault != nil {
		what = w.fault(index, request)
	}
	w.dead = what == killedBefore || what == killedAfter
	w.mu.Unlock()
	if what == lostRequest || what == killedBefore {
		return errTransport
	}
	if w.answer != nil {
		if err := w.answer(request); err != nil {
			return ignoreSwallowed(err)
		}
	}
	w.pauseAt(index, request, beforeRequest)
	err := do()
	if err == nil && w.after != nil {
		w.after(request)
	}
	w.pauseAt(index, request, beforeAnswer)
	if what == lostAnswer || what == killedAfter {
		return errTransport
	}
	return err
}

func (w *world) pauseAt(index int, request string, when moment) {
	if w.pause != nil {
		w.pause(index, request, when)
	}
}

// errSwallowed makes a request look carried out which was not.
var errSwallowed = errors.New("swallowed")

func ignoreSwallowed(err error) error {
	if errors.Is(err, errSwallowed) {
		return nil
	}
	return err
}

func kindOf(object runtime.Object) string {
	name := fmt.Sprintf("%T", object)
	return name[strings.LastIndexByte(name, '.')+1:]
}

// funcs counts what reaches the API server. Reads of the work client come from the cache and do not.
func (w *world) funcs(live bool) interceptor.Funcs {
	funcs := interceptor.Funcs{
		Create: func(ctx context.Context, c client.WithWatch, object client.Object, options ...client.CreateOption) error {
			request := "create " + kindOf(object)
			if job, ok := object.(*batchv1.Job); ok {
				request += " " + job.Labels[ptahv1.LabelOperation]
			}
			return w.count(request, func() error {
				err := c.Create(ctx, object, options...)
				if job, ok := object.(*batchv1.Job); ok && err == nil && job.Labels[ptahv1.LabelOperation] == "apply" {
					id := job.Annotations[ptahv1.AnnotationOperationID]
					w.applyJobs[id] = append(w.applyJobs[id], string(job.UID))
				}
				return err
			})
		},
		Update: func(ctx context.Context, c client.WithWatch, object client.Object, options ...client.UpdateOption) error {
			return w.count("update "+kindOf(object), func() error { return c.Update(ctx, object, options...) })
		},
		Patch: func(ctx context.Context, c client.WithWatch, object client.Object, patch client.Patch, options ...client.PatchOption) error {
			return w.count("patch "+kindOf(object), func() error { return c.Patch(ctx, object, patch, options...) })
		},
		Delete: func(ctx context.Context, c client.WithWatch, object client.Object, options ...client.DeleteOption) error {
			return w.count("delete "+kindOf(object), func() error { return c.Delete(ctx, object, options...) })
		},
		DeleteAllOf: func(ctx context.Context, c client.WithWatch, object client.Object, options ...client.DeleteAllOfOption) error {
			return w.count("deletecollection "+kindOf(object), func() error { return c.DeleteAllOf(ctx, object, options...) })
		},
		SubResourceUpdate: func(ctx context.Context, c client.Client, sub string, object client.Object, options ...client.SubResourceUpdateOption) error {
			w.hear(object)
			return w.count("update "+kindOf(object)+"/"+sub, func() error { return c.SubResource(sub).Update(ctx, object, options...) })
		},
	}
	if !live {
		funcs.List = w.listCached
	}
	if live {
		funcs.Get = func(ctx context.Context, c client.WithWatch, key client.ObjectKey, object client.Object, options ...client.GetOption) error {
			return w.count("get "+kindOf(object), func() error { return c.Get(ctx, key, object, options...) })
		}
		funcs.List = func(ctx context.Context, c client.WithWatch, list client.ObjectList, options ...client.ListOption) error {
			return w.count("list "+strings.TrimSuffix(kindOf(list), "List"), func() error {
				if pods, ok := list.(*corev1.PodList); ok && w.podsPerPage > 0 {
					return w.listPage(ctx, c, pods, options...)
				}
				return c.List(ctx, list, options...)
			})
		}
	}
	return funcs
}

// listPage answers a page of Pods. Its token is how many went before.
func (w *world) listPage(ctx context.Context, c client.WithWatch, pods *corev1.PodList, options ...client.ListOption) error {
	all := client.ListOptions{}
	all.ApplyOptions(options)
	from := 0
	if all.Continue != "" {
		var err error
		if from, err = strconv.Atoi(all.Continue); err != nil {
			return err
		}
	}
	if err := c.List(ctx, pods, client.InNamespace(all.Namespace)); err != nil {
		return err
	}
	to := min(from+w.podsPerPage, len(pods.Items))
	if to < len(pods.Items) {
		pods.Continue = strconv.Itoa(to)
	}
	pods.Items = pods.Items[from:to]
	return nil
}

// listCached answers from the indexes of the manager's cache, which no API server has. A world with one resource has
// nobody else to find.
func (w *world) listCached(ctx context.Context, c client.WithWatch, list client.ObjectList, options ...client.ListOption) error {
	all := client.ListOptions{}
	all.ApplyOptions(options)
	found, ok := list.(*ptahv1.PtahSchemaList)
	if !ok || all.FieldSelector == nil {
		return c.List(ctx, list, options...)
	}
	if w.schemas < 2 {
		return nil
	}
	if err := c.List(ctx, found); err != nil {
		return err
	}
	requirement := all.FieldSelector.Requirements()[0]
	index := map[string]client.IndexerFunc{indexDatabase: databaseOf, indexRealm: realmOf}[requirement.Field]
	found.Items = slices.DeleteFunc(found.Items, func(s ptahv1.PtahSchema) bool { return !slices.Contains(index(&s), requirement.Value) })
	return nil
}

// Load stands for the receiver's records.
func (w *world) Load(_ context.Context, _, publication string) (operation.Receipt, error) {
	receipt := operation.Receipt{}
	err := w.count("get PtahResultRecord", func() error {
		found, ok := w.results[publication]
		if !ok {
			return operation.ErrNoResult
		}
		receipt = operation.Receipt{Document: found, PodUID: "pod-that-delivered"}
		return nil
	})
	return receipt, err
}

// take returns the requests since the last call.
func (w *world) take() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	taken := w.requests
	w.requests = nil
	return taken
}

// key is the resource that a test is about, where it is about one.
func (w *world) key() client.ObjectKey {
	return client.ObjectKey{Namespace: w.namespace, Name: testName}
}

func clientKey(w *world, name string) client.ObjectKey {
	return client.ObjectKey{Namespace: w.namespace, Name: name}
}

func (w *world) get() *ptahv1.PtahSchema {
	w.t.Helper()
	return w.getOther(w.key())
}

func (w *world) getOther(key client.ObjectKey) *ptahv1.PtahSchema {
	w.t.Helper()
	schema := &ptahv1.PtahSchema{}
	if err := w.base.Get(context.Background(), key, schema); err != nil {
		w.t.Fatalf("get schema %s: %v", key, err)
	}
	return schema
}

func (w *world) change(change func(*ptahv1.PtahSchema)) {
	w.t.Helper()
	w.changeOther(w.key(), change)
}

func (w *world) changeOther(key client.ObjectKey, change func(*ptahv1.PtahSchema)) {
	w.t.Helper()
	schema := w.getOther(key)
	change(schema)
	if !w.serverSide {
		schema.Generation++
	}
	if err := w.base.Update(context.Background(), schema); err != nil {
		w.t.Fatalf("update schema: %v", err)
	}
}

// pass reconciles once.
func (w *world) pass(r *Reconciler) (reconcile.Result, error) {
	w.t.Helper()
	return r.Reconcile(context.Background(), reconcile.Request{NamespacedName: w.key()})
}

// mustPass reconciles once and fails the test on an error.
func (w *world) mustPass(r *Reconciler) reconcile.Result {
	w.t.Helper()
	return w.mustPassOther(r, w.key())
}

func (w *world) mustPassOther(r *Reconciler, key client.ObjectKey) reconcile.Result {
	w.t.Helper()
	answer, err := r.Reconcile(context.Background(), reconcile.Request{NamespacedName: key})
	if err != nil {
		w.t.Fatalf("reconcile: %v", err)
	}
	return answer
}

// openJobs are the Jobs that have not ended.
func (w *world) openJobs() []batchv1.Job {
	w.t.Helper()
	list := &batchv1.JobList{}
	scope := client.InNamespace(w.namespace)
	if !w.serverSide {
		scope = client.InNamespace("") // there is no other world
	}
	if err := w.base.List(context.Background(), list, scope); err != nil {
		w.t.Fatal(err)
	}
	open := []batchv1.Job{}
	for _, job := range list.Items {
		if finished, _ := operation.Finished(&job); !finished {
			open = append(open, job)
		}
	}
	return open
}

// owner is the resource that a Job works for.
func (w *world) owner(job *batchv1.Job) *ptahv1.PtahSchema {
	w.t.Helper()
	return w.getOther(client.ObjectKey{Namespace: job.Namespace, Name: job.Labels[ptahv1.LabelSchema]})
}

// runPods does what the operation Pods of all open Jobs would do, and ends the Jobs.
func (w *world) runPods() {
	w.t.Helper()
	for _, job := range w.openJobs() {
		document := w.runPod(&job)
		schema := w.owner(&job)
		claim, pending := schema.Status.ActiveOperation, schema.Status.PendingObservation
		id := job.Annotations[ptahv1.AnnotationOperationID]
		authorised := claim != nil && claim.ID == id && claim.DispatchStarted || pending != nil && pending.ApplyOperationID == id
		if document != nil && authorised && !w.mute {
			if _, err := result.Encode(document); err != nil {
				w.t.Fatalf("the simulated runner made an impossible document: %v", err)
			}
			w.results[identity.Publication(string(schema.UID), id, string(job.UID))] = document
		}
		w.endJob(&job, document == nil || document.Failed() != nil)
	}
}

func (w *world) endJob(job *batchv1.Job, failed bool) {
	w.t.Helper()
	now := metav1.NewTime(w.clock.Now())
	job.Status.StartTime = &now
	if failed {
		job.Status.Failed = 1
		job.Status.Conditions = []batchv1.JobCondition{
			{Type: batchv1.JobFailureTarget, Status: corev1.ConditionTrue, Reason: "BackoffLimitExceeded", LastTransitionTime: now},
			{Type: batchv1.JobFailed, Status: corev1.ConditionTrue, Reason: "BackoffLimitExceeded", LastTransitionTime: now}}
	} else {
		job.Status.Succeeded = 1
		job.Status.CompletionTime = &now
		job.Status.Conditions = []batchv1.JobCondition{
			{Type: batchv1.JobSuccessCriteriaMet, Status: corev1.ConditionTrue, Reason: "CompletionsReached", LastTransitionTime: now},
			{Type: batchv1.JobComplete, Status: corev1.ConditionTrue, Reason: "CompletionsReached", LastTransitionTime: now}}
	}
	if w.tamper != nil {
		w.tamper(&job.Status)
	}
	if err := w.base.Status().Update(context.Background(), job); err != nil {
		w.t.Fatalf("end Job %s: %v", job.Name, err)
	}
}

func jobEnv(job *batchv1.Job, name string) string {
	for _, variable := range job.Spec.Template.Spec.Containers[0].Env {
		if variable.Name == name {
			return variable.Value
		}
	}
	return ""
}

func (w *world) step(name result.StepName, problem *result.Error) result.Step {
	at := w.clock.Now().UTC()
	return result.Step{Name: name, StartedAt: at, FinishedAt: at, Error: problem}
}

// desired is the state that an artifact describes.
func desired(artifact string) string { return digestOf("state of " + artifact) }

func (w *world) plan(job *batchv1.Job) []byte {
	p := report.Plan{
		FormatVersion: report.PlanFormatVersion, Dialect: jobEnv(job, env.ExpectedDialect), ServerMajor: "17", TransactionMode: report.TransactionMode(jobEnv(job, env.TransactionMode)),
		FromFingerprint: w.dbState, ToFingerprint: desired(w.artifact), Statements: []report.Statement{w.statement},
	}
	p.Summarise()
	data, err := report.EncodePlan(p)
	if err != nil {
		w.t.Fatal(err)
	}
	return data
}

func (w *world) runPod(job *batchv1.Job) *result.Document {
	w.t.Helper()
	document := &result.Document{
		ProtocolVersion: result.ProtocolVersion, OperationID: job.Annotations[ptahv1.AnnotationOperationID], TargetIdentityDigest: w.identity,
	}
	if job.Labels[ptahv1.LabelOperation] == "apply" {
		document.Operation = result.OperationApply
		w.runApply(job, document)
		return document
	}
	document.Operation = result.OperationRefresh
	w.runRefresh(job, document)
	return document
}

func (w *world) runRefresh(job *batchv1.Job, document *result.Document) {
	var id identity.Identity
	if err := json.Unmarshal([]byte(jobEnv(job, env.ResultIdentity)), &id); err != nil || id.JobName != job.Name {
		w.t.Errorf("identity of Job %s: %v, %+v", job.Name, err, id)
	}
	policy := ""
	for _, variable := range job.Spec.Template.Spec.InitContainers[1].Env {
		if variable.Name == env.ExpectedPolicyDigest {
			policy = variable.Value
		}
	}
	pinned := "oci://registry.example/orders@" + w.artifact
	fails := func(steps ...result.StepName) bool {
		return w.broken != nil && strings.HasPrefix(w.broken.Message, string(steps[0]))
	}
	add := func(name result.StepName) bool {
		if fails(name) {
			document.Steps = append(document.Steps, w.step(name, w.broken))
			return false
		}
		document.Steps = append(document.Steps, w.step(name, nil))
		return true
	}
	if !add(result.StepResolve) {
		return
	}
	document.Resolve = &report.Resolve{ContractVersion: 1, Outcome: report.OutcomeFound, PinnedReference: pinned, Digest: w.artifact}
	if !add(result.StepVerify) {
		return
	}
	document.Verify = &report.Verify{ContractVersion: 1, Outcome: report.OutcomeFound, Digest: w.artifact, PolicyDigest: policy}
	if !add(result.StepFetch) || !add(result.StepObserve) {
		return
	}
	outcome := report.OutcomeNoChanges
	findings := []report.Finding{}
	if w.dbState != desired(w.artifact) {
		outcome, findings = report.OutcomeChanges, []report.Finding{{Category: "tables_added", Count: 1, Severity: report.SeveritySafe}}
	}
	document.Observe = &report.Drift{ContractVersion: 1, Outcome: outcome, Dialect: jobEnv(job, env.ExpectedDialect), Fingerprint: w.dbState, TargetIdentity: w.identity, Findings: findings}
	if !add(result.StepPlan) {
		return
	}
	document.Plan = &report.SchemaPlan{
		ContractVersion: 1, Outcome: outcome, Dialect: jobEnv(job, env.ExpectedDialect), ServerVersion: "17.5", TargetIdentity: w.identity,
		FromFingerprint: w.dbState, ToFingerprint: desired(w.artifact), Findings: findings,
	}
	if outcome == report.OutcomeNoChanges {
		document.Plan.Unchanged = jobEnv(job, env.ProvenArtifact) == w.artifact && jobEnv(job, env.ProvenDumpDigest) == w.dbState
		return
	}
	data := w.plan(job)
	decoded, _ := report.DecodePlan(data)
	document.Plan.PlanDigest, document.Plan.PlanSize, document.Plan.Statements = report.Digest(data), int64(len(data)), 1
	document.Plan.Destructive, document.Plan.PrivilegeChanges = decoded.Destructive, decoded.PrivilegeChanges
	if jobEnv(job, env.HeldPlanDigest) == document.Plan.PlanDigest {
		document.PlanHeld = true
	} else {
		document.PlanBytes = data
	}
}

// late says whether an Apply Job came too late to begin.
func (w *world) late(job *batchv1.Job) bool {
	notAfter, err := time.Parse(time.RFC3339, jobEnv(job, env.DispatchNotAfter))
	return err != nil || w.clock.Now().After(notAfter)
}

func (w *world) runApply(job *batchv1.Job, document *result.Document) {
	w.t.Helper()
	if w.broken != nil {
		document.Steps = []result.Step{w.step(result.StepApply, w.broken)}
		return
	}
	if w.careless != nil && w.careless(job) {
		w.dbState = desired(w.artifact)
		w.executed = append(w.executed, string(job.UID))
		document.Steps = []result.Step{w.step(result.StepApply, &result.Error{Code: result.ErrorExecution, Message: "nobody asked"})}
		document.MutationStarted = true
		return
	}
	if w.late(job) {
		document.Steps = []result.Step{w.step(result.StepApply, &result.Error{Code: result.ErrorDispatchExpired, Message: "too late"})}
		return
	}
	schema := w.owner(job)
	if schema.Status.ActiveOperation == nil {
		document.Steps = []result.Step{w.step(result.StepApply, &result.Error{Code: result.ErrorExecution, Message: "the receiver does not serve the plan"})}
		return
	}
	reference := schema.Status.ActiveOperation.PlanRef
	_, data, err := plan.Read(context.Background(), w.base, job.Namespace, *reference)
	if err != nil {
		w.t.Fatalf("the Apply Pod cannot read its plan: %v", err)
	}
	decoded, err := report.DecodePlan(data)
	if err != nil || report.Digest(data) != jobEnv(job, env.ExpectedPlanDigest) {
		w.t.Fatalf("the Apply Pod got another plan: %v", err)
	}
	applied := &report.SchemaApply{ContractVersion: 1, Dialect: decoded.Dialect, PlanDigest: report.Digest(data), Statements: len(decoded.Statements), TargetIdentity: w.identity}
	document.Apply = applied
	document.Steps = []result.Step{w.step(result.StepApply, nil)}
	if decoded.FromFingerprint != w.dbState {
		problem := &report.Problem{Code: report.CodeStalePlan, Message: "the database changed"}
		applied.Outcome, applied.Problem = report.OutcomeRefused, problem
		document.MutationStarted = true
		document.Steps[0].Error = &result.Error{Code: result.ErrorPtah, Message: "stale plan", Problem: problem}
		return
	}
	w.dbState = decoded.ToFingerprint
	w.executed = append(w.executed, string(job.UID))
	applied.Outcome, applied.Executed, applied.MutationStarted = report.OutcomeApplied, len(decoded.Statements), true
	document.MutationStarted = true
}

// approve creates a stamped approval of the current plan.
func (w *world) approve(name string) *ptahv1.PtahSchemaApproval {
	w.t.Helper()
	schema := w.get()
	if schema.Status.Plan == nil {
		w.t.Fatalf("there is no plan to approve; phase %s", schema.Status.Phase)
	}
	approval := &ptahv1.PtahSchemaApproval{
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: testNamespace},
		Spec: ptahv1.PtahSchemaApprovalSpec{
			SchemaRef:       ptahv1.ImmutableObjectReference{Name: schema.Name, UID: string(schema.UID)},
			PlanRef:         schema.Status.Plan.ImmutableObjectReference,
			PlanFingerprint: ptahv1.Digest(schema.Status.Plan.Fingerprint),
			Approver:        ptahv1.ApprovalIdentity{Username: "alice"}, ApprovedAt: metav1.NewTime(w.clock.Now()), MutationRequestUID: "request-1",
		},
	}
	w.create(approval)
	return approval
}

func (w *world) approvalCondition(name, condition string) string {
	w.t.Helper()
	approval := &ptahv1.PtahSchemaApproval{}
	if err := w.base.Get(context.Background(), client.ObjectKey{Namespace: w.namespace, Name: name}, approval); err != nil {
		w.t.Fatal(err)
	}
	for _, c := range approval.Status.Conditions {
		if c.Type == condition && c.Status == metav1.ConditionTrue {
			return c.Reason
		}
	}
	return ""
}

// condition returns "Status/Reason".
func condition(schema *ptahv1.PtahSchema, name string) string {
	for _, c := range schema.Status.Conditions {
		if c.Type == name {
			return string(c.Status) + "/" + c.Reason
		}
	}
	return ""
}

// leaseHolder returns holder and epoch of the realm Lease; it fails when the realm has more than one Lease.
func (w *world) leaseHolder() (string, string) {
	w.t.Helper()
	list := &coordinationv1.LeaseList{}
	if err := w.base.List(context.Background(), list, client.InNamespace(w.coordination)); err != nil {
		w.t.Fatal(err)
	}
	holder, epoch := "", ""
	for _, lease := range list.Items {
		if strings.HasPrefix(lease.Name, "ptah-t-") && ptr.Deref(lease.Spec.HolderIdentity, "") != "" {
			holder, epoch = *lease.Spec.HolderIdentity, lease.Annotations[ptahv1.AnnotationLeaseEpoch]
		}
	}
	return holder, epoch
}

// refreshed runs one whole refresh from a due resource.
func (w *world) refreshed(r *Reconciler) *ptahv1.PtahSchema {
	w.t.Helper()
	w.mustPass(r)
	w.runPods()
	w.mustPass(r)
	return w.get()
}

// eventLog records events and sends nothing.
type eventLog struct {
	mu      sync.Mutex
	reasons []string
	notes   []string
}

func (e *eventLog) Eventf(_, _ runtime.Object, _, reason, _, note string, arguments ...any) {
	e.mu.Lock()
	defer e.mu.Unlock()
	hearEvent(reason)
	e.reasons = append(e.reasons, reason)
	e.notes = append(e.notes, reason+": "+fmt.Sprintf(note, arguments...))
}

func (e *eventLog) take() []string {
	e.mu.Lock()
	defer e.mu.Unlock()
	taken := e.reasons
	e.reasons, e.notes = nil, nil
	return taken
}

func publicationOf(w *world, job *batchv1.Job) string {
	return identity.Publication(string(w.owner(job).UID), job.Annotations[ptahv1.AnnotationOperationID], string(job.UID))
}
