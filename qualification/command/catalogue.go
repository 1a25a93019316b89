package command

import (
	"fmt"
	"io/fs"
	"os"
	"time"

	"github.com/spf13/cobra"

	"ptah.run/ptah/qualification/lab"
	"ptah.run/ptah/qualification/matrix/catalogue"
	"ptah.run/ptah/qualification/matrix/repository"
)

// NewCatalogueCommand returns `ptah-qualify catalogue` with its subcommands.
func NewCatalogueCommand(streams IOStreams) *cobra.Command {
	command := &cobra.Command{
		Use:     "catalogue",
		Short:   "Check the catalogues of suites, minors and machines against what is written",
		Example: `  ptah-qualify catalogue check`,
	}
	command.AddCommand(newCatalogueCheck(streams))
	return command
}

func newCatalogueCheck(streams IOStreams) *cobra.Command {
	var from, at string
	command := &cobra.Command{
		Use:   "check",
		Short: "Refuse catalogues, matrices and profiles that contradict one another or the tree",
		Long: `check refuses, and names each place:

- a scenario that its phase never reports, a test or a package that no phase or suite owns, and anything owned twice;
- a phase that no cell of any matrix runs, and a cell without a suite, a phase, a machine or a database server;
- a profile that demands a scenario which nothing reports in the cells that it covers;
- a window of Kubernetes minors that is not consecutive, was verified more than 35 days ago, or differs from the
  chart's kubeVersion, the Kubernetes modules of go.mod, the lab's node images or a matrix.

Where a suite, a phase or a value is planned, its cells are there and not run; that is no contradiction.`,
		Example: `  ptah-qualify catalogue check
  ptah-qualify catalogue check --at 2026-12-24`,
		Args: cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			now, err := moment(at, time.Now())
			if err != nil {
				return err
			}
			root, err := findRepository(from)
			if err != nil {
				return err
			}
			return checkCatalogues(streams, os.DirFS(root), now)
		},
	}
	repositoryFlag(command, &from)
	command.Flags().StringVar(&at, "at", "", "day on which the catalogues must hold, such as 2026-12-24 (default: today)")
	return command
}

// checkCatalogues prints every contradiction of a repository, and refuses where there is one.
func checkCatalogues(streams IOStreams, files fs.FS, now time.Time) error {
	tree, err := repository.Load(files)
	if err != nil {
		return Exit(ExitUsage, err)
	}
	found := catalogue.Check(tree, now)
	for _, finding := range found {
		fmt.Fprintln(streams.Out, finding)
	}
	if len(found) > 0 {
		return Exit(ExitUsage, fmt.Errorf("the catalogues and the tree contradict one another (%d findings)", len(found)))
	}
	planned := 0
	for _, suite := range tree.Suites.Suites {
		if suite.Planned != "" {
			planned++
		}
	}
	fmt.Fprintf(streams.Out, "%d suites (%d planned), %d matrices, %d profiles, Kubernetes %s to %s: no contradictions\n",
		len(tree.Suites.Suites), planned, len(tree.Matrices), len(tree.Profiles), tree.Kubernetes.Releases[0].Minor, tree.Kubernetes.Newest().Minor)
	return nil
}

// moment is the beginning of the given day, and now where none is given.
func moment(day string, now time.Time) (time.Time, error) {
	if day == "" {
		return now, nil
	}
	parsed, err := time.Parse(time.DateOnly, day)
	if err != nil {
		return time.Time{}, Exit(ExitUsage, fmt.Errorf("%q is no day, write one such as 2026-12-24", day))
	}
	return parsed, nil
}

func repositoryFlag(command *cobra.Command, from *string) {
	command.Flags().StringVar(from, "repository", ".", "folder of this repository, or one below it")
	_ = command.MarkFlagDirname("repository") // the flag was just declared
}

func findRepository(from string) (string, error) {
	root, err := lab.FindRepository(from)
	if err != nil {
		return "", labExit(err)
	}
	return root, nil
}
