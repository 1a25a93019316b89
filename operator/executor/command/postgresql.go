package command

import (
	"context"

	"ptah.run/ptah/operator/executor/failure"
	"ptah.run/ptah/operator/executor/findings"
	"ptah.run/ptah/operator/executor/hcl"
	"ptah.run/ptah/operator/executor/postgresql/apply"
	"ptah.run/ptah/operator/executor/postgresql/observe"
	"ptah.run/ptah/operator/executor/postgresql/planner"
	"ptah.run/ptah/operator/executor/postgresql/rowsql"
	"ptah.run/ptah/operator/executor/postgresql/scratch"
	"ptah.run/ptah/operator/executor/postgresql/target"
	"ptah.run/ptah/operator/executor/rows"
	"ptah.run/ptah/operator/plan/report"
)

type postgresqlDatabase struct{ target *target.Target }

func (d postgresqlDatabase) dialect() string  { return report.DialectPostgreSQL }
func (d postgresqlDatabase) product() string  { return "PostgreSQL" }
func (d postgresqlDatabase) identity() string { return d.target.Identity() }

func (d postgresqlDatabase) mode(asked string) (report.TransactionMode, error) {
	if asked == "" {
		return report.TransactionFile, nil
	}
	return report.TransactionMode(asked), nil
}

func (d postgresqlDatabase) observe(ctx context.Context, f *databaseFlags, declared []rows.Declaration, getenv func(string) string) (reading, error) {
	binaries, err := scratch.Binaries(getenv)
	if err != nil {
		return nil, failure.New(report.CodeInternal, err.Error())
	}
	config, err := d.target.Config(f.connectTimeout)
	if err != nil {
		return nil, failure.New(report.CodeInvalidInput, err.Error())
	}
	wanted, err := rows.Of(declared, rowsql.New(d.target.SearchPath))
	if err != nil {
		return nil, err
	}
	conn, err := target.Connect(ctx, config)
	if err != nil {
		return nil, err
	}
	defer func() { _ = conn.Close(context.WithoutCancel(ctx)) }()
	state, err := observe.Reader{Binaries: binaries, Environment: d.target.Environment(f.connectTimeout), Role: d.target.Role,
		LockTimeout: f.lockTimeout, Exclude: f.exclude, Rows: wanted}.Read(ctx, conn)
	if err != nil {
		return nil, err
	}
	return postgresqlReading{state, d.target.SearchPath}, nil
}

func (d postgresqlDatabase) apply(ctx context.Context, request applyRequest, getenv func(string) string) (report.SchemaApply, error) {
	binaries, err := scratch.Binaries(getenv)
	if err != nil {
		return report.SchemaApply{ContractVersion: report.ContractVersion, Dialect: report.DialectPostgreSQL,
			TargetIdentity: d.identity()}, failure.New(report.CodeInternal, err.Error())
	}
	return apply.Run(ctx, apply.Request{Target: d.target, Data: request.data, ExpectDigest: request.expect,
		Protected: request.protected, Strict: request.strict, DryRun: request.dryRun, ConnectTimeout: request.connectTimeout,
		LockTimeout: request.lockTimeout, Binaries: binaries, Journal: request.journal})
}

type postgresqlReading struct {
	state      *observe.State
	searchPath string
}

func (r postgresqlReading) version() string     { return r.state.Version }
func (r postgresqlReading) fingerprint() string { return r.state.Fingerprint }

func (r postgresqlReading) rowsFingerprint() string { return r.state.RowsFingerprint }

func (r postgresqlReading) request(p planRequest) (planner.Request, error) {
	request := planner.Request{State: r.state, SearchPath: r.searchPath, Rows: p.rows, Exclude: p.flags.exclude, Protected: p.flags.protected,
		Mode: p.mode, Getenv: p.getenv}
	pieces, err := desired(p.files, hcl.PostgreSQL)
	for _, one := range pieces {
		request.Desired = append(request.Desired, planner.File{Name: one.name, SQL: one.sql, Place: one.place})
	}
	return request, err
}

func (r postgresqlReading) seen() []report.Finding { return findings.Sort(planner.Seen(r.state)) }

func (r postgresqlReading) drift(ctx context.Context, p planRequest) (planResult, error) {
	request, err := r.request(p)
	if err != nil {
		return planResult{}, err
	}
	return postgresqlResult(planner.Drift(ctx, request))
}

func (r postgresqlReading) plan(ctx context.Context, p planRequest) (planResult, error) {
	request, err := r.request(p)
	if err != nil {
		return planResult{}, err
	}
	return postgresqlResult(planner.Plan(ctx, request))
}

func postgresqlResult(result *planner.Result, err error) (planResult, error) {
	if err != nil {
		return planResult{}, err
	}
	return planResult{result.Findings, result.Differs, result.Document, result.Bytes, result.Managed}, nil
}
