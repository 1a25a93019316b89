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

// increment is how much a counter rose from one reading of a process to the next. It rose at some moment after the
// first reading began and before the second one ended.
type increment struct {
	from, to time.Time
	by       float64
}

// increments returns the increments of a counter over all lives of all processes of a role. A counter means something
// only within one life of its process: one that begins anew counts from zero, which is never a negative amount, and
// what the life before it counted after its last reading is not known. The result says so.
func (c *court) increments(target profile.Target, lives []scraped, pick series, over []audit.Interval, result *measurement) map[string][]increment {
	byProcess := map[string][]increment{}
	for i, one := range lives {
		last, known := 0.0, false
		var at time.Time
		if began := one.process.Started; within(began, over) {
			at, known = began, true
			if follows(one, lives[:i]) {
				result.problem(verdict.CounterReset, target, "the process %s began anew at %s, and how far its %s had come when it ended was not read", one.name(), clockTime(began), pick.name)
			}
		}
		for _, reading := range one.readings {
			value, reported := pick.sum(reading.Values)
			if !reported {
				if within(reading.From, over) {
					result.problem(verdict.SeriesMissing, target, "the process %s does not report %s", one.name(), pick.name)
				}
				known = false
				continue
			}
			switch {
			case known && value < last:
				result.problem(verdict.CounterReset, target, "%s of the process %s fell from %s to %s at %s", pick.name, one.name(), profile.Number(last), profile.Number(value), clockTime(reading.To))
				byProcess[one.name()] = append(byProcess[one.name()], increment{from: at, to: reading.To, by: value})
			case known:
				byProcess[one.name()] = append(byProcess[one.name()], increment{from: at, to: reading.To, by: value - last})
			}
			last, at, known = value, reading.From, true
		}
	}
	return byProcess
}

// follows says whether a life is that of a process that was read before in another.
func follows(one scraped, before []scraped) bool {
	return slices.ContainsFunc(before, func(other scraped) bool { return other.process.Pod == one.process.Pod })
}

// amount is how much a counter rose in some of the time: Least is what rose wholly within, Most what rose in any reading
// that touches it.
func amount(increments []increment, over []audit.Interval) (least, most float64) {
	for _, one := range increments {
		span := audit.Interval{From: one.from, To: one.to}
		for _, interval := range over {
			if !one.from.Before(interval.From) && !one.to.After(interval.To) {
				least += one.by
			}
		}
		if slices.ContainsFunc(over, func(i audit.Interval) bool { return !span.To.Before(i.From) && !span.From.After(i.To) }) {
			most += one.by
		}
	}
	return least, most
}

// counted makes a sample of a counter that rose by an amount between least and most. The most is what is shown; where
// something was not read nobody knows the most, and the sample is open.
func counted(subject string, over audit.Interval, least, most float64, open bool) Sample {
	switch {
	case open:
		return Sample{Subject: subject, From: over.From, To: over.To, Value: least, Least: &least, Open: true}
	case least != most:
		return Sample{Subject: subject, From: over.From, To: over.To, Value: most, Least: &least, Most: &most}
	default:
		return Sample{Subject: subject, From: over.From, To: over.To, Value: least}
	}
}

// clientThrottling returns how long the clients of the managers waited for their own rate limiter: in the busiest window
// of each manager where they are taken apart, else of all together.
func (c *court) clientThrottling(target profile.Target) measurement {
	var result measurement
	over := c.allowed(target, &result)
	lives := c.scrapes(target, sample.Manager, over, &result)
	byProcess := c.increments(target, lives, series{name: "rest_client_rate_limiter_duration_seconds_sum"}, over, &result)
	if target.Per == "" {
		var all []increment
		for _, process := range slices.Sorted(maps.Keys(byProcess)) {
			all = append(all, byProcess[process]...)
		}
		byProcess = map[string][]increment{"all managers": all}
	}
	for _, process := range slices.Sorted(maps.Keys(byProcess)) {
		if len(byProcess[process]) > 0 {
			result.samples = append(result.samples, busiest(target, process, byProcess[process], over, len(result.problems) > 0)...)
		}
	}
	return result
}

// busiest returns one sample for each stretch of time: the position of the window of the target in which a counter rose
// most. Readings bound it: what rose in readings wholly inside of a window is the least, what rose in any that touch it
// the most. A stretch shorter than the window holds none.
func busiest(target profile.Target, subject string, increments []increment, over []audit.Interval, open bool) []Sample {
	var list []Sample
	for _, stretch := range over {
		length := target.Window.Length.Std()
		if target.Window.Over != profile.Sliding {
			length = stretch.To.Sub(stretch.From)
		}
		if length <= 0 || stretch.To.Sub(stretch.From) < length {
			continue
		}
		var least, most float64
		at := audit.Interval{From: stretch.From, To: stretch.From.Add(length)}
		for _, first := range increments {
			// A window that holds the whole of an increment begins with it, one that touches it begins where it ends.
			holds, _ := amount(increments, common(audit.Interval{From: first.from, To: first.from.Add(length)}, []audit.Interval{stretch}))
			_, touches := amount(increments, common(audit.Interval{From: first.to, To: first.to.Add(length)}, []audit.Interval{stretch}))
			least = max(least, holds)
			if touches > most {
				most, at = touches, audit.Interval{From: first.to, To: first.to.Add(length)}
			}
		}
		list = append(list, counted(subject, at, least, most, open))
	}
	return list
}

// priorityRejections returns how many requests priority and fairness of each API server rejected.
func (c *court) priorityRejections(target profile.Target) measurement {
	var result measurement
	over := c.allowed(target, &result)
	lives := c.scrapes(target, sample.APIServer, over, &result)
	rejected := series{name: "apiserver_flowcontrol_rejected_requests_total", implied: "apiserver_flowcontrol_dispatched_requests_total"}
	byProcess := c.increments(target, lives, rejected, over, &result)
	for _, server := range slices.Sorted(maps.Keys(byProcess)) {
		least, most := amount(byProcess[server], over)
		result.samples = append(result.samples, counted(server, span(over), least, most, len(result.problems) > 0))
	}
	return result
}

// span is the time from the first to the last of some intervals.
func span(over []audit.Interval) audit.Interval {
	if len(over) == 0 {
		return audit.Interval{}
	}
	return audit.Interval{From: over[0].From, To: over[len(over)-1].To}
}
