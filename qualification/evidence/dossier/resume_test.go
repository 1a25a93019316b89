package dossier_test

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"ptah.run/ptah/qualification/evidence"
	"ptah.run/ptah/qualification/evidence/dossier"
	"ptah.run/ptah/qualification/evidence/dossier/dossiertest"
	"ptah.run/ptah/qualification/evidence/driverload"
	"ptah.run/ptah/qualification/evidence/ledger"
	"ptah.run/ptah/qualification/evidence/phase"
)

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func declarations(c *dossiertest.Case) dossier.Declarations {
	return dossier.Declarations{Profile: c.Profile, Matrices: map[string][]byte{"functional": c.Matrix}, Suites: c.Suites, Harness: c.Facts.Harness}
}

func empty(t *testing.T) *evidence.Run {
	t.Helper()
	run, err := evidence.CreateRun(t.TempDir(), "run")
	must(t, err)
	t.Cleanup(func() { _ = run.Abandon() })
	return run
}

func TestTheSameDeclarationsAreStoredOnce(t *testing.T) {
	c := dossiertest.Passing(t)
	run := empty(t)
	must(t, dossier.Begin(run, declarations(c)))
	stored := len(run.Entries())
	must(t, dossier.Begin(run, declarations(c)))
	if len(run.Entries()) != stored {
		t.Errorf("%d entries, then %d", stored, len(run.Entries()))
	}
}

func TestChangedDeclarationsAreANewVersionWhichIsJudged(t *testing.T) {
	c := dossiertest.Passing(t)
	changes := map[string]func(*dossier.Declarations){
		"the harness": func(d *dossier.Declarations) { d.Harness.Commit = strings.Repeat("d", 40) },
		"the profile": func(d *dossier.Declarations) { d.Profile = append([]byte("# changed\n"), d.Profile...) },
		"the suites":  func(d *dossier.Declarations) { d.Suites = append([]byte("# changed\n"), d.Suites...) },
		"a matrix": func(d *dossier.Declarations) {
			d.Matrices = map[string][]byte{"functional": append([]byte("# changed\n"), c.Matrix...)}
		},
		"a further matrix": func(d *dossier.Declarations) {
			d.Matrices = map[string][]byte{"functional": c.Matrix, "more": c.Matrix}
		},
	}
	for name, change := range changes {
		run := empty(t)
		must(t, dossier.Begin(run, declarations(c)))
		changed := declarations(c)
		change(&changed)
		must(t, dossier.Begin(run, changed))
		must(t, dossier.Begin(run, changed))
		versions := 0
		for _, entry := range run.Entries() {
			if strings.HasSuffix(entry.Name, "/harness.json") {
				versions++
			}
		}
		if versions != 2 {
			t.Errorf("%s: %d versions", name, versions)
		}
		_, err := run.Close()
		must(t, err)
		d := load(t, run.Dir())
		if d.Harness != changed.Harness || d.ProfileFile != evidence.Digest(changed.Profile) {
			t.Errorf("%s: the old version is read", name)
		}
	}
}

func TestWhatWasTakenBackIsANewVersionToo(t *testing.T) {
	c := dossiertest.Passing(t)
	run := empty(t)
	first, second := declarations(c), declarations(c)
	first.Matrices = map[string][]byte{"functional": c.Matrix, "more": c.Matrix}
	must(t, dossier.Begin(run, first))
	must(t, dossier.Begin(run, second)) // without the matrix more
	must(t, dossier.Begin(run, first))
	_, err := run.Close()
	must(t, err)
	snapshot, err := evidence.ReadRun(run.Dir())
	must(t, err)
	for _, name := range []string{"inputs/harness.json", "inputs/2/harness.json", "inputs/3/harness.json", "inputs/3/matrices/more.yaml"} {
		if _, ok := snapshot.Lookup(name); !ok {
			t.Errorf("there is no %s", name)
		}
	}
}

func TestAVersionThatWasNotStoredWholeIsNotRead(t *testing.T) {
	c := dossiertest.Passing(t)
	run := empty(t)
	must(t, dossier.Begin(run, declarations(c)))
	_, err := run.PutFile("inputs/2/profile.yaml", strings.NewReader("killed in between"))
	must(t, err)
	changed := declarations(c)
	changed.Harness.Dirty = true
	must(t, dossier.Begin(run, changed))
	_, err = run.Close()
	must(t, err)
	if d := load(t, run.Dir()); !d.Harness.Dirty {
		t.Errorf("%+v", d.Harness)
	}
	snapshot, err := evidence.ReadRun(run.Dir())
	must(t, err)
	if _, ok := snapshot.Lookup("inputs/3/harness.json"); !ok {
		t.Error("the version after a half one has no number of its own")
	}
}

func TestTheReasonOfACellThatIsNotRunReachesItsVerdict(t *testing.T) {
	c := dossiertest.Passing(t)
	run := empty(t)
	must(t, dossier.Begin(run, declarations(c)))
	key := c.Inputs(t).Cell.Key
	for _, reason := range []string{"planned", "planned", "no machine", "no machine"} {
		must(t, dossier.NotRun(run, key, reason))
	}
	must(t, dossier.NotRun(run, key+"-longer", "another cell"))
	_, err := run.Close()
	must(t, err)
	d := load(t, run.Dir())
	if d.NotRun[key] != "no machine" || d.NotRun[key+"-longer"] != "another cell" {
		t.Errorf("%v", d.NotRun)
	}
	judged := d.Judge()
	if reason := judged.Cells[0].Verdict.Reasons[0].Message; !strings.Contains(reason, "no machine") || string(judged.Cells[0].Verdict.State) != "not-run" {
		t.Errorf("%+v", judged.Cells[0].Verdict)
	}
	snapshot, err := evidence.ReadRun(run.Dir())
	must(t, err)
	count := 0
	for _, entry := range snapshot.Entries() {
		if strings.HasPrefix(entry.Name, "not-run/"+key+"/") {
			count++
		}
	}
	if count != 2 {
		t.Errorf("two reasons are stored %d times", count)
	}
}

func TestAReasonForAnotherCellIsTampering(t *testing.T) {
	c := dossiertest.Passing(t)
	for name, content := range map[string]string{"another cell": `{"cell":"other","reason":"x"}`, "no reason": `{"cell":"a","reason":""}`} {
		run := empty(t)
		must(t, dossier.Begin(run, declarations(c)))
		_, err := run.PutFile("not-run/a/1.json", strings.NewReader(content))
		must(t, err)
		_, err = run.Close()
		must(t, err)
		if _, err := dossier.Load(run.Dir()); !errors.Is(err, evidence.ErrTampered) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// withPhases is a finished cell with the accounts of its phases and its load, and the ledgers of two phases.
func withPhases(t *testing.T, change func(phases, load *evidence.Stream)) dossier.CellFile {
	t.Helper()
	c := dossiertest.Passing(t)
	run, cell := begin(t, c)
	staging := t.TempDir()
	must(t, os.WriteFile(filepath.Join(staging, ledger.FileName), c.Ledger, 0o600))
	must(t, cell.ImportPhase("data-plane", "postgresql", staging))
	must(t, cell.ImportPhase("data-plane", "other", staging))
	must(t, cell.ImportPreparation("lender", "lent", staging))
	phases, err := dossier.PhaseStream(cell)
	must(t, err)
	driver, err := dossier.DriverStream(cell)
	must(t, err)
	change(phases, driver)
	finish(t, run, cell)
	file, err := load(t, run.Dir()).Cell(cell.Key())
	must(t, err)
	return file
}

func TestTheAccountsOfTheHarnessReadBack(t *testing.T) {
	plan := phase.Plan{Suite: "data-plane", Name: "postgresql", Purpose: phase.Coverage, Scenarios: []string{"a"}}
	file := withPhases(t, func(phases, load *evidence.Stream) {
		must(t, phases.Append(phase.Entry{Event: phase.Begun, Plan: plan}))
		_, err := phases.Close()
		must(t, err)
		must(t, load.Append(driverload.Entry{Start: &driverload.Start{Processors: 2, Interval: 1}}))
		must(t, load.Append(driverload.Entry{Sample: &driverload.Sample{Elapsed: 1}}))
		_, err = load.Close()
		must(t, err)
	})
	got := file.Evidence
	if !got.Phases.Whole || len(got.Phases.Records) != 1 || got.Phases.Digest == "" || !got.Driver.Whole || len(got.Driver.Samples) != 1 || got.Driver.Start.Processors != 2 || got.Driver.Digest == "" {
		t.Errorf("%+v, %+v", got.Phases, got.Driver)
	}
	if len(got.Ledgers) != 2 || got.Ledgers[0].Phase != "other" || got.Ledgers[1].Phase != "postgresql" || got.Ledgers[0].Suite != "data-plane" {
		t.Errorf("%+v", got.Ledgers)
	}
}

func TestAccountsThatAreNotWholeSaySo(t *testing.T) {
	file := withPhases(t, func(phases, load *evidence.Stream) {
		must(t, phases.Abandon())
		must(t, load.Append(driverload.Entry{Sample: &driverload.Sample{Elapsed: 1}}))
		_, err := load.Close()
		must(t, err)
	})
	got := file.Evidence
	if got.Phases.Whole || !strings.Contains(got.Phases.Problem, "completeness") || got.Driver.Whole || !strings.Contains(got.Driver.Problem, "before the start") {
		t.Errorf("%+v, %+v", got.Phases, got.Driver)
	}
}

func TestACellWithoutAccountsHasNone(t *testing.T) {
	c := dossiertest.Passing(t)
	run, cell := begin(t, c)
	must(t, dossier.AddAuditLog(cell, "control-plane", 0, bytes.NewReader(c.Audit["control-plane"])))
	finish(t, run, cell)
	file, err := load(t, run.Dir()).Cell(cell.Key())
	must(t, err)
	if file.Evidence.Phases != nil || file.Evidence.Driver != nil || len(file.Evidence.Ledgers) != 0 {
		t.Errorf("%+v", file.Evidence)
	}
}

func TestTheInputsOfAnAttemptAreReadWhileTheRunIsOpen(t *testing.T) {
	c := dossiertest.Passing(t)
	run, cell := begin(t, c)
	attempt := run.Attempts()[0]
	got, err := dossier.InputsOf(run, attempt)
	if err != nil || len(got.Differences(c.Inputs(t))) != 0 {
		t.Errorf("%v, %v", got, err)
	}
	attempt.Attempt = 7
	if _, err := dossier.InputsOf(run, attempt); err == nil {
		t.Error("an attempt that never was has inputs")
	}
	must(t, cell.Finish())
	must(t, run.Abandon())
}
