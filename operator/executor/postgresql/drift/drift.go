// Package drift counts how two schemas differ. A count has a category and a severity and never a name, a row or a
// piece of SQL, so that it may be shown to anybody who may see that a database exists.
package drift

import (
	"fmt"
	"slices"
	"strings"

	"ptah.run/ptah/operator/executor/findings"
	"ptah.run/ptah/operator/executor/postgresql/dump"
	"ptah.run/ptah/operator/plan/report"
)

// group is how one type of dump entry is counted. A changed entry is "modified" where the category exists, and
// otherwise counts as one removed and one added.
type group struct {
	prefix                   string
	added, modified, removed report.Severity // an empty severity says that the category does not exist
}

const (
	safe        = report.SeveritySafe
	warning     = report.SeverityWarning
	destructive = report.SeverityDestructive
)

var groups = map[string]group{
	"TABLE":             {"tables", safe, "", destructive},
	"FOREIGN TABLE":     {"tables", safe, warning, destructive},
	"INDEX":             {"indexes", warning, "", warning},
	"INDEX ATTACH":      {"indexes", warning, "", warning},
	"CONSTRAINT":        {"table_constraints", warning, "", destructive},
	"FK CONSTRAINT":     {"constraints", warning, "", destructive},
	"CHECK CONSTRAINT":  {"constraints", warning, "", destructive},
	"EXTENSION":         {"extensions", safe, warning, destructive},
	"FUNCTION":          {"functions", safe, warning, destructive},
	"PROCEDURE":         {"functions", safe, warning, destructive},
	"AGGREGATE":         {"functions", safe, warning, destructive},
	"POLICY":            {"rls_policies", safe, warning, destructive},
	"ROW SECURITY":      {"rls_enabled_tables", safe, "", destructive},
	"VIEW":              {"views", safe, warning, warning},
	"MATERIALIZED VIEW": {"views", safe, warning, destructive},
	"TRIGGER":           {"triggers", warning, warning, warning},
	"SEQUENCE":          {"sequences", safe, warning, destructive},
	"DOMAIN":            {"types", safe, warning, destructive},
	"TYPE":              {"types", safe, warning, destructive},
	"SCHEMA":            {"schemas", safe, warning, destructive},
	"COMMENT":           {"comments", safe, safe, safe},
	"ACL":               {"grants", warning, warning, warning},
	"DEFAULT ACL":       {"grants", warning, warning, warning},
	"STATISTICS":        {"statistics", safe, safe, safe},
	"RULE":              {"rules", warning, warning, warning},
	"COLLATION":         {"collations", safe, warning, warning},
	"TABLE ATTACH":      {"partitions", safe, warning, warning},
}

var other = group{"other_objects", safe, warning, destructive}

// Findings counts the differences between what a database holds and what is desired, sorted by descending severity
// and then by category.
func Findings(from, to []dump.Entry) []report.Finding {
	c := counter{findings.Counter{}, tablesOf(from), tablesOf(to), dump.Index(from), dump.Index(to), map[string]bool{}}
	for _, d := range dump.Compare(from, to) {
		c.difference(d)
	}
	return c.Sorted()
}

// Highest returns the highest severity of the findings, or an empty one.
func Highest(all []report.Finding) report.Severity { return findings.Highest(all) }

// Categories returns the sorted categories of the findings.
func Categories(all []report.Finding) []string { return findings.Categories(all) }

type counter struct {
	findings.Counter
	// had and wanted are the columns of each table, by the names as SQL.
	had, wanted map[string]map[string]bool
	from, to    dump.Set
	// modified are the columns counted so far: more than one entry may speak of a column.
	modified map[string]bool
}

func (c counter) modifiedColumn(table, column string) {
	if name := table + " " + column; !c.modified[name] {
		c.modified[name] = true
		c.add("columns_modified", warning)
	}
}

func tablesOf(entries []dump.Entry) map[string]map[string]bool {
	out := map[string]map[string]bool{}
	for _, e := range entries {
		table, ok := e.Table()
		if !ok {
			continue
		}
		names := map[string]bool{}
		for _, column := range table.Columns {
			names[column.Name] = true
		}
		out[table.Name.SQL()] = names
	}
	return out
}

// ofColumn counts a default or an identity that stands apart from its column. Where the column itself comes or goes, it is
// counted by that.
func (c counter) ofColumn(d dump.Difference) {
	for _, e := range slices.Concat(d.From, d.To) {
		object, ok := e.Object()
		if !ok {
			continue
		}
		table, column := object.On.SQL(), object.Name.SQL()
		apart := c.had[table] == nil && c.wanted[table] == nil // a view, or a table of a form that is not taken apart
		if apart || c.had[table][column] && c.wanted[table][column] {
			c.modifiedColumn(table, column)
		}
	}
}

func (c counter) add(category string, severity report.Severity) { c.Add(category, severity) }

func (c counter) difference(d dump.Difference) {
	switch {
	case d.Key.Type == "TYPE" && (isEnum(d.From) || isEnum(d.To)):
		c.enum(d)
		return
	case d.Key.Type == "TABLE" && len(d.From) == 1 && len(d.To) == 1:
		c.table(d.From[0], d.To[0])
		return
	case d.Key.Type == "DEFAULT" || d.Key.Type == "SEQUENCE" && isIdentity(d.From, d.To):
		c.ofColumn(d)
		return
	case d.Key.Type == "SEQUENCE OWNED BY":
		sequence := dump.Key{Type: "SEQUENCE", Schema: d.Key.Schema, Name: d.Key.Name}
		if len(c.from[sequence]) > 0 && len(c.to[sequence]) > 0 {
			c.add("sequences_modified", warning)
		}
		return
	}
	g, ok := groups[d.Key.Type]
	if !ok {
		g = other
	}
	unique := func(entries []dump.Entry) bool { return slices.ContainsFunc(entries, isUnique) }
	switch {
	case len(d.From) == 0:
		c.add(g.prefix+"_added", g.added)
	case len(d.To) == 0:
		c.add(g.prefix+"_removed", g.removed)
		if unique(d.From) {
			c.add("unique_protections_removed", destructive)
		}
	case g.modified != "":
		c.add(g.prefix+"_modified", g.modified)
	default:
		c.add(g.prefix+"_removed", g.removed)
		c.add(g.prefix+"_added", g.added)
		if unique(d.From) { // another form may let rows be there twice that were not before
			c.add("unique_protections_removed", destructive)
		}
	}
}

func isUnique(e dump.Entry) bool {
	if len(e.Statements) == 0 {
		return false
	}
	switch e.Type {
	case "INDEX":
		return strings.HasPrefix(e.Statements[0], "CREATE UNIQUE ")
	case "CONSTRAINT":
		return slices.ContainsFunc(dump.Tokens(e.Statements[0]), func(t dump.Token) bool { return t.Is("UNIQUE") || t.Is("PRIMARY") })
	}
	return false
}

// isIdentity says whether a sequence is one that an identity column brings along.
func isIdentity(sides ...[]dump.Entry) bool {
	for _, entries := range sides {
		for _, e := range entries {
			if object, ok := e.Object(); ok && object.Kind == "IDENTITY" {
				return true
			}
		}
	}
	return false
}

func isEnum(entries []dump.Entry) bool {
	return len(entries) > 0 && len(dump.EnumLabels(entries[0])) > 0
}

func (c counter) enum(d dump.Difference) {
	switch {
	case len(d.From) == 0:
		c.add("enums_added", safe)
	case len(d.To) == 0:
		c.add("enums_removed", destructive)
	default:
		from, to := dump.EnumLabels(d.From[0]), dump.EnumLabels(d.To[0])
		added, removed := false, false
		for _, label := range to {
			added = added || !slices.Contains(from, label)
		}
		for _, label := range from {
			removed = removed || !slices.Contains(to, label)
		}
		if added {
			c.add("enum_values_added", warning)
		}
		if removed || !added { // what neither adds nor removes is another order
			c.add("enum_values_removed", destructive)
		}
	}
}

// table counts what differs inside one table.
func (c counter) table(from, to dump.Entry) {
	a, okA := from.Table()
	b, okB := to.Table()
	if !okA || !okB {
		c.add("tables_modified", warning)
		return
	}
	c.columns(b.Name.SQL(), columns(a), columns(b))
	c.constraints(constraints(a), constraints(b))
	if a.Rest != b.Rest {
		c.add("partitions_modified", destructive) // it takes a new table
	}
	if from.AccessMethod != to.AccessMethod || settings(a) != settings(b) {
		c.add("tables_modified", warning)
	}
}

// settings is what a table says beside its columns and constraints: storage, persistence, inheritance.
func settings(t dump.Table) string {
	extra := slices.Sorted(slices.Values(t.Extra))
	return fmt.Sprintf("%t %q %q %q", t.Unlogged, t.Options, t.Inherits, extra)
}

func (c counter) columns(table string, from, to map[string]dump.Column) {
	for name, now := range to {
		was, ok := from[name]
		switch {
		case !ok:
			c.add("columns_added", warning)
		case was.Text == now.Text:
		case was.Type != now.Type && vector(was.Type) && vector(now.Type):
			c.add("vector_dimension_changed", destructive) // no value of the one is a value of the other
		default:
			c.modifiedColumn(table, name)
		}
	}
	for name := range from {
		if _, ok := to[name]; !ok {
			c.add("columns_removed", destructive)
		}
	}
}

// vector says whether a type is one of those that the extension vector brings.
func vector(sql string) bool {
	name, _, _ := strings.Cut(sql[strings.LastIndexByte(sql, '.')+1:], "(")
	return name == "vector" || name == "halfvec" || name == "sparsevec"
}

func (c counter) constraints(from, to map[string]string) {
	for name, text := range to {
		if from[name] != text {
			c.add("constraints_added", warning)
		}
	}
	for name, text := range from {
		if to[name] != text {
			c.add("constraints_removed", destructive)
		}
	}
}

func columns(t dump.Table) map[string]dump.Column {
	out := map[string]dump.Column{}
	for _, column := range t.Columns {
		out[column.Name] = column
	}
	return out
}

func constraints(t dump.Table) map[string]string {
	out := map[string]string{}
	for _, constraint := range t.Constraints {
		out[constraint.Name] = constraint.Text
	}
	return out
}
