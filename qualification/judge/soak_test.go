package judge_test

import (
	"bytes"
	"fmt"
	"slices"
	"testing"

	"ptah.run/ptah/qualification/evidence/dossier/dossiertest"
	"ptah.run/ptah/qualification/evidence/sample"
	"ptah.run/ptah/qualification/evidence/scenario"
	"ptah.run/ptah/qualification/verdict"
)

// A soak of 90 minutes with nine changes of one resource and none of the other. Under the first revision every resource
// needs 30 read-only cycles, which leaves a changed one no chance, whatever the operator does. The second revision asks
// that of the unchanged resource, and of the changed one that every change converges and is followed by a cycle.
const soakHead = `apiVersion: qualification.ptah.run/v1
kind: Profile
name: soak
purpose: development
summary: Ninety minutes in which one of two resources is changed nine times.
revision: %d
revisions:
  - {number: 1, date: 2026-11-29, reason: First declaration.}
%ssupport:
  kubernetes: ["1.37"]
  databases: [{engine: PostgreSQL, version: "17"}]
  platforms: [linux/amd64]
cluster: {controlPlanes: 1, workers: 0}
installation:
  release: ptah-operator
  namespace: ptah-system
  replicas: 2
  managerIdentity: system:serviceaccount:ptah-system:ptah-operator
  leaderElection: {namespace: ptah-system, name: lease}
workload:
  schemas: 2
  migrations: 0
  namespaces: 1
  interval: 2m
  duration: 90m
  changes: {every: 10m, rounds: 9, resources: 1, costIntervals: 2}
coverage: [{matrix: functional, depth: smoke}]
scenarios:
  - {name: soaks, requirement: PA-08, statement: It soaks., cells: {matrix: functional}}
targets:
%snotShown: [Anything beyond two resources.]
`

const soakTarget = `  - id: %s
    requirement: PA-08
    statement: Work goes on.
    metric: %s
    statistic: min
    window: {over: run}
    bound: {atLeast: %d}
    unit: %s
    population: %s
    minSamples: %d
    cells: {matrix: functional}
`

func soakProfile(revision int) []byte {
	if revision == 1 {
		return fmt.Appendf(nil, soakHead, 1, "", fmt.Sprintf(soakTarget, "cycles", "read-only-cycles", 30, "cycles", "every resource", 2))
	}
	reason := "  - number: 2\n    date: 2026-11-30\n    reason: A changed resource has no time for 30 cycles.\n    changes: [cycles, converged, followed]\n"
	return fmt.Appendf(nil, soakHead, 2, reason, fmt.Sprintf(soakTarget, "cycles", "read-only-cycles", 30, "cycles", "unchanged resources", 1)+
		fmt.Sprintf(soakTarget, "converged", "changes-converged", 9, "changes", "changed resources", 1)+
		fmt.Sprintf(soakTarget, "followed", "cycles-after-change", 1, "cycles", "change", 9))
}

// soak is the evidence of a soak that ended after some rounds of ten minutes.
func soak(t *testing.T, rounds int) *dossiertest.Case {
	books, orders := settled("books"), settled("orders")
	for round := range rounds {
		begin := float64(round) * 600
		// Two intervals go into the change, and three more fit in before the next one.
		books.reworks(begin+20, fmt.Sprintf("v%d", round+2)).cycles(begin+230, 3)
		orders.cycles(begin+40, 5)
	}
	held, from, to := true, at(0), at(float64(rounds)*600)
	c := dossiertest.Passing(t)
	c.Profile, c.Matrix, c.Suites, c.Audit = soakProfile(1), []byte(smallMatrix), []byte(smallSuites), nil
	c.Ledger = dossiertest.Stream(t,
		scenario.Entry{Event: scenario.EventStart, At: from, Scenario: "soaks"},
		scenario.Entry{Event: scenario.EventMeasure, At: to, Scenario: "soaks", Key: scenario.SteadyState, From: &from, To: &to},
		scenario.Entry{Event: scenario.EventAssert, At: to, Scenario: "soaks", Key: "holds", Held: &held},
		scenario.Entry{Event: scenario.EventEnd, At: to, Scenario: "soaks", Outcome: scenario.OutcomePass})
	c.Streams = map[string][]byte{sample.History.Name(): lines(t, joined(float64(rounds)*600, books, orders))}
	return c
}

// joined is what the actors did until a moment, with a mark a minute.
func joined(until float64, actors ...*actor) []sample.Change {
	var changes []sample.Change
	for _, one := range actors {
		changes = append(changes, one.seen...)
	}
	slices.SortStableFunc(changes, func(a, b sample.Change) int { return a.At.Compare(b.At) })
	var list []sample.Change
	next := 0
	for seconds := -60.0; seconds <= until+60; seconds += 60 {
		for ; next < len(changes) && !changes[next].At.After(at(seconds)); next++ {
			list = append(list, changes[next])
		}
		list = append(list, sample.Change{At: at(seconds), Type: sample.Mark})
	}
	return list
}

// soaks are the goldens of the rule that no changed resource can meet. What repairs them is the second revision, and for
// a soak that stopped early also the rounds that it lacks.
func soaks() map[string]golden {
	full := func(t *testing.T) *dossiertest.Case { return soak(t, 9) }
	short := func(t *testing.T) *dossiertest.Case { return soak(t, 5) }
	return map[string]golden{
		"cycles-that-nobody-can-reach": {build: full, want: "fail (harness)", reason: verdict.Unreachable, revised: true,
			repair: func(_ *testing.T, c *dossiertest.Case) { c.Profile = soakProfile(2) }},
		"soak-stopped-early": {build: short, want: "fail (unknown)", reason: verdict.WindowTooShort, revised: true,
			repair: func(t *testing.T, c *dossiertest.Case) {
				good := soak(t, 9)
				c.Profile, c.Ledger, c.Streams = soakProfile(2), good.Ledger, good.Streams
			}},
	}
}

// The published story: the first rule fails what the second passes, and a soak that stopped early fails under both.
func TestARevisedRuleJudgesStoredSoaksAgain(t *testing.T) {
	for name, want := range map[string]struct {
		verdict string
		reason  verdict.Code
	}{"cycles-that-nobody-can-reach": {"pass", ""}, "soak-stopped-early": {"fail (unknown)", verdict.WindowTooShort}} {
		dir := "testdata/" + name
		c := dossiertest.Read(t, dir)
		if !bytes.Equal(c.Profile, soakProfile(1)) {
			t.Errorf("%s was not run under the first revision", name)
		}
		expect(t, rejudged(t, c, dir+"/revised.yaml"), want.verdict, want.reason)
	}
}
