// Package drift counts how two MySQL schemas differ, by category and without names.
package drift

import (
	"strings"

	"ptah.run/ptah/operator/executor/findings"
	"ptah.run/ptah/operator/executor/mysql/dump"
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
	c.items(a.Columns, b.Columns, "columns", kept{added: warning, modified: warning, removed: destructive})
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

// keys counts indexes, and unique ones that leave once more: rows may then be there twice.
func (c counter) keys(from, to []dump.Item) {
	now := dump.ByName(to)
	for _, item := range from {
		if item.Kind == dump.UniqueKey && now[strings.ToLower(item.Name)].SQL != item.SQL {
			c.Add("unique_protections_removed", destructive)
		}
	}
	c.items(from, to, "indexes", kept{added: warning, removed: warning})
}
