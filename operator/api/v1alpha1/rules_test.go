package v1alpha1_test

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/discovery"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	ptahv1 "ptah.run/ptah/operator/api/v1alpha1"
	"ptah.run/ptah/operator/testserver"
)

var server = &testserver.Server{CRDs: "../../../chart/ptah-operator/crds"}

func TestMain(m *testing.M) {
	m.Run() // the test program exits with what it returned
	if err := server.Stop(); err != nil {
		panic("stop the API server: " + err.Error())
	}
}

func serverClient(t *testing.T) client.Client {
	t.Helper()
	config := server.Config(t)
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{corev1.AddToScheme, ptahv1.AddToScheme} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	c, err := client.New(config, client.Options{Scheme: scheme})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

const goodSchema = `
apiVersion: operator.ptah.run/v1alpha1
kind: PtahSchema
metadata: {name: orders, namespace: default}
spec:
  target:
    engine: PostgreSQL
    coordinationKey: orders
    urlFrom: {name: db, key: url}
  desired:
    ociRef: oci://registry.example/orders:v1
    verificationPolicyFrom: {name: policy, key: policy.yaml}
`

func digest(c string) string { return "sha256:" + strings.Repeat(c, 64) }

var realmSchema = strings.Replace(goodSchema, "coordinationKey: orders", "realmRef: {name: orders}", 1)

var mysqlSchema = strings.Replace(goodSchema, "engine: PostgreSQL", "engine: MySQL", 1)

var goodPlan = `
apiVersion: operator.ptah.run/v1alpha1
kind: PtahSchemaPlan
metadata: {name: plan, namespace: default}
spec:
  contractVersion: 1
  schemaRef: {name: orders, uid: u}
  fingerprint: ` + digest("a") + `
  contentDigest: ` + digest("a") + `
  size: 1
  artifactDigest: ` + digest("a") + `
  coordinationDigest: ` + digest("a") + `
  targetIdentityDigest: ` + digest("a") + `
  actualStateFingerprint: ` + digest("a") + `
  desiredStateFingerprint: ` + digest("a") + `
  policyFingerprint: ` + digest("a") + `
  verificationPolicyUID: u
  verificationPolicyDigest: ` + digest("a") + `
  executionBindingID: v1-` + strings.Repeat("0", 32) + `
  controllerStateVersion: 1
  ptahVersion: "1"
  executorImage: e@` + digest("a") + `
  runnerProtocolVersion: 1
  createdBy: {controllerImage: manager, controllerRevision: rev, runnerImage: runner}
  dialect: postgresql
  destructive: false
  statementCount: 1
  chunks: [{name: plan-000, index: 0, digest: ` + digest("a") + `, size: 1}]
`

var goodApproval = `
apiVersion: operator.ptah.run/v1alpha1
kind: PtahSchemaApproval
metadata: {name: approval, namespace: default}
spec:
  schemaRef: {name: orders, uid: u}
  planRef: {name: plan, uid: u}
  planFingerprint: ` + digest("a") + `
  approver: {username: alice}
  approvedAt: "2027-01-01T00:00:00Z"
  mutationRequestUID: r
`

const goodChunk = `
apiVersion: operator.ptah.run/v1alpha1
kind: PtahSchemaPlanChunk
metadata: {name: chunk, namespace: default}
spec: {data: eA==}
`

const goodRecord = `
apiVersion: operator.ptah.run/v1alpha1
kind: PtahResultRecord
metadata: {name: record, namespace: default}
spec: {type: complete, data: eA==}
`

const goodRealm = `
apiVersion: operator.ptah.run/v1alpha1
kind: PtahRealm
metadata: {name: orders}
spec: {engine: PostgreSQL, namespaces: [team-a, team-b], sharing: Shared}
`

func object(t *testing.T, text string) *unstructured.Unstructured {
	t.Helper()
	o := &unstructured.Unstructured{}
	if err := yaml.Unmarshal([]byte(text), &o.Object); err != nil {
		t.Fatal(err)
	}
	return o
}

// set puts a value at a dotted path; nil removes it.
func set(t *testing.T, o *unstructured.Unstructured, path string, value any) {
	t.Helper()
	fields := strings.Split(path, ".")
	if value == nil {
		unstructured.RemoveNestedField(o.Object, fields...)
		return
	}
	if err := unstructured.SetNestedField(o.Object, value, fields...); err != nil {
		t.Fatal(err)
	}
}

func list(count int, format string) []any {
	items := make([]any, count)
	for i := range items {
		items[i] = fmt.Sprintf(format, i)
	}
	return items
}

func labels(count int, format, value string) map[string]any {
	items := map[string]any{}
	for i := range count {
		items[fmt.Sprintf(format, i)] = value
	}
	return items
}

// Every rule of a kind is broken once, next to the nearest value that is allowed.
func TestEveryRuleRefusesItsBreachAndAllowsItsNeighbour(t *testing.T) {
	c := serverClient(t)
	const long253, long254 = 253, 254
	for _, test := range []struct {
		kind, path string
		refused    any
		says       string
		allowed    any
	}{
		{goodSchema, "metadata.name", strings.Repeat("n", 64), "metadata.name", strings.Repeat("n", 63)},
		{goodSchema, "spec.target.engine", "", "engine", "Oracle"},
		{goodSchema, "spec.target.engine", "9sql", "engine", "sql9"},
		{goodSchema, "spec.target.engine", strings.Repeat("E", 64), "engine", strings.Repeat("E", 63)},
		{goodSchema, "spec.target.coordinationKey", nil, "exactly one of coordinationKey and realmRef", "other"},
		{goodSchema, "spec.target.coordinationKey", "Upper", "coordinationKey", "a._:/-b"},
		{goodSchema, "spec.target.coordinationKey", "ends-with-", "coordinationKey", "ends"},
		{goodSchema, "spec.target.coordinationKey", strings.Repeat("k", long254), "coordinationKey", strings.Repeat("k", long253)},
		{goodSchema, "spec.target.realmRef", map[string]any{"name": "r"}, "exactly one of coordinationKey and realmRef", nil},
		{realmSchema, "spec.target.realmRef.name", "", "realmRef.name", "r"},
		{realmSchema, "spec.target.realmRef.name", "a/b", "realmRef.name", "a.b-c"},
		{realmSchema, "spec.target.realmRef.name", strings.Repeat("r", long254), "realmRef.name", strings.Repeat("r", long253)},
		{realmSchema, "spec.target.sharedRealm", "yes", "sharedRealm", true},
		{goodSchema, "spec.target.urlFrom.name", "", "spec.target.urlFrom", "other"},
		{goodSchema, "spec.target.urlFrom.key", "", "spec.target.urlFrom", "other"},
		{goodSchema, "spec.target.urlFrom.optional", true, "spec.target.urlFrom.optional", false},
		{goodSchema, "spec.desired.ociRef", "registry.example/orders", "ociRef", "oci://registry.example/orders@" + digest("a")},
		{goodSchema, "spec.desired.ociRef", "oci://a b", "ociRef", "oci://ab"},
		{goodSchema, "spec.desired.ociRef", "oci://a?b", "ociRef", "oci://ab"},
		{goodSchema, "spec.desired.ociRef", "oci://a#b", "ociRef", "oci://ab"},
		{goodSchema, "spec.desired.ociRef", "oci://" + strings.Repeat("a", 1019), "ociRef", "oci://" + strings.Repeat("a", 1018)},
		{goodSchema, "spec.desired.verificationPolicyFrom.name", "", "verificationPolicyFrom", "other"},
		{goodSchema, "spec.desired.verificationPolicyFrom.key", "", "verificationPolicyFrom", "other"},
		{goodSchema, "spec.desired.verificationPolicyFrom.optional", true, "verificationPolicyFrom.optional", false},
		{goodSchema, "spec.desired.transport", map[string]any{"plainHTTP": true, "caFrom": map[string]any{"name": "c", "key": "k"}}, "plainHTTP and caFrom exclude each other", map[string]any{"plainHTTP": true}},
		{goodSchema, "spec.desired.transport", map[string]any{"caFrom": map[string]any{"name": "", "key": "k"}}, "transport.caFrom", map[string]any{"plainHTTP": false, "caFrom": map[string]any{"name": "c", "key": "k"}}},
		{goodSchema, "spec.desired.transport", map[string]any{"caFrom": map[string]any{"name": "c", "key": "k", "optional": true}}, "transport.caFrom", map[string]any{"caFrom": map[string]any{"name": "c", "key": "k"}}},
		{goodSchema, "spec.desired.registryAuthFrom", map[string]any{"name": ""}, "registryAuthFrom.name", map[string]any{"name": "s"}},
		{goodSchema, "spec.desired.registryAuthFrom", map[string]any{"name": "s", "mode": "Basic"}, "mode", map[string]any{"name": "s", "mode": "DockerConfigJSON"}},
		{goodSchema, "spec.desired.registryAuthFrom", map[string]any{"name": "s", "usernameKey": ""}, "usernameKey", map[string]any{"name": "s", "usernameKey": "u"}},
		{goodSchema, "spec.policy.apply", "Sometimes", "apply", "Never"},
		{goodSchema, "spec.policy.driftSeverity", "some", "driftSeverity", "destructive"},
		{goodSchema, "spec.policy.transactionMode", "auto", "transactionMode", "none"},
		{mysqlSchema, "spec.policy.transactionMode", "file", "spec.policy.transactionMode: must be none or left out for MySQL", "none"},
		{mysqlSchema, "spec.policy.transactionMode", "all", "spec.policy.transactionMode: must be none or left out for MySQL", nil},
		{goodSchema, "spec.policy.lockTimeout", "999ms", "spec.policy.lockTimeout", "1s"},
		{goodSchema, "spec.policy.lockTimeout", "10m1ns", "spec.policy.lockTimeout", "10m"},
		{goodSchema, "spec.policy.lockTimeout", "-1s", "spec.policy.lockTimeout", "2s"},
		{goodSchema, "spec.policy.lockTimeout", "soon", "lockTimeout", "1m"},
		{goodSchema, "spec.policy.exclude", list(129, "t%d"), "exclude", list(128, "t%d")},
		{goodSchema, "spec.policy.exclude", []any{"a", "a"}, "exclude", []any{"a", "b"}},
		{goodSchema, "spec.policy.exclude", []any{" a"}, "exclude", []any{"a b"}},
		{goodSchema, "spec.policy.exclude", []any{"a\n"}, "exclude", []any{"audit.*"}},
		{goodSchema, "spec.policy.exclude", []any{""}, "exclude", []any{"x"}},
		{goodSchema, "spec.policy.exclude", []any{strings.Repeat("x", 257)}, "exclude", []any{strings.Repeat("x", 256)}},
		{goodSchema, "spec.policy.protectedTables", []any{"a.b.c"}, "protectedTables", []any{"a.b"}},
		{goodSchema, "spec.policy.protectedTables", []any{"a b"}, "protectedTables", []any{"a"}},
		{goodSchema, "spec.policy.protectedTables", list(129, "t%d"), "protectedTables", list(128, "t%d")},
		{goodSchema, "spec.interval", "9999ms", "spec.interval", "10s"},
		{goodSchema, "spec.interval", "24h1s", "spec.interval", "24h"},
		{goodSchema, "spec.interval", strings.Repeat("0", 30) + "10m", "interval", "10m"},
		{goodSchema, "spec.execution.activeDeadlineSeconds", int64(29), "activeDeadlineSeconds", int64(30)},
		{goodSchema, "spec.execution.activeDeadlineSeconds", int64(86401), "activeDeadlineSeconds", int64(86400)},
		{goodSchema, "spec.execution", map[string]any{"activeDeadlineSeconds": int64(60), "connectTimeout": "60.001s"}, "must not exceed activeDeadlineSeconds", map[string]any{"activeDeadlineSeconds": int64(60), "connectTimeout": "60s"}},
		{goodSchema, "spec.execution.connectTimeout", "999ms", "spec.execution.connectTimeout", "1s"},
		{goodSchema, "spec.execution.connectTimeout", "601s", "spec.execution.connectTimeout", "600s"},
		{goodSchema, "spec.execution.failureRetryInterval", "4s", "spec.execution.failureRetryInterval", "5s"},
		{goodSchema, "spec.execution.failureRetryInterval", "61m", "spec.execution.failureRetryInterval", "1h"},
		{goodSchema, "spec.execution.podMetadata", map[string]any{"labels": labels(17, "l%d", "v")}, "labels", map[string]any{"labels": labels(16, "l%d", "v")}},
		{goodSchema, "spec.execution.podMetadata", map[string]any{"labels": map[string]any{"a": "-x"}}, "labels", map[string]any{"labels": map[string]any{"a": "x"}}},
		{goodSchema, "spec.execution.podMetadata", map[string]any{"labels": map[string]any{"operator.ptah.run/x": "v"}}, "reserved", map[string]any{"labels": map[string]any{"notptah.run/x": "v"}}},
		{goodSchema, "spec.execution.podMetadata", map[string]any{"labels": map[string]any{"ptah.run/x": "v"}}, "reserved", map[string]any{"labels": map[string]any{"x": "v"}}},
		{goodSchema, "spec.execution.podMetadata", map[string]any{"labels": map[string]any{"app.kubernetes.io/x": "v"}}, "reserved", map[string]any{"labels": map[string]any{"appkubernetes.io/x": "v"}}},
		{goodSchema, "spec.execution.podMetadata", map[string]any{"labels": map[string]any{"k8s.io/x": "v"}}, "reserved", map[string]any{"labels": map[string]any{"k9s.io/x": "v"}}},
		{goodSchema, "spec.execution.podMetadata", map[string]any{"labels": map[string]any{"job-name": "v"}}, "reserved", map[string]any{"labels": map[string]any{"job": "v"}}},
		{goodSchema, "spec.execution.podMetadata", map[string]any{"annotations": map[string]any{"controller-uid": "v"}}, "reserved", map[string]any{"annotations": map[string]any{"controller": "v"}}},
		{goodSchema, "spec.execution.podMetadata", map[string]any{"annotations": map[string]any{"x.kubernetes.io/y": "v"}}, "reserved", map[string]any{"annotations": map[string]any{"example.com/y": "v"}}},
		{goodSchema, "spec.execution.podMetadata", map[string]any{"labels": map[string]any{"a b": "v"}}, "qualified names", map[string]any{"labels": map[string]any{"example.com/a_B.c": "v"}}},
		{goodSchema, "spec.execution.podMetadata", map[string]any{"annotations": map[string]any{"Example.com/": "v"}}, "qualified names", map[string]any{"annotations": map[string]any{"example.com/a": "v"}}},
		{goodSchema, "spec.execution.podMetadata", map[string]any{"annotations": map[string]any{strings.Repeat("k", 64): "v"}}, "qualified names", map[string]any{"annotations": map[string]any{strings.Repeat("k", 63): "v"}}},
		{goodSchema, "spec.execution.podMetadata", map[string]any{"annotations": map[string]any{"a": strings.Repeat("v", 1025)}}, "annotations", map[string]any{"annotations": map[string]any{"a": strings.Repeat("v", 1024)}}},

		{goodPlan, "spec.contractVersion", int64(2), "contractVersion", int64(1)},
		{goodPlan, "spec.fingerprint", "sha256:00", "fingerprint", digest("b")},
		{goodPlan, "spec.contentDigest", digest("G"), "contentDigest", digest("0")},
		{goodPlan, "spec.size", int64(8388609), "size", int64(8388608)},
		{goodPlan, "spec.size", int64(0), "size", int64(1)},
		{goodPlan, "spec.executionBindingID", "v1-0", "executionBindingID", "v1-" + strings.Repeat("f", 32)},
		{goodPlan, "spec.dialect", "oracle", "dialect", "mysql"},
		{goodPlan, "spec.transactionMode", "some", "transactionMode", "none"},
		{goodPlan, "spec.statementCount", int64(0), "statementCount", int64(1)},
		{goodPlan, "spec.privilegeChanges", []any{"Everything"}, "privilegeChanges", []any{"Grant"}},
		{goodPlan, "spec.privilegeChanges", []any{"Grant", "Grant"}, "privilegeChanges", []any{"Grant", "Revoke"}},
		{goodPlan, "spec.chunks", []any{}, "chunks", []any{map[string]any{"name": "c", "index": int64(15), "digest": digest("a"), "size": int64(524288)}}},
		{goodPlan, "spec.chunks", []any{map[string]any{"name": "c", "index": int64(16), "digest": digest("a"), "size": int64(1)}}, "index", []any{map[string]any{"name": "c", "index": int64(0), "digest": digest("a"), "size": int64(1)}}},
		{goodPlan, "spec.chunks", []any{map[string]any{"name": "c", "index": int64(0), "digest": digest("a"), "size": int64(524289)}}, "size", []any{map[string]any{"name": "c", "index": int64(0), "digest": digest("a"), "size": int64(2)}}},
		{goodPlan, "spec.schemaRef.uid", "", "uid", "other"},
		{goodPlan, "spec.executorImage", "registry.example/executor:v1", "executorImage", "registry.example/executor:v1@" + digest("a")},
		{goodPlan, "spec.executorImage", "a@b@" + digest("a"), "executorImage", "a/b@" + digest("a")},

		{goodApproval, "spec.planFingerprint", "none", "planFingerprint", digest("b")},
		{goodApproval, "spec.planRef", nil, "planRef", map[string]any{"name": "p", "uid": "u"}},
		{goodApproval, "spec.schemaRef.name", "", "name", "s"},
		{goodApproval, "spec.approver", nil, "approver", map[string]any{"username": "bob"}},
		{goodApproval, "spec.approvedAt", "yesterday", "approvedAt", "2027-01-02T00:00:00Z"},
		{goodApproval, "spec.mutationRequestUID", nil, "mutationRequestUID", "x"},

		{goodChunk, "spec.data", "", "data", "eHg="},
		{goodChunk, "spec.data", strings.Repeat("eHh4", 174764), "data", strings.Repeat("eHh4", 174763)},
		{goodRealm, "spec.engine", "", "engine", "MySQL"},
		{goodRealm, "spec.engine", nil, "engine", "MySQL"},
		{goodRealm, "spec.engine", "9sql", "engine", "sql9"},
		{goodRealm, "spec.engine", strings.Repeat("E", 64), "engine", strings.Repeat("E", 63)},
		{goodRealm, "spec.namespaces", nil, "namespaces", []any{"team-c"}},
		{goodRealm, "spec.namespaces", []any{}, "namespaces", []any{"a"}},
		{goodRealm, "spec.namespaces", list(257, "n%d"), "namespaces", list(256, "n%d")},
		{goodRealm, "spec.namespaces", []any{"a", "a"}, "namespaces", []any{"a", "b"}},
		{goodRealm, "spec.namespaces", []any{"Team"}, "namespaces", []any{"team"}},
		{goodRealm, "spec.namespaces", []any{"*"}, "namespaces", []any{"0"}},
		{goodRealm, "spec.namespaces", []any{"team-"}, "namespaces", []any{"team-0"}},
		{goodRealm, "spec.namespaces", []any{"a.b"}, "namespaces", []any{"a-b"}},
		{goodRealm, "spec.namespaces", []any{""}, "namespaces", []any{"n"}},
		{goodRealm, "spec.namespaces", []any{strings.Repeat("n", 64)}, "namespaces", []any{strings.Repeat("n", 63)}},
		{goodRealm, "spec.sharing", "Sometimes", "sharing", "Exclusive"},
		{goodRealm, "spec.sharing", "", "sharing", "Shared"},

		{goodRecord, "spec.type", "partial", "type", "chunk"},
		{goodRecord, "spec.data", "", "data", "eHg="},
	} {
		name := test.path + " " + fmt.Sprint(test.refused)
		t.Run(name[:min(len(name), 80)], func(t *testing.T) {
			broken := object(t, test.kind)
			set(t, broken, test.path, test.refused)
			err := c.Create(context.Background(), broken, client.DryRunAll)
			if err == nil {
				t.Errorf("%s = %.60v is accepted", test.path, test.refused)
			} else if !strings.Contains(err.Error(), test.says) {
				t.Errorf("%s = %.60v is refused for another reason: %.300v", test.path, test.refused, err)
			}
			control := object(t, test.kind)
			set(t, control, test.path, test.allowed)
			if test.path == "spec.target.realmRef" {
				set(t, control, "spec.target.realmRef", map[string]any{"name": "r"})
				set(t, control, "spec.target.coordinationKey", nil)
			}
			if err := c.Create(context.Background(), control, client.DryRunAll); err != nil {
				t.Errorf("the control %s = %.60v is refused: %.300v", test.path, test.allowed, err)
			}
		})
	}
}

func TestTheLockTimeoutMayNotExceedTheDeadline(t *testing.T) {
	c := serverClient(t)
	for timeout, allowed := range map[string]bool{"30s": true, "30.001s": false} {
		o := object(t, goodSchema)
		set(t, o, "spec.execution.activeDeadlineSeconds", int64(30))
		set(t, o, "spec.policy.lockTimeout", timeout)
		if err := c.Create(context.Background(), o, client.DryRunAll); (err == nil) != allowed {
			t.Errorf("%s: %v", timeout, err)
		}
	}
}

func TestPublishedObjectsAreImmutable(t *testing.T) {
	c := serverClient(t)
	for name, test := range map[string]struct {
		text, path string
		value      any
	}{
		"plan":     {goodPlan, "spec.statementCount", int64(2)},
		"approval": {goodApproval, "spec.planRef.uid", "other"},
		"chunk":    {goodChunk, "spec.data", "eHg="},
		"record":   {goodRecord, "spec.data", "eHg="},
	} {
		t.Run(name, func(t *testing.T) {
			o := object(t, test.text)
			if err := c.Create(context.Background(), o); err != nil {
				t.Fatal(err)
			}
			o.SetLabels(map[string]string{"touched": "yes"})
			if err := c.Update(context.Background(), o); err != nil {
				t.Errorf("the control, a label, is refused: %v", err)
			}
			set(t, o, test.path, test.value)
			if err := c.Update(context.Background(), o); err == nil || !strings.Contains(err.Error(), "immutable") {
				t.Errorf("a changed spec: %v", err)
			}
		})
	}
}

func TestTheEngineOfARealmIsImmutableAndNothingElse(t *testing.T) {
	c := serverClient(t)
	o := object(t, goodRealm)
	o.SetName("immutable")
	if err := c.Create(context.Background(), o); err != nil {
		t.Fatal(err)
	}
	set(t, o, "spec.sharing", "Exclusive")
	set(t, o, "spec.namespaces", []any{"team-c"})
	if err := c.Update(context.Background(), o); err != nil {
		t.Errorf("the control, other namespaces and another sharing, is refused: %v", err)
	}
	set(t, o, "spec.engine", "MySQL")
	if err := c.Update(context.Background(), o); err == nil || !strings.Contains(err.Error(), "spec.engine: is immutable") {
		t.Errorf("another engine: %v", err)
	}
	namespaced := object(t, goodRealm)
	namespaced.SetName("in-a-namespace")
	namespaced.SetNamespace("default")
	if err := c.Create(context.Background(), namespaced); err == nil && namespaced.GetNamespace() != "" {
		t.Error("a realm lies in a namespace")
	}
}

// A realm is listed as kubectl shows it: its engine, how it is shared, and who may claim it.
func TestARealmIsListedWithWhatAPersonNeeds(t *testing.T) {
	c := serverClient(t)
	realm := object(t, goodRealm)
	realm.SetName("listed")
	if err := c.Create(context.Background(), realm); err != nil {
		t.Fatal(err)
	}
	asker, err := discovery.NewDiscoveryClientForConfig(server.Config(t))
	if err != nil {
		t.Fatal(err)
	}
	raw, err := asker.RESTClient().Get().AbsPath("/apis/operator.ptah.run/v1alpha1/ptahrealms/listed").
		SetHeader("Accept", "application/json;as=Table;v=v1;g=meta.k8s.io").Do(context.Background()).Raw()
	if err != nil {
		t.Fatal(err)
	}
	shown := metav1.Table{}
	if err := json.Unmarshal(raw, &shown); err != nil {
		t.Fatal(err)
	}
	columns := []string{}
	for _, column := range shown.ColumnDefinitions {
		columns = append(columns, column.Name)
	}
	if !slices.Equal(columns, []string{"Name", "Engine", "Sharing", "Namespaces", "Age"}) {
		t.Errorf("columns %v", columns)
	}
	if got := fmt.Sprint(shown.Rows[0].Cells[:4]); got != `[listed PostgreSQL Shared ["team-a","team-b"]]` {
		t.Errorf("cells %s", got)
	}
	kinds, err := asker.ServerResourcesForGroupVersion("operator.ptah.run/v1alpha1")
	if err != nil {
		t.Fatal(err)
	}
	for _, kind := range kinds.APIResources {
		if kind.Kind == "PtahRealm" && (kind.Namespaced || kind.Name != "ptahrealms" || !slices.Equal(kind.ShortNames, []string{"ptahr"}) || !slices.Equal(kind.Categories, []string{"ptah"})) {
			t.Errorf("resource %+v", kind)
		}
	}
}

// Every kind has its short name and the category ptah, and is listed with what a person looks for first.
func TestEveryKindIsListedWithWhatAPersonNeeds(t *testing.T) {
	c := serverClient(t)
	asker, err := discovery.NewDiscoveryClientForConfig(server.Config(t))
	if err != nil {
		t.Fatal(err)
	}
	kinds, err := asker.ServerResourcesForGroupVersion("operator.ptah.run/v1alpha1")
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]struct {
		text, short string
		columns     []string
		wide        []string
	}{
		"PtahSchema":          {goodSchema, "ptahs", []string{"Name", "Phase", "Digest", "Drift", "Approval", "In Sync", "Ready", "Reason", "Age"}, []string{"Digest"}},
		"PtahSchemaPlan":      {goodPlan, "ptahplan", []string{"Name", "Schema", "Statements", "Destructive", "Ready", "Age"}, nil},
		"PtahSchemaPlanChunk": {goodChunk, "ptahchunk", []string{"Name", "Age"}, nil},
		"PtahSchemaApproval":  {goodApproval, "ptahapprove", []string{"Name", "Schema", "Approver", "Accepted", "Consumed", "Stale", "Age"}, nil},
		"PtahRealm":           {goodRealm, "ptahr", []string{"Name", "Engine", "Sharing", "Namespaces", "Age"}, nil},
		"PtahResultRecord":    {goodRecord, "ptahresult", []string{"Name", "Type", "Age"}, nil},
	}
	for _, kind := range kinds.APIResources {
		if strings.Contains(kind.Name, "/") {
			continue
		}
		expected, known := want[kind.Kind]
		if !known || !slices.Equal(kind.ShortNames, []string{expected.short}) || !slices.Equal(kind.Categories, []string{"ptah"}) {
			t.Errorf("resource %+v", kind)
			continue
		}
		delete(want, kind.Kind)
		o := object(t, expected.text)
		o.SetName("listed-" + expected.short)
		if err := c.Create(context.Background(), o); err != nil {
			t.Fatal(err)
		}
		path := "/apis/operator.ptah.run/v1alpha1/"
		if kind.Namespaced {
			path += "namespaces/default/"
		}
		raw, err := asker.RESTClient().Get().AbsPath(path+kind.Name+"/"+o.GetName()).
			SetHeader("Accept", "application/json;as=Table;v=v1;g=meta.k8s.io").Do(context.Background()).Raw()
		if err != nil {
			t.Fatal(err)
		}
		shown := metav1.Table{}
		if err := json.Unmarshal(raw, &shown); err != nil {
			t.Fatal(err)
		}
		columns, wide := []string{}, []string(nil)
		for _, column := range shown.ColumnDefinitions {
			columns = append(columns, column.Name)
			if column.Priority > 0 {
				wide = append(wide, column.Name)
			}
		}
		if !slices.Equal(columns, expected.columns) || !slices.Equal(wide, expected.wide) {
			t.Errorf("%s is listed with %v, wide %v", kind.Kind, columns, wide)
		}
	}
	for kind := range want {
		t.Errorf("kind %s is not served", kind)
	}
}

func TestDefaultsAreWrittenDown(t *testing.T) {
	c := serverClient(t)
	o := object(t, goodSchema)
	set(t, o, "spec.desired.registryAuthFrom", map[string]any{"name": "s"})
	if err := c.Create(context.Background(), o, client.DryRunAll); err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]any{
		"spec.policy.apply": "OnApproval", "spec.policy.driftSeverity": "all", "spec.policy.lockTimeout": "30s", "spec.policy.transactionMode": nil,
		"spec.interval": "10m", "spec.execution.activeDeadlineSeconds": int64(900), "spec.execution.failureRetryInterval": "30s",
		"spec.execution.connectTimeout": "10s", "spec.desired.registryAuthFrom.mode": "Environment", "spec.desired.registryAuthFrom.usernameKey": "username",
		"spec.desired.registryAuthFrom.dockerConfigJSONKey": ".dockerconfigjson",
	} {
		got, _, err := unstructured.NestedFieldNoCopy(o.Object, strings.Split(path, ".")...)
		if err != nil || got != want {
			t.Errorf("%s is %v instead of %v", path, got, want)
		}
	}
	realm := object(t, goodRealm)
	set(t, realm, "spec.sharing", nil)
	if err := c.Create(context.Background(), realm, client.DryRunAll); err != nil {
		t.Fatal(err)
	}
	if got, _, err := unstructured.NestedString(realm.Object, "spec", "sharing"); err != nil || got != "Exclusive" {
		t.Errorf("a realm that says nothing on sharing has %q, %v", got, err)
	}
}

// The object is sent as a Go program would: what is not set is left to the API server.
func TestSpecAndStatusAreSeparate(t *testing.T) {
	c := serverClient(t)
	s := &ptahv1.PtahSchema{}
	o := object(t, goodSchema)
	set(t, o, "metadata.name", "separate")
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(o.Object, s); err != nil {
		t.Fatal(err)
	}
	s.Status.Phase = ptahv1.PhaseInSync
	if err := c.Create(context.Background(), s); err != nil {
		t.Fatal(err)
	}
	if s.Status.Phase != "" || s.Generation != 1 {
		t.Errorf("created with status %q", s.Status.Phase)
	}
	s.Status.Phase = ptahv1.PhaseInSync
	if err := c.Status().Update(context.Background(), s); err != nil {
		t.Fatal(err)
	}
	if s.Generation != 1 {
		t.Error("a status write changed the generation")
	}
	s.Status.Phase = "Somewhere"
	if err := c.Status().Update(context.Background(), s); err == nil {
		t.Error("an unknown phase is stored")
	}
}
