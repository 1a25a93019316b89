package judge

import (
	"slices"

	"ptah.run/ptah/qualification/audit"
	"ptah.run/ptah/qualification/evidence/sample"
	"ptah.run/ptah/qualification/profile"
	"ptah.run/ptah/qualification/verdict"
)

// managerCPU returns how many processors all managers together used on average in each scenario, those of excluded
// faults left out. It is taken between the readings next to the scenario, from the last before it to the first after.
func (c *court) managerCPU(target profile.Target) measurement {
	var result measurement
	excluded := c.excludedScenarios(target.Exclude)
	for _, ledger := range c.evidence.Ledgers {
		for _, record := range ledger.Records {
			switch {
			case slices.Contains(excluded, record.Scenario):
				result.excluded++
			case record.Ended && record.End.After(record.Start):
				c.cpuIn(target, record.Scenario, audit.Interval{From: record.Start, To: record.End}, &result)
			}
		}
	}
	result.evidence = slices.Compact(result.evidence)
	return result
}

func (c *court) cpuIn(target profile.Target, name string, in audit.Interval, result *measurement) {
	const counter = "process_cpu_seconds_total"
	lives := c.scrapes(target, sample.Manager, []audit.Interval{in}, result)
	cores, seen := 0.0, 0
	for _, one := range lives {
		before, after := around(one.readings, in)
		if before == nil || after == nil {
			continue
		}
		first, reported := series{name: counter}.sum(before.Values)
		last, still := series{name: counter}.sum(after.Values)
		length := after.From.Sub(before.From)
		if !reported || !still || length <= 0 {
			result.problem(verdict.SeriesMissing, target, "the process %s does not report %s around the scenario %s", one.name(), counter, name)
			continue
		}
		if last < first {
			result.problem(verdict.CounterReset, target, "%s of the process %s fell from %s to %s in the scenario %s", counter, one.name(), profile.Number(first), profile.Number(last), name)
			continue
		}
		cores += (last - first) / length.Seconds()
		seen++
	}
	switch {
	case len(lives) == 0:
	case seen < c.profile.Installation.Replicas:
		result.problem(verdict.CounterReset, target, "only %d of %d managers were read in one life before and after the scenario %s", seen, c.profile.Installation.Replicas, name)
	default:
		result.samples = append(result.samples, Sample{Subject: name, From: in.From, To: in.To, Value: cores})
	}
}

// around returns the last reading of a life that ended before an interval, and the first that began after it.
func around(readings []sample.Scrape, in audit.Interval) (before, after *sample.Scrape) {
	for i := range readings {
		if !readings[i].To.After(in.From) {
			before = &readings[i]
		}
		if after == nil && !readings[i].From.Before(in.To) {
			after = &readings[i]
		}
	}
	return before, after
}

// managerRestarts returns how often each manager Pod was started again, or came in place of another, outside of the
// excluded faults.
func (c *court) managerRestarts(target profile.Target) measurement {
	return c.livesOf(target, func(before *sample.Process, now sample.Scrape) float64 {
		if before == nil {
			return 1
		}
		return float64(max(now.Process.Restarts-before.Restarts, 1))
	})
}

// managerOutOfMemory returns how often each manager Pod was started again because the kernel had killed it.
func (c *court) managerOutOfMemory(target profile.Target) measurement {
	return c.livesOf(target, func(_ *sample.Process, now sample.Scrape) float64 {
		if now.OutOfMemory {
			return 1
		}
		return 0
	})
}

// livesOf returns one sample for each Pod of a manager: the sum of what each of its lives counts for that began within
// the time. Before is the life of the same Pod before it; nil says that the Pod itself is new.
func (c *court) livesOf(target profile.Target, counts func(before *sample.Process, now sample.Scrape) float64) measurement {
	var result measurement
	over := c.allowed(target, &result)
	lives := c.scrapes(target, sample.Manager, over, &result)
	var order []string
	byPod := map[string]*Sample{}
	for i, one := range lives {
		if byPod[one.name()] == nil {
			byPod[one.name()] = &Sample{Subject: one.name(), From: one.readings[0].From}
			order = append(order, one.name())
		}
		pod := byPod[one.name()]
		pod.To = one.readings[len(one.readings)-1].To
		if !within(one.process.Started, over) {
			continue
		}
		var before *sample.Process
		if i > 0 && lives[i-1].process.UID == one.process.UID {
			before = &lives[i-1].process
		}
		pod.Value += counts(before, one.readings[0])
	}
	for _, name := range order {
		result.samples = append(result.samples, *byPod[name])
	}
	return result
}

// runningOperations returns how many operation Pods ran at each reading.
func (c *court) runningOperations(target profile.Target) measurement {
	return c.pods(target, func(count sample.PodCount) *int { return count.Running })
}

// pendingOperations returns how many operation Pods waited to run at each reading.
func (c *court) pendingOperations(target profile.Target) measurement {
	return c.pods(target, func(count sample.PodCount) *int { return count.Pending })
}

func (c *court) pods(target profile.Target, which func(sample.PodCount) *int) measurement {
	var result measurement
	over := c.allowed(target, &result)
	if !c.source(target, sample.Pods, &result) {
		return result
	}
	var readings []sample.Reading
	for _, count := range c.evidence.Samples.Pods {
		readings = append(readings, count.Reading)
		if value := which(count); value != nil && within(count.To, over) {
			result.samples = append(result.samples, Sample{From: count.From, To: count.To, Value: float64(*value)})
		}
	}
	c.looked(target, "operation Pods", readings, over, &result)
	return result
}

// checkpoints returns the inventories of stored plans within the time. One that failed makes their sequence incomplete.
func (c *court) checkpoints(target profile.Target, over []audit.Interval, result *measurement) []sample.Stored {
	if !c.source(target, sample.Inventory, result) {
		return nil
	}
	var list []sample.Stored
	for _, stored := range c.evidence.Samples.Inventory {
		switch {
		case !within(stored.To, over):
		case stored.Failed != "":
			result.problem(verdict.ReadingFailed, target, "the inventory at %s failed: %s", clockTime(stored.To), firstLine(stored.Failed))
		default:
			list = append(list, stored)
		}
	}
	workload, _ := c.profile.Workload.In(c.cell.Matrix, c.cell.Axes)
	if rounds := workload.Maintenance; rounds != nil && len(list) < rounds.Rounds {
		result.problem(verdict.TooFewSamples, target, "there are inventories of %d checkpoints, the workload declares %d maintenances", len(list), rounds.Rounds)
	}
	return list
}

// retainedPlans returns the size of all stored payloads at each checkpoint, in MiB.
func (c *court) retainedPlans(target profile.Target) measurement {
	return c.inventory(target, func(stored sample.Stored) float64 { return float64(*stored.PayloadBytes) / mebibyte })
}

// brokenPins returns how many pins did not resolve at each checkpoint.
func (c *court) brokenPins(target profile.Target) measurement {
	return c.inventory(target, func(stored sample.Stored) float64 { return float64(*stored.BrokenPins) })
}

func (c *court) inventory(target profile.Target, value func(sample.Stored) float64) measurement {
	var result measurement
	for _, stored := range c.checkpoints(target, c.allowed(target, &result), &result) {
		result.samples = append(result.samples, Sample{Subject: "checkpoint", From: stored.From, To: stored.To, Value: value(stored)})
	}
	return result
}

// retainedPlansGrowth returns by how many MiB the stored payloads had grown at each of the last three checkpoints, from
// the first of them.
func (c *court) retainedPlansGrowth(target profile.Target) measurement {
	result := c.retainedPlans(target)
	if len(result.samples) < lastThree {
		result.samples = nil
		return result
	}
	result.samples = result.samples[len(result.samples)-lastThree:]
	first := result.samples[0].Value
	for i := range result.samples {
		result.samples[i].Value -= first
	}
	return result
}
