package executor_test

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"log"
	"maps"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-containerregistry/pkg/registry"

	"ptah.run/ptah/operator/artifact"
	"ptah.run/ptah/operator/executor/command"
	"ptah.run/ptah/operator/executor/postgresql/scratch"
	"ptah.run/ptah/operator/plan/report"
)

// person runs ptah as a person would, over one registry and one database.
type person struct {
	t   *testing.T
	env map[string]string
	dir string
}

func newPerson(t *testing.T, server *scratch.Server, database string) *person {
	t.Helper()
	return &person{t, map[string]string{
		"PTAH_DB_URL":         "postgres://app:none@/" + database + "?host=" + server.Socket() + "&sslmode=disable",
		"PTAH_PG_BINDIR":      server.Binaries(),
		"PTAH_SCRATCH_DIR":    os.Getenv("PTAH_SCRATCH_DIR"),
		"TMPDIR":              os.Getenv("TMPDIR"),
		"PTAH_OCI_PLAIN_HTTP": "true",
	}, t.TempDir()}
}

func (p *person) path(name string) string { return filepath.Join(p.dir, name) }

func (p *person) write(name, text string) string {
	p.t.Helper()
	path := p.path(name)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		p.t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		p.t.Fatal(err)
	}
	return path
}

// text runs a command for a person.
func (p *person) text(want int, args ...string) (out, errOut string) {
	p.t.Helper()
	var o, e bytes.Buffer
	code := command.Run(p.t.Context(), args, command.Streams{In: strings.NewReader(""), Out: &o, Err: &e,
		Getenv: func(name string) string { return p.env[name] }})
	if code != want {
		p.t.Fatalf("ptah %s ends with exit code %d: %s%s", strings.Join(args, " "), code, o.String(), e.String())
	}
	return o.String(), e.String()
}

// json runs a command and reads its report.
func (p *person) json(want int, into any, args ...string) {
	p.t.Helper()
	out, _ := p.text(want, append(args, "--format=json")...)
	decoder := json.NewDecoder(strings.NewReader(out))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(into); err != nil || decoder.More() {
		p.t.Fatalf("ptah %s wrote no single report: %v %q", strings.Join(args, " "), err, out)
	}
}

func TestProgramFromPushToProof(t *testing.T) {
	server := targetServer(t)
	ctx := context.Background()
	if err := server.Create(ctx, "program"); err != nil {
		t.Fatal(err)
	}
	p := newPerson(t, server, "program")
	host := httptest.NewServer(registry.New(registry.Logger(log.New(io.Discard, "", 0)), registry.WithReferrersSupport(true)))
	t.Cleanup(host.Close)
	tag := "oci://" + strings.TrimPrefix(host.URL, "http://") + "/shop/schema:v1"

	p.write("schema/001.sql", "CREATE TABLE customers (id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, email text NOT NULL UNIQUE);")
	p.write("schema/002.sql", "CREATE VIEW emails AS SELECT email FROM customers; GRANT SELECT ON emails TO reader;")
	policy := p.write("policy.yaml", "version: 1\nartifact_types: ["+artifact.SchemaType+"]\n")

	var pushed, resolved, inspected report.Resolve
	p.json(command.ExitDone, &pushed, "oci", "push", tag, "--schema", p.path("schema"), "--annotation", "commit=1a2b")
	p.json(command.ExitDone, &resolved, "oci", "resolve", tag)
	p.json(command.ExitDone, &inspected, "oci", "inspect", resolved.PinnedReference)
	if resolved.Digest != pushed.Digest || inspected.Digest != pushed.Digest || !maps.Equal(inspected.Annotations, map[string]string{"commit": "1a2b", artifact.FormatAnnotation: "sql"}) {
		t.Errorf("%+v %+v %+v", pushed, resolved, inspected)
	}
	var verified report.Verify
	p.json(command.ExitDone, &verified, "oci", "verify", resolved.PinnedReference, "--policy="+policy, "--requested="+tag)
	if verified.Outcome != report.OutcomeFound || !report.IsDigest(verified.PolicyDigest) || len(verified.Satisfied) != 1 {
		t.Errorf("%+v", verified)
	}
	strict := p.write("strict.yaml", "version: 1\nrequire_digest_pin: true\n")
	p.json(command.ExitRefused, &verified, "oci", "verify", resolved.PinnedReference, "--policy="+strict, "--requested="+tag)
	if verified.Problem.Code != report.CodePolicy || len(verified.Findings) != 1 {
		t.Errorf("%+v", verified)
	}
	var pulled report.Pull
	source := p.path("source")
	p.json(command.ExitDone, &pulled, "schema", "pull", resolved.PinnedReference, "--output="+source)
	if entries, err := os.ReadDir(source); err != nil || len(entries) != 2 || pulled.Files != 2 || pulled.Digest != pushed.Digest {
		t.Errorf("%+v %v", pulled, entries)
	}
	p.converge(source, pushed.Digest)
	p.follow(source, server)
}

// converge plans, applies and proves.
func (p *person) converge(source, digest string) {
	t := p.t
	var drift report.Drift
	p.json(command.ExitDone, &drift, "schema", "drift", "--schema="+source)
	if drift.Outcome != report.OutcomeChanges || len(drift.Findings) == 0 || !report.IsDigest(drift.Fingerprint) || !report.IsDigest(drift.TargetIdentity) {
		t.Errorf("%+v", drift)
	}
	var first, second report.SchemaPlan
	planFile := p.path("plan.json")
	p.json(command.ExitDone, &first, "schema", "plan", "--schema="+source, "--output="+planFile)
	p.json(command.ExitDone, &second, "schema", "plan", "--schema="+source)
	if first.Outcome != report.OutcomeChanges || first.PlanDigest != second.PlanDigest || first.FromFingerprint != drift.Fingerprint ||
		!slices.Contains(first.PrivilegeChanges, report.PrivilegeGrant) || first.Destructive {
		t.Errorf("%+v\n%+v", first, second)
	}
	data, err := os.ReadFile(planFile)
	if err != nil || report.Digest(data) != first.PlanDigest || int64(len(data)) != first.PlanSize {
		t.Errorf("the plan document is not what the report says: %v", err)
	}
	var applied report.SchemaApply
	p.json(command.ExitDone, &applied, "schema", "apply", "--plan="+planFile, "--expect-digest="+first.PlanDigest, "--dry-run")
	if applied.Outcome != report.OutcomeDryRun || applied.Executed != 0 || applied.PlanDigest != first.PlanDigest {
		t.Errorf("%+v", applied)
	}
	p.json(command.ExitDone, &applied, "schema", "apply", "--plan="+planFile, "--expect-digest="+first.PlanDigest, "--auto-approve")
	if applied.Outcome != report.OutcomeApplied || applied.Executed != first.Statements {
		t.Errorf("%+v", applied)
	}
	var proven, again report.SchemaPlan
	p.json(command.ExitDone, &proven, "schema", "plan", "--schema="+source)
	if proven.Outcome != report.OutcomeNoChanges || proven.Unchanged || proven.FromFingerprint == "" {
		t.Errorf("%+v", proven)
	}
	proof := []string{"schema", "plan", "--schema=" + source, "--proven-dump-digest=" + proven.FromFingerprint, "--proven-artifact=" + digest}
	p.json(command.ExitDone, &again, proof...)
	if again.Outcome != report.OutcomeNoChanges || !again.Unchanged {
		t.Errorf("an unchanged database was planned for: %+v", again)
	}
	var other report.SchemaPlan
	p.json(command.ExitDone, &other, append(proof, "--proven-executor=another")...)
	if other.Unchanged {
		t.Error("the proof of another executor counts")
	}
	other = report.SchemaPlan{}
	p.json(command.ExitDone, &other, append(proof[:4:4], "--proven-artifact="+report.Digest(nil))...)
	if other.Unchanged {
		t.Error("the proof of another artifact counts")
	}
}

// follow makes drift by hand, reads it, and has it refused by a list of protected tables.
func (p *person) follow(source string, server *scratch.Server) {
	t := p.t
	conn, err := server.Owner(t.Context(), "program")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close(context.Background()) }()
	if _, err := conn.Exec(t.Context(), "ALTER TABLE customers ADD COLUMN salary int"); err != nil {
		t.Fatal(err)
	}
	var drift report.Drift
	p.json(command.ExitDone, &drift, "schema", "drift", "--schema="+source)
	if drift.HighestSeverity != report.SeverityDestructive || len(drift.Findings) != 1 || drift.Findings[0] != (report.Finding{Category: "columns_removed", Count: 1, Severity: report.SeverityDestructive}) {
		t.Errorf("%+v", drift)
	}
	text, _ := p.text(command.ExitDone, "schema", "drift", "--schema="+source)
	if strings.Contains(text, "salary") || strings.Contains(text, "customers") {
		t.Errorf("drift names an object: %s", text)
	}
	text, _ = p.text(command.ExitDone, "schema", "plan", "--schema="+source)
	for _, part := range []string{"destructive", "DROP COLUMN", "ACCESS EXCLUSIVE", "rewrite"} {
		if !strings.Contains(text, part) {
			t.Errorf("the plan's text lacks %q: %s", part, text)
		}
	}
	var refused report.SchemaPlan
	p.json(command.ExitRefused, &refused, "schema", "plan", "--schema="+source, "--protected-table=Public.Customers")
	if refused.Problem.Code != report.CodeProtectedTable || refused.PlanDigest != "" {
		t.Errorf("%+v", refused)
	}
	var excluded report.SchemaPlan
	p.json(command.ExitRefused, &excluded, "schema", "plan", "--schema="+source, "--exclude=customers")
	if excluded.Problem.Code != report.CodeUnsupported { // the view depends on what is excluded
		t.Errorf("%+v", excluded)
	}
	p.json(command.ExitDone, &excluded, "schema", "plan", "--schema="+source, "--exclude=customers", "--exclude=public.emails")
	if excluded.Outcome != report.OutcomeNoChanges {
		t.Errorf("%+v", excluded)
	}
}
