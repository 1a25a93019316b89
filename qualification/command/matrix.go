package command

import (
	"encoding/json"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"ptah.run/ptah/qualification/matrix"
	"ptah.run/ptah/qualification/matrix/catalogue"
	"ptah.run/ptah/qualification/matrix/workflow"
)

// NewMatrixCommand returns `ptah-qualify matrix` with its subcommands.
func NewMatrixCommand(streams IOStreams) *cobra.Command {
	command := &cobra.Command{
		Use:   "matrix",
		Short: "List the matrices and plan the cells of a depth",
		Long: `A matrix declares cells as the product of its axes: what is tested, on which Kubernetes minor, with which database and
platform. A depth is a named selection of them: smoke, pull-request or release.

These commands read files and start nothing.`,
		Example: `  ptah-qualify matrix list
  ptah-qualify matrix plan functional --depth release
  ptah-qualify matrix github functional --depth pull-request`,
	}
	command.AddCommand(newMatrixList(streams), newMatrixPlan(streams), newMatrixGitHub(streams))
	return command
}

// matrixFlags say which cells are meant, and what the repository declares about them.
type matrixFlags struct {
	dir      string
	suites   string
	machines string
	depth    string
	format   string
}

func (f *matrixFlags) bind(command *cobra.Command) {
	command.Flags().StringVar(&f.dir, "matrices", "matrices", "folder with the matrices")
	command.Flags().StringVar(&f.suites, "suites", catalogue.SuitesFile, "catalogue of suites")
	command.Flags().StringVar(&f.machines, "machines", catalogue.MachinesFile, "catalogue of machines")
}

func (f *matrixFlags) bindDepth(command *cobra.Command) {
	command.Flags().StringVar(&f.depth, "depth", "smoke", "which cells: "+strings.Join(catalogue.Depths, ", "))
	mustComplete(command, "depth", completeDepths(&f.dir))
	command.ValidArgsFunction = completeMatrices(&f.dir)
}

func (f *matrixFlags) catalogues() (*catalogue.Suites, *catalogue.Machines, error) {
	data, err := readInput(f.suites)
	if err != nil {
		return nil, nil, err
	}
	suites, err := catalogue.DecodeSuites(f.suites, data)
	if err != nil {
		return nil, nil, Exit(ExitUsage, err)
	}
	if data, err = readInput(f.machines); err != nil {
		return nil, nil, err
	}
	machines, err := catalogue.DecodeMachines(f.machines, data)
	return suites, machines, Exit(ExitUsage, err)
}

// plan reads the catalogues and plans a depth of a matrix.
func (f *matrixFlags) plan(name string) (*matrix.Matrix, []catalogue.CellPlan, error) {
	m, _, err := LoadMatrix(matrixPath(f.dir, name))
	if err != nil {
		return nil, nil, err
	}
	suites, machines, err := f.catalogues()
	if err != nil {
		return nil, nil, err
	}
	plan, err := catalogue.Plan(m, f.depth, suites, machines)
	return m, plan, Exit(ExitUsage, err)
}

// matrixPath is the file of a matrix: a path, or a name in the folder of matrices.
func matrixPath(dir, name string) string {
	if strings.ContainsAny(name, "/\\") || filepath.Ext(name) != "" {
		return name
	}
	return filepath.Join(dir, name+".yaml")
}

// completeMatrices proposes the names of the declared matrices as the only argument.
func completeMatrices(dir *string) cobra.CompletionFunc {
	return func(_ *cobra.Command, given []string, _ string) ([]cobra.Completion, cobra.ShellCompDirective) {
		if len(given) > 0 {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		paths, _ := filepath.Glob(filepath.Join(*dir, "*.yaml"))
		var names []cobra.Completion
		for _, path := range paths {
			if m, _, err := LoadMatrix(path); err == nil {
				names = append(names, cobra.CompletionWithDesc(m.Name, m.Summary))
			}
		}
		return names, cobra.ShellCompDirectiveNoFileComp
	}
}

// completeDepths proposes the depths of the named matrix, and those that every matrix has where none is named.
func completeDepths(dir *string) cobra.CompletionFunc {
	return func(_ *cobra.Command, given []string, _ string) ([]cobra.Completion, cobra.ShellCompDirective) {
		if len(given) == 1 {
			if m, _, err := LoadMatrix(matrixPath(*dir, given[0])); err == nil {
				var depths []cobra.Completion
				for _, depth := range m.Depths {
					depths = append(depths, cobra.CompletionWithDesc(depth.Name, depth.Summary))
				}
				return depths, cobra.ShellCompDirectiveNoFileComp
			}
		}
		return slices.Clone(catalogue.Depths), cobra.ShellCompDirectiveNoFileComp
	}
}

func newMatrixList(streams IOStreams) *cobra.Command {
	flags := &matrixFlags{}
	command := &cobra.Command{
		Use:     "list",
		Short:   "List the declared matrices with their depths",
		Long:    "list prints every depth of every matrix: how many cells it has, and how many of them can run today.",
		Example: "  ptah-qualify matrix list",
		Args:    cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			paths, err := filepath.Glob(filepath.Join(flags.dir, "*.yaml"))
			if err != nil || len(paths) == 0 {
				return Exit(ExitUsage, fmt.Errorf("there is no matrix in the folder %s, check the path", flags.dir))
			}
			return listMatrices(streams.Out, flags, paths)
		},
	}
	flags.bind(command)
	return command
}

func listMatrices(out io.Writer, flags *matrixFlags, paths []string) error {
	suites, machines, err := flags.catalogues()
	if err != nil {
		return err
	}
	table := tabwriter.NewWriter(out, 0, 4, 2, ' ', 0)
	printLine(table, "MATRIX\tDEPTH\tCELLS\tCAN RUN\tWHAT")
	for _, path := range paths {
		m, _, err := LoadMatrix(path)
		if err != nil {
			return err
		}
		for _, depth := range m.Depths {
			plan, err := catalogue.Plan(m, depth.Name, suites, machines)
			if err != nil {
				return Exit(ExitUsage, err)
			}
			printf(table, "%s\t%s\t%d\t%d\t%s\n", m.Name, depth.Name, len(plan), len(runnable(plan)), depth.Summary)
		}
	}
	return table.Flush()
}

func runnable(plan []catalogue.CellPlan) []catalogue.CellPlan {
	return slices.DeleteFunc(slices.Clone(plan), func(cell catalogue.CellPlan) bool { return !cell.Runnable() })
}

func newMatrixPlan(streams IOStreams) *cobra.Command {
	flags := &matrixFlags{}
	command := &cobra.Command{
		Use:   "plan MATRIX",
		Short: "Print the cells of a depth with their minutes and machines, before anything starts",
		Long: `plan prints every cell of a depth: its phases, its estimated minutes and the machine that it takes. A cell that cannot run
is printed with its reasons. Such a cell is never left out and never a pass: a set that holds it is not complete.`,
		Example: `  ptah-qualify matrix plan functional
  ptah-qualify matrix plan capacity --depth release --format json`,
		Args: cobra.ExactArgs(1),
		RunE: func(_ *cobra.Command, arguments []string) error {
			m, plan, err := flags.plan(arguments[0])
			if err != nil {
				return err
			}
			switch flags.format {
			case "json":
				encoder := json.NewEncoder(streams.Out)
				encoder.SetIndent("", "  ")
				return encoder.Encode(plan)
			case "text":
				return printPlan(streams.Out, m, flags.depth, plan)
			default:
				return Exit(ExitUsage, fmt.Errorf("there is no format %q, use text or json", flags.format))
			}
		},
	}
	flags.bind(command)
	flags.bindDepth(command)
	command.Flags().StringVar(&flags.format, "format", "text", "text or json")
	return command
}

func printPlan(out io.Writer, m *matrix.Matrix, depth string, plan []catalogue.CellPlan) error {
	run := runnable(plan)
	printf(out, "matrix %s, depth %s: %d cells, %d to run, %d not run\n", m.Name, depth, len(plan), len(run), len(plan)-len(run))
	table := tabwriter.NewWriter(out, 0, 4, 2, ' ', 0)
	if len(run) > 0 {
		printLine(table, "\nCELL\tMINUTES\tMACHINE\tPHASES")
	}
	for _, cell := range run {
		printf(table, "%s\t%d\t%s\t%s\n", cell.Key, cell.Minutes, cell.Machine.Name, strings.Join(cell.Phases, ", "))
	}
	if err := table.Flush(); err != nil {
		return err
	}
	for _, gap := range distinct(run, func(cell catalogue.CellPlan) []string { return cell.Gaps }) {
		printf(out, "\nnot yet part of these cells: %s\n", gap)
	}
	if err := printNotRun(out, plan); err != nil {
		return err
	}
	printLine(out)
	return printMachines(out, run)
}

// printMachines says what the cells take, one cluster each.
func printMachines(out io.Writer, run []catalogue.CellPlan) error {
	if len(run) == 0 {
		_, err := fmt.Fprintln(out, "No cell can run.")
		return err
	}
	var names []string
	minutes, cells, longest := map[string]int{}, map[string]int{}, map[string]int{}
	machines := map[string]catalogue.Machine{}
	for _, cell := range run {
		name := cell.Machine.Name
		if cells[name] == 0 {
			names = append(names, name)
		}
		machines[name] = cell.Machine
		minutes[name] += cell.Minutes
		cells[name]++
		longest[name] = max(longest[name], cell.Minutes)
	}
	for _, name := range names {
		machine := machines[name]
		if _, err := fmt.Fprintf(out, "%s (%s, %d cores, %d GiB): %d cells, about %s one after the other, the longest %s\n",
			name, machine.Platform, machine.Cores, machine.MemoryGiB, cells[name], length(minutes[name]), length(longest[name])); err != nil {
			return err
		}
	}
	_, err := fmt.Fprintln(out, "Each cell builds a lab of its own. Minutes are estimates for four cores, with the images of the lab already built.")
	return err
}

// length is a number of minutes as a person says it.
func length(minutes int) string {
	if minutes < 60 {
		return fmt.Sprintf("%d min", minutes)
	}
	return fmt.Sprintf("%d h %02d min", minutes/60, minutes%60)
}

// printNotRun numbers the reasons and names every cell that is not run with the numbers of its reasons.
func printNotRun(out io.Writer, plan []catalogue.CellPlan) error {
	reasons := distinct(plan, func(cell catalogue.CellPlan) []string { return cell.NotRun })
	if len(reasons) == 0 {
		return nil
	}
	printLine(out, "\nnot run, because")
	for i, reason := range reasons {
		printf(out, "  (%d) %s\n", i+1, reason)
	}
	table := tabwriter.NewWriter(out, 0, 4, 2, ' ', 0)
	printLine(table, "\nCELL\tNOT RUN BECAUSE")
	for _, cell := range plan {
		if cell.Runnable() {
			continue
		}
		numbers := make([]string, len(cell.NotRun))
		for i, reason := range cell.NotRun {
			numbers[i] = fmt.Sprintf("(%d)", slices.Index(reasons, reason)+1)
		}
		printf(table, "%s\t%s\n", cell.Key, strings.Join(numbers, " "))
	}
	return table.Flush()
}

// distinct returns what the cells say, each once, in the order in which it comes up.
func distinct(plan []catalogue.CellPlan, said func(catalogue.CellPlan) []string) []string {
	var all []string
	for _, cell := range plan {
		for _, one := range said(cell) {
			if !slices.Contains(all, one) {
				all = append(all, one)
			}
		}
	}
	return all
}

func newMatrixGitHub(streams IOStreams) *cobra.Command {
	flags := &matrixFlags{}
	command := &cobra.Command{
		Use:   "github MATRIX",
		Short: "Print the cells of a depth that can run as a matrix of GitHub Actions",
		Long: `github prints on one line what a workflow gives to fromJSON: a job for each cell of the depth that can run, with its key,
its minor, its database, its platform, the runner it takes and its time limit. Cells that cannot run are named on the
error output; whatever demands them finds them missing.

Exit code 4 where no cell can run, because nothing is never a pass.`,
		Example: `  ptah-qualify matrix github functional --depth pull-request
  echo "matrix=$(ptah-qualify matrix github functional --depth release)" >> "$GITHUB_OUTPUT"`,
		Args: cobra.ExactArgs(1),
		RunE: func(_ *cobra.Command, arguments []string) error {
			m, plan, err := flags.plan(arguments[0])
			if err != nil {
				return err
			}
			jobs, err := workflow.Jobs(plan)
			if err != nil {
				return Exit(ExitUsage, err)
			}
			for _, cell := range plan {
				if !cell.Runnable() {
					printf(streams.Err, "not run: %s: %s\n", cell.Key, strings.Join(cell.NotRun, " "))
				}
			}
			if len(jobs.Include) == 0 {
				return Exit(ExitNotEstablished, fmt.Errorf("none of the %d cells of matrix %s at depth %s can run", len(plan), m.Name, flags.depth))
			}
			line, err := jobs.JSON()
			if err != nil {
				return Exit(ExitHarnessFailed, err)
			}
			_, err = fmt.Fprintln(streams.Out, line)
			return err
		},
	}
	flags.bind(command)
	flags.bindDepth(command)
	return command
}
