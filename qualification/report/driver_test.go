package report_test

import (
	"bytes"
	"strings"
	"testing"

	"ptah.run/ptah/qualification/evidence/dossier/dossiertest"
	"ptah.run/ptah/qualification/evidence/driverload"
	"ptah.run/ptah/qualification/evidence/stream"
	"ptah.run/ptah/qualification/report"
)

func TestTheLoadOfTheDriverIsSaid(t *testing.T) {
	throttled := 1.5
	entries := []driverload.Entry{{Start: &driverload.Start{At: dossiertest.Start, PID: 1, Processors: 2, Interval: 1}}}
	for second := 1; second <= 41; second++ {
		one := driverload.Sample{At: dossiertest.At(float64(second)), Elapsed: float64(second), CPU: float64(second) / 4, Memory: 48 << 20, Processes: 3}
		if second > 1 {
			one.Throttled = &throttled
		} else {
			one.Throttled = new(float64)
		}
		if second == 41 {
			one.Late, one.Lost = 0.7, map[string]int64{"history": 2, "audit": 1}
		}
		entries = append(entries, driverload.Entry{Sample: &one})
	}
	var account bytes.Buffer
	writer := stream.NewWriter(&account)
	for _, entry := range entries {
		if err := writer.Append(entry); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := writer.Close(); err != nil {
		t.Fatal(err)
	}
	c := dossiertest.Passing(t)
	c.Streams = map[string][]byte{driverload.FileName: account.Bytes()}
	const want = "0.25 of 2 processors on average, at most 48 MiB, late in 1 of 41 intervals, 3 readings lost, throttled for 1.5 s"
	files := render(t, page(t, c))
	silent := render(t, page(t, dossiertest.Passing(t)))
	for _, name := range []string{report.HTMLName, report.MarkdownName} {
		if !strings.Contains(files[name], want) {
			t.Errorf("%s does not say %q", name, want)
		}
		if !strings.Contains(silent[name], "kept no account of its own load") {
			t.Errorf("%s takes a missing account for none to be had", name)
		}
	}
	if !strings.Contains(files[report.InputName], `"processors": 2`) {
		t.Error("the data do not have it")
	}
}
