package rows

import (
	"slices"
	"strings"
	"testing"
)

// plainDialect writes everything as it is.
type plainDialect struct{ Dialect }

func (plainDialect) Home() string                    { return "s" }
func (plainDialect) Refusal(string) string           { return "" }
func (plainDialect) Same(a, b string) bool           { return a == b }
func (plainDialect) Name(schema, name string) string { return schema + "." + name }
func (plainDialect) Quote(name string) string        { return name }
func (plainDialect) Boolean(value bool) string       { return map[bool]string{true: "1", false: "0"}[value] }
func (plainDialect) Always() string                  { return "ALWAYS" }
func (plainDialect) Literal(_ Column, text *string) string {
	if text == nil {
		return "NULL"
	}
	return *text
}

func text(value string) *string { return &value }

// tables returns a plan of tables with one key column each and foreign keys written as child>parent.
func tables(names string, keys ...string) *Plan {
	p := &Plan{dialect: plainDialect{}}
	for name := range strings.FieldsSeq(names) {
		s := &set{declared: &Declaration{Rows: make([]Row, 9)}, wanted: Wanted{Schema: "s", Table: name}, key: []Column{{Name: "id"}},
			columns: []Column{{Name: "id"}, {Name: "v"}}, live: &Live{}}
		p.sets = append(p.sets, s)
	}
	for _, key := range keys {
		child, parent, _ := strings.Cut(key, ">")
		f := Foreign{Schema: "s", Table: child, ParentSchema: "s", Parent: parent, ParentColumns: []string{"id"}}
		f.Parent, f.OnDelete = strings.CutSuffix(f.Parent, "+")
		f.Parent, f.OnUpdate = strings.CutSuffix(f.Parent, "~")
		p.foreign = append(p.foreign, f)
	}
	return p
}

func TestPlaces(t *testing.T) {
	for name, test := range map[string]struct {
		names string
		keys  []string
		want  string
	}{
		"parents come first":                  {"a b c", []string{"a>b", "b>c"}, "c b a"},
		"names decide where nothing else":     {"a b c", nil, "a b c"},
		"a table that refers to itself":       {"a b", []string{"a>a", "a>b"}, "b a"},
		"a circle starts with the first name": {"a b c", []string{"a>b", "b>a", "c>a"}, "a b c"},
		"tables that nobody declares":         {"a b", []string{"a>z", "z>b"}, "a b"},
	} {
		p := tables(test.names, test.keys...)
		places := p.places()
		got := make([]string, len(places))
		for table, place := range places {
			got[place] = table[1]
		}
		if strings.Join(got, " ") != test.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}

func TestChangesAreSorted(t *testing.T) {
	p := tables("child parent", "child>parent")
	live := liveRows{columns: []Column{{Name: "id"}, {Name: "v"}}, rows: [][]*string{{text("10"), text("x")}, {text("9"), nil}}}
	child, parent := p.sets[0], p.sets[1]
	for _, s := range []*set{child, parent} {
		p.remove(s, live, 0)
		p.remove(s, live, 1)
		p.update(s, 0, []*string{text("9"), text("y")}, live, 1)
		p.update(s, 0, []*string{text("9"), nil}, live, 1) // equal
		p.insert(s, 0, []*string{text("11"), nil})
		p.insert(s, 1, []*string{text("-2"), nil})
	}
	p.sort()
	var got []string
	for _, c := range p.changes {
		got = append(got, c.SQL)
	}
	want := []string{"INSERT INTO s.parent (id, v) VALUES (-2, NULL)", "INSERT INTO s.parent (id, v) VALUES (11, NULL)",
		"INSERT INTO s.child (id, v) VALUES (-2, NULL)", "INSERT INTO s.child (id, v) VALUES (11, NULL)",
		"UPDATE s.parent SET v = y WHERE id = 9", "UPDATE s.child SET v = y WHERE id = 9",
		"DELETE FROM s.child WHERE id = 9", "DELETE FROM s.child WHERE id = 10", "DELETE FROM s.parent WHERE id = 9", "DELETE FROM s.parent WHERE id = 10"}
	if !slices.Equal(got, want) {
		t.Errorf("%s", strings.Join(got, "\n"))
	}
	found := p.Findings()
	if len(found) != 3 || found[0].Category != "data_rows_deleted" || found[0].Count != 4 || found[1].Count != 2 || found[2].Count != 4 {
		t.Errorf("%+v", found)
	}
}

func TestReaches(t *testing.T) {
	for name, test := range map[string]struct {
		operation string
		changed   []string
		keys      []string
		want      string
	}{
		"a deletion goes on":                   {Delete, nil, []string{"b>a+", "c>b+"}, "b c"},
		"a deletion that is refused":           {Delete, nil, []string{"b>a", "c>b+"}, ""},
		"an update of what nobody refers to":   {Update, []string{"v"}, []string{"b>a~"}, ""},
		"an update of what somebody refers to": {Update, []string{"id"}, []string{"b>a~", "c>b~"}, "b c"},
		"an update where only deletions go on": {Update, []string{"id"}, []string{"b>a+"}, ""},
		"a circle":                             {Delete, nil, []string{"b>a+", "a>b+"}, "b a"},
		"a deletion that only changes others'": {Delete, nil, []string{"b>a+", "c>b~"}, "b c"},
	} {
		p := tables("a", test.keys...)
		var got []string
		for _, table := range p.reaches(&Change{Operation: test.operation, changed: test.changed, set: p.sets[0]}) {
			got = append(got, table[1])
		}
		if strings.Join(got, " ") != test.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}

func TestCompareValues(t *testing.T) {
	order := []*string{nil, text("-12"), text("-3"), text("0"), text("2"), text("10")}
	for i := range order {
		for j := range order {
			if got := compareValues(order[i], order[j]); (got < 0) != (i < j) || (got > 0) != (i > j) {
				t.Errorf("%d and %d: %d", i, j, got)
			}
		}
	}
	if compareValues(text("010"), text("2")) >= 0 || compareValues(text("a"), text("b")) >= 0 {
		t.Error("texts are not compared as texts")
	}
}

func TestDigestsSayWhatIsManaged(t *testing.T) {
	live := func(change func(*Live)) string {
		l := Live{Wanted: Wanted{Schema: "s", Table: "t", Scope: ScopeTable, Key: []string{"id"}, Columns: []string{"id", "v"}},
			Columns: []Column{{Name: "other"}, {Name: "v"}, {Name: "id"}}, Rows: [][]*string{{text("x"), nil, text("1")}, {text("y"), text("b"), text("2")}}}
		change(&l)
		return Digest(plainDialect{}, []Live{l})
	}
	base := live(func(*Live) {})
	for name, change := range map[string]func(*Live){
		"the order of rows":            func(l *Live) { slices.Reverse(l.Rows) },
		"the order of columns":         func(l *Live) { l.Wanted.Columns = []string{"v", "id"} },
		"a column that is not managed": func(l *Live) { l.Rows[0][0] = text("z") },
		"how rows are told apart":      func(l *Live) { l.Wanted.Key = []string{"v"} },
	} {
		if live(change) != base {
			t.Errorf("%s changes the digest", name)
		}
	}
	for name, change := range map[string]func(*Live){
		"a value":            func(l *Live) { l.Rows[1][1] = text("c") },
		"null and no text":   func(l *Live) { l.Rows[0][1] = text("") },
		"null and its word":  func(l *Live) { l.Rows[0][1] = text("null") },
		"a row more":         func(l *Live) { l.Rows = append(l.Rows, []*string{nil, nil, text("3")}) },
		"another table":      func(l *Live) { l.Wanted.Table = "u" },
		"another scope":      func(l *Live) { l.Wanted.Scope = ScopeKeys },
		"a column that goes": func(l *Live) { l.Columns[1].Name = "w" },
	} {
		if live(change) == base {
			t.Errorf("%s leaves the digest", name)
		}
	}
	if Fingerprint("a", "") != "a" || Fingerprint("a", "b") == Fingerprint("b", "a") || Fingerprint("a", "b") == "a" {
		t.Error("the fingerprint of a state")
	}
}

func TestInput(t *testing.T) {
	for name, test := range map[string]struct {
		class Class
		value Value
		want  string // or what the error says, behind a !
	}{
		"a text":                {Other, Value{Text, "x"}, "x"},
		"a number for a text":   {Other, Value{Number, "1.10"}, "1.10"},
		"a text for a number":   {Integer, Value{Text, "7"}, "7"},
		"a text for JSON":       {JSON, Value{Text, `a"b`}, `"a\"b"`},
		"a number for JSON":     {JSON, Value{Number, "1.10"}, "1.10"},
		"a mapping for JSON":    {JSON, Value{Structure, "{}"}, "{}"},
		"truth for a number":    {Integer, Value{Bool, "true"}, "1"},
		"truth":                 {Boolean, Value{Bool, "false"}, "0"},
		"bytes":                 {BinaryData, Value{Binary, "00"}, "00"},
		"what a server printed": {BinaryData, Value{Printed, "00"}, "00"},
		"bytes for JSON":        {JSON, Value{Binary, "00"}, "!binary"},
		"bytes for a text":      {Other, Value{Binary, "00"}, "!bytes"},
		"a text for bytes":      {BinaryData, Value{Text, "00"}, "!bytes"},
		"a list for a text":     {Other, Value{Structure, "[]"}, "!JSON"},
		"truth for a text":      {Other, Value{Bool, "true"}, "!truth"},
		"a text with a NUL":     {Other, Value{Text, "a\x00b"}, "!NUL"},
	} {
		got, err := input(plainDialect{}, Column{Class: test.class}, test.value)
		says, wrong := strings.CutPrefix(test.want, "!")
		if wrong != (err != nil) || wrong && !strings.Contains(err.Error(), says) || !wrong && *got != test.want {
			t.Errorf("%s: %v", name, err)
		}
	}
	if got, err := input(plainDialect{}, Column{Class: JSON}, Value{}); got != nil || err != nil {
		t.Error("null is not null")
	}
}

func TestKeeps(t *testing.T) {
	for _, test := range []struct {
		class   Class
		text    string
		printed string
		want    bool
	}{{Decimal, "1.10", "1.1", true}, {Decimal, "1.234", "1.23", false}, {Integer, "2", "2", true}, {Integer, "1.5", "2", false},
		{Other, "1.234", "1.23", true}, {Float, "0.1", "0.10000000149011612", true}, {Decimal, "1e2", "100", true}} {
		if got := keeps(Column{Class: test.class}, Value{Number, test.text}, &test.printed); got != test.want {
			t.Errorf("%+v: %t", test, got)
		}
	}
}
