package rows

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"ptah.run/ptah/operator/executor/failure"
	"ptah.run/ptah/operator/executor/pattern"
	"ptah.run/ptah/operator/plan/report"
)

// Suffix ends the names of the files that declare rows.
const Suffix = ".rows.yaml"

// Limits of what is declared and read.
const (
	// MaxRows bounds the rows of all declarations of one schema, those that must be absent included.
	MaxRows = 10_000
	// MaxBytes bounds the files of all declarations of one schema together: 4 MiB.
	MaxBytes = 4 << 20
	// MaxLiveRows bounds the rows that a table may hold whose whole is managed.
	MaxLiveRows = 20_000
	// MaxLiveBytes bounds what is read of all managed tables together: 64 MiB.
	MaxLiveBytes = 64 << 20
	// formatVersion is the version of the files.
	formatVersion = "1"
)

// Scopes of a declaration.
const (
	// ScopeTable manages every row of the table: one that is not declared goes.
	ScopeTable = "table"
	// ScopeKeys manages the rows with the keys that are declared, or declared absent, and leaves all others alone.
	ScopeKeys = "keys"
)

// File is one file of a schema.
type File struct {
	Name string
	Data []byte
}

// Declaration is what one table must hold.
type Declaration struct {
	File string
	Line int
	// Schema is empty where the declaration names none.
	Schema, Table string
	Scope         string
	// Key are the columns that tell rows apart; empty means the primary key.
	Key []string
	// Columns are those that every row names, in the order of the first row. Empty without rows.
	Columns []string
	Rows    []Row
	// AbsentColumns and Absent are the keys that no row may have.
	AbsentColumns []string
	Absent        []Row
}

// Row is one row or one key.
type Row struct {
	Line   int
	Values []Value // in the order of the columns
}

// Is says whether a file of a schema declares rows.
func Is(name string) bool { return strings.HasSuffix(name, Suffix) }

// refuse returns the error about a place in a file. detail may name an object, but never holds a value.
func refuse(file string, line int, message, detail string) error {
	return &failure.Error{Code: report.CodeInvalidSchema, Detail: detail,
		Message: fmt.Sprintf("line %d of the file %s: %s", line, file, message)}
}

// Parse reads the declarations of a schema. They are sorted by table.
func Parse(files []File) ([]Declaration, error) {
	var all []Declaration
	total, count := 0, 0
	for _, file := range files {
		if total += len(file.Data); total > MaxBytes {
			return nil, failure.New(report.CodeTooLarge, fmt.Sprintf("the files that declare rows are larger than %d bytes together; rows that are not reference data belong to the application", MaxBytes))
		}
		found, err := parseFile(file)
		if err != nil {
			return nil, err
		}
		for _, d := range found {
			count += len(d.Rows) + len(d.Absent)
		}
		all = append(all, found...)
	}
	if count > MaxRows {
		return nil, failure.New(report.CodeTooLarge, fmt.Sprintf("more than %d rows are declared; rows that are not reference data belong to the application", MaxRows))
	}
	slices.SortStableFunc(all, func(a, b Declaration) int {
		return cmp.Or(cmp.Compare(a.Schema, b.Schema), cmp.Compare(a.Table, b.Table))
	})
	for i, d := range all {
		if i > 0 && all[i-1].Schema == d.Schema && all[i-1].Table == d.Table {
			return nil, refuse(d.File, d.Line, "another declaration is about the same table; declare all its rows in one place", d.Table)
		}
	}
	return all, nil
}

func parseFile(file File) ([]Declaration, error) {
	decoder := yaml.NewDecoder(bytes.NewReader(file.Data))
	var document yaml.Node
	err := decoder.Decode(&document)
	switch {
	case errors.Is(err, io.EOF):
		return nil, refuse(file.Name, 1, "the file is empty; take it out to leave rows alone, or declare a table without rows to empty it", "")
	case err != nil:
		// The parser's message may repeat a piece of the file.
		return nil, refuse(file.Name, 1, "the file is not YAML", "")
	case len(document.Content) == 0 || !errors.Is(decoder.Decode(&yaml.Node{}), io.EOF):
		return nil, refuse(file.Name, 1, "the file holds more than one YAML document", "")
	}
	p := parser{file: file.Name}
	fields, err := p.mapping(document.Content[0], "the file", "version", "tables")
	if err != nil {
		return nil, err
	}
	if version := fields["version"]; version == nil || version.Kind != yaml.ScalarNode || version.Value != formatVersion {
		return nil, refuse(file.Name, 1, "the field version is missing or not "+formatVersion, "")
	}
	tables := fields["tables"]
	if tables == nil || tables.Kind != yaml.SequenceNode || len(tables.Content) == 0 {
		return nil, refuse(file.Name, 1, "the field tables is missing or not a list with an entry", "")
	}
	out := make([]Declaration, 0, len(tables.Content))
	for _, node := range tables.Content {
		d, err := p.declaration(node)
		if err != nil {
			return nil, err
		}
		out = append(out, *d)
	}
	return out, nil
}

type parser struct{ file string }

// mapping returns the fields of a node that may have those fields and no others.
func (p parser) mapping(node *yaml.Node, what string, known ...string) (map[string]*yaml.Node, error) {
	if node.Kind != yaml.MappingNode {
		return nil, refuse(p.file, node.Line, what+" is not a mapping", "")
	}
	out := map[string]*yaml.Node{}
	for i := 0; i+1 < len(node.Content); i += 2 {
		name := node.Content[i]
		if name.Kind != yaml.ScalarNode || !slices.Contains(known, name.Value) {
			return nil, refuse(p.file, name.Line, fmt.Sprintf("%s has an unknown field; its fields are %s", what, strings.Join(known, ", ")), "")
		}
		if out[name.Value] != nil {
			return nil, refuse(p.file, name.Line, what+" has the field "+name.Value+" twice", "")
		}
		out[name.Value] = node.Content[i+1]
	}
	return out, nil
}

func (p parser) declaration(node *yaml.Node) (*Declaration, error) {
	fields, err := p.mapping(node, "a table", "table", "scope", "key", "rows", "absent")
	if err != nil {
		return nil, err
	}
	d := &Declaration{File: p.file, Line: node.Line}
	if err := p.name(d, fields["table"]); err != nil {
		return nil, err
	}
	scope := fields["scope"]
	if scope == nil || scope.Value != ScopeTable && scope.Value != ScopeKeys {
		return nil, refuse(p.file, node.Line, "the field scope is missing or not table (every row that is not declared goes) or keys (only rows with the keys that are listed are managed)", "")
	}
	d.Scope = scope.Value
	if d.Key, err = p.key(fields["key"]); err != nil {
		return nil, err
	}
	rows := fields["rows"]
	if rows == nil || rows.Kind != yaml.SequenceNode {
		return nil, refuse(p.file, node.Line, "the field rows is missing or not a list; an empty list says that there are none", "")
	}
	if d.Columns, d.Rows, err = p.rows(rows); err != nil {
		return nil, err
	}
	if absent := fields["absent"]; absent != nil {
		if d.Scope == ScopeTable {
			return nil, refuse(p.file, absent.Line, "the field absent has no meaning with the scope table, where every row that is not declared goes", "")
		}
		if absent.Kind != yaml.SequenceNode {
			return nil, refuse(p.file, absent.Line, "the field absent is not a list of keys", "")
		}
		if d.AbsentColumns, d.Absent, err = p.rows(absent); err != nil {
			return nil, err
		}
	}
	if d.Scope == ScopeKeys && len(d.Rows)+len(d.Absent) == 0 {
		return nil, refuse(p.file, node.Line, "the declaration lists no key and so manages nothing; list keys under absent to have their rows removed, or take the declaration out", "")
	}
	return d, d.checkKey()
}

// checkKey refuses rows that do not name their key, where the key is declared.
func (d *Declaration) checkKey() error {
	for _, column := range d.Key {
		if len(d.Rows) > 0 && !slices.Contains(d.Columns, column) {
			return refuse(d.File, d.Rows[0].Line, "the rows do not name every column of the key", column)
		}
	}
	return nil
}

func (p parser) name(d *Declaration, node *yaml.Node) error {
	if node == nil || node.Kind != yaml.ScalarNode || node.Value == "" {
		return refuse(p.file, d.Line, "the field table is missing: name or schema.name", "")
	}
	parts := pattern.Split(node.Value)
	if len(parts) > 2 || slices.Contains(parts, "") {
		return refuse(p.file, node.Line, "the field table is not name or schema.name", "")
	}
	d.Table = parts[len(parts)-1]
	if len(parts) == 2 {
		d.Schema = parts[0]
	}
	return nil
}

func (p parser) key(node *yaml.Node) ([]string, error) {
	if node == nil {
		return nil, nil
	}
	if node.Kind != yaml.SequenceNode || len(node.Content) == 0 {
		return nil, refuse(p.file, node.Line, "the field key is not a list of columns", "")
	}
	var out []string
	for _, column := range node.Content {
		if column.Kind != yaml.ScalarNode || column.Value == "" || slices.Contains(out, column.Value) {
			return nil, refuse(p.file, column.Line, "the field key is not a list of different columns", "")
		}
		out = append(out, column.Value)
	}
	return out, nil
}

// rows reads a list of rows that all name the same columns.
func (p parser) rows(list *yaml.Node) (columns []string, out []Row, err error) {
	for _, node := range list.Content {
		if node.Kind != yaml.MappingNode || len(node.Content) == 0 {
			return nil, nil, refuse(p.file, node.Line, "a row is not a mapping of columns to values", "")
		}
		values := map[string]Value{}
		var names []string
		for i := 0; i+1 < len(node.Content); i += 2 {
			name := node.Content[i]
			if name.Kind != yaml.ScalarNode || name.Value == "" || name.ShortTag() == "!!merge" {
				return nil, nil, refuse(p.file, name.Line, "the name of a column is not a plain text", "")
			}
			if _, twice := values[name.Value]; twice {
				return nil, nil, refuse(p.file, name.Line, "a row names one column twice", name.Value)
			}
			if values[name.Value], err = p.value(node.Content[i+1]); err != nil {
				return nil, nil, err
			}
			names = append(names, name.Value)
		}
		if columns == nil {
			columns = names
		}
		row := Row{Line: node.Line}
		for _, column := range columns {
			value, ok := values[column]
			if !ok {
				return nil, nil, refuse(p.file, node.Line, "the row lacks a column that the first one names; give every row the same columns, and null where there is no value", column)
			}
			row.Values = append(row.Values, value)
		}
		if len(names) != len(columns) {
			return nil, nil, refuse(p.file, node.Line, "the row names a column that the first one lacks; give every row the same columns, and null where there is no value", "")
		}
		out = append(out, row)
	}
	return columns, out, nil
}
