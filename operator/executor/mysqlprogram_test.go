package executor_test

import (
	"os"
	"slices"
	"strings"
	"testing"

	"ptah.run/ptah/operator/executor/command"
	"ptah.run/ptah/operator/executor/mysql/scratch"
	"ptah.run/ptah/operator/executor/mysql/target"
	"ptah.run/ptah/operator/plan/report"
)

// newMySQLPerson is a person who works on one database of a server.
func newMySQLPerson(t *testing.T, server *scratch.Server, database string) *person {
	t.Helper()
	if err := makeMySQL(t.Context(), server, database); err != nil {
		t.Fatal(err)
	}
	return &person{t, map[string]string{
		"PTAH_DB_URL":         "mysql://app@/" + database + "?socket=" + server.Socket(),
		"PTAH_MYSQLD":         os.Getenv("PTAH_MYSQLD"),
		"PTAH_MYSQL_TEMPLATE": os.Getenv("PTAH_MYSQL_TEMPLATE"),
		"PTAH_SCRATCH_DIR":    os.Getenv("PTAH_SCRATCH_DIR"),
		"TMPDIR":              os.Getenv("TMPDIR"),
	}, t.TempDir()}
}

// foreignMySQL has another account make a view anew, which the plan then takes over.
func (p *person) foreignMySQL(server *scratch.Server, schema string) {
	admin, err := target.Open(p.t.Context(), server.Config(server.AdminName(), "program"), 0)
	if err != nil {
		p.t.Fatal(err)
	}
	defer admin.Close()
	if _, err := admin.ExecContext(p.t.Context(), "CREATE OR REPLACE VIEW emails AS SELECT id FROM customers"); err != nil {
		p.t.Fatal(err)
	}
	var out report.SchemaPlan
	p.json(command.ExitDone, &out, "schema", "plan", "--schema="+schema)
	if !slices.Contains(out.PrivilegeChanges, report.PrivilegeDefiner) {
		p.t.Errorf("a view of another account changes hands unseen: %+v", out)
	}
}

func TestMySQLProgram(t *testing.T) {
	server := mysqlServer(t)
	p := newMySQLPerson(t, server, "program")
	schema := p.path("schema")
	p.write("schema/001.sql", "CREATE TABLE customers (id bigint AUTO_INCREMENT PRIMARY KEY, email varchar(100) NOT NULL UNIQUE);")
	p.write("schema/002.sql", "DELIMITER //\nCREATE PROCEDURE clean() BEGIN DELETE FROM customers; END//\nDELIMITER ;\nCREATE VIEW emails AS SELECT email FROM customers;")

	var drift report.Drift
	p.json(command.ExitDone, &drift, "schema", "drift", "--schema="+schema)
	if drift.Outcome != report.OutcomeChanges || drift.Dialect != report.DialectMySQL || !report.IsDigest(drift.Fingerprint) || !report.IsDigest(drift.TargetIdentity) {
		t.Errorf("%+v", drift)
	}
	var first, second report.SchemaPlan
	planFile := p.path("plan.json")
	p.json(command.ExitDone, &first, "schema", "plan", "--schema="+schema, "--output="+planFile)
	p.json(command.ExitDone, &second, "schema", "plan", "--schema="+schema)
	if first.Outcome != report.OutcomeChanges || first.PlanDigest != second.PlanDigest || first.FromFingerprint != drift.Fingerprint || first.Destructive ||
		len(first.PrivilegeChanges) != 1 || first.PrivilegeChanges[0] != report.PrivilegeSecurityDefiner {
		t.Errorf("%+v\n%+v", first, second)
	}
	var applied report.SchemaApply
	journal := p.path("journal")
	p.json(command.ExitDone, &applied, "schema", "apply", "--plan="+planFile, "--expect-digest="+first.PlanDigest, "--auto-approve", "--journal="+journal)
	if applied.Outcome != report.OutcomeApplied || applied.Executed != first.Statements || applied.Dialect != report.DialectMySQL {
		t.Errorf("%+v", applied)
	}
	if data, err := os.ReadFile(journal); err != nil || strings.Count(string(data), "\n") != 2*first.Statements {
		t.Errorf("the journal holds %q, %v", data, err)
	}
	var proven report.SchemaPlan
	p.json(command.ExitDone, &proven, "schema", "plan", "--schema="+schema)
	if proven.Outcome != report.OutcomeNoChanges || proven.FromFingerprint != first.ToFingerprint {
		t.Errorf("%+v after %+v", proven, first)
	}
	p.followMySQL(server, schema)
}

// followMySQL makes drift by hand, reads it, and has it refused in every way there is.
func (p *person) followMySQL(server *scratch.Server, schema string) {
	t := p.t
	if err := loadMySQL(t.Context(), server, "program", "ALTER TABLE customers ADD COLUMN salary int"); err != nil {
		t.Fatal(err)
	}
	var drift report.Drift
	p.json(command.ExitDone, &drift, "schema", "drift", "--schema="+schema)
	if len(drift.Findings) != 1 || drift.Findings[0] != (report.Finding{Category: "columns_removed", Count: 1, Severity: report.SeverityDestructive}) {
		t.Errorf("%+v", drift)
	}
	text, _ := p.text(command.ExitDone, "schema", "plan", "--schema="+schema)
	for _, part := range []string{"destructive", "DROP COLUMN", "LOCK=", "rewrite", "each on its own"} {
		if !strings.Contains(text, part) {
			t.Errorf("the plan's text lacks %q: %s", part, text)
		}
	}
	p.write("other/001.sql", "CREATE TABLE customers (id bigint AUTO_INCREMENT PRIMARY KEY, email varchar(100) NOT NULL UNIQUE);")
	p.write("other/002.sql", "CREATE VIEW emails AS SELECT id FROM customers;")
	var broken report.SchemaPlan // what is wanted depends on what is excluded
	p.json(command.ExitRefused, &broken, "schema", "plan", "--schema="+p.path("other"), "--exclude=customers")
	if broken.Problem.Code != report.CodeUnsupported {
		t.Errorf("%+v", broken.Problem)
	}
	for name, test := range map[string]struct {
		args []string
		code report.Code
	}{
		"a protected table":          {[]string{"--protected-table=Program.Customers"}, report.CodeProtectedTable},
		"a transaction":              {[]string{"--transaction-mode=all"}, report.CodeTransactionMode},
		"a transaction for the file": {[]string{"--transaction-mode=file"}, report.CodeTransactionMode},
	} {
		var out report.SchemaPlan
		p.json(command.ExitRefused, &out, append([]string{"schema", "plan", "--schema=" + schema}, test.args...)...)
		if out.Problem == nil || out.Problem.Code != test.code || out.PlanDigest != "" {
			t.Errorf("%s: %+v", name, out.Problem)
		}
	}
	var out report.SchemaPlan
	p.json(command.ExitDone, &out, "schema", "plan", "--schema="+schema, "--exclude=customers", "--exclude=program.emails")
	if out.Outcome != report.OutcomeNoChanges {
		t.Errorf("%+v", out)
	}
	p.write("locked/001.sql", "CREATE TABLE more (x int); LOCK TABLES more WRITE;")
	var locked report.SchemaPlan
	p.json(command.ExitDone, &locked, "schema", "plan", "--schema="+p.path("locked"))
	if locked.Outcome != report.OutcomeChanges || slices.Contains(locked.PrivilegeChanges, report.PrivilegeDefiner) {
		t.Errorf("a file that leaves a table locked: %+v", locked)
	}
	p.foreignMySQL(server, schema)
	for name, test := range map[string]struct {
		sql  string
		code report.Code
	}{
		"rows":                       {"CREATE TABLE a (x int); INSERT INTO a VALUES (1);", report.CodeUnsupported},
		"the database's defaults":    {"ALTER DATABASE CHARACTER SET latin1;", report.CodeUnsupported},
		"the database's encryption":  {"CREATE TABLE a (x int); ALTER DATABASE program ENCRYPTION = 'Y';", report.CodeUnsupported},
		"a library":                  {"CREATE LIBRARY l LANGUAGE JAVASCRIPT AS 'export function f() { return 1 }';", report.CodeUnsupported},
		"an event that ends":         {"CREATE EVENT e ON SCHEDULE EVERY 1 DAY ENDS '2040-01-01 00:00:00' DO SELECT 1;", report.CodeUnsupported},
		"an event that happens once": {"CREATE EVENT e ON SCHEDULE AT '2040-01-01 00:00:00' DO SELECT 1;", report.CodeUnsupported},
		"no SQL":                     {"CREATE TABEL a (x int);", report.CodeInvalidSchema},
		"another database":           {"CREATE DATABASE other;", report.CodeInvalidSchema},
		"a setting of the server":    {"SET GLOBAL max_connections = 1;", report.CodeInvalidSchema},
		"a file of the server":       {"CREATE TABLE a AS SELECT LOAD_FILE('/etc/passwd') AS x; SELECT 1 INTO OUTFILE '/tmp/x';", report.CodeInvalidSchema},
		"an account":                 {"CREATE USER other;", report.CodeInvalidSchema},
		"another definer":            {"CREATE DEFINER=root@localhost PROCEDURE p() SELECT 1;", report.CodeInvalidSchema},
	} {
		p.write("bad/001.sql", test.sql)
		var out report.SchemaPlan
		p.json(command.ExitRefused, &out, "schema", "plan", "--schema="+p.path("bad"))
		if out.Problem == nil || out.Problem.Code != test.code {
			t.Errorf("%s: %+v", name, out.Problem)
		}
	}
}
