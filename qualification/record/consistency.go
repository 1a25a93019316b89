package record

import (
	"fmt"
	"maps"
	"slices"

	"ptah.run/ptah/qualification/profile"
	"ptah.run/ptah/qualification/verdict"
)

// consistent refuses a record that contradicts itself, whoever signed it.
func (o *opened) consistent() error {
	if err := o.sameCells(); err != nil {
		return err
	}
	verdicts := []verdict.Verdict{}
	for _, cell := range o.cells {
		if err := o.sameRun(cell); err != nil {
			return err
		}
		if err := consistentCell(cell.Predicate); err != nil {
			return err
		}
		verdicts = append(verdicts, cell.Predicate.Judgement.Verdict)
	}
	return o.consistentSummary(verdicts)
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

// sameRun refuses a cell that is not of the release, the profile, the harness and the run that the summary is about.
func (o *opened) sameRun(cell statement[TestResult]) error {
	summary, key := o.summary.Predicate, cell.Predicate.Judgement.Cell.Key
	carries := func(wanted Resource) bool {
		return slices.ContainsFunc(cell.Predicate.Configuration, func(resource Resource) bool { return sameJSON(resource, wanted) })
	}
	switch {
	case !sameJSON(cell.Subject, o.summary.Subject):
		return refused(RefusedContradicts, "cell %s is about another release than the summary", key)
	case !carries(summary.Policy):
		return refused(RefusedContradicts, "cell %s was judged under another profile than the summary names", key)
	case !carries(summary.Harness):
		return refused(RefusedContradicts, "cell %s was run by another harness than the summary names", key)
	case !sameJSON(cell.Predicate.Ancestry, summary.Ancestry):
		return refused(RefusedContradicts, "cell %s states another ancestry of the harness than the summary", key)
	}
	facts := (&VerifiedCell{TestResult: cell.Predicate, Subject: cell.Subject}).Facts()
	if facts.Root != "" && !maps.Equal(sha256Of(facts.Run), summary.Evidence.Digest) {
		return refused(RefusedContradicts, "the evidence of cell %s is of the run %s and not of the run that the summary names", key, facts.Run)
	}
	if a := cell.Predicate.Ancestry; a != nil && (a.Harness != summary.Harness.Digest["gitCommit"] || fmt.Sprint(a.Dirty) != summary.Harness.Annotations["dirty"]) {
		return refused(RefusedContradicts, "the ancestry is that of the harness %q, the record was made by %q", a.Harness, summary.Harness.Digest["gitCommit"])
	}
	return nil
}

// consistentCell refuses a cell whose result is better than its parts, or than the evidence it names.
func consistentCell(cell TestResult) error {
	judged := cell.Judgement
	if cell.Result != result(judged.Verdict) {
		return refused(RefusedContradicts, "cell %s is stated as %s and its verdict is %s", judged.Cell.Key, cell.Result, judged.Verdict)
	}
	if judged.Verdict.Satisfies() && sha256Of(judged.Root) == nil {
		return refused(RefusedContradicts, "cell %s is stated as passed and names no evidence", judged.Cell.Key)
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
	passed, failed := tests(judged)
	if !slices.Equal(passed, cell.PassedTests) || !slices.Equal(failed, cell.FailedTests) {
		return refused(RefusedContradicts, "cell %s lists other tests as passed than its verdicts say", judged.Cell.Key)
	}
	if a := cell.Ancestry; a != nil && !sameJSON(a.Judge(), a.Verdict) {
		return refused(RefusedContradicts, "cell %s states the ancestry of the harness as %s, what it states of the commits comes to %s", judged.Cell.Key, a.Verdict, a.Judge())
	}
	return nil
}

func (o *opened) consistentSummary(verdicts []verdict.Verdict) error {
	summary := o.summary.Predicate
	for _, requirement := range summary.Requirements {
		verdicts = append(verdicts, requirement.Verdict)
	}
	if whole := verdict.Aggregate(verdicts...); verdict.Worse(whole, summary.Verdict) {
		return refused(RefusedContradicts, "the record has the verdict %s, its cells and requirements come to %s", summary.Verdict, whole)
	}
	passed, missing := summary.Verdict.Satisfies(), unbound(o.cells)
	switch {
	case summary.VerificationResult != result(summary.Verdict):
		return refused(RefusedContradicts, "the record is stated as %s and its verdict is %s", summary.VerificationResult, summary.Verdict)
	case string(summary.Purpose) != summary.Policy.Annotations["purpose"]:
		return refused(RefusedContradicts, "the record states the purpose %s, its profile is for %s", summary.Purpose, summary.Policy.Annotations["purpose"])
	case summary.Acceptance && (summary.Purpose != profile.Acceptance || !passed):
		return refused(RefusedContradicts, "the record claims an acceptance that its %s profile and its verdict %s do not allow", summary.Purpose, summary.Verdict)
	case summary.Acceptance && len(missing) > 0:
		return refused(RefusedContradicts, "the record claims an acceptance and does not name %s", missing[0])
	case (o.summary.PredicateType == AcceptanceType) != (summary.Purpose == profile.Acceptance):
		return refused(RefusedContradicts, "a record of the purpose %s has the wrong kind of statement", summary.Purpose)
	case summary.Notice != notice(summary.Purpose, passed, len(missing) == 0):
		return refused(RefusedContradicts, "the record does not say plainly what it is: its notice is not that of its purpose and verdict")
	}
	for _, exclusion := range summary.Exclusions {
		if !exclusion.Requirement.Excludable() {
			return refused(RefusedExclusion, "the record excludes %s, which may never be excluded", exclusion.Requirement)
		}
	}
	return nil
}
