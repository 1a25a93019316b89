package judge

import (
	"slices"

	"ptah.run/ptah/qualification/profile"
	"ptah.run/ptah/qualification/verdict"
)

// Difference is one verdict that two judgements of the same evidence do not share. Before or After is "absent" where only
// one of them has it. Why lists the reasons that came and went, and Declared what changed in the profile about it.
type Difference struct {
	Cell     string           `json:"cell,omitempty"`
	Subject  string           `json:"subject"` // a target, a scenario, a requirement, a cell or the whole
	Before   string           `json:"before"`
	After    string           `json:"after"`
	Came     []verdict.Reason `json:"came,omitempty"`
	Went     []verdict.Reason `json:"went,omitempty"`
	Declared []string         `json:"declared,omitempty"`
}

// The whole of a judgement, and a verdict that one of two judgements has not.
const (
	WholeRun = "the whole"
	Absent   = "absent"
)

// Compare returns every verdict that differs from an earlier judgement to a later one, targets and scenarios first and
// what is made of them after. Changes is what the profiles of the two declare differently, nothing where it is not known.
func Compare(before, after Judgement, changes []profile.Change) []Difference {
	var list []Difference
	old, fresh := before.verdicts(), after.verdicts()
	for _, key := range keysOf(fresh, old) {
		was, hadOld := lookup(old, key)
		now, hasNew := lookup(fresh, key)
		if one := differ(key, was, now, hadOld, hasNew); one != nil {
			for _, change := range changes {
				if change.ID == key.subject {
					one.Declared = append(one.Declared, change.Sentence)
				}
			}
			list = append(list, *one)
		}
	}
	return list
}

type verdictKey struct{ cell, subject string }

type named struct {
	key verdictKey
	v   verdict.Verdict
}

// verdicts returns every verdict of a judgement, those of the cells first.
func (j Judgement) verdicts() []named {
	var list []named
	for _, cell := range j.Cells {
		for _, t := range cell.Targets {
			list = append(list, named{verdictKey{cell.Cell.Key, t.Target}, t.Verdict})
		}
		for _, s := range cell.Scenarios {
			list = append(list, named{verdictKey{cell.Cell.Key, s.Scenario}, s.Verdict})
		}
		list = append(list, named{verdictKey{cell.Cell.Key, "cell " + cell.Cell.Key}, cell.Verdict})
	}
	for _, r := range j.Requirements {
		list = append(list, named{verdictKey{"", string(r.Requirement)}, r.Verdict})
	}
	return append(list, named{verdictKey{"", WholeRun}, j.Verdict})
}

// keysOf returns the keys of the first list, and before its last one those that only the second has.
func keysOf(first, second []named) []verdictKey {
	var keys []verdictKey
	for _, one := range second {
		if _, known := lookup(first, one.key); !known {
			keys = append(keys, one.key)
		}
	}
	for _, one := range first {
		keys = append(keys, one.key)
	}
	return keys
}

func lookup(list []named, key verdictKey) (verdict.Verdict, bool) {
	at := slices.IndexFunc(list, func(one named) bool { return one.key == key })
	if at < 0 {
		return verdict.Verdict{}, false
	}
	return list[at].v, true
}

func differ(key verdictKey, was, now verdict.Verdict, hadOld, hasNew bool) *Difference {
	one := &Difference{Cell: key.cell, Subject: key.subject, Before: Absent, After: Absent, Came: without(now.Reasons, was.Reasons), Went: without(was.Reasons, now.Reasons)}
	if hadOld {
		one.Before = was.String()
	}
	if hasNew {
		one.After = now.String()
	}
	if one.Before == one.After {
		return nil
	}
	return one
}

func without(reasons, others []verdict.Reason) []verdict.Reason {
	return slices.DeleteFunc(slices.Clone(reasons), func(r verdict.Reason) bool { return slices.Contains(others, r) })
}
