// Package ledger is what a suite writes while it runs: one line as each thing happens, so that a suite that dies
// leaves what it had proven. A suite is its own process; it opens the ledger in the staging directory named by
// PTAH_EVIDENCE_DIR, and ptah-qualify imports that directory into the evidence store afterwards.
//
//	book, err := ledger.OpenFromEnvironment()        // in TestMain or the setup of the suite
//	defer book.Close()                               // writes the completeness record
//
//	s := book.Scenario("converge-from-empty-after-approval")
//	s.Observe("phase", status.Phase)                 // raw readings
//	s.Witness("table-dropped", tables)               // proof that the injected fault took effect
//	s.Assert("ready", ready, "condition Ready is True within 60 s")
//	s.Measure("apply", name, dispatched, proven)     // an interval to count requests in
//	s.End()                                          // pass if every assertion held, else fail; or Pass, Fail, NotRun
//
// A scenario without an end, and a ledger without Close, are visible to the judge and never count as a pass.
// The package decides nothing: judging is done from the ledger, by package judge.
package ledger

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"ptah.run/ptah/qualification/evidence/scenario"
	"ptah.run/ptah/qualification/evidence/stream"
)

// EnvironmentVariable names the staging directory of a suite.
const EnvironmentVariable = "PTAH_EVIDENCE_DIR"

// FileName is the name of the ledger in the staging directory. Every other regular file there is imported as a raw
// file of the suite.
const FileName = "ledger.jsonl"

// Ledger writes the scenarios of one suite. It is safe for concurrent use.
type Ledger struct {
	dir string
	now func() time.Time

	mutex     sync.Mutex
	file      io.WriteCloser
	stream    *stream.Writer
	scenarios map[string]*Scenario
	err       error
	closed    bool
}

// Open creates the ledger in dir, which must exist. A directory that already holds a ledger is refused: evidence
// is never overwritten.
func Open(dir string) (*Ledger, error) {
	path := filepath.Join(dir, FileName)
	file, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
	if errors.Is(err, os.ErrExist) {
		return nil, fmt.Errorf("open the ledger: %s exists already, use a new staging directory for each run of a suite", path)
	}
	if err != nil {
		return nil, fmt.Errorf("open the ledger: %w", err)
	}
	return newLedger(dir, file, time.Now), nil
}

// OpenFromEnvironment opens the ledger in the directory named by PTAH_EVIDENCE_DIR. Where the variable is not set,
// which is a person running one suite by hand, it returns a ledger that keeps nothing.
func OpenFromEnvironment() (*Ledger, error) {
	dir := os.Getenv(EnvironmentVariable)
	if dir == "" {
		return newLedger("", discard{}, time.Now), nil
	}
	return Open(dir)
}

func newLedger(dir string, file io.WriteCloser, now func() time.Time) *Ledger {
	return &Ledger{dir: dir, now: now, file: file, stream: stream.NewWriter(file), scenarios: map[string]*Scenario{}}
}

type discard struct{}

// Write takes everything and keeps nothing.
func (discard) Write(data []byte) (int, error) { return len(data), nil }

// Close has nothing to close.
func (discard) Close() error { return nil }

// Dir is the staging directory, in which a suite may leave raw files. It is empty for a ledger that keeps nothing.
func (l *Ledger) Dir() string { return l.dir }

// Scenario starts a scenario. The name is the one the suite catalogue declares; starting one name twice makes the
// ledger fail on Close.
func (l *Ledger) Scenario(name string) *Scenario {
	s := &Scenario{ledger: l, name: name}
	l.mutex.Lock()
	defer l.mutex.Unlock()
	if _, twice := l.scenarios[name]; twice || name == "" {
		l.fail(fmt.Errorf("scenario %q has no name or was started twice", name))
		return s
	}
	l.scenarios[name] = s
	l.append(scenario.Entry{Event: scenario.EventStart, Scenario: name})
	return s
}

// Close writes the completeness record and returns the first error of anything written before. A scenario that
// has not ended stays so.
func (l *Ledger) Close() error {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	if l.closed {
		return l.err
	}
	l.closed = true
	if l.err == nil {
		_, l.err = l.stream.Close()
	}
	l.sync()
	return errors.Join(l.err, l.file.Close())
}

// sync waits under the mutex until what was written is on disk: a scenario that ended stays ended whatever comes.
func (l *Ledger) sync() {
	if syncer, ok := l.file.(interface{ Sync() error }); ok && l.err == nil {
		if err := syncer.Sync(); err != nil {
			l.fail(fmt.Errorf("keep the ledger: %w", err))
		}
	}
}

// append writes under the mutex. An error is kept: the stream is then never closed as whole.
func (l *Ledger) append(entry scenario.Entry) {
	if l.err != nil {
		return
	}
	if l.closed {
		l.fail(fmt.Errorf("scenario %q wrote to a closed ledger", entry.Scenario))
		return
	}
	entry.At = l.now().UTC()
	if err := l.stream.Append(entry); err != nil {
		l.fail(err)
	}
}

func (l *Ledger) fail(err error) {
	if l.err == nil {
		l.err = err
	}
}

// Scenario is one scenario of a suite. Its methods may be called from several goroutines.
type Scenario struct {
	ledger *Ledger
	name   string
	ended  bool
	failed []string
}

// Observe records a raw reading. The value is stored as JSON, or as its text where it has no JSON form. Never
// hand over a credential: evidence is published.
func (s *Scenario) Observe(key string, value any) { s.record(scenario.EventObserve, key, value) }

// Witness records proof that an injected fault took effect, read from where the fault is and not from the product.
// A scenario that declares a fault and has no witness voids its cell.
func (s *Scenario) Witness(key string, value any) { s.record(scenario.EventWitness, key, value) }

func (s *Scenario) record(event scenario.Event, key string, value any) {
	raw, err := json.Marshal(value)
	if err != nil {
		raw, _ = json.Marshal(fmt.Sprint(value)) // a string always encodes
	}
	s.write(scenario.Entry{Event: event, Key: key, Value: raw})
}

// Assert records a comparison and returns whether it held, so that a caller may stop. The message says what was
// expected and, where it did not hold, what was found.
func (s *Scenario) Assert(key string, held bool, message string) bool {
	s.write(scenario.Entry{Event: scenario.EventAssert, Key: key, Held: &held, Message: message})
	if !held {
		s.ledger.mutex.Lock()
		s.failed = append(s.failed, key+": "+message)
		s.ledger.mutex.Unlock()
	}
	return held
}

// Measure records that one member of a population happened in an interval, for example one "refresh" of subject
// "orders". Numbers for it, such as the requests in that time, are computed from raw evidence by the judge.
func (s *Scenario) Measure(population, subject string, from, to time.Time) {
	from, to = from.UTC(), to.UTC()
	s.write(scenario.Entry{Event: scenario.EventMeasure, Key: population, Message: subject, From: &from, To: &to})
}

// Pass ends the scenario as passed. Where an assertion did not hold it ends as failed all the same.
func (s *Scenario) Pass() { s.End() }

// End ends the scenario: passed if every assertion held, else failed with the assertions that did not.
func (s *Scenario) End() {
	s.ledger.mutex.Lock()
	failed := strings.Join(s.failed, "; ")
	s.ledger.mutex.Unlock()
	if failed != "" {
		s.end(scenario.Entry{Outcome: scenario.OutcomeFail, Blame: scenario.BlameProduct, Message: failed})
		return
	}
	s.end(scenario.Entry{Outcome: scenario.OutcomePass})
}

// Fail ends the scenario as failed by the product.
func (s *Scenario) Fail(message string) {
	s.end(scenario.Entry{Outcome: scenario.OutcomeFail, Blame: scenario.BlameProduct, Message: message})
}

// FailBlaming ends the scenario as failed with another blame, for example when a fixture of the harness broke.
func (s *Scenario) FailBlaming(blame scenario.Blame, message string) {
	s.end(scenario.Entry{Outcome: scenario.OutcomeFail, Blame: blame, Message: message})
}

// NotRun ends the scenario as not run. The reason is a sentence for the reader of the report.
func (s *Scenario) NotRun(reason string) {
	s.end(scenario.Entry{Outcome: scenario.OutcomeNotRun, Message: reason})
}

// end writes the end once. The first one counts, so that a deferred End is harmless after Fail or NotRun.
func (s *Scenario) end(entry scenario.Entry) {
	entry.Event, entry.Scenario = scenario.EventEnd, s.name
	s.ledger.mutex.Lock()
	defer s.ledger.mutex.Unlock()
	if s.ended {
		return
	}
	s.ledger.append(entry)
	s.ledger.sync()
	s.ended = true
}

func (s *Scenario) write(entry scenario.Entry) {
	entry.Scenario = s.name
	s.ledger.mutex.Lock()
	defer s.ledger.mutex.Unlock()
	if s.ended {
		s.ledger.fail(fmt.Errorf("scenario %q wrote after its end", s.name))
		return
	}
	s.ledger.append(entry)
}
