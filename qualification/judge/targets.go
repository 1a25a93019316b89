package judge

import (
	"fmt"
	"slices"
	"time"

	"ptah.run/ptah/qualification/audit"
	"ptah.run/ptah/qualification/evidence/scenario"
	"ptah.run/ptah/qualification/profile"
	"ptah.run/ptah/qualification/verdict"
)

// Sample is one observation of a population.
type Sample struct {
	Subject string    `json:"subject,omitempty"` // what it is a sample of, such as a resource
	From    time.Time `json:"from"`
	To      time.Time `json:"to"`
	Value   float64   `json:"value"`
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
	judged.Samples, judged.N, judged.Excluded, judged.Evidence = measured.samples, len(measured.samples), measured.excluded, measured.evidence
	verdicts := measured.problems
	switch {
	case judged.N == 0:
		if len(verdicts) == 0 {
			verdicts = append(verdicts, verdict.New(verdict.Inconclusive, verdict.Harness, verdict.NoSamples, target.ID, "nothing of the population %q was measured", target.Population))
		}
	default:
		value := statistic(target.Statistic, measured.samples)
		judged.Value = &value
		verdicts = append(verdicts, within(target, value), enough(target, judged.N))
	}
	judged.Verdict = verdict.Aggregate(verdicts...)
	return judged
}

// within compares the value with the bound. A value beyond the bound stands as a failure even where the samples are
// few or the count is incomplete: a count can only have missed requests.
func within(target profile.Target, value float64) verdict.Verdict {
	if target.Bound.Holds(value) {
		return verdict.Passed()
	}
	return verdict.New(verdict.Fail, verdict.Product, verdict.BoundExceeded, target.ID, "%s of %s over %s is %s %s, declared is %s",
		target.Statistic, target.Metric, target.Population, profile.Number(value), target.Unit, target.Bound)
}

func enough(target profile.Target, n int) verdict.Verdict {
	least := max(target.MinSamples, target.Statistic.LeastSamples())
	if n >= least {
		return verdict.Passed()
	}
	return verdict.New(verdict.Inconclusive, verdict.Harness, verdict.TooFewSamples, target.ID, "there are %d samples of %s, at least %d are needed", n, target.Population, least)
}

// measurement is the samples of a target and what is wrong with them.
type measurement struct {
	samples  []Sample
	excluded int
	problems []verdict.Verdict
	evidence []string
}

func (c *court) measure(target profile.Target) measurement {
	switch target.Metric {
	case profile.ManagerRequests:
		return c.requests(target, c.byManager()...)
	case profile.ManagerWorkRequests:
		lease := c.profile.Installation.LeaderElection
		return c.requests(target, append(c.byManager(), audit.Not(audit.Lease(lease.Namespace, lease.Name)))...)
	case profile.RateLimitedResponses:
		return c.requests(target, append(c.byManager(), audit.WithCode(429))...)
	case profile.MeasuredDuration:
		return c.durations(target)
	default:
		return measurement{problems: []verdict.Verdict{verdict.New(verdict.Inconclusive, verdict.Harness, verdict.MetricUnavailable, target.ID,
			"the evidence of this cell has nothing from which %s can be computed", target.Metric)}}
	}
}

func (c *court) byManager() []audit.Filter {
	return []audit.Filter{audit.ByUser(c.profile.Installation.ManagerIdentity)}
}

// requests counts audited requests over the window of the target.
func (c *court) requests(target profile.Target, filters ...audit.Filter) measurement {
	if c.evidence.Audit == nil {
		return measurement{problems: []verdict.Verdict{verdict.New(verdict.Inconclusive, verdict.Harness, verdict.AuditMissing, target.ID, "the cell kept no audit log")}}
	}
	set := c.evidence.Audit.Set
	events := set.Where(filters...)
	var result measurement
	whole, known := c.span()
	switch {
	case target.Window.Over == profile.EachMeasurement:
		result = c.intervals(target)
		for i, sample := range result.samples {
			result.samples[i].Value = float64(len(audit.Between(events, audit.Interval{From: sample.From, To: sample.To})))
		}
		whole, known = hull(result.samples)
	case !known:
		result.problems = append(result.problems, c.noSpan(target))
	case target.Window.Over == profile.Sliding:
		result = c.peaks(target, events, whole)
	default:
		count := float64(len(audit.Between(events, whole)))
		result.samples = []Sample{{From: whole.From, To: whole.To, Value: count}}
	}
	result.evidence = append(result.evidence, c.evidence.Audit.Digests...)
	if known {
		result.problems = append(result.problems, c.complete(target, whole)...)
	}
	return result
}

// complete says what keeps the count from being proven. A manager that was never seen is a count of the wrong name.
func (c *court) complete(target profile.Target, whole audit.Interval) []verdict.Verdict {
	var problems []verdict.Verdict
	for _, defect := range c.evidence.Audit.Set.Check(c.profile.Cluster.ControlPlanes, whole.From, whole.To) {
		problems = append(problems, verdict.New(verdict.Inconclusive, verdict.Harness, verdict.AuditIncomplete, target.ID, "%s", describe(defect)))
	}
	if len(c.evidence.Audit.Set.Where(c.byManager()...)) == 0 {
		problems = append(problems, verdict.New(verdict.Inconclusive, verdict.Harness, verdict.AuditIncomplete, target.ID,
			"no request of %s is in the audit logs at all", c.profile.Installation.ManagerIdentity))
	}
	return problems
}

func describe(defect audit.Defect) string {
	if defect.Server == "" {
		return defect.Message
	}
	return "API server " + defect.Server + ": " + defect.Message
}

// peaks returns one sample: the busiest window in what is left of the run without the excluded faults. A remainder
// shorter than the window holds no window and yields nothing.
func (c *court) peaks(target profile.Target, events []audit.Event, whole audit.Interval) measurement {
	var result measurement
	length := target.Window.Length.Std()
	faults := c.faults(target.Exclude)
	result.excluded = len(faults)
	for _, segment := range audit.SegmentsWithout(whole, faults) {
		if segment.To.Sub(segment.From) < length {
			continue
		}
		peak := audit.SlidingPeak(audit.Between(events, segment), length)
		sample := Sample{Subject: "busiest window", From: peak.From, To: peak.To, Value: float64(peak.Count)}
		if peak.Count == 0 {
			sample.From, sample.To = segment.From, segment.To
		}
		result.samples = append(result.samples, sample)
	}
	return result
}

// faults returns the time of every scenario that injected a fault of one of the classes.
func (c *court) faults(classes []profile.FaultClass) []audit.Interval {
	var list []audit.Interval
	for _, declared := range c.profile.ScenariosOf(c.cell.Matrix, c.cell.Axes) {
		if !slices.Contains(classes, declared.Fault) {
			continue
		}
		if record, _, found := c.find(declared.Name); found && record.Ended {
			list = append(list, audit.Interval{From: record.Start, To: record.End})
		}
	}
	return list
}

// durations returns the length of each measurement of the population, in seconds.
func (c *court) durations(target profile.Target) measurement {
	result := c.intervals(target)
	for i, sample := range result.samples {
		result.samples[i].Value = sample.To.Sub(sample.From).Seconds()
	}
	return result
}

// intervals returns the measurements of the population that suites recorded, without values, leaving out those of
// scenarios that inject an excluded class of fault.
func (c *court) intervals(target profile.Target) measurement {
	var result measurement
	excluded := c.excludedScenarios(target.Exclude)
	for _, ledger := range c.evidence.Ledgers {
		used := false
		for _, record := range ledger.Records {
			for _, interval := range record.Measurements {
				if interval.Population != target.Population {
					continue
				}
				if slices.Contains(excluded, record.Scenario) {
					result.excluded++
					continue
				}
				used = true
				result.samples = append(result.samples, Sample{Subject: subject(record, interval), From: interval.From, To: interval.To})
			}
		}
		if used {
			result.evidence = append(result.evidence, ledger.Digest)
			if whole := wholeness(ledger); !whole.Satisfies() {
				result.problems = append(result.problems, whole)
			}
		}
	}
	return result
}

func subject(record scenario.Record, interval scenario.Measurement) string {
	if interval.Subject == "" {
		return record.Scenario
	}
	return fmt.Sprintf("%s in %s", interval.Subject, record.Scenario)
}

func (c *court) excludedScenarios(classes []profile.FaultClass) []string {
	var names []string
	for _, declared := range c.profile.ScenariosOf(c.cell.Matrix, c.cell.Axes) {
		if declared.Fault != "" && slices.Contains(classes, declared.Fault) {
			names = append(names, declared.Name)
		}
	}
	return names
}

// span is the time from the first start to the last end of any scenario of the cell.
func (c *court) span() (audit.Interval, bool) {
	var samples []Sample
	for _, ledger := range c.evidence.Ledgers {
		for _, record := range ledger.Records {
			end := record.End
			if !record.Ended {
				end = record.Start
			}
			samples = append(samples, Sample{From: record.Start, To: end})
		}
	}
	return hull(samples)
}

func (c *court) noSpan(target profile.Target) verdict.Verdict {
	return verdict.New(verdict.Inconclusive, verdict.Harness, verdict.LedgerMissing, target.ID, "no suite left a ledger, so there is no time to count in")
}

func hull(samples []Sample) (audit.Interval, bool) {
	if len(samples) == 0 {
		return audit.Interval{}, false
	}
	whole := audit.Interval{From: samples[0].From, To: samples[0].To}
	for _, sample := range samples[1:] {
		if sample.From.Before(whole.From) {
			whole.From = sample.From
		}
		if sample.To.After(whole.To) {
			whole.To = sample.To
		}
	}
	return whole, true
}
