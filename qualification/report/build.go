package report

import (
	"cmp"
	"slices"
	"time"

	"ptah.run/ptah/qualification/evidence/dossier"
	"ptah.run/ptah/qualification/evidence/scenario"
	"ptah.run/ptah/qualification/judge"
	"ptah.run/ptah/qualification/profile"
	"ptah.run/ptah/qualification/verdict"
)

// Build makes the page of a judgement of a run.
func Build(d *dossier.Dossier, judgement judge.Judgement) Page {
	p := d.Profile
	page := Page{
		Schema: Schema, Profile: judgement.Profile, Summary: p.Summary, Run: d.RunID, Started: d.CreatedAt, Root: d.Root, Harness: d.Harness,
		Verdict: judgement.Verdict, Meets: judgement.Verdict.Satisfies() && p.Purpose == profile.Acceptance,
		Requirements: []Requirement{}, Cells: []Cell{},
	}
	if len(d.Cells) > 0 {
		page.Release = d.Cells[0].Release
	}
	b := builder{dossier: d, judgement: judgement, names: map[string]map[string]string{}}
	said := newReasons()
	for _, cell := range judgement.Cells {
		built := b.cell(cell, said)
		page.Cells = append(page.Cells, built)
		page.Counts.add(built.Counts)
	}
	for _, id := range profile.Requirements() {
		page.Requirements = append(page.Requirements, b.requirement(id, said))
	}
	page.Verdict.Reasons = said.others(judgement.Verdict.Reasons)
	page.Limits = limits(page, p.NotShown)
	page.Notice, page.Answer = notice(page), answer(page)
	return page
}

func (c *Counts) add(other Counts) {
	c.Cells += other.Cells
	c.CellsPassed += other.CellsPassed
	c.Scenarios += other.Scenarios
	c.ScenariosPassed += other.ScenariosPassed
	c.Targets += other.Targets
	c.TargetsPassed += other.TargetsPassed
	c.Assertions += other.Assertions
}

// reasons are those that stand somewhere on the page already, so that an aggregate need not repeat them.
type reasons struct{ seen map[verdict.Reason]bool }

func newReasons() *reasons { return &reasons{map[verdict.Reason]bool{}} }

func (r *reasons) say(list []verdict.Reason) {
	for _, reason := range list {
		r.seen[reason] = true
	}
}

// others returns the reasons that were not said before, and takes them as said.
func (r *reasons) others(list []verdict.Reason) []verdict.Reason {
	left := slices.DeleteFunc(slices.Clone(list), func(reason verdict.Reason) bool { return r.seen[reason] })
	r.say(left)
	return left
}

type builder struct {
	dossier   *dossier.Dossier
	judgement judge.Judgement
	names     map[string]map[string]string // cell to digest to name
}

func counts(judged judge.CellJudgement) Counts {
	c := Counts{Cells: 1, Scenarios: len(judged.Scenarios), Targets: len(judged.Targets)}
	if judged.Verdict.Satisfies() {
		c.CellsPassed++
	}
	for _, s := range judged.Scenarios {
		c.Assertions += s.Assertions
		if s.Verdict.Satisfies() {
			c.ScenariosPassed++
		}
	}
	for _, t := range judged.Targets {
		if t.Verdict.Satisfies() {
			c.TargetsPassed++
		}
	}
	return c
}

func (b *builder) cell(judged judge.CellJudgement, said *reasons) Cell {
	for _, s := range judged.Scenarios {
		said.say(s.Verdict.Reasons)
	}
	for _, t := range judged.Targets {
		said.say(t.Verdict.Reasons)
	}
	cell := Cell{Key: judged.Cell.Key, Axes: judged.Cell.Axes, Verdict: judged.Verdict, Counts: counts(judged), InputDigest: judged.InputDigest, Root: judged.Root}
	if judged.Verdict.State != verdict.NotRun {
		cell.Verdict.Reasons = said.others(judged.Verdict.Reasons)
	}
	file, err := b.dossier.Cell(judged.Cell.Key)
	if err != nil {
		return cell
	}
	cell.Lab, cell.ImageSource, cell.Files = file.Lab, file.Lab.ImageSource(), file.Files
	cell.Driver = driverOf(file.Evidence.Driver)
	names := map[string]string{}
	for _, entry := range file.Files {
		names[entry.Digest] = cmp.Or(names[entry.Digest], entry.Name)
	}
	b.names[cell.Key] = names
	for _, ledger := range file.Evidence.Ledgers {
		for _, record := range ledger.Records {
			cell.Timeline = append(cell.Timeline, bar(record, judged))
		}
	}
	slices.SortStableFunc(cell.Timeline, func(a, b Bar) int { return a.From.Compare(b.From) })
	return cell
}

func (b *builder) references(cell string, digests []string) []Reference {
	var list []Reference
	for _, digest := range digests {
		list = append(list, Reference{Name: b.names[cell][digest], Digest: digest})
	}
	return list
}

func (b *builder) requirement(id profile.Requirement, said *reasons) Requirement {
	p := b.dossier.Profile
	requirement := Requirement{ID: id, Title: id.Title(), Standing: NotAssessed, Items: b.items(id)}
	for _, exclusion := range p.Exclusions {
		if exclusion.Requirement == id {
			requirement.Standing = Excluded
			requirement.Exclusions = append(requirement.Exclusions, exclusion)
		}
	}
	for _, judged := range b.judgement.Requirements {
		if judged.Requirement == id {
			own := judged.Verdict
			own.Reasons = said.others(own.Reasons)
			requirement.Standing, requirement.Verdict = Assessed, &own
		}
	}
	return requirement
}

// items returns what the profile declares for a requirement, in the order of the profile, scenarios first.
func (b *builder) items(id profile.Requirement) []Item {
	items := []Item{}
	for _, s := range b.dossier.Profile.Scenarios {
		if s.Requirement == id {
			items = append(items, b.scenario(s))
		}
	}
	for _, t := range b.dossier.Profile.Targets {
		if t.Requirement == id {
			items = append(items, b.target(t))
		}
	}
	return items
}

func (b *builder) scenario(declared profile.Scenario) Item {
	item := Item{Kind: KindScenario, Name: declared.Name, Statement: declared.Statement, Results: []Result{}}
	for _, cell := range b.judgement.Cells {
		for _, s := range cell.Scenarios {
			if s.Scenario == declared.Name {
				item.Results = append(item.Results, Result{Cell: cell.Cell.Key, Number: scenarioNumber(s), Verdict: s.Verdict, Evidence: b.references(cell.Cell.Key, s.Evidence)})
			}
		}
	}
	item.Verdict = overall(item.Results)
	return item
}

func (b *builder) target(declared profile.Target) Item {
	item := Item{Kind: KindTarget, Name: declared.ID, Statement: declared.Statement, Measured: measured(declared), Unit: declared.Unit, Bound: declared.Bound, Results: []Result{}}
	for _, cell := range b.judgement.Cells {
		for _, t := range cell.Targets {
			if t.Target == declared.ID {
				item.Results = append(item.Results, Result{Cell: cell.Cell.Key, Number: targetNumber(t), Verdict: t.Verdict, Samples: t.Samples, Evidence: b.references(cell.Cell.Key, t.Evidence)})
			}
		}
	}
	item.Verdict = overall(item.Results)
	return item
}

func overall(results []Result) State {
	var all []verdict.Verdict
	for _, result := range results {
		all = append(all, result.Verdict)
	}
	whole := verdict.Aggregate(all...)
	return State{State: whole.State, Cause: whole.Cause}
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
