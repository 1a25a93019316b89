// Package verdict is the vocabulary of judgement: states, causes and typed reasons, and the one function that
// aggregates them. It is pure.
//
// Only pass satisfies anything. An empty set is never a pass. Adding a verdict to a set that is not empty can never
// improve the aggregate, and the order of the set does not matter. So the verdicts form a lattice: states from pass
// down to fail, causes within each state from the harness to the product, and Aggregate is its meet.
package verdict

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// State is what a judgement came to.
type State string

// States, from best to worst.
const (
	Pass         State = "pass"
	NotRun       State = "not-run"      // nothing was tried, for a stated reason
	Inconclusive State = "inconclusive" // something was tried, and the evidence decides nothing
	Void         State = "void"         // the evidence must not be used, for example because a fault did not take effect
	Fail         State = "fail"
)

// Cause says whose doing a verdict other than pass is.
type Cause string

// Causes. Which of them a failure has decides who acts on it, so unknown is a cause of its own and never guessed away.
const (
	NoCause        Cause = ""
	Harness        Cause = "harness"
	Infrastructure Cause = "infrastructure"
	Unknown        Cause = "unknown"
	Product        Cause = "product"
)

// Code is the machine-readable name of a reason.
type Code string

// Codes of reasons.
const (
	EmptySet           Code = "empty-set"
	BoundExceeded      Code = "bound-exceeded"
	TooFewSamples      Code = "too-few-samples"
	NoSamples          Code = "no-samples"
	AssertionFailed    Code = "assertion-failed"
	ScenarioFailed     Code = "scenario-failed"
	ScenarioNotEnded   Code = "scenario-not-ended"
	ScenarioNotRun     Code = "scenario-not-run"
	ScenarioMissing    Code = "scenario-missing"
	ScenarioForeign    Code = "scenario-not-declared"
	WitnessMissing     Code = "witness-missing"
	OutcomeContradicts Code = "outcome-contradicts-assertions"
	LedgerMissing      Code = "ledger-missing"
	LedgerNotWhole     Code = "ledger-not-whole"
	AuditMissing       Code = "audit-missing"
	AuditIncomplete    Code = "audit-incomplete"
	MetricUnavailable  Code = "metric-unavailable"
	CellMissing        Code = "cell-missing"
	CellForeign        Code = "cell-not-declared"
	InputsDiffer       Code = "inputs-differ"
	NoEvidence         Code = "no-evidence-declared"
	FaultOverlaps      Code = "fault-overlaps"

	SourceMissing   Code = "source-missing"   // the cell kept no readings of what is asked for
	SourceNotWhole  Code = "source-not-whole" // the readings were cut, altered or reordered
	ReadingFailed   Code = "reading-failed"   // a reading inside of the window failed
	ReadingsGap     Code = "readings-gap"     // nobody looked for too long
	SeriesMissing   Code = "series-missing"   // a process does not report what is asked for, which is not zero
	ProcessMissing  Code = "process-missing"  // fewer or more processes were read than the profile declares
	CounterReset    Code = "counter-reset"    // a counter began anew, and what it had counted last was not read
	Undecided       Code = "undecided"        // the bound lies between the least and the most that it can have been
	WindowTooShort  Code = "window-too-short" // the run ended before what the profile declares
	Unreachable     Code = "target-unreachable"
	FaultMissing    Code = "fault-missing"      // no interval of a fault is recorded
	StaleAlert      Code = "stale-notification" // the alert was on before the fault began
	AlertMissing    Code = "alert-not-delivered"
	PhaseEndedEarly Code = "phase-ended-early"
	OutOfOrder      Code = "scenario-out-of-order"
	Preparation     Code = "preparation-is-no-coverage"
	DriverBusy      Code = "driver-was-the-bottleneck"
	DriverUnknown   Code = "driver-load-unknown"
)

// Reason is one reason for a verdict other than pass. Subject names what it is about: a scenario, a file, a target.
type Reason struct {
	Code    Code   `json:"code"`
	Subject string `json:"subject,omitempty"`
	Message string `json:"message"`
}

// Verdict is a state with its cause and reasons. The zero Verdict is not valid; use the constructors.
type Verdict struct {
	State   State    `json:"state"`
	Cause   Cause    `json:"cause,omitempty"`
	Reasons []Reason `json:"reasons,omitempty"`
}

// Passed is the verdict pass.
func Passed() Verdict { return Verdict{State: Pass} }

// New returns a verdict other than pass with one reason.
func New(state State, cause Cause, code Code, subject, format string, arguments ...any) Verdict {
	reason := Reason{Code: code, Subject: subject, Message: fmt.Sprintf(format, arguments...)}
	return Verdict{State: state, Cause: cause, Reasons: []Reason{reason}}
}

// Satisfies says whether the verdict satisfies a requirement. Only pass does, and a pass has neither cause nor reason.
func (v Verdict) Satisfies() bool {
	return v.State == Pass && v.Cause == NoCause && len(v.Reasons) == 0
}

// String returns the state, and the cause where there is one.
func (v Verdict) String() string {
	if v.Cause == NoCause {
		return string(v.State)
	}
	return string(v.State) + " (" + string(v.Cause) + ")"
}

// Aggregate returns the worst state of a set, the gravest cause among the verdicts of that state, and all reasons.
// The aggregate of nothing is not-run. What contradicts itself counts as void: a state this package does not know, and a
// pass that has a cause or a reason.
func Aggregate(verdicts ...Verdict) Verdict {
	if len(verdicts) == 0 {
		return New(NotRun, Unknown, EmptySet, "", "nothing was judged, and nothing is never a pass")
	}
	result := Verdict{State: Pass}
	for _, v := range verdicts {
		v = v.normal()
		if Worse(v, result) {
			result.State, result.Cause = v.State, v.Cause
		}
		result.Reasons = append(result.Reasons, v.Reasons...)
	}
	slices.SortFunc(result.Reasons, compareReasons)
	result.Reasons = slices.Compact(result.Reasons)
	return result
}

// Worse says whether a is worse than b: a worse state, or the same state with a graver cause.
func Worse(a, b Verdict) bool {
	a, b = a.normal(), b.normal()
	if rank(a.State) != rank(b.State) {
		return rank(a.State) > rank(b.State)
	}
	return gravity(a.Cause) > gravity(b.Cause)
}

// normal returns the verdict as it counts: a cause that nobody knows is unknown.
func (v Verdict) normal() Verdict {
	if rank(v.State) < 0 || (v.State == Pass && !v.Satisfies()) {
		v.State = Void
	}
	if gravity(v.Cause) < 0 || (v.State != Pass && v.Cause == NoCause) {
		v.Cause = Unknown
	}
	return v
}

func rank(state State) int {
	return slices.Index([]State{Pass, NotRun, Inconclusive, Void, Fail}, state)
}

func gravity(cause Cause) int {
	return slices.Index([]Cause{NoCause, Harness, Infrastructure, Unknown, Product}, cause)
}

func compareReasons(a, b Reason) int {
	return cmp.Or(strings.Compare(string(a.Code), string(b.Code)), strings.Compare(a.Subject, b.Subject), strings.Compare(a.Message, b.Message))
}
