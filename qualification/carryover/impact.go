package carryover

import (
	"slices"
)

// Action is what a change demands for a claim.
type Action string

// Actions.
const (
	Repeat Action = "repeat" // what was shown is gone and must be shown again
	Review Action = "review" // a person must say, signed and with a reason, that the change does not reach what was shown
	Stands Action = "stands" // nothing that the claim depends on changed
)

// Reached is what a set of changes does to one claim.
type Reached struct {
	Claim   Claim    `json:"claim"`
	Action  Action   `json:"action"`
	Because []Change `json:"because"` // every change that reaches the claim, by either dependence
}

// Impact says for every claim, in their order, what the changes demand. A shipped file, the chart or an image that no
// claim names reaches every claim for review, because nobody has said that it does not matter.
func (c *Claims) Impact(changes []Change) []Reached {
	result := make([]Reached, len(c.Claims))
	named := map[Change]bool{}
	for i, claim := range c.Claims {
		result[i] = Reached{Claim: claim, Action: Stands, Because: []Change{}}
		for _, change := range changes {
			repeats, reviewed := c.reaches(claim.Repeat, change), c.reaches(claim.Review, change)
			if !repeats && !reviewed {
				continue
			}
			named[change] = true
			result[i].add(change, repeats)
		}
	}
	for _, change := range changes {
		if named[change] || (change.Kind != ChangedPath && change.Kind != ChangedImage && change.Kind != ChangedChart) {
			continue
		}
		for i := range result {
			result[i].add(change, false)
		}
	}
	for i := range result {
		sortChanges(result[i].Because)
	}
	return result
}

func (r *Reached) add(change Change, repeats bool) {
	r.Because = append(r.Because, change)
	switch {
	case repeats:
		r.Action = Repeat
	case r.Action == Stands:
		r.Action = Review
	}
}

// reaches says whether the dependence has to do with the change.
func (c *Claims) reaches(d Dependence, change Change) bool {
	switch change.Kind {
	case ChangedPath:
		named := func(entry string) bool { return within(change.Subject, entry) }
		return slices.ContainsFunc(d.Paths, named) || slices.ContainsFunc(c.Images, func(image Image) bool {
			return slices.Contains(d.Images, image.Name) && slices.ContainsFunc(image.Paths, named)
		})
	case ChangedImage:
		return slices.Contains(d.Images, change.Subject)
	case ChangedPolicy:
		return slices.Contains(d.Policies, change.Subject)
	case ChangedPlatform:
		return slices.Contains(d.Platforms, change.Subject)
	case ChangedChart: // which of its files changed is not known
		return slices.ContainsFunc(d.Paths, func(entry string) bool { return within(entry, c.Chart) || within(c.Chart, entry) })
	default:
		return false
	}
}
