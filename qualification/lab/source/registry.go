package source

import (
	"context"
	"fmt"
	"runtime"

	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/remote"

	"ptah.run/ptah/qualification/lab/catalog"
)

// Registry pulls images by pinned digest.
type Registry struct {
	Options     []remote.Option // transport, credentials
	NameOptions []name.Option
}

// Name implements Source.
func (r *Registry) Name() string { return RegistryName }

// Image implements Source. A digest may name an index; then the image of this machine's platform is returned.
func (r *Registry) Image(ctx context.Context, entry catalog.Image) (v1.Image, error) {
	if entry.Registry == nil {
		return nil, &UnavailableError{Source: RegistryName, Role: string(entry.Role), Version: entry.Version,
			Lacks: "digest pin", Hint: "use the source modules, or add a verified digest to support/images.yaml"}
	}
	reference, err := name.NewDigest(entry.Registry.Repository+"@"+entry.Registry.Digest, r.NameOptions...)
	if err != nil {
		return nil, fmt.Errorf("the registry pin of the %s image %s is no reference: %w", entry.Role, entry.Version, err)
	}
	options := append([]remote.Option{remote.WithContext(ctx),
		remote.WithPlatform(v1.Platform{OS: "linux", Architecture: runtime.GOARCH})}, r.Options...)
	image, err := remote.Image(reference, options...)
	if err != nil {
		return nil, fmt.Errorf("pull the %s image %s from %s: %w", entry.Role, entry.Version, reference, err)
	}
	return image, nil
}
