// Package installation installs the operator's chart into a cluster as a user does: through Helm, by digest, from
// the chart directory, and waits until Helm says that it runs. It knows nothing of how the cluster was made.
package installation

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"path/filepath"
	"sort"
	"time"

	"helm.sh/helm/v4/pkg/action"
	"helm.sh/helm/v4/pkg/chart/v2/loader"
	"helm.sh/helm/v4/pkg/cli"
	"helm.sh/helm/v4/pkg/kube"
	"helm.sh/helm/v4/pkg/storage/driver"

	"errors"
	"os"
	"sync"
)

// Names of the qualified installation.
const (
	Namespace      = "ptah-system"
	ReleaseName    = "ptah-operator"
	ServiceAccount = "ptah-operator"
)

// ManagerIdentity is the user that the API server authenticates the manager as.
const ManagerIdentity = "system:serviceaccount:" + Namespace + ":" + ServiceAccount

// Options say what to install and where.
type Options struct {
	// Kubeconfig of the cluster; its current context is used.
	Kubeconfig string
	// ChartDir holds Chart.yaml.
	ChartDir string
	// Values as of "helm install --values".
	Values map[string]any
	// Timeout until everything is ready; 5 minutes where zero.
	Timeout time.Duration
	// Log receives Helm's own log lines; discarded where nil.
	Log io.Writer
}

// asHelm lets objects be owned by the name that Helm's own program writes under, whatever this program is called: another
// one, and a person with helm, can then change the release without a conflict about who owns its fields.
var asHelm = sync.OnceFunc(func() { kube.ManagedFieldsManager = "helm" })

func (o *Options) configuration() (*action.Configuration, error) {
	asHelm()
	settings := cli.New()
	settings.KubeConfig = o.Kubeconfig
	settings.SetNamespace(Namespace)
	log := o.Log
	if log == nil {
		log = io.Discard
	}
	configuration := action.NewConfiguration(action.ConfigurationSetLogger(slog.NewTextHandler(log, nil)))
	if err := configuration.Init(settings.RESTClientGetter(), Namespace, "secret"); err != nil {
		return nil, fmt.Errorf("read kubeconfig %s for Helm: %w", o.Kubeconfig, err)
	}
	return configuration, nil
}

func (o *Options) timeout() time.Duration {
	if o.Timeout == 0 {
		return 5 * time.Minute
	}
	return o.Timeout
}

// Install installs the release, or upgrades it where it is installed, and waits until its workloads are ready.
func Install(ctx context.Context, options Options) error {
	configuration, err := options.configuration()
	if err != nil {
		return err
	}
	chart, err := loader.Load(options.ChartDir)
	if err != nil {
		return fmt.Errorf("load the chart from %s: %w", options.ChartDir, err)
	}
	_, err = action.NewHistory(configuration).Run(ReleaseName)
	switch {
	case errors.Is(err, driver.ErrReleaseNotFound):
		install := action.NewInstall(configuration)
		install.ReleaseName, install.Namespace, install.CreateNamespace = ReleaseName, Namespace, true
		install.WaitStrategy, install.Timeout = kube.StatusWatcherStrategy, options.timeout()
		if _, err := install.RunWithContext(ctx, chart, options.Values); err != nil {
			return fmt.Errorf("helm install %s from %s: %w", ReleaseName, options.ChartDir, err)
		}
	case err != nil:
		return fmt.Errorf("read the history of release %s: %w", ReleaseName, err)
	default:
		upgrade := action.NewUpgrade(configuration)
		upgrade.Namespace = Namespace
		upgrade.WaitStrategy, upgrade.Timeout = kube.StatusWatcherStrategy, options.timeout()
		if _, err := upgrade.RunWithContext(ctx, ReleaseName, chart, options.Values); err != nil {
			return fmt.Errorf("helm upgrade %s from %s: %w", ReleaseName, options.ChartDir, err)
		}
	}
	return nil
}

// Change upgrades the release with other values for some keys, and keeps all other values that were given before. It
// waits until its workloads are ready.
func Change(ctx context.Context, options Options) error {
	configuration, err := options.configuration()
	if err != nil {
		return err
	}
	chart, err := loader.Load(options.ChartDir)
	if err != nil {
		return fmt.Errorf("load the chart from %s: %w", options.ChartDir, err)
	}
	upgrade := action.NewUpgrade(configuration)
	upgrade.Namespace, upgrade.ResetThenReuseValues = Namespace, true
	upgrade.WaitStrategy, upgrade.Timeout = kube.StatusWatcherStrategy, options.timeout()
	if _, err := upgrade.RunWithContext(ctx, ReleaseName, chart, options.Values); err != nil {
		return fmt.Errorf("change values of release %s: %w", ReleaseName, err)
	}
	return nil
}

// Uninstall removes the release. A release that is not installed is no error.
func Uninstall(options Options) error {
	configuration, err := options.configuration()
	if err != nil {
		return err
	}
	uninstall := action.NewUninstall(configuration)
	uninstall.IgnoreNotFound, uninstall.WaitStrategy, uninstall.Timeout = true, kube.StatusWatcherStrategy, options.timeout()
	if _, err := uninstall.Run(ReleaseName); err != nil {
		return fmt.Errorf("helm uninstall %s: %w", ReleaseName, err)
	}
	return nil
}

// ChartDigest identifies the bytes of a chart directory: the SHA-256 over the sorted list of its files with their own
// digests. Two directories with the same files have the same digest, wherever they are.
func ChartDigest(dir string) (string, error) {
	var lines []string
	err := filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || !entry.Type().IsRegular() {
			return err
		}
		data, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		name, err := filepath.Rel(dir, path)
		if err != nil {
			return err
		}
		sum := sha256.Sum256(data)
		lines = append(lines, hex.EncodeToString(sum[:])+"  "+filepath.ToSlash(name)+"\n")
		return nil
	})
	if err != nil {
		return "", fmt.Errorf("read the chart in %s: %w", dir, err)
	}
	if len(lines) == 0 {
		return "", fmt.Errorf("read the chart in %s: it holds no file", dir)
	}
	sort.Strings(lines)
	sum := sha256.New()
	for _, line := range lines {
		sum.Write([]byte(line))
	}
	return "sha256:" + hex.EncodeToString(sum.Sum(nil)), nil
}
