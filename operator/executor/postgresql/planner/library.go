package planner

import (
	"context"
	"crypto/sha256"
	"database/sql"
	"fmt"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/stdlib"
	"github.com/stripe/pg-schema-diff/pkg/diff"
	"github.com/stripe/pg-schema-diff/pkg/log"

	"ptah.run/ptah/operator/executor/postgresql/dump"
)

// tables changes the tables that both sides have with the statements of pg-schema-diff. The library's sort is
// quadratic in the number of objects, so it sees only the changed tables of both sides with what they use, or, where
// that cannot be made by itself, copies of both sides from which everything was dropped that is the same in both and that
// nothing changed depends on.
func (a *attempt) tables(ctx context.Context) error {
	now, err := a.now(ctx)
	if err != nil {
		return err
	}
	if !changesTables(now, a.want) {
		return nil
	}
	if err := a.makeForTables(ctx, now); err != nil {
		return err
	}
	if now, err = a.now(ctx); err != nil {
		return err
	}
	statements, err := a.askLibrary(ctx, now)
	if err != nil {
		return err
	}
	for _, statement := range statements {
		if a.losesRows(statement) {
			return because("a table that is to stay would be made anew without its rows")
		}
		if err := a.run(ctx, statement); err != nil {
			return err
		}
	}
	return nil
}

// losesRows says whether a statement drops a table that is desired: the library makes a table anew where its partitioning
// differs.
func (a *attempt) losesRows(statement string) bool {
	name, ok := dump.DroppedTable(statement)
	if !ok {
		return false
	}
	schema, table := name.Plain()
	return slices.ContainsFunc(a.want, func(e dump.Entry) bool { return e.Type == "TABLE" && e.Schema == schema && e.Name == table })
}

// tableParts are the types of entries that are part of a table's own definition.
var tableParts = map[string]bool{"TABLE": true, "DEFAULT": true, "SEQUENCE": true, "SEQUENCE OWNED BY": true}

// changesTables says whether a table that both sides have differs.
func changesTables(from, to []dump.Entry) bool {
	before, after := relations(from), relations(to)
	for _, d := range dump.Compare(from, to) {
		if !tableParts[d.Key.Type] {
			continue
		}
		for _, e := range append(slices.Clone(d.From), d.To...) {
			if object, ok := e.Object(); ok && before[object.Relation().SQL()] && after[object.Relation().SQL()] {
				return true
			}
		}
	}
	return false
}

func relations(entries []dump.Entry) map[string]bool {
	out := map[string]bool{}
	for _, e := range entries {
		if object, ok := e.Object(); ok && e.Type == "TABLE" {
			out[object.Name.SQL()] = true
		}
	}
	return out
}

// forTables are the types that a changed table may need to exist first.
var forTables = map[string]bool{"SCHEMA": true, "EXTENSION": true, "TYPE": true, "DOMAIN": true, "COLLATION": true, "FUNCTION": true}

// makeForTables makes what changed tables may use, as far as it can be made now; a routine that needs a changed table
// is made later, by create.
func (a *attempt) makeForTables(ctx context.Context, now []dump.Entry) error {
	have, want := dump.Index(now), dump.Index(a.want)
	for _, e := range a.want {
		key := e.Key()
		if len(have[key]) == 1 {
			if _, _, differ := sequenceKinds(have[key][0], e); differ {
				if err := a.change(ctx, have[key][0], e); err != nil {
					return err
				}
				continue
			}
		}
		switch {
		case !forTables[e.Type] || have.Equal(want, key):
		case len(have[key]) == 0:
			if len(e.Statements) == 0 {
				continue
			}
			if _, err := a.try(ctx, e.Statements[0], append(append([]string{"42P13"}, absent...), present...)...); err != nil {
				return err
			}
		case e.Type == "TYPE" || e.Type == "DOMAIN":
			if err := a.change(ctx, have[key][0], e); err != nil {
				return err
			}
		}
	}
	return nil
}

// askLibrary returns the library's statements for what of both sides it needs to see.
func (a *attempt) askLibrary(ctx context.Context, now []dump.Entry) ([]string, error) {
	if a.how == byLibrary {
		from, to, err := a.smallPair(ctx, now)
		if err != nil {
			return nil, err
		}
		if from != nil {
			defer from.close(ctx)
			defer to.close(ctx)
			a.onSmall.Store(true)
			return generate(ctx, from, to)
		}
	}
	return a.askAboutCopies(ctx, now)
}

// askAboutCopies returns the library's statements for pruned copies of both sides.
func (a *attempt) askAboutCopies(ctx context.Context, now []dump.Entry) ([]string, error) {
	fromName, toName := a.prefix+"from", a.prefix+"to"
	a.work.close(ctx) // a database with sessions cannot be copied
	if err := a.server.Copy(ctx, a.prefix+"work", fromName); err != nil {
		return nil, err
	}
	work, err := open(ctx, a.server, a.prefix+"work")
	if err != nil {
		return nil, err
	}
	*a.work = *work
	if err := a.work.prepare(ctx); err != nil {
		return nil, err
	}
	if err := a.server.Copy(ctx, a.wantDB, toName); err != nil {
		return nil, err
	}
	from, err := open(ctx, a.server, fromName)
	if err != nil {
		return nil, err
	}
	defer from.close(ctx)
	to, err := open(ctx, a.server, toName)
	if err != nil {
		return nil, err
	}
	defer to.close(ctx)
	if err := a.prune(ctx, from, to, now); err != nil {
		return nil, fmt.Errorf("prune the copies for the table planner: %w", err)
	}
	return generate(ctx, from, to)
}

// prune drops from both copies what need not be planned by the library: whatever is not a table, and every table that
// is the same on both sides. What something else depends on stays, on both sides alike.
func (a *attempt) prune(ctx context.Context, from, to *session, now []dump.Entry) error {
	have, want := dump.Index(now), dump.Index(a.want)
	changed := changedTables(now, a.want)
	drop := func(e dump.Entry) bool {
		object, ok := e.Object()
		if !ok {
			return false
		}
		switch e.Type {
		case "VIEW", "MATERIALIZED VIEW", "FUNCTION", "PROCEDURE", "AGGREGATE", "STATISTICS", "RULE":
			return true
		case "TRIGGER", "POLICY":
			return changed[object.On.SQL()]
		case "FK CONSTRAINT":
			return !changed[object.On.SQL()] || have.Equal(want, e.Key())
		case "TABLE":
			return !changed[object.Name.SQL()]
		}
		return false
	}
	both, fromOnly, toOnly := []*session{from, to}, []*session{from}, []*session{to}
	batch := &dropBatch{}
	for _, e := range slices.Backward(now) {
		if !drop(e) {
			continue
		}
		sides := both
		if len(want[e.Key()]) == 0 {
			sides = fromOnly
		}
		if err := batch.add(ctx, e, sides); err != nil {
			return err
		}
	}
	for _, e := range slices.Backward(a.want) {
		if (drop(e) || keys[e.Type]) && len(have[e.Key()]) == 0 {
			if err := batch.add(ctx, e, toOnly); err != nil {
				return err
			}
		}
	}
	return batch.flush(ctx)
}

// keys are the types that create makes from their own definition once the columns stand; the library would make a plain
// index of an exclusion or a deferrable key.
var keys = map[string]bool{"INDEX": true, "CONSTRAINT": true, "FK CONSTRAINT": true, "CHECK CONSTRAINT": true}

// changedTables are the tables of which some part differs, as SQL.
func changedTables(from, to []dump.Entry) map[string]bool {
	out := map[string]bool{}
	for _, d := range dump.Compare(from, to) {
		if d.Key.Type == "COMMENT" || d.Key.Type == "ACL" {
			continue
		}
		for _, e := range append(slices.Clone(d.From), d.To...) {
			if object, ok := e.Object(); ok {
				out[object.Relation().SQL()] = true
			}
		}
	}
	return out
}

// generate asks pg-schema-diff. It reads with search_path=pg_catalog, so that every name comes out qualified, and in
// the extended protocol: in the simple one the library loses every function without an error.
func generate(ctx context.Context, from, to *session) ([]string, error) {
	a, err := database(from)
	if err != nil {
		return nil, err
	}
	defer func() { _ = a.Close() }()
	b, err := database(to)
	if err != nil {
		return nil, err
	}
	defer func() { _ = b.Close() }()
	plan, err := diff.Generate(ctx, diff.DBSchemaSource(a), diff.DBSchemaSource(b), diff.WithDoNotValidatePlan(),
		diff.WithLogger(silent{}), diff.WithRandReader(&constantReader{}), diff.WithNoConcurrentIndexOps())
	if err != nil {
		return nil, fmt.Errorf("plan the tables: %w", err)
	}
	out := make([]string, 0, len(plan.Statements))
	for _, s := range plan.Statements {
		out = append(out, strings.TrimSpace(s.DDL))
	}
	return out, nil
}

// libraryConnections bounds how many sessions the library opens per side; it reads the catalog in parallel.
const libraryConnections = 4

func database(s *session) (*sql.DB, error) {
	config, err := s.server.AdminConfig(s.name)
	if err != nil {
		return nil, err
	}
	config.RuntimeParams["search_path"] = "pg_catalog"
	config.DefaultQueryExecMode = pgx.QueryExecModeDescribeExec
	db := stdlib.OpenDB(*config)
	db.SetMaxOpenConns(libraryConnections)
	return db, nil
}

// constantReader yields one fixed sequence of bytes, from which the library makes the names of its helper constraints:
// a plan computed twice is the same.
type constantReader struct{ block [sha256.Size]byte }

func (r *constantReader) Read(p []byte) (int, error) {
	n := 0
	for n < len(p) {
		r.block = sha256.Sum256(r.block[:])
		n += copy(p[n:], r.block[:])
	}
	return n, nil
}

// silent keeps the library from writing object names to the log.
type silent struct{}

var _ log.Logger = silent{}

// Errorf says nothing: an error comes back as one.
func (silent) Errorf(string, ...any) {}

// Warnf says nothing.
func (silent) Warnf(string, ...any) {}

// Infof says nothing.
func (silent) Infof(string, ...any) {}

// Debugf says nothing.
func (silent) Debugf(string, ...any) {}
