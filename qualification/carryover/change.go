package carryover

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// ChangeKind says what changed.
type ChangeKind string

// Kinds of changes.
const (
	ChangedPath     ChangeKind = "path"
	ChangedImage    ChangeKind = "image"
	ChangedChart    ChangeKind = "chart"
	ChangedPolicy   ChangeKind = "policy"
	ChangedPlatform ChangeKind = "platform"
)

// Absent stands for what one side does not have.
const Absent = "absent"

// Change is one difference between two releases. Before and After identify the content: digests, or Absent.
type Change struct {
	Kind    ChangeKind `json:"kind"`
	Subject string     `json:"subject"`
	Before  string     `json:"before"`
	After   string     `json:"after"`
}

// String says the change in words.
func (c Change) String() string {
	switch {
	case c.Before == Absent:
		return fmt.Sprintf("%s %s is new", c.Kind, c.Subject)
	case c.After == Absent:
		return fmt.Sprintf("%s %s is gone", c.Kind, c.Subject)
	default:
		return fmt.Sprintf("%s %s changed", c.Kind, c.Subject)
	}
}

// Side is what is known about one of two releases that are compared. A nil map is not known, which is not the same
// as empty.
type Side struct {
	Name      string            // as it was asked for, such as a tag or a file
	Commit    string            // 40 hex digits; empty where it is not known
	Images    map[string]string // role to digest
	Chart     map[string]string // name to digest
	Policies  map[string]string // name of a profile to digest
	Platforms map[string]string // platform to how cells ran there: native or emulated
}

// Compare lists the differences between two sides, sorted. Paths are the files of the repository that differ between
// their commits, nil where these are not known; only shipped ones count. What only one side or none of them knows is
// named in unknown: it was not compared, which must be said.
func (c *Claims) Compare(from, to Side, paths []Change) (changes []Change, unknown []string) {
	if paths == nil {
		unknown = append(unknown, "files")
	}
	for _, change := range paths {
		if c.Shipped.Matches(change.Subject) {
			changes = append(changes, Change{Kind: ChangedPath, Subject: change.Subject, Before: change.Before, After: change.After})
		}
	}
	for _, dimension := range []struct {
		kind          ChangeKind
		plural        string
		before, after map[string]string
	}{
		{ChangedImage, "images", from.Images, to.Images},
		{ChangedChart, "chart", from.Chart, to.Chart},
		{ChangedPolicy, "policies", from.Policies, to.Policies},
		{ChangedPlatform, "platforms", from.Platforms, to.Platforms},
	} {
		if dimension.before == nil || dimension.after == nil {
			unknown = append(unknown, dimension.plural)
			continue
		}
		found := differences(dimension.kind, dimension.before, dimension.after)
		if dimension.kind == ChangedChart && c.explainsChart(changes) {
			continue
		}
		changes = append(changes, found...)
	}
	sortChanges(changes)
	return changes, unknown
}

// explainsChart says whether files of the chart are among the changes: they say more than the digest of the package.
func (c *Claims) explainsChart(changes []Change) bool {
	return slices.ContainsFunc(changes, func(change Change) bool { return change.Kind == ChangedPath && within(change.Subject, c.Chart) })
}

func differences(kind ChangeKind, before, after map[string]string) []Change {
	var found []Change
	for name, was := range before {
		if is, there := after[name]; !there {
			found = append(found, Change{Kind: kind, Subject: name, Before: was, After: Absent})
		} else if is != was {
			found = append(found, Change{Kind: kind, Subject: name, Before: was, After: is})
		}
	}
	for name, is := range after {
		if _, there := before[name]; !there {
			found = append(found, Change{Kind: kind, Subject: name, Before: Absent, After: is})
		}
	}
	return found
}

func sortChanges(changes []Change) {
	slices.SortFunc(changes, func(a, b Change) int {
		return cmp.Or(strings.Compare(string(a.Kind), string(b.Kind)), strings.Compare(a.Subject, b.Subject))
	})
}
