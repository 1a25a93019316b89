package catalogue

import (
	"maps"
	"slices"
	"strings"

	"ptah.run/ptah/qualification/matrix"
	"ptah.run/ptah/qualification/profile"
)

// Depths are the depths that every matrix has.
var Depths = []string{"smoke", "pull-request", "release"}

func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }

func matrixFile(name string) string { return "matrices/" + name + ".yaml" }

// checkMatrices refuses a matrix without one of the depths, a cell that runs no suite of the catalogue or none of its
// phases, and one that could run if there were a machine or a database server for it.
func (t Tree) checkMatrices(found *findings) {
	seen := map[string]bool{}
	for _, m := range t.Matrices {
		file := matrixFile(m.Name)
		if seen[m.Name] {
			found.add(file, "two files declare the matrix %s, rename one of them", m.Name)
		}
		seen[m.Name] = true
		for _, name := range Depths {
			if _, err := m.Depth(name); err != nil {
				found.add(file, "it has no depth %s; declare one", name)
			}
		}
		for _, depth := range m.Depths {
			if depth.Needs == nil {
				found.add(file, "depth %s does not say which machine its cells need; give it needs with cores and memoryGiB", depth.Name)
			}
			cells, err := m.Select(depth.Name)
			if err != nil {
				found.add(file, "%v", err)
			}
			for _, cell := range cells {
				t.checkCell(found, file, cell, depth)
			}
		}
	}
}

func (t Tree) checkCell(found *findings, file string, cell matrix.Cell, depth matrix.Depth) {
	if cell.Suite() == "" {
		found.add(file, "its cells run no suite; add an axis suite or the field suite")
		return
	}
	suite, err := t.Suites.Find(cell.Suite())
	if err != nil {
		found.add(file, "a cell runs the suite %s, which %s does not have", cell.Suite(), SuitesFile)
		return
	}
	if len(suite.declared(cell)) == 0 {
		found.add(file, "cell %s runs none of the phases of suite %s; leave it out by an exception with its reason, or widen a phase", cell.Key, suite.Name)
		return
	}
	if len(t.Suites.NotRun(cell)) > 0 {
		return
	}
	if _, err := t.Machines.For(cell, depth.Needs); err != nil {
		found.add(file, "%v; add the machine to %s or say why the value is planned", err, MachinesFile)
	}
	if engine, version := cell.Database(); engine != "" && !slices.Contains(t.Servers[engine], version) {
		found.add(file, "the lab has no %s %s server (%s), which cell %s needs; add its image or say why the value is planned", engine, version, ImagesFile, cell.Key)
	}
}

// checkProfiles refuses a profile that covers a matrix or a depth that is not there, speaks of a minor outside of the
// window, covers one that it does not speak of, or demands a scenario that no phase reports in the cells that it names.
func (t Tree) checkProfiles(found *findings) {
	for _, p := range t.Profiles {
		file := "profiles/" + p.Name + ".yaml"
		for _, minor := range p.Support.Kubernetes {
			if !slices.Contains(t.Kubernetes.Minors(), minor) {
				found.add(file, "it speaks of Kubernetes %s, outside of the window %s; declare a revision", minor, strings.Join(t.Kubernetes.Minors(), ", "))
			}
		}
		cells := t.covered(found, file, p)
		for _, cell := range cells {
			if minor := cell.Minor(); minor != "" && !slices.Contains(p.Support.Kubernetes, minor) {
				found.add(file, "it covers cells of Kubernetes %s and does not speak of it; declare a revision", minor)
			}
		}
		for _, scenario := range p.Scenarios {
			demanded := false
			for _, cell := range cells {
				if !scenario.Cells.Matches(cell.Matrix, cell.Axes) {
					continue
				}
				demanded = true
				suite, err := t.Suites.Find(cell.Suite())
				if err == nil && !suite.reports(cell, scenario.Name) {
					found.add(file, "scenario %s is demanded of cell %s, and no phase of suite %s reports it there", scenario.Name, cell.Key, suite.Name)
					break
				}
			}
			if !demanded {
				found.add(file, "scenario %s is demanded of no cell that the profile covers, so that it could never be shown", scenario.Name)
			}
		}
	}
}

// covered returns the cells that a profile covers.
func (t Tree) covered(found *findings, file string, p *profile.Profile) []matrix.Cell {
	var cells []matrix.Cell
	for _, coverage := range p.Coverage {
		i := slices.IndexFunc(t.Matrices, func(m *matrix.Matrix) bool { return m.Name == coverage.Matrix })
		if i < 0 {
			found.add(file, "it covers the matrix %s, and there is no %s", coverage.Matrix, matrixFile(coverage.Matrix))
			continue
		}
		selected, err := t.Matrices[i].Select(coverage.Depth)
		if err != nil {
			found.add(file, "it covers more than there is: %v", err)
		}
		cells = append(cells, selected...)
	}
	return cells
}

// reports says that a phase of the cell reports the scenario, now or once it is there.
func (s Suite) reports(cell matrix.Cell, scenario string) bool {
	return slices.ContainsFunc(s.declared(cell), func(phase Phase) bool { return slices.Contains(phase.Scenarios, scenario) })
}
