package executor_test

import (
	"context"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"ptah.run/ptah/operator/executor/failure"
	mysqlscratch "ptah.run/ptah/operator/executor/mysql/scratch"
	"ptah.run/ptah/operator/executor/postgresql/target"
)

// manyPostgreSQL is a schema of n tables, each with keys, checks, two indexes, a foreign key in chains of ten, a view and
// a trigger with a function of its own. Of the tables, changed have one more column and a wider number.
func manyPostgreSQL(n, changed int) string {
	var b strings.Builder
	b.WriteString("CREATE TYPE state AS ENUM ('open', 'paid', 'lost');\n")
	for i := range n {
		added, precision := "", "12,2"
		if differs(i, n, changed) {
			added, precision = ", note text", "14,2"
		}
		reference := ""
		if i%10 != 0 {
			reference = fmt.Sprintf(" REFERENCES t%04d(id)", i-1)
		}
		fmt.Fprintf(&b, `CREATE TABLE t%04[1]d (id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, name text NOT NULL,
	code varchar(20) NOT NULL UNIQUE, state state NOT NULL DEFAULT 'open', amount numeric(%[2]s) NOT NULL DEFAULT 0 CHECK (amount >= 0),
	made timestamptz NOT NULL DEFAULT now(), gone timestamptz, meta jsonb NOT NULL DEFAULT '{}', parent bigint%[3]s%[4]s);
CREATE INDEX t%04[1]d_name ON t%04[1]d (lower(name));
CREATE INDEX t%04[1]d_made ON t%04[1]d (made DESC) WHERE gone IS NULL;
CREATE VIEW v%04[1]d AS SELECT id, name FROM t%04[1]d WHERE gone IS NULL;
CREATE FUNCTION f%04[1]d() RETURNS trigger LANGUAGE plpgsql AS $$BEGIN RETURN NEW; END$$;
CREATE TRIGGER g%04[1]d BEFORE UPDATE ON t%04[1]d FOR EACH ROW EXECUTE FUNCTION f%04[1]d();
`, i, precision, reference, added)
	}
	return b.String()
}

// manyMySQL is the same for MySQL.
func manyMySQL(n, changed int) string {
	var b strings.Builder
	for i := range n {
		added, precision, reference := "", "12,2", ""
		if differs(i, n, changed) {
			added, precision = ", note varchar(200)", "14,2"
		}
		if i%10 != 0 {
			reference = fmt.Sprintf(", CONSTRAINT t%04d_parent FOREIGN KEY (parent) REFERENCES t%04d(id)", i, i-1)
		}
		fmt.Fprintf(&b, `CREATE TABLE t%04[1]d (id bigint unsigned NOT NULL AUTO_INCREMENT PRIMARY KEY, name varchar(200) NOT NULL,
	code varchar(20) NOT NULL, state enum('open', 'paid', 'lost') NOT NULL DEFAULT 'open', amount decimal(%[2]s) NOT NULL DEFAULT 0,
	made datetime NOT NULL DEFAULT CURRENT_TIMESTAMP, gone datetime, meta json, parent bigint unsigned%[4]s, UNIQUE KEY t%04[1]d_code (code),
	KEY t%04[1]d_name ((lower(name))), KEY t%04[1]d_made (made DESC), CONSTRAINT t%04[1]d_amount CHECK (amount >= 0)%[3]s);
CREATE VIEW v%04[1]d AS SELECT id, name FROM t%04[1]d WHERE gone IS NULL;
CREATE TRIGGER g%04[1]d BEFORE UPDATE ON t%04[1]d FOR EACH ROW SET NEW.name = trim(NEW.name);
`, i, precision, reference, added)
	}
	return b.String()
}

// differs spreads changed tables evenly over n.
func differs(i, n, changed int) bool {
	return changed > 0 && i%(n/changed) == 0 && i/(n/changed) < changed
}

// scene is what a planner is given: a schema that the database holds and one that is desired.
type scene struct {
	name       string
	have, want string
}

func scenes(many func(n, changed int) string, tables int) []scene {
	changed := min(40, tables/2)
	return []scene{
		{"nothing changed", many(tables, 0), many(tables, 0)},
		{fmt.Sprintf("%d tables changed", changed), many(tables, 0), many(tables, changed)},
		{"greenfield", "", many(tables, 0)},
	}
}

// sizes are the numbers of tables that are timed; PTAH_BENCH_TABLES narrows them to one.
func sizes(b *testing.B) []int {
	var one int
	if text := os.Getenv("PTAH_BENCH_TABLES"); text != "" {
		if _, err := fmt.Sscan(text, &one); err != nil {
			b.Fatalf("PTAH_BENCH_TABLES is not a number: %v", err)
		}
		return []int{one}
	}
	return []int{20, 500}
}

// peer is a planner on one database. It returns how many statements its plan has.
type peer struct {
	name string
	plan func(ctx context.Context, want string) (int, error)
}

// BenchmarkPostgreSQL times whole plans beside Atlas: ptah with its scratch server, both computations and the rehearsal;
// Atlas with a development database whose server already runs, and with no more than its one computation. Atlas passes
// over views, functions and triggers; they are in the schema because a planner has to get along with them.
func BenchmarkPostgreSQL(b *testing.B) {
	server := targetServer(b)
	times := newTimes(b, "PostgreSQL")
	for _, tables := range sizes(b) {
		for i, s := range scenes(manyPostgreSQL, tables) {
			c := caseRun{server: server, name: fmt.Sprintf("bench%d_%d", tables, i)}
			if err := c.fill(b.Context(), c.name, s.have); err != nil {
				b.Fatal(err)
			}
			peers := []peer{{"ptah", c.statements}, {"atlas", c.atlas}}
			if s.have == s.want {
				peers = append(peers, peer{"proven", c.proven})
			}
			for _, p := range peers {
				times.run(b, tables, s, p)
			}
		}
	}
}

// proven reads and compares nothing further, as a Pod does that was told how the database was when it last matched.
func (c caseRun) proven(ctx context.Context, _ string) (int, error) {
	_, err := c.read(ctx)
	return 0, err
}

// statements plans as a Pod does.
func (c caseRun) statements(ctx context.Context, want string) (int, error) {
	result, err := c.plan(ctx, want)
	if err != nil {
		return 0, fmt.Errorf("%w: %s", err, target.Detail(err))
	}
	if result.Document == nil {
		return 0, nil
	}
	return len(result.Document.Statements), nil
}

// BenchmarkMySQL is the same for MySQL. ptah's scratch server makes its data directory anew, as it does in a Pod.
func BenchmarkMySQL(b *testing.B) {
	if _, err := mysqlscratch.Program(os.Getenv); err != nil {
		b.Skipf("no MySQL 9.7 here: %v", err)
	}
	server, err := mysqlscratch.Start(b.Context(), mysqlscratch.Options{User: "app", Database: "main", Server: mysqlTestServer, Getenv: os.Getenv})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(server.Stop)
	times := newTimes(b, "MySQL")
	for _, tables := range sizes(b) {
		for i, s := range scenes(manyMySQL, tables) {
			c := mysqlCase{server: server, name: fmt.Sprintf("bench%d_%d", tables, i), start: mysqlscratch.Start}
			if err := c.fill(b.Context(), c.name, s.have); err != nil {
				b.Fatal(err)
			}
			peers := []peer{{"ptah", c.statements}, {"atlas", c.atlas}}
			if s.have == s.want {
				peers = append(peers, peer{"proven", c.proven})
			}
			for _, p := range peers {
				times.run(b, tables, s, p)
			}
		}
	}
}

// proven reads and compares nothing further, as a Pod does that was told how the database was when it last matched.
func (c mysqlCase) proven(ctx context.Context, want string) (int, error) {
	_, err := c.request(ctx, want)
	return 0, err
}

// statements plans as a Pod does.
func (c mysqlCase) statements(ctx context.Context, want string) (int, error) {
	result, err := c.plan(ctx, want)
	if err != nil {
		return 0, fmt.Errorf("%w: %s", err, failure.Detail(err))
	}
	if result.Document == nil {
		return 0, nil
	}
	return len(result.Document.Statements), nil
}

// times gathers what was measured and says it side by side at the end.
type times struct {
	engine string
	took   map[string]time.Duration
	rows   []string
}

func newTimes(b *testing.B, engine string) *times {
	t := &times{engine: engine, took: map[string]time.Duration{}}
	b.Cleanup(func() { _, _ = fmt.Fprint(os.Stdout, "\n"+t.table()) }) // the log of a benchmark is shown only when it fails
	return t
}

func (t *times) run(b *testing.B, tables int, s scene, p peer) {
	row := fmt.Sprintf("| %s, %d tables, %s |", t.engine, tables, s.name)
	b.Run(fmt.Sprintf("%d tables/%s/%s", tables, s.name, p.name), func(b *testing.B) {
		statements := 0
		for b.Loop() {
			var err error
			if statements, err = p.plan(b.Context(), s.want); err != nil {
				b.Fatal(err)
			}
		}
		b.ReportMetric(float64(statements), "statements")
		// Of several runs with -count the quickest counts: it is the one that was disturbed least.
		took := b.Elapsed() / time.Duration(b.N)
		if before, ok := t.took[row+p.name]; !ok || took < before {
			t.took[row+p.name] = took
		}
	})
	if len(t.rows) == 0 || t.rows[len(t.rows)-1] != row {
		t.rows = append(t.rows, row)
	}
}

func (t *times) table() string {
	var b strings.Builder
	b.WriteString("| plan | ptah | Atlas | ptah / Atlas | ptah, proven before |\n| --- | --- | --- | --- | --- |\n")
	for _, row := range t.rows {
		own, other := t.took[row+"ptah"], t.took[row+"atlas"]
		cell := func(d time.Duration) string {
			if d == 0 {
				return "-"
			}
			return fmt.Sprintf("%.2f s", d.Seconds())
		}
		ratio := "-"
		if own > 0 && other > 0 {
			ratio = fmt.Sprintf("%.2f", own.Seconds()/other.Seconds())
		}
		fmt.Fprintf(&b, "%s %s | %s | %s | %s |\n", row, cell(own), cell(other), ratio, cell(t.took[row+"proven"]))
	}
	return b.String()
}
