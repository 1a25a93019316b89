package source

import (
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/types"

	"ptah.run/ptah/qualification/lab/cache"
)

const compressRecipe = 1

// Compressed returns an image with the same files and gzip-compressed OCI layers, as a registry stores it. Layers
// are compressed once and kept in the cache; an image whose layers are compressed already keeps them.
func Compressed(ctx context.Context, store *cache.Store, image v1.Image) (v1.Image, error) {
	layers, err := image.Layers()
	if err != nil {
		return nil, err
	}
	config, err := image.ConfigFile()
	if err != nil {
		return nil, err
	}
	out := mutate.MediaType(mutate.ConfigMediaType(empty.Image, types.OCIConfigJSON), types.OCIManifestSchema1)
	for i, one := range layers {
		compressed, err := compressLayer(ctx, store, one)
		if err != nil {
			return nil, fmt.Errorf("compress a layer: %w", err)
		}
		addendum := mutate.Addendum{Layer: compressed}
		if i < len(config.History) {
			addendum.History = config.History[i]
		}
		if out, err = mutate.Append(out, addendum); err != nil {
			return nil, fmt.Errorf("compress a layer: %w", err)
		}
	}
	return mutate.ConfigFile(out, config.DeepCopy())
}

func compressLayer(ctx context.Context, store *cache.Store, one v1.Layer) (v1.Layer, error) {
	mediaType, err := one.MediaType()
	if err != nil {
		return nil, err
	}
	if mediaType != types.DockerUncompressedLayer && mediaType != types.OCIUncompressedLayer {
		return one, nil
	}
	diffID, err := one.DiffID()
	if err != nil {
		return nil, err
	}
	recipe := cache.Recipe{Kind: "compressed", Name: diffID.Hex[:12], Inputs: map[string]any{"recipe": compressRecipe, "layer": diffID.String(), "level": gzip.BestSpeed}}
	dir, err := store.Ensure(ctx, recipe, func(_ context.Context, dir string) error {
		return gzipLayer(one, filepath.Join(dir, "layer.tar.gz"))
	})
	if err != nil {
		return nil, err
	}
	return tarball.LayerFromFile(filepath.Join(dir, "layer.tar.gz"), tarball.WithMediaType(types.OCILayer))
}

func gzipLayer(one v1.Layer, path string) error {
	content, err := one.Uncompressed()
	if err != nil {
		return err
	}
	defer func() { _ = content.Close() }()
	file, err := os.Create(path)
	if err != nil {
		return err
	}
	writer, err := gzip.NewWriterLevel(file, gzip.BestSpeed)
	if err != nil {
		return errors.Join(err, file.Close())
	}
	_, err = io.Copy(writer, content)
	return errors.Join(err, writer.Close(), file.Close())
}
