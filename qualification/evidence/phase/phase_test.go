package phase_test

import (
	"bytes"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"ptah.run/ptah/qualification/evidence/phase"
	"ptah.run/ptah/qualification/evidence/scenario"
	"ptah.run/ptah/qualification/evidence/stream"
)

var begin = time.Date(2026, 11, 29, 10, 0, 0, 0, time.UTC)

func plan() phase.Plan {
	return phase.Plan{Suite: "data-plane", Name: "postgresql", Purpose: phase.Coverage, Scenarios: []string{"a", "b", "c", "d"}, Together: []string{"b", "c", "d"}}
}

func written(t testing.TB, entries ...any) []byte {
	t.Helper()
	var buffer bytes.Buffer
	w := stream.NewWriter(&buffer)
	for _, entry := range entries {
		if err := w.Append(entry); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return buffer.Bytes()
}

func begun(p phase.Plan) phase.Entry { return phase.Entry{Event: phase.Begun, At: begin, Plan: p} }

func ended(p phase.Plan, outcome phase.Outcome) phase.Entry {
	return phase.Entry{Event: phase.Ended, At: begin.Add(time.Minute), Plan: p, Result: &phase.Result{Outcome: outcome}}
}

func TestPhasesReadBackInTheOrderInWhichTheyBegan(t *testing.T) {
	other := plan()
	other.Name = "mysql"
	preparation := plan()
	preparation.Purpose = phase.Preparation
	records, err := phase.Read(bytes.NewReader(written(t, begun(preparation), ended(preparation, phase.Completed), begun(plan()), ended(plan(), phase.Failed), begun(other))))
	if err != nil || len(records) != 3 {
		t.Fatalf("%+v, %v", records, err)
	}
	if records[0].Plan.Purpose != phase.Preparation || records[1].Result.Outcome != phase.Failed || records[2].Result != nil || records[1].End.Sub(records[1].Start) != time.Minute {
		t.Errorf("%+v", records)
	}
}

func TestLinesThatNoHarnessWritesAreRefused(t *testing.T) {
	nameless, scenarioless, purposeless, odd := plan(), plan(), plan(), ended(plan(), "tired")
	nameless.Name, scenarioless.Scenarios, purposeless.Purpose = "", nil, "fun"
	resultless, withResult := ended(plan(), phase.Completed), begun(plan())
	resultless.Result, withResult.Result = nil, &phase.Result{Outcome: phase.Completed}
	cases := map[string][]any{
		"an end before the begin":   {ended(plan(), phase.Completed)},
		"two begins":                {begun(plan()), begun(plan())},
		"two ends":                  {begun(plan()), ended(plan(), phase.Completed), ended(plan(), phase.Completed)},
		"an end without a result":   {begun(plan()), resultless},
		"a begin with a result":     {withResult},
		"an unknown outcome":        {begun(plan()), odd},
		"an unknown event":          {phase.Entry{Event: "paused", Plan: plan()}},
		"a phase without a name":    {begun(nameless)},
		"a phase without scenarios": {begun(scenarioless)},
		"a phase without a purpose": {begun(purposeless)},
		"a line of another shape":   {map[string]any{"plan": 3}},
	}
	for name, entries := range cases {
		if _, err := phase.Read(bytes.NewReader(written(t, entries...))); !errors.Is(err, stream.ErrMalformed) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// at is a scenario that ran from one second to another.
func at(name string, from, to float64) scenario.Record {
	return scenario.Record{Scenario: name, Start: begin.Add(time.Duration(from * 1e9)), End: begin.Add(time.Duration(to * 1e9)), Ended: true, Outcome: scenario.OutcomePass}
}

func inOrder() []scenario.Record {
	return []scenario.Record{at("a", 0, 10), at("b", 10, 20), at("c", 11, 30), at("d", 12, 15)}
}

func TestAPhaseIsComparedWithItsScenarios(t *testing.T) {
	completed, failed := &phase.Result{Outcome: phase.Completed}, &phase.Result{Outcome: phase.Failed, Exit: 1}
	change := func(f func([]scenario.Record) []scenario.Record) []scenario.Record { return f(inOrder()) }
	cases := map[string]struct {
		result   *phase.Result
		reported []scenario.Record
		want     phase.Kind
		says     string
	}{
		"should find nothing where everything was reported in order": {completed, inOrder(), "", ""},
		"should find nothing where a scenario failed": {failed, change(func(r []scenario.Record) []scenario.Record {
			r[1].Outcome = scenario.OutcomeFail
			return r
		}), "", ""},
		"should let scenarios that may overlap begin in any order": {completed, []scenario.Record{at("a", 0, 1), at("d", 1, 9), at("c", 2, 9), at("b", 3, 9)}, "", ""},
		"should see a scenario that was never reported":            {completed, inOrder()[:3], phase.EndedEarly, "1 of its 4 scenarios had not: d"},
		"should see a phase that reported nothing":                 {completed, nil, phase.EndedEarly, "4 of its 4"},
		"should see a scenario that did not end": {failed, change(func(r []scenario.Record) []scenario.Record {
			r[3].Ended = false
			return r
		}), phase.EndedEarly, "exit status 1"},
		"should see a phase that ran out of time":      {&phase.Result{Outcome: phase.TimedOut, Exit: 2, Message: "after 20m"}, inOrder()[:1], phase.EndedEarly, "timed-out, exit status 2: after 20m"},
		"should see a phase that could not start":      {&phase.Result{Outcome: phase.Unstartable, Exit: -1}, nil, phase.EndedEarly, "unstartable"},
		"should see a phase whose end nobody wrote":    {nil, inOrder(), phase.NotEnded, "never saw its end"},
		"should see a failure that is written nowhere": {failed, inOrder(), phase.Contradicts, "not written down"},
		"should see a scenario of somebody else":       {completed, append(inOrder(), at("z", 30, 31)), phase.Undeclared, "scenario z"},
		"should see a scenario before its turn":        {completed, []scenario.Record{at("b", 0, 5), at("a", 5, 10), at("c", 11, 12), at("d", 12, 13)}, phase.OutOfOrder, "b began before a"},
		"should see an overlap that is not declared":   {completed, []scenario.Record{at("a", 0, 11), at("b", 10, 20), at("c", 12, 12), at("d", 12, 13)}, phase.OutOfOrder, "b began before a"},
		"should see a scenario whose forerunner never ended": {failed, change(func(r []scenario.Record) []scenario.Record {
			r[0].Ended = false
			return r
		}), phase.OutOfOrder, "a had ended"},
	}
	for name, test := range cases {
		t.Run(name, func(t *testing.T) {
			found := phase.Record{Plan: plan(), Result: test.result}.Problems(test.reported)
			if test.want == "" {
				if len(found) != 0 {
					t.Errorf("%+v", found)
				}
				return
			}
			if !slices.ContainsFunc(found, func(p phase.Problem) bool {
				return p.Kind == test.want && strings.Contains(p.Message, test.says) && p.Phase == plan().Key()
			}) {
				t.Errorf("got %+v, want %s: %s", found, test.want, test.says)
			}
		})
	}
}

func TestScenariosOverASerialOneMayNotOverlap(t *testing.T) {
	p := plan()
	p.Together = []string{"a", "c", "d"} // b stands between a and c alone
	found := phase.Record{Plan: p, Result: &phase.Result{Outcome: phase.Completed}}.Problems([]scenario.Record{at("a", 0, 10), at("b", 10, 20), at("c", 9, 21), at("d", 20, 22)})
	if len(found) != 1 || found[0].Subject != "c" {
		t.Errorf("%+v", found)
	}
}

func FuzzRead(f *testing.F) {
	f.Add(written(f, begun(plan()), ended(plan(), phase.Failed)))
	f.Add(written(f, begun(plan())))
	f.Add([]byte("{}\n"))
	f.Fuzz(func(t *testing.T, data []byte) {
		records, err := phase.Read(bytes.NewReader(data))
		if err != nil {
			return
		}
		for _, record := range records {
			if record.Plan.Name == "" || record.Result == nil && !record.End.IsZero() {
				t.Fatalf("%+v", record)
			}
			record.Problems(inOrder())
		}
	})
}
