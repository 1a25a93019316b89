package command

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"

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
	case v.Satisfies():
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

// judgeFlags are the flags of judge.
type judgeFlags struct{ run, profile, against, format, output string }

// judged is what judge prints. Differences is nil where nothing was compared.
type judged struct {
	Judgement   judge.Judgement    `json:"judgement"`
	Against     string             `json:"against"`
	Differences []judge.Difference `json:"differences"`
}

// NewJudgeCommand returns `ptah-qualify judge`.
func NewJudgeCommand(streams IOStreams) *cobra.Command {
	var flags judgeFlags
	command := &cobra.Command{
		Use:   "judge --run DIR",
		Short: "Turn the evidence of a run into verdicts, without a cluster",
		Long: `Judge checks every byte of a closed run and judges it under the profile it was run under, or under a later
revision of that profile. It needs no cluster and no network, and the same evidence and profile always give the same
judgement.

A later revision may change targets and scenarios. One that declares another cluster, installation or workload than
the run had cannot judge it, and every cell is void. Verdicts under earlier revisions stand: with --against, judge says
which verdicts differ from those under another revision, or from a judgement that was written with --output, and why.

The exit code is that of the verdict: 0 pass, 1 the product failed, 3 the harness or the machine failed, 4 not
established, 5 the run is not closed, 6 the evidence was altered.`,
		Example: `  # Under the profile that the run was made under
  ptah-qualify judge --run .ptah/quickstart/runs/20261129-181158

  # Again, under a later revision, and what that changes
  ptah-qualify judge --run runs/soak --profile profiles/production.yaml --against run

  # What changed since a judgement that was kept
  ptah-qualify judge --run runs/soak --against judgement.json`,
		Args: cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error { return flags.judge(streams) },
	}
	command.Flags().StringVar(&flags.run, "run", "", "directory of the run")
	command.Flags().StringVar(&flags.profile, "profile", "", "judge under this later revision of the profile, a file or a name, instead of the one stored with the run")
	command.Flags().StringVar(&flags.against, "against", "", `say what differs from the judgement under this: a profile, a judgement as JSON, or "run" for the profile stored with the run`)
	command.Flags().StringVar(&flags.format, "format", formatText, "text or json")
	command.Flags().StringVar(&flags.output, "output", "", "also write the judgement as JSON to this file")
	mustRequire(command, "run")
	completeJudge(command)
	return command
}

// The formats of output.
const (
	formatText = "text"
	formatJSON = "json"
)

func (f judgeFlags) judge(streams IOStreams) error {
	if f.format != formatText && f.format != formatJSON {
		return Exit(ExitUsage, fmt.Errorf("there is no format %q, use text or json", f.format))
	}
	d, err := LoadRun(f.run)
	if err != nil {
		return err
	}
	result := judged{Judgement: d.Judge()}
	p := d.Profile
	if f.profile != "" {
		if p, _, err = LoadProfile(f.profile); err != nil {
			return err
		}
		result.Judgement = d.JudgeUnder(p)
	}
	if f.against != "" {
		if result.Against, result.Differences, err = f.compare(d, p, result.Judgement); err != nil {
			return err
		}
	}
	if f.output != "" {
		data, err := json.MarshalIndent(result.Judgement, "", "  ")
		if err != nil {
			return Exit(ExitHarnessFailed, err)
		}
		if err := writeOutput(f.output, append(data, '\n')); err != nil {
			return err
		}
	}
	if err := f.print(streams.Out, result); err != nil {
		return Exit(ExitHarnessFailed, err)
	}
	return verdictError(result.Judgement.Verdict)
}

func (f judgeFlags) print(out io.Writer, result judged) error {
	if f.format == formatText {
		if err := printJudgement(out, result.Judgement); err != nil || f.against == "" {
			return err
		}
		return printDifferences(out, result.Against, result.Differences)
	}
	encoder := json.NewEncoder(out)
	encoder.SetIndent("", "  ")
	if f.against == "" {
		return encoder.Encode(result.Judgement)
	}
	return encoder.Encode(result)
}

// mustRequire marks flags as required. The names are those of flags declared beside the call.
func mustRequire(command *cobra.Command, names ...string) {
	for _, name := range names {
		if err := command.MarkFlagRequired(name); err != nil {
			panic(err)
		}
	}
}

// verdictError is nil for pass, and else an error with the exit code of the verdict.
func verdictError(v verdict.Verdict) error {
	if v.Satisfies() {
		return nil
	}
	return Exit(ExitOf(v), fmt.Errorf("the verdict is %s, not pass", v))
}
