package planner

import (
	"context"
	"errors"
	"fmt"
	"slices"
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
	steps := []func(context.Context) error{a.clear, a.tables, a.create, a.removeRest, a.repair, a.check}
	if a.how == byEntries {
		steps[1] = func(context.Context) error { return nil } // create alters changed tables where it meets them
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
	"TEXT SEARCH CONFIGURATION": true, "TEXT SEARCH DICTIONARY": true,
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
		case !removable[e.Type]:
		case e.Type == "FUNCTION" || e.Type == "PROCEDURE":
			if changed && !a.replaceable(e, to[key][0]) {
				gone[key] = true
			}
		case changed || removed && !late[e.Type]:
			gone[key] = true
		}
	}
	readers, err := a.readers(ctx)
	if err != nil {
		return err
	}
	for key := range readers {
		gone[key] = true
	}
	if len(gone) == 0 {
		return nil
	}
	after, err := a.explore(ctx, func(s *session) error { return dropCascading(ctx, s, a.have, gone) })
	if err != nil {
		return err
	}
	return a.reach(ctx, after, gone)
}

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
	if err := change(s); err != nil {
		return nil, err
	}
	return s.dump(ctx)
}

// dropCascading drops entries with everything that depends on them. It runs on an exploration copy only; a plan
// never cascades.
func dropCascading(ctx context.Context, s *session, entries []dump.Entry, gone map[dump.Key]bool) error {
	for _, e := range slices.Backward(entries) {
		if !gone[e.Key()] {
			continue
		}
		drops, err := e.Drop()
		if err != nil {
			return err
		}
		for _, drop := range drops {
			if e.Type != "TABLE ATTACH" && e.Type != "ROW SECURITY" {
				drop += " CASCADE"
			}
			if err := s.run(ctx, drop); err != nil && !serverSays(err, absent...) {
				return fmt.Errorf("explore what depends on a change: %w", err)
			}
		}
	}
	return nil
}

func serverSays(err error, states ...string) bool {
	var server *pgconn.PgError
	return errors.As(err, &server) && slices.Contains(states, server.Code)
}

// reach brings the clone from its first state to one that an exploration reached by cascading, one explicit statement
// at a time, dependants first.
func (a *attempt) reach(ctx context.Context, after []dump.Entry, gone map[dump.Key]bool) error {
	left := dump.Index(after)
	from := dump.Index(a.have)
	for _, e := range slices.Backward(a.have) {
		key := e.Key()
		var statements []string
		var err error
		switch {
		case about[e.Type] || from.Equal(left, key):
			continue
		case len(left[key]) == 0 && (removable[e.Type] || gone[key] || e.Type == "SEQUENCE"):
			statements, err = e.Drop()
		case e.Type == "TABLE" && len(left[key]) == 1:
			statements, err = a.loosen(e, left[key][0])
		default:
			err = fmt.Errorf("a change would take along an object of type %s", e.Type)
		}
		if err != nil {
			return err
		}
		for _, statement := range statements {
			if e.Type == "SEQUENCE" {
				continue // it leaves with the table that owns it
			}
			if _, err := a.try(ctx, statement, absent...); err != nil {
				return err
			}
		}
	}
	return nil
}

// loosen returns the statements that free a table from what leaves: defaults, checks and computed columns. A column
// with rows of its own never leaves this way.
func (a *attempt) loosen(from, to dump.Entry) ([]string, error) {
	before, okA := from.Table()
	after, okB := to.Table()
	if !okA || !okB {
		return nil, fmt.Errorf("a table has a form that cannot be compared")
	}
	left := map[string]bool{}
	for _, c := range after.Columns {
		left[c.Name] = true
	}
	for _, c := range before.Columns {
		if !left[c.Name] && c.Generated == "" {
			return nil, fmt.Errorf("a change would take along a column with rows")
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

// readers returns what must leave because it reads a column that changes its type or leaves, or uses an enum type
// that is made anew.
func (a *attempt) readers(ctx context.Context) (map[dump.Key]bool, error) {
	var drops []string
	retypes := false // an enum is made anew: an index may hold one of its labels in its condition
	from, to := dump.Index(a.have), dump.Index(a.want)
	for _, e := range a.have {
		key := e.Key()
		if len(from[key]) != 1 || len(to[key]) != 1 || from.Equal(to, key) {
			continue
		}
		switch e.Type {
		case "TABLE":
			drops = append(drops, columnDrops(e, to[key][0])...)
		case "TYPE":
			if object, ok := e.Object(); ok && rebuiltEnum(e, to[key][0]) {
				drops = append(drops, "DROP TYPE "+object.Name.SQL()+" CASCADE")
				retypes = true
			}
		}
	}
	out := map[dump.Key]bool{}
	if len(drops) == 0 {
		return out, nil
	}
	after, err := a.explore(ctx, func(s *session) error {
		for _, drop := range drops {
			if err := s.run(ctx, drop); err != nil && !serverSays(err, append(absent, "42P16")...) {
				return fmt.Errorf("explore what reads a changed column: %w", err)
			}
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	left := dump.Index(after)
	for _, e := range a.have {
		if len(left[e.Key()]) == 0 && (reads[e.Type] || retypes && e.Type == "INDEX") {
			out[e.Key()] = true
		}
	}
	return out, nil
}

// reads are the types of entries that PostgreSQL refuses to carry along when a column changes its type. Indexes and
// constraints are not among them: the server rebuilds those itself.
var reads = map[string]bool{"VIEW": true, "MATERIALIZED VIEW": true, "FUNCTION": true, "PROCEDURE": true, "RULE": true,
	"TRIGGER": true, "POLICY": true}

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
