package command

import (
	"github.com/spf13/cobra"

	"ptah.run/ptah/qualification/lab"
)

// completeRun gives the flags of the command run their completions.
func completeRun(command *cobra.Command) {
	mustComplete(command, "labs", completeWords(labsExisting, labsOwn))
	mustComplete(command, "lab", completeLabs)
	mustComplete(command, "resume", completeUnfinishedRuns)
	covered := func(words func(*Declared) []string) completion {
		return func(command *cobra.Command, _ []string, begun string) ([]string, cobra.ShellCompDirective) {
			declared, err := declaredOf(command)
			if err != nil {
				return nil, cobra.ShellCompDirectiveNoFileComp
			}
			return completeWords(words(declared)...)(command, nil, begun)
		}
	}
	mustComplete(command, "matrix", covered(func(declared *Declared) []string { return coveredMatrices(declared.Profile) }))
	mustComplete(command, "depth", covered(func(declared *Declared) (depths []string) {
		for _, m := range declared.Matrices {
			for _, depth := range m.Depths {
				if !contained(depths, depth.Name) {
					depths = append(depths, depth.Name)
				}
			}
		}
		return depths
	}))
	mustComplete(command, "cell", covered(func(declared *Declared) (keys []string) {
		for _, cell := range declared.Cells {
			keys = append(keys, cell.Key)
		}
		return keys
	}))
}

// declaredOf reads what the profile on the command line declares.
func declaredOf(command *cobra.Command) (*Declared, error) {
	repository, err := lab.FindRepository(".")
	if err != nil {
		return nil, err
	}
	profile, err := command.Flags().GetString("profile")
	if err != nil {
		return nil, err
	}
	begun := &begunRun{request: runOptions{profile: profile}.request(repository)}
	return begun.declared, begun.load(repository)
}
