package planner

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"

	"github.com/jackc/pgx/v5/pgconn"

	"ptah.run/ptah/operator/executor/postgresql/dump"
	"ptah.run/ptah/operator/executor/postgresql/scratch"
)

// strategy is how changed tables are planned for; everything else is planned the same way.
type strategy int

const (
	// byLibrary asks pg-schema-diff, which knows many orders of operations that keep tables usable, and shows it changed
	// tables alone where that can be done.
	byLibrary strategy = iota
	// byCopies does the same and shows it copies of everything, pruned of what nothing needs.
	byCopies
	// byEntries compares what pg_dump prints, which covers what the library does not model.
	byEntries
)

// attempt computes one plan on one copy of the target's clone. Every statement has run there before it is recorded.
type attempt struct {
	server *scratch.Server
	// have and want are the objects of the clone and of the desired schema; wantDB holds the latter.
	have, want     []dump.Entry
	haveDB, wantDB string
	// prefix makes the names of this attempt's databases its own.
	prefix string
	how    strategy
	// onSmall is set when the library saw changed tables alone.
	onSmall *atomic.Bool
	work    *session
	// statements are the plan so far.
	statements []string
	// read is what the clone held when it was last read, after that many attempts to run something.
	read     []dump.Entry
	readAt   int
	attempts int
	// unfilled are the materialized views that are desired without their rows.
	unfilled map[dump.Key]bool
	// rebuilt are the types that are made anew; spares are the names that old ones bear meanwhile.
	rebuilt *rebuilt
	spares  map[dump.Name]bool
	// roots are the partitioned tables that are made anew, and free the statements that let them go.
	roots map[dump.Key]bool
	free  []string
}

// Errors of the server that say an object is not there or is there already.
var (
	absent  = []string{"42704", "42P01", "42883", "42703", "3F000"}
	present = []string{"42701", "42710", "42P07", "42723", "42P06"}
)

// compute returns the plan's statements. An error says that this strategy has no complete plan.
func (a *attempt) compute(ctx context.Context) ([]string, error) {
	name := a.prefix + "work"
	if err := a.server.Copy(ctx, a.haveDB, name); err != nil {
		return nil, err
	}
	work, err := open(ctx, a.server, name)
	if err != nil {
		return nil, err
	}
	a.work = work
	a.read = a.have // the copy was just made of it
	defer work.close(ctx)
	if err := work.prepare(ctx); err != nil {
		return nil, err
	}
	steps := []func(context.Context) error{a.clear, a.rebuild, a.tables, a.create, a.removeRest, a.repair, a.check}
	if a.how == byEntries {
		steps[2] = func(context.Context) error { return nil } // create alters changed tables where it meets them
	}
	for _, step := range steps {
		if err := step(ctx); err != nil {
			return nil, err
		}
	}
	return a.statements, nil
}

// now reads the clone, unless nothing was run on it since it was last read.
func (a *attempt) now(ctx context.Context) ([]dump.Entry, error) {
	if a.read != nil && a.readAt == a.attempts {
		return a.read, nil
	}
	entries, err := a.work.dump(ctx)
	if err != nil {
		return nil, err
	}
	a.read, a.readAt = entries, a.attempts
	return entries, nil
}

// run executes a statement on the clone and records it.
func (a *attempt) run(ctx context.Context, statement string) error {
	a.attempts++
	if err := a.work.run(ctx, statement); err != nil {
		if isServerError(err) {
			return fmt.Errorf("run a statement on the clone: %w\n%s", err, statement)
		}
		return fmt.Errorf("run a statement on the clone: %w", err)
	}
	a.statements = append(a.statements, statement)
	return nil
}

// try runs a statement and says false, without recording it, when the server answers with one of the states.
func (a *attempt) try(ctx context.Context, statement string, states ...string) (bool, error) {
	err := a.run(ctx, statement)
	var server *pgconn.PgError
	if errors.As(err, &server) && slices.Contains(states, server.Code) {
		return false, nil
	}
	return err == nil, err
}

// removable are the types of entries that hold no rows and can be dropped and made again from the dump.
var removable = map[string]bool{
	"VIEW": true, "MATERIALIZED VIEW": true, "FUNCTION": true, "PROCEDURE": true, "AGGREGATE": true, "TRIGGER": true,
	"POLICY": true, "RULE": true, "INDEX": true, "CONSTRAINT": true, "FK CONSTRAINT": true, "CHECK CONSTRAINT": true,
	"STATISTICS": true, "COLLATION": true, "ROW SECURITY": true, "TABLE ATTACH": true,
	"TEXT SEARCH CONFIGURATION": true, "TEXT SEARCH DICTIONARY": true, "CAST": true, "OPERATOR": true,
	"PUBLICATION": true, "PUBLICATION TABLE": true,
}

// late are the types that leave after everything else was made, because something that changes may still use them.
var late = map[string]bool{
	"SCHEMA": true, "EXTENSION": true, "TYPE": true, "DOMAIN": true, "SEQUENCE": true, "FUNCTION": true,
	"PROCEDURE": true, "AGGREGATE": true, "COLLATION": true, "TEXT SEARCH CONFIGURATION": true, "TEXT SEARCH DICTIONARY": true,
}

// about are the types that say something about another object and leave with it.
var about = map[string]bool{"COMMENT": true, "ACL": true, "DEFAULT ACL": true, "SEQUENCE OWNED BY": true, "INDEX ATTACH": true, "DEFAULT": true}

// clear takes away, dependants first, what leaves or must be made anew: changed views, triggers, constraints and so
// on, removed tables, and whatever depends on any of them or on a column that changes its type.
func (a *attempt) clear(ctx context.Context) error {
	if err := a.findRoots(); err != nil {
		return err
	}
	a.orphan()
	from, to := dump.Index(a.have), dump.Index(a.want)
	gone := map[dump.Key]bool{}
	for _, e := range a.have {
		key := e.Key()
		removed := len(to[key]) == 0
		changed := !removed && !from.Equal(to, key)
		switch {
		case e.Type == "TABLE" || e.Type == "FOREIGN TABLE":
			if removed {
				gone[key] = true
			}
		case !removable[e.Type] || isTriggerState(e) || changed && typeKinds[e.Type]:
		case changed && len(from[key]) == 1 && len(to[key]) == 1 && a.keeps(e, to[key][0]):
		case e.Type == "FUNCTION" || e.Type == "PROCEDURE":
			if changed && !a.replaceable(e, to[key][0]) {
				gone[key] = true
			}
		case changed || removed && !late[e.Type]:
			gone[key] = true
		}
	}
	a.clashes(gone)
	readers, err := a.readers(ctx)
	if err != nil {
		return err
	}
	for key := range readers {
		gone[key] = true
	}
	a.viewRules(gone)
	a.rootParts(gone)
	if len(gone) == 0 && len(a.free) == 0 {
		return nil
	}
	after, err := a.explore(ctx, func(s *session) error { return dropCascading(ctx, s, a.have, gone) })
	if err != nil {
		return err
	}
	if err := a.runAll(ctx, a.free...); err != nil {
		return err
	}
	now, err := a.now(ctx)
	if err != nil {
		return err
	}
	return a.reach(ctx, now, after, gone)
}

// viewRules adds the views whose query leaves or changes: a query cannot be taken from its view.
func (a *attempt) viewRules(gone map[dump.Key]bool) {
	for _, e := range a.have {
		if object, ok := e.Object(); ok && object.Kind == dump.ViewRule && gone[e.Key()] {
			schema, name := object.Name.Plain()
			gone[dump.Key{Type: "VIEW", Schema: schema, Name: name}] = true
		}
	}
}

// orphan lets go what is to stay when that leaves which it belongs to: children of a parent, sequences of a column. A
// sequence that left and was made anew would hand out its values again.
func (a *attempt) orphan() {
	to := dump.Index(a.want)
	for _, e := range a.have {
		if object, ok := e.Object(); ok && e.Type == "SEQUENCE OWNED BY" {
			schema, name := object.Name.Plain()
			next := to[e.Key()]
			moved := len(next) == 0 || !slices.Equal(next[0].Statements, e.Statements)
			stays := to[dump.Key{Type: "SEQUENCE", Schema: schema, Name: name}]
			if moved && len(stays) > 0 && !strings.HasPrefix(stays[0].Statements[0], "ALTER ") { // not as an identity column's
				a.release("ALTER SEQUENCE " + object.Name.SQL() + " OWNED BY NONE")
			}
			continue
		}
		table, ok := e.Table()
		if !ok || len(to[e.Key()]) != 1 {
			continue
		}
		after, ok := to[e.Key()][0].Table()
		// A table owns the columns that it had when it lost a parent, even if it is to come back.
		owns := slices.ContainsFunc(after.Columns, func(c dump.Column) bool {
			return len(table.Inherits) > 0 && columnIndex(table, c.Name) < 0 && fromParent(a.have, table, c.Name)
		})
		for _, parent := range table.Inherits {
			if ok && (owns || !slices.Contains(after.Inherits, parent)) {
				a.release(alter(table, "NO INHERIT "+parent))
			}
		}
	}
}

// release adds a statement that comes before everything else.
func (a *attempt) release(statement string) {
	if !slices.Contains(a.free, statement) {
		a.free = append(a.free, statement)
	}
}

// keeps says whether an entry can be changed without being made anew.
func (a *attempt) keeps(from, to dump.Entry) bool {
	_, ok := a.inPlace(from, to)
	return ok
}

func isTriggerState(e dump.Entry) bool {
	if e.Type != "TRIGGER" {
		return false
	}
	object, ok := e.Object()
	return ok && object.Kind == dump.TriggerState
}

// clashes adds what leaves and bears a name that something of another kind is to have.
func (a *attempt) clashes(gone map[dump.Key]bool) {
	to := dump.Index(a.want)
	wanted := map[string]bool{}
	for _, e := range a.want {
		if object, ok := e.Object(); ok && spaces[e.Type] != "" && object.Kind != "IDENTITY" {
			wanted[spaces[e.Type]+object.Name.SQL()+object.Arguments] = true
		}
	}
	for _, e := range a.have {
		object, ok := e.Object()
		if ok && late[e.Type] && spaces[e.Type] != "" && object.Kind != "IDENTITY" && len(to[e.Key()]) == 0 &&
			wanted[spaces[e.Type]+object.Name.SQL()+object.Arguments] {
			gone[e.Key()] = true
		}
	}
}

// spaces are the kinds of entries that share their names with other kinds.
var spaces = map[string]string{"FUNCTION": "routine ", "PROCEDURE": "routine ", "AGGREGATE": "routine ",
	"SEQUENCE": "relation ", "TABLE": "relation ", "VIEW": "relation ", "MATERIALIZED VIEW": "relation ", "INDEX": "relation "}

// explore runs something on a copy of the target's clone and returns what the copy then holds.
func (a *attempt) explore(ctx context.Context, change func(*session) error) ([]dump.Entry, error) {
	name := a.prefix + "explore"
	if err := a.server.Copy(ctx, a.haveDB, name); err != nil {
		return nil, err
	}
	defer func() { _ = a.server.Remove(context.WithoutCancel(ctx), name) }() // the server itself is thrown away
	s, err := open(ctx, a.server, name)
	if err != nil {
		return nil, err
	}
	defer s.close(ctx)
	if err := s.prepare(ctx); err != nil {
		return nil, err
	}
	for _, statement := range a.free {
		if err := s.run(ctx, statement); err != nil {
			return nil, fmt.Errorf("explore what depends on a change: %w", err)
		}
	}
	if err := change(s); err != nil {
		return nil, err
	}
	return s.dump(ctx)
}

// dropCascading drops entries with everything that depends on them. It runs on an exploration copy only; a plan
// never cascades.
func dropCascading(ctx context.Context, s *session, entries []dump.Entry, gone map[dump.Key]bool) error {
	parts := attached(entries)
	for _, e := range slices.Backward(entries) {
		if !gone[e.Key()] || isPart(e, parts) {
			continue
		}
		drops, err := e.Drop()
		if err != nil {
			return err
		}
		for _, drop := range drops {
			if e.Type != "TABLE ATTACH" && e.Type != "ROW SECURITY" && e.Type != "PUBLICATION TABLE" {
				drop += " CASCADE"
			}
			if err := s.run(ctx, drop); err != nil && !serverSays(err, absent...) {
				return fmt.Errorf("explore what depends on a change: %w", err)
			}
		}
	}
	return nil
}

// attached returns the names of the indexes of partitions that belong to an index of the partitioned table. They leave
// with it and cannot leave alone.
func attached(entries []dump.Entry) map[dump.Name]bool {
	out := map[dump.Name]bool{}
	for _, e := range entries {
		if e.Type != "INDEX ATTACH" {
			continue
		}
		if object, ok := e.Object(); ok {
			out[object.Name] = true
		}
	}
	return out
}

// isPart says whether an index or key belongs to one of the partitioned table.
func isPart(e dump.Entry, parts map[dump.Name]bool) bool {
	if e.Type != "INDEX" && e.Type != "CONSTRAINT" {
		return false
	}
	object, ok := e.Object()
	return ok && parts[dump.Name{Schema: object.On.Schema, Object: object.Name.Object}]
}

func serverSays(err error, states ...string) bool {
	var server *pgconn.PgError
	return errors.As(err, &server) && slices.Contains(states, server.Code)
}

// reach brings the clone from its first state to one that an exploration reached by cascading, one explicit statement
// at a time, dependants first.
func (a *attempt) reach(ctx context.Context, now, after []dump.Entry, gone map[dump.Key]bool) error {
	left := dump.Index(after)
	from := dump.Index(now)
	parts := attached(now)
	for _, e := range slices.Backward(now) {
		key := e.Key()
		var statements []string
		var err error
		switch {
		case isTriggerState(e) || isPart(e, parts):
			continue
		case e.Type == "RULE" && len(left[key]) == 0:
			statements, err = withoutQuery(e, now)
		case e.Type == "DEFAULT" && len(left[key]) == 0 && keepsTable(e, left):
			statements, err = e.Drop()
		case about[e.Type] || from.Equal(left, key):
			continue
		case len(left[key]) == 0 && (removable[e.Type] || gone[key] || e.Type == "SEQUENCE"):
			statements, err = e.Drop()
		case e.Type == "TABLE" && len(left[key]) == 1:
			statements, err = a.loosen(e, left[key][0])
		default:
			err = because("a change would take along an object of type " + e.Type)
		}
		if err != nil {
			return err
		}
		for _, statement := range statements {
			if e.Type == "SEQUENCE" && !gone[key] {
				continue // it leaves with the table that owns it
			}
			if _, err := a.try(ctx, statement, absent...); err != nil {
				return err
			}
		}
	}
	return nil
}

// withoutQuery takes the query from a view that still stands, as pg_dump gives it one late: what only the query needs can
// then leave before the view does. Any other rule is dropped.
func withoutQuery(e dump.Entry, entries []dump.Entry) ([]string, error) {
	object, ok := e.Object()
	if !ok || object.Kind != dump.ViewRule {
		return e.Drop()
	}
	schema, name := object.Name.Plain()
	for _, view := range dump.Index(entries)[dump.Key{Type: "VIEW", Schema: schema, Name: name}] {
		return []string{strings.Replace(view.Statements[0], "CREATE VIEW ", "CREATE OR REPLACE VIEW ", 1)}, nil
	}
	return nil, nil
}

// keepsTable says whether the table of a default is still there.
func keepsTable(e dump.Entry, left dump.Set) bool {
	object, ok := e.Object()
	schema, name := object.On.Plain()
	return ok && len(left[dump.Key{Type: "TABLE", Schema: schema, Name: name}]) > 0
}

// loosen returns the statements that free a table from what leaves: defaults, checks and computed columns. A column
// with rows of its own never leaves this way.
func (a *attempt) loosen(from, to dump.Entry) ([]string, error) {
	before, okA := from.Table()
	after, okB := to.Table()
	if !okA || !okB {
		return nil, fmt.Errorf("a table has a form that cannot be compared")
	}
	var wanted dump.Table
	if next := dump.Index(a.want)[from.Key()]; len(next) == 1 {
		wanted, _ = next[0].Table()
	}
	for _, c := range before.Columns {
		if columnIndex(after, c.Name) < 0 && c.Generated == "" && columnIndex(wanted, c.Name) >= 0 {
			return nil, because("a change would take along a column with values that is to stay")
		}
	}
	return alterTable(from, to)
}

// replaceable says whether CREATE OR REPLACE can turn one routine into another: same kind of result, same arguments.
func (a *attempt) replaceable(from, to dump.Entry) bool {
	return routineHead(from) == routineHead(to) && routineHead(from) != ""
}

// routineHead is a routine's definition up to its language: name, arguments with names and defaults, result.
func routineHead(e dump.Entry) string {
	sql := e.Statements[0]
	depth := 0
	for _, token := range dump.Tokens(sql) {
		switch {
		case token.Is("("):
			depth++
		case token.Is(")"):
			depth--
		case depth == 0 && token.Is("LANGUAGE"):
			return sql[:token.Start]
		}
	}
	return ""
}

// readers returns what must leave because it reads a column that changes its type or leaves, or uses a type that is
// made anew.
func (a *attempt) readers(ctx context.Context) (map[dump.Key]bool, error) {
	var err error
	if err = a.findRebuilt(ctx); err != nil {
		return nil, err
	}
	var drops []string
	from, to := dump.Index(a.have), dump.Index(a.want)
	for _, e := range a.have {
		key := e.Key()
		if e.Type == "TABLE" && len(from[key]) == 1 && len(to[key]) == 1 && !from.Equal(to, key) {
			drops = append(drops, columnDrops(e, to[key][0])...)
		}
	}
	out := map[dump.Key]bool{}
	after := a.rebuilt.after
	switch {
	case len(drops) > 0:
		after, err = a.explore(ctx, func(s *session) error {
			for _, drop := range drops {
				if err := s.run(ctx, drop); err != nil && !serverSays(err, append(absent, "42P16")...) {
					return fmt.Errorf("explore what reads a changed column: %w", err)
				}
			}
			return a.dropTypes(ctx, s)
		})
		if err != nil {
			return nil, err
		}
	case after == nil:
		return out, nil
	}
	left := dump.Index(after)
	for _, e := range a.have {
		if len(left[e.Key()]) == 0 && (reads[e.Type] || a.seeded(a.rebuilt) && (readsTypes[e.Type] || isExclusion(e))) {
			out[e.Key()] = true
		}
	}
	return out, nil
}

// reads are the types of entries that PostgreSQL refuses to carry along when a column changes its type. Indexes and
// constraints are not among them: the server rebuilds those itself.
var reads = map[string]bool{"VIEW": true, "MATERIALIZED VIEW": true, "FUNCTION": true, "PROCEDURE": true, "RULE": true,
	"TRIGGER": true, "POLICY": true, "AGGREGATE": true, "CAST": true, "OPERATOR": true, "PUBLICATION TABLE": true}

// readsTypes are the types of entries that PostgreSQL cannot carry along to a type that is made anew: a condition may
// hold a value of it, and both ends of a foreign key must have one type.
var readsTypes = map[string]bool{"INDEX": true, "STATISTICS": true, "FK CONSTRAINT": true}

// isExclusion says whether a constraint is an exclusion constraint, which may have a condition.
func isExclusion(e dump.Entry) bool {
	return e.Type == "CONSTRAINT" && slices.ContainsFunc(dump.Tokens(e.Statements[0]), func(t dump.Token) bool { return t.Is("EXCLUDE") })
}

func columnDrops(from, to dump.Entry) []string {
	before, okA := from.Table()
	after, okB := to.Table()
	if !okA || !okB {
		return nil
	}
	now := map[string]dump.Column{}
	for _, c := range after.Columns {
		now[c.Name] = c
	}
	var out []string
	for _, c := range before.Columns {
		if n, ok := now[c.Name]; !ok || retyped(c, n) {
			out = append(out, alter(before, "DROP COLUMN "+c.Name+" CASCADE"))
		}
	}
	return out
}

func isServerError(err error) bool {
	var server *pgconn.PgError
	return errors.As(err, &server)
}
