package run

import (
	"encoding/json"
	"slices"
	"time"

	"ptah.run/ptah/qualification/evidence"
	"ptah.run/ptah/qualification/evidence/dossier"
)

// State says where a run or one of its cells is.
type State string

// States of runs and cells.
const (
	StateRunning     State = "running"     // a process is at work on it
	StateInterrupted State = "interrupted" // it began, is not complete, and nobody is at work on it
	StateComplete    State = "complete"    // of a run: closed, and nothing is added any more
	StateFinished    State = "finished"    // of a cell: its evidence is whole
	StateFailed      State = "failed"      // of a cell: the harness could not run it
	StateNotRun      State = "not run"     // of a cell: this run is not to run it
	StateWaiting     State = "waiting"     // of a cell: the run has not come to it
)

// Standing says where a run is, by its journal. It judges nothing.
type Standing struct {
	ID      string         `json:"id"`
	Dir     string         `json:"dir"`
	State   State          `json:"state"`
	Profile string         `json:"profile,omitempty"` // empty where the run was stopped before it stored one
	Began   time.Time      `json:"began"`
	Last    time.Time      `json:"last"` // when something was journalled last
	Cells   []CellStanding `json:"cells"`
	Left    []string       `json:"left"` // places that are there, or may be
}

// CellStanding says where a cell of a run is.
type CellStanding struct {
	Cell    string     `json:"cell"`
	State   State      `json:"state"`
	Attempt int        `json:"attempt,omitempty"`
	Began   *time.Time `json:"began,omitempty"`
	Ended   *time.Time `json:"ended,omitempty"`
	Why     string     `json:"why,omitempty"` // of a cell that is not run or failed
}

// Count says how many cells are in a state.
func (s *Standing) Count(state State) int {
	count := 0
	for _, cell := range s.Cells {
		if cell.State == state {
			count++
		}
	}
	return count
}

// Look reads where the run in a folder is. It changes nothing and may be called while the run is being written.
func Look(dir string) (*Standing, error) {
	g, err := evidence.Peek(dir)
	if err != nil {
		return nil, err
	}
	s := &Standing{ID: g.Identity.ID, Dir: dir, State: StateInterrupted, Began: g.Identity.CreatedAt, Last: g.Last, Cells: []CellStanding{}, Left: append([]string{}, leftovers(g.Notes)...)}
	switch {
	case g.Closed:
		s.State = StateComplete
	case g.Alive:
		s.State = StateRunning
	}
	declared, cells, err := dossier.Asked(g)
	if err != nil {
		return nil, err
	}
	if declared != nil {
		s.Profile = declared.Name
	}
	reasons, err := dossier.Reasons(g)
	if err != nil {
		return nil, err
	}
	begun := beginnings(g)
	for _, cell := range cells {
		s.Cells = append(s.Cells, begun.standing(cell.Key, reasons[cell.Key]))
	}
	return s, nil
}

// beginning is the latest time at which a cell was taken up, and how that ended where it failed.
type beginning struct {
	at     time.Time
	failed *evidence.Note
	error  string
}

// account is what a glimpse says of cells.
type account struct {
	*evidence.Glimpse
	taken map[string]beginning
	last  string // the cell that was taken up last
}

func beginnings(g *evidence.Glimpse) account {
	a := account{Glimpse: g, taken: map[string]beginning{}}
	for i, note := range g.Notes {
		var intended place
		var failed failure
		switch {
		case note.Message == noteIntended && json.Unmarshal(note.Data, &intended) == nil:
			a.taken[intended.Cell], a.last = beginning{at: note.At}, intended.Cell
		case note.Message == noteFailed && json.Unmarshal(note.Data, &failed) == nil:
			one := a.taken[failed.Cell]
			one.failed, one.error = &g.Notes[i], failed.Error
			a.taken[failed.Cell] = one
		}
	}
	return a
}

func (a account) standing(key, notRun string) CellStanding {
	one := CellStanding{Cell: key, State: StateWaiting}
	taken, began := a.taken[key]
	finished, whole := a.Finished(key)
	switch {
	case whole && (!began || !finished.Ended.Before(taken.at)):
		one.State, one.Attempt, one.Began, one.Ended = StateFinished, finished.Attempt, &finished.Begun, &finished.Ended
		return one
	case !began:
		if notRun != "" {
			one.State, one.Why = StateNotRun, notRun
		}
		return one
	case taken.failed != nil:
		one.State, one.Why, one.Ended = StateFailed, taken.error, &taken.failed.At
	case a.Alive && key == a.last:
		one.State = StateRunning
	default:
		one.State = StateInterrupted
	}
	one.Began = &taken.at
	for _, attempt := range slices.Backward(a.Attempts) {
		if attempt.Key == key && !attempt.Begun.Before(taken.at) {
			one.Attempt = attempt.Attempt
			break
		}
	}
	return one
}
