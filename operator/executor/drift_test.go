package executor_test

import (
	"os"
	"slices"
	"testing"

	"ptah.run/ptah/operator/executor/failure"
	"ptah.run/ptah/operator/executor/findings"
	mysqlplanner "ptah.run/ptah/operator/executor/mysql/planner"
	"ptah.run/ptah/operator/executor/postgresql/observe"
	"ptah.run/ptah/operator/executor/postgresql/planner"
	"ptah.run/ptah/operator/executor/postgresql/target"
	"ptah.run/ptah/operator/plan/report"
)

// Each part of these two schemas differs in one way from the other schema's, and each way is a category of its own.
const (
	driftBefore = `CREATE TYPE gone_enum AS ENUM ('a'); CREATE TYPE labels AS ENUM ('a', 'b'); CREATE TYPE gone_type AS (a int); CREATE DOMAIN kept_domain AS int; CREATE DOMAIN checked AS int CHECK (VALUE > 0);
CREATE SCHEMA gone_schema; CREATE EXTENSION pg_trgm; CREATE COLLATION gone_collation (locale = 'C'); CREATE COLLATION kept_collation (locale = 'C');
CREATE SEQUENCE gone_sequence; CREATE SEQUENCE kept_sequence;
CREATE TABLE gone_table (a int);
CREATE TABLE kept (id int, lost int, retyped int, numbered int, defaulted int DEFAULT 1, doubled text, note text, CHECK (id > 0), UNIQUE (lost), CONSTRAINT k UNIQUE (retyped));
CREATE TABLE stored (id int PRIMARY KEY); CREATE TABLE split (id int) PARTITION BY RANGE (id); CREATE TABLE split_gone PARTITION OF split FOR VALUES FROM (0) TO (9);
CREATE TABLE bounds (id int) PARTITION BY LIST (id); CREATE TABLE bounds_kept PARTITION OF bounds FOR VALUES IN (1); CREATE TABLE pieces (id int) PARTITION BY LIST (id); CREATE TABLE loose (id int);
CREATE TABLE shape (id int) PARTITION BY LIST (id);
ALTER TABLE kept ADD CONSTRAINT gone_key FOREIGN KEY (id) REFERENCES stored (id);
CREATE INDEX gone_index ON kept (note); CREATE UNIQUE INDEX gone_unique ON kept (doubled);
CREATE FUNCTION gone_function() RETURNS int LANGUAGE sql AS 'SELECT 1'; CREATE FUNCTION kept_function() RETURNS int LANGUAGE sql AS 'SELECT 1';
CREATE FUNCTION fire() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NULL; END';
CREATE TRIGGER gone_trigger AFTER INSERT ON kept EXECUTE FUNCTION fire(); CREATE TRIGGER kept_trigger AFTER INSERT ON kept EXECUTE FUNCTION fire();
CREATE RULE gone_rule AS ON DELETE TO kept DO INSTEAD NOTHING; CREATE RULE kept_rule AS ON UPDATE TO kept DO INSTEAD NOTHING;
CREATE POLICY gone_policy ON kept USING (true); CREATE POLICY kept_policy ON kept USING (true); ALTER TABLE kept ENABLE ROW LEVEL SECURITY;
CREATE VIEW gone_view AS SELECT 1 AS a; CREATE VIEW kept_view AS SELECT 1 AS a;
CREATE STATISTICS gone_statistics ON id, note FROM kept; CREATE STATISTICS kept_statistics (ndistinct) ON id, note FROM kept;
CREATE TEXT SEARCH CONFIGURATION gone_config (COPY = pg_catalog.simple); CREATE TEXT SEARCH CONFIGURATION kept_config (COPY = pg_catalog.simple);
COMMENT ON TABLE kept IS 'one'; COMMENT ON COLUMN kept.id IS 'one'; GRANT SELECT ON kept TO reader; GRANT SELECT ON stored TO reader;`

	driftAfter = `CREATE TYPE new_enum AS ENUM ('a'); CREATE TYPE labels AS ENUM ('b', 'c'); CREATE TYPE new_type AS (a int); CREATE DOMAIN kept_domain AS int DEFAULT 1; CREATE DOMAIN checked AS int CHECK (VALUE > 0);
CREATE SCHEMA new_schema; CREATE EXTENSION citext; CREATE COLLATION new_collation (locale = 'C'); CREATE COLLATION kept_collation (locale = 'POSIX');
CREATE SEQUENCE new_sequence; CREATE SEQUENCE kept_sequence INCREMENT 2;
CREATE TABLE new_table (a int GENERATED ALWAYS AS IDENTITY, b serial, CHECK (a > 0));
CREATE TABLE kept (id int, found int, retyped bigint, numbered int NOT NULL GENERATED ALWAYS AS IDENTITY, defaulted int DEFAULT 2, doubled text, note text, CONSTRAINT new_check CHECK (id > 0), CONSTRAINT new_key UNIQUE (found), CONSTRAINT k UNIQUE (retyped));
CREATE UNLOGGED TABLE stored (id int PRIMARY KEY); CREATE TABLE split (id int) PARTITION BY RANGE (id); CREATE TABLE split_gone (id int);
CREATE TABLE bounds (id int) PARTITION BY LIST (id); CREATE TABLE bounds_kept PARTITION OF bounds FOR VALUES IN (2); CREATE TABLE pieces (id int) PARTITION BY LIST (id); CREATE TABLE loose PARTITION OF pieces DEFAULT;
CREATE TABLE shape (id int) PARTITION BY HASH (id);
CREATE INDEX new_index ON kept (found);
CREATE FUNCTION new_function() RETURNS int LANGUAGE sql AS 'SELECT 1'; CREATE FUNCTION kept_function() RETURNS int LANGUAGE sql AS 'SELECT 2';
CREATE FUNCTION fire() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NULL; END';
CREATE TRIGGER new_trigger AFTER INSERT ON kept EXECUTE FUNCTION fire(); CREATE TRIGGER kept_trigger AFTER DELETE ON kept EXECUTE FUNCTION fire();
CREATE RULE new_rule AS ON INSERT TO kept DO INSTEAD NOTHING; CREATE RULE kept_rule AS ON UPDATE TO kept DO ALSO NOTHING;
CREATE POLICY new_policy ON kept USING (true); CREATE POLICY kept_policy ON kept USING (false); ALTER TABLE new_table ENABLE ROW LEVEL SECURITY;
CREATE VIEW new_view AS SELECT 1 AS a; CREATE VIEW kept_view AS SELECT 2 AS a;
CREATE STATISTICS new_statistics ON id, note FROM kept; CREATE STATISTICS kept_statistics (mcv) ON id, note FROM kept;
CREATE TEXT SEARCH CONFIGURATION new_config (COPY = pg_catalog.simple); CREATE TEXT SEARCH CONFIGURATION kept_config (COPY = pg_catalog.english);
COMMENT ON TABLE kept IS 'two'; COMMENT ON COLUMN kept.note IS 'one'; GRANT INSERT ON kept TO reader; GRANT SELECT ON new_table TO reader;`
)

func TestDriftOnPostgreSQLCountsEveryCategory(t *testing.T) {
	server := targetServer(t)
	c := caseRun{server: server, name: "driftcategories"}
	if err := c.fill(t.Context(), c.name, driftBefore); err != nil {
		t.Fatal(err)
	}
	parsed, err := c.target()
	if err != nil {
		t.Fatal(err)
	}
	conn, err := server.Owner(t.Context(), c.name)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close(t.Context()) }()
	// A concurrent build that fails leaves an index that is not valid.
	if _, err := conn.Exec(t.Context(), "INSERT INTO gone_table VALUES (1), (1)"); err != nil {
		t.Fatal(err)
	}
	if _, err := conn.Exec(t.Context(), "CREATE UNIQUE INDEX CONCURRENTLY broken ON gone_table (a)"); err == nil {
		t.Fatal("a unique index was built on rows that are there twice")
	}
	state, err := observe.Reader{Binaries: server.Binaries(), Environment: parsed.Environment(0)}.Read(t.Context(), conn)
	if err != nil {
		t.Fatal(err)
	}
	result, err := planner.Drift(t.Context(), planner.Request{State: state, Desired: []planner.File{{Name: "after.sql", SQL: driftAfter}}, Getenv: os.Getenv})
	if err != nil {
		t.Fatal(err, target.Detail(err))
	}
	checkFindings(t, result.Findings, map[string]int{
		"collations_added": 1, "collations_modified": 1, "collations_removed": 1, "columns_added": 1, "columns_modified": 3, "columns_removed": 1,
		"comments_added": 2, "comments_modified": 1, "comments_removed": 2, "constraints_added": 1, "constraints_removed": 2, "enums_added": 1, "enums_removed": 1,
		"enum_values_added": 1, "enum_values_removed": 1, "extensions_added": 1, "extensions_removed": 1, "functions_added": 1, "functions_modified": 1,
		"functions_removed": 1, "grants_added": 1, "grants_modified": 1, "grants_removed": 1, "indexes_added": 1, "indexes_invalid": 1, "indexes_removed": 2,
		"other_objects_added": 1, "other_objects_modified": 1, "other_objects_removed": 1, "partitions_added": 1, "partitions_modified": 2, "partitions_removed": 1,
		"rls_enabled_tables_added": 1, "rls_enabled_tables_removed": 1, "rls_policies_added": 1, "rls_policies_modified": 1, "rls_policies_removed": 1, "rules_added": 1,
		"rules_modified": 1, "rules_removed": 1, "schemas_added": 1, "schemas_removed": 1, "sequences_added": 2, "sequences_modified": 1, "sequences_removed": 1,
		"statistics_added": 1, "statistics_modified": 1, "statistics_removed": 1, "table_constraints_added": 1, "table_constraints_removed": 1, "tables_added": 1,
		"tables_modified": 1, "tables_removed": 1, "triggers_added": 1, "triggers_modified": 1, "triggers_removed": 1, "types_added": 1, "types_modified": 1,
		"types_removed": 1, "unique_protections_removed": 2, "views_added": 1, "views_modified": 1, "views_removed": 1,
	})
	// What is left of the vocabulary: MySQL's, an extension that the image lacks, what is refused, and what the server
	// prints of neither an extension's nor a schema's content.
	missing := []string{"data_rows_deleted", "data_rows_inserted", "data_rows_updated", "events_added", "events_modified", "events_removed", "extensions_modified",
		"owners_modified", "roles_added", "roles_modified", "roles_removed", "schemas_modified", "vector_dimension_changed"}
	for _, category := range findings.Vocabulary() {
		found := slices.ContainsFunc(result.Findings, func(f report.Finding) bool { return f.Category == category })
		if found == slices.Contains(missing, category) {
			t.Errorf("%s is counted: %t", category, found)
		}
	}
}

const (
	mysqlDriftBefore = `CREATE TABLE gone_table (a int); CREATE TABLE kept (id int, lost int, retyped int, labels enum('a','b'), v vector(3), doubled int, PRIMARY KEY (id), UNIQUE KEY gone_unique (doubled), KEY gone_index (lost), CONSTRAINT gone_check CHECK (id > 0));
CREATE TABLE plain (id int); CREATE TABLE split (id int) PARTITION BY HASH (id) PARTITIONS 2;
CREATE VIEW gone_view AS SELECT 1 AS a; CREATE VIEW kept_view AS SELECT 1 AS a;
CREATE FUNCTION gone_function() RETURNS int DETERMINISTIC RETURN 1; CREATE FUNCTION kept_function() RETURNS int DETERMINISTIC RETURN 1;
CREATE TRIGGER gone_trigger BEFORE INSERT ON kept FOR EACH ROW SET NEW.id = 1; CREATE TRIGGER kept_trigger BEFORE UPDATE ON kept FOR EACH ROW SET NEW.id = 1;
CREATE EVENT gone_event ON SCHEDULE EVERY 1 DAY DO DELETE FROM kept; CREATE EVENT kept_event ON SCHEDULE EVERY 1 DAY DO DELETE FROM kept;`

	mysqlDriftAfter = `CREATE TABLE new_table (a int PRIMARY KEY); CREATE TABLE kept (id int, found int, retyped bigint, labels enum('b','c'), v vector(4), doubled int, PRIMARY KEY (id, doubled), KEY new_index (found), CONSTRAINT new_check CHECK (id > 0));
CREATE TABLE plain (id int) COMMENT = 'c'; CREATE TABLE split (id int) PARTITION BY HASH (id) PARTITIONS 3;
CREATE VIEW new_view AS SELECT 1 AS a; CREATE VIEW kept_view AS SELECT 2 AS a;
CREATE FUNCTION new_function() RETURNS int DETERMINISTIC RETURN 1; CREATE FUNCTION kept_function() RETURNS int DETERMINISTIC RETURN 2;
CREATE TRIGGER new_trigger BEFORE INSERT ON kept FOR EACH ROW SET NEW.id = 1; CREATE TRIGGER kept_trigger BEFORE UPDATE ON kept FOR EACH ROW SET NEW.id = 2;
CREATE EVENT new_event ON SCHEDULE EVERY 1 DAY DO DELETE FROM kept; CREATE EVENT kept_event ON SCHEDULE EVERY 2 DAY DO DELETE FROM kept;`
)

func TestDriftOnMySQLCountsEveryCategory(t *testing.T) {
	server := mysqlServer(t)
	c := mysqlCase{server: server, name: "driftcategories"}
	if err := c.fill(t.Context(), c.name, mysqlDriftBefore); err != nil {
		t.Fatal(err)
	}
	request, err := c.request(t.Context(), mysqlDriftAfter)
	if err != nil {
		t.Fatal(err, failure.Detail(err))
	}
	result, err := mysqlplanner.Drift(t.Context(), request)
	if err != nil {
		t.Fatal(err, failure.Detail(err))
	}
	checkFindings(t, result.Findings, map[string]int{
		"columns_added": 1, "columns_modified": 4, "columns_removed": 1, "constraints_added": 1, "constraints_removed": 1, "enum_values_added": 1,
		"enum_values_removed": 1, "events_added": 1, "events_modified": 1, "events_removed": 1, "functions_added": 1, "functions_modified": 1, "functions_removed": 1,
		"indexes_added": 1, "indexes_removed": 2, "partitions_modified": 1, "table_constraints_added": 1, "table_constraints_removed": 1, "tables_added": 1,
		"tables_modified": 1, "tables_removed": 1, "triggers_added": 1, "triggers_modified": 1, "triggers_removed": 1, "unique_protections_removed": 2,
		"vector_dimension_changed": 1, "views_added": 1, "views_modified": 1, "views_removed": 1,
	})
}

func checkFindings(t *testing.T, got []report.Finding, want map[string]int) {
	t.Helper()
	for _, f := range got {
		if f.Count != want[f.Category] {
			t.Errorf("%s: %d and should be %d", f.Category, f.Count, want[f.Category])
		}
		if findings.Meaning(f.Category) == "" {
			t.Errorf("%s is not in the vocabulary", f.Category)
		}
	}
	for category, count := range want {
		if !slices.ContainsFunc(got, func(f report.Finding) bool { return f.Category == category }) {
			t.Errorf("%s: nothing and should be %d", category, count)
		}
	}
}
