package command

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"ptah.run/ptah/qualification/evidence"
	"ptah.run/ptah/qualification/evidence/dossier"
	"ptah.run/ptah/qualification/evidence/dossier/dossiertest"
	"ptah.run/ptah/qualification/evidence/scenario"
	"ptah.run/ptah/qualification/record"
	"ptah.run/ptah/qualification/report"
	"ptah.run/ptah/qualification/verdict"
)

// qualify runs ptah-qualify as a user does, and returns its exit code and what it wrote. The message of the error is
// written as main writes it.
func qualify(t *testing.T, arguments ...string) (int, string, string) {
	t.Helper()
	var out, errs bytes.Buffer
	root := NewRootCommand(IOStreams{In: strings.NewReader(""), Out: &out, Err: &errs})
	root.SetArgs(arguments)
	err := root.ExecuteContext(context.Background())
	if err != nil {
		errs.WriteString(err.Error())
	}
	return ExitCode(err), out.String(), errs.String()
}

func succeed(t *testing.T, arguments ...string) string {
	t.Helper()
	code, out, errs := qualify(t, arguments...)
	if code != ExitPass {
		t.Fatalf("%v: exit code %d: %s", arguments, code, errs)
	}
	return out
}

// qualified is a run with everything that follows from it, made by the commands themselves.
type qualified struct{ run, profile, key, public, record, reports string }

func qualifyCase(t *testing.T, c *dossiertest.Case) qualified {
	t.Helper()
	dir := t.TempDir()
	q := qualified{run: c.Store(t), profile: filepath.Join(dir, "profile.yaml"), key: filepath.Join(dir, "qualification.key"), public: filepath.Join(dir, "qualification.pub"),
		record: filepath.Join(dir, "record.json"), reports: filepath.Join(dir, "reports")}
	if err := os.WriteFile(q.profile, c.Profile, 0o644); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(q.reports, 0o755); err != nil {
		t.Fatal(err)
	}
	succeed(t, "record", "key", "generate", "--output", dir)
	succeed(t, "record", "create", "--run", q.run, "--output", q.record)
	succeed(t, "record", "sign", "--record", q.record, "--key", q.key)
	succeed(t, "report", "--run", q.run, "--output", q.reports)
	return q
}

func (q qualified) verify(more ...string) []string {
	return append([]string{"record", "verify", "--record", q.record, "--key", q.public, "--run", q.run, "--profile", q.profile, "--reports", q.reports}, more...)
}

func TestTheLineFromARunToAVerifiedRecord(t *testing.T) {
	q := qualifyCase(t, dossiertest.Passing(t))
	if out := succeed(t, "judge", "--run", q.run); !strings.HasPrefix(out, "pass under profile quickstart, revision 1 (development)") {
		t.Errorf("judge says %q", out)
	}
	out := succeed(t, q.verify()...)
	for _, want := range []string{"genuine: signed by sha256:", "judging it again gives the same verdicts", "verdict: pass", "is no acceptance"} {
		if !strings.Contains(out, want) {
			t.Errorf("verify does not say %q: %s", want, out)
		}
	}
	if out := succeed(t, "record", "inspect", "--record", q.record); !strings.HasPrefix(out, "unchecked: claims to be signed by") {
		t.Errorf("inspect says %q", out)
	}
	succeed(t, "report", "verify", "--reports", q.reports, "--record", q.record, "--key", q.public)
	info, err := os.Stat(q.key)
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the private key has the mode %v, %v", info.Mode(), err)
	}
}

func TestOneFlippedByteAnywhereExitsWithVerificationFailed(t *testing.T) {
	q := qualifyCase(t, dossiertest.Passing(t))
	files := []string{q.record, q.profile}
	for _, dir := range []string{q.run, q.reports} {
		err := filepath.WalkDir(dir, func(path string, item os.DirEntry, err error) error {
			if err == nil && !item.IsDir() {
				files = append(files, path)
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	for _, path := range files {
		data, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.Chmod(path, 0o644); err != nil {
			t.Fatal(err)
		}
		altered := bytes.Clone(data)
		altered[len(altered)/3] ^= 1
		if err := os.WriteFile(path, altered, 0o644); err != nil {
			t.Fatal(err)
		}
		code, _, errs := qualify(t, q.verify()...)
		if code != ExitVerificationFailed || errs == "" || strings.Contains(errs, "\n") {
			t.Errorf("%s: exit code %d, %q", path, code, errs)
		}
		if err := os.WriteFile(path, data, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	succeed(t, q.verify()...)
}

func TestVerdictsBecomeExitCodes(t *testing.T) {
	ended := func(blame scenario.Blame) func(t *testing.T, c *dossiertest.Case) {
		return func(t *testing.T, c *dossiertest.Case) {
			entries := dossiertest.Entries()
			entries[len(entries)-1].Outcome, entries[len(entries)-1].Blame = scenario.OutcomeFail, blame
			c.Ledger = dossiertest.Stream(t, entries...)
		}
	}
	cases := map[string]struct {
		change func(*testing.T, *dossiertest.Case)
		want   int
	}{
		"pass":                   {func(*testing.T, *dossiertest.Case) {}, ExitPass},
		"product failure":        {ended(scenario.BlameProduct), ExitProductFailed},
		"harness failure":        {ended(scenario.BlameHarness), ExitHarnessFailed},
		"infrastructure failure": {ended(scenario.BlameInfrastructure), ExitHarnessFailed},
		"unknown failure":        {ended(scenario.BlameUnknown), ExitNotEstablished},
		"nothing measured":       {func(_ *testing.T, c *dossiertest.Case) { c.Audit = nil }, ExitNotEstablished},
		"cell not finished":      {func(_ *testing.T, c *dossiertest.Case) { c.Skip = true }, ExitNotEstablished},
	}
	for name, test := range cases {
		t.Run(name, func(t *testing.T) {
			c := dossiertest.Passing(t)
			test.change(t, c)
			if code, _, errs := qualify(t, "judge", "--run", c.Store(t)); code != test.want {
				t.Errorf("judge: exit code %d, want %d: %s", code, test.want, errs)
			}
			if c.Skip {
				return
			}
			if code, out, errs := qualify(t, qualifyCase(t, c).verify()...); code != test.want || !strings.Contains(out, "genuine") {
				t.Errorf("record verify: exit code %d, want %d: %s", code, test.want, errs)
			}
		})
	}
	if ExitOf(verdict.New(verdict.Void, verdict.Harness, verdict.WitnessMissing, "", "x")) != ExitNotEstablished {
		t.Error("a void verdict must not be established")
	}
}

// Every line of this table is bad input: the exit code, one sentence, and not a file more than before.
func TestBadInputEndsInOneSentenceAndNothingHalfWritten(t *testing.T) {
	q := qualifyCase(t, dossiertest.Passing(t))
	dir := t.TempDir()
	file := func(name, content string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
			t.Fatal(err)
		}
		return path
	}
	profileText, err := os.ReadFile(q.profile)
	if err != nil {
		t.Fatal(err)
	}
	unknown := file("unknown.yaml", strings.Replace(string(profileText), "purpose: development", "purpose: development\nresult: pass", 1))
	contradicting := file("contradicting.yaml", strings.Replace(string(profileText), "exclude: [wrong-credential]", "exclude: [overload]", 1))
	garbage := file("garbage", "{]")
	unsigned := filepath.Join(dir, "unsigned.json")
	succeed(t, "record", "create", "--run", q.run, "--output", unsigned)
	unclosed, err := evidence.CreateRun(dir, "unclosed")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = unclosed.Abandon() })
	none := filepath.Join(dir, "none", "file")
	under := filepath.Join(garbage, "file")

	cases := map[string]struct {
		arguments []string
		code      int
		want      string
	}{
		"an unknown profile field":            {[]string{"profile", "lint", unknown}, ExitUsage, "unknown.yaml:7: result: it is no field"},
		"a missing profile":                   {[]string{"profile", "show", none}, ExitUsage, "there is no file"},
		"a folder for a profile":              {[]string{"profile", "show", dir}, ExitUsage, "is a directory"},
		"a profile that is no YAML":           {[]string{"profile", "digest", garbage}, ExitUsage, "garbage"},
		"a profile that contradicts itself":   {[]string{"profile", "lint", contradicting}, ExitUsage, "1 contradiction:"},
		"a change without a revision":         {[]string{"profile", "diff", q.profile, contradicting}, ExitUsage, "add revision 2"},
		"an unknown format of a profile":      {[]string{"profile", "show", q.profile, "--format", "xml"}, ExitUsage, "use text or json"},
		"a missing matrix":                    {[]string{"matrix", "plan", "missing", "--matrices", dir}, ExitUsage, "there is no file"},
		"a folder without matrices":           {[]string{"matrix", "list", "--matrices", q.reports}, ExitUsage, "there is no matrix"},
		"a run that is not there":             {[]string{"judge", "--run", none}, ExitUsage, "it is no run directory"},
		"a folder that is no run":             {[]string{"judge", "--run", q.reports}, ExitUsage, "it is no run directory"},
		"a run that is not closed":            {[]string{"judge", "--run", unclosed.Dir()}, ExitInterrupted, "was not closed"},
		"no run at all":                       {[]string{"judge"}, ExitUsage, `required flag(s) "run" not set`},
		"an unknown format of a judgement":    {[]string{"judge", "--run", q.run, "--format", "xml"}, ExitUsage, "use text or json"},
		"a judgement into a missing folder":   {[]string{"judge", "--run", q.run, "--output", none}, ExitUsage, "the folder does not exist"},
		"a judgement into a file as folder":   {[]string{"judge", "--run", q.run, "--output", under}, ExitUsage, "not a directory"},
		"reports into a missing folder":       {[]string{"report", "--run", q.run, "--output", filepath.Join(dir, "none")}, ExitUsage, "the folder does not exist"},
		"reports into a file as folder":       {[]string{"report", "--run", q.run, "--output", garbage}, ExitUsage, "not a directory"},
		"a record into a missing folder":      {[]string{"record", "create", "--run", q.run, "--output", none}, ExitUsage, "the folder does not exist"},
		"a record of an unclosed run":         {[]string{"record", "create", "--run", unclosed.Dir(), "--output", filepath.Join(dir, "r")}, ExitInterrupted, "was not closed"},
		"a signature by what is no key":       {[]string{"record", "sign", "--record", unsigned, "--key", garbage}, ExitUsage, "holds no PEM block"},
		"a signature by the public key":       {[]string{"record", "sign", "--record", unsigned, "--key", q.public}, ExitUsage, `not a "PRIVATE KEY"`},
		"a second signature":                  {[]string{"record", "sign", "--record", q.record, "--key", q.key}, ExitUsage, "signed already"},
		"a signature of what is no record":    {[]string{"record", "sign", "--record", garbage, "--key", q.key}, ExitUsage, "the file is no record"},
		"a signature into a missing folder":   {[]string{"record", "sign", "--record", unsigned, "--key", q.key, "--output", none}, ExitUsage, "the folder does not exist"},
		"a record that is not there":          {[]string{"record", "verify", "--record", none, "--key", q.public}, ExitUsage, "there is no file"},
		"a record that is none":               {[]string{"record", "verify", "--record", garbage, "--key", q.public}, ExitVerificationFailed, "does not verify"},
		"an unsigned record":                  {[]string{"record", "verify", "--record", unsigned, "--key", q.public}, ExitVerificationFailed, "is not signed"},
		"a verification without a key":        {[]string{"record", "verify", "--record", q.record}, ExitUsage, "[key sigstore-bundle] is required"},
		"a verification by a private key":     {[]string{"record", "verify", "--record", q.record, "--key", q.key}, ExitUsage, `not a "PUBLIC KEY"`},
		"a verification of a missing run":     {[]string{"record", "verify", "--record", q.record, "--key", q.public, "--run", none}, ExitUsage, "there is no folder"},
		"a development record as acceptance":  {q.verify("--acceptance"), ExitVerificationFailed, "can not be an acceptance"},
		"an inspection of what is no record":  {[]string{"record", "inspect", "--record", garbage}, ExitUsage, "the file is no record"},
		"a key over another":                  {[]string{"record", "key", "generate", "--output", filepath.Dir(q.key)}, ExitUsage, "never overwritten"},
		"a key into a missing folder":         {[]string{"record", "key", "generate", "--output", filepath.Join(dir, "none")}, ExitUsage, "the folder does not exist"},
		"a key of an unknown algorithm":       {[]string{"record", "key", "generate", "--output", dir, "--algorithm", "rsa"}, ExitUsage, "use ed25519 or ecdsa"},
		"a count of nothing":                  {[]string{"audit", "count"}, ExitUsage, "name either a run"},
		"a count of a missing log":            {[]string{"audit", "count", "--log", "a=" + none}, ExitUsage, "cannot read the audit log"},
		"a log without its server":            {[]string{"audit", "count", "--log", garbage}, ExitUsage, "--log takes SERVER=FILE"},
		"a log that is none":                  {[]string{"audit", "count", "--log", "a=" + garbage}, ExitNotEstablished, "hold no event"},
		"a time that is none":                 {[]string{"audit", "count", "--run", q.run, "--from", "noon"}, ExitUsage, "is no time"},
		"an end before its start":             {[]string{"audit", "count", "--run", q.run, "--from", "2026-11-29T10:01:00Z", "--to", "2026-11-29T10:00:00Z"}, ExitUsage, "--to lies before --from"},
		"a count beyond the end of the log":   {[]string{"audit", "count", "--run", q.run, "--to", "2026-11-29T12:00:00Z"}, ExitNotEstablished, "not proven complete"},
		"a cell that the run does not have":   {[]string{"audit", "count", "--run", q.run, "--cell", "other"}, ExitUsage, "has no finished cell"},
		"a report check without what it says": {[]string{"report", "verify", "--reports", dir, "--record", q.record, "--key", q.public}, ExitVerificationFailed, "can not be read"},
	}
	before := listing(t, dir)
	for name, test := range cases {
		t.Run(name, func(t *testing.T) {
			code, _, errs := qualify(t, test.arguments...)
			if code != test.code || !strings.Contains(errs, test.want) || strings.Contains(errs, "\n") {
				t.Errorf("exit code %d, want %d; said %q, want one sentence with %q", code, test.code, errs, test.want)
			}
		})
	}
	if after := listing(t, dir); after != before {
		t.Errorf("files were left behind: before\n%s\nafter\n%s", before, after)
	}
}

// listing names every file below dir with its size.
func listing(t *testing.T, dir string) string {
	t.Helper()
	var list strings.Builder
	err := filepath.WalkDir(dir, func(path string, item os.DirEntry, err error) error {
		if err != nil {
			return err
		}
		list.WriteString(path + "\n")
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return list.String()
}

func TestAuditCounts(t *testing.T) {
	run := dossiertest.Passing(t).Store(t)
	out := succeed(t, "audit", "count", "--run", run, "--user", dossiertest.Manager, "--from", "2026-11-29T10:00:10Z", "--to", "2026-11-29T10:01:10Z")
	// 60 s hold 60 requests for work and 30 of the leader election.
	if !strings.HasPrefix(out, "90 requests from") || !strings.Contains(out, "busiest 1m0s: 90 requests") {
		t.Errorf("%s", out)
	}
	out = succeed(t, "audit", "explain", "--run", run, "--user", dossiertest.Manager)
	if !strings.Contains(out, "patch   ptahschemas.operator.ptah.run") || !strings.Contains(out, "leases.coordination.k8s.io") {
		t.Errorf("%s", out)
	}
	if out := succeed(t, "audit", "policy"); !strings.Contains(out, "level: Metadata") {
		t.Errorf("%s", out)
	}
}

func TestTheProgramInterfaceOfARun(t *testing.T) {
	ctx := context.Background()
	declared, err := LoadDeclared("../../profiles/quickstart.yaml", "../../matrices", "../../support/suites.yaml", dossier.Harness{Commit: strings.Repeat("c", 40)})
	if err != nil {
		t.Fatal(err)
	}
	if len(declared.Cells) != 1 || declared.Cells[0].Suite() != "data-plane" {
		t.Fatalf("cells are %+v", declared.Cells)
	}
	d, err := LoadRun(dossiertest.Passing(t).Store(t))
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	private, public, err := EnsureKey(dir)
	if err != nil {
		t.Fatal(err)
	}
	again, _, err := EnsureKey(dir)
	if err != nil || again != private {
		t.Errorf("a second call gives %s, %v", again, err)
	}
	key, err := os.ReadFile(private)
	if err != nil {
		t.Fatal(err)
	}
	data, err := CreateSignedRecord(ctx, d, key, dossiertest.At(1000), "test")
	if err != nil {
		t.Fatal(err)
	}
	if err := evidence.WriteFileAtomic(filepath.Join(dir, record.FileName), data); err != nil {
		t.Fatal(err)
	}
	paths, err := WriteReports(d, dir)
	if err != nil || len(paths) != 4 || filepath.Base(paths[0]) != report.HTMLName {
		t.Fatalf("%v, %v", paths, err)
	}
	succeed(t, "record", "verify", "--record", filepath.Join(dir, record.FileName), "--key", public, "--reports", dir)

	if err := os.Remove(public); err != nil {
		t.Fatal(err)
	}
	if _, _, err := EnsureKey(dir); ExitCode(err) != ExitUsage {
		t.Errorf("half of a key pair gives %v", err)
	}
}

func TestDeclarationsThatDoNotFitTogetherAreRefused(t *testing.T) {
	dir := t.TempDir()
	write := func(name, from string, replace ...string) string {
		data, err := os.ReadFile(filepath.Join("..", "..", from))
		if err != nil {
			t.Fatal(err)
		}
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(strings.NewReplacer(replace...).Replace(string(data))), 0o644); err != nil {
			t.Fatal(err)
		}
		return path
	}
	profile := write("profile.yaml", "profiles/quickstart.yaml")
	suites := write("suites.yaml", "support/suites.yaml")
	good := filepath.Dir(write("good/functional.yaml", "matrices/functional.yaml"))
	cases := map[string]struct{ profile, matrices, suites, want string }{
		"a profile that contradicts itself": {write("lint.yaml", "profiles/quickstart.yaml", "exclude: [wrong-credential]", "exclude: [overload]"), good, suites, "contradicts itself"},
		"a depth the matrix does not have":  {write("depth.yaml", "profiles/quickstart.yaml", "depth: smoke", "depth: deep"), good, suites, `has no depth "deep"`},
		"a matrix file of another name":     {profile, filepath.Dir(write("renamed/functional.yaml", "matrices/functional.yaml", "name: functional", "name: other")), suites, "declares the matrix other"},
		"a suite outside of the catalogue":  {profile, good, write("other.yaml", "support/suites.yaml", "name: data-plane", "name: other"), `no suite "data-plane"`},
		"a catalogue that is none":          {profile, good, profile, "suites"},
		"a missing catalogue":               {profile, good, filepath.Join(dir, "none"), "there is no file"},
		"a missing matrix":                  {profile, dir, suites, "there is no file"},
	}
	for name, test := range cases {
		if _, err := LoadDeclared(test.profile, test.matrices, test.suites, dossier.Harness{}); ExitCode(err) != ExitUsage || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s: %v, want %q", name, err, test.want)
		}
	}
	if _, err := LoadDeclared(profile, good, suites, dossier.Harness{}); err != nil {
		t.Errorf("control: %v", err)
	}
}
