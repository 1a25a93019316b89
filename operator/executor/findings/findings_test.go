package findings

import (
	"os"
	"reflect"
	"strings"
	"testing"

	"ptah.run/ptah/operator/plan/report"
)

func TestACounterKeepsTheHighestSeverityAndSorts(t *testing.T) {
	c := Counter{}
	c.Add("tables_added", report.SeveritySafe)
	c.Add("views_modified", report.SeverityWarning)
	c.Add("columns_removed", report.SeverityDestructive)
	c.Add("views_modified", report.SeverityDestructive)
	c.Add("views_modified", report.SeveritySafe)
	want := []report.Finding{{Category: "columns_removed", Count: 1, Severity: report.SeverityDestructive},
		{Category: "views_modified", Count: 3, Severity: report.SeverityDestructive}, {Category: "tables_added", Count: 1, Severity: report.SeveritySafe}}
	if got := c.Sorted(); !reflect.DeepEqual(got, want) || c.Total() != 5 || Highest(got) != report.SeverityDestructive {
		t.Errorf("%+v", got)
	}
}

// A category that no reader knows must not be written, and a difference must not be lost because of it.
func TestACategoryThatIsUnknownCountsAsAnObjectOfAnotherKind(t *testing.T) {
	c := Counter{}
	c.Add("tables_frobnicated", report.SeverityWarning)
	if got := c.Sorted(); len(got) != 1 || got[0].Category != other || Meaning(other) == "" {
		t.Errorf("%+v", got)
	}
}

func TestThePageOfTheProgramListsEveryCategory(t *testing.T) {
	page, err := os.ReadFile("../../../support/docs/ptah.md")
	if err != nil {
		t.Fatal(err)
	}
	rows := 0
	for line := range strings.SplitSeq(string(page), "\n") {
		if cells := strings.Split(line, "|"); len(cells) == 4 && strings.HasPrefix(line, "| `") && strings.Contains(line, "_") {
			category, meaning := strings.Trim(cells[1], " `"), strings.TrimSpace(cells[2])
			if vocabulary[category] == "" || vocabulary[category] != meaning {
				t.Errorf("the page says of %q: %q, and the program: %q", category, meaning, vocabulary[category])
			}
			rows++
		}
	}
	if rows != len(vocabulary) {
		t.Errorf("the page lists %d of %d categories", rows, len(vocabulary))
	}
}
