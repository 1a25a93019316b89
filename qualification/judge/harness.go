package judge

import (
	"slices"

	"ptah.run/ptah/qualification/evidence/driverload"
	"ptah.run/ptah/qualification/evidence/phase"
	"ptah.run/ptah/qualification/evidence/scenario"
	"ptah.run/ptah/qualification/profile"
	"ptah.run/ptah/qualification/verdict"
)

// driver judges the driver's own load. A driver that was the bottleneck measured itself, so that the cell is void. A cell
// without its account cannot say that it was not: no acceptance is built on it, while a development profile lets it be.
func (c *court) driver() []verdict.Verdict {
	account := c.evidence.Driver
	unknown := func(format string, arguments ...any) []verdict.Verdict {
		return []verdict.Verdict{verdict.New(verdict.Inconclusive, verdict.Harness, verdict.DriverUnknown, c.cell.Key, format, arguments...)}
	}
	if account == nil {
		if c.profile.Purpose == profile.Acceptance {
			return unknown("the driver kept no account of its own load in %s, so nothing shows that it kept up", driverload.FileName)
		}
		return nil
	}
	var found []verdict.Verdict
	switch {
	case !account.Whole:
		found = unknown("the driver's account of its own load is not whole: %s", account.Problem)
	case len(account.Samples) == 0:
		return unknown("the driver's account of its own load holds no sample")
	}
	bounds := driverload.Declared()
	for _, harm := range driverload.Summarize(account.Start, account.Samples, bounds).Harm(bounds) {
		found = append(found, verdict.New(verdict.Void, verdict.Harness, verdict.DriverBusy, c.cell.Key, "%s", harm))
	}
	return found
}

// phases judges the harness's account of the phases. A phase that ended before all of its scenarios fails, whatever its
// scenarios say: what it did not come to may be what would have failed. Preparation shows nothing, so that a ledger of
// it is refused.
func (c *court) phases() []verdict.Verdict {
	account := c.evidence.Phases
	if account == nil {
		if c.profile.Purpose == profile.Acceptance {
			return []verdict.Verdict{verdict.New(verdict.Inconclusive, verdict.Harness, verdict.LedgerMissing, c.cell.Key,
				"the harness kept no account of its phases in %s, so nothing shows that each ran to its end", phase.FileName)}
		}
		return nil
	}
	var found []verdict.Verdict
	if !account.Whole {
		found = append(found, verdict.New(verdict.Inconclusive, verdict.Harness, verdict.LedgerNotWhole, phase.FileName, "the account of the phases is not whole: %s", account.Problem))
	}
	for _, ran := range account.Records {
		if ran.Plan.Purpose == phase.Coverage {
			for _, problem := range ran.Problems(c.reported(ran.Plan)) {
				found = append(found, phaseVerdict(problem))
			}
			continue
		}
		if ran.Result == nil || ran.Result.Outcome != phase.Completed {
			found = append(found, verdict.New(verdict.Fail, verdict.Harness, verdict.PhaseEndedEarly, ran.Plan.Key(), "the preparation %s did not complete, and what follows builds on it", ran.Plan.Name))
		}
	}
	for _, ledger := range c.evidence.Ledgers {
		if plan, known := c.planOf(ledger); !known || plan.Purpose == phase.Preparation {
			found = append(found, verdict.New(verdict.Void, verdict.Harness, verdict.Preparation, ledger.Suite,
				"the ledger of phase %q of suite %s is offered as coverage, and no phase was run for coverage under that name", ledger.Phase, ledger.Suite))
		}
	}
	return found
}

// planOf is the plan that a ledger was written under: that of its phase, or of the only phase of its suite where the
// ledger is of the suite as a whole.
func (c *court) planOf(ledger Ledger) (phase.Plan, bool) {
	var found phase.Plan
	known := false
	for _, ran := range c.evidence.Phases.Records {
		if ran.Plan.Suite == ledger.Suite && (ran.Plan.Name == ledger.Phase || ledger.Phase == "") && (!known || ran.Plan.Purpose == phase.Coverage) {
			found, known = ran.Plan, true
		}
	}
	return found, known
}

// reported is what the ledgers of a phase say.
func (c *court) reported(plan phase.Plan) []scenario.Record {
	var records []scenario.Record
	for _, ledger := range c.evidence.Ledgers {
		if ledger.Suite == plan.Suite && (ledger.Phase == plan.Name || ledger.Phase == "") {
			records = append(records, ledger.Records...)
		}
	}
	return slices.Clip(records)
}

func phaseVerdict(problem phase.Problem) verdict.Verdict {
	subject := problem.Phase
	if problem.Subject != "" {
		subject += "/" + problem.Subject
	}
	code, state, cause := verdict.PhaseEndedEarly, verdict.Fail, verdict.Unknown
	switch problem.Kind {
	case phase.OutOfOrder:
		code, state, cause = verdict.OutOfOrder, verdict.Fail, verdict.Harness
	case phase.Undeclared:
		code, state, cause = verdict.ScenarioForeign, verdict.Void, verdict.Harness
	case phase.Contradicts:
		code = verdict.OutcomeContradicts
	case phase.NotEnded, phase.EndedEarly:
	}
	return verdict.New(state, cause, code, subject, "%s", problem.Message)
}
