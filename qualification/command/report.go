package command

import (
	"path/filepath"

	"github.com/spf13/cobra"

	"ptah.run/ptah/qualification/evidence/dossier"
	"ptah.run/ptah/qualification/report"
)

// WriteReports renders the reports of a run into an existing folder and returns their paths, the HTML page first.
func WriteReports(d *dossier.Dossier, dir string) ([]string, error) {
	files, err := report.Files(report.Build(d, d.Judge()))
	if err != nil {
		return nil, Exit(ExitHarnessFailed, err)
	}
	paths := []string{filepath.Join(dir, report.HTMLName)}
	for _, file := range files {
		path := filepath.Join(dir, file.Name)
		if err := writeOutput(path, file.Data); err != nil {
			return nil, err
		}
		if file.Name != report.HTMLName {
			paths = append(paths, path)
		}
	}
	return paths, nil
}

// NewReportCommand returns `ptah-qualify report` with its subcommands.
func NewReportCommand(streams IOStreams) *cobra.Command {
	var run, output string
	command := &cobra.Command{
		Use:   "report --run DIR --output DIR",
		Short: "Render the judgement of a run as one HTML page, Markdown and JUnit XML",
		Long: `Report judges a closed run and renders the judgement four times from one view of it: report.html, one file that loads
nothing and is for reading; report.md; junit.xml, in which only a pass is green; and report.json, which holds what the
other three were rendered from. The same run gives the same bytes. Every form says what the run does not show.

Rendering succeeds whatever the verdict is: use judge or record verify for an exit code.`,
		Example: `  ptah-qualify report --run .ptah/quickstart/runs/20261129-181158 --output .ptah/quickstart`,
		Args:    cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			d, err := LoadRun(run)
			if err != nil {
				return err
			}
			paths, err := WriteReports(d, output)
			if err != nil {
				return err
			}
			for _, path := range paths {
				printLine(streams.Out, path)
			}
			return nil
		},
	}
	command.Flags().StringVar(&run, "run", "", "directory of the run")
	command.Flags().StringVar(&output, "output", "", "existing folder to write into")
	mustRequire(command, "run", "output")
	mustComplete(command, "output", completeFolders)
	command.AddCommand(newReportVerify(streams))
	return command
}

func newReportVerify(streams IOStreams) *cobra.Command {
	var flags verifyFlags
	command := &cobra.Command{
		Use:   "verify --reports DIR --record FILE --key PUB",
		Short: "Check that rendered reports are the ones that a signed record binds",
		Long: `Verify checks the signatures of a record and that the files in a folder are, byte by byte, the reports it binds. It
uses no network, and exits 6 where anything does not fit.`,
		Example: `  ptah-qualify report verify --reports reports/quickstart --record reports/quickstart/qualification-record.json --key reports/quickstart/qualification.pub`,
		Args:    cobra.NoArgs,
		RunE: func(command *cobra.Command, _ []string) error {
			verified, err := verifyRecord(command.Context(), flags)
			if err != nil {
				return err
			}
			printVerified(streams.Out, verified)
			return nil
		},
	}
	command.Flags().StringVar(&flags.reports, "reports", "", "directory of the rendered reports")
	command.Flags().StringVar(&flags.record, "record", "", "signed record")
	command.Flags().StringArrayVar(&flags.keys, "key", nil, "PEM public key; repeat to admit several")
	mustRequire(command, "reports", "record", "key")
	return command
}
