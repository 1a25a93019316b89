// Package rowsql is what package rows needs of MySQL: how rows are read, how values are printed and written, and what the
// catalog says of a table.
//
// A literal means the same under every sql_mode: a text that holds a backslash or a control character is written as its
// bytes, because whether a backslash escapes is a mode.
package rowsql

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/go-sql-driver/mysql"

	"ptah.run/ptah/operator/executor/mysql/sqltext"
	"ptah.run/ptah/operator/executor/mysql/target"
	"ptah.run/ptah/operator/executor/rows"
)

// Session is one session of a database.
type Session struct{ *target.Session }

// Query runs one query and returns texts.
func (s Session) Query(ctx context.Context, sql string) ([][]*string, error) {
	_, found, err := s.Texts(ctx, sql)
	if err != nil {
		return nil, err
	}
	out := make([][]*string, 0, len(found))
	for _, row := range found {
		values := make([]*string, len(row))
		for i := range row {
			if row[i].Valid {
				values[i] = &row[i].String
			}
		}
		out = append(out, values)
	}
	return out, nil
}

// Exec runs one statement and returns how many rows it matched.
func (s Session) Exec(ctx context.Context, sql string) (int64, error) {
	result, err := s.ExecContext(ctx, sql)
	if err != nil {
		return 0, err
	}
	return result.RowsAffected()
}

// Dialect is the SQL of MySQL.
type Dialect struct {
	// Database is the only one of which rows can be declared.
	Database string
	// Fold says that the server makes names of tables lower case.
	Fold bool
}

var _ rows.Dialect = Dialect{}

// Home is the database.
func (d Dialect) Home() string { return d.Database }

// Refusal refuses any other database.
func (d Dialect) Refusal(schema string) string {
	same := schema == d.Database || d.Fold && strings.EqualFold(schema, d.Database)
	if schema != "" && !same {
		return "rows are declared of a table in another database; name the table alone"
	}
	return ""
}

// Same says whether two texts name one column: letter case does not matter.
func (Dialect) Same(a, b string) bool { return strings.EqualFold(a, b) }

// Name writes the name of a table, without the database: a plan holds for the one that it is run on.
func (Dialect) Name(_, table string) string { return sqltext.Quote(table) }

// Quote writes the name of a column.
func (Dialect) Quote(column string) string { return sqltext.Quote(column) }

// Print is the expression that prints a column.
func (Dialect) Print(c rows.Column) string {
	name := sqltext.Quote(c.Name)
	switch c.Class {
	case rows.BinaryData:
		return "LOWER(HEX(" + name + "))"
	case rows.Integer, rows.Float:
		return "CAST(" + name + " + " + map[bool]string{true: "0e0", false: "0"}[c.Class == rows.Float] + " AS CHAR)"
	}
	return "CAST(" + name + " AS CHAR)"
}

var bare = map[rows.Class]*regexp.Regexp{
	rows.Integer: regexp.MustCompile(`^-?[0-9]{1,20}$`),
	rows.Decimal: regexp.MustCompile(`^-?[0-9]{1,65}(\.[0-9]{1,30})?$`),
	rows.Float:   regexp.MustCompile(`^-?[0-9]+(\.[0-9]+)?(e[+-]?[0-9]+)?$`),
}

// Literal writes a printed value.
func (Dialect) Literal(c rows.Column, text *string) string {
	if text == nil {
		return "NULL"
	}
	if form := bare[c.Class]; form != nil && form.MatchString(*text) {
		if c.Class == rows.Float && !strings.Contains(*text, "e") {
			return *text + "e0" // without it the server takes it for a decimal
		}
		return *text
	}
	if c.Class == rows.BinaryData {
		return "x'" + *text + "'"
	}
	return Text(*text)
}

// Text writes a text.
func Text(text string) string {
	if strings.IndexFunc(text, func(r rune) bool { return r == '\\' || r < ' ' && r != '\n' && r != '\t' }) >= 0 {
		return "_utf8mb4 x'" + hex.EncodeToString([]byte(text)) + "'"
	}
	return "'" + strings.ReplaceAll(text, "'", "''") + "'"
}

// Boolean is the text of a truth value: a number, for the type is one.
func (Dialect) Boolean(value bool) string {
	if value {
		return "1"
	}
	return "0"
}

// Temporary returns the statements that make a temporary table.
func (Dialect) Temporary(name, number string, t *rows.Table, columns []rows.Column) []string {
	list := []string{"0 AS " + sqltext.Quote(number)}
	for _, c := range columns {
		list = append(list, sqltext.Quote(c.Name))
	}
	return []string{"DROP TEMPORARY TABLE IF EXISTS " + sqltext.Quote(name),
		"CREATE TEMPORARY TABLE " + sqltext.Quote(name) + " (" + sqltext.Quote(number) + " INT PRIMARY KEY) SELECT " +
			strings.Join(list, ", ") + " FROM " + sqltext.Quote(t.Name) + " LIMIT 0"}
}

// Always is empty: no column refuses values but a computed one.
func (Dialect) Always() string { return "" }

// silent are the errors that say nothing about the statement: the server stops, lacks resources or waited too long.
var silent = []uint16{1021, 1037, 1038, 1041, 1053, 1114, 1205, 1213, 1317}

// State is SQLSTATE and number of an error of a statement.
func (Dialect) State(err error) string {
	var server *mysql.MySQLError
	if !errors.As(err, &server) || slices.Contains(silent, server.Number) {
		return ""
	}
	return fmt.Sprintf("%s/%d", server.SQLState[:], server.Number)
}
