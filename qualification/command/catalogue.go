package command

import (
	"fmt"
	"io/fs"
	"os"
	"path"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"ptah.run/ptah/qualification/lab"
	"ptah.run/ptah/qualification/matrix/catalogue"
	"ptah.run/ptah/qualification/matrix/repository"
	"ptah.run/ptah/qualification/matrix/workflow"
)

// NewCatalogueCommand returns `ptah-qualify catalogue` with its subcommands.
func NewCatalogueCommand(streams IOStreams) *cobra.Command {
	command := &cobra.Command{
		Use:   "catalogue",
		Short: "Check the catalogues of suites, minors and machines against what is written",
		Long: `The catalogues in the folder support say which suites there are, which Kubernetes minors are supported and which
machines run cells. What others take from them is checked, and the workflow files are generated from them.`,
		Example: `  ptah-qualify catalogue check
  ptah-qualify catalogue workflows`,
	}
	command.AddCommand(newCatalogueCheck(streams), newCatalogueWorkflows(streams))
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
		printLine(streams.Out, finding)
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
	printf(streams.Out, "%d suites (%d planned), %d matrices, %d profiles, Kubernetes %s to %s: no contradictions\n",
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

func newCatalogueWorkflows(streams IOStreams) *cobra.Command {
	var from string
	var write bool
	command := &cobra.Command{
		Use:   "workflows",
		Short: "Refuse workflow files that are not what the matrices and catalogues say, or write them",
		Long: `workflows makes every workflow file from the matrices, the suites, the machines and the profiles. It refuses and shows
the difference where a file is not what it would write; with --write it writes them, all of them or nothing.`,
		Example: `  ptah-qualify catalogue workflows
  ptah-qualify catalogue workflows --write`,
		Args: cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			root, err := findRepository(from)
			if err != nil {
				return err
			}
			return makeWorkflows(streams, root, write)
		},
	}
	repositoryFlag(command, &from)
	command.Flags().BoolVar(&write, "write", false, "write the files")
	return command
}

func makeWorkflows(streams IOStreams, root string, write bool) error {
	files := os.DirFS(root)
	tree, err := repository.Load(files)
	if err != nil {
		return Exit(ExitUsage, err)
	}
	generated, err := workflow.Files(tree)
	if err != nil {
		return Exit(ExitUsage, err)
	}
	stale, err := repository.Stale(files, generated)
	if err != nil {
		return Exit(ExitUsage, err)
	}
	stray, err := strayWorkflows(files, generated)
	if err != nil {
		return Exit(ExitUsage, err)
	}
	switch {
	case len(stray) > 0:
		return Exit(ExitUsage, fmt.Errorf("nothing makes %s; remove it, or make it from the catalogues", strings.Join(stray, ", ")))
	case len(stale) == 0:
		printf(streams.Out, "%d workflow files are what the matrices and catalogues say\n", len(generated))
		return nil
	case write:
		if err := repository.Write(root, stale); err != nil {
			return Exit(ExitHarnessFailed, err)
		}
		printf(streams.Out, "%d workflow files written\n", len(stale))
		return nil
	}
	for _, file := range stale {
		if err := printDiff(streams.Out, file); err != nil {
			return Exit(ExitHarnessFailed, err)
		}
	}
	return Exit(ExitUsage, fmt.Errorf("%d workflow files are not what the matrices and catalogues say; run `ptah-qualify catalogue workflows --write`", len(stale)))
}

// strayWorkflows returns the workflow files that nothing makes.
func strayWorkflows(files fs.FS, generated map[string][]byte) ([]string, error) {
	var stray []string
	for _, pattern := range []string{"*.yaml", "*.yml"} {
		names, err := fs.Glob(files, path.Join(workflow.Folder, pattern))
		if err != nil {
			return nil, fmt.Errorf("list the workflow files: %w", err)
		}
		for _, name := range names {
			if _, made := generated[name]; !made {
				stray = append(stray, name)
			}
		}
	}
	return stray, nil
}
