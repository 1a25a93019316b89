package command

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"ptah.run/ptah/qualification/evidence"
	"ptah.run/ptah/qualification/evidence/dossier"
	"ptah.run/ptah/qualification/judge"
	"ptah.run/ptah/qualification/verdict"
)

// ExitOf maps a verdict to the exit code that stands for it. A failure whose cause nobody knows does not establish
// that the product failed.
func ExitOf(v verdict.Verdict) int {
	switch {
	case v.State == verdict.Pass:
		return ExitPass
	case v.State == verdict.Fail && v.Cause == verdict.Product:
		return ExitProductFailed
	case v.State == verdict.Fail && (v.Cause == verdict.Harness || v.Cause == verdict.Infrastructure):
		return ExitHarnessFailed
	default:
		return ExitNotEstablished
	}
}

// LoadRun reads a closed run after checking every byte. Altered evidence has the exit code of a failed verification.
func LoadRun(dir string) (*dossier.Dossier, error) {
	d, err := dossier.Load(dir)
	switch {
	case errors.Is(err, evidence.ErrTampered):
		return nil, Exit(ExitVerificationFailed, err)
	case errors.Is(err, evidence.ErrNotClosed):
		return nil, Exit(ExitInterrupted, err)
	case err != nil:
		return nil, Exit(ExitUsage, err)
	}
	return d, nil
}

// NewJudgeCommand returns `ptah-qualify judge`.
func NewJudgeCommand(streams IOStreams) *cobra.Command {
	var run, profilePath, format, output string
	command := &cobra.Command{
		Use:   "judge --run DIR",
		Short: "Turn the evidence of a run into verdicts, without a cluster",
		Long: `Judge checks every byte of a closed run and judges it under the profile it was run under, or under a later
revision of that profile. The exit code is that of the verdict.`,
		Args: cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			judgement, err := judgeRun(run, profilePath)
			if err != nil {
				return err
			}
			if output != "" {
				data, err := json.MarshalIndent(judgement, "", "  ")
				if err != nil {
					return Exit(ExitHarnessFailed, err)
				}
				if err := writeOutput(output, append(data, '\n')); err != nil {
					return err
				}
			}
			if err := printJudgement(streams.Out, format, judgement); err != nil {
				return err
			}
			return verdictError(judgement.Verdict)
		},
	}
	command.Flags().StringVar(&run, "run", "", "directory of the run")
	command.Flags().StringVar(&profilePath, "profile", "", "judge under this later revision of the profile instead of the one stored with the run")
	command.Flags().StringVar(&format, "format", "text", "text or json")
	command.Flags().StringVar(&output, "output", "", "also write the judgement as JSON to this file")
	mustRequire(command, "run")
	return command
}

// mustRequire marks flags as required. The names are those of flags declared beside the call.
func mustRequire(command *cobra.Command, names ...string) {
	for _, name := range names {
		if err := command.MarkFlagRequired(name); err != nil {
			panic(err)
		}
	}
}

func judgeRun(run, profilePath string) (judge.Judgement, error) {
	d, err := LoadRun(run)
	if err != nil {
		return judge.Judgement{}, err
	}
	if profilePath == "" {
		return d.Judge(), nil
	}
	p, _, err := LoadProfile(profilePath)
	if err != nil {
		return judge.Judgement{}, err
	}
	return d.JudgeUnder(p), nil
}

// verdictError is nil for pass, and else an error with the exit code of the verdict.
func verdictError(v verdict.Verdict) error {
	if v.Satisfies() {
		return nil
	}
	return Exit(ExitOf(v), fmt.Errorf("the verdict is %s, not pass", v))
}

func printJudgement(out io.Writer, format string, judgement judge.Judgement) error {
	switch format {
	case "json":
		encoder := json.NewEncoder(out)
		encoder.SetIndent("", "  ")
		return encoder.Encode(judgement)
	case "text":
	default:
		return Exit(ExitUsage, fmt.Errorf("there is no format %q, use text or json", format))
	}
	identity := judgement.Profile
	fmt.Fprintf(out, "%s under profile %s, revision %d (%s)\n\n", judgement.Verdict, identity.Name, identity.Revision, identity.Purpose)
	table := tabwriter.NewWriter(out, 0, 4, 2, ' ', 0)
	for _, cell := range judgement.Cells {
		fmt.Fprintf(table, "%s\t%s\t\n", cell.Cell.Key, cell.Verdict)
		for _, s := range cell.Scenarios {
			fmt.Fprintf(table, "  %s %s\t%s\t%d assertions, %d witnesses\n", s.Requirement, s.Scenario, s.Verdict, s.Assertions, s.Witnesses)
		}
		for _, t := range cell.Targets {
			fmt.Fprintf(table, "  %s %s\t%s\t%s\n", t.Requirement, t.Target, t.Verdict, measured(t))
		}
	}
	if err := table.Flush(); err != nil {
		return err
	}
	for _, reason := range judgement.Verdict.Reasons {
		fmt.Fprintf(out, "- %s %s: %s\n", reason.Code, reason.Subject, reason.Message)
	}
	return nil
}

func measured(t judge.TargetVerdict) string {
	if t.Value == nil {
		return fmt.Sprintf("not measured, declared %s %s", t.Bound, t.Unit)
	}
	return fmt.Sprintf("%g %s (n = %d), declared %s", *t.Value, t.Unit, t.N, t.Bound)
}
