package command

import (
	"fmt"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"ptah.run/ptah/qualification/profile"
)

func newProfileShow(streams IOStreams) *cobra.Command {
	var format string
	command := &cobra.Command{
		Use:   "show PROFILE",
		Short: "Show a profile for people, or as canonical JSON",
		Long: `show prints what a profile declares: versions, installation, workload, and each scenario and target with the requirement
it serves. As JSON it is the canonical form, whose SHA-256 identifies the profile.`,
		Example: `  ptah-qualify profile show production
  ptah-qualify profile show production --format json | sha256sum`,
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: completeOneProfile,
		RunE: func(_ *cobra.Command, paths []string) error {
			p, _, err := LoadProfile(paths[0])
			if err != nil {
				return err
			}
			switch format {
			case "json":
				_, err = streams.Out.Write(p.Canonical())
			case "text":
				err = showProfile(streams, p)
			default:
				return Exit(ExitUsage, fmt.Errorf("there is no format %q, use text or json", format))
			}
			return err
		},
	}
	command.Flags().StringVar(&format, "format", "text", "text, or json: canonical, without a line end, so that its sha256 is the digest")
	return command
}

func showProfile(streams IOStreams, p *profile.Profile) error {
	printf(streams.Out, "%s, revision %d, %s\n%s\n%s\n\n", p.Name, p.Revision, p.Purpose, p.Digest(), p.Summary)
	table := tabwriter.NewWriter(streams.Out, 0, 4, 2, ' ', 0)
	printLine(table, "REQUIREMENT\tTARGET\tBOUND\tNUMBER\tSAMPLES\tCELLS")
	for _, t := range p.Targets {
		printf(table, "%s\t%s\t%s %s\t%s\t%d\t%s\n", t.Requirement, t.ID, t.Bound, t.Unit, t.Number(), max(t.MinSamples, t.Statistic.LeastSamples()), t.Cells)
	}
	printLine(table, "\nREQUIREMENT\tSCENARIO\tFAULT\tCELLS")
	for _, s := range p.Scenarios {
		printf(table, "%s\t%s\t%s\t%s\n", s.Requirement, s.Name, s.Fault, s.Cells)
	}
	if err := table.Flush(); err != nil {
		return err
	}
	printLine(streams.Out, "\nA pass does not show:")
	for _, limit := range p.NotShown {
		printf(streams.Out, "- %s\n", limit)
	}
	printLine(streams.Out, "\nRevisions:")
	for _, r := range p.Revisions {
		printf(streams.Out, "%d (%s) %s\n", r.Number, r.Date, r.Reason)
	}
	return nil
}
