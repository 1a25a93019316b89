package command

import (
	"github.com/spf13/cobra"
)

// NewRootCommand returns ptah-qualify with all its subcommands, reading and writing through the given streams.
func NewRootCommand(streams IOStreams) *cobra.Command {
	root := &cobra.Command{
		Use:   "ptah-qualify",
		Short: "Proves that one exact release of the Ptah operator may run in production",
		Long: `ptah-qualify builds clusters, registries and databases on this machine, runs the qualification matrices
against the digests of a release, judges the evidence against a declared profile, and signs the result.

Exit codes: 0 pass, 1 the product failed, 2 usage, 3 harness or infrastructure failed, 4 not established,
5 interrupted and resumable, 6 verification failed.`,
		Example: `  ptah-qualify doctor          # what this machine lacks
  ptah-qualify quickstart      # from nothing to a signed record and a report
  ptah-qualify status          # where runs are, and how to go on`,
		SilenceUsage:  true,
		SilenceErrors: true,
	}
	root.SetIn(streams.In)
	root.SetOut(streams.Out)
	root.SetErr(streams.Err)
	root.AddCommand(
		NewDoctorCommand(streams),
		NewLabCommand(streams),
		NewProfileCommand(streams),
		NewMatrixCommand(streams),
		NewCatalogueCommand(streams),
		NewKubernetesCommand(streams),
		NewJudgeCommand(streams),
		NewRecordCommand(streams),
		NewGateCommand(streams),
		NewReportCommand(streams),
		NewBundleCommand(streams),
		NewAuditCommand(streams),
		NewRunCommand(streams),
		NewQuickstartCommand(streams),
		NewTestCommand(streams),
		NewStatusCommand(streams),
		NewCleanCommand(streams),
	)
	refuseUnknownSubcommands(root)
	completeTree(root)
	return root
}
