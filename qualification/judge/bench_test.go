package judge_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"ptah.run/ptah/qualification/evidence/dossier/dossiertest"
	"ptah.run/ptah/qualification/evidence/sample"
	"ptah.run/ptah/qualification/evidence/scenario"
	"ptah.run/ptah/qualification/judge"
	"ptah.run/ptah/qualification/matrix"
	"ptah.run/ptah/qualification/profile"
	"ptah.run/ptah/qualification/profile/document"
	"ptah.run/ptah/qualification/verdict"
)

// at is a moment of a test, in seconds.
func at(seconds float64) time.Time { return dossiertest.At(seconds) }

func when(seconds float64) *time.Time {
	moment := at(seconds)
	return &moment
}

func atMost(bound float64) profile.Bound  { return profile.Bound{AtMost: &bound} }
func atLeast(bound float64) profile.Bound { return profile.Bound{AtLeast: &bound} }

var bench = matrix.Cell{Matrix: "capacity", Key: "bench", Axes: map[string]string{"edge": "one"}}

// declared is a profile with one target, for a cell of 600 s with two managers and one API server.
func declared(target profile.Target) *profile.Profile {
	target.ID, target.Requirement, target.Cells = "it", "PA-08", profile.Selection{Matrix: "capacity"}
	target.Unit = target.Metric.Unit()
	if target.MinSamples == 0 {
		target.MinSamples = 1
	}
	if target.Window.Over == "" {
		target.Window.Over = profile.WholeRun
	}
	p := &profile.Profile{Name: "bench", Purpose: profile.Development, Revision: 1, Revisions: []profile.Revision{{Number: 1}}, Targets: []profile.Target{target}}
	p.Support.Platforms = []string{"linux/amd64"}
	p.Cluster.ControlPlanes = 1
	p.Installation.Replicas = 2
	p.Installation.ManagerIdentity = manager
	p.Workload = profile.Workload{Schemas: 2, Namespaces: 1, Interval: document.Duration(2 * time.Minute)}
	p.Scenarios = []profile.Scenario{
		{Name: "steady", Requirement: "PA-08", Cells: profile.Selection{Matrix: "capacity"}},
		{Name: "outage", Requirement: "PA-08", Fault: profile.FaultRegistryOutage, Cells: profile.Selection{Matrix: "capacity"}},
	}
	return p
}

// ledger is a steady scenario from 0 to 600 s, and a witnessed outage from 200 to 300 s where it is asked for.
func ledger(outage bool, measured ...scenario.Measurement) judge.Ledger {
	held := []scenario.Assertion{{Key: "holds", Held: true}}
	records := []scenario.Record{{Scenario: "steady", Start: at(0), End: at(600), Ended: true, Outcome: scenario.OutcomePass, Assertions: held, Measurements: measured}}
	if outage {
		records = append(records, scenario.Record{Scenario: "outage", Start: at(200), End: at(300), Ended: true, Outcome: scenario.OutcomePass, Assertions: held,
			Witnesses: []scenario.Observation{{At: at(210), Key: "refused"}}})
	}
	return judge.Ledger{Suite: "driver", Whole: true, Digest: "sha256:ledger", Records: records}
}

// kept is a set of readings in which the sources that it has are whole.
func kept(set sample.Set) *sample.Set {
	set.Files = map[sample.Source]sample.File{}
	for source, lines := range map[sample.Source]int{sample.Alerts: len(set.Alerts), sample.Artifacts: len(set.Artifacts), sample.Containers: len(set.Containers), sample.History: len(set.History),
		sample.Inventory: len(set.Inventory), sample.Pods: len(set.Pods), sample.Processes: len(set.Processes), sample.Scans: len(set.Scans), sample.Statements: len(set.Statements)} {
		if lines > 0 {
			set.Files[source] = sample.File{Digest: "sha256:" + string(source), Lines: lines}
		}
	}
	return &set
}

// one judges a single target over the readings.
func one(t *testing.T, p *profile.Profile, evidence judge.Evidence) judge.TargetVerdict {
	t.Helper()
	return wholeCell(p, evidence).Targets[0]
}

// wholeCell judges the cell.
func wholeCell(p *profile.Profile, evidence judge.Evidence) judge.CellJudgement {
	evidence.Cell = bench.Key
	evidence.Inputs = matrix.Inputs{Cell: bench, Profile: p.Digest(), Platform: "linux/amd64", Native: true, ControlPlanes: 1, Images: evidence.Inputs.Images}
	evidence.InputDigest = evidence.Inputs.Digest()
	judged := judge.Judge(judge.Input{Profile: p, Expected: []matrix.Cell{bench}, Evidence: []judge.Evidence{evidence}})
	return judged.Cells[0]
}

// come says what a target came to: the verdict, the value with the number of samples, and the codes of the reasons.
func come(judged judge.TargetVerdict) string {
	text := judged.Verdict.String()
	if judged.Value != nil {
		text += fmt.Sprintf(", %.4g of %d", *judged.Value, judged.N)
	}
	codes := map[verdict.Code]bool{}
	for _, reason := range judged.Verdict.Reasons {
		if !codes[reason.Code] {
			text += ", " + string(reason.Code)
		}
		codes[reason.Code] = true
	}
	return text
}

// metered is one case of a metric: what is declared, what was kept, and what it comes to.
type metered struct {
	target   profile.Target
	outage   bool
	set      sample.Set
	change   func(*profile.Profile, *judge.Evidence)
	want     string
	contains string // of a reason
}

func runMetered(t *testing.T, cases map[string]metered) {
	t.Helper()
	for name, test := range cases {
		t.Run(name, func(t *testing.T) {
			p := declared(test.target)
			evidence := judge.Evidence{Ledgers: []judge.Ledger{ledger(test.outage)}, Samples: kept(test.set)}
			if test.change != nil {
				test.change(p, &evidence)
			}
			judged := one(t, p, evidence)
			if got := come(judged); got != test.want {
				t.Errorf("it came to %q, want %q: %v", got, test.want, judged.Verdict.Reasons)
			}
			if !strings.Contains(fmt.Sprint(judged.Verdict.Reasons), test.contains) {
				t.Errorf("no reason says %q: %v", test.contains, judged.Verdict.Reasons)
			}
			if len(judged.Evidence) == 0 && judged.N > 0 {
				t.Error("it names no evidence")
			}
		})
	}
}

// read is a reading of one second that ends at a moment.
func read(seconds float64) sample.Reading {
	return sample.Reading{From: at(seconds - 1), To: at(seconds)}
}

// every calls each for every five seconds of the cell, and once before and after it.
func every(each func(seconds float64)) {
	for seconds := -5.0; seconds <= 605; seconds += 5 {
		each(seconds)
	}
}

// watch joins changes of resources with the marks of a watch that lived from before to after the cell.
func watch(changes ...sample.Change) []sample.Change {
	var list []sample.Change
	next := 0
	for seconds := -10.0; seconds <= 610; seconds += 10 {
		for ; next < len(changes) && !changes[next].At.After(at(seconds)); next++ {
			list = append(list, changes[next])
		}
		list = append(list, sample.Change{At: at(seconds), Type: sample.Mark})
	}
	return list
}
