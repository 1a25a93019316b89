package rows

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"ptah.run/ptah/operator/executor/failure"
	"ptah.run/ptah/operator/plan/report"
)

// Wanted says which rows of a table to read.
type Wanted struct {
	Schema, Table string
	Scope         string
	// Key and Columns may be empty: then they are those of the table's primary key.
	Key, Columns []string
	// keys are the values of the key, by column, where the scope is keys.
	keys []map[string]Value
}

// Of returns what to read for declarations.
func Of(declarations []Declaration, d Dialect) ([]Wanted, error) {
	out := make([]Wanted, 0, len(declarations))
	for i := range declarations {
		declared := &declarations[i]
		if why := d.Refusal(declared.Schema); why != "" {
			return nil, refuse(declared.File, declared.Line, why, declared.Schema)
		}
		w := Wanted{Schema: cmp.Or(declared.Schema, d.Home()), Table: declared.Table, Scope: declared.Scope, Key: declared.Key, Columns: declared.Columns}
		if w.Scope == ScopeKeys {
			w.keys = append(byColumn(declared.Columns, declared.Rows), byColumn(declared.AbsentColumns, declared.Absent)...)
		}
		out = append(out, w)
	}
	return out, nil
}

func byColumn(columns []string, all []Row) []map[string]Value {
	out := make([]map[string]Value, 0, len(all))
	for _, row := range all {
		values := make(map[string]Value, len(columns))
		for i, column := range columns {
			values[column] = row.Values[i]
		}
		out = append(out, values)
	}
	return out
}

// Again returns what to read for what a plan manages.
func Again(managed []report.ManagedRows) []Wanted {
	out := make([]Wanted, 0, len(managed))
	for _, m := range managed {
		w := Wanted{Schema: m.Schema, Table: m.Table, Scope: m.Scope, Key: m.Key, Columns: m.Columns}
		for _, key := range m.Keys {
			values := map[string]Value{}
			for i, column := range m.Key {
				values[column] = Value{Printed, key[i]}
			}
			w.keys = append(w.keys, values)
		}
		out = append(out, w)
	}
	return out
}

// Live are the managed rows of one table as they were read.
type Live struct {
	Wanted Wanted
	// Table is nil where the database has none of that name.
	Table *Table
	// Columns are all that are not computed; Rows their values as printed.
	Columns []Column
	Rows    [][]*string
}

// Read reads the managed rows of a database. The session must print values the way the dialect says.
func Read(ctx context.Context, d Dialect, s Session, wanted []Wanted) ([]Live, error) {
	out := make([]Live, 0, len(wanted))
	bytes := 0
	for _, w := range wanted {
		live, err := read(ctx, d, s, w)
		if err != nil {
			return nil, err
		}
		for _, row := range live.Rows {
			for _, value := range row {
				if value != nil {
					bytes += len(*value)
				}
			}
		}
		if bytes > MaxLiveBytes {
			return nil, tooMany(fmt.Sprintf("more than %d bytes", MaxLiveBytes))
		}
		out = append(out, *live)
	}
	return out, nil
}

func tooMany(what string) error {
	return &failure.Error{Code: report.CodeUnsupported, Categories: []string{"data_rows_deleted"},
		Message: "the tables whose rows are declared hold " + what + "; declare the scope keys, which leaves other rows alone, where a table holds more than reference data"}
}

func read(ctx context.Context, d Dialect, s Session, w Wanted) (*Live, error) {
	live := &Live{Wanted: w}
	var err error
	if live.Table, err = d.Table(ctx, s, w.Schema, w.Table); err != nil || live.Table == nil {
		return live, err
	}
	if len(w.Key) == 0 {
		live.Wanted.Key = live.Table.Primary
	}
	if len(w.Columns) == 0 {
		live.Wanted.Columns = live.Wanted.Key
	}
	expressions := []string{}
	for _, c := range live.Table.Columns {
		if !c.Generated {
			live.Columns = append(live.Columns, c)
			expressions = append(expressions, d.Print(c))
		}
	}
	if len(expressions) == 0 {
		return live, nil
	}
	query := "SELECT " + strings.Join(expressions, ", ") + " FROM " + d.Name(w.Schema, w.Table)
	if w.Scope == ScopeTable {
		live.Rows, err = s.Query(ctx, fmt.Sprintf("%s LIMIT %d", query, MaxLiveRows+1))
		if err == nil && len(live.Rows) > MaxLiveRows {
			return nil, tooMany(fmt.Sprintf("more than %d rows", MaxLiveRows))
		}
	} else {
		err = live.readKeys(ctx, d, s, query)
	}
	slices.SortFunc(live.Rows, compareRows)
	return live, err
}

// keysAtOnce is how many keys stand in one query.
const keysAtOnce = 200

func (l *Live) readKeys(ctx context.Context, d Dialect, s Session, query string) error {
	var conditions []string
	for _, key := range l.Wanted.keys {
		var parts []string
		for _, name := range l.Wanted.Key {
			column, there := column(d, l.Table.Columns, name)
			value, given := key[name]
			if !there || !given {
				return nil // the planner says what is wrong with the key
			}
			text, err := input(d, column, value)
			if err != nil || text == nil {
				return nil // nothing in a column of this type equals it
			}
			parts = append(parts, d.Quote(column.Name)+" = "+d.Literal(column, text))
		}
		conditions = append(conditions, "("+strings.Join(parts, " AND ")+")")
	}
	seen := map[string]bool{}
	for some := range slices.Chunk(conditions, keysAtOnce) {
		found, err := s.Query(ctx, query+" WHERE "+strings.Join(some, " OR "))
		if err != nil {
			if data(d, err) {
				return &failure.Error{Code: report.CodeUnsupported, Categories: []string{"data_rows_updated"}, SQLState: d.State(err),
					Message: "the keys of declared rows do not fit the columns that the database has now; apply the change of the schema before the rows"}
			}
			return err
		}
		for _, row := range found {
			if id := encode(row); !seen[id] {
				seen[id] = true
				l.Rows = append(l.Rows, row)
			}
		}
	}
	return nil
}

// data says whether a server refused a statement because of a value.
func data(d Dialect, err error) bool { return strings.HasPrefix(d.State(err), "22") }

func column(d Dialect, columns []Column, name string) (Column, bool) {
	i := slices.IndexFunc(columns, func(c Column) bool { return d.Same(c.Name, name) })
	if i < 0 {
		return Column{}, false
	}
	return columns[i], true
}

func encode(row []*string) string {
	data, _ := json.Marshal(row) // texts always encode
	return string(data)
}

func compareRows(a, b []*string) int {
	for i := range a {
		if c := compareValues(a[i], b[i]); c != 0 {
			return c
		}
	}
	return 0
}

// compareValues puts null first, whole numbers in their order, and all else by bytes.
func compareValues(a, b *string) int {
	switch {
	case a == nil || b == nil:
		return cmp.Compare(b2i(a != nil), b2i(b != nil))
	case whole(*a) && whole(*b):
		negative := strings.HasPrefix(*a, "-")
		if negative != strings.HasPrefix(*b, "-") {
			return cmp.Compare(b2i(!negative), b2i(negative))
		}
		c := cmp.Or(cmp.Compare(len(*a), len(*b)), cmp.Compare(*a, *b))
		if negative {
			return -c
		}
		return c
	}
	return cmp.Compare(*a, *b)
}

func whole(text string) bool {
	digits := strings.TrimPrefix(text, "-")
	return digits != "" && strings.Trim(digits, "0123456789") == "" && (digits == "0" || digits[0] != '0')
}

func b2i(b bool) int {
	if b {
		return 1
	}
	return 0
}

// digestVersion changes when the content of a digest changes its meaning.
const digestVersion = "ptah-rows-1"

// content is the managed part of a table's rows: a mapping of columns to values each, in an order of its own.
func content(columns []string, all [][]*string) []string {
	out := make([]string, 0, len(all))
	for _, row := range all {
		values := map[string]*string{}
		for i, column := range columns {
			values[column] = row[i]
		}
		data, _ := json.Marshal(values) // the encoder sorts the names
		out = append(out, string(data))
	}
	slices.Sort(out)
	return out
}

// managed returns the managed columns that the table has and their values.
func (l *Live) managed(d Dialect) (columns []string, all [][]*string) {
	var places []int
	for _, name := range l.Wanted.Columns {
		if i := slices.IndexFunc(l.Columns, func(c Column) bool { return d.Same(c.Name, name) }); i >= 0 {
			columns, places = append(columns, name), append(places, i)
		}
	}
	for _, row := range l.Rows {
		values := make([]*string, 0, len(places))
		for _, i := range places {
			values = append(values, row[i])
		}
		all = append(all, values)
	}
	return columns, all
}

// Digest stands for the managed rows of all tables.
func Digest(d Dialect, all []Live) string {
	parts := make([]part, 0, len(all))
	for i := range all {
		columns, rows := all[i].managed(d)
		parts = append(parts, part{all[i].Wanted, content(columns, rows)})
	}
	return digest(parts)
}

type part struct {
	wanted Wanted
	rows   []string
}

func digest(parts []part) string {
	slices.SortStableFunc(parts, func(a, b part) int {
		return cmp.Or(cmp.Compare(a.wanted.Schema, b.wanted.Schema), cmp.Compare(a.wanted.Table, b.wanted.Table))
	})
	hash := sha256.New()
	encoder := json.NewEncoder(hash) // JSON texts cannot run into each other
	_ = encoder.Encode(digestVersion)
	for _, p := range parts {
		_ = encoder.Encode([]string{p.wanted.Schema, p.wanted.Table, p.wanted.Scope})
		_ = encoder.Encode(p.rows)
	}
	return "sha256:" + hex.EncodeToString(hash.Sum(nil))
}

// Fingerprint joins the fingerprint of a schema with the digest of the managed rows. Without managed rows it is the
// schema's own.
func Fingerprint(schema, rows string) string {
	if rows == "" {
		return schema
	}
	return report.Digest([]byte("ptah-state-1\n" + schema + "\n" + rows + "\n"))
}
