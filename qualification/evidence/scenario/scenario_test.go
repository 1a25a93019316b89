package scenario_test

import (
	"bytes"
	"errors"
	"testing"
	"time"

	"ptah.run/ptah/qualification/evidence/scenario"
	"ptah.run/ptah/qualification/evidence/stream"
)

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

func TestEntriesThatMakeNoScenarioAreRefused(t *testing.T) {
	start := scenario.Entry{Event: scenario.EventStart, Scenario: "a"}
	end := scenario.Entry{Event: scenario.EventEnd, Scenario: "a", Outcome: scenario.OutcomePass}
	early, late := time.Unix(1, 0), time.Unix(2, 0)
	cases := map[string][]any{
		"an entry before the start":             {end},
		"a second start":                        {start, start},
		"a second end":                          {start, end, end},
		"an entry without a scenario":           {scenario.Entry{Event: scenario.EventStart}},
		"an unknown event":                      {start, scenario.Entry{Event: "dance", Scenario: "a"}},
		"an unknown outcome":                    {start, scenario.Entry{Event: scenario.EventEnd, Scenario: "a", Outcome: "skipped"}},
		"a measurement that ends before it is":  {start, scenario.Entry{Event: scenario.EventMeasure, Scenario: "a", Key: "x", From: &late, To: &early}},
		"a measurement without a population":    {start, scenario.Entry{Event: scenario.EventMeasure, Scenario: "a", From: &early, To: &late}},
		"a measurement without an end":          {start, scenario.Entry{Event: scenario.EventMeasure, Scenario: "a", Key: "x", From: &early}},
		"a line of another shape than an entry": {map[string]any{"event": 3}},
	}
	for name, entries := range cases {
		if _, err := scenario.Read(bytes.NewReader(written(t, entries...))); !errors.Is(err, stream.ErrMalformed) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := scenario.Read(bytes.NewReader(written(t, start, end))); err != nil {
		t.Errorf("control: %v", err)
	}
}

func FuzzRead(f *testing.F) {
	f.Add(written(f, scenario.Entry{Event: scenario.EventStart, Scenario: "a"}, scenario.Entry{Event: scenario.EventEnd, Scenario: "a", Outcome: scenario.OutcomePass}))
	f.Add(written(f))
	f.Add([]byte(`{"event":"start","scenario":"a"}` + "\n"))
	f.Fuzz(func(t *testing.T, data []byte) {
		records, err := scenario.Read(bytes.NewReader(data))
		if err != nil {
			return
		}
		seen := map[string]bool{}
		for _, record := range records {
			if record.Scenario == "" || seen[record.Scenario] {
				t.Fatalf("scenario %q has no name or is there twice", record.Scenario)
			}
			seen[record.Scenario] = true
		}
	})
}
