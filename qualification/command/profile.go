package command

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"ptah.run/ptah/qualification/evidence"
	"ptah.run/ptah/qualification/evidence/dossier"
	"ptah.run/ptah/qualification/matrix"
	"ptah.run/ptah/qualification/matrix/catalogue"
	"ptah.run/ptah/qualification/profile"
)

// Declared is everything that a run is judged against, read and checked.
type Declared struct {
	Profile      *profile.Profile
	Matrices     map[string]*matrix.Matrix
	Suites       *catalogue.Suites
	Cells        []matrix.Cell // that the coverage of the profile demands, in order
	Declarations dossier.Declarations
}

// LoadDeclared reads a profile, the matrices that it covers from a folder and the catalogue of suites. A profile that
// contradicts itself and a cell whose suite the catalogue does not have are refused. Errors carry their exit code.
func LoadDeclared(profilePath, matricesDir, suitesPath string, harness dossier.Harness) (*Declared, error) {
	p, data, err := LoadProfile(profilePath)
	if err != nil {
		return nil, err
	}
	if findings := profile.Lint(p); len(findings) > 0 {
		return nil, Exit(ExitUsage, fmt.Errorf("%s contradicts itself: %s", profilePath, findings[0]))
	}
	declared := &Declared{Profile: p, Matrices: map[string]*matrix.Matrix{}}
	declared.Declarations = dossier.Declarations{Profile: data, Matrices: map[string][]byte{}, Harness: harness}
	for _, coverage := range p.Coverage {
		m, data, err := LoadMatrix(filepath.Join(matricesDir, coverage.Matrix+".yaml"))
		if err != nil {
			return nil, err
		}
		if m.Name != coverage.Matrix {
			return nil, Exit(ExitUsage, fmt.Errorf("the file of matrix %s declares the matrix %s, rename one of them", coverage.Matrix, m.Name))
		}
		declared.Matrices[m.Name], declared.Declarations.Matrices[m.Name] = m, data
	}
	if declared.Declarations.Suites, err = readInput(suitesPath); err != nil {
		return nil, err
	}
	if declared.Suites, err = catalogue.DecodeSuites(suitesPath, declared.Declarations.Suites); err != nil {
		return nil, Exit(ExitUsage, err)
	}
	declared.Cells, err = dossier.Expected(p, func(name string) (*matrix.Matrix, error) { return declared.Matrices[name], nil })
	if err != nil {
		return nil, Exit(ExitUsage, err)
	}
	for _, cell := range declared.Cells {
		if cell.Suite() == "" {
			continue
		}
		if _, err := declared.Suites.Find(cell.Suite()); err != nil {
			return nil, Exit(ExitUsage, fmt.Errorf("cell %s: %w", cell.Key, err))
		}
	}
	return declared, nil
}

// LoadProfile reads a profile and returns it with its bytes. A name without a slash or an ending is looked up in the
// folder profiles. Errors carry their exit code.
func LoadProfile(path string) (*profile.Profile, []byte, error) {
	if !strings.ContainsAny(path, "/\\") && filepath.Ext(path) == "" {
		path = filepath.Join("profiles", path+".yaml")
	}
	data, err := readInput(path)
	if err != nil {
		return nil, nil, err
	}
	p, err := profile.Decode(path, data)
	if err != nil {
		return nil, nil, Exit(ExitUsage, err)
	}
	return p, data, nil
}

// LoadMatrix reads a matrix and returns it with its bytes. Errors carry their exit code.
func LoadMatrix(path string) (*matrix.Matrix, []byte, error) {
	data, err := readInput(path)
	if err != nil {
		return nil, nil, err
	}
	m, err := matrix.Decode(path, data)
	if err != nil {
		return nil, nil, Exit(ExitUsage, err)
	}
	return m, data, nil
}

// readInput reads a file that the command line names.
func readInput(path string) ([]byte, error) {
	data, err := os.ReadFile(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, Exit(ExitUsage, fmt.Errorf("there is no file %s, check the path", path))
	case err != nil:
		return nil, Exit(ExitUsage, fmt.Errorf("cannot read %s: %w", path, reason(err)))
	}
	return data, nil
}

// reason takes the path out of an error that names it already.
func reason(err error) error {
	var path *fs.PathError
	if errors.As(err, &path) {
		return path.Err
	}
	return err
}

// writeOutput writes a file that the command line names, whole or not at all.
func writeOutput(path string, data []byte) error { return writeOutputMode(path, data, 0o644) }

func writeOutputMode(path string, data []byte, mode fs.FileMode) error {
	err := evidence.WriteFileAtomicMode(path, data, mode)
	return Exit(outputCode(err), err)
}

// outputCode is usage where the named folder is wrong, and harness failure where the machine failed.
func outputCode(err error) int {
	if errors.Is(err, evidence.ErrUnusableFolder) {
		return ExitUsage
	}
	return ExitHarnessFailed
}

// NewProfileCommand returns `ptah-qualify profile` with its subcommands.
func NewProfileCommand(streams IOStreams) *cobra.Command {
	command := &cobra.Command{Use: "profile", Short: "Check, show, compare and identify declared profiles"}
	command.AddCommand(newProfileLint(streams), newProfileShow(streams), newProfileDigest(streams), newProfileDiff(streams))
	return command
}

func newProfileLint(streams IOStreams) *cobra.Command {
	return &cobra.Command{
		Use:   "lint PROFILE...",
		Short: "Refuse profiles that are malformed or contradict their own workload, with the arithmetic",
		Args:  cobra.MinimumNArgs(1),
		RunE: func(_ *cobra.Command, paths []string) error {
			count := 0
			for _, path := range paths {
				p, _, err := LoadProfile(path)
				if err != nil {
					return err
				}
				for _, finding := range profile.Lint(p) {
					count++
					fmt.Fprintf(streams.Out, "%s: %s\n", path, finding)
				}
			}
			if count > 0 {
				return Exit(ExitUsage, fmt.Errorf("%d contradictions: nothing is judged under such a profile, change its targets or its workload in a new revision", count))
			}
			fmt.Fprintf(streams.Out, "%d profiles, no contradictions\n", len(paths))
			return nil
		},
	}
}

func newProfileDigest(streams IOStreams) *cobra.Command {
	return &cobra.Command{
		Use:   "digest PROFILE",
		Short: "Print the digest that identifies a profile, whatever the order of its keys",
		Args:  cobra.ExactArgs(1),
		RunE: func(_ *cobra.Command, paths []string) error {
			p, _, err := LoadProfile(paths[0])
			if err != nil {
				return err
			}
			_, err = fmt.Fprintln(streams.Out, p.Digest())
			return err
		},
	}
}

func newProfileDiff(streams IOStreams) *cobra.Command {
	return &cobra.Command{
		Use:   "diff OLD NEW",
		Short: "Say in words what changed, and refuse a change without its own revision",
		Args:  cobra.ExactArgs(2),
		RunE: func(_ *cobra.Command, paths []string) error {
			before, _, err := LoadProfile(paths[0])
			if err != nil {
				return err
			}
			after, _, err := LoadProfile(paths[1])
			if err != nil {
				return err
			}
			changes := profile.Diff(before, after)
			for _, change := range changes {
				fmt.Fprintln(streams.Out, change.Sentence)
			}
			if len(changes) == 0 {
				fmt.Fprintln(streams.Out, "no target, scenario or declaration changed")
			}
			return Exit(ExitUsage, profile.CheckRevision(before, after))
		},
	}
}

func newProfileShow(streams IOStreams) *cobra.Command {
	var format string
	command := &cobra.Command{
		Use:   "show PROFILE",
		Short: "Show a profile for people, or as canonical JSON",
		Args:  cobra.ExactArgs(1),
		RunE: func(_ *cobra.Command, paths []string) error {
			p, _, err := LoadProfile(paths[0])
			if err != nil {
				return err
			}
			switch format {
			case "json":
				_, err = fmt.Fprintf(streams.Out, "%s\n", p.Canonical())
			case "text":
				err = showProfile(streams, p)
			default:
				return Exit(ExitUsage, fmt.Errorf("there is no format %q, use text or json", format))
			}
			return err
		},
	}
	command.Flags().StringVar(&format, "format", "text", "text or json (canonical: its sha256 is the digest)")
	return command
}

func showProfile(streams IOStreams, p *profile.Profile) error {
	fmt.Fprintf(streams.Out, "%s, revision %d, %s\n%s\n%s\n\n", p.Name, p.Revision, p.Purpose, p.Digest(), p.Summary)
	table := tabwriter.NewWriter(streams.Out, 0, 4, 2, ' ', 0)
	fmt.Fprintln(table, "REQUIREMENT\tTARGET\tMETRIC\tOVER\tBOUND\tAT LEAST")
	for _, t := range p.Targets {
		fmt.Fprintf(table, "%s\t%s\t%s of %s\t%s %s\t%s %s\tn = %d\n", t.Requirement, t.ID, t.Statistic, t.Metric, t.Window, t.Population, t.Bound, t.Unit, max(t.MinSamples, t.Statistic.LeastSamples()))
	}
	fmt.Fprintln(table, "\nREQUIREMENT\tSCENARIO\tFAULT")
	for _, s := range p.Scenarios {
		fmt.Fprintf(table, "%s\t%s\t%s\n", s.Requirement, s.Name, s.Fault)
	}
	if err := table.Flush(); err != nil {
		return err
	}
	fmt.Fprintln(streams.Out, "\nA pass does not show:")
	for _, limit := range p.NotShown {
		fmt.Fprintf(streams.Out, "- %s\n", limit)
	}
	fmt.Fprintln(streams.Out, "\nRevisions:")
	for _, r := range p.Revisions {
		fmt.Fprintf(streams.Out, "%d (%s) %s\n", r.Number, r.Date, r.Reason)
	}
	return nil
}
