// Package findings counts differences by category. A count has a category and a severity and never a name, a row or a
// piece of SQL, so that it may be shown to anybody who may see that a database exists.
package findings

import (
	"cmp"
	"slices"

	"ptah.run/ptah/operator/plan/report"
)

// Counter counts by category.
type Counter map[string]*report.Finding

// Add counts one difference. The category keeps the highest of its severities. One that the vocabulary lacks is counted
// as an object of another kind.
func (c Counter) Add(category string, severity report.Severity) {
	if Meaning(category) == "" {
		category = other
	}
	finding := c[category]
	if finding == nil {
		finding = &report.Finding{Category: category, Severity: severity}
		c[category] = finding
	}
	finding.Count++
	finding.Severity = report.Worse(finding.Severity, severity)
}

// Total is the number of differences counted.
func (c Counter) Total() int {
	sum := 0
	for _, f := range c {
		sum += f.Count
	}
	return sum
}

// Sorted returns the counts by descending severity and then by category.
func (c Counter) Sorted() []report.Finding {
	out := make([]report.Finding, 0, len(c))
	for _, finding := range c {
		out = append(out, *finding)
	}
	return Sort(out)
}

// Join returns two lists of findings as one, sorted like each.
func Join(a, b []report.Finding) []report.Finding {
	if len(b) == 0 {
		return a
	}
	return Sort(append(slices.Clone(a), b...))
}

// Sort puts findings in order of descending severity and then of category.
func Sort(all []report.Finding) []report.Finding {
	slices.SortFunc(all, func(a, b report.Finding) int {
		if a.Severity != b.Severity {
			if report.Worse(a.Severity, b.Severity) == a.Severity {
				return -1
			}
			return 1
		}
		return cmp.Compare(a.Category, b.Category)
	})
	return all
}

// Highest returns the highest severity of the findings, or an empty one.
func Highest(all []report.Finding) report.Severity {
	highest := report.Severity("")
	for _, f := range all {
		highest = report.Worse(highest, f.Severity)
	}
	return highest
}

// Categories returns the sorted categories of the findings.
func Categories(all []report.Finding) []string {
	out := []string{}
	for _, f := range all {
		out = append(out, f.Category)
	}
	slices.Sort(out)
	return out
}
