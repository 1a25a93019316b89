// Package verdict is the vocabulary of judgement: states, causes and typed reasons, and the one function that
// aggregates them. It is pure.
//
// Only pass satisfies anything. An empty set is never a pass. Adding a verdict to a set can never improve the
// aggregate, and the order of the set does not matter.
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

// Satisfies says whether the verdict satisfies a requirement. Only pass does.
func (v Verdict) Satisfies() bool { return v.State == Pass }

// String returns the state, and the cause where there is one.
func (v Verdict) String() string {
	if v.Cause == NoCause {
		return string(v.State)
	}
	return string(v.State) + " (" + string(v.Cause) + ")"
}

// Aggregate returns the worst state of a set, the gravest cause among the verdicts of that state, and all reasons.
// The aggregate of nothing is not-run. A state this package does not know counts as void.
func Aggregate(verdicts ...Verdict) Verdict {
	if len(verdicts) == 0 {
		return New(NotRun, Unknown, EmptySet, "", "nothing was judged, and nothing is never a pass")
	}
	result := Verdict{State: Pass}
	for _, v := range verdicts {
		state := v.State
		if rank(state) < 0 {
			state = Void
		}
		switch {
		case rank(state) > rank(result.State):
			result.State, result.Cause = state, v.Cause
		case state == result.State && gravity(v.Cause) > gravity(result.Cause):
			result.Cause = v.Cause
		}
		result.Reasons = append(result.Reasons, v.Reasons...)
	}
	slices.SortFunc(result.Reasons, compareReasons)
	result.Reasons = slices.Compact(result.Reasons)
	return result
}

// Worse says whether a is worse than b: a worse state, or the same state with a graver cause.
func Worse(a, b Verdict) bool {
	if rank(a.State) != rank(b.State) {
		return rank(a.State) > rank(b.State)
	}
	return gravity(a.Cause) > gravity(b.Cause)
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
