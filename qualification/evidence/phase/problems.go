package phase

import (
	"fmt"
	"slices"
	"strings"

	"ptah.run/ptah/qualification/evidence/scenario"
)

// Kind says what is wrong with a phase.
type Kind string

// Kinds of problems.
const (
	NotEnded    Kind = "not-ended"    // the harness never saw its end
	EndedEarly  Kind = "ended-early"  // its process ended before every declared scenario had
	Contradicts Kind = "contradicts"  // its process and its scenarios say different things
	OutOfOrder  Kind = "out-of-order" // scenarios ran in another order than declared
	Undeclared  Kind = "undeclared"   // it reported a scenario that is not its own
)

// Problem is one thing that is wrong with a phase. Message is a sentence for a person.
type Problem struct {
	Kind    Kind   `json:"kind"`
	Phase   string `json:"phase"` // key of the plan
	Subject string `json:"subject,omitempty"`
	Message string `json:"message"`
}

// Problems compares a phase with the scenarios that its own ledger reports. It returns nothing for a phase that ended
// by itself after every declared scenario ended, in order; that a scenario failed is no problem of the phase.
func (r Record) Problems(reported []scenario.Record) []Problem {
	judge := &comparison{plan: r.Plan, byName: map[string]scenario.Record{}}
	for _, record := range reported {
		if !slices.Contains(r.Plan.Scenarios, record.Scenario) {
			judge.add(Undeclared, record.Scenario, "the phase reported the scenario %s, which is not among those that it was to run", record.Scenario)
		}
		judge.byName[record.Scenario] = record
	}
	judge.end(r.Result)
	judge.order()
	return judge.found
}

type comparison struct {
	plan   Plan
	byName map[string]scenario.Record
	found  []Problem
}

func (c *comparison) add(kind Kind, subject, format string, arguments ...any) {
	c.found = append(c.found, Problem{Kind: kind, Phase: c.plan.Key(), Subject: subject, Message: fmt.Sprintf(format, arguments...)})
}

func (c *comparison) end(result *Result) {
	if result == nil {
		c.add(NotEnded, "", "the phase %s began and the harness never saw its end", c.plan.Name)
		return
	}
	var open []string
	failed := false
	for _, name := range c.plan.Scenarios {
		record, reported := c.byName[name]
		if !reported || !record.Ended {
			open = append(open, name)
		}
		failed = failed || record.Outcome == scenario.OutcomeFail
	}
	switch {
	case len(open) > 0:
		c.add(EndedEarly, open[0], "the phase %s ended (%s) and %d of its %d scenarios had not: %s", c.plan.Name, describe(*result),
			len(open), len(c.plan.Scenarios), strings.Join(open, ", "))
	case result.Outcome != Completed && !failed:
		c.add(Contradicts, "", "the phase %s ended (%s) although none of its scenarios failed: what failed is not written down", c.plan.Name, describe(*result))
	}
}

func describe(result Result) string {
	text := fmt.Sprintf("%s, exit status %d", result.Outcome, result.Exit)
	if result.Message != "" {
		text += ": " + result.Message
	}
	return text
}

// order refuses a scenario that began before one declared earlier had ended, unless every scenario from the one to the
// other may run together.
func (c *comparison) order() {
	for late, name := range c.plan.Scenarios {
		record, reported := c.byName[name]
		if !reported {
			continue
		}
		for early := range late {
			before, reported := c.byName[c.plan.Scenarios[early]]
			if !reported || c.together(early, late) || before.Ended && !before.End.After(record.Start) {
				continue
			}
			c.add(OutOfOrder, name, "the scenario %s began before %s had ended, which is declared before it", name, before.Scenario)
			break // one sentence for each scenario is enough
		}
	}
}

func (c *comparison) together(first, last int) bool {
	for _, name := range c.plan.Scenarios[first : last+1] {
		if !slices.Contains(c.plan.Together, name) {
			return false
		}
	}
	return true
}
