package command

import "github.com/spf13/cobra"

// NewLabCommand returns `ptah-qualify lab` with its subcommands.
func NewLabCommand(streams IOStreams) *cobra.Command {
	return &cobra.Command{Use: "lab", Short: "Build images and run clusters, registries and databases on this machine"}
}
