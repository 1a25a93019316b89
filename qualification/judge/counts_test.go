package judge_test

import (
	"testing"

	"ptah.run/ptah/qualification/evidence/dossier/dossiertest"
	"ptah.run/ptah/qualification/evidence/driverload"
	"ptah.run/ptah/qualification/evidence/phase"
	"ptah.run/ptah/qualification/evidence/sample"
	"ptah.run/ptah/qualification/evidence/scenario"
	"ptah.run/ptah/qualification/judge"
	"ptah.run/ptah/qualification/profile"
)

func TestCounts(t *testing.T) {
	target := func(metric profile.Metric, population string) profile.Target {
		return profile.Target{Metric: metric, Statistic: profile.Sum, Bound: atMost(0), Population: population}
	}
	whole := sample.Reading{From: at(-1), To: at(601)}
	journal := func(over sample.Reading, statements ...sample.Statement) []sample.Journal {
		if statements == nil {
			statements = []sample.Statement{}
		}
		return []sample.Journal{{Reading: over, Database: "orders", Statements: statements}}
	}
	allowed, foreign := sample.Statement{At: at(10), Client: "10.0.0.9", Authorisation: "approval-1"}, sample.Statement{At: at(11), Client: "10.0.0.9"}
	statements := target(profile.UnauthorisedStatements, profile.PopulationDatabase)
	images := target(profile.ForeignImages, profile.PopulationContainer)
	released := func(_ *profile.Profile, e *judge.Evidence) {
		e.Inputs.Images = map[string]string{"manager": dossiertest.Digest("1")}
	}
	containers := func(digest string) sample.Set {
		return sample.Set{Containers: []sample.Running{{Reading: whole, Containers: []sample.Container{{Pod: "m", UID: "u", Name: "manager", Digest: dossiertest.Digest("1")}, {Pod: "n", UID: "v", Name: "manager", Digest: digest}}}}}
	}
	yes, no := true, false
	artifact := func(signature *bool) sample.Set {
		return sample.Set{Artifacts: []sample.Artifact{{Reading: whole, Name: "chart", Matches: &yes, Signature: signature, Provenance: &yes}}}
	}
	artifacts := target(profile.UnverifiedArtifacts, profile.PopulationArtifact)
	scans := target(profile.DisclosedCredentials, profile.PopulationFile)
	streams := target(profile.IncompleteStreams, profile.PopulationStream)
	timeout := sample.Reading{From: at(0), To: at(1), Failed: "timeout"}
	runMetered(t, map[string]metered{
		"should pass statements that something allowed": {target: statements, set: sample.Set{Statements: journal(whole, allowed)}, want: "pass, 0 of 1"},
		"should see a statement that nothing allowed":   {target: statements, set: sample.Set{Statements: journal(whole, allowed, foreign)}, want: "fail (product), 1 of 1, bound-exceeded"},
		"should not trust an empty journal":             {target: statements, set: sample.Set{Statements: journal(whole)}, want: "inconclusive (harness), no-samples", contains: "nothing shows that it was written"},
		"should not trust a journal that begins late":   {target: statements, set: sample.Set{Statements: journal(sample.Reading{From: at(5), To: at(601)}, allowed)}, want: "inconclusive (harness), 0 of 1, readings-gap"},
		"should see a journal that cannot be read":      {target: statements, set: sample.Set{Statements: append(journal(whole, allowed), sample.Journal{Reading: timeout, Database: "books"})}, want: "inconclusive (harness), 0 of 1, reading-failed"},
		"should know the images of the release":         {target: images, set: containers(dossiertest.Digest("1")), change: released, want: "pass, 0 of 2"},
		"should see another image":                      {target: images, set: containers(dossiertest.Digest("2")), change: released, want: "fail (product), 1 of 2, bound-exceeded"},
		"should see a list that failed":                 {target: images, set: sample.Set{Containers: append(containers(dossiertest.Digest("1")).Containers, sample.Running{Reading: timeout})}, change: released, want: "inconclusive (harness), 0 of 2, reading-failed"},
		"should pass a verified artifact":               {target: artifacts, set: artifact(&yes), want: "pass, 0 of 1"},
		"should see an artifact that does not verify":   {target: artifacts, set: artifact(&no), want: "fail (product), 1 of 1, bound-exceeded"},
		"should not take a check not made for a pass":   {target: artifacts, set: artifact(nil), want: "inconclusive (harness), 0 of 1, no-evidence-declared", contains: "was not checked"},
		"should see an artifact that cannot be had":     {target: artifacts, set: sample.Set{Artifacts: []sample.Artifact{{Reading: timeout, Name: "chart"}}}, want: "inconclusive (harness), reading-failed"},
		"should pass files without a finding":           {target: scans, set: sample.Set{Scans: []sample.Scan{{Reading: whole, File: "a.log"}}}, want: "pass, 0 of 1"},
		"should see a credential":                       {target: scans, set: sample.Set{Scans: []sample.Scan{{Reading: whole, File: "a.log", Findings: []string{"private-key", "bearer-token"}}}}, want: "fail (product), 2 of 1, bound-exceeded"},
		"should see a file that cannot be searched":     {target: scans, set: sample.Set{Scans: []sample.Scan{{Reading: timeout, File: "a.tar"}}}, want: "inconclusive (harness), reading-failed"},
		"should count whole streams":                    {target: streams, set: sample.Set{Scans: []sample.Scan{{Reading: whole, File: "a.log"}}}, want: "pass, 0 of 2"},
		"should see a stream that is not whole": {target: streams, want: "fail (product), 1 of 1, bound-exceeded", change: func(_ *profile.Profile, e *judge.Evidence) {
			e.Ledgers[0].Whole, e.Ledgers[0].Problem = false, "cut"
		}},
		"should see an account that is not whole": {target: streams, want: "fail (product), 1 of 3, bound-exceeded", change: func(_ *profile.Profile, e *judge.Evidence) {
			e.Driver, e.Phases = &driverload.Account{Problem: "cut"}, &phase.Account{Whole: true}
		}},
		"should not compute from readings that are not whole": {target: scans, set: sample.Set{Scans: []sample.Scan{{Reading: whole, File: "a.log"}}}, want: "inconclusive (harness), source-not-whole", change: func(_ *profile.Profile, e *judge.Evidence) {
			e.Samples.Files[sample.Scans] = sample.File{Problem: "cut"}
		}},
	})
}

// settled says what the whole cell comes to with an account of the harness.
func cellOf(t *testing.T, purpose profile.Purpose, change func(*judge.Evidence)) judge.CellJudgement {
	t.Helper()
	p := declared(profile.Target{Metric: profile.IncompleteStreams, Statistic: profile.Sum, Bound: atMost(10), Population: profile.PopulationStream})
	p.Purpose, p.Scenarios = purpose, p.Scenarios[:1]
	evidence := judge.Evidence{Ledgers: []judge.Ledger{ledger(false)}}
	change(&evidence)
	return wholeCell(p, evidence)
}

func account(late float64) *driverload.Account {
	list := []driverload.Sample{}
	for i := range 40 {
		list = append(list, driverload.Sample{At: at(float64(i)), Elapsed: float64(i) + 1, Late: late})
	}
	return &driverload.Account{Start: driverload.Start{Interval: 1, Processors: 2}, Samples: list, Whole: true, Digest: "sha256:driver"}
}

func phases(purpose phase.Purpose, outcome phase.Outcome, scenarios ...string) *phase.Account {
	return &phase.Account{Whole: true, Records: []phase.Record{{Plan: phase.Plan{Suite: "driver", Name: "soak", Purpose: purpose, Scenarios: scenarios}, Start: at(0), End: at(600),
		Result: &phase.Result{Outcome: outcome}}}}
}

func TestTheAccountsOfTheHarness(t *testing.T) {
	good := func(e *judge.Evidence) {
		e.Driver, e.Phases = account(0), phases(phase.Coverage, phase.Completed, "steady")
	}
	cases := map[string]struct {
		purpose profile.Purpose
		change  func(*judge.Evidence)
		want    string
		code    string
	}{
		"should pass a driver that kept up":                       {profile.Acceptance, good, "pass", ""},
		"should void a cell of a driver that was the bottleneck":  {profile.Acceptance, func(e *judge.Evidence) { good(e); e.Driver = account(2) }, "void (harness)", "driver-was-the-bottleneck"},
		"should void a cell of a driver that lost readings":       {profile.Development, func(e *judge.Evidence) { good(e); e.Driver.Samples[39].Lost = map[string]int64{"history": 1} }, "void (harness)", "driver-was-the-bottleneck"},
		"should not accept without an account of the driver":      {profile.Acceptance, func(e *judge.Evidence) { good(e); e.Driver = nil }, "inconclusive (harness)", "driver-load-unknown"},
		"should let development be without one":                   {profile.Development, func(e *judge.Evidence) { good(e); e.Driver = nil }, "pass", ""},
		"should not take no sample for a driver that kept up":     {profile.Development, func(e *judge.Evidence) { good(e); e.Driver.Samples = nil }, "inconclusive (harness)", "driver-load-unknown"},
		"should not take a cut account for a driver that kept up": {profile.Development, func(e *judge.Evidence) { good(e); e.Driver.Whole, e.Driver.Problem = false, "cut" }, "inconclusive (harness)", "driver-load-unknown"},
		"should fail a phase that ended early": {profile.Development, func(e *judge.Evidence) {
			good(e)
			e.Phases = phases(phase.Coverage, phase.Completed, "steady", "never")
		}, "fail (unknown)", "phase-ended-early"},
		"should fail a phase whose end nobody saw":          {profile.Development, func(e *judge.Evidence) { good(e); e.Phases.Records[0].Result = nil }, "fail (unknown)", "phase-ended-early"},
		"should fail a phase that died after its scenarios": {profile.Development, func(e *judge.Evidence) { good(e); e.Phases = phases(phase.Coverage, phase.Failed, "steady") }, "fail (unknown)", "outcome-contradicts-assertions"},
		"should fail scenarios out of order": {profile.Development, func(e *judge.Evidence) {
			good(e)
			e.Phases = phases(phase.Coverage, phase.Completed, "second", "steady")
			e.Ledgers[0].Records = append(e.Ledgers[0].Records, scenario.Record{Scenario: "second", Start: at(600), End: at(700), Ended: true, Outcome: scenario.OutcomePass})
		}, "fail (harness)", "scenario-out-of-order"},
		"should void a scenario of no phase": {profile.Development, func(e *judge.Evidence) {
			good(e)
			e.Ledgers[0].Records = append(e.Ledgers[0].Records, scenario.Record{Scenario: "stray", Start: at(600), End: at(700), Ended: true, Outcome: scenario.OutcomePass})
		}, "void (harness)", "scenario-not-declared"},
		"should void preparation that is offered as coverage": {profile.Development, func(e *judge.Evidence) { good(e); e.Phases = phases(phase.Preparation, phase.Completed, "steady") }, "void (harness)", "preparation-is-no-coverage"},
		"should void a ledger of a phase that was never run":  {profile.Development, func(e *judge.Evidence) { good(e); e.Phases.Records[0].Plan.Suite = "other" }, "fail (unknown)", "preparation-is-no-coverage"},
		"should fail a preparation that did not complete": {profile.Development, func(e *judge.Evidence) {
			good(e)
			e.Phases.Records = append(e.Phases.Records, phases(phase.Preparation, phase.TimedOut, "x").Records...)
			e.Phases.Records[1].Plan.Name = "fixtures"
		}, "fail (harness)", "phase-ended-early"},
		"should not accept without an account of the phases": {profile.Acceptance, func(e *judge.Evidence) { good(e); e.Phases = nil }, "inconclusive (harness)", "ledger-missing"},
		"should not know phases of an account that was cut":  {profile.Development, func(e *judge.Evidence) { good(e); e.Phases.Whole, e.Phases.Problem = false, "cut" }, "inconclusive (harness)", "ledger-not-whole"},
	}
	for name, test := range cases {
		t.Run(name, func(t *testing.T) {
			judged := cellOf(t, test.purpose, test.change)
			found := test.code == ""
			for _, reason := range judged.Verdict.Reasons {
				found = found || string(reason.Code) == test.code
			}
			if judged.Verdict.String() != test.want || !found {
				t.Errorf("it came to %s, want %s by %s: %v", judged.Verdict, test.want, test.code, judged.Verdict.Reasons)
			}
		})
	}
}
