package rows

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"ptah.run/ptah/operator/executor/failure"
	"ptah.run/ptah/operator/plan/report"
)

// compare finds the changes of one table.
func (p *Plan) compare(ctx context.Context, s Session, index int, set *set) error {
	c := comparison{p.dialect, s, set, fmt.Sprintf("ptah_desired_%d", index), fmt.Sprintf("ptah_absent_%d", index), fmt.Sprintf("ptah_live_%d", index)}
	var err error
	if set.desired, err = c.declared(ctx, c.desired, set.declared.Columns, set.columns, set.declared.Rows); err != nil {
		return err
	}
	if set.wanted.Scope == ScopeKeys {
		if set.absent, err = c.declared(ctx, c.absent, set.declared.AbsentColumns, set.key, set.declared.Absent); err != nil {
			return err
		}
	}
	if err := c.unambiguous(ctx); err != nil {
		return err
	}
	live, pairs, err := c.match(ctx)
	if err != nil {
		return err
	}
	matched := map[int]bool{}
	for i, row := range set.desired {
		if at, ok := pairs[i]; ok {
			matched[at] = true
			p.update(set, i, row, live, at)
			continue
		}
		p.insert(set, i, row)
	}
	for at := range live.rows {
		if !matched[at] {
			p.remove(set, live, at)
		}
	}
	return nil
}

type comparison struct {
	d                     Dialect
	s                     Session
	set                   *set
	desired, absent, live string // temporary tables
}

// numberColumn is a name that no column has.
func (c comparison) number() string {
	name := "ptah_n"
	for slices.ContainsFunc(c.set.table.Columns, func(col Column) bool { return c.d.Same(col.Name, name) }) {
		name += "_"
	}
	return name
}

func (c comparison) table(ctx context.Context, name string, columns []Column) error {
	for _, sql := range c.d.Temporary(name, c.number(), c.set.table, columns) {
		if _, err := c.s.Exec(ctx, sql); err != nil {
			return fmt.Errorf("make a temporary table: %w", closed(c.d, err))
		}
	}
	return nil
}

// closed keeps the code of a server's answer and drops its text, which may hold a value.
func closed(d Dialect, err error) error {
	if state := d.State(err); state != "" {
		return fmt.Errorf("the scratch server answered with %s", state)
	}
	return err
}

// rowsAtOnce is how many rows stand in one INSERT into a temporary table.
const rowsAtOnce = 100

// declared writes rows into a temporary table and returns what the server made of them, in the same order.
func (c comparison) declared(ctx context.Context, name string, names []string, columns []Column, declared []Row) ([][]*string, error) {
	if err := c.table(ctx, name, columns); err != nil {
		return nil, err
	}
	if len(declared) == 0 {
		return nil, nil
	}
	values, err := c.inputs(names, columns, declared)
	if err != nil {
		return nil, err
	}
	for from := 0; from < len(values); from += rowsAtOnce {
		some := values[from:min(from+rowsAtOnce, len(values))]
		if err := c.fill(ctx, name, columns, some, from); err == nil {
			continue
		} else if c.d.State(err) == "" {
			return nil, err
		}
		for i := range some { // which one it is, one at a time says
			if err := c.fill(ctx, name, columns, some[i:i+1], from+i); err != nil {
				if state := c.d.State(err); state != "" {
					return nil, c.rejected(declared[from+i].Line, state)
				}
				return nil, err
			}
		}
	}
	out, err := c.printed(ctx, name, columns)
	if err != nil {
		return nil, err
	}
	return out, c.kept(names, columns, declared, out)
}

func (c comparison) rejected(line int, state string) error {
	err := c.set.refuse(line, "a value does not fit its column, says the database with SQLSTATE "+state, "")
	var refused *failure.Error
	if errors.As(err, &refused) {
		refused.SQLState = state
	}
	return err
}

// inputs returns the values of rows in the order of the columns.
func (c comparison) inputs(names []string, columns []Column, declared []Row) ([][]*string, error) {
	out := make([][]*string, 0, len(declared))
	for _, row := range declared {
		values := make([]*string, 0, len(columns))
		for _, column := range columns {
			v := row.Values[c.place(names, column)]
			text, err := input(c.d, column, v)
			if err != nil {
				return nil, c.set.refuse(row.Line, err.Error(), column.Name)
			}
			if text == nil && slices.ContainsFunc(c.set.key, func(k Column) bool { return k.Name == column.Name }) {
				return nil, c.set.refuse(row.Line, "a key is null", column.Name)
			}
			values = append(values, text)
		}
		out = append(out, values)
	}
	return out, nil
}

func (c comparison) place(names []string, column Column) int {
	return slices.IndexFunc(names, func(name string) bool { return c.d.Same(name, column.Name) })
}

// kept refuses numbers that the server rounded.
func (c comparison) kept(names []string, columns []Column, declared []Row, stored [][]*string) error {
	for i, row := range declared {
		for j, column := range columns {
			if !keeps(column, row.Values[c.place(names, column)], stored[i][j]) {
				return c.set.refuse(row.Line, "a number does not fit its column without being rounded", column.Name)
			}
		}
	}
	return nil
}

// fill inserts rows with their numbers into a temporary table.
func (c comparison) fill(ctx context.Context, name string, columns []Column, all [][]*string, from int) error {
	var b strings.Builder
	b.WriteString("INSERT INTO " + c.d.Quote(name) + " (" + c.d.Quote(c.number()))
	for _, column := range columns {
		b.WriteString(", " + c.d.Quote(column.Name))
	}
	b.WriteString(") VALUES ")
	for i, row := range all {
		if i > 0 {
			b.WriteString(", ")
		}
		b.WriteString("(" + strconv.Itoa(from+i))
		for j, column := range columns {
			b.WriteString(", " + c.d.Literal(column, row[j]))
		}
		b.WriteString(")")
	}
	_, err := c.s.Exec(ctx, b.String())
	return err
}

func (c comparison) printed(ctx context.Context, name string, columns []Column) ([][]*string, error) {
	expressions := make([]string, 0, len(columns))
	for _, column := range columns {
		expressions = append(expressions, c.d.Print(column))
	}
	out, err := c.s.Query(ctx, "SELECT "+strings.Join(expressions, ", ")+" FROM "+c.d.Quote(name)+" ORDER BY "+c.d.Quote(c.number()))
	if err != nil {
		return nil, fmt.Errorf("read a temporary table: %w", closed(c.d, err))
	}
	return out, nil
}

// unambiguous refuses two rows with one key.
func (c comparison) unambiguous(ctx context.Context) error {
	n := c.d.Quote(c.number())
	keys := make([]string, 0, len(c.set.key))
	joined := make([]string, 0, len(c.set.key))
	for _, key := range c.set.key {
		keys = append(keys, c.d.Quote(key.Name))
		joined = append(joined, "a."+c.d.Quote(key.Name)+" = b."+c.d.Quote(key.Name))
	}
	twice := func(table string) string {
		return "SELECT MAX(" + n + ") FROM " + c.d.Quote(table) + " GROUP BY " + strings.Join(keys, ", ") + " HAVING COUNT(*) > 1 ORDER BY 1 LIMIT 1"
	}
	checks := []struct {
		query   string
		rows    []Row
		message string
	}{{twice(c.desired), c.set.declared.Rows, "another row has the same key"}}
	if len(c.set.absent) > 0 {
		checks = append(checks, struct {
			query   string
			rows    []Row
			message string
		}{twice(c.absent), c.set.declared.Absent, "a key stands under absent twice"}, struct {
			query   string
			rows    []Row
			message string
		}{"SELECT MIN(a." + n + ") FROM " + c.d.Quote(c.desired) + " a JOIN " + c.d.Quote(c.absent) + " b ON " + strings.Join(joined, " AND ") + " HAVING COUNT(*) > 0",
			c.set.declared.Rows, "a row is declared whose key stands under absent, too"})
	}
	for _, check := range checks {
		found, err := c.s.Query(ctx, check.query)
		if err != nil {
			return fmt.Errorf("compare declared keys: %w", closed(c.d, err))
		}
		if len(found) > 0 {
			at, err := strconv.Atoi(*found[0][0])
			if err != nil {
				return fmt.Errorf("compare declared keys: %w", err)
			}
			return c.set.refuse(check.rows[at].Line, check.message+", as the database compares keys", "")
		}
	}
	return nil
}

// liveRows are the rows of the database in the form that the desired schema prints.
type liveRows struct {
	columns []Column
	rows    [][]*string
}

func (l liveRows) value(at int, name string) (*string, bool) {
	i := slices.IndexFunc(l.columns, func(c Column) bool { return c.Name == name })
	if i < 0 {
		return nil, false
	}
	return l.rows[at][i], true
}

// match puts the rows of the database into a temporary table and finds those that have the key of a declared row.
func (c comparison) match(ctx context.Context) (liveRows, map[int]int, error) {
	live := liveRows{}
	from := c.set.live
	if len(from.Rows) == 0 {
		return live, nil, nil
	}
	var places []int
	for _, column := range union(c.set.columns, c.set.key) {
		if i := slices.IndexFunc(from.Columns, func(o Column) bool { return c.d.Same(o.Name, column.Name) }); i >= 0 {
			if (from.Columns[i].Class == BinaryData) != (column.Class == BinaryData) {
				return live, nil, c.uncarried("42804")
			}
			live.columns, places = append(live.columns, column), append(places, i)
		}
	}
	if err := c.table(ctx, c.live, live.columns); err != nil {
		return live, nil, err
	}
	values := make([][]*string, 0, len(from.Rows))
	for _, row := range from.Rows {
		some := make([]*string, 0, len(places))
		for _, i := range places {
			some = append(some, row[i])
		}
		values = append(values, some)
	}
	for at := 0; at < len(values); at += rowsAtOnce {
		if err := c.fill(ctx, c.live, live.columns, values[at:min(at+rowsAtOnce, len(values))], at); err != nil {
			if state := c.d.State(err); state != "" {
				return live, nil, c.uncarried(state)
			}
			return live, nil, err
		}
	}
	var err error
	if live.rows, err = c.printed(ctx, c.live, live.columns); err != nil {
		return live, nil, err
	}
	pairs, err := c.pairs(ctx)
	return live, pairs, err
}

// uncarried says that rows of the database cannot stand in the desired table.
func (c comparison) uncarried(state string) error { return uncarried(c.set, state) }

func uncarried(s *set, state string) error {
	return &failure.Error{Code: report.CodeUnsupported, Categories: []string{"data_rows_updated"}, SQLState: state,
		Message: fmt.Sprintf("line %d of the file %s: rows that the database holds do not fit the table as it is declared (SQLSTATE %s); change the rows before the schema", s.declared.Line, s.declared.File, state)}
}

func union(a, b []Column) []Column {
	out := slices.Clone(a)
	for _, c := range b {
		if !slices.ContainsFunc(out, func(o Column) bool { return o.Name == c.Name }) {
			out = append(out, c)
		}
	}
	return out
}

func (c comparison) pairs(ctx context.Context) (map[int]int, error) {
	n := c.d.Quote(c.number())
	on := make([]string, 0, len(c.set.key))
	for _, key := range c.set.key {
		on = append(on, "a."+c.d.Quote(key.Name)+" = b."+c.d.Quote(key.Name))
	}
	found, err := c.s.Query(ctx, "SELECT a."+n+", b."+n+" FROM "+c.d.Quote(c.desired)+" a JOIN "+c.d.Quote(c.live)+" b ON "+strings.Join(on, " AND "))
	if err != nil {
		return nil, fmt.Errorf("compare keys: %w", closed(c.d, err))
	}
	out := map[int]int{}
	for _, row := range found {
		a, errA := strconv.Atoi(*row[0])
		b, errB := strconv.Atoi(*row[1])
		if _, twice := out[a]; twice || errA != nil || errB != nil {
			return nil, uncarried(c.set, "23505") // a unique key of the desired schema that the rows do not have yet
		}
		out[a] = b
	}
	return out, nil
}
