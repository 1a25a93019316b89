package record

import (
	"encoding/json"
	"fmt"
	"slices"
	"sort"
	"strings"
	"time"

	"ptah.run/ptah/qualification/carryover"
	"ptah.run/ptah/qualification/evidence/dossier"
	"ptah.run/ptah/qualification/judge"
	"ptah.run/ptah/qualification/profile"
	"ptah.run/ptah/qualification/verdict"
)

// Types of statements and predicates.
const (
	StatementType      = "https://in-toto.io/Statement/v1"
	PayloadType        = "application/vnd.in-toto+json"
	TestResultType     = "https://in-toto.io/attestation/test-result/v0.1"
	AcceptanceType     = "https://ptah.run/attestation/acceptance/v1"
	QualificationType  = "https://ptah.run/attestation/qualification/v1" // of a development profile: says that it is no acceptance
	verifierIdentity   = "https://ptah.run/qualification"
	resultPassed       = "PASSED"
	resultFailed       = "FAILED"
	noAcceptanceNotice = "The profile is for development: whatever the result, this record is no acceptance and must not be used as one."
	acceptanceNotice   = "The release named as subject is accepted for the profile named as policy, within the exclusions of that profile."
	rejectionNotice    = "The release named as subject is not accepted: not everything the profile demands was shown."
	unboundNotice      = "The release named as subject is not accepted: the profile was met, and the record does not bind all that an acceptance must name."
)

// Resource is an in-toto resource descriptor.
type Resource struct {
	Name        string            `json:"name,omitempty"`
	URI         string            `json:"uri,omitempty"`
	Digest      map[string]string `json:"digest,omitempty"`
	Annotations map[string]string `json:"annotations,omitempty"`
}

// statement is an in-toto statement with a predicate of type P.
type statement[P any] struct {
	Type          string     `json:"_type"`
	Subject       []Resource `json:"subject"`
	PredicateType string     `json:"predicateType"`
	Predicate     P          `json:"predicate"`
}

// TestResult is the predicate of a cell: in-toto's test result, with the verdicts and the ancestry of the harness as
// additional fields.
type TestResult struct {
	Result        string              `json:"result"`
	Configuration []Resource          `json:"configuration"`
	PassedTests   []string            `json:"passedTests"`
	WarnedTests   []string            `json:"warnedTests"`
	FailedTests   []string            `json:"failedTests"`
	Judgement     judge.CellJudgement `json:"judgement"`
	Ancestry      *carryover.Ancestry `json:"ancestry,omitempty"`
}

// Summary is the predicate of the statement over all cells. Its fields follow the verification summary of SLSA where
// that has a field for it.
type Summary struct {
	Verifier           map[string]string          `json:"verifier"`
	TimeVerified       time.Time                  `json:"timeVerified"`
	Purpose            profile.Purpose            `json:"purpose"`
	Acceptance         bool                       `json:"acceptance"`
	Notice             string                     `json:"notice"`
	Policy             Resource                   `json:"policy"`
	InputAttestations  []Resource                 `json:"inputAttestations"` // the statements of the cells, by the sha256 of their bytes
	VerificationResult string                     `json:"verificationResult"`
	Verdict            verdict.Verdict            `json:"verdict"`
	Requirements       []judge.RequirementVerdict `json:"requirements"`
	NotAssessed        []profile.Requirement      `json:"notAssessed"`
	Exclusions         []profile.Exclusion        `json:"exclusions"`
	NotShown           []string                   `json:"notShown"`
	Evidence           Resource                   `json:"evidence"`
	Harness            Resource                   `json:"harness"`
	Reports            []Resource                 `json:"reports"` // files rendered from the same judgement, by digest
	Ancestry           *carryover.Ancestry        `json:"ancestry,omitempty"`
}

// cellStatements builds the statements of the cells. A cell without evidence has a statement too: its subject is the
// release of the run, and its result is that it failed to show anything.
func cellStatements(d *dossier.Dossier, judgement judge.Judgement, subject []Resource, options Options) ([]statement[TestResult], error) {
	if options.Ancestry != nil {
		if err := options.aboutThisHarness(d); err != nil {
			return nil, err
		}
	}
	var statements []statement[TestResult]
	for _, cell := range judgement.Cells {
		predicate := TestResult{Result: result(cell.Verdict), Configuration: configuration(d, judgement, cell), Judgement: cell, WarnedTests: []string{}, Ancestry: options.Ancestry}
		predicate.PassedTests, predicate.FailedTests = tests(cell)
		statements = append(statements, statement[TestResult]{Type: StatementType, Subject: subject, PredicateType: TestResultType, Predicate: predicate})
	}
	return statements, nil
}

// aboutThisHarness refuses an ancestry of other commits than those of the evidence.
func (o Options) aboutThisHarness(d *dossier.Dossier) error {
	a := o.Ancestry
	if a.Harness != d.Harness.Commit || a.Dirty != d.Harness.Dirty {
		return fmt.Errorf("the ancestry is that of harness %q, the run was made by %s", a.Harness, d.Harness)
	}
	for _, cell := range d.Cells {
		if known := cell.Release.Commit; known != "" && known != a.Release {
			return fmt.Errorf("cell %s tested a release built from commit %s, the ancestry is that of %q", cell.Evidence.Cell, known, a.Release)
		}
	}
	return nil
}

// tests lists what a cell showed and what it did not, in the terms of in-toto.
func tests(cell judge.CellJudgement) (passed, failed []string) {
	passed, failed = []string{}, []string{}
	add := func(name string, v verdict.Verdict) {
		if v.Satisfies() {
			passed = append(passed, name)
		} else {
			failed = append(failed, name)
		}
	}
	for _, s := range cell.Scenarios {
		add("scenario/"+s.Scenario, s.Verdict)
	}
	for _, t := range cell.Targets {
		add("target/"+t.Target, t.Verdict)
	}
	return passed, failed
}

// configuration lists what the cell was run with.
func configuration(d *dossier.Dossier, judgement judge.Judgement, cell judge.CellJudgement) []Resource {
	list := []Resource{policy(d, judgement), harness(d), {Name: "cell", Annotations: cellAnnotations(cell), Digest: sha256Of(cell.InputDigest)}}
	file, err := d.Cell(cell.Cell.Key)
	if err != nil {
		return list
	}
	inputs, lab := file.Evidence.Inputs, file.Lab
	list = append(list,
		Resource{Name: "evidence", Digest: sha256Of(cell.Root), Annotations: map[string]string{"run": d.RunID, "runRoot": d.Root}},
		Resource{Name: "cluster", URI: clusterURI(lab.ClusterUID), Annotations: map[string]string{"lab": lab.ID, "kubernetes": lab.KubernetesVersion,
			"controlPlanes": fmt.Sprint(inputs.ControlPlanes), "workers": fmt.Sprint(inputs.Workers)}},
		Resource{Name: "platform", Annotations: map[string]string{"platform": inputs.Platform, "execution": execution(inputs.Native), "imageSource": inputs.ImageSource}},
		Resource{Name: "matrix", Digest: sha256Of(inputs.Matrix)},
		Resource{Name: "suite", Digest: sha256Of(inputs.Suite)})
	for _, role := range sortedKeys(inputs.LabImages) {
		image := lab.Images[role]
		list = append(list, Resource{Name: "lab-image/" + role, Digest: sha256Of(inputs.LabImages[role]), Annotations: map[string]string{"source": image.Source, "version": image.Version}})
	}
	return list
}

func cellAnnotations(cell judge.CellJudgement) map[string]string {
	annotations := map[string]string{"key": cell.Cell.Key, "matrix": cell.Cell.Matrix}
	for axis, value := range cell.Cell.Axes {
		annotations["axis."+axis] = value
	}
	return annotations
}

// Prefixes of the names that statements give.
const (
	clusterScheme = "urn:uuid:"
	imagePrefix   = "ptah/"
	chartPrefix   = "chart/"
	profilePrefix = "profile/"
)

// clusterURI names a cluster by the UID of its namespace kube-system.
func clusterURI(uid string) string { return clusterScheme + uid }

func execution(native bool) string {
	if native {
		return "native"
	}
	return "emulated"
}

func policy(d *dossier.Dossier, judgement judge.Judgement) Resource {
	identity := judgement.Profile
	return Resource{Name: profilePrefix + identity.Name, Digest: sha256Of(identity.Digest), Annotations: map[string]string{
		"revision": fmt.Sprint(identity.Revision), "purpose": string(identity.Purpose), "fileDigest": d.ProfileFile}}
}

func harness(d *dossier.Dossier) Resource {
	resource := Resource{Name: "harness", Annotations: map[string]string{"dirty": fmt.Sprint(d.Harness.Dirty), "version": d.Harness.Version}}
	if d.Harness.Commit != "" {
		resource.Digest = map[string]string{"gitCommit": d.Harness.Commit}
	}
	return resource
}

// release returns the subjects: the images and the chart that were tested, and the manifest that names them. Every
// cell must have tested the same.
func release(d *dossier.Dossier, options Options) ([]Resource, error) {
	if len(d.Cells) == 0 {
		return nil, fmt.Errorf("run %s has no finished cell, so there is nothing a record could be about", d.RunID)
	}
	first := d.Cells[0].Release
	for _, cell := range d.Cells[1:] {
		if fmt.Sprint(cell.Release) != fmt.Sprint(first) {
			return nil, fmt.Errorf("cells %s and %s tested different releases, one record is about one release", d.Cells[0].Evidence.Cell, cell.Evidence.Cell)
		}
	}
	var subject []Resource
	for _, role := range sortedKeys(first.Images) {
		subject = append(subject, Resource{Name: imagePrefix + role, Digest: sha256Of(first.Images[role])})
	}
	subject = append(subject, Resource{Name: chartPrefix + "ptah-operator", Digest: sha256Of(first.ChartDigest), Annotations: map[string]string{"version": first.ChartVersion}})
	for _, resource := range subject {
		if resource.Digest == nil {
			return nil, fmt.Errorf("the release names no sha256 digest for %s, and only what is named by digest can be recorded", resource.Name)
		}
	}
	if options.Manifest != nil {
		if err := namesAll(options.Manifest, subject, options.Ancestry); err != nil {
			return nil, err
		}
	}
	if options.manifest != "" {
		subject = append(subject, Resource{Name: manifestSubject, Digest: sha256Of(options.manifest)})
	}
	return subject, nil
}

// summaryStatement builds the statement over all cells. Payloads are the bytes of their statements, in order.
func summaryStatement(d *dossier.Dossier, judgement judge.Judgement, cells []statement[TestResult], payloads [][]byte, options Options) statement[Summary] {
	purpose := judgement.Profile.Purpose
	passed, bound := judgement.Verdict.Satisfies(), len(unbound(cells)) == 0
	summary := Summary{
		Verifier:     map[string]string{"id": verifierIdentity, "version": options.Version},
		TimeVerified: options.Time.UTC().Truncate(time.Second),
		Purpose:      purpose, Acceptance: passed && bound && purpose == profile.Acceptance, Notice: notice(purpose, passed, bound),
		Policy: policy(d, judgement), VerificationResult: result(judgement.Verdict), Verdict: judgement.Verdict,
		Requirements: judgement.Requirements, NotAssessed: d.Profile.NotAssessed(), Exclusions: slices.Clone(d.Profile.Exclusions), NotShown: d.Profile.NotShown,
		Evidence: Resource{Name: "run/" + d.RunID, Digest: sha256Of(d.Root)}, Harness: harness(d), Reports: options.reports, Ancestry: options.Ancestry,
	}
	for i, cell := range cells {
		summary.InputAttestations = append(summary.InputAttestations, Resource{Name: "cell/" + cell.Predicate.Judgement.Cell.Key, Digest: sha256Of(digest(payloads[i]))})
	}
	kind := QualificationType
	if purpose == profile.Acceptance {
		kind = AcceptanceType
	}
	made := statement[Summary]{Type: StatementType, PredicateType: kind, Predicate: summary}
	if len(cells) > 0 {
		made.Subject = cells[0].Subject
	}
	return made
}

func notice(purpose profile.Purpose, passed, bound bool) string {
	switch {
	case purpose != profile.Acceptance:
		return noAcceptanceNotice
	case !passed:
		return rejectionNotice
	case !bound:
		return unboundNotice
	default:
		return acceptanceNotice
	}
}

func result(v verdict.Verdict) string {
	if v.Satisfies() {
		return resultPassed
	}
	return resultFailed
}

// sha256Of turns "sha256:hex" into the digest set of a resource descriptor, and nil where there is no digest.
func sha256Of(digest string) map[string]string {
	hex, ok := strings.CutPrefix(digest, "sha256:")
	if !ok || len(hex) != 64 {
		return nil
	}
	return map[string]string{"sha256": hex}
}

func sortedKeys[V any](m map[string]V) []string {
	keys := make([]string, 0, len(m))
	for key := range m {
		keys = append(keys, key)
	}
	sort.Strings(keys)
	return keys
}

func decodeStatement[P any](data []byte) (statement[P], error) {
	var s statement[P]
	if err := json.Unmarshal(data, &s); err != nil {
		return s, fmt.Errorf("it is no statement: %w", err)
	}
	return s, nil
}
