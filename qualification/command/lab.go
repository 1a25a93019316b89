package command

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"ptah.run/ptah/qualification/lab"
	"ptah.run/ptah/qualification/lab/catalog"
	"ptah.run/ptah/qualification/lab/engine"
	"ptah.run/ptah/qualification/lab/progress"
	"ptah.run/ptah/qualification/lab/source"
)

// labFlags are shared by the subcommands of `ptah-qualify lab`.
type labFlags struct {
	repository string
	source     string
}

// NewLabCommand returns `ptah-qualify lab` with its subcommands.
func NewLabCommand(streams IOStreams) *cobra.Command {
	flags := &labFlags{}
	command := &cobra.Command{
		Use:   "lab",
		Short: "Build images and run clusters, registries and databases on this machine",
		Long: `A lab is a Kubernetes cluster, a registry with TLS and a password, and a database server, in containers of this machine.
It is known by its id. What it needs is in its folder, in lab.json, which suites find by PTAH_LAB.

With --source modules, images are built from Go modules and Debian packages; with registry, they are pulled by digest.`,
		Example: `  ptah-qualify lab up
  ptah-qualify lab list
  ptah-qualify lab down`,
	}
	command.PersistentFlags().StringVar(&flags.repository, "repository", "", "folder of this repository (default: found from the working folder)")
	command.PersistentFlags().StringVar(&flags.source, "source", source.ModulesName, "where images come from: modules or registry")
	command.AddCommand(
		newLabImagesCommand(streams, flags),
		newLabAssetsCommand(streams, flags),
		newLabUpCommand(streams, flags),
		newLabDownCommand(streams),
		newLabListCommand(streams),
		newLabLogsCommand(streams),
	)
	return command
}

func (f *labFlags) open(streams IOStreams) (*lab.Images, error) {
	repository := f.repository
	if repository == "" {
		var err error
		if repository, err = lab.FindRepository("."); err != nil {
			return nil, err
		}
	}
	return lab.OpenImages(repository, f.source, progress.New(streams.Err))
}

// labExit gives an error of the lab its exit code: 2 for what was asked wrongly, 5 for an interruption, and 3 for
// everything else.
func labExit(err error) error {
	var usage *lab.UsageError
	var unknown *catalog.UnknownImageError
	var unavailable *source.UnavailableError
	var different *lab.NotReproducibleError
	switch {
	case err == nil:
		return nil
	case errors.As(err, &different):
		return Exit(ExitProductFailed, err)
	case errors.As(err, &usage), errors.As(err, &unknown), errors.As(err, &unavailable):
		return Exit(ExitUsage, err)
	case errors.Is(err, context.Canceled):
		return Exit(ExitInterrupted, fmt.Errorf("interrupted; run it again to continue: %w", err))
	default:
		return Exit(ExitHarnessFailed, err)
	}
}

func newLabImagesCommand(streams IOStreams, flags *labFlags) *cobra.Command {
	var role, version string
	var verify bool
	command := &cobra.Command{
		Use:   "images",
		Short: "Get the lab's images and load them into the engine",
		Long: `images gets the images that labs are made of and loads them into the Docker engine: one line for each, with where it
came from and its digest. What is in the cache already is not built again.

With --verify it builds the images of the product twice, in two folders, and exits with 1 where a digest differs.`,
		Example: `  ptah-qualify lab images
  ptah-qualify lab images --role node --version 1.36
  ptah-qualify lab images --verify`,
		Args: cobra.NoArgs,
		RunE: func(command *cobra.Command, _ []string) error {
			if verify {
				return labExit(verifyImages(command.Context(), streams, flags))
			}
			if version != "" && role == "" {
				return labExit(&lab.UsageError{Message: "--version needs --role"})
			}
			wanted := catalog.Roles
			if role != "" {
				wanted = []catalog.Role{catalog.Role(role)}
			}
			return labExit(runLabImages(command.Context(), streams, flags, wanted, version))
		},
	}
	command.Flags().StringVar(&role, "role", "", "only this role: "+strings.Join(roles(), ", "))
	command.Flags().StringVar(&version, "version", "", "this version of the role (default: the catalogue's default)")
	command.Flags().BoolVar(&verify, "verify", false, "instead build the product's images twice, in two folders, and compare their digests")
	command.MarkFlagsMutuallyExclusive("verify", "role")
	return command
}

// verifyImages exits 1 where an image differs: that is the product's fault.
func verifyImages(ctx context.Context, streams IOStreams, flags *labFlags) error {
	images, err := flags.open(streams)
	if err != nil {
		return err
	}
	repository := flags.repository
	if repository == "" {
		if repository, err = lab.FindRepository("."); err != nil {
			return err
		}
	}
	digests, err := images.VerifyReproducible(ctx, repository, lab.OperatorPrograms, lab.BuildOptions{})
	if err != nil {
		return err
	}
	for _, program := range lab.OperatorPrograms {
		printf(streams.Out, "%-14s %s\n", program.Role, digests[program.Role])
	}
	return nil
}

func runLabImages(ctx context.Context, streams IOStreams, flags *labFlags, roles []catalog.Role, version string) error {
	images, err := flags.open(streams)
	if err != nil {
		return err
	}
	connection, err := engine.Connect(ctx)
	if err != nil {
		return err
	}
	defer func() { _ = connection.Close() }()
	for _, role := range roles {
		if role == catalog.ExecutorBase { // it becomes part of a product image and runs in this engine for tests only
			if err := printExecutorBase(ctx, streams, images, version); err != nil {
				return err
			}
			continue
		}
		description, err := images.Prepare(ctx, connection, role, version)
		if err != nil {
			return err
		}
		printf(streams.Out, "%-14s %-8s %-9s %s %s\n", role, description.Version, description.Source, description.Reference, description.Digest)
	}
	return nil
}

func printExecutorBase(ctx context.Context, streams IOStreams, images *lab.Images, version string) error {
	entry, image, err := images.Get(ctx, catalog.ExecutorBase, version)
	if err != nil {
		return err
	}
	digest, err := image.Digest()
	if err != nil {
		return err
	}
	printf(streams.Out, "%-14s %-8s %-9s %s %s\n", catalog.ExecutorBase, entry.Release, images.Source.Name(), "(in the cache)", digest)
	return nil
}

func newLabAssetsCommand(streams IOStreams, flags *labFlags) *cobra.Command {
	var kubernetes string
	command := &cobra.Command{
		Use:   "assets",
		Short: "Print a folder with kube-apiserver, etcd and kubectl for KUBEBUILDER_ASSETS, built where absent",
		Long: `assets prints the folder that envtest takes its API server from. It builds the programs of one Kubernetes minor from
their Go modules where the cache does not have them.`,
		Example: `  KUBEBUILDER_ASSETS=$(ptah-qualify lab assets) go test ./chart
  ptah-qualify lab assets --kubernetes 1.35`,
		Args: cobra.NoArgs,
		RunE: func(command *cobra.Command, _ []string) error {
			images, err := flags.open(streams)
			if err != nil {
				return labExit(err)
			}
			dir, err := images.Assets(command.Context(), kubernetes)
			if err != nil {
				return labExit(err)
			}
			printLine(streams.Out, dir)
			return nil
		},
	}
	command.Flags().StringVar(&kubernetes, "kubernetes", "", "Kubernetes version (default: the catalogue's default)")
	return command
}
