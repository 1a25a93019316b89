package command

import (
	"encoding/json"
	"fmt"
	"io"
	"path/filepath"

	"github.com/spf13/cobra"

	"ptah.run/ptah/qualification/lab"
	"ptah.run/ptah/qualification/lab/progress"
)

func newLabUpCommand(streams IOStreams, flags *labFlags) *cobra.Command {
	var options lab.Options
	command := &cobra.Command{
		Use:   "up",
		Short: "Start a cluster, a registry and a database, and print how to reach them",
		Long: `up starts a lab: a Kubernetes cluster, a registry with TLS and a password, and a database server that journals
every statement, all on this machine. It ends when all of them serve. Where it fails, it keeps the logs and removes
the rest.`,
		Example: `  ptah-qualify lab up
  ptah-qualify lab up --id oldest --kubernetes 1.35
  ptah-qualify lab up --id ha --control-planes 3 --workers 1`,
		Args: cobra.NoArgs,
		RunE: func(command *cobra.Command, _ []string) error {
			options.Repository, options.Source, options.Progress = flags.repository, flags.source, progress.New(streams.Err)
			description, err := lab.Up(command.Context(), options)
			if err != nil {
				return labExit(err)
			}
			return printLab(streams.Out, description)
		},
	}
	command.Flags().StringVar(&options.ID, "id", lab.DefaultID, "name of the lab")
	command.Flags().IntVar(&options.ControlPlanes, "control-planes", 1, "1 or 3")
	command.Flags().IntVar(&options.Workers, "workers", 0, "nodes beside the control planes")
	command.Flags().StringVar(&options.Kubernetes, "kubernetes", "", "Kubernetes version (default: the catalogue's default)")
	command.Flags().StringVar(&options.Database, "database", lab.PostgreSQL, "database engine: PostgreSQL or MySQL")
	command.Flags().StringVar(&options.DatabaseVersion, "database-version", "", "its version (default: the catalogue's default)")
	command.Flags().IntVar(&options.APIPort, "api-port", 0, "port of the API server on 127.0.0.1; 0 takes a free one")
	command.Flags().IntVar(&options.RegistryPort, "registry-port", 0, "port of the registry on 127.0.0.1; 0 takes a free one")
	command.Flags().IntVar(&options.DatabasePort, "database-port", 0, "port of the database on 127.0.0.1; 0 takes a free one")
	command.Flags().BoolVar(&options.Retain, "retain", false, "keep everything after a failure, to look at it")
	mustComplete(command, "id", cobra.NoFileCompletions)
	mustComplete(command, "database", cobra.FixedCompletions([]string{lab.PostgreSQL, lab.MySQL}, cobra.ShellCompDirectiveNoFileComp))
	return command
}

func printLab(out io.Writer, description *lab.Description) error {
	path, err := lab.DescriptionPath(description.ID)
	if err != nil {
		return labExit(err)
	}
	database := description.Databases[0]
	printf(out, "lab %s is up: Kubernetes %s, registry %s, %s %s on %s:%d\n", description.ID, description.KubernetesVersion,
		description.Registry.LocalHost, database.Engine, database.Version, database.LocalHost, database.LocalPort)
	printf(out, "export KUBECONFIG=%s\nexport %s=%s\n", description.Kubeconfig, lab.EnvironmentVariable, path)
	return nil
}

func newLabDownCommand(streams IOStreams) *cobra.Command {
	var id string
	var purge bool
	command := &cobra.Command{
		Use:   "down",
		Short: "Remove a lab, whatever moment it stopped at",
		Long: `down removes the containers, networks, credentials and the folder of a lab, whether it is up, half made or half
removed. What a lab that never came up logged stays in a folder aside, unless --purge is given.`,
		Example: `  ptah-qualify lab down
  ptah-qualify lab down --id ha --purge`,
		Args: cobra.NoArgs,
		RunE: func(command *cobra.Command, _ []string) error {
			removal, err := lab.Down(command.Context(), id, purge)
			if err != nil {
				return labExit(err)
			}
			if removal.LogProblem != nil {
				printf(streams.Err, "not all logs of the lab %s could be kept: %v\n", id, removal.LogProblem)
			}
			switch {
			case !removal.Found:
				printf(streams.Out, "there is no lab %s\n", id)
			case removal.KeptLogs != "":
				printf(streams.Out, "lab %s is removed (%d containers); its logs stay in %s\n", id, removal.Containers, removal.KeptLogs)
			default:
				printf(streams.Out, "lab %s is removed (%d containers)\n", id, removal.Containers)
			}
			return nil
		},
	}
	command.Flags().StringVar(&id, "id", lab.DefaultID, "name of the lab")
	command.Flags().BoolVar(&purge, "purge", false, "remove the logs of a failed lab too")
	return command
}

func newLabListCommand(streams IOStreams) *cobra.Command {
	var format string
	command := &cobra.Command{
		Use:   "list",
		Short: "List the labs on this machine",
		Long: `list prints the labs of this user: up, unfinished where making or removing them was interrupted, or stopped where their
containers do not run, with the number of running containers, the Kubernetes version and the kubeconfig.`,
		Example: `  ptah-qualify lab list
  ptah-qualify lab list --format json`,
		Args: cobra.NoArgs,
		RunE: func(command *cobra.Command, _ []string) error {
			if format != "text" && format != "json" {
				return Exit(ExitUsage, fmt.Errorf("--format %q is unknown: use text or json", format))
			}
			summaries, err := lab.List(command.Context())
			if err != nil {
				return labExit(err)
			}
			if format == "json" {
				encoder := json.NewEncoder(streams.Out)
				encoder.SetIndent("", "  ")
				return labExit(encoder.Encode(append([]lab.Summary{}, summaries...)))
			}
			for _, summary := range summaries {
				printf(streams.Out, "%-24s %-11s %2d containers  %-9s %s\n", summary.ID, summary.State, summary.Containers, summary.Kubernetes, summary.Kubeconfig)
			}
			return nil
		},
	}
	command.Flags().StringVar(&format, "format", "text", "text or json")
	return command
}

func newLabLogsCommand(streams IOStreams) *cobra.Command {
	var id, output string
	command := &cobra.Command{
		Use:   "logs",
		Short: "Write the logs of a lab's nodes and containers into a folder",
		Long: `logs writes what the nodes, the registry, the database and the Pods of a lab logged into a folder, and prints its name.
The lab stays as it is.`,
		Example: `  ptah-qualify lab logs
  ptah-qualify lab logs --id ha --output /tmp/ha-logs`,
		Args: cobra.NoArgs,
		RunE: func(command *cobra.Command, _ []string) error {
			if output == "" {
				dir, err := lab.Dir(id)
				if err != nil {
					return labExit(err)
				}
				output = filepath.Join(dir, "logs")
			}
			if err := lab.Logs(command.Context(), id, output); err != nil {
				return labExit(err)
			}
			printLine(streams.Out, output)
			return nil
		},
	}
	command.Flags().StringVar(&id, "id", lab.DefaultID, "name of the lab")
	command.Flags().StringVar(&output, "output", "", "folder (default: logs in the lab's folder)")
	mustComplete(command, "output", completeFolders)
	return command
}
