package command

import (
	"fmt"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"ptah.run/ptah/qualification/profile"
)

// profilesDir is where a repository keeps its profiles.
const profilesDir = "profiles"

// NewProfileCommand returns `ptah-qualify profile` with its subcommands.
func NewProfileCommand(streams IOStreams) *cobra.Command {
	command := &cobra.Command{
		Use:   "profile",
		Short: "Check, show, compare and identify declared profiles",
		Long: `A profile declares what "fit for production" means: versions, installation, workload, and the numbers that must
hold. PROFILE is a file, or the name of one in the folder profiles.

These commands read files and start nothing.`,
		Example: `  ptah-qualify profile lint production
  ptah-qualify profile show production
  ptah-qualify profile diff --since v0.1.0 production`,
	}
	command.AddCommand(newProfileLint(streams), newProfileShow(streams), newProfileDigest(streams), newProfileDiff(streams), newProfileTable(streams))
	return command
}

func newProfileLint(streams IOStreams) *cobra.Command {
	return &cobra.Command{
		Use:   "lint PROFILE...",
		Short: "Refuse profiles that are malformed or contradict their own workload, with the arithmetic",
		Long: `Reads profiles strictly and holds each target against the workload that the same profile declares. Refused are
unknown fields, targets that no operator could reach, targets that can never fail, populations too small for a
percentile, quotas that the workload exhausts, and windows that contradict each other. Every refusal shows its
arithmetic. The exit code is 2 where anything is refused.`,
		Example:           "  ptah-qualify profile lint production development quickstart",
		Args:              cobra.MinimumNArgs(1),
		ValidArgsFunction: completeProfiles,
		RunE: func(_ *cobra.Command, paths []string) error {
			count := 0
			for _, path := range paths {
				p, _, err := LoadProfile(path)
				if err != nil {
					return err
				}
				for _, finding := range profile.Lint(p) {
					count++
					printf(streams.Out, "%s: %s\n", path, finding)
				}
			}
			if count > 0 {
				return Exit(ExitUsage, fmt.Errorf("%s: nothing is judged under such a profile, change its targets or its workload in a new revision", plural(count, "contradiction")))
			}
			_, err := fmt.Fprintf(streams.Out, "%s, no contradictions\n", plural(len(paths), "profile"))
			return err
		},
	}
}

func newProfileDigest(streams IOStreams) *cobra.Command {
	return &cobra.Command{
		Use:   "digest PROFILE",
		Short: "Print the digest that identifies a profile, whatever the order of its keys",
		Long: `Prints the SHA-256 of the canonical JSON of a profile. The order of keys, comments, line breaks and the spelling of
a length of time do not change it; any declared value does.`,
		Example:           "  ptah-qualify profile digest production",
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: completeOneProfile,
		RunE: func(_ *cobra.Command, paths []string) error {
			p, _, err := LoadProfile(paths[0])
			if err != nil {
				return err
			}
			_, err = fmt.Fprintln(streams.Out, p.Digest())
			return err
		},
	}
}

func plural(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}

// completeProfiles completes the names of the profiles of the folder that were not given yet, and files.
func completeProfiles(_ *cobra.Command, given []string, begun string) ([]string, cobra.ShellCompDirective) {
	paths, _ := filepath.Glob(filepath.Join(profilesDir, "*.yaml"))
	var names []string
	for _, path := range paths {
		name := strings.TrimSuffix(filepath.Base(path), ".yaml")
		if strings.HasPrefix(name, begun) && !contained(given, name) {
			names = append(names, name)
		}
	}
	return names, cobra.ShellCompDirectiveDefault
}

// completeOneProfile completes a command that takes one profile.
func completeOneProfile(command *cobra.Command, given []string, begun string) ([]string, cobra.ShellCompDirective) {
	if len(given) > 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	return completeProfiles(command, given, begun)
}

func contained(list []string, word string) bool {
	for _, item := range list {
		if item == word {
			return true
		}
	}
	return false
}
