package rows

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"ptah.run/ptah/operator/executor/failure"
	"ptah.run/ptah/operator/executor/pattern"
	"ptah.run/ptah/operator/plan/report"
)

// set is one declaration with its table in the desired schema.
type set struct {
	declared *Declaration
	wanted   Wanted
	table    *Table
	key      []Column
	columns  []Column
	live     *Live
	// desired and absent are the declared values and keys as the server prints them.
	desired, absent [][]*string
}

// Plan is the way from the rows that a database holds to those that are declared.
type Plan struct {
	dialect Dialect
	sets    []*set
	foreign []Foreign
	product string
	changes []*Change
}

// Request is what a plan of rows is computed from.
type Request struct {
	Dialect Dialect
	// Product names the engine in messages.
	Product      string
	Declarations []Declaration
	// Live are the managed rows as read, one for each declaration.
	Live []Live
	// Exclude are the objects that are left alone.
	Exclude []pattern.Pattern
	// Session is the desired schema, empty, where temporary tables may be made.
	Session Session
}

// Compare reads what is declared through the server, and finds the changes.
func Compare(ctx context.Context, r Request) (*Plan, error) {
	p := &Plan{dialect: r.Dialect, product: r.Product}
	wanted, err := Of(r.Declarations, r.Dialect)
	if err != nil {
		return nil, err
	}
	for i := range r.Declarations {
		declared := &r.Declarations[i]
		if pattern.Match(r.Exclude, wanted[i].Schema, wanted[i].Table) {
			return nil, refuse(declared.File, declared.Line, "rows of an excluded table are declared; take the declaration or the exclusion out", declared.Table)
		}
		s := &set{declared: declared, wanted: wanted[i], live: &r.Live[i]}
		if err := s.resolve(ctx, r.Dialect, r.Session); err != nil {
			return nil, err
		}
		p.sets = append(p.sets, s)
	}
	if p.foreign, err = r.Dialect.Foreign(ctx, r.Session); err != nil {
		return nil, err
	}
	for i, s := range p.sets {
		if err := p.compare(ctx, r.Session, i, s); err != nil {
			return nil, err
		}
	}
	p.sort()
	return p, nil
}

func (s *set) refuse(line int, message, detail string) error {
	return refuse(s.declared.File, line, message, detail)
}

// resolve finds the table, the key and the columns in the desired schema.
func (s *set) resolve(ctx context.Context, d Dialect, session Session) error {
	var err error
	if s.table, err = d.Table(ctx, session, s.wanted.Schema, s.wanted.Table); err != nil {
		return err
	}
	line := s.declared.Line
	if s.table == nil {
		return s.refuse(line, "rows are declared of something that is not a table of the declared schema", s.wanted.Table)
	}
	if len(s.table.Primary) == 0 && len(s.wanted.Key) == 0 {
		return s.refuse(line, "rows are declared of a table without a primary key; give it one, or name the columns of a unique key that is never null in the field key", s.wanted.Table)
	}
	if len(s.wanted.Key) == 0 {
		s.wanted.Key = s.table.Primary
	}
	if s.key, err = s.find(d, s.wanted.Key, line); err != nil {
		return err
	}
	if !s.unique(d) {
		return s.refuse(line, "the field key names columns that are not a primary key, nor a unique key of whole columns that are never null", strings.Join(s.wanted.Key, ", "))
	}
	if len(s.wanted.Columns) == 0 {
		s.wanted.Columns = s.wanted.Key
	}
	first := line
	if len(s.declared.Rows) > 0 {
		first = s.declared.Rows[0].Line
	}
	if s.columns, err = s.find(d, s.wanted.Columns, first); err != nil {
		return err
	}
	for _, key := range s.wanted.Key {
		if len(s.declared.Rows) > 0 && !slices.ContainsFunc(s.wanted.Columns, func(c string) bool { return d.Same(c, key) }) {
			return s.refuse(first, "the rows do not name every column of the key", key)
		}
	}
	if len(s.declared.Absent) > 0 && !sameNames(d, s.declared.AbsentColumns, s.wanted.Key) {
		return s.refuse(s.declared.Absent[0].Line, "a key under absent does not name just the columns of the key", strings.Join(s.wanted.Key, ", "))
	}
	return s.carried(d)
}

// find resolves names of columns.
func (s *set) find(d Dialect, names []string, line int) ([]Column, error) {
	var out []Column
	for _, name := range names {
		c, ok := column(d, s.table.Columns, name)
		switch {
		case !ok:
			return nil, s.refuse(line, "a column is named that the table does not have", name)
		case c.Generated:
			return nil, s.refuse(line, "a column is named whose values the database computes; leave it out", name)
		case c.Class == Unsupported:
			return nil, s.refuse(line, "a column is named whose type is printed in another way by every server, so that it cannot be compared; leave it out", name)
		}
		if slices.ContainsFunc(out, func(o Column) bool { return o.Name == c.Name }) {
			return nil, s.refuse(line, "one column is named in two spellings", name)
		}
		out = append(out, c)
	}
	return out, nil
}

func (s *set) unique(d Dialect) bool {
	return slices.ContainsFunc(append([][]string{s.table.Primary}, s.table.Unique...), func(key []string) bool {
		return sameNames(d, key, s.wanted.Key)
	})
}

func sameNames(d Dialect, a, b []string) bool {
	return len(a) == len(b) && !slices.ContainsFunc(a, func(name string) bool {
		return !slices.ContainsFunc(b, func(other string) bool { return d.Same(name, other) })
	})
}

// carried refuses what a change of the schema would make of the rows that cannot be known.
func (s *set) carried(d Dialect) error {
	if s.live.Table == nil || s.wanted.Scope == ScopeTable && len(s.live.Rows) == 0 {
		return nil
	}
	there := func(names []string) bool {
		return !slices.ContainsFunc(names, func(name string) bool {
			c, ok := column(d, s.live.Table.Columns, name)
			return !ok || c.Generated
		})
	}
	if !there(s.wanted.Key) || s.wanted.Scope == ScopeKeys && !sameNames(d, s.live.Wanted.Key, s.wanted.Key) {
		return &failure.Error{Code: report.CodeUnsupported, Categories: []string{"data_rows_updated"}, Detail: s.wanted.Table,
			Message: fmt.Sprintf("line %d of the file %s: the key of declared rows is another in the database as it is; apply the change of the schema before the rows", s.declared.Line, s.declared.File)}
	}
	return nil
}

// Managed is what the plan says of the rows that it manages, by table.
func (p *Plan) Managed() []report.ManagedRows {
	out := make([]report.ManagedRows, 0, len(p.sets))
	for _, s := range p.sets {
		m := report.ManagedRows{Schema: s.wanted.Schema, Table: s.wanted.Table, Scope: s.wanted.Scope,
			Key: slices.Clone(s.wanted.Key), Columns: slices.Clone(s.managedColumns())}
		if s.wanted.Scope == ScopeKeys {
			for _, row := range s.desired {
				m.Keys = append(m.Keys, texts(s.keyOf(row)))
			}
			for _, key := range s.absent {
				m.Keys = append(m.Keys, texts(key))
			}
		}
		out = append(out, m)
	}
	return out
}

// managedColumns are those whose values were read of the database: where nothing is declared but that there is nothing,
// those of the key that it has.
func (s *set) managedColumns() []string {
	if len(s.declared.Columns) == 0 && len(s.live.Wanted.Columns) > 0 {
		return s.live.Wanted.Columns
	}
	return s.wanted.Columns
}

func texts(row []*string) []string {
	out := make([]string, 0, len(row))
	for _, value := range row {
		out = append(out, *value)
	}
	return out
}

// keyOf returns the key of a declared row.
func (s *set) keyOf(row []*string) []*string {
	out := make([]*string, 0, len(s.key))
	for _, key := range s.key {
		out = append(out, row[slices.IndexFunc(s.columns, func(c Column) bool { return c.Name == key.Name })])
	}
	return out
}

// Digest stands for the managed rows as declared.
func (p *Plan) Digest() string {
	parts := make([]part, 0, len(p.sets))
	for _, s := range p.sets {
		parts = append(parts, part{s.wanted, content(s.wanted.Columns, s.desired)})
	}
	return digest(parts)
}
