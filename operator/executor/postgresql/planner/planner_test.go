package planner

import (
	"slices"
	"strings"
	"testing"

	"ptah.run/ptah/operator/executor/postgresql/dump"
)

func TestOnlyStatementsAboutExtensionsRunAsTheAdministrator(t *testing.T) {
	for statement, want := range map[string]string{
		"CREATE EXTENSION pgcrypto":                                           `CREATE EXTENSION "pgcrypto"`,
		"create extension if not exists PgCrypto with schema Public":          `CREATE EXTENSION IF NOT EXISTS "pgcrypto" SCHEMA "public"`,
		`CREATE EXTENSION "uuid-ossp" SCHEMA "My App" CASCADE`:                `CREATE EXTENSION "uuid-ossp" SCHEMA "My App" CASCADE`,
		`CREATE EXTENSION "a""b"`:                                             `CREATE EXTENSION "a""b"`,
		"/* x */ CREATE EXTENSION -- y\n pgcrypto":                            `CREATE EXTENSION "pgcrypto"`,
		"DROP EXTENSION pgcrypto":                                             `DROP EXTENSION "pgcrypto"`,
		"COMMENT ON EXTENSION pgcrypto IS 'it''s'":                            `COMMENT ON EXTENSION "pgcrypto" IS 'it''s'`,
		"CREATE EXTENSION pgcrypto VERSION '1.0'":                             "",
		"CREATE EXTENSION pgcrypto; DROP ROLE admin":                          "",
		"CREATE EXTENSION pgcrypto SCHEMA":                                    "",
		"CREATE EXTENSION 'pgcrypto'":                                         "",
		`CREATE EXTENSION U&"pgcrypto"`:                                       "",
		"DROP EXTENSION pgcrypto CASCADE":                                     "",
		"DROP EXTENSION pgcrypto, citext":                                     "",
		"ALTER EXTENSION pgcrypto ADD TABLE t":                                "",
		"COMMENT ON EXTENSION pgcrypto IS E'\\''; DROP ROLE admin; SELECT ''": "",
		"COMMENT ON TABLE t IS 'x'":                                           "",
		"COPY t TO PROGRAM 'id'":                                              "",
		"":                                                                    "",
	} {
		got, ok := extensionStatement(statement)
		if ok != (want != "") || ok && got != want {
			t.Errorf("%s\n becomes %q, %t", statement, got, ok)
		}
	}
}

func FuzzExtensionStatement(f *testing.F) {
	for _, seed := range []string{"CREATE EXTENSION IF NOT EXISTS a WITH SCHEMA b CASCADE", "DROP EXTENSION a", "COMMENT ON EXTENSION a IS 'b'"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		sql, ok := extensionStatement(text)
		if !ok {
			return
		}
		again, ok := extensionStatement(sql)
		if !ok || again != sql || len(dump.Split(sql)) != 1 {
			t.Fatalf("%q becomes %q, which is no single statement about an extension", text, sql)
		}
	})
}

func table(columns string, more ...string) dump.Entry {
	return dump.Entry{Type: "TABLE", Schema: "public", Name: "t", Statements: append([]string{"CREATE TABLE public.t (\n" + columns + "\n)"}, more...)}
}

func TestAlterTable(t *testing.T) {
	tail := func(e dump.Entry, text string) dump.Entry { e.Statements[0] += text; return e }
	for name, test := range map[string]struct {
		from, to dump.Entry
		want     []string
	}{
		"nothing": {table("a integer"), table("a integer"), nil},
		"a column more": {table("a integer"), table("a integer, b text DEFAULT 'x, y'::text NOT NULL"),
			[]string{"ALTER TABLE public.t ADD COLUMN b text DEFAULT 'x, y'::text NOT NULL"}},
		"a column less":     {table("a integer, b text"), table("a integer"), []string{"ALTER TABLE public.t DROP COLUMN b"}},
		"columns that move": {table("a integer, b text"), table("b text, a integer"), nil},
		"another type under a default": {table("a integer DEFAULT 1"), table("a text DEFAULT 'x'::text"),
			[]string{"ALTER TABLE public.t ALTER COLUMN a DROP DEFAULT", "ALTER TABLE public.t ALTER COLUMN a TYPE text USING a::text",
				"ALTER TABLE public.t ALTER COLUMN a SET DEFAULT 'x'::text"}},
		"another collation": {table(`a text`), table(`a text COLLATE pg_catalog."C"`),
			[]string{`ALTER TABLE public.t ALTER COLUMN a TYPE text COLLATE pg_catalog."C" USING a::text`}},
		"NOT NULL set":     {table("a integer"), table("a integer NOT NULL"), []string{"ALTER TABLE public.t ALTER COLUMN a SET NOT NULL"}},
		"NOT NULL dropped": {table("a integer NOT NULL"), table("a integer"), []string{"ALTER TABLE public.t ALTER COLUMN a DROP NOT NULL"}},
		"another expression": {table("a integer GENERATED ALWAYS AS ((1)) STORED"), table("a integer GENERATED ALWAYS AS ((2)) STORED"),
			[]string{"ALTER TABLE public.t ALTER COLUMN a SET EXPRESSION AS ((2))"}},
		"an expression dropped": {table("a integer GENERATED ALWAYS AS ((1)) STORED"), table("a integer"), []string{"ALTER TABLE public.t ALTER COLUMN a DROP EXPRESSION"}},
		"a plain column computed": {table("a integer"), table("a integer GENERATED ALWAYS AS ((1)) STORED"),
			[]string{"ALTER TABLE public.t DROP COLUMN a", "ALTER TABLE public.t ADD COLUMN a integer GENERATED ALWAYS AS ((1)) STORED"}},
		"another check": {table("a integer, CONSTRAINT c CHECK ((a > 0))"), table("a integer, CONSTRAINT c CHECK ((a > 1))"),
			[]string{"ALTER TABLE public.t DROP CONSTRAINT c", "ALTER TABLE public.t ADD CONSTRAINT c CHECK ((a > 1))"}},
		"storage parameters": {tail(table("a integer"), "\nWITH (fillfactor='70', autovacuum_enabled='false')"), tail(table("a integer"), "\nWITH (fillfactor='80')"),
			[]string{"ALTER TABLE public.t RESET (autovacuum_enabled)", "ALTER TABLE public.t SET (fillfactor='80')"}},
		"a parent more": {table("a integer"), tail(table("a integer"), "\nINHERITS (public.p)"), []string{"ALTER TABLE public.t INHERIT public.p"}},
		"settings of columns": {table("a text", "ALTER TABLE ONLY public.t ALTER COLUMN a SET STORAGE EXTERNAL", "ALTER TABLE ONLY public.t REPLICA IDENTITY FULL"),
			table("a text", "ALTER TABLE ONLY public.t FORCE ROW LEVEL SECURITY"),
			[]string{"ALTER TABLE ONLY public.t ALTER COLUMN a SET STORAGE DEFAULT", "ALTER TABLE ONLY public.t REPLICA IDENTITY DEFAULT",
				"ALTER TABLE ONLY public.t FORCE ROW LEVEL SECURITY"}},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := alterTable(test.from, test.to)
			if err != nil || !slices.Equal(got, test.want) {
				t.Errorf("%v\n%s", err, strings.Join(got, "\n"))
			}
		})
	}
	partitioned := tail(table("a integer"), "\nPARTITION BY RANGE (a)")
	if _, err := alterTable(table("a integer"), partitioned); err == nil {
		t.Error("a table became partitioned")
	}
	if _, err := alterTable(table("a text", "ALTER TABLE public.t SOMETHING NEW"), table("a text")); err == nil {
		t.Error("an unknown setting was undone")
	}
}

func entry(kind, sql string) dump.Entry { return dump.Entry{Type: kind, Statements: []string{sql}} }

func TestAlterTypes(t *testing.T) {
	enum := func(labels string) dump.Entry { return entry("TYPE", "CREATE TYPE public.e AS ENUM (\n"+labels+"\n)") }
	composite := func(attributes string) dump.Entry {
		return entry("TYPE", "CREATE TYPE public.c AS (\n"+attributes+"\n)")
	}
	domain := func(rest string) dump.Entry { return entry("DOMAIN", "CREATE DOMAIN public.d AS "+rest) }
	a := &attempt{have: []dump.Entry{table("st public.e DEFAULT 'x'::public.e, many public.e[], other text")}}
	for name, test := range map[string]struct {
		from, to dump.Entry
		change   func(from, to dump.Entry) ([]string, error)
		want     []string
	}{
		"labels added": {enum("'b', 'd'"), enum("'a', 'b', 'c', 'd', 'e'"), a.changeType, []string{
			"ALTER TYPE public.e ADD VALUE 'a' BEFORE 'b'", "ALTER TYPE public.e ADD VALUE 'c' AFTER 'b'", "ALTER TYPE public.e ADD VALUE 'e' AFTER 'd'"}},
		"attributes": {composite("a integer, b text"), composite("b integer, c text"), a.changeType, []string{
			"ALTER TYPE public.c DROP ATTRIBUTE a", "ALTER TYPE public.c ALTER ATTRIBUTE b TYPE integer", "ALTER TYPE public.c ADD ATTRIBUTE c text"}},
		"a domain": {domain("text NOT NULL DEFAULT 'a'::text\n\tCONSTRAINT k CHECK ((VALUE <> 'a'::text))"), domain("text DEFAULT 'b'::text\n\tCONSTRAINT k CHECK ((VALUE <> 'c'::text))"), alterDomain, []string{
			"ALTER DOMAIN public.d DROP CONSTRAINT k", "ALTER DOMAIN public.d SET DEFAULT 'b'::text", "ALTER DOMAIN public.d DROP NOT NULL",
			"ALTER DOMAIN public.d ADD CONSTRAINT k CHECK ((VALUE <> 'c'::text))"}},
		"a sequence": {entry("SEQUENCE", ""), entry("SEQUENCE", "CREATE SEQUENCE public.s\n    START WITH 2\n    CACHE 1"),
			func(_, to dump.Entry) ([]string, error) { return alterSequence(to) },
			[]string{"ALTER SEQUENCE public.s\n    START WITH 2\n    CACHE 1 AS bigint NO CYCLE"}},
		"an identity column": {entry("SEQUENCE", ""), entry("SEQUENCE", "ALTER TABLE public.t ALTER COLUMN id ADD GENERATED BY DEFAULT AS IDENTITY (\n    SEQUENCE NAME public.s\n    START WITH 2\n    NO MINVALUE\n    CACHE 1\n)"),
			func(_, to dump.Entry) ([]string, error) { return alterSequence(to) },
			[]string{"ALTER TABLE public.t ALTER COLUMN id SET GENERATED BY DEFAULT SET START WITH 2 SET NO MINVALUE SET CACHE 1 SET NO CYCLE"}},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := test.change(test.from, test.to)
			if err != nil || !slices.Equal(got, test.want) {
				t.Errorf("%v\n%s", err, strings.Join(got, "\n"))
			}
		})
	}
	for name, pair := range map[string][2]dump.Entry{
		"the order of attributes": {composite("a integer, b text"), composite("b text, a integer")},
		"an enum made composite":  {enum("'a'"), composite("a integer")},
		"a label removed":         {enum("'x', 'y'"), enum("'x'")},
		"labels moved":            {enum("'x', 'y'"), enum("'y', 'x'")},
	} {
		if _, err := a.changeType(pair[0], pair[1]); err == nil {
			t.Errorf("%s was changed", name)
		}
	}
	if _, err := alterDomain(domain("text"), domain("integer")); err == nil {
		t.Error("the base type of a domain was changed")
	}
}

func TestASequenceKeepsItsPositionWhenItBecomesAnIdentityColumn(t *testing.T) {
	plain := entry("SEQUENCE", "CREATE SEQUENCE public.s\n    START WITH 1")
	identity := entry("SEQUENCE", "ALTER TABLE public.t ALTER COLUMN id ADD GENERATED ALWAYS AS IDENTITY (SEQUENCE NAME public.s)")
	a := &attempt{have: []dump.Entry{entry("DEFAULT", "ALTER TABLE ONLY public.t ALTER COLUMN id SET DEFAULT nextval('public.s'::regclass)")}}
	got, err := a.changeSequence(plain, identity)
	want := []string{"ALTER TABLE public.t ALTER COLUMN id DROP DEFAULT", `ALTER SEQUENCE public.s RENAME TO "s__ptah_old"`, identity.Statements[0],
		`SELECT pg_catalog.setval('public.s', last_value, is_called) FROM public."s__ptah_old"`, `DROP SEQUENCE public."s__ptah_old"`}
	if err != nil || !slices.Equal(got, want) {
		t.Errorf("%v\n%s", err, strings.Join(got, "\n"))
	}
	a = &attempt{}
	got, err = a.changeSequence(identity, plain)
	want = []string{"CREATE SEQUENCE public.\"s__ptah_old\"\n    START WITH 1", `SELECT pg_catalog.setval('public."s__ptah_old"', last_value, is_called) FROM public.s`,
		"ALTER TABLE public.t ALTER COLUMN id DROP IDENTITY", `ALTER SEQUENCE public."s__ptah_old" RENAME TO s`}
	if err != nil || !slices.Equal(got, want) {
		t.Errorf("%v\n%s", err, strings.Join(got, "\n"))
	}
}
