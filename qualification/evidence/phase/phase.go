// Package phase is the harness's own account of the phases of a cell: when the process of each phase began and ended,
// how, and which scenarios it was to report in which order. A suite writes down its scenarios itself; that it wrote
// down all of them, in order, is what this account is compared with. It is pure; package cell writes it, package judge
// reads it.
//
// The account is one stream of a cell. A phase that began and whose end nobody wrote was cut short with its harness.
package phase

import (
	"encoding/json"
	"fmt"
	"io"
	"time"

	"ptah.run/ptah/qualification/evidence/stream"
)

// FileName is the name of the stream, relative to the cell.
const FileName = "phases.jsonl"

// Event says what a line of the account records.
type Event string

// Events of a phase.
const (
	Begun Event = "begun"
	Ended Event = "ended"
)

// Purpose says what a phase was run for.
type Purpose string

// Purposes. Only coverage shows anything: preparation is run for the fixtures that it leaves.
const (
	Coverage    Purpose = "coverage"
	Preparation Purpose = "preparation"
)

// Outcome is how the process of a phase ended.
type Outcome string

// Outcomes.
const (
	Completed   Outcome = "completed"   // it says that every test passed
	Failed      Outcome = "failed"      // it says that a test failed, or it died
	TimedOut    Outcome = "timed-out"   // it was ended because its time was up
	Unstartable Outcome = "unstartable" // it never ran
)

// Plan is what a phase was to do.
type Plan struct {
	Suite   string  `json:"suite"`
	Name    string  `json:"name"`
	Purpose Purpose `json:"purpose"`
	// Scenarios are those that the phase was to report, in the declared order. A preparation has only those up to the
	// boundary that the catalogue declares for it.
	Scenarios []string `json:"scenarios"`
	// Together are those of them that may run at the same time as their neighbours of this kind.
	Together []string `json:"together,omitempty"`
}

// Key names the phase within its cell.
func (p Plan) Key() string { return string(p.Purpose) + "/" + p.Suite + "/" + p.Name }

// Result is how a phase ended.
type Result struct {
	Outcome Outcome `json:"outcome"`
	Exit    int     `json:"exit"`              // of the process; -1 where a signal ended it or it never ran
	Message string  `json:"message,omitempty"` // for people
}

// Entry is one line of the account.
type Entry struct {
	Event  Event     `json:"event"`
	At     time.Time `json:"at"`
	Plan   Plan      `json:"plan"`
	Result *Result   `json:"result,omitempty"` // of an end
}

// Record is everything the account says about one phase. Result is nil for a phase whose end nobody wrote.
type Record struct {
	Plan   Plan      `json:"plan"`
	Start  time.Time `json:"start"`
	End    time.Time `json:"end"`
	Result *Result   `json:"result"`
}

// Account is the stream of a cell as it was read. Whole is false where the stream has no completeness record or one
// that does not fit; then Problem says so, and Records are what could be read.
type Account struct {
	Records []Record `json:"records"`
	Whole   bool     `json:"whole"`
	Problem string   `json:"problem,omitempty"`
	Digest  string   `json:"digest"` // of the stored stream
}

// Read returns the phases of an account in the order in which they began. Where the account is not whole it returns
// what could be read together with an error that wraps a defect of package stream.
func Read(r io.Reader) ([]Record, error) {
	var records []Record
	index := map[string]int{}
	_, err := stream.Read(r, func(line []byte) error {
		var entry Entry
		if err := json.Unmarshal(line, &entry); err != nil {
			return fmt.Errorf("%w: %w", stream.ErrMalformed, err)
		}
		if err := entry.Plan.check(); err != nil {
			return fmt.Errorf("%w: %w", stream.ErrMalformed, err)
		}
		at, known := index[entry.Plan.Key()]
		switch {
		case entry.Event == Begun && !known && entry.Result == nil:
			index[entry.Plan.Key()] = len(records)
			records = append(records, Record{Plan: entry.Plan, Start: entry.At})
		case entry.Event == Ended && known && records[at].Result == nil && entry.Result != nil && entry.Result.known():
			records[at].End, records[at].Result = entry.At, entry.Result
		default:
			return fmt.Errorf("%w: phase %s has a line %q out of place", stream.ErrMalformed, entry.Plan.Key(), entry.Event)
		}
		return nil
	})
	return records, err
}

func (p Plan) check() error {
	if p.Suite == "" || p.Name == "" || len(p.Scenarios) == 0 {
		return fmt.Errorf("a phase has a suite, a name and at least one scenario")
	}
	if p.Purpose != Coverage && p.Purpose != Preparation {
		return fmt.Errorf("phase %s has the unknown purpose %q", p.Name, p.Purpose)
	}
	return nil
}

func (r Result) known() bool {
	switch r.Outcome {
	case Completed, Failed, TimedOut, Unstartable:
		return true
	}
	return false
}
