// Package gate decides whether exactly the declared set of cells is there and passed. It is what CI calls last and
// what a release must show. It is pure: callers gather the cells, check their signatures and judge their evidence.
//
// It passes only if every declared cell is offered once, signed, under the declared profile, about one release, and
// passed with everything that the profile demands of it. Anything else refuses and names the cell. An empty set never
// passes, and making an offer worse never turns a refusal into a pass.
package gate

import (
	"fmt"

	"ptah.run/ptah/qualification/judge"
	"ptah.run/ptah/qualification/matrix"
	"ptah.run/ptah/qualification/profile"
	"ptah.run/ptah/qualification/verdict"
)

// Declared is what must be there.
type Declared struct {
	Cells      []Demand
	Profile    judge.ProfileIdentity
	Subject    map[string]string // digests that the cells must be about, by name; they must agree in any case
	Acceptance bool              // demand what an acceptance demands
	Uncovered  []string          // what the profile covers and this set does not have, in words
}

// Demand is a declared cell and what the profile demands of it.
type Demand struct {
	Cell  matrix.Cell
	Shown []string // names of scenarios and targets, as ScenarioName and TargetName give them
}

// ScenarioName is how a scenario is named among what a cell shows.
func ScenarioName(scenario string) string { return "scenario/" + scenario }

// TargetName is how a target is named among what a cell shows.
func TargetName(target string) string { return "target/" + target }

// Declare returns the cells of the given selections of matrices and what the profile demands of them. Find returns the
// matrix of a name. No selection means everything that the profile covers.
func Declare(p *profile.Profile, selections []profile.Coverage, find func(name string) (*matrix.Matrix, error)) (Declared, error) {
	declared := Declared{Profile: judge.Identify(p)}
	covered := map[string]string{} // cell to the selection it is of
	for _, coverage := range p.Coverage {
		cells, err := selectCells(coverage, find)
		if err != nil {
			return declared, err
		}
		for _, cell := range cells {
			covered[identity(cell)] = coverage.Matrix + " at depth " + coverage.Depth
		}
	}
	if len(selections) == 0 {
		selections = p.Coverage
	}
	for _, selection := range selections {
		cells, err := selectCells(selection, find)
		if err != nil {
			return declared, err
		}
		for _, cell := range cells {
			delete(covered, identity(cell))
			declared.Cells = append(declared.Cells, Demand{Cell: cell, Shown: shown(p, cell)})
		}
	}
	for _, coverage := range p.Coverage {
		name, missing := coverage.Matrix+" at depth "+coverage.Depth, 0
		for _, of := range covered {
			if of == name {
				missing++
			}
		}
		if missing > 0 {
			declared.Uncovered = append(declared.Uncovered, fmt.Sprintf("%d cells of %s", missing, name))
		}
	}
	return declared, nil
}

func selectCells(coverage profile.Coverage, find func(string) (*matrix.Matrix, error)) ([]matrix.Cell, error) {
	m, err := find(coverage.Matrix)
	if err != nil {
		return nil, err
	}
	return m.Select(coverage.Depth)
}

func shown(p *profile.Profile, cell matrix.Cell) []string {
	var names []string
	for _, s := range p.ScenariosOf(cell.Matrix, cell.Axes) {
		names = append(names, ScenarioName(s.Name))
	}
	for _, t := range p.TargetsOf(cell.Matrix, cell.Axes) {
		names = append(names, TargetName(t.ID))
	}
	return names
}

// Offered is one cell that somebody offers, or something that was offered and could not be read as a cell.
type Offered struct {
	Source  string // file or folder
	Cell    matrix.Cell
	Signed  bool // every signature is good and by a key that was given
	Profile judge.ProfileIdentity
	Subject map[string]string // name to digest
	Root    string            // digest of the evidence; empty where the cell left none and nothing is offered
	Cluster string            // UID
	Shown   []string          // names of what passed
	Verdict verdict.Verdict
	Unbound []string // what an acceptance must name and the cell does not
	Problem *Problem // nil for an offer that could be read and whose evidence, where given, fits
}

// Problem is why an offer cannot be used.
type Problem struct {
	Code    Code
	Message string
}

// Code is the machine-readable name of a refusal.
type Code string

// Codes of refusals.
const (
	EmptySet       Code = "empty-set"
	Missing        Code = "missing"
	Skipped        Code = "skipped"
	Duplicated     Code = "duplicated"
	Foreign        Code = "foreign"
	AnotherProfile Code = "another-profile"
	Unsigned       Code = "unsigned"
	Altered        Code = "altered"
	Unreadable     Code = "unreadable"
	Contradicts    Code = "contradicts-itself"
	EvidenceDiffer Code = "evidence-differs"
	Incomplete     Code = "incomplete"
	NotPassed      Code = "not-passed"
	AnotherRelease Code = "another-release"
	NoAcceptance   Code = "no-acceptance"
)

// Refusal is one reason why the gate does not open. Its message is one sentence.
type Refusal struct {
	Code    Code            `json:"code"`
	Cell    string          `json:"cell,omitempty"` // key of the cell; empty where the refusal is about the set or about what names no cell
	Source  string          `json:"source,omitempty"`
	Message string          `json:"message"`
	Verdict verdict.Verdict `json:"-"` // of a cell that did not pass
}

// CellDecision is what the gate found about one declared cell.
type CellDecision struct {
	Cell    string `json:"cell"`
	Matrix  string `json:"matrix"`
	Source  string `json:"source,omitempty"` // of the one offer; empty where there is none, or more than one
	Verdict string `json:"verdict,omitempty"`
	Passed  bool   `json:"passed"`
}

// Decision is what the gate decides.
type Decision struct {
	Profile  judge.ProfileIdentity `json:"profile"`
	Subject  map[string]string     `json:"subject"` // what every cell is about
	Cells    []CellDecision        `json:"cells"`
	Refusals []Refusal             `json:"refusals"`
}

// Passed says whether the gate opens.
func (d Decision) Passed() bool {
	if len(d.Refusals) > 0 || len(d.Cells) == 0 {
		return false
	}
	for _, cell := range d.Cells {
		if !cell.Passed {
			return false
		}
	}
	return true
}
