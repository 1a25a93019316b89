package hcl

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
)

// sample is a schema in which every block of the grammar stands, with holes for the attributes of one of them.
type sample struct {
	// place is the block, as its path in the grammar.
	place string
	// attribute and two values for it that make different SQL.
	attribute, one, two string
	// beside is what else the block needs for these values.
	beside string
}

// wrap makes a whole file of the body of one block.
func wrap(mysql bool, place, body string) string {
	table := "table \"t\" {\n  schema = schema.shop\n%s\n}\ntable \"u\" {\n  schema = schema.shop\n  column \"id\" {\n    type = int\n    null = false\n  }\n  column \"id2\" {\n    type = int\n    null = false\n  }\n  primary_key {\n    columns = [column.id]\n  }\n}\nschema \"shop\" {}\nschema \"other\" {}\nenum \"e\" {\n schema = schema.shop\n values = [\"a\"]\n}\n"
	if mysql {
		table = strings.Split(table, "schema \"other\"")[0]
	}
	columns := "  column \"a\" {\n    type = int\n    null = true\n  }\n  column \"b\" {\n    type = %s\n    null = true\n  }\n"
	columns = fmt.Sprintf(columns, map[bool]string{false: "text", true: "varchar(40)"}[mysql])
	in := func(inner string) string { return fmt.Sprintf(table, columns+inner) }
	switch place {
	case "schema":
		return "schema \"s\" {\n" + body + "\n}\n" + map[bool]string{false: in("")}[mysql]
	case "enum":
		return in("") + "enum \"f\" {\n" + body + "\n}\n"
	case "table":
		return strings.Replace(in(""), "  schema = schema.shop", body, 1)
	case "table/column":
		return in("column \"c\" {\n" + body + "\n}")
	case "table/column/as", "table/column/identity":
		return in("column \"c\" {\n type = int\n null = false\n " + strings.TrimPrefix(place, "table/column/") + " {\n" + body + "\n}\n}")
	case "table/primary_key", "table/partition":
		return in(strings.TrimPrefix(place, "table/") + " {\n" + body + "\n}")
	case "table/primary_key/on":
		return in("primary_key {\n on {\n" + body + "\n}\n}")
	case "table/index/on":
		return in("index \"i\" {\n on {\n" + body + "\n}\n}")
	case "table/partition/by":
		return in("partition {\n type = HASH\n by {\n" + body + "\n}\n}")
	}
	return in(strings.TrimPrefix(place, "table/") + " \"x\" {\n" + body + "\n}")
}

var postgresqlSamples = []sample{
	{"schema", "comment", `"one"`, `"it's two"`, ""},
	{"enum", "schema", "schema.shop", "schema.other", `values = ["a"]`},
	{"enum", "values", `["a", "b"]`, `["a", "it's"]`, "schema = schema.shop"},
	{"table", "schema", "schema.shop", "schema.other", ""},
	{"table", "comment", `"one"`, `"it's two"`, "schema = schema.shop"},
	{"table/column", "type", "varchar(10)", "varchar(20)", ""},
	{"table/column", "type", "int", "enum.e", ""},
	{"table/column", "type", `sql("int[]")`, `timestamptz(3)`, ""},
	{"table/column", "type", "numeric(10,2)", "double_precision", ""},
	{"table/column", "null", "true", "false", "type = int"},
	{"table/column", "default", "1", "2", "type = int"},
	{"table/column", "default", `"x"`, `"it's"`, "type = text"},
	{"table/column", "default", `sql("now()")`, `sql("clock_timestamp()")`, "type = timestamptz"},
	{"table/column", "default", "true", "false", "type = boolean"},
	{"table/column", "comment", `"one"`, `"two"`, "type = int"},
	{"table/column", "as", `"a + 1"`, `"a + 2"`, "type = int"},
	{"table/column/as", "expr", `"a + 1"`, `"a + 2"`, ""},
	{"table/column/as", "type", "STORED", "", `expr = "a"`},
	{"table/column/identity", "generated", "ALWAYS", "BY_DEFAULT", ""},
	{"table/column/identity", "start", "5", "6", "generated = ALWAYS"},
	{"table/column/identity", "increment", "5", "6", "generated = ALWAYS"},
	{"table/primary_key", "columns", "[column.a]", "[column.b, column.a]", ""},
	{"table/primary_key", "include", "[column.b]", "", "columns = [column.a]"},
	{"table/index", "columns", "[column.a]", "[column.b]", ""},
	{"table/index", "unique", "true", "false", "columns = [column.a]"},
	{"table/index", "type", "HASH", "BTREE", "columns = [column.a]"},
	{"table/index", "where", `"a > 1"`, `"a > 2"`, "columns = [column.a]"},
	{"table/index", "include", "[column.b]", "", "columns = [column.a]"},
	{"table/index", "nulls_distinct", "false", "true", "columns = [column.a]\nunique = true"},
	{"table/index", "comment", `"one"`, `"two"`, "columns = [column.a]"},
	{"table/index", "page_per_range", "2", "3", "columns = [column.a]\ntype = BRIN"},
	{"table/index/on", "column", "column.a", "column.b", ""},
	{"table/index/on", "expr", `"lower(b)"`, `"upper(b)"`, ""},
	{"table/index/on", "desc", "true", "false", "column = column.a"},
	{"table/index/on", "nulls_first", "true", "false", "column = column.a"},
	{"table/index/on", "nulls_last", "true", "false", "column = column.a\ndesc = true"},
	{"table/index/on", "ops", "text_pattern_ops", "", "column = column.b"},
	{"table/unique", "columns", "[column.a]", "[column.b]", ""},
	{"table/unique", "include", "[column.b]", "", "columns = [column.a]"},
	{"table/unique", "nulls_distinct", "false", "true", "columns = [column.a]"},
	{"table/foreign_key", "columns", "[column.a]", "[column.b]", "ref_columns = [table.u.column.id]"},
	{"table/foreign_key", "ref_columns", "[table.u.column.id]", "[table.u.column.id2]", "columns = [column.a]"},
	{"table/foreign_key", "on_update", "CASCADE", "SET_NULL", "columns = [column.a]\nref_columns = [table.u.column.id]"},
	{"table/foreign_key", "on_delete", "CASCADE", "SET_NULL", "columns = [column.a]\nref_columns = [table.u.column.id]"},
	{"table/check", "expr", `"a > 1"`, `"a > 2"`, ""},
	{"table/partition", "type", "RANGE", "LIST", "columns = [column.a]"},
	{"table/partition", "columns", "[column.a]", "[column.b]", "type = RANGE"},
	{"table/partition/by", "column", "column.a", "column.b", ""},
	{"table/partition/by", "expr", `"(a + 1)"`, `"(a + 2)"`, ""},
}

var mysqlSamples = []sample{
	{"table", "comment", `"one"`, `"it's \"two\""`, "schema = schema.shop"},
	{"table", "charset", `"latin1"`, `"ascii"`, "schema = schema.shop\ncollate = \"latin1_bin\""},
	{"table", "collate", `"latin1_bin"`, `"latin1_general_ci"`, "schema = schema.shop"},
	{"table", "engine", "InnoDB", "MyISAM", "schema = schema.shop"},
	{"table", "auto_increment", "10", "20", "schema = schema.shop"},
	{"table/column", "type", "varchar(10)", "varchar(20)", ""},
	{"table/column", "type", `enum("a", "b")`, `set("a", "b")`, ""},
	{"table/column", "type", "tinyint(1)", "int(11)", ""},
	{"table/column", "type", "decimal(10,2)", "datetime(6)", ""},
	{"table/column", "null", "true", "false", "type = int"},
	{"table/column", "default", "1", "2", "type = int"},
	{"table/column", "default", `"x"`, `"it's"`, "type = varchar(10)"},
	{"table/column", "default", `sql("(uuid())")`, `sql("(lower('x'))")`, "type = varchar(40)"},
	{"table/column", "default", `sql("CURRENT_TIMESTAMP")`, `sql("CURRENT_TIMESTAMP(0)")`, "type = datetime"},
	{"table/column", "comment", `"one"`, `"two"`, "type = int"},
	{"table/column", "as", `"a + 1"`, `"a + 2"`, "type = int"},
	{"table/column", "unsigned", "true", "false", "type = int"},
	{"table/column", "charset", `"latin1"`, `"ascii"`, "type = varchar(10)\ncollate = \"latin1_bin\""},
	{"table/column", "collate", `"latin1_bin"`, `"latin1_general_ci"`, "type = varchar(10)"},
	{"table/column", "auto_increment", "true", "false", "type = int"},
	{"table/column", "on_update", `sql("CURRENT_TIMESTAMP")`, "", "type = datetime"},
	{"table/column/as", "expr", `"a + 1"`, `"a + 2"`, ""},
	{"table/column/as", "type", "STORED", "VIRTUAL", `expr = "a"`},
	{"table/primary_key", "columns", "[column.a]", "[column.b, column.a]", ""},
	{"table/primary_key/on", "column", "column.a", "column.b", ""},
	{"table/primary_key/on", "desc", "true", "false", "column = column.a"},
	{"table/primary_key/on", "prefix", "3", "4", "column = column.b"},
	{"table/index", "columns", "[column.a]", "[column.b]", ""},
	{"table/index", "unique", "true", "false", "columns = [column.a]"},
	{"table/index", "type", "FULLTEXT", "BTREE", "columns = [column.b]"},
	{"table/index", "parser", "ngram", "", "columns = [column.b]\ntype = FULLTEXT"},
	{"table/index", "comment", `"one"`, `"two"`, "columns = [column.a]"},
	{"table/index/on", "column", "column.a", "column.b", ""},
	{"table/index/on", "expr", `"(lower(b))"`, `"(upper(b))"`, ""},
	{"table/index/on", "desc", "true", "false", "column = column.a"},
	{"table/index/on", "prefix", "3", "4", "column = column.b"},
	{"table/foreign_key", "columns", "[column.a]", "[column.b]", "ref_columns = [table.u.column.id]"},
	{"table/foreign_key", "ref_columns", "[table.u.column.id]", "[table.u.column.id2]", "columns = [column.a]"},
	{"table/foreign_key", "on_update", "CASCADE", "SET_NULL", "columns = [column.a]\nref_columns = [table.u.column.id]"},
	{"table/foreign_key", "on_delete", "CASCADE", "SET_NULL", "columns = [column.a]\nref_columns = [table.u.column.id]"},
	{"table/check", "expr", `"a > 1"`, `"a > 2"`, ""},
}

// loaded makes SQL of one file.
func loaded(mysql bool, source string) (string, error) {
	files := []File{{"shop.hcl", []byte(source)}}
	statements, err := PostgreSQL(files)
	if mysql {
		statements, err = MySQL(files, "utf8mb4", "utf8mb4_0900_ai_ci")
	}
	var lines []string
	for _, s := range statements {
		lines = append(lines, s.SQL)
	}
	return strings.Join(lines, ";\n"), err
}

// notInSQL are attributes that say where something belongs or what is so anyway, and change no text by themselves.
var notInSQL = map[string]bool{"mysql schema.charset": true, "mysql schema.collate": true, "mysql table.schema": true, "postgresql table/column/as.type": true}

// Every attribute of the grammar reaches the SQL: with two values there are two texts. One that Atlas passes over must
// not be in the grammar.
func TestEveryAttributeReachesTheSQL(t *testing.T) {
	for _, engine := range []struct {
		name    string
		mysql   bool
		grammar *block
		samples []sample
	}{{"postgresql", false, postgresqlGrammar, postgresqlSamples}, {"mysql", true, mysqlGrammar, mysqlSamples}} {
		covered := map[string]bool{}
		for _, s := range engine.samples {
			key := engine.name + " " + s.place + "." + s.attribute
			covered[key] = true
			t.Run(strings.ReplaceAll(key+" "+s.one, "/", "."), func(t *testing.T) {
				var texts []string
				for _, value := range []string{s.one, s.two} {
					body := s.beside
					if value != "" {
						body += "\n" + s.attribute + " = " + value
					}
					sql, err := loaded(engine.mysql, wrap(engine.mysql, s.place, body))
					if err != nil {
						t.Fatalf("%v in\n%s", detail(err), wrap(engine.mysql, s.place, body))
					}
					texts = append(texts, sql)
				}
				if texts[0] == texts[1] != notInSQL[key] {
					t.Errorf("%s and %s make the same SQL:\n%s", s.one, s.two, texts[0])
				}
			})
		}
		for _, key := range attributes(engine.name+" ", engine.grammar) {
			if !covered[key] && !notInSQL[key] {
				t.Errorf("%s has no sample", key)
			}
		}
	}
}

// attributes lists every attribute of a grammar with its place.
func attributes(prefix string, b *block) []string {
	var out []string
	for name := range maps.Keys(b.attributes) {
		out = append(out, prefix+"."+name)
	}
	for name, inner := range b.blocks {
		separator := "/"
		if strings.HasSuffix(prefix, " ") {
			separator = ""
		}
		out = append(out, attributes(prefix+separator+name, inner)...)
	}
	slices.Sort(out)
	return out
}
