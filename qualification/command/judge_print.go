package command

import (
	"fmt"
	"io"
	"text/tabwriter"

	"ptah.run/ptah/qualification/judge"
)

// printJudgement writes a judgement for a person: every verdict of every cell, and then each reason once.
func printJudgement(out io.Writer, judgement judge.Judgement) error {
	identity := judgement.Profile
	printf(out, "%s under profile %s, revision %d (%s)\n\n", judgement.Verdict, identity.Name, identity.Revision, identity.Purpose)
	table := tabwriter.NewWriter(out, 0, 4, 2, ' ', 0)
	for _, cell := range judgement.Cells {
		printf(table, "%s\t%s\t\n", cell.Cell.Key, cell.Verdict)
		for _, s := range cell.Scenarios {
			printf(table, "  %s %s\t%s\t%d assertions, %d witnesses\n", s.Requirement, s.Scenario, s.Verdict, s.Assertions, s.Witnesses)
		}
		for _, t := range cell.Targets {
			printf(table, "  %s %s\t%s\t%s\n", t.Requirement, t.Target, t.Verdict, measured(t))
		}
	}
	if err := table.Flush(); err != nil {
		return err
	}
	for _, reason := range judgement.Verdict.Reasons {
		if _, err := fmt.Fprintf(out, "- %s %s: %s\n", reason.Code, reason.Subject, reason.Message); err != nil {
			return err
		}
	}
	return nil
}

func measured(t judge.TargetVerdict) string {
	if t.Value == nil {
		return fmt.Sprintf("not measured, declared %s %s", t.Bound, t.Unit)
	}
	value := fmt.Sprintf("%g", *t.Value)
	switch {
	case t.Least != nil && t.Most == nil:
		value = "at least " + value
	case t.Least != nil && *t.Least < *t.Most:
		value = fmt.Sprintf("%g to %g", *t.Least, *t.Most)
	}
	return fmt.Sprintf("%s %s (n = %d), declared %s", value, t.Unit, t.N, t.Bound)
}
