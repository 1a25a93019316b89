package source

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"strings"

	"ptah.run/ptah/qualification/lab/layer"
)

// nodeFiles writes what kind expects in a node above the base file system: kind's own files, the programs, and the
// few units that systemd starts.
func nodeFiles(ctx context.Context, w *layer.Writer, in inputs) error {
	components, err := componentNames(ctx, filepath.Join(in.parts["kubernetes"], "kubeadm"), in.entry.Release)
	if err != nil {
		return err
	}
	pause, err := component(components, "pause")
	if err != nil {
		return err
	}
	if err := kindFiles(w, in.parts["files"], pause); err != nil {
		return err
	}
	if err := nodePrograms(w, in.parts); err != nil {
		return err
	}
	if err := nodeUnits(w); err != nil {
		return err
	}
	specification, err := baseSpecification(ctx, filepath.Join(in.parts["containerd"], "ctr"))
	if err != nil {
		return err
	}
	files := map[string]string{
		"etc/containerd/cri-base.json": string(specification),
		"kind/version":                 in.entry.Release,
		// kind reads both, and wants at least one object in the second. The lab installs its own network.
		"kind/manifests/default-cni.yaml":     "",
		"kind/manifests/default-storage.yaml": storageClass,
	}
	for _, name := range []string{"etc/containerd/cri-base.json", "kind/version", "kind/manifests/default-cni.yaml", "kind/manifests/default-storage.yaml"} {
		if err := w.Bytes(name, []byte(files[name]), 0o644, layer.Root); err != nil {
			return err
		}
	}
	return w.Dir("etc/kubernetes/manifests", 0o755, layer.Root)
}

const storageClass = `apiVersion: storage.k8s.io/v1
kind: StorageClass
metadata:
  name: standard
provisioner: kubernetes.io/no-provisioner
`

var sandboxImage = regexp.MustCompile(`sandbox_image = "[^"]*"`)

// kindFiles copies the files of kind's module. Folders of programs are executable, as kind's own build makes them.
func kindFiles(w *layer.Writer, root, pause string) error {
	return filepath.WalkDir(root, func(source string, entry fs.DirEntry, err error) error {
		if err != nil {
			return fmt.Errorf("read kind's files: %w", err)
		}
		relative, err := filepath.Rel(root, source)
		if err != nil {
			return err
		}
		if entry.IsDir() || relative == "recipe.json" {
			return nil
		}
		content, err := os.ReadFile(source)
		if err != nil {
			return fmt.Errorf("read kind's files: %w", err)
		}
		mode := int64(0o644)
		switch name := filepath.ToSlash(relative); {
		case path.Dir(name) == "kind/bin" || path.Dir(name) == "usr/local/bin":
			mode = 0o755
		case name == "etc/containerd/config.toml":
			if !sandboxImage.Match(content) {
				return errors.New("kind's containerd configuration names no sandbox image: this version of kind is unknown to the lab")
			}
			content = sandboxImage.ReplaceAll(content, []byte(`sandbox_image = "`+pause+`"`))
		}
		return w.Bytes(filepath.ToSlash(relative), content, mode, layer.Root)
	})
}

func nodePrograms(w *layer.Writer, parts map[string]string) error {
	places := []struct{ part, folder, programs string }{
		{"kubernetes", "usr/bin", "kubeadm kubelet kubectl"},
		{"containerd", "usr/local/bin", "containerd ctr containerd-shim-runc-v2"},
		{"crictl", "usr/local/bin", "crictl"},
		{"runc", "usr/local/sbin", "runc"},
		{"cni", "opt/cni/bin", "host-local loopback ptp bridge portmap"},
	}
	for _, place := range places {
		for _, program := range strings.Fields(place.programs) {
			err := w.FromFile(path.Join(place.folder, program), filepath.Join(parts[place.part], program), 0o755, layer.Root)
			if err != nil {
				return err
			}
		}
	}
	return nil
}

// nodeUnits enables the three units of a node. The base file system has no enabled unit of its own.
func nodeUnits(w *layer.Writer) error {
	const units = "etc/systemd/system"
	for _, unit := range []string{"kubelet.service", "containerd.service", "undo-mount-hacks.service"} {
		if err := w.Symlink(path.Join(units, "multi-user.target.wants", unit), "/"+path.Join(units, unit)); err != nil {
			return err
		}
	}
	// binfmt registrations would reach the kernel of the whole machine.
	if err := w.Symlink(path.Join(units, "systemd-binfmt.service"), "/dev/null"); err != nil {
		return err
	}
	return w.Bytes("etc/systemd/journald.conf.d/node.conf", []byte("[Journal]\nReadKMsg=no\n"), 0o644, layer.Root)
}

// baseSpecification is containerd's default container specification with kind's hook and without resource limits.
func baseSpecification(ctx context.Context, ctr string) ([]byte, error) {
	output, err := exec.CommandContext(ctx, ctr, "oci", "spec").Output()
	if err != nil {
		return nil, fmt.Errorf("ask containerd for its default container specification: %w", err)
	}
	var specification map[string]any
	if err := json.Unmarshal(output, &specification); err != nil {
		return nil, fmt.Errorf("read containerd's default container specification: %w", err)
	}
	process, ok := specification["process"].(map[string]any)
	if !ok {
		return nil, errors.New("containerd's default container specification has no process")
	}
	delete(process, "rlimits")
	hooks, _ := specification["hooks"].(map[string]any)
	if hooks == nil {
		hooks = map[string]any{}
	}
	existing, _ := hooks["createContainer"].([]any)
	hooks["createContainer"] = append(existing, map[string]any{"path": "/kind/bin/mount-product-files.sh"})
	specification["hooks"] = hooks
	return json.MarshalIndent(specification, "", "  ")
}

// componentNames returns the images that kubeadm wants for a version, by its own word.
func componentNames(ctx context.Context, kubeadm, release string) ([]string, error) {
	output, err := exec.CommandContext(ctx, kubeadm, "config", "images", "list", "--kubernetes-version", release).Output()
	if err != nil {
		return nil, fmt.Errorf("ask kubeadm which images Kubernetes %s wants: %w", release, err)
	}
	return strings.Fields(string(output)), nil
}

// component returns the one image of a list whose last path element is the given name or starts with it.
func component(names []string, program string) (string, error) {
	for _, name := range names {
		if componentProgram(name) == program {
			return name, nil
		}
	}
	return "", fmt.Errorf("kubeadm wants no %s image among %s", program, strings.Join(names, ", "))
}

// componentProgram returns the program an image of kubeadm's list is for: kube-apiserver, etcd, coredns, pause.
func componentProgram(name string) string {
	base, _, _ := strings.Cut(path.Base(name), ":")
	return base
}
