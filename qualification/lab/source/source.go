// Package source gets the lab's images. Both of its sources, a registry with pinned digests and a build from Go
// modules and Debian packages, answer for the same catalogue entries with the same kind of image, so that nothing
// behind them has to know which one was used. A source never falls back to the other one.
package source

import (
	"context"
	"fmt"

	v1 "github.com/google/go-containerregistry/pkg/v1"

	"ptah.run/ptah/qualification/lab/catalog"
)

// Names of the sources.
const (
	ModulesName  = "modules"
	RegistryName = "registry"
)

// Source gets images.
type Source interface {
	// Name is the word under which evidence records where an image came from.
	Name() string
	// Image returns the image of a catalogue entry. Its error is an *UnavailableError where this source cannot
	// have the image at all.
	Image(ctx context.Context, entry catalog.Image) (v1.Image, error)
}

// UnavailableError says that the catalogue gives a source nothing to get an image from.
type UnavailableError struct {
	Source, Role, Version, Lacks, Hint string
}

func (e *UnavailableError) Error() string {
	return fmt.Sprintf("the %s image %s cannot be had from the source %q: the image catalogue has no %s for it; %s",
		e.Role, e.Version, e.Source, e.Lacks, e.Hint)
}
