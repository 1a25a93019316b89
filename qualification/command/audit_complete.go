package command

import (
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"ptah.run/ptah/qualification/evidence/dossier"
)

// completeAudit gives the flags that select what is counted their completions. Cells and identities are those of the run
// that the command line names already.
func completeAudit(command *cobra.Command) {
	mustComplete(command, "run", completeKeptRuns)
	mustComplete(command, "cell", completeFromRun(func(d *dossier.Dossier) (words []string) {
		for _, cell := range d.Cells {
			words = append(words, cell.Evidence.Cell)
		}
		return words
	}))
	mustComplete(command, "user", completeFromRun(func(d *dossier.Dossier) []string { return []string{d.Profile.Installation.ManagerIdentity} }))
	mustComplete(command, "log", func(_ *cobra.Command, _ []string, begun string) ([]string, cobra.ShellCompDirective) {
		if !strings.Contains(begun, "=") {
			return nil, cobra.ShellCompDirectiveNoFileComp | cobra.ShellCompDirectiveNoSpace
		}
		return nil, cobra.ShellCompDirectiveDefault
	})
	for _, flag := range []string{"from", "to", "window", "servers"} {
		mustComplete(command, flag, cobra.NoFileCompletions)
	}
}

// completeFromRun completes with words of the run that --run names, and with nothing where it cannot be read.
func completeFromRun(words func(*dossier.Dossier) []string) func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
	return func(command *cobra.Command, _ []string, begun string) ([]string, cobra.ShellCompDirective) {
		run, err := command.Flags().GetString("run")
		if err != nil || run == "" {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		d, err := dossier.Load(run)
		if err != nil {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		return completeWords(words(d)...)(command, nil, begun)
	}
}

// completeKeptRuns offers the runs that lie where runs are kept, and folders.
func completeKeptRuns(_ *cobra.Command, _ []string, begun string) ([]string, cobra.ShellCompDirective) {
	var runs []string
	for _, pattern := range []string{"runs/*", ".ptah/*/runs/*", "reports/*/runs/*"} {
		found, err := filepath.Glob(pattern)
		if err != nil {
			continue // the patterns are well formed
		}
		for _, dir := range found {
			if _, err := os.Stat(filepath.Join(dir, "run.json")); err == nil && strings.HasPrefix(dir, begun) {
				runs = append(runs, dir)
			}
		}
	}
	if len(runs) > 0 {
		return runs, cobra.ShellCompDirectiveNoFileComp
	}
	return nil, cobra.ShellCompDirectiveFilterDirs
}
