package judge

import (
	"fmt"
	"time"

	"ptah.run/ptah/qualification/audit"
	"ptah.run/ptah/qualification/evidence/sample"
	"ptah.run/ptah/qualification/profile"
	"ptah.run/ptah/qualification/verdict"
)

// cycle is one whole refresh that changed nothing, from its claim to the state in which its result was recorded.
type cycle struct{ from, to time.Time }

// cycles returns the cycles of one object. A refresh counts once, by the one Job that it had: a claim that the watch
// found under way, one whose Job or generation changed, a Job that counted already, and anything near an uncertain
// outcome do not count.
func (l *life) cycles() []cycle {
	var list []cycle
	var under *sample.Operation
	var generation int64
	ignored, used := "", map[string]bool{}
	for _, now := range l.states {
		r := now.resource
		if under != nil && (r.Uncertain || r.Generation != generation || now.initial) {
			ignored, under = under.ID, nil
		}
		switch active := r.Active; {
		case active == nil:
			if under != nil && under.JobUID != "" && !used[under.JobUID] && now.rests(under.Started) {
				used[under.JobUID] = true
				list = append(list, cycle{from: under.Started, to: now.from})
			}
			under = nil
		case active.Kind != sample.Refresh || now.initial || r.Uncertain:
			ignored, under = active.ID, nil
		case under == nil || under.ID != active.ID:
			if under = nil; active.ID != ignored {
				claimed := *active
				under, generation = &claimed, r.Generation
			}
		case under.JobUID != "" && under.JobUID != active.JobUID:
			ignored, under = active.ID, nil
		default:
			under.JobUID = active.JobUID
		}
	}
	return list
}

// cyclesIn returns the cycles of a slot that lie wholly in an interval.
func (s *slot) cyclesIn(in audit.Interval) []cycle {
	var list []cycle
	for _, one := range s.lives {
		for _, c := range one.cycles() {
			if !c.from.Before(in.From) && !c.to.After(in.To) {
				list = append(list, c)
			}
		}
	}
	return list
}

// steadySlots returns the slots of the population of a target, and the steady state in which they are counted.
func (c *court) steadySlots(target profile.Target, population string, result *measurement) ([]*slot, audit.Interval) {
	window, problems := c.steady(target)
	result.problems = append(result.problems, problems...)
	if window.From.IsZero() {
		return nil, window
	}
	return of(population, c.slots(target, []audit.Interval{window}, result), window), window
}

// readOnlyCycles returns how many cycles each slot of the population had in the steady state.
func (c *court) readOnlyCycles(target profile.Target) measurement {
	var result measurement
	slots, window := c.steadySlots(target, target.Population, &result)
	for _, s := range slots {
		result.samples = append(result.samples, Sample{Subject: s.name, From: window.From, To: window.To, Value: float64(len(s.cyclesIn(window)))})
	}
	return result
}

// changesConverged returns how many changes of each changed slot converged in the steady state.
func (c *court) changesConverged(target profile.Target) measurement {
	var result measurement
	slots, window := c.steadySlots(target, profile.PopulationChanged, &result)
	for _, s := range slots {
		done := 0
		for _, change := range s.changes() {
			if change.done() && within(change.from, []audit.Interval{window}) && !change.converged.After(window.To) {
				done++
			}
		}
		result.samples = append(result.samples, Sample{Subject: s.name, From: window.From, To: window.To, Value: float64(done)})
	}
	return result
}

// cyclesAfterChange returns how many cycles each change in the steady state was followed by, before the next change of
// its slot. A change that never converged was followed by none.
func (c *court) cyclesAfterChange(target profile.Target) measurement {
	var result measurement
	slots, window := c.steadySlots(target, profile.PopulationChanged, &result)
	for _, s := range slots {
		changes := s.changes()
		for i, change := range changes {
			if !within(change.from, []audit.Interval{window}) {
				continue
			}
			until := window.To
			if i+1 < len(changes) {
				until = earlier(until, changes[i+1].from)
			}
			one := Sample{Subject: fmt.Sprintf("%s, change at %s", s.name, clockTime(change.from)), From: change.from, To: until, group: s.name}
			if change.done() {
				one.Value = float64(len(s.cyclesIn(audit.Interval{From: change.converged, To: until})))
			}
			result.samples = append(result.samples, one)
		}
	}
	return result
}

// unreachable says why no operator can keep a target on the workload of the profile, and nothing where one can.
func (c *court) unreachable(target profile.Target) string {
	switch target.Metric {
	case profile.ReadOnlyCycles, profile.CyclesAfterChange, profile.ChangesConverged, profile.ObservationAge:
	default:
		return ""
	}
	for _, finding := range profile.Lint(c.profile) {
		if finding.Subject == target.ID || len(finding.Subject) > len(target.ID) && finding.Subject[:len(target.ID)+1] == target.ID+" " {
			return finding.Problem + ": " + finding.Arithmetic
		}
	}
	return ""
}

// operationLatency returns how long each claim that ended was held. One that is still held counts as held until the end
// of what was watched.
func (c *court) operationLatency(target profile.Target) measurement {
	var result measurement
	over := c.allowed(target, &result)
	for _, s := range c.slots(target, over, &result) {
		for _, one := range s.lives {
			for _, held := range one.operations() {
				if !within(held.started, over) {
					continue
				}
				sample := Sample{Subject: s.name, From: held.started, To: held.to, Value: held.to.Sub(held.started).Seconds(), Open: held.open}
				result.samples = append(result.samples, sample)
			}
		}
	}
	return result
}

// held is one claim of one object. It is open where it was held when the watch ended.
type held struct {
	sample.Operation
	started, to time.Time
	open        bool
}

func (l *life) operations() []held {
	var list []held
	for i, now := range l.states {
		n := len(list)
		if now.idle() {
			continue
		}
		last := i == len(l.states)-1
		if n > 0 && list[n-1].ID == now.resource.Active.ID {
			list[n-1].to, list[n-1].open = now.to, last && !l.ended
			list[n-1].Operation = *now.resource.Active
			continue
		}
		list = append(list, held{Operation: *now.resource.Active, started: now.resource.Active.Started, to: now.to, open: last && !l.ended})
	}
	return list
}

// repeatedApplies returns, for each authorisation that was spent, how many Applies ran on it beyond the first.
func (c *court) repeatedApplies(target profile.Target) measurement {
	var result measurement
	over := c.allowed(target, &result)
	var order []string
	runs, first := map[string]map[string]bool{}, map[string]Sample{}
	for _, s := range c.slots(target, over, &result) {
		for _, one := range s.lives {
			for _, op := range one.operations() {
				if op.Kind != sample.Apply {
					continue
				}
				if op.Authorisation == "" {
					result.problem(verdict.NoEvidence, target, "the Apply %s of %s names no authorisation", op.ID, s.name)
					continue
				}
				if runs[op.Authorisation] == nil {
					runs[op.Authorisation] = map[string]bool{}
					order = append(order, op.Authorisation)
					first[op.Authorisation] = Sample{Subject: op.Authorisation, From: op.started, To: op.to}
				}
				runs[op.Authorisation][op.ID+" "+op.JobUID] = true
			}
		}
	}
	for _, authorisation := range order {
		one := first[authorisation]
		one.Value = float64(len(runs[authorisation]) - 1)
		result.samples = append(result.samples, one)
	}
	return result
}

// lostResources returns 1 for each declared position of the workload that is empty at the end or whose outcome is not
// known, and 0 for every other. A position that the driver itself gave up is none.
func (c *court) lostResources(target profile.Target) measurement {
	var result measurement
	over := c.allowed(target, &result)
	slots := c.slots(target, over, &result)
	window, known := c.span()
	if !known || c.evidence.Samples == nil {
		return result
	}
	seen := len(slots)
	for _, s := range of(target.Population, slots, window) {
		last := s.lives[len(s.lives)-1]
		if last.ended && last.retired {
			continue
		}
		one := Sample{Subject: s.name, From: last.states[0].from, To: last.states[len(last.states)-1].to}
		if last.ended || last.states[len(last.states)-1].resource.Uncertain {
			one.Value = 1
		}
		result.samples = append(result.samples, one)
	}
	workload, _ := c.profile.Workload.In(c.cell.Matrix, c.cell.Axes)
	for ; seen < workload.Resources() && seen > 0 && target.Population != profile.PopulationChanged; seen++ {
		result.samples = append(result.samples, Sample{Subject: fmt.Sprintf("resource %d of %d, never seen", seen+1, workload.Resources()), From: window.From, To: window.To, Value: 1})
	}
	return result
}
