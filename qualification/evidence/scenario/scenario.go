// Package scenario is the record of what a suite did: the entries of a ledger, and the scenarios they add up to. It is
// pure; package ledger writes entries, package judge reads records.
package scenario

import (
	"encoding/json"
	"fmt"
	"io"
	"time"

	"ptah.run/ptah/qualification/evidence/stream"
)

// Event says what a line of a ledger records.
type Event string

// Events of a scenario, in the order in which they can occur: one start, any number of the others, one end.
const (
	EventStart   Event = "start"
	EventObserve Event = "observe" // a raw reading
	EventAssert  Event = "assert"  // a comparison with its result
	EventWitness Event = "witness" // proof, taken from outside the product, that an injected fault took effect
	EventMeasure Event = "measure" // an interval during which something of a named population happened
	EventEnd     Event = "end"
)

// Outcome is how a scenario ended. There is no word for "skipped without a reason".
type Outcome string

// Outcomes.
const (
	OutcomePass   Outcome = "pass"
	OutcomeFail   Outcome = "fail"
	OutcomeNotRun Outcome = "not-run"
)

// Blame says whose failure a failed scenario is, as far as the suite can tell.
type Blame string

// Blames. A suite that compares what the product did with what it must do blames the product; a suite that could
// not do its own part says so instead.
const (
	BlameProduct        Blame = "product"
	BlameHarness        Blame = "harness"
	BlameInfrastructure Blame = "infrastructure"
	BlameUnknown        Blame = "unknown"
)

// Entry is one line of a ledger. Times are those of the machine that ran the suite.
type Entry struct {
	Event    Event           `json:"event"`
	At       time.Time       `json:"at"`
	Scenario string          `json:"scenario"`
	Key      string          `json:"key,omitempty"`
	Value    json.RawMessage `json:"value,omitempty"`
	Held     *bool           `json:"held,omitempty"`
	Outcome  Outcome         `json:"outcome,omitempty"`
	Blame    Blame           `json:"blame,omitempty"`
	Message  string          `json:"message,omitempty"`
	From     *time.Time      `json:"from,omitempty"`
	To       *time.Time      `json:"to,omitempty"`
}

// Observation is one raw reading or one witness of a scenario.
type Observation struct {
	At    time.Time       `json:"at"`
	Key   string          `json:"key"`
	Value json.RawMessage `json:"value"`
}

// Assertion is one comparison and whether it held.
type Assertion struct {
	At      time.Time `json:"at"`
	Key     string    `json:"key"`
	Held    bool      `json:"held"`
	Message string    `json:"message,omitempty"`
}

// Measurement is an interval during which one member of a population happened, such as one refresh.
type Measurement struct {
	Population string    `json:"population"`
	Subject    string    `json:"subject,omitempty"`
	From       time.Time `json:"from"`
	To         time.Time `json:"to"`
}

// Record is everything a ledger says about one scenario. Ended is false for a scenario that began and whose end
// nobody wrote: its process died or ran out of time.
type Record struct {
	Scenario     string        `json:"scenario"`
	Start        time.Time     `json:"start"`
	End          time.Time     `json:"end"`
	Ended        bool          `json:"ended"`
	Outcome      Outcome       `json:"outcome,omitempty"`
	Blame        Blame         `json:"blame,omitempty"`
	Message      string        `json:"message,omitempty"`
	Observations []Observation `json:"observations,omitempty"`
	Assertions   []Assertion   `json:"assertions,omitempty"`
	Witnesses    []Observation `json:"witnesses,omitempty"`
	Measurements []Measurement `json:"measurements,omitempty"`
}

// Read returns the scenarios of a ledger in the order in which they started. Where the ledger is not whole it
// returns what could be read together with an error that wraps a defect of package stream.
func Read(r io.Reader) ([]Record, error) {
	book := &book{index: map[string]int{}}
	_, err := stream.Read(r, func(line []byte) error {
		var entry Entry
		if err := json.Unmarshal(line, &entry); err != nil {
			return fmt.Errorf("%w: %w", stream.ErrMalformed, err)
		}
		return book.add(entry)
	})
	return book.records, err
}

type book struct {
	records []Record
	index   map[string]int
}

func (b *book) add(entry Entry) error {
	if entry.Scenario == "" {
		return fmt.Errorf("an entry names no scenario: %w", stream.ErrMalformed)
	}
	at, known := b.index[entry.Scenario]
	if entry.Event == EventStart {
		if known {
			return fmt.Errorf("scenario %q starts twice: %w", entry.Scenario, stream.ErrMalformed)
		}
		b.index[entry.Scenario] = len(b.records)
		b.records = append(b.records, Record{Scenario: entry.Scenario, Start: entry.At})
		return nil
	}
	if !known || b.records[at].Ended {
		return fmt.Errorf("scenario %q has an entry outside its start and end: %w", entry.Scenario, stream.ErrMalformed)
	}
	return b.records[at].add(entry)
}

func (r *Record) add(entry Entry) error {
	switch entry.Event {
	case EventObserve:
		r.Observations = append(r.Observations, Observation{At: entry.At, Key: entry.Key, Value: entry.Value})
	case EventWitness:
		r.Witnesses = append(r.Witnesses, Observation{At: entry.At, Key: entry.Key, Value: entry.Value})
	case EventAssert:
		held := entry.Held != nil && *entry.Held
		r.Assertions = append(r.Assertions, Assertion{At: entry.At, Key: entry.Key, Held: held, Message: entry.Message})
	case EventMeasure:
		if entry.From == nil || entry.To == nil || entry.To.Before(*entry.From) || entry.Key == "" {
			return fmt.Errorf("scenario %q has a measurement without a name or a proper interval: %w", r.Scenario, stream.ErrMalformed)
		}
		r.Measurements = append(r.Measurements, Measurement{Population: entry.Key, Subject: entry.Message, From: *entry.From, To: *entry.To})
	case EventEnd:
		switch entry.Outcome {
		case OutcomePass, OutcomeFail, OutcomeNotRun:
		default:
			return fmt.Errorf("scenario %q ends with the unknown outcome %q: %w", r.Scenario, entry.Outcome, stream.ErrMalformed)
		}
		r.Ended, r.End = true, entry.At
		r.Outcome, r.Blame, r.Message = entry.Outcome, entry.Blame, entry.Message
	default:
		return fmt.Errorf("scenario %q has an entry of the unknown kind %q: %w", r.Scenario, entry.Event, stream.ErrMalformed)
	}
	return nil
}
