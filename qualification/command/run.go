package command

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"ptah.run/ptah/qualification/evidence"
	"ptah.run/ptah/qualification/evidence/dossier"
	"ptah.run/ptah/qualification/lab"
	"ptah.run/ptah/qualification/lab/source"
	"ptah.run/ptah/qualification/run"
)

// Labs that a run takes its cells to.
const (
	labsExisting = "existing" // one that is up with the operator installed, and stays
	labsOwn      = "own"      // one for each cell, made for it and removed after it
)

// runOptions say which cells to run and where.
type runOptions struct {
	profile   string
	matrix    string
	depth     string
	cells     []string
	labs      string
	labID     string
	source    string
	output    string
	id        string
	resume    string
	keepGoing bool
	progress  string
}

// NewRunCommand returns `ptah-qualify run`.
func NewRunCommand(streams IOStreams) *cobra.Command {
	options := &runOptions{}
	command := &cobra.Command{
		Use:   "run",
		Short: "Run the cells of a profile, and keep what they show",
		Long: `run runs the cells that the profile covers and writes raw evidence to OUTPUT/runs/ID. It judges nothing: that is
"ptah-qualify judge --run". With --labs own each cell gets a lab of its own, which is removed after it; otherwise the
cells run in a lab that is up with the operator installed ("ptah-qualify quickstart --until install").

Interrupted once, it takes down what it made and exits with 5; interrupted twice, it stops at once. Either way, and
after it was killed, --resume goes on: finished cells are kept as long as what goes into them is unchanged, and each of
the others is done again, with the reason on a line of its own.

On a terminal it shows what happens to each cell, and a live line for the one under way; elsewhere, and with --progress
plain, timestamped lines with the output of the suites; with --progress json, one JSON object a line.

A phase of a suite is run where the profile demands one of its scenarios of the cell.

Cells that the catalogues call planned are not run; the evidence says why, and a set that needs them is not passed.`,
		Example: `  ptah-qualify run --profile quickstart --lab lab
  ptah-qualify run --profile development --labs own --output .ptah/development
  ptah-qualify run --profile production --labs own --cell data-plane.kubernetes-1.37.postgresql-17.linux-amd64
  ptah-qualify run --resume .ptah/development/runs/20261129-181158`,
		Args: cobra.NoArgs,
		RunE: func(command *cobra.Command, _ []string) error {
			if err := options.check(command); err != nil {
				return err
			}
			repository, err := lab.FindRepository(".")
			if err != nil {
				return labExit(err)
			}
			progress, err := newRunProgress(streams.Err, options.progress)
			if err != nil {
				return err
			}
			defer progress.Close()
			dir, err := runCells(command.Context(), repository, *options, progress)
			if err != nil {
				return err
			}
			printLine(streams.Out, dir)
			return nil
		},
	}
	flags := command.Flags()
	flags.StringVar(&options.profile, "profile", "quickstart", "file of the profile, or its name in the folder profiles")
	flags.StringVar(&options.matrix, "matrix", "", "run only the covered cells of this matrix")
	flags.StringVar(&options.depth, "depth", "", "run only the covered cells of this depth of their matrix")
	flags.StringSliceVar(&options.cells, "cell", nil, "run only this covered cell; may be given several times")
	flags.StringVar(&options.labs, "labs", labsExisting, "existing, or own for a lab per cell")
	flags.StringVar(&options.labID, "lab", lab.DefaultID, "id of the existing lab")
	flags.StringVar(&options.source, "source", source.ModulesName, "where the images of own labs come from: modules or registry")
	flags.StringVar(&options.output, "output", ".ptah/quickstart", "folder for runs/ID")
	flags.StringVar(&options.id, "id", "", "id of the run (default: the time it begins)")
	flags.StringVar(&options.resume, "resume", "", "go on with the run in this folder, as it was begun")
	flags.BoolVar(&options.keepGoing, "keep-going", false, "go on with the next cell after one that could not be run")
	flags.StringVar(&options.progress, "progress", progressAuto, "how to say where the run is: auto, live, plain or json")
	mustComplete(command, "progress", completeWords(progressAuto, progressLive, progressPlain, progressJSON))
	mustComplete(command, "id", cobra.NoFileCompletions)
	mustComplete(command, "output", completeFolders)
	completeRun(command)
	return command
}

// check refuses flags that contradict one another. A resumed run is the run that was begun: only how it goes on can be
// chosen anew.
func (o runOptions) check(command *cobra.Command) error {
	changed := command.Flags().Changed
	if o.resume != "" {
		for _, name := range []string{"profile", "matrix", "depth", "cell", "labs", "lab", "source", "output", "id"} {
			if changed(name) {
				return Exit(ExitUsage, fmt.Errorf("--%s cannot be given with --resume: a resumed run goes on as it was begun, leave it out or begin a new run", name))
			}
		}
	}
	switch {
	case o.labs != labsExisting && o.labs != labsOwn:
		return Exit(ExitUsage, fmt.Errorf("--labs %q is unknown: use existing or own", o.labs))
	case o.labs == labsOwn && changed("lab"):
		return Exit(ExitUsage, errors.New("--lab names an existing lab, and with --labs own each cell gets its own: leave one of them out"))
	case o.labs == labsExisting && changed("source"):
		return Exit(ExitUsage, errors.New("--source is for labs that are made, and an existing lab has its images: leave it out or give --labs own"))
	}
	return nil
}

// runCells runs or resumes a run and returns its folder. Errors carry their exit code. An interrupt ends it as the help
// says, also where the caller's context ends by it too.
func runCells(ctx context.Context, repository string, options runOptions, log io.Writer) (string, error) {
	say := func(format string, arguments ...any) {
		if progress, ok := log.(*runProgress); ok {
			progress.Event(fmt.Sprintf(format, arguments...))
			return
		}
		printf(log, format+"\n", arguments...)
	}
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	defer signal.Stop(signals)
	ctx, abort, release := run.Interrupts(ctx, signals, say)
	defer release()
	begun, err := open(ctx, repository, options)
	var complete *completeError
	if errors.As(err, &complete) {
		say("the run in %s is complete: judge it", complete.dir)
		return complete.dir, nil
	}
	if err != nil {
		return "", err
	}
	defer begun.abandon() // where it was closed before, this does nothing
	cells, err := begun.makeCells(ctx, repository, log)
	if err == nil {
		err = begun.begin(options.output)
	}
	if err != nil {
		return "", err
	}
	say("run %s, evidence in %s", begun.id, begun.dir)
	_, err = run.Do(ctx, abort, run.Options{Store: begun.store, Items: begun.items, Cells: cells, KeepGoing: options.keepGoing, Say: say})
	return begun.dir, resumable(err, begun.dir)
}

// resumable gives what ended a run early its exit code, and says how to go on.
func resumable(err error, dir string) error {
	if err == nil {
		return nil
	}
	goOn := "go on with `ptah-qualify run --resume " + quoted(dir) + "`"
	var left *run.PlaceError
	switch {
	case errors.Is(err, run.ErrAborted):
		return Exit(ExitInterrupted, fmt.Errorf("stopped at once, and what was made may still be there; %s", goOn))
	case errors.Is(err, run.ErrInterrupted) && errors.As(err, &left):
		return Exit(ExitInterrupted, fmt.Errorf("interrupted, and the lab %s could not be removed: %w; %s", left.Place, left.Err, goOn))
	case errors.Is(err, run.ErrInterrupted), errors.Is(err, context.Canceled):
		return Exit(ExitInterrupted, fmt.Errorf("interrupted, and what was made is removed; %s", goOn))
	}
	code := ExitHarnessFailed
	var exit *ExitError
	var undeclared *run.UndeclaredError
	switch {
	case errors.As(err, &undeclared):
		return Exit(ExitUsage, err)
	case errors.As(err, &exit):
		code = exit.Code
	}
	return Exit(code, fmt.Errorf("%s; what is finished is kept, %s", strings.ReplaceAll(err.Error(), "\n", "; "), goOn))
}

// quoted makes a path one word of a shell.
func quoted(path string) string {
	if path != "" && !strings.ContainsFunc(path, func(r rune) bool {
		return !strings.ContainsRune("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-/+@%:,", r)
	}) {
		return path
	}
	return "'" + strings.ReplaceAll(path, "'", `'\''`) + "'"
}

// begunRun is a run that is about to begin or to go on, with what it was asked for.
type begunRun struct {
	id, dir  string
	store    *evidence.Run // nil until begin, unless the run goes on
	request  runRequest
	harness  dossier.Harness
	declared *Declared
	items    []run.Item
}

// completeError says that there is nothing left to do.
type completeError struct{ dir string }

func (e *completeError) Error() string { return "the run in " + e.dir + " is complete" }

// open checks what was asked for, and opens the run to go on with. Nothing of a new run is written yet.
func open(ctx context.Context, repository string, options runOptions) (*begunRun, error) {
	begun := &begunRun{request: options.request(repository), id: options.id}
	if begun.id == "" {
		begun.id = time.Now().UTC().Format("20060102-150405")
	}
	begun.dir = filepath.Join(options.output, "runs", begun.id)
	if options.resume != "" {
		if err := begun.reopen(options.resume); err != nil {
			return nil, err
		}
	}
	var err error
	begun.harness, err = harnessOf(ctx, repository, filepath.Dir(filepath.Dir(begun.dir)))
	if err != nil {
		err = Exit(ExitHarnessFailed, err)
	} else {
		err = begun.load(repository)
	}
	if err != nil {
		begun.abandon()
		return nil, err
	}
	return begun, nil
}

// begin creates the run where it does not go on, and stores what it is judged against.
func (b *begunRun) begin(output string) error {
	if b.store == nil {
		var err error
		if b.store, err = evidence.CreateRun(output, b.id); err != nil {
			return Exit(outputCode(err), err)
		}
		b.request.Name = b.declared.Profile.Name
		if err := b.store.Note(noteRequest, b.request); err != nil {
			return Exit(ExitHarnessFailed, err)
		}
	}
	return Exit(ExitHarnessFailed, dossier.Begin(b.store, b.declared.Declarations))
}

// abandon lets go of the run, so that it can be opened again. Its journal is on disk already.
func (b *begunRun) abandon() {
	if b.store != nil {
		_ = b.store.Abandon()
	}
}

// exitOfOpening is the exit code of a run that cannot be gone on with.
func exitOfOpening(err error) int {
	if errors.Is(err, evidence.ErrTampered) {
		return ExitVerificationFailed
	}
	return ExitUsage
}

func (b *begunRun) reopen(dir string) error {
	store, err := evidence.OpenRun(filepath.Clean(dir))
	switch {
	case errors.Is(err, evidence.ErrClosed):
		return &completeError{dir}
	case err != nil:
		return Exit(exitOfOpening(err), err)
	}
	b.store, b.id, b.dir = store, store.ID(), store.Dir()
	return b.recall()
}
