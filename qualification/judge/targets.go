package judge

import (
	"cmp"
	"math"
	"slices"
	"time"

	"ptah.run/ptah/qualification/profile"
	"ptah.run/ptah/qualification/verdict"
)

// Sample is one observation of a population. Least and Most are set where the value is not exact: what it was lies
// between them. Open says that nothing is known about the most it can have been.
type Sample struct {
	Subject string    `json:"subject,omitempty"` // what it is a sample of, such as a resource
	From    time.Time `json:"from"`
	To      time.Time `json:"to"`
	Value   float64   `json:"value"`
	Least   *float64  `json:"least,omitempty"`
	Most    *float64  `json:"most,omitempty"`
	Open    bool      `json:"open,omitempty"`

	group string // what it belongs to where the statistic is taken for parts of the population apart
	count int    // observations that it stands for, where it is a statistic already; else 0
	above bool   // what it was is more than Least, and not Least itself
}

// targets judges every target that the profile declares for the cell.
func (c *court) targets() []TargetVerdict {
	list := []TargetVerdict{}
	for _, target := range c.profile.TargetsOf(c.cell.Matrix, c.cell.Axes) {
		list = append(list, c.target(target))
	}
	return list
}

func (c *court) target(target profile.Target) TargetVerdict {
	judged := TargetVerdict{Target: target.ID, Requirement: target.Requirement, Bound: target.Bound.String(), Unit: target.Unit}
	measured := c.measure(target)
	measured.finite(target)
	judged.Samples, judged.Excluded, judged.Evidence = measured.samples, measured.excluded, measured.evidence
	verdicts := measured.problems
	groups := grouped(target, measured.samples)
	switch {
	case len(groups) == 0:
		if len(verdicts) == 0 {
			verdicts = append(verdicts, verdict.New(verdict.Inconclusive, verdict.Harness, verdict.NoSamples, target.ID, "nothing of the population %q was measured", target.Population))
		}
	default:
		worst := worstOf(target, groups)
		if math.IsInf(worst.value, 0) {
			verdicts = append(verdicts, verdict.New(verdict.Inconclusive, verdict.Harness, verdict.Undecided, target.ID, "the %s of its samples is no number", target.Statistic))
			break
		}
		judged.N, judged.Value, judged.Least, judged.Most = total(groups), &worst.value, worst.leastKnown(), worst.mostKnown()
		verdicts = append(verdicts, c.within(target, worst, len(measured.problems) > 0), enough(target, groups))
	}
	judged.Verdict = verdict.Aggregate(verdicts...)
	return judged
}

// finite drops samples that are no numbers. No source yields any, but one that was made up may.
func (m *measurement) finite(target profile.Target) {
	real := func(v float64) bool { return !math.IsNaN(v) && !math.IsInf(v, 0) }
	before := len(m.samples)
	m.samples = slices.DeleteFunc(m.samples, func(s Sample) bool {
		return !real(s.Value) || s.Least != nil && !real(*s.Least) || s.Most != nil && !real(*s.Most)
	})
	if dropped := before - len(m.samples); dropped > 0 {
		m.problem(verdict.Undecided, target, "%d samples are no numbers", dropped)
	}
}

// estimate is a statistic of one group of samples.
type estimate struct {
	group              string
	value, least, most float64 // most is infinite where nothing is known about it
	count              int
	above              bool
}

func (e estimate) leastKnown() *float64 {
	if e.least == e.value && e.most == e.value {
		return nil
	}
	return &e.least
}

func (e estimate) mostKnown() *float64 {
	if e.leastKnown() == nil || math.IsInf(e.most, 1) {
		return nil
	}
	return &e.most
}

// grouped returns the statistic of each group of the samples, in order of the groups. Every statistic grows with each
// of its samples, so the statistic of the least that they can have been is the least that it can have been.
func grouped(target profile.Target, samples []Sample) []estimate {
	byGroup := map[string][]Sample{}
	for _, sample := range samples {
		byGroup[sample.groupFor(target.Per)] = append(byGroup[sample.groupFor(target.Per)], sample)
	}
	var list []estimate
	for group, of := range byGroup {
		e := estimate{group: group}
		var values, least, most []float64
		for _, sample := range of {
			values, least, most = append(values, sample.Value), append(least, *cmp.Or(sample.Least, &sample.Value)), append(most, sample.most())
			e.count += max(sample.count, 1)
			e.above = e.above || sample.above
		}
		e.value, e.least, e.most = statistic(target.Statistic, values), statistic(target.Statistic, least), statistic(target.Statistic, most)
		list = append(list, e)
	}
	slices.SortFunc(list, func(a, b estimate) int { return cmp.Compare(a.group, b.group) })
	return list
}

func (s Sample) most() float64 {
	if s.Open {
		return math.Inf(1)
	}
	return *cmp.Or(s.Most, &s.Value)
}

func (s Sample) groupFor(per profile.Grouping) string {
	switch {
	case per == "":
		return ""
	case s.group != "":
		return s.group
	default:
		return s.Subject
	}
}

// worstOf is the group that counts: that with the largest statistic under an upper bound, that with the smallest under
// a lower one. Which group that is need not be known to know how large its statistic is.
func worstOf(target profile.Target, groups []estimate) estimate {
	worst, pick := groups[0], func(a, b float64) float64 { return max(a, b) }
	if target.Bound.AtMost == nil {
		pick = func(a, b float64) float64 { return min(a, b) }
	}
	for _, e := range groups[1:] {
		worst.above = worst.above && e.above
		worst.value, worst.least, worst.most = pick(worst.value, e.value), pick(worst.least, e.least), pick(worst.most, e.most)
	}
	return worst
}

func total(groups []estimate) int {
	n := 0
	for _, e := range groups {
		n += e.count
	}
	return n
}

// within compares a statistic with the bound. A value beyond an upper bound stands as a failure even where evidence is
// missing, because what is missing can only add to it. For the same reason a value below a lower bound decides
// nothing while evidence is missing.
func (c *court) within(target profile.Target, e estimate, incomplete bool) verdict.Verdict {
	least, most := target.Bound.Holds(e.least), target.Bound.Holds(e.most)
	if e.above && target.Bound.AtMost != nil && e.least == *target.Bound.AtMost {
		least = false
	}
	unknown := target.Bound.AtMost == nil && incomplete
	switch {
	case least && most:
		return verdict.Passed()
	case !least && !most && !unknown:
		return c.beyond(target, e.value)
	case unknown:
		return verdict.New(verdict.Inconclusive, verdict.Harness, verdict.Undecided, target.ID, "%s of %s over %s is %s %s in what was kept, declared is %s, and evidence is missing",
			target.Statistic, target.Metric, target.Population, profile.Number(e.value), target.Unit, target.Bound)
	case math.IsInf(e.most, 1):
		return verdict.New(verdict.Inconclusive, verdict.Harness, verdict.Undecided, target.ID, "%s of %s over %s is at least %s %s and may be more, declared is %s",
			target.Statistic, target.Metric, target.Population, profile.Number(e.least), target.Unit, target.Bound)
	default:
		return verdict.New(verdict.Inconclusive, verdict.Harness, verdict.Undecided, target.ID, "%s of %s over %s lies between %s and %s %s, declared is %s",
			target.Statistic, target.Metric, target.Population, profile.Number(e.least), profile.Number(e.most), target.Unit, target.Bound)
	}
}

// beyond is the verdict on a value that breaks its bound. Where the workload of the profile itself keeps every operator
// from the bound, the failure stands and is not the product's.
func (c *court) beyond(target profile.Target, value float64) verdict.Verdict {
	failed := func(cause verdict.Cause) verdict.Verdict {
		return verdict.New(verdict.Fail, cause, verdict.BoundExceeded, target.ID, "%s of %s over %s is %s %s, declared is %s",
			target.Statistic, target.Metric, target.Population, profile.Number(value), target.Unit, target.Bound)
	}
	if why := c.profile.Unreachable(target, c.cell.Matrix, c.cell.Axes); why != "" {
		return verdict.Aggregate(failed(verdict.Harness), verdict.New(verdict.Fail, verdict.Harness, verdict.Unreachable, target.ID, "%s", why))
	}
	return failed(verdict.Product)
}

func enough(target profile.Target, groups []estimate) verdict.Verdict {
	least := max(target.MinSamples, target.Statistic.LeastSamples())
	var found []verdict.Verdict
	for _, e := range groups {
		if e.count < least {
			found = append(found, verdict.New(verdict.Inconclusive, verdict.Harness, verdict.TooFewSamples, target.ID, "there are %d samples of %s, at least %d are needed", e.count, inGroup(target, e), least))
		}
	}
	if len(found) == 0 {
		return verdict.Passed()
	}
	return verdict.Aggregate(found...)
}

func inGroup(target profile.Target, e estimate) string {
	if e.group == "" {
		return target.Population
	}
	return target.Population + " for " + e.group
}
