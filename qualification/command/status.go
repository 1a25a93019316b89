package command

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"ptah.run/ptah/qualification/run"
)

// NewStatusCommand returns `ptah-qualify status`.
func NewStatusCommand(streams IOStreams) *cobra.Command {
	var format string
	command := &cobra.Command{
		Use:   "status [RUN...]",
		Short: "Say where runs are: what is finished, under way, waiting or left behind",
		Long: `status reads the journals of runs and says of each whether it is running, interrupted or complete, what became of each
of its cells, which labs it left, and which command goes on from there. RUN is the folder of a run; without one, the
runs below this folder are listed, one line each.

It changes nothing, judges nothing and checks no byte of evidence: that is "ptah-qualify judge". The exit code is 0
whatever the runs came to, and 2 where one of them cannot be read.`,
		Example: `  ptah-qualify status
  ptah-qualify status .ptah/quickstart/runs/20261129-181158
  ptah-qualify status --format json .ptah/development/runs/soak`,
		ValidArgsFunction: completeRuns,
		RunE: func(_ *cobra.Command, dirs []string) error {
			if format != formatText && format != formatJSON {
				return Exit(ExitUsage, fmt.Errorf("there is no format %q, use text or json", format))
			}
			list := len(dirs) == 0
			if list {
				dirs = keptRuns(".")
			}
			standings := []*run.Standing{}
			for _, dir := range dirs {
				standing, err := lookAt(dir)
				if err != nil {
					return err
				}
				standings = append(standings, standing)
			}
			switch {
			case format == formatJSON:
				encoder := json.NewEncoder(streams.Out)
				encoder.SetIndent("", "  ")
				return Exit(ExitHarnessFailed, encoder.Encode(standings))
			case list:
				return listStandings(streams.Out, standings)
			}
			for _, standing := range standings {
				if err := printStanding(streams.Out, standing); err != nil {
					return err
				}
			}
			return nil
		},
	}
	command.Flags().StringVar(&format, "format", formatText, "text or json")
	return command
}

func lookAt(dir string) (*run.Standing, error) {
	standing, err := run.Look(dir)
	if errors.Is(err, fs.ErrNotExist) {
		err = fmt.Errorf("%s holds no run: name the folder that has its run.json", dir)
	}
	return standing, Exit(ExitUsage, err)
}

func listStandings(out io.Writer, standings []*run.Standing) error {
	if len(standings) == 0 {
		_, err := fmt.Fprintln(out, "There is no run below this folder. Begin one with `ptah-qualify run`.")
		return err
	}
	table := tabwriter.NewWriter(out, 0, 4, 2, ' ', 0)
	printLine(table, "RUN\tPROFILE\tSTATE\tCELLS\tLAST")
	for _, one := range standings {
		printf(table, "%s\t%s\t%s\t%s\t%s\n", one.Dir, orUnknown(one.Profile), one.State, tally(one), instant(one.Last))
	}
	return table.Flush()
}

// tally says how many cells are in which state.
func tally(standing *run.Standing) string {
	parts := []string{fmt.Sprintf("%d of %d finished", standing.Count(run.StateFinished), len(standing.Cells))}
	for _, state := range []run.State{run.StateRunning, run.StateInterrupted, run.StateFailed, run.StateWaiting, run.StateNotRun} {
		if count := standing.Count(state); count > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", count, state))
		}
	}
	return strings.Join(parts, ", ")
}

func printStanding(out io.Writer, standing *run.Standing) error {
	printf(out, "run %s of the profile %s is %s: %s\n", standing.ID, orUnknown(standing.Profile), standing.State, tally(standing))
	printf(out, "began %s, last written %s\n\n", instant(standing.Began), instant(standing.Last))
	table := tabwriter.NewWriter(out, 0, 4, 2, ' ', 0)
	if len(standing.Cells) > 0 {
		printLine(table, "CELL\tSTATE\tATTEMPT\tTOOK\tWHY")
	}
	for _, cell := range standing.Cells {
		printf(table, "%s\t%s\t%s\t%s\t%s\n", cell.Cell, cell.State, attempt(cell), took(cell, standing.Last), cell.Why)
	}
	if err := table.Flush(); err != nil {
		return err
	}
	for _, place := range standing.Left {
		printf(out, "\nthe lab %s may still be there\n", place)
	}
	_, err := fmt.Fprintf(out, "\nnext: %s\n", next(standing))
	return err
}

// next is what a person would do.
func next(standing *run.Standing) string {
	dir := quoted(standing.Dir)
	switch {
	case standing.State == run.StateComplete:
		return "ptah-qualify judge --run " + dir
	case standing.State == run.StateRunning:
		return "wait for it; interrupting it once takes down what it made"
	case len(standing.Left) > 0:
		return "ptah-qualify run --resume " + dir + ", or to remove its labs and leave it: ptah-qualify clean " + dir
	default:
		return "ptah-qualify run --resume " + dir
	}
}

func attempt(cell run.CellStanding) string {
	if cell.Attempt == 0 {
		return ""
	}
	return fmt.Sprint(cell.Attempt)
}

// took is how long a cell ran, or has been running by the last line of the journal.
func took(cell run.CellStanding, last time.Time) string {
	switch {
	case cell.Began == nil:
		return ""
	case cell.Ended == nil:
		return last.Sub(*cell.Began).Round(time.Second).String() + " so far"
	default:
		return cell.Ended.Sub(*cell.Began).Round(time.Second).String()
	}
}

func instant(t time.Time) string {
	if t.IsZero() {
		return "never"
	}
	return t.UTC().Format("2006-01-02 15:04:05Z")
}

func orUnknown(word string) string {
	if word == "" {
		return "(unknown)"
	}
	return word
}
