package report

import (
	"bytes"
	"strings"
	"testing"
)

func withRows() Plan {
	p := example()
	p.RowsFingerprint = Digest([]byte("rows"))
	p.ManagedRows = []ManagedRows{{Schema: "public", Table: "a", Scope: "table", Key: []string{"id"}, Columns: []string{"id", "x"}},
		{Schema: "public", Table: "b", Scope: "keys", Key: []string{"id"}, Columns: []string{"id"}, Keys: [][]string{{"1"}, {""}}}}
	return p
}

func TestAPlanCarriesWhichRowsItManages(t *testing.T) {
	data, err := EncodePlan(withRows())
	if err != nil {
		t.Fatal(err)
	}
	if back, err := DecodePlan(data); err != nil || len(back.ManagedRows) != 2 || back.ManagedRows[1].Keys[1][0] != "" {
		t.Errorf("%+v %v", back, err)
	}
	without, err := EncodePlan(example())
	if err != nil || bytes.Contains(without, []byte("ows")) && strings.Contains(string(without), "managedRows") {
		t.Errorf("a plan without rows speaks of them: %s", without)
	}
	for _, m := range Named(withRows().ManagedRows) {
		if m.Keys != nil || m.Table == "" {
			t.Errorf("%+v", m)
		}
	}
}

func TestEncodePlanRefusesRowsThatCannotBeMeant(t *testing.T) {
	for name, change := range map[string]func(*Plan){
		"no fingerprint":             func(p *Plan) { p.RowsFingerprint = "" },
		"a fingerprint of nothing":   func(p *Plan) { p.ManagedRows = nil },
		"a fingerprint that is none": func(p *Plan) { p.RowsFingerprint = "sha256:0" },
		"another order":              func(p *Plan) { p.ManagedRows[0].Table = "c" },
		"a table twice":              func(p *Plan) { p.ManagedRows[0].Table = "b" },
		"no schema":                  func(p *Plan) { p.ManagedRows[0].Schema = "" },
		"a name with NUL":            func(p *Plan) { p.ManagedRows[0].Columns[0] = "a\x00" },
		"an unknown scope":           func(p *Plan) { p.ManagedRows[0].Scope = "rows" },
		"no key":                     func(p *Plan) { p.ManagedRows[0].Key = nil },
		"no column":                  func(p *Plan) { p.ManagedRows[0].Columns = nil },
		"keys of a whole table":      func(p *Plan) { p.ManagedRows[0].Keys = [][]string{{"1"}} },
		"no keys":                    func(p *Plan) { p.ManagedRows[1].Keys = nil },
		"a key that is too long":     func(p *Plan) { p.ManagedRows[1].Keys[0] = []string{"1", "2"} },
		"a key with NUL":             func(p *Plan) { p.ManagedRows[1].Keys[0] = []string{"\x00"} },
	} {
		p := withRows()
		change(&p)
		if _, err := EncodePlan(p); err == nil {
			t.Errorf("%s was accepted", name)
		}
	}
}
