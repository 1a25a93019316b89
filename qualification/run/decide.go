package run

import (
	"encoding/json"
	"fmt"
	"strings"

	"ptah.run/ptah/qualification/evidence"
	"ptah.run/ptah/qualification/evidence/dossier"
	"ptah.run/ptah/qualification/matrix"
)

// Decision says whether a cell is run, and why.
type Decision struct {
	Cell    string
	Kept    bool
	Attempt int    // that is kept, or that will be made
	Why     string // of a cell that is done again
}

// String is one line for a person.
func (d Decision) String() string {
	switch {
	case d.Kept:
		return fmt.Sprintf("kept      %s: it is finished, and what goes into it is unchanged", d.Cell)
	case d.Why != "":
		return fmt.Sprintf("redone    %s: %s", d.Cell, d.Why)
	default:
		return fmt.Sprintf("running   %s", d.Cell)
	}
}

// Decide says what becomes of a cell whose present inputs are given: a finished attempt is kept where it was made from
// the same inputs, and whatever else there is is done again.
func Decide(store *evidence.Run, inputs matrix.Inputs) (Decision, error) {
	key := inputs.Cell.Key
	decision := Decision{Cell: key, Attempt: 1}
	for _, attempt := range store.Attempts() {
		if attempt.Key == key {
			decision.Attempt = max(decision.Attempt, attempt.Attempt+1)
		}
	}
	finished, ok := store.FinishedCell(key)
	switch {
	case ok && finished.InputDigest == inputs.Digest():
		return Decision{Cell: key, Kept: true, Attempt: finished.Attempt}, nil
	case ok:
		before, err := dossier.InputsOf(store, finished)
		if err != nil {
			return decision, fmt.Errorf("read what went into the finished cell %s: %w", key, err)
		}
		decision.Why = strings.Join(before.Differences(inputs), "; ")
		if decision.Why == "" {
			decision.Why = "the form in which inputs are described changed"
		}
	default:
		decision.Why = earlier(store, key)
	}
	return decision, nil
}

// Messages of what the loop notes in the journal of the run.
const (
	noteFailed   = "cell failed"
	noteIntended = "place intended"
	noteRemoved  = "place removed"
)

// failure is why the harness could not run a cell.
type failure struct {
	Cell  string `json:"cell"`
	Error string `json:"error"`
}

// earlier says what became of the newest attempt at a cell that has no finished evidence, and nothing where there was
// none. An attempt counts from the moment at which its place was intended.
func earlier(store *evidence.Run, key string) string {
	said := ""
	for _, note := range store.Notes() {
		var failed failure
		var intended place
		switch {
		case note.Message == noteIntended && json.Unmarshal(note.Data, &intended) == nil && intended.Cell == key:
			said = "it was begun but never finished"
		case note.Message == noteFailed && json.Unmarshal(note.Data, &failed) == nil && failed.Cell == key:
			said = "it failed before: " + failed.Error
		}
	}
	return said
}
