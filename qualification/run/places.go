package run

import (
	"context"
	"encoding/json"
	"fmt"

	"ptah.run/ptah/qualification/evidence"
)

// place is a place that may exist.
type place struct {
	Cell  string `json:"cell,omitempty"`
	Place string `json:"place,omitempty"` // empty for one that is there already and stays
}

// PlaceError says that a place could not be removed. Nothing else is run beside one that was left, and a resumed run
// tries again.
type PlaceError struct {
	Place string
	Err   error
}

func (e *PlaceError) Error() string { return fmt.Sprintf("remove %s: %v", e.Place, e.Err) }

// Unwrap returns why.
func (e *PlaceError) Unwrap() error { return e.Err }

// intend notes a place before it can exist.
func (l *loop) intend(cell, name string) error {
	return l.Store.Note(noteIntended, place{Cell: cell, Place: name})
}

// remove takes a place away, also where the run is being stopped, but not beyond being stopped at once.
func (l *loop) remove(ctx context.Context, name string) error {
	if name == "" {
		return nil
	}
	teardown, cancel := context.WithCancel(context.WithoutCancel(ctx))
	defer cancel()
	defer context.AfterFunc(l.abort, cancel)()
	if err := l.Cells.TearDown(teardown, name); err != nil {
		return &PlaceError{Place: name, Err: err}
	}
	return l.Store.Note(noteRemoved, place{Place: name})
}

// Leftovers returns the places that an earlier process of the run may have left, in the order in which they were made.
func Leftovers(store *evidence.Run) []string { return leftovers(store.Notes()) }

// RemoveLeftovers removes these places without going on with the run. What is left after an error is tried again by the
// next call, or by the run when it goes on.
func RemoveLeftovers(ctx context.Context, store *evidence.Run, cells Cells, say func(format string, arguments ...any)) error {
	l := &loop{Options: Options{Store: store, Cells: cells, Say: say}, abort: context.Background()}
	return l.removeLeftovers(ctx)
}

func leftovers(notes []evidence.Note) []string {
	var left []string
	for _, note := range notes {
		var one place
		if note.Message != noteIntended && note.Message != noteRemoved || json.Unmarshal(note.Data, &one) != nil || one.Place == "" {
			continue
		}
		kept := left[:0:0]
		for _, name := range left {
			if name != one.Place {
				kept = append(kept, name)
			}
		}
		left = kept
		if note.Message == noteIntended {
			left = append(left, one.Place)
		}
	}
	return left
}

func (l *loop) removeLeftovers(ctx context.Context) error {
	for _, name := range Leftovers(l.Store) {
		if ctx.Err() != nil {
			return ErrInterrupted
		}
		l.Say("removing  %s, which an earlier process of this run left", name)
		if err := l.remove(ctx, name); err != nil {
			return err
		}
	}
	return nil
}
