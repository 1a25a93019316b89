package hcl

// kind is what the value of an attribute may be. Every value is plain: no variable, no function, no condition.
type kind int

const (
	text       kind = iota // a string or heredoc that names no object: SQL, or what a person wrote
	said                   // a string that Atlas puts into quotes, such as a comment
	truth                  // true or false
	number                 // a whole number
	reference              // schema.NAME, column.NAME, table.NAME.column.NAME
	references             // a list of references
	word                   // a bare word such as CASCADE, or a string of one
	typeName               // a type with its arguments, sql("..."), or enum.NAME
	preset                 // a default: a string, a number, a truth or sql("...")
	raw                    // sql("...")
	labelsOf               // a list of strings that Atlas puts into quotes: the values of an enum
)

// block is what a block may hold. Whatever is not named here is refused.
type block struct {
	// labels are the names behind the type of the block: at least the first, at most the second.
	labels     [2]int
	attributes map[string]kind
	blocks     map[string]*block
	// once says that the block around holds at most one of it.
	once bool
}

var foreignKey = &block{labels: [2]int{1, 1}, attributes: map[string]kind{"columns": references, "ref_columns": references,
	"on_update": word, "on_delete": word}}

var check = &block{labels: [2]int{1, 1}, attributes: map[string]kind{"expr": text}}

var computed = &block{once: true, attributes: map[string]kind{"expr": text, "type": word}}

// postgresqlGrammar is what may stand in a file for PostgreSQL.
var postgresqlGrammar = &block{blocks: map[string]*block{
	"schema": {labels: [2]int{1, 1}, attributes: map[string]kind{"comment": said}},
	"enum":   {labels: [2]int{1, 2}, attributes: map[string]kind{"schema": reference, "values": labelsOf}},
	"table": {labels: [2]int{1, 2}, attributes: map[string]kind{"schema": reference, "comment": said}, blocks: map[string]*block{
		"column": {labels: [2]int{1, 1}, attributes: map[string]kind{"type": typeName, "null": truth, "default": preset, "comment": said, "as": text},
			blocks: map[string]*block{
				"as":       computed,
				"identity": {once: true, attributes: map[string]kind{"generated": word, "start": number, "increment": number}},
			}},
		"primary_key": {once: true, attributes: map[string]kind{"columns": references, "include": references}},
		"index": {labels: [2]int{1, 1}, attributes: map[string]kind{"columns": references, "unique": truth, "type": word, "where": text,
			"include": references, "nulls_distinct": truth, "comment": said, "page_per_range": number},
			blocks: map[string]*block{"on": {attributes: map[string]kind{"column": reference, "expr": text, "desc": truth,
				"nulls_first": truth, "nulls_last": truth, "ops": word}}}},
		"unique":      {labels: [2]int{1, 1}, attributes: map[string]kind{"columns": references, "include": references, "nulls_distinct": truth}},
		"foreign_key": foreignKey,
		"check":       check,
		"partition": {once: true, attributes: map[string]kind{"type": word, "columns": references},
			blocks: map[string]*block{"by": {attributes: map[string]kind{"column": reference, "expr": text}}}},
	}},
}}

// mysqlGrammar is what may stand in a file for MySQL.
var mysqlGrammar = &block{blocks: map[string]*block{
	"schema": {labels: [2]int{1, 1}, attributes: map[string]kind{"charset": word, "collate": word}},
	"table": {labels: [2]int{1, 2}, attributes: map[string]kind{"schema": reference, "comment": said, "charset": word, "collate": word,
		"engine": word, "auto_increment": number}, blocks: map[string]*block{
		"column": {labels: [2]int{1, 1}, attributes: map[string]kind{"type": typeName, "null": truth, "default": preset, "comment": said, "as": text,
			"unsigned": truth, "charset": word, "collate": word, "auto_increment": truth, "on_update": raw}, blocks: map[string]*block{"as": computed}},
		"primary_key": {once: true, attributes: map[string]kind{"columns": references},
			blocks: map[string]*block{"on": {attributes: map[string]kind{"column": reference, "desc": truth, "prefix": number}}}},
		"index": {labels: [2]int{1, 1}, attributes: map[string]kind{"columns": references, "unique": truth, "type": word, "parser": word, "comment": said},
			blocks: map[string]*block{"on": {attributes: map[string]kind{"column": reference, "expr": text, "desc": truth, "prefix": number}}}},
		"foreign_key": foreignKey,
		"check":       check,
	}},
}}

// elsewhere are blocks of Atlas that are better declared in SQL, beside the HCL.
var elsewhere = map[string]bool{"view": true, "materialized": true, "function": true, "procedure": true, "aggregate": true, "trigger": true,
	"sequence": true, "extension": true, "domain": true, "composite": true, "range": true, "policy": true, "event_trigger": true,
	"role": true, "user": true, "permission": true, "collation": true, "cast": true, "server": true, "foreign_table": true, "exclude": true}

// parametric are the blocks with which Atlas's files become programs.
var parametric = map[string]bool{"variable": true, "locals": true, "data": true, "dynamic": true, "atlas": true, "env": true}
