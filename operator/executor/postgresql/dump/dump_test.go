package dump

import (
	"slices"
	"strings"
	"testing"
)

// text builds what pg_dump prints, from objects.
func text(objects ...string) string {
	out := "--\n-- PostgreSQL database dump\n--\n\n\\restrict abc123\n\n-- Dumped from database version 17.12\n\nSET statement_timeout = 0;\nSELECT pg_catalog.set_config('search_path', '', false);\n\nSET default_tablespace = '';\n\nSET default_table_access_method = heap;\n\n"
	for _, o := range objects {
		out += o
	}
	return out + "--\n-- PostgreSQL database dump complete\n--\n\n\\unrestrict abc123\n\n"
}

func object(kind, schema, name, sql string) string {
	return "--\n-- Name: " + name + "; Type: " + kind + "; Schema: " + schema + "; Owner: -\n--\n\n" + sql + "\n\n\n"
}

func parse(t *testing.T, objects ...string) []Entry {
	t.Helper()
	entries, err := Parse(text(objects...))
	if err != nil {
		t.Fatal(err)
	}
	return entries
}

func TestParse(t *testing.T) {
	const trap = "--\n-- Name: evil; Type: TABLE; Schema: public; Owner: -\n--\n\nDROP TABLE x;\n"
	function := "CREATE FUNCTION public.f() RETURNS text\n    LANGUAGE sql\n    AS $_$\n" + trap + "\\restrict inside\n SELECT ';' $_$;"
	atomic := "CREATE FUNCTION public.g() RETURNS integer\n    LANGUAGE sql\n    BEGIN ATOMIC\n SELECT CASE WHEN true THEN 1 ELSE 2 END;\n SELECT 2;\nEND;"
	comment := "COMMENT ON TABLE public.t IS 'it''s\n" + trap + "';"
	got := parse(t,
		object("FUNCTION", "public", "f()", function),
		object("FUNCTION", "public", "g()", atomic),
		object("COMMENT", "public", "TABLE t", comment),
		object("TABLE", "public", "odd; Type: VIEW; Schema: x", "CREATE TABLE public.\"odd; Type: VIEW; Schema: x\" (\n    a integer\n);"),
		"SET default_table_access_method = columnar;\n\n",
		object("TABLE", "public", "c", "CREATE TABLE public.c (\n    a integer\n);\n\n\nALTER TABLE ONLY public.c FORCE ROW LEVEL SECURITY;"),
	)
	if len(got) != 5 {
		t.Fatalf("%d entries: %v", len(got), got)
	}
	for i, want := range []int{1, 1, 1, 1, 2} {
		if len(got[i].Statements) != want {
			t.Errorf("entry %d has %d statements: %q", i, len(got[i].Statements), got[i].Statements)
		}
	}
	if got[0].Statements[0]+";" != function || got[2].Statements[0]+";" != comment {
		t.Errorf("a body was changed: %q", got[0].Statements[0])
	}
	if got[3].Name != "odd; Type: VIEW; Schema: x" || got[3].Type != "TABLE" {
		t.Errorf("the header was misread: %+v", got[3].Key())
	}
	if got[3].AccessMethod != "" || got[4].AccessMethod != "columnar" {
		t.Errorf("access methods %q and %q", got[3].AccessMethod, got[4].AccessMethod)
	}
}

func TestParseRefuses(t *testing.T) {
	whole := text(object("TABLE", "public", "t", "CREATE TABLE public.t (\n    a integer\n);"))
	for name, text := range map[string]string{
		"nothing":                "",
		"another text":           "CREATE TABLE t();",
		"a dump that is cut off": whole[:len(whole)/2],
		"a header of a new form": strings.Replace(whole, "; Schema: public; Owner: -", "; Elsewhere: x", 1),
	} {
		if _, err := Parse(text); err == nil {
			t.Errorf("%s was read", name)
		}
	}
}

func TestDigest(t *testing.T) {
	table := func(columns string) string {
		return object("TABLE", "public", "t", "CREATE TABLE public.t (\n"+columns+"\n);")
	}
	grants := func(a, b string) string {
		return object("ACL", "public", "TABLE t", "GRANT SELECT ON TABLE public.t TO "+a+";\nGRANT SELECT ON TABLE public.t TO "+b+";")
	}
	base := Digest(parse(t, table("    a integer,\n    b text"), grants("x", "y")))
	for name, test := range map[string]struct {
		objects []string
		same    bool
	}{
		"the same":                          {[]string{table("    a integer,\n    b text"), grants("x", "y")}, true},
		"columns in another order":          {[]string{table("    b text,\n    a integer"), grants("x", "y")}, true},
		"grants in another order":           {[]string{table("    a integer,\n    b text"), grants("y", "x")}, true},
		"entries in another order":          {[]string{grants("x", "y"), table("    a integer,\n    b text")}, true},
		"another type":                      {[]string{table("    a bigint,\n    b text"), grants("x", "y")}, false},
		"another grantee":                   {[]string{table("    a integer,\n    b text"), grants("x", "z")}, false},
		"a column less":                     {[]string{table("    a integer"), grants("x", "y")}, false},
		"a default that holds a comma":      {[]string{table("    a integer DEFAULT 'x,\n    b text'"), grants("x", "y")}, false},
		"a grant less":                      {[]string{table("    a integer,\n    b text"), grants("x", "x")}, false},
		"the same columns in another table": {[]string{object("TABLE", "public", "u", "CREATE TABLE public.t (\n    a integer,\n    b text\n);"), grants("x", "y")}, false},
		"a line moved between objects":      {[]string{table("    a integer"), object("TABLE", "public", "u", "CREATE TABLE public.u (\n    b text\n);"), grants("x", "y")}, false},
	} {
		t.Run(name, func(t *testing.T) {
			if got := Digest(parse(t, test.objects...)); (got == base) != test.same {
				t.Errorf("the digests are equal: %t", got == base)
			}
		})
	}
	if Digest(nil, "a", "b") == Digest(nil, "ab") || Digest(nil, "a") == Digest(nil) {
		t.Error("facts run into each other")
	}
}

func TestCompositeTypesAndViewsKeepTheirOrder(t *testing.T) {
	for kind, sql := range map[string][2]string{
		"TYPE": {"CREATE TYPE public.c AS (\n\ta integer,\n\tb text\n);", "CREATE TYPE public.c AS (\n\tb text,\n\ta integer\n);"},
		"VIEW": {"CREATE VIEW public.c AS\n SELECT 1 AS a,\n    2 AS b;", "CREATE VIEW public.c AS\n SELECT 2 AS b,\n    1 AS a;"},
	} {
		if Digest(parse(t, object(kind, "public", "c", sql[0]))) == Digest(parse(t, object(kind, "public", "c", sql[1]))) {
			t.Errorf("the order inside a %s is lost", kind)
		}
	}
}

func TestDrop(t *testing.T) {
	for sql, test := range map[string]struct {
		kind string
		want []string
	}{
		`CREATE TABLE "My App"."Or""der" (a integer)`:                                                               {"TABLE", []string{`DROP TABLE "My App"."Or""der"`}},
		`CREATE UNLOGGED TABLE public.t (a integer)`:                                                                {"TABLE", []string{"DROP TABLE public.t"}},
		`CREATE INDEX "Idx 1" ON "My App".t USING btree (a)`:                                                        {"INDEX", []string{`DROP INDEX "My App"."Idx 1"`}},
		`CREATE UNIQUE INDEX i ON ONLY public.t USING btree (a)`:                                                    {"INDEX", []string{"DROP INDEX public.i"}},
		`ALTER TABLE ONLY public.t ADD CONSTRAINT "c 1" CHECK ((a > 0))`:                                            {"CONSTRAINT", []string{`ALTER TABLE public.t DROP CONSTRAINT "c 1"`}},
		`ALTER DOMAIN public.d ADD CONSTRAINT c CHECK ((VALUE > 0)) NOT VALID`:                                      {"CHECK CONSTRAINT", []string{"ALTER DOMAIN public.d DROP CONSTRAINT c"}},
		`CREATE TRIGGER "tr x" BEFORE INSERT OR UPDATE OF a ON public.t FOR EACH ROW EXECUTE FUNCTION public.f()`:   {"TRIGGER", []string{`DROP TRIGGER "tr x" ON public.t`}},
		`CREATE CONSTRAINT TRIGGER tr AFTER INSERT ON public.t DEFERRABLE FOR EACH ROW EXECUTE FUNCTION public.f()`: {"TRIGGER", []string{"DROP TRIGGER tr ON public.t"}},
		`CREATE POLICY p ON public.t FOR SELECT USING (true)`:                                                       {"POLICY", []string{"DROP POLICY p ON public.t"}},
		`CREATE RULE r AS
    ON DELETE TO public.t DO INSTEAD NOTHING`: {"RULE", []string{"DROP RULE r ON public.t"}},
		`CREATE STATISTICS public.s (ndistinct) ON a, b FROM public.t`:                                                                                    {"STATISTICS", []string{"DROP STATISTICS public.s"}},
		`CREATE FUNCTION public.f(a integer DEFAULT 1, VARIADIC b text[] DEFAULT ARRAY['x'::text, 'y'::text]) RETURNS integer LANGUAGE sql AS 'SELECT 1'`: {"FUNCTION", []string{"DROP FUNCTION public.f(a integer, VARIADIC b text[])"}},
		`CREATE PROCEDURE public.p() LANGUAGE sql AS ''`:                                                                                                  {"PROCEDURE", []string{"DROP PROCEDURE public.p()"}},
		`CREATE AGGREGATE public.a(integer) (SFUNC = int4pl, STYPE = integer)`:                                                                            {"AGGREGATE", []string{"DROP AGGREGATE public.a(integer)"}},
		`CREATE EXTENSION IF NOT EXISTS "uuid-ossp" WITH SCHEMA public`:                                                                                   {"EXTENSION", []string{`DROP EXTENSION "uuid-ossp"`}},
		`COMMENT ON COLUMN public.t.a IS 'x IS ''y'''`:                                                                                                    {"COMMENT", []string{"COMMENT ON COLUMN public.t.a IS NULL"}},
		`COMMENT ON FUNCTION public.f(a integer) IS 'x'`:                                                                                                  {"COMMENT", []string{"COMMENT ON FUNCTION public.f(a integer) IS NULL"}},
		`GRANT SELECT,INSERT ON TABLE public.t TO "to" WITH GRANT OPTION`:                                                                                 {"ACL", []string{`REVOKE SELECT,INSERT ON TABLE public.t FROM "to"`}},
		`REVOKE ALL ON FUNCTION public.f() FROM PUBLIC`:                                                                                                   {"ACL", []string{"GRANT ALL ON FUNCTION public.f() TO PUBLIC"}},
		`ALTER DEFAULT PRIVILEGES FOR ROLE app IN SCHEMA public GRANT SELECT ON TABLES TO reader`:                                                         {"DEFAULT ACL", []string{"ALTER DEFAULT PRIVILEGES FOR ROLE app IN SCHEMA public REVOKE SELECT ON TABLES FROM reader"}},
		`CREATE CAST (integer AS public."P t") WITH FUNCTION public.f(integer) AS ASSIGNMENT`:                                                             {"CAST", []string{`DROP CAST (integer AS public."P t")`}},
		"CREATE OPERATOR \"S.s\".=== (\n    FUNCTION = public.eq,\n    LEFTARG = integer,\n    RIGHTARG = text\n)":                                        {"OPERATOR", []string{`DROP OPERATOR "S.s".=== (integer, text)`}},
		"CREATE OPERATOR public.!! (\n    FUNCTION = public.f,\n    RIGHTARG = integer\n)":                                                                {"OPERATOR", []string{`DROP OPERATOR public.!! (NONE, integer)`}},
		`ALTER PUBLICATION "P p" ADD TABLE ONLY public.t (id) WHERE ((id > 0))`:                                                                           {"PUBLICATION TABLE", []string{`ALTER PUBLICATION "P p" DROP TABLE ONLY public.t`}},
		`ALTER TABLE ONLY public.t ALTER COLUMN a SET DEFAULT 1`:                                                                                          {"DEFAULT", []string{"ALTER TABLE public.t ALTER COLUMN a DROP DEFAULT"}},
		`ALTER TABLE public.t ENABLE ROW LEVEL SECURITY`:                                                                                                  {"ROW SECURITY", []string{"ALTER TABLE public.t DISABLE ROW LEVEL SECURITY"}},
		`ALTER TABLE ONLY public.p ATTACH PARTITION public.c FOR VALUES IN (1)`:                                                                           {"TABLE ATTACH", []string{"ALTER TABLE public.p DETACH PARTITION public.c"}},
		`ALTER SEQUENCE public.s OWNED BY public.t.a`:                                                                                                     {"SEQUENCE OWNED BY", []string{"ALTER SEQUENCE public.s OWNED BY NONE"}},
		`ALTER TABLE public.t ALTER COLUMN id ADD GENERATED ALWAYS AS IDENTITY (SEQUENCE NAME public.s)`:                                                  {"SEQUENCE", []string{"ALTER TABLE public.t ALTER COLUMN id DROP IDENTITY"}},
		`CREATE SERVER s FOREIGN DATA WRAPPER w`:                                                                                                          {"SERVER", nil},
	} {
		got, err := Entry{Type: test.kind, Statements: []string{sql}}.Drop()
		if !slices.Equal(got, test.want) || (err != nil) != (test.want == nil) {
			t.Errorf("%s\n gives %q, %v", sql, got, err)
		}
	}
}

func TestTable(t *testing.T) {
	e := Entry{Type: "TABLE", Statements: []string{`CREATE UNLOGGED TABLE public.t (
    id bigint NOT NULL,
    "we ird" character varying(20) DEFAULT 'a, (b'::character varying NOT NULL COLLATE pg_catalog."C",
    flag boolean DEFAULT (NOT true),
    total numeric(12,2) GENERATED ALWAYS AS ((id * 2)) STORED,
    at timestamp(3) with time zone[],
    CONSTRAINT "chk 1" CHECK ((id > 0))
)
INHERITS (public.p, public.q)
PARTITION BY RANGE (at)
WITH (fillfactor='70', autovacuum_enabled='false')`, "ALTER TABLE ONLY public.t REPLICA IDENTITY FULL"}}
	table, ok := e.Table()
	if !ok {
		t.Fatal("not read")
	}
	want := []Column{
		{Name: "id", Type: "bigint", NotNull: true},
		{Name: `"we ird"`, Type: "character varying(20)", Default: "'a, (b'::character varying", NotNull: true, Collation: `pg_catalog."C"`},
		{Name: "flag", Type: "boolean", Default: "(NOT true)"},
		{Name: "total", Type: "numeric(12,2)", Generated: "((id * 2))"},
		{Name: "at", Type: "timestamp(3) with time zone[]"},
	}
	for i, column := range table.Columns {
		column.Text = ""
		if column != want[i] {
			t.Errorf("column %d is %+v", i, column)
		}
	}
	if !table.Unlogged || len(table.Constraints) != 1 || table.Constraints[0].Name != `"chk 1"` || len(table.Inherits) != 2 ||
		!slices.Equal(table.Options, []string{"fillfactor='70'", "autovacuum_enabled='false'"}) ||
		!strings.HasPrefix(table.Rest, "PARTITION BY RANGE") || len(table.Extra) != 1 {
		t.Errorf("%+v", table)
	}
	for _, sql := range []string{"CREATE TABLE public.t OF public.kind", "CREATE TABLE public.t OF public.kind (\n    a WITH OPTIONS DEFAULT 1\n)"} {
		if _, ok := (Entry{Type: "TABLE", Statements: []string{sql}}).Table(); ok {
			t.Errorf("a typed table was taken apart: %s", sql)
		}
	}
}

func TestExclude(t *testing.T) {
	entries := parse(t,
		object("TABLE", "audit", "log", "CREATE TABLE audit.log (\n    id bigint\n);"),
		object("SEQUENCE", "audit", "log_id_seq", "CREATE SEQUENCE audit.log_id_seq;"),
		object("SEQUENCE OWNED BY", "audit", "log_id_seq", "ALTER SEQUENCE audit.log_id_seq OWNED BY audit.log.id;"),
		object("DEFAULT", "audit", "log id", "ALTER TABLE ONLY audit.log ALTER COLUMN id SET DEFAULT nextval('audit.log_id_seq'::regclass);"),
		object("COMMENT", "audit", "COLUMN log.id", "COMMENT ON COLUMN audit.log.id IS 'x';"),
		object("ACL", "audit", "TABLE log", "GRANT SELECT ON TABLE audit.log TO r;"),
		object("CONSTRAINT", "audit", "log pk", "ALTER TABLE ONLY audit.log\n    ADD CONSTRAINT pk PRIMARY KEY (id);"),
		object("TABLE", "public", "log", "CREATE TABLE public.log (\n    id bigint\n);"),
		object("CONSTRAINT", "public", "log log", "ALTER TABLE ONLY public.log\n    ADD CONSTRAINT pk PRIMARY KEY (id);"),
		object("FUNCTION", "public", "old_f()", "CREATE FUNCTION public.old_f() RETURNS integer LANGUAGE sql AS 'SELECT 1';"),
	)
	for pattern, want := range map[string]int{"audit.log": 3, "audit.*": 3, "log": 1, "public.log": 8, "old_*": 9, "*_f": 9, "LOG": 10, "pk": 10, "id": 10, "none": 10, "*": 0} {
		patterns, err := ParsePatterns([]string{pattern}, false)
		if err != nil {
			t.Fatal(err)
		}
		left := Exclude(entries, patterns)
		if len(left) != want {
			t.Errorf("%s leaves %d entries", pattern, len(left))
		}
	}
}

func TestParsePatterns(t *testing.T) {
	for _, text := range []string{"", ".", "a.", ".b", "a.b.c", `"open`, " a"} {
		if _, err := ParsePatterns([]string{text}, false); err == nil {
			t.Errorf("%q was read", text)
		}
	}
	patterns, err := ParsePatterns([]string{"Public.Money", `"a.b"`}, true)
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range [][2]string{{"public", "money"}, {"PUBLIC", "MONEY"}, {"x", "a.b"}} {
		if !Match(patterns, name[0], name[1]) {
			t.Errorf("%v does not match", name)
		}
	}
	if Match(patterns, "other", "money") || Match(patterns, "public", "moneybag") {
		t.Error("too much matches")
	}
}

func TestSplit(t *testing.T) {
	for sql, want := range map[string][]string{
		"": nil, ";;": nil, "a; b": {"a", "b"}, "a;": {"a"},
		`SELECT E'it\'s; x'; y`:                     {`SELECT E'it\'s; x'`, "y"},
		`SELECT 'back\'; y`:                         {`SELECT 'back\'`, "y"},
		"SELECT $a$ ; $b$ ; $a$; y":                 {"SELECT $a$ ; $b$ ; $a$", "y"},
		"/* a; /* b; */ c; */ x; y":                 {"x", "y"},
		"SELECT 1 -- ; \n + 1; y":                   {"SELECT 1 -- ; \n + 1", "y"},
		`SELECT ";" ; y`:                            {`SELECT ";"`, "y"},
		"CREATE RULE r AS ON DELETE TO t DO (a; b)": {"CREATE RULE r AS ON DELETE TO t DO (a; b)"},
	} {
		if got := Split(sql); !slices.Equal(got, want) {
			t.Errorf("%q is cut into %q", sql, got)
		}
	}
}

func FuzzParse(f *testing.F) {
	f.Add(text(object("TABLE", "public", "t", "CREATE TABLE public.t (\n    a integer DEFAULT 'x'\n);")))
	f.Add(text(object("FUNCTION", "public", "f()", "CREATE FUNCTION public.f() RETURNS text LANGUAGE sql AS $_$ ; $_$;")))
	f.Add(text(object("ACL", "public", "TABLE t", "GRANT ALL ON TABLE public.t TO x;")))
	f.Fuzz(func(t *testing.T, data string) {
		entries, err := Parse(data)
		if err != nil {
			return
		}
		for _, e := range entries {
			for _, statement := range e.Statements {
				if strings.TrimSpace(statement) == "" {
					t.Fatal("an empty statement")
				}
			}
			_, _ = e.Drop() // must not panic
			_, _ = e.Table()
			_ = EnumLabels(e)
		}
		if len(Compare(entries, entries)) != 0 {
			t.Fatal("a dump differs from itself")
		}
		reversed := slices.Clone(entries)
		slices.Reverse(reversed)
		if Digest(entries) != Digest(reversed) {
			t.Fatal("the digest depends on the order of entries")
		}
	})
}

func FuzzTokens(f *testing.F) {
	for _, seed := range []string{"a 'b' \"c\" $d$ e $d$ -- f\n/* g */ h", "E'\\'", "$$", "U&'x' U&\"y\"", "'"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, sql string) {
		end := 0
		for _, token := range Tokens(sql) {
			if token.Start < end || token.End <= token.Start || token.End > len(sql) || sql[token.Start:token.End] != token.Text {
				t.Fatalf("token %+v after %d", token, end)
			}
			end = token.End
		}
		for _, statement := range Split(sql) {
			if !strings.Contains(sql, statement) {
				t.Fatalf("%q is not part of the text", statement)
			}
		}
	})
}

// Words that SQL gives a meaning may be names, and the server prints most of them without quotes.
func TestKeywordsMayBeNames(t *testing.T) {
	for _, name := range []string{"public.server", "public.partition", "public.inherits", "server.t", "data.server"} {
		one := parse(t, object("TABLE", "public", "x", "CREATE TABLE "+name+" (\n    generated public.generated DEFAULT 'a'::public.generated NOT NULL,\n    b public.stored\n)\nINHERITS (server.partition);"))
		two := parse(t, object("TABLE", "public", "x", "CREATE TABLE "+name+" (\n    b public.stored,\n    generated public.generated DEFAULT 'a'::public.generated NOT NULL\n)\nINHERITS (server.partition);"))
		if Digest(one) != Digest(two) {
			t.Errorf("the order of columns makes a difference in %s", name)
		}
		table, ok := one[0].Table()
		if !ok || len(table.Columns) != 2 {
			t.Fatalf("%s is not taken apart: %+v", name, table)
		}
		if c := table.Columns[0]; c.Type != "public.generated" || c.Default != "'a'::public.generated" || !c.NotNull || table.Name.SQL() != name || len(table.Inherits) != 1 {
			t.Errorf("%s: %+v", name, table)
		}
	}
	for sql, want := range map[string]string{
		"GRANT SELECT ON TABLE data.language TO reader": "REVOKE SELECT ON TABLE data.language FROM reader",
		"COMMENT ON TABLE server.type IS 'x'":           "COMMENT ON TABLE server.type IS NULL",
	} {
		kind := "ACL"
		if strings.HasPrefix(sql, "COMMENT") {
			kind = "COMMENT"
		}
		if got, err := (Entry{Type: kind, Statements: []string{sql}}).Drop(); err != nil || len(got) != 1 || got[0] != want {
			t.Errorf("%s: %q, %v", sql, got, err)
		}
	}
}
