package command

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"ptah.run/ptah/qualification/lab/cache"
	"ptah.run/ptah/qualification/lab/doctor"
)

// doctorFlags are the flags of `ptah-qualify doctor`.
type doctorFlags struct {
	fix        bool
	stopEngine bool
	purpose    string
}

// NewDoctorCommand returns `ptah-qualify doctor`. It exits 0 where the machine is fit, 2 for an unknown purpose and
// 3 where something is missing or could not be installed.
func NewDoctorCommand(streams IOStreams) *cobra.Command {
	var flags doctorFlags
	command := &cobra.Command{
		Use:   "doctor",
		Short: "Name each thing this machine lacks, with the fix",
		Long: `doctor looks at this machine and prints one line for each thing it needs. With --fix (root on Debian) it
installs packages, registers the bounded runtime where the machine's capability bounding set is not full, and
starts the Docker engine where no init system does. Without --fix it changes nothing.`,
		Example: `  ptah-qualify doctor
  ptah-qualify doctor --for test
  ptah-qualify doctor --fix`,
		Args: cobra.NoArgs,
		RunE: func(command *cobra.Command, _ []string) error {
			return runDoctor(command.Context(), streams, flags)
		},
	}
	command.Flags().BoolVar(&flags.fix, "fix", false, "install what is missing (root on Debian)")
	command.Flags().BoolVar(&flags.stopEngine, "stop-engine", false, "stop the Docker engine that an earlier --fix started")
	command.Flags().StringVar(&flags.purpose, "for", string(doctor.ForQuickstart), "what the machine is wanted for: test, lab or quickstart")
	command.MarkFlagsMutuallyExclusive("fix", "stop-engine")
	return command
}

func runDoctor(ctx context.Context, streams IOStreams, flags doctorFlags) error {
	purpose := doctor.Purpose(flags.purpose)
	if !slices.Contains(doctor.Purposes, purpose) {
		return Exit(ExitUsage, fmt.Errorf("--for %q is unknown: use test, lab or quickstart", flags.purpose))
	}
	cacheRoot, err := cache.Root()
	if err != nil {
		return Exit(ExitHarnessFailed, err)
	}
	stateRoot, err := cache.StateRoot()
	if err != nil {
		return Exit(ExitHarnessFailed, err)
	}
	process := doctor.NewProcess(filepath.Join(stateRoot, "engine"))
	if flags.stopEngine {
		return stopEngine(ctx, streams.Out, process)
	}
	paths := doctor.Paths{Cache: cacheRoot, State: stateRoot}
	facts, err := doctor.Gather(ctx, paths)
	if err != nil {
		return Exit(ExitHarnessFailed, err)
	}
	findings := doctor.Check(facts, purpose)
	if flags.fix && len(doctor.Unfit(findings)) > 0 {
		fixer := &doctor.Fixer{Out: streams.Out, Process: process}
		if err := fixer.Fix(ctx, facts, doctor.Unfit(findings)); err != nil {
			var refused *doctor.RefusedError
			if errors.As(err, &refused) {
				printFindings(streams.Out, findings)
			}
			return Exit(ExitHarnessFailed, err)
		}
		if facts, err = doctor.Gather(ctx, paths); err != nil {
			return Exit(ExitHarnessFailed, err)
		}
		findings = doctor.Check(facts, purpose)
	}
	printFindings(streams.Out, findings)
	if unfit := doctor.Unfit(findings); len(unfit) > 0 {
		var names []string
		for _, finding := range unfit {
			names = append(names, finding.Name)
		}
		return Exit(ExitHarnessFailed, fmt.Errorf("this machine is not ready for %s: see %s above", purpose, strings.Join(names, ", ")))
	}
	return nil
}

func stopEngine(ctx context.Context, out io.Writer, process *doctor.Process) error {
	stopped, err := process.Stop(ctx)
	if err != nil {
		return Exit(ExitHarnessFailed, err)
	}
	if stopped {
		printLine(out, "the Docker engine that was started here has ended")
	} else {
		printLine(out, "no Docker engine started by this program is running")
	}
	return nil
}

func printFindings(out io.Writer, findings []doctor.Finding) {
	for _, finding := range findings {
		printf(out, "%-8s%-16s%s", finding.State, finding.Name, finding.Detail)
		if finding.Fix != "" && finding.State != doctor.OK {
			printf(out, "; fix: %s", finding.Fix)
		}
		printLine(out)
	}
}
