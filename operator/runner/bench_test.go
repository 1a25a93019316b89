package runner

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"ptah.run/ptah/operator/operation/env"
	"ptah.run/ptah/operator/operation/identity"
	"ptah.run/ptah/operator/operation/result"
	"ptah.run/ptah/operator/plan/report"
	"ptah.run/ptah/operator/receiver/delivery"
)

// TestMain lets the test binary be ptah: a link of that name to it plays a script and writes down how it was called.
func TestMain(m *testing.M) {
	if filepath.Base(os.Args[0]) == "ptah" {
		os.Exit(playPtah(filepath.Dir(os.Args[0]))) //nolint:forbidigo // this is the main function of the ptah that it plays
	}
	m.Run() // the test program exits with what it returned
}

// answer is what the played ptah does for one command.
type answer struct {
	Report   any               `json:"report,omitempty"`
	Raw      string            `json:"raw,omitempty"`
	Stderr   string            `json:"stderr,omitempty"`
	Exit     int               `json:"exit,omitempty"`
	Files    map[string]string `json:"files,omitempty"`  // below --output
	Output   string            `json:"output,omitempty"` // the file that --output names
	Hang     bool              `json:"hang,omitempty"`   // until asked to end
	HangHard bool              `json:"hangHard,omitempty"`
}

// call is how ptah was called.
type call struct {
	Arguments   []string `json:"arguments"`
	Environment []string `json:"environment"`
}

func (c call) command() string {
	words := []string{}
	for _, argument := range c.Arguments {
		if argument == "--dry-run" {
			words = append(words, argument)
		}
		if !strings.HasPrefix(argument, "--") && len(words) < 2 {
			words = append(words, argument)
		}
	}
	return strings.Join(words, " ")
}

func (c call) flag(name string) string {
	for _, argument := range c.Arguments {
		if value, found := strings.CutPrefix(argument, "--"+name+"="); found {
			return value
		}
	}
	return ""
}

func playPtah(directory string) int {
	made := call{Arguments: os.Args[1:], Environment: os.Environ()}
	line, _ := json.Marshal(made)
	calls, err := os.OpenFile(filepath.Join(directory, "calls"), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return 99
	}
	if _, err := fmt.Fprintf(calls, "%s\n", line); errors.Join(err, calls.Close()) != nil {
		return 99
	}
	data, err := os.ReadFile(filepath.Join(directory, "script.json"))
	if err != nil {
		return 98
	}
	var script map[string]answer
	if json.Unmarshal(data, &script) != nil {
		return 97
	}
	told, found := script[made.command()]
	if !found {
		return 96
	}
	if told.HangHard {
		signal.Ignore(syscall.SIGTERM)
		if os.WriteFile(filepath.Join(directory, "hanging"), nil, 0o600) != nil {
			return 94
		}
		time.Sleep(time.Minute)
	}
	if told.Hang {
		asked := make(chan os.Signal, 1)
		signal.Notify(asked, syscall.SIGTERM)
		if os.WriteFile(filepath.Join(directory, "hanging"), nil, 0o600) != nil {
			return 94
		}
		select {
		case <-asked:
		case <-time.After(time.Minute):
			return 95
		}
	}
	for name, content := range told.Files {
		if os.WriteFile(filepath.Join(made.flag("output"), name), []byte(content), 0o600) != nil {
			return 94
		}
	}
	if told.Output != "" {
		if os.WriteFile(made.flag("output"), []byte(told.Output), 0o600) != nil {
			return 94
		}
	}
	fmt.Fprint(os.Stderr, told.Stderr)
	fmt.Print(told.Raw)
	if told.Report != nil {
		if json.NewEncoder(os.Stdout).Encode(told.Report) != nil {
			return 94
		}
	}
	return told.Exit
}

// post is a receiver that plays the other side of the protocol.
type post struct {
	*httptest.Server
	mutex     sync.Mutex
	requests  []string
	documents [][]byte
	// answers are taken in order by PUT requests: a status, or 0 for a connection that breaks.
	answers   []int
	plan      []byte
	planFault bool
	receipt   func(*delivery.Receipt)
}

func newPost(t *testing.T) *post {
	p := &post{}
	p.Server = httptest.NewUnstartedServer(http.HandlerFunc(p.serve))
	p.TLS = &tls.Config{MinVersion: tls.VersionTLS13}
	p.Config.ErrorLog = log.New(io.Discard, "", 0)
	p.StartTLS()
	t.Cleanup(p.Close)
	return p
}

func (p *post) serve(w http.ResponseWriter, r *http.Request) {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	p.requests = append(p.requests, r.Method+" "+r.URL.Path)
	claimed, err := delivery.Decode(r.Header.Get(delivery.IdentityHeader))
	if err != nil || r.Header.Get("Authorization") != "Bearer token.of.the-pod" || !strings.HasSuffix(r.URL.Path, "/"+delivery.Publication(claimed)) {
		w.WriteHeader(http.StatusUnauthorized)
		return
	}
	switch r.Method {
	case http.MethodGet:
		if p.planFault {
			w.WriteHeader(http.StatusForbidden)
			_, _ = io.WriteString(w, `{"error":"the Apply is no longer the PtahSchema's operation"}`)
			return
		}
		_, _ = w.Write(p.plan)
	case http.MethodPut:
		body, _ := io.ReadAll(r.Body)
		p.documents = append(p.documents, body)
		status := http.StatusOK
		if len(p.answers) > 0 {
			status, p.answers = p.answers[0], p.answers[1:]
		}
		if status == 0 {
			panic(http.ErrAbortHandler)
		}
		w.WriteHeader(status)
		if status != http.StatusOK {
			_, _ = io.WriteString(w, `{"error":"so it is"}`)
			return
		}
		receipt := delivery.Receipt{Publication: delivery.Publication(claimed), Record: "r", UID: "u", Digest: report.Digest(body), Size: int64(len(body))}
		if p.receipt != nil {
			p.receipt(&receipt)
		}
		_ = json.NewEncoder(w).Encode(receipt) // a client that has gone asks again
	}
}

// bench is one container with everything around it.
type bench struct {
	t       *testing.T
	dir     string
	env     map[string]string
	script  map[string]answer
	post    *post
	log     bytes.Buffer
	now     func() time.Time
	program *Program
}

var (
	artifact    = "sha256:" + strings.Repeat("1", 64)
	state       = "sha256:" + strings.Repeat("2", 64)
	desired     = "sha256:" + strings.Repeat("3", 64)
	target      = "sha256:" + strings.Repeat("4", 64)
	otherTarget = "sha256:" + strings.Repeat("5", 64)
)

const (
	reference   = "oci://registry.example:5000/shop/orders:1"
	pinned      = "registry.example:5000/shop/orders@sha256:1111111111111111111111111111111111111111111111111111111111111111"
	databaseURL = "postgres://ptah:s3cr%24t-pw@db.example:5432/shop?sslmode=require"
)

func newBench(t *testing.T, operation string) *bench {
	t.Helper()
	dir := t.TempDir()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(self, filepath.Join(dir, "ptah")); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"work", "scratch"} {
		if err := os.Mkdir(filepath.Join(dir, name), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	b := &bench{t: t, dir: dir, post: newPost(t), now: time.Now}
	b.write("token", "token.of.the-pod\n")
	b.write("policy", "version: 1\n")
	claimed, err := json.Marshal(identity.Identity{
		Namespace: "shop", Kind: delivery.KindPtahSchema, Name: "orders", UID: "schema-uid", Generation: 3,
		ExecutionBindingID: "v1-" + strings.Repeat("a", 32), InputFingerprint: state, Operation: operation,
		OperationID: "op-1", JobName: "ptah-refresh-orders-1",
	})
	if err != nil {
		t.Fatal(err)
	}
	b.env = map[string]string{
		"PATH": "/usr/bin", "TMPDIR": filepath.Join(dir, "scratch"), "KUBERNETES_SERVICE_HOST": "10.0.0.1",
		env.ProtocolVersion: "1", env.Operation: operation, env.OperationID: "op-1", env.WorkDir: filepath.Join(dir, "work"),
		env.TerminationGraceSecs: "30",
		env.ResultEndpoint:       b.post.URL, env.ResultTokenFile: filepath.Join(dir, "token"), env.ResultIdentity: string(claimed),
		env.ResultTrustPEM: string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: b.post.Certificate().Raw})),
		env.PodName:        "ptah-refresh-orders-1-abcde", env.PodUID: "pod-uid", env.JobUID: "job-uid",
	}
	return b
}

func (b *bench) write(name, content string) string {
	b.t.Helper()
	path := filepath.Join(b.dir, name)
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		b.t.Fatal(err)
	}
	return path
}

// sourceBench is a source container whose every step succeeds.
func sourceBench(t *testing.T) *bench {
	b := newBench(t, result.OperationRefresh)
	policy := report.Digest([]byte("version: 1\n"))
	b.env[env.RequestedReference] = reference
	b.env[env.VerificationPolicy] = filepath.Join(b.dir, "policy")
	b.env[env.ExpectedPolicyDigest] = policy
	b.env[env.AuthMode] = "Environment"
	b.env[env.AuthRegistryGrant] = "registry.example:5000"
	b.env[env.OCIUsername] = "reader"
	b.env[env.OCIPassword] = "registry-password"
	b.script = map[string]answer{
		"oci resolve": {Report: report.Resolve{ContractVersion: 1, Outcome: report.OutcomeFound, Reference: reference, PinnedReference: pinned, Digest: artifact}},
		"oci verify":  {Report: report.Verify{ContractVersion: 1, Outcome: report.OutcomeFound, Reference: pinned, Digest: artifact, PolicyDigest: policy, Satisfied: []string{"artifact_types"}}},
		"schema pull": {Report: report.Pull{ContractVersion: 1, Outcome: report.OutcomeFound, Reference: pinned, Digest: artifact, Files: 1}, Files: map[string]string{"a.sql": "SELECT 1"}},
	}
	return b
}

func examplePlan(t *testing.T) []byte {
	t.Helper()
	plan := report.Plan{
		FormatVersion: 1, Dialect: report.DialectPostgreSQL, ServerMajor: "17", TransactionMode: report.TransactionFile,
		FromFingerprint: state, ToFingerprint: desired,
		Statements: []report.Statement{{SQL: "CREATE TABLE public.a (id bigint)", Kind: "CREATE TABLE", Severity: report.SeveritySafe, LockClass: "none", RewriteRisk: report.RewriteNone}},
	}
	plan.Summarise()
	data, err := report.EncodePlan(plan)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

func (b *bench) databaseEnvironment() {
	b.env[env.DatabaseURL] = databaseURL
	b.env[env.ExpectedDialect] = report.DialectPostgreSQL
	b.env[env.Exclude] = `["audit.*"]`
	b.env[env.ProtectedTables] = `["public.money"]`
	b.env[env.TransactionMode] = "file"
	b.env[env.DriftSeverity] = "all"
	b.env[env.ConnectTimeout] = "10s"
	b.env[env.LockTimeout] = "30s"
}

// refreshBench is a database container of a refresh that finds changes.
func refreshBench(t *testing.T) *bench {
	b := newBench(t, result.OperationRefresh)
	b.databaseEnvironment()
	data := examplePlan(t)
	digest := report.Digest(data)
	b.script = map[string]answer{
		"schema drift": {Report: report.Drift{ContractVersion: 1, Outcome: report.OutcomeChanges, Dialect: report.DialectPostgreSQL, Fingerprint: state, TargetIdentity: target}},
		"schema plan": {Report: report.SchemaPlan{ContractVersion: 1, Outcome: report.OutcomeChanges, Dialect: report.DialectPostgreSQL, TargetIdentity: target,
			FromFingerprint: state, ToFingerprint: desired, PlanDigest: digest, PlanSize: int64(len(data)), Statements: 1}, Output: string(data)},
		"schema apply --dry-run": {Report: report.SchemaApply{ContractVersion: 1, Outcome: report.OutcomeDryRun, Dialect: report.DialectPostgreSQL, TargetIdentity: target, PlanDigest: digest, Statements: 1}},
	}
	at := time.Date(2026, 11, 29, 12, 0, 0, 0, time.UTC)
	before, err := result.Encode(&result.Document{
		ProtocolVersion: result.ProtocolVersion, Operation: result.OperationRefresh, OperationID: "op-1",
		Steps: []result.Step{
			{Name: result.StepResolve, StartedAt: at, FinishedAt: at}, {Name: result.StepVerify, StartedAt: at, FinishedAt: at}, {Name: result.StepFetch, StartedAt: at, FinishedAt: at},
		},
		Resolve: &report.Resolve{ContractVersion: 1, Outcome: report.OutcomeFound, Digest: artifact, PinnedReference: pinned},
		Verify:  &report.Verify{ContractVersion: 1, Outcome: report.OutcomeFound, Digest: artifact},
	})
	if err != nil {
		t.Fatal(err)
	}
	b.write("work/source-result.json", string(before))
	return b
}

// applyBench is a database container of an Apply that succeeds.
func applyBench(t *testing.T) *bench {
	b := newBench(t, result.OperationApply)
	b.databaseEnvironment()
	data := examplePlan(t)
	digest := report.Digest(data)
	b.post.plan = data
	b.env[env.ExpectedPlanDigest] = digest
	b.env[env.ExpectedTargetIdentity] = target
	b.env[env.DispatchNotAfter] = time.Now().Add(time.Hour).UTC().Format(time.RFC3339)
	b.env[env.ExecutionNotAfter] = time.Now().Add(2 * time.Hour).UTC().Format(time.RFC3339)
	dry := report.SchemaApply{ContractVersion: 1, Outcome: report.OutcomeDryRun, Dialect: report.DialectPostgreSQL, TargetIdentity: target, PlanDigest: digest, Statements: 1}
	done := dry
	done.Outcome, done.Executed, done.MutationStarted = report.OutcomeApplied, 1, true
	b.script = map[string]answer{"schema apply --dry-run": {Report: dry}, "schema apply": {Report: done}}
	return b
}

func (b *bench) run(arguments ...string) int {
	b.t.Helper()
	return b.runWith(context.Background(), arguments...)
}

func (b *bench) runWith(ctx context.Context, arguments ...string) int {
	b.t.Helper()
	script, err := json.Marshal(b.script)
	if err != nil {
		b.t.Fatal(err)
	}
	b.write("script.json", string(script))
	b.program = &Program{
		Environment: func(name string) (string, bool) { value, found := b.env[name]; return value, found },
		Executable:  os.Executable,
		Ptah:        filepath.Join(b.dir, "ptah"),
		Log:         &b.log,
		Now:         b.now,
		RetryPause:  time.Millisecond,
	}
	return b.program.Run(ctx, arguments)
}

// calls returns how ptah was called, in order.
func (b *bench) calls() []call {
	b.t.Helper()
	data, err := os.ReadFile(filepath.Join(b.dir, "calls"))
	if os.IsNotExist(err) {
		return nil
	}
	if err != nil {
		b.t.Fatal(err)
	}
	var all []call
	for line := range strings.Lines(string(data)) {
		var one call
		if err := json.Unmarshal([]byte(line), &one); err != nil {
			b.t.Fatal(err)
		}
		all = append(all, one)
	}
	return all
}

func (b *bench) commands() []string {
	names := []string{}
	for _, one := range b.calls() {
		names = append(names, one.command())
	}
	return names
}

func (b *bench) wantCommands(want ...string) {
	b.t.Helper()
	if got := b.commands(); !slices.Equal(got, want) {
		b.t.Errorf("ptah ran %q, want %q", got, want)
	}
}

// delivered returns the only document that was delivered.
func (b *bench) delivered() *result.Document {
	b.t.Helper()
	if len(b.post.documents) != 1 {
		b.t.Fatalf("%d documents were delivered, want 1\n%s", len(b.post.documents), b.log.String())
	}
	document, err := result.Decode(b.post.documents[0])
	if err != nil {
		b.t.Fatal(err)
	}
	return document
}

// wantError checks that the delivered document ends with a code and a message.
func (b *bench) wantError(step result.StepName, code result.ErrorCode, message string) *result.Document {
	b.t.Helper()
	document := b.delivered()
	last := document.Steps[len(document.Steps)-1]
	if last.Error == nil {
		b.t.Fatalf("the document ends without an error, want %s %q", code, message)
	}
	if last.Name != step || last.Error.Code != code || !strings.Contains(last.Error.Message, message) {
		b.t.Errorf("the document ends with %s %s %q, want %s %s %q", last.Name, last.Error.Code, last.Error.Message, step, code, message)
	}
	return document
}

func (b *bench) wantExit(got, want int) {
	b.t.Helper()
	if got != want {
		b.t.Errorf("exit code %d, want %d\n%s", got, want, b.log.String())
	}
}

// edit changes the report of one command.
func edit[T any](b *bench, command string, change func(*T)) {
	told := b.script[command]
	changed := told.Report.(T)
	change(&changed)
	told.Report = changed
	b.script[command] = told
}
