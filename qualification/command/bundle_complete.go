package command

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"github.com/spf13/cobra"

	"ptah.run/ptah/qualification/bundle/secretscan"
)

// scanFile scans one file. A link is refused: what it leads to is scanned where it lies, or not at all.
func scanFile(scanner *secretscan.Scanner, path string, entry fs.DirEntry) ([]secretscan.Finding, error) {
	if !entry.Type().IsRegular() {
		return nil, fmt.Errorf("%s is no regular file, and links are not followed", path)
	}
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer func() { _ = file.Close() }()
	return scanner.Scan(path, file)
}

type completion = func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective)

// completeFlag completes the values of a flag. The name is that of a flag registered beside the call.
func completeFlag(command *cobra.Command, name string, complete completion) {
	if err := command.RegisterFlagCompletionFunc(name, complete); err != nil {
		panic(err)
	}
}

// completeEndings completes files by their endings.
func completeEndings(endings ...string) completion {
	return func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
		return endings, cobra.ShellCompDirectiveFilterFileExt
	}
}

func completeFolders(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
	return nil, cobra.ShellCompDirectiveFilterDirs
}

// completeRunFolders offers the runs under the usual folders, the latest first, and any other folder where there is none.
func completeRunFolders(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
	var runs []string
	for _, pattern := range []string{"runs/*", "*/runs/*", ".ptah/*/runs/*", "reports/*/runs/*"} {
		found, _ := filepath.Glob(pattern) // the patterns are well formed
		for _, dir := range found {
			if _, err := os.Stat(filepath.Join(dir, "run.json")); err == nil {
				runs = append(runs, dir)
			}
		}
	}
	if len(runs) == 0 {
		return nil, cobra.ShellCompDirectiveFilterDirs
	}
	slices.Sort(runs)
	slices.Reverse(runs)
	return slices.Compact(runs), cobra.ShellCompDirectiveNoFileComp
}
