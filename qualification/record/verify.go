package record

import (
	"bytes"
	"context"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"

	ita "github.com/in-toto/attestation/go/v1"
	"github.com/secure-systems-lab/go-securesystemslib/dsse"
	"google.golang.org/protobuf/encoding/protojson"

	"ptah.run/ptah/qualification/evidence/dossier"
	"ptah.run/ptah/qualification/judge"
	"ptah.run/ptah/qualification/profile"
	"ptah.run/ptah/qualification/profile/document"
	"ptah.run/ptah/qualification/verdict"
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

// Checks says against what a record is verified besides the keys.
type Checks struct {
	Keys       []*Verifier // at least one
	Run        string      // directory of the run, empty to leave the evidence unchecked
	Profile    []byte      // bytes of the profile, nil to leave it unchecked
	Reports    string      // directory of the reports, empty to leave them unchecked
	Acceptance bool        // demand that the record is an acceptance
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
// network and reads only the directories named in checks.
func Verify(ctx context.Context, data []byte, checks Checks) (*Verified, error) {
	r, err := Decode(data)
	if err != nil {
		return nil, refused(RefusedAltered, "%v", err)
	}
	verified := &Verified{}
	if err := verified.signatures(ctx, r, checks.Keys); err != nil {
		return nil, err
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
	verified.Checked = append(verified.Checked, fmt.Sprintf("the signatures of %d statements, and that the summary claims what its cells show", len(r.Cells)+1))
	for _, check := range []func(*Verified, Checks) error{opened.acceptance, opened.profile, opened.run, opened.reports} {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		if err := check(verified, checks); err != nil {
			return nil, err
		}
	}
	return verified, nil
}

// signatures checks that every signature of every envelope is by a given key. A signature by another key is
// refused even beside a good one: what is not checked must not be in the file.
func (v *Verified) signatures(ctx context.Context, r *Record, keys []*Verifier) error {
	if len(keys) == 0 {
		return refused(RefusedKey, "no key is given to verify the record with")
	}
	verifiers := make([]dsse.Verifier, len(keys))
	for i, key := range keys {
		verifiers[i] = key
	}
	for i, envelope := range r.envelopes() {
		what := r.describe(i)
		if len(envelope.Signatures) == 0 {
			return refused(RefusedUnsigned, "%s is not signed", what)
		}
		if envelope.PayloadType != PayloadType {
			return refused(RefusedStatement, "%s has the payload type %.80q, an in-toto statement has %q", what, envelope.PayloadType, PayloadType)
		}
		for _, signature := range envelope.Signatures {
			known := slices.ContainsFunc(keys, func(key *Verifier) bool { return key.id == signature.KeyID })
			if !known {
				return refused(RefusedKey, "%s is signed by the key %.80s, which is not among those given", what, signature.KeyID)
			}
		}
		checker, err := dsse.NewMultiEnvelopeVerifier(1, verifiers...)
		if err != nil {
			return refused(RefusedKey, "%v", err)
		}
		accepted, err := checker.Verify(ctx, envelope)
		if err != nil || len(accepted) != len(envelope.Signatures) {
			return refused(RefusedAltered, "a signature of %s does not fit: the record was altered", what)
		}
		for _, key := range accepted {
			if !slices.Contains(v.Keys, key.KeyID) {
				v.Keys = append(v.Keys, key.KeyID)
			}
		}
	}
	return nil
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
		payload, err := envelope.DecodeB64Payload()
		if err != nil {
			return nil, refused(RefusedAltered, "%s: %v", r.describe(i), err)
		}
		var standard ita.Statement
		if err := protojson.Unmarshal(payload, &standard); err != nil {
			return nil, refused(RefusedStatement, "%s is no in-toto statement: %v", r.describe(i), err)
		}
		if err := standard.Validate(); err != nil {
			return nil, refused(RefusedStatement, "%s is no valid in-toto statement: %v", r.describe(i), err)
		}
		if i < len(r.Cells) {
			cell, err := decodeStatement[TestResult](payload)
			if err != nil || cell.Type != StatementType || cell.PredicateType != TestResultType {
				return nil, refused(RefusedStatement, "%s is no test result this program understands", r.describe(i))
			}
			o.payloads, o.cells = append(o.payloads, payload), append(o.cells, cell)
			continue
		}
		o.summary, err = decodeStatement[Summary](payload)
		if err != nil || o.summary.Type != StatementType || (o.summary.PredicateType != AcceptanceType && o.summary.PredicateType != QualificationType) {
			return nil, refused(RefusedStatement, "%s is of no kind this program understands", r.describe(i))
		}
	}
	return o, nil
}

// consistent refuses a record that contradicts itself, whoever signed it.
func (o *opened) consistent() error {
	if err := o.sameCells(); err != nil {
		return err
	}
	summary := o.summary.Predicate
	cells := []verdict.Verdict{}
	for _, cell := range o.cells {
		key := cell.Predicate.Judgement.Cell.Key
		if !sameJSON(cell.Subject, o.summary.Subject) {
			return refused(RefusedContradicts, "cell %s is about another release than the summary", key)
		}
		if !carriesPolicy(cell.Predicate.Configuration, summary.Policy) {
			return refused(RefusedContradicts, "cell %s was judged under another profile than the summary names", key)
		}
		if err := consistentCell(cell.Predicate); err != nil {
			return err
		}
		cells = append(cells, cell.Predicate.Judgement.Verdict)
	}
	return consistentSummary(o.summary, cells)
}

// sameCells refuses a missing, an additional, an exchanged and a doubled cell.
func (o *opened) sameCells() error {
	stated := o.summary.Predicate.InputAttestations
	if len(stated) == 0 {
		return refused(RefusedCells, "the record states no cell, and nothing is never a pass")
	}
	if len(stated) != len(o.cells) {
		return refused(RefusedCells, "the record holds %d cells, the statement over them names %d", len(o.cells), len(stated))
	}
	seen := map[string]bool{}
	for i, cell := range o.cells {
		key := cell.Predicate.Judgement.Cell.Key
		if stated[i].Name != "cell/"+key || !maps.Equal(stated[i].Digest, sha256Of(digest(o.payloads[i]))) {
			return refused(RefusedCells, "cell %s is not the %s that the statement over all cells names at its place", key, stated[i].Name)
		}
		if seen[key] {
			return refused(RefusedCells, "cell %s is there twice", key)
		}
		seen[key] = true
	}
	return nil
}

func carriesPolicy(configuration []Resource, policy Resource) bool {
	return slices.ContainsFunc(configuration, func(resource Resource) bool { return sameJSON(resource, policy) })
}

// consistentCell refuses a cell whose result is better than its parts.
func consistentCell(cell TestResult) error {
	judged := cell.Judgement
	if cell.Result != result(judged.Verdict) {
		return refused(RefusedContradicts, "cell %s is stated as %s and its verdict is %s", judged.Cell.Key, cell.Result, judged.Verdict)
	}
	parts := []verdict.Verdict{}
	for _, s := range judged.Scenarios {
		parts = append(parts, s.Verdict)
	}
	for _, t := range judged.Targets {
		parts = append(parts, t.Verdict)
	}
	if whole := verdict.Aggregate(parts...); verdict.Worse(whole, judged.Verdict) {
		return refused(RefusedContradicts, "cell %s has the verdict %s, its scenarios and targets come to %s", judged.Cell.Key, judged.Verdict, whole)
	}
	return nil
}

func consistentSummary(s statement[Summary], cells []verdict.Verdict) error {
	summary := s.Predicate
	for _, requirement := range summary.Requirements {
		cells = append(cells, requirement.Verdict)
	}
	if whole := verdict.Aggregate(cells...); verdict.Worse(whole, summary.Verdict) {
		return refused(RefusedContradicts, "the record has the verdict %s, its cells and requirements come to %s", summary.Verdict, whole)
	}
	passed := summary.Verdict.Satisfies()
	switch {
	case summary.VerificationResult != result(summary.Verdict):
		return refused(RefusedContradicts, "the record is stated as %s and its verdict is %s", summary.VerificationResult, summary.Verdict)
	case summary.Acceptance && (summary.Purpose != profile.Acceptance || !passed):
		return refused(RefusedContradicts, "the record claims an acceptance that its %s profile and its verdict %s do not allow", summary.Purpose, summary.Verdict)
	case (s.PredicateType == AcceptanceType) != (summary.Purpose == profile.Acceptance):
		return refused(RefusedContradicts, "a record of the purpose %s has the wrong kind of statement", summary.Purpose)
	case summary.Notice != notice(summary.Purpose, passed):
		return refused(RefusedContradicts, "the record does not say plainly what it is: its notice is not that of its purpose and verdict")
	}
	for _, exclusion := range summary.Exclusions {
		if !exclusion.Requirement.Excludable() {
			return refused(RefusedExclusion, "the record excludes %s, which may never be excluded", exclusion.Requirement)
		}
	}
	return nil
}

func (o *opened) acceptance(_ *Verified, checks Checks) error {
	summary := o.summary.Predicate
	if !checks.Acceptance || summary.Acceptance {
		return nil
	}
	if summary.Purpose != profile.Acceptance {
		return refused(RefusedPurpose, "the record is of the %s profile %s and can not be an acceptance", summary.Purpose, summary.Policy.Name)
	}
	return refused(RefusedPurpose, "the record does not accept the release: its verdict is %s", summary.Verdict)
}

func (o *opened) profile(verified *Verified, checks Checks) error {
	if checks.Profile == nil {
		return nil
	}
	policy := o.summary.Predicate.Policy
	given, err := profile.Decode("the given profile", checks.Profile)
	if err != nil {
		return refused(RefusedProfile, "the given profile is not the one that was judged under: %v", err)
	}
	if !maps.Equal(policy.Digest, sha256Of(given.Digest())) {
		return refused(RefusedProfile, "the given profile is %s revision %d with digest %s, the record was judged under %s revision %s with digest sha256:%s",
			given.Name, given.Revision, given.Digest(), policy.Name, policy.Annotations["revision"], policy.Digest["sha256"])
	}
	if digest(checks.Profile) != policy.Annotations["fileDigest"] {
		return refused(RefusedProfile, "the given profile declares the same and is another file than the one that was judged under: take the one stored with the evidence")
	}
	verified.Checked = append(verified.Checked, "that the given profile is the one that was judged under")
	return nil
}

// run loads the evidence and judges it again.
func (o *opened) run(verified *Verified, checks Checks) error {
	if checks.Run == "" {
		return nil
	}
	d, err := dossier.Load(checks.Run)
	if err != nil {
		return refused(RefusedEvidence, "%v", err)
	}
	summary := o.summary.Predicate
	if !maps.Equal(summary.Evidence.Digest, sha256Of(d.Root)) {
		return refused(RefusedEvidence, "the given run is %s with root %s, the record is about %s with root sha256:%s", d.RunID, d.Root, summary.Evidence.Name, summary.Evidence.Digest["sha256"])
	}
	again, err := build(d, d.Judge(), Options{Time: summary.TimeVerified, Version: summary.Verifier["version"], reports: summary.Reports})
	if err != nil {
		return refused(RefusedJudgement, "the given run can not be judged again: %v", err)
	}
	rebuilt, err := open(again)
	if err != nil {
		return err
	}
	if err := o.sameAs(rebuilt); err != nil {
		return err
	}
	verified.Checked = append(verified.Checked, fmt.Sprintf("every byte of run %s, and that judging it again gives the same verdicts", d.RunID))
	return nil
}

func (o *opened) sameAs(rebuilt *opened) error {
	if len(rebuilt.cells) != len(o.cells) {
		return refused(RefusedJudgement, "the evidence calls for %d cells, the record has %d", len(rebuilt.cells), len(o.cells))
	}
	for i := range o.cells {
		if !sameJSON(rebuilt.cells[i], o.cells[i]) {
			return refused(RefusedJudgement, "cell %s comes out differently when it is judged again: %s, the record says %s", o.cells[i].Predicate.Judgement.Cell.Key,
				rebuilt.cells[i].Predicate.Judgement.Verdict, o.cells[i].Predicate.Judgement.Verdict)
		}
	}
	mine, theirs := o.summary, rebuilt.summary
	mine.Predicate.InputAttestations, theirs.Predicate.InputAttestations = nil, nil // digests of the bytes compared above
	if !sameJSON(mine, theirs) {
		return refused(RefusedJudgement, "the run as a whole comes out differently when it is judged again: %s, the record says %s", theirs.Predicate.Verdict, mine.Predicate.Verdict)
	}
	return nil
}

func (o *opened) reports(verified *Verified, checks Checks) error {
	if checks.Reports == "" {
		return nil
	}
	for _, report := range o.summary.Predicate.Reports {
		if filepath.Base(report.Name) != report.Name {
			return refused(RefusedReport, "the record names a report %.80q, which is no file name", report.Name)
		}
		data, err := os.ReadFile(filepath.Join(checks.Reports, report.Name))
		if err != nil {
			return refused(RefusedReport, "the report %s that the record binds can not be read: %v", report.Name, err)
		}
		if !maps.Equal(report.Digest, sha256Of(digest(data))) {
			return refused(RefusedReport, "the report %s was altered: it is not the one the record binds", report.Name)
		}
	}
	verified.Checked = append(verified.Checked, fmt.Sprintf("that %d report files are the ones rendered from this judgement", len(o.summary.Predicate.Reports)))
	return nil
}

// sameJSON compares two values by what they say.
func sameJSON(a, b any) bool {
	x, errX := document.Canonical(a)
	y, errY := document.Canonical(b)
	return errX == nil && errY == nil && bytes.Equal(x, y)
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
