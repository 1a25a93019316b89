// Package rowsql is what package rows needs of PostgreSQL: how rows are read, how values are printed and written, and what
// the catalog says of a table.
//
// A value is printed as text under Settings and written as a literal that means the same under every setting of a session,
// standard_conforming_strings included. Types whose text depends on the server (money) are not compared.
package rowsql

import (
	"context"
	"errors"
	"regexp"
	"strconv"
	"strings"

	"github.com/jackc/pgx/v5/pgconn"

	"ptah.run/ptah/operator/executor/postgresql/dump"
	"ptah.run/ptah/operator/executor/rows"
)

// Settings make a server print every value in one form. They may be set for one transaction with SET LOCAL.
var Settings = []string{"timezone = 'UTC'", "datestyle = 'ISO, MDY'", "intervalstyle = 'postgres'", "extra_float_digits = 1",
	"bytea_output = 'hex'", "xmlbinary = 'base64'", "search_path = ''", "row_security = off", "standard_conforming_strings = on",
	"quote_all_identifiers = off"}

// Prepare sets them, for the session or with local for the transaction.
func Prepare(ctx context.Context, conn *pgconn.PgConn, local bool) error {
	word := "SET "
	if local {
		word = "SET LOCAL "
	}
	_, err := conn.Exec(ctx, word+strings.Join(Settings, "; "+word)).ReadAll()
	return err
}

// Session is one connection.
type Session struct{ Conn *pgconn.PgConn }

// Query runs one query and returns texts.
func (s Session) Query(ctx context.Context, sql string) ([][]*string, error) {
	result := s.Conn.ExecParams(ctx, sql, nil, nil, nil, nil).Read()
	if result.Err != nil {
		return nil, result.Err
	}
	out := make([][]*string, 0, len(result.Rows))
	for _, row := range result.Rows {
		values := make([]*string, len(row))
		for i, value := range row {
			if value != nil {
				text := string(value)
				values[i] = &text
			}
		}
		out = append(out, values)
	}
	return out, nil
}

// Exec runs one statement; the server refuses a text that holds two.
func (s Session) Exec(ctx context.Context, sql string) (int64, error) {
	result := s.Conn.ExecParams(ctx, sql, nil, nil, nil, nil).Read()
	return result.CommandTag.RowsAffected(), result.Err
}

// Dialect is the SQL of PostgreSQL.
type Dialect struct {
	// Schema is that of tables whose declaration names none.
	Schema string
}

// New returns the dialect for a search path, whose first schema is that of a table without one; empty means public.
func New(searchPath string) Dialect {
	first, _, _ := strings.Cut(searchPath, ",")
	if first = strings.TrimSpace(first); first == "" {
		first = "public"
	}
	return Dialect{Schema: first}
}

var _ rows.Dialect = Dialect{}

// Home is the schema of a table whose declaration names none.
func (d Dialect) Home() string { return d.Schema }

// Refusal refuses the schemas of the server itself.
func (Dialect) Refusal(schema string) string {
	if schema == "information_schema" || strings.HasPrefix(schema, "pg_") {
		return "rows are declared of a table that belongs to the server itself"
	}
	return ""
}

// Same says whether two texts name one column.
func (Dialect) Same(a, b string) bool { return a == b }

// Name writes the name of a table.
func (Dialect) Name(schema, table string) string { return dump.Quote(schema) + "." + dump.Quote(table) }

// Quote writes the name of a column.
func (Dialect) Quote(column string) string { return dump.Quote(column) }

// Print is the expression that prints a column.
func (Dialect) Print(c rows.Column) string {
	if c.Class == rows.BinaryData {
		return "pg_catalog.encode(" + dump.Quote(c.Name) + ", 'hex')"
	}
	return dump.Quote(c.Name) + "::text"
}

var bare = map[rows.Class]*regexp.Regexp{
	rows.Integer: regexp.MustCompile(`^-?[0-9]{1,19}$`),
	rows.Decimal: regexp.MustCompile(`^-?[0-9]{1,500}(\.[0-9]{1,500})?$`),
}

// Literal writes a printed value.
func (Dialect) Literal(c rows.Column, text *string) string {
	if text == nil {
		return "NULL"
	}
	if form := bare[c.Class]; form != nil && form.MatchString(*text) {
		return *text
	}
	if c.Class == rows.BinaryData {
		return Text(`\x` + *text)
	}
	return Text(*text)
}

// Text writes a text, which must not hold NUL. A backslash is doubled in the one form of a string in which every server
// reads it as an escape, whatever standard_conforming_strings says.
func Text(text string) string {
	quoted := "'" + strings.ReplaceAll(text, "'", "''") + "'"
	if strings.Contains(text, `\`) {
		return "E" + strings.ReplaceAll(quoted, `\`, `\\`)
	}
	return quoted
}

// Boolean is the text of a truth value.
func (Dialect) Boolean(value bool) string { return strconv.FormatBool(value) }

// Temporary returns the statement that makes a temporary table.
func (d Dialect) Temporary(name, number string, t *rows.Table, columns []rows.Column) []string {
	sql := "CREATE TEMPORARY TABLE " + dump.Quote(name) + " AS SELECT 0 AS " + dump.Quote(number)
	for _, c := range columns {
		sql += ", " + dump.Quote(c.Name)
	}
	return []string{sql + " FROM " + d.Name(t.Schema, t.Name) + " WITH NO DATA"}
}

// Always lets a value into an identity column that refuses values.
func (Dialect) Always() string { return "OVERRIDING SYSTEM VALUE" }

// State is the SQLSTATE of an error of a statement. A server that stops, lacks resources or is broken says nothing about
// the statement.
func (Dialect) State(err error) string {
	var server *pgconn.PgError
	if !errors.As(err, &server) || len(server.Code) != 5 {
		return ""
	}
	switch server.Code[:2] {
	case "08", "53", "57", "58", "XX":
		return ""
	}
	return server.Code
}
