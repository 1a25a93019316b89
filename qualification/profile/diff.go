package profile

import (
	"fmt"
	"slices"

	"ptah.run/ptah/qualification/profile/document"
)

// Change is one difference between two revisions, in words.
type Change struct {
	ID       string `json:"id,omitempty"` // of the target or scenario, empty for anything else
	Sentence string `json:"sentence"`
}

// Diff says in words what changed from old to new.
func Diff(old, new *Profile) []Change {
	var changes []Change
	add := func(id, format string, arguments ...any) {
		changes = append(changes, Change{ID: id, Sentence: fmt.Sprintf(format, arguments...)})
	}
	if old.Name != new.Name {
		add("", "the profile is %s instead of %s", new.Name, old.Name)
	}
	if old.Purpose != new.Purpose {
		add("", "the purpose is %s instead of %s", new.Purpose, old.Purpose)
	}
	if old.Revision != new.Revision {
		add("", "the revision is %d instead of %d: %s", new.Revision, old.Revision, new.Revisions[len(new.Revisions)-1].Reason)
	}
	if old.Summary != new.Summary {
		add("", "the summary is worded differently")
	}
	diffPart(add, "the supported versions", old.Support, new.Support)
	diffPart(add, "the cluster", old.Cluster, new.Cluster)
	diffPart(add, "the installation", old.Installation, new.Installation)
	diffPart(add, "the workload", old.Workload, new.Workload)
	diffPart(add, "the coverage", old.Coverage, new.Coverage)
	diffPart(add, "the exclusions", old.Exclusions, new.Exclusions)
	diffPart(add, "what a pass does not show", old.NotShown, new.NotShown)
	diffNamed(old.Targets, new.Targets, func(t Target) string { return t.ID }, func(id string, before, after *Target) {
		diffTarget(add, id, before, after)
	})
	diffNamed(old.Scenarios, new.Scenarios, func(s Scenario) string { return s.Name }, func(id string, before, after *Scenario) {
		diffScenario(add, id, before, after)
	})
	return changes
}

func diffPart(add func(string, string, ...any), what string, old, new any) {
	for _, difference := range differences(old, new) {
		add("", "%s: %s", what, difference)
	}
}

func mustCanonical(value any) string {
	data, err := document.Canonical(value)
	if err != nil {
		panic(err) // only called with parts of a profile
	}
	return string(data)
}

// diffNamed pairs two lists by name and calls each for every pair; a side that has no such name is nil.
func diffNamed[T any](old, new []T, name func(T) string, each func(id string, before, after *T)) {
	for i := range old {
		at := slices.IndexFunc(new, func(item T) bool { return name(item) == name(old[i]) })
		if at < 0 {
			each(name(old[i]), &old[i], nil)
			continue
		}
		each(name(old[i]), &old[i], &new[at])
	}
	for i := range new {
		if !slices.ContainsFunc(old, func(item T) bool { return name(item) == name(new[i]) }) {
			each(name(new[i]), nil, &new[i])
		}
	}
}

func diffTarget(add func(string, string, ...any), id string, before, after *Target) {
	switch {
	case after == nil:
		add(id, "target %s (%s %s) is gone", id, before.Bound, before.Unit)
	case before == nil:
		add(id, "target %s is new: %s %s", id, after.Bound, after.Unit)
	case before.Bound.String() != after.Bound.String():
		add(id, "target %s is %s: %s %s instead of %s %s", id, tightened(*before, *after), after.Bound, after.Unit, before.Bound, before.Unit)
		fallthrough
	default:
		rest := *after
		rest.Bound = before.Bound
		diffWords(add, id, "target", *before, rest)
	}
}

func tightened(before, after Target) string {
	switch {
	case before.Bound.AtMost != nil && after.Bound.AtMost != nil && *after.Bound.AtMost < *before.Bound.AtMost,
		before.Bound.AtLeast != nil && after.Bound.AtLeast != nil && *after.Bound.AtLeast > *before.Bound.AtLeast:
		return "stricter"
	case (before.Bound.AtMost == nil) == (after.Bound.AtMost == nil):
		return "weaker"
	default:
		return "turned around"
	}
}

func diffScenario(add func(string, string, ...any), id string, before, after *Scenario) {
	switch {
	case after == nil:
		add(id, "scenario %s is no longer required", id)
	case before == nil:
		add(id, "scenario %s is required now", id)
	default:
		diffWords(add, id, "scenario", *before, *after)
	}
}

func diffWords(add func(string, string, ...any), id, what string, before, after any) {
	for _, difference := range differences(before, after) {
		add(id, "%s %s: %s", what, id, difference)
	}
}

// CheckRevision refuses a changed profile that does not own up to its changes: any change needs the next revision,
// earlier revisions must stay as they were, and every changed target and scenario must be listed in the new ones.
func CheckRevision(old, new *Profile) error {
	changes := Diff(old, new)
	if len(changes) == 0 && old.Digest() == new.Digest() {
		return nil
	}
	if new.Revision <= old.Revision {
		return fmt.Errorf("profile %s changed and is still revision %d: add revision %d with the reason", new.Name, new.Revision, old.Revision+1)
	}
	var owned []string
	for i, revision := range new.Revisions {
		if i >= len(old.Revisions) {
			owned = append(owned, revision.Changes...)
			continue
		}
		if mustCanonical(revision) != mustCanonical(old.Revisions[i]) {
			return fmt.Errorf("revision %d of profile %s was rewritten: earlier revisions stay as they are", revision.Number, new.Name)
		}
	}
	for _, change := range changes {
		if change.ID != "" && !slices.Contains(owned, change.ID) {
			return fmt.Errorf("%s changed and no new revision of profile %s lists it under changes", change.ID, new.Name)
		}
	}
	return nil
}

// Rejudges says whether evidence taken under the earlier profile may be judged under this one: a later revision of
// the same profile that changes targets and scenarios and nothing about what ran.
func (p *Profile) Rejudges(earlier *Profile) error {
	if p.Name != earlier.Name || p.Purpose != earlier.Purpose {
		return fmt.Errorf("the cell was run under the %s profile %s, not under the %s profile %s", earlier.Purpose, earlier.Name, p.Purpose, p.Name)
	}
	if err := CheckRevision(earlier, p); err != nil {
		return fmt.Errorf("the cell was run under another profile: %w", err)
	}
	for _, part := range []struct {
		what       string
		old, fresh any
	}{{"cluster", earlier.Cluster, p.Cluster}, {"installation", earlier.Installation, p.Installation}, {"workload", earlier.Workload, p.Workload}} {
		if mustCanonical(part.old) != mustCanonical(part.fresh) {
			return fmt.Errorf("the cell was run under revision %d, which declares another %s", earlier.Revision, part.what)
		}
	}
	return nil
}
