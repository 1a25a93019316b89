package command

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"ptah.run/ptah/qualification/gate"
	"ptah.run/ptah/qualification/matrix"
	"ptah.run/ptah/qualification/matrix/catalogue"
	"ptah.run/ptah/qualification/profile"
)

type gateFlags struct {
	profile, matrix, depth, matrices string
	keys, subjects                   []string
	acceptance                       bool
	format, output                   string
}

// NewGateCommand returns `ptah-qualify gate`.
func NewGateCommand(streams IOStreams) *cobra.Command {
	var flags gateFlags
	command := &cobra.Command{
		Use:   "gate [--matrix NAME --depth DEPTH] [--profile PROFILE] --key PUB DIR|FILE...",
		Short: "Pass only if exactly the declared cells are there, signed, and passed",
		Long: `gate is what CI calls last and what a release must show. It takes signed records, signed cells and run directories, by
file or by folder (searched through), and passes only if every declared cell is there once, signed by a given key,
judged under exactly this profile, about one release, and passed with everything the profile demands of it.

A skipped, missing, duplicated, foreign, unsigned or altered cell refuses, and so does one judged under an older profile;
each refusal names the cell. A run directory is evidence: its cells are judged again and must come out as signed, and a
cell in it that nobody signed refuses. Without --matrix everything that the profile covers is demanded. An empty set
never passes. It uses no network.

Exit codes: 0 pass, 1 a cell shows that the product failed, 3 the harness or the machine failed, 4 the set is not
complete or decides nothing, 6 a signature, a digest or a judgement does not fit.`,
		Example: `  ptah-qualify gate --matrix functional --depth pull-request --profile development --key ci.pub gathered/
  ptah-qualify gate --acceptance --key release.pub --subject chart/ptah-operator=sha256:df2f... records/ runs/r1`,
		Args:              cobra.MinimumNArgs(1),
		ValidArgsFunction: completeFiles,
		RunE: func(command *cobra.Command, paths []string) error {
			declared, err := flags.declared()
			if err != nil {
				return err
			}
			keys, err := readVerifiers(flags.keys)
			if err != nil {
				return err
			}
			offered, err := gatherCells(command.Context(), keys, paths)
			if err != nil {
				return err
			}
			return flags.report(streams.Out, gate.Decide(declared, offered))
		},
	}
	command.Flags().StringVar(&flags.profile, "profile", "production", "profile that every cell must have been judged under, a file or a name in the folder profiles")
	command.Flags().StringVar(&flags.matrix, "matrix", "", "demand the cells of this matrix (default: all that the profile covers)")
	command.Flags().StringVar(&flags.depth, "depth", "", "depth of that matrix: smoke, pull-request or release")
	command.Flags().StringVar(&flags.matrices, "matrices", "matrices", "folder with the matrices")
	command.Flags().StringArrayVar(&flags.keys, "key", nil, "PEM public key; repeat to admit several")
	command.Flags().StringArrayVar(&flags.subjects, "subject", nil, "digest that the cells must be about, as NAME=sha256:..., such as ptah/manager; repeat for several")
	command.Flags().BoolVar(&flags.acceptance, "acceptance", false, "demand what an acceptance demands: its profile, all that it covers, and all that it must name")
	command.Flags().StringVar(&flags.format, "format", "text", "text or json")
	command.Flags().StringVar(&flags.output, "output", "", "also write the decision as JSON to this file")
	command.MarkFlagsRequiredTogether("matrix", "depth")
	mustRequire(command, "key")
	mustComplete(command, "matrix", func(command *cobra.Command, _ []string, begun string) ([]string, cobra.ShellCompDirective) {
		return completeMatrices(&flags.matrices)(command, nil, begun)
	})
	mustComplete(command, "depth", completeWords(catalogue.Depths...))
	return command
}

var digestPattern = regexp.MustCompile(`^sha256:[0-9a-f]{64}$`)

// declared reads what must be there.
func (f gateFlags) declared() (gate.Declared, error) {
	if f.format != "text" && f.format != "json" {
		return gate.Declared{}, Exit(ExitUsage, fmt.Errorf("there is no format %q, use text or json", f.format))
	}
	p, _, err := LoadProfile(f.profile)
	if err != nil {
		return gate.Declared{}, err
	}
	var selections []profile.Coverage
	if f.matrix != "" {
		selections = []profile.Coverage{{Matrix: f.matrix, Depth: f.depth}}
	}
	declared, err := gate.Declare(p, selections, func(name string) (*matrix.Matrix, error) {
		m, _, err := LoadMatrix(filepath.Join(f.matrices, name+".yaml"))
		return m, err
	})
	var exit *ExitError
	if err != nil && !errors.As(err, &exit) {
		err = Exit(ExitUsage, err)
	}
	if err != nil {
		return declared, err
	}
	declared.Acceptance, declared.Subject = f.acceptance, map[string]string{}
	for _, subject := range f.subjects {
		name, digest, ok := strings.Cut(subject, "=")
		if !ok || name == "" || !digestPattern.MatchString(digest) {
			return declared, Exit(ExitUsage, fmt.Errorf("--subject takes NAME=sha256:<64 hex digits>, such as ptah/manager=sha256:..., not %.80q", subject))
		}
		declared.Subject[name] = digest
	}
	return declared, nil
}

func (f gateFlags) report(out io.Writer, decision gate.Decision) error {
	data, err := json.MarshalIndent(struct {
		Passed bool `json:"passed"`
		gate.Decision
	}{decision.Passed(), decision}, "", "  ")
	if err != nil {
		return Exit(ExitHarnessFailed, err)
	}
	data = append(data, '\n')
	if f.output != "" {
		if err := writeOutput(f.output, data); err != nil {
			return err
		}
	}
	if f.format == "json" {
		_, err = out.Write(data)
	} else {
		err = printDecision(out, decision)
	}
	if err != nil {
		return Exit(ExitHarnessFailed, err)
	}
	if decision.Passed() {
		return nil
	}
	first := decision.Refusals[0].Message
	if more := len(decision.Refusals) - 1; more > 0 {
		first += fmt.Sprintf(" (and %d refusals more)", more)
	}
	return Exit(gateCode(decision.Refusals), fmt.Errorf("the gate stays shut: %s", first))
}

func printDecision(out io.Writer, decision gate.Decision) error {
	identity := decision.Profile
	printf(out, "profile %s, revision %d (%s), %s\n", identity.Name, identity.Revision, identity.Purpose, identity.Digest)
	for _, name := range slices.Sorted(maps.Keys(decision.Subject)) {
		printf(out, "about %s %s\n", name, decision.Subject[name])
	}
	table := tabwriter.NewWriter(out, 0, 4, 2, ' ', 0)
	printLine(table, "\nGATE\tCELL\tVERDICT\tFROM")
	passed := 0
	for _, cell := range decision.Cells {
		word := "refused"
		if cell.Passed {
			word, passed = "passed", passed+1
		}
		printf(table, "%s\t%s/%s\t%s\t%s\n", word, cell.Matrix, cell.Cell, cell.Verdict, cell.Source)
	}
	if err := table.Flush(); err != nil {
		return err
	}
	for _, refusal := range decision.Refusals {
		printf(out, "refused: %s: %s", refusal.Code, refusal.Message)
		if refusal.Source != "" {
			printf(out, " [%s]", refusal.Source)
		}
		printLine(out)
	}
	_, err := fmt.Fprintf(out, "%d of %d declared cells are there and passed\n", passed, len(decision.Cells))
	return err
}

// gateCode is the exit code of the gravest refusal: a failed verification, then a failed product, then a failed
// harness; anything else is not established.
func gateCode(refusals []gate.Refusal) int {
	code := ExitNotEstablished
	for _, refusal := range refusals {
		switch refusal.Code {
		case gate.Unsigned, gate.Altered, gate.Contradicts, gate.EvidenceDiffer:
			return ExitVerificationFailed
		case gate.NotPassed:
			if found := ExitOf(refusal.Verdict); found == ExitProductFailed || (found == ExitHarnessFailed && code == ExitNotEstablished) {
				code = found
			}
		}
	}
	return code
}
