package specimen

import (
	"fmt"
	"slices"
	"strings"
)

// partitions makes the partitions of a table, of which one may be partitioned again.
func (b *build) partitions(t *table) {
	if t.strategy == "" {
		return
	}
	bounds := map[string][]string{
		"range": {"FROM (MINVALUE) TO (10)", "FROM (10) TO (20)", "FROM (20) TO (" + b.pick(t.path+"/p2/to", "30", "40") + ")"},
		"list":  {"IN ('a')", "IN ('b', 'c')", "IN (" + b.pick(t.path+"/p2/in", "'d'", "'d', 'e'") + ")"},
		"hash":  {"WITH (MODULUS 3, REMAINDER 0)", "WITH (MODULUS 3, REMAINDER 1)", "WITH (MODULUS 3, REMAINDER 2)"},
	}[t.strategy]
	for i, bound := range bounds {
		path := fmt.Sprintf("%s/p%d", t.path, i)
		if b.has(path, 65) {
			b.partition(t, path, fmt.Sprintf("%s_p%d", strings.Trim(t.path, `"`), i), "FOR VALUES "+bound, i == 1)
		}
	}
	if path := t.path + "/pd"; t.strategy != "hash" && b.has(path, 30) {
		b.partition(t, path, t.path+"_pd", "DEFAULT", false)
	}
}

func (b *build) partition(t *table, path, plain, bound string, divisible bool) {
	name := b.place(path) + "." + b.unique(path, plain)
	t.parts = append(t.parts, name)
	if divisible && b.has(path+"/divided", 20) {
		t.divided = true
		b.say("CREATE TABLE %s PARTITION OF %s %s PARTITION BY HASH (id)", name, t.name, bound)
		for r := range 2 {
			leaf := fmt.Sprintf("%s/h%d", path, r)
			if b.has(leaf, 70) {
				b.say("CREATE TABLE %s.%s PARTITION OF %s FOR VALUES WITH (MODULUS 2, REMAINDER %d)", t.schema, b.unique(leaf, fmt.Sprintf("%s_h%d", plain, r)), name, r)
			}
		}
		return
	}
	options := ""
	if o := b.storage(path); o != "" {
		options = " WITH (" + o + ")"
	}
	b.say("CREATE TABLE %s PARTITION OF %s %s%s", name, t.name, bound, options)
	if b.has(path+"/index", 10) {
		b.say("CREATE INDEX %s ON %s (id)", b.unique(path+"/index", plain+"_i"), name)
	}
	if b.has(path+"/check", 6) {
		b.say("ALTER TABLE %s ADD CONSTRAINT %s CHECK (%s)", name, b.unique(path+"/check", "own"), b.predicate(path+"/check", t))
	}
	for _, c := range t.columns {
		if !c.computed && !c.identity && c.name != t.key && b.has(path+"/"+c.path+"/default", 4) {
			b.say("ALTER TABLE %s ALTER COLUMN %s SET DEFAULT NULL", name, c.name)
		}
	}
	b.about(path, "TABLE", name)
	b.grant(path, "TABLE", name, "SELECT", "INSERT, UPDATE")
}

// by are the columns by which a table and its partitions are partitioned; every unique key must hold them.
func (t *table) by() []string {
	switch {
	case t.strategy == "":
		return nil
	case t.divided && t.key != "id":
		return []string{t.key, "id"}
	}
	return []string{t.key}
}

// with returns a list of columns with those that a unique key must hold.
func (t *table) with(columns []string) string {
	columns = slices.Clone(columns)
	for _, c := range t.by() {
		if !slices.Contains(columns, c) {
			columns = append(columns, c)
		}
	}
	return strings.Join(columns, ", ")
}

// keys makes primary keys, unique constraints and exclusions.
func (b *build) keys(t *table) {
	p := t.path
	if b.has(p+"/pk", 75) {
		t.id = t.strategy == "" || t.key == "id"
		name := ""
		if b.has(p+"/pk/named", 15) {
			name = "CONSTRAINT " + b.unique(p+"/pk", p+"_key_of") + " "
		}
		columns := t.with([]string{"id"})
		include := ""
		if rest := t.where(func(c column) bool { return c.name != "id" && c.name != t.key }); len(rest) > 0 && b.has(p+"/pk/include", 6) {
			include = " INCLUDE (" + rest[b.number(p+"/pk/include/column", len(rest))].name + ")"
		}
		b.say("ALTER TABLE %s ADD %sPRIMARY KEY (%s)%s%s", t.name, name, columns, include, b.may(p+"/pk/options", 4, " WITH (fillfactor='80')"))
		if name != "" {
			b.about(p+"/pk", "CONSTRAINT", b.unique(p+"/pk", p+"_key_of")+" ON "+t.name)
		}
	}
	for i := range 2 {
		n := fmt.Sprintf("%s/u%d", p, i)
		candidates := t.ordered()
		if len(candidates) == 0 || !b.has(n, 22) {
			continue
		}
		name := b.unique(n, fmt.Sprintf("%s_u%d", p, i))
		b.say("ALTER TABLE %s ADD CONSTRAINT %s UNIQUE %s(%s)%s", t.name, name, b.may(n+"/nulls", 12, "NULLS NOT DISTINCT "),
			t.with(b.some(n+"/columns", 2, names(candidates))), b.pick(n+"/deferrable", "", "", "", "", " DEFERRABLE", " DEFERRABLE INITIALLY DEFERRED"))
		b.about(n, "CONSTRAINT", name+" ON "+t.name)
	}
	if ranges := t.where(func(c column) bool { return c.family == "range" }); len(ranges) > 0 && t.strategy == "" && b.has(p+"/exclude", 35) {
		c := ranges[b.number(p+"/exclude/column", len(ranges))]
		b.say("ALTER TABLE %s ADD CONSTRAINT %s EXCLUDE USING gist (%s WITH %s)%s%s", t.name, b.unique(p+"/exclude", p+"_x"), c.name,
			b.pick(p+"/exclude/with", "&&", "&&", "-|-"), b.may(p+"/exclude/where", 25, " WHERE ("+b.predicate(p+"/exclude/where", t)+")"),
			b.may(p+"/exclude/deferrable", 15, " DEFERRABLE"))
	}
	if b.has(p+"/late", 12) {
		name := b.unique(p+"/late", "late_check")
		b.say("ALTER TABLE %s ADD CONSTRAINT %s CHECK (%s)%s", t.name, name, b.predicate(p+"/late", t), b.may(p+"/late/notvalid", 50, " NOT VALID"))
		b.about(p+"/late", "CONSTRAINT", name+" ON "+t.name)
	}
	b.indexes(t)
}

func (b *build) indexes(t *table) {
	for i := range 3 {
		n := fmt.Sprintf("%s/i%d", t.path, i)
		if b.has(n, 28) {
			b.index(t, n, fmt.Sprintf("%s_i%d", t.path, i))
		}
	}
}

func (b *build) index(t *table, n, plain string) {
	name := b.unique(n, plain)
	unique, method := "", "btree"
	var keys []string
	switch form := b.pick(n+"/form", "columns", "columns", "expression", "hash", "gin", "brin", "gist", "unique"); form {
	case "hash", "brin":
		method = form
		if c := t.ordered(); len(c) > 0 {
			if c = t.where(func(c column) bool { return c.family == "int" || c.family == "text" && form == "hash" }); len(c) > 0 {
				keys = []string{c[b.number(n+"/column", len(c))].name}
			}
		}
	case "gin", "gist":
		method = form
		fits := map[string][]string{"gin": {"array", "jsonb", "tsvector"}, "gist": {"range", "point", "tsvector"}}[form]
		if c := t.where(func(c column) bool { return slices.Contains(fits, c.family) }); len(c) > 0 {
			keys = []string{c[b.number(n+"/column", len(c))].name}
		}
	case "expression":
		if c := t.where(func(c column) bool { return c.family == "text" }); len(c) > 0 {
			keys = []string{fmt.Sprintf(b.pick(n+"/text", "lower(%s::text)", "(%s::text || 'x')", "upper(%s::text) DESC"), c[b.number(n+"/column", len(c))].name)}
		} else if c := t.where(func(c column) bool { return c.family == "int" }); len(c) > 0 {
			keys = []string{fmt.Sprintf(b.pick(n+"/int", "((%s + 1))", "(abs(%s))", "((%s / 2)) DESC"), c[b.number(n+"/column", len(c))].name)}
		}
	default:
		if c := b.some(n+"/columns", 3, names(t.ordered())); len(c) > 0 {
			whole := !slices.ContainsFunc(t.by(), func(k string) bool { return !slices.Contains(c, k) })
			for i := range c {
				c[i] += b.pick(fmt.Sprintf("%s/order%d", n, i), "", "", "", " DESC", " NULLS FIRST", " DESC NULLS LAST")
			}
			keys = c
			if form == "unique" && whole {
				unique = "UNIQUE "
			}
		}
	}
	if len(keys) == 0 {
		keys, method = []string{"id"}, "btree"
	}
	tail := ""
	if method == "btree" && b.has(n+"/include", 10) {
		tail += " INCLUDE (" + t.columns[b.number(n+"/include/column", len(t.columns))].name + ")"
	}
	if unique != "" {
		tail += b.may(n+"/nulls", 15, " NULLS NOT DISTINCT")
	}
	if method == "btree" {
		tail += b.may(n+"/fillfactor", 6, " WITH (fillfactor='60')")
	}
	if b.has(n+"/where", 20) {
		tail += " WHERE " + b.predicate(n+"/where", t)
	}
	b.say("CREATE %sINDEX %s ON %s USING %s (%s)%s", unique, name, t.name, method, strings.Join(keys, ", "), tail)
	b.about(n, "INDEX", t.schema+"."+name)
	if method == "btree" && t.strategy == "" && b.has(n+"/cluster", 3) && !strings.Contains(tail, "WHERE") {
		b.say("ALTER TABLE %s CLUSTER ON %s", t.name, name)
	}
	if strings.Contains(keys[0], "(") && b.has(n+"/statistics", 8) {
		b.say("ALTER INDEX %s.%s ALTER COLUMN 1 SET STATISTICS 400", t.schema, name)
	}
}

// makeForeignKeys makes keys between any tables, so that they may form circles.
func (b *build) makeForeignKeys() {
	for _, t := range b.tables {
		for i := range 2 {
			n := fmt.Sprintf("%s/fk%d", t.path, i)
			if !b.has(n, 30) {
				continue
			}
			targets := slices.DeleteFunc(slices.Clone(b.tables), func(o *table) bool { return !o.id || o.logged != t.logged })
			if len(targets) == 0 {
				continue
			}
			o := targets[b.number(n+"/to", len(targets))]
			id := o.columns[0]
			own := t.where(func(c column) bool { return c.family == id.family && !c.computed && !strings.Contains(c.sql, ".") })
			if len(own) == 0 {
				continue
			}
			c := own[b.number(n+"/column", len(own))]
			name := b.unique(n, fmt.Sprintf("%s_fk%d", t.path, i))
			notValid := ""
			if t.strategy == "" && o.strategy == "" {
				notValid = b.may(n+"/notvalid", 10, " NOT VALID")
			}
			b.say("ALTER TABLE %s ADD CONSTRAINT %s FOREIGN KEY (%s) REFERENCES %s (id)%s%s%s%s", t.name, name, c.name, o.name,
				b.may(n+"/full", 8, " MATCH FULL"), b.pick(n+"/delete", "", "", " ON DELETE CASCADE", " ON DELETE SET DEFAULT", " ON DELETE RESTRICT ON UPDATE CASCADE"),
				b.pick(n+"/deferrable", "", "", "", " DEFERRABLE", " DEFERRABLE INITIALLY DEFERRED"), notValid)
			b.about(n, "CONSTRAINT", name+" ON "+t.name)
		}
	}
}
