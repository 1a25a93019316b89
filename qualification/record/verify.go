package record

import (
	"context"
	"fmt"
	"slices"

	"ptah.run/ptah/qualification/carryover"
	"ptah.run/ptah/qualification/evidence/dossier"
	"ptah.run/ptah/qualification/judge"
	"ptah.run/ptah/qualification/matrix"
)

// Code is the machine-readable name of a refusal.
type Code string

// Codes of refusals.
const (
	RefusedAltered     Code = "altered"            // bytes of the record are not those that were signed
	RefusedUnsigned    Code = "unsigned"           // an envelope has no signature
	RefusedKey         Code = "key-not-given"      // a signature is by none of the given keys
	RefusedStatement   Code = "malformed"          // a signed statement is not what this program understands
	RefusedCells       Code = "cells"              // the cells are not exactly those the summary states
	RefusedContradicts Code = "contradicts-itself" // the summary claims what its cells do not show
	RefusedExclusion   Code = "exclusion"          // a requirement is excluded that may never be
	RefusedPurpose     Code = "no-acceptance"      // it is offered as an acceptance and is none
	RefusedProfile     Code = "another-profile"    // the given profile is not the one that was judged under
	RefusedEvidence    Code = "evidence"           // the given run is altered, or is another run
	RefusedJudgement   Code = "judgement"          // judging the given run again gives something else
	RefusedReport      Code = "report"             // a given report is not the one the record binds
	RefusedManifest    Code = "manifest"           // the given release manifest is not the one the record binds, or names other digests
	RefusedAncestry    Code = "ancestry"           // git says something else about the harness than the record
)

// Refusal is why a record does not verify. Its message is one sentence.
type Refusal struct {
	Code    Code
	Message string
}

func (r *Refusal) Error() string { return r.Message }

func refused(code Code, format string, arguments ...any) error {
	return &Refusal{Code: code, Message: fmt.Sprintf(format, arguments...)}
}

// Checks says against what a record is verified besides the keys. What is nil is left unchecked.
type Checks struct {
	Keys       []*Verifier                                                // at least one, unless the file is signed as a whole
	Whole      func(data []byte) (signer string, err error)               // checks a signature over the whole file that lies beside it
	Evidence   func() (*dossier.Dossier, error)                           // loads the run, checking every byte of it
	Profile    []byte                                                     // bytes of the profile
	Matrices   func(name string) (*matrix.Matrix, error)                  // with Profile: the declared matrices, to check that exactly the declared cells are there
	Reports    func(name string) ([]byte, error)                          // reads a rendered report
	Manifest   []byte                                                     // bytes of the release manifest
	Ancestry   func(release, harness string) (*carryover.Ancestry, error) // asks git about two commits
	Acceptance bool                                                       // demand that the record is an acceptance
}

// Verified is what a record that verified says.
type Verified struct {
	Summary Summary
	Subject []Resource
	Cells   []TestResult
	Keys    []string // ids of the keys whose signatures were checked
	Checked []string // what was checked, in words
}

// Verify checks the bytes of a record file. Every error is a *Refusal, except a cancelled context. It uses no
// network, and reads only what the functions of checks read.
func Verify(ctx context.Context, data []byte, checks Checks) (*Verified, error) {
	r, err := Decode(data)
	if err != nil {
		return nil, refused(RefusedAltered, "%v", err)
	}
	verified := &Verified{}
	if checks.Whole != nil {
		signer, err := checks.Whole(data)
		if err != nil {
			return nil, refused(RefusedKey, "%v", err)
		}
		verified.Keys = append(verified.Keys, signer)
		verified.checked("the signature over the whole file")
	}
	for i, envelope := range r.envelopes() {
		if checks.Whole != nil && len(checks.Keys) == 0 {
			break // what is in the file is vouched for with the file, its own signatures included
		}
		ids, err := verifyEnvelope(ctx, envelope, r.describe(i), checks.Keys)
		if err != nil {
			return nil, err
		}
		for _, id := range ids {
			if !slices.Contains(verified.Keys, id) {
				verified.Keys = append(verified.Keys, id)
			}
		}
	}
	opened, err := open(r)
	if err != nil {
		return nil, err
	}
	if err := opened.consistent(); err != nil {
		return nil, err
	}
	verified.Summary, verified.Subject = opened.summary.Predicate, opened.summary.Subject
	for _, cell := range opened.cells {
		verified.Cells = append(verified.Cells, cell.Predicate)
	}
	if len(checks.Keys) > 0 {
		verified.checked("the signatures of %d statements, and that the summary claims what its cells show", len(r.Cells)+1)
	} else {
		verified.checked("that the summary claims what its cells show")
	}
	for _, check := range []func(*Verified, Checks) error{opened.acceptance, opened.profile, opened.declared, opened.manifest, opened.ancestry, opened.evidence, opened.reports} {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		if err := check(verified, checks); err != nil {
			return nil, err
		}
	}
	return verified, nil
}

func (v *Verified) checked(format string, arguments ...any) {
	v.Checked = append(v.Checked, fmt.Sprintf(format, arguments...))
}

func (r *Record) describe(i int) string {
	if i < len(r.Cells) {
		return fmt.Sprintf("the statement of cell %d", i+1)
	}
	return "the statement over all cells"
}

// opened is a record with its statements decoded.
type opened struct {
	record   *Record
	payloads [][]byte // of the cells
	cells    []statement[TestResult]
	summary  statement[Summary]
}

func open(r *Record) (*opened, error) {
	o := &opened{record: r}
	for i, envelope := range r.envelopes() {
		what := r.describe(i)
		data, err := payload(envelope, what)
		if err != nil {
			return nil, err
		}
		if i < len(r.Cells) {
			cell, err := openCell(data, what)
			if err != nil {
				return nil, err
			}
			o.payloads, o.cells = append(o.payloads, data), append(o.cells, cell)
			continue
		}
		o.summary, err = decodeStatement[Summary](data)
		if err != nil || o.summary.Type != StatementType || (o.summary.PredicateType != AcceptanceType && o.summary.PredicateType != QualificationType) {
			return nil, refused(RefusedStatement, "%s is of no kind this program understands", what)
		}
	}
	return o, nil
}

func openCell(data []byte, what string) (statement[TestResult], error) {
	cell, err := decodeStatement[TestResult](data)
	if err != nil || cell.Type != StatementType || cell.PredicateType != TestResultType {
		return cell, refused(RefusedStatement, "%s is no test result this program understands", what)
	}
	return cell, nil
}

// Inspect decodes a record without checking anything. What it returns is a claim.
func Inspect(data []byte) (*Verified, error) {
	r, err := Decode(data)
	if err != nil {
		return nil, err
	}
	o, err := open(r)
	if err != nil {
		return nil, err
	}
	inspected := &Verified{Summary: o.summary.Predicate, Subject: o.summary.Subject}
	for _, cell := range o.cells {
		inspected.Cells = append(inspected.Cells, cell.Predicate)
	}
	for _, envelope := range r.envelopes() {
		for _, signature := range envelope.Signatures {
			if !slices.Contains(inspected.Keys, signature.KeyID) {
				inspected.Keys = append(inspected.Keys, signature.KeyID)
			}
		}
	}
	return inspected, nil
}

// Judgements returns the verdicts of the cells, for callers that print them.
func (v *Verified) Judgements() []judge.CellJudgement {
	list := make([]judge.CellJudgement, 0, len(v.Cells))
	for _, cell := range v.Cells {
		list = append(list, cell.Judgement)
	}
	return list
}
