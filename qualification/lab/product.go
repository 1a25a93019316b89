package lab

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"fmt"
	"io"
	"os"
	"path"
	"path/filepath"
	"runtime"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/types"

	"ptah.run/ptah/qualification/lab/catalog"
	"ptah.run/ptah/qualification/lab/gobuild"
	"ptah.run/ptah/qualification/lab/layer"
	"ptah.run/ptah/qualification/lab/source"
)

// Program is one program of the product and the image it ships in.
type Program struct {
	Role    string // manager, runner, executor: the key in Description.OperatorImages
	Package string // path of its main package below the repository
	Path    string // of the program in the image
	Base    bool   // the image carries the database servers of the executor's base
}

// OperatorPrograms are the programs whose images a release ships.
var OperatorPrograms = []Program{
	{Role: "manager", Package: "./operator/cmd/manager", Path: "/manager"},
	{Role: "runner", Package: "./operator/cmd/ptah-runner", Path: "/ptah-runner"},
	{Role: "executor", Package: "./operator/cmd/ptah", Path: "/usr/local/bin/ptah", Base: true},
}

// Repository returns the name of the program's image in a registry.
func (p Program) Repository() string { return "ptah/" + p.Role }

// BuildOptions say what goes into a program besides its source.
type BuildOptions struct {
	Version string // shown as the image's version
	LDFlags string // further linker flags, such as -X path.Name=value
}

// BuildOperatorImages builds the image of each program from the source in a repository. The same source gives the
// same digest in every folder and at every time: nothing of the path, the clock, version control or the user goes
// in. The executor's base comes from the image source.
func (i *Images) BuildOperatorImages(ctx context.Context, repository string, programs []Program, options BuildOptions) (map[string]v1.Image, error) {
	built := map[string]v1.Image{}
	for _, program := range programs {
		done := i.Store.Progress().Step("building the image of %s", program.Role)
		image, err := i.buildProgram(ctx, repository, program, options)
		done(err)
		if err != nil {
			return nil, fmt.Errorf("build the image of %s: %w", program.Role, err)
		}
		built[program.Role] = image
	}
	return built, nil
}

func (i *Images) buildProgram(ctx context.Context, repository string, program Program, options BuildOptions) (v1.Image, error) {
	scratch, err := os.MkdirTemp("", "ptah-product-")
	if err != nil {
		return nil, fmt.Errorf("make a folder for the program: %w", err)
	}
	defer func() { _ = os.RemoveAll(scratch) }() // what is left lies in the temporary folder
	binary := filepath.Join(scratch, path.Base(program.Path))
	if err := gobuild.Program(ctx, repository, program.Package, binary, options.LDFlags); err != nil {
		return nil, err
	}
	if !program.Base {
		return ProgramImage(nil, program, options, binary)
	}
	base, err := i.executorBase(ctx)
	if err != nil {
		return nil, err
	}
	return ProgramImage(base, program, options, binary)
}

// executorBase returns the executor's base with compressed layers, which are computed once.
func (i *Images) executorBase(ctx context.Context) (v1.Image, error) {
	_, base, err := i.Get(ctx, catalog.ExecutorBase, "")
	if err != nil {
		return nil, err
	}
	return source.Compressed(ctx, i.Store, base)
}

// VerifyReproducible builds the images twice, from the repository and from a copy of it in another folder, and
// returns the digests by role. Its error names the image whose digests differ.
func (i *Images) VerifyReproducible(ctx context.Context, repository string, programs []Program, options BuildOptions) (map[string]string, error) {
	elsewhere, err := os.MkdirTemp("", "ptah-verify-")
	if err != nil {
		return nil, fmt.Errorf("make a folder for a copy of the source: %w", err)
	}
	defer func() { _ = os.RemoveAll(elsewhere) }() // what is left lies in the temporary folder
	if err := copySource(repository, elsewhere); err != nil {
		return nil, err
	}
	digests := map[string]string{}
	for _, place := range []string{repository, elsewhere} {
		built, err := i.BuildOperatorImages(ctx, place, programs, options)
		if err != nil {
			return nil, err
		}
		for role, image := range built {
			digest, err := image.Digest()
			if err != nil {
				return nil, fmt.Errorf("compute the digest of %s: %w", role, err)
			}
			if before, known := digests[role]; known && before != digest.String() {
				return nil, &NotReproducibleError{Role: role, First: before, Second: digest.String()}
			}
			digests[role] = digest.String()
		}
	}
	return digests, nil
}

// NotReproducibleError says that two builds of one source differ.
type NotReproducibleError struct{ Role, First, Second string }

func (e *NotReproducibleError) Error() string {
	return fmt.Sprintf("the image of %s is not reproducible: two builds of the same source gave %s and %s", e.Role, e.First, e.Second)
}

// copySource copies what Go builds the product's programs from: the module files and the operator's half.
func copySource(from, to string) error {
	for _, name := range []string{"go.mod", "go.sum"} {
		content, err := os.ReadFile(filepath.Join(from, name))
		if err != nil {
			return fmt.Errorf("copy the source: %w", err)
		}
		if err := os.WriteFile(filepath.Join(to, name), content, 0o644); err != nil {
			return fmt.Errorf("copy the source: %w", err)
		}
	}
	if err := os.CopyFS(filepath.Join(to, "operator"), os.DirFS(filepath.Join(from, "operator"))); err != nil {
		return fmt.Errorf("copy the source: %w", err)
	}
	return nil
}

// accounts are the account files of an image that starts from nothing.
const (
	accountsFile = "root:x:0:0:root:/:/sbin/nologin\nptah:x:65532:65532:ptah:/:/sbin/nologin\n"
	groupsFile   = "root:x:0:\nptah:x:65532:\n"
)

// ProgramImage puts a program into an image, above a base or above nothing. It holds the program's bytes in memory.
func ProgramImage(base v1.Image, program Program, options BuildOptions, binary string) (v1.Image, error) {
	content, err := os.ReadFile(binary)
	if err != nil {
		return nil, fmt.Errorf("read the program: %w", err)
	}
	files := []tarFile{{program.Path, content, 0o755}}
	if base == nil {
		base = mutate.MediaType(mutate.ConfigMediaType(empty.Image, types.OCIConfigJSON), types.OCIManifestSchema1)
		files = append([]tarFile{{"/etc/group", []byte(groupsFile), 0o644}, {"/etc/passwd", []byte(accountsFile), 0o644}}, files...)
	}
	added, err := filesLayer(files)
	if err != nil {
		return nil, err
	}
	image, err := mutate.Append(base, mutate.Addendum{Layer: added, History: v1.History{Created: v1.Time{Time: layer.Epoch}, CreatedBy: "ptah-qualify"}})
	if err != nil {
		return nil, fmt.Errorf("add the program to the image: %w", err)
	}
	file, err := image.ConfigFile()
	if err != nil {
		return nil, err
	}
	file = file.DeepCopy()
	file.OS, file.Architecture, file.Created = "linux", runtime.GOARCH, v1.Time{Time: layer.Epoch}
	file.Config.User = fmt.Sprintf("%d:%d", source.UnprivilegedID, source.UnprivilegedID)
	file.Config.Entrypoint, file.Config.Cmd = []string{program.Path}, nil
	file.Config.WorkingDir = "/"
	file.Config.Labels = map[string]string{"org.opencontainers.image.title": program.Repository()}
	if options.Version != "" {
		file.Config.Labels["org.opencontainers.image.version"] = options.Version
	}
	return mutate.ConfigFile(image, file)
}

type tarFile struct {
	name    string
	content []byte
	mode    int64
}

// filesLayer packs files owned by root, with one time, in the order given.
func filesLayer(files []tarFile) (v1.Layer, error) {
	var packed bytes.Buffer
	writer := tar.NewWriter(&packed)
	for _, file := range files {
		header := &tar.Header{Typeflag: tar.TypeReg, Name: file.name[1:], Mode: file.mode, Size: int64(len(file.content)), ModTime: layer.Epoch}
		if err := writer.WriteHeader(header); err != nil {
			return nil, fmt.Errorf("pack %s: %w", file.name, err)
		}
		if _, err := writer.Write(file.content); err != nil {
			return nil, fmt.Errorf("pack %s: %w", file.name, err)
		}
	}
	if err := writer.Close(); err != nil {
		return nil, fmt.Errorf("pack the program: %w", err)
	}
	opener := func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(packed.Bytes())), nil }
	return tarball.LayerFromOpener(opener, tarball.WithCompressionLevel(gzip.BestSpeed), tarball.WithMediaType(types.OCILayer))
}

// PushOperatorImages pushes images by role into a lab's registry and returns what the cluster pulls.
func PushOperatorImages(ctx context.Context, description *Description, images map[string]v1.Image) (map[string]OperatorImage, error) {
	pushed := map[string]OperatorImage{}
	for role, image := range images {
		repository := Program{Role: role}.Repository()
		digest, err := PushImage(ctx, description.Registry, repository, image)
		if err != nil {
			return nil, err
		}
		pushed[role] = OperatorImage{Digest: digest, ClusterReference: description.Registry.ClusterHost + "/" + repository + "@" + digest}
	}
	return pushed, nil
}
