package executor_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"ptah.run/ptah/operator/executor/postgresql/apply"
	"ptah.run/ptah/operator/executor/postgresql/classify"
	"ptah.run/ptah/operator/executor/postgresql/observe"
	"ptah.run/ptah/operator/executor/postgresql/scratch"
	"ptah.run/ptah/operator/executor/postgresql/target"
	"ptah.run/ptah/operator/plan/report"
)

// bench is one database of the target server with a plan for it.
type bench struct {
	t      *testing.T
	server *scratch.Server
	name   string
	socket string // where the plan's session connects; a test may put something in between
	plan   report.Plan
}

var benches atomic.Int32

// newBench makes a database with a table t of two rows and a plan of the given statements for it.
func newBench(t *testing.T, server *scratch.Server, statements ...string) *bench {
	t.Helper()
	b := &bench{t: t, server: server, name: fmt.Sprintf("bench%d", benches.Add(1)), socket: server.Socket()}
	c := caseRun{server: server, name: b.name}
	if err := c.fill(t.Context(), b.name, "CREATE TABLE t (id int PRIMARY KEY, note text); INSERT INTO t VALUES (1, 'a'), (2, 'b'); CREATE TABLE other (id int)"); err != nil {
		t.Fatal(err)
	}
	b.plan = report.Plan{FormatVersion: report.PlanFormatVersion, Dialect: report.DialectPostgreSQL, ServerMajor: observe.SupportedMajor,
		TransactionMode: report.TransactionFile, FromFingerprint: b.fingerprint(), ToFingerprint: report.Digest(nil)}
	classifier := classify.New(nil)
	for _, sql := range statements {
		b.plan.Statements = append(b.plan.Statements, classifier.Statement(sql))
	}
	b.plan.Summarise()
	return b
}

func (b *bench) target() *target.Target {
	b.t.Helper()
	parsed, err := target.Parse("postgres://app:none@/" + b.name + "?host=" + b.socket + "&sslmode=disable")
	if err != nil {
		b.t.Fatal(err)
	}
	return parsed
}

// session opens a connection of somebody else.
func (b *bench) session() *pgx.Conn {
	b.t.Helper()
	conn, err := b.server.Owner(b.t.Context(), b.name)
	if err != nil {
		b.t.Fatal(err)
	}
	b.t.Cleanup(func() { _ = conn.Close(context.Background()) })
	return conn
}

func (b *bench) exec(sql string) {
	b.t.Helper()
	if _, err := b.session().Exec(b.t.Context(), sql); err != nil {
		b.t.Fatal(err)
	}
}

func (b *bench) read() (*observe.State, error) {
	b.t.Helper()
	return observe.Reader{Binaries: b.server.Binaries(), Environment: b.target().Environment(0)}.Read(b.t.Context(), b.session())
}

func (b *bench) fingerprint() string {
	b.t.Helper()
	state, err := b.read()
	if err != nil {
		b.t.Fatal(err, target.Detail(err))
	}
	return state.Fingerprint
}

func (b *bench) request() apply.Request {
	b.t.Helper()
	data, err := report.EncodePlan(b.plan)
	if err != nil {
		b.t.Fatal(err)
	}
	return apply.Request{Target: b.target(), Data: data, Binaries: b.server.Binaries(), LockTimeout: 5 * time.Second, ConnectTimeout: 10 * time.Second}
}

func (b *bench) run(ctx context.Context, request apply.Request) (report.SchemaApply, error) {
	b.t.Helper()
	return apply.Run(ctx, request)
}

// expect applies and checks how it ended.
func (b *bench) expect(request apply.Request, outcome report.Outcome, code report.Code, executed int) report.SchemaApply {
	b.t.Helper()
	out, err := b.run(b.t.Context(), request)
	checkApply(b.t, out, err, outcome, code, executed)
	return out
}

func checkApply(t *testing.T, out report.SchemaApply, err error, outcome report.Outcome, code report.Code, executed int) {
	t.Helper()
	var got report.Code
	if out.Problem != nil {
		got = out.Problem.Code
	}
	if out.Outcome != outcome || got != code || out.Executed != executed || (err == nil) != (code == "") {
		t.Fatalf("outcome %s, code %q, executed %d, error %v: %s", out.Outcome, got, out.Executed, err, target.Detail(err))
	}
}

func TestApply(t *testing.T) {
	server := targetServer(t)

	t.Run("should run every statement and say so", func(t *testing.T) {
		b := newBench(t, server, "ALTER TABLE public.t ADD COLUMN x integer", "CREATE INDEX t_x ON public.t (x)")
		before := b.fingerprint()
		out := b.expect(b.request(), report.OutcomeApplied, "", 2)
		if !out.MutationStarted || out.Statements != 2 || b.fingerprint() == before || out.TargetIdentity != b.target().Identity() {
			t.Errorf("%+v", out)
		}
		b.expect(b.request(), report.OutcomeRefused, report.CodeStalePlan, 0)
	})

	t.Run("should execute nothing in a dry run", func(t *testing.T) {
		b := newBench(t, server, "DROP TABLE public.other")
		request := b.request()
		request.DryRun = true
		before := b.fingerprint()
		if out := b.expect(request, report.OutcomeDryRun, "", 0); out.MutationStarted || b.fingerprint() != before {
			t.Errorf("%+v", out)
		}
	})

	t.Run("should refuse a database that changed since the plan, with nothing executed", func(t *testing.T) {
		for name, change := range map[string]string{
			"a new column":       "ALTER TABLE other ADD COLUMN y int",
			"a comment":          "COMMENT ON TABLE other IS 'x'",
			"a grant":            "GRANT SELECT ON other TO reader",
			"a new table":        "CREATE TABLE more (id int)",
			"a dropped table":    "DROP TABLE other",
			"another function":   "CREATE FUNCTION f() RETURNS int LANGUAGE sql AS 'SELECT 1'",
			"no public schema's": "REVOKE USAGE ON SCHEMA public FROM PUBLIC",
		} {
			b := newBench(t, server, "ALTER TABLE public.t ADD COLUMN x integer")
			b.exec(change)
			before := b.fingerprint()
			out := b.expect(b.request(), report.OutcomeRefused, report.CodeStalePlan, 0)
			if out.MutationStarted || b.fingerprint() != before {
				t.Errorf("%s: %+v", name, out)
			}
		}
	})

	t.Run("should not call a change of rows stale", func(t *testing.T) {
		b := newBench(t, server, "ALTER TABLE public.t ADD COLUMN x integer")
		b.exec("INSERT INTO t VALUES (3, 'c'); TRUNCATE other; ANALYZE t; CREATE TEMPORARY TABLE mine (id int)")
		b.expect(b.request(), report.OutcomeApplied, "", 1)
	})

	t.Run("should roll everything back when a statement fails", func(t *testing.T) {
		b := newBench(t, server, "ALTER TABLE public.t ADD COLUMN x integer", "ALTER TABLE public.t ADD COLUMN y integer NOT NULL")
		before := b.fingerprint()
		out := b.expect(b.request(), report.OutcomeFailed, report.CodeStatement, 0)
		if out.Problem.SQLState != "23502" || b.fingerprint() != before {
			t.Errorf("%+v", out.Problem)
		}
	})

	t.Run("should keep and count what ran before a failure without a transaction", func(t *testing.T) {
		b := newBench(t, server, "ALTER TABLE public.t ADD COLUMN x integer", "ALTER TABLE public.t ADD COLUMN y integer NOT NULL", "DROP TABLE public.other")
		b.plan.TransactionMode = report.TransactionNone
		request := b.request()
		var lines []string
		request.Journal = func(e apply.Event) error {
			lines = append(lines, fmt.Sprintf("%d/%d %s", e.Statement, e.Of, e.State))
			return nil
		}
		b.expect(request, report.OutcomeFailed, report.CodeStatement, 1)
		if want := []string{"1/3 started", "1/3 done", "2/3 started", "2/3 failed"}; !slices.Equal(lines, want) {
			t.Errorf("the journal holds %v", lines)
		}
	})

	t.Run("should not run a statement that the journal does not hold", func(t *testing.T) {
		b := newBench(t, server, "DROP TABLE public.other")
		b.plan.TransactionMode = report.TransactionNone
		request := b.request()
		request.Journal = func(apply.Event) error { return errors.New("the disk is full") }
		before := b.fingerprint()
		b.expect(request, report.OutcomeFailed, report.CodeInternal, 0)
		if b.fingerprint() != before {
			t.Error("the statement ran")
		}
	})

	t.Run("should refuse", func(t *testing.T) {
		b := newBench(t, server, "DROP TABLE public.other")
		for name, test := range map[string]struct {
			change func(*apply.Request)
			code   report.Code
		}{
			"a plan of another digest": {func(r *apply.Request) { r.ExpectDigest = report.Digest(nil) }, report.CodeInvalidPlan},
			"a plan with a byte changed": {func(r *apply.Request) {
				r.Data = bytes.Replace(r.Data, []byte("DROP"), []byte("drop"), 1)
				r.Data = r.Data[1:]
			}, report.CodeInvalidPlan},
			"a protected table":                 {func(r *apply.Request) { r.Protected = []string{"OTHER"} }, report.CodeProtectedTable},
			"a protected table with its schema": {func(r *apply.Request) { r.Protected = []string{"public.other"} }, report.CodeProtectedTable},
		} {
			request := b.request()
			test.change(&request)
			out, err := b.run(t.Context(), request)
			if err == nil || out.Outcome != report.OutcomeRefused || out.Problem.Code != test.code || out.MutationStarted {
				t.Errorf("%s: %+v %v", name, out, err)
			}
		}
		request := b.request()
		request.Protected = []string{"t"}
		b.expect(request, report.OutcomeApplied, "", 1) // the control: another table is protected
	})

	t.Run("should refuse a plan without a transaction where one is asked for", func(t *testing.T) {
		b := newBench(t, server, "DROP TABLE public.other")
		b.plan.TransactionMode = report.TransactionNone
		request := b.request()
		request.Strict = true
		b.expect(request, report.OutcomeRefused, report.CodeTransactionMode, 0)
	})

	t.Run("should wait for another schema change and give up in time", func(t *testing.T) {
		b := newBench(t, server, "SELECT pg_sleep(3)", "DROP TABLE public.other")
		second := b.request()
		second.LockTimeout = 200 * time.Millisecond
		first := make(chan report.SchemaApply, 1)
		go func() {
			out, _ := apply.Run(context.Background(), b.request())
			first <- out
		}()
		b.waitFor("SELECT 1 FROM pg_stat_activity WHERE query LIKE '%pg_sleep(3)%' AND state = 'active' AND pid <> pg_backend_pid() AND datname = current_database()")
		b.expect(second, report.OutcomeFailed, report.CodeLockTimeout, 0)
		if out := <-first; out.Outcome != report.OutcomeApplied {
			t.Errorf("the first apply: %+v", out)
		}
	})

	t.Run("should let nobody read what may still change", func(t *testing.T) {
		b := newBench(t, server, "SELECT pg_sleep(3)", "DROP TABLE public.other")
		first := make(chan report.SchemaApply, 1)
		go func() {
			out, _ := apply.Run(context.Background(), b.request())
			first <- out
		}()
		b.waitFor("SELECT 1 FROM pg_stat_activity WHERE query LIKE '%pg_sleep(3)%' AND state = 'active' AND pid <> pg_backend_pid() AND datname = current_database()")
		_, err := b.read()
		if problem := target.Problem(err); err == nil || problem.Code != report.CodeLockTimeout || !strings.Contains(problem.Message, "would not be final") {
			t.Errorf("a reading during an apply ended with %v", err)
		}
		if out := <-first; out.Outcome != report.OutcomeApplied {
			t.Errorf("the apply: %+v", out)
		}
		if _, err := b.read(); err != nil {
			t.Errorf("a reading after the apply: %v", err)
		}
	})

	t.Run("should give up a table that somebody else holds, with nothing left", func(t *testing.T) {
		b := newBench(t, server, "ALTER TABLE public.t ADD COLUMN x integer")
		holder := b.session()
		if _, err := holder.Exec(t.Context(), "BEGIN; LOCK TABLE t IN SHARE MODE"); err != nil {
			t.Fatal(err)
		}
		request := b.request()
		request.LockTimeout = 200 * time.Millisecond
		b.expect(request, report.OutcomeFailed, report.CodeLockTimeout, 0)
	})

	t.Run("should roll back when others change the schema meanwhile", func(t *testing.T) {
		b := newBench(t, server, "ALTER TABLE public.t ADD COLUMN x integer", "SELECT pg_sleep(2)")
		done := make(chan report.SchemaApply, 1)
		go func() {
			out, _ := apply.Run(context.Background(), b.request())
			done <- out
		}()
		b.waitFor("SELECT 1 FROM pg_stat_activity WHERE query LIKE '%pg_sleep(2)%' AND state = 'active' AND pid <> pg_backend_pid() AND datname = current_database()")
		b.exec("CREATE TABLE meanwhile (id int)")
		out := <-done
		if out.Outcome != report.OutcomeRefused || out.Problem.Code != report.CodeStalePlan || out.Executed != 0 {
			t.Errorf("%+v %+v", out, out.Problem)
		}
	})

	t.Run("should stop on a signal and leave nothing", func(t *testing.T) {
		b := newBench(t, server, "ALTER TABLE public.t ADD COLUMN x integer", "SELECT pg_sleep(60)")
		before := b.fingerprint()
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan report.SchemaApply, 1)
		go func() {
			out, _ := apply.Run(ctx, b.request())
			done <- out
		}()
		b.waitFor("SELECT 1 FROM pg_stat_activity WHERE query LIKE '%pg_sleep(60)%' AND state = 'active' AND pid <> pg_backend_pid() AND datname = current_database()")
		started := time.Now()
		cancel()
		out := <-done
		if out.Outcome != report.OutcomeFailed || out.Problem.Code != report.CodeCanceled || out.Executed != 0 || time.Since(started) > 20*time.Second {
			t.Errorf("%+v %+v after %s", out, out.Problem, time.Since(started))
		}
		if b.fingerprint() != before {
			t.Error("something stayed")
		}
	})

	t.Run("should call an outcome unknown only when the answer to the commit is lost", func(t *testing.T) {
		for lose, want := range map[string]report.Outcome{"COMMIT": report.OutcomeUnknown, "ADD COLUMN x": report.OutcomeFailed} {
			b := newBench(t, server, "ALTER TABLE public.t ADD COLUMN x integer")
			b.socket = cutter(t, filepath.Join(server.Socket(), postgresqlSocket), lose)
			out, err := b.run(t.Context(), b.request())
			if err == nil || out.Outcome != want || out.Problem.Code != report.CodeConnection || out.Executed != 0 {
				t.Errorf("an answer to %s lost: %+v %v", lose, out, err)
			}
		}
		b := newBench(t, server, "ALTER TABLE public.t ADD COLUMN x integer")
		b.plan.TransactionMode = report.TransactionNone
		b.socket = cutter(t, filepath.Join(server.Socket(), postgresqlSocket), "ADD COLUMN x")
		b.expect(b.request(), report.OutcomeUnknown, report.CodeConnection, 0)
	})

	t.Run("should fail when a grant has no effect", func(t *testing.T) {
		b := newBench(t, server, "GRANT USAGE ON SCHEMA pg_catalog TO reader")
		b.expect(b.request(), report.OutcomeFailed, report.CodePermission, 0)
	})

	t.Run("should tell a wrong database name and an unreachable server apart from the rest", func(t *testing.T) {
		b := newBench(t, server, "DROP TABLE public.other")
		request := b.request()
		b.name = "absent"
		request.Target = b.target()
		b.expect(request, report.OutcomeFailed, report.CodeConnection, 0)
		b.socket = "/nonexistent"
		request.Target = b.target()
		b.expect(request, report.OutcomeFailed, report.CodeConnection, 0)
	})
}

// postgresqlSocket is the name of the server's socket in its folder.
const postgresqlSocket = ".s.PGSQL.5432"

// waitFor polls until a query has a row.
func (b *bench) waitFor(sql string) {
	b.t.Helper()
	conn := b.session()
	deadline := time.Now().Add(60 * time.Second)
	for time.Now().Before(deadline) {
		var one int
		if err := conn.QueryRow(b.t.Context(), sql).Scan(&one); err == nil {
			return
		}
		time.Sleep(20 * time.Millisecond)
	}
	b.t.Fatalf("nothing came of %s", sql)
}

// cutter stands between a client and the server's socket. Once the client sends the given text, it passes it on, waits
// until the server has done it, and cuts the connection without passing on the answer.
// Its own socket has the same name in the folder that it returns.
func cutter(t *testing.T, socket, text string) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "cut") //nolint:usetesting // a socket has a path of at most 107 bytes, and the folder of a test a long name
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	listener, err := net.Listen("unix", filepath.Join(dir, filepath.Base(socket)))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = listener.Close() })
	go func() {
		for {
			client, err := listener.Accept()
			if err != nil {
				return
			}
			server, err := net.Dial("unix", socket)
			if err != nil {
				_ = client.Close()
				return
			}
			var cut atomic.Bool
			go func() {
				buffer := make([]byte, 64<<10)
				for {
					n, err := client.Read(buffer)
					if strings.Contains(string(buffer[:n]), text) {
						cut.Store(true)
					}
					if _, writeErr := server.Write(buffer[:n]); err != nil || writeErr != nil {
						_ = server.Close()
						return
					}
				}
			}()
			go func() {
				buffer := make([]byte, 64<<10)
				for {
					n, err := server.Read(buffer)
					if cut.Load() || err != nil {
						_ = client.Close()
						_ = server.Close()
						return
					}
					if _, err := client.Write(buffer[:n]); err != nil {
						return
					}
				}
			}()
		}
	}()
	return dir
}
