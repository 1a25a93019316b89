package profile

import "ptah.run/ptah/qualification/profile/document"

// Workload is what runs while the product is measured.
type Workload struct {
	Schemas         int               `json:"schemas"`
	Migrations      int               `json:"migrations"`
	Namespaces      int               `json:"namespaces"`
	Interval        document.Duration `json:"interval"`              // spec.interval of every resource
	Duration        document.Duration `json:"duration,omitempty"`    // length of the measured steady state; none for functional profiles
	SampleEvery     document.Duration `json:"sampleEvery,omitempty"` // time between two readings of everything that is sampled
	RowsPerDatabase int               `json:"rowsPerDatabase,omitempty"`
	ArtifactBytes   int               `json:"artifactBytes,omitempty"` // unpacked, at most
	PlanSizes       []SizeBand        `json:"planSizes,omitempty"`
	Histories       []int             `json:"histories,omitempty"` // lengths of the migration histories
	Unrelated       *Unrelated        `json:"unrelated,omitempty"`
	Changes         *Rounds           `json:"changes,omitempty"`     // resources get a new artifact
	Churn           *Rounds           `json:"churn,omitempty"`       // resources are deleted and created again
	Maintenance     *Rounds           `json:"maintenance,omitempty"` // resources are suspended, stored plans are pruned, resources resume
	Faults          []Fault           `json:"faults,omitempty"`
	Quotas          []Quota           `json:"quotas,omitempty"`
	Variants        []Variant         `json:"variants,omitempty"`
}

// Resources is the number of resources of both families.
func (w Workload) Resources() int { return w.Schemas + w.Migrations }

// PerNamespace is the number of resources in the fullest namespace.
func (w Workload) PerNamespace() int { return (w.Resources() + w.Namespaces - 1) / w.Namespaces }

// SizeBand is a range of sizes.
type SizeBand struct {
	Name      string `json:"name"`
	FromBytes int    `json:"fromBytes"`
	ToBytes   int    `json:"toBytes"`
}

// Unrelated is objects of others, which count nowhere and must not matter.
type Unrelated struct {
	Namespaces     int `json:"namespaces"`
	ConfigMaps     int `json:"configMaps"`
	ConfigMapBytes int `json:"configMapBytes"`
	CompletedJobs  int `json:"completedJobs"`
}

// Rounds says how often something is done to part of the fleet, and what it costs each resource.
type Rounds struct {
	Every         document.Duration `json:"every"`
	Rounds        int               `json:"rounds"`
	Resources     int               `json:"resources"`     // resources in each round
	CostIntervals int               `json:"costIntervals"` // intervals without a read-only cycle for each resource in each round
}

// Fault is a deliberate fault and how long it lasts.
type Fault struct {
	Class FaultClass        `json:"class"`
	Hold  document.Duration `json:"hold,omitempty"`
	Delay document.Duration `json:"delay,omitempty"` // added to each new session, of a slow database only
}

// Quota is a limit of a workload namespace, and what is held of it.
type Quota struct {
	Resource     string            `json:"resource"`
	Limit        int               `json:"limit"`                 // in each namespace
	Fixed        int               `json:"fixed,omitempty"`       // objects that are there whatever runs
	PerOperation int               `json:"perOperation"`          // objects that one refresh holds
	RetainedFor  document.Duration `json:"retainedFor,omitempty"` // how long it holds them
	PerChange    int               `json:"perChange,omitempty"`   // objects that one change or replacement of a resource holds
	ChangeHeld   document.Duration `json:"changeHeld,omitempty"`  // how long it holds them
}

// Variant is another workload in some of the cells. It has the resources, namespaces, interval and quotas of the
// workload, but for what it declares itself; of changes, churn, maintenance and faults it has its own only.
type Variant struct {
	Name       string            `json:"name"`
	Statement  string            `json:"statement"` // what it is for
	Cells      Selection         `json:"cells"`
	Schemas    int               `json:"schemas,omitempty"`
	Migrations int               `json:"migrations,omitempty"`
	Duration   document.Duration `json:"duration,omitempty"`
	Approvals  int               `json:"approvals,omitempty"` // approvals that wait at once and are then given one after another
	Changes    *Rounds           `json:"changes,omitempty"`
	Faults     []Fault           `json:"faults,omitempty"`
}

// In returns the workload of a cell with these axis values, and the name of its variant, which is empty for the
// workload itself.
func (w Workload) In(matrix string, axes map[string]string) (Workload, string) {
	for _, variant := range w.Variants {
		if variant.Cells.Matches(matrix, axes) {
			return w.as(variant), variant.Name
		}
	}
	return w, ""
}

func (w Workload) as(v Variant) Workload {
	w.Duration, w.Changes, w.Churn, w.Maintenance, w.Faults, w.Variants = v.Duration, v.Changes, nil, nil, v.Faults, nil
	if v.Schemas+v.Migrations > 0 {
		w.Schemas, w.Migrations = v.Schemas, v.Migrations
	}
	return w
}

// setting is a workload under which a target is measured.
type setting struct {
	variant string // empty for the workload itself
	Workload
}

// settings returns every workload that some cell of the selection may have. The workload itself is among them unless
// one variant covers the whole selection.
func (w Workload) settings(cells Selection) []setting {
	var list []setting
	for _, variant := range w.Variants {
		overlaps, covers := variant.Cells.Matrix == cells.Matrix, true
		for axis, value := range variant.Cells.Where {
			selected, named := cells.Where[axis]
			overlaps = overlaps && (!named || selected == value)
			covers = covers && named
		}
		if !overlaps {
			continue
		}
		list = append(list, setting{variant.Name, w.as(variant)})
		if covers {
			return list
		}
	}
	return append(list, setting{"", w})
}
