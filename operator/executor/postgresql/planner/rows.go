package planner

import (
	"context"
	"fmt"
	"slices"

	"ptah.run/ptah/operator/executor/findings"
	"ptah.run/ptah/operator/executor/postgresql/classify"
	"ptah.run/ptah/operator/executor/postgresql/dump"
	"ptah.run/ptah/operator/executor/postgresql/rowsql"
	"ptah.run/ptah/operator/executor/postgresql/target"
	"ptah.run/ptah/operator/executor/rows"
	"ptah.run/ptah/operator/plan/report"
)

// compareRows finds how the rows of the target differ from the declared ones, on a copy of the desired schema.
func (p *plan) compareRows(ctx context.Context, result *Result) error {
	if len(p.request.Rows) == 0 {
		return nil
	}
	patterns, err := dump.ParsePatterns(p.request.Exclude, false)
	if err != nil {
		return target.Fail(report.CodeInvalidInput, err.Error())
	}
	stage := &rowStage{plan: p, name: "rows"}
	defer stage.Close()
	session, err := stage.open(ctx)
	if err != nil {
		return err
	}
	p.rows, err = rows.Compare(ctx, rows.Request{Dialect: rowsql.New(p.request.SearchPath), Product: "PostgreSQL", Declarations: p.request.Rows,
		Live: p.request.State.Rows, Exclude: patterns, Session: session})
	if err != nil {
		return err
	}
	result.Findings = findings.Join(result.Findings, p.rows.Findings())
	result.Managed = report.Named(p.rows.Managed())
	return nil
}

// addRows puts the changes of rows behind the other statements, in an order that the server takes, and says which rows
// the plan answers for.
func (p *plan) addRows(ctx context.Context, classifier *classify.Classifier, document *report.Plan) error {
	if p.rows == nil {
		return nil
	}
	document.ManagedRows, document.RowsFingerprint = p.rows.Managed(), p.request.State.RowsFingerprint
	document.ToFingerprint = rows.Fingerprint(document.ToFingerprint, p.rows.Digest())
	if p.rows.Empty() {
		return nil
	}
	together, err := p.rows.Order(ctx, &rowStage{plan: p, name: "roworder"}, document.TransactionMode != report.TransactionNone)
	if err != nil {
		return err
	}
	p.rowsTogether = together
	// PostgreSQL lets nobody use a new label of an enum before the transaction that added it ended.
	if slices.ContainsFunc(document.Statements, func(s report.Statement) bool { return s.Kind == "ALTER TYPE" }) && document.TransactionMode != report.TransactionNone {
		if document.TransactionMode == report.TransactionAll {
			return target.Fail(report.CodeTransactionMode, "a change of a type and changes of rows cannot share one transaction; use the transaction mode file or none, or split the change")
		}
		document.TransactionMode = report.TransactionNone
	}
	document.Statements = append(slices.Clip(document.Statements), p.rows.Statements(classifier.Statement)...)
	return nil
}

// rehearseRows runs the changes of rows in the way in which the plan will.
func (p *plan) rehearseRows(ctx context.Context, mode report.TransactionMode) error {
	if p.rows == nil || p.rows.Empty() {
		return nil
	}
	if mode == report.TransactionNone && p.rowsTogether {
		return target.Fail(report.CodeTransactionMode, "declared rows refer to one another in a circle, which needs one transaction, and other statements of the plan cannot run in one; apply the change of the schema before the rows")
	}
	return p.rows.Rehearse(ctx, &rowStage{plan: p, name: "rowrehearsal"}, mode != report.TransactionNone)
}

// rowStage is a copy of the desired schema in which rows are tried out.
type rowStage struct {
	plan    *plan
	name    string
	session *session
}

func (r *rowStage) open(ctx context.Context) (rowsql.Session, error) {
	p := r.plan
	if err := p.server.Copy(ctx, wantDB, r.name); err != nil {
		return rowsql.Session{}, err
	}
	s, err := open(ctx, p.server, r.name)
	if err != nil {
		return rowsql.Session{}, err
	}
	r.session = s
	if err := s.prepare(ctx); err != nil {
		return rowsql.Session{}, err
	}
	if err := rowsql.Prepare(ctx, s.owner.PgConn(), false); err != nil {
		return rowsql.Session{}, fmt.Errorf("prepare a scratch session: %w", err)
	}
	return rowsql.Session{Conn: s.owner.PgConn()}, nil
}

// Open makes a copy and takes foreign keys away. No trigger and no key is at work where the session acts as a replica,
// which an ordinary role may once it is allowed to; no text of a schema runs any more that could make use of it.
func (r *rowStage) Open(ctx context.Context, without []rows.Foreign) (rows.Session, error) {
	session, err := r.open(ctx)
	if err != nil {
		return nil, err
	}
	for _, f := range without {
		if err := exec(ctx, r.session.owner, "ALTER TABLE "+dump.Quote(f.Schema)+"."+dump.Quote(f.Table)+" DROP CONSTRAINT "+dump.Quote(f.Name)); err != nil {
			return nil, fmt.Errorf("take away a foreign key for the rehearsal of rows: %w", err)
		}
	}
	if err := exec(ctx, r.session.admin, "GRANT SET ON PARAMETER session_replication_role TO "+dump.Quote(r.plan.request.State.Role)); err != nil {
		return nil, fmt.Errorf("prepare the rehearsal of rows: %w", err)
	}
	if err := exec(ctx, r.session.owner, "SET session_replication_role = replica"); err != nil {
		return nil, fmt.Errorf("prepare the rehearsal of rows: %w", err)
	}
	return session, nil
}

// Ready puts triggers and keys to work.
func (r *rowStage) Ready(ctx context.Context) (rows.Session, error) {
	if err := exec(ctx, r.session.owner, "SET session_replication_role = origin"); err != nil {
		return nil, fmt.Errorf("prepare the rehearsal of rows: %w", err)
	}
	if err := exec(ctx, r.session.admin, "REVOKE SET ON PARAMETER session_replication_role FROM "+dump.Quote(r.plan.request.State.Role)); err != nil {
		return nil, fmt.Errorf("prepare the rehearsal of rows: %w", err)
	}
	return rowsql.Session{Conn: r.session.owner.PgConn()}, nil
}

// Close ends the sessions; the copy ends with the server.
func (r *rowStage) Close() {
	if r.session != nil {
		r.session.close(context.Background())
	}
}
