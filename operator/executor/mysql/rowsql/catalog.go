package rowsql

import (
	"context"
	"fmt"
	"strings"

	"ptah.run/ptah/operator/executor/rows"
)

const columnsQuery = `SELECT c.COLUMN_NAME, c.DATA_TYPE, c.GENERATION_EXPRESSION <> '', c.IS_NULLABLE = 'NO'
FROM information_schema.COLUMNS c JOIN information_schema.TABLES t USING (TABLE_SCHEMA, TABLE_NAME)
WHERE t.TABLE_TYPE = 'BASE TABLE' AND c.TABLE_SCHEMA = DATABASE() AND c.TABLE_NAME = %s ORDER BY c.ORDINAL_POSITION`

// keysQuery lists the unique keys; a part that is an expression, a prefix or may be null makes a key unusable.
const keysQuery = `SELECT INDEX_NAME, COLUMN_NAME, COLUMN_NAME IS NULL OR SUB_PART IS NOT NULL OR NULLABLE = 'YES'
FROM information_schema.STATISTICS WHERE NON_UNIQUE = 0 AND TABLE_SCHEMA = DATABASE() AND TABLE_NAME = %s ORDER BY INDEX_NAME, SEQ_IN_INDEX`

const foreignQuery = `SELECT k.CONSTRAINT_NAME, k.TABLE_NAME, k.REFERENCED_TABLE_NAME, k.REFERENCED_COLUMN_NAME,
	r.DELETE_RULE NOT IN ('NO ACTION', 'RESTRICT'), r.UPDATE_RULE NOT IN ('NO ACTION', 'RESTRICT')
FROM information_schema.KEY_COLUMN_USAGE k JOIN information_schema.REFERENTIAL_CONSTRAINTS r
	ON r.CONSTRAINT_SCHEMA = k.CONSTRAINT_SCHEMA AND r.CONSTRAINT_NAME = k.CONSTRAINT_NAME AND r.TABLE_NAME = k.TABLE_NAME
WHERE k.TABLE_SCHEMA = DATABASE() AND k.REFERENCED_TABLE_SCHEMA = DATABASE() ORDER BY k.TABLE_NAME, k.CONSTRAINT_NAME, k.ORDINAL_POSITION`

var classes = map[string]rows.Class{
	"tinyint": rows.Integer, "smallint": rows.Integer, "mediumint": rows.Integer, "int": rows.Integer, "bigint": rows.Integer,
	"year": rows.Integer, "bit": rows.Integer, "decimal": rows.Decimal, "float": rows.Float, "double": rows.Float, "json": rows.JSON,
	"binary": rows.BinaryData, "varbinary": rows.BinaryData, "tinyblob": rows.BinaryData, "blob": rows.BinaryData,
	"mediumblob": rows.BinaryData, "longblob": rows.BinaryData, "vector": rows.BinaryData,
	"geometry": rows.BinaryData, "point": rows.BinaryData, "linestring": rows.BinaryData, "polygon": rows.BinaryData,
	"multipoint": rows.BinaryData, "multilinestring": rows.BinaryData, "multipolygon": rows.BinaryData, "geomcollection": rows.BinaryData,
}

// Table reads a table; nil where there is none.
func (Dialect) Table(ctx context.Context, s rows.Session, schema, name string) (*rows.Table, error) {
	found, err := s.Query(ctx, fmt.Sprintf(columnsQuery, Text(name)))
	if err != nil || len(found) == 0 {
		return nil, err
	}
	t := &rows.Table{Schema: schema, Name: name}
	for _, row := range found {
		t.Columns = append(t.Columns, rows.Column{Name: *row[0], Class: classes[strings.ToLower(*row[1])], Generated: yes(row[2]), NotNull: yes(row[3])})
	}
	keys, err := s.Query(ctx, fmt.Sprintf(keysQuery, Text(name)))
	if err != nil {
		return nil, err
	}
	columns, unusable := map[string][]string{}, map[string]bool{}
	var names []string
	for _, row := range keys {
		if columns[*row[0]] == nil {
			names = append(names, *row[0])
		}
		column := ""
		if row[1] != nil {
			column = *row[1]
		}
		columns[*row[0]] = append(columns[*row[0]], column)
		unusable[*row[0]] = unusable[*row[0]] || yes(row[2])
	}
	for _, name := range names {
		switch {
		case name == "PRIMARY" && !unusable[name]:
			t.Primary = columns[name]
		case !unusable[name]:
			t.Unique = append(t.Unique, columns[name])
		}
	}
	return t, nil
}

func yes(value *string) bool { return value != nil && *value == "1" }

// Foreign reads every foreign key of the database.
func (d Dialect) Foreign(ctx context.Context, s rows.Session) ([]rows.Foreign, error) {
	found, err := s.Query(ctx, foreignQuery)
	if err != nil {
		return nil, err
	}
	var out []rows.Foreign
	for _, row := range found {
		if n := len(out); n > 0 && out[n-1].Name == *row[0] && out[n-1].Table == *row[1] {
			out[n-1].ParentColumns = append(out[n-1].ParentColumns, *row[3])
			continue
		}
		out = append(out, rows.Foreign{Name: *row[0], Schema: d.Database, Table: *row[1], ParentSchema: d.Database, Parent: *row[2],
			ParentColumns: []string{*row[3]}, OnDelete: yes(row[4]), OnUpdate: yes(row[5])})
	}
	return out, nil
}
