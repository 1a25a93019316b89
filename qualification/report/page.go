// Package report renders a judgement for people and for CI: one HTML page that needs no network, Markdown and JUnit
// XML, all from one Page. Rendering is deterministic and reads no clock, so that a record can bind the digests of
// the rendered files.
package report

import (
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"ptah.run/ptah/qualification/evidence"
	"ptah.run/ptah/qualification/evidence/dossier"
	"ptah.run/ptah/qualification/evidence/scenario"
	"ptah.run/ptah/qualification/judge"
	"ptah.run/ptah/qualification/profile"
	"ptah.run/ptah/qualification/verdict"
)

// Page is the input of every rendering. It is stored beside them as report.json.
type Page struct {
	Schema      string                `json:"schema"`
	Profile     judge.ProfileIdentity `json:"profile"`
	Summary     string                `json:"summary"` // of the profile
	Run         string                `json:"run"`
	Started     time.Time             `json:"started"`
	Root        string                `json:"root"` // of the evidence
	Release     dossier.Release       `json:"release"`
	Harness     dossier.Harness       `json:"harness"`
	Verdict     verdict.Verdict       `json:"verdict"`
	Acceptance  bool                  `json:"acceptance"`
	Notice      string                `json:"notice"`
	Answer      string                `json:"answer"` // one sentence for a person with two minutes
	Counts      Counts                `json:"counts"`
	Needs       []Requirement         `json:"requirements"`
	Cells       []Cell                `json:"cells"`
	NotAssessed []Named               `json:"notAssessed"`
	Exclusions  []profile.Exclusion   `json:"exclusions"`
	NotShown    []string              `json:"notShown"`
}

// Counts are the figures of the summary.
type Counts struct {
	Cells           int `json:"cells"`
	CellsPassed     int `json:"cellsPassed"`
	Scenarios       int `json:"scenarios"`
	ScenariosPassed int `json:"scenariosPassed"`
	Targets         int `json:"targets"`
	TargetsPassed   int `json:"targetsPassed"`
	Assertions      int `json:"assertions"`
}

// Named is a requirement with its title.
type Named struct {
	Requirement profile.Requirement `json:"requirement"`
	Title       string              `json:"title"`
}

// Requirement is the verdict on one requirement with what it rests on.
type Requirement struct {
	Named
	Verdict verdict.Verdict `json:"verdict"`
	Lines   []Line          `json:"lines"`
}

// Line is one scenario or target of a requirement in one cell.
type Line struct {
	Cell      string          `json:"cell"`
	Kind      string          `json:"kind"` // scenario or target
	Name      string          `json:"name"`
	Statement string          `json:"statement"`
	Number    string          `json:"number"` // what was measured, with n; or the assertions behind a scenario
	Verdict   verdict.Verdict `json:"verdict"`
	Evidence  []string        `json:"evidence"`
}

// Cell is one cell with its timeline.
type Cell struct {
	Key         string              `json:"key"`
	Axes        map[string]string   `json:"axes"`
	Verdict     verdict.Verdict     `json:"verdict"`
	InputDigest string              `json:"inputDigest"`
	Root        string              `json:"root"`
	Lab         dossier.Lab         `json:"lab"`
	ImageSource string              `json:"imageSource"`
	Timeline    []Bar               `json:"timeline"`
	Samples     []SampleSet         `json:"samples"`
	Files       []evidence.Entry    `json:"files"`
	Judgement   judge.CellJudgement `json:"judgement"`
}

// Bar is one scenario on the timeline.
type Bar struct {
	Scenario string                 `json:"scenario"`
	From     time.Time              `json:"from"`
	To       time.Time              `json:"to"`
	State    verdict.State          `json:"state"`
	Marks    []Mark                 `json:"marks"`
	Measured []scenario.Measurement `json:"measured"`
}

// Mark is a moment on a bar.
type Mark struct {
	At   time.Time `json:"at"`
	Kind string    `json:"kind"` // witness or failed
	Text string    `json:"text"`
}

// SampleSet is the samples of a target, for its picture.
type SampleSet struct {
	Target  string         `json:"target"`
	Bound   float64        `json:"bound"`
	Unit    profile.Unit   `json:"unit"`
	Samples []judge.Sample `json:"samples"`
}

// Schema identifies the form of report.json.
const Schema = "ptah.run/report/v1"

// Build makes the page of a judgement of a run.
func Build(d *dossier.Dossier, judgement judge.Judgement) Page {
	p := d.Profile
	page := Page{
		Schema: Schema, Profile: judgement.Profile, Summary: p.Summary, Run: d.RunID, Started: d.CreatedAt, Root: d.Root, Harness: d.Harness,
		Verdict: judgement.Verdict, Acceptance: judgement.Verdict.Satisfies() && p.Purpose == profile.Acceptance,
		Exclusions: slices.Clone(p.Exclusions), NotShown: p.NotShown,
	}
	if len(d.Cells) > 0 {
		page.Release = d.Cells[0].Release
	}
	for _, requirement := range p.NotAssessed() {
		page.NotAssessed = append(page.NotAssessed, Named{requirement, requirement.Title()})
	}
	for _, cell := range judgement.Cells {
		page.Cells = append(page.Cells, buildCell(d, cell))
		page.Counts.add(cell)
	}
	for _, requirement := range judgement.Requirements {
		page.Needs = append(page.Needs, buildRequirement(p, requirement, judgement.Cells))
	}
	page.Notice, page.Answer = notice(page), answer(page)
	return page
}

func (c *Counts) add(cell judge.CellJudgement) {
	c.Cells++
	if cell.Verdict.Satisfies() {
		c.CellsPassed++
	}
	for _, s := range cell.Scenarios {
		c.Scenarios++
		c.Assertions += s.Assertions
		if s.Verdict.Satisfies() {
			c.ScenariosPassed++
		}
	}
	for _, t := range cell.Targets {
		c.Targets++
		if t.Verdict.Satisfies() {
			c.TargetsPassed++
		}
	}
}

func notice(page Page) string {
	switch {
	case page.Profile.Purpose != profile.Acceptance:
		return "This is no acceptance: the profile is for development. A pass under it shows that the whole line works on a small machine, and nothing about production."
	case page.Acceptance:
		return "The release is accepted for this profile, within its exclusions and with the limits listed below."
	default:
		return "The release is not accepted."
	}
}

func answer(page Page) string {
	counts := fmt.Sprintf("%d of %d scenarios and %d of %d numeric targets passed in %d of %d cells, on %d assertions.", page.Counts.ScenariosPassed, page.Counts.Scenarios,
		page.Counts.TargetsPassed, page.Counts.Targets, page.Counts.CellsPassed, page.Counts.Cells, page.Counts.Assertions)
	switch page.Verdict.State {
	case verdict.Pass:
		return "Everything this profile asks for was shown: " + counts
	case verdict.Fail:
		return "Something failed (" + string(page.Verdict.Cause) + "): " + counts
	default:
		return "Not everything this profile asks for was shown (" + page.Verdict.String() + "): " + counts
	}
}

func buildRequirement(p *profile.Profile, judged judge.RequirementVerdict, cells []judge.CellJudgement) Requirement {
	requirement := Requirement{Named: Named{judged.Requirement, judged.Requirement.Title()}, Verdict: judged.Verdict}
	for _, cell := range cells {
		for _, s := range cell.Scenarios {
			if s.Requirement == judged.Requirement {
				requirement.Lines = append(requirement.Lines, Line{Cell: cell.Cell.Key, Kind: "scenario", Name: s.Scenario, Statement: scenarioStatement(p, s.Scenario),
					Number: scenarioNumber(s), Verdict: s.Verdict, Evidence: s.Evidence})
			}
		}
		for _, t := range cell.Targets {
			if t.Requirement == judged.Requirement {
				requirement.Lines = append(requirement.Lines, Line{Cell: cell.Cell.Key, Kind: "target", Name: t.Target, Statement: targetStatement(p, t.Target),
					Number: targetNumber(t), Verdict: t.Verdict, Evidence: t.Evidence})
			}
		}
	}
	return requirement
}

func scenarioNumber(s judge.ScenarioVerdict) string {
	text := plural(s.Assertions, "assertion")
	if s.Witnesses > 0 {
		text += ", " + plural(s.Witnesses, "witness")
	}
	return text
}

func targetNumber(t judge.TargetVerdict) string {
	if t.Value == nil {
		return fmt.Sprintf("not measured (n = %d), declared %s %s", t.N, t.Bound, t.Unit)
	}
	text := fmt.Sprintf("%s %s (n = %d), declared %s", profile.Number(*t.Value), t.Unit, t.N, t.Bound)
	if t.Excluded > 0 {
		text += fmt.Sprintf(", %d left out because of a deliberate fault", t.Excluded)
	}
	return text
}

func plural(n int, word string) string {
	switch {
	case n == 1:
		return "1 " + word
	case word == "witness":
		return fmt.Sprintf("%d witnesses", n)
	default:
		return fmt.Sprintf("%d %ss", n, word)
	}
}

func scenarioStatement(p *profile.Profile, name string) string {
	for _, s := range p.Scenarios {
		if s.Name == name {
			return s.Statement
		}
	}
	return ""
}

func targetStatement(p *profile.Profile, id string) string {
	for _, t := range p.Targets {
		if t.ID == id {
			return t.Statement
		}
	}
	return ""
}

func buildCell(d *dossier.Dossier, judged judge.CellJudgement) Cell {
	cell := Cell{Key: judged.Cell.Key, Axes: judged.Cell.Axes, Verdict: judged.Verdict, InputDigest: judged.InputDigest, Root: judged.Root, Judgement: judged}
	for _, target := range judged.Targets {
		if set, ok := sampleSet(d.Profile, target); ok {
			cell.Samples = append(cell.Samples, set)
		}
	}
	file, err := d.Cell(judged.Cell.Key)
	if err != nil {
		return cell
	}
	cell.Lab, cell.ImageSource, cell.Files = file.Lab, file.Lab.ImageSource(), file.Files
	for _, ledger := range file.Evidence.Ledgers {
		for _, record := range ledger.Records {
			cell.Timeline = append(cell.Timeline, bar(record, judged))
		}
	}
	return cell
}

func bar(record scenario.Record, judged judge.CellJudgement) Bar {
	b := Bar{Scenario: record.Scenario, From: record.Start, To: record.End, State: verdict.State(record.Outcome), Measured: record.Measurements}
	if !record.Ended {
		b.To, b.State = lastSign(record), verdict.Fail
	}
	for _, s := range judged.Scenarios {
		if s.Scenario == record.Scenario {
			b.State = s.Verdict.State
		}
	}
	for _, witness := range record.Witnesses {
		b.Marks = append(b.Marks, Mark{At: witness.At, Kind: "witness", Text: witness.Key})
	}
	for _, assertion := range record.Assertions {
		if !assertion.Held {
			b.Marks = append(b.Marks, Mark{At: assertion.At, Kind: "failed", Text: assertion.Key})
		}
	}
	return b
}

// lastSign is the time of the last entry of a scenario whose end was never written.
func lastSign(record scenario.Record) time.Time {
	last := record.Start
	for _, list := range [][]scenario.Observation{record.Observations, record.Witnesses} {
		for _, entry := range list {
			if entry.At.After(last) {
				last = entry.At
			}
		}
	}
	for _, assertion := range record.Assertions {
		if assertion.At.After(last) {
			last = assertion.At
		}
	}
	return last
}

func sampleSet(p *profile.Profile, judged judge.TargetVerdict) (SampleSet, bool) {
	for _, target := range p.Targets {
		if target.ID != judged.Target || len(judged.Samples) == 0 || target.Window.Over != profile.EachMeasurement {
			continue
		}
		bound := target.Bound.AtMost
		if bound == nil {
			bound = target.Bound.AtLeast
		}
		return SampleSet{Target: target.ID, Bound: *bound, Unit: target.Unit, Samples: judged.Samples}, true
	}
	return SampleSet{}, false
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
	input, err := json.MarshalIndent(page, "", "  ")
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
