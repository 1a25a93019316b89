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
	const orders = `{"family":"schema","namespace":"a","name":"orders","uid":"u1","generation":1,"desired":"r"}`
	cases := map[string]struct {
		source  Source
		line    string
		problem string
	}{
		"should take a journal":                                 {Statements, `{` + read + `,"database":"d","statements":[{"at":"2026-11-29T10:00:00Z","client":"c","digest":"x"}]}`, ""},
		"should take an empty journal":                          {Statements, `{` + read + `,"database":"d","statements":[]}`, ""},
		"should take a journal that cannot be read":             {Statements, `{` + read + `,"failed":"timeout","database":"d"}`, ""},
		"should not take a missing journal for an empty one":    {Statements, `{` + read + `,"database":"d"}`, "says why it failed"},
		"should not take null for an empty journal":             {Statements, `{` + read + `,"database":"d","statements":null}`, "says why it failed"},
		"should not take values of a failed reading":            {Statements, `{` + read + `,"failed":"timeout","database":"d","statements":[]}`, "has no values"},
		"should not take a journal of no database":              {Statements, `{` + read + `,"statements":[]}`, "names its database"},
		"should not take a reading that ends before its start":  {Pods, `{"from":"2026-11-29T10:00:01Z","to":"2026-11-29T10:00:00Z","running":0,"pending":0}`, "a start and an end"},
		"should not take a field that nobody knows":             {Pods, `{` + read + `,"running":0,"pending":0,"average":0}`, "unknown field"},
		"should take an artifact":                               {Artifacts, `{` + read + `,"name":"chart","matches":true,"signature":true,"provenance":null}`, ""},
		"should not take an artifact without a name":            {Artifacts, `{` + read + `,"name":"","matches":true}`, "has a name"},
		"should take containers":                                {Containers, `{` + read + `,"containers":[{"pod":"p","uid":"u","name":"manager","digest":"sha256:1"}]}`, ""},
		"should not take a container of no Pod":                 {Containers, `{` + read + `,"containers":[{"pod":"","uid":"u","name":"manager","digest":"x"}]}`, "has a Pod"},
		"should take a scan":                                    {Scans, `{` + read + `,"file":"a.log","findings":[]}`, ""},
		"should not take a scan of no file":                     {Scans, `{` + read + `,"file":"","findings":[]}`, "names its file"},
		"should not take a resource without a UID":              {History, `{"at":"2026-11-29T10:00:00Z","type":"added","resource":{"family":"schema","namespace":"a","name":"x","uid":"","generation":1,"desired":""}}`, "a UID"},
		"should not take an operation without an id":            {History, `{"at":"2026-11-29T10:00:00Z","type":"added","resource":{"family":"schema","namespace":"a","name":"x","uid":"u","generation":1,"desired":"","active":{"kind":"refresh","id":"","started":"2026-11-29T10:00:00Z"}}}`, "has an id"},
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
		"should take an inventory":                              {Inventory, `{` + read + `,"plans":0,"payloadBytes":0,"pins":0,"brokenPins":0}`, ""},
		"should not take half an inventory":                     {Inventory, `{` + read + `,"plans":3,"payloadBytes":0,"pins":0,"brokenPins":null}`, "the broken ones"},
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
		kept := len(set.Alerts) + len(set.Artifacts) + len(set.Containers) + len(set.History) + len(set.Inventory) + len(set.Pods) +
			len(set.Processes) + len(set.Scans) + len(set.Statements)
		if file := set.Files[Source(source)]; file.Lines != kept {
			t.Fatalf("%d lines and %d readings", file.Lines, kept)
		}
	})
}
