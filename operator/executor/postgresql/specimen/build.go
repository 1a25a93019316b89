package specimen

import (
	"fmt"
	"slices"
	"strings"
)

// build is one schema while it is made.
type build struct {
	*Dice
	statements []string
	schemas    []string
	// own are the types that the schema makes itself, each at a place that is its own whichever others there are.
	own        [9]kind
	enums      []enum
	composites []named
	// scalar is a function of integer to integer that any expression may use, or empty.
	scalar   string
	triggers []string // functions that return trigger
	// sequence is a sequence that no column owns, or empty.
	sequence string
	tables   []*table
	views    []*table
	// finally are statements that come after all others.
	finally []string
}

type named struct{ path, name string }

type enum struct {
	name   string
	labels []string
}

// generate returns the SQL of a schema.
func generate(d *Dice) string {
	b := &build{Dice: d}
	b.makeSchemas()
	b.defaultPrivileges("adp/early", 8)
	b.makeTypes()
	b.makeScalars()
	b.makeSequences()
	for i := range 4 {
		b.makeTable(fmt.Sprintf("t%d", i), i)
	}
	b.makeForeignKeys()
	b.makeRoutines()
	b.makeViews()
	for _, t := range b.tables {
		b.decorate(t)
	}
	b.makeRare()
	b.defaultPrivileges("adp/late", 8)
	return strings.Join(append(b.statements, b.finally...), ";\n") + ";\n"
}

func (b *build) say(format string, args ...any) {
	text := format
	if len(args) > 0 {
		text = fmt.Sprintf(format, args...)
	}
	b.statements = append(b.statements, strings.Join(strings.Fields(text), " "))
}

// raw says a statement whose blanks have a meaning.
func (b *build) raw(text string) { b.statements = append(b.statements, text) }

// ident returns an identifier for a part. Most are plain; some hold what a careless program stumbles over.
func (b *build) ident(path, plain string) string {
	const most = 18
	switch i := b.number(path+"/name", most+6); {
	case i < most:
		return plain
	case i == most && keywords[plain] != "":
		return keywords[plain]
	}
	return b.pick(path+"/name/odd",
		`"`+strings.ToUpper(plain)+` x"`, `"`+plain+`""q"`, `"`+plain+`;--"`, `"`+plain+`.é"`, `"select"`, `"`+plain+`'`+`s $$ "`)
}

// keywords are words that SQL gives a meaning and that the server nevertheless prints without quotes.
var keywords = map[string]string{"t0": "server", "t1": "partition", "t2": "inherits", "t3": "stored", "c0": "generated", "c1": "stored", "c2": "always",
	"c3": "language", "c4": "cycle", "c5": "identity", "s1": "data", "s2": "schema", "e0": "type", "e1": "generated", "d0": "domain", "d1": "role",
	"q0": "cycle", "v0": "view", "v1": "recursive", "f0": "language", "r0": "attribute", "pr": "procedure", "g0": "trigger"}

// unique is ident for names that share a namespace, in which "select" could stand twice.
func (b *build) unique(path, plain string) string {
	if name := b.ident(path, plain); name != `"select"` {
		return name
	}
	return `"` + plain + ` of a very long name, which is as long as a name may be....."`
}

// place returns a schema for a part.
func (b *build) place(path string) string {
	return b.pick(path+"/schema", append([]string{"public", "public", "public"}, b.schemas...)...)
}

// text returns a string constant for a comment.
func (b *build) text(path string) string {
	return b.pick(path, "'one'", "'two'", "'it''s; -- no comment'", `'a \ b'`, "'two\nlines'")
}

// about gives an object a comment now and then. kind is the phrase of COMMENT ON.
func (b *build) about(path, kind, name string) {
	if b.has(path+"/comment", 10) {
		b.raw("COMMENT ON " + kind + " " + name + " IS " + b.text(path+"/comment/text"))
	}
}

var roles = []string{"reader", "reader", "probe_app", "PUBLIC"}

// grant gives privileges on an object now and then. kind is the phrase of GRANT ON.
func (b *build) grant(path, kind, name string, privileges ...string) {
	for _, n := range []string{"/grant0", "/grant1"} {
		if !b.has(path+n, 10) {
			continue
		}
		role := b.pick(path+n+"/role", roles...)
		option := ""
		if role != "PUBLIC" {
			option = b.may(path+n+"/option", 15, " WITH GRANT OPTION")
		}
		b.say("GRANT %s ON %s %s TO %s%s", b.pick(path+n+"/what", privileges...), kind, name, role, option)
	}
}

func (b *build) makeSchemas() {
	for _, s := range []string{"s1", "s2"} {
		if !b.has(s, 45) {
			continue
		}
		name := b.unique(s, s)
		b.say("CREATE SCHEMA %s", name)
		b.schemas = append(b.schemas, name)
		b.about(s, "SCHEMA", name)
		b.grant(s, "SCHEMA", name, "USAGE", "CREATE", "USAGE, CREATE")
	}
	if b.has("public/revoked", 5) {
		b.say("REVOKE USAGE ON SCHEMA public FROM PUBLIC")
	}
	b.about("public", "SCHEMA", "public")
	b.grant("public", "SCHEMA", "public", "CREATE", "USAGE")
	if b.has("x", 8) {
		name := b.pick("x/which", "pg_trgm", "citext", "btree_gist")
		b.say("CREATE EXTENSION %s SCHEMA %s", name, b.place("x"))
	}
}

func (b *build) defaultPrivileges(path string, percent int) {
	if !b.has(path, percent) {
		return
	}
	where := ""
	if b.has(path+"/in", 50) {
		where = " IN SCHEMA " + b.place(path)
	}
	what := b.pick(path+"/what", "SELECT ON TABLES", "ALL ON TABLES", "USAGE ON SEQUENCES", "EXECUTE ON FUNCTIONS", "USAGE ON TYPES")
	b.say("ALTER DEFAULT PRIVILEGES%s GRANT %s TO %s", where, what, b.pick(path+"/role", "reader", "probe_app"))
	if where == "" && b.has(path+"/revoke", 30) {
		b.say("ALTER DEFAULT PRIVILEGES REVOKE EXECUTE ON FUNCTIONS FROM PUBLIC")
	}
}

func (b *build) makeTypes() {
	for i := range 2 {
		b.makeEnum(fmt.Sprintf("e%d", i), i)
	}
	for i := range 2 {
		b.makeDomain(fmt.Sprintf("d%d", i), i)
	}
	b.makeComposite("r0")
	if b.has("rg", 6) {
		name := b.place("rg") + "." + b.unique("rg", "rg")
		b.say("CREATE TYPE %s AS RANGE (SUBTYPE = %s)", name, b.pick("rg/sub", "double precision", "time", "text"))
		b.about("rg", "TYPE", name)
		b.own[8] = kind{name, "range", []string{"'empty'"}}
	}
	if b.has("co", 6) {
		name := b.place("co") + "." + b.unique("co", "co")
		b.say("CREATE COLLATION %s (%s)", name, b.pick("co/is", "provider = icu, locale = 'und'", "provider = icu, locale = 'de', deterministic = false",
			"provider = builtin, locale = 'C.UTF-8'", "locale = 'C'"))
		b.about("co", "COLLATION", name)
	}
}

func (b *build) makeEnum(path string, i int) {
	if !b.has(path, 55) {
		return
	}
	e := enum{name: b.place(path) + "." + b.unique(path, path)}
	labels := []string{"'new'", "'open'", "'it''s'", "'Done; --'", "'z'"}
	if b.has(path+"/reversed", 10) {
		slices.Reverse(labels)
	}
	for i, label := range labels {
		if i == 0 || b.has(fmt.Sprintf("%s/label%d", path, i), 60) {
			e.labels = append(e.labels, label)
		}
	}
	b.raw("CREATE TYPE " + e.name + " AS ENUM (" + strings.Join(e.labels, ", ") + ")")
	b.about(path, "TYPE", e.name)
	b.grant(path, "TYPE", e.name, "USAGE")
	b.enums = append(b.enums, e)
	b.own[2*i] = kind{e.name, "enum", []string{e.labels[0] + "::" + e.name}}
	b.own[2*i+1] = kind{e.name + "[]", "array", []string{"'{}'"}}
}

func (b *build) makeDomain(path string, i int) {
	if !b.has(path, 45) {
		return
	}
	name := b.place(path) + "." + b.unique(path, path)
	bases := []kind{{"text", "text", []string{"'x'", "''"}}, {"integer", "int", []string{"1", "2"}}, {"numeric(8,2)", "num", []string{"0", "1.5"}},
		{"character varying(12)", "text", []string{"'y'"}}}
	for _, e := range b.enums {
		bases = append(bases, kind{e.name, "enum", []string{e.labels[0]}})
	}
	base := bases[b.number(path+"/base", len(bases))]
	checks := ""
	for k := range 2 {
		if n := fmt.Sprintf("%s/check%d", path, k); b.has(n, 35) {
			rule := b.pick(n+"/rule", "VALUE IS NOT NULL", "VALUE::text <> 'q'", "length(VALUE::text) < 9", "VALUE::text IN ('a', 'b')")
			checks += fmt.Sprintf(" CONSTRAINT %s CHECK (%s)", b.unique(n, fmt.Sprintf("k%d", k)), rule)
		}
	}
	collate := ""
	if base.family == "text" {
		collate = b.may(path+"/collate", 15, ` COLLATE "C"`)
	}
	b.say("CREATE DOMAIN %s AS %s%s%s%s%s", name, base.sql, collate, b.may(path+"/default", 30, " DEFAULT "+base.defaults[0]),
		b.may(path+"/notnull", 15, " NOT NULL"), checks)
	b.about(path, "DOMAIN", name)
	b.grant(path, "TYPE", name, "USAGE")
	b.own[4+i] = kind{name, base.family, base.defaults}
	if i == 0 {
		b.own[6] = kind{name + "[]", "array", []string{"'{}'"}}
	}
}

func (b *build) makeComposite(path string) {
	if !b.has(path, 35) {
		return
	}
	name := b.place(path) + "." + b.unique(path, path)
	var items []string
	for i := range 4 {
		if n := fmt.Sprintf("%s/a%d", path, i); i == 0 || b.has(n, 50) {
			k := b.kind(n)
			items = append(items, fmt.Sprintf("a%d %s", i, k.sql))
		}
	}
	b.say("CREATE TYPE %s AS (%s)", name, strings.Join(items, ", "))
	b.about(path, "TYPE", name)
	if b.has(path+"/columncomment", 8) {
		b.say("COMMENT ON COLUMN %s.a0 IS 'first'", name)
	}
	b.composites = append(b.composites, named{path, name})
	b.own[7] = kind{name, "composite", []string{"NULL"}}
}

func (b *build) makeSequences() {
	if !b.has("q0", 45) {
		return
	}
	name := b.place("q0") + "." + b.unique("q0", "q0")
	start := ""
	if b.has("q0/start", 30) {
		start = " START " + b.pick("q0/start/at", "5", "17")
	}
	b.say("CREATE %sSEQUENCE %s%s%s%s%s%s%s", b.may("q0/unlogged", 6, "UNLOGGED "), name,
		b.pick("q0/type", "", "", " AS integer", " AS smallint"), b.pick("q0/by", "", "", " INCREMENT 2", " INCREMENT 10"),
		b.may("q0/min", 20, " MINVALUE 3"), b.may("q0/max", 20, " MAXVALUE 900"),
		start,
		b.may("q0/cache", 20, " CACHE 7")+b.may("q0/cycle", 20, " CYCLE"))
	b.about("q0", "SEQUENCE", name)
	b.grant("q0", "SEQUENCE", name, "USAGE", "SELECT", "USAGE, UPDATE")
	b.sequence = name
}
