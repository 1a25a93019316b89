// Package matrix turns axes declared as data into cells, and depths into selections of cells. It is pure.
package matrix

import (
	"fmt"
	"regexp"
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

// Matrix is one declared matrix.
type Matrix struct {
	APIVersion string  `json:"apiVersion"`
	Kind       string  `json:"kind"`
	Name       string  `json:"name"`
	Summary    string  `json:"summary"`
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
	Select  []map[string][]string `json:"select"` // axis to its admitted values; an axis left out admits every value
}

// Cell is one point of a matrix.
type Cell struct {
	Matrix     string            `json:"matrix"`
	Key        string            `json:"key"`
	Axes       map[string]string `json:"axes"`
	Attributes map[string]string `json:"attributes,omitempty"` // "axis.attribute" to value
	Minutes    int               `json:"minutes,omitempty"`
}

// Suite is the suite of the cell, empty where the matrix has no such axis.
func (c Cell) Suite() string { return c.Axes[AxisSuite] }

// Decode reads a matrix strictly. Errors are one sentence with document, line and field.
func Decode(name string, data []byte) (*Matrix, error) {
	var m Matrix
	if err := document.Decode(name, data, &m); err != nil {
		return nil, err
	}
	if err := m.validate(); err != nil {
		if refusal, ok := err.(*document.Error); ok {
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
	cells := []Cell{{Matrix: m.Name, Axes: map[string]string{}, Attributes: map[string]string{}}}
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
		return slices.ContainsFunc(m.Except, func(skip Skip) bool { return matches(cell, skip.Where) })
	})
}

func (c Cell) with(axis string, value Value) Cell {
	next := Cell{Matrix: c.Matrix, Key: value.Name, Axes: map[string]string{axis: value.Name}, Attributes: map[string]string{}, Minutes: c.Minutes + value.Minutes}
	if c.Key != "" {
		next.Key = c.Key + "." + value.Name
	}
	for name, known := range c.Axes {
		next.Axes[name] = known
	}
	for name, known := range c.Attributes {
		next.Attributes[name] = known
	}
	for name, attribute := range value.Attributes {
		next.Attributes[axis+"."+name] = attribute
	}
	return next
}

func matches(cell Cell, where map[string][]string) bool {
	for axis, values := range where {
		if !slices.Contains(values, cell.Axes[axis]) {
			return false
		}
	}
	return true
}

// Select returns the cells of a depth. An unknown depth and one that selects nothing are errors.
func (m *Matrix) Select(depth string) ([]Cell, error) {
	var known []string
	for _, candidate := range m.Depths {
		known = append(known, candidate.Name)
		if candidate.Name != depth {
			continue
		}
		selected := slices.DeleteFunc(m.Cells(), func(cell Cell) bool {
			return !slices.ContainsFunc(candidate.Select, func(where map[string][]string) bool { return matches(cell, where) })
		})
		if len(selected) == 0 {
			return nil, fmt.Errorf("depth %s of matrix %s selects no cell, and nothing is never a pass", depth, m.Name)
		}
		return selected, nil
	}
	return nil, fmt.Errorf("matrix %s has no depth %q, use one of: %s", m.Name, depth, strings.Join(known, ", "))
}

var (
	namePattern  = regexp.MustCompile(`^[a-z0-9]+(-[a-z0-9]+)*$`)
	valuePattern = regexp.MustCompile(`^[a-z0-9]+([.-][a-z0-9]+)*$`)
)

func refuse(path, format string, arguments ...any) error {
	return &document.Error{Path: path, Problem: fmt.Sprintf(format, arguments...)}
}

func (m *Matrix) validate() error {
	switch {
	case m.APIVersion != APIVersion:
		return refuse("apiVersion", "it must be %s, not %q", APIVersion, m.APIVersion)
	case m.Kind != Kind:
		return refuse("kind", "it must be %s, not %q", Kind, m.Kind)
	case !namePattern.MatchString(m.Name):
		return refuse("name", "give the matrix a name of lower-case words joined by dashes, not %q", m.Name)
	case len(m.Axes) == 0:
		return refuse("axes", "declare at least one axis")
	case len(m.Depths) == 0:
		return refuse("depths", "declare at least one depth")
	}
	axes, err := m.validateAxes()
	if err != nil {
		return err
	}
	for i, skip := range m.Except {
		path := fmt.Sprintf("except[%d]", i)
		if skip.Reason == "" || len(skip.Where) == 0 {
			return refuse(path, "say which combinations are left out, and why")
		}
		if err := validateWhere(path+".where", skip.Where, axes); err != nil {
			return err
		}
	}
	return m.validateDepths(axes)
}

func (m *Matrix) validateAxes() (map[string][]string, error) {
	axes := map[string][]string{}
	for i, axis := range m.Axes {
		path := fmt.Sprintf("axes[%d]", i)
		if _, twice := axes[axis.Name]; twice || !namePattern.MatchString(axis.Name) {
			return nil, refuse(path+".name", "give each axis a name of its own of lower-case words, not %q", axis.Name)
		}
		if len(axis.Values) == 0 {
			return nil, refuse(path+".values", "an axis has at least one value")
		}
		for j, value := range axis.Values {
			if !valuePattern.MatchString(value.Name) || slices.Contains(axes[axis.Name], value.Name) {
				return nil, refuse(fmt.Sprintf("%s.values[%d].name", path, j), "give each value a name of its own of lower-case words, not %q", value.Name)
			}
			if value.Minutes < 0 {
				return nil, refuse(fmt.Sprintf("%s.values[%d].minutes", path, j), "it cannot be negative")
			}
			axes[axis.Name] = append(axes[axis.Name], value.Name)
		}
	}
	return axes, nil
}

func (m *Matrix) validateDepths(axes map[string][]string) error {
	seen := map[string]bool{}
	for i, depth := range m.Depths {
		path := fmt.Sprintf("depths[%d]", i)
		if !namePattern.MatchString(depth.Name) || seen[depth.Name] {
			return refuse(path+".name", "give each depth a name of its own of lower-case words, not %q", depth.Name)
		}
		seen[depth.Name] = true
		if len(depth.Select) == 0 {
			return refuse(path+".select", "say which cells belong to it; one empty selector {} selects all")
		}
		for j, where := range depth.Select {
			if err := validateWhere(fmt.Sprintf("%s.select[%d]", path, j), where, axes); err != nil {
				return err
			}
		}
		if _, err := m.Select(depth.Name); err != nil {
			return refuse(path, "%v", err)
		}
	}
	return nil
}

func validateWhere(path string, where map[string][]string, axes map[string][]string) error {
	for axis, values := range where {
		known, ok := axes[axis]
		if !ok {
			return refuse(path+"."+axis, "the matrix has no such axis")
		}
		for _, value := range values {
			if !slices.Contains(known, value) {
				return refuse(path+"."+axis, "the axis has no value %q, it has: %s", value, strings.Join(known, ", "))
			}
		}
	}
	return nil
}
