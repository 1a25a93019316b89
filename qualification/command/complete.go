package command

import (
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"ptah.run/ptah/qualification/lab"
	"ptah.run/ptah/qualification/lab/catalog"
	"ptah.run/ptah/qualification/lab/doctor"
	"ptah.run/ptah/qualification/lab/source"
	"ptah.run/ptah/qualification/matrix/catalogue"
)

// completion offers words for what a person began to type.
type completion = func(command *cobra.Command, given []string, begun string) ([]string, cobra.ShellCompDirective)

// mustComplete gives a flag, declared beside the call, its completion.
func mustComplete(command *cobra.Command, flag string, complete completion) {
	if err := command.RegisterFlagCompletionFunc(flag, complete); err != nil {
		panic(err)
	}
}

// flagCompletions complete the flags that have no completion of their own, by their names. A name means the same in
// every command. What only its owner can know, such as a reason, is completed with nothing rather than with files.
func flagCompletions() map[string]completion {
	return map[string]completion{
		"api-port": cobra.NoFileCompletions, "at": cobra.NoFileCompletions, "by": cobra.NoFileCompletions,
		"certificate-identity": cobra.NoFileCompletions, "certificate-issuer": completeWords("https://token.actions.githubusercontent.com"), "cells": completeFolders, "claims": completeEndings("yaml"), "control-planes": completeWords("1", "3"),
		"for": completeWords(purposes()...), "format": completeWords("text", "json"), "id": completeLabs, "identity": completeEndings("txt", "key"),
		"image": cobra.NoFileCompletions, "key": completeEndings("pub", "pem"), "kubernetes": completeMinors, "machines": completeEndings("yaml"),
		"manifest": completeFiles, "matrices": completeFolders, "output": completeFiles, "database-port": cobra.NoFileCompletions, "database-version": cobra.NoFileCompletions,
		"profile": completeProfileFlag, "reason": cobra.NoFileCompletions, "recipient": cobra.NoFileCompletions, "record": completeEndings("json"),
		"registry-port": cobra.NoFileCompletions, "reports": completeFolders, "repository": completeFolders, "restricted": completeFiles,
		"review": completeEndings("json"), "role": completeWords(roles()...), "run": completeRuns, "secret-file": completeFiles,
		"sigstore-bundle": completeEndings("json"), "trusted-root": completeEndings("json"),
		"source": completeWords(source.ModulesName, source.RegistryName), "subject": cobra.NoFileCompletions, "suites": completeEndings("yaml"),
		"sum": cobra.NoFileCompletions, "until": completeWords(quickstartStages...), "verified": cobra.NoFileCompletions,
		"verify-key": completeEndings("pub", "pem"), "version": cobra.NoFileCompletions, "workers": cobra.NoFileCompletions,
	}
}

// completeTree gives every flag below a command its completion, and lets a command that takes no argument offer none:
// a shell would offer files.
func completeTree(command *cobra.Command) {
	known := flagCompletions()
	each(command, func(command *cobra.Command) {
		complete := func(flag *pflag.Flag) {
			if _, own := command.GetFlagCompletionFunc(flag.Name); own || known[flag.Name] == nil {
				return
			}
			mustComplete(command, flag.Name, known[flag.Name])
		}
		command.LocalNonPersistentFlags().VisitAll(complete)
		command.PersistentFlags().VisitAll(complete)
		if command.ValidArgsFunction == nil && !command.HasSubCommands() && takesNoArgument(command) {
			command.ValidArgsFunction = cobra.NoFileCompletions
		}
	})
}

// each visits a command and everything below it.
func each(command *cobra.Command, visit func(*cobra.Command)) {
	visit(command)
	for _, child := range command.Commands() {
		each(child, visit)
	}
}

func takesNoArgument(command *cobra.Command) bool {
	return command.Args != nil && command.Args(command, []string{"x"}) != nil && command.Args(command, []string{"x", "y"}) != nil
}

// completeWords completes with fixed words.
func completeWords(words ...string) completion {
	return func(_ *cobra.Command, _ []string, begun string) ([]string, cobra.ShellCompDirective) {
		fitting := slices.DeleteFunc(slices.Clone(words), func(word string) bool { return !strings.HasPrefix(word, begun) })
		return fitting, cobra.ShellCompDirectiveNoFileComp
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

func completeFiles(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
	return nil, cobra.ShellCompDirectiveDefault
}

// completePrivateKeys completes the flag of a key that signs.
func completePrivateKeys(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
	return []string{"key", "pem"}, cobra.ShellCompDirectiveFilterFileExt
}

// completeProfileFlag completes a flag that takes one profile.
func completeProfileFlag(command *cobra.Command, _ []string, begun string) ([]string, cobra.ShellCompDirective) {
	return completeProfiles(command, nil, begun)
}

func purposes() (words []string) {
	for _, purpose := range doctor.Purposes {
		words = append(words, string(purpose))
	}
	return words
}

func roles() (words []string) {
	for _, role := range catalog.Roles {
		words = append(words, string(role))
	}
	return words
}

// completeMinors offers the supported minors of Kubernetes of the repository that the program runs in.
func completeMinors(command *cobra.Command, _ []string, begun string) ([]string, cobra.ShellCompDirective) {
	root, err := lab.FindRepository(".")
	if err != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	data, err := os.ReadFile(filepath.Join(root, catalogue.KubernetesFile))
	if err != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	window, err := catalogue.DecodeKubernetes(catalogue.KubernetesFile, data)
	if err != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	return completeWords(window.Minors()...)(command, nil, begun)
}

// completeRevisions offers the tags and branches of the git repository that --repository names. A file of a record may
// stand there too.
func completeRevisions(command *cobra.Command, _ []string, begun string) ([]string, cobra.ShellCompDirective) {
	repository := "."
	if flag := command.Flag("repository"); flag != nil && flag.Value.String() != "" {
		repository = flag.Value.String()
	}
	output, err := git(command.Context(), repository, "for-each-ref", "--format=%(refname:short)", "refs/tags", "refs/heads")
	if err != nil {
		return nil, cobra.ShellCompDirectiveDefault
	}
	words, _ := completeWords(append([]string{"HEAD"}, strings.Fields(string(output))...)...)(command, nil, begun)
	return words, cobra.ShellCompDirectiveDefault
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

// completeRuns offers the runs that lie where runs are kept, the latest first, and folders where there is none.
func completeRuns(_ *cobra.Command, given []string, begun string) ([]string, cobra.ShellCompDirective) {
	return offerRuns(keptRuns("."), given, begun)
}

// completeUnfinishedRuns offers those of them that were not closed.
func completeUnfinishedRuns(_ *cobra.Command, given []string, begun string) ([]string, cobra.ShellCompDirective) {
	unfinished := slices.DeleteFunc(keptRuns("."), func(dir string) bool { return isFile(filepath.Join(dir, "manifest.json")) })
	return offerRuns(unfinished, given, begun)
}

func offerRuns(dirs, given []string, begun string) ([]string, cobra.ShellCompDirective) {
	if len(dirs) == 0 {
		return nil, cobra.ShellCompDirectiveFilterDirs
	}
	fitting := slices.DeleteFunc(dirs, func(dir string) bool { return contained(given, dir) || !strings.HasPrefix(dir, begun) })
	return fitting, cobra.ShellCompDirectiveNoFileComp
}

// keptRuns finds the runs in the folders below root where runs are usually kept, the latest first.
func keptRuns(root string) []string {
	var runs []string
	for _, pattern := range []string{"runs/*", "*/runs/*", ".ptah/*/runs/*", "reports/*/runs/*"} {
		found, _ := filepath.Glob(filepath.Join(root, pattern)) // the patterns are well formed
		for _, dir := range found {
			if isRun(dir) {
				runs = append(runs, dir)
			}
		}
	}
	slices.SortFunc(runs, func(a, b string) int {
		if order := strings.Compare(filepath.Base(b), filepath.Base(a)); order != 0 {
			return order
		}
		return strings.Compare(a, b)
	})
	return slices.Compact(runs)
}
