package profile

import (
	"fmt"
	"strings"

	"ptah.run/ptah/qualification/profile/document"
)

type duration = document.Duration

// seconds is a bound as a length of time.
func seconds(bound float64) duration { return duration(bound * 1e9) }

func orNone(d duration) string { return orWords(d, "0s") }

func joined(words []string) string { return strings.Join(words, ", ") }

// samples refuses a percentile of too few samples, and more samples than a cell of the workload yields.
func (f *findings) samples(p *Profile, s setting, t Target) {
	least := t.Statistic.LeastSamples()
	if percent, ok := t.Statistic.Percentile(); ok && t.MinSamples < least {
		f.add(s.subject(t), fmt.Sprintf("minSamples %d is too small for %s", t.MinSamples, t.Statistic),
			"with %d samples fewer than one lies above the %dth percentile, that takes 100 / (100 - %d) = %d", t.MinSamples, percent, percent, least)
		return
	}
	if most, arithmetic, known := s.yields(p, t.Population); known && t.MinSamples > most {
		f.add(s.subject(t), fmt.Sprintf("no cell can yield %d samples of the population %q", t.MinSamples, t.Population), "%s", arithmetic)
	}
}

// yields is the largest number of samples that one cell of the workload can have of a population.
func (s setting) yields(p *Profile, population string) (most int, arithmetic string, known bool) {
	rounds := func(what string, r *Rounds, each int) (int, string, bool) {
		if r == nil {
			return 0, "the workload has no " + what, true
		}
		return r.Rounds * each, fmt.Sprintf("%d rounds of %s x %d = %d", r.Rounds, what, each, r.Rounds*each), true
	}
	of := func(r *Rounds) int {
		if r == nil {
			return 0
		}
		return r.Resources
	}
	switch population {
	case PopulationProcess:
		return p.Installation.Replicas, fmt.Sprintf("there are %d replicas", p.Installation.Replicas), true
	case PopulationServer:
		return p.Cluster.ControlPlanes, fmt.Sprintf("there are %d control planes", p.Cluster.ControlPlanes), true
	case PopulationAll:
		return s.Resources(), fmt.Sprintf("there are %d resources", s.Resources()), true
	case PopulationChanged:
		return of(s.Changes), fmt.Sprintf("a round changes %d resources", of(s.Changes)), true
	case PopulationUnchanged:
		rest := s.Resources() - of(s.Changes) - of(s.Churn)
		return rest, fmt.Sprintf("%d resources - %d changed - %d replaced = %d", s.Resources(), of(s.Changes), of(s.Churn), rest), true
	case PopulationChangeBatch:
		return rounds("changes", s.Changes, 1)
	case PopulationChange:
		return rounds("changes", s.Changes, of(s.Changes))
	case PopulationCheckpoint:
		return rounds("maintenance", s.Maintenance, 1)
	}
	return s.yieldsInTime(population)
}

// yieldsInTime is yields for what happens again and again over the measured time.
func (s setting) yieldsInTime(population string) (most int, arithmetic string, known bool) {
	if s.Duration == 0 {
		return 0, "", false
	}
	switch population {
	case PopulationReading:
		if s.SampleEvery == 0 {
			return 0, "readings need workload.sampleEvery, which is not declared", true
		}
		most = int(s.Duration / s.SampleEvery)
		return most, fmt.Sprintf("%s / %s = %d readings", s.Duration, s.SampleEvery, most), true
	case PopulationOperation:
		intervals := int(s.Duration / s.Interval)
		most = s.Resources() * intervals
		arithmetic = fmt.Sprintf("%d resources x %s / %s = %d refreshes", s.Resources(), s.Duration, s.Interval, most)
		if c := s.Changes; c != nil {
			most += 2 * c.Rounds * c.Resources
			arithmetic += fmt.Sprintf(" + %d changes x an Apply and its proof = %d operations", c.Rounds*c.Resources, most)
		}
		return most, arithmetic, true
	}
	return 0, "", false
}

// window refuses a window longer than what is measured, and one that holds no two readings.
func (f *findings) window(s setting, t Target) {
	if t.Window.Over != Sliding || s.Duration == 0 {
		return
	}
	if t.Window.Length > s.Duration {
		f.add(s.subject(t), "the window is longer than the run", "a window of %s does not fit into a workload of %s", t.Window.Length, s.Duration)
	}
	if t.Metric.Source() == SourceManagers && t.Window.Length < 2*s.SampleEvery {
		f.add(s.subject(t), "the window holds no two readings", "a window of %s, a reading every %s", t.Window.Length, s.SampleEvery)
	}
}
