// Package run is the loop over the cells of a run: it prepares a place for each cell, runs the cell there and takes the
// place away, in the declared order, and can be stopped and killed at any moment. What is done is in the journal of the
// run; a second process goes on from there. It knows nothing of clusters: whoever calls it brings Cells.
package run

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"ptah.run/ptah/qualification/evidence"
	"ptah.run/ptah/qualification/evidence/dossier"
	"ptah.run/ptah/qualification/matrix"
)

// Cells is what the loop runs. Contexts end when the run is to stop; a method then returns as soon as it leaves nothing
// half done.
type Cells interface {
	// Inputs says what would go into the cell if it ran now. It changes nothing that a cell could see.
	Inputs(ctx context.Context, cell matrix.Cell) (matrix.Inputs, error)
	// Place names the place in which an attempt at the cell will run, a name that no other has. It is empty where the
	// cell runs in a place that is there already and stays.
	Place(cell matrix.Cell, attempt int) string
	// Prepare makes the place.
	Prepare(ctx context.Context, cell matrix.Cell, place string) error
	// Run runs the cell into the run and finishes it. An error means that the attempt is worth nothing.
	Run(ctx context.Context, store *evidence.Run, cell matrix.Cell, place string, inputs matrix.Inputs) error
	// TearDown removes a place at whatever moment its making or its use stopped. A place that is not there is no error.
	TearDown(ctx context.Context, place string) error
}

// Item is one cell of the declared set. NotRun says why it is not to be run, and is empty for one that is.
type Item struct {
	Cell   matrix.Cell
	NotRun string
}

// Options say what to run.
type Options struct {
	Store *evidence.Run
	Items []Item
	Cells Cells
	// KeepGoing goes on with the next cell after one that the harness could not run. The run is not complete then.
	KeepGoing bool
	// Say takes one line for each cell and for what happens to places.
	Say func(format string, arguments ...any)
}

// Errors of Do. A run that ended with one of them is resumed by opening it again.
var (
	// ErrInterrupted: the run was told to stop, and everything it had made is taken away.
	ErrInterrupted = errors.New("the run was interrupted")
	// ErrAborted: the run was told to stop at once. What it had made stays until the run is resumed.
	ErrAborted = errors.New("the run was stopped at once; what it had made is removed when it is resumed")
)

// Do runs every cell that has no finished evidence for its present inputs. It stops after the cell under way was taken
// down when ctx ends, and at once when abort ends. Where every cell is done the run is closed and its root returned;
// otherwise it is left to be opened again.
func Do(ctx, abort context.Context, options Options) (root string, err error) {
	type end struct {
		root string
		err  error
	}
	ended := make(chan end, 1)
	go func() {
		l := &loop{Options: options, abort: abort}
		root, err := l.run(ctx)
		ended <- end{root, err}
	}()
	select {
	case e := <-ended:
		return e.root, e.err
	case <-abort.Done():
		// The work may be where it cannot be stopped. Whatever it still writes, the journal takes whole lines only.
		return "", errors.Join(ErrAborted, options.Store.Abandon())
	}
}

type loop struct {
	Options
	abort context.Context
}

func (l *loop) run(ctx context.Context) (string, error) {
	err := l.refuseUndeclared()
	if err == nil {
		err = l.removeLeftovers(ctx)
	}
	if err == nil {
		err = l.all(ctx)
	}
	if err != nil {
		return "", errors.Join(err, l.Store.Abandon())
	}
	return l.Store.Close()
}

// UndeclaredError says that a run holds finished evidence of a cell that is not to be run any more. Closed as it is, the
// run would be judged with evidence that nobody asked for.
type UndeclaredError struct{ Run, Cell string }

func (e *UndeclaredError) Error() string {
	return fmt.Sprintf("the run %s has finished the cell %s, which is not among the cells to run now: begin a new run", e.Run, e.Cell)
}

func (l *loop) refuseUndeclared() error {
	for _, attempt := range l.Store.Attempts() {
		declared := slices.ContainsFunc(l.Items, func(item Item) bool { return item.Cell.Key == attempt.Key && item.NotRun == "" })
		if attempt.Finished && !declared {
			return &UndeclaredError{Run: l.Store.ID(), Cell: attempt.Key}
		}
	}
	return nil
}

// oneLine makes one line of an error that was joined of several.
func oneLine(err error) string { return strings.ReplaceAll(err.Error(), "\n", "; ") }

// all runs the cells in order. With KeepGoing the errors of cells are returned together after the last one.
func (l *loop) all(ctx context.Context) error {
	var failed []error
	for _, item := range l.Items {
		if ctx.Err() != nil {
			return errors.Join(ErrInterrupted, errors.Join(failed...))
		}
		err := l.item(ctx, item)
		switch {
		case err == nil:
		case ctx.Err() != nil:
			return errors.Join(ErrInterrupted, err, errors.Join(failed...))
		case !l.KeepGoing || errors.As(err, new(*PlaceError)):
			return errors.Join(append(failed, err)...)
		default:
			l.Say("failed    %s: %s", item.Cell.Key, oneLine(err))
			failed = append(failed, err)
		}
	}
	return errors.Join(failed...)
}

func (l *loop) item(ctx context.Context, item Item) error {
	key := item.Cell.Key
	if item.NotRun != "" {
		l.Say("not run   %s: %s", key, item.NotRun)
		return dossier.NotRun(l.Store, key, item.NotRun)
	}
	inputs, err := l.Cells.Inputs(ctx, item.Cell)
	if err != nil {
		return fmt.Errorf("find out what goes into the cell %s: %w", key, err)
	}
	decision, err := Decide(l.Store, inputs)
	if err != nil {
		return err
	}
	l.Say("%s", decision)
	if decision.Kept {
		return nil
	}
	return l.cell(ctx, item.Cell, decision.Attempt, inputs)
}

// cell runs one cell in a place of its own, which is gone afterwards whatever happened.
func (l *loop) cell(ctx context.Context, cell matrix.Cell, attempt int, inputs matrix.Inputs) error {
	place := l.Cells.Place(cell, attempt)
	err := l.intend(cell.Key, place)
	if err != nil {
		return err
	}
	if place != "" {
		err = l.Cells.Prepare(ctx, cell, place)
	}
	if err != nil {
		err = fmt.Errorf("prepare the cell %s: %w", cell.Key, err)
	} else if err = l.Cells.Run(ctx, l.Store, cell, place, inputs); err != nil {
		err = fmt.Errorf("run the cell %s: %w", cell.Key, err)
	} else if finished, done := l.Store.FinishedCell(cell.Key); !done || finished.InputDigest != inputs.Digest() {
		err = fmt.Errorf("run the cell %s: it ended without an error and is not finished", cell.Key)
	}
	if err != nil && ctx.Err() == nil {
		err = errors.Join(err, l.Store.Note(noteFailed, failure{Cell: cell.Key, Error: oneLine(err)}))
	}
	return errors.Join(err, l.remove(ctx, place))
}
