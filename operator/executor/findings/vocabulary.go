package findings

import (
	"maps"
	"slices"
)

// vocabulary is closed: whoever reads a report may refuse a category that is not in it, so that a new one is a change of
// the contract. Each category has the words that explain it to a person.
var vocabulary = map[string]string{
	"tables_added":               "a declared table is missing",
	"tables_modified":            "storage, persistence, inheritance or options of a table differ",
	"tables_removed":             "a table is not declared",
	"columns_added":              "a declared column is missing",
	"columns_modified":           "type, default, expression, identity or place of a column differs",
	"columns_removed":            "a column is not declared",
	"vector_dimension_changed":   "a vector column has another number of dimensions",
	"constraints_added":          "a declared foreign key or check is missing",
	"constraints_removed":        "a foreign key or check is not declared",
	"table_constraints_added":    "a declared primary key, unique or exclusion constraint is missing",
	"table_constraints_removed":  "a primary key, unique or exclusion constraint is not declared",
	"indexes_added":              "a declared index is missing",
	"indexes_removed":            "an index is not declared",
	"indexes_invalid":            "a failed build left an index that serves no query",
	"unique_protections_removed": "something that keeps rows from being there twice is not declared in this form",
	"partitions_added":           "a declared partition is missing or not attached",
	"partitions_modified":        "the bounds or the partitioning differ",
	"partitions_removed":         "a partition is attached that is not declared",
	"enums_added":                "a declared enum type is missing",
	"enums_removed":              "an enum type is not declared",
	"enum_values_added":          "an enum lacks a declared label",
	"enum_values_removed":        "an enum has a label that is not declared, or another order",
	"types_added":                "a declared domain, composite or range type is missing",
	"types_modified":             "a domain, composite or range type differs",
	"types_removed":              "a domain, composite or range type is not declared",
	"sequences_added":            "a declared sequence is missing",
	"sequences_modified":         "a sequence or what owns it differs",
	"sequences_removed":          "a sequence is not declared",
	"extensions_added":           "a declared extension is missing",
	"extensions_modified":        "an extension differs",
	"extensions_removed":         "an extension is not declared",
	"schemas_added":              "a declared schema is missing",
	"schemas_modified":           "a schema differs",
	"schemas_removed":            "a schema is not declared",
	"functions_added":            "a declared function, procedure or aggregate is missing",
	"functions_modified":         "a function, procedure or aggregate differs",
	"functions_removed":          "a function, procedure or aggregate is not declared",
	"views_added":                "a declared view is missing",
	"views_modified":             "a view differs",
	"views_removed":              "a view is not declared",
	"triggers_added":             "a declared trigger is missing",
	"triggers_modified":          "a trigger differs, or whether it fires",
	"triggers_removed":           "a trigger is not declared",
	"events_added":               "a declared event is missing",
	"events_modified":            "an event differs",
	"events_removed":             "an event is not declared",
	"rules_added":                "a declared rewrite rule is missing",
	"rules_modified":             "a rewrite rule differs",
	"rules_removed":              "a rewrite rule is not declared",
	"rls_policies_added":         "a declared policy is missing",
	"rls_policies_modified":      "a policy differs",
	"rls_policies_removed":       "a policy is not declared",
	"rls_enabled_tables_added":   "a table lacks the declared row level security",
	"rls_enabled_tables_removed": "row level security is on and not declared",
	"grants_added":               "declared privileges of an object are missing",
	"grants_modified":            "the privileges of an object differ",
	"grants_removed":             "an object has privileges that are not declared",
	"comments_added":             "a declared comment is missing",
	"comments_modified":          "a comment differs",
	"comments_removed":           "a comment is not declared",
	"statistics_added":           "a declared statistics object is missing",
	"statistics_modified":        "a statistics object differs",
	"statistics_removed":         "a statistics object is not declared",
	"collations_added":           "a declared collation is missing",
	"collations_modified":        "a collation differs",
	"collations_removed":         "a collation is not declared",
	"other_objects_added":        "a declared object of another kind is missing",
	"other_objects_modified":     "an object of another kind differs",
	"other_objects_removed":      "an object of another kind is not declared",
	"roles_added":                "a declared role is missing",
	"roles_modified":             "the schema changes roles, which a plan does not",
	"roles_removed":              "a role is not declared",
	"owners_modified":            "the owner of an object differs",
	"data_rows_inserted":         "declared rows are missing",
	"data_rows_updated":          "declared rows differ",
	"data_rows_deleted":          "rows are there that are not declared",
}

// other is where a difference of an unknown category is counted, so that it is never lost.
const other = "other_objects_modified"

// Vocabulary returns every category, sorted.
func Vocabulary() []string { return slices.Sorted(maps.Keys(vocabulary)) }

// Meaning returns what a category counts, in words for a person, or nothing for one that does not exist.
func Meaning(category string) string { return vocabulary[category] }
