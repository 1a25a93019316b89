package rowsql

import (
	"context"
	"fmt"

	"ptah.run/ptah/operator/executor/rows"
)

// columnsQuery lists the columns of an ordinary or partitioned table. A domain counts as what it is made of.
const columnsQuery = `SELECT a.attname, CASE WHEN t.typname IN ('int2', 'int4', 'int8') THEN 'integer'
	WHEN t.typname = 'numeric' THEN 'decimal' WHEN t.typname = 'bytea' THEN 'binary' WHEN t.typname IN ('json', 'jsonb') THEN 'json'
	WHEN t.typname = 'bool' THEN 'boolean' WHEN t.typname IN ('money', '_money', 'oid', 'xid', 'xid8', 'cid', 'tid', 'pg_lsn', 'regclass', 'regproc',
		'regprocedure', 'regoper', 'regoperator', 'regtype', 'regrole', 'regnamespace', 'regconfig', 'regdictionary', 'regcollation')
	THEN 'unsupported' ELSE 'other' END,
	a.attgenerated <> '', a.attidentity = 'a', a.attnotnull
FROM pg_catalog.pg_attribute a JOIN pg_catalog.pg_class c ON c.oid = a.attrelid JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
JOIN LATERAL (
	WITH RECURSIVE base AS (SELECT y.oid, y.typtype, y.typbasetype, y.typname, y.typnamespace FROM pg_catalog.pg_type y WHERE y.oid = a.atttypid
		UNION ALL SELECT y.oid, y.typtype, y.typbasetype, y.typname, y.typnamespace FROM base b JOIN pg_catalog.pg_type y ON y.oid = b.typbasetype WHERE b.typtype = 'd')
	SELECT CASE WHEN typnamespace = 'pg_catalog'::pg_catalog.regnamespace THEN typname ELSE '' END AS typname FROM base WHERE typtype <> 'd') t ON true
WHERE c.relkind IN ('r', 'p') AND a.attnum > 0 AND NOT a.attisdropped AND n.nspname = %s AND c.relname = %s
ORDER BY a.attnum`

// keysQuery lists the columns of the unique keys over whole columns, the primary key first.
const keysQuery = `SELECT i.indexrelid::text, a.attname, i.indisprimary
FROM pg_catalog.pg_index i JOIN pg_catalog.pg_class c ON c.oid = i.indrelid JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
CROSS JOIN LATERAL pg_catalog.unnest(i.indkey::int2[]) WITH ORDINALITY k(attnum, place)
JOIN pg_catalog.pg_attribute a ON a.attrelid = c.oid AND a.attnum = k.attnum
WHERE i.indisunique AND i.indisvalid AND i.indpred IS NULL AND i.indexprs IS NULL AND k.place <= i.indnkeyatts
AND NOT EXISTS (SELECT 1 FROM pg_catalog.unnest(i.indkey::int2[]) WITH ORDINALITY o(attnum, place)
	JOIN pg_catalog.pg_attribute b ON b.attrelid = c.oid AND b.attnum = o.attnum WHERE o.place <= i.indnkeyatts AND NOT b.attnotnull)
AND n.nspname = %s AND c.relname = %s
ORDER BY NOT i.indisprimary, i.indexrelid, k.place`

const foreignQuery = `SELECT o.conname, n.nspname, c.relname, pn.nspname, p.relname, o.confdeltype NOT IN ('a', 'r'), o.confupdtype NOT IN ('a', 'r'), a.attname
FROM pg_catalog.pg_constraint o JOIN pg_catalog.pg_class c ON c.oid = o.conrelid JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
JOIN pg_catalog.pg_class p ON p.oid = o.confrelid JOIN pg_catalog.pg_namespace pn ON pn.oid = p.relnamespace
CROSS JOIN LATERAL pg_catalog.unnest(o.confkey) WITH ORDINALITY k(attnum, place)
JOIN pg_catalog.pg_attribute a ON a.attrelid = o.confrelid AND a.attnum = k.attnum
WHERE o.contype = 'f' AND o.conparentid = 0
ORDER BY n.nspname, c.relname, o.conname, k.place`

var classes = map[string]rows.Class{"integer": rows.Integer, "decimal": rows.Decimal, "binary": rows.BinaryData, "json": rows.JSON,
	"boolean": rows.Boolean, "unsupported": rows.Unsupported, "other": rows.Other}

// Table reads a table; nil where there is none.
func (Dialect) Table(ctx context.Context, s rows.Session, schema, name string) (*rows.Table, error) {
	found, err := s.Query(ctx, fmt.Sprintf(columnsQuery, Text(schema), Text(name)))
	if err != nil || len(found) == 0 {
		return nil, err
	}
	t := &rows.Table{Schema: schema, Name: name}
	for _, row := range found {
		t.Columns = append(t.Columns, rows.Column{Name: *row[0], Class: classes[*row[1]], Generated: yes(row[2]), Always: yes(row[3]), NotNull: yes(row[4])})
	}
	keys, err := s.Query(ctx, fmt.Sprintf(keysQuery, Text(schema), Text(name)))
	if err != nil {
		return nil, err
	}
	last := ""
	for _, row := range keys {
		switch {
		case yes(row[2]):
			t.Primary = append(t.Primary, *row[1])
		case *row[0] != last:
			t.Unique, last = append(t.Unique, []string{*row[1]}), *row[0]
		default:
			t.Unique[len(t.Unique)-1] = append(t.Unique[len(t.Unique)-1], *row[1])
		}
	}
	return t, nil
}

func yes(value *string) bool { return value != nil && *value == "t" }

// Foreign reads every foreign key of the database.
func (Dialect) Foreign(ctx context.Context, s rows.Session) ([]rows.Foreign, error) {
	found, err := s.Query(ctx, foreignQuery)
	if err != nil {
		return nil, err
	}
	var out []rows.Foreign
	for _, row := range found {
		f := rows.Foreign{Name: *row[0], Schema: *row[1], Table: *row[2], ParentSchema: *row[3], Parent: *row[4], OnDelete: yes(row[5]), OnUpdate: yes(row[6])}
		if n := len(out); n > 0 && out[n-1].Name == f.Name && out[n-1].Schema == f.Schema && out[n-1].Table == f.Table {
			out[n-1].ParentColumns = append(out[n-1].ParentColumns, *row[7])
			continue
		}
		f.ParentColumns = []string{*row[7]}
		out = append(out, f)
	}
	return out, nil
}
