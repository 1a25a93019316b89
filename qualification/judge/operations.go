package judge

import (
	"fmt"
	"time"

	"ptah.run/ptah/qualification/evidence/sample"
	"ptah.run/ptah/qualification/profile"
	"ptah.run/ptah/qualification/verdict"
)

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
