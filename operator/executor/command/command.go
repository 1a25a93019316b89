// Package command is the command line of ptah. It reads flags, environment and files, calls the packages that do the
// work, and writes one report: as JSON, or as text that says the same. Errors end in one sentence and an exit code.
// It keeps no state and never ends the process.
package command

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"ptah.run/ptah/operator/plan/report"
)

// Exit codes.
const (
	ExitDone    = 0
	ExitFailed  = 1
	ExitUsage   = 2
	ExitRefused = 3
	ExitUnknown = 4
	// ExitDrift says that drift was asked to fail on what it found.
	ExitDrift = 5
)

// Version is the version of this program, which also says whether an earlier proof was made by the same planner. The
// build sets it.
var Version = "dev"

// Streams are what the program reads and writes.
type Streams struct {
	In       io.Reader
	Out, Err io.Writer
	Getenv   func(string) string
	// Terminal says that a person sits at In and Err; Colour and ErrColour that Out and Err show colours.
	Terminal, Colour, ErrColour bool
}

// Coloured says whether an output shows colours: a terminal that can, for a person who has not asked for none.
func Coloured(terminal bool, getenv func(string) string) bool {
	return terminal && getenv("NO_COLOR") == "" && getenv("TERM") != "dumb"
}

// Run runs one command line, without the program's name, and returns the exit code.
func Run(ctx context.Context, args []string, streams Streams) int {
	app := &app{Streams: streams}
	root := app.root()
	root.SetArgs(args)
	root.SetIn(streams.In)
	root.SetOut(streams.Out)
	root.SetErr(streams.Err)
	if ran, err := root.ExecuteContextC(ctx); err != nil {
		// Where nobody can be told, the exit code still says it; so it is wherever this program writes to Err.
		_, _ = fmt.Fprintf(streams.Err, "ptah: %v\n", err)
		var use *usageError
		if errors.As(err, &use) || app.exit == ExitDone {
			_, _ = fmt.Fprintf(streams.Err, "Run \"%s --help\" for how to use it.\n", ran.CommandPath())
			return ExitUsage
		}
	}
	return app.exit
}

type app struct {
	Streams
	format string
	exit   int
}

// usageError is a command line that cannot be meant.
type usageError struct{ message string }

func (e *usageError) Error() string { return e.message }

func usage(format string, args ...any) error { return &usageError{fmt.Sprintf(format, args...)} }

func (a *app) root() *cobra.Command {
	root := &cobra.Command{
		Use:   "ptah",
		Short: "Plan and apply declared database schemas",
		Long: `ptah compares a database with a declared schema and brings it there.

A plan is complete or it is refused: every statement has run on a copy of the
database's schema before it enters the plan, and the copy then equals the
declared schema. The database itself is only read until a plan is applied.

The database is named by the environment variable PTAH_DB_URL or by a file
(--db-url-file), never on the command line, where others could read it.

Exit codes:
  0  done, whether or not there was something to do
  1  failed; what was executed is reported
  2  the command line cannot be meant
  3  refused, and nothing was changed
  4  unknown: something was sent and the answer was lost; read the database
  5  "schema drift --fail-on" found such a difference

Colours are for terminals only; NO_COLOR turns them off.`,
		Example: `  export PTAH_DB_URL='postgres://app:secret@db:5432/shop?sslmode=require'
  ptah schema drift --schema ./schema
  ptah schema plan --schema ./schema --output plan.json
  ptah schema apply --plan plan.json
  ptah oci push oci://registry.example/shop/schema:v1 --schema ./schema`,
		SilenceUsage:      true,
		SilenceErrors:     true,
		Version:           Version,
		CompletionOptions: cobra.CompletionOptions{HiddenDefaultCmd: true},
		PersistentPreRunE: func(cmd *cobra.Command, _ []string) error {
			if err := fromEnvironment(cmd.Flags(), a.Getenv); err != nil {
				return err
			}
			if a.format != "text" && a.format != "json" {
				return usage("--format is %q and must be text or json", a.format)
			}
			return nil
		},
	}
	root.PersistentFlags().StringVarP(&a.format, "format", "o", "text", "what to write: text or json (PTAH_FORMAT)")
	root.SetFlagErrorFunc(func(_ *cobra.Command, err error) error { return usage("%v", err) })
	root.AddCommand(a.schemaCommand(), a.ociCommand(), a.versionCommand())
	return root
}

func (a *app) versionCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "version",
		Short: "Print the version",
		Args:  noArguments,
		Run:   func(*cobra.Command, []string) { _, _ = fmt.Fprintln(a.Out, Version) },
	}
}

// group makes a command that only holds others.
func group(use, short string, children ...*cobra.Command) *cobra.Command {
	c := &cobra.Command{Use: use, Short: short, RunE: func(cmd *cobra.Command, args []string) error {
		if len(args) > 0 {
			return usage("%q is not a command of %s; it has %s", args[0], cmd.CommandPath(), strings.Join(names(children), ", "))
		}
		return usage("%s needs a command: %s", cmd.CommandPath(), strings.Join(names(children), ", "))
	}}
	c.AddCommand(children...)
	return c
}

func names(commands []*cobra.Command) []string {
	var out []string
	for _, c := range commands {
		out = append(out, c.Name())
	}
	return out
}

func noArguments(cmd *cobra.Command, args []string) error {
	if len(args) > 0 {
		return usage("%s does not take the argument %q", cmd.CommandPath(), args[0])
	}
	return nil
}

func oneReference(cmd *cobra.Command, args []string) error {
	if len(args) != 1 {
		return usage("%s takes one artifact reference", cmd.CommandPath())
	}
	return nil
}

// variables are the environment variables that stand for flags. Secrets have no flag.
var variables = map[string]string{
	"schema": "PTAH_SCHEMA_DIR", "format": "PTAH_FORMAT", "connect-timeout": "PTAH_CONNECT_TIMEOUT",
	"lock-timeout": "PTAH_LOCK_TIMEOUT", "exclude": "PTAH_EXCLUDE", "protected-table": "PTAH_PROTECTED_TABLES",
	"transaction-mode": "PTAH_TRANSACTION_MODE", "db-url-file": "PTAH_DB_URL_FILE",
	"oci-username": "PTAH_OCI_USERNAME", "oci-docker-config": "PTAH_OCI_DOCKER_CONFIG", "oci-ca-file": "PTAH_OCI_CA_FILE",
	"oci-plain-http": "PTAH_OCI_PLAIN_HTTP",
}

// fromEnvironment sets flags that the command line does not. A list is a JSON list or a line of
// comma-separated values.
func fromEnvironment(flags *pflag.FlagSet, getenv func(string) string) error {
	var problem error
	flags.VisitAll(func(flag *pflag.Flag) {
		variable, ok := variables[flag.Name]
		if !ok || flag.Changed || getenv(variable) == "" || problem != nil {
			return
		}
		values := []string{getenv(variable)}
		if flag.Value.Type() == "stringArray" {
			if values, problem = listOf(values[0]); problem != nil {
				problem = usage("%s is neither a JSON list nor a line of comma-separated values", variable)
				return
			}
		}
		for _, value := range values {
			if err := flags.Set(flag.Name, value); err != nil {
				problem = usage("%s cannot be used: %v", variable, err)
			}
		}
	})
	return problem
}

// finish sets the exit code for an outcome.
func (a *app) finish(outcome report.Outcome) {
	switch outcome {
	case report.OutcomeRefused:
		a.exit = ExitRefused
	case report.OutcomeFailed:
		a.exit = ExitFailed
	case report.OutcomeUnknown:
		a.exit = ExitUnknown
	default:
		a.exit = ExitDone
	}
}

// refusals are the codes that a command answers with "refused": asking again in the same way changes nothing.
var refusals = []report.Code{report.CodeStalePlan, report.CodeProtectedTable, report.CodeUnsupported, report.CodeInvalidSchema,
	report.CodeInvalidPlan, report.CodeInvalidInput, report.CodeTransactionMode, report.CodeTooLarge, report.CodeServerVersion,
	report.CodePolicy, report.CodeInvalidPolicy, report.CodeInvalidArtifact}

func outcomeOf(problem *report.Problem) report.Outcome {
	if slices.Contains(refusals, problem.Code) {
		return report.OutcomeRefused
	}
	return report.OutcomeFailed
}
