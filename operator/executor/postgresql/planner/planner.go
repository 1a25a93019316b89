// Package planner computes schema plans for PostgreSQL.
//
// It promises that a plan is complete or does not exist: every statement has run on a clone of the target, in order,
// before it enters the plan, and the clone then holds exactly the objects of the desired schema, which an independent
// reading by pg_dump shows. Whatever is not covered is refused with categories and without names. It never touches
// the target database; what it knows of it is a reading made before.
package planner

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"

	"github.com/jackc/pgx/v5/pgconn"

	"ptah.run/ptah/operator/executor/findings"
	"ptah.run/ptah/operator/executor/postgresql/classify"
	"ptah.run/ptah/operator/executor/postgresql/drift"
	"ptah.run/ptah/operator/executor/postgresql/dump"
	"ptah.run/ptah/operator/executor/postgresql/observe"
	"ptah.run/ptah/operator/executor/postgresql/scratch"
	"ptah.run/ptah/operator/executor/postgresql/target"
	"ptah.run/ptah/operator/executor/rows"
	"ptah.run/ptah/operator/plan/report"
)

// Request is what a plan is computed from.
type Request struct {
	// State is the target as read.
	State *observe.State
	// Desired are the files of the desired schema in the order in which they load.
	Desired []File
	// Rows are the declared rows; the state holds those that the target has.
	Rows []rows.Declaration
	// SearchPath is the owner's search_path while the desired schema loads, or empty.
	SearchPath string
	Exclude    []string
	// Protected are the tables that no plan may touch.
	Protected []string
	Mode      report.TransactionMode
	Getenv    func(string) string
}

// Result is a plan, or the fact that none is needed.
type Result struct {
	// Findings count the differences, and what is seen and not planned.
	Findings []report.Finding
	// Differs says whether the target does not hold what is desired. Another owner alone is no such difference.
	Differs bool
	// Document is the plan and Bytes its one encoding; both are nil where nothing differs.
	Document *report.Plan
	Bytes    []byte
	// Managed are the rows that are declared, without keys.
	Managed []report.ManagedRows
}

// Drift compares the target with the desired schema and plans nothing.
func Drift(ctx context.Context, request Request) (*Result, error) {
	return within(ctx, request, func(ctx context.Context, p *plan) (*Result, error) { return p.findings(ctx) })
}

// Plan computes a plan twice, on two copies of the target's clone, and runs its bytes on a third. The two computations
// share the loaded clone: what could differ between them is the order of maps, of catalog rows and of the library's
// names, and none of that depends on how the clone came to be.
func Plan(ctx context.Context, request Request) (*Result, error) {
	return within(ctx, request, func(ctx context.Context, p *plan) (*Result, error) {
		result, err := p.findings(ctx)
		if err != nil || !result.Differs {
			return result, err
		}
		go classify.Warm() // the parser takes a second to get ready, which passes while the plan is computed
		var statements []string
		if p.schemaDiffers {
			if statements, err = p.computeTwice(ctx); err != nil {
				return nil, err
			}
		}
		return result, p.document(ctx, statements, result)
	})
}

// plan is one computation with its scratch server.
type plan struct {
	request    Request
	server     *scratch.Server
	have, want []dump.Entry
	// schemaDiffers says that statements are needed beside those about rows.
	schemaDiffers bool
	// rows is nil where none are declared.
	rows *rows.Plan
	// rowsTogether says that the changes of rows need one transaction.
	rowsTogether bool
	// onSmall says that the library saw changed tables alone.
	onSmall atomic.Bool
	// unfilled are the materialized views that the desired schema leaves without their rows.
	unfilled map[dump.Key]bool
}

const (
	haveDB = "have"
	wantDB = "want"
)

func within(ctx context.Context, request Request, do func(context.Context, *plan) (*Result, error)) (*Result, error) {
	patterns, err := dump.ParsePatterns(request.Exclude, false)
	if err != nil {
		return nil, target.Fail(report.CodeInvalidInput, err.Error())
	}
	server, err := scratch.Start(ctx, scratch.Options{Owner: request.State.Role, Roles: request.State.Roles,
		Encoding: request.State.Encoding, SearchPath: request.SearchPath, Getenv: request.Getenv})
	if err != nil {
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		return nil, &target.Error{Code: report.CodeInternal, Message: "the scratch server could not be started", Detail: err.Error()}
	}
	defer server.Stop()
	p := &plan{request: request, server: server}
	if err := p.load(ctx, patterns); err != nil {
		return nil, err
	}
	return do(ctx, p)
}

// load brings both sides through the server's own printer: the desired schema is loaded, dumped and loaded again, and
// the target's dump is loaded and dumped again. What the server prints differently on a second reading is then the
// same on both sides. Where the first readings are equal, so are the second ones, and they are spared; with exclusions they
// also show whether what is left stands by itself, and declared rows are compared and rehearsed on copies of both.
func (p *plan) load(ctx context.Context, patterns []dump.Pattern) error {
	var loaded []dump.Entry
	err := p.with(ctx, "desired", func(s *session) (err error) {
		if err := s.loadDesired(ctx, p.request.Desired); err != nil {
			return err
		}
		if p.unfilled, err = s.unfilled(ctx); err != nil {
			return err
		}
		loaded, err = s.dump(ctx)
		return err
	})
	if err != nil {
		return err
	}
	loaded = dump.Exclude(loaded, patterns)
	if len(patterns) == 0 && len(p.request.Rows) == 0 && len(p.request.State.InvalidIndexes) == 0 && len(dump.Compare(p.request.State.Entries, loaded)) == 0 {
		p.have, p.want = loaded, loaded
		return nil
	}
	return p.canonicalBoth(ctx, loaded)
}

func (p *plan) with(ctx context.Context, name string, do func(*session) error) error {
	if err := p.server.Create(ctx, name); err != nil {
		return err
	}
	s, err := open(ctx, p.server, name)
	if err != nil {
		return err
	}
	defer s.close(ctx)
	return do(s)
}

func (p *plan) canonical(ctx context.Context, name string, entries []dump.Entry, what string) (out []dump.Entry, err error) {
	err = p.with(ctx, name, func(s *session) error {
		if err := s.loadEntries(ctx, entries); err != nil {
			if ctx.Err() != nil {
				return ctx.Err()
			}
			var server *pgconn.PgError
			if !errors.As(err, &server) {
				return err
			}
			return &target.Error{Code: report.CodeUnsupported, SQLState: server.Code, Detail: server.Message, Categories: []string{},
				Message: what + " cannot be rebuilt on the scratch server: it uses something that this executor lacks, that only a superuser may make, or that depends on an excluded object"}
		}
		if err := s.fill(ctx, entries); err != nil {
			return err
		}
		out, err = s.dump(ctx)
		return err
	})
	return out, err
}

func (p *plan) findings(ctx context.Context) (*Result, error) {
	result := &Result{Findings: drift.Findings(p.have, p.want)}
	if n := len(p.request.State.InvalidIndexes); n > 0 {
		result.Findings = append(result.Findings, report.Finding{Category: "indexes_invalid", Count: n, Severity: report.SeverityWarning})
	}
	p.schemaDiffers = len(result.Findings) > 0
	if err := p.compareRows(ctx, result); err != nil {
		return nil, err
	}
	result.Differs = len(result.Findings) > 0
	result.Findings = findings.Join(result.Findings, Seen(p.request.State))
	return result, nil
}

// Seen are the findings about a database that no plan can be about, because a declared schema cannot say them.
func Seen(state *observe.State) []report.Finding {
	out := []report.Finding{}
	if state.ForeignOwned > 0 {
		out = append(out, report.Finding{Category: "owners_other", Count: state.ForeignOwned, Severity: report.SeverityWarning})
	}
	if state.Unenforced > 0 {
		out = append(out, report.Finding{Category: "constraints_unenforced", Count: state.Unenforced, Severity: report.SeverityWarning})
	}
	return out
}

// computeTwice returns the statements of the first strategy that has a complete plan.
func (p *plan) computeTwice(ctx context.Context) ([]string, error) {
	strategies := []strategy{byLibrary, byCopies, byEntries}
	var failures []error
	for _, how := range strategies {
		if how == byCopies && !p.onSmall.Load() {
			continue // that is what the library saw already, if anything
		}
		first, second, err := p.computeBoth(ctx, how)
		var other *secondError
		switch {
		case err == nil:
		case ctx.Err() != nil:
			return nil, ctx.Err()
		case errors.As(err, &other) || broken(err):
			return nil, err
		default:
			failures = append(failures, err)
			continue
		}
		if !slices.Equal(first, second) {
			return nil, target.Fail(report.CodeNondeterminism, "two computations of the plan differ; this is a defect of the executor, please report it")
		}
		return first, nil
	}
	return nil, p.refusal(failures)
}

// broken says that an error is about the scratch server itself and says nothing about the strategy: another strategy
// must not be taken because of it, or the same inputs would lead to two plans.
func broken(err error) bool {
	var connect *pgconn.ConnectError
	var server *pgconn.PgError
	switch {
	case errors.As(err, &connect):
		return true
	case errors.As(err, &server):
		class := server.Code[:min(2, len(server.Code))]
		return class == "53" || class == "57" || class == "58" || class == "XX"
	}
	return pgconn.SafeToRetry(err) || pgconn.Timeout(err)
}

func (p *plan) compute(ctx context.Context, how strategy, prefix string) ([]string, error) {
	a := attempt{server: p.server, have: p.have, want: p.want, haveDB: haveDB, wantDB: wantDB, prefix: prefix, how: how, onSmall: &p.onSmall,
		unfilled: p.unfilled}
	// An invalid index is not part of a dump, so the clone has none of them.
	for _, index := range p.request.State.InvalidIndexes {
		a.statements = append(a.statements, "DROP INDEX IF EXISTS "+index)
	}
	return a.compute(ctx)
}

// refusal names the categories of what no strategy could do, or of everything that differs where none got that far.
func (p *plan) refusal(failures []error) error {
	categories := drift.Categories(drift.Findings(p.have, p.want))
	detail := ""
	for _, err := range failures {
		detail += err.Error() + "\n"
		var incomplete *incompleteError
		if errors.As(err, &incomplete) {
			categories = drift.Categories(drift.Findings(incomplete.now, p.want))
			detail += incomplete.first()
		}
	}
	return &target.Error{Code: report.CodeUnsupported, Categories: categories, Detail: detail,
		Message: "no complete plan is known for this change" + reasonOf(failures) + "; make the change in smaller steps or by hand"}
}

// document classifies the statements, fixes the bytes and proves them on a fresh copy.
func (p *plan) document(ctx context.Context, statements []string, result *Result) error {
	if len(statements) == 0 && p.schemaDiffers {
		return fmt.Errorf("the schemas differ and the plan has no statement")
	}
	document := report.Plan{FormatVersion: report.PlanFormatVersion, Dialect: report.DialectPostgreSQL,
		ServerMajor: observe.SupportedMajor, TransactionMode: p.request.Mode,
		FromFingerprint: p.request.State.Fingerprint, ToFingerprint: observe.Fingerprint(p.want, nil, p.request.Exclude),
		Exclude: slices.Clone(p.request.Exclude)}
	classifier := classify.New(p.have)
	for _, sql := range statements {
		document.Statements = append(document.Statements, classifier.Statement(sql))
	}
	ddl := document.Statements
	if err := p.addRows(ctx, classifier, &document); err != nil {
		return err
	}
	document.Summarise()
	if err := p.checkProtected(classifier, document); err != nil {
		return err
	}
	data, err := p.settle(ctx, &document, len(ddl))
	if err != nil {
		return err
	}
	if err := p.rehearseRows(ctx, document.TransactionMode); err != nil {
		return err
	}
	result.Document, result.Bytes = &document, data
	return nil
}

// settle encodes the plan and rehearses its bytes. Mode "all" insists on one transaction; mode "file" takes one where
// the statements allow it and otherwise becomes "none", which the plan then says.
func (p *plan) settle(ctx context.Context, document *report.Plan, ddl int) ([]byte, error) {
	data, err := encode(*document)
	if err != nil {
		return nil, err
	}
	err = p.rehearse(ctx, data, "rehearsal", ddl)
	var server *pgconn.PgError
	switch {
	case err == nil:
		return data, nil
	case !errors.As(err, &server) || broken(err) || document.TransactionMode == report.TransactionNone:
		return nil, err
	case document.TransactionMode == report.TransactionAll:
		return nil, &target.Error{Code: report.CodeTransactionMode, SQLState: server.Code, Detail: server.Message,
			Message: "the statements of this plan cannot share one transaction; use the transaction mode file or none, or split the change"}
	}
	document.TransactionMode = report.TransactionNone
	if data, err = encode(*document); err != nil {
		return nil, err
	}
	return data, p.rehearse(ctx, data, "rehearsal2", ddl)
}

func encode(document report.Plan) ([]byte, error) {
	data, err := report.EncodePlan(document)
	if errors.Is(err, report.ErrPlanTooLarge) {
		return nil, target.Fail(report.CodeTooLarge, report.ErrPlanTooLarge.Error())
	}
	return data, err
}

// checkProtected refuses a plan that differs at a protected table or names one.
func (p *plan) checkProtected(classifier *classify.Classifier, document report.Plan) error {
	patterns, err := dump.ParsePatterns(p.request.Protected, true)
	if err != nil {
		return target.Fail(report.CodeInvalidInput, err.Error())
	}
	if len(patterns) == 0 {
		return nil
	}
	touched := false
	for _, d := range dump.Compare(p.have, p.want) {
		for _, e := range append(slices.Clone(d.From), d.To...) {
			if object, ok := e.Object(); ok {
				schema, name := object.Relation().Plain()
				touched = touched || dump.Match(patterns, schema, name)
			}
		}
	}
	if p.rows != nil {
		for _, table := range p.rows.Tables() {
			touched = touched || dump.Match(patterns, table[0], table[1])
		}
	}
	for _, s := range document.Statements {
		for _, name := range classifier.Relations(s.SQL) {
			touched = touched || dump.Match(patterns, name.Schema, name.Name)
		}
	}
	if touched {
		return target.Fail(report.CodeProtectedTable, "the plan touches a protected table; take the change out of the schema or the table out of the list of protected tables")
	}
	return nil
}

// rehearse decodes the plan's bytes as apply will, runs them on a fresh copy in the plan's own mode, and compares.
// The changes of rows behind the first statements have a rehearsal of their own, where there are rows.
func (p *plan) rehearse(ctx context.Context, data []byte, name string, ddl int) error {
	document, err := report.DecodePlan(data)
	if err != nil {
		return err
	}
	again, err := report.EncodePlan(*document)
	if err != nil || !bytes.Equal(again, data) {
		return errors.New("the plan does not survive being written and read")
	}
	var now []dump.Entry
	err = p.runOn(ctx, name, document.Statements[:ddl], document.TransactionMode != report.TransactionNone, func(s *session) (err error) {
		now, err = s.dump(ctx)
		return err
	})
	if err != nil {
		return fmt.Errorf("rehearse the plan: %w", err)
	}
	if left := dump.Compare(now, p.want); len(left) > 0 {
		return fmt.Errorf("rehearse the plan: %w", &incompleteError{now: now, left: left})
	}
	return nil
}

// runOn runs statements on a fresh copy of the target's clone, in one transaction or each on its own.
func (p *plan) runOn(ctx context.Context, name string, statements []report.Statement, together bool, then func(*session) error) error {
	if err := p.server.Copy(ctx, haveDB, name); err != nil {
		return err
	}
	s, err := open(ctx, p.server, name)
	if err != nil {
		return err
	}
	defer s.close(ctx)
	if err := s.prepare(ctx); err != nil {
		return err
	}
	if err := s.runAll(ctx, statements, together); err != nil {
		return err
	}
	return then(s)
}
