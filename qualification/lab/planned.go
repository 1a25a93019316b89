package lab

import (
	"context"

	"ptah.run/ptah/qualification/lab/catalog"
)

// wantedImage is one image that a lab needs, of its role's default version where none is named.
type wantedImage struct {
	role    catalog.Role
	version string
}

// images lists what a lab of these options needs.
func (o Options) images() []wantedImage {
	wanted := []wantedImage{{catalog.Node, o.Kubernetes}, {catalog.Registry, ""}, {servers[o.Database].role, o.DatabaseVersion}}
	if o.ControlPlanes > 1 {
		wanted = append(wanted, wantedImage{role: catalog.LoadBalancer})
	}
	return wanted
}

// Planned says which images a lab of these options would use, by role, without an engine. It builds those that are not
// in the cache.
func (i *Images) Planned(ctx context.Context, options Options) (map[string]ImageDescription, error) {
	if err := options.completeDatabase(); err != nil {
		return nil, err
	}
	planned := map[string]ImageDescription{}
	for _, one := range options.images() {
		description, _, err := i.describe(ctx, one.role, one.version)
		if err != nil {
			return nil, err
		}
		planned[string(one.role)] = description
	}
	return planned, nil
}
