package catalogue

import (
	"fmt"
	"slices"
	"time"

	"ptah.run/ptah/qualification/matrix"
	"ptah.run/ptah/qualification/profile"
)

// Tree is what a repository says about what is tested and supported, each part already read and sound in itself.
type Tree struct {
	Suites     *Suites
	Kubernetes *Kubernetes
	Machines   *Machines
	Matrices   []*matrix.Matrix
	Profiles   []*profile.Profile

	Reports map[string][]Report // package to what its tests report; a package without such tests may be left out

	KubeVersion string              // constraint of the chart
	Modules     map[string]string   // Go module to the version that go.mod requires
	Nodes       map[string]string   // minor to the release of the node image that the lab has, such as v1.37.2
	Servers     map[string][]string // database engine to the versions that the lab has a server of
}

// Report is a call by which a test reports a scenario.
type Report struct {
	Test     string // Go test function
	Scenario string
	Where    string // file and line
}

// Finding is a contradiction. Its text is one sentence that says where, what and what to do.
type Finding struct {
	Where   string // a file, or a file and a part of it
	Problem string
}

func (f Finding) String() string { return f.Where + ": " + f.Problem }

type findings []Finding

func (f *findings) add(where, format string, arguments ...any) {
	finding := Finding{Where: where, Problem: fmt.Sprintf(format, arguments...)}
	if !slices.Contains(*f, finding) {
		*f = append(*f, finding)
	}
}

// Files that findings name.
const (
	SuitesFile     = "support/suites.yaml"
	KubernetesFile = "support/kubernetes.yaml"
	MachinesFile   = "support/machines.yaml"
	ImagesFile     = "support/images.yaml"
	ChartFile      = "chart/ptah-operator/Chart.yaml"
	ModulesFile    = "go.mod"
)

// Check returns every contradiction of the tree at the given time, in a stable order.
func Check(tree Tree, now time.Time) []Finding {
	var found findings
	tree.checkSource(&found)
	tree.checkRun(&found)
	tree.checkMatrices(&found)
	tree.checkProfiles(&found)
	tree.checkWindow(&found, now)
	return found
}

func phaseAt(suite Suite, phase Phase) string {
	return fmt.Sprintf("%s: suite %s: phase %s", SuitesFile, suite.Name, phase.Name)
}

// checkSource compares the catalogue with the tests that are written: a scenario that its phase never reports, a test
// that no phase owns, a package that no suite owns, and a plan that came true.
func (t Tree) checkSource(found *findings) {
	owners := map[string]Suite{}
	for _, suite := range t.Suites.Suites {
		owners[suite.Package] = suite
		reports := t.Reports[suite.Package]
		if suite.Planned != "" {
			if len(reports) > 0 {
				found.add(SuitesFile, "suite %s is planned and reports %s already (%s); take its planned away", suite.Name, reports[0].Scenario, reports[0].Where)
			}
			continue
		}
		for _, phase := range suite.Phases {
			if phase.Planned == "" {
				checkPhase(found, suite, phase, reports)
			}
		}
	}
	for _, folder := range sortedKeys(t.Reports) {
		suite, owned := owners[folder]
		for _, report := range t.Reports[folder] {
			switch {
			case !owned:
				found.add(report.Where, "the scenario %s is of the package %s, which no suite of %s owns; add the suite", report.Scenario, folder, SuitesFile)
			case !slices.Contains(suite.Scenarios(), report.Scenario):
				found.add(report.Where, "no phase of suite %s owns the scenario %s, so that nothing runs it; add it to a phase in %s", suite.Name, report.Scenario, SuitesFile)
			}
		}
	}
}

// checkPhase holds a phase that is there to the tests of its package.
func checkPhase(found *findings, suite Suite, phase Phase, reports []Report) {
	for i, scenario := range phase.Scenarios {
		var by []Report
		for _, report := range reports {
			if report.Scenario == scenario {
				by = append(by, report)
			}
		}
		switch test := phase.Tests()[i]; {
		case len(by) == 0:
			found.add(phaseAt(suite, phase), "it never reports the scenario %s, no test of %s does; write %s or take the scenario out", scenario, suite.Package, test)
		case len(by) > 1:
			found.add(phaseAt(suite, phase), "the scenario %s is reported twice, at %s and %s; keep one", scenario, by[0].Where, by[1].Where)
		case by[0].Test != test:
			found.add(phaseAt(suite, phase), "the scenario %s is reported by %s (%s) and the phase runs %s; rename one of them", scenario, by[0].Test, by[0].Where, test)
		}
	}
}

// checkRun refuses a phase that no cell of any matrix runs.
func (t Tree) checkRun(found *findings) {
	for _, suite := range t.Suites.Suites {
		cells := t.cellsOf(suite.Name)
		if len(cells) == 0 {
			found.add(SuitesFile, "no cell of any matrix runs the suite %s; add it to a matrix or take it out", suite.Name)
			continue
		}
		for _, phase := range suite.Phases {
			if !slices.ContainsFunc(cells, func(cell matrix.Cell) bool { return cell.Matches(phase.Where) }) {
				found.add(phaseAt(suite, phase), "nothing runs it: no cell that runs the suite has these values of axes")
			}
		}
	}
}

// cellsOf returns the cells that run a suite at some depth.
func (t Tree) cellsOf(suite string) []matrix.Cell {
	var cells []matrix.Cell
	for _, m := range t.Matrices {
		for _, depth := range m.Depths {
			selected, err := m.Select(depth.Name)
			if err != nil {
				continue // a matrix that was decoded has no such depth
			}
			for _, cell := range selected {
				if cell.Suite() == suite {
					cells = append(cells, cell)
				}
			}
		}
	}
	return cells
}
