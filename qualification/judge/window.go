package judge

import (
	"slices"
	"strings"
	"time"

	"ptah.run/ptah/qualification/audit"
	"ptah.run/ptah/qualification/evidence/sample"
	"ptah.run/ptah/qualification/evidence/scenario"
	"ptah.run/ptah/qualification/profile"
	"ptah.run/ptah/qualification/verdict"
)

// What a driver that was never told otherwise does: it takes a reading of everything that is sampled every five
// seconds, and a watch of it gives a sign of life every thirty. Where three signs in a row are missing, nobody looked.
const (
	everyReading = 5 * time.Second
	everyMark    = 30 * time.Second
	missing      = 3
)

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

// steady is the time in which what the profile declares for its duration is counted: the steady state that the driver
// recorded, or all of the cell where it recorded none. A steady state that ended before its declared duration fails,
// whatever was counted in it.
func (c *court) steady(target profile.Target) (audit.Interval, []verdict.Verdict) {
	whole, known := c.span()
	if !known {
		return whole, []verdict.Verdict{c.noSpan(target)}
	}
	for _, ledger := range c.evidence.Ledgers {
		for _, record := range ledger.Records {
			for _, measured := range record.Measurements {
				if measured.Population == scenario.SteadyState {
					whole = audit.Interval{From: measured.From, To: measured.To}
				}
			}
		}
	}
	workload, _ := c.profile.Workload.In(c.cell.Matrix, c.cell.Axes)
	if declared := workload.Duration.Std(); whole.To.Sub(whole.From) < declared {
		return whole, []verdict.Verdict{verdict.New(verdict.Fail, verdict.Unknown, verdict.WindowTooShort, target.ID,
			"the steady state ended after %s, declared are %s", whole.To.Sub(whole.From).Round(time.Second), declared)}
	}
	return whole, nil
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

func (c *court) excludedScenarios(classes []profile.FaultClass) []string {
	var names []string
	for _, declared := range c.profile.ScenariosOf(c.cell.Matrix, c.cell.Axes) {
		if declared.Fault != "" && slices.Contains(classes, declared.Fault) {
			names = append(names, declared.Name)
		}
	}
	return names
}

// allowed is the time that a target is about: all of the cell without the excluded faults.
func (c *court) allowed(target profile.Target, result *measurement) []audit.Interval {
	whole, known := c.span()
	if !known {
		result.problems = append(result.problems, c.noSpan(target))
		return nil
	}
	faults := c.faults(target.Exclude)
	result.excluded = len(faults)
	return audit.SegmentsWithout(whole, faults)
}

// source says whether the cell kept the readings of a source, whole. A stream that was cut, altered or reordered proves
// nothing that it still says: without its end nobody can tell the three apart.
func (c *court) source(target profile.Target, source sample.Source, result *measurement) bool {
	var file sample.File
	known := false
	if c.evidence.Samples != nil {
		file, known = c.evidence.Samples.Files[source]
	}
	if !known {
		result.problem(verdict.SourceMissing, target, "the cell kept no %s, from which %s is computed", source.Name(), target.Metric)
		return false
	}
	result.evidence = append(result.evidence, file.Digest)
	if file.Problem != "" {
		result.problem(verdict.SourceNotWhole, target, "%s is not whole: %s", source.Name(), file.Problem)
		return false
	}
	return true
}

// looked holds readings against the time they must cover: none of them failed, the first and the last reach its ends,
// and between two of them is no hole.
func (c *court) looked(target profile.Target, what string, readings []sample.Reading, over []audit.Interval, result *measurement) {
	hole := c.hole()
	for _, interval := range over {
		at, failed, holes := interval.From, []string{}, 0
		for _, reading := range readings {
			if reading.To.Before(interval.From.Add(-hole)) || reading.From.After(interval.To.Add(hole)) {
				continue
			}
			if reading.Failed != "" {
				if !reading.To.Before(interval.From) && !reading.From.After(interval.To) {
					failed = append(failed, reading.Failed)
				}
				continue
			}
			if reading.From.Sub(at) > hole {
				holes++
			}
			if reading.To.After(at) {
				at = reading.To
			}
		}
		if interval.To.Sub(at) > hole {
			holes++
		}
		if len(failed) > 0 {
			result.problem(verdict.ReadingFailed, target, "%d readings of %s failed from %s to %s, the first because: %s", len(failed), what, clockTime(interval.From), clockTime(interval.To), firstLine(failed[0]))
		}
		if holes > 0 {
			result.problem(verdict.ReadingsGap, target, "nobody read %s for more than %s at a time, %d times from %s to %s", what, hole, holes, clockTime(interval.From), clockTime(interval.To))
		}
	}
}

// hole is the longest time without a reading that is none.
func (c *court) hole() time.Duration {
	if declared := c.profile.Workload.SampleEvery.Std(); declared > 0 {
		return missing * declared
	}
	return missing * everyReading
}

func clockTime(t time.Time) string { return t.UTC().Format("15:04:05.000") }

func firstLine(text string) string {
	line, _, _ := strings.Cut(text, "\n")
	return line
}

// within says whether a moment lies in one of the intervals, ends included.
func within(at time.Time, intervals []audit.Interval) bool {
	return slices.ContainsFunc(intervals, func(i audit.Interval) bool { return !at.Before(i.From) && !at.After(i.To) })
}

// common returns the parts of an interval that lie in one of the others.
func common(of audit.Interval, others []audit.Interval) []audit.Interval {
	var list []audit.Interval
	for _, other := range others {
		part := audit.Interval{From: later(of.From, other.From), To: earlier(of.To, other.To)}
		if part.To.After(part.From) {
			list = append(list, part)
		}
	}
	return list
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

func earlier(a, b time.Time) time.Time {
	if a.Before(b) {
		return a
	}
	return b
}
