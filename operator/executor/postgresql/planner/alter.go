package planner

import (
	"fmt"
	"slices"
	"strings"

	"ptah.run/ptah/operator/executor/postgresql/dump"
)

// alterTable returns the statements that make one table from another of the same name, by comparing what pg_dump
// prints for both. It fails for what cannot be altered. Rows are kept but for columns that leave.
func alterTable(from, to dump.Entry) ([]string, error) {
	a, okA := from.Table()
	b, okB := to.Table()
	if !okA || !okB {
		return nil, because("a table has a form that cannot be compared")
	}
	if a.Rest != b.Rest {
		return nil, because("how a table is partitioned cannot be altered, as PostgreSQL knows no statement for it")
	}
	if from.AccessMethod != to.AccessMethod {
		method := to.AccessMethod
		if method == "" {
			method = "heap"
		}
		return []string{alter(b, "SET ACCESS METHOD "+dump.Quote(method))}, nil
	}
	t := tableChange{a: a, b: b}
	t.inheritance(false)
	t.dropConstraints()
	t.columns()
	t.addConstraints()
	t.inheritance(true)
	t.storage()
	if err := t.extras(); err != nil {
		return nil, err
	}
	return t.out, nil
}

type tableChange struct {
	a, b dump.Table
	out  []string
}

func alter(t dump.Table, action string) string { return "ALTER TABLE " + t.Name.SQL() + " " + action }

func (t *tableChange) add(format string, args ...any) {
	t.out = append(t.out, alter(t.b, fmt.Sprintf(format, args...)))
}

func (t *tableChange) inheritance(add bool) {
	from, to, verb := t.a.Inherits, t.b.Inherits, "NO INHERIT"
	if add {
		from, to, verb = to, from, "INHERIT"
	}
	for _, parent := range from {
		if !slices.Contains(to, parent) {
			t.add("%s %s", verb, parent)
		}
	}
}

func (t *tableChange) dropConstraints() {
	for _, c := range t.a.Constraints {
		if !slices.Contains(t.b.Constraints, c) {
			t.add("DROP CONSTRAINT %s", c.Name)
		}
	}
}

func (t *tableChange) addConstraints() {
	for _, c := range t.b.Constraints {
		if !slices.Contains(t.a.Constraints, c) {
			t.add("ADD %s", c.Text)
		}
	}
}

func (t *tableChange) columns() {
	old := map[string]dump.Column{}
	for _, c := range t.a.Columns {
		old[c.Name] = c
	}
	keep := map[string]bool{}
	for _, c := range t.b.Columns {
		keep[c.Name] = true
	}
	renewed := t.renewed(old)
	for _, c := range t.a.Columns {
		if !keep[c.Name] || renewed[c.Name] {
			t.add("DROP COLUMN %s", c.Name)
		}
	}
	for _, c := range t.b.Columns {
		before, ok := old[c.Name]
		switch {
		case renewed[c.Name]:
		case !ok:
			t.add("ADD COLUMN %s", c.Text)
		case before != c:
			t.column(before, c)
		}
	}
	for _, c := range t.b.Columns {
		if renewed[c.Name] {
			t.add("ADD COLUMN %s", c.Text)
		}
	}
}

// renewed are the computed columns that read one which changes its type. PostgreSQL does not let it change under them,
// and what is computed is not lost.
func (t *tableChange) renewed(old map[string]dump.Column) map[string]bool {
	changed, out := map[string]bool{}, map[string]bool{}
	for _, c := range t.b.Columns {
		before, ok := old[c.Name]
		if ok && (before.Type != c.Type || before.Collation != c.Collation) {
			changed[c.Name] = true
		}
	}
	for _, c := range t.b.Columns {
		if before := old[c.Name]; before.Generated == "" || c.Generated == "" {
			continue
		}
		for _, token := range dump.Tokens(old[c.Name].Generated + " " + c.Generated) {
			out[c.Name] = out[c.Name] || changed[token.Text] && token.Text != c.Name
		}
	}
	return out
}

// replaced says whether a column can only be had by dropping and adding it: a plain column becomes a computed one.
func replaced(from, to dump.Column) bool { return from.Generated == "" && to.Generated != "" }

// retyped says whether a column changes its type or what its values are computed from, so that nothing may read it.
func retyped(from, to dump.Column) bool {
	return from.Type != to.Type || from.Collation != to.Collation || from.Generated != to.Generated
}

func (t *tableChange) column(from, to dump.Column) {
	if replaced(from, to) {
		t.add("DROP COLUMN %s", to.Name)
		t.add("ADD COLUMN %s", to.Text)
		return
	}
	if from.Generated != "" && to.Generated == "" {
		t.add("ALTER COLUMN %s DROP EXPRESSION", to.Name)
	}
	defaulted := from.Default
	if from.Type != to.Type || from.Collation != to.Collation {
		if from.Default != "" {
			t.add("ALTER COLUMN %s DROP DEFAULT", to.Name)
			defaulted = ""
		}
		collate, using := "", fmt.Sprintf(" USING %s::%s", to.Name, to.Type)
		if strings.Contains(from.Type, ".") && strings.Contains(to.Type, ".") {
			// PostgreSQL casts between two types of a user by the text of a value only.
			using = fmt.Sprintf(" USING %s::text::%s", to.Name, to.Type)
		}
		if to.Collation != "" {
			collate = " COLLATE " + to.Collation
		}
		if to.Generated != "" {
			using = "" // a computed column takes its values from its expression
		}
		t.add("ALTER COLUMN %s TYPE %s%s%s", to.Name, to.Type, collate, using)
	}
	if from.Generated != "" && to.Generated != "" && from.Generated != to.Generated {
		t.add("ALTER COLUMN %s SET EXPRESSION AS %s", to.Name, to.Generated)
	}
	switch {
	case defaulted == to.Default:
	case to.Default == "":
		t.add("ALTER COLUMN %s DROP DEFAULT", to.Name)
	default:
		t.add("ALTER COLUMN %s SET DEFAULT %s", to.Name, to.Default)
	}
	switch {
	case to.NotNull && !from.NotNull:
		t.add("ALTER COLUMN %s SET NOT NULL", to.Name)
	case from.NotNull && !to.NotNull:
		t.add("ALTER COLUMN %s DROP NOT NULL", to.Name)
	}
}

// storage sets persistence and storage parameters.
func (t *tableChange) storage() {
	switch {
	case t.b.Unlogged && !t.a.Unlogged:
		t.add("SET UNLOGGED")
	case t.a.Unlogged && !t.b.Unlogged:
		t.add("SET LOGGED")
	}
	t.out = append(t.out, setOptions(strings.TrimSpace(alter(t.b, "")), t.a.Options, t.b.Options)...)
}

// extras are the ALTER TABLE statements that pg_dump adds to a table.
func (t *tableChange) extras() error {
	for _, statement := range t.a.Extra {
		if slices.Contains(t.b.Extra, statement) {
			continue
		}
		reverse, err := reverseExtra(statement)
		if err != nil {
			return err
		}
		t.out = append(t.out, reverse)
	}
	for _, statement := range t.b.Extra {
		if !slices.Contains(t.a.Extra, statement) {
			t.out = append(t.out, statement)
		}
	}
	return nil
}

// extraDefaults are the endings of an added statement with the ending that undoes each.
var extraDefaults = []struct{ marker, undo string }{
	{" SET STORAGE ", " SET STORAGE DEFAULT"},
	{" SET COMPRESSION ", " SET COMPRESSION DEFAULT"},
	{" SET STATISTICS ", " SET STATISTICS DEFAULT"},
	{" REPLICA IDENTITY ", " REPLICA IDENTITY DEFAULT"},
	{" FORCE ROW LEVEL SECURITY", " NO FORCE ROW LEVEL SECURITY"},
	{" CLUSTER ON ", " SET WITHOUT CLUSTER"},
	// An attribute's own parameters are few, and resetting one that is not set does nothing.
	{" SET (", " RESET (n_distinct, n_distinct_inherited)"},
}

func reverseExtra(statement string) (string, error) {
	tokens := dump.Tokens(statement)
	for _, e := range extraDefaults {
		words := strings.Fields(e.marker)
		// The marker stands at or near the end, behind every name.
		for i := len(tokens) - len(words); i >= 0; i-- {
			fits := true
			for k, word := range words {
				fits = fits && tokens[i+k].Is(word)
			}
			if fits {
				return strings.TrimRight(statement[:tokens[i].Start], " ") + e.undo, nil
			}
		}
	}
	return "", because("a setting of a table cannot be undone")
}

// alterSequence writes a sequence's definition as an ALTER that also says what CREATE leaves to defaults.
func alterSequence(to dump.Entry) ([]string, error) {
	sql := to.Statements[0]
	object, ok := to.Object()
	if !ok || object.Kind == "IDENTITY" {
		return alterIdentity(to, object)
	}
	rest, found := strings.CutPrefix(strings.Replace(sql, "CREATE UNLOGGED ", "CREATE ", 1), "CREATE SEQUENCE ")
	if !found {
		return nil, because("a sequence has a form that cannot be altered")
	}
	words := map[string]bool{}
	for _, token := range dump.Tokens(rest) {
		words[strings.ToUpper(token.Text)] = true
	}
	out := "ALTER SEQUENCE " + rest
	if !words["AS"] {
		out += " AS bigint"
	}
	if !words["CYCLE"] {
		out += " NO CYCLE"
	}
	return []string{out}, nil
}

// alterIdentity changes the options of an identity column in place: dropping it would start it again from 1.
func alterIdentity(to dump.Entry, object dump.Object) ([]string, error) {
	_, options, tail := dump.Items("CREATE" + to.Statements[0][strings.LastIndex(to.Statements[0], " AS IDENTITY ")+len(" AS IDENTITY "):])
	if object.Kind != "IDENTITY" || len(options) != 1 || strings.TrimSpace(tail) != "" {
		return nil, because("an identity column has a form that cannot be altered")
	}
	kind := "ALWAYS"
	if strings.Contains(to.Statements[0], "GENERATED BY DEFAULT AS IDENTITY") {
		kind = "BY DEFAULT"
	}
	var set []string
	for _, line := range strings.Split(options[0], "\n") {
		line = strings.TrimSpace(line)
		if line != "" && !strings.HasPrefix(line, "SEQUENCE NAME ") {
			set = append(set, "SET "+line)
		}
	}
	if !strings.Contains(options[0], "CYCLE") {
		set = append(set, "SET NO CYCLE")
	}
	return []string{fmt.Sprintf("ALTER TABLE %s ALTER COLUMN %s SET GENERATED %s %s", object.On.SQL(), object.Name.SQL(),
		kind, strings.Join(set, " "))}, nil
}
