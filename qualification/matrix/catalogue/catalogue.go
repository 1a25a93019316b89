// Package catalogue is the typed form of the support catalogues: which suites exist with their phases and scenarios,
// and which Kubernetes minors are supported with their pins. It is pure.
package catalogue

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	"ptah.run/ptah/qualification/profile/document"
)

// APIVersion heads every catalogue.
const APIVersion = "qualification.ptah.run/v1"

// Suites is the catalogue of suites.
type Suites struct {
	APIVersion string  `json:"apiVersion"`
	Kind       string  `json:"kind"`
	Suites     []Suite `json:"suites"`
}

// Suite is a set of phases that share one cluster.
type Suite struct {
	Name    string  `json:"name"`
	Summary string  `json:"summary"`
	Package string  `json:"package"` // Go package of the suite, relative to the repository
	Phases  []Phase `json:"phases"`
}

// Phase is scenarios that run in order in one process. The scenario named change-before-apply is the Go test function
// TestChangeBeforeApply of the package of the suite.
type Phase struct {
	Name           string            `json:"name"`
	Timeout        document.Duration `json:"timeout"`
	Scenarios      []string          `json:"scenarios"`
	PrepareThrough string            `json:"prepareThrough,omitempty"` // the last scenario that other phases may borrow as preparation
}

// Scenarios returns the scenarios of the suite in order.
func (s Suite) Scenarios() []string {
	var names []string
	for _, phase := range s.Phases {
		names = append(names, phase.Scenarios...)
	}
	return names
}

// Tests returns the names of the Go test functions of the phase, in the order of its scenarios.
func (p Phase) Tests() []string {
	tests := make([]string, len(p.Scenarios))
	for i, scenario := range p.Scenarios {
		for _, word := range strings.Split(scenario, "-") {
			tests[i] += strings.ToUpper(word[:1]) + word[1:]
		}
		tests[i] = "Test" + tests[i]
	}
	return tests
}

// Digest identifies what the suite is declared to do.
func (s Suite) Digest() string {
	digest, err := document.Digest(s)
	if err != nil {
		panic(err) // the struct holds nothing that cannot be encoded
	}
	return digest
}

// Find returns the suite of that name.
func (s *Suites) Find(name string) (Suite, error) {
	var known []string
	for _, suite := range s.Suites {
		if suite.Name == name {
			return suite, nil
		}
		known = append(known, suite.Name)
	}
	return Suite{}, fmt.Errorf("the catalogue has no suite %q, it has: %s", name, strings.Join(known, ", "))
}

var (
	namePattern  = regexp.MustCompile(`^[a-z0-9]+(-[a-z0-9]+)*$`)
	minorPattern = regexp.MustCompile(`^1\.([1-9][0-9]*)$`)
)

func refuse(path, format string, arguments ...any) error {
	return &document.Error{Path: path, Problem: fmt.Sprintf(format, arguments...)}
}

func named(name string, err error) error {
	if refusal, ok := err.(*document.Error); ok {
		refusal.Document = name
	}
	return err
}

// DecodeSuites reads the catalogue of suites and refuses one that contradicts itself: a suite, phase, test or
// scenario that two owners claim, a suite without phases, a phase without scenarios or without a timeout, and a
// preparation that ends at a scenario the phase does not have.
func DecodeSuites(name string, data []byte) (*Suites, error) {
	var s Suites
	if err := document.Decode(name, data, &s); err != nil {
		return nil, err
	}
	if s.APIVersion != APIVersion || s.Kind != "Suites" || len(s.Suites) == 0 {
		return nil, named(name, refuse("", "it must have apiVersion %s, kind Suites and at least one suite", APIVersion))
	}
	owners := map[string]string{}
	for i, suite := range s.Suites {
		if err := suite.validate(fmt.Sprintf("suites[%d]", i), owners); err != nil {
			return nil, named(name, err)
		}
	}
	return &s, nil
}

func (s Suite) validate(path string, owners map[string]string) error {
	if err := claim(owners, path+".name", "suite", s.Name, s.Name); err != nil {
		return err
	}
	if len(s.Phases) == 0 || s.Summary == "" || s.Package == "" {
		return refuse(path, "a suite has a summary, a package and at least one phase")
	}
	for i, phase := range s.Phases {
		at := fmt.Sprintf("%s.phases[%d]", path, i)
		if err := claim(owners, at+".name", "phase", phase.Name, s.Name); err != nil {
			return err
		}
		if phase.Timeout == 0 || len(phase.Scenarios) == 0 {
			return refuse(at, "a phase has a timeout and at least one scenario")
		}
		for j, scenario := range phase.Scenarios {
			if err := claim(owners, fmt.Sprintf("%s.scenarios[%d]", at, j), "scenario", scenario, s.Name+"/"+phase.Name); err != nil {
				return err
			}
		}
		if phase.PrepareThrough != "" && !slices.Contains(phase.Scenarios, phase.PrepareThrough) {
			return refuse(at+".prepareThrough", "the phase has no scenario %q", phase.PrepareThrough)
		}
	}
	return nil
}

func claim(owners map[string]string, path, what, name, owner string) error {
	if !namePattern.MatchString(name) {
		return refuse(path, "a %s has a name of lower-case words joined by dashes, not %q", what, name)
	}
	if other, taken := owners[what+" "+name]; taken {
		return refuse(path, "the %s %s is claimed by %s already", what, name, other)
	}
	owners[what+" "+name] = owner
	return nil
}

// Kubernetes is the catalogue of supported minors.
type Kubernetes struct {
	APIVersion   string    `json:"apiVersion"`
	Kind         string    `json:"kind"`
	Policy       string    `json:"policy"`
	WindowSize   int       `json:"windowSize"`
	LastVerified Day       `json:"lastVerified"` // the day the window was last compared with the upstream releases
	Releases     []Release `json:"releases"`
}

// Release is one minor with the patch that is tested, and how each image source pins it.
type Release struct {
	Minor   string            `json:"minor"`
	Version string            `json:"version"`
	Pins    map[string]string `json:"pins"` // image source to pin: modules to a Go module version, registry to an image digest
}

// Day is a day, written 2026-11-29.
type Day string

// UnmarshalText refuses what is no day of the calendar.
func (d *Day) UnmarshalText(text []byte) error {
	if _, err := time.Parse(time.DateOnly, string(text)); err != nil {
		return fmt.Errorf("it must be a day such as 2026-11-29, not %q", text)
	}
	*d = Day(text)
	return nil
}

// MaxAge is how old lastVerified may be.
const MaxAge = 35 * 24 * time.Hour

// DecodeKubernetes reads the catalogue of minors and refuses a window that is not consecutive, ascending and of the
// declared size, a version of another minor, and a minor that no image source pins.
func DecodeKubernetes(name string, data []byte) (*Kubernetes, error) {
	var k Kubernetes
	if err := document.Decode(name, data, &k); err != nil {
		return nil, err
	}
	if k.APIVersion != APIVersion || k.Kind != "Kubernetes" || k.Policy != "upstream-active-minors" || k.LastVerified == "" {
		return nil, named(name, refuse("", "it must have apiVersion %s, kind Kubernetes, policy upstream-active-minors and lastVerified", APIVersion))
	}
	if k.WindowSize < 1 || len(k.Releases) != k.WindowSize {
		return nil, named(name, refuse("releases", "the window is of %d minors and %d are listed", k.WindowSize, len(k.Releases)))
	}
	for i, release := range k.Releases {
		if err := release.validate(fmt.Sprintf("releases[%d]", i)); err != nil {
			return nil, named(name, err)
		}
		if i > 0 && number(release.Minor) != number(k.Releases[i-1].Minor)+1 {
			return nil, named(name, refuse(fmt.Sprintf("releases[%d].minor", i), "minors ascend one by one, %s does not follow %s", release.Minor, k.Releases[i-1].Minor))
		}
	}
	return &k, nil
}

func (r Release) validate(path string) error {
	switch {
	case !minorPattern.MatchString(r.Minor):
		return refuse(path+".minor", "it must be a minor such as \"1.37\", not %q", r.Minor)
	case !strings.HasPrefix(r.Version, r.Minor+"."):
		return refuse(path+".version", "%q is no patch of %s", r.Version, r.Minor)
	case len(r.Pins) == 0:
		return refuse(path+".pins", "pin the minor for at least one image source")
	}
	for source, pin := range r.Pins {
		switch {
		case source == "modules" && pin == "k8s.io/kubernetes@v"+r.Version:
		case source == "registry" && regexp.MustCompile(`^\S+@sha256:[0-9a-f]{64}$`).MatchString(pin):
		default:
			return refuse(path+".pins."+source, "%q is no pin: modules takes k8s.io/kubernetes@v%s, registry takes an image with its digest", pin, r.Version)
		}
	}
	return nil
}

func number(minor string) int {
	var n int
	_, _ = fmt.Sscanf(minor, "1.%d", &n) // validated by minorPattern
	return n
}

// CheckAge refuses a catalogue whose lastVerified lies in the future or more than 35 days before now.
func (k *Kubernetes) CheckAge(now time.Time) error {
	day, err := time.Parse(time.DateOnly, string(k.LastVerified))
	if err != nil {
		return fmt.Errorf("lastVerified: %w", err)
	}
	switch age := now.Sub(day); {
	case age < 0:
		return fmt.Errorf("lastVerified %s lies in the future", k.LastVerified)
	case age > MaxAge:
		return fmt.Errorf("lastVerified %s is %d days ago, at most 35 are allowed; compare the window with the upstream releases and record the day",
			k.LastVerified, int(age.Hours()/24))
	}
	return nil
}
