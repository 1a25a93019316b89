package source

import (
	"archive/tar"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	cerrdefs "github.com/containerd/errdefs"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/moby/moby/client"

	"ptah.run/ptah/qualification/lab/engine"
)

// Loaded says whether the engine has exactly this image under a tag. The classic image store names an image by
// its configuration, the containerd one by its manifest.
func Loaded(ctx context.Context, e *engine.Engine, image v1.Image, tag string) (bool, error) {
	inspected, err := e.Client().ImageInspect(ctx, tag)
	if cerrdefs.IsNotFound(err) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("look for the image %s in the engine: %w", tag, err)
	}
	config, err := image.ConfigName()
	if err != nil {
		return false, err
	}
	manifest, err := image.Digest()
	if err != nil {
		return false, err
	}
	return inspected.ID == config.String() || inspected.ID == manifest.String(), nil
}

// Load puts an image into the engine under a tag. It does nothing where it is there already.
func Load(ctx context.Context, e *engine.Engine, image v1.Image, tag string) error {
	loaded, err := Loaded(ctx, e, image, tag)
	if err != nil || loaded {
		return err
	}
	before, err := superseded(ctx, e, tag)
	if err != nil {
		return err
	}
	reader, writer := io.Pipe()
	go func() { writer.CloseWithError(writeArchive(writer, image, tag)) }()
	result, err := e.Client().ImageLoad(ctx, reader, client.ImageLoadWithQuiet(true))
	if err != nil {
		return errors.Join(fmt.Errorf("load the image %s into the engine: %w", tag, err), reader.Close())
	}
	defer func() { _ = result.Close() }()
	decoder := json.NewDecoder(result)
	for {
		var message struct{ Error string }
		err := decoder.Decode(&message)
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return fmt.Errorf("load the image %s into the engine: %w", tag, err)
		}
		if message.Error != "" {
			return fmt.Errorf("load the image %s into the engine: %s", tag, message.Error)
		}
	}
	loaded, err = Loaded(ctx, e, image, tag)
	if err == nil && !loaded {
		err = fmt.Errorf("the engine loaded the image %s as something else: its digest does not match", tag)
	}
	if err != nil || before == "" {
		return err
	}
	// An image that a container still uses, or that has another name too, stays.
	_, err = e.Client().ImageRemove(ctx, before, client.ImageRemoveOptions{})
	if err != nil && !cerrdefs.IsNotFound(err) && !cerrdefs.IsConflict(err) {
		return fmt.Errorf("remove the image that %s replaces: %w", tag, err)
	}
	return nil
}

// superseded returns the id of an earlier image of this lab's under a tag: it is about to lose its only name.
func superseded(ctx context.Context, e *engine.Engine, tag string) (string, error) {
	inspected, err := e.Client().ImageInspect(ctx, tag)
	if cerrdefs.IsNotFound(err) {
		return "", nil
	}
	if err != nil {
		return "", fmt.Errorf("look for the image %s in the engine: %w", tag, err)
	}
	if inspected.Config == nil || inspected.Config.Labels[LabelRole] == "" {
		return "", nil
	}
	return inspected.ID, nil
}

// writeArchive writes the archive that `docker load` reads, with the layers as they are.
func writeArchive(out io.Writer, image v1.Image, tag string) error {
	writer := tar.NewWriter(out)
	config, err := image.RawConfigFile()
	if err != nil {
		return err
	}
	configName, err := image.ConfigName()
	if err != nil {
		return err
	}
	layers, err := image.Layers()
	if err != nil {
		return err
	}
	var names []string
	for i, layer := range layers {
		name := fmt.Sprintf("%d/layer.tar", i)
		names = append(names, name)
		if err := writeLayer(writer, name, layer); err != nil {
			return err
		}
	}
	manifest, err := json.Marshal([]map[string]any{{"Config": configName.Hex + ".json", "RepoTags": []string{tag}, "Layers": names}})
	if err != nil {
		return err
	}
	for name, content := range map[string][]byte{configName.Hex + ".json": config, "manifest.json": manifest} {
		if err := writer.WriteHeader(&tar.Header{Typeflag: tar.TypeReg, Name: name, Mode: 0o644, Size: int64(len(content))}); err != nil {
			return err
		}
		if _, err := io.Copy(writer, bytes.NewReader(content)); err != nil {
			return err
		}
	}
	return writer.Close()
}

func writeLayer(writer *tar.Writer, name string, layer v1.Layer) error {
	size, err := layer.Size()
	if err != nil {
		return err
	}
	content, err := layer.Compressed()
	if err != nil {
		return err
	}
	defer func() { _ = content.Close() }()
	if err := writer.WriteHeader(&tar.Header{Typeflag: tar.TypeReg, Name: name, Mode: 0o644, Size: size}); err != nil {
		return err
	}
	_, err = io.Copy(writer, content)
	return err
}
