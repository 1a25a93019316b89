package command_test

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"filippo.io/age"

	"ptah.run/ptah/qualification/command"
	"ptah.run/ptah/qualification/evidence/dossier"
	"ptah.run/ptah/qualification/evidence/dossier/dossiertest"
)

// packed is a run with its signed record, its key and its reports in one folder.
type packed struct{ dir, run string }

func newPacked(t *testing.T, c *dossiertest.Case) packed {
	t.Helper()
	p := packed{dir: t.TempDir(), run: c.Store(t)}
	private, _, err := command.EnsureKey(p.dir)
	noError(t, err)
	key, err := os.ReadFile(private)
	noError(t, err)
	d, err := dossier.Load(p.run)
	noError(t, err)
	data, err := command.CreateSignedRecord(context.Background(), d, key, dossiertest.Start, "test")
	noError(t, err)
	noError(t, os.WriteFile(p.path("record.json"), data, 0o600))
	noError(t, os.Mkdir(p.path("reports"), 0o700))
	_, err = command.WriteReports(d, p.path("reports"))
	noError(t, err)
	return p
}

func (p packed) path(name string) string { return filepath.Join(p.dir, name) }

func noError(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// qualify runs the program and returns its exit code and everything it printed.
func qualify(t *testing.T, args ...string) (int, string) {
	t.Helper()
	var out bytes.Buffer
	root := command.NewRootCommand(command.IOStreams{Out: &out, Err: &out})
	root.SetArgs(args)
	err := root.ExecuteContext(context.Background())
	if err != nil {
		out.WriteString(err.Error())
	}
	return command.ExitCode(err), out.String()
}

func (p packed) public(t *testing.T, output string, more ...string) (int, string) {
	t.Helper()
	return qualify(t, append([]string{"bundle", "public", "--run", p.run, "--record", p.path("record.json"), "--output", output}, more...)...)
}

func TestAPublicBundleIsWrittenAndVerifies(t *testing.T) {
	p := newPacked(t, dossiertest.Passing(t))
	first, second := p.path("first.tar"), p.path("second.tar")
	for path, more := range map[string][]string{first: nil, second: {"--reports", p.path("reports")}} {
		if code, out := p.public(t, path, more...); code != command.ExitPass || !strings.Contains(out, "sha256:") {
			t.Fatalf("exit %d: %s", code, out)
		}
	}
	one, err := os.ReadFile(first)
	noError(t, err)
	two, err := os.ReadFile(second)
	noError(t, err)
	if !bytes.Equal(one, two) {
		t.Error("the bundle depends on where the reports came from")
	}
	code, out := qualify(t, "bundle", "verify", first, "--key", p.path("qualification.pub"))
	if code != command.ExitPass || !strings.Contains(out, "genuine") || !strings.Contains(out, "not shown:") {
		t.Errorf("exit %d: %s", code, out)
	}
	if code, out := qualify(t, "bundle", "verify", first, "--key", p.path("qualification.pub"), "--acceptance"); code != command.ExitVerificationFailed {
		t.Errorf("a development record passes as an acceptance: exit %d: %s", code, out)
	}
	other := newPacked(t, dossiertest.Passing(t))
	if code, out := qualify(t, "bundle", "verify", first, "--key", other.path("qualification.pub")); code != command.ExitVerificationFailed {
		t.Errorf("another key: exit %d: %s", code, out)
	}
	for i := 700; i < len(one); i += 1500 {
		altered := bytes.Clone(one)
		altered[i] ^= 1
		noError(t, os.WriteFile(second, altered, 0o600))
		if code, out := qualify(t, "bundle", "verify", second, "--key", p.path("qualification.pub")); code != command.ExitVerificationFailed {
			t.Fatalf("byte %d: exit %d: %s", i, code, out)
		}
	}
}

func TestABundleOfAFailureSaysSo(t *testing.T) {
	c := dossiertest.Passing(t)
	c.Audit = nil
	p := newPacked(t, c)
	if code, out := p.public(t, p.path("b.tar"), "--key", p.path("qualification.pub")); code != command.ExitPass {
		t.Fatalf("exit %d: %s", code, out)
	}
	if code, out := qualify(t, "bundle", "verify", p.path("b.tar"), "--key", p.path("qualification.pub")); code != command.ExitNotEstablished {
		t.Errorf("exit %d: %s", code, out)
	}
}

func TestACredentialLeavesNoBundle(t *testing.T) {
	const password = "hunter22-and-more"
	c := dossiertest.Passing(t)
	c.Audit["control-plane"] = append(c.Audit["control-plane"], []byte(strings.Replace(dossiertest.AuditLine("x", dossiertest.At(179), "a", "get", "", "pods", "a", "b", 200), `"userAgent":"test"`, `"userAgent":"`+password+`"`, 1))...)
	p := newPacked(t, c)
	noError(t, os.WriteFile(p.path("secrets"), []byte(password+"\n"), 0o600))
	code, out := p.public(t, p.path("b.tar"), "--secret-file", p.path("secrets"))
	if code != command.ExitHarnessFailed || !strings.Contains(out, "audit/logs/control-plane/0.log: line ") || !strings.Contains(out, "known-secret") || strings.Contains(out, password) {
		t.Errorf("exit %d: %s", code, out)
	}
	left, err := filepath.Glob(filepath.Join(p.dir, "*b.tar*"))
	noError(t, err)
	temporary, err := filepath.Glob(filepath.Join(p.dir, ".writing-*"))
	noError(t, err)
	if len(left)+len(temporary) > 0 {
		t.Errorf("left behind: %v %v", left, temporary)
	}
	if code, out := p.public(t, p.path("b.tar")); code != command.ExitPass {
		t.Errorf("control without the value: exit %d: %s", code, out)
	}
	code, out = qualify(t, "bundle", "scan", p.run, "--secret-file", p.path("secrets"))
	if code != command.ExitHarnessFailed || strings.Contains(out, password) {
		t.Errorf("scan: exit %d: %s", code, out)
	}
	if code, out := qualify(t, "bundle", "scan", p.run); code != command.ExitPass || !strings.Contains(out, "no credential") {
		t.Errorf("scan without the value: exit %d: %s", code, out)
	}
}

func TestARestrictedBundleIsSealed(t *testing.T) {
	p := newPacked(t, dossiertest.Passing(t))
	owner, err := age.GenerateX25519Identity()
	noError(t, err)
	noError(t, os.WriteFile(p.path("identity.txt"), []byte(owner.String()+"\n"), 0o600))
	noError(t, os.Mkdir(p.path("lab"), 0o700))
	noError(t, os.WriteFile(p.path("lab/notes.txt"), []byte("postgres://x:hunter22@db/x"), 0o600))
	sealed := p.path("b.tar.age")
	args := []string{"bundle", "restricted", "--run", p.run, "--record", p.path("record.json"), "--restricted", p.path("lab"), "--output", sealed, "--recipient", owner.Recipient().String()}
	code, out := qualify(t, args...)
	if code != command.ExitPass || !strings.Contains(out, "encrypted with it: restricted/lab/notes.txt: line 1") || strings.Contains(out, "hunter22") {
		t.Fatalf("exit %d: %s", code, out)
	}
	info, err := os.Stat(sealed)
	noError(t, err)
	if info.Mode().Perm() != 0o400 {
		t.Errorf("the mode is %s", info.Mode())
	}
	about, err := os.ReadFile(sealed + ".json")
	noError(t, err)
	if !strings.Contains(string(about), owner.Recipient().String()) || !strings.Contains(string(about), "plaintext") {
		t.Errorf("%s", about)
	}
	verify := []string{"bundle", "verify", sealed, "--key", p.path("qualification.pub")}
	if code, out := qualify(t, append(verify, "--identity", p.path("identity.txt"))...); code != command.ExitPass || !strings.Contains(out, "restricted") {
		t.Errorf("exit %d: %s", code, out)
	}
	if code, out := qualify(t, verify...); code != command.ExitVerificationFailed {
		t.Errorf("without an identity: exit %d: %s", code, out)
	}
	args[len(args)-1] = owner.String()
	args[len(args)-3] = p.path("other.tar.age")
	if code, out := qualify(t, args...); code != command.ExitUsage || strings.Contains(out, owner.String()) {
		t.Errorf("a secret key as recipient: exit %d: %s", code, out)
	}
	if _, err := os.Stat(p.path("other.tar.age")); err == nil {
		t.Error("a bundle was written for a secret key")
	}
}

func TestBundleCommandsRefuseWhatTheyCannotUse(t *testing.T) {
	p := newPacked(t, dossiertest.Passing(t))
	other := newPacked(t, dossiertest.Passing(t))
	noError(t, os.WriteFile(p.path("short"), []byte("short\n"), 0o600))
	noError(t, os.WriteFile(p.path("no-bundle"), []byte("hello"), 0o600))
	key := p.path("qualification.pub")
	public := func(more ...string) []string {
		return append([]string{"bundle", "public", "--run", p.run, "--record", p.path("record.json"), "--output", p.path("x.tar")}, more...)
	}
	for name, test := range map[string]struct {
		args []string
		code int
		want string
	}{
		"an output inside the run":     {[]string{"bundle", "public", "--run", p.run, "--record", p.path("record.json"), "--output", filepath.Join(p.run, "x.tar")}, command.ExitUsage, "never added to"},
		"an output nowhere":            {[]string{"bundle", "public", "--run", p.run, "--record", p.path("record.json"), "--output", p.path("none/x.tar")}, command.ExitUsage, "does not exist"},
		"no run":                       {[]string{"bundle", "public", "--run", p.path("none"), "--record", p.path("record.json"), "--output", p.path("x.tar")}, command.ExitUsage, "none"},
		"the record of another run":    {[]string{"bundle", "public", "--run", p.run, "--record", other.path("record.json"), "--output", p.path("x.tar"), "--key", key}, command.ExitVerificationFailed, "not among those given"},
		"a secret file that is short":  {public("--secret-file", p.path("short")), command.ExitUsage, "line 1"},
		"a secret file that is absent": {public("--secret-file", p.path("none")), command.ExitUsage, "there is no file"},
		"the reports of nothing":       {public("--reports", p.path("lab")), command.ExitUsage, "report"},
		"no bundle":                    {[]string{"bundle", "verify", p.path("no-bundle"), "--key", key}, command.ExitVerificationFailed, "no tar file"},
		"no file":                      {[]string{"bundle", "verify", p.path("none"), "--key", key}, command.ExitUsage, "there is no file"},
		"no key":                       {[]string{"bundle", "verify", p.path("no-bundle")}, command.ExitUsage, "key"},
		"no recipient":                 {[]string{"bundle", "restricted", "--run", p.run, "--record", p.path("record.json"), "--output", p.path("x.tar")}, command.ExitUsage, "recipient"},
	} {
		code, out := qualify(t, test.args...)
		if code != test.code || !strings.Contains(out, test.want) {
			t.Errorf("%s: exit %d, want %d: %s", name, code, test.code, out)
		}
	}
	if _, err := os.Stat(p.path("x.tar")); err == nil {
		t.Error("something was written all the same")
	}
}

// TestTheCommittedRunMakesAPublicBundle holds that what the repository shows of its quickstart may be published.
func TestTheCommittedRunMakesAPublicBundle(t *testing.T) {
	dir := filepath.Join("..", "..", "reports", "quickstart")
	runs, err := filepath.Glob(filepath.Join(dir, "runs", "*"))
	noError(t, err)
	output := filepath.Join(t.TempDir(), "quickstart.tar")
	code, out := qualify(t, "bundle", "public", "--run", runs[0], "--record", filepath.Join(dir, "qualification-record.json"), "--reports", dir, "--key", filepath.Join(dir, "qualification.pub"), "--output", output)
	if code != command.ExitPass {
		t.Fatalf("exit %d: %s", code, out)
	}
	if code, out := qualify(t, "bundle", "verify", output, "--key", filepath.Join(dir, "qualification.pub")); code != command.ExitPass {
		t.Errorf("exit %d: %s", code, out)
	}
}
