package planner

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"ptah.run/ptah/operator/executor/postgresql/dump"
)

// rebuilt are the types that are made anew because PostgreSQL cannot alter them in place, with every type that is made
// of one of them.
type rebuilt struct {
	types map[dump.Key]bool
	// after is what the target holds once all of them were dropped with whatever depends on them.
	after []dump.Entry
}

// typeKinds are the kinds that a plan can make anew although columns are made of them.
var typeKinds = map[string]bool{"TYPE": true, "DOMAIN": true, "COLLATION": true}

// typeName is the name of a type, or of a collation, which may bear the name of a type.
func typeName(e dump.Entry) string {
	object, _ := e.Object()
	if e.Type == "COLLATION" {
		return "COLLATION " + object.Name.SQL()
	}
	return object.Name.SQL()
}

// findRebuilt explores which types are made anew. A type that loses a part when another is dropped is one of them.
func (a *attempt) findRebuilt(ctx context.Context) error {
	r := &rebuilt{types: map[dump.Key]bool{}}
	a.rebuilt = r
	from, to := dump.Index(a.have), dump.Index(a.want)
	wanted := types(a.want)
	for _, e := range a.have {
		if _, ok := e.Object(); !ok || !typeKinds[e.Type] || len(from[e.Key()]) != 1 {
			continue
		}
		other, ok := wanted[typeName(e)]
		r.types[e.Key()] = ok && !from.Equal(to, e.Key()) && !alterable(e, other)
	}
	for grown := a.seeded(r); grown; {
		var err error
		if r.after, err = a.explore(ctx, func(s *session) error { return a.dropTypes(ctx, s) }); err != nil {
			return err
		}
		if grown, err = a.grow(from, to); err != nil {
			return err
		}
	}
	return nil
}

// grow adds what lost a part in the last exploration and says whether another one is needed: what is gone as a whole
// took its own dependants along.
func (a *attempt) grow(from, to dump.Set) (bool, error) {
	grown := false
	left := dump.Index(a.rebuilt.after)
	for _, e := range a.have {
		key := e.Key()
		switch {
		case typeKinds[e.Type] && !a.rebuilt.types[key] && !from.Equal(left, key):
			a.rebuilt.types[key] = true
			grown = grown || len(left[key]) > 0
		case isPartitioned(e) && len(left[key]) == 0 && len(to[key]) > 0 && !a.roots[key]:
			if err := a.addRoot(e); err != nil {
				return false, err
			}
			grown = true
		}
	}
	return grown, nil
}

func (a *attempt) seeded(r *rebuilt) bool {
	for _, seed := range r.types {
		if seed {
			return true
		}
	}
	return false
}

// types returns the entries of types by name.
func types(entries []dump.Entry) map[string]dump.Entry {
	out := map[string]dump.Entry{}
	for _, e := range entries {
		if _, ok := e.Object(); ok && typeKinds[e.Type] {
			out[typeName(e)] = e
		}
	}
	return out
}

// alterable says whether a statement of PostgreSQL turns one type into the other wherever it is stored.
func alterable(from, to dump.Entry) bool {
	switch {
	case from.Type != to.Type:
		return false
	case from.Type == "DOMAIN":
		a, okA := parseDomain(from)
		b, okB := parseDomain(to)
		return okA && okB && a.base == b.base
	case dump.EnumLabels(from) != nil && dump.EnumLabels(to) != nil:
		return !rebuiltEnum(from, to)
	}
	a, okA := attributes(from)
	b, okB := attributes(to)
	if !okA || !okB {
		return false
	}
	for _, x := range a {
		if i := attributeIndex(b, x.Name); i >= 0 && b[i] != x {
			return false // an attribute of a stored value cannot change its type
		}
	}
	_, err := alterComposite("", from, to)
	return err == nil
}

func attributeIndex(all []dump.Constraint, name string) int {
	return slices.IndexFunc(all, func(c dump.Constraint) bool { return c.Name == name })
}

// rebuild makes types anew under their names and moves every stored value over by its text. A row that holds what the
// new type does not know makes the move fail and with it the whole plan: no row is changed in silence.
//
// The old types step aside under another name, so that each table is written once.
func (a *attempt) rebuild(ctx context.Context) error {
	if !a.seeded(a.rebuilt) {
		return nil
	}
	if err := a.checkRebuild(); err != nil {
		return err
	}
	if err := a.loosenAll(ctx); err != nil {
		return err
	}
	if a.hasRange() {
		return a.rebuildByText(ctx)
	}
	spare, err := a.stepAside(ctx)
	if err != nil {
		return err
	}
	if err := a.makeTypes(ctx); err != nil {
		return err
	}
	if err := a.convertAll(ctx, a.carried); err != nil {
		return err
	}
	return a.dropOld(ctx, spare)
}

// hasRange says whether a range type is made anew. Functions of the server itself come with it and keep its name.
func (a *attempt) hasRange() bool {
	for _, e := range a.have {
		if a.rebuilt.types[e.Key()] && e.Type == "TYPE" && isRange(e) {
			return true
		}
	}
	return false
}

func isRange(e dump.Entry) bool {
	tokens := dump.Tokens(e.Statements[0])
	return slices.ContainsFunc(tokens[:min(len(tokens), 7)], func(t dump.Token) bool { return t.Is("RANGE") })
}

// rebuildByText turns stored values into text, drops the old types, makes the new ones and turns the text into values.
func (a *attempt) rebuildByText(ctx context.Context) error {
	asText := func(c dump.Column) string { return fmt.Sprintf("text USING %s::text", c.Name) }
	if err := a.convertAll(ctx, asText); err != nil {
		return err
	}
	if err := a.dropOld(ctx, nil); err != nil {
		return err
	}
	if err := a.makeTypes(ctx); err != nil {
		return err
	}
	return a.convertAll(ctx, func(c dump.Column) string {
		return fmt.Sprintf("%s%s USING %s::%s", c.Type, collate(c), c.Name, c.Type)
	})
}

func (a *attempt) dropOld(ctx context.Context, spare map[dump.Key]dump.Name) error {
	for _, e := range slices.Backward(a.have) {
		if !a.rebuilt.types[e.Key()] {
			continue
		}
		object, _ := e.Object()
		name := object.Name
		if s, ok := spare[e.Key()]; ok {
			name = s
		}
		if err := a.run(ctx, "DROP "+e.Type+" "+name.SQL()); err != nil {
			return err
		}
	}
	return nil
}

// checkRebuild refuses what the text of a value cannot carry over, and what PostgreSQL would take rows along with.
func (a *attempt) checkRebuild() error {
	left := dump.Index(a.rebuilt.after)
	to := dump.Index(a.want)
	for _, e := range a.have {
		key := e.Key()
		if e.Type == "TABLE" && len(left[key]) == 0 && len(to[key]) > 0 && !a.roots[key] {
			return because("a type that must be made anew is what the rows of a table are made of")
		}
	}
	wanted := types(a.want)
	for _, e := range a.have {
		if !a.rebuilt.types[e.Key()] {
			continue
		}
		object, _ := e.Object()
		if next, ok := wanted[typeName(e)]; !ok || !relaid(e, next) {
			continue
		}
		if a.hasRange() {
			return because("the attributes of a composite type change their order or number together with a range type")
		}
		for _, other := range a.have {
			if a.rebuilt.types[other.Key()] && other.Key() != e.Key() && mentions(other, object.Name) {
				return because("the attributes of a composite type change their order or number, and another type is made of it")
			}
			table, ok := other.Table()
			if ok && slices.ContainsFunc(table.Columns, func(c dump.Column) bool { return c.Type == object.Name.SQL()+"[]" }) {
				return because("the attributes of a composite type change their order or number, and arrays of it are stored")
			}
		}
	}
	return nil
}

func mentions(e dump.Entry, name dump.Name) bool {
	tokens := dump.Tokens(e.Statements[0])
	for i := 0; i+2 < len(tokens); i++ {
		if tokens[i].Text == name.Schema && tokens[i+1].Is(".") && tokens[i+2].Text == name.Object {
			return true
		}
	}
	return false
}

// relaid says whether the text of an old value of a composite type would not be read as the same value of the new one.
func relaid(from, to dump.Entry) bool {
	a, okA := attributes(from)
	b, okB := attributes(to)
	if !okA || !okB {
		return false
	}
	return !slices.EqualFunc(a, b, func(x, y dump.Constraint) bool { return x.Name == y.Name })
}

// loosenAll takes away what depends on an old type and holds no rows of its own: defaults, checks, computed columns.
// What is desired of it is made again with everything else that the tables then lack.
func (a *attempt) loosenAll(ctx context.Context) error {
	now, err := a.now(ctx)
	if err != nil {
		return err
	}
	left := dump.Index(a.rebuilt.after)
	for _, e := range slices.Backward(now) {
		after := left[e.Key()]
		if object, ok := e.Object(); ok && e.Type == "DEFAULT" && len(after) == 0 {
			if err := a.runAll(ctx, alter(dump.Table{Name: object.On}, "ALTER COLUMN "+object.Name.Object+" DROP DEFAULT")); err != nil {
				return err
			}
		}
		table, ok := e.Table()
		if !ok || len(after) != 1 {
			continue
		}
		rest, ok := after[0].Table()
		if !ok {
			return because("a table has a form that cannot be compared")
		}
		if err := a.runAll(ctx, looseners(table, rest)...); err != nil {
			return err
		}
	}
	return nil
}

// looseners drops from a table what does not survive the loss of a type, but for columns that hold values.
func looseners(table, rest dump.Table) []string {
	var out []string
	add := func(format string, args ...any) { out = append(out, alter(table, fmt.Sprintf(format, args...))) }
	for _, c := range table.Constraints {
		if !slices.Contains(rest.Constraints, c) {
			add("DROP CONSTRAINT %s", c.Name)
		}
	}
	for _, c := range table.Columns {
		i := columnIndex(rest, c.Name)
		switch {
		case i >= 0 && rest.Columns[i].Default == c.Default:
		case i < 0 && c.Generated != "":
			add("DROP COLUMN %s", c.Name)
		case c.Default != "":
			add("ALTER COLUMN %s DROP DEFAULT", c.Name)
		}
	}
	return out
}

func columnIndex(t dump.Table, name string) int {
	return slices.IndexFunc(t.Columns, func(c dump.Column) bool { return c.Name == name })
}

// runAll runs statements of which some may already be done by way of a parent table.
func (a *attempt) runAll(ctx context.Context, statements ...string) error {
	for _, statement := range statements {
		if _, err := a.try(ctx, statement, append([]string{"42P16"}, absent...)...); err != nil {
			return err
		}
	}
	return nil
}

// forTypes are the objects that a type may be made of.
var forTypes = map[string]bool{"SCHEMA": true, "EXTENSION": true, "COLLATION": true, "TYPE": true, "DOMAIN": true}

// makeTypes makes the new types and whatever new they are made of. A domain's check may call a function.
func (a *attempt) makeTypes(ctx context.Context) error {
	now, err := a.now(ctx)
	if err != nil {
		return err
	}
	have := dump.Index(now)
	for _, e := range a.want {
		if !forTypes[e.Type] || len(have[e.Key()]) > 0 || len(e.Statements) == 0 {
			continue
		}
		made, err := a.try(ctx, e.Statements[0], append(slices.Clone(absent), present...)...)
		if err != nil || made {
			if err != nil {
				return err
			}
			continue
		}
		if err := a.makeForTables(ctx, now); err != nil {
			return err
		}
		now, err := a.now(ctx)
		if err != nil {
			return err
		}
		if len(dump.Index(now)[e.Key()]) > 0 {
			continue
		}
		if err := a.run(ctx, e.Statements[0]); err != nil {
			return err
		}
	}
	return nil
}

// convertAll moves every column that is made of a rebuilt type; to says to which type and how.
func (a *attempt) convertAll(ctx context.Context, to func(dump.Column) string) error {
	for _, e := range a.have {
		if err := a.convert(ctx, e, to); err != nil {
			return err
		}
	}
	return nil
}

// convert moves the columns of one table.
func (a *attempt) convert(ctx context.Context, e dump.Entry, how func(dump.Column) string) error {
	table, ok := e.Table()
	after := dump.Index(a.rebuilt.after)[e.Key()]
	next := dump.Index(a.want)[e.Key()]
	if !ok || len(after) != 1 || len(next) != 1 {
		return nil // a table that leaves is gone by now
	}
	rest, okA := after[0].Table()
	to, okB := next[0].Table()
	if !okA || !okB {
		return because("a table has a form that cannot be compared")
	}
	var actions []string
	for _, c := range table.Columns {
		if c.Generated != "" || columnIndex(rest, c.Name) >= 0 {
			continue
		}
		i := columnIndex(to, c.Name)
		switch {
		case i < 0 && !a.inherited(e, c.Name):
			actions = append(actions, "DROP COLUMN "+c.Name)
		case i >= 0 && to.Columns[i].Type != c.Type:
			// What it becomes may not exist yet; every type can be made of text.
			actions = append(actions, fmt.Sprintf("ALTER COLUMN %s TYPE text USING %s::text", c.Name, c.Name))
		default:
			actions = append(actions, fmt.Sprintf("ALTER COLUMN %s TYPE %s", c.Name, how(c)))
		}
	}
	if len(actions) == 0 {
		return nil
	}
	done, err := a.try(ctx, alter(table, strings.Join(actions, ", ")), "42P16", "42703")
	if err != nil || done || len(actions) == 1 {
		return err
	}
	for _, action := range actions { // some of the columns are a parent's, and follow it
		if _, err := a.try(ctx, alter(table, action), "42P16", "42703"); err != nil {
			return err
		}
	}
	return nil
}

// inherited says whether a column that the desired definition of a table does not show may come from a parent.
func (a *attempt) inherited(e dump.Entry, column string) bool {
	for _, next := range dump.Index(a.want)[e.Key()] {
		if table, ok := next.Table(); ok && fromParent(a.want, table, column) {
			return true
		}
	}
	return false
}

// fromParent says whether one of the parents of a table, or of theirs, has a column.
func fromParent(entries []dump.Entry, table dump.Table, column string) bool {
	for _, e := range entries {
		parent, ok := e.Table()
		if ok && slices.Contains(table.Inherits, parent.Name.SQL()) && (columnIndex(parent, column) >= 0 || fromParent(entries, parent, column)) {
			return true
		}
	}
	return false
}

func collate(c dump.Column) string {
	if c.Collation == "" {
		return ""
	}
	return " COLLATE " + c.Collation
}

// carried says of which type and collation a column becomes, and by which expression it gets its new value.
func (a *attempt) carried(c dump.Column) string {
	from, to := types(a.have)[c.Type], types(a.want)[c.Type]
	if from.Type == "" || to.Type == "" || !relaid(from, to) {
		return fmt.Sprintf("%s%s USING %s::text::%s", c.Type, collate(c), c.Name, c.Type)
	}
	old, _ := attributes(from)
	fresh, _ := attributes(to)
	var values []string
	for _, attribute := range fresh {
		kind := attributeType(attribute)
		if attributeIndex(old, attribute.Name) < 0 {
			values = append(values, "NULL::"+kind)
			continue
		}
		values = append(values, fmt.Sprintf("(%s).%s::text::%s", c.Name, attribute.Name, kind))
	}
	return fmt.Sprintf("%s USING CASE WHEN %s IS DISTINCT FROM NULL THEN ROW(%s)::%s END", c.Type, c.Name, strings.Join(values, ", "), c.Type)
}

// attributeType is the type of a composite type's attribute, without its collation.
func attributeType(attribute dump.Constraint) string {
	text := strings.TrimSpace(attribute.Text[len(attribute.Name):])
	for _, token := range dump.Tokens(text) {
		if token.Is("COLLATE") {
			return strings.TrimSpace(text[:token.Start])
		}
	}
	return text
}
