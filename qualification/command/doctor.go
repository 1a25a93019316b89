package command

import "github.com/spf13/cobra"

// NewDoctorCommand returns `ptah-qualify doctor`.
func NewDoctorCommand(streams IOStreams) *cobra.Command {
	return &cobra.Command{Use: "doctor", Short: "Name each thing this machine lacks, with the fix"}
}
