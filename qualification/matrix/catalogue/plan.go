package catalogue

import (
	"ptah.run/ptah/qualification/matrix"
)

// CellPlan is a cell as it will be run, or the reasons why it will not.
type CellPlan struct {
	matrix.Cell

	Machine Machine  `json:"machine,omitzero"`  // empty where the cell is not run
	Phases  []string `json:"phases,omitempty"`  // that run, in order
	Gaps    []string `json:"gaps,omitempty"`    // phases that the cell will have and that are not there yet
	NotRun  []string `json:"notRun,omitempty"`  // why the cell is not run
	Prepare []string `json:"prepare,omitempty"` // phases that run before, for what they leave behind
}

// Runnable says that the cell is run.
func (p CellPlan) Runnable() bool { return len(p.NotRun) == 0 }

// Plan says for each cell of a depth which phases it runs on which machine, or why it is not run. No cell is left out.
func Plan(m *matrix.Matrix, depth string, suites *Suites, machines *Machines) ([]CellPlan, error) {
	chosen, err := m.Depth(depth)
	if err != nil {
		return nil, err
	}
	cells, err := m.Select(depth)
	if err != nil {
		return nil, err
	}
	plan := make([]CellPlan, len(cells))
	for i, cell := range cells {
		plan[i] = CellPlan{Cell: cell, NotRun: suites.NotRun(cell)}
		if len(plan[i].NotRun) > 0 {
			continue
		}
		machine, err := machines.For(cell, chosen.Needs)
		if err != nil {
			plan[i].NotRun = []string{err.Error()}
			continue
		}
		if err := plan[i].fill(suites, machine); err != nil {
			return nil, err
		}
	}
	return plan, nil
}

func (p *CellPlan) fill(suites *Suites, machine Machine) error {
	suite, err := suites.Find(p.Suite())
	if err != nil {
		return err
	}
	borrowed, err := suites.Preparation(p.Cell)
	if err != nil {
		return err
	}
	p.Machine, p.Gaps = machine, suite.Gaps(p.Cell)
	for _, phase := range suite.PhasesOf(p.Cell) {
		p.Phases = append(p.Phases, phase.Name)
	}
	for _, phase := range borrowed {
		p.Prepare = append(p.Prepare, phase.Phase.Name)
	}
	return nil
}
