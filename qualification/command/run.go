package command

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"ptah.run/ptah/qualification/cell"
	"ptah.run/ptah/qualification/evidence"
	"ptah.run/ptah/qualification/evidence/dossier"
	"ptah.run/ptah/qualification/lab"
	"ptah.run/ptah/qualification/matrix"
)

// runOptions say which cells to run and where.
type runOptions struct {
	profile string
	labID   string
	output  string
	id      string
}

// NewRunCommand returns `ptah-qualify run`.
func NewRunCommand(streams IOStreams) *cobra.Command {
	options := &runOptions{}
	command := &cobra.Command{
		Use:   "run",
		Short: "Run the cells of a profile in a lab and keep what they show",
		Long: `run runs every cell that the profile covers in a lab that is up with the operator installed ("ptah-qualify quickstart
--until install"), and writes raw evidence to OUTPUT/runs/ID. It judges nothing: that is "ptah-qualify judge --run".`,
		Args: cobra.NoArgs,
		RunE: func(command *cobra.Command, _ []string) error {
			repository, err := lab.FindRepository(".")
			if err != nil {
				return labExit(err)
			}
			dir, err := runCells(command.Context(), repository, *options, streams.Err)
			if err != nil {
				return err
			}
			fmt.Fprintln(streams.Out, dir)
			return nil
		},
	}
	command.Flags().StringVar(&options.profile, "profile", "quickstart", "file of the profile, or its name in the folder profiles")
	command.Flags().StringVar(&options.labID, "lab", lab.DefaultID, "id of the lab")
	command.Flags().StringVar(&options.output, "output", ".ptah/quickstart", "folder for runs/ID")
	command.Flags().StringVar(&options.id, "id", "", "id of the run (default: the time it begins)")
	return command
}

// runCells runs the cells of a profile in one lab and returns the folder of the run. Errors carry their exit code.
func runCells(ctx context.Context, repository string, options runOptions, log io.Writer) (string, error) {
	harness, err := harnessOf(ctx, repository)
	if err != nil {
		return "", Exit(ExitHarnessFailed, err)
	}
	profile := options.profile
	if !strings.ContainsAny(profile, "/\\") && filepath.Ext(profile) == "" {
		profile = filepath.Join(repository, "profiles", profile+".yaml")
	}
	declared, err := LoadDeclared(profile, filepath.Join(repository, "matrices"), filepath.Join(repository, "support", "suites.yaml"), harness)
	if err != nil {
		return "", err
	}
	labFile, err := lab.DescriptionPath(options.labID)
	if err != nil {
		return "", labExit(err)
	}
	description, err := lab.Load(labFile)
	if errors.Is(err, os.ErrNotExist) {
		return "", Exit(ExitUsage, fmt.Errorf("there is no lab %s: bring it up with the operator installed, `ptah-qualify quickstart --until install`", options.labID))
	}
	if err != nil {
		return "", Exit(ExitHarnessFailed, err)
	}
	release, err := readInstalled(labFile)
	if err != nil {
		return "", err
	}
	if options.id == "" {
		options.id = time.Now().UTC().Format("20060102-150405")
	}
	run, err := evidence.CreateRun(options.output, options.id)
	if err != nil {
		return "", Exit(outputCode(err), err)
	}
	if err := dossier.Begin(run, declared.Declarations); err != nil {
		return "", Exit(ExitHarnessFailed, err)
	}
	for _, one := range declared.Cells {
		if err := runCell(ctx, run, repository, labFile, description, release, declared, one, harness, log); err != nil {
			if ctx.Err() != nil {
				return "", Exit(ExitInterrupted, fmt.Errorf("interrupted while cell %s ran; its run is in %s", one.Key, run.Dir()))
			}
			return "", Exit(ExitHarnessFailed, err)
		}
	}
	if _, err := run.Close(); err != nil {
		return "", Exit(ExitHarnessFailed, err)
	}
	return run.Dir(), nil
}

func runCell(ctx context.Context, run *evidence.Run, repository, labFile string, description *lab.Description, release dossier.Release,
	declared *Declared, one matrix.Cell, harness dossier.Harness, log io.Writer) error {
	suite, err := declared.Suites.Find(one.Suite())
	if err != nil {
		return err
	}
	labImages := map[string]string{}
	source := dossier.Lab{Images: map[string]dossier.LabImage{}}
	for role, image := range description.Images {
		labImages[role] = image.Digest
		source.Images[role] = dossier.LabImage{Source: image.Source, Digest: image.Digest, Version: image.Version}
	}
	return cell.Run(ctx, run, cell.Options{
		Repository: repository, LabFile: labFile, Lab: description, Suite: suite, Release: release, Log: log,
		Inputs: matrix.Inputs{
			Cell: one, Profile: declared.Profile.Digest(), Matrix: declared.Matrices[one.Matrix].Digest(), Suite: suite.Digest(),
			Images: release.Images, Chart: release.ChartDigest, LabImages: labImages, ImageSource: source.ImageSource(),
			Platform: description.Platform, Native: description.NativePlatform,
			ControlPlanes: description.ControlPlanes, Workers: description.Workers, Harness: harness.String(),
		},
	})
}

// harnessOf says which commit of this repository is at work. A tree outside git has no commit, and says so.
func harnessOf(ctx context.Context, repository string) (dossier.Harness, error) {
	harness := dossier.Harness{Version: Version}
	commit, err := exec.CommandContext(ctx, "git", "-C", repository, "rev-parse", "--verify", "HEAD").Output()
	if err != nil {
		return harness, ctx.Err() // no git here: the record then says that the commit is unknown
	}
	harness.Commit = strings.TrimSpace(string(commit))
	changes, err := exec.CommandContext(ctx, "git", "-C", repository, "status", "--porcelain").Output()
	if err != nil {
		return harness, fmt.Errorf("ask git whether %s was changed: %w", repository, err)
	}
	harness.Dirty = len(changes) > 0
	return harness, nil
}

// installedPath is where a lab keeps what was installed into it.
func installedPath(labFile string) string {
	return filepath.Join(filepath.Dir(labFile), "installation.json")
}

func writeInstalled(labFile string, release dossier.Release) error {
	data, err := json.MarshalIndent(release, "", "  ")
	if err != nil {
		return err
	}
	return evidence.WriteFileAtomic(installedPath(labFile), append(data, '\n'))
}

func readInstalled(labFile string) (dossier.Release, error) {
	var release dossier.Release
	data, err := os.ReadFile(installedPath(labFile))
	if errors.Is(err, os.ErrNotExist) {
		return release, Exit(ExitUsage, errors.New("the operator is not installed in this lab: run `ptah-qualify quickstart --until install`"))
	}
	if err == nil {
		err = json.Unmarshal(data, &release)
	}
	return release, Exit(ExitHarnessFailed, err)
}
