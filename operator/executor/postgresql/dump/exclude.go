package dump

import (
	"slices"
	"strings"

	"ptah.run/ptah/operator/executor/pattern"
)

// Pattern names objects by "name" in any schema or by "schema.name".
type Pattern = pattern.Pattern

// ParsePatterns reads patterns. With fold, letter case does not matter.
func ParsePatterns(texts []string, fold bool) ([]Pattern, error) { return pattern.Parse(texts, fold) }

// Match says whether a name fits one of the patterns. schema and object are plain, without SQL quotes.
func Match(patterns []Pattern, schema, object string) bool {
	return pattern.Match(patterns, schema, object)
}

// Exclude returns the entries that are not about an excluded object: the object itself, what belongs to an excluded
// table, the sequences such a table owns, and what is said about any of them.
func Exclude(entries []Entry, patterns []Pattern) []Entry {
	if len(patterns) == 0 {
		return entries
	}
	gone := map[string]bool{} // sequences and indexes of excluded tables, as SQL
	matches := func(n Name) bool {
		schema, object := n.Plain()
		return n.Object != "" && (Match(patterns, schema, object) || gone[n.SQL()])
	}
	for _, e := range entries {
		if object, ok := e.Object(); ok && (e.Type == "SEQUENCE OWNED BY" || e.Type == "INDEX") && matches(object.On) {
			gone[object.Name.SQL()] = true
		}
	}
	return slices.DeleteFunc(slices.Clone(entries), func(e Entry) bool {
		object, ok := e.Object()
		return ok && (matches(object.On) || namesObject(e) && matches(object.Name))
	})
}

// namesObject says whether the entry's own name is the name of a thing that a pattern may mean, and not the name of a
// column, constraint or trigger inside a table.
func namesObject(e Entry) bool {
	switch e.Type {
	case "DEFAULT", "CONSTRAINT", "FK CONSTRAINT", "CHECK CONSTRAINT", "TRIGGER", "POLICY", "RULE":
		return false
	case "COMMENT":
		return !strings.HasPrefix(e.Name, "COLUMN ") && !strings.HasPrefix(e.Name, "CONSTRAINT ") &&
			!strings.HasPrefix(e.Name, "TRIGGER ") && !strings.HasPrefix(e.Name, "POLICY ") && !strings.HasPrefix(e.Name, "RULE ")
	}
	return true
}
