package judge_test

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"ptah.run/ptah/qualification/evidence/dossier"
	"ptah.run/ptah/qualification/evidence/dossier/dossiertest"
	"ptah.run/ptah/qualification/evidence/scenario"
	"ptah.run/ptah/qualification/judge"
	"ptah.run/ptah/qualification/verdict"
)

const manager = dossiertest.Manager

// entries changes the ledger of the passing case; a nil entry is left out.
func entries(change func(scenario.Entry) *scenario.Entry) []scenario.Entry {
	var list []scenario.Entry
	for _, entry := range dossiertest.Entries() {
		if changed := change(entry); changed != nil {
			list = append(list, *changed)
		}
	}
	return list
}

func without(name string, event scenario.Event) []scenario.Entry {
	return entries(func(entry scenario.Entry) *scenario.Entry {
		if entry.Scenario == name && (event == "" || entry.Event == event) {
			return nil
		}
		return &entry
	})
}

func ended(name string, outcome scenario.Outcome, blame scenario.Blame, message string) []scenario.Entry {
	return entries(func(entry scenario.Entry) *scenario.Entry {
		if entry.Scenario == name && entry.Event == scenario.EventEnd {
			entry.Outcome, entry.Blame, entry.Message = outcome, blame, message
		}
		return &entry
	})
}

// burst adds requests of a user within the Apply of the passing case, which has 7 of the manager for work already.
func burst(c *dossiertest.Case, user string, count, code int) {
	var log bytes.Buffer
	log.Write(c.Audit["control-plane"])
	for i := range count {
		log.WriteString(dossiertest.AuditLine(fmt.Sprintf("burst-%d", i), dossiertest.At(15.1+float64(i)/100), user, "get", "", "secrets", "team", "x", code))
	}
	c.Audit["control-plane"] = log.Bytes()
}

// judged stores a case with the inputs of its profile and judges it.
func judged(t *testing.T, c *dossiertest.Case) judge.Judgement {
	t.Helper()
	inputs := c.Inputs(t)
	if bytes.Contains(c.Profile, []byte("controlPlanes: 3")) {
		inputs.ControlPlanes = 3
	}
	d, err := dossier.Load(c.StoreWith(t, inputs))
	if err != nil {
		t.Fatal(err)
	}
	return d.Judge()
}

func expect(t *testing.T, judgement judge.Judgement, want string, reason verdict.Code) {
	t.Helper()
	if got := judgement.Verdict.String(); got != want {
		t.Errorf("the verdict is %s, want %s: %v", got, want, judgement.Verdict.Reasons)
	}
	if reason == "" {
		return
	}
	for _, found := range judgement.Verdict.Reasons {
		if found.Code == reason {
			return
		}
	}
	t.Errorf("no reason %s among %v", reason, judgement.Verdict.Reasons)
}

func TestJudging(t *testing.T) {
	cases := map[string]struct {
		change func(t *testing.T, c *dossiertest.Case)
		want   string
		reason verdict.Code
	}{
		"should pass an Apply of exactly the bound":  {func(_ *testing.T, c *dossiertest.Case) { burst(c, manager, 33, 200) }, "pass", ""},
		"should not count requests of others":        {func(_ *testing.T, c *dossiertest.Case) { burst(c, "system:admin", 500, 200) }, "pass", ""},
		"should fail on a single response 429":       {func(_ *testing.T, c *dossiertest.Case) { burst(c, manager, 1, 429) }, "fail (product)", verdict.BoundExceeded},
		"should not establish counts without a log":  {func(_ *testing.T, c *dossiertest.Case) { c.Audit = nil }, "inconclusive (harness)", verdict.AuditMissing},
		"should not establish counts from a cut log": {func(_ *testing.T, c *dossiertest.Case) { c.Audit["control-plane"] = c.Audit["control-plane"][:20000] }, "inconclusive (harness)", verdict.AuditIncomplete},
		"should not establish counts of a wrong name": {func(_ *testing.T, c *dossiertest.Case) {
			c.Audit["control-plane"] = bytes.ReplaceAll(c.Audit["control-plane"], []byte(":ptah-operator\""), []byte(":manager\""))
		}, "inconclusive (harness)", verdict.AuditIncomplete},
		"should fail on too many although log is cut": {func(_ *testing.T, c *dossiertest.Case) { burst(c, manager, 34, 200); c.Audit["other"] = nil }, "fail (product)", verdict.BoundExceeded},
		"should not run what no suite reports": {func(t *testing.T, c *dossiertest.Case) {
			c.Ledger = dossiertest.Stream(t, without("typed-approver-replaced", "")...)
		}, "not-run (harness)", verdict.ScenarioMissing},
		"should not run a cell without any ledger":    {func(_ *testing.T, c *dossiertest.Case) { c.Ledger = nil }, "inconclusive (harness)", verdict.LedgerMissing},
		"should not run a cell that was not finished": {func(_ *testing.T, c *dossiertest.Case) { c.Skip = true }, "not-run (harness)", verdict.CellMissing},
		"should not pass a scenario not run": {func(t *testing.T, c *dossiertest.Case) {
			c.Ledger = dossiertest.Stream(t, ended("typed-approver-replaced", scenario.OutcomeNotRun, "", "no second person")...)
		}, "not-run (harness)", verdict.ScenarioNotRun},
		"should blame the product for its failure": {func(t *testing.T, c *dossiertest.Case) {
			c.Ledger = dossiertest.Stream(t, ended("typed-approver-replaced", scenario.OutcomeFail, scenario.BlameProduct, "forged")...)
		}, "fail (product)", verdict.ScenarioFailed},
		"should blame the harness for its failure": {func(t *testing.T, c *dossiertest.Case) {
			c.Ledger = dossiertest.Stream(t, ended("typed-approver-replaced", scenario.OutcomeFail, scenario.BlameHarness, "no login")...)
		}, "fail (harness)", verdict.ScenarioFailed},
		"should blame the machine for its failure": {func(t *testing.T, c *dossiertest.Case) {
			c.Ledger = dossiertest.Stream(t, ended("typed-approver-replaced", scenario.OutcomeFail, scenario.BlameInfrastructure, "disk full")...)
		}, "fail (infrastructure)", verdict.ScenarioFailed},
		"should not guess whose failure it is": {func(t *testing.T, c *dossiertest.Case) {
			c.Ledger = dossiertest.Stream(t, ended("typed-approver-replaced", scenario.OutcomeFail, "somebody", "")...)
		}, "fail (unknown)", verdict.ScenarioFailed},
		"should not believe a pass without assertions": {func(t *testing.T, c *dossiertest.Case) {
			c.Ledger = dossiertest.Stream(t, without("typed-approver-replaced", scenario.EventAssert)...)
		}, "inconclusive (harness)", verdict.NoEvidence},
		"should not measure what was not measured": {func(t *testing.T, c *dossiertest.Case) {
			c.Ledger = dossiertest.Stream(t, without("second-refresh-changes-nothing", scenario.EventMeasure)...)
		}, "inconclusive (harness)", verdict.NoSamples},
		"should demand the declared number of samples": {func(_ *testing.T, c *dossiertest.Case) {
			c.Profile = bytes.Replace(c.Profile, []byte("minSamples: 1"), []byte("minSamples: 3"), 1)
		}, "inconclusive (harness)", verdict.TooFewSamples},
		"should demand enough samples for a p95": {func(_ *testing.T, c *dossiertest.Case) {
			c.Profile = bytes.Replace(c.Profile, []byte("statistic: max"), []byte("statistic: p95"), 1)
		}, "inconclusive (harness)", verdict.TooFewSamples},
		"should void evidence of an undeclared place": {func(_ *testing.T, c *dossiertest.Case) { c.Facts.Lab.Platform = "linux/riscv64" }, "void (harness)", verdict.InputsDiffer},
		"should accept an emulated development run":   {func(_ *testing.T, c *dossiertest.Case) { c.Facts.Lab.NativePlatform = false }, "pass", ""},
		"should not know metrics it has no data for": {func(_ *testing.T, c *dossiertest.Case) {
			c.Profile = bytes.Replace(c.Profile, []byte("metric: rate-limited-responses"), []byte("metric: observation-age"), 1)
			c.Profile = bytes.Replace(c.Profile, []byte("unit: responses"), []byte("unit: seconds"), 1)
		}, "inconclusive (harness)", verdict.SourceMissing},
		"should see a failure nobody asked about": {func(t *testing.T, c *dossiertest.Case) {
			c.Ledger = dossiertest.Stream(t, append(dossiertest.Entries(),
				scenario.Entry{Event: scenario.EventStart, At: dossiertest.At(150), Scenario: "extra"},
				scenario.Entry{Event: scenario.EventEnd, At: dossiertest.At(151), Scenario: "extra", Outcome: scenario.OutcomeFail, Blame: scenario.BlameProduct, Message: "x"})...)
		}, "fail (product)", verdict.ScenarioForeign},
		"should not mind a pass nobody asked about": {func(t *testing.T, c *dossiertest.Case) {
			c.Ledger = dossiertest.Stream(t, append(dossiertest.Entries(),
				scenario.Entry{Event: scenario.EventStart, At: dossiertest.At(150), Scenario: "extra"},
				scenario.Entry{Event: scenario.EventEnd, At: dossiertest.At(151), Scenario: "extra", Outcome: scenario.OutcomePass})...)
		}, "pass", ""},
		"should see a target that no cell is selected for": {func(_ *testing.T, c *dossiertest.Case) {
			c.Profile = bytes.Replace(c.Profile, []byte("where: {suite: data-plane}"), []byte("where: {suite: lifecycle}"), 1)
		}, "not-run (harness)", verdict.NoEvidence},
		"should leave out measurements under an excluded fault": {func(t *testing.T, c *dossiertest.Case) {
			from, to := dossiertest.At(60), dossiertest.At(110) // 50 requests for work, more than the bound of a refresh
			c.Ledger = dossiertest.Stream(t, entries(func(entry scenario.Entry) *scenario.Entry {
				if entry.Scenario == "wrong-password-bounded-retry" && entry.Event == scenario.EventAssert {
					entry = scenario.Entry{Event: scenario.EventMeasure, At: to, Scenario: entry.Scenario, Key: "refresh", From: &from, To: &to}
				}
				return &entry
			})...)
		}, "inconclusive (harness)", verdict.NoEvidence},
	}
	for name, test := range cases {
		t.Run(name, func(t *testing.T) {
			c := dossiertest.Passing(t)
			test.change(t, c)
			expect(t, judged(t, c), test.want, test.reason)
		})
	}
}

func TestInputsThatDoNotFitVoidTheCell(t *testing.T) {
	c := dossiertest.Passing(t)
	cases := map[string]struct {
		planes, workers int
		profile         string
	}{
		"should void a cluster of another shape":       {3, 0, ""},
		"should void a cluster with a worker too many": {1, 1, ""},
		"should void evidence of another profile":      {1, 0, dossiertest.Digest("7")},
	}
	for name, test := range cases {
		t.Run(name, func(t *testing.T) {
			inputs := c.Inputs(t)
			inputs.ControlPlanes, inputs.Workers = test.planes, test.workers
			if test.profile != "" {
				inputs.Profile = test.profile
			}
			d, err := dossier.Load(c.StoreWith(t, inputs))
			if err != nil {
				t.Fatal(err)
			}
			expect(t, d.Judge(), "void (harness)", verdict.InputsDiffer)
		})
	}
}

// input returns what is judged in the passing case, for tests that alter evidence beyond what a store allows.
func input(t *testing.T) (judge.Input, judge.Evidence) {
	t.Helper()
	d, err := dossier.Load(dossiertest.Passing(t).Store(t))
	if err != nil {
		t.Fatal(err)
	}
	evidence := d.Cells[0].Evidence
	return judge.Input{Profile: d.Profile, Expected: d.Expected, Evidence: []judge.Evidence{evidence}}, evidence
}

func TestTheSetOfCellsIsExact(t *testing.T) {
	whole, evidence := input(t)
	expect(t, judge.Judge(whole), "pass", "")

	twice := whole
	twice.Evidence = []judge.Evidence{evidence, evidence}
	expect(t, judge.Judge(twice), "void (harness)", verdict.CellForeign)

	foreign := whole
	other := evidence
	other.Cell = "other"
	foreign.Evidence = []judge.Evidence{evidence, other}
	expect(t, judge.Judge(foreign), "void (harness)", verdict.CellForeign)

	missing := whole
	missing.Evidence = nil
	expect(t, judge.Judge(missing), "not-run (harness)", verdict.CellMissing)

	nothing := whole
	nothing.Expected, nothing.Evidence = nil, nil
	if judge.Judge(nothing).Verdict.Satisfies() {
		t.Error("judging nothing is a pass")
	}
}

func TestStatedInputsMustHaveTheDigestOfTheCell(t *testing.T) {
	altered, evidence := input(t)
	evidence.Inputs.Harness = "another"
	altered.Evidence = []judge.Evidence{evidence}
	expect(t, judge.Judge(altered), "void (harness)", verdict.InputsDiffer)
}

func TestTwoLedgersOfOneScenarioVoidTheCell(t *testing.T) {
	altered, evidence := input(t)
	evidence.Ledgers = append(evidence.Ledgers, evidence.Ledgers[0])
	altered.Evidence = []judge.Evidence{evidence}
	expect(t, judge.Judge(altered), "void (harness)", verdict.ScenarioForeign)
}

func TestALaterRevisionJudgesStoredEvidenceAgain(t *testing.T) {
	c := dossiertest.Passing(t)
	d, err := dossier.Load(c.Store(t))
	if err != nil {
		t.Fatal(err)
	}
	stricter := revise(t, d, c, "requests-per-apply", "atMost: 40", "atMost: 6")
	expect(t, stricter, "fail (product)", verdict.BoundExceeded)
	expect(t, d.Judge(), "pass", "") // the earlier verdict stands
	unlisted := revise(t, d, c, "requests-per-refresh", "atMost: 40", "atMost: 6")
	expect(t, unlisted, "fail (product)", verdict.InputsDiffer)
}

func TestSamplesAndNumbersAreThoseOfTheLog(t *testing.T) {
	whole, _ := input(t)
	for _, target := range judge.Judge(whole).Cells[0].Targets {
		want := map[string]string{"requests-per-refresh": "5 of 2", "requests-per-apply": "7 of 1", "no-rate-limiting": "0 of 1"}[target.Target]
		if got := fmt.Sprintf("%g of %d", *target.Value, target.N); got != want {
			t.Errorf("%s: %s, want %s", target.Target, got, want)
		}
		if len(target.Evidence) == 0 || !strings.HasPrefix(target.Evidence[0], "sha256:") {
			t.Errorf("%s names no evidence", target.Target)
		}
	}
}
