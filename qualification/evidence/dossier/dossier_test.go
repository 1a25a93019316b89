package dossier_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"io/fs"
	"strings"
	"testing"

	"ptah.run/ptah/qualification/evidence"
	"ptah.run/ptah/qualification/evidence/dossier"
	"ptah.run/ptah/qualification/evidence/dossier/dossiertest"
	"ptah.run/ptah/qualification/verdict"
)

func load(t *testing.T, dir string) *dossier.Dossier {
	t.Helper()
	d, err := dossier.Load(dir)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

func TestADossierReadsBackAsWritten(t *testing.T) {
	c := dossiertest.Passing(t)
	d := load(t, c.Store(t))
	cell, err := d.Cell("data-plane.kubernetes-1.37.postgresql-17")
	if err != nil {
		t.Fatal(err)
	}
	if d.Profile.Name != "quickstart" || d.ProfileFile != evidence.Digest(c.Profile) || d.Harness != c.Facts.Harness || len(d.Expected) != 1 || d.RunID != "test-run" {
		t.Errorf("the run reads as %+v", d)
	}
	if cell.Lab.ClusterUID != c.Facts.Lab.ClusterUID || cell.Lab.ImageSource() != "modules" || cell.Release.Images["manager"] != dossiertest.Digest("1") {
		t.Errorf("the cell reads as %+v", cell)
	}
	if len(cell.Evidence.Ledgers) != 1 || !cell.Evidence.Ledgers[0].Whole || cell.Evidence.Ledgers[0].Suite != "data-plane" || len(cell.Evidence.Ledgers[0].Records) != 7 || len(cell.Evidence.Audit.Digests) != 1 {
		t.Errorf("the evidence reads as %+v", cell.Evidence.Ledgers)
	}
	if _, err := d.Cell("other"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a cell that is not there: %v", err)
	}
}

func TestALogThatWasRotatedIsReadAsOne(t *testing.T) {
	c := dossiertest.Passing(t)
	log := c.Audit["control-plane"]
	half := bytes.LastIndexByte(log[:len(log)/2], '\n') + 1
	run, cell := begin(t, c)
	for part, data := range [][]byte{log[:half], log[half:]} {
		if err := dossier.AddAuditLog(cell, "control-plane", part, bytes.NewReader(data)); err != nil {
			t.Fatal(err)
		}
	}
	finish(t, run, cell)
	whole, err := load(t, c.Store(t)).Cell(cell.Key())
	if err != nil {
		t.Fatal(err)
	}
	parts, err := load(t, run.Dir()).Cell(cell.Key())
	if err != nil {
		t.Fatal(err)
	}
	if len(parts.Evidence.Audit.Set.Events) != len(whole.Evidence.Audit.Set.Events) || len(parts.Evidence.Audit.Set.Servers) != 1 || len(parts.Evidence.Audit.Digests) != 2 {
		t.Errorf("%d events in parts, %d as a whole", len(parts.Evidence.Audit.Set.Events), len(whole.Evidence.Audit.Set.Events))
	}
}

func begin(t *testing.T, c *dossiertest.Case) (*evidence.Run, *evidence.Cell) {
	t.Helper()
	run, err := evidence.CreateRun(t.TempDir(), "other-run")
	if err != nil {
		t.Fatal(err)
	}
	if err := dossier.Begin(run, dossier.Declarations{Profile: c.Profile, Matrices: map[string][]byte{"functional": c.Matrix}, Suites: c.Suites, Harness: c.Facts.Harness}); err != nil {
		t.Fatal(err)
	}
	lab, err := json.Marshal(c.Facts.Lab)
	if err != nil {
		t.Fatal(err)
	}
	cell, err := dossier.BeginCell(run, c.Inputs(t), c.Facts.Release, lab)
	if err != nil {
		t.Fatal(err)
	}
	return run, cell
}

func finish(t *testing.T, run *evidence.Run, cell *evidence.Cell) {
	t.Helper()
	if err := cell.Finish(); err != nil {
		t.Fatal(err)
	}
	if _, err := run.Close(); err != nil {
		t.Fatal(err)
	}
}

func TestAReleaseThatTheInputsDoNotNameIsRefused(t *testing.T) {
	c := dossiertest.Passing(t)
	run, cell := begin(t, c)
	inputs := c.Inputs(t)
	inputs.Chart = dossiertest.Digest("9")
	if _, err := dossier.BeginCell(run, inputs, c.Facts.Release, []byte("{}")); err == nil {
		t.Error("another chart was accepted")
	}
	inputs = c.Inputs(t)
	inputs.Images = map[string]string{"manager": dossiertest.Digest("1")}
	if _, err := dossier.BeginCell(run, inputs, c.Facts.Release, []byte("{}")); err == nil {
		t.Error("another set of images was accepted")
	}
	finish(t, run, cell)
}

func TestARunWithoutItsDeclarationsIsRefused(t *testing.T) {
	run, err := evidence.CreateRun(t.TempDir(), "bare")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := run.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := dossier.Load(run.Dir()); err == nil || !strings.Contains(err.Error(), "inputs/profile.yaml") {
		t.Errorf("%v", err)
	}
}

func TestAFactWithAnUnknownFieldIsRefused(t *testing.T) {
	c := dossiertest.Passing(t)
	run, err := evidence.CreateRun(t.TempDir(), "odd")
	if err != nil {
		t.Fatal(err)
	}
	for name, data := range map[string]string{"inputs/profile.yaml": string(c.Profile), "inputs/suites.yaml": string(c.Suites), "inputs/matrices/functional.yaml": string(c.Matrix), "inputs/harness.json": `{"commit":"","trusted":true}`} {
		if _, err := run.PutFile(name, strings.NewReader(data)); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := run.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := dossier.Load(run.Dir()); err == nil || !strings.Contains(err.Error(), "trusted") {
		t.Errorf("%v", err)
	}
}

func TestTheLatestFinishedAttemptAtACellIsJudged(t *testing.T) {
	c := dossiertest.Passing(t)
	run, first := begin(t, c)
	if err := first.Finish(); err != nil { // without a ledger
		t.Fatal(err)
	}
	second, err := dossier.BeginCell(run, c.Inputs(t), c.Facts.Release, []byte(`{"images":{}}`))
	if err != nil {
		t.Fatal(err)
	}
	stream, err := second.Stream(evidence.SuiteLedger("data-plane"))
	if err != nil {
		t.Fatal(err)
	}
	for _, entry := range dossiertest.Entries() {
		if err := stream.Append(entry); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := stream.Close(); err != nil {
		t.Fatal(err)
	}
	if err := dossier.AddAuditLog(second, "control-plane", 0, bytes.NewReader(c.Audit["control-plane"])); err != nil {
		t.Fatal(err)
	}
	third, err := dossier.BeginCell(run, c.Inputs(t), c.Facts.Release, []byte("{}")) // begun and never finished
	if err != nil {
		t.Fatal(err)
	}
	finish(t, run, second)
	if judgement := load(t, run.Dir()).Judge(); judgement.Verdict.State != verdict.Pass {
		t.Errorf("%s: %v (third attempt %s)", judgement.Verdict, judgement.Verdict.Reasons, third.Key())
	}
}

func TestHarnessAndImageSourcesAreNamed(t *testing.T) {
	for want, harness := range map[string]dossier.Harness{"unknown": {}, "abc": {Commit: "abc"}, "abc-dirty": {Commit: "abc", Dirty: true},
		"abc-dirty-0123456789ab": {Commit: "abc", Dirty: true, Changes: "sha256:0123456789abcdef"}} {
		if got := harness.String(); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
	lab := dossier.Lab{Images: map[string]dossier.LabImage{"a": {Source: "registry"}, "b": {Source: "modules"}, "c": {Source: "modules"}}}
	if got := lab.ImageSource(); got != "modules+registry" {
		t.Errorf("%q", got)
	}
}
