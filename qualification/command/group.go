package command

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"
)

// groupAnnotation marks a command that does nothing but hold others.
const groupAnnotation = "ptah.run/group"

// refuseUnknownSubcommands makes each command that only holds others refuse a word that is none of them. Without it, a
// mistyped command below the root would print help and pass, which a script takes for what it asked for.
func refuseUnknownSubcommands(root *cobra.Command) {
	// A group is runnable now, and its usage still has to say that a subcommand is what it takes.
	root.SetUsageTemplate(strings.Replace(root.UsageTemplate(), "{{if .Runnable}}", `{{if and .Runnable (not (index .Annotations "`+groupAnnotation+`"))}}`, 1))
	each(root, func(command *cobra.Command) {
		if command == root || !command.HasSubCommands() || command.Runnable() {
			return
		}
		command.Annotations = map[string]string{groupAnnotation: "true"}
		command.Args = knownSubcommand
		command.RunE = func(command *cobra.Command, _ []string) error { return command.Help() }
	})
}

// knownSubcommand refuses every argument: a subcommand that exists is never one.
func knownSubcommand(command *cobra.Command, arguments []string) error {
	if len(arguments) == 0 {
		return nil
	}
	var names []string
	for _, child := range command.Commands() {
		if child.IsAvailableCommand() {
			names = append(names, child.Name())
		}
	}
	near := ""
	// The distance within which suggestions are looked for is that of the root.
	if command.SuggestionsMinimumDistance <= 0 {
		command.SuggestionsMinimumDistance = 2
	}
	if found := command.SuggestionsFor(arguments[0]); len(found) > 0 {
		near = fmt.Sprintf(" (did you mean %s?)", strings.Join(found, " or "))
	}
	return Exit(ExitUsage, fmt.Errorf("there is no command %q below %s%s: use one of %s", arguments[0], command.CommandPath(), near, strings.Join(names, ", ")))
}
