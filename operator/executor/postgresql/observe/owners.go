package observe

import (
	"context"

	"github.com/jackc/pgx/v5"

	"ptah.run/ptah/operator/executor/postgresql/dump"
	"ptah.run/ptah/operator/executor/postgresql/target"
)

// foreignOwners counts the objects that belong to another role than the one that the session acts as. What belongs to
// an extension, to a table (its indexes, row type, owned sequences) or to the database itself is not counted.
//
// A declared schema is loaded by one role, which owns all of it, so that any other owner is a difference. It is counted
// and not planned: pg_dump reads without owners, and giving an object away is not a role's own decision.
func foreignOwners(ctx context.Context, tx pgx.Tx, patterns []dump.Pattern) (int, error) {
	rows, err := tx.Query(ctx, `WITH owned AS (
		SELECT 'pg_catalog.pg_class'::pg_catalog.regclass AS class, c.oid, c.relowner AS owner, n.nspname::text AS schema, c.relname::text AS name
			FROM pg_catalog.pg_class c JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
			WHERE c.relkind IN ('r', 'p', 'v', 'm', 'f', 'S')
		UNION ALL SELECT 'pg_catalog.pg_proc'::pg_catalog.regclass, p.oid, p.proowner, n.nspname, p.proname
			FROM pg_catalog.pg_proc p JOIN pg_catalog.pg_namespace n ON n.oid = p.pronamespace
		UNION ALL SELECT 'pg_catalog.pg_type'::pg_catalog.regclass, t.oid, t.typowner, n.nspname, t.typname
			FROM pg_catalog.pg_type t JOIN pg_catalog.pg_namespace n ON n.oid = t.typnamespace
			WHERE t.typtype IN ('d', 'e', 'r') OR t.typtype = 'c'
				AND EXISTS (SELECT 1 FROM pg_catalog.pg_class c WHERE c.oid = t.typrelid AND c.relkind = 'c')
		UNION ALL SELECT 'pg_catalog.pg_namespace'::pg_catalog.regclass, n.oid, n.nspowner, n.nspname, n.nspname
			FROM pg_catalog.pg_namespace n WHERE n.nspname <> 'public')
		SELECT o.schema, o.name, o.oid::text FROM owned o
		WHERE o.schema !~ '^pg_' AND o.schema <> 'information_schema'
		AND o.owner <> (SELECT r.oid FROM pg_catalog.pg_roles r WHERE r.rolname = current_user)
		AND NOT EXISTS (SELECT 1 FROM pg_catalog.pg_depend d WHERE d.classid = o.class AND d.objid = o.oid AND d.objsubid = 0
			AND (d.deptype = 'e' OR d.deptype IN ('a', 'i') AND d.refclassid = 'pg_catalog.pg_class'::pg_catalog.regclass AND d.refobjsubid > 0
				OR d.deptype = 'i' AND d.refclassid = 'pg_catalog.pg_type'::pg_catalog.regclass))`)
	if err != nil {
		return 0, target.Statement(ctx, "reading the owners", err)
	}
	return countNames(ctx, rows, patterns)
}

// unenforced counts the foreign and deferrable keys that do not hold for what ordinary sessions write.
func unenforced(ctx context.Context, tx pgx.Tx, patterns []dump.Pattern) (int, error) {
	rows, err := tx.Query(ctx, `SELECT DISTINCT n.nspname::text, c.relname::text, k.oid::text
		FROM pg_catalog.pg_trigger t JOIN pg_catalog.pg_constraint k ON k.oid = t.tgconstraint AND k.contype IN ('f', 'p', 'u', 'x')
		JOIN pg_catalog.pg_class c ON c.oid = k.conrelid JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
		WHERE t.tgisinternal AND t.tgenabled IN ('D', 'R')`)
	if err != nil {
		return 0, target.Statement(ctx, "reading the triggers", err)
	}
	return countNames(ctx, rows, patterns)
}

// countNames counts rows of schema, name and a third column, but for excluded ones.
func countNames(ctx context.Context, rows pgx.Rows, patterns []dump.Pattern) (int, error) {
	type object struct{ Schema, Name, Key string }
	all, err := pgx.CollectRows(rows, pgx.RowToStructByPos[object])
	if err != nil {
		return 0, target.Statement(ctx, "reading the catalog", err)
	}
	count := 0
	for _, o := range all {
		if !dump.Match(patterns, o.Schema, o.Name) {
			count++
		}
	}
	return count, nil
}
