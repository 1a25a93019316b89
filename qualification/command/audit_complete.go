package command

import (
	"strings"

	"github.com/spf13/cobra"

	"ptah.run/ptah/qualification/evidence/dossier"
)

// completeAudit gives the flags that select what is counted their completions. Cells and identities are those of the run
// that the command line names already.
func completeAudit(command *cobra.Command) {
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
func completeFromRun(words func(*dossier.Dossier) []string) completion {
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
