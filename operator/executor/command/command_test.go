package command

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"ptah.run/ptah/operator/plan/report"
)

// call runs a command line and returns its exit code and outputs.
func call(t *testing.T, env map[string]string, args ...string) (code int, out, errOut string) {
	t.Helper()
	var o, e bytes.Buffer
	code = Run(t.Context(), args, Streams{In: strings.NewReader(""), Out: &o, Err: &e, Getenv: func(name string) string { return env[name] }})
	return code, o.String(), e.String()
}

func TestUsage(t *testing.T) {
	schema := t.TempDir()
	for name, test := range map[string]struct {
		args []string
		says string
	}{
		"an unknown command":              {[]string{"frobnicate"}, "frobnicate"},
		"an unknown flag":                 {[]string{"schema", "plan", "--frob"}, "frob"},
		"a command that a group lacks":    {[]string{"schema", "plna"}, `"plna" is not a command of ptah schema; it has pull, drift, plan, apply`},
		"a failure on what is none":       {[]string{"schema", "drift", "--schema", schema, "--fail-on", "some"}, "all or destructive"},
		"a group without a command":       {[]string{"schema"}, "pull, drift, plan, apply"},
		"an argument too many":            {[]string{"schema", "plan", "x"}, `"x"`},
		"a format that is none":           {[]string{"version", "--format", "xml"}, "text or json"},
		"no schema":                       {[]string{"schema", "plan"}, "--schema"},
		"no plan":                         {[]string{"schema", "apply"}, "--plan"},
		"no reference":                    {[]string{"oci", "resolve"}, "one artifact reference"},
		"no policy":                       {[]string{"oci", "verify", "oci://h.x/repo:v"}, "--policy"},
		"no folder":                       {[]string{"schema", "pull", "oci://h.x/repo:v"}, "--output"},
		"a transaction mode that is none": {[]string{"schema", "plan", "--schema", schema, "--transaction-mode", "some"}, "all, file or none"},
		"a lock timeout of nothing":       {[]string{"schema", "plan", "--schema", schema, "--lock-timeout", "0s"}, "--lock-timeout"},
		"a connect timeout below nothing": {[]string{"schema", "drift", "--schema", schema, "--connect-timeout", "-1s"}, "--connect-timeout"},
		"a digest that is none":           {[]string{"schema", "apply", "--plan", "p", "--auto-approve", "--expect-digest", "x"}, "--expect-digest"},
		"a proof that is no digest":       {[]string{"schema", "plan", "--schema", schema, "--proven-artifact", "x"}, "sha256"},
		"a dry run that is approved":      {[]string{"schema", "apply", "--plan", "p", "--auto-approve", "--dry-run"}, "exclude each other"},
		"an approval with nobody to ask":  {[]string{"schema", "apply", "--plan", "p"}, "--auto-approve"},
		"an annotation without a value":   {[]string{"oci", "push", "oci://h.x/repo:v", "--schema", schema, "--annotation", "x"}, "key=value"},
		"an annotation of ptah's own":     {[]string{"oci", "push", "oci://h.x/repo:v", "--schema", schema, "--annotation", "run.ptah.schema-format=x"}, "ptah itself"},
		"an inspection of a tag":          {[]string{"oci", "inspect", "oci://h.x/repo:v"}, "digest"},
	} {
		t.Run(name, func(t *testing.T) {
			code, out, errOut := call(t, nil, test.args...)
			if code != ExitUsage || out != "" || !strings.Contains(errOut, test.says) {
				t.Errorf("exit code %d, output %q, error %q", code, out, errOut)
			}
		})
	}
}

func TestBadInputIsRefusedInOneSentence(t *testing.T) {
	dir := t.TempDir()
	file := func(name, text string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	schema := file("schema.sql", "CREATE TABLE t();")
	url := map[string]string{"PTAH_DB_URL": "postgres://app:secret@127.0.0.1:1/shop?sslmode=disable", "PTAH_PG_BINDIR": fakeBinaries(t)}
	for name, test := range map[string]struct {
		env  map[string]string
		args []string
		code report.Code
		exit int
	}{
		"no database URL":    {nil, []string{"schema", "plan", "--schema", schema}, report.CodeInvalidInput, ExitRefused},
		"a bad database URL": {map[string]string{"PTAH_DB_URL": "postgres://app:secret@a,b/shop"}, []string{"schema", "drift", "--schema", schema}, report.CodeInvalidInput, ExitRefused},
		"another database":   {map[string]string{"PTAH_DB_URL": "oracle://app:secret@db/shop"}, []string{"schema", "drift", "--schema", schema}, report.CodeInvalidInput, ExitRefused},
		"a missing URL file": {nil, []string{"schema", "drift", "--schema", schema, "--db-url-file", filepath.Join(dir, "absent")}, report.CodeInvalidInput, ExitRefused},
		// Refused before the scratch server, which would fail here, and before a connection.
		"SQL in a URL of MySQL": {map[string]string{"PTAH_DB_URL": "mysql://app:secret@db/shop?multiStatements=true&init_command=secret", "PTAH_MYSQLD": "/absent"},
			[]string{"schema", "plan", "--schema", schema}, report.CodeInvalidInput, ExitRefused},
		"SQL in the name of a parameter": {map[string]string{"PTAH_DB_URL": "mysql://app:x@db/shop?%3Bsecret=1&%3Bsecret=2", "PTAH_MYSQLD": "/absent"},
			[]string{"schema", "plan", "--schema", schema}, report.CodeInvalidInput, ExitRefused},
		"control: no server of MySQL": {map[string]string{"PTAH_DB_URL": "mysql://app:secret@db/shop", "PTAH_MYSQLD": "/absent"},
			[]string{"schema", "plan", "--schema", schema}, report.CodeInternal, ExitFailed},
		"a missing schema":        {url, []string{"schema", "plan", "--schema", filepath.Join(dir, "absent")}, report.CodeInvalidInput, ExitRefused},
		"an empty schema":         {url, []string{"schema", "plan", "--schema", t.TempDir()}, report.CodeInvalidArtifact, ExitRefused},
		"nobody at the database":  {url, []string{"schema", "plan", "--schema", schema}, report.CodeConnection, ExitFailed},
		"no server programs":      {map[string]string{"PTAH_DB_URL": url["PTAH_DB_URL"], "PTAH_PG_BINDIR": dir}, []string{"schema", "plan", "--schema", schema}, report.CodeInternal, ExitFailed},
		"a missing plan":          {url, []string{"schema", "apply", "--plan", filepath.Join(dir, "absent"), "--auto-approve"}, report.CodeInvalidInput, ExitRefused},
		"a plan that is none":     {url, []string{"schema", "apply", "--plan", schema, "--auto-approve"}, report.CodeInvalidPlan, ExitRefused},
		"a bad reference":         {nil, []string{"oci", "resolve", "oci://x"}, report.CodeInvalidInput, ExitRefused},
		"an unreachable registry": {map[string]string{"PTAH_OCI_PLAIN_HTTP": "true"}, []string{"oci", "resolve", "oci://127.0.0.1:1/repo:v"}, report.CodeConnection, ExitFailed},
		"a policy that is none":   {nil, []string{"oci", "verify", "oci://h.x/repo@" + report.Digest(nil), "--policy", schema}, report.CodeInvalidPolicy, ExitRefused},
		"a missing policy":        {nil, []string{"oci", "verify", "oci://h.x/repo@" + report.Digest(nil), "--policy", filepath.Join(dir, "absent")}, report.CodeInvalidPolicy, ExitRefused},
		"a CA file that is none":  {map[string]string{"PTAH_OCI_CA_FILE": schema}, []string{"oci", "resolve", "oci://h.x/repo:v"}, report.CodeInvalidInput, ExitRefused},
	} {
		t.Run(name, func(t *testing.T) {
			code, out, errOut := call(t, test.env, append(test.args, "-o", "json")...)
			var document struct {
				ContractVersion int
				Problem         *report.Problem
			}
			decoder := json.NewDecoder(strings.NewReader(out))
			if err := decoder.Decode(&document); err != nil || document.Problem == nil {
				t.Fatalf("no report: %v %q %q", err, out, errOut)
			}
			if decoder.More() || document.ContractVersion != report.ContractVersion {
				t.Errorf("not one report of this version: %q", out)
			}
			if code != test.exit || document.Problem.Code != test.code {
				t.Errorf("exit code %d, problem %+v", code, document.Problem)
			}
			if strings.Contains(out+errOut, "secret") {
				t.Errorf("the password is shown: %q %q", out, errOut)
			}
			textCode, textOut, textErr := call(t, test.env, test.args...)
			if textCode != code || textOut != "" || !strings.Contains(textErr, document.Problem.Message) || strings.Contains(textErr, "\x1b") {
				t.Errorf("as text: exit code %d, %q, %q", textCode, textOut, textErr)
			}
		})
	}
}

// fakeBinaries are programs that exist and do nothing.
func fakeBinaries(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	for _, name := range []string{"initdb", "postgres", "pg_dump", "pg_resetwal"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte("#!/bin/false\n"), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func TestTheDatabaseURLComesFromAFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "url")
	if err := os.WriteFile(path, []byte("postgres://app:secret@a,b/shop\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	code, _, errOut := call(t, map[string]string{"PTAH_DB_URL": "postgres://app:x@127.0.0.1:1/shop"}, "schema", "drift", "--schema", t.TempDir(), "--db-url-file", path)
	if code != ExitRefused || !strings.Contains(errOut, "several hosts") {
		t.Errorf("exit code %d: %s", code, errOut)
	}
}

func TestListsFromTheEnvironment(t *testing.T) {
	for text, want := range map[string]int{`["a","b,c"]`: 2, `a,"b,c"`: 2, `[]`: 0, "a": 1} {
		if got, err := listOf(text); err != nil || len(got) != want {
			t.Errorf("%s gives %q, %v", text, got, err)
		}
	}
	for _, text := range []string{`["a"`, `[1]`, `a,"b`} {
		if code, _, errOut := call(t, map[string]string{"PTAH_EXCLUDE": text}, "schema", "drift", "--schema", "x"); code != ExitUsage || !strings.Contains(errOut, "PTAH_EXCLUDE") {
			t.Errorf("%s: %d %s", text, code, errOut)
		}
	}
}

func TestEveryCommandExplainsItself(t *testing.T) {
	for _, line := range []string{"", "schema", "schema plan", "schema drift", "schema apply", "schema pull", "oci", "oci push", "oci resolve", "oci verify", "oci inspect", "version"} {
		code, out, errOut := call(t, nil, append(strings.Fields(line), "--help")...)
		if code != ExitDone || errOut != "" || !strings.Contains(out, "Usage:") {
			t.Errorf("%s: exit code %d, %q", line, code, errOut)
		}
		if strings.Contains(strings.ToLower(out), "password") && strings.Contains(out, "--oci-password") {
			t.Errorf("%s takes a secret on the command line", line)
		}
	}
}

// TestNoKubernetes keeps the executor free of Kubernetes clients: the process that opens a database holds no way to
// talk to a cluster.
func TestNoKubernetes(t *testing.T) {
	out, err := exec.CommandContext(t.Context(), "go", "list", "-deps", "ptah.run/ptah/operator/cmd/ptah").Output()
	if err != nil {
		t.Fatal(err)
	}
	packages := strings.Fields(string(out))
	if len(packages) < 100 {
		t.Fatalf("only %d packages are listed", len(packages))
	}
	for _, name := range packages {
		if strings.HasPrefix(name, "k8s.io/") || strings.HasPrefix(name, "sigs.k8s.io/controller-runtime") || strings.HasPrefix(name, "ptah.run/ptah/qualification") {
			t.Errorf("ptah links %s", name)
		}
	}
}

func TestColours(t *testing.T) {
	for name, test := range map[string]struct {
		terminal bool
		env      map[string]string
		want     bool
	}{
		"a terminal":          {true, nil, true},
		"a pipe":              {false, nil, false},
		"NO_COLOR":            {true, map[string]string{"NO_COLOR": "1"}, false},
		"a terminal that can": {true, map[string]string{"TERM": "xterm"}, true},
		"one that cannot":     {true, map[string]string{"TERM": "dumb"}, false},
	} {
		if got := Coloured(test.terminal, func(key string) string { return test.env[key] }); got != test.want {
			t.Errorf("%s: %t", name, got)
		}
	}
	// Each output is coloured for itself: one may be a file while the other is a terminal.
	for _, where := range []Streams{{Colour: true}, {ErrColour: true}} {
		var o, e bytes.Buffer
		where.In, where.Out, where.Err, where.Getenv = strings.NewReader(""), &o, &e, func(string) string { return "" }
		Run(t.Context(), []string{"schema", "drift", "--schema", t.TempDir()}, where)
		if strings.Contains(e.String(), "\x1b") != where.ErrColour {
			t.Errorf("%+v: %q", where, e.String())
		}
	}
}

func TestThePlanForAPerson(t *testing.T) {
	plan := &report.Plan{TransactionMode: report.TransactionFile, Statements: []report.Statement{
		{SQL: "ALTER TABLE public.t DROP COLUMN a", Kind: "ALTER TABLE", Severity: report.SeverityDestructive, Reason: "drops a column", LockClass: "ACCESS EXCLUSIVE", RewriteRisk: report.RewriteNone},
		{SQL: "CREATE INDEX i\n  ON public.t (b)", Kind: "CREATE INDEX", Severity: report.SeveritySafe, LockClass: "SHARE", RewriteRisk: report.RewriteTable},
		{SQL: "GRANT SELECT ON public.t TO reader", Kind: "GRANT", Severity: report.SeverityWarning, LockClass: "none", RewriteRisk: report.RewriteNone, PrivilegeChanges: []report.PrivilegeChange{report.PrivilegeGrant}},
	}, Destructive: true, PrivilegeChanges: []report.PrivilegeChange{report.PrivilegeGrant}}
	var b strings.Builder
	painter(false).statements(&b, plan)
	const want = `3 statements, in one transaction
  severity  1 destructive, 1 safe, 1 warning
  lock      1 ACCESS EXCLUSIVE, 1 SHARE, 1 none
  rewrite   2 none, 1 writes every row or builds an index

  1  destructive  ALTER TABLE
     drops a column; lock: ACCESS EXCLUSIVE; rewrite: none
     ALTER TABLE public.t DROP COLUMN a;

  2  safe         CREATE INDEX
     lock: SHARE; rewrite: writes every row or builds an index
     CREATE INDEX i
       ON public.t (b);

  3  warning      GRANT
     lock: none; rewrite: none; privilege: Grant
     GRANT SELECT ON public.t TO reader;

This plan is destructive: it takes away rows, columns or objects.
This plan changes privileges.

`
	if got := b.String(); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}
