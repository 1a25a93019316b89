// Package profile is the typed declaration of what "fit for production" means: workload, versions, installation and
// numeric targets, with the revisions they went through. Its canonical JSON and the SHA-256 of it identify it.
//
// The package is pure: it decodes bytes it is given, reads no clock and opens no file. A profile says what must
// hold and never how a suite is laid out, so that regrouping suites is no revision.
package profile

import (
	"ptah.run/ptah/qualification/profile/document"
)

// APIVersion and Kind head every profile.
const (
	APIVersion = "qualification.ptah.run/v1"
	Kind       = "Profile"
)

// Purpose says what a profile may be used for.
type Purpose string

// Purposes. A development profile is judged by the same rules, and what it yields is never an acceptance.
const (
	Acceptance  Purpose = "acceptance"
	Development Purpose = "development"
)

// Profile is one declared profile.
type Profile struct {
	APIVersion   string       `json:"apiVersion"`
	Kind         string       `json:"kind"`
	Name         string       `json:"name"`
	Purpose      Purpose      `json:"purpose"`
	Summary      string       `json:"summary"`
	Revision     int          `json:"revision"`
	Revisions    []Revision   `json:"revisions"`
	Support      Support      `json:"support"`
	Cluster      Cluster      `json:"cluster"`
	Installation Installation `json:"installation"`
	Workload     Workload     `json:"workload"`
	Coverage     []Coverage   `json:"coverage"`
	Scenarios    []Scenario   `json:"scenarios"`
	Targets      []Target     `json:"targets"`
	Exclusions   []Exclusion  `json:"exclusions,omitempty"`
	NotShown     []string     `json:"notShown"`
}

// Revision is one numbered change of the profile. Verdicts under earlier revisions stand.
type Revision struct {
	Number  int      `json:"number"`
	Date    Date     `json:"date"`
	Reason  string   `json:"reason"`
	Changes []string `json:"changes,omitempty"` // ids of targets and scenarios that were added, changed or removed
}

// Support lists the versions that the profile speaks about.
type Support struct {
	Kubernetes []string   `json:"kubernetes"` // minors, such as "1.37"
	Databases  []Database `json:"databases"`
	Platforms  []string   `json:"platforms"` // such as linux/amd64
}

// Database is an engine and the release line of it.
type Database struct {
	Engine  string `json:"engine"`
	Version string `json:"version"`
}

// Cluster is the shape of the clusters that evidence must come from.
type Cluster struct {
	ControlPlanes       int `json:"controlPlanes"`
	Workers             int `json:"workers"`
	HostCPUs            int `json:"hostCPUs,omitempty"`            // processors of the machine that all nodes share, at least
	HostMemoryGibibytes int `json:"hostMemoryGibibytes,omitempty"` // memory of that machine, at least
}

// Coverage is a set of cells that must be complete.
type Coverage struct {
	Matrix string `json:"matrix"`
	Depth  string `json:"depth"`
}

// Scenario is a named behaviour that must have been shown, in every cell of its selection.
type Scenario struct {
	Name        string      `json:"name"`
	Requirement Requirement `json:"requirement"`
	Statement   string      `json:"statement"` // what passing it shows, as a sentence for the report
	Fault       FaultClass  `json:"fault,omitempty"`
	Cells       Selection   `json:"cells"`
}

// Target is a number that must hold.
type Target struct {
	ID          string       `json:"id"`
	Requirement Requirement  `json:"requirement"`
	Statement   string       `json:"statement"` // what it means, as a sentence for the report
	Metric      Metric       `json:"metric"`
	Statistic   Statistic    `json:"statistic"`
	Window      Window       `json:"window"`
	Bound       Bound        `json:"bound"`
	Unit        Unit         `json:"unit"`
	Population  string       `json:"population"`
	MinSamples  int          `json:"minSamples"`
	Per         Grouping     `json:"per,omitempty"` // the statistic is taken for each of these apart, and the worst counts
	Exclude     []FaultClass `json:"exclude,omitempty"`
	Cells       Selection    `json:"cells"`
}

// Grouping is what a statistic is taken for apart.
type Grouping string

// Groupings.
const (
	PerServer   Grouping = "api-server"
	PerProcess  Grouping = "process"
	PerResource Grouping = "resource"
)

// Selection names the cells of a matrix by the values of their axes. An axis that is not named matches every value.
type Selection struct {
	Matrix string            `json:"matrix"`
	Where  map[string]string `json:"where,omitempty"`
}

// Matches says whether a cell with these axis values is selected.
func (s Selection) Matches(matrix string, axes map[string]string) bool {
	if s.Matrix != matrix {
		return false
	}
	for axis, value := range s.Where {
		if axes[axis] != value {
			return false
		}
	}
	return true
}

// Bound is the limit of a target. Exactly one field is set.
type Bound struct {
	AtMost  *float64 `json:"atMost,omitempty"`
	AtLeast *float64 `json:"atLeast,omitempty"`
}

// Holds says whether the value is within the bound. The limit itself is.
func (b Bound) Holds(value float64) bool {
	if b.AtMost != nil {
		return value <= *b.AtMost
	}
	return b.AtLeast != nil && value >= *b.AtLeast
}

// String writes the bound for people.
func (b Bound) String() string {
	switch {
	case b.AtMost != nil:
		return "at most " + Number(*b.AtMost)
	case b.AtLeast != nil:
		return "at least " + Number(*b.AtLeast)
	default:
		return "no bound"
	}
}

// Window is the stretch of time that a statistic is taken over.
type Window struct {
	Over   WindowKind        `json:"over"`
	Length document.Duration `json:"length,omitempty"` // of sliding windows only
}

// String writes the window for people.
func (w Window) String() string {
	switch w.Over {
	case Sliding:
		return "any " + w.Length.String()
	case EachMeasurement:
		return "each"
	default:
		return "the whole run"
	}
}

// WindowKind is the kind of a window.
type WindowKind string

// Kinds of windows.
const (
	Sliding         WindowKind = "sliding"     // every position of a window of a length
	EachMeasurement WindowKind = "measurement" // the interval of each member of the population
	WholeRun        WindowKind = "run"         // from the first to the last moment of the cell
)

// Exclusion is a requirement that the profile does not claim, wholly or in part.
type Exclusion struct {
	Requirement Requirement `json:"requirement"`
	Scope       string      `json:"scope"`
	Reason      string      `json:"reason"`
}

// Decode reads a profile strictly and checks that it is complete and well formed. Whether it contradicts itself
// is for Lint. Errors are one sentence with the name of the document, the line and the field.
func Decode(name string, data []byte) (*Profile, error) {
	var p Profile
	if err := document.Decode(name, data, &p); err != nil {
		return nil, err
	}
	if err := p.validate(name); err != nil {
		return nil, err
	}
	return &p, nil
}

// Digest identifies the profile: the SHA-256 of its canonical JSON.
func (p *Profile) Digest() string {
	digest, err := document.Digest(p)
	if err != nil {
		panic(err) // the struct holds nothing that cannot be encoded
	}
	return digest
}

// Canonical returns the canonical JSON.
func (p *Profile) Canonical() []byte {
	data, err := document.Canonical(p)
	if err != nil {
		panic(err) // as in Digest
	}
	return data
}
