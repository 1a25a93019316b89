package executor_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"ptah.run/ptah/operator/executor/failure"
	"ptah.run/ptah/operator/executor/journal"
	"ptah.run/ptah/operator/executor/mysql/apply"
	"ptah.run/ptah/operator/executor/mysql/classify"
	"ptah.run/ptah/operator/executor/mysql/observe"
	"ptah.run/ptah/operator/executor/mysql/scratch"
	"ptah.run/ptah/operator/executor/mysql/target"
	"ptah.run/ptah/operator/plan/report"
)

// mysqlBench is one database of the target server with a plan for it.
type mysqlBench struct {
	t      *testing.T
	server *scratch.Server
	name   string
	socket string // where the plan's session connects; a test may put something in between
	plan   report.Plan
}

// newMySQLBench makes a database with a table t of two rows and a plan of the given statements for it.
func newMySQLBench(t *testing.T, server *scratch.Server, statements ...string) *mysqlBench {
	t.Helper()
	b := &mysqlBench{t: t, server: server, name: fmt.Sprintf("bench%d", benches.Add(1)), socket: server.Socket()}
	c := mysqlCase{server: server, name: b.name}
	if err := c.fill(t.Context(), b.name, "CREATE TABLE t (id int PRIMARY KEY, note text); INSERT INTO t VALUES (1, 'a'), (2, 'b'); CREATE TABLE other (id int)"); err != nil {
		t.Fatal(err)
	}
	b.plan = report.Plan{FormatVersion: report.PlanFormatVersion, Dialect: report.DialectMySQL, ServerMajor: observe.SupportedMajor,
		TransactionMode: report.TransactionNone, FromFingerprint: b.fingerprint(), ToFingerprint: report.Digest(nil)}
	classifier := classify.New(nil, nil)
	for _, sql := range statements {
		b.plan.Statements = append(b.plan.Statements, classifier.Statement(sql))
	}
	b.plan.Summarise()
	return b
}

func (b *mysqlBench) target() *target.Target {
	b.t.Helper()
	parsed, err := target.Parse("mysql://app@/" + b.name + "?socket=" + b.socket)
	if err != nil {
		b.t.Fatal(err)
	}
	return parsed
}

// session opens a connection of somebody else.
func (b *mysqlBench) session() *target.Session {
	b.t.Helper()
	s, err := target.Open(b.t.Context(), b.server.Config("app", b.name), 0)
	if err != nil {
		b.t.Fatal(err)
	}
	b.t.Cleanup(s.Close)
	return s
}

func (b *mysqlBench) exec(sql string) {
	b.t.Helper()
	if err := loadMySQL(b.t.Context(), b.server, b.name, sql); err != nil {
		b.t.Fatal(err)
	}
}

func (b *mysqlBench) read() (*observe.State, error) {
	b.t.Helper()
	s, err := target.Open(b.t.Context(), b.server.Config("app", b.name), 0)
	if err != nil {
		b.t.Fatal(err)
	}
	defer s.Close()
	return observe.Read(b.t.Context(), s, nil)
}

func (b *mysqlBench) fingerprint() string {
	b.t.Helper()
	state, err := b.read()
	if err != nil {
		b.t.Fatal(err, failure.Detail(err))
	}
	return state.Fingerprint
}

func (b *mysqlBench) request() apply.Request {
	b.t.Helper()
	data, err := report.EncodePlan(b.plan)
	if err != nil {
		b.t.Fatal(err)
	}
	return apply.Request{Target: b.target(), Data: data, LockTimeout: 5 * time.Second, ConnectTimeout: 10 * time.Second}
}

// expect applies and checks how it ended.
func (b *mysqlBench) expect(request apply.Request, outcome report.Outcome, code report.Code, executed int) report.SchemaApply {
	b.t.Helper()
	out, err := apply.Run(b.t.Context(), request)
	checkApply(b.t, out, err, outcome, code, executed)
	return out
}

// waitFor polls until a query of the administrator has a row.
func (b *mysqlBench) waitFor(sql string) {
	b.t.Helper()
	s, err := target.Open(b.t.Context(), b.server.Config(b.server.AdminName(), b.name), 0)
	if err != nil {
		b.t.Fatal(err)
	}
	defer s.Close()
	for deadline := time.Now().Add(60 * time.Second); time.Now().Before(deadline); time.Sleep(20 * time.Millisecond) {
		if _, rows, err := s.Texts(b.t.Context(), sql); err == nil && len(rows) > 0 {
			return
		}
	}
	b.t.Fatalf("nothing came of %s", sql)
}

// sleeping finds a session of the database that runs a statement with a text.
func (b *mysqlBench) sleeping(text string) {
	b.t.Helper()
	b.waitFor("SELECT 1 FROM information_schema.PROCESSLIST WHERE DB = '" + b.name + "' AND INFO LIKE '%" + text + "%' AND ID <> CONNECTION_ID()")
}

func TestMySQLApply(t *testing.T) {
	server := mysqlServer(t)

	t.Run("should run every statement, journal it and say so", func(t *testing.T) {
		b := newMySQLBench(t, server, "ALTER TABLE `t` ADD COLUMN `x` int", "CREATE INDEX `t_x` ON `t` (`x`)")
		before := b.fingerprint()
		request := b.request()
		var lines []string
		request.Journal = func(e journal.Event) error {
			lines = append(lines, fmt.Sprintf("%d/%d %s %t", e.Statement, e.Of, e.State, e.SHA256 == report.Digest([]byte(b.plan.Statements[e.Statement-1].SQL))))
			return nil
		}
		out := b.expect(request, report.OutcomeApplied, "", 2)
		if !out.MutationStarted || out.Statements != 2 || b.fingerprint() == before || out.TargetIdentity != b.target().Identity() {
			t.Errorf("%+v", out)
		}
		if want := []string{"1/2 started true", "1/2 done true", "2/2 started true", "2/2 done true"}; !slices.Equal(lines, want) {
			t.Errorf("the journal holds %v", lines)
		}
		b.expect(b.request(), report.OutcomeRefused, report.CodeStalePlan, 0)
	})

	t.Run("should execute nothing in a dry run", func(t *testing.T) {
		b := newMySQLBench(t, server, "DROP TABLE `other`")
		request := b.request()
		request.DryRun = true
		before := b.fingerprint()
		if out := b.expect(request, report.OutcomeDryRun, "", 0); out.MutationStarted || b.fingerprint() != before {
			t.Errorf("%+v", out)
		}
	})

	t.Run("should refuse a database that changed since the plan, with nothing executed", func(t *testing.T) {
		for name, change := range map[string]string{
			"a new column":     "ALTER TABLE other ADD COLUMN y int",
			"a comment":        "ALTER TABLE other COMMENT = 'x'",
			"an index":         "CREATE INDEX i ON other (id)",
			"a new table":      "CREATE TABLE more (id int)",
			"a dropped table":  "DROP TABLE other",
			"a view":           "CREATE VIEW v AS SELECT 1 AS a",
			"a routine":        "CREATE PROCEDURE p() SELECT 1",
			"a trigger":        "CREATE TRIGGER g BEFORE INSERT ON other FOR EACH ROW SET NEW.id = 1",
			"an event":         "CREATE EVENT e ON SCHEDULE EVERY 1 DAY DO SELECT 1",
			"another default":  "ALTER DATABASE CHARACTER SET latin1",
			"a trigger's mode": "SET sql_mode = 'ANSI'; CREATE TRIGGER g BEFORE INSERT ON other FOR EACH ROW SET NEW.id = 1",
		} {
			b := newMySQLBench(t, server, "ALTER TABLE `t` ADD COLUMN `x` int")
			b.exec(change)
			before := b.fingerprint()
			out := b.expect(b.request(), report.OutcomeRefused, report.CodeStalePlan, 0)
			if out.MutationStarted || b.fingerprint() != before {
				t.Errorf("%s: %+v", name, out)
			}
		}
	})

	t.Run("should not call a change of rows stale", func(t *testing.T) {
		b := newMySQLBench(t, server, "ALTER TABLE `t` ADD COLUMN `x` int")
		b.exec("INSERT INTO t VALUES (3, 'c'); TRUNCATE other; ANALYZE TABLE t")
		b.expect(b.request(), report.OutcomeApplied, "", 1)
	})

	t.Run("should keep and count what ran before a failure", func(t *testing.T) {
		b := newMySQLBench(t, server, "ALTER TABLE `t` ADD COLUMN `x` int", "ALTER TABLE `t` ADD CONSTRAINT `c` CHECK (`id` > 1)", "DROP TABLE `other`")
		request := b.request()
		var lines []string
		request.Journal = func(e journal.Event) error {
			lines = append(lines, fmt.Sprintf("%d/%d %s", e.Statement, e.Of, e.State))
			return nil
		}
		out := b.expect(request, report.OutcomeFailed, report.CodeStatement, 1)
		if want := []string{"1/3 started", "1/3 done", "2/3 started", "2/3 failed"}; !slices.Equal(lines, want) || out.Problem.SQLState != "HY000/3819" ||
			!strings.Contains(out.Problem.Message, "stays") {
			t.Errorf("the journal holds %v, the problem is %+v", lines, out.Problem)
		}
	})

	t.Run("should call an outcome unknown when the answer does not say whether the statement took effect", func(t *testing.T) {
		for number, outcome := range map[int]report.Outcome{1180: report.OutcomeUnknown, 1105: report.OutcomeUnknown, 1644: report.OutcomeFailed} {
			b := newMySQLBench(t, server, fmt.Sprintf("SIGNAL SQLSTATE '45000' SET MYSQL_ERRNO = %d", number), "DROP TABLE `other`")
			out := b.expect(b.request(), outcome, report.CodeStatement, 0)
			if !out.MutationStarted || strings.Contains(out.Problem.Message, "stays") || !strings.Contains(mustDump(t, b), "`other`") {
				t.Errorf("%d: %+v %+v", number, out, out.Problem)
			}
		}
	})

	t.Run("should read the same whatever a session starts with", func(t *testing.T) { defaultsMySQL(t, server) })

	t.Run("should keep the rows that hold a 0 in a column that becomes AUTO_INCREMENT", func(t *testing.T) { zerosMySQL(t, server) })
	t.Run("should see with the rights of an active role and not with those of another", func(t *testing.T) { rolesMySQL(t, server) })

	t.Run("should not run a statement that the journal does not hold", func(t *testing.T) {
		b := newMySQLBench(t, server, "DROP TABLE `other`")
		request := b.request()
		request.Journal = func(journal.Event) error { return errors.New("the disk is full") }
		before := b.fingerprint()
		b.expect(request, report.OutcomeFailed, report.CodeInternal, 0)
		if b.fingerprint() != before {
			t.Error("the statement ran")
		}
	})

	t.Run("should not run two statements in one text", func(t *testing.T) {
		b := newMySQLBench(t, server, "ALTER TABLE `t` ADD COLUMN `x` int; DROP TABLE `other`")
		before := b.fingerprint()
		b.expect(b.request(), report.OutcomeFailed, report.CodeStatement, 0)
		if b.fingerprint() != before {
			t.Error("something ran")
		}
	})

	t.Run("should refuse", func(t *testing.T) { refuseMySQL(t, newMySQLBench(t, server, "DROP TABLE `other`")) })
	t.Run("should end on locks and signals", func(t *testing.T) { interruptMySQL(t, server) })
}

// defaultsMySQL changes what sessions of the server start with. None of it may change what is read, or what a plan does.
func defaultsMySQL(t *testing.T, server *scratch.Server) {
	b := newMySQLBench(t, server, "CREATE TABLE `n` (`a` timestamp, `b` varchar(9) CHARACTER SET utf8mb4 DEFAULT \"x\")", "INSERT INTO `t` VALUES (9, '\\\\')")
	b.exec("ALTER TABLE other ADD COLUMN hidden int; CREATE VIEW v AS SELECT 'a''b' AS c; CREATE TABLE keyless (a int) ENGINE = MyISAM")
	b.plan.FromFingerprint = b.fingerprint()
	admin, err := target.Open(t.Context(), server.Config(server.AdminName(), ""), 0)
	if err != nil {
		t.Fatal(err)
	}
	defer admin.Close()
	var names []string
	restore := func() {
		for _, name := range names {
			if _, err := admin.ExecContext(context.Background(), "SET GLOBAL "+name+" = DEFAULT"); err != nil {
				t.Error(err)
			}
		}
		names = nil
	}
	defer restore()
	for _, setting := range []string{"sql_select_limit = 1", "show_create_table_verbosity = 1", "sql_quote_show_create = 0", "foreign_key_checks = 0",
		"default_storage_engine = MyISAM", "sql_mode = 'ANSI_QUOTES,NO_BACKSLASH_ESCAPES'", "time_zone = '+05:00'", "completion_type = 2", "autocommit = 0",
		"show_gipk_in_create_table_and_information_schema = 0", "character_set_client = latin1",
		"collation_connection = latin1_bin", "default_collation_for_utf8mb4 = utf8mb4_general_ci", "group_concat_max_len = 4", "max_execution_time = 1"} {
		name, _, _ := strings.Cut(setting, " ")
		if _, err := admin.ExecContext(t.Context(), "SET GLOBAL "+setting); err != nil {
			t.Fatal(err)
		}
		names = append(names, name)
	}
	if got := b.fingerprint(); got != b.plan.FromFingerprint {
		t.Error("the database reads differently")
	}
	b.expect(b.request(), report.OutcomeApplied, "", 2)
	restore()
	if _, made, found := strings.Cut(mustDump(t, b), "CREATE TABLE `n`"); !found || strings.Contains(made, "MyISAM") || strings.Contains(made, "general_ci") {
		t.Errorf("the table was made as %s", made)
	}
}

// zerosMySQL has a key with a 0 in it become AUTO_INCREMENT, beside a program that must not learn of the mode for that.
func zerosMySQL(t *testing.T, server *scratch.Server) {
	c := mysqlCase{server: server, name: fmt.Sprintf("bench%d", benches.Add(1))}
	if err := c.fill(t.Context(), c.name, "CREATE TABLE t (id int NOT NULL PRIMARY KEY, note text); INSERT INTO t VALUES (0, 'none'), (7, 'seven')"); err != nil {
		t.Fatal(err)
	}
	result, err := c.plan(t.Context(), "CREATE TABLE t (id int NOT NULL AUTO_INCREMENT PRIMARY KEY, note text); CREATE PROCEDURE p() SELECT 1;")
	if err != nil {
		t.Fatal(err, failure.Detail(err))
	}
	if out, err := apply.Run(t.Context(), apply.Request{Target: c.target(), Data: result.Bytes, LockTimeout: 5 * time.Second}); err != nil {
		t.Fatalf("%+v %v", out, err)
	}
	s, err := target.Open(t.Context(), server.Config("app", c.name), 0)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	var held, mode string
	if err := s.QueryRowContext(t.Context(), "SELECT GROUP_CONCAT(id, note ORDER BY id), (SELECT SQL_MODE FROM information_schema.ROUTINES WHERE ROUTINE_SCHEMA = DATABASE()) FROM t").Scan(&held, &mode); err != nil {
		t.Fatal(err)
	}
	if held != "0none,7seven" || mode != target.SQLMode {
		t.Errorf("the rows are %s and the procedure's mode is %s", held, mode)
	}
}

// rolesMySQL reads a database as an account whose only rights come from a role.
func rolesMySQL(t *testing.T, server *scratch.Server) {
	b := newMySQLBench(t, server, "DROP TABLE `other`")
	admin, err := target.Open(t.Context(), server.Config(server.AdminName(), ""), 0)
	if err != nil {
		t.Fatal(err)
	}
	defer admin.Close()
	for _, sql := range []string{"CREATE ROLE some, every", "GRANT SELECT ON " + b.name + ".* TO some", "GRANT ALL ON " + b.name + ".* TO every",
		"CREATE USER acting DEFAULT ROLE some"} {
		if _, err := admin.ExecContext(t.Context(), sql); err != nil {
			t.Fatal(err)
		}
	}
	for _, test := range []struct {
		sql  string
		code report.Code
	}{{"GRANT every TO acting", report.CodePermission}, {"ALTER USER acting DEFAULT ROLE some, every", ""}} {
		if _, err := admin.ExecContext(t.Context(), test.sql); err != nil {
			t.Fatal(err)
		}
		s, err := target.Open(t.Context(), server.Config("acting", b.name), 0)
		if err != nil {
			t.Fatal(err)
		}
		state, err := observe.Read(t.Context(), s, nil)
		s.Close()
		var problem *failure.Error
		switch {
		case test.code != "" && (!errors.As(err, &problem) || problem.Code != test.code):
			t.Errorf("%s: %v", test.sql, err)
		case test.code == "" && (err != nil || state.Fingerprint != b.plan.FromFingerprint):
			t.Errorf("%s: it reads something else, %v", test.sql, err)
		}
	}
}

func refuseMySQL(t *testing.T, b *mysqlBench) {
	for name, test := range map[string]struct {
		change func(*apply.Request)
		code   report.Code
	}{
		"a plan of another digest":          {func(r *apply.Request) { r.ExpectDigest = report.Digest(nil) }, report.CodeInvalidPlan},
		"a plan with a byte changed":        {func(r *apply.Request) { r.Data = r.Data[1:] }, report.CodeInvalidPlan},
		"a protected table":                 {func(r *apply.Request) { r.Protected = []string{"OTHER"} }, report.CodeProtectedTable},
		"a protected table with its schema": {func(r *apply.Request) { r.Protected = []string{b.name + ".other"} }, report.CodeProtectedTable},
		"a plan for PostgreSQL": {func(r *apply.Request) {
			r.Data = bytes.Replace(r.Data, []byte(`"mysql"`), []byte(`"postgresql"`), 1)
		}, report.CodeInvalidPlan},
		"a plan for another version": {func(r *apply.Request) { r.Data = bytes.Replace(r.Data, []byte(`"9.7"`), []byte(`"8.4"`), 1) }, report.CodeServerVersion},
		"a plan in one transaction": {func(r *apply.Request) {
			r.Data = bytes.Replace(r.Data, []byte(`"transactionMode":"none"`), []byte(`"transactionMode":"file"`), 1)
		}, report.CodeTransactionMode},
	} {
		request := b.request()
		test.change(&request)
		out, err := apply.Run(t.Context(), request)
		if err == nil || out.Outcome != report.OutcomeRefused || out.Problem.Code != test.code || out.MutationStarted {
			t.Errorf("%s: %+v %v", name, out, err)
		}
	}
	b.exec("CREATE TRIGGER g BEFORE INSERT ON other FOR EACH ROW SET NEW.id = 1")
	b.plan.FromFingerprint, b.plan.Statements[0] = b.fingerprint(), classify.New(nil, nil).Statement("DROP TRIGGER `g`")
	b.plan.Summarise()
	trigger := b.request()
	trigger.Protected = []string{"other"}
	b.expect(trigger, report.OutcomeRefused, report.CodeProtectedTable, 0)
	b.expect(b.request(), report.OutcomeApplied, "", 1) // the control
	b.plan.FromFingerprint, b.plan.Statements[0] = b.fingerprint(), classify.New(nil, nil).Statement("DROP TABLE `other`")
	b.plan.Summarise()
	request := b.request()
	request.Protected = []string{"t"}
	b.expect(request, report.OutcomeApplied, "", 1) // the control: another table is protected
	b.name = "absent"
	request.Target = b.target()
	out, _ := apply.Run(t.Context(), request)
	if out.Outcome != report.OutcomeFailed || out.MutationStarted {
		t.Errorf("a database that is not there: %+v", out)
	}
	b.socket = "/nonexistent/socket"
	request.Target = b.target()
	b.expect(request, report.OutcomeFailed, report.CodeConnection, 0)
}

func interruptMySQL(t *testing.T, server *scratch.Server) {
	t.Run("should wait for another schema change and give up in time", func(t *testing.T) {
		b := newMySQLBench(t, server, "DO SLEEP(4)", "DROP TABLE `other`")
		second := b.request()
		second.LockTimeout = time.Second
		first := make(chan report.SchemaApply, 1)
		go func() {
			out, _ := apply.Run(context.Background(), b.request())
			first <- out
		}()
		b.sleeping("SLEEP(4)")
		b.expect(second, report.OutcomeFailed, report.CodeLockTimeout, 0)
		if out := <-first; out.Outcome != report.OutcomeApplied {
			t.Errorf("the first apply: %+v", out)
		}
	})

	t.Run("should let nobody read what may still change", func(t *testing.T) {
		b := newMySQLBench(t, server, "DROP TABLE `other`")
		other, err := target.Open(t.Context(), server.Config("app", b.name), 0)
		if err != nil {
			t.Fatal(err)
		}
		defer other.Close()
		if _, _, err := other.Texts(t.Context(), "SELECT GET_LOCK('"+observe.SchemaLock(b.name)+"', 1)"); err != nil {
			t.Fatal(err)
		}
		_, err = b.read()
		if problem := failure.Problem(err); err == nil || problem.Code != report.CodeLockTimeout || !strings.Contains(problem.Message, "would not be final") {
			t.Errorf("a reading while another session holds the lock ended with %v", err)
		}
		if _, _, err := other.Texts(t.Context(), "SELECT RELEASE_LOCK('"+observe.SchemaLock(b.name)+"')"); err != nil {
			t.Fatal(err)
		}
		if _, err := b.read(); err != nil {
			t.Errorf("a reading once the lock is free: %v", err)
		}
	})

	t.Run("should give up a table that somebody else holds", func(t *testing.T) {
		b := newMySQLBench(t, server, "ALTER TABLE `t` ADD COLUMN `x` int")
		holder := b.session()
		if _, err := holder.ExecContext(t.Context(), "LOCK TABLES t READ"); err != nil {
			t.Fatal(err)
		}
		request := b.request()
		request.LockTimeout = time.Second
		b.expect(request, report.OutcomeFailed, report.CodeLockTimeout, 0)
	})

	t.Run("should end a running statement on a signal and say how it ended", func(t *testing.T) {
		b := newMySQLBench(t, server, "ALTER TABLE `t` ADD COLUMN `x` int", "DO SLEEP(60) + BENCHMARK(1, 1)", "DROP TABLE `other`")
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan report.SchemaApply, 1)
		go func() {
			out, _ := apply.Run(ctx, b.request())
			done <- out
		}()
		b.sleeping("SLEEP(60)")
		started := time.Now()
		cancel()
		out := <-done
		if out.Outcome != report.OutcomeFailed || out.Problem.Code != report.CodeCanceled || out.Executed > 2 || out.Executed < 1 || time.Since(started) > 20*time.Second {
			t.Errorf("%+v %+v after %s", out, out.Problem, time.Since(started))
		}
		if !strings.Contains(mustDump(t, b), "`other`") {
			t.Error("a statement ran after the signal")
		}
	})

	t.Run("should call an outcome unknown when an answer is lost", func(t *testing.T) {
		b := newMySQLBench(t, server, "ALTER TABLE `t` ADD COLUMN `x` int")
		b.socket = filepath.Join(cutter(t, server.Socket(), "ADD COLUMN `x`"), filepath.Base(server.Socket()))
		b.expect(b.request(), report.OutcomeUnknown, report.CodeConnection, 0)
		other := newMySQLBench(t, server, "ALTER TABLE `t` ADD COLUMN `x` int")
		other.socket = filepath.Join(cutter(t, server.Socket(), "GET_LOCK"), filepath.Base(server.Socket()))
		other.expect(other.request(), report.OutcomeFailed, report.CodeConnection, 0) // the control: nothing was sent yet
	})
}

func mustDump(t *testing.T, b *mysqlBench) string {
	t.Helper()
	text, err := mysqlCase{server: b.server, name: b.name}.dump(t.Context(), b.name)
	if err != nil {
		t.Fatal(err)
	}
	return text
}
