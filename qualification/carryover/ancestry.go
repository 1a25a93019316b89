package carryover

import (
	"fmt"
	"strings"

	"ptah.run/ptah/qualification/verdict"
)

// Codes of the reasons of an ancestry verdict.
const (
	AncestryUnknown   verdict.Code = "ancestry-unknown"
	HarnessDirty      verdict.Code = "harness-dirty"
	HarnessElsewhere  verdict.Code = "harness-not-descended"
	HarnessReachesOut verdict.Code = "harness-changes-shipped"
)

// Ancestry says how the commit of the harness that judged a release relates to the commit of that release. A fix of
// the harness forces no new release: its commit is accepted if it descends from the release and changes nothing that
// the release ships.
type Ancestry struct {
	Release  string          `json:"release"`  // commit that the release was built from, 40 hex digits; empty where unknown
	Harness  string          `json:"harness"`  // commit of the harness, 40 hex digits; empty where unknown
	Dirty    bool            `json:"dirty"`    // the tree of the harness differed from its commit
	Descends bool            `json:"descends"` // the release is an ancestor of the harness, or the same commit
	Shipped  string          `json:"shipped"`  // digest of the declaration of what is shipped
	Changed  []string        `json:"changed"`  // shipped files that differ between the two commits, sorted
	Verdict  verdict.Verdict `json:"verdict"`
}

// Relate states how a harness relates to a release. Files are those that differ between their commits.
func Relate(release, harness string, dirty, descends bool, shipped Selector, files []string) Ancestry {
	a := Ancestry{Release: release, Harness: harness, Dirty: dirty, Descends: descends, Shipped: shipped.Digest(), Changed: []string{}}
	for _, file := range files {
		if shipped.Matches(file) {
			a.Changed = append(a.Changed, file)
		}
	}
	a.Verdict = a.Judge()
	return a
}

// Judge computes the verdict from the stated facts. A stated Verdict is compared with it and never believed.
func (a Ancestry) Judge() verdict.Verdict {
	bad := func(state verdict.State, code verdict.Code, format string, arguments ...any) verdict.Verdict {
		return verdict.New(state, verdict.Harness, code, a.Harness, format, arguments...)
	}
	switch {
	case a.Release == "":
		return bad(verdict.Inconclusive, AncestryUnknown, "the commit that the release was built from is not known")
	case a.Harness == "":
		return bad(verdict.Inconclusive, AncestryUnknown, "the commit of the harness is not known")
	case a.Dirty:
		return bad(verdict.Void, HarnessDirty, "the tree of the harness was changed after its commit, so that nobody can tell what ran")
	case !a.Descends:
		return bad(verdict.Void, HarnessElsewhere, "the commit of the harness does not descend from the release commit %s", a.Release)
	case len(a.Changed) > 0:
		return bad(verdict.Void, HarnessReachesOut, "the harness changes %d files that the release ships: %s", len(a.Changed), few(a.Changed))
	default:
		return verdict.Passed()
	}
}

// few joins the first names of a list.
func few(names []string) string {
	const most = 5
	if len(names) <= most {
		return strings.Join(names, ", ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(names[:most], ", "), len(names)-most)
}
