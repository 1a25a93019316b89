package command

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/yaml"

	"ptah.run/ptah/operator/api/v1alpha1"
)

// stored is a plan as a manager stores it, in YAML.
func stored(t *testing.T) client.Reader {
	t.Helper()
	scheme := runtime.NewScheme()
	if err := v1alpha1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	builder := fake.NewClientBuilder().WithScheme(scheme)
	for name, into := range map[string]client.Object{"schema.yaml": &v1alpha1.PtahSchema{}, "plan.yaml": &v1alpha1.PtahSchemaPlan{}, "chunk.yaml": &v1alpha1.PtahSchemaPlanChunk{}} {
		data, err := os.ReadFile(filepath.Join("testdata", name))
		if err != nil {
			t.Fatal(err)
		}
		if err := yaml.UnmarshalStrict(data, into); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		builder = builder.WithObjects(into)
	}
	return builder.Build()
}

type outcome struct {
	code       int
	out, err   string
	connection *Connection
}

func run(t *testing.T, reader client.Reader, arguments ...string) outcome {
	t.Helper()
	var out, errs bytes.Buffer
	o := outcome{}
	connect := func(c Connection) (client.Reader, string, error) {
		o.connection = &c
		if reader == nil {
			return nil, "", errors.New("no such context")
		}
		namespace := c.Namespace
		if namespace == "" {
			namespace = "shop"
		}
		return reader, namespace, nil
	}
	o.code = Run(t.Context(), arguments, Streams{Out: &out, Err: &errs}, "1.2.3", connect)
	o.out, o.err = out.String(), errs.String()
	return o
}

func TestExitCodesAndStreams(t *testing.T) {
	for name, test := range map[string]struct {
		arguments []string
		code      int
		out, err  string
	}{
		"the plan":                    {[]string{"plan", "orders"}, 0, "fingerprint", ""},
		"the current plan":            {[]string{"plan", "orders", "--current"}, 0, "fingerprint", ""},
		"statements":                  {[]string{"plan", "orders", "-o", "sql"}, 0, "CREATE TABLE public.a (id bigint);\n", ""},
		"the document":                {[]string{"plan", "orders", "-o", "json"}, 0, `{"formatVersion":1`, ""},
		"the approval":                {[]string{"plan", "orders", "-o", "approval"}, 0, "kind: PtahSchemaApproval", ""},
		"the version":                 {[]string{"--version"}, 0, "1.2.3", ""},
		"help":                        {[]string{"--help"}, 0, "kubectl ptah", ""},
		"help of a command":           {[]string{"plan", "--help"}, 0, "kubectl create -f -", ""},
		"no such schema":              {[]string{"plan", "other"}, 3, "", `nothing to show: PtahSchema "other" does not exist in namespace "shop"`},
		"another namespace":           {[]string{"plan", "orders", "-n", "bank"}, 3, "", `does not exist in namespace "bank"`},
		"nothing applied":             {[]string{"plan", "orders", "--applied"}, 3, "", `no plan of PtahSchema "orders" was applied yet`},
		"no name":                     {[]string{"plan"}, 2, "", "plan takes the name of one PtahSchema"},
		"two names":                   {[]string{"plan", "a", "b"}, 2, "", "plan takes the name of one PtahSchema"},
		"an unknown flag":             {[]string{"plan", "orders", "--odd"}, 2, "", "unknown flag: --odd"},
		"an unknown form":             {[]string{"plan", "orders", "-o", "yaml"}, 2, "", `-o "yaml" is none of text, sql, json and approval`},
		"both plans":                  {[]string{"plan", "orders", "--current", "--applied"}, 2, "", "exclude each other"},
		"an approval of what was":     {[]string{"plan", "orders", "--applied", "-o", "approval"}, 2, "", "what was applied needs no approval"},
		"no time":                     {[]string{"plan", "orders", "--timeout", "0s"}, 2, "", "--timeout must be positive"},
		"the state":                   {[]string{"schema", "orders"}, 0, "phase        AwaitingApproval", ""},
		"the state for programs":      {[]string{"schema", "orders", "-o", "json"}, 0, `"contractVersion": 1`, ""},
		"help of the state":           {[]string{"schema", "--help"}, 0, "what a person should do next", ""},
		"no schema to tell of":        {[]string{"schema", "other"}, 3, "", `nothing to show: PtahSchema "other" does not exist in namespace "shop"`},
		"a state without a name":      {[]string{"schema"}, 2, "", "schema takes the name of one PtahSchema"},
		"a state in another form":     {[]string{"schema", "orders", "-o", "sql"}, 2, "", `-o "sql" is none of text and json`},
		"a state without time":        {[]string{"schema", "orders", "--timeout", "-1s"}, 2, "", "--timeout must be positive"},
		"an unknown command":          {[]string{"apply"}, 2, "", `"apply" is not a command`},
		"a malformed timeout is told": {[]string{"plan", "orders", "--timeout", "soon"}, 2, "", "invalid argument"},
	} {
		t.Run(name, func(t *testing.T) {
			got := run(t, stored(t), test.arguments...)
			if got.code != test.code || !strings.Contains(got.out, test.out) || !strings.Contains(got.err, test.err) {
				t.Errorf("exit %d\nout %q\nerr %q\nwant exit %d, out with %q, err with %q", got.code, got.out, got.err, test.code, test.out, test.err)
			}
			if test.code != 0 && got.out != "" {
				t.Errorf("a failure printed %q", got.out)
			}
			if test.code == 0 && got.err != "" {
				t.Errorf("a success complained %q", got.err)
			}
		})
	}
}

func TestNothingIsPrintedWhereTheClusterCannotBeReached(t *testing.T) {
	for _, command := range []string{"plan", "schema"} {
		got := run(t, nil, command, "orders")
		if got.code != ExitFailed || got.out != "" || !strings.Contains(got.err, "connect to the cluster: no such context") {
			t.Errorf("%s: exit %d, out %q, err %q", command, got.code, got.out, got.err)
		}
	}
}

func TestNothingIsPrintedWhereAChunkWasAltered(t *testing.T) {
	reader := stored(t)
	writer := reader.(client.Client)
	var chunks v1alpha1.PtahSchemaPlanChunkList
	if err := writer.List(t.Context(), &chunks); err != nil {
		t.Fatal(err)
	}
	chunks.Items[0].Spec.Data[30] ^= 1
	if err := writer.Update(t.Context(), &chunks.Items[0]); err != nil {
		t.Fatal(err)
	}
	for _, form := range []string{"text", "sql", "json", "approval"} {
		got := run(t, reader, "plan", "orders", "-o", form)
		if got.code != ExitFailed || got.out != "" || !strings.Contains(got.err, "not intact") {
			t.Errorf("-o %s: exit %d, out %q, err %q", form, got.code, got.out, got.err)
		}
	}
}

func TestAnApprovalThatWouldBeRefusedIsPrintedWithAWarning(t *testing.T) {
	reader := stored(t)
	writer := reader.(client.Client)
	var schema v1alpha1.PtahSchema
	if err := writer.Get(t.Context(), client.ObjectKey{Namespace: "shop", Name: "orders"}, &schema); err != nil {
		t.Fatal(err)
	}
	schema.Status.Conditions = nil
	if err := writer.Update(t.Context(), &schema); err != nil {
		t.Fatal(err)
	}
	got := run(t, reader, "plan", "orders", "-o", "approval")
	if got.code != ExitPrinted || !strings.Contains(got.err, "does not wait for an approval of this plan now") || !strings.Contains(got.out, "planFingerprint") {
		t.Errorf("exit %d, out %q, err %q", got.code, got.out, got.err)
	}
}

func TestTheConnectionIsWhatWasAskedFor(t *testing.T) {
	got := run(t, stored(t), "plan", "orders", "-n", "shop", "--kubeconfig", "/k", "--context", "c")
	if want := (Connection{Kubeconfig: "/k", Context: "c", Namespace: "shop"}); got.connection == nil || *got.connection != want {
		t.Errorf("connection %+v, want %+v", got.connection, want)
	}
}

// slow never answers.
type slow struct{ client.Reader }

func (slow) Get(ctx context.Context, _ client.ObjectKey, _ client.Object, _ ...client.GetOption) error {
	<-ctx.Done()
	return ctx.Err()
}

func TestTheTimeoutEndsTheCommand(t *testing.T) {
	started := time.Now()
	got := run(t, slow{}, "plan", "orders", "--timeout", "50ms")
	if state := run(t, slow{}, "schema", "orders", "--timeout", "50ms"); state.code != ExitFailed || state.out != "" {
		t.Errorf("exit %d, out %q", state.code, state.out)
	}
	if got.code != ExitFailed || !strings.Contains(got.err, "deadline exceeded") || time.Since(started) > 10*time.Second {
		t.Errorf("exit %d after %s, err %q", got.code, time.Since(started), got.err)
	}
}

func TestAKubeconfigIsReadAsKubectlReadsIt(t *testing.T) {
	path := filepath.Join(t.TempDir(), "config")
	if err := os.WriteFile(path, []byte(`apiVersion: v1
kind: Config
clusters: [{name: a, cluster: {server: "https://127.0.0.1:1"}}]
users: [{name: u, user: {token: t}}]
contexts:
  - {name: first, context: {cluster: a, user: u, namespace: one}}
  - {name: second, context: {cluster: a, user: u}}
current-context: first
`), 0o600); err != nil {
		t.Fatal(err)
	}
	connect := ConnectWith("kubectl-ptah/test")
	for _, test := range []struct {
		connection Connection
		namespace  string
	}{
		{Connection{Kubeconfig: path}, "one"},
		{Connection{Kubeconfig: path, Context: "second"}, "default"},
		{Connection{Kubeconfig: path, Namespace: "two"}, "two"},
	} {
		reader, namespace, err := connect(test.connection)
		if err != nil || reader == nil || namespace != test.namespace {
			t.Errorf("%+v: namespace %q, %v, want %q", test.connection, namespace, err, test.namespace)
		}
	}
	if _, _, err := connect(Connection{Kubeconfig: path, Context: "third"}); err == nil {
		t.Error("a context that does not exist was used")
	}
	if _, _, err := connect(Connection{Kubeconfig: path + ".none"}); err == nil {
		t.Error("a kubeconfig that does not exist was used")
	}
}
