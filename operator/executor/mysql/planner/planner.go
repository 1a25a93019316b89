// Package planner computes schema plans for MySQL.
//
// It promises that a plan is complete or does not exist: every statement has run on a clone of the target, in order,
// before it enters the plan, and the clone then holds exactly the objects of the desired schema. Whatever is not covered
// is refused with categories and without names. It never touches the target database; what it knows of it is a reading
// made before.
package planner

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/go-sql-driver/mysql"

	"ptah.run/ptah/operator/executor/failure"
	"ptah.run/ptah/operator/executor/findings"
	"ptah.run/ptah/operator/executor/mysql/classify"
	"ptah.run/ptah/operator/executor/mysql/drift"
	"ptah.run/ptah/operator/executor/mysql/dump"
	"ptah.run/ptah/operator/executor/mysql/observe"
	"ptah.run/ptah/operator/executor/mysql/scratch"
	"ptah.run/ptah/operator/executor/pattern"
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
	Rows    []rows.Declaration
	Exclude []string
	// Protected are the tables that no plan may touch.
	Protected []string
	// Mode is none: MySQL ends a transaction at every statement that changes a schema. Any other is refused.
	Mode   report.TransactionMode
	Getenv func(string) string
	// Start makes the scratch server, which the planner stops; nil means scratch.Start.
	Start func(context.Context, scratch.Options) (*scratch.Server, error)
}

// File is one file of the desired schema.
type File struct {
	Name string
	SQL  string
	// Place says where in the file the SQL stands, in words of a message, when it is not the file itself: it was made of
	// a declaration there.
	Place string
}

// Result is a plan, or the fact that none is needed.
type Result struct {
	// Findings count the differences; empty means that the target holds what is desired.
	Findings []report.Finding
	// Document is the plan and Bytes its one encoding; both are nil where nothing differs.
	Document *report.Plan
	Bytes    []byte
	// Managed are the rows that are declared, without keys.
	Managed []report.ManagedRows
}

// CheckMode refuses every transaction mode but none.
func CheckMode(mode report.TransactionMode) error {
	if mode != report.TransactionNone {
		return failure.New(report.CodeTransactionMode, "MySQL ends a transaction at each statement that changes a schema, so the transaction mode "+string(mode)+" cannot be kept; use none")
	}
	return nil
}

// Drift compares the target with the desired schema and plans nothing.
func Drift(ctx context.Context, request Request) (*Result, error) {
	return within(ctx, request, func(ctx context.Context, p *plan) (*Result, error) { return p.findings(ctx) })
}

// Plan computes a plan twice, each time on a clone of its own, and runs its bytes on a third.
func Plan(ctx context.Context, request Request) (*Result, error) {
	if err := CheckMode(request.Mode); err != nil {
		return nil, err
	}
	return within(ctx, request, func(ctx context.Context, p *plan) (*Result, error) {
		result, err := p.findings(ctx)
		if err != nil || len(result.Findings) == 0 {
			return result, err
		}
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
	// fresh says that the database holds a clone on which nothing has run.
	fresh bool
	// schemaDiffers says that statements are needed beside those about rows.
	schemaDiffers bool
	// rows is nil where none are declared.
	rows *rows.Plan
}

func within(ctx context.Context, request Request, do func(context.Context, *plan) (*Result, error)) (*Result, error) {
	patterns, err := request.State.Server.Patterns(request.Exclude)
	if err != nil {
		return nil, err
	}
	start := request.Start
	if start == nil {
		start = scratch.Start
	}
	server, err := start(ctx, scratch.Options{User: request.State.User, Database: request.State.Database,
		Server: request.State.Server, Getenv: request.Getenv})
	if err != nil {
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		return nil, &failure.Error{Code: report.CodeInternal, Message: "the scratch server could not be started", Detail: err.Error()}
	}
	defer server.Stop()
	p := &plan{request: request, server: server}
	if err := p.load(ctx, patterns); err != nil {
		return nil, err
	}
	return do(ctx, p)
}

// load brings both sides through the scratch server's own printer: the desired schema is loaded, read and loaded again,
// and what was read of the target is loaded and read again. Where the first readings are equal, nothing differs and the
// rest is spared.
func (p *plan) load(ctx context.Context, patterns []pattern.Pattern) error {
	loaded, err := p.loadDesired(ctx)
	if err != nil {
		return err
	}
	loaded = dump.Exclude(loaded, patterns, p.request.State.Database)
	if len(dump.Compare(p.request.State.Entries, loaded)) == 0 {
		p.have, p.want = loaded, loaded
		return nil
	}
	if p.want, err = p.canonical(ctx, loaded, "the desired schema"); err != nil {
		return err
	}
	if p.have, err = p.canonical(ctx, p.request.State.Entries, "the target"); err != nil {
		return err
	}
	p.fresh = true
	// A routine remembers the database's default collation of the day on which it was made, which a clone cannot show.
	target := dump.Index(p.request.State.Entries)
	for i, e := range p.have {
		p.have[i].Settings.DBCollation = target[e.Key()].Settings.DBCollation
	}
	return nil
}

func (p *plan) findings(ctx context.Context) (*Result, error) {
	result := &Result{Findings: drift.Findings(p.have, p.want)}
	p.schemaDiffers = len(result.Findings) > 0
	return result, p.compareRows(ctx, result)
}

// computeTwice returns the statements of the first strategy that has a complete plan.
func (p *plan) computeTwice(ctx context.Context) ([]string, error) {
	var failures []error
	for _, how := range []strategy{byLibrary, byEntries} {
		first, err := p.compute(ctx, how)
		if err != nil {
			if ctx.Err() != nil {
				return nil, ctx.Err()
			}
			if broken(err) {
				return nil, err
			}
			failures = append(failures, err)
			continue
		}
		second, err := p.compute(ctx, how)
		if err != nil {
			return nil, fmt.Errorf("compute the plan a second time: %w", err)
		}
		if !slices.Equal(first, second) {
			return nil, failure.New(report.CodeNondeterminism, "two computations of the plan differ; this is a defect of the executor, please report it")
		}
		return first, nil
	}
	return nil, p.refusal(failures)
}

// broken says that an error is about the scratch server itself and says nothing about the strategy: another strategy
// must not be taken because of it, or the same inputs would lead to two plans.
func broken(err error) bool {
	var server *mysql.MySQLError
	if errors.As(err, &server) {
		return slices.Contains([]uint16{1021, 1037, 1038, 1041, 1053, 1114, 1317, 1205}, server.Number)
	}
	var incomplete *incompleteError
	var unknown *unplannedError
	return !errors.As(err, &incomplete) && !errors.As(err, &unknown)
}

func (p *plan) compute(ctx context.Context, how strategy) ([]string, error) {
	if err := p.clone(ctx); err != nil {
		return nil, err
	}
	work, err := p.server.Owner(ctx)
	if err != nil {
		return nil, fmt.Errorf("open the clone: %w", err)
	}
	defer work.Close()
	p.fresh = false
	a := attempt{work: work, have: p.have, want: p.want}
	statements, err := a.compute(ctx, how)
	if err != nil {
		return nil, err
	}
	return statements, p.checkReached(ctx)
}

// checkReached compares what the database holds now with what is desired. It reads in a session of its own: the one that
// ran the statements may have a mode under which the server prints in another way.
func (p *plan) checkReached(ctx context.Context) error {
	reader, err := p.server.Owner(ctx)
	if err != nil {
		return fmt.Errorf("open the clone: %w", err)
	}
	defer reader.Close()
	now, err := observe.Dump(ctx, reader)
	if err != nil {
		return err
	}
	if left := dump.Compare(now, p.want); len(left) > 0 {
		return &incompleteError{now, left}
	}
	return nil
}

// refusal names the categories of what no strategy could do, or of everything that differs where none got that far.
func (p *plan) refusal(failures []error) error {
	categories := findings.Categories(drift.Findings(p.have, p.want))
	detail := ""
	for _, err := range failures {
		detail += err.Error() + "\n"
		var incomplete *incompleteError
		if errors.As(err, &incomplete) {
			categories = findings.Categories(drift.Findings(incomplete.now, p.want))
		}
	}
	return &failure.Error{Code: report.CodeUnsupported, Categories: categories, Detail: detail,
		Message: "no complete plan is known for this change; make the change in smaller steps or by hand"}
}

// document classifies the statements, fixes the bytes and proves them on a fresh clone.
func (p *plan) document(ctx context.Context, statements []string, result *Result) error {
	if len(statements) == 0 && p.schemaDiffers {
		return errors.New("the schemas differ and the plan has no statement")
	}
	document := report.Plan{FormatVersion: report.PlanFormatVersion, Dialect: report.DialectMySQL,
		ServerMajor: observe.SupportedMajor, TransactionMode: report.TransactionNone,
		FromFingerprint: p.request.State.Fingerprint,
		ToFingerprint:   observe.Fingerprint(p.want, p.request.State.Server, p.request.Exclude),
		Exclude:         slices.Clone(p.request.Exclude)}
	classifier := classify.New(p.have, p.request.State.Foreign)
	for _, sql := range statements {
		document.Statements = append(document.Statements, classifier.Statement(sql))
	}
	ddl := len(document.Statements)
	if err := p.addRows(ctx, classifier, &document); err != nil {
		return err
	}
	document.Summarise()
	if err := p.checkProtected(document); err != nil {
		return err
	}
	if err := p.request.State.CheckAllowed(document.Statements); err != nil {
		return err
	}
	data, err := report.EncodePlan(document)
	if errors.Is(err, report.ErrPlanTooLarge) {
		return failure.New(report.CodeTooLarge, report.ErrPlanTooLarge.Error())
	}
	if err != nil {
		return err
	}
	if err := p.rehearse(ctx, data, ddl); err != nil {
		return err
	}
	if err := p.rehearseRows(ctx); err != nil {
		return err
	}
	result.Document, result.Bytes = &document, data
	return nil
}

// checkProtected refuses a plan that differs at a protected table or names one.
func (p *plan) checkProtected(document report.Plan) error {
	patterns, err := pattern.Parse(p.request.Protected, true)
	if err != nil {
		return failure.New(report.CodeInvalidInput, err.Error())
	}
	touched := false
	for _, d := range dump.Compare(p.have, p.want) {
		for _, e := range []*dump.Entry{d.From, d.To} {
			switch {
			case e == nil:
			case e.Kind == dump.KindTrigger:
				touched = touched || pattern.Match(patterns, p.request.State.Database, e.On)
			case e.Kind == dump.KindTable:
				touched = touched || pattern.Match(patterns, p.request.State.Database, e.Name)
			}
		}
	}
	if p.rows != nil {
		for _, table := range p.rows.Tables() {
			touched = touched || pattern.Match(patterns, table[0], table[1])
		}
	}
	if touched || classify.Protected(document.Statements, p.have, patterns, p.request.State.Database) {
		return failure.New(report.CodeProtectedTable, "the plan touches a protected table; take the change out of the schema or the table out of the list of protected tables")
	}
	return nil
}

// rehearse decodes the plan's bytes as apply will, runs them on a fresh clone and compares.
// The changes of rows behind the first statements have a rehearsal of their own.
func (p *plan) rehearse(ctx context.Context, data []byte, ddl int) error {
	document, err := report.DecodePlan(data)
	if err != nil {
		return err
	}
	again, err := report.EncodePlan(*document)
	if err != nil || !bytes.Equal(again, data) {
		return errors.New("the plan does not survive being written and read")
	}
	if err := p.clone(ctx); err != nil {
		return err
	}
	p.fresh = false
	work, err := p.server.Owner(ctx)
	if err != nil {
		return fmt.Errorf("open the clone: %w", err)
	}
	defer work.Close()
	for _, s := range document.Statements[:ddl] {
		if _, err := work.ExecContext(ctx, s.SQL); err != nil {
			return fmt.Errorf("rehearse the plan: %w", err)
		}
	}
	return p.checkReached(ctx)
}
