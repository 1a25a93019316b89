package dossier

// Harness identifies the program that ran the cells.
type Harness struct {
	Commit  string `json:"commit"`  // git commit of the harness, 40 hex digits; empty where it was not built from git
	Dirty   bool   `json:"dirty"`   // the work tree differed from the commit
	Version string `json:"version"` // of the program, for people
	// Changes identifies how the work tree differed from the commit; empty where it did not, or where nobody looked.
	Changes string `json:"changes,omitempty"`
}

// String is the commit, with a mark where the tree was changed.
func (h Harness) String() string {
	switch {
	case h.Commit == "":
		return "unknown"
	case h.Dirty && len(h.Changes) > len("sha256:")+12:
		return h.Commit + "-dirty-" + h.Changes[len("sha256:"):][:12]
	case h.Dirty:
		return h.Commit + "-dirty"
	default:
		return h.Commit
	}
}

// Release identifies what was tested.
type Release struct {
	Version      string            `json:"version"`
	Commit       string            `json:"commit,omitempty"` // git commit it was built from, 40 hex digits; empty where that is not known
	Images       map[string]string `json:"images"`           // role, such as manager, to sha256 digest
	ChartVersion string            `json:"chartVersion"`
	ChartDigest  string            `json:"chartDigest"`            // sha256 of the packaged chart
	ValuesDigest string            `json:"valuesDigest,omitempty"` // sha256 of the values it was installed with
}

// Lab is what a record says about the lab of a cell: the part of the lab description that is a fact and no address.
type Lab struct {
	ID                string              `json:"id"`
	ClusterUID        string              `json:"clusterUID"`
	KubernetesVersion string              `json:"kubernetesVersion"`
	Platform          string              `json:"platform"`
	NativePlatform    bool                `json:"nativePlatform"`
	Images            map[string]LabImage `json:"images"`
}

// LabImage is one image of a lab and where it came from.
type LabImage struct {
	Source  string `json:"source"`
	Digest  string `json:"digest"`
	Version string `json:"version"`
}

// ImageSource is the source of the images of the lab: modules or registry, or both joined where they are mixed.
func (l Lab) ImageSource() string {
	found := ""
	for _, candidate := range []string{"modules", "registry"} {
		for _, image := range l.Images {
			if image.Source == candidate {
				if found != "" {
					found += "+"
				}
				found += candidate
				break
			}
		}
	}
	return found
}
