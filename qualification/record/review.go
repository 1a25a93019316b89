package record

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"ptah.run/ptah/qualification/carryover"
	"ptah.run/ptah/qualification/profile/document"
)

// ReviewType is the predicate of a signed review.
const ReviewType = "https://ptah.run/attestation/review/v1"

// SignReview returns the bytes of a file with a signed review: a DSSE envelope with an in-toto statement whose subject
// is the later release. A release of which neither a commit nor an image digest is known is refused.
func SignReview(ctx context.Context, review *carryover.ReviewStatement, signer *Signer) ([]byte, error) {
	if err := review.Validate(); err != nil {
		return nil, err
	}
	made := statement[*carryover.ReviewStatement]{Type: StatementType, PredicateType: ReviewType, Subject: reviewed(review.To), Predicate: review}
	if len(made.Subject) == 0 {
		return nil, errors.New("neither a commit nor an image of the later release is known, and a review must be about something")
	}
	data, err := document.Canonical(made)
	if err != nil {
		return nil, fmt.Errorf("sign the review: %w", err)
	}
	envelope := unsigned(data)
	if err := signEnvelope(ctx, &envelope, signer); err != nil {
		return nil, fmt.Errorf("sign the review: %w", err)
	}
	if _, err := payload(&envelope, "the review"); err != nil {
		return nil, err
	}
	return encodeEnvelope(&envelope)
}

func reviewed(release carryover.Release) []Resource {
	var subject []Resource
	if release.Commit != "" {
		subject = append(subject, Resource{Name: "release", Digest: map[string]string{"gitCommit": release.Commit}})
	}
	for _, role := range sortedKeys(release.Images) {
		subject = append(subject, Resource{Name: imagePrefix + role, Digest: sha256Of(release.Images[role])})
	}
	return subject
}

// VerifyReview checks the bytes of a review file against the given keys and returns what it states and the ids of the
// keys that signed it. Every error is a *Refusal.
func VerifyReview(ctx context.Context, data []byte, keys []*Verifier) (*carryover.ReviewStatement, []string, error) {
	const what = "the review"
	envelope, err := decodeEnvelope(data)
	if err != nil {
		return nil, nil, refused(RefusedAltered, "%v", err)
	}
	ids, err := verifyEnvelope(ctx, envelope, what, keys)
	if err != nil {
		return nil, nil, err
	}
	content, err := payload(envelope, what)
	if err != nil {
		return nil, nil, err
	}
	opened, err := decodeStatement[*carryover.ReviewStatement](content)
	if err != nil || opened.Type != StatementType || opened.PredicateType != ReviewType || opened.Predicate == nil {
		return nil, nil, refused(RefusedStatement, "%s is of no kind this program understands", what)
	}
	review := opened.Predicate
	if err := review.Validate(); err != nil {
		return nil, nil, refused(RefusedStatement, "%s says too little: %v", what, err)
	}
	if !sameJSON(opened.Subject, reviewed(review.To)) {
		return nil, nil, refused(RefusedContradicts, "%s has another subject than the release %s that it is about", what, review.To.Name)
	}
	return review, ids, nil
}

// Side returns what a verified record tells about its release, to be compared with another one.
func (v *Verified) Side(name string) carryover.Side {
	side := carryover.Side{Name: name, Images: map[string]string{}, Chart: map[string]string{}, Policies: map[string]string{}, Platforms: map[string]string{}}
	for _, cell := range v.Statements() {
		facts := cell.Facts()
		for subject, found := range facts.Subject {
			if role, ok := strings.CutPrefix(subject, imagePrefix); ok {
				side.Images[role] = found
			} else if chart, ok := strings.CutPrefix(subject, chartPrefix); ok {
				side.Chart[chart] = found
			}
		}
		side.Policies[facts.Profile.Name] = facts.Profile.Digest
		if facts.Root != "" && facts.Platform != "" {
			side.Platforms[facts.Platform] = worseExecution(side.Platforms[facts.Platform], execution(facts.Native))
		}
	}
	if v.Summary.Ancestry != nil {
		side.Commit = v.Summary.Ancestry.Release
	}
	return side
}

// worseExecution is emulated where any cell was.
func worseExecution(known, found string) string {
	if known == execution(false) {
		return known
	}
	return found
}
