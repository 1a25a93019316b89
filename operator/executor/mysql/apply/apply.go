// Package apply runs exactly the statements of an approved plan on the MySQL database that the plan was computed from.
//
// One session holds the server's named lock and runs the statements. Before the first statement it proves that the
// database is still in the state that the plan starts from, and refuses otherwise with nothing executed. MySQL ends a
// transaction at each statement that changes a schema, so every statement stands for itself and is journalled before and
// after it runs; each takes effect whole or not at all, and what ran before a failure stays. An outcome is unknown where
// a statement was sent and its answer was lost, or where the answer does not say whether it took effect.
package apply

import (
	"context"
	"errors"
	"fmt"
	"time"

	"ptah.run/ptah/operator/executor/failure"
	"ptah.run/ptah/operator/executor/journal"
	"ptah.run/ptah/operator/executor/mysql/classify"
	"ptah.run/ptah/operator/executor/mysql/observe"
	"ptah.run/ptah/operator/executor/mysql/rowsql"
	"ptah.run/ptah/operator/executor/mysql/target"
	"ptah.run/ptah/operator/executor/pattern"
	"ptah.run/ptah/operator/executor/rows"
	"ptah.run/ptah/operator/plan/report"
)

// endLimit bounds the wait for the answer to a statement that was told to stop.
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
	DryRun       bool
	// ConnectTimeout bounds the connection attempt; zero means no bound.
	ConnectTimeout time.Duration
	// LockTimeout is for the named lock and for each lock of a statement, in whole seconds rounded up; zero means the
	// longest that the server knows.
	LockTimeout time.Duration
	// Journal is told of each statement, before and after it runs. It may be nil.
	Journal func(journal.Event) error
}

// Run applies a plan and reports. The error, where there is one, is the detail behind the report's problem.
func Run(ctx context.Context, request Request) (report.SchemaApply, error) {
	r := &run{request: request, out: report.SchemaApply{ContractVersion: report.ContractVersion,
		Outcome: report.OutcomeFailed, Dialect: report.DialectMySQL}}
	if request.Target != nil {
		r.out.TargetIdentity = request.Target.Identity()
	}
	err := r.run(ctx)
	if err != nil {
		r.out.Problem = failure.Problem(err)
		switch {
		case r.lost:
			r.out.Outcome = report.OutcomeUnknown
		case refused[r.out.Problem.Code] && r.out.Executed == 0 && !r.out.MutationStarted:
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
	session *target.Session
	lock    string
	out     report.SchemaApply
	// lost says that the answer to something sent did not come.
	lost bool
}

func (r *run) run(ctx context.Context) error {
	if err := r.decode(); err != nil {
		return err
	}
	session, err := target.Connect(ctx, r.request.Target, r.request.ConnectTimeout, r.request.LockTimeout)
	if err != nil {
		return err
	}
	r.session = session
	defer session.Close()
	if err := r.takeLock(ctx); err != nil {
		return err
	}
	defer r.giveLock(ctx)
	if err := r.prove(ctx); err != nil {
		return err
	}
	if r.request.DryRun {
		r.out.Outcome = report.OutcomeDryRun
		return nil
	}
	if err := r.statements(ctx); err != nil {
		return err
	}
	r.out.Outcome = report.OutcomeApplied
	return nil
}

func (r *run) decode() error {
	r.out.PlanDigest = report.Digest(r.request.Data)
	if r.request.ExpectDigest != "" && r.request.ExpectDigest != r.out.PlanDigest {
		return failure.New(report.CodeInvalidPlan, "the plan document does not have the expected digest; it is not the plan that was approved")
	}
	plan, err := report.DecodePlan(r.request.Data)
	if err != nil {
		return failure.New(report.CodeInvalidPlan, err.Error())
	}
	r.plan = plan
	r.out.Statements = len(plan.Statements)
	switch {
	case plan.Dialect != report.DialectMySQL:
		return failure.New(report.CodeInvalidPlan, "the plan is for another database engine than the one that the database URL names")
	case plan.ServerMajor != observe.SupportedMajor:
		return failure.New(report.CodeServerVersion, "the plan is for another version of MySQL; use the executor that computed it")
	case plan.TransactionMode != report.TransactionNone:
		return failure.New(report.CodeTransactionMode, "the plan asks for a transaction, which MySQL cannot keep; compute a new plan")
	}
	return nil
}

// takeLock takes the named lock of schema changes of this database.
func (r *run) takeLock(ctx context.Context) error {
	const doing = "waiting for another schema change of this database"
	// The server's own spelling of the name: where letter case does not matter, two URLs may lead to one database.
	var database string
	if err := r.session.QueryRowContext(ctx, "SELECT DATABASE()").Scan(&database); err != nil {
		return target.Statement(ctx, doing, err)
	}
	r.lock = observe.SchemaLock(database)
	var got *int64
	if err := r.session.QueryRowContext(ctx, "SELECT GET_LOCK(?, ?)", r.lock, target.Seconds(r.request.LockTimeout)).Scan(&got); err != nil {
		return target.Statement(ctx, doing, err)
	}
	if got == nil || *got != 1 {
		return failure.New(report.CodeLockTimeout, "a lock was not granted in time while "+doing)
	}
	return nil
}

// giveLock gives the lock back before the session ends, because a server ends a session some time after its client left
// and the next reading would still see the lock. Where it cannot, the end of the session does.
func (r *run) giveLock(ctx context.Context) {
	end, cancel := context.WithTimeout(context.WithoutCancel(ctx), unlockLimit)
	defer cancel()
	var given *int64
	_ = r.session.QueryRowContext(end, "SELECT RELEASE_LOCK(?)", r.lock).Scan(&given)
}

// holdsLock finds out that this very connection holds the lock. Behind a proxy that hands a session from one connection
// to another it does not, and then the lock protects nothing and the session's settings may be gone.
func (r *run) holdsLock(ctx context.Context) error {
	var holder *int64
	var id int64
	if err := r.session.QueryRowContext(ctx, "SELECT IS_USED_LOCK(?), CONNECTION_ID()", r.lock).Scan(&holder, &id); err != nil {
		return target.Statement(ctx, "checking the named lock", err)
	}
	if holder == nil || *holder != id || id != r.session.ID {
		return failure.New(report.CodeInvalidInput, "the session's named lock is not held by the connection that runs its statements; connect to the server itself and not through a proxy that shares connections")
	}
	return nil
}

// prove reads the database and compares it with what the plan starts from.
func (r *run) prove(ctx context.Context) error {
	state, err := observe.ReadWith(ctx, r.session, r.plan.Exclude, func(rows.Dialect) ([]rows.Wanted, error) { return rows.Again(r.plan.ManagedRows), nil })
	if err != nil {
		return err
	}
	if state.RowsFingerprint != r.plan.RowsFingerprint {
		return failure.New(report.CodeStalePlan, "the declared rows are not in the state that the plan was computed from; compute a new plan")
	}
	if state.Fingerprint != r.plan.FromFingerprint {
		return failure.New(report.CodeStalePlan, "the database is not in the state that the plan was computed from: its schema changed since, or the plan is for another database; compute a new plan")
	}
	if err := state.CheckAllowed(r.plan.Statements); err != nil {
		return err
	}
	patterns, err := pattern.Parse(r.request.Protected, true)
	if err != nil {
		return failure.New(report.CodeInvalidInput, err.Error())
	}
	if classify.Protected(r.plan.Statements, state.Entries, patterns, state.Database) {
		return failure.New(report.CodeProtectedTable, "the plan touches a protected table; nothing was executed")
	}
	return r.holdsLock(ctx)
}

// statements runs each statement on its own. What ran before a failure stays.
func (r *run) statements(ctx context.Context) error {
	total := len(r.plan.Statements)
	for i, s := range r.plan.Statements {
		if ctx.Err() != nil {
			return failure.New(report.CodeCanceled, fmt.Sprintf("stopped after %d of %d statements; those stay", i, total))
		}
		if err := r.note(i, s.SQL, journal.Started); err != nil {
			return err
		}
		r.out.MutationStarted = true
		if err := r.execute(ctx, i, s); err != nil {
			_ = r.note(i, s.SQL, journal.Failed) // the statement's own error is the one to report
			return err
		}
		r.out.Executed++
		if err := r.note(i, s.SQL, journal.Done); err != nil {
			return err
		}
	}
	return nil
}

// execute sends one statement; the server refuses a text that holds two. A command that is told to stop asks the server
// to end the statement and waits for the answer: a connection that is just cut leaves the statement running and nobody
// to say how it ended.
func (r *run) execute(ctx context.Context, i int, s report.Statement) error {
	doing := fmt.Sprintf("running statement %d of %d", i+1, len(r.plan.Statements))
	work, cut := context.WithCancel(context.WithoutCancel(ctx))
	defer cut()
	answer := make(chan error, 1)
	matched := int64(1) // read behind the answer only
	go func() {
		var err error
		if matched, err = (rowsql.Session{Session: r.session}).Exec(work, s.SQL); !r.changesRow(s) {
			matched = 1
		}
		answer <- err
	}()
	var err error
	select {
	case err = <-answer:
	case <-ctx.Done():
		err = r.interrupt(ctx, answer, cut)
	}
	result := target.Statement(work, doing, err)
	switch {
	case err == nil && matched != 1:
		result = failure.New(report.CodeStalePlan, "a change of a declared row did not reach one row while "+doing+": somebody else changed it, or a trigger keeps it as it is; compute a new plan")
	case r.changesRow(s):
		result = rows.Discreet(result)
	}
	var e *failure.Error
	if !errors.As(result, &e) {
		return result
	}
	r.lost = e.Code == report.CodeConnection || e.Code == report.CodeCanceled && e.SQLState == "" || target.Unsure(err)
	if i > 0 {
		e.Message += "; what the plan ran before it stays"
	}
	return result
}

// interrupt ends the running statement from a second session and returns the statement's own answer.
func (r *run) interrupt(ctx context.Context, answer <-chan error, cut context.CancelFunc) error {
	end, cancel := context.WithTimeout(context.WithoutCancel(ctx), endLimit)
	defer cancel()
	if other, err := target.Connect(end, r.request.Target, r.request.ConnectTimeout, time.Second); err == nil {
		if other.Server == r.session.Server { // elsewhere the number is a stranger's
			_, _ = other.ExecContext(end, fmt.Sprintf("KILL QUERY %d", r.session.ID)) // the answer below says whether it helped
		}
		other.Close()
	}
	select {
	case err := <-answer:
		return err
	case <-end.Done():
		cut()
		return <-answer
	}
}

// changesRow says whether a statement is one of those about managed rows.
func (r *run) changesRow(s report.Statement) bool {
	return len(r.plan.ManagedRows) > 0 && rows.IsChange(s)
}

func (r *run) note(i int, sql, state string) error {
	if r.request.Journal == nil {
		return nil
	}
	err := r.request.Journal(journal.Event{Statement: i + 1, Of: len(r.plan.Statements), State: state, SHA256: report.Digest([]byte(sql))})
	if err != nil {
		return fmt.Errorf("write the statement journal: %w", err)
	}
	return nil
}
