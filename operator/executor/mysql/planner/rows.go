package planner

import (
	"context"
	"fmt"
	"slices"

	"ptah.run/ptah/operator/executor/findings"
	"ptah.run/ptah/operator/executor/mysql/classify"
	"ptah.run/ptah/operator/executor/mysql/dump"
	"ptah.run/ptah/operator/executor/mysql/rowsql"
	"ptah.run/ptah/operator/executor/mysql/sqltext"
	"ptah.run/ptah/operator/executor/mysql/target"
	"ptah.run/ptah/operator/executor/rows"
	"ptah.run/ptah/operator/plan/report"
)

// compareRows finds how the rows of the target differ from the declared ones, in the desired schema.
func (p *plan) compareRows(ctx context.Context, result *Result) error {
	if len(p.request.Rows) == 0 {
		return nil
	}
	patterns, err := p.request.State.Server.Patterns(p.request.Exclude)
	if err != nil {
		return err
	}
	stage := &rowStage{plan: p}
	defer stage.Close()
	if err := stage.rebuild(ctx, p.want, ""); err != nil {
		return err
	}
	session, err := p.server.Owner(ctx)
	if err != nil {
		return fmt.Errorf("open the scratch database: %w", err)
	}
	defer session.Close()
	p.rows, err = rows.Compare(ctx, rows.Request{Dialect: p.request.State.Dialect(), Product: "MySQL", Declarations: p.request.Rows,
		Live: p.request.State.Rows, Exclude: patterns, Session: rowsql.Session{Session: session}})
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
	if _, err := p.rows.Order(ctx, &rowStage{plan: p}, false); err != nil {
		return err
	}
	// Objects that remember the settings of their session leave the session with them.
	settings := sessionSettings{run: func(sql string) error {
		document.Statements = append(document.Statements, classifier.Statement(sql))
		return nil
	}}
	if slices.ContainsFunc(document.Statements, func(s report.Statement) bool { return s.Kind == "SET SESSION" }) {
		settings.once = true // what they are now differs from base
		if err := settings.set(base); err != nil {
			return err
		}
	}
	document.Statements = append(document.Statements, p.rows.Statements(classifier.Statement)...)
	return nil
}

// rehearseRows runs the changes of rows once more.
func (p *plan) rehearseRows(ctx context.Context) error {
	if p.rows == nil || p.rows.Empty() {
		return nil
	}
	return p.rows.Rehearse(ctx, &rowStage{plan: p}, false)
}

// rowStage is the desired schema in the scratch database, in which rows are tried out.
type rowStage struct {
	plan     *plan
	triggers []dump.Entry
	session  *target.Session
}

// rebuild makes the database hold the desired schema, and nothing else uses it as a clone from then on.
func (r *rowStage) rebuild(ctx context.Context, entries []dump.Entry, after string) error {
	r.plan.fresh = false
	if err := r.plan.rebuild(ctx, entries); err != nil {
		return fmt.Errorf("make the desired schema for rows%s: %w", after, err)
	}
	return nil
}

// Open makes the desired schema without its triggers and without some foreign keys, and asks no foreign key.
func (r *rowStage) Open(ctx context.Context, without []rows.Foreign) (rows.Session, error) {
	var entries []dump.Entry
	for _, e := range r.plan.want {
		if e.Kind == dump.KindTrigger {
			r.triggers = append(r.triggers, e)
			continue
		}
		entries = append(entries, e)
	}
	if err := r.rebuild(ctx, entries, " without triggers"); err != nil {
		return nil, err
	}
	statements := []string{"SET SESSION foreign_key_checks = 0"}
	for _, f := range without {
		statements = append(statements, "ALTER TABLE "+sqltext.Quote(f.Table)+" DROP FOREIGN KEY "+sqltext.Quote(f.Name))
	}
	return r.connect(ctx, statements)
}

func (r *rowStage) connect(ctx context.Context, statements []string) (rows.Session, error) {
	r.Close()
	session, err := r.plan.server.Owner(ctx)
	if err != nil {
		return nil, fmt.Errorf("open the scratch database: %w", err)
	}
	r.session = session
	for _, sql := range statements {
		if _, err := session.ExecContext(ctx, sql); err != nil {
			return nil, fmt.Errorf("prepare the rehearsal of rows: %w", err)
		}
	}
	return rowsql.Session{Session: session}, nil
}

// Ready makes the triggers, and opens a session as a plan has it.
func (r *rowStage) Ready(ctx context.Context) (rows.Session, error) {
	run := func(sql string) error {
		_, err := r.session.ExecContext(ctx, sql)
		return err
	}
	if err := createAll(r.triggers, &sessionSettings{run: run}, run); err != nil {
		return nil, fmt.Errorf("make the triggers for the rehearsal of rows: %w", err)
	}
	return r.connect(ctx, nil)
}

// Close ends the session.
func (r *rowStage) Close() {
	if r.session != nil {
		r.session.Close()
		r.session = nil
	}
}
