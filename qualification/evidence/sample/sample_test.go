package sample

import (
	"bytes"
	"strings"
	"testing"

	"ptah.run/ptah/qualification/evidence/stream"
)

const read = `"from":"2026-11-29T10:00:00Z","to":"2026-11-29T10:00:01Z"`

// written is a whole stream of lines.
func written(t testing.TB, lines ...string) []byte {
	t.Helper()
	var buffer bytes.Buffer
	writer := stream.NewWriter(&buffer)
	for _, line := range lines {
		if err := writer.Append(raw(line)); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := writer.Close(); err != nil {
		t.Fatal(err)
	}
	return buffer.Bytes()
}

type raw string

func (r raw) MarshalJSON() ([]byte, error) { return []byte(r), nil }

func TestLines(t *testing.T) {
	const orders = `{"family":"schema","namespace":"a","name":"orders","uid":"u1","generation":1}`
	cases := map[string]struct {
		source  Source
		line    string
		problem string
	}{
		"should take a list":                                    {Resources, `{` + read + `,"resources":[` + orders + `]}`, ""},
		"should take an empty list":                             {Resources, `{` + read + `,"resources":[]}`, ""},
		"should take a list that failed":                        {Resources, `{` + read + `,"failed":"timeout"}`, ""},
		"should not take a missing list for an empty one":       {Resources, `{` + read + `}`, "says why it failed"},
		"should not take null for an empty list":                {Resources, `{` + read + `,"resources":null}`, "says why it failed"},
		"should not take values of a failed reading":            {Resources, `{` + read + `,"failed":"timeout","resources":[]}`, "has no values"},
		"should not take a reading that ends before its start":  {Resources, `{"from":"2026-11-29T10:00:01Z","to":"2026-11-29T10:00:00Z","resources":[]}`, "a start and an end"},
		"should not take a resource without a UID":              {Resources, `{` + read + `,"resources":[{"family":"schema","namespace":"a","name":"x","uid":"","generation":1}]}`, "a UID"},
		"should not take an operation without an id":            {Resources, `{` + read + `,"resources":[{"family":"schema","namespace":"a","name":"x","uid":"u","generation":1,"active":{"kind":"refresh","id":"","started":"2026-11-29T10:00:00Z"}}]}`, "has an id"},
		"should not take a field that nobody knows":             {Resources, `{` + read + `,"resources":[],"age":3}`, "unknown field"},
		"should take a change":                                  {History, `{"at":"2026-11-29T10:00:00Z","type":"added","resource":` + orders + `}`, ""},
		"should take a mark":                                    {History, `{"at":"2026-11-29T10:00:00Z","type":"mark"}`, ""},
		"should not take a change without a resource":           {History, `{"at":"2026-11-29T10:00:00Z","type":"added"}`, "has a resource"},
		"should not take a change without a time":               {History, `{"type":"mark"}`, "has a time"},
		"should not take a change of another type":              {History, `{"at":"2026-11-29T10:00:00Z","type":"skipped"}`, "no change of the type"},
		"should take a scrape":                                  {Processes, `{` + read + `,"process":{"role":"manager","pod":"m","uid":"u","started":"2026-11-29T09:00:00Z","restarts":0},"values":{"x":0}}`, ""},
		"should take a scrape without series":                   {Processes, `{` + read + `,"process":{"role":"manager","pod":"m","uid":"u","started":"2026-11-29T09:00:00Z","restarts":0},"values":{}}`, ""},
		"should not take a scrape of no life":                   {Processes, `{` + read + `,"process":{"role":"manager","pod":"m","uid":"","started":"2026-11-29T09:00:00Z","restarts":0},"values":{}}`, "which life"},
		"should not take a scrape of no role":                   {Processes, `{` + read + `,"process":{"role":"x","pod":"m","uid":"u","started":"2026-11-29T09:00:00Z","restarts":0},"values":{}}`, "names the role"},
		"should take a failed scrape of a process nobody knows": {Processes, `{` + read + `,"failed":"refused","process":{"role":"manager","pod":"m","uid":"","started":"0001-01-01T00:00:00Z","restarts":0}}`, ""},
		"should take a count of no Pods":                        {Pods, `{` + read + `,"running":0,"pending":0}`, ""},
		"should not take half a count":                          {Pods, `{` + read + `,"running":0,"pending":null}`, "both running and pending"},
		"should take a sum":                                     {Storage, `{` + read + `,"plans":0,"payloadBytes":0}`, ""},
		"should not take half a sum":                            {Storage, `{` + read + `,"plans":3,"payloadBytes":null}`, "their number and their bytes"},
		"should take a delivery":                                {Alerts, `{"at":"2026-11-29T10:00:00Z","alert":"A","status":"firing","started":"2026-11-29T09:59:00Z"}`, ""},
		"should take a mark of the receiver":                    {Alerts, `{"at":"2026-11-29T10:00:00Z"}`, ""},
		"should not take a delivery without a start":            {Alerts, `{"at":"2026-11-29T10:00:00Z","alert":"A","status":"firing"}`, "the start of the incident"},
		"should not take a status of no delivery":               {Alerts, `{"at":"2026-11-29T10:00:00Z","alert":"A","status":"maybe","started":"2026-11-29T09:59:00Z"}`, "the start of the incident"},
		"should not take a source that nobody knows":            {"weather", `{}`, "no source"},
	}
	for name, test := range cases {
		t.Run(name, func(t *testing.T) {
			var set Set
			if err := set.Add(test.source, "sha256:x", bytes.NewReader(written(t, test.line))); err != nil {
				t.Fatal(err)
			}
			file := set.Files[test.source]
			if (file.Problem == "") != (test.problem == "") || !strings.Contains(file.Problem, test.problem) {
				t.Errorf("the problem is %q, want %q", file.Problem, test.problem)
			}
			if test.problem == "" && file.Lines != 1 {
				t.Errorf("%d lines", file.Lines)
			}
		})
	}
}

func TestAStreamThatIsNotWholeSaysSo(t *testing.T) {
	mark := func(second string) string { return `{"at":"2026-11-29T10:00:` + second + `Z","type":"mark"}` }
	whole := written(t, mark("01"), mark("02"), mark("03"))
	lines := bytes.SplitAfter(whole, []byte("\n"))
	cases := map[string]struct {
		data    []byte
		problem string
		lines   int
	}{
		"should take a whole stream":                 {whole, "", 3},
		"should take an empty stream":                {written(t), "", 0},
		"should see a stream without its end":        {bytes.Join(lines[:3], nil), stream.ErrIncomplete.Error(), 3},
		"should see a stream of nothing":             {nil, stream.ErrIncomplete.Error(), 0},
		"should see a line that is cut":              {whole[:len(lines[0])+10], stream.ErrIncomplete.Error(), 1},
		"should see lines in another order":          {bytes.Join([][]byte{lines[1], lines[0], lines[2], lines[3]}, nil), stream.ErrAltered.Error(), 3},
		"should see a line left out":                 {bytes.Join([][]byte{lines[0], lines[2], lines[3]}, nil), stream.ErrAltered.Error(), 2},
		"should see a line twice":                    {bytes.Join([][]byte{lines[0], lines[0], lines[1], lines[2], lines[3]}, nil), stream.ErrAltered.Error(), 4},
		"should see something after the end":         {append(bytes.Clone(whole), lines[0]...), stream.ErrAltered.Error(), 3},
		"should see a stream that is no JSON at all": {[]byte("hello\n"), stream.ErrMalformed.Error(), 0},
	}
	for name, test := range cases {
		t.Run(name, func(t *testing.T) {
			var set Set
			if err := set.Add(History, "sha256:x", bytes.NewReader(test.data)); err != nil {
				t.Fatal(err)
			}
			file := set.Files[History]
			if !strings.HasSuffix(file.Problem, test.problem) || (test.problem == "") != (file.Problem == "") || file.Lines != test.lines || len(set.History) != test.lines {
				t.Errorf("%+v with %d changes", file, len(set.History))
			}
		})
	}
}

func TestNamesOfStreams(t *testing.T) {
	for _, source := range Sources() {
		if found, ok := SourceOf(source.Name()); !ok || found != source {
			t.Errorf("%s reads back as %s", source.Name(), found)
		}
	}
	for _, name := range []string{"samples/weather.jsonl", "samples/pods", "pods.jsonl", "samples/a/pods.jsonl", ""} {
		if source, ok := SourceOf(name); ok {
			t.Errorf("%s is the source %s", name, source)
		}
	}
}

func TestTheLifeOfAProcessEndsWithIt(t *testing.T) {
	base := Process{Role: Manager, Pod: "m", UID: "u", Container: "c"}
	other := base
	other.Started = base.Started.Add(1)
	if base.Life() == other.Life() {
		t.Error("two lives of one Pod are the same")
	}
}

func FuzzAdd(f *testing.F) {
	for _, source := range Sources() {
		f.Add(string(source), []byte(`{`+read+`}`+"\n"))
	}
	f.Add("history", written(f, `{"at":"2026-11-29T10:00:00Z","type":"mark"}`))
	f.Add("pods", written(f, `{`+read+`,"running":0,"pending":0}`))
	f.Fuzz(func(t *testing.T, source string, data []byte) {
		var set Set
		if err := set.Add(Source(source), "sha256:x", bytes.NewReader(data)); err != nil {
			t.Fatal(err)
		}
		kept := len(set.Resources) + len(set.History) + len(set.Processes) + len(set.Pods) + len(set.Storage) + len(set.Alerts)
		if file := set.Files[Source(source)]; file.Lines != kept {
			t.Fatalf("%d lines and %d readings", file.Lines, kept)
		}
	})
}
