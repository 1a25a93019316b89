// Package catalogue is the typed form of the support catalogues: which suites exist with their phases and scenarios,
// which Kubernetes minors are supported with their pins, and which machines cells run on. It checks them against one
// another, against the matrices and against what it is told about the rest of the repository. It is pure.
package catalogue

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"ptah.run/ptah/qualification/matrix"
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
	Name     string   `json:"name"`
	Summary  string   `json:"summary"`
	Package  string   `json:"package"`            // Go package of the suite, relative to the repository
	Planned  string   `json:"planned,omitempty"`  // why the suite is not there yet; its cells exist and are not run
	Prepares []string `json:"prepares,omitempty"` // phases of other suites that are borrowed as preparation, in order
	Phases   []Phase  `json:"phases"`
}

// Phase is scenarios that run in order in one process. The scenario named change-before-apply is the Go test function
// TestChangeBeforeApply of the package of the suite.
type Phase struct {
	Name           string              `json:"name"`
	Timeout        document.Duration   `json:"timeout"`
	Where          map[string][]string `json:"where,omitempty"`   // axis to the values in whose cells the phase runs; every cell where empty
	Planned        string              `json:"planned,omitempty"` // why the phase is not there yet
	Scenarios      []string            `json:"scenarios"`
	Together       []string            `json:"together,omitempty"`       // scenarios that may run at the same time as their neighbours of this kind
	PrepareThrough string              `json:"prepareThrough,omitempty"` // the last scenario that other suites may borrow as preparation
}

// Borrowed is the beginning of a phase of another suite, run only for what it leaves behind. It is never coverage.
type Borrowed struct {
	Package string // Go package of the suite that owns the phase
	Phase   Phase  // with the scenarios up to PrepareThrough only
}

// Scenarios returns the scenarios of the suite in order, each once.
func (s Suite) Scenarios() []string {
	var names []string
	for _, phase := range s.Phases {
		for _, scenario := range phase.Scenarios {
			if !slices.Contains(names, scenario) {
				names = append(names, scenario)
			}
		}
	}
	return names
}

// PhasesOf returns the phases that run in a cell, in order: those whose Where admits it and that are not planned.
func (s Suite) PhasesOf(cell matrix.Cell) []Phase {
	return slices.DeleteFunc(s.declared(cell), func(phase Phase) bool { return phase.Planned != "" })
}

// Gaps says which phases of the cell are not there yet, and why.
func (s Suite) Gaps(cell matrix.Cell) []string {
	var gaps []string
	for _, phase := range s.declared(cell) {
		if phase.Planned != "" {
			gaps = append(gaps, fmt.Sprintf("phase %s of suite %s is planned: %s", phase.Name, s.Name, phase.Planned))
		}
	}
	return gaps
}

func (s Suite) declared(cell matrix.Cell) []Phase {
	return slices.DeleteFunc(slices.Clone(s.Phases), func(phase Phase) bool { return !cell.Matches(phase.Where) })
}

// Tests returns the names of the Go test functions of the phase, in the order of its scenarios.
func (p Phase) Tests() []string {
	tests := make([]string, len(p.Scenarios))
	for i, scenario := range p.Scenarios {
		tests[i] = TestOf(scenario)
	}
	return tests
}

// TestOf returns the name of the Go test function of a scenario.
func TestOf(scenario string) string {
	var name strings.Builder
	name.WriteString("Test")
	for _, word := range strings.Split(scenario, "-") {
		if word != "" {
			name.WriteString(strings.ToUpper(word[:1]) + word[1:])
		}
	}
	return name.String()
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

// NotRun says why a cell cannot run, and nothing where it can. These are the reasons of its not-run verdict.
func (s *Suites) NotRun(cell matrix.Cell) []string {
	reasons := slices.Clone(cell.Planned)
	suite, err := s.Find(cell.Suite())
	switch {
	case err != nil:
		return append(reasons, err.Error())
	case suite.Planned != "":
		return append(reasons, fmt.Sprintf("suite %s is planned: %s", suite.Name, suite.Planned))
	case len(suite.PhasesOf(cell)) > 0:
		return reasons
	}
	if gaps := suite.Gaps(cell); len(gaps) > 0 {
		return append(reasons, gaps...)
	}
	return append(reasons, fmt.Sprintf("suite %s has no phase for this cell", suite.Name))
}

// Preparation returns what runs before the phases of the cell, for what it leaves behind.
func (s *Suites) Preparation(cell matrix.Cell) ([]Borrowed, error) {
	suite, err := s.Find(cell.Suite())
	if err != nil {
		return nil, err
	}
	var borrowed []Borrowed
	for _, name := range suite.Prepares {
		owner, phase, ok := s.phase(name)
		if !ok || phase.PrepareThrough == "" {
			return nil, fmt.Errorf("suite %s borrows the phase %s, which no suite lends", suite.Name, name)
		}
		if !cell.Matches(phase.Where) {
			continue
		}
		phase.Scenarios = phase.Scenarios[:slices.Index(phase.Scenarios, phase.PrepareThrough)+1]
		borrowed = append(borrowed, Borrowed{Package: owner.Package, Phase: phase})
	}
	return borrowed, nil
}

func (s *Suites) phase(name string) (Suite, Phase, bool) {
	for _, suite := range s.Suites {
		for _, phase := range suite.Phases {
			if phase.Name == name {
				return suite, phase, true
			}
		}
	}
	return Suite{}, Phase{}, false
}

var (
	namePattern    = regexp.MustCompile(`^[a-z0-9]+(-[a-z0-9]+)*$`)
	packagePattern = regexp.MustCompile(`^[a-z0-9]+(/[a-z0-9]+)*$`)
)

func refuse(path, format string, arguments ...any) error {
	return &document.Error{Path: path, Problem: fmt.Sprintf(format, arguments...)}
}

func named(name string, err error) error {
	var refusal *document.Error
	if errors.As(err, &refusal) {
		refusal.Document = name
	}
	return err
}

// DecodeSuites reads the catalogue of suites and refuses one that contradicts itself: a suite, a package, a phase or a
// scenario that two owners claim, a suite without phases, a phase without scenarios or without a timeout, and a
// preparation that nobody lends.
func DecodeSuites(name string, data []byte) (*Suites, error) {
	var s Suites
	if err := document.Decode(name, data, &s); err != nil {
		return nil, err
	}
	if s.APIVersion != APIVersion || s.Kind != "Suites" || len(s.Suites) == 0 {
		return nil, named(name, refuse("", "it must have apiVersion %s, kind Suites and at least one suite", APIVersion))
	}
	owners := owners{names: map[string]string{}, scenarios: map[string][]claimant{}}
	for i, suite := range s.Suites {
		if err := suite.validate(fmt.Sprintf("suites[%d]", i), owners); err != nil {
			return nil, named(name, err)
		}
	}
	for i, suite := range s.Suites {
		if err := s.validatePreparation(fmt.Sprintf("suites[%d].prepares", i), suite); err != nil {
			return nil, named(name, err)
		}
	}
	return &s, nil
}

func (s *Suites) validatePreparation(path string, suite Suite) error {
	for i, name := range suite.Prepares {
		owner, phase, ok := s.phase(name)
		at := fmt.Sprintf("%s[%d]", path, i)
		switch {
		case slices.Contains(suite.Prepares[:i], name):
			return refuse(at, "the phase %s is borrowed twice, keep one", name)
		case !ok:
			return refuse(at, "no suite owns the phase %q", name)
		case owner.Name == suite.Name:
			return refuse(at, "the phase %s is the suite's own, preparation is borrowed from another suite", name)
		case phase.PrepareThrough == "":
			return refuse(at, "the phase %s does not say through which scenario it may be borrowed, give it prepareThrough", name)
		case owner.Planned == "" && phase.Planned == "":
		case suite.Planned == "":
			return refuse(at, "the phase %s is planned, so that nothing can be borrowed from it yet", name)
		}
	}
	return nil
}

func (s Suite) validate(path string, owners owners) error {
	if err := owners.claim(path+".name", "suite", s.Name, s.Name); err != nil {
		return err
	}
	if len(s.Phases) == 0 || s.Summary == "" || s.Package == "" {
		return refuse(path, "a suite has a summary, a package and at least one phase")
	}
	if !packagePattern.MatchString(s.Package) {
		return refuse(path+".package", "it must be a folder of this repository such as qualification/suites/dataplane, not %q", s.Package)
	}
	if err := owners.own(path+".package", "package", s.Package, s.Name); err != nil {
		return err
	}
	for i, phase := range s.Phases {
		if err := phase.validate(fmt.Sprintf("%s.phases[%d]", path, i), s.Name, owners); err != nil {
			return err
		}
	}
	return nil
}

func (p Phase) validate(path, suite string, owners owners) error {
	if err := owners.claim(path+".name", "phase", p.Name, suite); err != nil {
		return err
	}
	if p.Timeout == 0 || len(p.Scenarios) == 0 {
		return refuse(path, "a phase has a timeout and at least one scenario")
	}
	for axis, values := range p.Where {
		if len(values) == 0 {
			return refuse(path+".where."+axis, "it admits no value, so that nothing runs the phase; name one or leave the axis out")
		}
	}
	for i, scenario := range p.Scenarios {
		at := fmt.Sprintf("%s.scenarios[%d]", path, i)
		if !namePattern.MatchString(scenario) {
			return refuse(at, "a scenario has a name of lower-case words joined by dashes, not %q", scenario)
		}
		if err := owners.report(at, scenario, claimant{suite: suite, phase: p}); err != nil {
			return err
		}
	}
	for i, scenario := range p.Together {
		if !slices.Contains(p.Scenarios, scenario) || slices.Contains(p.Together[:i], scenario) {
			return refuse(fmt.Sprintf("%s.together[%d]", path, i), "the phase has no scenario %q, or names it here twice", scenario)
		}
	}
	first := slices.IndexFunc(p.Scenarios, func(scenario string) bool { return slices.Contains(p.Together, scenario) })
	for _, scenario := range p.Scenarios[max(first, 0):] {
		if first >= 0 && !slices.Contains(p.Together, scenario) {
			return refuse(path+".scenarios", "%s stands behind %s, which runs together with others and so begins when all that run alone have ended; declare it before", scenario, p.Scenarios[first])
		}
	}
	if p.PrepareThrough != "" && !slices.Contains(p.Scenarios, p.PrepareThrough) {
		return refuse(path+".prepareThrough", "the phase has no scenario %q", p.PrepareThrough)
	}
	return nil
}

// owners says who claimed what while a catalogue is read.
type owners struct {
	names     map[string]string
	scenarios map[string][]claimant
}

type claimant struct {
	suite string
	phase Phase
}

func (o owners) claim(path, what, name, owner string) error {
	if !namePattern.MatchString(name) {
		return refuse(path, "a %s has a name of lower-case words joined by dashes, not %q", what, name)
	}
	return o.own(path, what, name, owner)
}

func (o owners) own(path, what, name, owner string) error {
	if other, taken := o.names[what+" "+name]; taken {
		return refuse(path, "the %s %s is claimed by %s already", what, name, other)
	}
	o.names[what+" "+name] = owner
	return nil
}

// report claims a scenario for a phase. Two phases of one suite may report the same scenario where no cell runs both.
func (o owners) report(path, scenario string, by claimant) error {
	for _, other := range o.scenarios[scenario] {
		if other.suite != by.suite || other.phase.Name == by.phase.Name || !disjoint(other.phase.Where, by.phase.Where) {
			return refuse(path, "the scenario %s is claimed by %s/%s already", scenario, other.suite, other.phase.Name)
		}
	}
	o.scenarios[scenario] = append(o.scenarios[scenario], by)
	return nil
}

// disjoint says that no cell can match both.
func disjoint(a, b map[string][]string) bool {
	for axis, values := range a {
		others, both := b[axis]
		if both && !slices.ContainsFunc(values, func(value string) bool { return slices.Contains(others, value) }) {
			return true
		}
	}
	return false
}
