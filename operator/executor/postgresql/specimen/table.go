package specimen

import (
	"fmt"
	"slices"
	"strings"
)

// kind is a type of columns with defaults that fit it.
type kind struct {
	sql, family string
	defaults    []string
}

// basic are the types of the server in groups within which a change of a column's type needs no more than a cast.
var basic = [][]kind{
	{{"integer", "int", []string{"0", "7", "'-3'"}}, {"bigint", "int", []string{"0", "(1 + 2)"}}, {"smallint", "int", []string{"0"}}},
	{{"integer", "int", []string{"1"}}, {"bigint", "int", []string{"5"}}},
	{{"text", "text", []string{"''", "'it''s'", `'a\b'`, "(('x' || 'y'))", "CURRENT_USER"}}, {"character varying(10)", "text", []string{"'x'"}},
		{"character varying(20)", "text", []string{"'x'"}}, {"character varying", "text", []string{"'x'"}}, {"character(4)", "text", []string{"'abcd'"}}},
	{{"text", "text", []string{"'q; --'"}}, {"character varying(10)", "text", []string{"'y'"}}},
	{{"numeric(8,2)", "num", []string{"0", "1.50"}}, {"numeric", "num", []string{"1.5"}}, {"double precision", "num", []string{"1e10", "'NaN'"}}, {"real", "num", []string{"0.5"}}},
	{{"boolean", "bool", []string{"true", "false"}}},
	{{"timestamp with time zone", "time", []string{"now()", "CURRENT_TIMESTAMP", "'2001-02-03 04:05:06+02'"}}, {"timestamp without time zone", "time", []string{"LOCALTIMESTAMP", "'2001-02-03'"}},
		{"timestamp(3) with time zone", "time", []string{"now()"}}, {"date", "time", []string{"CURRENT_DATE", "'2001-02-03'"}}},
	{{"interval", "span", []string{"'1 day'", "'1 mon 2 days 03:04:05'"}}, {"interval day to second", "span", []string{"'1 day'"}}, {"time without time zone", "clock", []string{"'04:05:06'"}}},
	{{"jsonb", "jsonb", []string{"'{}'", `'{"a": [1, 2]}'`}}, {"json", "json", []string{"'[]'"}}},
	{{"integer[]", "array", []string{"'{}'", "ARRAY[1, 2]"}}, {"text[]", "array", []string{"'{}'", `'{"a b",c}'`}}},
	{{"bit(4)", "bit", []string{"B'0101'"}}, {"bit varying(9)", "bit", []string{"B'1'"}}},
	{{"uuid", "uuid", []string{"gen_random_uuid()", "'00000000-0000-0000-0000-000000000001'"}}}, {{"bytea", "bytea", []string{`'\x00ff'`}}}, {{"inet", "inet", []string{"'10.0.0.1'"}}},
	{{"int4range", "range", []string{"'[1,5)'"}}}, {{"tstzrange", "range", []string{"'empty'"}}}, {{"tsvector", "tsvector", []string{"''"}}}, {{"point", "point", []string{"'(1,2)'"}}},
	{{`"char"`, "char", []string{"'c'"}}}, {{"money", "money", []string{"0"}}},
}

// kind chooses the type of a column or attribute: one of the server's, or in a quarter of all cases one of the schema's
// own. Text takes the place of one that is not there.
func (b *build) kind(path string) kind {
	if b.number(path+"/family", 4) == 0 {
		if k := b.own[b.number(path+"/own/family", len(b.own))]; k.sql != "" {
			return k
		}
		return kind{"text", "text", []string{"'own'"}}
	}
	group := basic[b.number(path+"/group/family", len(basic))]
	return group[b.number(path+"/type", len(group))]
}

// ordered are the families with an order, which may be keys.
var ordered = []string{"int", "text", "num", "bool", "time", "span", "clock", "uuid", "bytea", "inet", "bit", "enum", "char"}

// long are the families whose values may be stored out of line.
var long = []string{"text", "jsonb", "json", "bytea", "array", "tsvector"}

type column struct {
	name, path, family, sql string
	computed, identity      bool
}

// table is a table or a view.
type table struct {
	path, bare, name, schema string
	columns                  []column
	// strategy is how it is partitioned, or empty; key the partition column.
	strategy, key string
	// id says that "id" is the primary key.
	id    bool
	parts []string // partitions, as SQL
	// divided says that a partition is partitioned again, by id.
	divided bool
	view    bool
	logged  bool
}

func (t *table) where(fits func(column) bool) []column {
	var out []column
	for _, c := range t.columns {
		if fits(c) {
			out = append(out, c)
		}
	}
	return out
}

func (t *table) ordered() []column {
	return t.where(func(c column) bool { return slices.Contains(ordered, c.family) })
}

func names(columns []column) []string {
	var out []string
	for _, c := range columns {
		out = append(out, c.name)
	}
	return out
}

func (b *build) makeTable(path string, i int) {
	if !b.has(path, 75) {
		return
	}
	t := &table{path: path, bare: b.unique(path, path), schema: b.place(path), logged: true}
	t.name = t.schema + "." + t.bare
	if i > 0 && b.has(path+"/inherits", 8) {
		if parents := b.plain(); len(parents) > 0 {
			b.makeChild(t, parents[b.number(path+"/inherits/from", len(parents))])
			return
		}
	}
	if b.has(path+"/partitioned", 22) {
		t.strategy = b.pick(path+"/partitioned/by", "range", "range", "list", "hash")
		t.key = map[string]string{"range": "part", "list": "part", "hash": "id"}[t.strategy]
	}
	items := b.columns(t)
	head := "TABLE"
	if t.strategy == "" && b.has(path+"/unlogged", 5) {
		head, t.logged = "UNLOGGED TABLE", false
	}
	tail := ""
	if t.strategy != "" {
		tail = fmt.Sprintf(" PARTITION BY %s (%s)", strings.ToUpper(t.strategy), t.key)
	} else if options := b.storage(path); options != "" {
		tail = " WITH (" + options + ")"
	}
	b.say("CREATE %s %s (%s)%s", head, t.name, strings.Join(items, ", "), tail)
	b.tables = append(b.tables, t)
	b.partitions(t)
	b.keys(t)
	for _, c := range t.columns {
		b.columnSettings(t, c)
	}
}

// plain are the tables that others may inherit from.
func (b *build) plain() []*table {
	return slices.DeleteFunc(slices.Clone(b.tables), func(t *table) bool { return t.strategy != "" || !t.logged })
}

func (b *build) storage(path string) string {
	return strings.TrimPrefix(b.may(path+"/fillfactor", 5, ", fillfactor='"+b.pick(path+"/fillfactor/is", "70", "90")+"'")+
		b.may(path+"/autovacuum", 4, ", autovacuum_enabled='false'")+b.may(path+"/toast", 3, ", toast.autovacuum_enabled='false'"), ", ")
}

// makeChild makes a table that inherits. It repeats nothing of its parent but sometimes a default.
func (b *build) makeChild(t, parent *table) {
	var items []string
	for i := range 2 {
		if c, item := b.column(t, fmt.Sprintf("%s/x%d", t.path, i), fmt.Sprintf("x%d", i), 60); item != "" {
			items = append(items, item)
			t.columns = append(t.columns, c)
		}
	}
	b.say("CREATE TABLE %s (%s) INHERITS (%s)", t.name, strings.Join(items, ", "), parent.name)
	for _, c := range parent.columns {
		if !c.computed && !c.identity && b.has(t.path+"/inherits/"+c.path+"/default", 6) {
			b.say("ALTER TABLE %s ALTER COLUMN %s SET DEFAULT NULL", t.name, c.name)
		}
		if c.name != "id" { // it is the parent's key and no key here
			t.columns = append(t.columns, c)
		}
	}
	if b.has(t.path+"/pk", 40) && slices.ContainsFunc(parent.columns, func(c column) bool { return c.name == "id" }) {
		b.say("ALTER TABLE %s ADD PRIMARY KEY (id)", t.name)
	}
	b.tables = append(b.tables, t)
}

// columns makes the columns of a table: its id, its partition key and up to six more.
func (b *build) columns(t *table) []string {
	p := t.path + "/id"
	sql := b.pick(p+"/type", "bigint", "bigint", "bigint", "integer", "uuid")
	item := "id " + sql
	family := "int"
	identity := false
	switch by := b.pick(p+"/by", "", "", "always", "default", "serial"); {
	case sql == "uuid":
		family = "uuid"
		item += b.pick(p+"/uuid", "", " DEFAULT gen_random_uuid()")
	case by == "serial" && t.strategy == "":
		item = "id " + map[string]string{"bigint": "bigserial", "integer": "serial"}[sql]
	case by == "always" || by == "default":
		identity = true
		item += " GENERATED " + map[string]string{"always": "ALWAYS", "default": "BY DEFAULT"}[by] + " AS IDENTITY" +
			b.pick(p+"/options", "", "", "", " (START WITH 100)", " (INCREMENT BY 5 CACHE 3)", " (MINVALUE 1 MAXVALUE 9999 CYCLE)")
	case b.sequence != "" && b.has(p+"/sequence", 20):
		item += " DEFAULT nextval('" + strings.ReplaceAll(b.sequence, "'", "''") + "'::regclass)"
	}
	t.columns = append(t.columns, column{name: "id", path: p, family: family, sql: sql, identity: identity})
	items := []string{item}
	if t.key == "part" {
		c := column{name: "part", path: t.path + "/part", family: "int", sql: "integer"}
		if t.strategy == "list" {
			c.family, c.sql = "text", "text"
		}
		t.columns = append(t.columns, c)
		items = append(items, "part "+c.sql+" NOT NULL")
	}
	for i := range 6 {
		if c, item := b.column(t, fmt.Sprintf("%s/c%d", t.path, i), fmt.Sprintf("c%d", i), 55); item != "" {
			t.columns = append(t.columns, c)
			items = append(items, item)
		}
	}
	return append(items, b.checks(t)...)
}

// column makes one column.
func (b *build) column(t *table, path, plain string, percent int) (column, string) {
	if !b.has(path, percent) {
		return column{}, ""
	}
	c := column{name: b.unique(path, plain), path: path}
	if b.has(path+"/computed", 10) {
		if item, ok := b.computed(t, &c); ok {
			return c, item
		}
	}
	k := b.kind(path)
	c.family, c.sql = k.family, k.sql
	item := c.name + " " + k.sql
	if k.family == "text" && !strings.Contains(k.sql, ".") {
		item += b.pick(path+"/collate", "", "", "", "", "", "", ` COLLATE "C"`, ` COLLATE "POSIX"`)
	}
	if b.has(path+"/notnull", 30) {
		item += " NOT NULL"
	}
	if b.has(path+"/default", 35) {
		value := b.pick(path+"/default/is", k.defaults...)
		if k.family == "int" && b.scalar != "" && b.has(path+"/default/function", 12) {
			value = b.scalar + "(3)"
		}
		item += " DEFAULT " + value
	}
	return c, item
}

// computed makes a generated column of a column that stands before it.
func (b *build) computed(t *table, c *column) (string, bool) {
	sources := t.where(func(c column) bool { return !c.computed && (c.family == "int" || c.family == "text") })
	if len(sources) == 0 {
		return "", false
	}
	from := sources[b.number(c.path+"/computed/from", len(sources))]
	c.computed, c.family = true, from.family
	if from.family == "text" {
		c.sql = "text"
		expression := b.pick(c.path+"/computed/text", "lower(%s)", "(%s || 'x')", "(upper(%s) || ';')", "substr(%s, 1, 3)")
		return fmt.Sprintf("%s text GENERATED ALWAYS AS (%s) STORED", c.name, fmt.Sprintf(expression, from.name+"::text")), true
	}
	c.sql = "bigint"
	expression := b.pick(c.path+"/computed/int", "(%s * 2)", "(%s + 1)", "abs(%s)", "CASE WHEN %s > 3 THEN 1 ELSE 2 END")
	if b.scalar != "" && b.has(c.path+"/computed/function", 20) {
		expression = b.scalar + "(%s::integer)"
	}
	return fmt.Sprintf("%s bigint GENERATED ALWAYS AS (%s) STORED", c.name, fmt.Sprintf(expression, from.name)), true
}

// predicate returns a condition on a table that may stand in an index, a check or a policy.
func (b *build) predicate(path string, t *table) string {
	if len(t.columns) == 0 {
		return "true"
	}
	c := t.columns[b.number(path+"/column", len(t.columns))]
	switch {
	case c.family == "int":
		f := b.pick(path+"/int", "(%s > 0)", "(%s <> 13)", "(%s BETWEEN 1 AND 9)", "(%s = ANY (ARRAY[1, 2]))")
		if b.scalar != "" && b.has(path+"/function", 10) {
			f = "(" + b.scalar + "(%s::integer) > 0)"
		}
		return fmt.Sprintf(f, c.name)
	case c.family == "text":
		return fmt.Sprintf(b.pick(path+"/text", "(%s <> 'x')", "(%s IN ('a', 'b'))", "(length(%s) < 7)", "(%s ~~ 'a%%')"), c.name)
	case c.family == "bool":
		return "(" + b.pick(path+"/bool", "", "NOT ") + c.name + ")"
	case c.family == "enum" && !strings.HasSuffix(c.sql, "]"):
		for _, e := range b.enums {
			if e.name == c.sql {
				return fmt.Sprintf("(%s = %s::%s)", c.name, e.labels[b.number(path+"/label", len(e.labels))], e.name)
			}
		}
	}
	return "(" + c.name + b.pick(path+"/null", " IS NOT NULL", " IS NULL") + ")"
}

// checks makes check constraints inside CREATE TABLE.
func (b *build) checks(t *table) []string {
	var out []string
	for i := range 2 {
		n := fmt.Sprintf("%s/check%d", t.path, i)
		if !b.has(n, 18) {
			continue
		}
		noInherit := ""
		if t.strategy == "" {
			noInherit = b.may(n+"/noinherit", 10, " NO INHERIT")
		}
		out = append(out, fmt.Sprintf("CONSTRAINT %s CHECK (%s)%s", b.unique(n, fmt.Sprintf("chk%d", i)), b.predicate(n, t), noInherit))
	}
	return out
}

// columnSettings are what ALTER COLUMN knows beyond the definition.
func (b *build) columnSettings(t *table, c column) {
	p := c.path
	if slices.Contains(long, c.family) && b.has(p+"/storage", 4) {
		b.say("ALTER TABLE %s ALTER COLUMN %s SET STORAGE %s", t.name, c.name, b.pick(p+"/storage/is", "EXTERNAL", "MAIN", "PLAIN"))
	}
	if slices.Contains(long, c.family) && b.has(p+"/compression", 4) {
		b.say("ALTER TABLE %s ALTER COLUMN %s SET COMPRESSION %s", t.name, c.name, b.pick(p+"/compression/is", "pglz", "lz4"))
	}
	if b.has(p+"/statistics", 4) {
		b.say("ALTER TABLE %s ALTER COLUMN %s SET STATISTICS %s", t.name, c.name, b.pick(p+"/statistics/is", "0", "500"))
	}
	if b.has(p+"/options", 3) {
		b.say("ALTER TABLE %s ALTER COLUMN %s SET (n_distinct=%s)", t.name, c.name, b.pick(p+"/options/is", "5", "-0.5"))
	}
	if b.has(p+"/comment", 7) {
		b.raw(fmt.Sprintf("COMMENT ON COLUMN %s.%s IS %s", t.name, c.name, b.text(p+"/comment/text")))
	}
	if b.has(p+"/grant", 4) {
		b.say("GRANT %s (%s) ON TABLE %s TO %s", b.pick(p+"/grant/what", "SELECT", "UPDATE", "INSERT", "REFERENCES"), c.name, t.name, b.pick(p+"/grant/role", roles...))
	}
}
