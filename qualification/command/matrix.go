package command

import (
	"encoding/json"
	"fmt"
	"io"
	"path/filepath"
	"sort"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"ptah.run/ptah/qualification/matrix"
)

// NewMatrixCommand returns `ptah-qualify matrix` with its subcommands.
func NewMatrixCommand(streams IOStreams) *cobra.Command {
	command := &cobra.Command{Use: "matrix", Short: "List the matrices and plan the cells of a depth"}
	command.AddCommand(newMatrixList(streams), newMatrixPlan(streams))
	return command
}

func newMatrixList(streams IOStreams) *cobra.Command {
	var dir string
	command := &cobra.Command{
		Use:   "list",
		Short: "List the declared matrices with their depths",
		Args:  cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			paths, err := filepath.Glob(filepath.Join(dir, "*.yaml"))
			if err != nil || len(paths) == 0 {
				return Exit(ExitUsage, fmt.Errorf("there is no matrix in the folder %s, check the path", dir))
			}
			table := tabwriter.NewWriter(streams.Out, 0, 4, 2, ' ', 0)
			fmt.Fprintln(table, "MATRIX\tDEPTH\tCELLS\tWHAT")
			for _, path := range paths {
				m, _, err := LoadMatrix(path)
				if err != nil {
					return err
				}
				for _, depth := range m.Depths {
					cells, err := m.Select(depth.Name)
					if err != nil {
						return Exit(ExitUsage, err)
					}
					fmt.Fprintf(table, "%s\t%s\t%d\t%s\n", m.Name, depth.Name, len(cells), depth.Summary)
				}
			}
			return table.Flush()
		},
	}
	command.Flags().StringVar(&dir, "matrices", "matrices", "folder with the matrices")
	return command
}

func newMatrixPlan(streams IOStreams) *cobra.Command {
	var dir, depth, format string
	command := &cobra.Command{
		Use:   "plan MATRIX",
		Short: "Print the cells of a depth with their estimated minutes, before anything starts",
		Args:  cobra.ExactArgs(1),
		RunE: func(_ *cobra.Command, arguments []string) error {
			m, _, err := LoadMatrix(filepath.Join(dir, arguments[0]+".yaml"))
			if err != nil {
				return err
			}
			cells, err := m.Select(depth)
			if err != nil {
				return Exit(ExitUsage, err)
			}
			switch format {
			case "json":
				encoder := json.NewEncoder(streams.Out)
				encoder.SetIndent("", "  ")
				return encoder.Encode(cells)
			case "text":
				return printPlan(streams.Out, m, cells)
			default:
				return Exit(ExitUsage, fmt.Errorf("there is no format %q, use text or json", format))
			}
		},
	}
	command.Flags().StringVar(&dir, "matrices", "matrices", "folder with the matrices")
	command.Flags().StringVar(&depth, "depth", "smoke", "depth to plan: smoke, pull-request or release")
	command.Flags().StringVar(&format, "format", "text", "text or json")
	return command
}

func printPlan(out io.Writer, m *matrix.Matrix, cells []matrix.Cell) error {
	table := tabwriter.NewWriter(out, 0, 4, 2, ' ', 0)
	fmt.Fprintln(table, "CELL\tMINUTES\tWITH")
	total := 0
	for _, cell := range cells {
		total += cell.Minutes
		fmt.Fprintf(table, "%s\t%d\t%s\n", cell.Key, cell.Minutes, pairs(cell.Attributes))
	}
	if err := table.Flush(); err != nil {
		return err
	}
	_, err := fmt.Fprintf(out, "%d cells of matrix %s, about %d minutes one after the other; each cell needs one cluster of its own\n", len(cells), m.Name, total)
	return err
}

func pairs(attributes map[string]string) string {
	var list []string
	for name, value := range attributes {
		list = append(list, name+"="+value)
	}
	sort.Strings(list)
	return strings.Join(list, " ")
}
