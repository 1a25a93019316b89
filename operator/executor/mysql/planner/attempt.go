package planner

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/go-sql-driver/mysql"

	"ptah.run/ptah/operator/executor/mysql/dump"
	"ptah.run/ptah/operator/executor/mysql/sqltext"
	"ptah.run/ptah/operator/executor/mysql/target"
)

// strategy is how changed tables are planned for; everything else is planned the same way.
type strategy int

const (
	// byLibrary asks Vitess, which knows what one ALTER TABLE can do and how partitions rotate.
	byLibrary strategy = iota
	// byEntries compares the lines that the server prints, which covers what Vitess's grammar does not.
	byEntries
)

// incompleteError says that a plan does not lead to the desired schema.
type incompleteError struct {
	now  []dump.Entry
	left []dump.Difference
}

func (e *incompleteError) Error() string {
	first := e.left[0]
	return fmt.Sprintf("%d objects would still differ, the first is %s %s", len(e.left), first.Key.Kind, first.Key.Name)
}

// unplannedError says that a strategy has no statements for a change.
type unplannedError struct{ err error }

func (e *unplannedError) Error() string { return e.err.Error() }
func (e *unplannedError) Unwrap() error { return e.err }

// attempt computes one plan on a clone of the target. Every statement has run there before it is recorded.
type attempt struct {
	work       *target.Session
	have, want []dump.Entry
	statements []string
	settings   *sessionSettings
	// before and after are the tables taken apart, by name.
	before, after map[string]*dump.Table
}

// compute returns the plan's statements. An error says that this strategy has no complete plan.
func (a *attempt) compute(ctx context.Context, how strategy) ([]string, error) {
	run := func(sql string) error { return a.run(ctx, sql) }
	a.settings = &sessionSettings{run: run}
	var err error
	if a.before, err = tables(a.have); err != nil {
		return nil, &unplannedError{err}
	}
	if a.after, err = tables(a.want); err != nil {
		return nil, &unplannedError{err}
	}
	gone, made := a.programs()
	for _, e := range gone {
		if err := run(e.Drop()); err != nil {
			return nil, err
		}
	}
	if err := a.tables(ctx, how); err != nil {
		return nil, err
	}
	if err := createAll(made, a.settings, run); err != nil {
		return nil, fmt.Errorf("make an object on the clone: %w", err)
	}
	return a.statements, nil
}

// run executes a statement on the clone and records it.
func (a *attempt) run(ctx context.Context, sql string) error {
	if _, err := a.work.ExecContext(ctx, sql); err != nil {
		var server *mysql.MySQLError
		if errors.As(err, &server) && !broken(err) {
			err = &unplannedError{err}
		}
		return fmt.Errorf("run a statement on the clone: %w", err)
	}
	a.statements = append(a.statements, sql)
	return nil
}

func tables(entries []dump.Entry) (map[string]*dump.Table, error) {
	out := map[string]*dump.Table{}
	for _, e := range entries {
		if e.Kind != dump.KindTable {
			continue
		}
		t, err := dump.ParseTable(e.SQL)
		if err != nil {
			return nil, err
		}
		out[e.Name] = t
	}
	return out, nil
}

// programs returns what leaves before the tables change, dependants first, and what is made after they did: views,
// routines, triggers and events that are new or changed. A changed view is replaced and need not leave.
func (a *attempt) programs() (gone, made []dump.Entry) {
	from, to := dump.Index(a.have), dump.Index(a.want)
	rebuilt := a.rebuiltTriggers()
	for _, e := range slices.Backward(a.have) {
		now, stays := to[e.Key()]
		switch e.Kind {
		case dump.KindTable:
		case dump.KindTrigger:
			if rebuilt[e.Name] || !stays {
				gone = append(gone, e)
			}
		case dump.KindView:
			if !stays {
				gone = append(gone, e)
			}
		default:
			if !stays || now != e {
				gone = append(gone, e)
			}
		}
	}
	for _, e := range a.want {
		old, was := from[e.Key()]
		switch {
		case e.Kind == dump.KindTable, e.Kind == dump.KindTrigger && was && !rebuilt[e.Name], e.Kind != dump.KindTrigger && was && old == e:
		case e.Kind == dump.KindView && was:
			e.SQL = "CREATE OR REPLACE" + strings.TrimPrefix(e.SQL, "CREATE")
			made = append(made, e)
		default:
			made = append(made, e)
		}
	}
	return gone, made
}

// rebuiltTriggers returns the names of triggers that are made anew: those that differ, and those that would otherwise
// run in another order.
func (a *attempt) rebuiltTriggers() map[string]bool {
	to := dump.Index(a.want)
	kept, wanted := map[string][]string{}, map[string][]string{}
	out := map[string]bool{}
	for _, e := range a.have {
		if e.Kind != dump.KindTrigger {
			continue
		}
		now, stays := to[e.Key()]
		now.Order = e.Order
		if stays && now == e {
			kept[e.Group()] = append(kept[e.Group()], e.Name)
			continue
		}
		out[e.Name] = true
	}
	for _, e := range a.want {
		if e.Kind == dump.KindTrigger {
			wanted[e.Group()] = append(wanted[e.Group()], e.Name)
		}
	}
	for group, names := range kept {
		if !slices.Equal(names, wanted[group][:min(len(names), len(wanted[group]))]) {
			for _, name := range append(names, wanted[group]...) {
				out[name] = true
			}
		}
	}
	return out
}

// tables changes the tables: foreign keys that stand in the way leave first and come back last.
func (a *attempt) tables(ctx context.Context, how strategy) error {
	drops, adds := a.foreignKeys()
	for _, sql := range drops {
		if err := a.run(ctx, sql); err != nil {
			return err
		}
	}
	changes := a.pins(adds)
	for _, e := range a.have {
		if e.Kind == dump.KindTable && a.after[e.Name] == nil {
			changes = append(changes, e.Drop())
		}
	}
	for _, e := range a.want {
		if e.Kind != dump.KindTable {
			continue
		}
		old, now := a.before[e.Name], a.after[e.Name]
		if old == nil {
			changes = append(changes, now.Bare())
			continue
		}
		if old.Bare() == now.Bare() {
			continue
		}
		alter, err := alterTable(how, old, now)
		if err != nil {
			return &unplannedError{err}
		}
		changes = append(changes, alter...)
	}
	if err := a.keepZeros(); err != nil {
		return err
	}
	if err := a.runAny(ctx, changes); err != nil {
		return err
	}
	for _, add := range adds {
		if err := a.run(ctx, add.sql); err != nil {
			return err
		}
	}
	return nil
}

// runAny runs statements in the order given; one that is refused is tried again behind the rest, as long as anything
// succeeds: the name of a constraint that moves from one table to another must first be free.
func (a *attempt) runAny(ctx context.Context, todo []string) error {
	for len(todo) > 0 {
		var rest []string
		var last error
		for _, sql := range todo {
			if err := a.run(ctx, sql); err != nil {
				var unplanned *unplannedError
				if !errors.As(err, &unplanned) {
					return err
				}
				last = err
				rest = append(rest, sql)
			}
		}
		if len(rest) == len(todo) {
			return last
		}
		todo = rest
	}
	return nil
}

func alterTable(how strategy, from, to *dump.Table) ([]string, error) {
	if how == byLibrary {
		return libraryAlter(from, to)
	}
	return entryAlter(from, to)
}

// foreignKeys returns the statements that take foreign keys away and those that add them: the ones that change, and the
// ones that the server would not carry through a change of what they stand on.
func (a *attempt) foreignKeys() (drops []string, adds []addition) {
	touched := a.touched()
	again := map[string]bool{}
	for _, e := range a.have {
		if e.Kind != dump.KindTable {
			continue
		}
		var now map[string]dump.Item
		if t := a.after[e.Name]; t != nil {
			now = dump.ByName(t.Foreign)
		}
		for _, key := range a.before[e.Name].Foreign {
			same := now[strings.ToLower(key.Name)].SQL == key.SQL
			if same && !touched.hits(e.Name, key) {
				again[e.Name+"\x00"+strings.ToLower(key.Name)] = true
				continue
			}
			drops = append(drops, "ALTER TABLE "+sqltext.Quote(e.Name)+" DROP FOREIGN KEY "+sqltext.Quote(key.Name))
		}
	}
	for _, e := range a.want {
		if e.Kind != dump.KindTable {
			continue
		}
		for _, key := range a.after[e.Name].Foreign {
			if !again[e.Name+"\x00"+strings.ToLower(key.Name)] {
				adds = append(adds, addition{e.Name, "ALTER TABLE " + sqltext.Quote(e.Name) + " ADD " + key.SQL})
			}
		}
	}
	return drops, adds
}

// touches are columns and whole tables whose change a foreign key may not survive.
type touches map[string]bool

func (t touches) hits(table string, key dump.Item) bool {
	if t[table] || t[key.Parent] {
		return true
	}
	for _, column := range key.Columns {
		if t[table+"\x00"+strings.ToLower(column)] {
			return true
		}
	}
	for _, column := range key.ParentColumns {
		if t[key.Parent+"\x00"+strings.ToLower(column)] {
			return true
		}
	}
	return false
}

func (a *attempt) touched() touches {
	out := touches{}
	for name, old := range a.before {
		now := a.after[name]
		if now == nil {
			out[name] = true
			continue
		}
		columns, keys := dump.ByName(now.Columns), dump.ByName(now.Keys)
		for _, c := range old.Columns {
			if columns[strings.ToLower(c.Name)].SQL != c.SQL {
				out[name+"\x00"+strings.ToLower(c.Name)] = true
			}
		}
		for _, k := range old.Keys {
			out[name] = out[name] || keys[strings.ToLower(k.Name)].SQL != k.SQL
		}
		out[name] = out[name] || !sameStorage(old.Options, now.Options) || old.Partition != now.Partition
	}
	return out
}

// aside are table options that say nothing about the columns that a foreign key compares.
var aside = map[string]bool{"COMMENT": true, "STATS_PERSISTENT": true, "STATS_AUTO_RECALC": true, "STATS_SAMPLE_PAGES": true, "AUTOEXTEND_SIZE": true}

// sameStorage says whether two tables have the same options but for those that no foreign key feels.
func sameStorage(from, to string) bool {
	if from == to {
		return true
	}
	a, _, errA := readOptions(from)
	b, _, errB := readOptions(to)
	if errA != nil || errB != nil {
		return false
	}
	for name := range aside {
		delete(a, name)
		delete(b, name)
	}
	return maps.Equal(a, b)
}
