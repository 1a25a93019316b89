package executor_test

import (
	"context"
	"embed"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"ptah.run/ptah/operator/executor/postgresql/apply"
	"ptah.run/ptah/operator/executor/postgresql/dump"
	"ptah.run/ptah/operator/executor/postgresql/observe"
	"ptah.run/ptah/operator/executor/postgresql/planner"
	"ptah.run/ptah/operator/executor/postgresql/scratch"
	"ptah.run/ptah/operator/executor/postgresql/target"
	"ptah.run/ptah/operator/plan/report"
)

//go:embed testdata/cases
var cases embed.FS

const postgresqlCases = "testdata/cases/postgresql"

// verdict is how a case ends. The committed baseline may only improve.
type verdict string

const (
	right   verdict = "right"   // applied, planned empty again, and an independent dump shows the desired schema
	refused verdict = "refused" // the planner said that it has no complete plan, and nothing was changed
	silent  verdict = "silent"  // a difference was missed without a word
	failed  verdict = "failed"  // anything else
)

// worth orders verdicts from worst to best.
var worth = []verdict{silent, failed, refused, right}

// targetServer starts a PostgreSQL server that plays the database of a user. Its owner is an ordinary role.
func targetServer(t testing.TB) *scratch.Server {
	t.Helper()
	if _, err := scratch.Binaries(os.Getenv); err != nil {
		if os.Getenv("PTAH_TEST_SERVERS") != "" {
			t.Fatalf("PTAH_TEST_SERVERS asks for a server: %v", err)
		}
		t.Skipf("no PostgreSQL 17 here; TestInContainer runs this test where it is: %v", err)
	}
	server, err := scratch.Start(t.Context(), scratch.Options{Owner: "app", Roles: []string{"app", "probe_app", "reader"},
		Encoding: "UTF8", Getenv: os.Getenv})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(server.Stop)
	return server
}

func TestPostgreSQLCases(t *testing.T) {
	server := targetServer(t)
	names := caseNames(t, postgresqlCases)
	got := map[string]verdict{}
	var mutex sync.Mutex
	started := time.Now()
	// Each case has databases and scratch servers of its own, and mostly waits for them.
	t.Run("case", func(t *testing.T) {
		for i, name := range names {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				c := caseRun{server: server, name: fmt.Sprintf("case%d", i)}
				c.keeps = optional(postgresqlCases, name+".keeps.sql")
				end, why := c.run(t.Context(), read(t, postgresqlCases, name+".old.sql"), desired(t, postgresqlCases, name), strings.HasSuffix(name, "noop"))
				mutex.Lock()
				defer mutex.Unlock()
				got[name] = end
				t.Logf("%s %s", end, why)
			})
		}
	})
	table(t, "PostgreSQL", got, time.Since(started))
	compare(t, postgresqlCases, got)
}

func caseNames(t *testing.T, folder string) []string {
	t.Helper()
	files, err := fs.Glob(cases, folder+"/*.old.sql")
	if err != nil || len(files) == 0 {
		t.Fatalf("no cases: %v", err)
	}
	var names []string
	for _, file := range files {
		names = append(names, strings.TrimSuffix(path.Base(file), ".old.sql"))
	}
	return names
}

func read(t *testing.T, folder, name string) string {
	t.Helper()
	data, err := cases.ReadFile(path.Join(folder, name))
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

// optional returns a file that a case may have, or nothing.
func optional(folder, name string) string {
	data, _ := cases.ReadFile(path.Join(folder, name)) // absent is an answer
	return string(data)
}

// desired is what a case wants; a case without a file of its own wants no change.
func desired(t *testing.T, folder, name string) string {
	t.Helper()
	if data, err := cases.ReadFile(path.Join(folder, name+".new.sql")); err == nil {
		return string(data)
	}
	return read(t, folder, name+".old.sql")
}

func table(t *testing.T, engine string, got map[string]verdict, took time.Duration) {
	t.Helper()
	count := map[verdict]int{}
	for _, v := range got {
		count[v]++
	}
	t.Logf("%s cases: %d, right %d, refused %d, silent %d, failed %d, in %.0f s",
		engine, len(got), count[right], count[refused], count[silent], count[failed], took.Seconds())
	if count[silent] > 0 {
		t.Errorf("%d differences were missed in silence; there must never be one", count[silent])
	}
}

// compare holds the verdicts against the committed baseline: each case at least as good, none missing.
func compare(t *testing.T, folder string, got map[string]verdict) {
	t.Helper()
	data, err := cases.ReadFile(folder + ".baseline.json")
	if err != nil {
		t.Fatal(err)
	}
	var baseline map[string]verdict
	if err := json.Unmarshal(data, &baseline); err != nil {
		t.Fatal(err)
	}
	for name, was := range baseline {
		now, ran := got[name]
		if !ran || slices.Index(worth, now) < slices.Index(worth, was) {
			t.Errorf("case %s was %s and is now %q", name, was, now)
		}
	}
	for name, now := range got {
		if was := baseline[name]; was != now {
			t.Logf("baseline: %q: %q (was %q)", name, now, was)
		}
		if _, known := baseline[name]; !known {
			t.Errorf("case %s is not in the baseline; add it as %q", name, now)
		}
	}
}

// caseRun is one case on one database of the target server.
type caseRun struct {
	server *scratch.Server
	name   string
	// keeps is a query whose answer a plan must not change: it reads the rows that should survive.
	keeps string
}

func (c caseRun) run(ctx context.Context, old, want string, noop bool) (verdict, string) {
	if err := c.fill(ctx, c.name, old); err != nil {
		return failed, "load the old state: " + err.Error()
	}
	if err := c.fill(ctx, c.name+"truth", want); err != nil {
		return failed, "load the truth: " + err.Error()
	}
	rows, err := c.rows(ctx)
	if err != nil {
		return failed, "read the rows to keep: " + err.Error()
	}
	result, err := c.plan(ctx, want)
	var problem *target.Error
	if errors.As(err, &problem) && problem.Code == report.CodeUnsupported && len(problem.Categories) > 0 {
		return refused, strings.Join(problem.Categories, ",") + ": " + problem.Detail
	}
	if err != nil {
		return failed, "plan: " + err.Error() + " " + target.Detail(err)
	}
	if noop && result.Document != nil {
		return failed, "a plan for nothing"
	}
	if result.Document != nil {
		if v, why := c.apply(ctx, result.Bytes); v != right {
			return v, why
		}
	}
	if kept, err := c.rows(ctx); err != nil || kept != rows {
		return failed, fmt.Sprintf("rows are not what they were: %v\n%s\n%s", err, rows, kept)
	}
	return c.judge(ctx, want)
}

// rows answers the query about the rows that should survive.
func (c caseRun) rows(ctx context.Context) (string, error) {
	if c.keeps == "" {
		return "", nil
	}
	owner, err := c.server.Owner(ctx, c.name)
	if err != nil {
		return "", err
	}
	defer func() { _ = owner.Close(ctx) }()
	var rows string
	query := strings.TrimSuffix(strings.TrimSpace(c.keeps), ";")
	err = owner.QueryRow(ctx, "SELECT coalesce(json_agg(k)::text, '') FROM ("+query+") k").Scan(&rows)
	return rows, err
}

// fill makes a database and loads SQL into it as its owner would by hand; extensions by the administrator.
func (c caseRun) fill(ctx context.Context, name, sql string) error {
	if err := c.server.Create(ctx, name); err != nil {
		return err
	}
	owner, err := c.server.Owner(ctx, name)
	if err != nil {
		return err
	}
	defer func() { _ = owner.Close(ctx) }()
	for _, statement := range dump.Split(sql) {
		_, err := owner.PgConn().Exec(ctx, statement).ReadAll()
		if err != nil && strings.HasPrefix(strings.ToUpper(statement), "CREATE EXTENSION") {
			err = c.administer(ctx, name, statement) // not every extension is a trusted one
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (c caseRun) administer(ctx context.Context, name, statement string) error {
	admin, err := c.server.Admin(ctx, name)
	if err != nil {
		return err
	}
	defer func() { _ = admin.Close(ctx) }()
	_, err = admin.PgConn().Exec(ctx, statement).ReadAll()
	return err
}

func (c caseRun) target() (*target.Target, error) {
	return target.Parse("postgres://app:none@/" + c.name + "?host=" + c.server.Socket() + "&sslmode=disable")
}

func (c caseRun) plan(ctx context.Context, want string) (*planner.Result, error) {
	state, err := c.read(ctx)
	if err != nil {
		return nil, err
	}
	return planner.Plan(ctx, planner.Request{State: state, Desired: []planner.File{{Name: "desired.sql", SQL: want}},
		Mode: report.TransactionFile, Getenv: os.Getenv})
}

// read is all that a refresh does where the database is as it was last proven to be.
func (c caseRun) read(ctx context.Context) (*observe.State, error) {
	t, err := c.target()
	if err != nil {
		return nil, err
	}
	config, err := t.Config(0)
	if err != nil {
		return nil, err
	}
	conn, err := target.Connect(ctx, config)
	if err != nil {
		return nil, err
	}
	defer func() { _ = conn.Close(ctx) }()
	return observe.Reader{Binaries: c.server.Binaries(), Environment: t.Environment(0)}.Read(ctx, conn)
}

func (c caseRun) apply(ctx context.Context, data []byte) (verdict, string) {
	t, err := c.target()
	if err != nil {
		return failed, err.Error()
	}
	out, err := apply.Run(ctx, apply.Request{Target: t, Data: data, ExpectDigest: report.Digest(data), Binaries: c.server.Binaries(),
		LockTimeout: 10 * time.Second})
	if err != nil || out.Outcome != report.OutcomeApplied {
		return failed, fmt.Sprintf("apply: %s: %v %s", out.Outcome, err, target.Detail(err))
	}
	return right, ""
}

// judge plans once more and compares the database with one that was loaded from the desired schema alone.
func (c caseRun) judge(ctx context.Context, want string) (verdict, string) {
	rest, err := c.plan(ctx, want)
	if err != nil {
		return failed, "plan again: " + err.Error() + " " + target.Detail(err)
	}
	if rest.Document != nil {
		return failed, "the second plan is not empty"
	}
	now, err := c.plain(ctx, c.name)
	if err != nil {
		return failed, err.Error()
	}
	filled := map[string]string{} // pg_dump does not show it
	truth, err := c.plain(ctx, c.name+"truth")
	if err != nil {
		return failed, err.Error()
	}
	for _, name := range []string{c.name, c.name + "truth"} {
		if filled[name], err = c.filled(ctx, name); err != nil {
			return failed, err.Error()
		}
	}
	if filled[c.name] != filled[c.name+"truth"] {
		return silent, "materialized views with rows: " + filled[c.name] + ", which should be " + filled[c.name+"truth"]
	}
	left := dump.Compare(now, truth)
	if len(left) == 0 {
		return right, ""
	}
	// PostgreSQL prints some expressions in another way once its own text was read again; then both sides are brought
	// through that before they are compared.
	same, err := c.sameReloaded(ctx, now, truth)
	if err != nil {
		return failed, err.Error()
	}
	if same {
		return right, "after a reload"
	}
	return silent, fmt.Sprintf("%d differences, first %v", len(left), left[0].Key)
}

// filled lists the materialized views that can be read.
func (c caseRun) filled(ctx context.Context, name string) (string, error) {
	admin, err := c.server.Admin(ctx, name)
	if err != nil {
		return "", err
	}
	defer func() { _ = admin.Close(ctx) }()
	var list string
	err = admin.QueryRow(ctx, `SELECT coalesce(string_agg(relname, ', ' ORDER BY oid::regclass::text), 'none')
		FROM pg_class WHERE relkind = 'm' AND relispopulated`).Scan(&list)
	return list, err
}

func (c caseRun) plain(ctx context.Context, name string) ([]dump.Entry, error) {
	admin, err := c.server.Admin(ctx, name)
	if err != nil {
		return nil, err
	}
	defer func() { _ = admin.Close(ctx) }()
	return observe.Dump(ctx, admin, c.server.Binaries(), c.server.Environment(name))
}

func (c caseRun) sameReloaded(ctx context.Context, a, b []dump.Entry) (bool, error) {
	var sides [2][]dump.Entry
	for i, entries := range [][]dump.Entry{a, b} {
		name := fmt.Sprintf("%sreload%d", c.name, i)
		sql := "SET check_function_bodies = off;\n"
		for _, e := range entries {
			if e.Type != "SCHEMA" || e.Name != "public" {
				sql += e.SQL()
			}
		}
		if err := c.fill(ctx, name, sql); err != nil {
			return false, err
		}
		var err error
		if sides[i], err = c.plain(ctx, name); err != nil {
			return false, err
		}
	}
	return len(dump.Compare(sides[0], sides[1])) == 0, nil
}
