package judge_test

import (
	"fmt"
	"slices"
	"testing"

	"ptah.run/ptah/qualification/evidence/sample"
	"ptah.run/ptah/qualification/evidence/scenario"
	"ptah.run/ptah/qualification/judge"
	"ptah.run/ptah/qualification/profile"
	"ptah.run/ptah/qualification/profile/document"
)

// actor plays one resource and writes down what a watch sees of it.
type actor struct {
	now  sample.Resource
	seen []sample.Change
	jobs int
}

func schema(name string) *actor {
	return &actor{now: sample.Resource{Family: sample.Schema, Namespace: "a", Name: name, UID: name + "-1", Generation: 1, Desired: "v1"}}
}

func (a *actor) see(seconds float64, kind sample.ChangeType) *actor {
	snapshot := a.now
	if a.now.Active != nil {
		active := *a.now.Active
		snapshot.Active = &active
	}
	a.seen = append(a.seen, sample.Change{At: at(seconds), Type: kind, Resource: &snapshot})
	return a
}

func (a *actor) claim(seconds float64, kind sample.Kind) *actor {
	a.jobs++
	id := fmt.Sprintf("%s-%d", a.now.UID, a.jobs)
	a.now.Active = &sample.Operation{Kind: kind, ID: id, JobUID: "job-" + id, Started: at(seconds)}
	if kind == sample.Apply {
		a.now.Active.Authorisation = "approval-" + id
	}
	return a.see(seconds, sample.Modified)
}

// rest ends the claim: the resource is ready, its database was read, and its next refresh is due after two minutes.
func (a *actor) rest(seconds float64) *actor {
	started := a.now.Active.Started
	a.now.Active, a.now.Ready, a.now.Completed, a.now.Observed = nil, true, when(seconds), when(seconds-1)
	due := started.Add(120e9)
	a.now.Due = &due
	return a.see(seconds, sample.Modified)
}

// cycles refreshes every two minutes from a moment on, ten seconds each.
func (a *actor) cycles(from float64, count int) *actor {
	for i := range count {
		a.claim(from+120*float64(i), sample.Refresh).rest(from + 120*float64(i) + 10)
	}
	return a
}

// reworks asks for another artifact, applies it and proves it, in sixty seconds.
func (a *actor) reworks(from float64, desired string) *actor {
	a.now.Desired, a.now.Ready = desired, false
	a.now.Generation++
	a.see(from, sample.Modified)
	a.claim(from+5, sample.Refresh)
	a.now.Active = nil
	a.see(from+15, sample.Modified)
	return a.claim(from+20, sample.Apply).claim(from+40, sample.Proof).rest(from + 60)
}

func histories(actors ...*actor) []sample.Change {
	var all []sample.Change
	for _, a := range actors {
		all = append(all, a.seen...)
	}
	slices.SortStableFunc(all, func(a, b sample.Change) int { return a.At.Compare(b.At) })
	return watch(all...)
}

func settled(name string) *actor {
	a := schema(name)
	a.now.Ready, a.now.Completed, a.now.Observed, a.now.Due = true, when(-20), when(-20), when(20)
	return a.see(-10, sample.Initial)
}

func cyclesTarget(population string, bound profile.Bound) profile.Target {
	return profile.Target{Metric: profile.ReadOnlyCycles, Statistic: profile.Min, Bound: bound, Population: population}
}

func broken(a *actor, message string) sample.Set {
	history := histories(a)
	history[len(history)/2] = sample.Change{At: history[len(history)/2].At, Type: sample.Gap, Message: message}
	return sample.Set{History: history}
}

func TestReadOnlyCycles(t *testing.T) {
	quiet := func() *actor { return settled("orders").cycles(20, 5) }
	changed := func() *actor { return settled("books").cycles(20, 1).reworks(160, "v2").cycles(260, 2) }
	all := func(bound profile.Bound) profile.Target { return cyclesTarget(profile.PopulationAll, bound) }
	strange := func(change func(*sample.Resource)) sample.Set {
		a := settled("orders").claim(20, sample.Refresh)
		change(&a.now)
		a.see(25, sample.Modified).rest(30)
		return sample.Set{History: histories(a.cycles(140, 1))}
	}
	runMetered(t, map[string]metered{
		"should count whole refreshes":                     {target: all(atLeast(5)), set: sample.Set{History: histories(quiet())}, want: "pass, 5 of 1"},
		"should count one too few":                         {target: all(atLeast(6)), set: sample.Set{History: histories(quiet())}, want: "fail (product), 5 of 1, bound-exceeded"},
		"should take the worst of all resources":           {target: all(atLeast(3)), set: sample.Set{History: histories(quiet(), changed())}, want: "pass, 3 of 2"},
		"should leave changed resources out of the others": {target: cyclesTarget(profile.PopulationUnchanged, atLeast(5)), set: sample.Set{History: histories(quiet(), changed())}, want: "pass, 5 of 1"},
		"should see changed resources only":                {target: cyclesTarget(profile.PopulationChanged, atLeast(4)), set: sample.Set{History: histories(quiet(), changed())}, want: "fail (product), 3 of 1, bound-exceeded"},
		"should not count a refresh that the watch found":  {target: all(atLeast(0)), set: sample.Set{History: histories(schema("orders").claim(-10, sample.Refresh).rest(30).cycles(140, 1))}, want: "pass, 1 of 1"},
		"should not count a refresh without a Job":         {target: all(atLeast(0)), set: strange(func(r *sample.Resource) { r.Active.JobUID = "" }), want: "pass, 1 of 1"},
		"should not count a refresh whose Job changed":     {target: all(atLeast(0)), set: strange(func(r *sample.Resource) { r.Active.JobUID = "another" }), want: "pass, 1 of 1"},
		"should not count a refresh of a generation past":  {target: all(atLeast(0)), set: strange(func(r *sample.Resource) { r.Generation++ }), want: "pass, 1 of 1"},
		"should not count near an unknown outcome":         {target: all(atLeast(0)), set: strange(func(r *sample.Resource) { r.Uncertain = true }), want: "pass, 0 of 1"},
		"should not count a refresh that did not succeed": {target: all(atLeast(0)), want: "pass, 1 of 1", set: func() sample.Set {
			a := settled("orders").claim(20, sample.Refresh)
			a.now.Active, a.now.Ready = nil, false
			return sample.Set{History: histories(a.see(30, sample.Modified).cycles(140, 1))}
		}()},
		"should not count one Job twice": {target: all(atLeast(0)), want: "pass, 1 of 1", set: func() sample.Set {
			a := settled("orders").cycles(20, 1)
			a.jobs--
			return sample.Set{History: histories(a.cycles(140, 1))}
		}()},
		"should not know a watch that was broken":        {target: all(atLeast(5)), set: broken(quiet(), "expired"), want: "inconclusive (harness), 5 of 1, readings-gap", contains: "is broken"},
		"should not fail on a watch that was broken":     {target: all(atLeast(6)), set: broken(quiet(), "expired"), want: "inconclusive (harness), 5 of 1, readings-gap, undecided"},
		"should not know a watch that began late":        {target: all(atLeast(1)), set: sample.Set{History: histories(quiet())[20:]}, want: "inconclusive (harness), 3 of 1, readings-gap", contains: "reaches from"},
		"should not know a watch that ended early":       {target: all(atLeast(1)), set: sample.Set{History: histories(quiet())[:40]}, want: "inconclusive (harness), 3 of 1, readings-gap", contains: "reaches from"},
		"should not know a watch without signs of life":  {target: all(atLeast(1)), set: sample.Set{History: slices.Delete(histories(quiet()), 45, 60)}, want: "inconclusive (harness), 4 of 1, readings-gap", contains: "no sign of life"},
		"should not know a watch that goes back in time": {target: all(atLeast(1)), set: sample.Set{History: append(histories(quiet()), sample.Change{At: at(5), Type: sample.Mark}, sample.Change{At: at(700), Type: sample.Mark})}, want: "inconclusive (harness), 5 of 1, readings-gap, source-not-whole", contains: "goes back"},
		"should not know a watch of nothing":             {target: all(atLeast(1)), set: sample.Set{History: watch()}, want: "inconclusive (harness), no-samples"},
		"should fail a run that stopped early": {target: all(atLeast(1)), set: sample.Set{History: histories(quiet())}, want: "fail (unknown), 5 of 1, window-too-short", contains: "ended after 10m0s",
			change: func(p *profile.Profile, _ *judge.Evidence) { p.Workload.Duration = document.Duration(90 * 60e9) }},
		"should count in the steady state only": {target: all(atLeast(3)), set: sample.Set{History: histories(quiet())}, want: "fail (product), 2 of 1, bound-exceeded",
			change: func(_ *profile.Profile, e *judge.Evidence) {
				e.Ledgers = []judge.Ledger{ledger(false, scenario.Measurement{Population: scenario.SteadyState, From: at(30), To: at(380)})}
			}},
	})
}

func TestChangesAndWhatFollowsThem(t *testing.T) {
	converged := profile.Target{Metric: profile.ChangesConverged, Statistic: profile.Min, Bound: atLeast(2), Population: profile.PopulationChanged}
	followed := profile.Target{Metric: profile.CyclesAfterChange, Statistic: profile.Min, Bound: atLeast(1), Population: profile.PopulationChange}
	good := func() *actor {
		return settled("books").reworks(20, "v2").cycles(100, 1).reworks(220, "v3").cycles(320, 2)
	}
	hasty := func() *actor { return settled("books").reworks(20, "v2").reworks(100, "v3").cycles(220, 2) }
	stuck := func() *actor {
		a := settled("books").reworks(20, "v2").cycles(100, 1)
		a.now.Desired, a.now.Ready = "v3", false
		a.now.Generation++
		return a.see(220, sample.Modified)
	}
	replaced := func() *actor {
		a := settled("books").reworks(20, "v2").cycles(100, 1)
		a.now.Deleting = true
		a.see(220, sample.Deleted)
		next := schema("books")
		next.now.UID, next.seen = "books-2", a.seen
		return next.see(230, sample.Added).claim(235, sample.Apply).claim(255, sample.Proof).rest(270).cycles(360, 1)
	}
	set := func(a *actor) sample.Set { return sample.Set{History: histories(a, settled("orders").cycles(20, 4))} }
	runMetered(t, map[string]metered{
		"should count changes that converged":          {target: converged, set: set(good()), want: "pass, 2 of 1"},
		"should not count a change that is stuck":      {target: converged, set: set(stuck()), want: "fail (product), 1 of 1, bound-exceeded"},
		"should count a replacement as a change":       {target: converged, set: set(replaced()), want: "pass, 2 of 1"},
		"should not mistake no change for converged":   {target: converged, set: set(settled("books").cycles(20, 4)), want: "inconclusive (harness), no-samples"},
		"should see a cycle after each change":         {target: followed, set: set(good()), want: "pass, 1 of 2"},
		"should see a change without a cycle after it": {target: followed, set: set(hasty()), want: "fail (product), 0 of 2, bound-exceeded"},
		"should see no cycle after a stuck change":     {target: followed, set: set(stuck()), want: "fail (product), 0 of 2, bound-exceeded"},
		"should see a cycle after a replacement":       {target: followed, set: set(replaced()), want: "pass, 1 of 2"},
	})
}

func TestFreshness(t *testing.T) {
	// An interval of a minute makes an age of 90 s the least that a bound can ask for.
	brisk := func(p *profile.Profile, _ *judge.Evidence) { p.Workload.Interval = document.Duration(60e9) }
	age := func(bound float64, exclude ...profile.FaultClass) profile.Target {
		return profile.Target{Metric: profile.ObservationAge, Statistic: profile.Max, Bound: atMost(bound), Population: profile.PopulationAll, Exclude: exclude}
	}
	overdue := profile.Target{Metric: profile.Overdue, Statistic: profile.Max, Bound: atMost(60), Population: profile.PopulationAll}
	idle := profile.Target{Metric: profile.TimeWithoutProgress, Statistic: profile.Max, Bound: atMost(300), Population: profile.PopulationAll}
	late := func() *actor { return settled("orders").cycles(20, 2).cycles(340, 3) }   // 200 s between two refreshes, 80 of them overdue
	during := func() *actor { return settled("orders").cycles(20, 1).cycles(290, 3) } // no refresh in the outage
	paused := func() *actor {
		a := settled("orders").cycles(20, 1)
		a.now.Suspended = true
		a.see(100, sample.Modified)
		a.now.Suspended = false
		return a.see(400, sample.Modified).cycles(420, 2)
	}
	never := func() *actor { return schema("orders").see(50, sample.Added) }
	gated := func() *actor {
		a := settled("orders").cycles(20, 1)
		a.now.Ready, a.now.Gated = false, true
		return a.see(60, sample.Modified)
	}
	set := func(a *actor) sample.Set { return sample.Set{History: histories(a)} }
	cases := map[string]metered{
		"should take the age at which an observation is replaced": {target: age(121), set: set(settled("orders").cycles(20, 5)), want: "pass, 121 of 6"},
		"should see one second too old":                           {target: age(120), set: set(settled("orders").cycles(20, 5)), want: "fail (product), 121 of 6, bound-exceeded"},
		"should see an observation grow old":                      {target: age(121), set: set(late()), want: "fail (product), 201 of 6, bound-exceeded"},
		"should leave out the time of an excluded fault":          {target: age(171, profile.FaultRegistryOutage), outage: true, set: set(during()), want: "pass, 171 of 5"},
		"should not leave out another fault":                      {target: age(171, profile.FaultDrift), outage: true, set: set(during()), want: "fail (product), 271 of 5, bound-exceeded"},
		"should not hold a suspended resource to anything":        {target: age(121), set: set(paused()), want: "pass, 121 of 5"},
		"should know the age of what was never observed":          {target: age(121), set: set(never()), want: "fail (product), 550 of 1, bound-exceeded"},
		"should not pass where nobody is eligible": {target: age(121), want: "inconclusive (harness), no-samples", set: func() sample.Set {
			a := schema("orders")
			a.now.Suspended = true
			return set(a.see(-10, sample.Initial))
		}()},
		"should not see work in flight as overdue":          {target: overdue, set: set(settled("orders").cycles(20, 5)), want: "pass, 0 of 6"},
		"should see overdue work":                           {target: overdue, set: set(late()), want: "fail (product), 80 of 6, bound-exceeded"},
		"should see a resource that never was given a time": {target: overdue, set: set(never()), want: "fail (product), 550 of 1, bound-exceeded"},
		"should see progress":                               {target: idle, set: set(settled("orders").cycles(20, 5)), want: "pass, 0 of 6"},
		"should see a resource that does nothing":           {target: idle, set: set(never()), want: "fail (product), 550 of 1, bound-exceeded"},
		"should not count the time that a person takes":     {target: idle, set: set(gated()), want: "pass, 0 of 2"},
		"should count from when work was due":               {target: profile.Target{Metric: idle.Metric, Statistic: profile.Max, Bound: atMost(79), Population: profile.PopulationAll}, set: set(late()), want: "fail (product), 80 of 6, bound-exceeded"},
		"should not take a new message for progress": {target: idle, want: "fail (product), 550 of 1, bound-exceeded", set: func() sample.Set {
			a := never()
			for seconds := 60.0; seconds < 600; seconds += 60 {
				a.see(seconds, sample.Modified)
			}
			return set(a)
		}()},
	}
	for name, test := range cases {
		test.change = brisk
		cases[name] = test
	}
	runMetered(t, cases)
}

// The bound may be out of reach for every operator by the profile's own arithmetic. Then a failure is not the product's.
func TestATargetThatNobodyCanKeepIsNotHeldAgainstTheProduct(t *testing.T) {
	short := func(p *profile.Profile, _ *judge.Evidence) { p.Workload.Duration = document.Duration(600e9) }
	runMetered(t, map[string]metered{
		"should blame the profile": {target: cyclesTarget(profile.PopulationAll, atLeast(6)), set: sample.Set{History: histories(settled("orders").cycles(20, 5))}, change: short,
			want: "fail (harness), 5 of 1, bound-exceeded, target-unreachable", contains: "10m / 2m = 5 intervals"},
		"should blame the product within reach": {target: cyclesTarget(profile.PopulationAll, atLeast(5)), set: sample.Set{History: histories(settled("orders").cycles(20, 4))}, change: short,
			want: "fail (product), 4 of 1, bound-exceeded"},
	})
}

func TestOperations(t *testing.T) {
	latency := func(statistic profile.Statistic, bound float64, least int) profile.Target {
		return profile.Target{Metric: profile.OperationLatency, Statistic: statistic, Bound: atMost(bound), Population: profile.PopulationOperation, MinSamples: least}
	}
	repeated := profile.Target{Metric: profile.RepeatedApplies, Statistic: profile.Sum, Bound: atMost(0), Population: profile.PopulationAuthorisation}
	lost := profile.Target{Metric: profile.LostResources, Statistic: profile.Sum, Bound: atMost(0), Population: profile.PopulationAll}
	many := func() []*actor {
		var list []*actor
		for i := range 5 {
			list = append(list, settled(fmt.Sprintf("s%d", i)).cycles(20+float64(i), 5))
		}
		return list
	}
	twice := settled("books").claim(20, sample.Apply)
	twice.now.Active = nil
	twice.see(30, sample.Modified).claim(40, sample.Apply)
	twice.now.Active.Authorisation = "approval-books-1-1"
	twice.see(41, sample.Modified).rest(60)
	twice.seen = slices.DeleteFunc(twice.seen, func(c sample.Change) bool { return c.At.Equal(at(40)) })
	gone := func(retired bool) sample.Set {
		a := settled("books")
		a.see(100, sample.Deleted)
		a.seen[len(a.seen)-1].Retired = retired
		return sample.Set{History: histories(a, settled("orders"))}
	}
	uncertain := settled("books")
	uncertain.now.Uncertain = true
	uncertain.see(100, sample.Modified)
	runMetered(t, map[string]metered{
		"should take the percentile of enough operations":      {target: latency(profile.P95, 10, 20), set: sample.Set{History: histories(many()...)}, want: "pass, 10 of 25"},
		"should not take the percentile of too few":            {target: latency(profile.P95, 10, 20), set: sample.Set{History: histories(settled("orders").cycles(20, 5))}, want: "inconclusive (harness), 10 of 5, too-few-samples", contains: "at least 20 are needed"},
		"should fail a percentile":                             {target: latency(profile.P95, 9, 20), set: sample.Set{History: histories(many()...)}, want: "fail (product), 10 of 25, bound-exceeded"},
		"should bear one that is held at the end":              {target: latency(profile.P95, 10, 20), set: sample.Set{History: histories(append(many(), settled("x").claim(595, sample.Refresh))...)}, want: "pass, 10 of 26"},
		"should not know the longest while one is held":        {target: latency(profile.Max, 60, 1), set: sample.Set{History: histories(settled("x").cycles(20, 1).claim(595, sample.Refresh))}, want: "inconclusive (harness), 15 of 2, undecided", contains: "at least 15 seconds and may be more"},
		"should fail where the held one is too long already":   {target: latency(profile.Max, 60, 1), set: sample.Set{History: histories(settled("x").cycles(20, 1).claim(400, sample.Refresh))}, want: "fail (product), 210 of 2, bound-exceeded"},
		"should see one Apply of each authorisation":           {target: repeated, set: sample.Set{History: histories(settled("books").reworks(20, "v2").reworks(200, "v3"))}, want: "pass, 0 of 2"},
		"should see a second Apply of one":                     {target: repeated, set: sample.Set{History: histories(twice)}, want: "fail (product), 1 of 1, bound-exceeded"},
		"should not pass where nothing was applied":            {target: repeated, set: sample.Set{History: histories(settled("books"))}, want: "inconclusive (harness), no-samples"},
		"should find every resource":                           {target: lost, set: sample.Set{History: histories(settled("books"), settled("orders"))}, want: "pass, 0 of 2"},
		"should see a resource vanish":                         {target: lost, set: gone(false), want: "fail (product), 1 of 2, bound-exceeded"},
		"should not mind one that the driver took away":        {target: lost, set: gone(true), want: "pass, 0 of 1"},
		"should see an outcome that nobody knows":              {target: lost, set: sample.Set{History: histories(uncertain, settled("orders"))}, want: "fail (product), 1 of 2, bound-exceeded"},
		"should miss a declared resource that was never there": {target: lost, set: sample.Set{History: histories(settled("orders"))}, want: "fail (product), 1 of 2, bound-exceeded", contains: ""},
	})
}
