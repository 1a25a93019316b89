package source

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/types"

	"ptah.run/ptah/qualification/lab/layer"
)

// containerdLimit bounds the start and the end of the containerd that imports images.
const containerdLimit = 30 * time.Second

// nodeImages writes the image store of a node's containerd: the component images of kubeadm's list, imported by the
// node's own containerd, which runs for that moment on this machine with nothing but its content and image
// plugins. No container is needed, and the result lies in the cache like every other layer.
func nodeImages(ctx context.Context, w *layer.Writer, in inputs) error {
	scratch, err := os.MkdirTemp("", "ptah-node-")
	if err != nil {
		return fmt.Errorf("make a folder for the component images: %w", err)
	}
	defer func() { _ = os.RemoveAll(scratch) }() // what is left lies in the temporary folder
	names, err := componentNames(ctx, filepath.Join(in.parts["kubernetes"], "kubeadm"), in.entry.Release)
	if err != nil {
		return err
	}
	archive := filepath.Join(scratch, "components.tar")
	if err := writeComponents(names, in, scratch, archive); err != nil {
		return err
	}
	store := filepath.Join(scratch, "containerd")
	if err := importImages(ctx, in.parts["containerd"], archive, scratch, store); err != nil {
		return err
	}
	return copyStore(w, store, "var/lib/containerd")
}

// writeComponents writes an archive in the OCI layout with one image for each name.
func writeComponents(names []string, in inputs, scratch, archive string) error {
	dir := filepath.Join(scratch, "layout")
	out, err := layout.Write(dir, empty.Index)
	if err != nil {
		return fmt.Errorf("begin the archive of component images: %w", err)
	}
	for _, name := range names {
		image, err := componentImage(name, in)
		if err != nil {
			return fmt.Errorf("make the component image %s: %w", name, err)
		}
		annotations := map[string]string{"io.containerd.image.name": name, "org.opencontainers.image.ref.name": name}
		if err := out.AppendImage(image, layout.WithAnnotations(annotations)); err != nil {
			return fmt.Errorf("write the component image %s: %w", name, err)
		}
	}
	return tarTree(dir, archive)
}

// componentImage is one static program, alone but for kube-proxy, which calls iptables.
func componentImage(name string, in inputs) (v1.Image, error) {
	program := componentProgram(name)
	var binaries []string
	var layers []v1.Layer
	config := v1.Config{Env: []string{searchPath}}
	place := "usr/local/bin/"
	switch program {
	case "kube-apiserver", "kube-controller-manager", "kube-scheduler":
		binaries = []string{filepath.Join(in.parts["kubernetes"], program)}
	case "kube-proxy":
		binaries = []string{filepath.Join(in.parts["kubernetes"], program)}
		base, err := compressed(in.filesystem.Path())
		if err != nil {
			return nil, err
		}
		layers = append(layers, base)
	case "etcd":
		binaries = []string{filepath.Join(in.parts["etcd"], "etcd"), filepath.Join(in.parts["etcd"], "etcdctl")}
	case "coredns":
		binaries = []string{filepath.Join(in.parts["coredns"], program)}
		config.Entrypoint = []string{"/usr/local/bin/coredns"}
	case "pause":
		binaries = []string{in.own["pause"]}
		config.Entrypoint = []string{"/pause"}
		config.User = "65535:65535"
		place = ""
	default:
		return nil, errors.New("the lab has no program for it")
	}
	programs, err := programLayer(place, binaries)
	if err != nil {
		return nil, err
	}
	image, err := mutate.AppendLayers(mutate.MediaType(empty.Image, types.OCIManifestSchema1), append(layers, programs)...)
	if err != nil {
		return nil, err
	}
	file, err := image.ConfigFile()
	if err != nil {
		return nil, err
	}
	file = file.DeepCopy()
	file.OS, file.Architecture, file.Created, file.Config = "linux", runtime.GOARCH, v1.Time{Time: layer.Epoch}, config
	return mutate.ConfigFile(image, file)
}

func compressed(file string) (v1.Layer, error) {
	return tarball.LayerFromFile(file, tarball.WithCompressionLevel(gzip.BestSpeed), tarball.WithMediaType(types.OCILayer))
}

// programLayer packs programs in memory; none is larger than a few hundred megabytes.
func programLayer(place string, binaries []string) (v1.Layer, error) {
	var content bytes.Buffer
	writer := tar.NewWriter(&content)
	for _, binary := range binaries {
		data, err := os.ReadFile(binary)
		if err != nil {
			return nil, fmt.Errorf("read a program: %w", err)
		}
		header := &tar.Header{Typeflag: tar.TypeReg, Name: place + filepath.Base(binary), Mode: 0o755, Size: int64(len(data)), ModTime: layer.Epoch}
		if err := writer.WriteHeader(header); err != nil {
			return nil, err
		}
		if _, err := writer.Write(data); err != nil {
			return nil, err
		}
	}
	if err := writer.Close(); err != nil {
		return nil, err
	}
	opener := func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(content.Bytes())), nil }
	return tarball.LayerFromOpener(opener, tarball.WithCompressionLevel(gzip.BestSpeed), tarball.WithMediaType(types.OCILayer))
}

func tarTree(dir, archive string) error {
	file, err := os.Create(archive)
	if err != nil {
		return fmt.Errorf("write the archive of component images: %w", err)
	}
	defer func() { _ = file.Close() }() // closed already where all went well
	writer := tar.NewWriter(file)
	if err := writer.AddFS(os.DirFS(dir)); err != nil {
		return fmt.Errorf("write the archive of component images: %w", err)
	}
	return errors.Join(writer.Close(), file.Close())
}

const importConfig = `version = 3
root = %q
state = %q
disabled_plugins = [%s]
[grpc]
  address = %q
  uid = %d
  gid = %d
[ttrpc]
  address = %q
  uid = %d
  gid = %d
`

// importDisabled are the plugins an import does not need; some of them want rights that only a node has.
var importDisabled = []string{
	"io.containerd.cri.v1.images", "io.containerd.cri.v1.runtime", "io.containerd.grpc.v1.cri",
	"io.containerd.internal.v1.opt", "io.containerd.internal.v1.restart", "io.containerd.internal.v1.tracing",
	"io.containerd.nri.v1.nri", "io.containerd.runtime.v2.task", "io.containerd.snapshotter.v1.blockfile",
	"io.containerd.snapshotter.v1.overlayfs", "io.containerd.snapshotter.v1.erofs", "io.containerd.mount-manager.v1.bolt",
	"io.containerd.tracing.processor.v1.otlp", "io.containerd.sandbox.controller.v1.shim", "io.containerd.podsandbox.controller.v1.podsandbox",
}

func importImages(ctx context.Context, programs, archive, scratch, store string) error {
	socket := filepath.Join(scratch, "c.sock")
	quoted := make([]string, 0, len(importDisabled))
	for _, plugin := range importDisabled {
		quoted = append(quoted, fmt.Sprintf("%q", plugin))
	}
	uid, gid := os.Getuid(), os.Getgid()
	text := fmt.Sprintf(importConfig, store, filepath.Join(scratch, "state"), strings.Join(quoted, ", "), socket, uid, gid, socket+".ttrpc", uid, gid)
	config := filepath.Join(scratch, "containerd.toml")
	if err := os.WriteFile(config, []byte(text), 0o600); err != nil {
		return fmt.Errorf("configure containerd for the import: %w", err)
	}
	var log bytes.Buffer
	daemon := exec.CommandContext(ctx, filepath.Join(programs, "containerd"), "--config", config)
	daemon.Stdout, daemon.Stderr = &log, &log
	daemon.Cancel = func() error { return daemon.Process.Signal(syscall.SIGTERM) }
	daemon.WaitDelay = containerdLimit
	daemon.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGTERM}
	if err := daemon.Start(); err != nil {
		return fmt.Errorf("start containerd for the import: %w", err)
	}
	err := importThrough(ctx, filepath.Join(programs, "ctr"), socket, archive)
	signalled := daemon.Process.Signal(syscall.SIGTERM)
	waited := daemon.Wait()
	if err != nil {
		return fmt.Errorf("%w (containerd said: %s)", err, lastLines(log.String(), 3))
	}
	if waited != nil || signalled != nil {
		return fmt.Errorf("end containerd after the import: %w (it said: %s)", errors.Join(signalled, waited), lastLines(log.String(), 3))
	}
	return nil
}

func importThrough(ctx context.Context, ctr, socket, archive string) error {
	ready, cancel := context.WithTimeout(ctx, containerdLimit)
	defer cancel()
	for exec.CommandContext(ready, ctr, "--address", socket, "version").Run() != nil {
		select {
		case <-ready.Done():
			return errors.New("containerd did not answer while importing the component images")
		case <-time.After(100 * time.Millisecond):
		}
	}
	output, err := exec.CommandContext(ctx, ctr, "--address", socket, "--namespace", "k8s.io", "images", "import", "--local", "--no-unpack", archive).CombinedOutput()
	if err != nil {
		return fmt.Errorf("import the component images: %w: %s", err, lastLines(string(output), 3))
	}
	return nil
}

// copyStore copies containerd's folders as root's, whoever made them here.
func copyStore(w *layer.Writer, from, to string) error {
	return filepath.WalkDir(from, func(source string, entry fs.DirEntry, err error) error {
		if err != nil {
			return fmt.Errorf("read the image store: %w", err)
		}
		relative, err := filepath.Rel(from, source)
		if err != nil {
			return err
		}
		info, err := entry.Info()
		if err != nil {
			return fmt.Errorf("read the image store: %w", err)
		}
		name := filepath.ToSlash(filepath.Join(to, relative))
		if entry.IsDir() {
			return w.Dir(name, int64(info.Mode().Perm()), layer.Root)
		}
		if !info.Mode().IsRegular() {
			return nil
		}
		return w.FromFile(name, source, int64(info.Mode().Perm()), layer.Root)
	})
}

func lastLines(text string, count int) string {
	lines := strings.Split(strings.TrimSpace(text), "\n")
	if len(lines) > count {
		lines = lines[len(lines)-count:]
	}
	return strings.Join(lines, "; ")
}
