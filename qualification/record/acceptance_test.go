package record

import (
	"bytes"
	"testing"

	"ptah.run/ptah/qualification/evidence/dossier/dossiertest"
	"ptah.run/ptah/qualification/evidence/driverload"
	"ptah.run/ptah/qualification/evidence/phase"
	"ptah.run/ptah/qualification/evidence/scenario"
	"ptah.run/ptah/qualification/evidence/stream"
)

// AcceptanceCase is a case that passes under a profile for acceptance: the scenarios of the passing case, and the
// harness's own accounts, without which nothing is accepted.
func AcceptanceCase(t *testing.T) *dossiertest.Case {
	t.Helper()
	c := dossiertest.Passing(t)
	c.Profile = bytes.Replace(c.Profile, []byte("purpose: development"), []byte("purpose: acceptance"), 1)
	from, to := bytes.Index(c.Profile, []byte("\ntargets:")), bytes.Index(c.Profile, []byte("\nnotShown:"))
	c.Profile = append(bytes.Clone(c.Profile[:from]), c.Profile[to:]...)

	plan := phase.Plan{Suite: c.Inputs(t).Cell.Suite(), Name: "postgresql", Purpose: phase.Coverage}
	for _, entry := range dossiertest.Entries() {
		if entry.Event == scenario.EventStart {
			plan.Scenarios = append(plan.Scenarios, entry.Scenario)
		}
	}
	c.Streams = map[string][]byte{
		phase.FileName: account(t, phase.Entry{Event: phase.Begun, At: dossiertest.At(5), Plan: plan},
			phase.Entry{Event: phase.Ended, At: dossiertest.At(160), Plan: plan, Result: &phase.Result{Outcome: phase.Completed}}),
		driverload.FileName: account(t, driverload.Entry{Start: &driverload.Start{At: dossiertest.At(0), PID: 1, Processors: 4, Interval: 1}},
			driverload.Entry{Sample: &driverload.Sample{At: dossiertest.At(1), Elapsed: 1}}, driverload.Entry{Sample: &driverload.Sample{At: dossiertest.At(2), Elapsed: 2}}),
	}
	return c
}

func account[E any](t *testing.T, entries ...E) []byte {
	t.Helper()
	var buffer bytes.Buffer
	writer := stream.NewWriter(&buffer)
	for _, entry := range entries {
		if err := writer.Append(entry); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := writer.Close(); err != nil {
		t.Fatal(err)
	}
	return buffer.Bytes()
}
