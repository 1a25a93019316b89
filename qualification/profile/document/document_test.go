package document

import (
	"encoding/json"
	"strings"
	"testing"
	"time"
)

type inner struct {
	Bound *float64          `json:"bound,omitempty"`
	Words []string          `json:"words"`
	Pairs map[string]string `json:"pairs,omitempty"`
}

type sample struct {
	Name   string   `json:"name"`
	Count  int      `json:"count"`
	Yes    bool     `json:"yes"`
	Every  Duration `json:"every,omitempty"`
	Inner  inner    `json:"inner"`
	List   []inner  `json:"list,omitempty"`
	Hidden string   `json:"-"`
}

const good = `# a comment
name: x
count: 1_000
yes: true
every: 90s
inner: {bound: 2.5, words: [a, b], pairs: {"1": c}}
list:
  - words: []
`

func TestAGoodDocumentIsRead(t *testing.T) {
	var s sample
	if err := Decode("f.yaml", []byte(good), &s); err != nil {
		t.Fatal(err)
	}
	if s.Count != 1000 || !s.Yes || s.Every.Std() != 90*time.Second || *s.Inner.Bound != 2.5 || len(s.Inner.Words) != 2 || s.Inner.Pairs["1"] != "c" || len(s.List) != 1 {
		t.Errorf("%+v", s)
	}
}

func TestRefusalsNameTheLineTheFieldAndTheRemedy(t *testing.T) {
	cases := map[string]struct{ document, want string }{
		"should refuse an unknown field":           {"name: x\nnames: y\n", "f.yaml:2: names: it is no field, did you mean name?"},
		"should list the fields there are":         {"zzzzzz: y\n", "use one of: count, every, inner, list, name, yes"},
		"should refuse an unknown nested field":    {"list:\n  - words: []\n    bond: 3\n", "f.yaml:3: list[0].bond: it is no field, did you mean bound?"},
		"should refuse a field given twice":        {"name: x\nname: y\n", "f.yaml:2: name: it is given twice, first on line 1"},
		"should refuse a field that is not stored": {"Hidden: x\n", "it is no field"},
		"should refuse a number for text":          {"name: 3\n", "it must be text, put 3 in quotes"},
		"should refuse text for a number":          {"count: many\n", `it must be a whole decimal number, not "many"`},
		"should refuse a fraction":                 {"count: 1.5\n", "it must be a whole decimal number"},
		"should refuse a number beyond the range":  {"count: 99999999999999999999\n", "it must be a whole decimal number"},
		"should refuse a hexadecimal number":       {"count: 0x10\n", "it must be a whole decimal number"},
		"should refuse infinity":                   {"inner: {bound: .inf}\n", "it must be a finite decimal number"},
		"should refuse text for true":              {"yes: \"true\"\n", "it must be true or false"},
		"should refuse a scalar for a list":        {"inner: {words: a}\n", "it must be a list"},
		"should refuse a list for a mapping":       {"inner: []\n", "it must be a mapping of fields"},
		"should refuse a mapping for text":         {"name: {a: b}\n", "it must be a single value"},
		"should refuse a negative time":            {"every: -5s\n", "it must be a positive length of time"},
		"should refuse a time without a unit":      {"every: 5\n", "it must be a positive length of time"},
		"should refuse null for a time":            {"every:\n", "it must be a single value"},
		"should refuse null for text":              {"name:\n", "it must be text"},
		"should refuse an anchor":                  {"name: &a x\n", "anchors and aliases are not allowed"},
		"should refuse a key that is no text":      {"3: x\n", "each key must be a plain string"},
		"should refuse a second document":          {"name: x\n---\nname: y\n", "there is more than one document"},
		"should refuse an empty document":          {"# nothing\n", "the document is empty"},
		"should refuse no bytes":                   {"", "the document is empty"},
		"should refuse what is no YAML":            {"name: [x\n", "it is not YAML"},
		"should refuse a list as document":         {"- a\n", "f.yaml:1: it must be a mapping of fields"},
		"should refuse a merge key":                {"<<: {name: x}\n", "each key must be a plain string"},
		"should refuse a document beyond the size": {"name: \"" + strings.Repeat("x", MaxSize) + "\"\n", "the limit is"},
	}
	for name, test := range cases {
		t.Run(name, func(t *testing.T) {
			var s sample
			err := Decode("f.yaml", []byte(test.document), &s)
			if err == nil || !strings.Contains(err.Error(), test.want) || !strings.HasPrefix(err.Error(), "f.yaml") || strings.Contains(err.Error(), "\n") {
				t.Errorf("got %v, want one sentence with %q", err, test.want)
			}
		})
	}
}

func TestTheDigestIsStableOverKeyOrderCommentsAndSpelling(t *testing.T) {
	reordered := "inner:\n  words:\n  - a\n  - \"b\"\n  pairs: {'1': \"c\"}\n  bound: 2.50\nevery: 1m30s\ncount: 1000\nname: \"x\"\nyes: True\nlist: [{words: []}]\n"
	digests := map[string]bool{}
	for _, text := range []string{good, reordered} {
		var s sample
		if err := Decode("f.yaml", []byte(text), &s); err != nil {
			t.Fatal(err)
		}
		digest, err := Digest(s)
		if err != nil {
			t.Fatal(err)
		}
		digests[digest] = true
	}
	if len(digests) != 1 {
		t.Errorf("two documents that say the same have %d digests", len(digests))
	}
	var changed sample
	if err := Decode("f.yaml", []byte(strings.Replace(good, "1_000", "1_001", 1)), &changed); err != nil {
		t.Fatal(err)
	}
	if digest, _ := Digest(changed); digests[digest] {
		t.Error("a document that says something else has the same digest")
	}
}

func TestCanonicalJSONHasOneForm(t *testing.T) {
	data, err := Canonical(map[string]any{"b": 1, "a": "<&>\u2028", "c": json.Number("1.50"), "d": map[string]any{"z": nil, "y": []int{2, 1}}})
	if err != nil {
		t.Fatal(err)
	}
	if want := `{"a":"<&>\u2028","b":1,"c":1.50,"d":{"y":[2,1],"z":null}}`; string(data) != want {
		t.Errorf("%s, want %s", data, want)
	}
	if _, err := Canonical(func() {}); err == nil {
		t.Error("a function has no canonical form")
	}
}

func TestDurationsAreWrittenShort(t *testing.T) {
	for given, want := range map[string]string{"60s": "1m", "90s": "1m30s", "3600s": "1h", "1h30m": "1h30m", "500ms": "500ms", "2h0m5s": "2h0m5s"} {
		var d Duration
		if err := d.UnmarshalText([]byte(given)); err != nil || d.String() != want {
			t.Errorf("%s is written %s, want %s (%v)", given, d, want, err)
		}
	}
}

func FuzzDecode(f *testing.F) {
	f.Add([]byte(good))
	f.Add([]byte("a: &a [*a]"))
	f.Add([]byte("? {a: b}\n: c\n"))
	f.Fuzz(func(t *testing.T, data []byte) {
		var s sample
		if err := Decode("f", data, &s); err != nil {
			if strings.Contains(err.Error(), "\n") {
				t.Fatalf("a refusal of several lines: %q", err)
			}
			return
		}
		if _, err := Digest(s); err != nil {
			t.Fatal(err)
		}
	})
}
