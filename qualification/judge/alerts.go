package judge

import (
	"slices"
	"time"

	"ptah.run/ptah/qualification/audit"
	"ptah.run/ptah/qualification/evidence/sample"
	"ptah.run/ptah/qualification/evidence/scenario"
	"ptah.run/ptah/qualification/profile"
	"ptah.run/ptah/qualification/verdict"
)

// incident is one fault that an alert must report: from the event that the alert is about to the verified recovery.
type incident struct {
	subject  string
	from, to time.Time
	record   scenario.Record
}

// incidents returns the measurements that have the name of the alert, each with the scenario that recorded it.
func (c *court) incidents(target profile.Target, result *measurement) []incident {
	var list []incident
	excluded := c.excludedScenarios(target.Exclude)
	for _, ledger := range c.evidence.Ledgers {
		for _, record := range ledger.Records {
			for _, measured := range record.Measurements {
				switch {
				case measured.Population != target.Population:
				case slices.Contains(excluded, record.Scenario):
					result.excluded++
				default:
					list = append(list, incident{subject: subject(record, measured), from: measured.From, to: measured.To, record: record})
					result.evidence = append(result.evidence, ledger.Digest)
					if whole := wholeness(ledger); !whole.Satisfies() {
						result.problems = append(result.problems, whole)
					}
				}
			}
		}
	}
	if len(list) == 0 {
		result.problem(verdict.FaultMissing, target, "no suite recorded an incident for %s", target.Population)
	}
	return list
}

// witnessed says whether something from outside the product shows the fault of the incident while it lasted.
func (i incident) witnessed() bool {
	return slices.ContainsFunc(i.record.Witnesses, func(w scenario.Observation) bool {
		return within(w.At, []audit.Interval{{From: i.from, To: i.to}})
	})
}

// alertFiring returns the time from the start of each incident to the first notification of it. Only a notification of an
// alert that began with the incident or after it is of the incident: one that began earlier is of another, and where the
// alert was on already, nothing that was delivered shows that this incident would have been reported.
func (c *court) alertFiring(target profile.Target) measurement {
	return c.alerts(target, func(one incident, result *measurement) {
		fresh, found := c.firstFiring(target, one)
		switch {
		case found:
			result.samples = append(result.samples, Sample{Subject: one.subject, From: one.from, To: fresh.At, Value: fresh.At.Sub(one.from).Seconds()})
		case c.firingAt(target.Population, one.from):
			stale := verdict.New(verdict.Void, verdict.Harness, verdict.StaleAlert, target.ID,
				"%s was firing already when the incident of %s began at %s: no notification is of it", target.Population, one.subject, clockTime(one.from))
			result.problems = append(result.problems, stale)
		case c.received(one.until(target)):
			result.problems = append(result.problems, verdict.New(verdict.Fail, verdict.Product, verdict.AlertMissing, target.ID,
				"no notification of %s for the incident of %s, from %s to %s", target.Population, one.subject, clockTime(one.from), clockTime(one.to)))
		default:
			result.problem(verdict.ReadingsGap, target, "the receiver did not listen until %s, so that a notification may have been missed", clockTime(one.until(target)))
		}
	})
}

// alertResolution returns the time from the verified recovery of each incident to the last notification that one of its
// alerts is over. An alert that was over before counts as zero.
func (c *court) alertResolution(target profile.Target) measurement {
	return c.alerts(target, func(one incident, result *measurement) {
		if _, found := c.firstFiring(target, one); !found {
			result.problem(verdict.FaultMissing, target, "%s never fired for the incident of %s, so that it could not resolve", target.Population, one.subject)
			return
		}
		last, open := time.Time{}, ""
		for fingerprint, resolved := range c.resolutions(target.Population, one) {
			if resolved.IsZero() {
				open = fingerprint
			}
			last = later(last, resolved)
		}
		switch {
		case open == "":
			result.samples = append(result.samples, Sample{Subject: one.subject, From: one.to, To: later(last, one.to), Value: max(last.Sub(one.to).Seconds(), 0)})
		case c.received(one.to.Add(bound(target))):
			result.problems = append(result.problems, verdict.New(verdict.Fail, verdict.Product, verdict.AlertMissing, target.ID,
				"no notification that %s is over after the incident of %s, which ended at %s", target.Population, one.subject, clockTime(one.to)))
		default:
			result.problem(verdict.ReadingsGap, target, "the receiver did not listen until %s, so that a notification may have been missed", clockTime(one.to.Add(bound(target))))
		}
	})
}

// alerts judges each incident that has a witness. An incident without one voids what was measured: the fault may never
// have taken effect, whatever was delivered.
func (c *court) alerts(target profile.Target, each func(incident, *measurement)) measurement {
	var result measurement
	incidents := c.incidents(target, &result)
	if !c.source(target, sample.Alerts, &result) {
		return result
	}
	for _, one := range incidents {
		if !one.witnessed() {
			result.problems = append(result.problems, verdict.New(verdict.Void, verdict.Harness, verdict.WitnessMissing, target.ID,
				"nothing shows that the incident of %s took effect between %s and %s", one.subject, clockTime(one.from), clockTime(one.to)))
			continue
		}
		each(one, &result)
	}
	return result
}

// firstFiring is the first notification of an alert that began with the incident or in the time in which it is waited
// for. Deliveries after the recovery are of another incident.
func (c *court) firstFiring(target profile.Target, one incident) (sample.Delivery, bool) {
	for _, delivery := range c.deliveries(target.Population) {
		begins := !delivery.Started.Before(one.from) && !delivery.Started.After(one.to)
		if delivery.Status == sample.Firing && begins && !delivery.At.Before(one.from) {
			return delivery, true
		}
	}
	return sample.Delivery{}, false
}

// deliveries are those of one alert, in the order in which they arrived.
func (c *court) deliveries(alert string) []sample.Delivery {
	list := slices.DeleteFunc(slices.Clone(c.evidence.Samples.Alerts), func(d sample.Delivery) bool { return d.Alert != alert })
	slices.SortStableFunc(list, func(a, b sample.Delivery) int { return a.At.Compare(b.At) })
	return list
}

// firingAt says whether some alert had begun before a moment and was not over then, by what was delivered at any time.
func (c *court) firingAt(alert string, at time.Time) bool {
	return slices.ContainsFunc(c.deliveries(alert), func(d sample.Delivery) bool {
		if d.Status != sample.Firing || !d.Started.Before(at) {
			return false
		}
		return !slices.ContainsFunc(c.deliveries(alert), func(end sample.Delivery) bool {
			return end.Status == sample.Resolved && end.Fingerprint == d.Fingerprint && end.Started.Equal(d.Started) && !over(end).After(at)
		})
	})
}

// over is when an alert that resolved was over, by its own end or else by the notification of it.
func over(d sample.Delivery) time.Time {
	if d.Ended.IsZero() {
		return d.At
	}
	return d.Ended
}

// resolutions returns when the notification came that each alert of an incident is over, and no time for one that is not.
func (c *court) resolutions(alert string, one incident) map[string]time.Time {
	ended := map[string]time.Time{}
	for _, delivery := range c.deliveries(alert) {
		if delivery.Started.Before(one.from) || delivery.Started.After(one.to) {
			continue
		}
		switch {
		case delivery.Status == sample.Firing && ended[delivery.Fingerprint].IsZero():
			ended[delivery.Fingerprint] = time.Time{}
		case delivery.Status == sample.Resolved:
			ended[delivery.Fingerprint] = delivery.At
		}
	}
	return ended
}

// received says whether the receiver was there to be told anything up to a moment: some line of it is later.
func (c *court) received(until time.Time) bool {
	return slices.ContainsFunc(c.evidence.Samples.Alerts, func(d sample.Delivery) bool { return !d.At.Before(until) })
}

// until is how long a notification of the incident is waited for before it counts as missing: as long as the target
// allows, and as long as the incident lasts.
func (i incident) until(target profile.Target) time.Time {
	return later(i.to, i.from.Add(bound(target)))
}

func bound(target profile.Target) time.Duration {
	if target.Bound.AtMost == nil {
		return 0
	}
	return time.Duration(*target.Bound.AtMost * float64(time.Second))
}
