package rows

import (
	"errors"
	"fmt"
	"os/exec"
	"reflect"
	"slices"
	"strings"
	"testing"

	"ptah.run/ptah/operator/executor/failure"
	"ptah.run/ptah/operator/plan/report"
)

const head = "version: 1\ntables:\n"

func parse(text string) ([]Declaration, error) {
	return Parse([]File{{Name: "data.rows.yaml", Data: []byte(text)}})
}

func TestParse(t *testing.T) {
	all, err := parse(head + `
- table: shop.currencies
  scope: keys
  key: [code]
  rows:
  - {code: EUR, digits: 2, rate: 1.10, since: 2002-01-01, raw: !!binary "AAH/", on: true, more: {a: [1.50, null, "x"]}, none: null, big: 12345678901234567890, e: 1e3}
  - {digits: 0, code: "JPY", rate: -0.5, since: null, raw: !!binary "", on: FALSE, more: [], none: ~, big: 0, e: "007"}
  absent:
  - code: XXX
- {table: '"a.b"', scope: table, rows: []}
`)
	if err != nil || len(all) != 2 {
		t.Fatal(all, err)
	}
	empty, d := all[0], all[1]
	if empty.Table != "a.b" || empty.Schema != "" || empty.Scope != ScopeTable || len(empty.Rows) != 0 {
		t.Errorf("%+v", empty)
	}
	if d.Schema != "shop" || d.Table != "currencies" || !slices.Equal(d.Key, []string{"code"}) || !slices.Equal(d.AbsentColumns, []string{"code"}) || d.Absent[0].Line != 11 {
		t.Errorf("%+v", d)
	}
	want := []Value{{Text, "EUR"}, {Number, "2"}, {Number, "1.10"}, {Text, "2002-01-01"}, {Binary, "0001ff"}, {Bool, "true"}, {Structure, `{"a":[1.50,null,"x"]}`}, {Kind: Null}, {Number, "12345678901234567890"}, {Number, "1e3"}}
	if !reflect.DeepEqual(d.Rows[0].Values, want) || d.Rows[0].Line != 8 {
		t.Errorf("%+v", d.Rows[0])
	}
	want = []Value{{Text, "JPY"}, {Number, "0"}, {Number, "-0.5"}, {Kind: Null}, {Binary, ""}, {Bool, "false"}, {Structure, "[]"}, {Kind: Null}, {Number, "0"}, {Text, "007"}}
	if !reflect.DeepEqual(d.Rows[1].Values, want) {
		t.Errorf("a row in another order is %+v", d.Rows[1])
	}
}

func TestParseRefuses(t *testing.T) {
	table := func(rest string) string { return head + "- {table: t, scope: table, rows: [" + rest + "]}" }
	for name, test := range map[string]struct{ text, says string }{
		"an empty file":                     {"", "line 1 of the file data.rows.yaml: the file is empty"},
		"a file of comments":                {"# nothing", "empty"},
		"no YAML":                           {"a: [", "not YAML"},
		"two documents":                     {head + "- {table: t, scope: table, rows: []}\n---\na: 1", "more than one"},
		"no mapping":                        {"- a", "not a mapping"},
		"no version":                        {"tables: [{table: t, scope: table, rows: []}]", "version"},
		"another version":                   {"version: 2\ntables: [{table: t, scope: table, rows: []}]", "version"},
		"no table":                          {"version: 1\ntables: []", "tables"},
		"an unknown field of the file":      {"version: 1\nrows: []", "unknown field"},
		"an unknown field of a table":       {head + "- {table: t, scope: table, rows: [], where: hush}", "its fields are table, scope, key, rows, absent"},
		"a field twice":                     {head + "- {table: t, table: u, scope: table, rows: []}", "twice"},
		"no name":                           {head + "- {scope: table, rows: []}", "table is missing"},
		"three names":                       {head + "- {table: a.b.c, scope: table, rows: []}", "schema.name"},
		"half a name":                       {head + "- {table: a., scope: table, rows: []}", "schema.name"},
		"no scope":                          {head + "- {table: t, rows: []}", "scope is missing"},
		"another scope":                     {head + "- {table: t, scope: all, rows: []}", "scope"},
		"no rows":                           {head + "- {table: t, scope: table}", "rows is missing"},
		"a key of nothing":                  {head + "- {table: t, scope: table, key: [], rows: []}", "key is not"},
		"a key column twice":                {head + "- {table: t, scope: table, key: [a, a], rows: []}", "different columns"},
		"absent keys of a whole table":      {head + "- {table: t, scope: table, rows: [], absent: [{a: 1}]}", "no meaning"},
		"absent keys that are no list":      {head + "- {table: t, scope: keys, rows: [], absent: {a: 1}}", "list of keys"},
		"nothing to manage":                 {head + "- {table: t, scope: keys, rows: []}", "manages nothing"},
		"one table twice":                   {head + "- {table: t, scope: table, rows: []}\n- {table: t, scope: keys, rows: [{a: 1}]}", "line 4 of the file data.rows.yaml: another declaration"},
		"a key that rows do not name":       {head + "- {table: t, scope: table, key: [k], rows: [{a: 1}]}", "every column of the key"},
		"a row that is no mapping":          {table("hush"), "not a mapping of columns"},
		"a row of nothing":                  {table("{}"), "not a mapping of columns"},
		"a column twice":                    {table("{a: 1, a: 2}"), "one column twice"},
		"a column too few":                  {table("{a: 1, b: 2}, {a: 1}"), "lacks a column"},
		"a column too many":                 {table("{a: 1}, {a: 1, b: 2}"), "first one lacks"},
		"a number in another base":          {table("{a: 0x1F}"), "decimal form"},
		"a number with a leading zero":      {table("{a: 007}"), "decimal form"},
		"a number with a plus":              {table("{a: +7}"), "decimal form"},
		"a number with underscores":         {table("{a: 1_000}"), "decimal form"},
		"infinity":                          {table("{a: .inf}"), "decimal form"},
		"bytes that are none":               {table("{a: !!binary hush!}"), "base64"},
		"bytes in JSON":                     {table("{a: [!!binary aGk=]}"), "JSON has no binary"},
		"a value of its own type":           {table("{a: !hush 1}"), "type that is not supported"},
		"an alias":                          {head + "- {table: t, scope: table, rows: [{a: &x 1, b: *x}]}", "alias"},
		"a merge":                           {table("{<<: {a: 1}}"), "plain text"},
		"a name in JSON twice":              {table("{a: {b: 1, b: 2}}"), "twice"},
		"JSON that is nested without limit": {table("{a: " + strings.Repeat("[", 150) + strings.Repeat("]", 150) + "}"), "deeply"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := parse(test.text)
			var e *failure.Error
			if !errors.As(err, &e) || e.Code != report.CodeInvalidSchema || !strings.Contains(e.Message, test.says) || strings.Contains(e.Message+e.Detail, "hush") {
				t.Errorf("%v", err)
			}
		})
	}
}

func TestLimits(t *testing.T) {
	rows := func(n int) string {
		var b strings.Builder
		b.WriteString(head + "- table: t\n  scope: table\n  rows:\n")
		for i := range n {
			fmt.Fprintf(&b, "  - {a: %d}\n", i)
		}
		return b.String()
	}
	if all, err := parse(rows(MaxRows)); err != nil || len(all[0].Rows) != MaxRows {
		t.Errorf("as many rows as there may be: %v", err)
	}
	big := []File{{"a.rows.yaml", []byte("#" + strings.Repeat("x", MaxBytes))}}
	_, many := parse(rows(MaxRows + 1))
	_, large := Parse(big)
	for _, err := range []error{many, large} {
		var e *failure.Error
		if !errors.As(err, &e) || e.Code != report.CodeTooLarge {
			t.Errorf("%v", err)
		}
	}
}

func FuzzParse(f *testing.F) {
	for _, seed := range []string{head + "- {table: t, scope: table, rows: [{a: 1, b: !!binary aGk=, c: [1, {x: null}]}]}", head + "- {table: s.t, scope: keys, key: [a], rows: [], absent: [{a: x}]}", "a: &a [*a]", "\xff", "version: 1"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		all, err := parse(text)
		if err != nil {
			var e *failure.Error
			if !errors.As(err, &e) {
				t.Fatalf("an error without a code: %v", err)
			}
			return
		}
		again, err := parse(text)
		if err != nil || !reflect.DeepEqual(all, again) {
			t.Fatal("two readings differ")
		}
		for _, d := range all {
			for _, row := range d.Rows {
				if len(row.Values) != len(d.Columns) || row.Line < 1 {
					t.Fatalf("%+v", d)
				}
			}
		}
	})
}

// allowed is what this package may import beside the standard library.
var allowed = []string{"ptah.run/ptah/operator/executor/failure", "ptah.run/ptah/operator/executor/findings",
	"ptah.run/ptah/operator/executor/pattern", "ptah.run/ptah/operator/plan/report", "go.yaml.in/yaml/v3"}

func TestPurity(t *testing.T) {
	out, err := exec.CommandContext(t.Context(), "go", "list", "-f", "{{join .Imports \"\\n\"}}", ".").Output()
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range strings.Fields(string(out)) {
		first, _, _ := strings.Cut(name, "/")
		if strings.Contains(first, ".") && !slices.Contains(allowed, name) || slices.Contains([]string{"os", "time", "net", "database/sql"}, name) {
			t.Errorf("the package imports %s", name)
		}
	}
}
