package carryover

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode"

	"ptah.run/ptah/qualification/profile"
)

// Release names one side of a review by what is known about it.
type Release struct {
	Name   string            `json:"name"`
	Commit string            `json:"commit,omitempty"`
	Images map[string]string `json:"images,omitempty"`
}

// ReviewStatement is what a person states about one claim and one set of changes: that the changes do not reach what
// was shown for the earlier release, and why.
type ReviewStatement struct {
	Claim       string              `json:"claim"`
	Requirement profile.Requirement `json:"requirement"`
	Statement   string              `json:"statement"` // of the claim, as it was declared
	Claims      string              `json:"claims"`    // digest of the declaration of the claims
	From        Release             `json:"from"`
	To          Release             `json:"to"`
	Changes     []Change            `json:"changes"`     // everything that reaches the claim
	NotCompared []string            `json:"notCompared"` // what the reviewer could not see compared
	Reason      string              `json:"reason"`
	By          string              `json:"by"`
	At          time.Time           `json:"at"`
}

// leastReason is how many characters a reason has at least: enough that it says something about the change.
const leastReason = 20

// Reviewed is what a review is about and who makes it.
type Reviewed struct {
	Claim   string
	From    Side
	To      Side
	Changes []Change // all of them, from Compare
	Unknown []string // from Compare
	Reason  string
	By      string
	At      time.Time
}

// NewReview states a review. It refuses a review of a claim that the changes do not reach, and of one that must be
// shown again: no reason stands in for evidence that is gone.
func (c *Claims) NewReview(r Reviewed) (*ReviewStatement, error) {
	claim, err := c.Find(r.Claim)
	if err != nil {
		return nil, err
	}
	at := slices.IndexFunc(c.Claims, func(candidate Claim) bool { return candidate.Name == claim.Name })
	reached := c.Impact(r.Changes)[at]
	switch reached.Action {
	case Stands:
		return nil, fmt.Errorf("nothing that claim %s depends on changed between %s and %s, there is nothing to review", claim.Name, r.From.Name, r.To.Name)
	case Repeat:
		return nil, fmt.Errorf("claim %s must be shown again and cannot be reviewed: %s", claim.Name, c.firstRepeat(claim, reached.Because))
	}
	review := &ReviewStatement{
		Claim: claim.Name, Requirement: claim.Requirement, Statement: claim.Statement, Claims: c.Digest(),
		From: r.From.release(), To: r.To.release(), Changes: reached.Because, NotCompared: append([]string{}, r.Unknown...),
		Reason: strings.TrimSpace(r.Reason), By: strings.TrimSpace(r.By), At: r.At.UTC().Truncate(time.Second),
	}
	return review, review.Validate()
}

func (s Side) release() Release { return Release{Name: s.Name, Commit: s.Commit, Images: s.Images} }

func (c *Claims) firstRepeat(claim Claim, changes []Change) string {
	for _, change := range changes {
		if c.reaches(claim.Repeat, change) {
			return change.String()
		}
	}
	return "its evidence is gone"
}

// Validate refuses a review that says nothing, or not about what, why or by whom.
func (r *ReviewStatement) Validate() error {
	switch {
	case r.Claim == "" || r.Requirement == "" || r.Claims == "":
		return errors.New("the review names no claim")
	case len(r.Changes) == 0:
		return errors.New("the review names no change, and a review of nothing carries nothing over")
	case r.From.Name == "" || r.To.Name == "" || r.From.Name == r.To.Name:
		return errors.New("the review must name two releases")
	case len([]rune(r.Reason)) < leastReason:
		return fmt.Errorf("the reason has %d characters: say in at least %d why the change does not reach what was shown", len([]rune(r.Reason)), leastReason)
	case r.By == "" || strings.ContainsFunc(r.By, unicode.IsControl):
		return errors.New("say who reviewed, on one line")
	case r.At.IsZero():
		return errors.New("the review has no time")
	}
	return nil
}

// Covers refuses a review that is not about exactly these changes of the claim as it is declared now: a change after
// it, or another declaration of what the claim depends on, needs a review of its own.
func (r *ReviewStatement) Covers(c *Claims, changes []Change) error {
	if _, err := c.Find(r.Claim); err != nil {
		return err
	}
	at := slices.IndexFunc(c.Claims, func(candidate Claim) bool { return candidate.Name == r.Claim })
	reached := c.Impact(changes)[at]
	switch {
	case r.Claims != c.Digest():
		return fmt.Errorf("claim %s was reviewed under another declaration of claims, %s, and not the given one, %s", r.Claim, r.Claims, c.Digest())
	case reached.Action == Repeat:
		return fmt.Errorf("claim %s must be shown again and cannot be reviewed: %s", r.Claim, c.firstRepeat(reached.Claim, reached.Because))
	case !slices.Equal(reached.Because, r.Changes):
		return fmt.Errorf("claim %s is reached by %d changes, and the review is about other ones (%d)", r.Claim, len(reached.Because), len(r.Changes))
	}
	return nil
}
