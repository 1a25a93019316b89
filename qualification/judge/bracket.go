package judge

import (
	"maps"
	"slices"

	"ptah.run/ptah/qualification/audit"
	"ptah.run/ptah/qualification/evidence/sample"
	"ptah.run/ptah/qualification/profile"
	"ptah.run/ptah/qualification/verdict"
)

// bracketed holds the audit logs against the managers' own request counters: between two readings of a counter it must
// have risen by what the servers logged, but for what was under way at the readings. Without it nothing shows that no
// event was dropped, so that no acceptance is built on such a count; a development profile lets it be.
func (c *court) bracketed(target profile.Target, whole audit.Interval, result *measurement) {
	if c.evidence.Samples == nil || c.evidence.Samples.Files[sample.Processes] == (sample.File{}) {
		if c.profile.Purpose == profile.Acceptance {
			result.problem(verdict.AuditIncomplete, target, "the cell kept no %s, so the audit logs cannot be held against the managers' own request counters", sample.Processes.Name())
		}
		return
	}
	over := audit.SegmentsWithout(whole, c.faults(target.Exclude))
	events := c.evidence.Audit.Set.Where(c.byManager()...)
	lives := c.scrapes(target, sample.Manager, over, result)
	for _, stretch := range over {
		read := map[string]bool{}
		for _, one := range lives {
			if first, last := edges(one.readings, stretch); first != nil && first != last {
				read[one.name()] = true
				c.explained(target, one, first, last, events, result)
			}
		}
		sent := audit.Pods(events, stretch)
		for _, pod := range slices.Sorted(maps.Keys(sent)) {
			if !read[pod] {
				result.problem(verdict.AuditIncomplete, target, "%d requests were sent by the Pod %q, whose request counter was not read twice from %s to %s", sent[pod], pod,
					clockTime(stretch.From), clockTime(stretch.To))
			}
		}
	}
}

// explained compares the rise of one counter with the requests that were logged of its Pod. A request that reached no
// server has the code <error> and was logged by none.
func (c *court) explained(target profile.Target, one scraped, first, last *sample.Scrape, events []audit.Event, result *measurement) {
	const counter = "rest_client_requests_total"
	counted := func(s *sample.Scrape) (float64, bool) {
		all, reported := series{name: counter}.sum(s.Values)
		lost, _ := series{name: counter, labels: map[string]string{"code": "<error>"}}.sum(s.Values)
		return all - lost, reported
	}
	before, known := counted(first)
	after, still := counted(last)
	if !known || !still {
		result.problem(verdict.SeriesMissing, target, "the process %s does not report %s", one.name(), counter)
		return
	}
	own := slices.DeleteFunc(slices.Clone(events), func(e audit.Event) bool { return e.Pod != one.name() })
	possible := audit.Rise(own, audit.Reading{From: first.From, To: first.To}, audit.Reading{From: last.From, To: last.To})
	if rose := after - before; !possible.Holds(rose) {
		result.problem(verdict.AuditIncomplete, target, "the process %s counted %s requests from %s to %s, and %d to %d were logged of it", one.name(), profile.Number(rose),
			clockTime(first.To), clockTime(last.From), possible.Least, possible.Most)
	}
}
