package judge

import (
	"fmt"
	"slices"

	"ptah.run/ptah/qualification/audit"
	"ptah.run/ptah/qualification/evidence/scenario"
	"ptah.run/ptah/qualification/profile"
	"ptah.run/ptah/qualification/verdict"
)

// measurement is the samples of a target and what is wrong with them.
type measurement struct {
	samples  []Sample
	excluded int
	problems []verdict.Verdict
	evidence []string
}

func (m *measurement) problem(code verdict.Code, target profile.Target, format string, arguments ...any) {
	m.problems = append(m.problems, verdict.New(verdict.Inconclusive, verdict.Harness, code, target.ID, format, arguments...))
}

// measures says how the samples of each metric are made of evidence. A metric that the vocabulary has and this table
// has not is inconclusive, and a test holds the two together.
var measures = map[profile.Metric]func(*court, profile.Target) measurement{
	profile.ManagerRequests: func(c *court, t profile.Target) measurement { return c.requests(t, c.byManager()...) },
	profile.ManagerWorkRequests: func(c *court, t profile.Target) measurement {
		lease := c.profile.Installation.LeaderElection
		return c.requests(t, append(c.byManager(), audit.Not(audit.Lease(lease.Namespace, lease.Name)))...)
	},
	profile.RateLimitedResponses: func(c *court, t profile.Target) measurement {
		return c.requests(t, append(c.byManager(), audit.WithCode(429))...)
	},
	profile.MeasuredDuration:       (*court).durations,
	profile.ReadOnlyCycles:         (*court).readOnlyCycles,
	profile.CyclesAfterChange:      (*court).cyclesAfterChange,
	profile.ChangesConverged:       (*court).changesConverged,
	profile.ObservationAge:         (*court).observationAge,
	profile.Overdue:                (*court).overdue,
	profile.TimeWithoutProgress:    (*court).timeWithoutProgress,
	profile.OperationLatency:       (*court).operationLatency,
	profile.RepeatedApplies:        (*court).repeatedApplies,
	profile.LostResources:          (*court).lostResources,
	profile.ClientThrottling:       (*court).clientThrottling,
	profile.PriorityRejections:     (*court).priorityRejections,
	profile.QueueDelay:             (*court).queueDelay,
	profile.AdmissionLatency:       (*court).admissionLatency,
	profile.ManagerMemory:          (*court).managerMemory,
	profile.ManagerMemoryGrowth:    (*court).managerMemoryGrowth,
	profile.ManagerCPU:             (*court).managerCPU,
	profile.ManagerRestarts:        (*court).managerRestarts,
	profile.ManagerOutOfMemory:     (*court).managerOutOfMemory,
	profile.RunningOperations:      (*court).runningOperations,
	profile.PendingOperations:      (*court).pendingOperations,
	profile.RetainedPlans:          (*court).retainedPlans,
	profile.RetainedPlansGrowth:    (*court).retainedPlansGrowth,
	profile.BrokenPins:             (*court).brokenPins,
	profile.AlertFiring:            (*court).alertFiring,
	profile.AlertResolution:        (*court).alertResolution,
	profile.UnauthorisedStatements: (*court).unauthorisedStatements,
	profile.ForeignImages:          (*court).foreignImages,
	profile.UnverifiedArtifacts:    (*court).unverifiedArtifacts,
	profile.DisclosedCredentials:   (*court).disclosedCredentials,
	profile.IncompleteStreams:      (*court).incompleteStreams,
}

func (c *court) measure(target profile.Target) measurement {
	if measure, known := measures[target.Metric]; known {
		return measure(c, target)
	}
	var none measurement
	none.problem(verdict.MetricUnavailable, target, "the evidence of this cell has nothing from which %s can be computed", target.Metric)
	return none
}

func (c *court) byManager() []audit.Filter {
	return []audit.Filter{audit.ByUser(c.profile.Installation.ManagerIdentity)}
}

// requests counts audited requests over the window of the target.
func (c *court) requests(target profile.Target, filters ...audit.Filter) measurement {
	if c.evidence.Audit == nil {
		var none measurement
		none.problem(verdict.AuditMissing, target, "the cell kept no audit log")
		return none
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
		c.complete(target, whole, &result)
	}
	return result
}

// complete says what keeps the count from being proven. A manager that was never seen is a count of the wrong name.
func (c *court) complete(target profile.Target, whole audit.Interval, result *measurement) {
	for _, defect := range c.evidence.Audit.Set.Check(c.profile.Cluster.ControlPlanes, whole.From, whole.To) {
		result.problem(verdict.AuditIncomplete, target, "%s", describe(defect))
	}
	if len(c.evidence.Audit.Set.Where(c.byManager()...)) == 0 {
		result.problem(verdict.AuditIncomplete, target, "no request of %s is in the audit logs at all", c.profile.Installation.ManagerIdentity)
	}
	c.bracketed(target, whole, result)
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
