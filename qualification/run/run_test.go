package run_test

import (
	"context"
	"errors"
	"fmt"
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
	"ptah.run/ptah/qualification/verdict"
)

func create(t *testing.T, d *declared) *evidence.Run {
	t.Helper()
	store, err := evidence.CreateRun(t.TempDir(), "run")
	if err != nil {
		t.Fatal(err)
	}
	if err := dossier.Begin(store, d.contents); err != nil {
		t.Fatal(err)
	}
	return store
}

func reopen(t *testing.T, store *evidence.Run) *evidence.Run {
	t.Helper()
	again, err := evidence.OpenRun(store.Dir())
	if err != nil {
		t.Fatal(err)
	}
	return again
}

func (d *declared) items() []run.Item {
	var items []run.Item
	for _, cell := range d.cells {
		items = append(items, run.Item{Cell: cell, NotRun: strings.Join(d.suites.NotRun(cell), "; ")})
	}
	return items
}

const (
	one   = "data-plane.one.postgresql-17"
	two   = "data-plane.two.postgresql-17"
	three = "data-plane.three.postgresql-17"
	four  = "data-plane.four.postgresql-17"
)

// do runs the items and returns what was said.
func do(ctx context.Context, store *evidence.Run, f *fake, change func(*run.Options)) (said []string, err error) {
	options := run.Options{Store: store, Items: f.d.items(), Cells: f, Say: func(format string, arguments ...any) { said = append(said, fmt.Sprintf(format, arguments...)) }}
	if change != nil {
		change(&options)
	}
	_, err = run.Do(ctx, context.Background(), options)
	return said, err
}

func says(t *testing.T, said []string, wanted ...string) {
	t.Helper()
	for _, want := range wanted {
		if !slices.ContainsFunc(said, func(line string) bool { return strings.Contains(line, want) }) {
			t.Errorf("nobody said %q in:\n%s", want, strings.Join(said, "\n"))
		}
	}
}

func TestEveryCellHasAPlaceOfItsOwnInTheDeclaredOrder(t *testing.T) {
	d := declare(t)
	f := &fake{d: d, places: t.TempDir()}
	store := create(t, d)
	said, err := do(t.Context(), store, f, nil)
	if err != nil {
		t.Fatal(err)
	}
	var want []string
	for _, key := range []string{one, two, three} {
		want = append(want, "prepare "+key+"-1", "run "+key, "teardown "+key+"-1")
	}
	if !slices.Equal(f.calls, want) {
		t.Errorf("%q", f.calls)
	}
	says(t, said, "running   "+one, "not run   "+four+": Nobody has it yet.")
	read, err := dossier.Load(store.Dir())
	if err != nil || len(read.Cells) != 3 {
		t.Fatalf("%v", err)
	}
	judgement := read.Judge()
	for _, cell := range judgement.Cells {
		want := verdict.Pass
		if cell.Cell.Key == four {
			want = verdict.NotRun
			if message := cell.Verdict.Reasons[0].Message; !strings.Contains(message, "Nobody has it yet.") {
				t.Errorf("the reason is lost: %s", message)
			}
		}
		if cell.Verdict.State != want {
			t.Errorf("%s: %s %+v", cell.Cell.Key, cell.Verdict, cell.Verdict.Reasons)
		}
	}
	if judgement.Verdict.State != verdict.NotRun {
		t.Errorf("a set with a cell that was not run is %s", judgement.Verdict)
	}
}

func TestAPlaceThatIsThereStays(t *testing.T) {
	d := declare(t)
	f := &fake{d: d}
	if _, err := do(t.Context(), create(t, d), f, nil); err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(f.calls, []string{"run " + one, "run " + two, "run " + three}) {
		t.Errorf("%q", f.calls)
	}
}

func TestAResumedRunKeepsWhatIsUnchangedAndSaysWhyItRedoesTheRest(t *testing.T) {
	d := declare(t)
	store := create(t, d)
	broken := errors.New("no such image\nanywhere")
	f := &fake{d: d, places: t.TempDir(), fail: map[string]error{"run " + three: broken}}
	if _, err := do(t.Context(), store, f, nil); !errors.Is(err, broken) {
		t.Fatalf("%v", err)
	}
	again := &fake{d: d, places: f.places, change: func(inputs *matrix.Inputs) {
		if inputs.Cell.Key == two {
			inputs.Chart = "sha256:new"
		}
	}}
	// A chart that differs from that of the release is refused by the store, so that this run ends there.
	said, err := do(t.Context(), reopen(t, store), again, nil)
	if err == nil {
		t.Fatal("control: inputs that name another chart than the release must be refused")
	}
	says(t, said, "kept      "+one, "redone    "+two+": the chart was sha256:4444", "and is sha256:new")

	last := &fake{d: d, places: f.places, change: func(inputs *matrix.Inputs) {
		if inputs.Cell.Key == two {
			inputs.Harness = "other"
		}
	}}
	said, err = do(t.Context(), reopen(t, store), last, nil)
	if err != nil {
		t.Fatal(err)
	}
	says(t, said, "kept      "+one, "redone    "+two+": the harness was ", "and is other", "redone    "+three+": it failed before: run the cell "+three+": no such image; anywhere")
	if !slices.Equal(last.calls[1:2], []string{"run " + two}) || len(last.calls) != 6 {
		t.Errorf("%q", last.calls)
	}
	read, err := dossier.Load(store.Dir())
	if err != nil {
		t.Fatal(err)
	}
	if cell, err := read.Cell(two); err != nil || cell.Evidence.Inputs.Harness != "other" {
		t.Errorf("the cell that was redone is judged by its old evidence: %+v, %v", cell.Evidence.Inputs, err)
	}
}

func TestAHarnessThatFailsStopsUnlessItIsToldToGoOn(t *testing.T) {
	for stage, keepGoing := range map[string]bool{"inputs": false, "prepare": false, "run": false, "inputs ": true, "prepare ": true, "run ": true} {
		d := declare(t)
		store := create(t, d)
		f := &fake{d: d, places: t.TempDir(), fail: map[string]error{strings.TrimSpace(stage) + " " + one: errors.New("no")}}
		said, err := do(t.Context(), store, f, func(o *run.Options) { o.KeepGoing = keepGoing })
		if err == nil || !strings.Contains(err.Error(), one) {
			t.Errorf("%s: %v", stage, err)
		}
		if ran := slices.Contains(f.calls, "run "+three); ran != keepGoing {
			t.Errorf("%s: %q", stage, f.calls)
		}
		if keepGoing {
			says(t, said, "failed    "+one)
		}
		if left, _ := os.ReadDir(f.places); len(left) != 0 {
			t.Errorf("%s: %v is left", stage, left)
		}
		if _, err := evidence.ReadRun(store.Dir()); !errors.Is(err, evidence.ErrNotClosed) {
			t.Errorf("%s: a run that lacks a cell was closed: %v", stage, err)
		}
	}
}

func TestNothingRunsBesideAPlaceThatCannotBeRemoved(t *testing.T) {
	d := declare(t)
	store := create(t, d)
	f := &fake{d: d, places: t.TempDir(), fail: map[string]error{"teardown " + one + "-1": errors.New("busy")}}
	_, err := do(t.Context(), store, f, func(o *run.Options) { o.KeepGoing = true })
	var place *run.PlaceError
	if !errors.As(err, &place) || place.Place != one+"-1" || slices.Contains(f.calls, "run "+two) {
		t.Fatalf("%v after %q", err, f.calls)
	}
	again := reopen(t, store)
	if left := run.Leftovers(again); !slices.Equal(left, []string{one + "-1"}) {
		t.Errorf("%q", left)
	}
	f.fail = nil
	said, err := do(t.Context(), again, f, nil)
	if err != nil {
		t.Fatal(err)
	}
	says(t, said, "removing  "+one+"-1", "kept      "+one)
}

func TestARunWithEvidenceThatNobodyAsksForIsNotGoneOnWith(t *testing.T) {
	d := declare(t)
	store := create(t, d)
	if _, err := do(t.Context(), store, &fake{d: d, fail: map[string]error{"run " + three: errors.New("no")}}, nil); err == nil {
		t.Fatal("control: it must stay open")
	}
	for name, items := range map[string][]run.Item{"gone": d.items()[1:], "planned": {{Cell: d.cells[0], NotRun: "planned"}, d.items()[1], d.items()[2]}} {
		f := &fake{d: d}
		_, err := do(t.Context(), reopen(t, store), f, func(o *run.Options) { o.Items = items })
		var undeclared *run.UndeclaredError
		if !errors.As(err, &undeclared) || undeclared.Cell != one || len(f.calls) != 0 {
			t.Errorf("%s: %v after %q", name, err, f.calls)
		}
	}
}

func TestACellThatDoesNotFinishIsAFailure(t *testing.T) {
	d := declare(t)
	store := create(t, d)
	if _, err := do(t.Context(), store, nothing(d), func(o *run.Options) { o.Cells = lazy{nothing(d)} }); err == nil || !strings.Contains(err.Error(), "is not finished") {
		t.Errorf("%v", err)
	}
	// The finished attempt of before does not stand for the one that was to be made.
	f := &fake{d: d, fail: map[string]error{"run " + two: errors.New("no")}}
	if _, err := do(t.Context(), reopen(t, store), f, nil); err == nil {
		t.Fatal("control: it must stay open")
	}
	other := &fake{d: d, change: func(inputs *matrix.Inputs) { inputs.Harness = "other" }}
	if _, err := do(t.Context(), reopen(t, store), other, func(o *run.Options) { o.Cells = lazy{other} }); err == nil || !strings.Contains(err.Error(), one+": it ended without an error and is not finished") {
		t.Errorf("%v", err)
	}
}

func nothing(d *declared) *fake { return &fake{d: d} }

// lazy says that it ran a cell and did nothing.
type lazy struct{ *fake }

func (lazy) Run(context.Context, *evidence.Run, matrix.Cell, string, matrix.Inputs) error { return nil }

func TestStoppingOnceTakesDownFirst(t *testing.T) {
	d := declare(t)
	store := create(t, d)
	ctx, stop := context.WithCancel(context.Background())
	f := &fake{d: d, places: t.TempDir(), hang: "run"}
	time.AfterFunc(100*time.Millisecond, stop)
	_, err := do(ctx, store, f, nil)
	if !errors.Is(err, run.ErrInterrupted) {
		t.Fatalf("%v", err)
	}
	if left, _ := os.ReadDir(f.places); len(left) != 0 || !slices.Contains(f.calls, "teardown "+one+"-1") {
		t.Errorf("%v is left after %q", left, f.calls)
	}
	f.hang = ""
	said, err := do(t.Context(), reopen(t, store), f, nil)
	if err != nil {
		t.Fatal(err)
	}
	says(t, said, "redone    "+one+": it was begun but never finished")
}

func TestStoppingBeforeTheFirstCellRunsNothing(t *testing.T) {
	d := declare(t)
	ctx, stop := context.WithCancel(context.Background())
	stop()
	f := &fake{d: d}
	if _, err := do(ctx, create(t, d), f, nil); !errors.Is(err, run.ErrInterrupted) || len(f.calls) != 0 {
		t.Errorf("%v after %q", err, f.calls)
	}
}

func TestStoppingAtOnceDoesNotWait(t *testing.T) {
	d := declare(t)
	store := create(t, d)
	ctx, stop := context.WithCancel(context.Background())
	abort, stopNow := context.WithCancel(context.Background())
	f := &fake{d: d, places: t.TempDir(), hang: "teardown"}
	time.AfterFunc(300*time.Millisecond, func() { stop(); stopNow() })
	_, err := run.Do(ctx, abort, run.Options{Store: store, Items: d.items(), Cells: f, Say: func(string, ...any) {}})
	if !errors.Is(err, run.ErrAborted) {
		t.Fatalf("%v", err)
	}
	again := reopen(t, store)
	defer func() { _ = again.Abandon() }()
	if left := run.Leftovers(again); len(left) != 1 {
		t.Errorf("%q", left)
	}
	if _, err := os.Stat(filepath.Join(f.places, one+"-1")); err != nil {
		t.Errorf("control: the place must be there: %v", err)
	}
}
