package run_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"ptah.run/ptah/qualification/evidence"
	"ptah.run/ptah/qualification/evidence/dossier"
	"ptah.run/ptah/qualification/evidence/dossier/dossiertest"
	"ptah.run/ptah/qualification/evidence/driverload"
	"ptah.run/ptah/qualification/evidence/ledger"
	"ptah.run/ptah/qualification/evidence/phase"
	"ptah.run/ptah/qualification/matrix"
	"ptah.run/ptah/qualification/matrix/catalogue"
	"ptah.run/ptah/qualification/profile"
)

// Cells of the tests: one suite on four minors, under the quickstart profile with the fourth minor planned.
const fourCells = `
apiVersion: qualification.ptah.run/v1
kind: Matrix
name: functional
summary: Four cells for tests.
axes:
  - name: suite
    values: [{name: data-plane}]
  - name: kubernetes
    values:
      - {name: one, attributes: {minor: "1.35"}}
      - {name: two, attributes: {minor: "1.36"}}
      - {name: three, attributes: {minor: "1.37"}}
      - {name: four, attributes: {minor: "1.38"}, planned: Nobody has it yet.}
  - name: database
    values: [{name: postgresql-17, attributes: {engine: PostgreSQL, version: "17"}}]
depths:
  - name: smoke
    summary: All.
    select: [{}]
`

// declared is what a run of the tests is judged against.
type declared struct {
	c        *dossiertest.Case
	cells    []matrix.Cell
	profile  *profile.Profile
	matrix   *matrix.Matrix
	suites   *catalogue.Suites
	contents dossier.Declarations
}

func declare(t testing.TB) *declared {
	t.Helper()
	d := &declared{c: dossiertest.Passing(t)}
	d.c.Matrix = []byte(fourCells)
	must := func(err error) {
		if err != nil {
			t.Helper()
			t.Fatal(err)
		}
	}
	var err error
	d.profile, err = profile.Decode("profile", d.c.Profile)
	must(err)
	d.matrix, err = matrix.Decode("matrix", d.c.Matrix)
	must(err)
	d.suites, err = catalogue.DecodeSuites("suites", d.c.Suites)
	must(err)
	d.cells, err = d.matrix.Select("smoke")
	must(err)
	d.contents = dossier.Declarations{Profile: d.c.Profile, Matrices: map[string][]byte{"functional": d.c.Matrix}, Suites: d.c.Suites, Harness: d.c.Facts.Harness}
	return d
}

// fake runs cells without a cluster: it writes the evidence that a real cell leaves, always the same, in small steps.
// A place is a folder.
type fake struct {
	d      *declared
	places string        // folder of places
	step   time.Duration // between two things that are written
	hang   string        // "run" or "teardown": waits there, until its context ends or for ever
	fail   map[string]error
	harm   string // key of a cell whose ledger says something else
	change func(*matrix.Inputs)
	calls  []string
	say    func(string)
}

func (f *fake) Inputs(_ context.Context, cell matrix.Cell) (matrix.Inputs, error) {
	if err := f.fail["inputs "+cell.Key]; err != nil {
		return matrix.Inputs{}, err
	}
	suite, err := f.d.suites.Find(cell.Suite())
	if err != nil {
		return matrix.Inputs{}, err
	}
	facts := f.d.c.Facts
	labImages := map[string]string{}
	for role, image := range facts.Lab.Images {
		labImages[role] = image.Digest
	}
	inputs := matrix.Inputs{Cell: cell, Profile: f.d.profile.Digest(), Matrix: f.d.matrix.Digest(), Suite: suite.Digest(), Images: facts.Release.Images,
		Chart: facts.Release.ChartDigest, LabImages: labImages, ImageSource: facts.Lab.ImageSource(), Platform: facts.Lab.Platform, Native: true,
		ControlPlanes: 1, Harness: facts.Harness.String()}
	if f.change != nil {
		f.change(&inputs)
	}
	return inputs, nil
}

func (f *fake) Place(cell matrix.Cell, attempt int) string {
	if f.places == "" {
		return ""
	}
	return fmt.Sprintf("%s-%d", cell.Key, attempt)
}

func (f *fake) Prepare(ctx context.Context, cell matrix.Cell, place string) error {
	f.call("prepare " + place)
	if err := os.Mkdir(filepath.Join(f.places, place), 0o755); err != nil {
		return err
	}
	return errors.Join(f.pause(ctx), f.fail["prepare "+cell.Key])
}

func (f *fake) TearDown(ctx context.Context, place string) error {
	f.call("teardown " + place)
	if f.hang == "teardown" {
		select {} // where nothing can be stopped
	}
	return errors.Join(f.fail["teardown "+place], f.pause(ctx), os.RemoveAll(filepath.Join(f.places, place)))
}

func (f *fake) call(what string) {
	f.calls = append(f.calls, what)
	if f.say != nil {
		f.say(what)
	}
}

func (f *fake) pause(ctx context.Context) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(f.step):
		return nil
	}
}

func (f *fake) Run(ctx context.Context, store *evidence.Run, cell matrix.Cell, place string, inputs matrix.Inputs) error {
	f.call("run " + cell.Key)
	if f.hang == "run" {
		<-ctx.Done()
		return ctx.Err()
	}
	lab, err := json.Marshal(f.d.c.Facts.Lab)
	if err != nil {
		return err
	}
	attempt, err := dossier.BeginCell(store, inputs, f.d.c.Facts.Release, lab)
	if err != nil {
		return err
	}
	steps := []func() error{
		func() error { return f.accounts(ctx, attempt) },
		func() error { return f.ledger(cell.Key, attempt) },
		func() error {
			return dossier.AddAuditLog(attempt, "control-plane", 0, bytes.NewReader(f.d.c.Audit["control-plane"]))
		},
		func() error { return f.fail["run "+cell.Key] },
	}
	for _, step := range steps {
		if err := errors.Join(step(), f.pause(ctx)); err != nil {
			return err
		}
	}
	return attempt.Finish()
}

// accounts writes what the harness says of its phases and of its load.
func (f *fake) accounts(ctx context.Context, cell *evidence.Cell) error {
	phases, err := dossier.PhaseStream(cell)
	if err != nil {
		return err
	}
	suite, err := f.d.suites.Find("data-plane")
	if err != nil {
		return err
	}
	one := suite.Phases[0]
	plan := phase.Plan{Suite: suite.Name, Name: one.Name, Purpose: phase.Coverage, Scenarios: one.Scenarios, Together: one.Together}
	result := phase.Result{Outcome: phase.Completed}
	for _, entry := range []phase.Entry{{Event: phase.Begun, At: dossiertest.At(5), Plan: plan}, {Event: phase.Ended, At: dossiertest.At(170), Plan: plan, Result: &result}} {
		if err := errors.Join(phases.Append(entry), f.pause(ctx)); err != nil {
			return errors.Join(err, phases.Abandon())
		}
	}
	if _, err := phases.Close(); err != nil {
		return err
	}
	load, err := dossier.DriverStream(cell)
	if err != nil {
		return err
	}
	entries := []driverload.Entry{{Start: &driverload.Start{At: dossiertest.Start, PID: 1, Processors: 2, Interval: 1}}}
	for i := range 175 {
		entries = append(entries, driverload.Entry{Sample: &driverload.Sample{At: dossiertest.At(float64(i + 1)), Elapsed: float64(i + 1)}})
	}
	for _, entry := range entries {
		if err := load.Append(entry); err != nil {
			return errors.Join(err, load.Abandon())
		}
	}
	_, err = load.Close()
	return err
}

func (f *fake) ledger(key string, cell *evidence.Cell) error {
	staging, err := os.MkdirTemp("", "fake-suite-")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(staging) }()
	content := f.d.c.Ledger
	if key == f.harm {
		content = bytes.ReplaceAll(content, []byte(`"holds"`), []byte(`"harms"`))
	}
	if err := os.WriteFile(filepath.Join(staging, ledger.FileName), content, 0o644); err != nil {
		return err
	}
	return cell.ImportPhase("data-plane", "postgresql", staging)
}
