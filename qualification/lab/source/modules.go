package source

import (
	"context"
	"fmt"
	"runtime"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"

	"ptah.run/ptah/qualification/lab/cache"
	"ptah.run/ptah/qualification/lab/catalog"
	"ptah.run/ptah/qualification/lab/layer"
	"ptah.run/ptah/qualification/lab/rootfs"
)

// Versions of the recipes below. A number goes up when what it names would come out differently.
const (
	filesystemRecipe = 1
	imageRecipe      = 1
)

// Labels of every image this source makes.
const (
	LabelRole = "run.ptah.role"
)

// UnprivilegedID is the user and group that images run as where nothing needs root.
const UnprivilegedID = 65532

// Modules builds images from Go modules and Debian packages.
type Modules struct {
	Catalog  *catalog.Catalog
	Store    *cache.Store
	Programs *Programs
}

// NewModules returns the source that builds a catalogue's images into a store.
func NewModules(c *catalog.Catalog, store *cache.Store) *Modules {
	return &Modules{Catalog: c, Store: store, Programs: &Programs{Store: store}}
}

// Name implements Source.
func (m *Modules) Name() string { return ModulesName }

// recipe is how one role is put together: the layers above the file system and what a container of it runs.
type recipe struct {
	version int
	layers  []layerRecipe
	config  func(catalog.Image) v1.Config
	parts   []string // program sets the role needs
}

// layerRecipe writes one layer from the folders of the program sets by part.
type layerRecipe struct {
	name  string
	own   []string // the lab's own programs it needs
	build func(ctx context.Context, w *layer.Writer, in inputs) error
	// beside says that the layer takes files of the second file system, and none of the first.
	beside bool
}

// inputs are what a layer is made from.
type inputs struct {
	entry      catalog.Image
	filesystem *layer.File       // nil where the image starts from nothing
	beside     *layer.File       // nil where the image needs no second file system
	parts      map[string]string // part to folder
	own        map[string]string // own program to file
}

// Image implements Source.
func (m *Modules) Image(ctx context.Context, entry catalog.Image) (v1.Image, error) {
	if entry.Modules == nil {
		return nil, &UnavailableError{Source: ModulesName, Role: string(entry.Role), Version: entry.Version,
			Lacks: "build recipe", Hint: "use the source registry"}
	}
	recipe, known := recipes[entry.Role]
	if !known {
		return nil, &UnavailableError{Source: ModulesName, Role: string(entry.Role), Version: entry.Version,
			Lacks: "build recipe", Hint: "use the source registry"}
	}
	in := inputs{entry: entry, parts: map[string]string{}, own: map[string]string{}}
	var layers []v1.Layer
	if name := entry.Modules.Filesystem; name != "" {
		filesystem, err := m.Filesystem(ctx, name)
		if err != nil {
			return nil, err
		}
		in.filesystem = filesystem
		layers = append(layers, filesystem)
	}
	if name := entry.Modules.Beside; name != "" {
		var err error
		if in.beside, err = m.Filesystem(ctx, name); err != nil {
			return nil, err
		}
	}
	built, err := m.layers(ctx, recipe, in)
	if err != nil {
		return nil, err
	}
	layers = append(layers, built...)
	return assemble(layers, recipe.config(entry), entry)
}

// Filesystem returns the layer of a root file system of the catalogue.
func (m *Modules) Filesystem(ctx context.Context, name string) (*layer.File, error) {
	filesystem, err := m.Catalog.Filesystem(name)
	if err != nil {
		return nil, err
	}
	inputs := map[string]any{"recipe": filesystemRecipe, "filesystem": filesystem, "architecture": runtime.GOARCH}
	dir, err := m.Store.Ensure(ctx, cache.Recipe{Kind: "filesystems", Name: name, Inputs: inputs},
		func(ctx context.Context, dir string) error {
			_, err := rootfs.Build(ctx, filesystem, dir)
			return err
		})
	if err != nil {
		return nil, err
	}
	return layer.Open(dir)
}

// layers returns the layers above the file system, each from the cache where its recipe did not change. Program
// sets are built only where a layer is.
func (m *Modules) layers(ctx context.Context, r recipe, in inputs) ([]v1.Layer, error) {
	var layers []v1.Layer
	for _, one := range r.layers {
		described, err := m.describe(r, one, in)
		if err != nil {
			return nil, err
		}
		name := fmt.Sprintf("%s-%s-%s", in.entry.Role, in.entry.Version, one.name)
		dir, err := m.Store.Ensure(ctx, cache.Recipe{Kind: "images", Name: name, Inputs: described},
			func(ctx context.Context, dir string) error { return m.buildLayer(ctx, r, one, in, dir) })
		if err != nil {
			return nil, err
		}
		file, err := layer.Open(dir)
		if err != nil {
			return nil, err
		}
		layers = append(layers, file)
	}
	return layers, nil
}

func (m *Modules) describe(r recipe, one layerRecipe, in inputs) (map[string]any, error) {
	described := map[string]any{"recipe": imageRecipe, "version": r.version, "layer": one.name,
		"release": in.entry.Release, "architecture": runtime.GOARCH}
	if in.filesystem != nil && !one.beside {
		described["filesystem"] = in.filesystem.Meta.DiffID
	}
	if one.beside {
		if in.beside == nil {
			return nil, fmt.Errorf("the image catalogue names no second file system for the %s image %s", in.entry.Role, in.entry.Version)
		}
		described["beside"] = in.beside.Meta.DiffID
	}
	for _, part := range r.parts {
		set, err := m.part(in.entry, part)
		if err != nil {
			return nil, err
		}
		described["part "+part] = set.Recipe()
	}
	for _, program := range one.own {
		digest, err := ownDigest(program)
		if err != nil {
			return nil, err
		}
		described["own "+program] = digest
	}
	return described, nil
}

func (m *Modules) part(entry catalog.Image, part string) (catalog.Program, error) {
	name, found := entry.Modules.Programs[part]
	if !found {
		return catalog.Program{}, fmt.Errorf("the image catalogue names no program set for the part %q of the %s image %s", part, entry.Role, entry.Version)
	}
	return m.Catalog.Program(name)
}

func (m *Modules) buildLayer(ctx context.Context, r recipe, one layerRecipe, in inputs, dir string) error {
	for _, part := range r.parts {
		set, err := m.part(in.entry, part)
		if err != nil {
			return err
		}
		if in.parts[part], err = m.Programs.Ensure(ctx, set); err != nil {
			return err
		}
	}
	for _, program := range one.own {
		file, err := m.Programs.Own(ctx, program)
		if err != nil {
			return err
		}
		in.own[program] = file
	}
	writer, err := layer.NewWriter(dir)
	if err != nil {
		return err
	}
	defer writer.Abort()
	if err := one.build(ctx, writer, in); err != nil {
		return err
	}
	_, err = writer.Close()
	return err
}

// assemble makes an image of layers. Its times are fixed, so that its digest depends on its content only.
func assemble(layers []v1.Layer, config v1.Config, entry catalog.Image) (v1.Image, error) {
	image, err := mutate.AppendLayers(empty.Image, layers...)
	if err != nil {
		return nil, fmt.Errorf("put the %s image %s together: %w", entry.Role, entry.Version, err)
	}
	file, err := image.ConfigFile()
	if err != nil {
		return nil, fmt.Errorf("put the %s image %s together: %w", entry.Role, entry.Version, err)
	}
	file = file.DeepCopy()
	file.OS, file.Architecture = "linux", runtime.GOARCH
	file.Created = v1.Time{Time: layer.Epoch}
	for i := range file.History {
		file.History[i] = v1.History{Created: v1.Time{Time: layer.Epoch}, CreatedBy: "ptah-qualify"}
	}
	file.Config = config
	file.Config.Labels = map[string]string{
		LabelRole: string(entry.Role), "org.opencontainers.image.version": entry.Release,
		"org.opencontainers.image.created": layer.Epoch.Format(time.RFC3339),
	}
	image, err = mutate.ConfigFile(image, file)
	if err != nil {
		return nil, fmt.Errorf("put the %s image %s together: %w", entry.Role, entry.Version, err)
	}
	return image, nil
}
