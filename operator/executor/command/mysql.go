package command

import (
	"context"

	"ptah.run/ptah/operator/executor/failure"
	"ptah.run/ptah/operator/executor/hcl"
	"ptah.run/ptah/operator/executor/mysql/apply"
	"ptah.run/ptah/operator/executor/mysql/observe"
	"ptah.run/ptah/operator/executor/mysql/planner"
	"ptah.run/ptah/operator/executor/mysql/scratch"
	"ptah.run/ptah/operator/executor/mysql/target"
	"ptah.run/ptah/operator/executor/rows"
	"ptah.run/ptah/operator/plan/report"
)

type mysqlDatabase struct{ target *target.Target }

func (d mysqlDatabase) dialect() string  { return report.DialectMySQL }
func (d mysqlDatabase) product() string  { return "MySQL" }
func (d mysqlDatabase) identity() string { return d.target.Identity() }

func (d mysqlDatabase) mode(asked string) (report.TransactionMode, error) {
	if asked == "" {
		return report.TransactionNone, nil
	}
	return report.TransactionMode(asked), planner.CheckMode(report.TransactionMode(asked))
}

func (d mysqlDatabase) observe(ctx context.Context, f *databaseFlags, declared []rows.Declaration, getenv func(string) string) (reading, error) {
	if _, err := scratch.Program(getenv); err != nil {
		return nil, failure.New(report.CodeInternal, err.Error())
	}
	session, err := target.Connect(ctx, d.target, f.connectTimeout, f.lockTimeout)
	if err != nil {
		return nil, err
	}
	defer session.Close()
	state, err := observe.ReadWith(ctx, session, f.exclude, func(d rows.Dialect) ([]rows.Wanted, error) { return rows.Of(declared, d) })
	if err != nil {
		return nil, err
	}
	return mysqlReading{state}, nil
}

func (d mysqlDatabase) apply(ctx context.Context, request applyRequest, _ func(string) string) (report.SchemaApply, error) {
	return apply.Run(ctx, apply.Request{Target: d.target, Data: request.data, ExpectDigest: request.expect,
		Protected: request.protected, DryRun: request.dryRun, ConnectTimeout: request.connectTimeout,
		LockTimeout: request.lockTimeout, Journal: request.journal})
}

type mysqlReading struct{ state *observe.State }

func (r mysqlReading) version() string     { return r.state.Version }
func (r mysqlReading) fingerprint() string { return r.state.Fingerprint }

func (r mysqlReading) rowsFingerprint() string { return r.state.RowsFingerprint }

func (r mysqlReading) request(p planRequest) (planner.Request, error) {
	request := planner.Request{State: r.state, Rows: p.rows, Exclude: p.flags.exclude, Protected: p.flags.protected, Mode: p.mode, Getenv: p.getenv}
	pieces, err := desired(p.files, func(files []hcl.File) ([]hcl.Statement, error) {
		return hcl.MySQL(files, r.state.Server.Charset, r.state.Server.Collation)
	})
	for _, one := range pieces {
		request.Desired = append(request.Desired, planner.File{Name: one.name, SQL: one.sql, Place: one.place})
	}
	return request, err
}

func (r mysqlReading) seen() []report.Finding { return []report.Finding{} }

func (r mysqlReading) drift(ctx context.Context, p planRequest) (planResult, error) {
	request, err := r.request(p)
	if err != nil {
		return planResult{}, err
	}
	return mysqlResult(planner.Drift(ctx, request))
}

func (r mysqlReading) plan(ctx context.Context, p planRequest) (planResult, error) {
	request, err := r.request(p)
	if err != nil {
		return planResult{}, err
	}
	return mysqlResult(planner.Plan(ctx, request))
}

func mysqlResult(result *planner.Result, err error) (planResult, error) {
	if err != nil {
		return planResult{}, err
	}
	return planResult{result.Findings, len(result.Findings) > 0, result.Document, result.Bytes, result.Managed}, nil
}
