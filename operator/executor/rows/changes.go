package rows

import (
	"cmp"
	"slices"
	"strings"

	"ptah.run/ptah/operator/executor/findings"
	"ptah.run/ptah/operator/plan/report"
)

// Operations, in the order in which they are tried.
const (
	Insert = "INSERT"
	Update = "UPDATE"
	Delete = "DELETE"
)

var operations = []string{Insert, Update, Delete}

// Change is one statement about one row.
type Change struct {
	Operation string
	SQL       string
	// Reaches are the other tables whose rows the change may carry along, by schema and name.
	Reaches [][2]string

	set     *set
	line    int
	key     []*string
	changed []string // columns of an update
	place   int      // of the table, parents first
}

func (p *Plan) insert(s *set, i int, row []*string) {
	names := make([]string, 0, len(s.columns))
	values := make([]string, 0, len(s.columns))
	always := false
	for j, c := range s.columns {
		names = append(names, p.dialect.Quote(c.Name))
		values = append(values, p.dialect.Literal(c, row[j]))
		always = always || c.Always
	}
	sql := "INSERT INTO " + p.dialect.Name(s.wanted.Schema, s.wanted.Table) + " (" + strings.Join(names, ", ") + ")"
	if always && p.dialect.Always() != "" {
		sql += " " + p.dialect.Always()
	}
	sql += " VALUES (" + strings.Join(values, ", ") + ")"
	p.changes = append(p.changes, &Change{Operation: Insert, SQL: sql, set: s, line: s.declared.Rows[i].Line, key: s.keyOf(row)})
}

func (p *Plan) update(s *set, i int, row []*string, live liveRows, at int) {
	var assignments, changed []string
	for j, c := range s.columns {
		if now, there := live.value(at, c.Name); !there || !equal(now, row[j]) {
			assignments = append(assignments, p.dialect.Quote(c.Name)+" = "+p.dialect.Literal(c, row[j]))
			changed = append(changed, c.Name)
		}
	}
	if len(assignments) == 0 {
		return
	}
	sql := "UPDATE " + p.dialect.Name(s.wanted.Schema, s.wanted.Table) + " SET " + strings.Join(assignments, ", ") + p.where(s, live, at)
	p.changes = append(p.changes, &Change{Operation: Update, SQL: sql, set: s, line: s.declared.Rows[i].Line, key: s.keyOf(row), changed: changed})
}

func (p *Plan) remove(s *set, live liveRows, at int) {
	c := &Change{Operation: Delete, SQL: "DELETE FROM " + p.dialect.Name(s.wanted.Schema, s.wanted.Table) + p.where(s, live, at), set: s, line: s.declared.Line}
	for _, key := range s.key {
		value, _ := live.value(at, key.Name)
		c.key = append(c.key, value)
	}
	p.changes = append(p.changes, c)
}

// where names a row by the key that it has now.
func (p *Plan) where(s *set, live liveRows, at int) string {
	var parts []string
	for _, c := range s.key {
		value, _ := live.value(at, c.Name)
		parts = append(parts, p.dialect.Quote(c.Name)+" = "+p.dialect.Literal(c, value))
	}
	return " WHERE " + strings.Join(parts, " AND ")
}

func equal(a, b *string) bool { return a == b || a != nil && b != nil && *a == *b }

// sort puts the changes into their first order: what is inserted, parents first, then what changes, then what goes,
// children first; within a table by key.
func (p *Plan) sort() {
	places := p.places()
	for _, c := range p.changes {
		c.place = places[[2]string{c.set.wanted.Schema, c.set.wanted.Table}]
		if c.Operation != Insert {
			c.Reaches = p.reaches(c)
		}
	}
	slices.SortStableFunc(p.changes, func(a, b *Change) int {
		order := cmp.Compare(slices.Index(operations, a.Operation), slices.Index(operations, b.Operation))
		place := cmp.Compare(a.place, b.place)
		if a.Operation == Delete {
			place = -place
		}
		return cmp.Or(order, place, compareRows(a.key, b.key))
	})
}

// places orders the declared tables, parents before children; those in a circle by name.
func (p *Plan) places() map[[2]string]int {
	waits := map[[2]string]map[[2]string]bool{}
	var names [][2]string
	for _, s := range p.sets {
		name := [2]string{s.wanted.Schema, s.wanted.Table}
		names, waits[name] = append(names, name), map[[2]string]bool{}
	}
	for _, f := range p.foreign {
		child, parent := [2]string{f.Schema, f.Table}, [2]string{f.ParentSchema, f.Parent}
		if child != parent && waits[child] != nil && waits[parent] != nil {
			waits[child][parent] = true
		}
	}
	out := map[[2]string]int{}
	for len(out) < len(names) {
		next := slices.IndexFunc(names, func(name [2]string) bool {
			_, done := out[name]
			return !done && len(waits[name]) == 0
		})
		if next < 0 { // a circle: the first that is left, for the order is only a first try
			next = slices.IndexFunc(names, func(name [2]string) bool { _, done := out[name]; return !done })
		}
		out[names[next]] = len(out)
		for _, w := range waits {
			delete(w, names[next])
		}
	}
	return out
}

// reaches returns the tables whose rows a change may carry along, through any number of foreign keys.
func (p *Plan) reaches(c *Change) [][2]string {
	seen := map[[2]string]bool{}
	var out [][2]string
	todo := [][2]string{{c.set.wanted.Schema, c.set.wanted.Table}}
	for len(todo) > 0 {
		parent := todo[0]
		todo = todo[1:]
		for _, f := range p.foreign {
			child := [2]string{f.Schema, f.Table}
			if parent != [2]string{f.ParentSchema, f.Parent} || seen[child] || !p.carries(c, f, len(seen) == 0) {
				continue
			}
			seen[child] = true
			out, todo = append(out, child), append(todo, child)
		}
	}
	return out
}

// carries says whether a foreign key carries a change along: at once, or behind another that did.
func (p *Plan) carries(c *Change, f Foreign, first bool) bool {
	if c.Operation == Delete {
		return f.OnDelete || !first && f.OnUpdate
	}
	return f.OnUpdate && (!first || slices.ContainsFunc(c.changed, func(name string) bool {
		return slices.ContainsFunc(f.ParentColumns, func(other string) bool { return p.dialect.Same(name, other) })
	}))
}

// Findings count the rows to change. A row that goes or changes is destructive: what it held is lost.
func (p *Plan) Findings() []report.Finding {
	counter := findings.Counter{}
	for _, c := range p.changes {
		switch c.Operation {
		case Insert:
			counter.Add("data_rows_inserted", report.SeveritySafe)
		case Update:
			counter.Add("data_rows_updated", report.SeverityDestructive)
		case Delete:
			counter.Add("data_rows_deleted", report.SeverityDestructive)
		}
	}
	return counter.Sorted()
}

// Tables are the tables whose rows change, those that changes may reach included.
func (p *Plan) Tables() [][2]string {
	var out [][2]string
	for _, c := range p.changes {
		out = append(append(out, [2]string{c.set.wanted.Schema, c.set.wanted.Table}), c.Reaches...)
	}
	return out
}

// Empty says that no row changes.
func (p *Plan) Empty() bool { return len(p.changes) == 0 }
