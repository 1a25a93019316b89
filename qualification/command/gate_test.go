package command

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"ptah.run/ptah/qualification/evidence/dossier/dossiertest"
	"ptah.run/ptah/qualification/evidence/scenario"
	"ptah.run/ptah/qualification/gate"
	"ptah.run/ptah/qualification/record"
)

// issuedCase is a case with its record, its cell as a file of its own, and the folder that holds the latter.
type issuedCase struct {
	qualified
	folder, cell string
}

func issueCase(t *testing.T, c *dossiertest.Case) issuedCase {
	t.Helper()
	made := issuedCase{qualified: qualifyCase(t, c), folder: t.TempDir()}
	unsigned := filepath.Join(t.TempDir(), "unsigned.json")
	succeed(t, "record", "create", "--run", made.run, "--output", unsigned)
	out := succeed(t, "record", "sign", "--record", unsigned, "--key", made.key, "--cells", made.folder)
	made.cell, _, _ = strings.Cut(out, "\n")
	if !strings.HasSuffix(made.cell, record.CellSuffix) {
		t.Fatalf("sign says %q", out)
	}
	return made
}

// gateArguments ask for the only cell of the cases.
func gateArguments(key string, more ...string) []string {
	return append([]string{"gate", "--profile", "../../profiles/quickstart.yaml", "--matrices", "../../matrices", "--matrix", "functional", "--depth", "smoke", "--key", key}, more...)
}

func TestTheGateOpensForWhatIsDeclaredAndSigned(t *testing.T) {
	made := issueCase(t, dossiertest.Passing(t))
	for name, offered := range map[string][]string{
		"a record":                     {made.record},
		"a cell":                       {made.cell},
		"a folder with a cell in it":   {made.folder},
		"a record and its evidence":    {made.record, made.run},
		"a cell and its evidence":      {made.run, made.cell},
		"a folder and a file of it":    {made.folder, made.cell},
		"a demanded digest":            {"--subject", "ptah/manager=" + dossiertest.Digest("1"), made.cell},
		"all that the profile covers":  {made.cell},
		"two keys of which one signed": {"--key", issueCase(t, dossiertest.Passing(t)).public, made.cell},
	} {
		arguments := gateArguments(made.public, offered...)
		if strings.HasPrefix(name, "all that") {
			arguments = slices.DeleteFunc(arguments, func(word string) bool {
				return slices.Contains([]string{"--matrix", "functional", "--depth", "smoke"}, word)
			})
		}
		if code, out, errs := qualify(t, arguments...); code != ExitPass || !strings.Contains(out, "1 of 1 declared cells are there and passed") {
			t.Errorf("%s: exit code %d, %s%s", name, code, out, errs)
		}
	}
	file := filepath.Join(t.TempDir(), "decision.json")
	out := succeed(t, gateArguments(made.public, "--format", "json", "--output", file, made.cell)...)
	var decision struct {
		Passed bool                `json:"passed"`
		Cells  []gate.CellDecision `json:"cells"`
	}
	if err := json.Unmarshal([]byte(out), &decision); err != nil || !decision.Passed || len(decision.Cells) != 1 || decision.Cells[0].Source != made.cell {
		t.Errorf("%+v, %v", decision, err)
	}
	if written, err := os.ReadFile(file); err != nil || string(written) != out {
		t.Errorf("the file holds %q, %v", written, err)
	}
}

func TestTheGateStaysShutAndNamesTheCell(t *testing.T) {
	made := issueCase(t, dossiertest.Passing(t))
	key := strings.TrimSuffix(strings.TrimPrefix(filepath.Base(made.cell), "functional."), record.CellSuffix)
	another := func(change func(*dossiertest.Case)) issuedCase {
		c := dossiertest.Passing(t)
		change(c)
		return issueCase(t, c)
	}
	older := another(func(c *dossiertest.Case) {
		c.Profile = bytes.Replace(c.Profile, []byte("atMost: 25"), []byte("atMost: 24"), 1)
	})
	foreign := another(func(c *dossiertest.Case) {
		c.Matrix = bytes.ReplaceAll(c.Matrix, []byte("kubernetes-1.37"), []byte("kubernetes-1.99"))
	})
	failed := another(func(c *dossiertest.Case) { c.Ledger = endedBy(t, scenario.BlameProduct) })
	broken := another(func(c *dossiertest.Case) { c.Ledger = endedBy(t, scenario.BlameHarness) })
	unknown := another(func(c *dossiertest.Case) { c.Audit = nil })
	altered := damaged(t, made.cell)
	evidence := another(func(*dossiertest.Case) {})
	if err := os.RemoveAll(filepath.Join(evidence.run, "objects")); err != nil {
		t.Fatal(err)
	}
	unsigned := filepath.Join(t.TempDir(), record.FileName)
	succeed(t, "record", "create", "--run", made.run, "--output", unsigned)
	stray := filepath.Join(t.TempDir(), "stray.json")
	if err := os.WriteFile(stray, []byte("{}"), 0o644); err != nil {
		t.Fatal(err)
	}
	cases := map[string]struct {
		key     string
		offered []string
		code    int
		want    string
	}{
		"should refuse an empty folder":                    {made.public, []string{t.TempDir()}, ExitNotEstablished, "holds no run, no record and no signed cell"},
		"should refuse a file that is no record":           {made.public, []string{stray}, ExitNotEstablished, "holds no run, no record"},
		"should refuse a stray file beside the cell":       {made.public, []string{made.cell, stray}, ExitNotEstablished, "holds no run, no record"},
		"should refuse a cell that is there twice":         {made.public, []string{made.record, made.cell}, ExitNotEstablished, "cell " + key + " is there 2 times"},
		"should refuse a run that nobody signed":           {made.public, []string{made.run}, ExitVerificationFailed, "cell " + key + " is not signed"},
		"should refuse an unsigned record":                 {made.public, []string{unsigned}, ExitVerificationFailed, "cell " + key + ": the statement of cell 1 is not signed"},
		"should refuse a cell signed by a stranger":        {older.public, []string{made.cell}, ExitVerificationFailed, "is signed by the key"},
		"should refuse a record signed by a stranger":      {older.public, []string{made.record}, ExitVerificationFailed, "cell " + key + ": the statement of cell 1 is signed by the key"},
		"should refuse a cell with a flipped byte":         {made.public, []string{altered}, ExitVerificationFailed, "the gate stays shut"},
		"should refuse a cell under an older profile":      {older.public, []string{older.cell}, ExitNotEstablished, "cell " + key + " was judged under"},
		"should refuse a foreign cell":                     {foreign.public, []string{foreign.cell}, ExitNotEstablished, "is not in the declared set"},
		"should refuse a failed cell":                      {failed.public, []string{failed.cell}, ExitProductFailed, "cell " + key + " did not pass: its verdict is fail (product)"},
		"should refuse a cell that the harness failed":     {broken.public, []string{broken.cell}, ExitHarnessFailed, "its verdict is fail (harness)"},
		"should refuse an inconclusive cell":               {unknown.public, []string{unknown.cell}, ExitNotEstablished, "its verdict is inconclusive"},
		"should refuse altered evidence beside the cell":   {evidence.public, []string{evidence.cell, evidence.run}, ExitVerificationFailed, "was altered after it was written"},
		"should refuse another release than demanded":      {made.public, []string{"--subject", "ptah/manager=" + dossiertest.Digest("9"), made.cell}, ExitNotEstablished, "cell " + key + " is about another release"},
		"should refuse a development cell as acceptance":   {made.public, []string{"--acceptance", made.cell}, ExitNotEstablished, "is for development"},
		"should refuse a path that is not there":           {made.public, []string{filepath.Join(made.folder, "none")}, ExitUsage, "no such file or directory, check the path"},
		"should refuse to judge nothing":                   {made.public, nil, ExitUsage, "requires at least 1 arg"},
		"should refuse a subject without a digest":         {made.public, []string{"--subject", "ptah/manager=latest", made.cell}, ExitUsage, "--subject takes NAME=sha256"},
		"should refuse an unknown depth":                   {made.public, []string{"--depth", "deep", made.cell}, ExitUsage, `has no depth "deep"`},
		"should refuse an unknown matrix":                  {made.public, []string{"--matrix", "other", made.cell}, ExitUsage, "there is no file"},
		"should refuse an unknown format":                  {made.public, []string{"--format", "xml", made.cell}, ExitUsage, "use text or json"},
		"should refuse a private key":                      {made.key, []string{made.cell}, ExitUsage, `not a "PUBLIC KEY"`},
		"should refuse a decision into a missing folder":   {made.public, []string{"--output", filepath.Join(made.folder, "none", "d.json"), made.cell}, ExitUsage, "the folder does not exist"},
		"should refuse two of the wider declared set only": {made.public, []string{"--depth", "release", made.cell}, ExitNotEstablished, "the gate stays shut"},
	}
	for name, test := range cases {
		t.Run(name, func(t *testing.T) {
			code, _, errs := qualify(t, gateArguments(test.key, test.offered...)...)
			if code != test.code || !strings.Contains(errs, test.want) || strings.Contains(errs, "\n") {
				t.Errorf("exit code %d, want %d; said %q, want one sentence with %q", code, test.code, errs, test.want)
			}
		})
	}
	if code, _, errs := qualify(t, "gate", "--profile", "../../profiles/quickstart.yaml", "--matrix", "functional", "--key", made.public, made.cell); code != ExitUsage || !strings.Contains(errs, "matrix") {
		t.Errorf("a matrix without a depth: exit code %d, %s", code, errs)
	}
	if code, _, errs := qualify(t, "gate", made.cell); code != ExitUsage || !strings.Contains(errs, `"key" not set`) {
		t.Errorf("no key: exit code %d, %s", code, errs)
	}
}

// endedBy is a ledger whose last scenario failed, by somebody's doing.
func endedBy(t *testing.T, blame scenario.Blame) []byte {
	t.Helper()
	entries := dossiertest.Entries()
	entries[len(entries)-1].Outcome, entries[len(entries)-1].Blame = scenario.OutcomeFail, blame
	return dossiertest.Stream(t, entries...)
}

// damaged is a copy of a file with one byte flipped, under its own name.
func damaged(t *testing.T, path string) string {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	data[len(data)/2] ^= 1
	copied := filepath.Join(t.TempDir(), filepath.Base(path))
	if err := os.WriteFile(copied, data, 0o644); err != nil {
		t.Fatal(err)
	}
	return copied
}

// TestTheGateTakesAFileThatWasDamagedBeyondReading holds that such a file is not passed over.
func TestTheGateTakesAFileThatWasDamagedBeyondReading(t *testing.T) {
	made := issueCase(t, dossiertest.Passing(t))
	broken := filepath.Join(made.folder, "functional.other"+record.CellSuffix)
	if err := os.WriteFile(broken, []byte("{"), 0o644); err != nil {
		t.Fatal(err)
	}
	if code, _, errs := qualify(t, gateArguments(made.public, made.folder)...); code != ExitVerificationFailed || !strings.Contains(errs, "the gate stays shut") {
		t.Errorf("exit code %d, %s", code, errs)
	}
}

func TestACellIsWrittenOnlyAsItIsAskedFor(t *testing.T) {
	q := qualifyCase(t, dossiertest.Passing(t))
	unsigned, folder := filepath.Join(t.TempDir(), "unsigned.json"), t.TempDir()
	succeed(t, "record", "create", "--run", q.run, "--output", unsigned)
	before, err := os.ReadFile(unsigned)
	if err != nil {
		t.Fatal(err)
	}
	for want, arguments := range map[string][]string{
		"has no finished cell other": {"--cells", folder, "--cell", "other"},
		"says nothing without":       {"--cell", "other"},
		"the folder does not exist":  {"--cells", filepath.Join(folder, "none")},
		"holds no PEM block":         {"--key", unsigned},
		"there is no file":           {"--key", filepath.Join(folder, "none")},
	} {
		arguments = append([]string{"record", "sign", "--record", unsigned, "--key", q.key}, arguments...)
		if code, _, errs := qualify(t, arguments...); code != ExitUsage || !strings.Contains(errs, want) {
			t.Errorf("exit code %d, %q, want %q", code, errs, want)
		}
	}
	after, err := os.ReadFile(unsigned)
	if err != nil || !bytes.Equal(before, after) {
		t.Errorf("a record that could not be signed as asked was changed: %v", err)
	}
	if entries, err := os.ReadDir(folder); err != nil || len(entries) != 0 {
		t.Errorf("files were left behind: %v, %v", entries, err)
	}
}
