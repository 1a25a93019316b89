package judge_test

import (
	"fmt"
	"strings"
	"testing"

	"ptah.run/ptah/qualification/judge"
	"ptah.run/ptah/qualification/profile"
	"ptah.run/ptah/qualification/verdict"
)

// judgementOf has one cell with a verdict for each named target.
func judgementOf(targets map[string]verdict.Verdict, order ...string) judge.Judgement {
	var j judge.Judgement
	cell := judge.CellJudgement{Cell: bench}
	var all []verdict.Verdict
	for _, id := range order {
		cell.Targets = append(cell.Targets, judge.TargetVerdict{Target: id, Requirement: "PA-08", Verdict: targets[id]})
		all = append(all, targets[id])
	}
	cell.Verdict = verdict.Aggregate(all...)
	j.Cells, j.Requirements, j.Verdict = []judge.CellJudgement{cell}, []judge.RequirementVerdict{{Requirement: "PA-08", Verdict: cell.Verdict}}, cell.Verdict
	return j
}

func TestOnlyVerdictsThatDifferAreDifferences(t *testing.T) {
	pass, fail := verdict.Passed(), verdict.New(verdict.Fail, verdict.Product, verdict.BoundExceeded, "a", "over")
	other := verdict.New(verdict.Fail, verdict.Product, verdict.BoundExceeded, "a", "over by more")
	before := judgementOf(map[string]verdict.Verdict{"a": fail, "b": pass, "gone": pass}, "a", "b", "gone")
	after := judgementOf(map[string]verdict.Verdict{"a": pass, "b": pass, "fresh": pass}, "a", "b", "fresh")
	var lines []string
	for _, one := range judge.Compare(before, after, []profile.Change{{ID: "a", Sentence: "a is weaker"}, {ID: "b", Sentence: "b is weaker"}}) {
		lines = append(lines, fmt.Sprintf("%s %s -> %s, %d came, %d went, %s", one.Subject, one.Before, one.After, len(one.Came), len(one.Went), strings.Join(one.Declared, "; ")))
	}
	want := "gone pass -> absent, 0 came, 0 went, \n" +
		"a fail (product) -> pass, 0 came, 1 went, a is weaker\n" +
		"fresh absent -> pass, 0 came, 0 went, \n" +
		"cell bench fail (product) -> pass, 0 came, 1 went, \n" +
		"PA-08 fail (product) -> pass, 0 came, 1 went, \n" +
		"the whole fail (product) -> pass, 0 came, 1 went, "
	if got := strings.Join(lines, "\n"); got != want {
		t.Errorf("the differences are\n%s\nwant\n%s", got, want)
	}
	same := judgementOf(map[string]verdict.Verdict{"a": other}, "a")
	if found := judge.Compare(judgementOf(map[string]verdict.Verdict{"a": fail}, "a"), same, nil); len(found) != 0 {
		t.Errorf("another number under the same verdict is a difference: %+v", found)
	}
}
