package hcl

import (
	"errors"
	"regexp"
	"slices"
	"strings"
	"testing"

	"ptah.run/ptah/operator/executor/failure"
	"ptah.run/ptah/operator/plan/report"
)

func detail(err error) string { return err.Error() + " " + failure.Detail(err) }

const shop = `schema "public" {
  comment = "standard public schema"
}
table "customers" {
  schema = schema.public
  column "id" {
    type = bigint
    null = false
    identity { generated = BY_DEFAULT }
  }
  column "email" {
    type = varchar(255)
    null = false
  }
  primary_key {
    columns = [column.id]
  }
}
`

func TestFilesReferToEachOtherAndComeOutInAnOrderThatRuns(t *testing.T) {
	orders := `table "a_orders" {
  schema = schema.public
  column "customer" {
    type = bigint
    null = true
  }
  foreign_key "a_orders_customer" {
    columns     = [column.customer]
    ref_columns = [table.customers.column.id]
    on_delete   = CASCADE
  }
}
`
	files := []File{{"b.hcl", []byte(shop)}, {"a.hcl", []byte(orders)}}
	statements, err := PostgreSQL(files)
	if err != nil {
		t.Fatal(detail(err))
	}
	if len(statements) != 2 || !strings.HasPrefix(statements[0].SQL, `CREATE TABLE "public"."customers"`) || statements[0].File != "b.hcl" || statements[0].Line != 4 ||
		statements[1].File != "a.hcl" || statements[1].Line != 1 || !strings.Contains(statements[1].SQL, "ON DELETE CASCADE") {
		t.Errorf("%+v", statements)
	}
	for range 20 {
		slices.Reverse(files)
		if again, err := PostgreSQL(files); err != nil || !slices.Equal(again, statements) {
			t.Fatalf("the same files make other statements: %v %v", again, err)
		}
	}
}

func TestMySQLNamesNoDatabase(t *testing.T) {
	source := strings.NewReplacer(`  comment = "standard public schema"`, "  charset = \"utf8mb4\"\n  collate = \"utf8mb4_0900_ai_ci\"", "identity { generated = BY_DEFAULT }", "auto_increment = true").Replace(shop)
	sql, err := loaded(true, source)
	if err != nil {
		t.Fatal(detail(err))
	}
	if !strings.HasPrefix(sql, "CREATE TABLE `customers`") || strings.Contains(sql, "public") || !strings.Contains(sql, "AUTO_INCREMENT") {
		t.Error(sql)
	}
}

// Each file is refused at the line that is named, with what the sentence must say.
func TestRefusals(t *testing.T) {
	table := func(inside string) string {
		return "schema \"public\" {}\ntable \"t\" {\n  schema = schema.public\n  column \"a\" {\n    type = int\n    null = false\n  }\n" + inside + "\n}\n"
	}
	column := func(inside string) string { return table("  column \"b\" {\n" + inside + "\n  }") }
	for name, test := range map[string]struct {
		source string
		line   string
		say    string
		engine string // both where empty
	}{
		"a role":                               {"role \"reader\" {}\n", ":1:", `block "role" is not supported; declare it in an .sql file`, ""},
		"a view":                               {"schema \"public\" {}\nview \"v\" {\n  schema = schema.public\n  as = \"SELECT 1\"\n}\n", ":2:", "declare it in an .sql file", ""},
		"a variable":                           {"variable \"x\" {\n type = string\n}\n", ":1:", "write plain values", ""},
		"a misspelt block":                     {table("  primarykey {\n  }"), ":8:", `no block "primarykey"`, ""},
		"a misspelt attribute":                 {column("    type = int\n    nul = true"), ":10:", `no attribute "nul"`, ""},
		"an attribute of the other engine":     {column("    type = int\n    auto_increment = true"), ":10:", `no attribute "auto_increment"`, "postgresql"},
		"a for_each":                           {"table \"t\" {\n  for_each = toset([])\n}\n", ":2:", `no attribute "for_each"`, ""},
		"an attribute beside the blocks":       {"x = 1\n", ":1:", `no attribute "x"`, ""},
		"a name with a double quote":           {"schema \"we\\\"ird\" {}\n", ":1:", "holds a quote", ""},
		"a name with a backquote":              {table("  index \"i`x\" {\n    columns = [column.a]\n  }"), ":8:", "holds a quote", ""},
		"a name with a dot":                    {"schema \"a.b\" {}\n", ":1:", "a dot", ""},
		"an empty name":                        {"schema \"\" {}\n", ":1:", "a name is empty", ""},
		"an interpolated name in a default":    {column("    type = text\n    default = \"${var.x}\""), ":10:", "neither a plain value", ""},
		"a function call":                      {column("    type = text\n    default = upper(\"x\")"), ":10:", "neither a plain value", ""},
		"a condition as a type":                {column("    type = true ? int : text"), ":9:", "the type is none of", ""},
		"a type whose length Atlas forgets":    {column("    type = text(10)"), ":9:", "does not write this type", "mysql"},
		"a type whose scale Atlas forgets":     {column("    type = float(7,4)"), ":9:", "does not write this type", "mysql"},
		"a default precision that is said":     {column("    type = timestamp(6)"), ":9:", "does not write this type", "postgresql"},
		"a zerofill":                           {column("    type = sql(\"int(5) zerofill\")"), ":9:", "does not write this type", "mysql"},
		"a default that would be a string":     {column("    type = varchar(10)\n    default = sql(\"uuid()\")"), ":10:", "without parentheses", "mysql"},
		"a hexadecimal default":                {column("    type = varchar(10)\n    default = \"0xff\""), ":10:", "hexadecimal", "mysql"},
		"a comment between quotes":             {table("  comment = \"'x'\""), ":8:", "starts and ends with a quote", ""},
		"a comment that cannot be printed":     {table("  comment = \"a\\u200bb\""), ":8:", "cannot be printed", "mysql"},
		"a value with a quote":                 {column("    type = enum(\"it's\")"), ":9:", "holds a quote", "mysql"},
		"a charset without collate":            {table("  charset = \"latin1\""), ":8:", "without collate", "mysql"},
		"a charset that is no word":            {table("  charset = \"latin1 COLLATE x\"\n  collate = \"x\""), ":8:", "not one plain word", "mysql"},
		"the defaults of another database":     {"schema \"public\" {\n  charset = \"latin1\"\n}\n", ":1:", "which is utf8mb4", "mysql"},
		"two MySQL schemas":                    {"schema \"a\" {}\nschema \"b\" {}\n", ":2:", "declare one", "mysql"},
		"an index type that is none":           {table("  index \"i\" {\n    columns = [column.a]\n    type = RTREE\n  }"), ":10:", "BTREE, HASH, FULLTEXT or SPATIAL", "mysql"},
		"a unique full-text index":             {table("  index \"i\" {\n    columns = [column.a]\n    type = FULLTEXT\n    unique = true\n  }"), ":10:", "cannot be unique", "mysql"},
		"a parser without full text":           {table("  index \"i\" {\n    columns = [column.a]\n    parser = ngram\n  }"), ":10:", "belongs to an index of the type FULLTEXT", "mysql"},
		"a virtual column":                     {column("    type = int\n    as {\n      expr = \"a\"\n      type = VIRTUAL\n    }"), ":12:", "write STORED", "postgresql"},
		"nulls on both ends":                   {table("  index \"i\" {\n    on {\n      column = column.a\n      nulls_first = true\n      nulls_last = true\n    }\n  }"), ":11:", "exclude each other", "postgresql"},
		"a comment of public":                  {"schema \"public\" {\n  comment = \"mine\"\n}\n", ":1:", "COMMENT ON SCHEMA", "postgresql"},
		"two tables of one name":               {table("") + table("")[19:], ":10:", "second block declares the same table", ""},
		"two columns of one name":              {table("  column \"a\" {\n    type = int\n  }"), ":8:", "second block declares the same column", ""},
		"two primary keys":                     {table("  primary_key {\n    columns = [column.a]\n  }\n  primary_key {\n    columns = [column.a]\n  }"), ":11:", "second block", ""},
		"a primary key of another table":       {table("  primary_key {\n    columns = [table.t.column.a]\n  }"), ":9:", "does not refer", ""},
		"a column list that is none":           {table("  primary_key {\n    columns = column.a\n  }"), ":9:", "not a list of columns", ""},
		"a truth that is none":                 {column("    type = int\n    null = \"yes\""), ":10:", "neither true nor false", ""},
		"a number that is none":                {table("  index \"i\" {\n    on {\n      column = column.a\n      prefix = 1.5\n    }\n  }"), ":11:", "not a whole number", "mysql"},
		"a table without a name":               {"table {\n}\n", ":1:", "takes its name", ""},
		"a column that is not declared":        {table("  primary_key {\n    columns = [column.zz]\n  }"), "", "compare what they refer to", ""},
		"a column without a type":              {column("    null = true"), "", "", ""},
		"a schema that is not declared":        {"table \"t\" {\n  schema = schema.nope\n  column \"a\" {\n    type = int\n  }\n}\n", "", "compare what they refer to", ""},
		"an enum that is not declared":         {column("    type = enum.nope"), "", "", "postgresql"},
		"what is no HCL":                       {"table \"t\" {\n  schema =\n}\n", ":2:", "cannot be read as HCL", ""},
		"a type whose precision Atlas forgets": {column("    type = sql(\"timestamptz(3)\")"), ":9:", "does not write this type", "postgresql"},
		"a file nested too deeply":             {"x = " + strings.Repeat("(", 200) + "1" + strings.Repeat(")", 200), ":1:", "nested more than", ""},
		"an endless chain of signs":            {"x = " + strings.Repeat("-", 200) + "1", ":1:", "nested more than", ""},
		"a file that is too large":             {strings.Repeat("#", MaxFileBytes+1), ":1:", "larger than", ""},
		"a table without columns":              {"schema \"public\" {}\ntable \"t\" {\n  schema = schema.public\n}\n", ":2:", "", ""},
	} {
		for _, mysql := range []bool{false, true} {
			if test.engine == "mysql" && !mysql || test.engine == "postgresql" && mysql {
				continue
			}
			t.Run(name+map[bool]string{false: " on PostgreSQL", true: " on MySQL"}[mysql], func(t *testing.T) {
				sql, err := loaded(mysql, test.source)
				var problem *failure.Error
				if !errors.As(err, &problem) || problem.Code != report.CodeInvalidSchema {
					t.Fatalf("not refused: %v\n%s", err, sql)
				}
				if !strings.Contains(problem.Message, test.say) || test.line != "" && !strings.HasPrefix(problem.Message, "shop.hcl"+test.line) {
					t.Errorf("%q lacks %q at shop.hcl%s (%s)", problem.Message, test.say, test.line, problem.Detail)
				}
				if strings.Contains(problem.Message, "\n") {
					t.Errorf("more than one line: %q", problem.Message)
				}
			})
		}
	}
}

// These are close to what is refused, and are not.
func TestWhatIsNotRefused(t *testing.T) {
	for name, test := range map[string]struct {
		mysql bool
		body  string
		want  string
	}{
		"an apostrophe inside a comment":        {false, "type = int\ncomment = \"it's\"", "'it''s'"},
		"an apostrophe inside a MySQL comment":  {true, "type = int\ncomment = \"it's\"", `"it's"`},
		"a width that the server forgets":       {true, "type = int(11)", "int NOT NULL"},
		"a truth in a byte":                     {true, "type = tinyint(1)", "bool"},
		"a heredoc":                             {false, "type = int\ncomment = <<-X\n  two\n  lines\n  X\n", "two\nlines"},
		"a negative default":                    {false, "type = int\ndefault = -3", "DEFAULT -3"},
		"a collation that the charset suggests": {true, "type = varchar(9)\ncharset = \"utf8mb4\"\ncollate = \"utf8mb4_bin\"", "COLLATE utf8mb4_bin"},
		"a name with a blank":                   {false, "type = int\n}\ncolumn \"two words\" {\n type = text", `"two words" text`},
	} {
		t.Run(name, func(t *testing.T) {
			sql, err := loaded(test.mysql, wrap(test.mysql, "table/column", test.body))
			if err != nil || !strings.Contains(sql, test.want) {
				t.Errorf("%v\n%s", err, sql)
			}
		})
	}
}

func TestTypesThatAreOne(t *testing.T) {
	for _, test := range []struct {
		mysql bool
		a, b  string
		same  bool
	}{
		{false, "int", "integer", true}, {false, "varchar(10)", "character varying(10)", true}, {false, "varchar(10)", "character varying(11)", false},
		{false, "timestamptz(3)", "timestamp(3) with time zone", true}, {false, "timestamptz", "timestamp", false}, {false, "numeric(5,0)", "numeric(5)", true},
		{false, `"Mood"`, `"mood"`, false}, {false, "text[]", "text[]", true}, {false, "text[]", "text", false}, {false, "char", "character(1)", true},
		{true, "int(11)", "int", true}, {true, "tinyint(1)", "bool", true}, {true, "tinyint(4)", "bool", false}, {true, "text(10)", "text", false},
		{true, "int unsigned", "int", false}, {true, "decimal(10)", "decimal", true}, {true, "enum('a', 'b')", "enum('a','b')", true},
		{true, "char", "char(1)", true}, {true, "datetime(0)", "datetime", true}, {true, "datetime(6)", "datetime", false},
	} {
		if sameType(test.mysql, test.a, test.b) != test.same {
			t.Errorf("%s and %s: %q %q", test.a, test.b, plainType(test.mysql, test.a), plainType(test.mysql, test.b))
		}
	}
}

var located = regexp.MustCompile(`^[a-z]+\.hcl:\d+: `)

// Whatever stands in a file: it is turned into SQL or refused with one sentence, and nothing breaks.
func FuzzFiles(f *testing.F) {
	f.Add([]byte(shop), false)
	f.Add([]byte("table \"t\" {\n  for_each = [1]\n}\n"), true)
	f.Add([]byte(wrap(true, "table/column", "type = enum(\"a\")\ndefault = sql(\"(1)\")")), true)
	f.Add([]byte(wrap(false, "table/index/on", "column = column[\"a\"]\nops = jsonb_ops")), false)
	f.Add([]byte("schema \"public\" {\n comment = \"${x}%{if true}y%{endif}\"\n}"), false)
	f.Fuzz(func(t *testing.T, data []byte, mysql bool) {
		sql, err := loaded(mysql, string(data))
		if err == nil {
			if again, err := loaded(mysql, string(data)); err != nil || again != sql {
				t.Errorf("another result: %v", err)
			}
			return
		}
		var problem *failure.Error
		if !errors.As(err, &problem) || problem.Code != report.CodeInvalidSchema || strings.ContainsAny(problem.Message, "\n\x00") ||
			!located.MatchString(problem.Message) && !strings.HasPrefix(problem.Message, "Atlas cannot ") {
			t.Errorf("refused with %q", err)
		}
	})
}
