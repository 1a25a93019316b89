package rows

import "context"

// Class is what a column's type means for reading and writing its values.
type Class int

// Classes.
const (
	Other      Class = iota // texts, times, enums, and whatever else the server reads from a text
	Integer                 // written bare
	Decimal                 // of an exact type; written bare where it has the form of a number
	Float                   // written as a number of that type where the engine needs it
	BinaryData              // printed as lower-case hexadecimal digits
	JSON
	Boolean
	Unsupported // printed in a way that is not the same on every server
)

// Column is a column of a table.
type Column struct {
	Name  string
	Class Class
	// Generated says that the server computes the values; Always that it refuses values of others unless it is told.
	Generated, Always bool
	NotNull           bool
}

// Foreign is a foreign key, seen from the table that has it.
type Foreign struct {
	Name                 string
	Schema, Table        string
	ParentSchema, Parent string
	ParentColumns        []string
	// OnDelete and OnUpdate say that a change of the parent's row is carried on into this table.
	OnDelete, OnUpdate bool
}

// Table is a table as the catalog describes it.
type Table struct {
	Schema, Name string
	Columns      []Column
	// Primary are the columns of the primary key, Unique those of every key over whole columns that are never null.
	Primary []string
	Unique  [][]string
}

// Session is one session of one database. Query returns every value as the server prints it, and nil for null.
type Session interface {
	Query(ctx context.Context, sql string) ([][]*string, error)
	// Exec runs one statement and returns how many rows it matched.
	Exec(ctx context.Context, sql string) (int64, error)
}

// Dialect is the SQL of one engine.
type Dialect interface {
	// Home is the schema of a table whose declaration names none. Refusal is why a declared schema cannot be, or empty.
	Home() string
	Refusal(schema string) string
	// Table reads a table; nil where there is none.
	Table(ctx context.Context, s Session, schema, name string) (*Table, error)
	// Foreign reads every foreign key of the database.
	Foreign(ctx context.Context, s Session) ([]Foreign, error)
	// Same says whether two texts name one column.
	Same(a, b string) bool
	// Name and Quote write names.
	Name(schema, table string) string
	Quote(column string) string
	// Print is the expression that prints a column in the form that Literal reads.
	Print(c Column) string
	// Literal writes a printed value, nil for null. It means the same under every setting of a session.
	Literal(c Column, text *string) string
	// Boolean is the text of a truth value.
	Boolean(value bool) string
	// Temporary returns the statements that make an empty temporary table of that name: a column of numbers, and the
	// given ones of the table with their types.
	Temporary(name, number string, t *Table, columns []Column) []string
	// Always stands between the columns and the values of an INSERT into a column that refuses values, or is empty.
	Always() string
	// State is the server's own code of an error, or empty where the error is not the server's answer to a statement.
	State(err error) string
}
