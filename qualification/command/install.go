package command

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"ptah.run/ptah/qualification/evidence/dossier"
	"ptah.run/ptah/qualification/installation"
	"ptah.run/ptah/qualification/lab"
	"ptah.run/ptah/qualification/lab/gobuild"
	"ptah.run/ptah/qualification/lab/progress"
	"ptah.run/ptah/qualification/lab/source"
	"ptah.run/ptah/qualification/lab/tenant"
)

// versionStamp gives the product's programs their version.
const versionStamp = "-X ptah.run/ptah/operator/executor/command.Version=" + Version

// build builds the product's images, pushes them to the lab's registry, and builds the programs that people use.
func (q *quickstart) build(ctx context.Context, log io.Writer) error {
	images, err := lab.OpenImages(q.repository, source.ModulesName, progress.New(log))
	if err != nil {
		return labExit(err)
	}
	built, err := buildProduct(ctx, images, q.repository)
	if err != nil {
		return err
	}
	return q.publish(ctx, built)
}

func buildProduct(ctx context.Context, images *lab.Images, repository string) (map[string]v1.Image, error) {
	built, err := images.BuildOperatorImages(ctx, repository, lab.OperatorPrograms, lab.BuildOptions{Version: Version, LDFlags: versionStamp})
	return built, Exit(ExitProductFailed, err)
}

// publish puts the product's images into the lab's registry, and its programs where suites and people find them.
func (q *quickstart) publish(ctx context.Context, built map[string]v1.Image) error {
	var err error
	if q.description.OperatorImages, err = lab.PushOperatorImages(ctx, q.description, built); err != nil {
		return labExit(err)
	}
	if err := q.description.Save(q.labFile); err != nil {
		return Exit(ExitHarnessFailed, err)
	}
	return q.programs(ctx)
}

// programs puts ptah and kubectl-ptah beside the kubectl that the lab brought, where suites and people find them.
func (q *quickstart) programs(ctx context.Context) error {
	dir := q.description.BinDir
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return Exit(ExitHarnessFailed, err)
	}
	for _, name := range []string{"ptah", "kubectl-ptah"} {
		if err := gobuild.Program(ctx, q.repository, "./operator/cmd/"+name, filepath.Join(dir, name), versionStamp); err != nil {
			return Exit(ExitProductFailed, err)
		}
	}
	return nil
}

// install installs the release and makes the workspace in which a person tries it.
func (q *quickstart) install(ctx context.Context, log io.Writer) error {
	if err := q.installRelease(ctx, log); err != nil {
		return err
	}
	return q.makeWorkspace(ctx, q.repository)
}

// installRelease installs the chart by the digests that were just pushed.
func (q *quickstart) installRelease(ctx context.Context, log io.Writer) error {
	chart := filepath.Join(q.repository, "chart", "ptah-operator")
	digest, err := installation.ChartDigest(chart)
	if err != nil {
		return Exit(ExitHarnessFailed, err)
	}
	values, err := q.values()
	if err != nil {
		return Exit(ExitHarnessFailed, err)
	}
	encoded, err := json.Marshal(values)
	if err != nil {
		return Exit(ExitHarnessFailed, err)
	}
	if err := q.prepareNamespace(ctx); err != nil {
		return Exit(ExitHarnessFailed, err)
	}
	err = installation.Install(ctx, installation.Options{Kubeconfig: q.description.Kubeconfig, ChartDir: chart, Values: values, Log: log})
	if err != nil {
		return Exit(ExitProductFailed, err)
	}
	// Each lab has a registry of its own name, and what is installed is the same all the same.
	sum := sha256.Sum256(bytes.ReplaceAll(encoded, []byte(q.description.Registry.ClusterHost), []byte("registry")))
	release := dossier.Release{Version: Version, ChartVersion: Version, ChartDigest: digest,
		ValuesDigest: "sha256:" + hex.EncodeToString(sum[:]), Images: map[string]string{}}
	for role, image := range q.description.OperatorImages {
		release.Images[role] = image.Digest
	}
	harness, err := harnessOf(ctx, q.repository)
	if err != nil {
		return Exit(ExitHarnessFailed, err)
	}
	if !harness.Dirty {
		release.Commit = harness.Commit // the product was built from the same tree
	}
	return Exit(ExitHarnessFailed, writeInstalled(q.labFile, release))
}

func (q *quickstart) values() (map[string]any, error) {
	images := q.description.OperatorImages
	for _, role := range []string{"manager", "runner", "executor"} {
		if images[role].Digest == "" {
			return nil, fmt.Errorf("the lab has no %s image: run the stage build", role)
		}
	}
	return map[string]any{
		"image": map[string]any{
			"repository": q.description.Registry.ClusterHost + "/ptah/manager",
			"digest":     images["manager"].Digest,
		},
		"execution": map[string]any{
			"executorImage": images["executor"].ClusterReference,
			"runnerImage":   images["runner"].ClusterReference,
			"ptahVersion":   Version,
		},
		"imagePullSecrets": []any{map[string]any{"name": tenant.PullSecret}},
	}, nil
}

// prepareNamespace makes the release namespace with the Secret that pulls from the lab's registry, as an
// administrator does before "helm install".
func (q *quickstart) prepareNamespace(ctx context.Context) error {
	cluster, err := q.client()
	if err != nil {
		return err
	}
	if err := cluster.Create(ctx, tenant.Namespace(installation.Namespace)); err != nil && !apierrors.IsAlreadyExists(err) {
		return fmt.Errorf("create namespace %s: %w", installation.Namespace, err)
	}
	objects, err := tenant.Objects(q.description.Registry, installation.Namespace)
	if err != nil {
		return err
	}
	for _, object := range objects {
		if object.GetName() != tenant.PullSecret {
			continue
		}
		if err := cluster.Create(ctx, object); err != nil && !apierrors.IsAlreadyExists(err) {
			return fmt.Errorf("create Secret %s/%s: %w", installation.Namespace, object.GetName(), err)
		}
	}
	return nil
}

func (q *quickstart) client() (client.Client, error) {
	config, err := clientcmd.BuildConfigFromFlags("", q.description.Kubeconfig)
	if err != nil {
		return nil, fmt.Errorf("read the lab's kubeconfig %s: %w", q.description.Kubeconfig, err)
	}
	made, err := client.New(config, client.Options{})
	if err != nil {
		return nil, fmt.Errorf("connect to the lab's cluster: %w", err)
	}
	return made, nil
}
