package run_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"ptah.run/ptah/qualification/evidence"
	"ptah.run/ptah/qualification/evidence/dossier"
	"ptah.run/ptah/qualification/matrix"
	"ptah.run/ptah/qualification/run"
)

// standing looks at a run and says the states of its cells in order.
func standing(t *testing.T, dir string) (*run.Standing, string) {
	t.Helper()
	s, err := run.Look(dir)
	if err != nil {
		t.Fatal(err)
	}
	var states []string
	for _, cell := range s.Cells {
		states = append(states, string(cell.State))
	}
	return s, strings.Join(states, ", ")
}

func TestWhereARunIsIsReadFromItsJournal(t *testing.T) {
	d := declare(t)
	store, err := evidence.CreateRun(t.TempDir(), "run")
	if err != nil {
		t.Fatal(err)
	}
	if s, cells := standing(t, store.Dir()); s.State != run.StateRunning || cells != "" || s.Profile != "" {
		t.Errorf("before it stored what it is judged against: %s, %q, %q", s.State, cells, s.Profile)
	}
	if err := dossier.Begin(store, d.contents); err != nil {
		t.Fatal(err)
	}
	if s, cells := standing(t, store.Dir()); cells != "waiting, waiting, waiting, waiting" || s.Profile != "quickstart" || s.ID != "run" {
		t.Errorf("before the first cell: %q, %+v", cells, s)
	}

	// The first cell is finished, the second fails and leaves its place, and the process ends there.
	f := &fake{d: d, places: t.TempDir(), fail: map[string]error{"run " + two: errors.New("no such image"), "teardown " + two + "-1": errors.New("busy")}}
	f.say = func(what string) {
		if what != "run "+two {
			return
		}
		s, cells := standing(t, store.Dir())
		if cells != "finished, running, waiting, waiting" || s.State != run.StateRunning || !slices.Equal(s.Left, []string{two + "-1"}) {
			t.Errorf("while the second cell runs: %q, %+v", cells, s)
		}
	}
	if _, err := do(t.Context(), store, f, nil); err == nil {
		t.Fatal("control: the run must not be complete")
	}
	s, cells := standing(t, store.Dir())
	if cells != "finished, failed, waiting, waiting" || s.State != run.StateInterrupted || !slices.Equal(s.Left, []string{two + "-1"}) {
		t.Errorf("after the second cell failed: %q, %+v", cells, s)
	}
	if one := s.Cells[1]; !strings.Contains(one.Why, "no such image") || one.Attempt != 1 || one.Began == nil || one.Ended == nil || one.Ended.Before(*one.Began) {
		t.Errorf("%+v", one)
	}
	if s.Count(run.StateWaiting) != 2 || s.Cells[0].Ended == nil || s.Last.Before(*s.Cells[0].Ended) {
		t.Errorf("%+v", s)
	}

	// Another process begins the second cell again and is stopped in it.
	ctx, stop := context.WithCancel(t.Context())
	f.say, f.fail, f.hang = func(what string) {
		if what == "run "+two {
			stop()
		}
	}, nil, "run"
	if _, err := do(ctx, reopen(t, store), f, nil); !errors.Is(err, run.ErrInterrupted) {
		t.Fatalf("control: %v", err)
	}
	if s, cells := standing(t, store.Dir()); cells != "finished, interrupted, waiting, waiting" || len(s.Left) != 0 {
		t.Errorf("after it was stopped: %q, %+v", cells, s)
	}

	f.say, f.hang = nil, ""
	if _, err := do(t.Context(), reopen(t, store), f, nil); err != nil {
		t.Fatal(err)
	}
	s, cells = standing(t, store.Dir())
	if cells != "finished, finished, finished, not run" || s.State != run.StateComplete || s.Cells[3].Why != "Nobody has it yet." || s.Cells[1].Attempt < 2 {
		t.Errorf("at the end: %q, %+v", cells, s)
	}
}

func TestACellThatIsDoneAgainIsNotFinished(t *testing.T) {
	d := declare(t)
	store := create(t, d)
	f := &fake{d: d, fail: map[string]error{"run " + three: errors.New("no")}}
	if _, err := do(t.Context(), store, f, nil); err == nil {
		t.Fatal("control: it must stay open")
	}
	f.change, f.fail = func(inputs *matrix.Inputs) { inputs.Harness = "other" }, map[string]error{"run " + one: errors.New("broken")}
	if _, err := do(t.Context(), reopen(t, store), f, nil); err == nil {
		t.Fatal("control: it must stay open")
	}
	if s, cells := standing(t, store.Dir()); cells != "failed, finished, failed, waiting" || !strings.Contains(s.Cells[0].Why, "broken") || s.Cells[0].Attempt != 2 {
		t.Errorf("%q, %+v", cells, s.Cells[0])
	}
}

func TestLookingChangesNothingAndRefusesWhatIsNoRun(t *testing.T) {
	d := declare(t)
	store := create(t, d)
	journal := filepath.Join(store.Dir(), "journal.jsonl")
	before, err := os.ReadFile(journal)
	if err != nil {
		t.Fatal(err)
	}
	if err := store.Abandon(); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(journal, append(before, `{"seq":`...), 0o644); err != nil { // a line that is being written
		t.Fatal(err)
	}
	if s, _ := standing(t, store.Dir()); s.State != run.StateInterrupted || time.Since(s.Last) > time.Hour {
		t.Errorf("%+v", s)
	}
	after, err := os.ReadFile(journal)
	if err != nil || len(after) != len(before)+7 {
		t.Errorf("the journal was changed: %v", err)
	}
	if _, err := run.Look(t.TempDir()); !errors.Is(err, os.ErrNotExist) || !strings.Contains(err.Error(), "no run directory") {
		t.Errorf("%v", err)
	}
	if err := os.WriteFile(journal, append([]byte("{]\n"), before...), 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := run.Look(store.Dir()); err == nil || !strings.Contains(err.Error(), "line 1 of the journal is damaged") {
		t.Errorf("%v", err)
	}
}

func TestLeftPlacesAreRemovedWithoutGoingOn(t *testing.T) {
	d := declare(t)
	store := create(t, d)
	f := &fake{d: d, places: t.TempDir(), fail: map[string]error{"teardown " + one + "-1": errors.New("busy")}}
	if _, err := do(t.Context(), store, f, nil); err == nil {
		t.Fatal("control: the place must stay")
	}
	f.calls = nil
	again := reopen(t, store)
	quiet := func(string, ...any) {}
	if err := run.RemoveLeftovers(t.Context(), again, f, quiet); err == nil || !strings.Contains(err.Error(), "busy") || len(run.Leftovers(again)) != 1 {
		t.Errorf("a place that cannot be removed: %v, %q", err, run.Leftovers(again))
	}
	f.fail = nil
	if err := run.RemoveLeftovers(t.Context(), again, f, quiet); err != nil || len(run.Leftovers(again)) != 0 {
		t.Errorf("%v, %q", err, run.Leftovers(again))
	}
	if left, _ := os.ReadDir(f.places); len(left) != 0 || slices.Contains(f.calls, "run "+two) {
		t.Errorf("%v after %q", left, f.calls)
	}
	if err := again.Abandon(); err != nil {
		t.Fatal(err)
	}
	if said, err := do(t.Context(), reopen(t, store), f, nil); err != nil {
		t.Error(err)
	} else {
		says(t, said, "kept      "+one)
	}
}
