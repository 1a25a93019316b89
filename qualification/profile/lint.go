package profile

import (
	"fmt"
	"slices"
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

// findings collects what lint finds.
type findings []Finding

func (f *findings) add(subject, problem, arithmetic string, arguments ...any) {
	*f = append(*f, Finding{Subject: subject, Problem: problem, Arithmetic: fmt.Sprintf(arithmetic, arguments...)})
}

// Lint returns every way in which a valid profile contradicts itself: targets that its own workload cannot reach,
// populations too small for their statistic, quotas that the workload exhausts, windows that do not fit.
func Lint(p *Profile) []Finding {
	var found findings
	for _, target := range p.Targets {
		found.population(target)
		found.exclusions(p, target)
		found.alert(p, target)
		found.memory(p, target)
		for _, s := range p.Workload.settings(target.Cells) {
			found.samples(p, s, target)
			found.window(s, target)
			found.requests(p, s, target)
			found.cycles(s, target)
			found.changes(s, target)
			found.age(p, s, target)
			found.batch(s, target)
		}
	}
	found.rivals(p)
	found.workload(p)
	found.coverage(p)
	found.purpose(p)
	return found
}

// subject names a target, and the variant of the workload where it is one.
func (s setting) subject(t Target) string {
	if s.variant == "" {
		return t.ID
	}
	return t.ID + " in the workload " + s.variant
}

// population refuses a name under which nothing is ever measured.
func (f *findings) population(t Target) {
	if known := t.Metric.Populations(); known != nil && !slices.Contains(known, t.Population) {
		f.add(t.ID, fmt.Sprintf("nothing measures %s of the population %q, use one of: %s", t.Metric, t.Population, joined(known)), "")
	}
}

// exclusions refuses a target that leaves out faults that no scenario in its cells injects.
func (f *findings) exclusions(p *Profile, t Target) {
	for _, class := range t.Exclude {
		if !slices.ContainsFunc(p.Scenarios, func(s Scenario) bool { return s.Fault == class && s.Cells.overlaps(t.Cells) }) {
			f.add(t.ID, fmt.Sprintf("it leaves out the fault %s, which no scenario injects in its cells", class), "")
		}
	}
}

// overlaps says whether some cell may be in both selections.
func (s Selection) overlaps(other Selection) bool {
	for axis, value := range s.Where {
		if selected, named := other.Where[axis]; named && selected != value {
			return false
		}
	}
	return s.Matrix == other.Matrix
}

// rivals refuses two targets that bound the same number of the same cells.
func (f *findings) rivals(p *Profile) {
	for i, one := range p.Targets {
		for _, other := range p.Targets[i+1:] {
			if one.measured() != other.measured() || !one.Cells.overlaps(other.Cells) || (one.Bound.AtMost == nil) != (other.Bound.AtMost == nil) {
				continue
			}
			f.add(other.ID, fmt.Sprintf("%s bounds the same number in the same cells", one.ID), "%s %s, and %s %s: keep one", one.Bound, one.Unit, other.Bound, other.Unit)
		}
	}
}

// measured is everything that decides which number a target bounds in a cell.
func (t Target) measured() string {
	return fmt.Sprint(t.Metric, t.Statistic, t.Window, t.Population, t.Per, t.Exclude)
}

// coverage refuses a scenario or target of a matrix that the profile does not cover, a matrix that it covers and
// demands nothing of, and one that it covers twice.
func (f *findings) coverage(p *Profile) {
	demanded := map[string]bool{}
	covered := func(matrix string) bool {
		return slices.ContainsFunc(p.Coverage, func(c Coverage) bool { return c.Matrix == matrix })
	}
	check := func(subject, matrix string) {
		demanded[matrix] = true
		if !covered(matrix) {
			f.add(subject, fmt.Sprintf("it needs cells of the matrix %s, which coverage does not name", matrix), "")
		}
	}
	for _, s := range p.Scenarios {
		check(s.Name, s.Cells.Matrix)
	}
	for _, t := range p.Targets {
		check(t.ID, t.Cells.Matrix)
	}
	seen := map[string]bool{}
	for i, c := range p.Coverage {
		subject := fmt.Sprintf("coverage[%d] (%s)", i, c.Matrix)
		switch {
		case seen[c.Matrix]:
			f.add(subject, "the matrix is covered twice, keep one depth", "")
		case !demanded[c.Matrix]:
			f.add(subject, "no scenario and no target demands anything of its cells", "")
		}
		seen[c.Matrix] = true
	}
}

// purpose refuses an acceptance profile that leaves a requirement neither assessed nor excluded.
func (f *findings) purpose(p *Profile) {
	if p.Purpose != Acceptance {
		return
	}
	for _, r := range p.NotAssessed() {
		if !slices.ContainsFunc(p.Exclusions, func(e Exclusion) bool { return e.Requirement == r }) {
			f.add(string(r), "an acceptance profile declares a scenario or target for it, or excludes it with a reason: "+r.Title(), "")
		}
	}
}
