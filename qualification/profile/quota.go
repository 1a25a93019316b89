package profile

import (
	"fmt"
	"slices"
)

// workload refuses a workload that contradicts itself: rounds that do not fill the measured time, faults that
// are over before they bite, quotas that are exhausted.
func (f *findings) workload(p *Profile) {
	whole := setting{Workload: p.Workload}
	f.rounds(whole)
	f.faults(p, whole)
	f.quotas(whole)
	for i, v := range p.Workload.Variants {
		s := setting{v.Name, p.Workload.as(v)}
		f.rounds(s)
		f.faults(p, s)
		f.quotas(s)
		for _, earlier := range p.Workload.Variants[:i] {
			if earlier.Cells.overlaps(v.Cells) {
				f.add(s.path("cells"), fmt.Sprintf("the variant %s has some of the same cells", earlier.Name), "")
			}
		}
	}
}

// path names a field of the workload or of a variant of it.
func (s setting) path(field string) string {
	if s.variant == "" {
		return "workload." + field
	}
	return fmt.Sprintf("workload.variants (%s).%s", s.variant, field)
}

// rounds refuses rounds that end before the measured time or after it, and more resources in a round than there are.
func (f *findings) rounds(s setting) {
	for _, part := range []struct {
		name string
		*Rounds
	}{{"changes", s.Changes}, {"churn", s.Churn}, {"maintenance", s.Maintenance}} {
		r := part.Rounds
		if r == nil {
			continue
		}
		if took := duration(r.Rounds) * r.Every; took != s.Duration {
			f.add(s.path(part.name), "its rounds do not fill the measured time", "%d rounds x %s = %s, the workload lasts %s", r.Rounds, r.Every, orNone(took), orNone(s.Duration))
		}
		if r.Resources > s.Resources() {
			f.add(s.path(part.name), "a round has more resources than there are", "%d of %d", r.Resources, s.Resources())
		}
	}
	if s.Changes != nil && s.Churn != nil && s.Changes.Resources+s.Churn.Resources > s.Resources() {
		f.add(s.path("churn"), "no resource is left to be replaced while idle", "%d changed + %d replaced in a round, of %d", s.Changes.Resources, s.Churn.Resources, s.Resources())
	}
}

// faults refuses faults that no scenario injects or that contradict the workload around them.
func (f *findings) faults(p *Profile, s setting) {
	for _, fault := range s.Faults {
		subject := s.path("faults") + " (" + string(fault.Class) + ")"
		if !slices.ContainsFunc(p.Scenarios, func(scenario Scenario) bool { return scenario.Fault == fault.Class }) {
			f.add(subject, "no scenario injects it", "")
		}
		switch {
		case fault.Class == FaultDatabaseDelay && fault.Delay == 0:
			f.add(subject, "say by how much each new session is delayed", "")
		case fault.Class == FaultDatabaseDelay && fault.Hold < 2*s.Interval:
			f.add(subject, "some resource may never meet it", "it lasts %s, and two intervals are %s", orNone(fault.Hold), 2*s.Interval)
		case fault.Class == FaultOverload && s.Resources() != 2*p.Workload.Resources():
			f.add(subject, "an overload is twice the declared workload", "%d resources, twice %d is %d", s.Resources(), p.Workload.Resources(), 2*p.Workload.Resources())
		case fault.Class == FaultOverload && len(s.Faults) > 1:
			f.add(subject, "an overload is no evidence for another fault of the same cell, give each a variant of its own", "")
		}
	}
}

// quotas compares each quota with what is held of it in one namespace at once.
func (f *findings) quotas(s setting) {
	for i, quota := range s.Quotas {
		subject := s.path(fmt.Sprintf("quotas[%d] (%s)", i, quota.Resource))
		if quota.Resource == "" || quota.Limit < 1 || quota.Fixed < 0 || quota.PerOperation < 0 || quota.PerChange < 0 {
			if s.variant == "" {
				f.add(subject, "name the resource, a limit above zero and what one operation takes", "")
			}
			continue
		}
		need, arithmetic := s.held(quota)
		if need > quota.Limit {
			f.add(subject, "the workload exhausts it", "%s, the limit is %d", arithmetic, quota.Limit)
		}
	}
}

// held is the number of objects of a quota that one namespace holds at once.
func (s setting) held(quota Quota) (need int, arithmetic string) {
	operations := s.PerNamespace() * ceil(quota.RetainedFor, s.Interval)
	need = operations * quota.PerOperation
	arithmetic = fmt.Sprintf("%d resources in a namespace x %s / %s = %d operations kept, x %d each = %d", s.PerNamespace(), orNone(quota.RetainedFor), s.Interval, operations, quota.PerOperation, need)
	for _, part := range []struct {
		name string
		*Rounds
	}{{"changes", s.Changes}, {"replacements", s.Churn}} {
		if part.Rounds == nil || quota.PerChange == 0 {
			continue
		}
		kept := min(part.Rounds.Rounds, ceil(quota.ChangeHeld, part.Every)) * ((part.Resources + s.Namespaces - 1) / s.Namespaces)
		need += kept * quota.PerChange
		arithmetic += fmt.Sprintf(", + %d %s kept x %d each = %d", kept, part.name, quota.PerChange, need)
	}
	if quota.Fixed > 0 {
		need += quota.Fixed
		arithmetic += fmt.Sprintf(", + %d that are always there = %d", quota.Fixed, need)
	}
	return need, arithmetic
}

// ceil is how many times part fits into whole, counting the last one begun.
func ceil(whole, part duration) int { return int((whole + part - 1) / part) }
