package record

import (
	"context"
	"encoding/base64"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/secure-systems-lab/go-securesystemslib/dsse"

	"ptah.run/ptah/qualification/carryover"
	"ptah.run/ptah/qualification/evidence/dossier"
	"ptah.run/ptah/qualification/evidence/dossier/dossiertest"
	"ptah.run/ptah/qualification/judge"
	"ptah.run/ptah/qualification/profile"
	"ptah.run/ptah/qualification/profile/document"
	"ptah.run/ptah/qualification/verdict"
)

// forged is a record whose holder of the key states what they like: every signature is good.
type forged struct {
	cells   []statement[TestResult]
	summary statement[Summary]
}

// claim makes the forged summary name the forged cells, as a careful forger would.
func (f *forged) claim(t *testing.T) {
	t.Helper()
	f.summary.Predicate.InputAttestations = nil
	for _, cell := range f.cells {
		payload := canonical(t, cell)
		f.summary.Predicate.InputAttestations = append(f.summary.Predicate.InputAttestations,
			Resource{Name: "cell/" + cell.Predicate.Judgement.Cell.Key, Digest: sha256Of(digest(payload))})
	}
}

func (f *forged) exclude(requirements ...profile.Requirement) {
	for _, requirement := range requirements {
		f.summary.Predicate.Exclusions = append(f.summary.Predicate.Exclusions, profile.Exclusion{Requirement: requirement, Scope: "all", Reason: "none"})
	}
}

// annotate changes what the configuration of the cell says.
func (f *forged) annotate(resource, name, value string) {
	for _, candidate := range f.cells[0].Predicate.Configuration {
		if candidate.Name == resource {
			candidate.Annotations[name] = value
		}
	}
}

func (f *forged) relate(a carryover.Ancestry) {
	f.cells[0].Predicate.Ancestry, f.summary.Predicate.Ancestry = &a, &a
}

func canonical(t *testing.T, value any) []byte {
	t.Helper()
	data, err := document.Canonical(value)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

func (f *forged) encode(t *testing.T, signer *Signer) []byte {
	t.Helper()
	r := &Record{MediaType: MediaType, Summary: unsigned(canonical(t, f.summary)), Cells: []dsse.Envelope{}}
	for _, cell := range f.cells {
		r.Cells = append(r.Cells, unsigned(canonical(t, cell)))
	}
	if err := r.Sign(context.Background(), signer); err != nil {
		t.Fatal(err)
	}
	data, err := r.Encode()
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// forge takes a genuine record of a case apart. A second cell is made by copying the first.
func forge(t *testing.T, c *dossiertest.Case) (*forged, *Signer, *Verifier, string) {
	t.Helper()
	run := c.Store(t)
	d, err := dossier.Load(run)
	if err != nil {
		t.Fatal(err)
	}
	r, err := Create(d, Options{Time: time.Unix(1800000000, 0), Version: "test"})
	if err != nil {
		t.Fatal(err)
	}
	o, err := open(r)
	if err != nil {
		t.Fatal(err)
	}
	private, public, err := GenerateKey(Ed25519)
	if err != nil {
		t.Fatal(err)
	}
	signer, err := LoadSigner(private)
	if err != nil {
		t.Fatal(err)
	}
	key, err := LoadVerifier(public)
	if err != nil {
		t.Fatal(err)
	}
	return &forged{cells: o.cells, summary: o.summary}, signer, key, run
}

func failing(t *testing.T) *dossiertest.Case {
	c := dossiertest.Passing(t)
	c.Audit = nil // inconclusive targets
	return c
}

func TestASignedRecordThatContradictsItselfIsRefused(t *testing.T) {
	void := verdict.New(verdict.Void, verdict.Harness, verdict.WitnessMissing, "x", "the fault did not take effect")
	pass := func(f *forged) {
		f.summary.Predicate.Verdict, f.summary.Predicate.VerificationResult = verdict.Passed(), resultPassed
	}
	cases := map[string]struct {
		of    func(*testing.T) *dossiertest.Case
		alter func(*testing.T, *forged)
		want  Code
	}{
		"should refuse a missing cell": {dossiertest.PassingCase, func(_ *testing.T, f *forged) { f.cells = nil }, RefusedCells},
		"should refuse a summary that names no cell": {dossiertest.PassingCase, func(t *testing.T, f *forged) {
			f.cells = nil
			f.claim(t)
		}, RefusedCells},
		"should refuse an additional cell": {dossiertest.PassingCase, func(_ *testing.T, f *forged) { f.cells = append(f.cells, f.cells[0]) }, RefusedCells},
		"should refuse a cell given twice": {dossiertest.PassingCase, func(t *testing.T, f *forged) {
			f.cells = append(f.cells, f.cells[0])
			f.claim(t)
		}, RefusedCells},
		"should refuse a cell exchanged for another one": {dossiertest.PassingCase, func(_ *testing.T, f *forged) {
			f.cells[0].Predicate.Judgement.Root = dossiertest.Digest("9")
		}, RefusedCells},
		"should refuse a cell about another release": {dossiertest.PassingCase, func(t *testing.T, f *forged) {
			f.cells[0].Subject = append([]Resource{}, f.cells[0].Subject[1:]...)
			f.claim(t)
		}, RefusedContradicts},
		"should refuse a cell judged under an older profile": {dossiertest.PassingCase, func(t *testing.T, f *forged) {
			f.cells[0].Predicate.Configuration[0].Annotations["revision"] = "0"
			f.claim(t)
		}, RefusedContradicts},
		"should refuse a void cell stated as passed": {dossiertest.PassingCase, func(t *testing.T, f *forged) {
			f.cells[0].Predicate.Judgement.Verdict = void
			f.claim(t)
		}, RefusedContradicts},
		"should refuse a passed cell with a void scenario in it": {dossiertest.PassingCase, func(t *testing.T, f *forged) {
			f.cells[0].Predicate.Judgement.Scenarios[0].Verdict = void
			f.claim(t)
		}, RefusedContradicts},
		"should refuse an inconclusive cell counted as pass by the summary": {failing, func(_ *testing.T, f *forged) { pass(f) }, RefusedContradicts},
		"should refuse a passed summary over an open requirement": {dossiertest.PassingCase, func(_ *testing.T, f *forged) {
			f.summary.Predicate.Requirements[0].Verdict = void
		}, RefusedContradicts},
		"should refuse a result that is not that of the verdict":                {failing, func(_ *testing.T, f *forged) { f.summary.Predicate.VerificationResult = resultPassed }, RefusedContradicts},
		"should refuse a development record that claims an acceptance":          {dossiertest.PassingCase, func(_ *testing.T, f *forged) { f.summary.Predicate.Acceptance = true }, RefusedContradicts},
		"should refuse a development record dressed as an acceptance statement": {dossiertest.PassingCase, func(_ *testing.T, f *forged) { f.summary.PredicateType = AcceptanceType }, RefusedContradicts},
		"should refuse a record without its notice":                             {dossiertest.PassingCase, func(_ *testing.T, f *forged) { f.summary.Predicate.Notice = "All is well." }, RefusedContradicts},
		"should refuse an exclusion of authorised work":                         {dossiertest.PassingCase, func(_ *testing.T, f *forged) { f.exclude("PA-02") }, RefusedExclusion},
		"should refuse an exclusion of safety through interruption":             {dossiertest.PassingCase, func(_ *testing.T, f *forged) { f.exclude("PA-03") }, RefusedExclusion},
		"should refuse an exclusion of the authority boundaries":                {dossiertest.PassingCase, func(_ *testing.T, f *forged) { f.exclude("PA-05") }, RefusedExclusion},
		"should refuse an exclusion beside one that is allowed":                 {dossiertest.PassingCase, func(_ *testing.T, f *forged) { f.exclude("PA-09", "PA-05") }, RefusedExclusion},
		"should refuse an inconclusive cell stated as passed": {failing, func(t *testing.T, f *forged) {
			f.cells[0].Predicate.Result = resultPassed
			f.claim(t)
		}, RefusedContradicts},
		"should refuse a failed test listed as passed": {failing, func(t *testing.T, f *forged) {
			cell := &f.cells[0].Predicate
			cell.PassedTests, cell.FailedTests = append(cell.PassedTests, cell.FailedTests...), []string{}
			f.claim(t)
		}, RefusedContradicts},
		"should refuse a passed cell without evidence": {dossiertest.PassingCase, func(t *testing.T, f *forged) {
			f.cells[0].Predicate.Judgement.Root = ""
			f.claim(t)
		}, RefusedContradicts},
		"should refuse a cell with the evidence of another run": {dossiertest.PassingCase, func(t *testing.T, f *forged) {
			f.annotate("evidence", "runRoot", dossiertest.Digest("9"))
			f.claim(t)
		}, RefusedContradicts},
		"should refuse a cell of another harness": {dossiertest.PassingCase, func(t *testing.T, f *forged) {
			f.annotate("harness", "dirty", "true")
			f.claim(t)
		}, RefusedContradicts},
		"should refuse a purpose that is not that of the profile": {dossiertest.PassingCase, func(_ *testing.T, f *forged) {
			f.summary.Predicate.Purpose, f.summary.PredicateType = profile.Acceptance, AcceptanceType
			f.summary.Predicate.Notice = notice(profile.Acceptance, true, false)
		}, RefusedContradicts},
		"should refuse an acceptance that binds no manifest and no ancestry": {AcceptanceCase, func(_ *testing.T, f *forged) {
			f.summary.Predicate.Acceptance, f.summary.Predicate.Notice = true, acceptanceNotice
		}, RefusedContradicts},
		"should refuse an ancestry that its commits do not show": {dossiertest.PassingCase, func(t *testing.T, f *forged) {
			f.relate(carryover.Ancestry{Release: "r", Harness: strings.Repeat("c", 40), Changed: []string{}, Verdict: verdict.Passed()})
			f.claim(t)
		}, RefusedContradicts},
		"should refuse an ancestry of a changed tree stated as unchanged": {dossiertest.PassingCase, func(t *testing.T, f *forged) {
			a := carryover.Ancestry{Release: "r", Harness: strings.Repeat("c", 40), Descends: true, Dirty: true, Changed: []string{}}
			a.Verdict = a.Judge()
			f.relate(a)
			f.claim(t)
		}, RefusedContradicts},
		"should refuse an ancestry of another harness": {dossiertest.PassingCase, func(t *testing.T, f *forged) {
			f.relate(carryover.Ancestry{Release: "r", Harness: strings.Repeat("d", 40), Descends: true, Changed: []string{}, Verdict: verdict.Passed()})
			f.claim(t)
		}, RefusedContradicts},
		"should refuse a cell of another ancestry than the summary": {dossiertest.PassingCase, func(t *testing.T, f *forged) {
			a := carryover.Ancestry{Release: "r", Harness: strings.Repeat("c", 40), Descends: true, Changed: []string{}, Verdict: verdict.Passed()}
			f.cells[0].Predicate.Ancestry = &a
			f.claim(t)
		}, RefusedContradicts},
		"should refuse a statement of a foreign kind": {dossiertest.PassingCase, func(_ *testing.T, f *forged) { f.summary.PredicateType = "https://example.com/other" }, RefusedStatement},
		"should refuse a subject without a digest":    {dossiertest.PassingCase, func(_ *testing.T, f *forged) { f.summary.Subject = []Resource{{Name: "ptah/manager"}} }, RefusedStatement},
	}
	for name, test := range cases {
		t.Run(name, func(t *testing.T) {
			f, signer, key, _ := forge(t, test.of(t))
			checks := Checks{Keys: []*Verifier{key}}
			if _, err := Verify(context.Background(), f.encode(t, signer), checks); err != nil {
				t.Fatalf("control: the untouched record must verify: %v", err)
			}
			test.alter(t, f)
			_, err := Verify(context.Background(), f.encode(t, signer), checks)
			var refused *Refusal
			if !errors.As(err, &refused) || refused.Code != test.want {
				t.Errorf("want a refusal %s, got %v", test.want, err)
			}
		})
	}
}

func TestAConsistentLieIsRefusedByJudgingAgain(t *testing.T) {
	lies := map[string]func(*forged){
		"about a verdict": func(f *forged) { // a passing record of a run that did not pass, consistent in itself
			cell := &f.cells[0].Predicate
			for i := range cell.Judgement.Targets {
				cell.Judgement.Targets[i].Verdict = verdict.Passed()
			}
			cell.Judgement.Verdict, cell.Result = verdict.Passed(), resultPassed
			cell.PassedTests, cell.FailedTests = tests(cell.Judgement)
			for i := range f.summary.Predicate.Requirements {
				f.summary.Predicate.Requirements[i].Verdict = verdict.Passed()
			}
			f.summary.Predicate.Verdict, f.summary.Predicate.VerificationResult = verdict.Passed(), resultPassed
		},
		"about the platform": func(f *forged) {
			for i, resource := range f.cells[0].Predicate.Configuration {
				if resource.Name == "platform" {
					f.cells[0].Predicate.Configuration[i].Annotations["execution"] = "emulated"
				}
			}
		},
		"about the limits": func(f *forged) { f.summary.Predicate.NotShown = []string{} },
		"about the harness": func(f *forged) {
			f.summary.Predicate.Harness.Annotations["dirty"] = "true"
			for _, resource := range f.cells[0].Predicate.Configuration {
				if resource.Name == "harness" {
					resource.Annotations["dirty"] = "true"
				}
			}
		},
		"about the cluster": func(f *forged) {
			for i, resource := range f.cells[0].Predicate.Configuration {
				if resource.Name == "cluster" {
					f.cells[0].Predicate.Configuration[i].URI = clusterURI("another")
				}
			}
		},
		"by a dropped requirement": func(f *forged) {
			f.summary.Predicate.Requirements = append([]judge.RequirementVerdict{}, f.summary.Predicate.Requirements[1:]...)
		},
	}
	for name, lie := range lies {
		t.Run(name, func(t *testing.T) {
			f, signer, key, run := forge(t, failing(t))
			lie(f)
			f.claim(t)
			data := f.encode(t, signer)
			if _, err := Verify(context.Background(), data, Checks{Keys: []*Verifier{key}}); err != nil {
				t.Fatalf("control: without the evidence the lie must be consistent: %v", err)
			}
			_, err := Verify(context.Background(), data, Checks{Keys: []*Verifier{key}, Evidence: func() (*dossier.Dossier, error) { return dossier.Load(run) }})
			var refused *Refusal
			if !errors.As(err, &refused) || refused.Code != RefusedJudgement {
				t.Errorf("want a refusal %s, got %v", RefusedJudgement, err)
			}
		})
	}
}

func TestASecondSignatureByAnUnknownKeyIsRefused(t *testing.T) {
	f, signer, key, _ := forge(t, dossiertest.Passing(t))
	r, err := Decode(f.encode(t, signer))
	if err != nil {
		t.Fatal(err)
	}
	r.Summary.Signatures = append(r.Summary.Signatures, dsse.Signature{KeyID: "sha256:other", Sig: base64.StdEncoding.EncodeToString([]byte("other"))})
	data, err := r.Encode()
	if err != nil {
		t.Fatal(err)
	}
	_, err = Verify(context.Background(), data, Checks{Keys: []*Verifier{key}})
	var refused *Refusal
	if !errors.As(err, &refused) || refused.Code != RefusedKey {
		t.Errorf("want a refusal %s, got %v", RefusedKey, err)
	}
}

func TestKeysThatCanNotBeUsedAreRefusedInOneSentence(t *testing.T) {
	private, public, err := GenerateKey(ECDSA)
	if err != nil {
		t.Fatal(err)
	}
	for name, data := range map[string][]byte{"empty": nil, "the public half": public, "two keys": append(append([]byte{}, private...), private...), "garbage": []byte("-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----\n")} {
		if _, err := LoadSigner(data); err == nil {
			t.Errorf("%s: must be refused as a signing key", name)
		}
	}
	if _, err := LoadVerifier(private); err == nil {
		t.Error("a private key must be refused as a verification key")
	}
	if _, _, err := GenerateKey("rsa"); err == nil {
		t.Error("an unknown algorithm must be refused")
	}
}

func FuzzDecode(f *testing.F) {
	f.Add([]byte(`{"mediaType":"` + MediaType + `"}`))
	r := &Record{MediaType: MediaType, Cells: []dsse.Envelope{unsigned([]byte(`{"_type":"x"}`))}, Summary: unsigned([]byte(`{}`))}
	if data, err := r.Encode(); err == nil {
		f.Add(data)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		decoded, err := Decode(data)
		if err != nil {
			return
		}
		again, err := decoded.Encode()
		if err != nil || string(again) != string(data) {
			t.Fatalf("a record that decodes must encode to the same bytes: %v", err)
		}
		if _, err := open(decoded); err == nil {
			return
		}
	})
}
