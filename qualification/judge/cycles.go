package judge

import (
	"fmt"
	"time"

	"ptah.run/ptah/qualification/audit"
	"ptah.run/ptah/qualification/evidence/sample"
	"ptah.run/ptah/qualification/profile"
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
