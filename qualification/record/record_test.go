package record_test

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"ptah.run/ptah/qualification/evidence/dossier"
	"ptah.run/ptah/qualification/evidence/dossier/dossiertest"
	"ptah.run/ptah/qualification/record"
	"ptah.run/ptah/qualification/report"
)

// signed is a run with its record, reports and key.
type signed struct {
	run, reports string
	profile      []byte
	data         []byte
	key          *record.Verifier
}

func sign(t *testing.T, c *dossiertest.Case, algorithm string) signed {
	t.Helper()
	return signRun(t, c.Store(t), c.Profile, algorithm)
}

func signRun(t *testing.T, run string, profile []byte, algorithm string) signed {
	t.Helper()
	d, err := dossier.Load(run)
	if err != nil {
		t.Fatal(err)
	}
	private, public, err := record.GenerateKey(algorithm)
	if err != nil {
		t.Fatal(err)
	}
	signer, err := record.LoadSigner(private)
	if err != nil {
		t.Fatal(err)
	}
	r, err := record.Create(d, record.Options{Time: dossiertest.At(900), Version: "test"})
	if err != nil {
		t.Fatal(err)
	}
	if err := r.Sign(context.Background(), signer); err != nil {
		t.Fatal(err)
	}
	s := signed{run: run, reports: t.TempDir(), profile: profile}
	if s.data, err = r.Encode(); err != nil {
		t.Fatal(err)
	}
	if s.key, err = record.LoadVerifier(public); err != nil {
		t.Fatal(err)
	}
	files, err := report.Files(report.Build(d, d.Judge()))
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		if err := os.WriteFile(filepath.Join(s.reports, file.Name), file.Data, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return s
}

func (s signed) checks() record.Checks {
	return record.Checks{Keys: []*record.Verifier{s.key}, Evidence: evidenceIn(s.run), Profile: s.profile, Reports: reportsIn(s.reports)}
}

func evidenceIn(dir string) func() (*dossier.Dossier, error) {
	return func() (*dossier.Dossier, error) { return dossier.Load(dir) }
}

func reportsIn(dir string) func(string) ([]byte, error) {
	return func(name string) ([]byte, error) { return os.ReadFile(filepath.Join(dir, name)) }
}

func refusal(t *testing.T, err error) record.Code {
	t.Helper()
	var refused *record.Refusal
	if !errors.As(err, &refused) {
		t.Fatalf("want a refusal, got %v", err)
	}
	if strings.ContainsAny(refused.Message, "\n") || refused.Message == "" {
		t.Errorf("a refusal is one sentence, got %q", refused.Message)
	}
	return refused.Code
}

func TestRecordOfAPassingRunVerifiesWithBothKindsOfKeys(t *testing.T) {
	for _, algorithm := range []string{record.Ed25519, record.ECDSA} {
		s := sign(t, dossiertest.Passing(t), algorithm)
		verified, err := record.Verify(context.Background(), s.data, s.checks())
		if err != nil {
			t.Fatalf("%s: %v", algorithm, err)
		}
		if !verified.Summary.Verdict.Satisfies() || verified.Summary.Acceptance || len(verified.Checked) != 4 {
			t.Errorf("%s: verdict %s, acceptance %v, checked %q", algorithm, verified.Summary.Verdict, verified.Summary.Acceptance, verified.Checked)
		}
		if !strings.Contains(verified.Summary.Notice, "no acceptance") {
			t.Errorf("%s: a development record must say plainly that it is no acceptance, it says %q", algorithm, verified.Summary.Notice)
		}
	}
}

func TestEveryFlippedByteOfARecordIsRefused(t *testing.T) {
	s := sign(t, dossiertest.Passing(t), record.Ed25519)
	checks := record.Checks{Keys: []*record.Verifier{s.key}}
	if _, err := record.Verify(context.Background(), s.data, checks); err != nil {
		t.Fatalf("control: the untouched record must verify: %v", err)
	}
	inPayload := false
	for i := range s.data {
		if s.data[i] == '"' {
			inPayload = strings.HasPrefix(string(s.data[max(0, i-len(`"payload": `)):i]), `"payload": `)
		}
		// Payloads are covered by one signature each, a part of their bytes is enough.
		if inPayload && i%23 != 0 {
			continue
		}
		altered := append([]byte(nil), s.data...)
		altered[i] ^= 1 << (i % 8)
		if _, err := record.Verify(context.Background(), altered, checks); err == nil {
			t.Fatalf("byte %d (%q) was flipped to %q and the record still verifies", i, s.data[i], altered[i])
		}
	}
}

func TestEveryFlippedBitOfASignatureIsRefused(t *testing.T) {
	for _, algorithm := range []string{record.Ed25519, record.ECDSA} {
		s := sign(t, dossiertest.Passing(t), algorithm)
		checks := record.Checks{Keys: []*record.Verifier{s.key}}
		from := strings.Index(string(s.data), `"signatures"`)
		to := from + strings.Index(string(s.data[from:]), `]`)
		for i := from; i < to; i++ {
			for bit := range 8 {
				altered := append([]byte(nil), s.data...)
				altered[i] ^= 1 << bit
				if _, err := record.Verify(context.Background(), altered, checks); err == nil {
					t.Fatalf("%s: bit %d of byte %d (%q) was flipped and the record still verifies", algorithm, bit, i, s.data[i])
				}
			}
		}
	}
}

func TestAFlippedByteOfTheProfileIsRefusedCommentsIncluded(t *testing.T) {
	s := sign(t, dossiertest.Passing(t), record.Ed25519)
	for i := 0; i < len(s.profile); i += 13 {
		checks := record.Checks{Keys: []*record.Verifier{s.key}, Profile: append([]byte(nil), s.profile...)}
		checks.Profile[i] ^= 1
		_, err := record.Verify(context.Background(), s.data, checks)
		if code := refusal(t, err); code != record.RefusedProfile {
			t.Fatalf("byte %d: refused as %s", i, code)
		}
	}
}

func TestAFlippedByteInAnyFileOfTheEvidenceOrTheReportsIsRefused(t *testing.T) {
	s := sign(t, dossiertest.Passing(t), record.Ed25519)
	for dir, want := range map[string]record.Code{s.run: record.RefusedEvidence, s.reports: record.RefusedReport} {
		files := 0
		err := filepath.WalkDir(dir, func(path string, item os.DirEntry, err error) error {
			if err != nil || item.IsDir() {
				return err
			}
			files++
			flip(t, path, func() {
				_, err := record.Verify(context.Background(), s.data, s.checks())
				if code := refusal(t, err); code != want {
					t.Errorf("%s: refused as %s, want %s", path, code, want)
				}
			})
			return nil
		})
		if err != nil || files < 4 {
			t.Fatalf("%d files seen, %v", files, err)
		}
	}
	if _, err := record.Verify(context.Background(), s.data, s.checks()); err != nil {
		t.Fatalf("control: everything restored must verify: %v", err)
	}
}

// flip changes one byte in the middle of a file while during runs.
func flip(t *testing.T, path string, during func()) {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(path, 0o644); err != nil {
		t.Fatal(err)
	}
	altered := append([]byte(nil), data...)
	altered[len(altered)/2] ^= 1
	if err := os.WriteFile(path, altered, 0o644); err != nil {
		t.Fatal(err)
	}
	during()
	if err := os.WriteFile(path, data, 0o644); err != nil {
		t.Fatal(err)
	}
}

func TestAnAdditionalAndAMissingFileOfTheEvidenceAreRefused(t *testing.T) {
	s := sign(t, dossiertest.Passing(t), record.Ed25519)
	extra := filepath.Join(s.run, "objects", "sha256", "more")
	if err := os.WriteFile(extra, []byte("x"), 0o644); err != nil {
		t.Fatal(err)
	}
	_, err := record.Verify(context.Background(), s.data, s.checks())
	if code := refusal(t, err); code != record.RefusedEvidence {
		t.Errorf("an additional file is refused as %s", code)
	}
	if err := os.Remove(extra); err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(filepath.Join(s.run, "journal.jsonl")); err != nil {
		t.Fatal(err)
	}
	_, err = record.Verify(context.Background(), s.data, s.checks())
	if code := refusal(t, err); code != record.RefusedEvidence {
		t.Errorf("a missing file is refused as %s", code)
	}
}

func TestRefusals(t *testing.T) {
	other := func(t *testing.T) signed {
		c := dossiertest.Passing(t)
		c.Facts.Lab.ClusterUID = "11111111-2222-3333-4444-555555555555"
		return sign(t, c, record.Ed25519)
	}
	cases := map[string]struct {
		alter func(t *testing.T, s *signed, checks *record.Checks)
		want  record.Code
	}{
		"should refuse a signature by a key that was not given": {func(t *testing.T, s *signed, checks *record.Checks) {
			checks.Keys = []*record.Verifier{other(t).key}
		}, record.RefusedKey},
		"should refuse when no key is given at all": {func(_ *testing.T, _ *signed, checks *record.Checks) { checks.Keys = nil }, record.RefusedKey},
		"should refuse the evidence of another cluster": {func(t *testing.T, _ *signed, checks *record.Checks) {
			checks.Evidence = evidenceIn(other(t).run)
		}, record.RefusedEvidence},
		"should refuse a folder that holds no run": {func(t *testing.T, _ *signed, checks *record.Checks) { checks.Evidence = evidenceIn(t.TempDir()) }, record.RefusedEvidence},
		"should refuse another profile": {func(_ *testing.T, s *signed, checks *record.Checks) {
			checks.Profile = []byte(strings.Replace(string(s.profile), "atMost: 25", "atMost: 26", 1))
		}, record.RefusedProfile},
		"should refuse a profile that is no profile": {func(_ *testing.T, _ *signed, checks *record.Checks) { checks.Profile = []byte("x: [") }, record.RefusedProfile},
		"should refuse the reports of another run": {func(t *testing.T, _ *signed, checks *record.Checks) {
			checks.Reports = reportsIn(other(t).reports)
		}, record.RefusedReport},
		"should refuse reports that are missing": {func(t *testing.T, _ *signed, checks *record.Checks) { checks.Reports = reportsIn(t.TempDir()) }, record.RefusedReport},
		"should refuse a development record offered as acceptance": {func(_ *testing.T, _ *signed, checks *record.Checks) {
			checks.Acceptance = true
		}, record.RefusedPurpose},
		"should refuse a file that is no record": {func(_ *testing.T, s *signed, _ *record.Checks) { s.data = []byte(`{"mediaType":"x"}`) }, record.RefusedAltered},
		"should refuse a record with its lines joined": {func(_ *testing.T, s *signed, _ *record.Checks) {
			s.data = []byte(strings.ReplaceAll(string(s.data), "\n", " "))
		}, record.RefusedAltered},
		"should refuse an empty file": {func(_ *testing.T, s *signed, _ *record.Checks) { s.data = nil }, record.RefusedAltered},
	}
	for name, test := range cases {
		t.Run(name, func(t *testing.T) {
			s := sign(t, dossiertest.Passing(t), record.Ed25519)
			checks := s.checks()
			test.alter(t, &s, &checks)
			_, err := record.Verify(context.Background(), s.data, checks)
			if code := refusal(t, err); code != test.want {
				t.Errorf("refused as %s (%v), want %s", code, err, test.want)
			}
		})
	}
}

func TestAnUnsignedRecordIsRefusedAndASignedOneIsNotSignedAgain(t *testing.T) {
	c := dossiertest.Passing(t)
	d, err := dossier.Load(c.Store(t))
	if err != nil {
		t.Fatal(err)
	}
	r, err := record.Create(d, record.Options{Time: time.Unix(0, 0)})
	if err != nil {
		t.Fatal(err)
	}
	data, err := r.Encode()
	if err != nil {
		t.Fatal(err)
	}
	private, public, err := record.GenerateKey(record.Ed25519)
	if err != nil {
		t.Fatal(err)
	}
	key, err := record.LoadVerifier(public)
	if err != nil {
		t.Fatal(err)
	}
	_, err = record.Verify(context.Background(), data, record.Checks{Keys: []*record.Verifier{key}})
	if code := refusal(t, err); code != record.RefusedUnsigned {
		t.Errorf("refused as %s", code)
	}
	signer, err := record.LoadSigner(private)
	if err != nil {
		t.Fatal(err)
	}
	if err := r.Sign(context.Background(), signer); err != nil {
		t.Fatal(err)
	}
	if err := r.Sign(context.Background(), signer); err == nil {
		t.Error("signing twice must be refused")
	}
}

func TestARecordOfAFailedRunIsGenuineAndSaysSo(t *testing.T) {
	c := dossiertest.Passing(t)
	c.Ledger = c.Ledger[:len(c.Ledger)/2]
	s := sign(t, c, record.Ed25519)
	verified, err := record.Verify(context.Background(), s.data, s.checks())
	if err != nil {
		t.Fatal(err)
	}
	if verified.Summary.Verdict.Satisfies() || verified.Summary.VerificationResult != "FAILED" || verified.Cells[0].Result != "FAILED" {
		t.Errorf("verdict %s, result %s", verified.Summary.Verdict, verified.Summary.VerificationResult)
	}
}

func TestARunWithoutAFinishedCellHasNoRecord(t *testing.T) {
	c := dossiertest.Passing(t)
	c.Skip = true
	d, err := dossier.Load(c.Store(t))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := record.Create(d, record.Options{}); err == nil {
		t.Error("a record about nothing must be refused")
	}
}

func TestTheSameRunGivesTheSameStatements(t *testing.T) {
	c := dossiertest.Passing(t)
	var encoded []string
	for range 2 {
		d, err := dossier.Load(c.Store(t))
		if err != nil {
			t.Fatal(err)
		}
		r, err := record.Create(d, record.Options{Time: dossiertest.At(900), Version: "test"})
		if err != nil {
			t.Fatal(err)
		}
		data, err := r.Encode()
		if err != nil {
			t.Fatal(err)
		}
		encoded = append(encoded, string(data))
	}
	if encoded[0] != encoded[1] {
		t.Error("two records of the same evidence differ")
	}
}

func TestAFileThatIsSignedAsAWholeNeedsNoKey(t *testing.T) {
	ctx := context.Background()
	s := sign(t, dossiertest.Passing(t), record.Ed25519)
	d, err := dossier.Load(s.run)
	if err != nil {
		t.Fatal(err)
	}
	r, err := record.Create(d, record.Options{Time: time.Unix(0, 0)})
	if err != nil {
		t.Fatal(err)
	}
	unsigned, err := r.Encode()
	if err != nil {
		t.Fatal(err)
	}
	vouched := func(over []byte) func([]byte) (string, error) {
		return func(data []byte) (string, error) {
			if !bytes.Equal(data, over) {
				return "", errors.New("the signature is over something else")
			}
			return "somebody", nil
		}
	}
	for name, data := range map[string][]byte{"an unsigned record": unsigned, "a record that is signed too": s.data} {
		verified, err := record.Verify(ctx, data, record.Checks{Whole: vouched(data), Evidence: evidenceIn(s.run)})
		if err != nil || !slices.Equal(verified.Keys, []string{"somebody"}) {
			t.Errorf("%s: %v", name, err)
		}
	}
	both, err := record.Verify(ctx, s.data, record.Checks{Whole: vouched(s.data), Keys: []*record.Verifier{s.key}})
	if err != nil || len(both.Keys) != 2 {
		t.Errorf("both: %v", err)
	}
	for name, test := range map[string]struct {
		data   []byte
		checks record.Checks
		want   record.Code
	}{
		"a signature over something else":       {unsigned, record.Checks{Whole: vouched(s.data)}, record.RefusedKey},
		"something else beside a good key":      {s.data, record.Checks{Whole: vouched(unsigned), Keys: []*record.Verifier{s.key}}, record.RefusedKey},
		"no key in a record that needs it too":  {unsigned, record.Checks{Whole: vouched(unsigned), Keys: []*record.Verifier{s.key}}, record.RefusedUnsigned},
		"the evidence of nothing":               {unsigned, record.Checks{Whole: vouched(unsigned), Evidence: evidenceIn(t.TempDir())}, record.RefusedEvidence},
		"neither a key nor a whole":             {unsigned, record.Checks{}, record.RefusedKey},
		"a development record as an acceptance": {unsigned, record.Checks{Whole: vouched(unsigned), Acceptance: true}, record.RefusedPurpose},
	} {
		_, err := record.Verify(ctx, test.data, test.checks)
		if code := refusal(t, err); code != test.want {
			t.Errorf("%s: refused as %s (%v), want %s", name, code, err, test.want)
		}
	}
}
