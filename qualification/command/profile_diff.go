package command

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"

	"github.com/spf13/cobra"

	"ptah.run/ptah/qualification/profile"
)

func newProfileDiff(streams IOStreams) *cobra.Command {
	var since, repository string
	command := &cobra.Command{
		Use:   "diff {OLD NEW | --since COMMIT PROFILE...}",
		Short: "Say in words what changed, and refuse a change without its own revision",
		Long: `Compares two files, or profiles of the work tree with what they were in a commit. Each change is one sentence.

A profile that changed needs a new revision with a date and a reason, which lists each changed target and scenario;
earlier revisions stay as they were. Without it the exit code is 2. Nothing is fetched.`,
		Example: `  ptah-qualify profile diff old.yaml profiles/production.yaml
  ptah-qualify profile diff --since HEAD production
  ptah-qualify profile diff --since v0.1.0 production development quickstart`,
		Args:              cobra.MinimumNArgs(1),
		ValidArgsFunction: completeProfiles,
		RunE: func(command *cobra.Command, paths []string) error {
			if since != "" {
				return diffSince(command.Context(), streams, gitRepository{dir: repository}, since, paths)
			}
			if len(paths) != 2 {
				return Exit(ExitUsage, errors.New("name an old and a new profile, or a commit with --since"))
			}
			before, _, err := LoadProfile(paths[0])
			if err != nil {
				return err
			}
			after, _, err := LoadProfile(paths[1])
			if err != nil {
				return err
			}
			return diffProfiles(streams, before, after)
		},
	}
	command.Flags().StringVar(&since, "since", "", "commit, branch or tag that the profiles are compared with")
	command.Flags().StringVar(&repository, "repository", ".", "folder of the git repository that has the commit")
	mustComplete(command, "since", completeRevisions)
	return command
}

// diffProfiles writes what changed, and refuses what no revision owns up to.
func diffProfiles(streams IOStreams, before, after *profile.Profile) error {
	changes := profile.Diff(before, after)
	for _, change := range changes {
		printf(streams.Out, "%s: %s\n", after.Name, change.Sentence)
	}
	if len(changes) == 0 {
		printf(streams.Out, "%s: no target, scenario or declaration changed\n", after.Name)
	}
	return Exit(ExitUsage, profile.CheckRevision(before, after))
}

// diffSince compares profiles of the repository with what they were in a commit. All of them are compared before the
// first refusal is returned.
func diffSince(ctx context.Context, streams IOStreams, git gitRepository, since string, paths []string) error {
	commit, err := git.commit(ctx, since)
	if err != nil {
		return Exit(ExitUsage, err)
	}
	var refused error
	for _, path := range paths {
		path = profilePath(path)
		after, _, err := LoadProfile(filepath.Join(git.dir, path))
		if err != nil {
			return err
		}
		data, there, err := git.file(ctx, commit, filepath.ToSlash(path))
		if err != nil {
			return Exit(ExitHarnessFailed, err)
		}
		if !there {
			printf(streams.Out, "%s: new, %s has no %s\n", after.Name, since, path)
			continue
		}
		before, err := profile.Decode(path+" in "+since, data)
		if err != nil {
			return Exit(ExitUsage, fmt.Errorf("what the profile was cannot be read: %w", err))
		}
		if err := diffProfiles(streams, before, after); err != nil && refused == nil {
			refused = err
		}
	}
	return refused
}
