package record

import (
	"bytes"
	"maps"
	"path"
	"slices"
	"strings"

	"ptah.run/ptah/qualification/carryover"
	"ptah.run/ptah/qualification/evidence/dossier"
	"ptah.run/ptah/qualification/matrix"
	"ptah.run/ptah/qualification/profile"
	"ptah.run/ptah/qualification/profile/document"
)

func (o *opened) acceptance(_ *Verified, checks Checks) error {
	summary := o.summary.Predicate
	switch {
	case !checks.Acceptance || summary.Acceptance:
		return nil
	case summary.Purpose != profile.Acceptance:
		return refused(RefusedPurpose, "the record is of the %s profile %s and can not be an acceptance", summary.Purpose, summary.Policy.Name)
	case !summary.Verdict.Satisfies():
		return refused(RefusedPurpose, "the record does not accept the release: its verdict is %s", summary.Verdict)
	}
	if missing := unbound(o.cells); len(missing) > 0 {
		return refused(RefusedPurpose, "the record does not accept the release: it does not name %s", missing[0])
	}
	return refused(RefusedPurpose, "the record does not accept the release")
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
	if err := o.sameScope(given); err != nil {
		return err
	}
	verified.checked("that the given profile is the one that was judged under")
	return nil
}

// sameScope refuses a record that assesses or excludes something else than the profile declares.
func (o *opened) sameScope(given *profile.Profile) error {
	summary, stated := o.summary.Predicate, []profile.Requirement{}
	for _, requirement := range summary.Requirements {
		stated = append(stated, requirement.Requirement)
	}
	if !slices.Equal(stated, given.Assessed()) {
		return refused(RefusedProfile, "the record gives verdicts for %v, the profile declares %v", stated, given.Assessed())
	}
	if !slices.Equal(summary.Exclusions, given.Exclusions) {
		return refused(RefusedProfile, "the record states %d exclusions that are not the %d of the profile", len(summary.Exclusions), len(given.Exclusions))
	}
	return nil
}

// declared refuses a record without exactly the cells that the given profile and matrices declare.
func (o *opened) declared(verified *Verified, checks Checks) error {
	if checks.Profile == nil || checks.Matrices == nil {
		return nil
	}
	given, err := profile.Decode("the given profile", checks.Profile)
	if err != nil {
		return refused(RefusedProfile, "%v", err)
	}
	expected, err := dossier.Expected(given, checks.Matrices)
	if err != nil {
		return refused(RefusedCells, "the declared cells can not be told: %v", err)
	}
	for _, cell := range expected {
		if !slices.ContainsFunc(o.cells, func(s statement[TestResult]) bool { return sameCell(s.Predicate.Judgement.Cell, cell) }) {
			return refused(RefusedCells, "cell %s of matrix %s is declared and the record does not have it", cell.Key, cell.Matrix)
		}
	}
	for _, s := range o.cells {
		judged := s.Predicate.Judgement.Cell
		if !slices.ContainsFunc(expected, func(cell matrix.Cell) bool { return sameCell(judged, cell) }) {
			return refused(RefusedCells, "the record has a cell %s that matrix %s does not declare at the covered depth", judged.Key, judged.Matrix)
		}
	}
	verified.checked("that the record has exactly the %d declared cells", len(expected))
	return nil
}

func sameCell(a, b matrix.Cell) bool { return a.Key == b.Key && a.Matrix == b.Matrix }

// manifest checks that the given release manifest is the one that is bound, and that it names what was tested.
func (o *opened) manifest(verified *Verified, checks Checks) error {
	if checks.Manifest == nil {
		return nil
	}
	at := slices.IndexFunc(o.summary.Subject, func(resource Resource) bool { return resource.Name == manifestSubject })
	if at < 0 {
		return refused(RefusedManifest, "the record binds no release manifest, so that the given one says nothing about it")
	}
	if !maps.Equal(o.summary.Subject[at].Digest, sha256Of(digest(checks.Manifest))) {
		return refused(RefusedManifest, "the given release manifest has the digest %s, the record binds sha256:%s", digest(checks.Manifest), o.summary.Subject[at].Digest["sha256"])
	}
	if err := namesAll(checks.Manifest, o.summary.Subject, o.summary.Predicate.Ancestry); err != nil {
		return refused(RefusedManifest, "%v", err)
	}
	verified.checked("that the given release manifest is the one the record binds, and names every digest that was tested")
	return nil
}

// ancestry asks git again.
func (o *opened) ancestry(verified *Verified, checks Checks) error {
	if checks.Ancestry == nil {
		return nil
	}
	stated := o.summary.Predicate.Ancestry
	if stated == nil {
		return refused(RefusedAncestry, "the record does not say how its harness relates to the release, so that a repository proves nothing about it")
	}
	found, err := checks.Ancestry(stated.Release, stated.Harness)
	if err != nil {
		return refused(RefusedAncestry, "the given repository can not tell how harness %s relates to release %s: %v", stated.Harness, stated.Release, err)
	}
	found.Dirty = stated.Dirty // git does not remember that a tree was changed
	found.Verdict = found.Judge()
	if !sameJSON(found, stated) {
		return refused(RefusedAncestry, "the record says of the ancestry of harness %s: %s, by the given repository and its list of what is shipped it is: %s", stated.Harness, stated.Verdict, found.Verdict)
	}
	verified.checked("with git how the commit of the harness relates to that of the release: %s", found.Verdict)
	return nil
}

// evidence loads the evidence and judges it again.
func (o *opened) evidence(verified *Verified, checks Checks) error {
	if checks.Evidence == nil {
		return nil
	}
	d, err := checks.Evidence()
	if err != nil {
		return refused(RefusedEvidence, "%v", err)
	}
	summary := o.summary.Predicate
	if !maps.Equal(summary.Evidence.Digest, sha256Of(d.Root)) {
		return refused(RefusedEvidence, "the given run is %s with root %s, the record is about %s with root sha256:%s", d.RunID, d.Root, summary.Evidence.Name, summary.Evidence.Digest["sha256"])
	}
	options := claimed(o.summary.Subject, summary.Ancestry)
	options.Time, options.Version, options.reports = summary.TimeVerified, summary.Verifier["version"], summary.Reports
	again, err := build(d, d.Judge(), options)
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
	verified.checked("every byte of run %s, and that judging it again gives the same verdicts", d.RunID)
	return nil
}

// claimed are the options that give the claims back which are not in the evidence. Other checks are about these.
func claimed(subject []Resource, ancestry *carryover.Ancestry) Options {
	options := Options{Ancestry: ancestry}
	for _, resource := range subject {
		if resource.Name == manifestSubject {
			options.manifest = "sha256:" + resource.Digest["sha256"]
		}
	}
	return options
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
	if checks.Reports == nil {
		return nil
	}
	for _, report := range o.summary.Predicate.Reports {
		if path.Base(report.Name) != report.Name || strings.Contains(report.Name, `\`) {
			return refused(RefusedReport, "the record names a report %.80q, which is no file name", report.Name)
		}
		data, err := checks.Reports(report.Name)
		if err != nil {
			return refused(RefusedReport, "the report %s that the record binds can not be read: %v", report.Name, err)
		}
		if !maps.Equal(report.Digest, sha256Of(digest(data))) {
			return refused(RefusedReport, "the report %s was altered: it is not the one the record binds", report.Name)
		}
	}
	verified.checked("that %d report files are the ones rendered from this judgement", len(o.summary.Predicate.Reports))
	return nil
}

// sameJSON compares two values by what they say.
func sameJSON(a, b any) bool {
	x, errX := document.Canonical(a)
	y, errY := document.Canonical(b)
	return errX == nil && errY == nil && bytes.Equal(x, y)
}
