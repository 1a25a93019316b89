package profile

import (
	"fmt"
	"time"
)

// slotDelay is the part of an interval by which the operator may delay a refresh to space out resources.
const slotDelay = 0.5

// requests holds a bound on requests in a sliding window against what the workload costs by the profile's own bounds
// on one refresh and one Apply. Changes are taken as spread evenly over the time that the profile gives a batch.
func (f *findings) requests(p *Profile, s setting, t Target) {
	if t.Window.Over != Sliding || t.Bound.AtMost == nil || (t.Metric != ManagerRequests && t.Metric != ManagerWorkRequests) {
		return
	}
	each, ok := p.costOf(PopulationRefresh)
	if !ok {
		return
	}
	length := t.Window.Length
	refreshes := float64(s.Resources()) * float64(length) / float64(s.Interval)
	need := refreshes * each
	arithmetic := fmt.Sprintf("%d resources x %s / %s = %.4g refreshes in a window, x %s requests each = %.5g", s.Resources(), length, s.Interval, refreshes, Number(each), need)
	apply, known := p.costOf(PopulationApply)
	if c := s.Changes; c != nil && known {
		spread := max(length, p.batchBound(c.Every))
		more := float64(c.Resources) * (each + apply) * float64(length) / float64(spread)
		need += more
		arithmetic += fmt.Sprintf(", + %d changes x (%s + %s) requests x %s / %s = %.5g, = %.5g", c.Resources, Number(each), Number(apply), length, spread, more, need)
	}
	if need > *t.Bound.AtMost {
		f.add(s.subject(t), "the workload alone may exceed the bound", "%s, the bound is %s", arithmetic, Number(*t.Bound.AtMost))
	}
}

// costOf is the profile's own bound on the requests of one refresh or Apply.
func (p *Profile) costOf(population string) (float64, bool) {
	for _, t := range p.Targets {
		if t.Window.Over == EachMeasurement && t.Population == population && t.Bound.AtMost != nil && (t.Metric == ManagerRequests || t.Metric == ManagerWorkRequests) {
			return *t.Bound.AtMost, true
		}
	}
	return 0, false
}

// batchBound is the time that the profile gives a batch of changes, and otherwise the time to the next one.
func (p *Profile) batchBound(every duration) duration {
	for _, t := range p.Targets {
		if t.Metric == MeasuredDuration && t.Population == PopulationChangeBatch && t.Bound.AtMost != nil {
			return seconds(*t.Bound.AtMost)
		}
	}
	return every
}

// cycles compares a demanded number of read-only cycles with the intervals there are, less those that maintenance
// and changes cost a resource.
func (f *findings) cycles(s setting, t Target) {
	if t.Metric != ReadOnlyCycles || t.Bound.AtLeast == nil || t.Statistic != Min {
		return
	}
	if s.Duration == 0 {
		f.add(s.subject(t), "cycles are counted over workload.duration, which is not declared", "")
		return
	}
	intervals := int(s.Duration / s.Interval)
	most, arithmetic := intervals, fmt.Sprintf("%s / %s = %d intervals", s.Duration, s.Interval, intervals)
	cost := func(what string, r *Rounds) {
		if r != nil && r.Rounds*r.CostIntervals > 0 {
			most -= r.Rounds * r.CostIntervals
			arithmetic += fmt.Sprintf(" - %d %s x %d intervals each = %d", r.Rounds, what, r.CostIntervals, most)
		}
	}
	cost("maintenances", s.Maintenance)
	if t.Population == PopulationAll || t.Population == PopulationChanged {
		cost("changes", s.Changes)
	}
	if *t.Bound.AtLeast > float64(most) {
		f.add(s.subject(t), fmt.Sprintf("no resource of %q can reach %s cycles, whatever the operator does", t.Population, Number(*t.Bound.AtLeast)), "%s", arithmetic)
	}
}

// changes compares demanded changes, and cycles between two of them, with the rounds that there are.
func (f *findings) changes(s setting, t Target) {
	c := s.Changes
	if t.Bound.AtLeast == nil || c == nil { // without changes there are no samples, which is found elsewhere
		return
	}
	bound := *t.Bound.AtLeast
	switch {
	case t.Metric == ChangesConverged && bound > float64(c.Rounds):
		f.add(s.subject(t), fmt.Sprintf("no resource can converge on %s changes, whatever the operator does", Number(bound)), "there are %d rounds", c.Rounds)
	case t.Metric == CyclesAfterChange:
		intervals := int(c.Every / s.Interval)
		most, arithmetic := intervals-c.CostIntervals, fmt.Sprintf("%s / %s = %d intervals from change to change - %d that a change costs", c.Every, s.Interval, intervals, c.CostIntervals)
		if m := s.Maintenance; m != nil {
			most -= m.CostIntervals
			arithmetic += fmt.Sprintf(" - %d that a maintenance costs", m.CostIntervals)
		}
		if bound > float64(most) {
			f.add(s.subject(t), fmt.Sprintf("no resource can reach %s cycles after each change, whatever the operator does", Number(bound)), "%s = %d", arithmetic, most)
		}
	}
}

// age compares a bound on the age of observations with the interval, the slot delay and the length of an operation.
func (f *findings) age(p *Profile, s setting, t Target) {
	if t.Metric != ObservationAge || t.Bound.AtMost == nil || t.Statistic != Max {
		return
	}
	oldest := s.Interval.Std() + time.Duration(slotDelay*float64(s.Interval))
	arithmetic := fmt.Sprintf("an interval of %s plus a slot delay of half of it", s.Interval)
	for _, other := range p.Targets {
		if other.Metric == OperationLatency && other.Bound.AtMost != nil {
			operation := seconds(*other.Bound.AtMost)
			oldest += operation.Std()
			arithmetic += fmt.Sprintf(" plus an operation of %s", operation)
			break
		}
	}
	if bound := *t.Bound.AtMost; oldest.Seconds() > bound {
		f.add(s.subject(t), "a healthy operator exceeds the bound", "%s is an age of %s s, the bound is %s s", arithmetic, Number(oldest.Seconds()), Number(bound))
	}
}

// batch refuses a batch of changes that may still be under way when the next one begins.
func (f *findings) batch(s setting, t Target) {
	if t.Metric != MeasuredDuration || t.Population != PopulationChangeBatch || t.Bound.AtMost == nil || s.Changes == nil {
		return
	}
	if bound := seconds(*t.Bound.AtMost); bound > s.Changes.Every {
		f.add(s.subject(t), "the next batch of changes begins before this one must have ended", "a batch may take %s, the next one begins after %s", bound, s.Changes.Every)
	}
}

// memory refuses a bound that a manager cannot exceed because it is killed before.
func (f *findings) memory(p *Profile, t Target) {
	m := p.Installation.Manager
	if t.Metric != ManagerMemory || t.Bound.AtMost == nil || m == nil {
		return
	}
	if bound := *t.Bound.AtMost; bound >= float64(m.MemoryLimitMebibytes) {
		f.add(t.ID, "it can never fail: a manager is killed before it exceeds the bound", "the bound is %s MiB, the memory limit is %d MiB", Number(bound), m.MemoryLimitMebibytes)
	}
}

// alert compares a deadline with the time that scraping, evaluating and grouping take by themselves.
func (f *findings) alert(p *Profile, t Target) {
	if (t.Metric != AlertFiring && t.Metric != AlertResolution) || t.Bound.AtMost == nil {
		return
	}
	m := p.Installation.Monitoring
	if m == nil {
		f.add(t.ID, "it is about an alert, and installation.monitoring is not declared", "")
		return
	}
	for _, rule := range m.Rules {
		if rule.Alert != t.Population {
			continue
		}
		waits, what := rule.After, "the condition must last"
		if t.Metric == AlertResolution {
			waits, what = rule.Window, "the rule looks back"
		}
		need := waits.Std() + m.Delay().Std()
		if need.Seconds() > *t.Bound.AtMost {
			f.add(t.ID, "a notification cannot arrive in time", "%s %s + a scrape of %s + an evaluation of %s + a group wait of %s = %s s, the bound is %s s",
				what, orNone(waits), m.ScrapeEvery, m.EvaluateEvery, m.GroupWait, Number(need.Seconds()), Number(*t.Bound.AtMost))
		}
		return
	}
	f.add(t.ID, fmt.Sprintf("installation.monitoring has no rule %s", t.Population), "")
}
