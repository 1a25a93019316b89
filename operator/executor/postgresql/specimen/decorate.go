package specimen

import (
	"fmt"
	"slices"
	"strings"
)

// decorate makes what belongs to a table and needs everything else: triggers, rules, policies, statistics, grants.
func (b *build) decorate(t *table) {
	p := t.path
	b.about(p, "TABLE", t.name)
	b.grant(p, "TABLE", t.name, "SELECT", "INSERT, UPDATE", "ALL", "REFERENCES, TRIGGER", "TRUNCATE", "MAINTAIN")
	for i := range 3 {
		if n := fmt.Sprintf("%s/tr%d", p, i); len(b.triggers) > 0 && b.has(n, 14) {
			b.trigger(t, n, fmt.Sprintf("tr%d", i))
		}
	}
	if b.has(p+"/rls", 12) {
		b.say("ALTER TABLE %s ENABLE ROW LEVEL SECURITY", t.name)
	}
	if b.has(p+"/rlsforce", 5) {
		b.say("ALTER TABLE %s FORCE ROW LEVEL SECURITY", t.name)
	}
	for i := range 2 {
		if n := fmt.Sprintf("%s/po%d", p, i); b.has(n, 12) {
			b.policy(t, n, fmt.Sprintf("po%d", i))
		}
	}
	if t.strategy == "" && b.has(p+"/rule", 6) {
		name := b.ident(p+"/rule", "ru")
		b.say("CREATE RULE %s AS ON %s TO %s DO %s", name, b.pick(p+"/rule/on", "INSERT", "UPDATE", "DELETE"), t.name,
			b.pick(p+"/rule/do", "INSTEAD NOTHING", "ALSO NOTHING", "ALSO SELECT 'it''s; one'"))
		b.about(p+"/rule", "RULE", name+" ON "+t.name)
		if b.has(p+"/rule/disabled", 10) {
			b.say("ALTER TABLE %s DISABLE RULE %s", t.name, name)
		}
	}
	if c := t.ordered(); len(c) > 1 && b.has(p+"/statistics", 12) {
		b.statistics(t, p+"/statistics", c)
	}
	if b.has(p+"/replica", 3) {
		b.say("ALTER TABLE %s REPLICA IDENTITY %s", t.name, b.pick(p+"/replica/is", "FULL", "NOTHING"))
	}
}

func (b *build) statistics(t *table, n string, columns []column) {
	name := t.schema + "." + b.unique(n, "st_"+t.path)
	pair := b.some(n+"/columns", 2, names(columns))
	if len(pair) < 2 {
		pair = names(columns)[:2]
	}
	b.say("CREATE STATISTICS %s%s ON %s FROM %s", name, b.pick(n+"/kinds", "", " (ndistinct)", " (dependencies, mcv)"), strings.Join(pair, ", "), t.name)
	b.about(n, "STATISTICS", name)
	if b.has(n+"/target", 20) {
		b.say("ALTER STATISTICS %s SET STATISTICS 300", name)
	}
}

func (b *build) trigger(t *table, n, plain string) {
	name := b.unique(n, plain)
	function := b.triggers[b.number(n+"/function", len(b.triggers))]
	switch {
	case t.strategy == "" && b.has(n+"/constraint", 15):
		b.say("CREATE CONSTRAINT TRIGGER %s AFTER INSERT OR UPDATE ON %s%s FOR EACH ROW EXECUTE FUNCTION %s()", name, t.name,
			b.pick(n+"/deferrable", "", " DEFERRABLE", " DEFERRABLE INITIALLY DEFERRED"), function)
	case t.strategy == "" && b.has(n+"/transition", 12):
		b.say("CREATE TRIGGER %s AFTER DELETE ON %s REFERENCING OLD TABLE AS gone FOR EACH STATEMENT EXECUTE FUNCTION %s()", name, t.name, function)
	default:
		event := b.pick(n+"/event", "INSERT", "UPDATE", "DELETE", "INSERT OR DELETE", "UPDATE OF")
		if event == "UPDATE OF" {
			event += " " + strings.Join(b.some(n+"/of", 2, names(t.columns)), ", ")
		}
		level := b.pick(n+"/level", "ROW", "ROW", "STATEMENT")
		when := ""
		if level == "ROW" && strings.HasPrefix(event, "UPDATE") && b.has(n+"/when", 30) {
			when = " WHEN (" + b.pick(n+"/when/is", "OLD IS DISTINCT FROM NEW", "pg_trigger_depth() = 0") + ")"
			if slices.ContainsFunc(t.columns, func(c column) bool { return c.computed }) {
				when = " WHEN (pg_trigger_depth() = 0)" // a BEFORE trigger may not see computed columns
			}
		}
		b.say("CREATE TRIGGER %s %s %s ON %s FOR EACH %s%s EXECUTE FUNCTION %s(%s)", name, b.pick(n+"/time", "BEFORE", "AFTER"), event, t.name, level, when, function,
			b.pick(n+"/argument", "", "", "", "'a, b'"))
	}
	b.about(n, "TRIGGER", name+" ON "+t.name)
	if b.has(n+"/state", 8) {
		b.say("ALTER TABLE %s %s TRIGGER %s", t.name, b.pick(n+"/state/is", "DISABLE", "ENABLE ALWAYS", "ENABLE REPLICA"), name)
	}
	if len(t.parts) > 0 && b.has(n+"/part", 6) && b.pick(n+"/level", "ROW", "ROW", "STATEMENT") == "ROW" {
		b.say("ALTER TABLE %s DISABLE TRIGGER %s", t.parts[0], name)
	}
}

func (b *build) policy(t *table, n, plain string) {
	command := b.pick(n+"/for", "ALL", "SELECT", "INSERT", "UPDATE", "DELETE")
	using, check := " USING ("+b.predicate(n+"/using", t)+")", ""
	if command != "SELECT" && command != "DELETE" && b.has(n+"/check", 50) {
		check = " WITH CHECK (" + b.predicate(n+"/check", t) + ")"
	}
	if command == "INSERT" {
		using = ""
	}
	name := b.unique(n, plain)
	b.say("CREATE POLICY %s ON %s%s FOR %s TO %s%s%s", name, t.name, b.may(n+"/restrictive", 20, " AS RESTRICTIVE"), command,
		b.pick(n+"/to", "PUBLIC", "reader", "reader, probe_app"), using, check)
	b.about(n, "POLICY", name+" ON "+t.name)
}

// makeRare makes objects of seldom kinds.
func (b *build) makeRare() {
	if b.sequence != "" && len(b.tables) > 0 && b.has("q0/owned", 10) {
		t := b.tables[b.number("q0/owned/by", len(b.tables))]
		if strings.HasPrefix(b.sequence, t.schema+".") && len(t.columns) > 0 { // both must be in one schema
			b.say("ALTER SEQUENCE %s OWNED BY %s.%s", b.sequence, t.name, t.columns[0].name)
		}
	}
	if b.has("op", 5) {
		name := b.place("op") + "." + b.pick("op/name", "===", "<~>", "@#@")
		b.say("CREATE OPERATOR %s (LEFTARG = integer, RIGHTARG = integer, FUNCTION = %s)", name, b.pick("op/is", "int4eq", "int4lt"))
		b.about("op", "OPERATOR", name+" (integer, integer)")
	}
	if len(b.composites) > 0 && b.has("ca", 5) {
		b.say("CREATE CAST (%s AS text) WITH INOUT%s", b.composites[0].name, b.pick("ca/as", "", " AS ASSIGNMENT"))
	}
	if b.has("ts", 6) {
		name := b.place("ts") + "." + b.unique("ts", "ts")
		b.say("CREATE TEXT SEARCH CONFIGURATION %s (COPY = pg_catalog.%s)", name, b.pick("ts/copy", "simple", "english"))
		b.about("ts", "TEXT SEARCH CONFIGURATION", name)
	}
	if b.has("td", 5) {
		b.say("CREATE TEXT SEARCH DICTIONARY %s.%s (TEMPLATE = pg_catalog.simple, ACCEPT = %s)", b.place("td"), b.unique("td", "td"), b.pick("td/accept", "true", "false"))
	}
	logged := slices.DeleteFunc(slices.Clone(b.tables), func(t *table) bool { return !t.logged })
	if len(logged) > 0 && b.has("pu", 5) {
		t := logged[b.number("pu/for", len(logged))]
		b.finally = append(b.finally, fmt.Sprintf("CREATE PUBLICATION %s FOR TABLE ONLY %s%s", b.ident("pu", "pu"), t.name,
			b.pick("pu/with", "", " WITH (publish = 'insert')")))
	}
}
