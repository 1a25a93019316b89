package command

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"path/filepath"
	"strconv"
	"sync"

	v1 "github.com/google/go-containerregistry/pkg/v1"

	"ptah.run/ptah/qualification/evidence"
	"ptah.run/ptah/qualification/evidence/dossier"
	"ptah.run/ptah/qualification/installation"
	"ptah.run/ptah/qualification/lab"
	"ptah.run/ptah/qualification/lab/progress"
	"ptah.run/ptah/qualification/matrix"
)

// ownLabs runs each cell in a lab that is made for it and removed after it.
type ownLabs struct {
	cellRunner
	source string // of images
	run    string // folder of the run, which labs are named after
	images *lab.Images

	// product builds the product's images, once for all labs.
	product func() (map[string]v1.Image, error)
}

func newOwnLabs(ctx context.Context, runner cellRunner, source, runDir string) (*ownLabs, error) {
	absolute, err := filepath.Abs(runDir)
	if err != nil {
		return nil, Exit(ExitHarnessFailed, fmt.Errorf("name the labs of the run: %w", err))
	}
	images, err := lab.OpenImages(runner.repository, source, progress.New(runner.log))
	if err != nil {
		return nil, labExit(err)
	}
	labs := &ownLabs{cellRunner: runner, source: source, run: absolute, images: images}
	labs.product = sync.OnceValues(func() (map[string]v1.Image, error) {
		return buildProduct(ctx, images, runner.repository)
	})
	return labs, nil
}

// options of the lab of a cell. Its ports are whichever are free.
func (l *ownLabs) options(one matrix.Cell, id string) lab.Options {
	cluster := l.declared.Profile.Cluster
	engine, version := one.Database()
	return lab.Options{ID: id, Database: engine, DatabaseVersion: version, Repository: l.repository, Source: l.source, Kubernetes: one.Minor(),
		ControlPlanes: cluster.ControlPlanes, Workers: cluster.Workers, Progress: progress.New(l.log)}
}

// Inputs says what the lab of the cell would be made of, by building all of it.
func (l *ownLabs) Inputs(ctx context.Context, one matrix.Cell) (matrix.Inputs, error) {
	options := l.options(one, "")
	planned, err := l.images.Planned(ctx, options)
	if err != nil {
		return matrix.Inputs{}, labExit(err)
	}
	release, err := l.release()
	if err != nil {
		return matrix.Inputs{}, err
	}
	return l.inputs(one, &lab.Description{Images: planned, Platform: thisPlatform, NativePlatform: true,
		ControlPlanes: options.ControlPlanes, Workers: options.Workers}, release)
}

// release is what will be installed.
func (l *ownLabs) release() (dossier.Release, error) {
	built, err := l.product()
	if err != nil {
		return dossier.Release{}, err
	}
	release := dossier.Release{Version: Version, ChartVersion: Version, Images: map[string]string{}}
	if release.ChartDigest, err = installation.ChartDigest(filepath.Join(l.repository, "chart", "ptah-operator")); err != nil {
		return release, Exit(ExitHarnessFailed, err)
	}
	for role, image := range built {
		digest, err := image.Digest()
		if err != nil {
			return release, Exit(ExitHarnessFailed, fmt.Errorf("compute the digest of the image of %s: %w", role, err))
		}
		release.Images[role] = digest.String()
	}
	return release, nil
}

// Place names the lab of an attempt after the folder of its run, so that runs side by side do not meet.
func (l *ownLabs) Place(one matrix.Cell, attempt int) string {
	sum := sha256.Sum256([]byte(l.run + "\n" + one.Matrix + "\n" + one.Key))
	return "q-" + hex.EncodeToString(sum[:])[:12] + "-" + strconv.Itoa(attempt)
}

// Prepare brings the lab up and installs the release in it.
func (l *ownLabs) Prepare(ctx context.Context, one matrix.Cell, place string) error {
	description, err := lab.Up(ctx, l.options(one, place))
	if err != nil {
		return labExit(err)
	}
	labFile, err := lab.DescriptionPath(place)
	if err != nil {
		return labExit(err)
	}
	built, err := l.product()
	if err != nil {
		return err
	}
	line := &quickstart{repository: l.repository, description: description, labFile: labFile}
	if err := line.publish(ctx, built); err != nil {
		return err
	}
	if err := line.installRelease(ctx, l.log); err != nil {
		return err
	}
	// A workspace of its own: the one of the repository belongs to whoever has a lab up by hand.
	return line.makeWorkspace(ctx, filepath.Join(filepath.Dir(labFile), "by-hand"))
}

// Run runs the cell in the lab.
func (l *ownLabs) Run(ctx context.Context, store *evidence.Run, _ matrix.Cell, place string, inputs matrix.Inputs) error {
	return l.cellRunner.run(ctx, store, place, inputs)
}

// TearDown removes the lab. What one that never came up logged is kept aside, for whoever looks for the cause.
func (l *ownLabs) TearDown(ctx context.Context, place string) error {
	removal, err := lab.Down(ctx, place, false)
	if err == nil && removal.KeptLogs != "" {
		printf(l.log, "the logs of the lab %s stay in %s\n", place, removal.KeptLogs)
	}
	return labExit(err)
}
