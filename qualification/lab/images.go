package lab

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	v1 "github.com/google/go-containerregistry/pkg/v1"

	"ptah.run/ptah/qualification/lab/cache"
	"ptah.run/ptah/qualification/lab/catalog"
	"ptah.run/ptah/qualification/lab/engine"
	"ptah.run/ptah/qualification/lab/progress"
	"ptah.run/ptah/qualification/lab/source"
)

// CatalogPath is where the image catalogue lies in the repository.
const CatalogPath = "support/images.yaml"

// ImageDescription says which image a lab used for a role.
type ImageDescription struct {
	Source    string `json:"source"`    // modules or registry
	Reference string `json:"reference"` // its name in the local engine
	Digest    string `json:"digest"`    // of its manifest
	Version   string `json:"version"`   // exact version
}

// Images gets images from one source and puts them into the engine.
type Images struct {
	Catalog *catalog.Catalog
	Source  source.Source
	Store   *cache.Store
}

// OpenImages reads the catalogue of a repository and opens the cache. The source is modules or registry.
func OpenImages(repository, sourceName string, reporter *progress.Reporter) (*Images, error) {
	content, err := os.ReadFile(filepath.Join(repository, CatalogPath))
	if err != nil {
		return nil, fmt.Errorf("read the image catalogue: %w", err)
	}
	parsed, err := catalog.Parse(content)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", filepath.Join(repository, CatalogPath), err)
	}
	root, err := cache.Root()
	if err != nil {
		return nil, err
	}
	store, err := cache.Open(root, reporter)
	if err != nil {
		return nil, err
	}
	images := &Images{Catalog: parsed, Store: store}
	switch sourceName {
	case source.ModulesName:
		images.Source = source.NewModules(parsed, store)
	case source.RegistryName:
		images.Source = &source.Registry{}
	default:
		return nil, &UsageError{fmt.Sprintf("the image source %q is unknown: use modules or registry", sourceName)}
	}
	return images, nil
}

// Prepare makes an image present in the engine under the catalogue's tag and returns what it is.
func (i *Images) Prepare(ctx context.Context, e *engine.Engine, role catalog.Role, version string) (ImageDescription, error) {
	description, image, err := i.describe(ctx, role, version)
	if err != nil {
		return ImageDescription{}, err
	}
	loaded, err := source.Loaded(ctx, e, image, description.Reference)
	if err != nil || loaded {
		return description, err
	}
	done := i.Store.Progress().Step("loading %s into the engine", description.Reference)
	err = source.Load(ctx, e, image, description.Reference)
	done(err)
	return description, err
}

// describe returns the image of a role and what it is, without loading it.
func (i *Images) describe(ctx context.Context, role catalog.Role, version string) (ImageDescription, v1.Image, error) {
	entry, image, err := i.Get(ctx, role, version)
	if err != nil {
		return ImageDescription{}, nil, err
	}
	digest, err := image.Digest()
	if err != nil {
		return ImageDescription{}, nil, fmt.Errorf("compute the digest of the %s image: %w", role, err)
	}
	return ImageDescription{Source: i.Source.Name(), Reference: entry.Tag, Digest: digest.String(), Version: entry.Release}, image, nil
}

// Get returns the image of a role without loading it.
func (i *Images) Get(ctx context.Context, role catalog.Role, version string) (catalog.Image, v1.Image, error) {
	entry, err := i.Catalog.Image(role, version)
	if err != nil {
		return catalog.Image{}, nil, err
	}
	image, err := i.Source.Image(ctx, entry)
	return entry, image, err
}

// UsageError is a mistake in what was asked for, not in the machine.
type UsageError struct{ Message string }

func (e *UsageError) Error() string { return e.Message }

// FindRepository returns the folder of this repository at or above a folder.
func FindRepository(from string) (string, error) {
	absolute, err := filepath.Abs(from)
	if err != nil {
		return "", err
	}
	for dir := absolute; ; dir = filepath.Dir(dir) {
		if _, err := os.Stat(filepath.Join(dir, CatalogPath)); err == nil {
			return dir, nil
		}
		if dir == filepath.Dir(dir) {
			return "", &UsageError{fmt.Sprintf("neither %s nor a folder above it holds %s: run this inside the repository, or give --repository", absolute, CatalogPath)}
		}
	}
}
