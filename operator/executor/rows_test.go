package executor_test

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"

	"ptah.run/ptah/operator/executor/command"
	mysqlscratch "ptah.run/ptah/operator/executor/mysql/scratch"
	"ptah.run/ptah/operator/executor/postgresql/scratch"
	"ptah.run/ptah/operator/plan/report"
)

// secret stands in every declared text of these tests: no report, message or error output may hold it.
const secret = "hush"

// rowBench is a person with a database of either engine.
type rowBench struct {
	*person
	engine string
	// exec runs SQL as somebody else; read returns the rows of a query, values joined by | and rows by a space.
	exec func(sql string)
	read func(sql string) string
}

// pick returns the text for the engine.
func (b *rowBench) pick(postgresql, mysql string) string {
	if b.engine == report.DialectMySQL {
		return mysql
	}
	return postgresql
}

// schema writes the files of a schema and returns its folder.
func (b *rowBench) schema(sql, rows string) string {
	b.t.Helper()
	b.write("schema/001.sql", sql)
	path := b.path("schema/data.rows.yaml")
	_ = os.Remove(path)
	if rows != "" {
		b.write("schema/data.rows.yaml", rows)
	}
	return b.path("schema")
}

func (b *rowBench) plan(sql, rows string, flags ...string) (report.SchemaPlan, *report.Plan) {
	b.t.Helper()
	file := b.path("plan.json")
	var out report.SchemaPlan
	b.json(command.ExitDone, &out, append([]string{"schema", "plan", "--schema=" + b.schema(sql, rows), "--output=" + file}, flags...)...)
	b.quiet(out)
	if out.Outcome != report.OutcomeChanges {
		return out, nil
	}
	data, err := os.ReadFile(file)
	if err != nil {
		b.t.Fatal(err)
	}
	document, err := report.DecodePlan(data)
	if err != nil {
		b.t.Fatal(err)
	}
	return out, document
}

// quiet fails where a report holds a value.
func (b *rowBench) quiet(out any) {
	b.t.Helper()
	data, err := json.Marshal(out)
	if err != nil || strings.Contains(string(data), secret) {
		b.t.Errorf("the report holds a value: %s %v", data, err)
	}
}

// converge plans, applies and proves, and returns the plan.
func (b *rowBench) converge(sql, rows string, flags ...string) *report.Plan {
	b.t.Helper()
	out, document := b.plan(sql, rows, flags...)
	if document == nil {
		b.t.Fatalf("nothing is planned: %+v", out)
	}
	var applied report.SchemaApply
	b.json(command.ExitDone, &applied, "schema", "apply", "--plan="+b.path("plan.json"), "--auto-approve")
	b.quiet(applied)
	if applied.Executed != len(document.Statements) {
		b.t.Fatalf("%+v", applied)
	}
	var proven report.SchemaPlan
	b.json(command.ExitDone, &proven, append([]string{"schema", "plan", "--schema=" + b.path("schema")}, flags...)...)
	if proven.Outcome != report.OutcomeNoChanges || proven.FromFingerprint != document.ToFingerprint {
		b.t.Fatalf("not converged: %+v after %+v", proven, out)
	}
	return document
}

// refuse plans what must be refused and returns the message.
func (b *rowBench) refuse(code report.Code, sql, rows string, flags ...string) string {
	b.t.Helper()
	args := append([]string{"schema", "plan", "--schema=" + b.schema(sql, rows)}, flags...)
	var out report.SchemaPlan
	b.json(command.ExitRefused, &out, args...)
	b.quiet(out)
	if out.Problem == nil || out.Problem.Code != code || out.PlanDigest != "" {
		b.t.Errorf("not refused as %s: %+v", code, out.Problem)
		return ""
	}
	return out.Problem.Message
}

// refuseAloud does the same for a person, who is told more.
func (b *rowBench) refuseAloud(sql, rows string) {
	b.t.Helper()
	_, said := b.text(command.ExitRefused, "schema", "plan", "--schema="+b.schema(sql, rows))
	if strings.Contains(said, secret) {
		b.t.Errorf("a person is told a value: %s", said)
	}
}

func kinds(document *report.Plan) string {
	var out []string
	for _, s := range document.Statements {
		out = append(out, s.Kind)
	}
	return strings.Join(out, ", ")
}

// currencies is a declaration of a whole table.
func currencies(rows ...string) string { return declare("currencies", "scope: table", rows...) }

func declare(table, fields string, rows ...string) string {
	out := "version: 1\ntables:\n" + entry(table, fields, rows...)
	return out
}

func entry(table, fields string, rows ...string) string {
	out := "- table: " + table + "\n  " + strings.ReplaceAll(fields, "\n", "\n  ") + "\n  rows:"
	if len(rows) == 0 {
		return out + " []\n"
	}
	return out + "\n  - " + strings.Join(rows, "\n  - ") + "\n"
}

const currencyTable = "CREATE TABLE currencies (code varchar(3) PRIMARY KEY, name varchar(40) NOT NULL, digits int, note varchar(40) DEFAULT 'none');"

var threeCurrencies = []string{"{code: EUR, name: Euro, digits: 2}", "{code: JPY, name: 'Yen hush', digits: 0}", "{code: XAU, name: Gold, digits: null}"}

// rowTests are those of both engines; each has a database of its own.
var rowTests = map[string]func(*rowBench){
	"should write the first rows into an empty database":              firstRows,
	"should change, remove and leave rows as declared":                changedRows,
	"should see an edit by hand as drift and undo it":                 rowDrift,
	"should refuse a plan whose rows were edited since":               staleRows,
	"should leave withdrawn rows alone and remove emptied ones":       withdrawnRows,
	"should refuse any change of rows of a protected table":           protectedRows,
	"should manage listed keys only and leave other rows alone":       listedKeys,
	"should order rows by what they refer to":                         orderedRows,
	"should keep what it does not manage":                             unmanagedColumns,
	"should say which row is wrong and never what it holds":           wrongRows,
	"should refuse a declaration that a trigger changes":              triggeredRows,
	"should fail in the database without telling a value":             failingRows,
	"should carry rows through a change of the schema":                rowsAndSchema,
	"should hold every kind of value as the server does":              kindsOfValues,
	"should take the rows into the proof of an unchanged database":    provenRows,
	"should see which other tables a change of a row carries along":   carriedRows,
	"should refuse rows of an excluded table and keep others planned": excludedRows,
}

func TestProgramWithRows(t *testing.T) {
	server := targetServer(t)
	for i, name := range slices.Sorted(maps.Keys(rowTests)) {
		t.Run(name, func(t *testing.T) { rowTests[name](postgresqlRows(t, server, fmt.Sprintf("rows%d", i))) })
	}
	t.Run("should do what PostgreSQL alone can", func(t *testing.T) { onlyPostgreSQL(postgresqlRows(t, server, "rowsown")) })
}

func TestMySQLProgramWithRows(t *testing.T) {
	server := mysqlServer(t)
	for i, name := range slices.Sorted(maps.Keys(rowTests)) {
		t.Run(name, func(t *testing.T) { rowTests[name](mysqlRows(t, server, fmt.Sprintf("rows%d", i))) })
	}
	t.Run("should do what MySQL alone can", func(t *testing.T) { onlyMySQL(mysqlRows(t, server, "rowsown")) })
}

func postgresqlRows(t *testing.T, server *scratch.Server, database string) *rowBench {
	t.Helper()
	if err := server.Create(t.Context(), database); err != nil {
		t.Fatal(err)
	}
	conn, err := server.Owner(t.Context(), database)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close(context.Background()) })
	run := func(sql string) [][]string {
		t.Helper()
		results, err := conn.PgConn().Exec(t.Context(), sql).ReadAll()
		if err != nil {
			t.Fatalf("%s: %v", sql, err)
		}
		var out [][]string
		for _, row := range results[len(results)-1].Rows {
			var values []string
			for _, value := range row {
				if value == nil {
					value = []byte("NULL")
				}
				values = append(values, string(value))
			}
			out = append(out, values)
		}
		return out
	}
	b := &rowBench{person: newPerson(t, server, database), engine: report.DialectPostgreSQL}
	b.exec = func(sql string) { t.Helper(); run(sql) }
	b.read = func(sql string) string { t.Helper(); return joined(run(sql)) }
	return b
}

func joined(rows [][]string) string {
	var out []string
	for _, row := range rows {
		out = append(out, strings.Join(row, "|"))
	}
	return strings.Join(out, " ")
}

func mysqlRows(t *testing.T, server *mysqlscratch.Server, database string) *rowBench {
	t.Helper()
	b := &rowBench{person: newMySQLPerson(t, server, database), engine: report.DialectMySQL}
	b.exec = func(sql string) {
		t.Helper()
		if err := loadMySQL(t.Context(), server, database, sql); err != nil {
			t.Fatalf("%s: %v", sql, err)
		}
	}
	b.read = func(sql string) string {
		t.Helper()
		out, err := readMySQL(t.Context(), server, database, sql)
		if err != nil {
			t.Fatalf("%s: %v", sql, err)
		}
		return joined(out)
	}
	return b
}

func firstRows(b *rowBench) {
	document := b.converge(currencyTable, currencies(threeCurrencies...))
	if got := kinds(document); !strings.HasSuffix(got, "INSERT, INSERT, INSERT") || !strings.HasPrefix(got, "CREATE TABLE") || document.Destructive {
		b.t.Errorf("%s, destructive %t", got, document.Destructive)
	}
	managed := []report.ManagedRows{{Schema: b.pick("public", document.ManagedRows[0].Schema), Table: "currencies", Scope: "table", Key: []string{"code"}, Columns: []string{"code", "name", "digits"}}}
	if got, _ := json.Marshal(document.ManagedRows); string(got) != mustJSON(managed) || !report.IsDigest(document.RowsFingerprint) {
		b.t.Errorf("the plan manages %s, %s", got, document.RowsFingerprint)
	}
	if got := b.read("SELECT code, name, digits, note FROM currencies ORDER BY code"); got != "EUR|Euro|2|none JPY|Yen hush|0|none XAU|Gold|NULL|none" {
		b.t.Error(got)
	}
	out, _ := b.plan(currencyTable, currencies(threeCurrencies...))
	if mustJSON(out.ManagedRows) != mustJSON(managed) || out.RowsFingerprint == document.RowsFingerprint {
		b.t.Errorf("the report manages %+v", out.ManagedRows)
	}
}

func mustJSON(v any) string {
	data, err := json.Marshal(v)
	if err != nil {
		panic(err) // plain data always encodes
	}
	return string(data)
}

func changedRows(b *rowBench) {
	b.converge(currencyTable, currencies(threeCurrencies...))
	out, document := b.plan(currencyTable, currencies("{code: EUR, name: Euro, digits: 2}", "{code: JPY, name: 'Yen hush', digits: 3}", "{code: USD, name: Dollar, digits: 2}"))
	if got := kinds(document); got != "INSERT, UPDATE, DELETE" || !document.Destructive || !out.Destructive {
		b.t.Errorf("%s: %+v", got, out)
	}
	if s := document.Statements[0]; s.Severity != report.SeveritySafe || s.RewriteRisk != report.RewriteNone {
		b.t.Errorf("%+v", s)
	}
	for _, s := range document.Statements[1:] {
		if s.Severity != report.SeverityDestructive || s.Reason == "" || s.RewriteRisk != report.RewriteNone {
			b.t.Errorf("%+v", s)
		}
	}
	if sql := document.Statements[1].SQL; strings.Contains(sql, "name") || !strings.Contains(sql, "digits") {
		b.t.Errorf("an equal column is written: %s", sql)
	}
	counts := map[string]int{}
	for _, f := range out.Findings {
		counts[f.Category] = f.Count
	}
	if len(counts) != 3 || counts["data_rows_inserted"] != 1 || counts["data_rows_updated"] != 1 || counts["data_rows_deleted"] != 1 {
		b.t.Errorf("%+v", out.Findings)
	}
	b.converge(currencyTable, currencies("{code: EUR, name: Euro, digits: 2}", "{code: JPY, name: 'Yen hush', digits: 3}", "{code: USD, name: Dollar, digits: 2}"))
	if got := b.read("SELECT code, digits FROM currencies ORDER BY code"); got != "EUR|2 JPY|3 USD|2" {
		b.t.Error(got)
	}
}

func rowDrift(b *rowBench) {
	b.converge(currencyTable, currencies(threeCurrencies...))
	b.exec("UPDATE currencies SET name = 'hush' WHERE code = 'EUR'; DELETE FROM currencies WHERE code = 'JPY'; INSERT INTO currencies (code, name) VALUES ('BTC', 'hush')")
	var drift report.Drift
	b.json(command.ExitDone, &drift, "schema", "drift", "--schema="+b.path("schema"))
	b.quiet(drift)
	want := []report.Finding{{Category: "data_rows_deleted", Count: 1, Severity: report.SeverityDestructive},
		{Category: "data_rows_updated", Count: 1, Severity: report.SeverityDestructive}, {Category: "data_rows_inserted", Count: 1, Severity: report.SeveritySafe}}
	if !slices.Equal(drift.Findings, want) || drift.HighestSeverity != report.SeverityDestructive {
		b.t.Errorf("%+v", drift)
	}
	text, _ := b.text(command.ExitDone, "schema", "drift", "--schema="+b.path("schema"))
	if strings.Contains(text, secret) || strings.Contains(text, "currencies") {
		b.t.Errorf("drift says too much: %s", text)
	}
	b.converge(currencyTable, currencies(threeCurrencies...))
	if got := b.read("SELECT code, name FROM currencies ORDER BY code"); got != "EUR|Euro JPY|Yen hush XAU|Gold" {
		b.t.Error(got)
	}
}

func staleRows(b *rowBench) {
	b.converge(currencyTable, currencies(threeCurrencies...))
	if _, document := b.plan(currencyTable, currencies("{code: EUR, name: Euro, digits: 2}")); document == nil {
		b.t.Fatal("nothing was planned")
	}
	for edit, stale := range map[string]bool{
		"UPDATE currencies SET digits = digits WHERE code = 'EUR'":     false,
		"UPDATE currencies SET note = 'another' WHERE code = 'EUR'":    false, // not managed
		"UPDATE currencies SET name = 'edited' WHERE code = 'EUR'":     true,
		"INSERT INTO currencies (code, name) VALUES ('BTC', 'edited')": true,
		"DELETE FROM currencies WHERE code = 'XAU'":                    true,
		"UPDATE currencies SET digits = 7 WHERE code = 'JPY'":          true,
		"UPDATE currencies SET digits = NULL WHERE code = 'JPY'":       true,
		"UPDATE currencies SET code = 'Eur' WHERE code = 'EUR'":        true,
	} {
		b.exec("DELETE FROM currencies; INSERT INTO currencies (code, name, digits) VALUES ('XAU', 'Gold', NULL), ('EUR', 'Euro', 2), ('JPY', 'Yen hush', 0)")
		b.exec(edit)
		before := b.read("SELECT * FROM currencies ORDER BY code")
		want, args := command.ExitDone, []string{"schema", "apply", "--plan=" + b.path("plan.json"), "--dry-run"}
		if stale {
			want, args[3] = command.ExitRefused, "--auto-approve"
		}
		var out report.SchemaApply
		b.json(want, &out, args...)
		b.quiet(out)
		if stale && (out.Problem.Code != report.CodeStalePlan || out.MutationStarted || b.read("SELECT * FROM currencies ORDER BY code") != before) {
			b.t.Errorf("%s: %+v", edit, out)
		}
	}
	b.exec("DELETE FROM currencies WHERE code = 'XAU'") // whichever edit came last
	b.converge(currencyTable, currencies(threeCurrencies...))
}

func withdrawnRows(b *rowBench) {
	b.converge(currencyTable, currencies(threeCurrencies...))
	if out, document := b.plan(currencyTable, ""); document != nil || len(out.ManagedRows) > 0 || out.RowsFingerprint != "" {
		b.t.Errorf("a withdrawn declaration is still looked at: %+v", out)
	}
	b.exec("UPDATE currencies SET name = 'mine' WHERE code = 'EUR'")
	if _, document := b.plan(currencyTable, ""); document != nil {
		b.t.Error("rows of nobody are planned for")
	}
	document := b.converge(currencyTable, currencies())
	if got := kinds(document); got != "DELETE, DELETE, DELETE" || b.read("SELECT count(*) FROM currencies") != "0" {
		b.t.Errorf("an emptied declaration leaves rows: %s", got)
	}
	b.exec("INSERT INTO currencies (code, name) VALUES ('BTC', 'x')")
	if out, _ := b.plan(currencyTable, currencies()); len(out.Findings) != 1 || out.Findings[0].Category != "data_rows_deleted" {
		b.t.Errorf("%+v", out.Findings)
	}
}

func protectedRows(b *rowBench) {
	b.converge(currencyTable, currencies(threeCurrencies...))
	protect := "--protected-table=Currencies"
	if _, document := b.plan(currencyTable, currencies(threeCurrencies...), protect); document != nil {
		b.t.Error("equal rows are planned for")
	}
	b.refuse(report.CodeProtectedTable, currencyTable, currencies("{code: EUR, name: Euro hush, digits: 2}"), protect)
	b.refuse(report.CodeProtectedTable, currencyTable, currencies(append(threeCurrencies, "{code: USD, name: Dollar, digits: 2}")...), protect)
	b.refuse(report.CodeProtectedTable, currencyTable, currencies(), protect)
	b.plan(currencyTable, currencies(), "--protected-table=other")
	var out report.SchemaApply
	b.json(command.ExitRefused, &out, "schema", "apply", "--plan="+b.path("plan.json"), "--auto-approve", protect)
	if out.Problem.Code != report.CodeProtectedTable || out.MutationStarted {
		b.t.Errorf("%+v", out)
	}
}

func listedKeys(b *rowBench) {
	b.exec(currencyTable + "INSERT INTO currencies (code, name, digits) VALUES ('EUR', 'mine', 1), ('BTC', 'mine', 8), ('OLD', 'mine', 0)")
	declared := declare("currencies", "scope: keys\nabsent: [{code: OLD}, {code: ABC}]", "{code: EUR, name: Euro hush}", "{code: USD, name: Dollar}")
	document := b.converge(currencyTable, declared)
	if got := kinds(document); got != "INSERT, UPDATE, DELETE" {
		b.t.Error(got)
	}
	if got := b.read("SELECT code, name, digits FROM currencies ORDER BY code"); got != "BTC|mine|8 EUR|Euro hush|1 USD|Dollar|NULL" {
		b.t.Error(got)
	}
	b.exec("UPDATE currencies SET name = 'yours' WHERE code = 'BTC'")
	if out, document := b.plan(currencyTable, declared); document != nil {
		b.t.Errorf("a row that is not managed is looked at: %+v", out)
	}
	// What is not managed may change between plan and Apply; what is managed may not, a key that must be absent included.
	b.exec("UPDATE currencies SET name = 'yours' WHERE code = 'EUR'")
	b.plan(currencyTable, declared)
	b.exec("UPDATE currencies SET name = 'theirs' WHERE code = 'BTC'")
	var out report.SchemaApply
	b.json(command.ExitDone, &out, "schema", "apply", "--plan="+b.path("plan.json"), "--dry-run")
	b.exec("INSERT INTO currencies (code, name) VALUES ('ABC', 'x')")
	b.json(command.ExitRefused, &out, "schema", "apply", "--plan="+b.path("plan.json"), "--dry-run")
	if out.Problem.Code != report.CodeStalePlan {
		b.t.Errorf("%+v", out)
	}
}

func orderedRows(b *rowBench) {
	schema := `CREATE TABLE zones (id int PRIMARY KEY, parent int, FOREIGN KEY (parent) REFERENCES zones (id));
CREATE TABLE addresses (id int PRIMARY KEY, zone int NOT NULL, label varchar(20) NOT NULL UNIQUE, FOREIGN KEY (zone) REFERENCES zones (id));`
	rows := func(zones, addresses []string) string {
		return "version: 1\ntables:\n" + entry("addresses", "scope: table", addresses...) + entry("zones", "scope: table", zones...)
	}
	document := b.converge(schema, rows([]string{"{id: 1, parent: 2}", "{id: 2, parent: 3}", "{id: 3, parent: null}"}, []string{"{id: 1, zone: 1, label: a}", "{id: 2, zone: 2, label: b}"}))
	var order []string
	for _, s := range document.Statements {
		if s.Kind == "INSERT" {
			_, values, _ := strings.Cut(s.SQL, "VALUES ")
			order = append(order, "VALUES "+values)
		}
	}
	if len(order) != 5 || order[0] != "VALUES (3, NULL)" || slices.Index(order, "VALUES (2, 3)") > slices.Index(order, "VALUES (1, 2)") {
		b.t.Errorf("%q", order)
	}
	// A zone goes once nobody is in it; a label moves from a row that goes to one that comes.
	b.converge(schema, rows([]string{"{id: 2, parent: null}", "{id: 10, parent: 2}"}, []string{"{id: 1, zone: 10, label: c}", "{id: 5, zone: 2, label: b}"}))
	if got := b.read("SELECT id, zone, label FROM addresses ORDER BY id"); got != "1|10|c 5|2|b" {
		b.t.Error(got)
	}
	message := b.refuse(report.CodeInvalidSchema, schema, rows([]string{"{id: 2, parent: null}"}, []string{"{id: 1, zone: 99, label: c}"}))
	if !strings.Contains(message, "line 6 of the file data.rows.yaml") || !strings.Contains(message, "refers to is missing") {
		b.t.Error(message)
	}
	b.refuse(report.CodeInvalidSchema, schema, rows([]string{"{id: 2, parent: null}", "{id: 10, parent: 2}", "{id: 20, parent: 21}", "{id: 21, parent: 20}"}, []string{"{id: 1, zone: 10, label: c}"})) // a circle
	// Two labels that change places need a third one.
	b.refuse(report.CodeInvalidSchema, schema, rows([]string{"{id: 2, parent: null}", "{id: 10, parent: 2}"}, []string{"{id: 1, zone: 10, label: b}", "{id: 5, zone: 2, label: c}"}))
}

func unmanagedColumns(b *rowBench) {
	schema := b.pick(`CREATE TABLE plans (id int GENERATED ALWAYS AS IDENTITY PRIMARY KEY, name text NOT NULL, cents int NOT NULL, price numeric GENERATED ALWAYS AS (cents / 100.0) STORED, made int NOT NULL DEFAULT 7);`,
		`CREATE TABLE plans (id int AUTO_INCREMENT PRIMARY KEY, name varchar(20) NOT NULL, cents int NOT NULL, price decimal(10,2) GENERATED ALWAYS AS (cents / 100) STORED, made int NOT NULL DEFAULT 7);`)
	b.converge(schema, declare("plans", "scope: table", "{id: 1, name: small, cents: 500}", "{id: 5, name: large, cents: 900}"))
	b.exec("UPDATE plans SET made = 9 WHERE id = 1")
	document := b.converge(schema, declare("plans", "scope: table", "{id: 1, name: small, cents: 600}", "{id: 5, name: large, cents: 900}"))
	if got := b.read("SELECT id, name, cents, made FROM plans ORDER BY id"); got != "1|small|600|9 5|large|900|7" || kinds(document) != "UPDATE" {
		b.t.Error(got, kinds(document))
	}
	message := b.refuse(report.CodeInvalidSchema, schema, declare("plans", "scope: table", "{id: 1, name: small, cents: 500, price: 5}"))
	if !strings.Contains(message, "computes") {
		b.t.Error(message)
	}
}

func wrongRows(b *rowBench) {
	schema := currencyTable + "CREATE TABLE loose (x int); CREATE TABLE maybe (x int UNIQUE, y int NOT NULL UNIQUE, z int NOT NULL); CREATE VIEW seen AS SELECT code FROM currencies;" +
		"CREATE TABLE money_ (id int PRIMARY KEY, amount decimal(6,2) NOT NULL, CHECK (amount >= 0));"
	for name, test := range map[string]struct{ rows, says string }{
		"an unknown table":            {declare("nothing", "scope: table"), "not a table of the declared schema"},
		"a view":                      {declare("seen", "scope: table"), "not a table"},
		"an unknown column":           {currencies("{code: EUR, name: Euro}", "{code: USD, name: Dollar}") + "  - {code: EUR, name: x, wrong: hush}", "first one lacks"},
		"a column that is not there":  {currencies("{code: EUR, name: Euro, wrong: hush}"), "line 6 of the file data.rows.yaml: a column is named that the table does not have"},
		"a key twice":                 {currencies("{code: EUR, name: hush}", "{code: USD, name: b}", "{code: EUR, name: c}"), "line 8 of the file data.rows.yaml: another row has the same key"},
		"a table without a key":       {declare("loose", "scope: table", "{x: 1}"), "without a primary key"},
		"a key that may be null":      {declare("maybe", "scope: table\nkey: [x]", "{x: 1, y: 1, z: 1}"), "not a primary key"},
		"a key that is none":          {declare("maybe", "scope: table\nkey: [z]", "{x: 1, y: 1, z: 1}"), "not a primary key"},
		"a key that is null":          {currencies("{code: null, name: hush}"), "a key is null"},
		"a key that is not named":     {currencies("{name: hush, digits: 2}"), "every column of the key"},
		"a text for a number":         {currencies("{code: EUR, name: Euro, digits: 1}", "{code: USD, name: b, digits: hush}"), "line 7 of the file data.rows.yaml: a value does not fit its column"},
		"a text that is too long":     {currencies("{code: EUROhush, name: Euro}"), "line 6"},
		"null where it may not be":    {currencies("{code: EUR, name: null}"), "line 6"},
		"a column without a default":  {currencies("{code: EUR, digits: 1}"), "no default"},
		"a number that is rounded":    {declare("money_", "scope: table", "{id: 1, amount: 1.234}"), "rounded"},
		"a check that is not met":     {declare("money_", "scope: table", "{id: 1, amount: 5}", "{id: 2, amount: -1}"), "line 7 of the file data.rows.yaml"},
		"bytes for a text":            {currencies("{code: EUR, name: !!binary aHVzaA==}"), "bytes and their column"},
		"a list for a text":           {currencies("{code: EUR, name: [hush]}"), "does not hold JSON"},
		"true for a text":             {currencies("{code: EUR, name: true}"), "truth values"},
		"an absent key of no column":  {declare("currencies", "scope: keys\nabsent: [{name: hush}]"), "just the columns of the key"},
		"a row that must be absent":   {declare("currencies", "scope: keys\nabsent: [{code: EUR}]", "{code: EUR, name: hush}"), "stands under absent"},
		"another server's table":      {declare(b.pick("pg_catalog.pg_class", "mysql.user"), "scope: table"), b.pick("server itself", "another database")},
		"a scope that nobody guesses": {declare("currencies", "key: [code]", "{code: EUR, name: hush}"), "scope is missing"},
	} {
		code := report.CodeInvalidSchema
		if got := b.refuse(code, schema, test.rows); !strings.Contains(got, test.says) {
			b.t.Errorf("%s: %q", name, got)
		}
	}
	b.refuseAloud(schema, currencies("{code: EUR, name: Euro, digits: hush}"))
	b.refuseAloud(schema, declare("money_", "scope: table", "{id: 1, amount: -1}", "{id: hush, amount: 2}"))
	// The control: the same tables with rows that fit.
	b.converge(schema, "version: 1\ntables:\n"+entry("maybe", "scope: table\nkey: [y]", "{x: null, y: 1, z: 1}", "{x: null, y: 2, z: 1}")+
		entry("money_", "scope: table", "{id: 1, amount: 1.230}", "{id: 2, amount: 5}")+entry("currencies", "scope: table", threeCurrencies...))
}

func triggeredRows(b *rowBench) {
	body := func(what string) string {
		return b.pick("CREATE FUNCTION f() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN NEW."+what+"; RETURN NEW; END $$; CREATE TRIGGER tr BEFORE INSERT OR UPDATE ON currencies FOR EACH ROW EXECUTE FUNCTION f();",
			"DELIMITER //\nCREATE TRIGGER tr BEFORE INSERT ON currencies FOR EACH ROW BEGIN SET NEW."+strings.ReplaceAll(what, ":=", "=")+"; END//\nDELIMITER ;\n")
	}
	message := b.refuse(report.CodeUnsupported, currencyTable+"\n"+body("name := 'changed hush'"), currencies(threeCurrencies...))
	if !strings.Contains(message, "a trigger") {
		b.t.Error(message)
	}
	b.converge(currencyTable+"\n"+body("note := 'seen'"), currencies(threeCurrencies...))
	if got := b.read("SELECT DISTINCT note FROM currencies"); got != "seen" {
		b.t.Errorf("the trigger did not act: %s", got)
	}
}

func failingRows(b *rowBench) {
	schema := currencyTable + "CREATE TABLE prices (id int PRIMARY KEY, code varchar(3) NOT NULL, label varchar(20) NOT NULL UNIQUE, FOREIGN KEY (code) REFERENCES currencies (code));"
	rows := declare("prices", "scope: keys", "{id: 1, code: EUR, label: hush}")
	// Whether the row that nobody manages is there, only the database knows.
	b.plan(schema, rows)
	apply := func(want int) string {
		b.t.Helper()
		out, said := b.text(want, "schema", "apply", "--plan="+b.path("plan.json"), "--auto-approve")
		if strings.Contains(out+said, secret) {
			b.t.Errorf("a value is told: %s%s", out, said)
		}
		return said
	}
	if said := apply(command.ExitFailed); !strings.Contains(said, b.pick("23503", "1452")) {
		b.t.Error(said)
	}
	b.exec(b.pick(schema, "") + "INSERT INTO currencies (code, name) VALUES ('EUR', 'Euro'); INSERT INTO prices VALUES (7, 'EUR', 'hush')")
	b.plan(schema, rows)
	if said := apply(command.ExitFailed); !strings.Contains(said, b.pick("23505", "1062")) {
		b.t.Error(said)
	}
	b.exec("DELETE FROM prices WHERE id = 7")
	b.converge(schema, rows)
}

func rowsAndSchema(b *rowBench) {
	b.converge(currencyTable, currencies(threeCurrencies...))
	wider := "CREATE TABLE currencies (code varchar(3) PRIMARY KEY, name varchar(60) NOT NULL, digits bigint, note varchar(40) DEFAULT 'none', iso int);" +
		"CREATE TABLE more (id int PRIMARY KEY, code varchar(3) REFERENCES currencies (code));"
	rows := "version: 1\ntables:\n" + entry("currencies", "scope: table", "{code: EUR, name: Euro, digits: 2, iso: 978}", "{code: JPY, name: 'Yen hush', digits: 0, iso: 392}") + entry("more", "scope: table", "{id: 1, code: JPY}")
	document := b.converge(wider, rows)
	if got := kinds(document); !strings.HasSuffix(got, "INSERT, UPDATE, UPDATE, DELETE") {
		b.t.Error(got)
	}
	if got := b.read("SELECT code, digits, iso FROM currencies ORDER BY code"); got != "EUR|2|978 JPY|0|392" {
		b.t.Error(got)
	}
	// A value that the narrower column cannot hold stands in the database, and only then in the declaration not.
	narrow := strings.ReplaceAll(wider, "varchar(60)", "varchar(4)")
	message := b.refuse(report.CodeUnsupported, narrow, strings.ReplaceAll(rows, "'Yen hush'", "Yen"))
	if !strings.Contains(message, "change the rows before the schema") {
		b.t.Error(message)
	}
}

func provenRows(b *rowBench) {
	b.converge(currencyTable, currencies(threeCurrencies...))
	var out report.SchemaPlan
	args := []string{"schema", "plan", "--schema=" + b.path("schema")}
	b.json(command.ExitDone, &out, args...)
	fingerprint := out.FromFingerprint
	marker := map[string]any{"digest": report.Digest([]byte("artifact")), "files": map[string]string{}}
	for _, name := range []string{"001.sql", "data.rows.yaml"} {
		data, err := os.ReadFile(b.path("schema/" + name))
		if err != nil {
			b.t.Fatal(err)
		}
		marker["files"].(map[string]string)[name] = report.Digest(data)
	}
	b.write("schema.artifact.json", mustJSON(marker))
	args = append(args, "--proven-dump-digest="+fingerprint, "--proven-artifact="+report.Digest([]byte("artifact")))
	b.json(command.ExitDone, &out, args...)
	if !out.Unchanged {
		b.t.Errorf("an unchanged database is planned for: %+v", out)
	}
	b.exec("UPDATE currencies SET digits = 5 WHERE code = 'EUR'")
	out = report.SchemaPlan{}
	b.json(command.ExitDone, &out, args...)
	if out.Unchanged || out.Outcome != report.OutcomeChanges {
		b.t.Errorf("a changed row passes as proven: %+v", out)
	}
}

func carriedRows(b *rowBench) {
	schema := currencyTable + "CREATE TABLE prices (id int PRIMARY KEY, code varchar(3), FOREIGN KEY (code) REFERENCES currencies (code) ON DELETE CASCADE);" +
		"CREATE TABLE quotes (id int PRIMARY KEY, price int, FOREIGN KEY (price) REFERENCES prices (id) ON DELETE SET NULL);"
	b.converge(schema, currencies(threeCurrencies...))
	_, document := b.plan(schema, currencies(threeCurrencies[:2]...), "--protected-table=other")
	if s := document.Statements[0]; s.Kind != "DELETE" || !strings.Contains(s.Reason, "rows of 2 other table(s)") {
		b.t.Errorf("%+v", s)
	}
	b.refuse(report.CodeProtectedTable, schema, currencies(threeCurrencies[:2]...), "--protected-table=quotes")
	b.converge(schema, currencies("{code: EUR, name: changed, digits: 2}", threeCurrencies[1], threeCurrencies[2]), "--protected-table=quotes") // an update carries nothing along
}

func excludedRows(b *rowBench) {
	message := b.refuse(report.CodeInvalidSchema, currencyTable+"CREATE TABLE other (id int PRIMARY KEY);", currencies(threeCurrencies...), "--exclude=currencies")
	if !strings.Contains(message, "excluded") {
		b.t.Error(message)
	}
	b.converge(currencyTable+"CREATE TABLE other (id int PRIMARY KEY);", currencies(threeCurrencies...), "--exclude=other")
}
