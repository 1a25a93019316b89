package command

import (
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"ptah.run/ptah/qualification/lab"
	"ptah.run/ptah/qualification/lab/source"
)

// completeRun gives the flags of the command run their completions.
func completeRun(command *cobra.Command) {
	mustComplete(command, "labs", completeWords(labsExisting, labsOwn))
	mustComplete(command, "source", completeWords(source.ModulesName, source.RegistryName))
	mustComplete(command, "lab", completeLabs)
	mustComplete(command, "profile", func(command *cobra.Command, _ []string, begun string) ([]string, cobra.ShellCompDirective) {
		return completeProfiles(command, nil, begun)
	})
	mustComplete(command, "resume", completeUnfinishedRuns)
	covered := func(words func(*Declared) []string) func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
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

// completeLabs offers the labs of this user that have a description.
func completeLabs(command *cobra.Command, _ []string, begun string) ([]string, cobra.ShellCompDirective) {
	root, err := lab.Root()
	if err != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	found, _ := filepath.Glob(filepath.Join(root, "*", "lab.json")) // the pattern is well formed
	var ids []string
	for _, path := range found {
		ids = append(ids, filepath.Base(filepath.Dir(path)))
	}
	return completeWords(ids...)(command, nil, begun)
}

// completeUnfinishedRuns offers the runs under the usual folders that were not closed.
func completeUnfinishedRuns(command *cobra.Command, _ []string, begun string) ([]string, cobra.ShellCompDirective) {
	var dirs []string
	for _, pattern := range []string{"runs/*", "*/runs/*", ".ptah/*/runs/*"} {
		found, _ := filepath.Glob(filepath.Join(pattern, "run.json")) // the patterns are well formed
		for _, path := range found {
			dir := filepath.Dir(path)
			if _, err := os.Stat(filepath.Join(dir, "manifest.json")); err != nil {
				dirs = append(dirs, dir)
			}
		}
	}
	if len(dirs) == 0 {
		return nil, cobra.ShellCompDirectiveFilterDirs
	}
	return completeWords(dirs...)(command, nil, begun)
}
