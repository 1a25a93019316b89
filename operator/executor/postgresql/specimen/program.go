package specimen

import (
	"fmt"
	"strings"
)

// makeScalars makes what expressions of tables may use.
func (b *build) makeScalars() {
	if b.has("f0", 50) {
		name := b.place("f0") + "." + b.unique("f0", "f0")
		body := b.pick("f0/body", "SELECT $1 + 1", "SELECT $1 * 2", "SELECT abs($1) -- ; no end")
		volatility := "IMMUTABLE" // anything else may not be in an index
		settings := b.pick("f0/settings", "", "", "", " STRICT", " PARALLEL SAFE", " COST 5", " STRICT LEAKPROOF")
		if strings.Contains(settings, "LEAKPROOF") {
			settings = " STRICT PARALLEL RESTRICTED" // only a superuser may say LEAKPROOF
		}
		b.raw(fmt.Sprintf("CREATE FUNCTION %s(%s integer) RETURNS integer LANGUAGE sql %s%s AS $_$\n%s\n$_$", name, b.pick("f0/argument", "n", "n", "value"), volatility, settings, body))
		b.scalar = name
		b.about("f0", "FUNCTION", name+"(integer)")
		if b.has("f0/revoked", 10) {
			b.say("REVOKE EXECUTE ON FUNCTION %s(integer) FROM PUBLIC", name)
		}
		b.grant("f0", "FUNCTION", name+"(integer)", "EXECUTE")
		if b.has("f0/overload", 15) {
			b.say("CREATE FUNCTION %s(text) RETURNS integer LANGUAGE sql IMMUTABLE AS 'SELECT length($1)'", name)
			b.about("f0/overload", "FUNCTION", name+"(text)")
		}
	}
	for _, g := range []string{"g0", "g1"} {
		if !b.has(g, 45) {
			continue
		}
		name := b.place(g) + "." + b.unique(g, g)
		b.raw(fmt.Sprintf("CREATE FUNCTION %s() RETURNS trigger LANGUAGE plpgsql%s AS $$\nBEGIN\n  %s\n  RETURN NULL;\nEND;\n$$", name,
			b.pick(g+"/settings", "", "", " SECURITY DEFINER", " SET search_path TO 'pg_catalog', 'public'", " SECURITY DEFINER SET work_mem TO '8MB'"),
			b.pick(g+"/body", "NULL;", "RAISE NOTICE 'it''s; done';", "-- nothing\n  NULL;")))
		b.triggers = append(b.triggers, name)
	}
}

// makeRoutines makes routines that nothing else uses, some of which use tables.
func (b *build) makeRoutines() {
	if b.has("f1", 30) {
		name := b.place("f1") + "." + b.unique("f1", "f1")
		arguments := "a integer" + b.may("f1/default", 40, " DEFAULT "+b.pick("f1/default/is", "1", "'2'::integer")) + ", b text DEFAULT " + b.pick("f1/b", "'x, y'", "'(z'", "NULL")
		result := b.pick("f1/result", "integer", "integer", "text", "TABLE(x integer, y text)", "SETOF text")
		body := map[string]string{"integer": "SELECT a", "text": "SELECT b", "TABLE(x integer, y text)": "SELECT a, b", "SETOF text": "SELECT b"}[result]
		b.raw(fmt.Sprintf("CREATE FUNCTION %s(%s) RETURNS %s LANGUAGE sql%s AS $f$ %s $f$", name, arguments, result,
			b.pick("f1/settings", "", "", " STABLE", " SECURITY DEFINER", " STRICT", " PARALLEL SAFE"), body))
		b.about("f1", "FUNCTION", name+"(integer, text)")
		b.grant("f1", "FUNCTION", name+"(integer, text)", "EXECUTE")
	}
	if b.has("pr", 25) {
		name := b.place("pr") + "." + b.unique("pr", "pr")
		b.raw(fmt.Sprintf("CREATE PROCEDURE %s(INOUT a integer, VARIADIC b text[]) LANGUAGE plpgsql%s AS $$\nBEGIN\n  a := %s;\nEND\n$$", name,
			b.pick("pr/settings", "", " SECURITY DEFINER"), b.pick("pr/body", "a + 1", "cardinality(b)")))
		b.about("pr", "PROCEDURE", name+"(integer, text[])")
	}
	if b.has("ag", 12) {
		name := b.place("ag") + "." + b.unique("ag", "ag")
		b.say("CREATE AGGREGATE %s(integer) (SFUNC = int4pl, STYPE = integer, INITCOND = '%s')", name, b.pick("ag/from", "0", "5"))
		b.about("ag", "AGGREGATE", name+"(integer)")
	}
	for _, t := range b.tables {
		n := t.path + "/f"
		if !b.has(n, 14) {
			continue
		}
		name := b.place(n) + "." + b.unique(n, "f_"+t.path)
		b.raw(fmt.Sprintf(map[string]string{
			"atomic": "CREATE FUNCTION %[1]s() RETURNS bigint LANGUAGE sql BEGIN ATOMIC SELECT count(*) FROM %[2]s; SELECT CASE WHEN max(id::text) IS NULL THEN 1 ELSE 2 END FROM %[2]s; END",
			"rows":   "CREATE FUNCTION %[1]s() RETURNS SETOF %[2]s LANGUAGE sql STABLE AS $body$ SELECT * FROM %[2]s $body$",
			"text":   "CREATE FUNCTION %[1]s() RETURNS bigint LANGUAGE sql STABLE AS $body$ SELECT count(*) FROM %[2]s $body$",
		}[b.pick(n+"/form", "atomic", "rows", "text")], name, t.name))
		b.about(n, "FUNCTION", name+"()")
	}
}

// makeViews makes views on tables and on views.
func (b *build) makeViews() {
	for i := range 4 {
		path := fmt.Sprintf("v%d", i)
		sources := append(append([]*table{}, b.tables...), b.views...)
		if len(sources) == 0 || !b.has(path, 40) {
			continue
		}
		b.makeView(path, sources[b.number(path+"/from", len(sources))])
	}
}

func (b *build) makeView(path string, from *table) {
	v := &table{path: path, bare: b.unique(path, path), schema: b.place(path), view: true, logged: true}
	v.name = v.schema + "." + v.bare
	var items []string
	for i, c := range from.columns {
		if i > 0 && !b.has(path+"/"+from.path+"/"+fmt.Sprint(i), 55) {
			continue
		}
		c.path, c.identity, c.computed = fmt.Sprintf("%s/o%d", path, i), false, false
		items = append(items, "x."+c.name)
		v.columns = append(v.columns, c)
	}
	tail := ""
	if b.has(path+"/where", 30) {
		tail = " WHERE " + b.predicate(path+"/where", &table{columns: v.columns})
	}
	if b.has(path+"/extra", 25) {
		items = append(items, b.pick(path+"/extra/is", "1", "'q'::text", "(SELECT count(*) FROM "+from.name+")", "x.*::text")+" AS extra")
	}
	if b.has(path+"/grouped", 10) && from.id && !from.view && len(v.columns) > 0 && v.columns[0].name == "id" {
		items = append(items, "count(*) AS n")
		tail = " GROUP BY x.id" // the other columns depend on the primary key
	}
	body := "SELECT " + strings.Join(items, ", ") + " FROM " + from.name + " x" + tail
	if len(items) == 0 {
		body = "SELECT count(*) AS n FROM " + from.name
	}
	if b.has(path+"/materialized", 20) {
		b.say("CREATE MATERIALIZED VIEW %s AS %s", v.name, body)
		if len(v.columns) > 0 && b.has(path+"/index", 40) {
			b.say("CREATE INDEX %s ON %s ((%s IS NULL))", b.unique(path+"/index", path+"_i"), v.name, v.columns[0].name)
		}
		b.about(path, "MATERIALIZED VIEW", v.name)
	} else {
		options := strings.TrimPrefix(b.may(path+"/barrier", 8, ", security_barrier='true'")+b.may(path+"/invoker", 8, ", security_invoker='true'"), ", ")
		if options != "" {
			options = " WITH (" + options + ")"
		}
		b.say("CREATE VIEW %s%s AS %s", v.name, options, body)
		if len(v.columns) > 0 && b.has(path+"/default", 5) {
			b.say("ALTER VIEW %s ALTER COLUMN %s SET DEFAULT NULL", v.name, v.columns[0].name)
		}
		b.about(path, "VIEW", v.name)
		if len(b.triggers) > 0 && b.has(path+"/instead", 6) {
			b.say("CREATE TRIGGER %s INSTEAD OF INSERT ON %s FOR EACH ROW EXECUTE FUNCTION %s()", b.ident(path+"/instead", "ins"), v.name, b.triggers[0])
		}
	}
	for _, c := range v.columns {
		if b.has(c.path+"/comment", 3) {
			b.say("COMMENT ON COLUMN %s.%s IS 'seen'", v.name, c.name)
		}
	}
	b.grant(path, "TABLE", v.name, "SELECT", "SELECT, INSERT")
	b.views = append(b.views, v)
}
