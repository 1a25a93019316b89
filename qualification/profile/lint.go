package profile

import (
	"fmt"
	"time"
)

// Finding is one thing that makes a profile unusable, with the arithmetic that shows it.
type Finding struct {
	Subject    string `json:"subject"` // the target, scenario or field
	Problem    string `json:"problem"`
	Arithmetic string `json:"arithmetic,omitempty"`
}

// String is the finding as one sentence.
func (f Finding) String() string {
	if f.Arithmetic == "" {
		return f.Subject + ": " + f.Problem
	}
	return f.Subject + ": " + f.Problem + ": " + f.Arithmetic
}

// slotDelay is the part of an interval by which the operator may delay a refresh to space out resources.
const slotDelay = 0.5

// Lint returns every way in which a valid profile contradicts itself: targets that its own workload cannot reach,
// populations too small for their statistic, quotas that the workload exhausts, windows that do not fit.
func Lint(p *Profile) []Finding {
	var findings []Finding
	for _, target := range p.Targets {
		findings = append(findings, lintPopulation(target)...)
		findings = append(findings, lintWindow(p, target)...)
		findings = append(findings, lintRequests(p, target)...)
		findings = append(findings, lintCycles(p, target)...)
		findings = append(findings, lintAge(p, target)...)
		findings = append(findings, lintExclusions(p, target)...)
	}
	findings = append(findings, lintQuotas(p)...)
	findings = append(findings, lintCoverage(p)...)
	return append(findings, lintPurpose(p)...)
}

func lintPopulation(t Target) []Finding {
	percent, ok := t.Statistic.Percentile()
	if !ok || t.MinSamples >= t.Statistic.LeastSamples() {
		return nil
	}
	return []Finding{{Subject: t.ID, Problem: fmt.Sprintf("minSamples %d is too small for %s", t.MinSamples, t.Statistic),
		Arithmetic: fmt.Sprintf("with %d samples fewer than one lies above the %dth percentile, that takes 100 / (100 - %d) = %d", t.MinSamples, percent, percent, t.Statistic.LeastSamples())}}
}

// lintWindow refuses a window longer than what is measured, and one sample demanded more often than it can exist.
func lintWindow(p *Profile, t Target) []Finding {
	duration := p.Workload.Duration
	if t.Window.Over != Sliding || duration == 0 {
		return nil
	}
	if t.Window.Length > duration {
		return []Finding{{Subject: t.ID, Problem: "the window is longer than the run",
			Arithmetic: fmt.Sprintf("a window of %s does not fit into a workload of %s", t.Window.Length, duration)}}
	}
	return nil
}

// lintRequests holds a bound on requests in a sliding window against what the refreshes of the workload may cost by
// the profile's own bound on one refresh.
func lintRequests(p *Profile, t Target) []Finding {
	if t.Window.Over != Sliding || t.Bound.AtMost == nil || (t.Metric != ManagerRequests && t.Metric != ManagerWorkRequests) {
		return nil
	}
	each, ok := p.perRefresh()
	if !ok {
		return nil
	}
	refreshes := float64(p.Workload.Resources()) * float64(t.Window.Length) / float64(p.Workload.Interval)
	if need := refreshes * each; need > *t.Bound.AtMost {
		return []Finding{{Subject: t.ID, Problem: "the refreshes of the workload alone may exceed the bound",
			Arithmetic: fmt.Sprintf("%d resources x %s / %s = %.4g refreshes in a window, x %s requests each = %.5g, the bound is %s",
				p.Workload.Resources(), t.Window.Length, p.Workload.Interval, refreshes, Number(each), need, Number(*t.Bound.AtMost))}}
	}
	return nil
}

// perRefresh is the profile's own bound on the requests of one refresh.
func (p *Profile) perRefresh() (float64, bool) {
	for _, t := range p.Targets {
		if t.Window.Over == EachMeasurement && t.Population == PopulationRefresh && t.Bound.AtMost != nil && (t.Metric == ManagerRequests || t.Metric == ManagerWorkRequests) {
			return *t.Bound.AtMost, true
		}
	}
	return 0, false
}

// lintCycles compares a demanded number of read-only cycles with the intervals there are, less those that the
// changes of the workload cost a resource.
func lintCycles(p *Profile, t Target) []Finding {
	if t.Metric != ReadOnlyCycles || t.Bound.AtLeast == nil || t.Statistic != Min {
		return nil
	}
	if p.Workload.Duration == 0 {
		return []Finding{{Subject: t.ID, Problem: "cycles are counted over workload.duration, which is not declared"}}
	}
	intervals := int(p.Workload.Duration.Std() / p.Workload.Interval.Std())
	most, arithmetic := intervals, fmt.Sprintf("%s / %s = %d intervals", p.Workload.Duration, p.Workload.Interval, intervals)
	if c := p.Workload.Changes; c != nil && (t.Population == PopulationAll || t.Population == PopulationChanged) {
		most -= c.Rounds * c.CostIntervals
		arithmetic += fmt.Sprintf(" - %d changes x %d intervals each = %d", c.Rounds, c.CostIntervals, most)
	}
	if *t.Bound.AtLeast > float64(most) {
		return []Finding{{Subject: t.ID, Problem: fmt.Sprintf("no resource of %q can reach %s cycles, whatever the operator does", t.Population, Number(*t.Bound.AtLeast)), Arithmetic: arithmetic}}
	}
	return nil
}

// lintAge compares a bound on the age of observations with the interval and the slot delay.
func lintAge(p *Profile, t Target) []Finding {
	if t.Metric != ObservationAge || t.Bound.AtMost == nil || t.Statistic != Max {
		return nil
	}
	interval := p.Workload.Interval.Std()
	oldest := interval + time.Duration(slotDelay*float64(interval))
	if bound := *t.Bound.AtMost; oldest.Seconds() > bound {
		return []Finding{{Subject: t.ID, Problem: "a healthy operator exceeds the bound",
			Arithmetic: fmt.Sprintf("an interval of %s plus a slot delay of half of it is an age of %s s, the bound is %s s", p.Workload.Interval, Number(oldest.Seconds()), Number(bound))}}
	}
	return nil
}

// lintExclusions refuses a target that leaves out faults no scenario injects, and one whose every scenario is left out.
func lintExclusions(p *Profile, t Target) []Finding {
	var findings []Finding
	for _, class := range t.Exclude {
		injected := false
		for _, s := range p.Scenarios {
			injected = injected || s.Fault == class
		}
		if !injected {
			findings = append(findings, Finding{Subject: t.ID, Problem: fmt.Sprintf("it leaves out the fault %s, which no scenario injects", class)})
		}
	}
	return findings
}

// lintQuotas compares each quota with what the operations of one namespace hold at once.
func lintQuotas(p *Profile) []Finding {
	var findings []Finding
	for i, quota := range p.Workload.Quotas {
		subject := fmt.Sprintf("workload.quotas[%d] (%s)", i, quota.Resource)
		if quota.Resource == "" || quota.Limit < 1 || quota.PerOperation < 0 {
			findings = append(findings, Finding{Subject: subject, Problem: "name the resource, a limit above zero and what one operation takes"})
			continue
		}
		resources := (p.Workload.Resources() + p.Workload.Namespaces - 1) / p.Workload.Namespaces
		operations := resources * int((quota.RetainedFor.Std()+p.Workload.Interval.Std()-1)/p.Workload.Interval.Std())
		if need := operations * quota.PerOperation; need > quota.Limit {
			findings = append(findings, Finding{Subject: subject, Problem: "the workload exhausts it",
				Arithmetic: fmt.Sprintf("%d resources in a namespace x %s / %s = %d operations kept, x %d each = %d, the limit is %d",
					resources, quota.RetainedFor, p.Workload.Interval, operations, quota.PerOperation, need, quota.Limit)})
		}
	}
	return findings
}

// lintCoverage refuses a scenario or target of a matrix that the profile does not cover.
func lintCoverage(p *Profile) []Finding {
	covered := map[string]bool{}
	for _, c := range p.Coverage {
		covered[c.Matrix] = true
	}
	var findings []Finding
	check := func(subject, matrix string) {
		if !covered[matrix] {
			findings = append(findings, Finding{Subject: subject, Problem: fmt.Sprintf("it needs cells of the matrix %s, which coverage does not name", matrix)})
		}
	}
	for _, s := range p.Scenarios {
		check(s.Name, s.Cells.Matrix)
	}
	for _, t := range p.Targets {
		check(t.ID, t.Cells.Matrix)
	}
	return findings
}

// lintPurpose refuses an acceptance profile that leaves a requirement neither assessed nor excluded.
func lintPurpose(p *Profile) []Finding {
	if p.Purpose != Acceptance {
		return nil
	}
	excluded := map[Requirement]bool{}
	for _, e := range p.Exclusions {
		excluded[e.Requirement] = true
	}
	var findings []Finding
	for _, r := range p.NotAssessed() {
		if !excluded[r] {
			findings = append(findings, Finding{Subject: string(r), Problem: "an acceptance profile declares a scenario or target for it, or excludes it with a reason: " + r.Title()})
		}
	}
	return findings
}
