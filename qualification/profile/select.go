package profile

import "slices"

// ScenariosOf returns the scenarios that a cell with these axis values must show.
func (p *Profile) ScenariosOf(matrix string, axes map[string]string) []Scenario {
	return slices.DeleteFunc(slices.Clone(p.Scenarios), func(s Scenario) bool { return !s.Cells.Matches(matrix, axes) })
}

// TargetsOf returns the targets that are judged in a cell with these axis values.
func (p *Profile) TargetsOf(matrix string, axes map[string]string) []Target {
	return slices.DeleteFunc(slices.Clone(p.Targets), func(t Target) bool { return !t.Cells.Matches(matrix, axes) })
}

// Assessed returns the requirements that the profile declares a scenario or a target for, in order.
func (p *Profile) Assessed() []Requirement {
	var list []Requirement
	for _, s := range p.Scenarios {
		list = append(list, s.Requirement)
	}
	for _, t := range p.Targets {
		list = append(list, t.Requirement)
	}
	slices.Sort(list)
	return slices.Compact(list)
}

// NotAssessed returns the requirements that the profile says nothing about, in order.
func (p *Profile) NotAssessed() []Requirement {
	assessed := p.Assessed()
	return slices.DeleteFunc(Requirements(), func(r Requirement) bool { return slices.Contains(assessed, r) })
}
