package command

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"
	"time"
)

// progressed is what a progress of a form writes of a cell with some output, at fixed times.
func progressed(t *testing.T, form string, wide int) string {
	t.Helper()
	var out bytes.Buffer
	p, err := newRunProgress(&out, form)
	if err != nil {
		t.Fatal(err)
	}
	at := time.Date(2026, 11, 29, 10, 0, 0, 0, time.UTC)
	p.mutex.Lock()
	p.now, p.wide = func() time.Time { at = at.Add(time.Second); return at }, wide
	p.mutex.Unlock()
	p.Event("kept      one: it is finished")
	p.Event("running   two")
	for _, part := range []string{"=== RUN  ", "TestDrift\n\n", "no end"} {
		if _, err := p.Write([]byte(part)); err != nil {
			t.Fatal(err)
		}
	}
	p.Close()
	p.Event("at the end")
	return out.String()
}

func TestARunSaysWhereItIsInTheFormThatIsAskedFor(t *testing.T) {
	if got, want := progressed(t, progressAuto, 0), "2026-11-29T10:00:01Z kept      one: it is finished\n2026-11-29T10:00:02Z running   two\n"+
		"2026-11-29T10:00:03Z | === RUN  TestDrift\n2026-11-29T10:00:04Z at the end\n"; got != want {
		t.Errorf("elsewhere than on a terminal: %q", got)
	}
	lines := strings.Split(strings.TrimSpace(progressed(t, progressJSON, 0)), "\n")
	for i, want := range []map[string]string{{"event": "kept      one: it is finished"}, {"event": "running   two"}, {"output": "=== RUN  TestDrift"}} {
		var got map[string]string
		if err := json.Unmarshal([]byte(lines[i]), &got); err != nil || got["event"] != want["event"] || got["output"] != want["output"] {
			t.Errorf("line %d: %v, %q", i, err, lines[i])
		}
		if _, err := time.Parse(time.RFC3339Nano, got["time"]); err != nil {
			t.Error(err)
		}
	}
	live := progressed(t, progressLive, 20)
	for _, want := range []string{"kept      one: it is finished\n", "running   two\n", "\r\x1b[K  0:0", "=== RUN"} {
		if !strings.Contains(live, want) {
			t.Errorf("%q is not in %q", want, live)
		}
	}
	if strings.Contains(live, "TestDrift") {
		t.Errorf("a live line is wider than the terminal: %q", live)
	}
	if _, err := newRunProgress(&bytes.Buffer{}, "loud"); ExitCode(err) != ExitUsage || !strings.Contains(err.Error(), "use auto, live, plain or json") {
		t.Errorf("%v", err)
	}
}
