package matrix

import (
	"fmt"
	"slices"

	"ptah.run/ptah/qualification/profile/document"
)

// Inputs is everything that decides what a cell run shows. A finished cell stands as long as its inputs are the same.
type Inputs struct {
	Cell          Cell              `json:"cell"`
	Profile       string            `json:"profile"`       // digest of the profile
	Matrix        string            `json:"matrix"`        // digest of the matrix
	Suite         string            `json:"suite"`         // digest of the catalogue entry of the suite, or of the driver
	Images        map[string]string `json:"images"`        // digest of each image of the release, by role
	Chart         string            `json:"chart"`         // digest of the chart
	LabImages     map[string]string `json:"labImages"`     // digest of each image of the lab, by role
	ImageSource   string            `json:"imageSource"`   // modules or registry
	Platform      string            `json:"platform"`      // such as linux/amd64
	Native        bool              `json:"native"`        // false where the platform is emulated
	ControlPlanes int               `json:"controlPlanes"` // of the cluster
	Workers       int               `json:"workers"`       // of the cluster
	Harness       string            `json:"harness"`       // commit of the harness, with a mark where the tree was changed
}

// Digest identifies the inputs.
func (i Inputs) Digest() string {
	digest, err := document.Digest(i)
	if err != nil {
		panic(err) // the struct holds nothing that cannot be encoded
	}
	return digest
}

// Differences says in words what changed from i to other, and nothing where they are the same.
func (i Inputs) Differences(other Inputs) []string {
	var found []string
	add := func(what string, before, after any) {
		if fmt.Sprint(before) != fmt.Sprint(after) {
			found = append(found, fmt.Sprintf("%s was %v and is %v", what, before, after))
		}
	}
	add("the cell", i.Cell.Key, other.Cell.Key)
	if i.Cell.Key == other.Cell.Key {
		add("the declaration of the cell", i.Cell, other.Cell)
	}
	add("the profile", i.Profile, other.Profile)
	add("the matrix", i.Matrix, other.Matrix)
	add("the suite", i.Suite, other.Suite)
	add("the chart", i.Chart, other.Chart)
	addMap(add, "the image ", i.Images, other.Images)
	addMap(add, "the lab image ", i.LabImages, other.LabImages)
	add("the image source", i.ImageSource, other.ImageSource)
	add("the platform", i.Platform, other.Platform)
	add("native execution", i.Native, other.Native)
	add("the number of control planes", i.ControlPlanes, other.ControlPlanes)
	add("the number of workers", i.Workers, other.Workers)
	add("the harness", i.Harness, other.Harness)
	return found
}

func addMap(add func(string, any, any), what string, before, after map[string]string) {
	var roles []string
	for role := range before {
		roles = append(roles, role)
	}
	for role := range after {
		if _, known := before[role]; !known {
			roles = append(roles, role)
		}
	}
	slices.Sort(roles)
	for _, role := range roles {
		add(what+role, orAbsent(before[role]), orAbsent(after[role]))
	}
}

func orAbsent(digest string) string {
	if digest == "" {
		return "absent"
	}
	return digest
}
