package command

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/spf13/cobra"

	"ptah.run/ptah/operator/artifact"
	"ptah.run/ptah/operator/executor/postgresql/drift"
	"ptah.run/ptah/operator/executor/postgresql/observe"
	"ptah.run/ptah/operator/executor/postgresql/planner"
	"ptah.run/ptah/operator/executor/postgresql/scratch"
	"ptah.run/ptah/operator/executor/postgresql/target"
	"ptah.run/ptah/operator/plan/report"
)

// databaseFlags are common to the commands that open a database.
type databaseFlags struct {
	schema          string
	urlFile         string
	connectTimeout  time.Duration
	lockTimeout     time.Duration
	exclude         []string
	protected       []string
	transactionMode string
}

// maxURLFile bounds what is read of a file that should hold one URL.
const maxURLFile = 64 << 10

func (f *databaseFlags) add(cmd *cobra.Command, mode string) {
	flags := cmd.Flags()
	flags.StringVar(&f.urlFile, "db-url-file", "", "file with the database URL, instead of PTAH_DB_URL")
	flags.DurationVar(&f.connectTimeout, "connect-timeout", 10*time.Second, "longest time to connect")
	flags.DurationVar(&f.lockTimeout, "lock-timeout", 30*time.Second, "longest wait for one lock in the database")
	flags.StringArrayVar(&f.exclude, "exclude", nil, "object to leave alone: name or schema.name, with * as wildcard; may be repeated")
	flags.StringArrayVar(&f.protected, "protected-table", nil, "table that no plan may touch: name or schema.name; may be repeated")
	flags.StringVar(&f.transactionMode, "transaction-mode", mode, "all: one transaction or refuse; file: one where the statements allow it; none: each statement on its own")
}

func (f *databaseFlags) addSchema(cmd *cobra.Command) {
	cmd.Flags().StringVar(&f.schema, "schema", "", "the declared schema: an SQL file, or a folder of .sql files (PTAH_SCHEMA_DIR)")
}

// check refuses flags that cannot be meant.
func (f *databaseFlags) check(modes ...string) error {
	switch {
	case f.connectTimeout <= 0:
		return usage("--connect-timeout must be longer than nothing")
	case f.lockTimeout <= 0:
		return usage("--lock-timeout must be longer than nothing")
	}
	for _, mode := range modes {
		if f.transactionMode == mode {
			return nil
		}
	}
	return usage("--transaction-mode is %q and must be all, file or none", f.transactionMode)
}

// target reads the database URL.
func (a *app) target(f *databaseFlags) (*target.Target, error) {
	text := a.Getenv("PTAH_DB_URL")
	if f.urlFile != "" {
		info, err := os.Stat(f.urlFile)
		if err != nil || info.Size() > maxURLFile {
			return nil, target.Fail(report.CodeInvalidInput, "the file with the database URL cannot be read or is larger than 64 KiB")
		}
		data, err := os.ReadFile(f.urlFile)
		if err != nil {
			return nil, target.Fail(report.CodeInvalidInput, "the file with the database URL cannot be read")
		}
		text = string(data)
	}
	t, err := target.Parse(text)
	if err != nil {
		return nil, target.Fail(report.CodeInvalidInput, err.Error())
	}
	return t, nil
}

// problem returns what a report says about an error of any of the packages.
func problem(err error) *report.Problem {
	var e *artifact.Error
	if errors.As(err, &e) {
		return artifact.Problem(err)
	}
	return target.Problem(err)
}

// detail returns what lies behind an error. It may name objects, so that write shows it to people only.
func detail(err error) string {
	var e *artifact.Error
	if errors.As(err, &e) {
		return artifact.Detail(err)
	}
	return target.Detail(err)
}

// said is the detail for the kind of reader the command has.
func (a *app) said(err error) string {
	if a.format == "json" {
		return logged(err)
	}
	return detail(err)
}

// logged returns what lies behind an internal failure without what a database said, so that it may stand in the log of
// a Pod: the only place where such a failure can be understood afterwards.
func logged(err error) string {
	var server *pgconn.PgError
	if err == nil || problem(err).Code != report.CodeInternal {
		return ""
	}
	if errors.As(err, &server) {
		return "a scratch server answered with SQLSTATE " + server.Code
	}
	return detail(err)
}

func (a *app) schemaCommand() *cobra.Command {
	return group("schema", "Compare, plan and apply a declared schema", a.schemaPull(), a.schemaDrift(), a.schemaPlan(), a.schemaApply())
}

// observation is a reading of the target beside the files of the declared schema.
type observation struct {
	target *target.Target
	files  []artifact.File
	state  *observe.State
}

func (o *observation) request(f *databaseFlags, getenv func(string) string) planner.Request {
	request := planner.Request{State: o.state, SearchPath: o.target.SearchPath, Exclude: f.exclude, Protected: f.protected,
		Mode: report.TransactionMode(f.transactionMode), Getenv: getenv}
	for _, file := range o.files {
		request.Desired = append(request.Desired, planner.File{Name: file.Name, SQL: string(file.Data)})
	}
	return request
}

// observe reads the declared schema and the target. What is known when it fails is returned, too.
func (a *app) observe(ctx context.Context, f *databaseFlags) (*observation, error) {
	o := &observation{}
	var err error
	if o.target, err = a.target(f); err != nil {
		return o, err
	}
	if o.files, err = artifact.ReadFiles(f.schema); err != nil {
		return o, err
	}
	binaries, err := scratch.Binaries(a.Getenv)
	if err != nil {
		return o, target.Fail(report.CodeInternal, err.Error())
	}
	config, err := o.target.Config(f.connectTimeout)
	if err != nil {
		return o, target.Fail(report.CodeInvalidInput, err.Error())
	}
	conn, err := target.Connect(ctx, config)
	if err != nil {
		return o, err
	}
	defer conn.Close(context.WithoutCancel(ctx))
	o.state, err = observe.Reader{Binaries: binaries, Environment: o.target.Environment(f.connectTimeout), Role: o.target.Role,
		LockTimeout: f.lockTimeout, Exclude: f.exclude}.Read(ctx, conn)
	return o, err
}

func (a *app) schemaDrift() *cobra.Command {
	var f databaseFlags
	cmd := &cobra.Command{
		Use:     "drift --schema DIR",
		Short:   "Count how a database differs from the declared schema",
		Long:    "Count how a database differs from the declared schema, by category. The report holds no names, no SQL and no rows.",
		Example: "  PTAH_DB_URL=postgres://app:secret@db/shop ptah schema drift --schema ./schema",
		Args:    noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := f.checkWithSchema(); err != nil {
				return err
			}
			return a.drift(cmd.Context(), &f)
		},
	}
	f.add(cmd, string(report.TransactionFile))
	f.addSchema(cmd)
	return cmd
}

func (f *databaseFlags) checkWithSchema() error {
	if f.schema == "" {
		return usage("--schema is missing: the declared schema")
	}
	return f.check("all", "file", "none")
}

func (a *app) drift(ctx context.Context, f *databaseFlags) error {
	out := report.Drift{ContractVersion: report.ContractVersion, Outcome: report.OutcomeNoChanges,
		Dialect: report.DialectPostgreSQL, Findings: []report.Finding{}}
	o, err := a.observe(ctx, f)
	if o.target != nil {
		out.TargetIdentity = o.target.Identity()
	}
	if err == nil {
		out.ServerVersion, out.Fingerprint = o.state.Version, o.state.Fingerprint
		var result *planner.Result
		if result, err = planner.Drift(ctx, o.request(f, a.Getenv)); err == nil {
			out.Findings, out.HighestSeverity = result.Findings, drift.Highest(result.Findings)
		}
	}
	switch {
	case err != nil:
		out.Problem = problem(err)
		out.Outcome = outcomeOf(out.Problem)
	case len(out.Findings) > 0:
		out.Outcome = report.OutcomeChanges
	}
	return a.write(out.Outcome, out, out.Problem, a.said(err), func(b *strings.Builder) {
		if len(out.Findings) == 0 {
			fmt.Fprintf(b, "%s PostgreSQL %s holds the declared schema.\n", a.paint(green, "No differences:"), out.ServerVersion)
			return
		}
		fmt.Fprintf(b, "%s\n", a.paint(bold, "The database differs from the declared schema:"))
		a.findings(b, out.Findings)
	})
}
