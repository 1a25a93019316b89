package command

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"ptah.run/ptah/qualification/cell"
	"ptah.run/ptah/qualification/evidence"
	"ptah.run/ptah/qualification/evidence/dossier"
	"ptah.run/ptah/qualification/lab"
	"ptah.run/ptah/qualification/matrix"
	"ptah.run/ptah/qualification/run"
)

// makeCells returns what runs the cells of the run where it was asked to.
func (b *begunRun) makeCells(ctx context.Context, repository string, log io.Writer) (run.Cells, error) {
	runner := cellRunner{repository: repository, declared: b.declared, harness: b.harness, log: log}
	if b.request.Labs == labsOwn {
		return newOwnLabs(ctx, runner, b.request.Source, b.dir)
	}
	return newExistingLab(runner, b.request.Lab, b.items)
}

// cellRunner runs cells in labs, whoever makes these.
type cellRunner struct {
	repository string
	declared   *Declared
	harness    dossier.Harness
	log        io.Writer
}

// inputs is what goes into a cell in a lab with a release installed.
func (r cellRunner) inputs(one matrix.Cell, description *lab.Description, release dossier.Release) (matrix.Inputs, error) {
	suite, err := r.declared.Suites.Find(one.Suite())
	if err != nil {
		return matrix.Inputs{}, err
	}
	labImages := map[string]string{}
	images := dossier.Lab{Images: map[string]dossier.LabImage{}}
	for role, image := range description.Images {
		labImages[role] = image.Digest
		images.Images[role] = dossier.LabImage{Source: image.Source, Digest: image.Digest, Version: image.Version}
	}
	return matrix.Inputs{
		Cell: one, Profile: r.declared.Profile.Digest(), Matrix: r.declared.Matrices[one.Matrix].Digest(), Suite: suite.Digest(),
		Images: release.Images, Chart: release.ChartDigest, LabImages: labImages, ImageSource: images.ImageSource(),
		Platform: description.Platform, Native: description.NativePlatform,
		ControlPlanes: description.ControlPlanes, Workers: description.Workers, Harness: r.harness.String(),
	}, nil
}

// run runs a cell in a lab. A lab in which something else is found than what was to go into the cell is refused.
func (r cellRunner) run(ctx context.Context, store *evidence.Run, id string, inputs matrix.Inputs) error {
	labFile, description, release, err := readLab(id)
	if err != nil {
		return err
	}
	if err := cell.Fits(inputs.Cell, r.declared.Profile.Cluster, description); err != nil {
		return err
	}
	found, err := r.inputs(inputs.Cell, description, release)
	if err != nil {
		return err
	}
	if different := inputs.Differences(found); len(different) > 0 {
		return fmt.Errorf("the lab %s is not what the cell was to run in: %s", id, strings.Join(different, "; "))
	}
	var wanted []string
	for _, scenario := range r.declared.Profile.ScenariosOf(inputs.Cell.Matrix, inputs.Cell.Axes) {
		wanted = append(wanted, scenario.Name)
	}
	return cell.Run(ctx, store, cell.Options{Repository: r.repository, LabFile: labFile, Lab: description, Suites: r.declared.Suites,
		Release: release, Inputs: inputs, Wanted: wanted, Log: r.log})
}

// readLab reads the description of a lab that is up with the operator installed. Errors carry their exit code.
func readLab(id string) (labFile string, description *lab.Description, release dossier.Release, err error) {
	if labFile, err = lab.DescriptionPath(id); err != nil {
		return "", nil, release, labExit(err)
	}
	description, err = lab.Load(labFile)
	if errors.Is(err, os.ErrNotExist) {
		return "", nil, release, Exit(ExitUsage, fmt.Errorf("there is no lab %s: bring it up with the operator installed, `ptah-qualify quickstart --until install`, or give --labs own", id))
	}
	if err != nil {
		return "", nil, release, Exit(ExitHarnessFailed, err)
	}
	release, err = readInstalled(labFile)
	return labFile, description, release, err
}

// existingLab runs every cell in one lab that is there and stays.
type existingLab struct {
	cellRunner
	id          string
	description *lab.Description
	release     dossier.Release
}

// newExistingLab refuses a lab that does not fit each of the cells that are to run in it.
func newExistingLab(runner cellRunner, id string, items []run.Item) (*existingLab, error) {
	_, description, release, err := readLab(id)
	if err != nil {
		return nil, err
	}
	for _, item := range items {
		if item.NotRun != "" {
			continue
		}
		if err := cell.Fits(item.Cell, runner.declared.Profile.Cluster, description); err != nil {
			return nil, Exit(ExitUsage, fmt.Errorf("%w; select the cells that do with --matrix, --depth or --cell, or give --labs own", err))
		}
	}
	return &existingLab{cellRunner: runner, id: id, description: description, release: release}, nil
}

// Inputs are what the lab holds, with the operator that is installed in it.
func (l *existingLab) Inputs(_ context.Context, one matrix.Cell) (matrix.Inputs, error) {
	return l.inputs(one, l.description, l.release)
}

// Place is nothing: no place is made for a cell.
func (l *existingLab) Place(matrix.Cell, int) string { return "" }

// Prepare has nothing to prepare.
func (l *existingLab) Prepare(context.Context, matrix.Cell, string) error { return nil }

// Run runs the cell in the lab.
func (l *existingLab) Run(ctx context.Context, store *evidence.Run, _ matrix.Cell, _ string, inputs matrix.Inputs) error {
	return l.run(ctx, store, l.id, inputs)
}

// TearDown leaves the lab as it is.
func (l *existingLab) TearDown(context.Context, string) error { return nil }
