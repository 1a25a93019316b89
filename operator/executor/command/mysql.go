package command

import (
	"context"

	"ptah.run/ptah/operator/executor/failure"
	"ptah.run/ptah/operator/executor/mysql/apply"
	"ptah.run/ptah/operator/executor/mysql/observe"
	"ptah.run/ptah/operator/executor/mysql/planner"
	"ptah.run/ptah/operator/executor/mysql/scratch"
	"ptah.run/ptah/operator/executor/mysql/target"
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

func (d mysqlDatabase) observe(ctx context.Context, f *databaseFlags, getenv func(string) string) (reading, error) {
	if _, err := scratch.Program(getenv); err != nil {
		return nil, failure.New(report.CodeInternal, err.Error())
	}
	session, err := target.Connect(ctx, d.target, f.connectTimeout, f.lockTimeout)
	if err != nil {
		return nil, err
	}
	defer session.Close()
	state, err := observe.Read(ctx, session, f.exclude)
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

func (r mysqlReading) request(p planRequest) planner.Request {
	request := planner.Request{State: r.state, Exclude: p.flags.exclude, Protected: p.flags.protected, Mode: p.mode, Getenv: p.getenv}
	for _, file := range p.files {
		request.Desired = append(request.Desired, planner.File{Name: file.Name, SQL: string(file.Data)})
	}
	return request
}

func (r mysqlReading) seen() []report.Finding { return []report.Finding{} }

func (r mysqlReading) drift(ctx context.Context, p planRequest) (planResult, error) {
	return mysqlResult(planner.Drift(ctx, r.request(p)))
}

func (r mysqlReading) plan(ctx context.Context, p planRequest) (planResult, error) {
	return mysqlResult(planner.Plan(ctx, r.request(p)))
}

func mysqlResult(result *planner.Result, err error) (planResult, error) {
	if err != nil {
		return planResult{}, err
	}
	return planResult{result.Findings, len(result.Findings) > 0, result.Document, result.Bytes}, nil
}
