package matrix

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"ptah.run/ptah/qualification/profile/document"
)

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
	if _, axis := axes[AxisSuite]; axis && m.Suite != "" || m.Suite != "" && !namePattern.MatchString(m.Suite) {
		return refuse("suite", "name the suite either here, in lower-case words, or by an axis %s", AxisSuite)
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
	if err := m.validateDepths(axes); err != nil {
		return err
	}
	return m.validateCells()
}

// validateCells refuses two cells of one key, which values that are left out of the key can make.
func (m *Matrix) validateCells() error {
	seen := map[string]bool{}
	for _, cell := range m.Cells() {
		if cell.Key == "" || seen[cell.Key] {
			return refuse("axes", "the key %q is that of two cells or empty, leave less out of it", cell.Key)
		}
		seen[cell.Key] = true
	}
	return nil
}

func (m *Matrix) validateAxes() (map[string][]string, error) {
	axes, given := map[string][]string{}, map[string]string{}
	for i, axis := range m.Axes {
		path := fmt.Sprintf("axes[%d]", i)
		if _, twice := axes[axis.Name]; twice || !namePattern.MatchString(axis.Name) {
			return nil, refuse(path+".name", "give each axis a name of its own of lower-case words, not %q", axis.Name)
		}
		if len(axis.Values) == 0 {
			return nil, refuse(path+".values", "an axis has at least one value")
		}
		for j, value := range axis.Values {
			if err := axis.validateValue(fmt.Sprintf("%s.values[%d]", path, j), value, axes[axis.Name], given); err != nil {
				return nil, err
			}
			axes[axis.Name] = append(axes[axis.Name], value.Name)
		}
	}
	return axes, nil
}

// validateValue checks a value of an axis. Given holds the attributes that cells are asked for, each with its axis.
func (a Axis) validateValue(path string, value Value, before []string, given map[string]string) error {
	switch {
	case !valuePattern.MatchString(value.Name) || slices.Contains(before, value.Name):
		return refuse(path+".name", "give each value a name of its own of lower-case words, not %q", value.Name)
	case value.Minutes < 0:
		return refuse(path+".minutes", "it cannot be negative")
	}
	for _, attribute := range []string{AttributeMinor, AttributeEngine, AttributeVersion, AttributePlatform} {
		if value.Attributes[attribute] == "" {
			continue
		}
		if other := given[attribute]; other != "" && other != a.Name {
			return refuse(path+".attributes."+attribute, "the axis %s gives it already, a cell has one", other)
		}
		given[attribute] = a.Name
	}
	return nil
}

func (m *Matrix) validateDepths(axes map[string][]string) error {
	seen := map[string]bool{}
	for i, depth := range m.Depths {
		path := fmt.Sprintf("depths[%d]", i)
		if !namePattern.MatchString(depth.Name) || seen[depth.Name] {
			return refuse(path+".name", "give each depth a name of its own of lower-case words, not %q", depth.Name)
		}
		seen[depth.Name] = true
		if needs := depth.Needs; needs != nil && (needs.Cores < 1 || needs.MemoryGiB < 1) {
			return refuse(path+".needs", "say how many cores and how much memory the machine of a cell has at least")
		}
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
