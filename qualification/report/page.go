// Package report renders a judgement for people and for CI: one HTML page that needs no network, Markdown and JUnit
// XML, all from one Page. Rendering is deterministic and reads no clock, so that a record can bind the digests of
// the rendered files.
package report

import (
	"encoding/json"
	"fmt"
	"time"

	"ptah.run/ptah/qualification/evidence"
	"ptah.run/ptah/qualification/evidence/dossier"
	"ptah.run/ptah/qualification/evidence/scenario"
	"ptah.run/ptah/qualification/judge"
	"ptah.run/ptah/qualification/profile"
	"ptah.run/ptah/qualification/verdict"
)

// Schema identifies the form of report.json.
const Schema = "ptah.run/report/v2"

// Page is the input of every rendering. It is stored beside them as report.json.
type Page struct {
	Schema       string                `json:"schema"`
	Profile      judge.ProfileIdentity `json:"profile"`
	Summary      string                `json:"summary"` // of the profile
	Run          string                `json:"run"`
	Started      time.Time             `json:"started"`
	Root         string                `json:"root"` // of the evidence
	Release      dossier.Release       `json:"release"`
	Harness      dossier.Harness       `json:"harness"`
	Verdict      verdict.Verdict       `json:"verdict"`                // its reasons are those that stand nowhere below
	Meets        bool                  `json:"meetsAcceptanceProfile"` // whether the release is accepted, its signed record says
	Notice       string                `json:"notice"`
	Answer       string                `json:"answer"` // one sentence for a person with two minutes
	Counts       Counts                `json:"counts"`
	Limits       []string              `json:"limits"`       // what this does not show
	Requirements []Requirement         `json:"requirements"` // all twelve, in order
	Cells        []Cell                `json:"cells"`
}

// Counts are the figures of the summary. Scenarios and targets are counted in each cell.
type Counts struct {
	Cells           int `json:"cells"`
	CellsPassed     int `json:"cellsPassed"`
	Scenarios       int `json:"scenarios"`
	ScenariosPassed int `json:"scenariosPassed"`
	Targets         int `json:"targets"`
	TargetsPassed   int `json:"targetsPassed"`
	Assertions      int `json:"assertions"`
}

// Standing says whether a requirement was judged.
type Standing string

// Standings. A requirement that is excluded in part is assessed in what is left.
const (
	Assessed    Standing = "assessed"
	Excluded    Standing = "excluded"
	NotAssessed Standing = "not assessed"
)

// Requirement is one of the twelve, with the verdict and what it rests on.
type Requirement struct {
	ID         profile.Requirement `json:"id"`
	Title      string              `json:"title"`
	Standing   Standing            `json:"standing"`
	Exclusions []profile.Exclusion `json:"exclusions,omitempty"`
	Verdict    *verdict.Verdict    `json:"verdict,omitempty"` // nil where it was not judged; its reasons are those that no item has
	Items      []Item              `json:"items"`
}

// Kinds of items.
const (
	KindScenario = "scenario"
	KindTarget   = "target"
)

// Item is one declared scenario or target, with what each cell shows for it.
type Item struct {
	Kind      string        `json:"kind"`
	Name      string        `json:"name"`
	Statement string        `json:"statement"`
	Measured  string        `json:"measured,omitempty"` // of a target: what is measured and what is declared
	Unit      profile.Unit  `json:"unit,omitempty"`
	Bound     profile.Bound `json:"bound"`
	Verdict   State         `json:"verdict"` // over its results
	Results   []Result      `json:"results"`
}

// State is a verdict without its reasons.
type State struct {
	State verdict.State `json:"state"`
	Cause verdict.Cause `json:"cause,omitempty"`
}

// String returns the state, and the cause where there is one.
func (s State) String() string { return verdict.Verdict{State: s.State, Cause: s.Cause}.String() }

// Result is what one cell shows for an item.
type Result struct {
	Cell     string          `json:"cell"`
	Number   string          `json:"number"` // what was measured, with n; or the assertions behind a scenario
	Verdict  verdict.Verdict `json:"verdict"`
	Samples  []judge.Sample  `json:"samples,omitempty"`
	Evidence []Reference     `json:"evidence,omitempty"`
}

// Reference names a file of evidence.
type Reference struct {
	Name   string `json:"name,omitempty"` // in the cell; empty where the cell holds no file of that digest
	Digest string `json:"digest"`
}

// Cell is one cell with its timeline.
type Cell struct {
	Key         string            `json:"key"`
	Axes        map[string]string `json:"axes"`
	Verdict     verdict.Verdict   `json:"verdict"` // its reasons are those that no result has
	Counts      Counts            `json:"counts"`
	InputDigest string            `json:"inputDigest"`
	Root        string            `json:"root"`
	Lab         dossier.Lab       `json:"lab"`
	ImageSource string            `json:"imageSource"`
	Driver      *Driver           `json:"driver,omitempty"` // nil where the driver kept no account of its load
	Timeline    []Bar             `json:"timeline"`
	Files       []evidence.Entry  `json:"files"`
}

// Bar is one scenario on the timeline.
type Bar struct {
	Scenario string                 `json:"scenario"`
	From     time.Time              `json:"from"`
	To       time.Time              `json:"to"`
	State    verdict.State          `json:"state"`
	Marks    []Mark                 `json:"marks,omitempty"`
	Measured []scenario.Measurement `json:"measured,omitempty"`
}

// Mark is a moment on a bar.
type Mark struct {
	At   time.Time `json:"at"`
	Kind string    `json:"kind"` // witness or failed
	Text string    `json:"text"`
}

// File is one rendered file.
type File struct {
	Name string
	Data []byte
}

// Names of the rendered files.
const (
	InputName    = "report.json"
	HTMLName     = "report.html"
	MarkdownName = "report.md"
	JUnitName    = "junit.xml"
)

// Files renders everything. The same page gives the same bytes.
func Files(page Page) ([]File, error) {
	input, err := json.MarshalIndent(page, "", " ")
	if err != nil {
		return nil, fmt.Errorf("render the report: %w", err)
	}
	input = append(input, '\n')
	html, err := HTML(page, evidence.Digest(input))
	if err != nil {
		return nil, fmt.Errorf("render the report: %w", err)
	}
	junit, err := JUnit(page)
	if err != nil {
		return nil, fmt.Errorf("render the report: %w", err)
	}
	return []File{{InputName, input}, {HTMLName, html}, {MarkdownName, Markdown(page, evidence.Digest(input))}, {JUnitName, junit}}, nil
}
