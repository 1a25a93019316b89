package planner

import (
	"slices"
	"strings"
	"testing"

	"ptah.run/ptah/operator/executor/postgresql/dump"
)

func enumOf(labels string) dump.Entry {
	return entry("TYPE", "CREATE TYPE public.e AS ENUM (\n"+labels+"\n)")
}

func compositeOf(attributes string) dump.Entry {
	return entry("TYPE", "CREATE TYPE public.c AS (\n"+attributes+"\n)")
}

func TestATypeIsMadeAnewOnlyWherePostgreSQLCannotAlterIt(t *testing.T) {
	domain := func(rest string) dump.Entry { return entry("DOMAIN", "CREATE DOMAIN public.d AS "+rest) }
	for name, test := range map[string]struct {
		from, to dump.Entry
		want     bool
	}{
		"labels added":                 {enumOf("'a', 'c'"), enumOf("'a', 'b', 'c'"), true},
		"a label removed":              {enumOf("'a', 'b'"), enumOf("'a'"), false},
		"labels moved":                 {enumOf("'a', 'b'"), enumOf("'b', 'a'"), false},
		"an attribute added":           {compositeOf("a integer"), compositeOf("a integer, b text"), true},
		"an attribute removed":         {compositeOf("a integer, b text"), compositeOf("b text"), true},
		"an attribute of another type": {compositeOf("a integer"), compositeOf("a bigint"), false},
		"attributes moved":             {compositeOf("a integer, b text"), compositeOf("b text, a integer"), false},
		"a check of a domain":          {domain("text"), domain("text\n\tCONSTRAINT k CHECK ((VALUE <> ''::text))"), true},
		"the base type of a domain":    {domain("text"), domain("integer"), false},
		"an enum made a domain":        {enumOf("'a'"), domain("text"), false},
		"an enum made composite":       {enumOf("'a'"), compositeOf("a integer"), false},
	} {
		if got := alterable(test.from, test.to); got != test.want {
			t.Errorf("%s: alterable is %t", name, got)
		}
	}
}

func TestValuesAreCarriedByTheirText(t *testing.T) {
	a := &attempt{have: []dump.Entry{enumOf("'a', 'b'"), compositeOf("x integer, y text")}, want: []dump.Entry{enumOf("'a'"), compositeOf(`y text, n date, x bigint`)}}
	for kind, want := range map[string]string{
		"public.e":   `public.e USING "C c"::text::public.e`,
		"public.e[]": `public.e[] USING "C c"::text::public.e[]`,
		"public.c":   `public.c USING CASE WHEN "C c" IS DISTINCT FROM NULL THEN ROW(("C c").y::text::text, NULL::date, ("C c").x::text::bigint)::public.c END`,
	} {
		if got := a.carried(dump.Column{Name: `"C c"`, Type: kind}); got != want {
			t.Errorf("%s is carried by %s", kind, got)
		}
	}
	if got := a.carried(dump.Column{Name: "c", Type: "text", Collation: "public.de"}); got != "text COLLATE public.de USING c::text::text" {
		t.Errorf("a collated column is carried by %s", got)
	}
}

func TestASpareNameIsNobodyElses(t *testing.T) {
	long := strings.Repeat("n", 63)
	a := &attempt{have: []dump.Entry{enumOf("'a'"), entry("TYPE", `CREATE TYPE public.e__ptah_old AS ENUM (\n'a'\n)`)}}
	first := a.spareName(dump.Name{Schema: "public", Object: "e"})
	if first.Object != `"e__ptah_old2"` {
		t.Errorf("the name is %s although it is taken", first.Object)
	}
	one, two := a.spareName(dump.Name{Schema: "public", Object: long + "a"}), a.spareName(dump.Name{Schema: "public", Object: long + "b"})
	if one == two || len(dump.Unquote(two.Object)) > 63 {
		t.Errorf("long names become %s and %s", one.Object, two.Object)
	}
}

func TestARangeTypeIsKnown(t *testing.T) {
	e := entry("TYPE", "CREATE TYPE public.\"R r\" AS RANGE (\n    subtype = double precision,\n    multirange_type_name = public.m\n)")
	if !isRange(e) || isRange(enumOf("'RANGE'")) || isRange(compositeOf("range integer")) {
		t.Error("a range type was not told from others")
	}
}

func TestInPlace(t *testing.T) {
	index := func(rest string, more ...string) dump.Entry {
		return dump.Entry{Type: "INDEX", Statements: append([]string{`CREATE INDEX "I i" ON public.t USING btree (a)` + rest}, more...)}
	}
	key := func(rest string) dump.Entry {
		return entry("CONSTRAINT", "ALTER TABLE ONLY public.t\n    ADD CONSTRAINT k EXCLUDE USING gist (a WITH =)"+rest)
	}
	trigger := func(state string) dump.Entry {
		e := entry("TRIGGER", `CREATE TRIGGER "T t" BEFORE INSERT ON public.t FOR EACH ROW EXECUTE FUNCTION public.f()`)
		if state != "" {
			e.Statements = append(e.Statements, `ALTER TABLE public.t `+state+` TRIGGER "T t"`)
		}
		return e
	}
	publication := func(options string) dump.Entry {
		return entry("PUBLICATION", "CREATE PUBLICATION p WITH (publish = '"+options+"')")
	}
	for name, test := range map[string]struct {
		from, to dump.Entry
		want     []string // nil where it must be made anew
	}{
		"parameters of an index": {index(" WITH (fillfactor='60', deduplicate_items=off) WHERE (a > 0)"), index(" WITH (fillfactor='70') WHERE (a > 0)"),
			[]string{`ALTER INDEX public."I i" RESET (deduplicate_items)`, `ALTER INDEX public."I i" SET (fillfactor='70')`}},
		"parameters and another condition": {index(" WITH (fillfactor='60') WHERE (a > 0)"), index(" WHERE (a > 1)"), nil},
		"what stands behind an index": {index("", `ALTER TABLE public.t CLUSTER ON "I i"`), index("", `ALTER INDEX public."I i" ALTER COLUMN 1 SET STATISTICS 5`),
			[]string{"ALTER TABLE public.t SET WITHOUT CLUSTER", `ALTER INDEX public."I i" ALTER COLUMN 1 SET STATISTICS 5`}},
		"parameters of a key": {key(""), key(" WITH (fillfactor='50')"), []string{"ALTER INDEX public.k SET (fillfactor='50')"}},
		"another key":         {key(""), key(" DEFERRABLE"), nil},
		"a trigger disabled":  {trigger(""), trigger("DISABLE"), []string{`ALTER TABLE public.t DISABLE TRIGGER "T t"`}},
		"a trigger enabled":   {trigger("ENABLE REPLICA"), trigger(""), []string{`ALTER TABLE public.t ENABLE TRIGGER "T t"`}},
		"a trigger of a partition": {entry("TRIGGER", "ALTER TABLE public.t1 DISABLE TRIGGER tr"), entry("TRIGGER", "ALTER TABLE public.t1 ENABLE ALWAYS TRIGGER tr"),
			[]string{"ALTER TABLE public.t1 ENABLE ALWAYS TRIGGER tr"}},
		"a publication": {publication("insert"), publication("delete"), []string{"ALTER PUBLICATION p SET (publish = 'delete')"}},
		"a view":        {entry("VIEW", "CREATE VIEW public.v AS SELECT 1"), entry("VIEW", "CREATE VIEW public.v AS SELECT 2"), nil},
	} {
		t.Run(name, func(t *testing.T) {
			got, ok := (&attempt{}).inPlace(test.from, test.to)
			if ok != (test.want != nil) || ok && !slices.Equal(got, test.want) {
				t.Errorf("%t\n%s", ok, strings.Join(got, "\n"))
			}
		})
	}
}

func TestATriggerOfAPartitionFiresAsThatOfItsTable(t *testing.T) {
	attach := func(parent, child string) dump.Entry {
		return entry("TABLE ATTACH", "ALTER TABLE ONLY public."+parent+" ATTACH PARTITION public."+child+" FOR VALUES IN (1)")
	}
	trigger := dump.Entry{Type: "TRIGGER", Statements: []string{"CREATE TRIGGER tr AFTER INSERT ON public.t FOR EACH ROW EXECUTE FUNCTION public.f()", "ALTER TABLE public.t ENABLE ALWAYS TRIGGER tr"}}
	a := &attempt{want: []dump.Entry{attach("t", "t1"), attach("t1", "t11"), trigger}}
	got, err := a.asParent(entry("TRIGGER", "ALTER TABLE public.t11 DISABLE TRIGGER tr"))
	if err != nil || !slices.Equal(got, []string{"ALTER TABLE public.t11 ENABLE ALWAYS TRIGGER tr"}) {
		t.Errorf("%v %s", err, got)
	}
	if got, err := a.asParent(entry("TRIGGER", "ALTER TABLE public.alone DISABLE TRIGGER tr")); err == nil {
		t.Errorf("a table without a parent has %s", got)
	}
}
