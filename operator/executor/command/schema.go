package command

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/go-sql-driver/mysql"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/spf13/cobra"

	"ptah.run/ptah/operator/artifact"
	"ptah.run/ptah/operator/executor/failure"
	"ptah.run/ptah/operator/executor/findings"
	"ptah.run/ptah/operator/executor/rows"
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

func (f *databaseFlags) add(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.StringVar(&f.urlFile, "db-url-file", "", "file with the database URL, instead of PTAH_DB_URL (PTAH_DB_URL_FILE)")
	flags.DurationVar(&f.connectTimeout, "connect-timeout", 10*time.Second, "longest time to connect (PTAH_CONNECT_TIMEOUT)")
	flags.DurationVar(&f.lockTimeout, "lock-timeout", 30*time.Second, "longest wait for one lock in the database (PTAH_LOCK_TIMEOUT)")
	flags.StringArrayVar(&f.exclude, "exclude", nil, "object to leave alone: name or schema.name, with * as wildcard; may be repeated (PTAH_EXCLUDE)")
	flags.StringArrayVar(&f.protected, "protected-table", nil, "table that no plan may touch: name or schema.name; may be repeated (PTAH_PROTECTED_TABLES)")
	flags.StringVar(&f.transactionMode, "transaction-mode", "", "all: one transaction or refuse; file: one where the statements allow it; none: each statement on its own; default file for PostgreSQL, none for MySQL, which knows no other (PTAH_TRANSACTION_MODE)")
}

func (f *databaseFlags) addSchema(cmd *cobra.Command) {
	cmd.Flags().StringVar(&f.schema, "schema", "", "the declared schema: an SQL or HCL file, or a folder of .sql, .hcl and .rows.yaml files (PTAH_SCHEMA_DIR)")
}

// check refuses flags that cannot be meant.
func (f *databaseFlags) check() error {
	switch {
	case f.connectTimeout <= 0:
		return usage("--connect-timeout must be longer than nothing")
	case f.lockTimeout <= 0:
		return usage("--lock-timeout must be longer than nothing")
	}
	switch f.transactionMode {
	case "", string(report.TransactionAll), string(report.TransactionFile), string(report.TransactionNone):
		return nil
	}
	return usage("--transaction-mode is %q and must be all, file or none", f.transactionMode)
}

// problem returns what a report says about an error of any of the packages.
func problem(err error) *report.Problem {
	var e *artifact.Error
	if errors.As(err, &e) {
		return artifact.Problem(err)
	}
	return failure.Problem(err)
}

// detail returns what lies behind an error. It may name objects, so that write shows it to people only.
func detail(err error) string {
	var e *artifact.Error
	if errors.As(err, &e) {
		return artifact.Detail(err)
	}
	return failure.Detail(err)
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
	if err == nil || problem(err).Code != report.CodeInternal {
		return ""
	}
	var server *pgconn.PgError
	if errors.As(err, &server) {
		return "a scratch server answered with SQLSTATE " + server.Code
	}
	var other *mysql.MySQLError
	if errors.As(err, &other) {
		return fmt.Sprintf("a scratch server answered with error %d", other.Number)
	}
	return detail(err)
}

func (a *app) schemaCommand() *cobra.Command {
	return group("schema", "Compare, plan and apply a declared schema", a.schemaPull(), a.schemaDrift(), a.schemaPlan(), a.schemaApply())
}

// observation is a reading of the target beside the files of the declared schema.
type observation struct {
	database database
	files    []artifact.File // all of the schema
	sql      []artifact.File
	rows     []rows.Declaration
	mode     report.TransactionMode
	reading  reading
}

func (o *observation) request(f *databaseFlags, getenv func(string) string) planRequest {
	return planRequest{files: o.sql, rows: o.rows, flags: f, mode: o.mode, getenv: getenv}
}

// observe reads the declared schema and the target. What is known when it fails is returned, too.
func (a *app) observe(ctx context.Context, f *databaseFlags) (*observation, error) {
	o := &observation{}
	var err error
	if o.database, err = a.database(f); err != nil {
		return o, err
	}
	if o.mode, err = o.database.mode(f.transactionMode); err != nil {
		return o, err
	}
	if o.files, err = artifact.ReadFiles(f.schema); err != nil {
		return o, err
	}
	if err = o.declared(); err != nil {
		return o, err
	}
	o.reading, err = o.database.observe(ctx, f, o.rows, a.Getenv)
	return o, err
}

// declared tells the files of SQL from those that declare rows, and reads the latter.
func (o *observation) declared() (err error) {
	var files []rows.File
	for _, file := range o.files {
		if rows.Is(file.Name) {
			files = append(files, rows.File{Name: file.Name, Data: file.Data})
			continue
		}
		o.sql = append(o.sql, file)
	}
	o.rows, err = rows.Parse(files)
	return err
}

func (a *app) schemaDrift() *cobra.Command {
	var f databaseFlags
	var failOn string
	cmd := &cobra.Command{
		Use:   "drift --schema DIR",
		Short: "Count how a database differs from the declared schema",
		Long: `Count how a database differs from the declared schema, by category. The report
holds no names, no SQL and no rows, so that it may be shown to anybody; "ptah
schema plan" shows the statements. The database is only read.

Differences are no error: the exit code is 0. With --fail-on it is 5 where there
are some of that severity, for scripts and pipelines.`,
		Example: `  ptah schema drift --schema ./schema
  ptah schema drift --schema ./schema --fail-on destructive -o json`,
		Args: noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := f.checkWithSchema(); err != nil {
				return err
			}
			if failOn != "" && failOn != failOnAll && failOn != failOnDestructive {
				return usage("--fail-on is %q and must be all or destructive", failOn)
			}
			return a.drift(cmd.Context(), &f, failOn)
		},
	}
	f.add(cmd)
	f.addSchema(cmd)
	cmd.Flags().StringVar(&failOn, "fail-on", "", "end with exit code 5 for any difference (all) or for a destructive one (destructive)")
	return cmd
}

func (f *databaseFlags) checkWithSchema() error {
	if f.schema == "" {
		return usage("--schema is missing: the declared schema")
	}
	return f.check()
}

// What drift may be asked to fail on.
const (
	failOnAll         = "all"
	failOnDestructive = "destructive"
)

func (a *app) drift(ctx context.Context, f *databaseFlags, failOn string) error {
	out := report.Drift{ContractVersion: report.ContractVersion, Outcome: report.OutcomeNoChanges,
		Dialect: report.DialectPostgreSQL, Findings: []report.Finding{}}
	var result planResult
	o, err := a.observe(ctx, f)
	if o.database != nil {
		out.Dialect, out.TargetIdentity = o.database.dialect(), o.database.identity()
	}
	if err == nil {
		out.ServerVersion, out.Fingerprint = o.reading.version(), o.reading.fingerprint()
		if result, err = o.reading.drift(ctx, o.request(f, a.Getenv)); err == nil {
			out.Findings, out.HighestSeverity = result.findings, findings.Highest(result.findings)
		}
	}
	switch {
	case err != nil:
		out.Problem = problem(err)
		out.Outcome = outcomeOf(out.Problem)
	case result.differs:
		out.Outcome = report.OutcomeChanges
	}
	defer func() {
		found := failOn == failOnAll && result.differs || failOn == failOnDestructive && out.HighestSeverity == report.SeverityDestructive
		if found && a.exit == ExitDone {
			a.exit = ExitDrift
		}
	}()
	return a.write(out.Outcome, out, out.Problem, a.said(err), func(b *strings.Builder) {
		if !result.differs {
			fmt.Fprintf(b, "%s %s %s holds the declared schema.\n", a.paint(green, "No differences:"), o.database.product(), out.ServerVersion)
			a.beside(b, out.Findings)
			return
		}
		fmt.Fprintf(b, "%s\n", a.paint(bold, "The database differs from the declared schema:"))
		a.findings(b, out.Findings)
	})
}
