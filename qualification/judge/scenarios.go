package judge

import (
	"slices"
	"strings"

	"ptah.run/ptah/qualification/evidence/scenario"
	"ptah.run/ptah/qualification/profile"
	"ptah.run/ptah/qualification/verdict"
)

// scenarios judges every scenario that the profile declares for the cell.
func (c *court) scenarios() []ScenarioVerdict {
	list := []ScenarioVerdict{}
	for _, declared := range c.profile.ScenariosOf(c.cell.Matrix, c.cell.Axes) {
		record, ledger, found := c.find(declared.Name)
		judged := ScenarioVerdict{Scenario: declared.Name, Requirement: declared.Requirement}
		if !found {
			judged.Verdict = c.absent(declared.Name)
			list = append(list, judged)
			continue
		}
		judged.Assertions, judged.Witnesses, judged.Evidence = len(record.Assertions), len(record.Witnesses), []string{ledger.Digest}
		judged.Verdict = verdict.Aggregate(judgeRecord(declared, record), wholeness(ledger))
		list = append(list, judged)
	}
	return list
}

func (c *court) find(name string) (scenario.Record, Ledger, bool) {
	for _, ledger := range c.evidence.Ledgers {
		for _, record := range ledger.Records {
			if record.Scenario == name {
				return record, ledger, true
			}
		}
	}
	return scenario.Record{}, Ledger{}, false
}

// absent is the verdict on a declared scenario that no ledger mentions.
func (c *court) absent(name string) verdict.Verdict {
	if len(c.evidence.Ledgers) == 0 {
		return verdict.New(verdict.NotRun, verdict.Harness, verdict.LedgerMissing, name, "no suite left a ledger in this cell")
	}
	for _, ledger := range c.evidence.Ledgers {
		if !ledger.Whole {
			return verdict.New(verdict.NotRun, verdict.Unknown, verdict.ScenarioMissing, name, "the suite ended before it: %s", ledger.Problem)
		}
	}
	return verdict.New(verdict.NotRun, verdict.Harness, verdict.ScenarioMissing, name, "no suite ran it")
}

// wholeness is the verdict on a ledger as a whole: one that was cut or altered proves nothing it still says.
func wholeness(ledger Ledger) verdict.Verdict {
	if ledger.Whole {
		return verdict.Passed()
	}
	return verdict.New(verdict.Inconclusive, verdict.Harness, verdict.LedgerNotWhole, ledger.Suite, "the ledger of suite %s is not whole: %s", ledger.Suite, ledger.Problem)
}

// judgeRecord judges what a suite says about one scenario. A suite cannot pass a scenario against its own assertions.
func judgeRecord(declared profile.Scenario, record scenario.Record) verdict.Verdict {
	verdicts := []verdict.Verdict{outcome(record)}
	failed := failedAssertions(record)
	if record.Ended && record.Outcome == scenario.OutcomePass {
		switch {
		case len(failed) > 0:
			verdicts = append(verdicts, verdict.New(verdict.Fail, verdict.Product, verdict.OutcomeContradicts, declared.Name,
				"it ended as passed although these assertions did not hold: %s", strings.Join(failed, "; ")))
		case len(record.Assertions) == 0:
			verdicts = append(verdicts, verdict.New(verdict.Inconclusive, verdict.Harness, verdict.NoEvidence, declared.Name, "it passed without a single assertion"))
		}
	}
	if declared.Fault != "" && len(record.Witnesses) == 0 && record.Outcome != scenario.OutcomeNotRun {
		verdicts = append(verdicts, verdict.New(verdict.Void, verdict.Harness, verdict.WitnessMissing, declared.Name,
			"nothing shows that the fault %s took effect", declared.Fault))
	}
	return verdict.Aggregate(verdicts...)
}

func outcome(record scenario.Record) verdict.Verdict {
	switch {
	case !record.Ended:
		return verdict.New(verdict.Fail, verdict.Unknown, verdict.ScenarioNotEnded, record.Scenario, "it began and its end was never written")
	case record.Outcome == scenario.OutcomePass:
		return verdict.Passed()
	case record.Outcome == scenario.OutcomeNotRun:
		return verdict.New(verdict.NotRun, verdict.Harness, verdict.ScenarioNotRun, record.Scenario, "%s", orUnsaid(record.Message))
	default:
		return verdict.New(verdict.Fail, causeOf(record.Blame), verdict.ScenarioFailed, record.Scenario, "%s", orUnsaid(record.Message))
	}
}

func orUnsaid(message string) string {
	if message == "" {
		return "the suite gave no reason"
	}
	return message
}

func causeOf(blame scenario.Blame) verdict.Cause {
	switch blame {
	case scenario.BlameProduct:
		return verdict.Product
	case scenario.BlameHarness:
		return verdict.Harness
	case scenario.BlameInfrastructure:
		return verdict.Infrastructure
	default:
		return verdict.Unknown
	}
}

func failedAssertions(record scenario.Record) []string {
	var failed []string
	for _, assertion := range record.Assertions {
		if !assertion.Held {
			failed = append(failed, assertion.Key+": "+assertion.Message)
		}
	}
	return failed
}

// undeclared judges the rest of the ledgers: a scenario that failed counts although the profile does not ask for it,
// and a scenario that two ledgers report voids the cell, because the profile cannot say which of them it means.
func (c *court) undeclared() []verdict.Verdict {
	var found []verdict.Verdict
	declared := c.profile.ScenariosOf(c.cell.Matrix, c.cell.Axes)
	seen := map[string]bool{}
	for _, ledger := range c.evidence.Ledgers {
		for _, record := range ledger.Records {
			if seen[record.Scenario] {
				found = append(found, verdict.New(verdict.Void, verdict.Harness, verdict.ScenarioForeign, record.Scenario, "two ledgers report it"))
			}
			seen[record.Scenario] = true
			known := slices.ContainsFunc(declared, func(s profile.Scenario) bool { return s.Name == record.Scenario })
			if !known && (!record.Ended || record.Outcome == scenario.OutcomeFail || len(failedAssertions(record)) > 0) {
				found = append(found, verdict.Aggregate(outcome(record), verdict.New(verdict.Fail, causeOf(record.Blame), verdict.ScenarioForeign, record.Scenario,
					"it failed; the profile does not ask for it, and a failure is never dropped")))
			}
		}
	}
	return found
}
