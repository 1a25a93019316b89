package command

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"ptah.run/ptah/qualification/evidence"
	"ptah.run/ptah/qualification/evidence/dossier"
	"ptah.run/ptah/qualification/evidence/dossier/dossiertest"
	"ptah.run/ptah/qualification/matrix"
	"ptah.run/ptah/qualification/run"
)

// stuck is a harness that makes labs in which nothing runs, and that are removed where they may be.
type stuck struct {
	removable bool
	removed   []string
}

func (*stuck) Inputs(_ context.Context, cell matrix.Cell) (matrix.Inputs, error) {
	return matrix.Inputs{Cell: cell}, nil
}
func (*stuck) Place(matrix.Cell, int) string                      { return "q-000000000000-1" }
func (*stuck) Prepare(context.Context, matrix.Cell, string) error { return errors.New("no space left") }
func (*stuck) Run(context.Context, *evidence.Run, matrix.Cell, string, matrix.Inputs) error {
	return nil
}
func (s *stuck) TearDown(_ context.Context, place string) error {
	if !s.removable {
		return errors.New("busy")
	}
	s.removed = append(s.removed, place)
	return nil
}

// stuckRun is a run that was stopped and left a lab.
func stuckRun(t *testing.T, c *dossiertest.Case, root string) string {
	t.Helper()
	declared, err := matrix.Decode("matrix", c.Matrix)
	if err != nil {
		t.Fatal(err)
	}
	cells, err := declared.Select("smoke")
	if err != nil {
		t.Fatal(err)
	}
	store, err := evidence.CreateRun(root, "stuck")
	if err != nil {
		t.Fatal(err)
	}
	contents := dossier.Declarations{Profile: c.Profile, Matrices: map[string][]byte{"functional": c.Matrix}, Suites: c.Suites, Harness: c.Facts.Harness}
	if err := dossier.Begin(store, contents); err != nil {
		t.Fatal(err)
	}
	_, err = run.Do(t.Context(), context.Background(), run.Options{Store: store, Items: []run.Item{{Cell: cells[0]}}, Cells: &stuck{}, Say: func(string, ...any) {}})
	var left *run.PlaceError
	if !errors.As(err, &left) {
		t.Fatalf("control: the lab must be left: %v", err)
	}
	return store.Dir()
}

func TestStatusSaysWhereRunsAreAndHowToGoOn(t *testing.T) {
	c, whole := dossiertest.Passing(t), dossiertest.Passing(t).Store(t)
	t.Chdir(t.TempDir())
	if out := succeed(t, "status"); !strings.Contains(out, "There is no run below this folder") {
		t.Errorf("%q", out)
	}
	if out := succeed(t, "status", "--format", "json"); out != "[]\n" {
		t.Errorf("%q", out)
	}
	dir := filepath.Join(".ptah", "quickstart")
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	left := stuckRun(t, c, dir)
	for arguments, wants := range map[string][]string{
		"status": {"RUN", left + "  quickstart  interrupted  0 of 1 finished, 1 failed"},
		"status " + left: {"run stuck of the profile quickstart is interrupted: 0 of 1 finished, 1 failed", "data-plane.kubernetes-1.37.postgresql-17  failed",
			"prepare the cell data-plane.kubernetes-1.37.postgresql-17: no space left", "the lab q-000000000000-1 may still be there",
			"next: ptah-qualify run --resume " + left + ", or to remove its labs and leave it: ptah-qualify clean " + left},
	} {
		out := succeed(t, strings.Fields(arguments)...)
		for _, want := range wants {
			if !strings.Contains(out, want) {
				t.Errorf("%s: %q is not in\n%s", arguments, want, out)
			}
		}
	}
	if out := succeed(t, "status", whole); !strings.Contains(out, "is complete: 1 of 1 finished") || !strings.Contains(out, "next: ptah-qualify judge --run "+whole) {
		t.Errorf("%s", out)
	}
	var standings []run.Standing
	if err := json.Unmarshal([]byte(succeed(t, "status", "--format", "json", left, whole)), &standings); err != nil || len(standings) != 2 ||
		standings[0].Cells[0].State != run.StateFailed || standings[1].State != run.StateComplete {
		t.Errorf("%v, %+v", err, standings)
	}
	store, err := evidence.OpenRun(left)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = store.Abandon() }()
	if out := succeed(t, "status", left); !strings.Contains(out, "is running") || !strings.Contains(out, "next: wait for it") {
		t.Errorf("%s", out)
	}
	for arguments, want := range map[string]string{"status " + t.TempDir(): "holds no run", "status --format xml": `no format "xml"`} {
		if code, out, errs := qualify(t, strings.Fields(arguments)...); code != ExitUsage || out != "" || !strings.Contains(errs, want) {
			t.Errorf("%s: exit code %d, %q, %q", arguments, code, out, errs)
		}
	}
}

func TestCleanRemovesLeftLabsAndNothingElse(t *testing.T) {
	c, whole := dossiertest.Passing(t), dossiertest.Passing(t).Store(t)
	t.Chdir(t.TempDir())
	if out := succeed(t, "clean"); out != "There is nothing to remove.\n" {
		t.Errorf("%q", out)
	}
	left := stuckRun(t, c, ".")
	if out := succeed(t, "clean", whole); out != "There is nothing to remove.\n" {
		t.Errorf("a complete run: %q", out)
	}
	if out := succeed(t, "clean", "--dry-run"); out != left+": would remove the lab q-000000000000-1\n" {
		t.Errorf("%q", out)
	}
	clean := func(labs *stuck) (string, error) {
		var out bytes.Buffer
		err := cleaning{out: &out, labs: labs}.all(t.Context(), []string{left})
		return out.String(), err
	}
	if _, err := clean(&stuck{}); ExitCode(err) != ExitHarnessFailed || !strings.Contains(err.Error(), "remove q-000000000000-1: busy; run it again to go on") {
		t.Errorf("a lab that cannot be removed: %v", err)
	}
	store, err := evidence.OpenRun(left)
	if err != nil {
		t.Fatal(err)
	}
	labs := &stuck{removable: true}
	if out, err := clean(labs); err != nil || !strings.Contains(out, "a process is at work on it") || len(labs.removed) != 0 {
		t.Errorf("a run that is being written: %q, %v, %q", out, err, labs.removed)
	}
	if err := store.Abandon(); err != nil {
		t.Fatal(err)
	}
	if out, err := clean(labs); err != nil || !slices.Equal(labs.removed, []string{"q-000000000000-1"}) || !strings.Contains(out, "removing the lab q-000000000000-1") {
		t.Errorf("%q, %v, %q", out, err, labs.removed)
	}
	if out, err := clean(labs); err != nil || out != "There is nothing to remove.\n" || len(labs.removed) != 1 {
		t.Errorf("once more: %q, %v", out, err)
	}
	if out := succeed(t, "status", left); strings.Contains(out, "may still be there") {
		t.Errorf("%s", out)
	}
	if code, _, errs := qualify(t, "clean", t.TempDir()); code != ExitUsage || !strings.Contains(errs, "holds no run") {
		t.Errorf("exit code %d, %q", code, errs)
	}
}
