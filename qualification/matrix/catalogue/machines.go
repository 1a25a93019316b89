package catalogue

import (
	"fmt"
	"regexp"
	"strings"

	"ptah.run/ptah/qualification/matrix"
	"ptah.run/ptah/qualification/profile/document"
)

// Machines is the catalogue of machines that run cells, the one to prefer first.
type Machines struct {
	APIVersion string    `json:"apiVersion"`
	Kind       string    `json:"kind"`
	Machines   []Machine `json:"machines"`
}

// Machine is a kind of machine.
type Machine struct {
	Name       string `json:"name"`
	Platform   string `json:"platform"` // such as linux/amd64
	Cores      int    `json:"cores"`
	MemoryGiB  int    `json:"memoryGiB"`
	RunsOn     string `json:"runsOn"`               // label by which GitHub Actions knows it
	MaxMinutes int    `json:"maxMinutes,omitempty"` // longest job that it runs; no limit where 0
}

var (
	platformPattern = regexp.MustCompile(`^[a-z0-9]+/[a-z0-9]+$`)
	labelPattern    = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]*$`)
)

// DecodeMachines reads the catalogue of machines. It refuses two machines of one name, and one without a platform,
// cores, memory or a label.
func DecodeMachines(name string, data []byte) (*Machines, error) {
	var m Machines
	if err := document.Decode(name, data, &m); err != nil {
		return nil, err
	}
	if m.APIVersion != APIVersion || m.Kind != "Machines" || len(m.Machines) == 0 {
		return nil, named(name, refuse("", "it must have apiVersion %s, kind Machines and at least one machine", APIVersion))
	}
	seen := map[string]bool{}
	for i, machine := range m.Machines {
		path := fmt.Sprintf("machines[%d]", i)
		switch {
		case !labelPattern.MatchString(machine.Name) || seen[machine.Name]:
			return nil, named(name, refuse(path+".name", "give each machine a name of its own, not %q", machine.Name))
		case !platformPattern.MatchString(machine.Platform):
			return nil, named(name, refuse(path+".platform", "it must be a platform such as linux/amd64, not %q", machine.Platform))
		case machine.Cores < 1 || machine.MemoryGiB < 1 || machine.MaxMinutes < 0:
			return nil, named(name, refuse(path, "say how many cores and how much memory it has, and for how many minutes it runs a job"))
		case !labelPattern.MatchString(machine.RunsOn):
			return nil, named(name, refuse(path+".runsOn", "%q is no label of a runner", machine.RunsOn))
		}
		seen[machine.Name] = true
	}
	return &m, nil
}

// For returns the first machine that has the platform of the cell, what the depth needs, and time enough. A cell that
// leaves the platform open takes any platform.
func (m *Machines) For(cell matrix.Cell, needs *matrix.Needs) (Machine, error) {
	if needs == nil {
		needs = &matrix.Needs{Cores: 1, MemoryGiB: 1}
	}
	var wrong []string
	for _, machine := range m.Machines {
		switch {
		case cell.Platform() != "" && machine.Platform != cell.Platform():
			wrong = append(wrong, machine.Name+" is "+machine.Platform)
		case machine.Cores < needs.Cores:
			wrong = append(wrong, fmt.Sprintf("%s has %d cores", machine.Name, machine.Cores))
		case machine.MemoryGiB < needs.MemoryGiB:
			wrong = append(wrong, fmt.Sprintf("%s has %d GiB", machine.Name, machine.MemoryGiB))
		case machine.MaxMinutes > 0 && machine.MaxMinutes < cell.Minutes:
			wrong = append(wrong, fmt.Sprintf("%s ends a job after %d minutes", machine.Name, machine.MaxMinutes))
		default:
			return machine, nil
		}
	}
	platform := cell.Platform()
	if platform == "" {
		platform = "any platform"
	}
	return Machine{}, fmt.Errorf("cell %s needs a machine of %s with %d cores and %d GiB for %d minutes, and there is none: %s",
		cell.Key, platform, needs.Cores, needs.MemoryGiB, cell.Minutes, strings.Join(wrong, ", "))
}
