package command

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"ptah.run/ptah/qualification/evidence"
	"ptah.run/ptah/qualification/lab"
	"ptah.run/ptah/qualification/lab/catalog"
	"ptah.run/ptah/qualification/lab/progress"
	"ptah.run/ptah/qualification/lab/source"
	"ptah.run/ptah/qualification/record"
)

// quickstartStages in the order in which they run.
var quickstartStages = []string{"doctor", "images", "lab", "build", "install", "run", "judge", "sign", "report"}

type quickstartOptions struct {
	until  string
	down   bool
	output string
}

// NewQuickstartCommand returns `ptah-qualify quickstart`.
func NewQuickstartCommand(streams IOStreams) *cobra.Command {
	options := &quickstartOptions{}
	command := &cobra.Command{
		Use:   "quickstart",
		Short: "From an empty machine to a signed record and a report",
		Long: `quickstart checks the machine, gets images, makes a cluster with a registry and a database, builds and installs the
operator by digest, converges a schema with an approval, judges what happened against the profile quickstart, signs the
record and writes the reports. What is built already is used again, and a lab that is up stays up.

Stages: ` + strings.Join(quickstartStages, ", ") + `.`,
		Example: `  ptah-qualify quickstart
  ptah-qualify quickstart --until install
  ptah-qualify quickstart --down`,
		Args: cobra.NoArgs,
		RunE: func(command *cobra.Command, _ []string) error {
			if !slices.Contains(quickstartStages, options.until) {
				return Exit(ExitUsage, fmt.Errorf("--until %q is no stage: use one of %s", options.until, strings.Join(quickstartStages, ", ")))
			}
			repository, err := lab.FindRepository(".")
			if err != nil {
				return labExit(err)
			}
			line := &quickstart{streams: streams, options: *options, repository: repository, stages: newStages(streams.Out)}
			if !filepath.IsAbs(line.options.output) {
				line.options.output = filepath.Join(repository, line.options.output)
			}
			if options.down {
				return line.down(command.Context())
			}
			return line.up(command.Context())
		},
	}
	command.Flags().StringVar(&options.until, "until", "report", "the last stage to run")
	command.Flags().BoolVar(&options.down, "down", false, "remove the lab and everything that it left running")
	command.Flags().StringVar(&options.output, "output", ".ptah/quickstart", "folder for evidence, record and reports")
	command.MarkFlagsMutuallyExclusive("until", "down")
	mustComplete(command, "output", completeFolders)
	return command
}

// quickstart is the thin line through everything, one method per stage.
type quickstart struct {
	streams    IOStreams
	options    quickstartOptions
	repository string
	stages     *stages

	description *lab.Description
	labFile     string
	runDir      string
	record      string
	key         string
	reports     []string
}

func (q *quickstart) up(ctx context.Context) error {
	if err := usableFolder(q.options.output); err != nil {
		return err
	}
	work := map[string]func(context.Context, io.Writer) error{
		"doctor": q.doctor, "images": q.images, "lab": q.lab, "build": q.build, "install": q.install,
		"run": q.run, "judge": q.judge, "sign": q.sign, "report": q.report,
	}
	for _, stage := range quickstartStages {
		if err := q.stages.Run(ctx, stage, work[stage]); err != nil {
			return q.explain(stage, err)
		}
		if stage == q.options.until {
			break
		}
	}
	return q.finish()
}

// usableFolder refuses an output folder before an hour of work rather than after it.
func usableFolder(dir string) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return Exit(ExitUsage, fmt.Errorf("the output folder %s cannot be made: %w; name another with --output", dir, reason(err)))
	}
	probe, err := os.CreateTemp(dir, ".probe-")
	if err != nil {
		return Exit(ExitUsage, fmt.Errorf("the output folder %s is not writable: %w; name another with --output", dir, reason(err)))
	}
	return errors.Join(probe.Close(), os.Remove(probe.Name()))
}

// explain gives an error its stage, and keeps its exit code.
func (q *quickstart) explain(stage string, err error) error {
	code := ExitHarnessFailed
	var exit *ExitError
	if errors.As(err, &exit) {
		code = exit.Code
	} else if errors.Is(err, context.Canceled) {
		code = ExitInterrupted
	}
	return Exit(code, fmt.Errorf("stage %s: %w", stage, err))
}

func (q *quickstart) doctor(ctx context.Context, log io.Writer) error {
	return runDoctor(ctx, IOStreams{Out: log, Err: log}, doctorFlags{purpose: "quickstart"})
}

// quickstartImages are what its lab and the operator's own images are made of. What another lab needs is built for it.
var quickstartImages = []catalog.Role{catalog.Node, catalog.Registry, catalog.PostgreSQL, catalog.ExecutorBase}

func (q *quickstart) images(ctx context.Context, log io.Writer) error {
	flags := &labFlags{repository: q.repository, source: source.ModulesName}
	return labExit(runLabImages(ctx, IOStreams{Out: log, Err: log}, flags, quickstartImages, ""))
}

// lab brings the lab up, or takes the one that is.
func (q *quickstart) lab(ctx context.Context, log io.Writer) error {
	var err error
	if q.labFile, err = lab.DescriptionPath(lab.DefaultID); err != nil {
		return labExit(err)
	}
	description, err := lab.Up(ctx, lab.Options{Repository: q.repository, Progress: progress.New(log)})
	var up *lab.AlreadyUpError
	if errors.As(err, &up) {
		description, err = lab.Load(q.labFile)
	}
	q.description = description
	return labExit(err)
}

func (q *quickstart) run(ctx context.Context, log io.Writer) error {
	dir, err := runCells(ctx, q.repository, runOptions{profile: "quickstart", labID: lab.DefaultID, output: q.options.output}, log)
	q.runDir = dir
	return err
}

// judge says what the evidence shows. A verdict that is no pass does not end the line: its record and report are what
// a person then needs. The exit code tells it at the end.
func (q *quickstart) judge(_ context.Context, log io.Writer) error {
	dossier, err := LoadRun(q.runDir)
	if err != nil {
		return err
	}
	judgement := dossier.Judge()
	printf(log, "%s\n", judgement.Verdict.State)
	for _, reason := range judgement.Verdict.Reasons {
		printf(log, "%s\n", reason)
	}
	return nil
}

func (q *quickstart) sign(ctx context.Context, log io.Writer) error {
	dossier, err := LoadRun(q.runDir)
	if err != nil {
		return err
	}
	private, public, err := EnsureKey(q.options.output)
	if err != nil {
		return err
	}
	key, err := os.ReadFile(private)
	if err != nil {
		return Exit(ExitHarnessFailed, err)
	}
	ancestry, err := ancestryWhereKnown(ctx, q.repository, dossier)
	if err != nil {
		return err
	}
	data, err := CreateSignedRecord(ctx, dossier, key, time.Now(), Version, func(options *record.Options) { options.Ancestry = ancestry })
	if err != nil {
		return err
	}
	q.record, q.key = filepath.Join(q.options.output, record.FileName), public
	if err := evidence.WriteFileAtomic(q.record, data); err != nil {
		return Exit(outputCode(err), err)
	}
	return q.verify(ctx, data, public)
}

// verify reads the record back as anybody can, from the key, the evidence and nothing else. That the verdict is no
// pass is no reason to stop: the end of the line says it.
func (q *quickstart) verify(ctx context.Context, data []byte, public string) error {
	key, err := os.ReadFile(public)
	if err != nil {
		return Exit(ExitHarnessFailed, err)
	}
	verifier, err := record.LoadVerifier(key)
	if err != nil {
		return Exit(ExitUsage, err)
	}
	_, err = record.Verify(ctx, data, record.Checks{Keys: []*record.Verifier{verifier}, Evidence: evidenceIn(q.runDir)})
	return Exit(ExitVerificationFailed, err)
}

func (q *quickstart) report(_ context.Context, _ io.Writer) error {
	dossier, err := LoadRun(q.runDir)
	if err != nil {
		return err
	}
	q.reports, err = WriteReports(dossier, q.options.output)
	return err
}

// finish prints where everything is, and returns the verdict as an exit code.
func (q *quickstart) finish() error {
	out := q.streams.Out
	if q.record == "" {
		if q.options.until == "install" {
			return q.printWorkspace()
		}
		return nil
	}
	printf(out, "\nevidence  %s\nrecord    %s\nkey       %s\n", q.runDir, q.record, q.key)
	for _, path := range q.reports {
		printf(out, "report    %s\n", path)
	}
	dossier, err := LoadRun(q.runDir)
	if err != nil {
		return err
	}
	verdict := dossier.Judge().Verdict
	printf(out, "verdict   %s\n", verdict.State)
	if code := ExitOf(verdict); code != ExitPass {
		return Exit(code, fmt.Errorf("the verdict is %s: the report says why", verdict.State))
	}
	return nil
}

func (q *quickstart) down(ctx context.Context) error {
	removal, err := lab.Down(ctx, lab.DefaultID, true)
	if err != nil {
		return labExit(err)
	}
	if err := removeWorkspace(q.repository); err != nil {
		return Exit(ExitHarnessFailed, err)
	}
	if !removal.Found {
		printLine(q.streams.Out, "there is no lab to remove")
		return nil
	}
	printf(q.streams.Out, "the lab is gone (%d containers); evidence, record and reports stay in %s\n", removal.Containers, q.options.output)
	return nil
}
