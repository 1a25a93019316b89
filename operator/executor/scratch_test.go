package executor_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"ptah.run/ptah/operator/executor/postgresql/scratch"
)

// A scratch server that starts from the image's template holds what one holds that initdb has just made, and writes.
func TestScratchServerFromTheTemplate(t *testing.T) {
	targetServer(t) // says what is missing, or skips
	if _, err := os.Stat(filepath.Join(scratch.DefaultTemplate, "pg_resetwal.json")); err != nil {
		t.Fatalf("the image has no template: %v", err)
	}
	content := map[string]string{}
	// A target may have a role that is named like the template's administrator.
	for name, role := range map[string]string{"template": "app", "template, administrator renamed": scratch.Administrator, "initdb": "app"} {
		getenv := os.Getenv
		if name == "initdb" {
			getenv = func(key string) string {
				return map[string]string{scratch.TemplateVariable: "none"}[key] + os.Getenv(key)
			}
		}
		server, err := scratch.Start(t.Context(), scratch.Options{Owner: role, Roles: []string{role}, Encoding: "UTF8", Getenv: getenv})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(server.Stop)
		dump := exec.CommandContext(t.Context(), filepath.Join(server.Binaries(), "psql"), "-AtX", "-c", everything)
		dump.Env = server.Environment("template1")
		out, err := dump.CombinedOutput()
		if err != nil {
			t.Fatalf("%s: %v: %s", name, err, out)
		}
		content[name] = string(out)
		writes(t, server)
	}
	for name, got := range content {
		if got != content["initdb"] || strings.Count(got, "\n") < 5 {
			t.Errorf("from the %s:\n%s\nfrom initdb:\n%s", name, got, content["initdb"])
		}
	}
}

// everything sums up the catalogs that a schema can refer to.
const everything = `SELECT 'classes', count(*), md5(string_agg(concat(oid, relname, relkind, relnatts), ',' ORDER BY oid)) FROM pg_class WHERE oid < 16384
UNION ALL SELECT 'columns', count(*), md5(string_agg(concat(attrelid, attname, atttypid), ',' ORDER BY attrelid, attnum)) FROM pg_attribute WHERE attrelid < 16384
UNION ALL SELECT 'functions', count(*), md5(string_agg(concat(oid, proname, prosrc), ',' ORDER BY oid)) FROM pg_proc WHERE oid < 16384
UNION ALL SELECT 'types', count(*), md5(string_agg(concat(oid, typname), ',' ORDER BY oid)) FROM pg_type WHERE oid < 16384
UNION ALL SELECT 'operators', count(*), md5(string_agg(concat(oid, oprname), ',' ORDER BY oid)) FROM pg_operator WHERE oid < 16384
UNION ALL SELECT 'collations', count(*), md5(string_agg(concat(collname, collnamespace), ',' ORDER BY oid)) FROM pg_collation WHERE oid < 16384
UNION ALL SELECT 'databases', count(*), string_agg(concat(datname, encoding, datcollate, datallowconn, age(datfrozenxid)/1000), ',' ORDER BY datname) FROM pg_database`

// writes makes the server flush pages that the template brought: a log that began before those pages' positions would
// make the checkpoint fail, and with it every copy of a database.
func writes(t *testing.T, server *scratch.Server) {
	t.Helper()
	admin, err := server.Admin(t.Context(), "template1")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = admin.Close(t.Context()) }()
	for _, statement := range []string{"VACUUM (ANALYZE)", "CREATE TABLE probe AS SELECT generate_series(1, 10000) AS n", "DROP TABLE probe", "CHECKPOINT"} {
		if _, err := admin.Exec(t.Context(), statement); err != nil {
			t.Errorf("%s: %v", statement, err)
		}
	}
}
