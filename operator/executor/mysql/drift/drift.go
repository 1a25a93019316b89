// Package drift counts how two MySQL schemas differ, by category and without names.
package drift

import (
	"slices"
	"strings"

	"ptah.run/ptah/operator/executor/findings"
	"ptah.run/ptah/operator/executor/mysql/dump"
	"ptah.run/ptah/operator/executor/mysql/sqltext"
	"ptah.run/ptah/operator/plan/report"
)

const (
	safe        = report.SeveritySafe
	warning     = report.SeverityWarning
	destructive = report.SeverityDestructive
)

// group is how one kind of object is counted.
type group struct {
	prefix                   string
	added, modified, removed report.Severity
}

var groups = map[string]group{
	dump.KindView:      {"views", safe, warning, warning},
	dump.KindFunction:  {"functions", safe, warning, destructive},
	dump.KindProcedure: {"functions", safe, warning, destructive},
	dump.KindTrigger:   {"triggers", warning, warning, warning},
	dump.KindEvent:     {"events", warning, warning, warning},
}

// Findings counts the differences between what a database holds and what is desired, sorted by descending severity and
// then by category.
func Findings(from, to []dump.Entry) []report.Finding {
	c := counter{findings.Counter{}}
	for _, d := range dump.Compare(from, to) {
		switch g, other := groups[d.Key.Kind]; {
		case d.Key.Kind == dump.KindTable:
			c.table(d)
		case !other:
			c.Add("other_objects_modified", destructive)
		case d.From == nil:
			c.Add(g.prefix+"_added", g.added)
		case d.To == nil:
			c.Add(g.prefix+"_removed", g.removed)
		default:
			c.Add(g.prefix+"_modified", g.modified)
		}
	}
	return c.Sorted()
}

type counter struct{ findings.Counter }

// table counts what differs inside one table.
func (c counter) table(d dump.Difference) {
	switch {
	case d.From == nil:
		c.Add("tables_added", safe)
		return
	case d.To == nil:
		c.Add("tables_removed", destructive)
		return
	}
	a, errA := dump.ParseTable(d.From.SQL)
	b, errB := dump.ParseTable(d.To.SQL)
	if errA != nil || errB != nil {
		c.Add("tables_modified", warning)
		return
	}
	before := c.Total()
	c.columns(a.Columns, b.Columns)
	c.items(a.Checks, b.Checks, "constraints", kept{added: warning, removed: destructive})
	c.items(a.Foreign, b.Foreign, "constraints", kept{added: warning, removed: destructive})
	c.keys(a.Keys, b.Keys)
	if a.Options != b.Options {
		c.Add("tables_modified", warning)
	}
	if a.Partition != b.Partition {
		c.Add("partitions_modified", destructive)
	}
	if c.Total() == before { // the same columns in another order
		c.Add("columns_modified", warning)
	}
}

// kept are the severities of one sort of item. Without modified, a changed item is one removed and one added.
type kept struct{ added, modified, removed report.Severity }

func (c counter) items(from, to []dump.Item, prefix string, k kept) {
	was, now := dump.ByName(from), dump.ByName(to)
	for name, item := range now {
		old, ok := was[name]
		switch {
		case !ok:
			c.Add(prefix+"_added", k.added)
		case old.SQL == item.SQL:
		case k.modified != "":
			c.Add(prefix+"_modified", k.modified)
		default:
			c.Add(prefix+"_removed", k.removed)
			c.Add(prefix+"_added", k.added)
		}
	}
	for name := range was {
		if _, ok := now[name]; !ok {
			c.Add(prefix+"_removed", k.removed)
		}
	}
}

// columns counts columns. A column whose list of labels or whose number of dimensions differs is counted by that too.
func (c counter) columns(from, to []dump.Item) {
	was := dump.ByName(from)
	for _, now := range to {
		old, ok := was[strings.ToLower(now.Name)]
		if !ok || old.SQL == now.SQL {
			continue
		}
		c.labels(labels(old.SQL), labels(now.SQL))
		if a, b := dimensions(old.SQL), dimensions(now.SQL); a != "" && b != "" && a != b {
			c.Add("vector_dimension_changed", destructive)
		}
	}
	c.items(from, to, "columns", kept{added: warning, modified: warning, removed: destructive})
}

// labels returns the labels of an enum or set column as the server prints them, or nil for any other column.
func labels(sql string) []string {
	tokens := sqltext.Tokens(sql)
	if len(tokens) < 4 || !tokens[1].Is("enum") && !tokens[1].Is("set") || !tokens[2].Is("(") {
		return nil
	}
	var out []string
	for _, t := range tokens[3:] {
		switch {
		case t.Is(")"):
			return out
		case !t.Is(","):
			out = append(out, t.Text)
		}
	}
	return nil
}

func (c counter) labels(from, to []string) {
	if from == nil || to == nil || slices.Equal(from, to) {
		return
	}
	lacks := func(all, some []string) bool {
		return slices.ContainsFunc(some, func(label string) bool { return !slices.Contains(all, label) })
	}
	added, removed := lacks(from, to), lacks(to, from)
	if added {
		c.Add("enum_values_added", warning)
	}
	if removed || !slices.IsSortedFunc(slices.DeleteFunc(slices.Clone(to), func(l string) bool { return !slices.Contains(from, l) }),
		func(a, b string) int { return slices.Index(from, a) - slices.Index(from, b) }) {
		c.Add("enum_values_removed", destructive) // another order gives rows another number
	}
}

// dimensions returns the number of dimensions of a vector column, or nothing for any other column.
func dimensions(sql string) string {
	tokens := sqltext.Tokens(sql)
	if len(tokens) < 5 || !tokens[1].Is("vector") || !tokens[2].Is("(") {
		return ""
	}
	return tokens[3].Text
}

// keys counts indexes and primary keys, and those of them that are unique once more where they leave: rows may then be
// there twice.
func (c counter) keys(from, to []dump.Item) {
	now := dump.ByName(to)
	for _, item := range from {
		if item.Kind == dump.UniqueKey && now[strings.ToLower(item.Name)].SQL != item.SQL {
			c.Add("unique_protections_removed", destructive)
		}
	}
	primary := func(i dump.Item) bool { return i.Name == "PRIMARY" && i.Kind == dump.UniqueKey }
	only := func(items []dump.Item, wanted bool) []dump.Item {
		return slices.DeleteFunc(slices.Clone(items), func(i dump.Item) bool { return primary(i) != wanted })
	}
	c.items(only(from, true), only(to, true), "table_constraints", kept{added: warning, removed: destructive})
	c.items(only(from, false), only(to, false), "indexes", kept{added: warning, removed: warning})
}
