package judge

import (
	"cmp"
	"slices"
	"time"

	"ptah.run/ptah/qualification/audit"
	"ptah.run/ptah/qualification/evidence/sample"
	"ptah.run/ptah/qualification/profile"
	"ptah.run/ptah/qualification/verdict"
)

// state is what a resource said from one change of it to the next. Initial is the state that a watch found: what was
// under way then began at some earlier time.
type state struct {
	from, to time.Time
	initial  bool
	resource sample.Resource
}

// idle says whether the resource holds no claim.
func (s state) idle() bool { return s.resource.Active == nil }

// eligible says whether the resource owes anything: one that is suspended or goes away does not.
func (s state) eligible() bool { return !s.resource.Suspended && !s.resource.Deleting }

// life is everything that one object said, from when it was first seen.
type life struct {
	slot, uid string
	states    []state
	ended     bool // it was seen to be deleted
	retired   bool // by the driver, for good
}

// slot is the lives of the objects that held one position of the workload, in order.
type slot struct {
	name  string
	lives []*life
}

// slots folds the watch of the workload, or says what keeps it from being proof over the intervals it must cover.
func (c *court) slots(target profile.Target, over []audit.Interval, result *measurement) []*slot {
	if !c.source(target, sample.History, result) {
		return nil
	}
	history := c.evidence.Samples.History
	c.unbroken(target, history, over, result)
	return fold(history)
}

func fold(history []sample.Change) []*slot {
	byName, byUID := map[string]*slot{}, map[string]*life{}
	var slots []*slot
	for _, change := range history {
		if change.Resource == nil {
			continue
		}
		name, uid := change.Resource.Slot(), change.Resource.Slot()+" "+change.Resource.UID
		one := byUID[uid]
		if one == nil {
			if byName[name] == nil {
				byName[name] = &slot{name: name}
				slots = append(slots, byName[name])
			}
			one = &life{slot: name, uid: change.Resource.UID}
			byUID[uid] = one
			byName[name].lives = append(byName[name].lives, one)
		}
		if n := len(one.states); n > 0 {
			one.states[n-1].to = change.At
		}
		one.states = append(one.states, state{from: change.At, to: change.At, initial: change.Type == sample.Initial, resource: *change.Resource})
		if change.Type == sample.Deleted {
			one.ended, one.retired = true, change.Retired
		}
	}
	for _, one := range byUID {
		if last := &one.states[len(one.states)-1]; !one.ended {
			last.to = history[len(history)-1].At
		}
	}
	slices.SortFunc(slots, func(a, b *slot) int { return cmp.Compare(a.name, b.name) })
	return slots
}

// unbroken holds the watch against the time that it must cover.
func (c *court) unbroken(target profile.Target, history []sample.Change, over []audit.Interval, result *measurement) {
	what := sample.History.Name()
	if len(history) == 0 {
		result.problem(verdict.ReadingsGap, target, "%s holds nothing", what)
		return
	}
	const hole = missing * everyMark
	for i, change := range history {
		if i > 0 && change.At.Before(history[i-1].At) {
			result.problem(verdict.SourceNotWhole, target, "%s goes back in time at %s", what, clockTime(change.At))
			break
		}
	}
	for _, interval := range over {
		first, last := history[0].At, history[len(history)-1].At
		if first.After(interval.From) || last.Before(interval.To) {
			result.problem(verdict.ReadingsGap, target, "%s reaches from %s to %s, and must from %s to %s", what, clockTime(first), clockTime(last), clockTime(interval.From), clockTime(interval.To))
		}
		for i, change := range history {
			if change.Type == sample.Gap && within(change.At, []audit.Interval{interval}) {
				result.problem(verdict.ReadingsGap, target, "%s is broken at %s: %s", what, clockTime(change.At), firstLine(change.Message))
			}
			if i > 0 && change.At.Sub(history[i-1].At) > hole && len(common(audit.Interval{From: history[i-1].At, To: change.At}, []audit.Interval{interval})) > 0 {
				result.problem(verdict.ReadingsGap, target, "%s gives no sign of life from %s to %s", what, clockTime(history[i-1].At), clockTime(change.At))
			}
		}
	}
}

// reworked is one change of what a resource is to be: its spec asks for another artifact, an Apply ran, or another object
// took its place. Converged is when it was first seen done.
type reworked struct {
	from      time.Time
	converged time.Time
}

func (r reworked) done() bool { return !r.converged.IsZero() }

// changes returns the changes of a slot in order. The first object of a slot is not a change of it.
func (s *slot) changes() []reworked {
	var list []reworked
	open := func(at time.Time) { list = append(list, reworked{from: at}) }
	unfinished := func() bool { return len(list) > 0 && !list[len(list)-1].done() }
	for i, one := range s.lives {
		for j, now := range one.states {
			applies := now.resource.Active != nil && now.resource.Active.Kind == sample.Apply
			switch {
			case i > 0 && j == 0, j > 0 && now.resource.Desired != one.states[j-1].resource.Desired:
				open(now.from)
			case applies && !unfinished() && !one.startsWithApply(j):
				open(now.resource.Active.Started)
			}
			if unfinished() && now.rests(list[len(list)-1].from) {
				list[len(list)-1].converged = now.from
			}
		}
	}
	return list
}

// startsWithApply says whether the object was never at rest before: its first Apply brings it there and changes nothing.
func (l *life) startsWithApply(until int) bool {
	for _, earlier := range l.states[:until] {
		if earlier.rests(time.Time{}) {
			return false
		}
	}
	return true
}

// rests says whether the resource has nothing to do, by a reconciliation that completed after a moment. Kubernetes
// writes times in whole seconds.
func (s state) rests(after time.Time) bool {
	r := s.resource
	return s.idle() && r.Ready && !r.Uncertain && r.Completed != nil && !r.Completed.Before(after.Truncate(time.Second))
}

// touched says whether anything of the slot was changed in an interval.
func (s *slot) touched(in audit.Interval) bool {
	return slices.ContainsFunc(s.changes(), func(r reworked) bool { return within(r.from, []audit.Interval{in}) })
}

// of returns the slots of a population of resources.
func of(population string, slots []*slot, in audit.Interval) []*slot {
	return slices.DeleteFunc(slices.Clone(slots), func(s *slot) bool {
		switch population {
		case profile.PopulationUnchanged:
			return s.touched(in)
		case profile.PopulationChanged:
			return !s.touched(in)
		default:
			return false
		}
	})
}
