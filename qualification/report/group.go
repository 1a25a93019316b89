package report

import (
	"fmt"
	"slices"

	"ptah.run/ptah/qualification/verdict"
)

// Group is results that read the same but for their cell, so that a page with many cells stays readable.
type Group struct {
	Verdict verdict.Verdict
	Results []Result
}

// troubled returns the results other than pass, the worst first, those with the same reasons together. What differs in
// its numbers stays apart.
func (i Item) troubled() []Group {
	var groups []Group
	index := map[string]int{}
	for _, result := range i.Results {
		if result.Verdict.Satisfies() {
			continue
		}
		own := i.Own(result)
		key := result.Number + "\x00" + reasonsKey(own)
		at, known := index[key]
		if !known {
			at = len(groups)
			index[key] = at
			groups = append(groups, Group{Verdict: own})
		}
		groups[at].Results = append(groups[at].Results, result)
	}
	slices.SortStableFunc(groups, func(a, b Group) int {
		switch {
		case verdict.Worse(a.Verdict, b.Verdict):
			return -1
		case verdict.Worse(b.Verdict, a.Verdict):
			return 1
		default:
			return 0
		}
	})
	return groups
}

// Own is the verdict of a result whose reasons do not name the cell and the item that they stand beside.
func (i Item) Own(result Result) verdict.Verdict {
	v := result.Verdict
	v.Reasons = slices.Clone(v.Reasons)
	for at, reason := range v.Reasons {
		if reason.Subject == result.Cell || reason.Subject == i.Name {
			v.Reasons[at].Subject = ""
		}
	}
	return v
}

// reasonsKey tells verdicts apart.
func reasonsKey(v verdict.Verdict) string {
	key := v.String()
	for _, reason := range v.Reasons {
		key += "\x00" + string(reason.Code) + "\x00" + reason.Subject + "\x00" + reason.Message
	}
	return key
}

// passed returns the results that are a pass.
func (i Item) passed() []Result {
	return slices.DeleteFunc(slices.Clone(i.Results), func(r Result) bool { return !r.Verdict.Satisfies() })
}

// Concern is an item that is no pass, for the summary.
type Concern struct {
	Requirement Requirement
	Item        Item
	// Cells is how many have the item's verdict, and Others how many more are no pass.
	Cells, Others int
	First         Result
}

// Where says in how many cells the item has the verdict that stands before it.
func (c Concern) Where() string {
	where := "in " + plural(c.Cells, "cell")
	if c.Others > 0 {
		where += fmt.Sprintf(", and no pass in %d more", c.Others)
	}
	return where
}

// concerns returns what needs attention, the worst first.
func (p Page) concerns() []Concern {
	var list []Concern
	for _, requirement := range p.Requirements {
		for _, item := range requirement.Items {
			if groups := item.troubled(); len(groups) > 0 {
				concern := Concern{Requirement: requirement, Item: item, First: groups[0].Results[0]}
				for _, group := range groups {
					if worst := groups[0].Verdict; group.Verdict.State == worst.State && group.Verdict.Cause == worst.Cause {
						concern.Cells += len(group.Results)
					} else {
						concern.Others += len(group.Results)
					}
				}
				list = append(list, concern)
			}
		}
	}
	slices.SortStableFunc(list, func(a, b Concern) int {
		x, y := verdict.Verdict{State: a.Item.Verdict.State, Cause: a.Item.Verdict.Cause}, verdict.Verdict{State: b.Item.Verdict.State, Cause: b.Item.Verdict.Cause}
		switch {
		case verdict.Worse(x, y):
			return -1
		case verdict.Worse(y, x):
			return 1
		default:
			return 0
		}
	})
	return list
}

// Square is what one cell shows for one requirement.
type Square struct {
	Requirement string
	State       verdict.State // empty where the cell shows nothing for it
}

// squares returns a row of the overview: the states of the requirements in one cell.
func (p Page) squares() map[string][]Square {
	columns := p.assessed()
	byCell := map[string]map[string][]verdict.Verdict{}
	for _, requirement := range columns {
		for _, item := range requirement.Items {
			for _, result := range item.Results {
				if byCell[result.Cell] == nil {
					byCell[result.Cell] = map[string][]verdict.Verdict{}
				}
				id := string(requirement.ID)
				byCell[result.Cell][id] = append(byCell[result.Cell][id], verdict.Verdict{State: result.Verdict.State, Cause: result.Verdict.Cause})
			}
		}
	}
	rows := map[string][]Square{}
	for _, cell := range p.Cells {
		for _, requirement := range columns {
			square := Square{Requirement: string(requirement.ID)}
			if list := byCell[cell.Key][square.Requirement]; len(list) > 0 {
				square.State = verdict.Aggregate(list...).State
			}
			rows[cell.Key] = append(rows[cell.Key], square)
		}
	}
	return rows
}

// assessed returns the requirements that something is declared for.
func (p Page) assessed() []Requirement {
	return slices.DeleteFunc(slices.Clone(p.Requirements), func(r Requirement) bool { return len(r.Items) == 0 })
}
