package executor_test

import (
	"context"
	"encoding/hex"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"ptah.run/ptah/operator/executor/command"
	mysqlrows "ptah.run/ptah/operator/executor/mysql/rowsql"
	mysqlscratch "ptah.run/ptah/operator/executor/mysql/scratch"
	mysqltarget "ptah.run/ptah/operator/executor/mysql/target"
	"ptah.run/ptah/operator/executor/postgresql/rowsql"
	"ptah.run/ptah/operator/executor/rows"
	"ptah.run/ptah/operator/plan/report"
)

func readMySQL(ctx context.Context, server *mysqlscratch.Server, name, sql string) ([][]string, error) {
	owner, err := mysqltarget.Open(ctx, server.Config("app", name), 0)
	if err != nil {
		return nil, err
	}
	defer owner.Close()
	_, found, err := owner.Texts(ctx, sql)
	var out [][]string
	for _, row := range found {
		var values []string
		for _, value := range row {
			if !value.Valid {
				value.String = "NULL"
			}
			values = append(values, value.String)
		}
		out = append(out, values)
	}
	return out, err
}

// kindsOfValues declares values of many types and has them read back.
func kindsOfValues(b *rowBench) {
	postgresql := `CREATE TYPE mood AS ENUM ('sad', 'ok'); CREATE DOMAIN small AS int CHECK (VALUE < 100);
CREATE TABLE v (id bigint PRIMARY KEY, n numeric, f double precision, r real, d date, ts timestamptz, iv interval, bin bytea, j json, jb jsonb, b boolean, e mood,
	arr text[], u uuid, s small, c char(5), t text);`
	mysql := "CREATE TABLE v (id bigint unsigned PRIMARY KEY, n decimal(30,10), f double, r float, d date, ts timestamp(3) NULL, iv time, bin varbinary(20), j json, jb json, b boolean, e enum('sad','ok'), " +
		"arr set('a','b'), u binary(2), s bit(7), c char(5), t text, g geometry);"
	values := []string{
		"id: " + b.pick("9223372036854775807", "18446744073709551615"), "n: 12345678901234567890.0123456789", "f: 0.1", "r: 0.1", "d: 2026-02-28", "ts: '2026-02-28 23:59:59.123'",
		"iv: '25:00:01'", "bin: !!binary AAECXCcn/w==", "j: {b: 1.10, a: [true, null, 'hush \\ \"'], \"é\": 1e2}", "jb: {b: 1.10, a: [hush]}", "b: true", "e: ok",
		b.pick(`arr: '{"a,b",NULL,"q\"\\x"}'`, "arr: 'a,b'"), b.pick("u: 00112233-4455-6677-8899-aabbccddeeff", "u: !!binary /wA="), "s: 42", "c: ab",
		`t: "it's a \\ back\\\\slash\nline\ttab \u00e9 😀 hush"`,
	}
	if b.engine == report.DialectMySQL {
		values = append(values, "g: !!binary AAAAAAEBAAAAAAAAAAAA8D8AAAAAAAAAQA==")
	}
	nulls := []string{"id: 1"}
	for _, v := range values[1:] {
		name, _, _ := strings.Cut(v, ":")
		nulls = append(nulls, name+": null")
	}
	declared := declare("v", "scope: table", "{"+strings.Join(values, ", ")+"}", "{"+strings.Join(nulls, ", ")+"}")
	b.converge(b.pick(postgresql, mysql), declared)
	checks := map[string][2]string{
		"SELECT n FROM v WHERE id > 1":                                                                       {"12345678901234567890.0123456789", "12345678901234567890.0123456789"},
		"SELECT count(*) FROM v WHERE f = 0.1 AND id > 1":                                                    {"1", "1"},
		"SELECT " + b.pick("encode(bin, 'hex')", "LOWER(HEX(bin))") + " FROM v WHERE id > 1":                 {"0001025c2727ff", "0001025c2727ff"},
		"SELECT " + b.pick("encode(convert_to(t, 'UTF8'), 'hex')", "LOWER(HEX(t))") + " FROM v WHERE id > 1": {hexOf("it's a \\ back\\\\slash\nline\ttab é 😀 hush"), hexOf("it's a \\ back\\\\slash\nline\ttab é 😀 hush")},
		b.pick("SELECT j->'a'->>2 FROM v WHERE id > 1", "SELECT j->>'$.a[2]' FROM v WHERE id > 1"):           {`hush \ "`, `hush \ "`},
		b.pick("SELECT j FROM v WHERE id > 1", "SELECT JSON_EXTRACT(j, '$.b') FROM v WHERE id > 1"):          {`{"b":1.10,"a":[true,null,"hush \\ \""],"é":1e2}`, "1.1"},
		"SELECT count(*) FROM v WHERE id = 1 AND t IS NULL AND j IS NULL AND bin IS NULL AND n IS NULL":      {"1", "1"},
	}
	for query, want := range checks {
		if got := b.read(query); got != b.pick(want[0], want[1]) {
			b.t.Errorf("%s: %q", query, got)
		}
	}
	// Each value, changed by hand, is seen.
	edits := []string{"n = n + 0.0000000001", "f = f * 2", "j = NULL", "d = '2026-03-01'", "t = 'hush'", "b = NULL", "c = 'abc'", "e = 'sad'"}
	if b.engine == report.DialectMySQL {
		edits = edits[:3] // each costs four scratch servers
	}
	for _, edit := range edits {
		b.exec("UPDATE v SET " + edit + " WHERE id > 1")
		var drift report.Drift
		b.json(command.ExitDone, &drift, "schema", "drift", "--schema="+b.path("schema"))
		if len(drift.Findings) != 1 || drift.Findings[0].Category != "data_rows_updated" || drift.Findings[0].Count != 1 {
			b.t.Errorf("%s: %+v", edit, drift.Findings)
		}
		b.converge(b.pick(postgresql, mysql), declared)
	}
}

func hexOf(text string) string { return hex.EncodeToString([]byte(text)) }

func onlyPostgreSQL(b *rowBench) {
	// Rows that refer to one another in a circle do where keys are asked at the end of the transaction.
	schema := "CREATE SCHEMA shop; CREATE TABLE shop.a (id int PRIMARY KEY, b int NOT NULL); CREATE TABLE shop.b (id int PRIMARY KEY, a int NOT NULL);" +
		"ALTER TABLE shop.a ADD CONSTRAINT ab FOREIGN KEY (b) REFERENCES shop.b DEFERRABLE INITIALLY DEFERRED; ALTER TABLE shop.b ADD CONSTRAINT ba FOREIGN KEY (a) REFERENCES shop.a;"
	rows := "version: 1\ntables:\n" + entry("shop.a", "scope: table", "{id: 1, b: 1}") + entry("shop.b", "scope: table", "{id: 1, a: 1}")
	message := b.refuse(report.CodeInvalidSchema, schema, rows, "--transaction-mode=none")
	if !strings.Contains(message, "circle") {
		b.t.Error(message)
	}
	b.converge(schema, rows)
	// A label that the plan itself adds cannot be used in the same transaction.
	enum := func(labels string) string {
		return schema + "CREATE TYPE mood AS ENUM (" + labels + "); CREATE TABLE feelings (id int PRIMARY KEY, m mood);"
	}
	more := func(rest string) string { return rows + entry("feelings", "scope: table", rest) }
	b.converge(enum("'sad'"), more("{id: 1, m: sad}"))
	document := b.converge(enum("'sad', 'glad'"), more("{id: 1, m: glad}"))
	if document.TransactionMode != report.TransactionNone {
		b.t.Errorf("%+v", document)
	}
	b.refuse(report.CodeTransactionMode, enum("'sad', 'glad', 'mad'"), more("{id: 1, m: mad}"), "--transaction-mode=all")
	// A table that others write into is locked while its rows change; a role that another sees rows for is refused.
	_, document = b.plan(enum("'sad', 'glad'"), more("{id: 1, m: sad}"))
	if document.Statements[0].LockClass != "ROW EXCLUSIVE" {
		b.t.Errorf("%+v", document.Statements[0])
	}
	b.refuse(report.CodeInvalidSchema, "CREATE TABLE m (id int PRIMARY KEY, price money);", declare("m", "scope: table", "{id: 1, price: 5}"))
	b.converge("CREATE TABLE \"we\"\"ird.t\" (\"k.1\" text PRIMARY KEY, \"select\" text);", declare(`'"we""ird.t"'`, "scope: table", `{k.1: "a'b\\", select: "x\\y"}`))
	if got := b.read(`SELECT "k.1", "select" FROM "we""ird.t"`); got != `a'b\|x\y` {
		b.t.Error(got)
	}
}

func onlyMySQL(b *rowBench) {
	// Letter case does not tell keys apart, and yet it is a difference.
	b.converge(currencyTable, currencies("{code: EUR, name: Euro}"))
	b.exec("UPDATE currencies SET code = 'eur'")
	document := b.converge(currencyTable, currencies("{code: EUR, name: Euro}"))
	if kinds(document) != "UPDATE" || b.read("SELECT code FROM currencies") != "EUR" {
		b.t.Error(kinds(document))
	}
	b.refuse(report.CodeInvalidSchema, currencyTable, currencies("{code: EUR, name: a}", "{code: eur, name: b}"))
	b.converge(currencyTable, currencies("{CODE: EUR, Name: Other}"))
	// An object that remembers its session's settings does not leave them to the rows.
	routine := currencyTable + "SET sql_mode = 'NO_BACKSLASH_ESCAPES,ANSI_QUOTES'; CREATE PROCEDURE p() SELECT 1; SET sql_mode = '';"
	b.converge(routine, currencies(`{code: EUR, name: "a\\b'c\"d"}`))
	if got := b.read("SELECT name FROM currencies"); got != `a\b'c"d` {
		b.t.Error(got)
	}
	// A 0 becomes a number of the server.
	b.refuse(report.CodeUnsupported, routine+"CREATE TABLE counted (id int AUTO_INCREMENT PRIMARY KEY);", declare("counted", "scope: table", "{id: 0}"))
	b.refuse(report.CodeInvalidSchema, "CREATE TABLE prefixed (t varchar(100) NOT NULL, UNIQUE KEY (t(5)));", declare("prefixed", "scope: table\nkey: [t]", "{t: hush}"))
	b.converge("CREATE TABLE floats (f float PRIMARY KEY, x int); CREATE TABLE bits (b bit(64) PRIMARY KEY);", "version: 1\ntables:\n"+
		entry("floats", "scope: table", "{f: 0.1, x: 1}")+entry("bits", "scope: table", "{b: 18446744073709551615}"))
	b.converge("CREATE TABLE floats (f float PRIMARY KEY, x int); CREATE TABLE bits (b bit(64) PRIMARY KEY);", "version: 1\ntables:\n"+
		entry("floats", "scope: table", "{f: 0.1, x: 2}")+entry("bits", "scope: table"))
}

// texts returns texts of characters that mean something to somebody, all different ways to fail.
func texts(seed uint64, n int) []string {
	random := rand.New(rand.NewPCG(seed, 1))
	alphabet := []rune("'\"\\`\n\r\t\b\x1a\x01;-#$%_ aN0é😀\u202e\ufeff\u2028")
	out := []string{"", `\`, `\\`, `'`, `\'`, `''`, "E'", "$$", "--", "/*", "\x1a", "x\\", "\u0000"[:0] + "é"}
	for range n {
		var b strings.Builder
		for range random.IntN(12) {
			b.WriteRune(alphabet[random.IntN(len(alphabet))])
		}
		out = append(out, b.String())
	}
	return out
}

// literalSeed may be changed to try others.
const literalSeed = 20261130

func TestProgramReadsEveryLiteralBack(t *testing.T) {
	server := targetServer(t)
	conn, err := server.Owner(t.Context(), "postgres")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close(context.Background()) }()
	session := rowsql.Session{Conn: conn.PgConn()}
	for _, setting := range []string{"on", "off"} {
		if _, err := session.Exec(t.Context(), "SET standard_conforming_strings = "+setting); err != nil {
			t.Fatal(err)
		}
		for _, text := range texts(literalSeed, 2000) {
			readBack(t, session, setting, "SELECT "+rowsql.Text(text)+"::text", text)
			binary := hexOf(text)
			readBack(t, session, setting, "SELECT encode("+rowsql.Dialect{}.Literal(rows.Column{Class: rows.BinaryData}, &binary)+"::bytea, 'hex')", binary)
		}
	}
}

func TestMySQLProgramReadsEveryLiteralBack(t *testing.T) {
	server := mysqlServer(t)
	owner, err := mysqltarget.Open(t.Context(), server.Config("app", ""), 0)
	if err != nil {
		t.Fatal(err)
	}
	defer owner.Close()
	session := mysqlrows.Session{Session: owner}
	for _, mode := range []string{"", "NO_BACKSLASH_ESCAPES", "ANSI_QUOTES,NO_BACKSLASH_ESCAPES", mysqltarget.SQLMode} {
		if _, err := session.Exec(t.Context(), "SET SESSION sql_mode = '"+mode+"'"); err != nil {
			t.Fatal(err)
		}
		for _, text := range append(texts(literalSeed, 2000), "a\x00b") {
			readBack(t, session, mode, "SELECT "+mysqlrows.Text(text), text)
			binary := hexOf(text)
			readBack(t, session, mode, "SELECT LOWER(HEX("+mysqlrows.Dialect{}.Literal(rows.Column{Class: rows.BinaryData}, &binary)+"))", binary)
		}
	}
}

func readBack(t *testing.T, session rows.Session, setting, query, want string) {
	t.Helper()
	found, err := session.Query(t.Context(), query)
	if err != nil || len(found) != 1 || found[0][0] == nil || *found[0][0] != want {
		got := fmt.Sprint(err)
		if len(found) == 1 && found[0][0] != nil {
			got = fmt.Sprintf("%q", *found[0][0])
		}
		t.Fatalf("with %q, %s is %s and not %q (seed %d)", setting, query, got, want, literalSeed)
	}
}
