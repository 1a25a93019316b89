// Package judge turns evidence into verdicts under a profile. It is pure: no cluster, no file, no clock. The same
// profile and evidence always give the same judgement, so a revised profile re-judges stored evidence, and a reader
// of a record judges again instead of believing.
//
// Only what the evidence shows counts. What it does not show is inconclusive, void or not run, with a reason.
package judge

import (
	"slices"

	"ptah.run/ptah/qualification/audit"
	"ptah.run/ptah/qualification/evidence/driverload"
	"ptah.run/ptah/qualification/evidence/phase"
	"ptah.run/ptah/qualification/evidence/sample"
	"ptah.run/ptah/qualification/evidence/scenario"
	"ptah.run/ptah/qualification/matrix"
	"ptah.run/ptah/qualification/profile"
	"ptah.run/ptah/qualification/verdict"
)

// Evidence is what is known about one cell. A cell that was never finished has no Evidence at all.
type Evidence struct {
	Cell        string        // key of the cell
	InputDigest string        // digest under which the cell was run
	Inputs      matrix.Inputs // what that digest stands for
	Root        string        // digest over everything the cell left
	Ledgers     []Ledger
	Audit       *Audit              // nil where no audit log was kept
	Samples     *sample.Set         // nil where no readings were kept
	Driver      *driverload.Account // nil where the driver kept no account of its load
	Phases      *phase.Account      // nil where the harness kept no account of its phases
}

// Ledger is the account of one suite. Whole is false where its completeness record is missing or does not fit; then
// Problem says so, and Records are what could be read.
type Ledger struct {
	Suite   string
	Phase   string // of the suite; empty for the ledger of a suite that was kept as a whole
	Records []scenario.Record
	Whole   bool
	Problem string
	Digest  string // of the stored stream
}

// Audit is the audit evidence of a cell.
type Audit struct {
	Set     audit.Set
	Digests []string // of the stored logs
}

// Input is everything that is judged.
type Input struct {
	Profile  *profile.Profile
	RunUnder *profile.Profile // the profile that the cells were run under; nil where it is Profile itself
	Expected []matrix.Cell    // the declared set, exactly
	Evidence []Evidence
	NotRun   map[string]string // key of a cell to why it was not run, where somebody wrote that down
}

// unrun is the verdict on a cell without evidence.
func (i Input) unrun(cell matrix.Cell) verdict.Verdict {
	if reason := i.NotRun[cell.Key]; reason != "" {
		return verdict.New(verdict.NotRun, verdict.Harness, verdict.CellMissing, cell.Key, "it was not run: %s", reason)
	}
	return verdict.New(verdict.NotRun, verdict.Harness, verdict.CellMissing, cell.Key, "there is no finished evidence of this cell")
}

// Judgement is the result.
type Judgement struct {
	Profile      ProfileIdentity      `json:"profile"`
	Cells        []CellJudgement      `json:"cells"`
	Requirements []RequirementVerdict `json:"requirements"`
	Verdict      verdict.Verdict      `json:"verdict"`
}

// ProfileIdentity says under what was judged.
type ProfileIdentity struct {
	Name     string          `json:"name"`
	Revision int             `json:"revision"`
	Purpose  profile.Purpose `json:"purpose"`
	Digest   string          `json:"digest"`
}

// CellJudgement is what one cell came to.
type CellJudgement struct {
	Cell        matrix.Cell       `json:"cell"`
	InputDigest string            `json:"inputDigest,omitempty"`
	Root        string            `json:"root,omitempty"`
	Scenarios   []ScenarioVerdict `json:"scenarios"`
	Targets     []TargetVerdict   `json:"targets"`
	Verdict     verdict.Verdict   `json:"verdict"`
}

// ScenarioVerdict is what one declared scenario came to in a cell.
type ScenarioVerdict struct {
	Scenario    string              `json:"scenario"`
	Requirement profile.Requirement `json:"requirement"`
	Assertions  int                 `json:"assertions"`
	Witnesses   int                 `json:"witnesses"`
	Verdict     verdict.Verdict     `json:"verdict"`
	Evidence    []string            `json:"evidence,omitempty"`
}

// TargetVerdict is what one target came to in a cell. Value is nil where nothing could be measured, which is not zero.
type TargetVerdict struct {
	Target      string              `json:"target"`
	Requirement profile.Requirement `json:"requirement"`
	Value       *float64            `json:"value"`
	Least       *float64            `json:"least,omitempty"` // where the value is not exact: the least that it can have been
	Most        *float64            `json:"most,omitempty"`  // and the most; nil where nobody knows the most
	Samples     []Sample            `json:"samples,omitempty"`
	N           int                 `json:"n"`
	Excluded    int                 `json:"excluded,omitempty"` // samples left out because of an excluded class of fault
	Bound       string              `json:"bound"`
	Unit        profile.Unit        `json:"unit"`
	Verdict     verdict.Verdict     `json:"verdict"`
	Evidence    []string            `json:"evidence,omitempty"`
}

// RequirementVerdict is what a requirement came to over all cells.
type RequirementVerdict struct {
	Requirement profile.Requirement `json:"requirement"`
	Verdict     verdict.Verdict     `json:"verdict"`
}

// Judge judges evidence. It never fails: what is wrong with the evidence becomes part of the verdicts.
func Judge(input Input) Judgement {
	result := Judgement{Profile: Identify(input.Profile)}
	whole := []verdict.Verdict{}
	byRequirement := map[profile.Requirement][]verdict.Verdict{}
	for _, cell := range input.Expected {
		judged := judgeCell(input, cell)
		result.Cells = append(result.Cells, judged)
		whole = append(whole, judged.Verdict)
		for _, s := range judged.Scenarios {
			byRequirement[s.Requirement] = append(byRequirement[s.Requirement], s.Verdict)
		}
		for _, t := range judged.Targets {
			byRequirement[t.Requirement] = append(byRequirement[t.Requirement], t.Verdict)
		}
	}
	whole = append(whole, foreignCells(input)...)
	result.Requirements = requirementVerdicts(input, byRequirement)
	for _, requirement := range result.Requirements {
		whole = append(whole, requirement.Verdict)
	}
	result.Verdict = verdict.Aggregate(whole...)
	return result
}

// Identify returns the identity of a profile.
func Identify(p *profile.Profile) ProfileIdentity {
	return ProfileIdentity{Name: p.Name, Revision: p.Revision, Purpose: p.Purpose, Digest: p.Digest()}
}

// requirementVerdicts aggregates per requirement. A requirement that the profile declares something for and that no
// expected cell shows is not run: a selection that matches nothing must not vanish.
func requirementVerdicts(input Input, shown map[profile.Requirement][]verdict.Verdict) []RequirementVerdict {
	var list []RequirementVerdict
	for _, requirement := range input.Profile.Assessed() {
		list = append(list, RequirementVerdict{Requirement: requirement, Verdict: verdict.Aggregate(append(shown[requirement], unshown(input, requirement)...)...)})
	}
	return list
}

func unshown(input Input, requirement profile.Requirement) []verdict.Verdict {
	var missing []verdict.Verdict
	check := func(subject string, of profile.Requirement, cells profile.Selection) {
		if of != requirement {
			return
		}
		selected := slices.ContainsFunc(input.Expected, func(cell matrix.Cell) bool { return cells.Matches(cell.Matrix, cell.Axes) })
		if !selected {
			missing = append(missing, verdict.New(verdict.NotRun, verdict.Harness, verdict.NoEvidence, subject, "no cell of this run is selected to show it"))
		}
	}
	for _, s := range input.Profile.Scenarios {
		check(s.Name, s.Requirement, s.Cells)
	}
	for _, t := range input.Profile.Targets {
		check(t.ID, t.Requirement, t.Cells)
	}
	return missing
}

// foreignCells refuses evidence of cells that the declared set does not have, and a cell given twice.
func foreignCells(input Input) []verdict.Verdict {
	var found []verdict.Verdict
	seen := map[string]bool{}
	for _, evidence := range input.Evidence {
		declared := slices.ContainsFunc(input.Expected, func(cell matrix.Cell) bool { return cell.Key == evidence.Cell })
		if !declared || seen[evidence.Cell] {
			found = append(found, verdict.New(verdict.Void, verdict.Harness, verdict.CellForeign, evidence.Cell, "the declared set has no such cell, or has it once"))
		}
		seen[evidence.Cell] = true
	}
	return found
}

func judgeCell(input Input, cell matrix.Cell) CellJudgement {
	judged := CellJudgement{Cell: cell, Scenarios: []ScenarioVerdict{}, Targets: []TargetVerdict{}}
	at := slices.IndexFunc(input.Evidence, func(e Evidence) bool { return e.Cell == cell.Key })
	if at < 0 {
		judged.Verdict = input.unrun(cell)
		judged.markNotRun(input.Profile, judged.Verdict)
		return judged
	}
	court := &court{profile: input.Profile, runUnder: input.RunUnder, cell: cell, evidence: input.Evidence[at]}
	judged.InputDigest, judged.Root = court.evidence.InputDigest, court.evidence.Root
	judged.Scenarios = court.scenarios()
	judged.Targets = court.targets()
	verdicts := slices.Concat(court.inputs(), court.driver(), court.phases())
	for _, s := range judged.Scenarios {
		verdicts = append(verdicts, s.Verdict)
	}
	for _, t := range judged.Targets {
		verdicts = append(verdicts, t.Verdict)
	}
	judged.Verdict = verdict.Aggregate(append(verdicts, court.undeclared()...)...)
	if len(judged.Scenarios)+len(judged.Targets) == 0 {
		judged.Verdict = verdict.Aggregate(judged.Verdict, verdict.New(verdict.NotRun, verdict.Harness, verdict.NoEvidence, cell.Key, "the profile declares nothing for this cell to show"))
	}
	return judged
}

// markNotRun gives each declared scenario and target of a missing cell its own line, so that a report shows the gap.
func (c *CellJudgement) markNotRun(p *profile.Profile, missing verdict.Verdict) {
	for _, s := range p.ScenariosOf(c.Cell.Matrix, c.Cell.Axes) {
		c.Scenarios = append(c.Scenarios, ScenarioVerdict{Scenario: s.Name, Requirement: s.Requirement, Verdict: missing})
	}
	for _, t := range p.TargetsOf(c.Cell.Matrix, c.Cell.Axes) {
		c.Targets = append(c.Targets, TargetVerdict{Target: t.ID, Requirement: t.Requirement, Bound: t.Bound.String(), Unit: t.Unit, Verdict: missing})
	}
}

// court judges one cell.
type court struct {
	profile  *profile.Profile
	runUnder *profile.Profile
	cell     matrix.Cell
	evidence Evidence
}

// inputs checks that the cell was run for this profile, as this cell, on a cluster of the declared shape. The input
// digest itself is recomputed: an altered statement of the inputs does not fit it.
func (c *court) inputs() []verdict.Verdict {
	var found []verdict.Verdict
	differ := func(format string, arguments ...any) {
		found = append(found, verdict.New(verdict.Void, verdict.Harness, verdict.InputsDiffer, c.cell.Key, format, arguments...))
	}
	inputs := c.evidence.Inputs
	if inputs.Digest() != c.evidence.InputDigest {
		differ("the stated inputs do not have the digest under which the cell was run")
	}
	if inputs.Cell.Key != c.cell.Key || inputs.Cell.Matrix != c.cell.Matrix {
		differ("the evidence was taken for the cell %s of matrix %s", inputs.Cell.Key, inputs.Cell.Matrix)
	}
	if problem := c.wrongProfile(inputs.Profile); problem != "" {
		differ("%s", problem)
	}
	if inputs.ControlPlanes != c.profile.Cluster.ControlPlanes || inputs.Workers != c.profile.Cluster.Workers {
		differ("the cluster had %d control planes and %d workers, the profile declares %d and %d", inputs.ControlPlanes, inputs.Workers,
			c.profile.Cluster.ControlPlanes, c.profile.Cluster.Workers)
	}
	if !slices.Contains(c.profile.Support.Platforms, inputs.Platform) {
		differ("the cell ran on %s, which the profile does not declare", inputs.Platform)
	}
	if !inputs.Native && c.profile.Purpose == profile.Acceptance {
		differ("the platform %s was emulated, which is no evidence for it", inputs.Platform)
	}
	return found
}

// wrongProfile says why evidence taken under the profile of that digest cannot be judged under this one. A later
// revision may judge it again, as long as it declares the same workload and installation.
func (c *court) wrongProfile(digest string) string {
	if digest == c.profile.Digest() {
		return ""
	}
	if c.runUnder == nil || c.runUnder.Digest() != digest {
		return "the cell was run under another profile, " + digest
	}
	if err := c.profile.Rejudges(c.runUnder); err != nil {
		return err.Error()
	}
	return ""
}
