package judge

import (
	"cmp"
	"slices"

	"ptah.run/ptah/qualification/audit"
	"ptah.run/ptah/qualification/evidence/sample"
	"ptah.run/ptah/qualification/profile"
	"ptah.run/ptah/qualification/verdict"
)

// scraped is the readings of one life of one process, in order.
type scraped struct {
	process  sample.Process
	readings []sample.Scrape
}

// name is how a process is named for people.
func (s scraped) name() string { return s.process.Pod }

// scrapes returns the readings of the processes of a role, one list for each life, and says what keeps them from being
// proof over the intervals: readings that failed, holes, and processes that were not read at all.
func (c *court) scrapes(target profile.Target, role sample.Role, over []audit.Interval, result *measurement) []scraped {
	if !c.source(target, sample.Processes, result) {
		return nil
	}
	lives, byPod := []scraped{}, map[string][]sample.Reading{}
	index := map[string]int{}
	for _, scrape := range c.evidence.Samples.Processes {
		if scrape.Process.Role != role {
			continue
		}
		byPod[scrape.Process.Pod] = append(byPod[scrape.Process.Pod], scrape.Reading)
		if scrape.Failed != "" {
			continue
		}
		at, known := index[scrape.Process.Life()]
		if !known {
			at = len(lives)
			index[scrape.Process.Life()] = at
			lives = append(lives, scraped{process: scrape.Process})
		}
		lives[at].readings = append(lives[at].readings, scrape)
	}
	c.population(target, role, byPod, over, result)
	slices.SortStableFunc(lives, func(a, b scraped) int { return cmp.Compare(a.name(), b.name()) })
	return lives
}

// population holds the processes that were read against the number that the profile declares, in each interval. A Pod
// that was replaced within one was read for a part of it, which shows as a hole.
func (c *court) population(target profile.Target, role sample.Role, byPod map[string][]sample.Reading, over []audit.Interval, result *measurement) {
	declared := c.profile.Installation.Replicas
	if role == sample.APIServer {
		declared = c.profile.Cluster.ControlPlanes
	}
	for _, interval := range over {
		var there []string
		for pod, readings := range byPod {
			if slices.ContainsFunc(readings, func(r sample.Reading) bool { return !r.To.Before(interval.From) && !r.From.After(interval.To) }) {
				there = append(there, pod)
			}
		}
		slices.Sort(there)
		if len(there) != declared {
			result.problem(verdict.ProcessMissing, target, "from %s to %s readings of %d processes of the role %s were kept, the profile declares %d",
				clockTime(interval.From), clockTime(interval.To), len(there), role, declared)
		}
		for _, pod := range there {
			c.looked(target, "the process "+pod, byPod[pod], []audit.Interval{interval}, result)
		}
	}
}
