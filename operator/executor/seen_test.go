package executor_test

import (
	"os"
	"slices"
	"testing"

	"ptah.run/ptah/operator/executor/postgresql/observe"
	"ptah.run/ptah/operator/executor/postgresql/planner"
	"ptah.run/ptah/operator/executor/postgresql/target"
	"ptah.run/ptah/operator/plan/report"
)

// TestSeen holds that what pg_dump does not show is counted where it matters, and that it makes no plan.
func TestSeen(t *testing.T) {
	server := targetServer(t)
	c := caseRun{server: server, name: "seen"}
	const schema = `CREATE EXTENSION pg_trgm; CREATE SCHEMA "S s"; CREATE TABLE "S s"."T t" (id serial PRIMARY KEY, at int GENERATED ALWAYS AS IDENTITY);
		CREATE TABLE u (id int REFERENCES "S s"."T t"); CREATE TYPE e AS ENUM ('a'); CREATE TYPE c AS (a int); CREATE TYPE r AS RANGE (subtype = int);
		CREATE FUNCTION f() RETURNS int LANGUAGE sql AS 'SELECT 1'; CREATE VIEW v AS SELECT 1 AS x; CREATE SEQUENCE s`
	if err := c.fill(t.Context(), c.name, schema); err != nil {
		t.Fatal(err)
	}
	admin, err := server.Admin(t.Context(), c.name)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = admin.Close(t.Context()) }()
	expect := func(exclude []string, want ...report.Finding) {
		t.Helper()
		parsed, err := c.target()
		if err != nil {
			t.Fatal(err)
		}
		owner, err := server.Owner(t.Context(), c.name)
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = owner.Close(t.Context()) }()
		state, err := observe.Reader{Binaries: server.Binaries(), Environment: parsed.Environment(0), Exclude: exclude}.Read(t.Context(), owner)
		if err != nil {
			t.Fatal(err, target.Detail(err))
		}
		result, err := planner.Plan(t.Context(), planner.Request{State: state, Desired: []planner.File{{Name: "s.sql", SQL: schema}},
			Exclude: exclude, Mode: report.TransactionFile, Getenv: os.Getenv})
		if err != nil {
			t.Fatal(err, target.Detail(err))
		}
		if result.Document != nil || result.Differs || !slices.Equal(result.Findings, want) {
			t.Fatalf("%+v, and a plan: %t", result.Findings, result.Document != nil)
		}
	}
	run := func(statements ...string) {
		t.Helper()
		for _, statement := range statements {
			if _, err := admin.Exec(t.Context(), statement); err != nil {
				t.Fatal(err)
			}
		}
	}
	owners := func(n int) report.Finding {
		return report.Finding{Category: "owners_other", Count: n, Severity: report.SeverityWarning}
	}
	run("GRANT reader TO app") // so that app may read what reader owns
	expect(nil)
	run(`ALTER TABLE "S s"."T t" OWNER TO reader`)
	expect(nil, owners(1))
	expect([]string{"S s.T t", "u"})
	run("ALTER TYPE e OWNER TO reader", "ALTER TYPE c OWNER TO reader", "ALTER TYPE r OWNER TO reader", "ALTER FUNCTION f() OWNER TO reader",
		"ALTER VIEW v OWNER TO reader", "ALTER SEQUENCE s OWNER TO reader", `ALTER SCHEMA "S s" OWNER TO reader`)
	expect(nil, owners(8))
	run("ALTER TABLE u DISABLE TRIGGER ALL")
	expect(nil, report.Finding{Category: "constraints_unenforced", Count: 1, Severity: report.SeverityWarning}, owners(8))
	run("ALTER TABLE u ENABLE TRIGGER ALL", "REASSIGN OWNED BY reader TO app")
	expect(nil)
}
