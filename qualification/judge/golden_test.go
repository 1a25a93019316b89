package judge_test

import (
	"bytes"
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"ptah.run/ptah/qualification/evidence/dossier"
	"ptah.run/ptah/qualification/evidence/dossier/dossiertest"
	"ptah.run/ptah/qualification/evidence/driverload"
	"ptah.run/ptah/qualification/evidence/phase"
	"ptah.run/ptah/qualification/evidence/sample"
	"ptah.run/ptah/qualification/evidence/scenario"
	"ptah.run/ptah/qualification/judge"
	"ptah.run/ptah/qualification/profile"
	"ptah.run/ptah/qualification/verdict"
)

var (
	update  = flag.Bool("update", false, "write the judgements of the golden cases anew")
	rebuild = flag.Bool("rebuild", false, "write the evidence of the golden cases anew too; it stands for stored evidence, so that this is rarely meant")
)

// golden is evidence that is kept as a directory: a defect in it, the verdict that it must come to, and what repairs the
// defect and nothing else. Repaired, the same evidence passes, so that the defect is what the verdict is about.
type golden struct {
	build   func(t *testing.T) *dossiertest.Case
	want    string // verdict of the whole
	reason  verdict.Code
	repair  func(t *testing.T, c *dossiertest.Case)
	revised bool // the directory holds a later revision of the profile, judgement-revised.json is under it
}

// quick changes the passing case of the quickstart profile, and its repair takes the ledger and the logs of it again.
func quick(want string, reason verdict.Code, change func(t *testing.T, c *dossiertest.Case)) golden {
	return golden{want: want, reason: reason, build: func(t *testing.T) *dossiertest.Case {
		c := dossiertest.Passing(t)
		change(t, c)
		return c
	}, repair: func(t *testing.T, c *dossiertest.Case) {
		good := dossiertest.Passing(t)
		c.Ledger, c.Audit = good.Ledger, good.Audit
		c.Profile = bytes.Replace(c.Profile, []byte("controlPlanes: 3"), []byte("controlPlanes: 1"), 1)
	}}
}

func goldens() map[string]golden {
	cases := map[string]golden{
		"everything-passes": quick("pass", "", func(*testing.T, *dossiertest.Case) {}),
		"witness-missing": quick("void (harness)", verdict.WitnessMissing, func(t *testing.T, c *dossiertest.Case) {
			c.Ledger = dossiertest.Stream(t, without("drift-seen-within-one-interval", scenario.EventWitness)...)
		}),
		"ledger-cut": quick("inconclusive (harness)", verdict.LedgerNotWhole, func(_ *testing.T, c *dossiertest.Case) {
			c.Ledger = c.Ledger[:bytes.LastIndex(c.Ledger[:len(c.Ledger)-1], []byte("\n"))+1]
		}),
		"suite-died": quick("fail (unknown)", verdict.ScenarioNotEnded, func(t *testing.T, c *dossiertest.Case) {
			c.Ledger = dossiertest.Stream(t, without("wrong-password-bounded-retry", scenario.EventEnd)...)
		}),
		"passed-against-its-assertions": quick("fail (product)", verdict.OutcomeContradicts, func(t *testing.T, c *dossiertest.Case) {
			c.Ledger = dossiertest.Stream(t, entries(func(entry scenario.Entry) *scenario.Entry {
				if no := false; entry.Scenario == "second-refresh-changes-nothing" && entry.Event == scenario.EventAssert {
					entry.Held = &no
				}
				return &entry
			})...)
		}),
		"apply-over-budget": quick("fail (product)", verdict.BoundExceeded, func(_ *testing.T, c *dossiertest.Case) { burst(c, manager, 34, 200) }),
		"audit-begins-late": quick("inconclusive (harness)", verdict.AuditIncomplete, func(_ *testing.T, c *dossiertest.Case) {
			c.Audit["control-plane"] = dossiertest.AuditLog(dossiertest.At(20), 180*time.Second)
		}),
		"audit-log-of-a-server-missing": quick("inconclusive (harness)", verdict.AuditIncomplete, func(_ *testing.T, c *dossiertest.Case) {
			c.Profile = bytes.Replace(c.Profile, []byte("controlPlanes: 1"), []byte("controlPlanes: 3"), 1)
		}),
	}
	for name, one := range small() {
		cases[name] = one
	}
	for name, one := range soaks() {
		cases[name] = one
	}
	return cases
}

func TestGoldenEvidence(t *testing.T) {
	for name, test := range goldens() {
		t.Run(name, func(t *testing.T) {
			dir := filepath.Join("testdata", name)
			if *rebuild {
				write(t, test, dir)
			}
			c := dossiertest.Read(t, dir)
			judgement := judged(t, c)
			same(t, filepath.Join(dir, "judgement.json"), judgement)
			expect(t, judgement, test.want, test.reason)
			if test.revised {
				same(t, filepath.Join(dir, "judgement-revised.json"), rejudged(t, c, filepath.Join(dir, "revised.yaml")))
			}
			test.repair(t, c)
			expect(t, judged(t, c), "pass", "")
		})
	}
}

func write(t *testing.T, test golden, dir string) {
	t.Helper()
	test.build(t).Write(t, dir)
	if test.revised {
		if err := os.WriteFile(filepath.Join(dir, "revised.yaml"), soakProfile(2), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// same compares a judgement with the one that is kept, byte for byte.
func same(t *testing.T, path string, judgement judge.Judgement) {
	t.Helper()
	data, err := json.MarshalIndent(judgement, "", "  ")
	if err != nil {
		t.Fatal(err)
	}
	data = append(data, '\n')
	if *update || *rebuild {
		if err := os.WriteFile(path, data, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(data, want) {
		t.Errorf("the judgement differs from %s; look at the difference and run with -update if it is meant:\n%s", path, data)
	}
}

func rejudged(t *testing.T, c *dossiertest.Case, path string) judge.Judgement {
	t.Helper()
	d, err := dossier.Load(c.Store(t))
	if err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	p, err := profile.Decode(path, data)
	if err != nil {
		t.Fatal(err)
	}
	return d.JudgeUnder(p)
}

const smallProfile = `apiVersion: qualification.ptah.run/v1
kind: Profile
name: small
purpose: development
summary: Two minutes of two managers, for evidence that is small enough to keep.
revision: 1
revisions: [{number: 1, date: 2026-11-29, reason: First declaration.}]
support:
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
workload: {schemas: 1, migrations: 0, namespaces: 1, interval: 2m, sampleEvery: 10s}
coverage: [{matrix: functional, depth: smoke}]
scenarios:
  - {name: begins, requirement: PA-09, statement: It begins., cells: {matrix: functional}}
  - {name: no-manager-at-all, requirement: PA-09, statement: Managers that are gone are reported., fault: manager-restart, cells: {matrix: functional}}
targets:
  - id: throttling
    requirement: PA-08
    statement: Clients wait at most 10 s in any minute.
    metric: client-throttling
    statistic: max
    window: {over: sliding, length: 1m}
    bound: {atMost: 10}
    unit: seconds
    population: manager process
    minSamples: 1
    cells: {matrix: functional}
  - id: reported
    requirement: PA-09
    statement: Managers that are gone are reported within 105 s.
    metric: alert-firing
    statistic: max
    window: {over: measurement}
    bound: {atMost: 105}
    unit: seconds
    population: PtahOperatorUnresolvedViewNotSynced
    minSamples: 1
    cells: {matrix: functional}
notShown: [Anything beyond two minutes.]
`

const smallMatrix = `apiVersion: qualification.ptah.run/v1
kind: Matrix
name: functional
summary: One cell.
axes:
  - {name: suite, values: [{name: data-plane}]}
depths:
  - {name: smoke, summary: All of it., select: [{}]}
`

const smallSuites = `apiVersion: qualification.ptah.run/v1
kind: Suites
suites:
  - name: data-plane
    summary: What the small evidence is of.
    package: qualification/suites/dataplane
    phases: [{name: postgresql, timeout: 20m, scenarios: [begins, no-manager-at-all]}]
`

// smallCase is two minutes in which everything passes.
func smallCase(t *testing.T) *dossiertest.Case {
	c := dossiertest.Passing(t)
	c.Profile, c.Matrix, c.Suites, c.Audit = []byte(smallProfile), []byte(smallMatrix), []byte(smallSuites), nil
	c.Ledger = dossiertest.Stream(t, smallLedger()...)
	c.Streams = map[string][]byte{
		sample.Processes.Name(): lines(t, smallScrapes(false)),
		sample.Alerts.Name():    lines(t, deliveries(70)),
		phase.FileName:          smallPhases(t, phase.Coverage),
		driverload.FileName:     driver(t, 0),
	}
	return c
}

func smallLedger() []scenario.Entry {
	held := true
	from, to := at(60), at(110)
	return []scenario.Entry{
		{Event: scenario.EventStart, At: at(0), Scenario: "begins"},
		{Event: scenario.EventAssert, At: at(9), Scenario: "begins", Key: "holds", Held: &held},
		{Event: scenario.EventEnd, At: at(10), Scenario: "begins", Outcome: scenario.OutcomePass},
		{Event: scenario.EventStart, At: at(50), Scenario: "no-manager-at-all"},
		{Event: scenario.EventWitness, At: at(65), Scenario: "no-manager-at-all", Key: "no endpoint is ready", Value: json.RawMessage("0")},
		{Event: scenario.EventAssert, At: at(109), Scenario: "no-manager-at-all", Key: "holds", Held: &held},
		{Event: scenario.EventMeasure, At: at(110), Scenario: "no-manager-at-all", Key: unsynced, Message: "every manager", From: &from, To: &to},
		{Event: scenario.EventEnd, At: at(120), Scenario: "no-manager-at-all", Outcome: scenario.OutcomePass},
	}
}

// smallScrapes are two managers whose throttling rises by 0.5 s every ten seconds, the first one restarted after 40 s
// where that is asked for. Its counter then falls from 104.5 to 0.
func smallScrapes(reset bool) []sample.Scrape {
	var list []sample.Scrape
	for i := range 15 {
		seconds := float64(i)*10 - 10
		for _, pod := range []string{"manager-1", "manager-2"} {
			one := sample.Scrape{Reading: read(seconds), Values: map[string]float64{throttled: 100 + float64(i)*0.5},
				Process: sample.Process{Role: sample.Manager, Pod: pod, UID: "uid-" + pod, Container: "c-" + pod, Started: at(-1000)}}
			if reset && pod == "manager-1" && seconds > 40 {
				one.Process.Started, one.Process.Restarts, one.Values = at(45), 1, map[string]float64{throttled: float64(i-6) * 0.5}
			}
			list = append(list, one)
		}
	}
	return list
}

// deliveries are an alert that began at some moment and arrives after 84 s, and a sign of life of the receiver.
func deliveries(began float64) []sample.Delivery {
	return []sample.Delivery{
		{At: at(84), Alert: unsynced, Status: sample.Firing, Started: at(began), Fingerprint: "f", Labels: map[string]string{"severity": "critical"}},
		{At: at(170)},
	}
}

// lines makes a whole stream of values.
func lines[T any](t *testing.T, values []T) []byte {
	t.Helper()
	return dossiertest.Lines(t, values)
}

func smallPhases(t *testing.T, purpose phase.Purpose) []byte {
	plan := phase.Plan{Suite: "data-plane", Name: "postgresql", Purpose: purpose, Scenarios: []string{"begins", "no-manager-at-all"}}
	return lines(t, []phase.Entry{{Event: phase.Begun, At: at(-1), Plan: plan}, {Event: phase.Ended, At: at(121), Plan: plan, Result: &phase.Result{Outcome: phase.Completed}}})
}

// driver is an account of a driver that runs late by some seconds at each of its readings.
func driver(t *testing.T, late float64) []byte {
	entries := []driverload.Entry{{Start: &driverload.Start{At: at(-1), PID: 1, Processors: 4, Interval: 5}}}
	for i := range 25 {
		entries = append(entries, driverload.Entry{Sample: &driverload.Sample{At: at(float64(i) * 5), Elapsed: float64(i)*5 + 1, Late: late, CPU: float64(i) * 0.1, Memory: 50 << 20, Processes: 2}})
	}
	return lines(t, entries)
}

// small are the goldens that change one thing in the small case.
func small() map[string]golden {
	change := func(want string, reason verdict.Code, name string, change func(t *testing.T, good []byte) []byte) golden {
		return golden{want: want, reason: reason, build: func(t *testing.T) *dossiertest.Case {
			c := smallCase(t)
			if c.Streams[name] = change(t, c.Streams[name]); c.Streams[name] == nil {
				delete(c.Streams, name)
			}
			return c
		}, repair: func(t *testing.T, c *dossiertest.Case) { c.Streams[name] = smallCase(t).Streams[name] }}
	}
	ledger := func(want string, reason verdict.Code, dropped func(scenario.Entry) bool) golden {
		return golden{want: want, reason: reason, build: func(t *testing.T) *dossiertest.Case {
			c := smallCase(t)
			c.Ledger = dossiertest.Stream(t, slices.DeleteFunc(smallLedger(), dropped)...)
			return c
		}, repair: func(t *testing.T, c *dossiertest.Case) { c.Ledger = smallCase(t).Ledger }}
	}
	reorder := func(_ *testing.T, good []byte) []byte {
		list := bytes.SplitAfter(good, []byte("\n"))
		list[3], list[5] = list[5], list[3]
		return bytes.Join(list, nil)
	}
	return map[string]golden{
		"small-passes": {want: "pass", build: smallCase, repair: func(*testing.T, *dossiertest.Case) {}},
		"counter-reset": change("inconclusive (harness)", verdict.CounterReset, sample.Processes.Name(), func(t *testing.T, _ []byte) []byte {
			return lines(t, smallScrapes(true))
		}),
		"stale-notification": change("void (harness)", verdict.StaleAlert, sample.Alerts.Name(), func(t *testing.T, _ []byte) []byte {
			return lines(t, deliveries(55)) // delivered after the fault, of an incident from before it
		}),
		"incident-without-witness": ledger("void (harness)", verdict.WitnessMissing, func(e scenario.Entry) bool { return e.Event == scenario.EventWitness }),
		"stream-missing":           change("inconclusive (harness)", verdict.SourceMissing, sample.Processes.Name(), func(*testing.T, []byte) []byte { return nil }),
		"stream-truncated": change("inconclusive (harness)", verdict.SourceNotWhole, sample.Processes.Name(), func(_ *testing.T, good []byte) []byte {
			return good[:len(good)-200] // within its last lines
		}),
		"stream-reordered":  change("inconclusive (harness)", verdict.SourceNotWhole, sample.Processes.Name(), reorder),
		"phase-ended-early": ledger("fail (unknown)", verdict.PhaseEndedEarly, func(e scenario.Entry) bool { return e.Scenario == "no-manager-at-all" }),
		"preparation-as-coverage": change("void (harness)", verdict.Preparation, phase.FileName, func(t *testing.T, _ []byte) []byte {
			return smallPhases(t, phase.Preparation)
		}),
		"driver-was-the-bottleneck": change("void (harness)", verdict.DriverBusy, driverload.FileName, func(t *testing.T, _ []byte) []byte { return driver(t, 3) }),
	}
}
