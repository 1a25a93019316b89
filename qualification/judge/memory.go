package judge

import (
	"maps"
	"slices"
	"time"

	"ptah.run/ptah/qualification/audit"
	"ptah.run/ptah/qualification/evidence/sample"
	"ptah.run/ptah/qualification/profile"
	"ptah.run/ptah/qualification/verdict"
)

// gauges returns the readings of a gauge of each process within the time.
func (c *court) gauges(target profile.Target, name string, over []audit.Interval, result *measurement) map[string][]Sample {
	byProcess := map[string][]Sample{}
	for _, one := range c.scrapes(target, sample.Manager, over, result) {
		for _, reading := range one.readings {
			if !within(reading.To, over) {
				continue
			}
			value, reported := series{name: name}.sum(reading.Values)
			if !reported {
				result.problem(verdict.SeriesMissing, target, "the process %s does not report %s", one.name(), name)
				continue
			}
			byProcess[one.name()] = append(byProcess[one.name()], Sample{Subject: one.name(), From: reading.From, To: reading.To, Value: value, group: one.process.Life()})
		}
	}
	return byProcess
}

const (
	mebibyte       = 1 << 20
	residentMemory = "process_resident_memory_bytes"
	lastThree      = 3 // checkpoints over which growth is judged
)

// managerMemory returns the most that each manager process held at any reading, in MiB.
func (c *court) managerMemory(target profile.Target) measurement {
	var result measurement
	over := c.allowed(target, &result)
	byProcess := c.gauges(target, residentMemory, over, &result)
	for _, process := range slices.Sorted(maps.Keys(byProcess)) {
		most := byProcess[process][0]
		for _, reading := range byProcess[process] {
			if reading.Value > most.Value {
				most = reading
			}
		}
		most.Value, most.group = most.Value/mebibyte, ""
		result.samples = append(result.samples, most)
	}
	return result
}

// managerMemoryGrowth returns by how many percent each manager process grew at the most from the first of the last three
// checkpoints to a later one. A checkpoint is an inventory of stored plans, after a maintenance.
func (c *court) managerMemoryGrowth(target profile.Target) measurement {
	var result measurement
	over := c.allowed(target, &result)
	checkpoints := c.checkpoints(target, over, &result)
	byProcess := c.gauges(target, residentMemory, over, &result)
	if len(checkpoints) < lastThree {
		return result
	}
	checkpoints = checkpoints[len(checkpoints)-lastThree:]
	for _, process := range slices.Sorted(maps.Keys(byProcess)) {
		at := make([]Sample, 0, lastThree)
		for _, checkpoint := range checkpoints {
			if reading, found := nearest(byProcess[process], checkpoint.To, c.hole()); found {
				at = append(at, reading)
			}
		}
		if len(at) < lastThree || at[0].group != at[2].group || at[0].Value == 0 {
			result.problem(verdict.CounterReset, target, "the process %s was not read in one life at each of the last three checkpoints", process)
			continue
		}
		growth := (max(at[1].Value, at[2].Value)/at[0].Value - 1) * 100
		result.samples = append(result.samples, Sample{Subject: process, From: at[0].From, To: at[2].To, Value: max(growth, 0)})
	}
	return result
}

func nearest(readings []Sample, at time.Time, within time.Duration) (Sample, bool) {
	var best Sample
	found := false
	for _, reading := range readings {
		if distance := reading.To.Sub(at).Abs(); distance <= within && (!found || distance < best.To.Sub(at).Abs()) {
			best, found = reading, true
		}
	}
	return best, found
}
