// Package matrix turns axes declared as data into cells, and depths into selections of cells. It is pure.
package matrix

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"ptah.run/ptah/qualification/profile/document"
)

// APIVersion and Kind head every matrix.
const (
	APIVersion = "qualification.ptah.run/v1"
	Kind       = "Matrix"
)

// AxisSuite is the axis that names the suite of a functional cell.
const AxisSuite = "suite"

// Attributes that a cell is asked for by name. At most one axis of a matrix gives each.
const (
	AttributeMinor    = "minor"    // Kubernetes minor, such as 1.37
	AttributeEngine   = "engine"   // of the database, such as PostgreSQL
	AttributeVersion  = "version"  // release line of the database, such as 17
	AttributePlatform = "platform" // such as linux/amd64
)

// Matrix is one declared matrix.
type Matrix struct {
	APIVersion string  `json:"apiVersion"`
	Kind       string  `json:"kind"`
	Name       string  `json:"name"`
	Summary    string  `json:"summary"`
	Suite      string  `json:"suite,omitempty"` // suite that every cell runs, where no axis names one
	Axes       []Axis  `json:"axes"`
	Except     []Skip  `json:"except,omitempty"`
	Depths     []Depth `json:"depths"`
}

// Axis is one dimension.
type Axis struct {
	Name   string  `json:"name"`
	Values []Value `json:"values"`
}

// Value is one point of an axis. Attributes carry what a cell needs to know about it, such as the engine and the
// version of a database.
type Value struct {
	Name       string            `json:"name"`
	Attributes map[string]string `json:"attributes,omitempty"`
	Minutes    int               `json:"minutes,omitempty"` // estimated length it adds to a cell on four cores
	Implied    bool              `json:"implied,omitempty"` // left out of the key of a cell; at most one value of an axis
	Planned    string            `json:"planned,omitempty"` // why its cells cannot run yet: they exist, and are not run
}

// Skip removes the combinations that it matches from the product of the axes, for a reason.
type Skip struct {
	Where  map[string][]string `json:"where"`
	Reason string              `json:"reason"`
}

// Depth is a named selection of cells: a cell belongs to it if it matches any of the selectors.
type Depth struct {
	Name    string                `json:"name"`
	Summary string                `json:"summary"`
	Needs   *Needs                `json:"needs,omitempty"`
	Select  []map[string][]string `json:"select"` // axis to its admitted values; an axis left out admits every value
}

// Needs is the least machine on which a cell of a depth shows anything.
type Needs struct {
	Cores     int `json:"cores"`
	MemoryGiB int `json:"memoryGiB"`
}

// Cell is one point of a matrix.
type Cell struct {
	Matrix     string            `json:"matrix"`
	Key        string            `json:"key"`
	Axes       map[string]string `json:"axes"`
	Attributes map[string]string `json:"attributes,omitempty"` // "axis.attribute" to value
	Minutes    int               `json:"minutes,omitempty"`
	Runs       string            `json:"suite,omitempty"`   // suite of the matrix, where no axis names one
	Planned    []string          `json:"planned,omitempty"` // why the cell cannot run yet; it is not-run for these reasons
}

// Suite is the suite that the cell runs, empty where neither an axis nor the matrix names one.
func (c Cell) Suite() string {
	if named := c.Axes[AxisSuite]; named != "" {
		return named
	}
	return c.Runs
}

// Attribute is the value of an attribute whichever axis gives it, and empty where the cell leaves it open.
func (c Cell) Attribute(name string) string {
	for key, value := range c.Attributes {
		if _, attribute, _ := strings.Cut(key, "."); attribute == name {
			return value
		}
	}
	return ""
}

// Minor is the Kubernetes minor of the cell, such as 1.37.
func (c Cell) Minor() string { return c.Attribute(AttributeMinor) }

// Database is the engine of the cell and its release line, such as PostgreSQL and 17.
func (c Cell) Database() (engine, version string) {
	return c.Attribute(AttributeEngine), c.Attribute(AttributeVersion)
}

// Platform is the platform of the cell, such as linux/amd64. It is empty where any platform will do.
func (c Cell) Platform() string { return c.Attribute(AttributePlatform) }

// Matches says whether the values of the axes of the cell are among the admitted ones. An axis left out admits every
// value.
func (c Cell) Matches(where map[string][]string) bool {
	for axis, values := range where {
		if !slices.Contains(values, c.Axes[axis]) {
			return false
		}
	}
	return true
}

// Decode reads a matrix strictly. Errors are one sentence with document, line and field.
func Decode(name string, data []byte) (*Matrix, error) {
	var m Matrix
	if err := document.Decode(name, data, &m); err != nil {
		return nil, err
	}
	if err := m.validate(); err != nil {
		var refusal *document.Error
		if errors.As(err, &refusal) {
			refusal.Document = name
		}
		return nil, err
	}
	return &m, nil
}

// Digest identifies the matrix: the SHA-256 of its canonical JSON.
func (m *Matrix) Digest() string {
	digest, err := document.Digest(m)
	if err != nil {
		panic(err) // the struct holds nothing that cannot be encoded
	}
	return digest
}

// Cells returns every cell, in the order of the declared axes and values.
func (m *Matrix) Cells() []Cell {
	cells := []Cell{{Matrix: m.Name, Runs: m.Suite, Axes: map[string]string{}, Attributes: map[string]string{}}}
	for _, axis := range m.Axes {
		var next []Cell
		for _, cell := range cells {
			for _, value := range axis.Values {
				next = append(next, cell.with(axis.Name, value))
			}
		}
		cells = next
	}
	return slices.DeleteFunc(cells, func(cell Cell) bool {
		return slices.ContainsFunc(m.Except, func(skip Skip) bool { return cell.Matches(skip.Where) })
	})
}

func (c Cell) with(axis string, value Value) Cell {
	next := Cell{Matrix: c.Matrix, Runs: c.Runs, Key: c.Key, Axes: map[string]string{axis: value.Name}, Attributes: map[string]string{},
		Minutes: c.Minutes + value.Minutes, Planned: slices.Clone(c.Planned)}
	switch {
	case value.Implied:
	case c.Key == "":
		next.Key = value.Name
	default:
		next.Key = c.Key + "." + value.Name
	}
	if value.Planned != "" {
		next.Planned = append(next.Planned, value.Planned)
	}
	maps.Copy(next.Axes, c.Axes)
	maps.Copy(next.Attributes, c.Attributes)
	for name, attribute := range value.Attributes {
		next.Attributes[axis+"."+name] = attribute
	}
	return next
}

// Depth returns the depth of that name.
func (m *Matrix) Depth(name string) (Depth, error) {
	var known []string
	for _, depth := range m.Depths {
		if depth.Name == name {
			return depth, nil
		}
		known = append(known, depth.Name)
	}
	return Depth{}, fmt.Errorf("matrix %s has no depth %q, use one of: %s", m.Name, name, strings.Join(known, ", "))
}

// Select returns the cells of a depth. An unknown depth and one that selects nothing are errors.
func (m *Matrix) Select(depth string) ([]Cell, error) {
	chosen, err := m.Depth(depth)
	if err != nil {
		return nil, err
	}
	selected := slices.DeleteFunc(m.Cells(), func(cell Cell) bool { return !slices.ContainsFunc(chosen.Select, cell.Matches) })
	if len(selected) == 0 {
		return nil, fmt.Errorf("depth %s of matrix %s selects no cell, and nothing is never a pass", depth, m.Name)
	}
	return selected, nil
}
