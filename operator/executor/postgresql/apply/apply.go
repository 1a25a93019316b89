// Package apply runs exactly the statements of an approved plan on the database that the plan was computed from.
//
// One session holds the advisory lock and runs the statements. Before the first statement it proves that the database
// is still in the state that the plan starts from, and refuses otherwise with nothing executed. A plan that can share
// one transaction takes effect whole or not at all; otherwise each statement is journalled before and after it runs.
// An outcome is unknown only where a commit or a statement was sent and its answer was lost.
package apply

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgconn/ctxwatch"

	"ptah.run/ptah/operator/executor/journal"
	"ptah.run/ptah/operator/executor/postgresql/classify"
	"ptah.run/ptah/operator/executor/postgresql/dump"
	"ptah.run/ptah/operator/executor/postgresql/observe"
	"ptah.run/ptah/operator/executor/postgresql/planner"
	"ptah.run/ptah/operator/executor/postgresql/target"
	"ptah.run/ptah/operator/executor/rows"
	"ptah.run/ptah/operator/plan/report"
)

// checkInterval lets the server notice a dead client while a statement runs, and end both statement and lock.
const checkInterval = "500ms"

// endLimit bounds the last words with the server: a commit, or a rollback after an interruption.
const endLimit = 30 * time.Second

// unlockLimit bounds the wait for the answer to a lock that is given back.
const unlockLimit = 5 * time.Second

// Request is what to apply and where.
type Request struct {
	Target *target.Target
	// Data are the plan's bytes; ExpectDigest, where it is set, must be their digest.
	Data         []byte
	ExpectDigest string
	Protected    []string
	// Strict refuses a plan that cannot run in one transaction.
	Strict         bool
	DryRun         bool
	ConnectTimeout time.Duration // zero means none
	LockTimeout    time.Duration // for the advisory lock and for each lock of a statement; zero means none
	Binaries       string        // the folder of pg_dump
	// Journal is told of each statement of a plan without a transaction, before and after it runs. It may be nil.
	Journal func(Event) error
}

// Event is one line of the statement journal.
type Event = journal.Event

// Run applies a plan and reports. The error, where there is one, is the detail behind the report's problem.
func Run(ctx context.Context, request Request) (report.SchemaApply, error) {
	r := &run{request: request, out: report.SchemaApply{ContractVersion: report.ContractVersion,
		Outcome: report.OutcomeFailed, Dialect: report.DialectPostgreSQL}}
	if request.Target != nil {
		r.out.TargetIdentity = request.Target.Identity()
	}
	err := r.run(ctx)
	if err != nil {
		r.out.Problem = target.Problem(err)
		switch {
		case r.lost:
			r.out.Outcome = report.OutcomeUnknown
		case refused[r.out.Problem.Code] && r.out.Executed == 0:
			r.out.Outcome = report.OutcomeRefused
		}
	}
	return r.out, err
}

// refused are the codes that say that nothing was executed and that trying again changes nothing.
var refused = map[report.Code]bool{report.CodeStalePlan: true, report.CodeProtectedTable: true, report.CodeInvalidPlan: true,
	report.CodeInvalidInput: true, report.CodeTransactionMode: true, report.CodeServerVersion: true}

type run struct {
	request Request
	plan    *report.Plan
	conn    *pgx.Conn
	out     report.SchemaApply
	// lost says that the answer to something sent did not come.
	lost bool
	// warned is set when the server says that a grant or revocation had no effect.
	warned string
}

func (r *run) run(ctx context.Context) error {
	if err := r.decode(); err != nil {
		return err
	}
	if err := r.connect(ctx); err != nil {
		return err
	}
	defer func() { _ = r.conn.Close(context.WithoutCancel(ctx)) }() // a session that ends has nothing to lose
	if err := r.lock(ctx); err != nil {
		return err
	}
	defer r.unlock(ctx)
	before, err := r.prove(ctx)
	if err != nil {
		return err
	}
	if r.request.DryRun {
		r.out.Outcome = report.OutcomeDryRun
		return nil
	}
	if r.plan.TransactionMode == report.TransactionNone {
		err = r.oneByOne(ctx, before)
	} else {
		err = r.together(ctx, before)
	}
	if err == nil {
		r.out.Outcome = report.OutcomeApplied
	}
	return err
}

func (r *run) decode() error {
	r.out.PlanDigest = report.Digest(r.request.Data)
	if r.request.ExpectDigest != "" && r.request.ExpectDigest != r.out.PlanDigest {
		return target.Fail(report.CodeInvalidPlan, "the plan document does not have the expected digest; it is not the plan that was approved")
	}
	plan, err := report.DecodePlan(r.request.Data)
	if err != nil {
		return target.Fail(report.CodeInvalidPlan, err.Error())
	}
	r.plan = plan
	r.out.Statements = len(plan.Statements)
	switch {
	case plan.Dialect != report.DialectPostgreSQL:
		return target.Fail(report.CodeInvalidPlan, "the plan is for another database engine than the one that the database URL names")
	case plan.ServerMajor != observe.SupportedMajor:
		return target.Fail(report.CodeInvalidPlan, "the plan is for another major version of PostgreSQL; use the executor that computed it")
	case r.request.Strict && plan.TransactionMode == report.TransactionNone:
		return target.Fail(report.CodeTransactionMode, "the plan cannot run in one transaction, which the transaction mode all asks for")
	}
	return nil
}

func (r *run) connect(ctx context.Context) error {
	config, err := r.request.Target.Config(r.request.ConnectTimeout)
	if err != nil {
		return target.Fail(report.CodeInvalidInput, err.Error())
	}
	// A cancelled context asks the server to stop the statement, so that the session lives to roll back and to hear so.
	config.BuildContextWatcherHandler = func(c *pgconn.PgConn) ctxwatch.Handler {
		return &pgconn.CancelRequestContextWatcherHandler{Conn: c, DeadlineDelay: 10 * time.Second}
	}
	config.OnNotice = func(_ *pgconn.PgConn, notice *pgconn.Notice) {
		if notice.Code == "01007" || notice.Code == "01006" { // privilege not granted, not revoked
			r.warned = notice.Code
		}
	}
	r.conn, err = target.Connect(ctx, config)
	if err != nil {
		return err
	}
	settings := planner.Settings + "; SET client_connection_check_interval = '" + checkInterval + "'; SET statement_timeout = 0" +
		fmt.Sprintf("; SET lock_timeout = %d", r.request.LockTimeout.Milliseconds())
	if _, err := r.conn.PgConn().Exec(ctx, settings).ReadAll(); err != nil {
		_ = r.conn.Close(context.WithoutCancel(ctx))
		return target.Statement(ctx, "preparing the session", err)
	}
	return nil
}

func (r *run) lock(ctx context.Context) error {
	if _, err := r.conn.Exec(ctx, "SELECT pg_catalog.pg_advisory_lock($1)", observe.SchemaLock); err != nil {
		return target.Statement(ctx, "waiting for another schema change of this database", err)
	}
	return nil
}

// unlock gives the lock back before the session ends, because a server ends a session some time after its client left and
// the next reading would still see the lock. Where it cannot, the end of the session does.
func (r *run) unlock(ctx context.Context) {
	end, cancel := context.WithTimeout(context.WithoutCancel(ctx), unlockLimit)
	defer cancel()
	_, _ = r.conn.Exec(end, "SELECT pg_catalog.pg_advisory_unlock($1)", observe.SchemaLock)
}

// holdsLock finds out that the backend of this very moment holds the lock. Behind a pooler that hands a session from
// one backend to another it does not, and then the lock protects nothing.
func (r *run) holdsLock(ctx context.Context) error {
	var held bool
	err := r.conn.QueryRow(ctx, `SELECT EXISTS (SELECT 1 FROM pg_catalog.pg_locks WHERE locktype = 'advisory' AND granted
		AND pid = pg_catalog.pg_backend_pid() AND objsubid = 1
		AND ((classid::bigint << 32) | objid::bigint) = $1)`, observe.SchemaLock).Scan(&held)
	if err != nil {
		return target.Statement(ctx, "checking the advisory lock", err)
	}
	if !held {
		return target.Fail(report.CodeInvalidInput, "the session's advisory lock is not held by the backend that runs its statements; connect to the server itself and not through a pooler in transaction mode")
	}
	return nil
}

// prove reads the database and compares it with what the plan starts from.
func (r *run) prove(ctx context.Context) (*catalogState, error) {
	before, err := readCatalog(ctx, r.conn)
	if err != nil {
		return nil, err
	}
	state, err := observe.Reader{Binaries: r.request.Binaries, Environment: r.request.Target.Environment(r.request.ConnectTimeout),
		Role: r.request.Target.Role, LockTimeout: r.request.LockTimeout, Exclude: r.plan.Exclude, Rows: rows.Again(r.plan.ManagedRows)}.Read(ctx, r.conn)
	if err != nil {
		return nil, err
	}
	if state.RowsFingerprint != r.plan.RowsFingerprint {
		return nil, stale("the declared rows are not in the state that the plan was computed from; compute a new plan")
	}
	if state.Fingerprint != r.plan.FromFingerprint {
		return nil, stale("the database is not in the state that the plan was computed from: its schema changed since, or the plan is for another database; compute a new plan")
	}
	if err := r.checkProtected(state); err != nil {
		return nil, err
	}
	after, err := readCatalog(ctx, r.conn)
	if err != nil {
		return nil, err
	}
	if !before.same(after) {
		return nil, stale("somebody changed the schema while it was read; compute a new plan")
	}
	return before, nil
}

func stale(message string) error { return target.Fail(report.CodeStalePlan, message) }

func (r *run) checkProtected(state *observe.State) error {
	patterns, err := dump.ParsePatterns(r.request.Protected, true)
	if err != nil {
		return target.Fail(report.CodeInvalidInput, err.Error())
	}
	classifier := classify.New(state.Entries)
	for _, s := range r.plan.Statements {
		if len(patterns) == 0 {
			return nil
		}
		for _, name := range classifier.Relations(s.SQL) {
			if dump.Match(patterns, name.Schema, name.Name) {
				return target.Fail(report.CodeProtectedTable, "the plan touches a protected table; nothing was executed")
			}
		}
	}
	return nil
}

// lockTables takes the weakest lock on every table whose name stands anywhere in the plan. It lets readers and writers
// through and keeps others from altering, dropping or renaming these tables until this transaction ends.
func (r *run) lockTables(ctx context.Context) error {
	var names []string
	for _, s := range r.plan.Statements {
		tokens := dump.Tokens(s.SQL)
		for i := 0; i+2 < len(tokens); i++ {
			if schema, table := tokens[i], tokens[i+2]; tokens[i+1].Is(".") && isName(schema) && isName(table) {
				names = append(names, dump.Quote(dump.Unquote(schema.Text))+"."+dump.Quote(dump.Unquote(table.Text)))
			}
		}
	}
	slices.Sort(names)
	tables, err := r.existing(ctx, slices.Compact(names))
	if err != nil || len(tables) == 0 {
		return err
	}
	_, err = r.conn.Exec(ctx, "LOCK TABLE "+strings.Join(tables, ", ")+" IN ACCESS SHARE MODE")
	return target.Statement(ctx, "locking the tables", err)
}

// existing returns those of the names, written as SQL, that are tables.
func (r *run) existing(ctx context.Context, names []string) ([]string, error) {
	if len(names) == 0 {
		return nil, nil
	}
	found, err := r.conn.Query(ctx, `SELECT n::text FROM pg_catalog.unnest($1::text[]) n
		JOIN pg_catalog.pg_class c ON c.oid = pg_catalog.to_regclass(n) WHERE c.relkind IN ('r', 'p') ORDER BY 1`, names)
	if err != nil {
		return nil, target.Statement(ctx, "locking the tables", err)
	}
	tables, err := pgx.CollectRows(found, pgx.RowTo[string])
	return tables, target.Statement(ctx, "locking the tables", err)
}

func isName(t dump.Token) bool { return t.Kind == dump.Word || t.Kind == dump.Quoted }

// together runs the plan in one transaction.
//
// The state was proven by pg_dump, which works in a session of its own, so something could come in between. The
// catalogs are read again after the plan's tables are locked: a change before that moment refuses the plan. They are
// read once more before the commit: a row that others wrote meanwhile, new or changed, rolls everything back. What is
// left is that others drop something that is not one of the plan's tables, between the second reading and the commit;
// the reading that follows every apply reports it.
func (r *run) together(ctx context.Context, before *catalogState) error {
	if _, err := r.conn.Exec(ctx, "BEGIN"); err != nil {
		return target.Statement(ctx, "opening the transaction", err)
	}
	err := r.inside(ctx, before)
	if err != nil {
		// Whatever happens to this rollback: without a commit the server keeps nothing.
		end, cancel := context.WithTimeout(context.WithoutCancel(ctx), endLimit)
		defer cancel()
		_, _ = r.conn.Exec(end, "ROLLBACK")
		return err
	}
	return r.commit(ctx)
}

func (r *run) inside(ctx context.Context, before *catalogState) error {
	if err := r.holdsLock(ctx); err != nil {
		return err
	}
	if err := r.lockTables(ctx); err != nil {
		return err
	}
	start, err := readCatalog(ctx, r.conn)
	if err != nil {
		return err
	}
	if !start.same(before) {
		return stale("somebody changed the schema before the first statement; compute a new plan")
	}
	if err := r.holdRows(ctx); err != nil {
		return err
	}
	for i := range r.plan.Statements {
		r.out.MutationStarted = true
		if err := r.execute(ctx, i); err != nil {
			return err
		}
	}
	end, err := readCatalog(ctx, r.conn)
	if err != nil {
		return err
	}
	if end.foreign(start) {
		return stale("somebody changed the schema while the plan ran; everything was rolled back, compute a new plan")
	}
	return nil
}

// execute sends one statement; the server refuses a text that holds two.
func (r *run) execute(ctx context.Context, i int) error {
	r.warned = ""
	s := r.plan.Statements[i]
	result := r.conn.PgConn().ExecParams(ctx, s.SQL, nil, nil, nil, nil).Read()
	err := result.Err
	doing := fmt.Sprintf("running statement %d of %d", i+1, len(r.plan.Statements))
	if err == nil && r.warned != "" {
		return &target.Error{Code: report.CodePermission, SQLState: r.warned,
			Message: "the role may not grant or revoke what a statement says while " + doing}
	}
	if r.changesRow(s) {
		return r.rowResult(ctx, doing, result.CommandTag.RowsAffected(), err)
	}
	return target.Statement(ctx, doing, err)
}

// commit ends the transaction. A commit that was sent is waited for, whatever happens to the command.
func (r *run) commit(ctx context.Context) error {
	end, cancel := context.WithTimeout(context.WithoutCancel(ctx), endLimit)
	defer cancel()
	if ctx.Err() != nil {
		_, _ = r.conn.Exec(end, "ROLLBACK") // nothing stays without a commit
		return target.Fail(report.CodeCanceled, "stopped before the commit; nothing stayed")
	}
	tag, err := r.conn.Exec(end, "COMMIT")
	var server *pgconn.PgError
	switch {
	case err == nil && tag.String() == "COMMIT":
		r.out.Executed = len(r.plan.Statements)
		return nil
	case err == nil:
		return target.Fail(report.CodeStatement, "the server rolled the transaction back at its end")
	case errors.As(err, &server) && !strings.HasPrefix(server.Code, "57") && !strings.HasPrefix(server.Code, "08"):
		return rows.Discreet(target.Statement(end, "committing", err)) // a deferred constraint: the server says that it rolled back
	}
	r.lost = true
	return &target.Error{Code: report.CodeConnection, Detail: err.Error(),
		Message: "the answer to the commit was lost; whether the plan took effect is not known, read the database"}
}

// oneByOne runs each statement on its own. What ran before a failure stays.
func (r *run) oneByOne(ctx context.Context, before *catalogState) error {
	if err := r.holdsLock(ctx); err != nil {
		return err
	}
	start, err := readCatalog(ctx, r.conn)
	if err != nil {
		return err
	}
	if !start.same(before) {
		return stale("somebody changed the schema before the first statement; compute a new plan")
	}
	for i, s := range r.plan.Statements {
		if ctx.Err() != nil {
			return target.Fail(report.CodeCanceled, fmt.Sprintf("stopped after %d of %d statements; those stay", i, len(r.plan.Statements)))
		}
		if err := r.journal(i, s.SQL, journal.Started); err != nil {
			return err
		}
		r.out.MutationStarted = true
		if err := r.execute(ctx, i); err != nil {
			_ = r.journal(i, s.SQL, journal.Failed) // the statement's own error is the one to report
			r.lost = r.answerLost(err)
			return err
		}
		r.out.Executed++
		if err := r.journal(i, s.SQL, journal.Done); err != nil {
			return err
		}
	}
	return nil
}

// answerLost says whether a statement outside a transaction may have run although no answer to it came.
func (r *run) answerLost(err error) bool {
	var e *target.Error
	return errors.As(err, &e) && (e.Code == report.CodeConnection || e.Code == report.CodeCanceled && e.SQLState == "")
}

func (r *run) journal(i int, sql, state string) error {
	if r.request.Journal == nil {
		return nil
	}
	err := r.request.Journal(Event{Statement: i + 1, Of: len(r.plan.Statements), State: state, SHA256: report.Digest([]byte(sql))})
	if err != nil {
		return fmt.Errorf("write the statement journal: %w", err)
	}
	return nil
}
