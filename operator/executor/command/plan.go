package command

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"ptah.run/ptah/operator/artifact"
	"ptah.run/ptah/operator/executor/findings"
	"ptah.run/ptah/operator/plan/report"
)

// proof is what the last proof of convergence established.
type proof struct{ dump, artifact, executor string }

// holds says whether the proof speaks of this very schema, this program and this state of the database.
func (p proof) holds(o *observation, schema string) bool {
	return p.dump != "" && p.dump == o.reading.fingerprint() && (p.executor == "" || p.executor == Version) &&
		p.artifact != "" && p.artifact == artifact.PulledDigest(schema, o.files)
}

func (a *app) schemaPlan() *cobra.Command {
	var f databaseFlags
	var p proof
	var output string
	cmd := &cobra.Command{
		Use:   "plan --schema DIR",
		Short: "Plan how a database becomes what is declared",
		Long: `Plan how a database becomes what is declared, and write the plan document.

The plan is computed twice on copies of the database's schema, must come out
the same, and is rehearsed. The database itself is only read.

With --proven-dump-digest and --proven-artifact an unchanged database is
recognised by its digest alone: the artifact must be the one that the folder was
pulled from, and --proven-executor, where it is given, this very version.`,
		Example: `  ptah schema plan --schema ./schema
  ptah schema plan --schema ./schema --output plan.json --protected-table ledger
  PTAH_DB_URL=mysql://app:secret@db:3306/shop?tls=true ptah schema plan --schema ./schema -o json`,
		Args: noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := f.checkWithSchema(); err != nil {
				return err
			}
			for _, digest := range []string{p.dump, p.artifact} {
				if digest != "" && !report.IsDigest(digest) {
					return usage("--proven-dump-digest and --proven-artifact take a sha256 digest")
				}
			}
			return a.plan(cmd.Context(), &f, p, output)
		},
	}
	f.add(cmd)
	f.addSchema(cmd)
	cmd.Flags().StringVar(&output, "output", "", "file for the plan document")
	cmd.Flags().StringVar(&p.dump, "proven-dump-digest", "", "fingerprint of the database at the last proof of convergence")
	cmd.Flags().StringVar(&p.artifact, "proven-artifact", "", "artifact digest of that proof")
	cmd.Flags().StringVar(&p.executor, "proven-executor", "", "version of ptah that made that proof")
	return cmd
}

func (a *app) plan(ctx context.Context, f *databaseFlags, p proof, output string) error {
	out := report.SchemaPlan{ContractVersion: report.ContractVersion, Outcome: report.OutcomeNoChanges,
		Dialect: report.DialectPostgreSQL, Findings: []report.Finding{}}
	var document *report.Plan
	o, err := a.observe(ctx, f)
	if o.database != nil {
		out.Dialect, out.TargetIdentity = o.database.dialect(), o.database.identity()
	}
	if err == nil {
		out.ServerVersion, out.FromFingerprint, out.RowsFingerprint = o.reading.version(), o.reading.fingerprint(), o.reading.rowsFingerprint()
		if p.holds(o, f.schema) {
			out.Unchanged, out.ToFingerprint = true, out.FromFingerprint
			out.Findings = o.reading.seen()
			out.HighestSeverity = findings.Highest(out.Findings)
		} else {
			document, err = a.compute(ctx, f, o, output, &out)
		}
	}
	if err != nil {
		out.Problem = problem(err)
		out.Outcome = outcomeOf(out.Problem)
	}
	return a.write(out.Outcome, out, out.Problem, a.said(err), func(b *strings.Builder) {
		if document == nil {
			fmt.Fprintf(b, "%s %s %s holds the declared schema.\n", a.paint(green, "Nothing to do:"), o.database.product(), out.ServerVersion)
			a.beside(b, out.Findings)
			return
		}
		painter(a.Colour).statements(b, document)
		fmt.Fprintf(b, "Plan %s", out.PlanDigest)
		if output != "" {
			fmt.Fprintf(b, " in %s", output)
		}
		fmt.Fprintln(b)
	})
}

// compute plans and fills the report. The document is written before anything is said about it.
func (a *app) compute(ctx context.Context, f *databaseFlags, o *observation, output string, out *report.SchemaPlan) (*report.Plan, error) {
	result, err := o.reading.plan(ctx, o.request(f, a.Getenv))
	if err != nil {
		return nil, err
	}
	out.Findings, out.HighestSeverity = result.findings, findings.Highest(result.findings)
	out.ManagedRows = result.managed
	if result.document == nil {
		out.ToFingerprint = out.FromFingerprint
		return nil, nil
	}
	if output != "" {
		if err := artifact.WriteFile(filepath.Clean(output), result.bytes); err != nil {
			return nil, err
		}
	}
	out.Outcome = report.OutcomeChanges
	out.ToFingerprint, out.PlanDigest, out.PlanSize = result.document.ToFingerprint, report.Digest(result.bytes), int64(len(result.bytes))
	out.Statements, out.Destructive, out.PrivilegeChanges = len(result.document.Statements), result.document.Destructive, result.document.PrivilegeChanges
	return result.document, nil
}
