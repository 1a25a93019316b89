package lab

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"ptah.run/ptah/qualification/lab/cache"
	"ptah.run/ptah/qualification/lab/catalog"
	"ptah.run/ptah/qualification/lab/source"
)

// assetsRecipe changes when the content of the folder does.
const assetsRecipe = 1

// Assets returns a folder with kube-apiserver, etcd and kubectl of a Kubernetes version, as envtest wants it in
// KUBEBUILDER_ASSETS. It builds them where they are absent and needs no engine.
func (i *Images) Assets(ctx context.Context, version string) (string, error) {
	entry, err := i.Catalog.Image(catalog.Node, version)
	if err != nil {
		return "", err
	}
	if entry.Modules == nil {
		return "", &source.UnavailableError{Source: source.ModulesName, Role: string(entry.Role), Version: entry.Version,
			Lacks: "build recipe", Hint: "set KUBEBUILDER_ASSETS to a folder with kube-apiserver, etcd and kubectl"}
	}
	kubernetes, err := i.Catalog.Program(entry.Modules.Programs["kubernetes"])
	if err != nil {
		return "", err
	}
	etcd, err := i.Catalog.Program(entry.Modules.Programs["etcd"])
	if err != nil {
		return "", err
	}
	recipe := cache.Recipe{Kind: "assets", Name: "kubernetes-" + entry.Version,
		Inputs: map[string]any{"recipe": assetsRecipe, "kubernetes": kubernetes.Recipe(), "etcd": etcd.Recipe()}}
	return i.Store.Ensure(ctx, recipe, func(ctx context.Context, dir string) error {
		programs := &source.Programs{Store: i.Store}
		etcdDir, err := programs.Ensure(ctx, etcd)
		if err != nil {
			return err
		}
		kubernetesDir, err := programs.Ensure(ctx, kubernetes)
		if err != nil {
			return err
		}
		return errors.Join(
			link(filepath.Join(kubernetesDir, "kube-apiserver"), filepath.Join(dir, "kube-apiserver")),
			link(filepath.Join(kubernetesDir, "kubectl"), filepath.Join(dir, "kubectl")),
			link(filepath.Join(etcdDir, "etcd"), filepath.Join(dir, "etcd")),
		)
	})
}

// link gives a file a second name, or copies it where the file system cannot.
func link(from, to string) error {
	if os.Link(from, to) == nil {
		return nil
	}
	source, err := os.Open(from)
	if err != nil {
		return fmt.Errorf("copy a program: %w", err)
	}
	defer func() { _ = source.Close() }()
	target, err := os.OpenFile(to, os.O_CREATE|os.O_WRONLY|os.O_TRUNC, 0o755)
	if err != nil {
		return fmt.Errorf("copy a program: %w", err)
	}
	_, err = io.Copy(target, source)
	return errors.Join(err, target.Close())
}
