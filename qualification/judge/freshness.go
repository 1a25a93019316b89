package judge

import (
	"time"

	"ptah.run/ptah/qualification/audit"
	"ptah.run/ptah/qualification/evidence/sample"
	"ptah.run/ptah/qualification/profile"
)

// moment is a state of a resource with what came before it.
type moment struct {
	state
	since    time.Time // since when it owes anything without a pause, as far as it was watched
	resumed  bool      // there was such a pause
	progress time.Time // when it last began or ended anything, or was given something else to do
}

// clock returns when the clock began that runs in a state, and false where none does.
type clock func(now moment) (since time.Time, runs bool)

// lateness returns, for each stretch in which the clock of a resource ran, how far it came: one sample for each time at
// which it began.
func (c *court) lateness(target profile.Target, clock clock) measurement {
	var result measurement
	over := c.allowed(target, &result)
	slots := c.slots(target, over, &result)
	whole, known := c.span()
	if !known {
		return result
	}
	for _, s := range of(target.Population, slots, whole) {
		for _, one := range s.lives {
			result.samples = append(result.samples, one.lateness(over, clock)...)
		}
	}
	return result
}

func (l *life) lateness(over []audit.Interval, clock clock) []Sample {
	var list []Sample
	for _, now := range l.moments() {
		if !now.eligible() {
			continue
		}
		since, runs := clock(now)
		if !runs {
			continue
		}
		for _, part := range common(audit.Interval{From: now.from, To: now.to}, over) {
			late := max(part.To.Sub(since).Seconds(), 0)
			if n := len(list); n > 0 && list[n-1].From.Equal(since) {
				list[n-1].To, list[n-1].Value = later(part.To, since), late
				continue
			}
			list = append(list, Sample{Subject: l.slot, From: since, To: later(part.To, since), Value: late})
		}
	}
	return list
}

func (l *life) moments() []moment {
	list := make([]moment, 0, len(l.states))
	for i, now := range l.states {
		next := moment{state: now, since: now.from, progress: now.from}
		if i > 0 {
			before := list[i-1]
			next.resumed = true
			if before.eligible() && now.eligible() {
				next.since, next.resumed = before.since, before.resumed
			}
			if !progressed(before.resource, now.resource) {
				next.progress = before.progress
			}
		}
		list = append(list, next)
	}
	return list
}

func progressed(before, now sample.Resource) bool {
	return claim(before) != claim(now) || before.Generation != now.Generation || before.Desired != now.Desired || !timeOf(before.Completed).Equal(timeOf(now.Completed))
}

func claim(r sample.Resource) string {
	if r.Active == nil {
		return ""
	}
	return r.Active.ID
}

func timeOf(t *time.Time) time.Time {
	if t == nil {
		return time.Time{}
	}
	return *t
}

// began is when a clock began that a time in the status set: at that time, but not during a pause, and not before the
// resource was there where the status has none.
func (m moment) began(at *time.Time) time.Time {
	switch {
	case at == nil:
		return m.since
	case m.resumed:
		return later(*at, m.since)
	default:
		return *at
	}
}

// observationAge returns how old each reading of a database became before the next one was known. A resource that was
// never read is as old as it is known.
func (c *court) observationAge(target profile.Target) measurement {
	return c.lateness(target, func(now moment) (time.Time, bool) {
		return now.began(now.resource.Observed), true
	})
}

// overdue returns how far each resource came past the time at which its next refresh was due. One that holds a claim is
// at work and not overdue.
func (c *court) overdue(target profile.Target) measurement {
	return c.lateness(target, func(now moment) (time.Time, bool) {
		return now.began(now.resource.Due), now.idle()
	})
}

// timeWithoutProgress returns how long each resource that had something to do did nothing: it held no claim, its work was
// due, and no person was waited for.
func (c *court) timeWithoutProgress(target profile.Target) measurement {
	return c.lateness(target, func(now moment) (time.Time, bool) {
		r := now.resource
		since := later(now.since, now.progress)
		if r.Ready {
			since = later(since, timeOf(r.Due))
		}
		return since, now.idle() && !r.Gated && (!r.Ready || r.Due != nil)
	})
}
