package command

import (
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/pmezard/go-difflib/difflib"
	"github.com/spf13/cobra"

	"ptah.run/ptah/qualification/matrix/catalogue"
	"ptah.run/ptah/qualification/matrix/repository"
	"ptah.run/ptah/qualification/matrix/window"
	"ptah.run/ptah/qualification/matrix/workflow"
)

// NewKubernetesCommand returns `ptah-qualify kubernetes` with its subcommands.
func NewKubernetesCommand(streams IOStreams) *cobra.Command {
	command := &cobra.Command{
		Use:   "kubernetes",
		Short: "Show the supported Kubernetes minors, and move the window of them",
		Long: `Three consecutive minors of Kubernetes are supported. The window moves by one minor as one change over every file that
names a minor; there is no state in between.`,
		Example: `  ptah-qualify kubernetes show
  ptah-qualify kubernetes advance --to 1.38 --version 1.38.0`,
	}
	command.AddCommand(newKubernetesShow(streams), newKubernetesAdvance(streams))
	return command
}

func newKubernetesShow(streams IOStreams) *cobra.Command {
	var from string
	command := &cobra.Command{
		Use:     "show",
		Short:   "Show the supported minors with their pins, and how old the window is",
		Long:    "show prints each supported minor, the patch that is tested, and how each image source pins it.",
		Example: "  ptah-qualify kubernetes show",
		Args:    cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			root, err := findRepository(from)
			if err != nil {
				return err
			}
			tree, err := repository.Load(os.DirFS(root))
			if err != nil {
				return Exit(ExitUsage, err)
			}
			return showWindow(streams.Out, tree.Kubernetes, time.Now())
		},
	}
	repositoryFlag(command, &from)
	return command
}

func showWindow(out io.Writer, k *catalogue.Kubernetes, now time.Time) error {
	table := tabwriter.NewWriter(out, 0, 4, 2, ' ', 0)
	printLine(table, "MINOR\tTESTED\tPINS")
	for _, release := range k.Releases {
		var pins []string
		for _, source := range []string{"modules", "registry"} {
			if pin := release.Pins[source]; pin != "" {
				pins = append(pins, source+" "+pin)
			}
		}
		printf(table, "%s\t%s\t%s\n", release.Minor, release.Version, strings.Join(pins, ", "))
	}
	if err := table.Flush(); err != nil {
		return err
	}
	printf(out, "verified %s; the chart admits %s\n", k.LastVerified, k.KubeVersion())
	return Exit(ExitUsage, k.CheckAge(now))
}

// advanceFlags say which minor the window moves to.
type advanceFlags struct {
	from     string
	minor    string
	version  string
	sum      string
	image    string
	verified string
	write    bool
}

func newKubernetesAdvance(streams IOStreams) *cobra.Command {
	flags := &advanceFlags{}
	command := &cobra.Command{
		Use:   "advance",
		Short: "Propose the next minor in the place of the oldest, as one change over every file",
		Long: `advance adds the newest minor and drops the oldest, in the catalogue of minors, the images of the lab, every matrix, the
chart and the generated workflows, and prints the change. In a matrix each minor becomes the one that now stands at its
place: the oldest edge stays the oldest. With --write the change is made, all of it or nothing.

The changed tree is checked before it is shown. Where it would contradict itself, nothing is proposed. Profiles are left
to a person, because a profile changes by a revision with a reason; what they need is printed.`,
		Example: `  ptah-qualify kubernetes advance --to 1.38 --version 1.38.0
  ptah-qualify kubernetes advance --to 1.38 --version 1.38.0 --sum h1:… --write`,
		Args: cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			root, err := findRepository(flags.from)
			if err != nil {
				return err
			}
			return advance(streams, root, *flags, time.Now())
		},
	}
	repositoryFlag(command, &flags.from)
	command.Flags().StringVar(&flags.minor, "to", "", "minor to add, such as 1.38")
	command.Flags().StringVar(&flags.version, "version", "", "patch of it that is tested, such as 1.38.0")
	command.Flags().StringVar(&flags.sum, "sum", "", "h1: digest of k8s.io/kubernetes at that version, as go.sum has it")
	command.Flags().StringVar(&flags.image, "image", "", "node image with its verified digest, for the registry source")
	command.Flags().StringVar(&flags.verified, "verified", "", "day on which the window was compared with the upstream releases (default: today)")
	command.Flags().BoolVar(&flags.write, "write", false, "make the change")
	mustRequire(command, "to", "version")
	mustComplete(command, "to", func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
		return completeNextMinor(flags.from), cobra.ShellCompDirectiveNoFileComp
	})
	return command
}

// completeNextMinor offers the only minor that the window can move to.
func completeNextMinor(from string) []string {
	root, err := findRepository(from)
	if err != nil {
		return nil
	}
	data, err := os.ReadFile(filepath.Join(root, catalogue.KubernetesFile))
	if err != nil {
		return nil
	}
	k, err := catalogue.DecodeKubernetes(catalogue.KubernetesFile, data)
	if err != nil {
		return nil
	}
	return []string{k.Next()}
}

func (f advanceFlags) move(now time.Time) (window.Move, error) {
	move := window.Move{Sum: f.sum, Verified: catalogue.Day(now.UTC().Format(time.DateOnly))}
	move.To = catalogue.Release{Minor: f.minor, Version: strings.TrimPrefix(f.version, "v"), Pins: map[string]string{}}
	move.To.Pins["modules"] = "k8s.io/kubernetes@v" + move.To.Version
	if f.image != "" {
		move.To.Pins["registry"] = f.image
	}
	if f.verified == "" {
		return move, nil
	}
	return move, move.Verified.UnmarshalText([]byte(f.verified))
}

func advance(streams IOStreams, root string, flags advanceFlags, now time.Time) error {
	move, err := flags.move(now)
	if err != nil {
		return Exit(ExitUsage, fmt.Errorf("--verified: %w", err))
	}
	changes, left, err := proposeMove(os.DirFS(root), move, now)
	if err != nil {
		return Exit(ExitUsage, err)
	}
	for _, change := range changes {
		if err := printDiff(streams.Out, change); err != nil {
			return Exit(ExitHarnessFailed, err)
		}
	}
	for _, finding := range left {
		printf(streams.Err, "left for a person: %s\n", finding)
	}
	if !flags.write {
		printf(streams.Err, "%d files would change; --write changes them\n", len(changes))
		return nil
	}
	if err := repository.Write(root, changes); err != nil {
		return Exit(ExitHarnessFailed, err)
	}
	printf(streams.Err, "%d files changed\n", len(changes))
	return nil
}

// proposeMove returns every change of the move, the generated workflows included, and what is left for a person.
func proposeMove(files fs.FS, move window.Move, now time.Time) ([]repository.File, []catalogue.Finding, error) {
	declared, err := repository.Declarations(files)
	if err != nil {
		return nil, nil, err
	}
	moved, err := window.Propose(declared, move)
	if err != nil {
		return nil, nil, err
	}
	changes := make([]repository.File, len(moved))
	for i, change := range moved {
		changes[i] = repository.File(change)
	}
	after, err := repository.Load(repository.Overlay(files, changes))
	if err != nil {
		return nil, nil, fmt.Errorf("the change would break the tree: %w", err)
	}
	var left []catalogue.Finding
	for _, finding := range catalogue.Check(after, now) {
		if !strings.HasPrefix(finding.Where, "profiles/") {
			return nil, nil, fmt.Errorf("the changed tree would contradict itself: %s", finding)
		}
		left = append(left, finding)
	}
	generated, err := workflow.Files(after)
	if err != nil {
		return nil, nil, err
	}
	stale, err := repository.Stale(files, generated)
	return append(changes, stale...), left, err
}

func printDiff(out io.Writer, change repository.File) error {
	return difflib.WriteUnifiedDiff(out, difflib.UnifiedDiff{
		A: difflib.SplitLines(string(change.Before)), B: difflib.SplitLines(string(change.After)),
		FromFile: "a/" + change.Path, ToFile: "b/" + change.Path, Context: 3,
	})
}
