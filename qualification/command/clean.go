package command

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"ptah.run/ptah/qualification/evidence"
	"ptah.run/ptah/qualification/run"
)

// NewCleanCommand returns `ptah-qualify clean`.
func NewCleanCommand(streams IOStreams) *cobra.Command {
	var dry bool
	command := &cobra.Command{
		Use:   "clean [RUN...]",
		Short: "Remove the labs that interrupted runs left behind, and keep their evidence",
		Long: `clean removes the labs that runs made for their cells and could not take down, because they were stopped at once or
killed. RUN is the folder of a run; without one, all runs below this folder are looked at. A run that a process is at
work on is left alone. Evidence, records and reports stay, and so do the cache and labs that were brought up by hand
("ptah-qualify lab down").

A run goes on after it with --resume as before: what was finished is kept, what was under way is done again.`,
		Example: `  ptah-qualify clean --dry-run
  ptah-qualify clean
  ptah-qualify clean .ptah/development/runs/soak`,
		ValidArgsFunction: completeUnfinishedRuns,
		RunE: func(command *cobra.Command, dirs []string) error {
			cleaning := cleaning{out: streams.Out, dry: dry, labs: &ownLabs{cellRunner: cellRunner{log: streams.Err}}}
			if len(dirs) == 0 {
				dirs = keptRuns(".")
			}
			return cleaning.all(command.Context(), dirs)
		},
	}
	command.Flags().BoolVar(&dry, "dry-run", false, "say what would be removed, and remove nothing")
	return command
}

type cleaning struct {
	out  io.Writer
	dry  bool
	labs run.Cells // of which only TearDown is called
}

func (c cleaning) all(ctx context.Context, dirs []string) error {
	removed := 0
	for _, dir := range dirs {
		count, err := c.one(ctx, dir)
		if err != nil {
			return err
		}
		removed += count
	}
	if removed == 0 {
		_, err := fmt.Fprintln(c.out, "There is nothing to remove.")
		return err
	}
	return nil
}

// one removes what a run left, and says how many labs that were.
func (c cleaning) one(ctx context.Context, dir string) (int, error) {
	standing, err := lookAt(dir)
	switch {
	case err != nil:
		return 0, err
	case len(standing.Left) == 0 || standing.State == run.StateComplete:
		return 0, nil
	case standing.State == run.StateRunning:
		_, err := fmt.Fprintf(c.out, "%s: a process is at work on it, and its labs are left alone\n", dir)
		return 0, err
	}
	for _, place := range standing.Left {
		word := "removing"
		if c.dry {
			word = "would remove"
		}
		printf(c.out, "%s: %s the lab %s\n", dir, word, place)
	}
	if c.dry {
		return len(standing.Left), nil
	}
	store, err := evidence.OpenRun(dir)
	if err != nil {
		return 0, Exit(exitOfOpening(err), err)
	}
	err = errors.Join(run.RemoveLeftovers(ctx, store, c.labs, func(string, ...any) {}), store.Abandon())
	switch {
	case errors.Is(err, run.ErrInterrupted), errors.Is(err, context.Canceled):
		return 0, Exit(ExitInterrupted, errors.New("interrupted, and not every lab is removed; run it again to go on"))
	case err != nil:
		return 0, Exit(ExitHarnessFailed, fmt.Errorf("%w; run it again to go on", err))
	}
	return len(standing.Left), nil
}
