package command

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"ptah.run/ptah/operator/executor/failure"
	"ptah.run/ptah/operator/executor/journal"
	"ptah.run/ptah/operator/plan/report"
)

type applyFlags struct {
	plan, expect, journal string
	approve, dryRun       bool
}

func (a *app) schemaApply() *cobra.Command {
	var f databaseFlags
	var p applyFlags
	cmd := &cobra.Command{
		Use:   "apply --plan FILE",
		Short: "Run exactly the statements of a plan",
		Long: `Run exactly the statements of a plan, if the database is still in the state that
the plan starts from; otherwise refuse it with nothing executed.

Without --auto-approve the plan is shown and a person at a terminal is asked.

A plan is bound to the state that it was computed from and to the bytes of its
document. It is refused when the schema changed since, by whomever, and on a
database that holds anything else. Exit code 4 says that the answer of the
database was lost: read it with "ptah schema drift" before anything else.`,
		Example: `  ptah schema apply --plan plan.json
  ptah schema apply --plan plan.json --dry-run
  ptah schema apply --plan plan.json --auto-approve --journal plan.journal -o json`,
		Args: noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			switch {
			case p.plan == "":
				return usage("--plan is missing: the file with the plan document")
			case p.expect != "" && !report.IsDigest(p.expect):
				return usage("--expect-digest takes a sha256 digest")
			case p.dryRun && p.approve:
				return usage("--dry-run and --auto-approve exclude each other")
			case !p.dryRun && !p.approve && !a.Terminal:
				return usage("without a terminal to ask at, apply needs --auto-approve or --dry-run")
			}
			if err := f.check(); err != nil {
				return err
			}
			return a.apply(cmd.Context(), &f, &p)
		},
	}
	f.add(cmd)
	flags := cmd.Flags()
	flags.StringVar(&p.plan, "plan", "", "file with the plan document")
	flags.StringVar(&p.expect, "expect-digest", "", "digest that the plan document must have")
	flags.StringVar(&p.journal, "journal", "", "file to append a line to before and after each statement of a plan without a transaction")
	flags.BoolVar(&p.approve, "auto-approve", false, "do not ask")
	flags.BoolVar(&p.dryRun, "dry-run", false, "check that the plan could start now, and run nothing")
	flags.Lookup("transaction-mode").Usage = "the plan says how it runs; all refuses one that is not a single transaction; MySQL knows none only"
	return cmd
}

func (a *app) apply(ctx context.Context, f *databaseFlags, p *applyFlags) error {
	out := report.SchemaApply{ContractVersion: report.ContractVersion, Dialect: report.DialectPostgreSQL}
	d, request, finish, err := a.applyRequest(f, p)
	if d != nil {
		out.Dialect, out.TargetIdentity = d.dialect(), d.identity()
	}
	if err == nil {
		defer finish()
		if err = a.ask(ctx, request, p); err == nil {
			out, err = d.apply(ctx, request, a.Getenv)
		}
	}
	if err != nil && out.Problem == nil {
		out.Problem = problem(err)
		out.Outcome = outcomeOf(out.Problem)
	}
	return a.write(out.Outcome, out, out.Problem, a.said(err), func(b *strings.Builder) {
		if out.Outcome == report.OutcomeDryRun {
			fmt.Fprintf(b, "%s the plan could run now; nothing was executed.\n", a.paint(green, "Checked:"))
			return
		}
		fmt.Fprintf(b, "%s %d %s.\n", a.paint(green, "Applied:"), out.Executed, plural(out.Executed, "statement"))
	})
}

// applyRequest reads what an apply needs. The returned function closes the journal.
func (a *app) applyRequest(f *databaseFlags, p *applyFlags) (database, applyRequest, func(), error) {
	nothing := func() {}
	d, err := a.database(f)
	if err != nil {
		return nil, applyRequest{}, nothing, err
	}
	if _, err := d.mode(f.transactionMode); err != nil {
		return d, applyRequest{}, nothing, err
	}
	data, err := readPlan(p.plan)
	if err != nil {
		return d, applyRequest{}, nothing, err
	}
	request := applyRequest{data: data, expect: p.expect, protected: f.protected, strict: f.transactionMode == string(report.TransactionAll),
		dryRun: p.dryRun, connectTimeout: f.connectTimeout, lockTimeout: f.lockTimeout}
	if p.journal == "" {
		return d, request, nothing, nil
	}
	file, err := os.OpenFile(filepath.Clean(p.journal), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return d, applyRequest{}, nothing, unreadable("the journal file", p.journal, err)
	}
	request.journal = func(event journal.Event) error {
		// A line that is not on disk before its statement runs would say nothing after a crash.
		return errors.Join(json.NewEncoder(file).Encode(event), file.Sync())
	}
	return d, request, func() { _ = file.Close() }, nil // every line was synced
}

func readPlan(path string) ([]byte, error) {
	file, err := os.Open(filepath.Clean(path))
	if err != nil {
		return nil, unreadable("the plan document", path, err)
	}
	defer func() { _ = file.Close() }()
	data, err := io.ReadAll(io.LimitReader(file, report.MaxPlanBytes+1))
	if err != nil {
		return nil, unreadable("the plan document", path, err)
	}
	return data, nil
}

// ask shows the plan to the person at the terminal and waits for one word.
func (a *app) ask(ctx context.Context, request applyRequest, p *applyFlags) error {
	if p.approve || p.dryRun {
		return nil
	}
	plan, err := report.DecodePlan(request.data)
	if err != nil {
		return failure.New(report.CodeInvalidPlan, err.Error())
	}
	var b strings.Builder
	painter(a.ErrColour).statements(&b, plan)
	_, _ = fmt.Fprintf(a.Err, "%sPlan %s\nWrite \"yes\" to run it: ", b.String(), report.Digest(request.data))
	answer := make(chan string, 1)
	go func() {
		line, _ := bufio.NewReader(a.In).ReadString('\n') // the end of the input is an answer that is not yes
		answer <- strings.TrimSpace(line)
	}()
	select {
	case <-ctx.Done():
		return failure.New(report.CodeCanceled, "stopped before the plan was approved; nothing was executed")
	case text := <-answer:
		if text != "yes" {
			return failure.New(report.CodeCanceled, "not approved; nothing was executed")
		}
		return nil
	}
}
