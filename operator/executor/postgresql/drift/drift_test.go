package drift

import (
	"maps"
	"reflect"
	"testing"

	"ptah.run/ptah/operator/executor/findings"
	"ptah.run/ptah/operator/executor/postgresql/dump"
	"ptah.run/ptah/operator/plan/report"
)

// Every category that a type of entry can lead to is one of the closed vocabulary.
func TestEveryCategoryIsInTheVocabulary(t *testing.T) {
	all := maps.Clone(groups)
	all[""] = other
	for kind, g := range all {
		for suffix, severity := range map[string]report.Severity{"_added": g.added, "_modified": g.modified, "_removed": g.removed} {
			if category := g.prefix + suffix; severity != "" && findings.Meaning(category) == "" {
				t.Errorf("%s leads to %s, which is not in the vocabulary", kind, category)
			}
		}
	}
}

func entry(kind, name string, statements ...string) dump.Entry {
	return dump.Entry{Type: kind, Schema: "public", Name: name, Statements: statements}
}

func TestFindings(t *testing.T) {
	table := func(sql string) []dump.Entry { return []dump.Entry{entry("TABLE", "t", sql)} }
	one := func(category string, severity report.Severity) []report.Finding {
		return []report.Finding{{Category: category, Count: 1, Severity: severity}}
	}
	base := table("CREATE TABLE public.t (\n    a integer,\n    v public.vector(3)\n)")
	identity := entry("SEQUENCE", "t_a_seq", "ALTER TABLE public.t ALTER COLUMN a ADD GENERATED ALWAYS AS IDENTITY (\n    SEQUENCE NAME public.t_a_seq\n    START WITH 1\n)")
	for name, test := range map[string]struct {
		from, to []dump.Entry
		want     []report.Finding
	}{
		"nothing":                      {base, base, []report.Finding{}},
		"another number of dimensions": {base, table("CREATE TABLE public.t (\n    a integer,\n    v public.vector(4)\n)"), one("vector_dimension_changed", destructive)},
		"another type":                 {base, table("CREATE TABLE public.t (\n    a bigint,\n    v public.vector(3)\n)"), one("columns_modified", warning)},
		"unlogged":                     {base, table("CREATE UNLOGGED TABLE public.t (\n    a integer,\n    v public.vector(3)\n)"), one("tables_modified", warning)},
		"a column and its storage": {base, table("CREATE TABLE public.t (\n    a integer\n)\nWITH (fillfactor='70')"),
			[]report.Finding{{Category: "columns_removed", Count: 1, Severity: destructive}, {Category: "tables_modified", Count: 1, Severity: warning}}},
		"partitioned":               {base, table("CREATE TABLE public.t (\n    a integer,\n    v public.vector(3)\n)\nPARTITION BY RANGE (a)"), one("partitions_modified", destructive)},
		"an identity":               {base, append(base[:1:1], identity), one("columns_modified", warning)},
		"a table with an identity":  {nil, append(base[:1:1], identity), one("tables_added", safe)},
		"a column with an identity": {table("CREATE TABLE public.t (\n    v public.vector(3)\n)"), append(base[:1:1], identity), one("columns_added", warning)},
		"a unique index of other columns": {[]dump.Entry{entry("INDEX", "i", "CREATE UNIQUE INDEX i ON public.t USING btree (a)")}, []dump.Entry{entry("INDEX", "i", "CREATE UNIQUE INDEX i ON public.t USING btree (a, v)")},
			[]report.Finding{{Category: "unique_protections_removed", Count: 1, Severity: destructive}, {Category: "indexes_added", Count: 1, Severity: warning}, {Category: "indexes_removed", Count: 1, Severity: warning}}},
		"an unknown kind": {nil, []dump.Entry{entry("GIZMO", "g", "CREATE GIZMO g")}, one("other_objects_added", safe)},
	} {
		if got := Findings(test.from, test.to); !reflect.DeepEqual(got, test.want) {
			t.Errorf("%s: %+v", name, got)
		}
	}
}
