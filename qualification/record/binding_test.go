package record_test

import (
	"bytes"
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"ptah.run/ptah/qualification/carryover"
	"ptah.run/ptah/qualification/evidence/dossier"
	"ptah.run/ptah/qualification/evidence/dossier/dossiertest"
	"ptah.run/ptah/qualification/matrix"
	"ptah.run/ptah/qualification/record"
)

var (
	shipped       = carryover.Paths{Include: []string{"operator/"}}
	releaseCommit = strings.Repeat("b", 40)
	harnessCommit = strings.Repeat("c", 40) // of every case
)

func ancestry(files ...string) *carryover.Ancestry {
	a := carryover.Relate(releaseCommit, harnessCommit, false, true, shipped, files)
	return &a
}

// manifest names everything that the cases test.
func manifest() []byte {
	lines := []string{"source-sha=" + releaseCommit}
	for _, digit := range []string{"1", "2", "3", "4"} {
		lines = append(lines, "artifact="+dossiertest.Digest(digit))
	}
	return []byte(strings.Join(lines, "\n") + "\n")
}

// issued is a signed record and the key that verifies it.
type issued struct {
	record *record.Record
	data   []byte
	key    *record.Verifier
	run    string
	loaded *dossier.Dossier
}

func issue(t *testing.T, c *dossiertest.Case, options record.Options) issued {
	t.Helper()
	run := c.Store(t)
	d, err := dossier.Load(run)
	if err != nil {
		t.Fatal(err)
	}
	options.Time, options.Version = dossiertest.At(900), "test"
	r, err := record.Create(d, options)
	if err != nil {
		t.Fatal(err)
	}
	private, public, err := record.GenerateKey(record.ECDSA)
	if err != nil {
		t.Fatal(err)
	}
	signer, err := record.LoadSigner(private)
	if err != nil {
		t.Fatal(err)
	}
	if err := r.Sign(context.Background(), signer); err != nil {
		t.Fatal(err)
	}
	made := issued{record: r, run: run, loaded: d}
	if made.data, err = r.Encode(); err != nil {
		t.Fatal(err)
	}
	if made.key, err = record.LoadVerifier(public); err != nil {
		t.Fatal(err)
	}
	return made
}

func (i issued) verify(change func(*record.Checks)) (*record.Verified, error) {
	checks := record.Checks{Keys: []*record.Verifier{i.key}, Evidence: evidenceIn(i.run)}
	change(&checks)
	return record.Verify(context.Background(), i.data, checks)
}

func TestARecordThatBindsEverythingIsAnAcceptance(t *testing.T) {
	made := issue(t, record.AcceptanceCase(t), record.Options{Manifest: manifest(), Ancestry: ancestry("qualification/x.go")})
	verified, err := made.verify(func(c *record.Checks) {
		c.Acceptance, c.Manifest = true, manifest()
		c.Ancestry = func(release, harness string) (*carryover.Ancestry, error) {
			a := carryover.Relate(release, harness, false, true, shipped, nil)
			return &a, nil
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	if !verified.Summary.Acceptance || !strings.Contains(verified.Summary.Notice, "is accepted") || len(verified.Checked) != 4 {
		t.Errorf("acceptance %v, %q, checked %q", verified.Summary.Acceptance, verified.Summary.Notice, verified.Checked)
	}
	facts := verified.Statements()[0].Facts()
	want := record.Facts{Cell: facts.Cell, Verdict: facts.Verdict, Profile: facts.Profile, Subject: facts.Subject, Root: facts.Root, Run: made.loaded.Root,
		Cluster: "0b1e6f5e-6d35-4d8b-8b0e-1f6f0f6f7a11", Platform: "linux/amd64", Native: true, ImageSource: "modules", Ancestry: facts.Ancestry}
	if facts.Cluster != want.Cluster || facts.Platform != want.Platform || !facts.Native || facts.ImageSource != want.ImageSource || facts.Run != want.Run || facts.Root == "" || len(facts.Subject) != 5 {
		t.Errorf("the cell binds %+v", facts)
	}
	if facts.Profile.Digest != made.loaded.Profile.Digest() || facts.Profile.Revision != 1 || facts.Ancestry.Release != releaseCommit || facts.Ancestry.Harness != harnessCommit {
		t.Errorf("the cell binds %+v", facts)
	}
}

func TestWhatAnAcceptanceMustBind(t *testing.T) {
	emulated := record.AcceptanceCase(t)
	emulated.Facts.Lab.NativePlatform = false
	nameless := record.AcceptanceCase(t)
	nameless.Facts.Lab.ClusterUID = ""
	failed := record.AcceptanceCase(t)
	failed.Ledger = failed.Ledger[:len(failed.Ledger)/2]
	all := record.Options{Manifest: manifest(), Ancestry: ancestry()}
	cases := map[string]struct {
		of      *dossiertest.Case
		options record.Options
		want    string
	}{
		"should refuse a record without a release manifest":        {record.AcceptanceCase(t), record.Options{Ancestry: ancestry()}, "a release manifest"},
		"should refuse a record without the ancestry":              {record.AcceptanceCase(t), record.Options{Manifest: manifest()}, "the ancestry of the harness"},
		"should refuse a harness that changes what is shipped":     {record.AcceptanceCase(t), record.Options{Manifest: manifest(), Ancestry: ancestry("operator/x.go")}, "its ancestry is void"},
		"should refuse a record of a cluster without a UID":        {nameless, all, "the cluster"},
		"should refuse a record of an emulated platform":           {emulated, all, "its verdict is void"},
		"should refuse a record that does not pass":                {failed, all, "its verdict is fail"},
		"should refuse a record of a development profile, always":  {dossiertest.Passing(t), all, "can not be an acceptance"},
		"should refuse a development record that fails as it does": {func() *dossiertest.Case { c := dossiertest.Passing(t); c.Audit = nil; return c }(), all, "can not be an acceptance"},
	}
	for name, test := range cases {
		t.Run(name, func(t *testing.T) {
			made := issue(t, test.of, test.options)
			verified, err := made.verify(func(*record.Checks) {})
			if err != nil || verified.Summary.Acceptance {
				t.Fatalf("control: without the demand it must verify and be no acceptance: %v", err)
			}
			_, err = made.verify(func(c *record.Checks) { c.Acceptance = true })
			if code := refusal(t, err); code != record.RefusedPurpose || !strings.Contains(err.Error(), test.want) {
				t.Errorf("refused as %s (%v), want %q", code, err, test.want)
			}
		})
	}
}

func TestManifestAndAncestryAreCheckedAgain(t *testing.T) {
	bound := issue(t, record.AcceptanceCase(t), record.Options{Manifest: manifest(), Ancestry: ancestry()})
	bare := issue(t, record.AcceptanceCase(t), record.Options{})
	ask := func(descends bool, files ...string) func(string, string) (*carryover.Ancestry, error) {
		return func(release, harness string) (*carryover.Ancestry, error) {
			a := carryover.Relate(release, harness, false, descends, shipped, files)
			return &a, nil
		}
	}
	narrower := carryover.Paths{Include: []string{"chart/"}}
	cases := map[string]struct {
		of     issued
		change func(*record.Checks)
		want   record.Code
	}{
		"should refuse another manifest":                         {bound, func(c *record.Checks) { c.Manifest = append(manifest(), '\n') }, record.RefusedManifest},
		"should refuse a manifest for a record that binds none":  {bare, func(c *record.Checks) { c.Manifest = manifest() }, record.RefusedManifest},
		"should refuse a repository where it does not descend":   {bound, func(c *record.Checks) { c.Ancestry = ask(false) }, record.RefusedAncestry},
		"should refuse a repository where shipped files changed": {bound, func(c *record.Checks) { c.Ancestry = ask(true, "operator/a.go") }, record.RefusedAncestry},
		"should refuse a repository for a record without one":    {bare, func(c *record.Checks) { c.Ancestry = ask(true) }, record.RefusedAncestry},
		"should refuse another list of what is shipped": {bound, func(c *record.Checks) {
			c.Ancestry = func(release, harness string) (*carryover.Ancestry, error) {
				a := carryover.Relate(release, harness, false, true, narrower, nil)
				return &a, nil
			}
		}, record.RefusedAncestry},
		"should refuse a repository that does not know the commits": {bound, func(c *record.Checks) {
			c.Ancestry = func(string, string) (*carryover.Ancestry, error) { return nil, errors.New("it has no such commit") }
		}, record.RefusedAncestry},
	}
	for name, test := range cases {
		t.Run(name, func(t *testing.T) {
			_, err := test.of.verify(test.change)
			if code := refusal(t, err); code != test.want {
				t.Errorf("refused as %s (%v), want %s", code, err, test.want)
			}
		})
	}
}

func TestARecordIsNotCreatedFromWhatDoesNotFit(t *testing.T) {
	built := dossiertest.Passing(t)
	built.Facts.Release.Commit = strings.Repeat("d", 40)
	other := carryover.Relate(releaseCommit, strings.Repeat("e", 40), false, true, shipped, nil)
	cases := map[string]struct {
		of      *dossiertest.Case
		options record.Options
		want    string
	}{
		"should refuse a manifest that does not name an image": {dossiertest.Passing(t), record.Options{Manifest: bytes.Replace(manifest(), []byte("22222"), []byte("00000"), 1)}, "does not name ptah/executor"},
		"should refuse a manifest that does not name the chart": {dossiertest.Passing(t), record.Options{Manifest: bytes.Replace(manifest(), []byte("44444"), []byte("00000"), 1)},
			"does not name chart/ptah-operator"},
		"should refuse a manifest of another commit":    {dossiertest.Passing(t), record.Options{Manifest: bytes.Replace(manifest(), []byte("bbbb"), []byte("aaaa"), 1), Ancestry: ancestry()}, "does not name the commit"},
		"should refuse the ancestry of another harness": {dossiertest.Passing(t), record.Options{Ancestry: &other}, "the ancestry is that of harness"},
		"should refuse the ancestry of another release": {built, record.Options{Ancestry: ancestry()}, "a release built from commit dddd"},
		"should refuse an empty manifest":               {dossiertest.Passing(t), record.Options{Manifest: []byte{}}, "does not name"},
	}
	for name, test := range cases {
		t.Run(name, func(t *testing.T) {
			d, err := dossier.Load(test.of.Store(t))
			if err != nil {
				t.Fatal(err)
			}
			test.want = strings.Replace(test.want, "ptah/executor", "ptah/runner", 1) // the image with that digest
			if _, err := record.Create(d, test.options); err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("got %v, want %q", err, test.want)
			}
		})
	}
}

func TestExactlyTheDeclaredCellsAreDemanded(t *testing.T) {
	c := dossiertest.Passing(t)
	made := issue(t, c, record.Options{})
	find := func(change func(string) string) func(string) (*matrix.Matrix, error) {
		return func(name string) (*matrix.Matrix, error) {
			return matrix.Decode(name, []byte(change(string(c.Matrix))))
		}
	}
	check := func(change func(string) string) error {
		_, err := made.verify(func(checks *record.Checks) { checks.Profile, checks.Matrices = c.Profile, find(change) })
		return err
	}
	if err := check(func(text string) string { return text }); err != nil {
		t.Fatalf("control: %v", err)
	}
	key := made.loaded.Cells[0].Evidence.Cell
	suite := made.loaded.Expected[0].Suite()
	if !strings.Contains(string(c.Matrix), suite) {
		t.Fatalf("the matrix does not name the suite %s", suite)
	}
	renamed := func(text string) string { return strings.ReplaceAll(text, suite, "other-suite") }
	if err := check(renamed); refusal(t, err) != record.RefusedCells || !strings.Contains(err.Error(), "is declared and the record does not have it") {
		t.Errorf("a missing cell: %v", err)
	}
	if _, err := made.verify(func(checks *record.Checks) {
		checks.Profile = c.Profile
		checks.Matrices = func(string) (*matrix.Matrix, error) { return nil, errors.New("there is no such matrix") }
	}); refusal(t, err) != record.RefusedCells {
		t.Errorf("an unknown matrix: %v", err)
	}
	if key == "" {
		t.Error("the case has no cell")
	}
}

func TestCellFiles(t *testing.T) {
	ctx := context.Background()
	made := issue(t, dossiertest.Passing(t), record.Options{Manifest: manifest(), Ancestry: ancestry()})
	key := made.loaded.Cells[0].Evidence.Cell
	files, err := made.record.CellFiles(key)
	if err != nil || len(files) != 1 || files[0].Name != "functional."+key+record.CellSuffix {
		t.Fatalf("%v, %v", files, err)
	}
	cell, err := record.VerifyCell(ctx, files[0].Data, []*record.Verifier{made.key})
	if err != nil {
		t.Fatal(err)
	}
	if err := cell.CheckEvidence(made.loaded, made.loaded.Judge()); err != nil {
		t.Errorf("control: %v", err)
	}
	if claimed := record.ClaimedCell(files[0].Data); claimed.Key != key {
		t.Errorf("the file claims to be about %q", claimed.Key)
	}
	if _, err := made.record.CellFiles("other"); err == nil {
		t.Error("a cell that the record does not have was given away")
	}
	for i := 0; i < len(files[0].Data); i += 7 {
		altered := slices.Clone(files[0].Data)
		altered[i] ^= 1 << (i % 8)
		if _, err := record.VerifyCell(ctx, altered, []*record.Verifier{made.key}); err == nil {
			t.Fatalf("byte %d was flipped and the cell still verifies", i)
		}
	}
	stranger := issue(t, dossiertest.Passing(t), record.Options{})
	if _, err := record.VerifyCell(ctx, files[0].Data, []*record.Verifier{stranger.key}); refusal(t, err) != record.RefusedKey {
		t.Errorf("a key that was not given: %v", err)
	}
	if _, err := record.VerifyCell(ctx, files[0].Data, nil); refusal(t, err) != record.RefusedKey {
		t.Errorf("no key: %v", err)
	}
	for name, data := range map[string][]byte{"a record": made.data, "nothing": nil, "garbage": []byte("{]")} {
		if _, err := record.VerifyCell(ctx, data, []*record.Verifier{made.key}); refusal(t, err) != record.RefusedAltered {
			t.Errorf("%s: %v", name, err)
		}
	}
	other := dossiertest.Passing(t)
	other.Facts.Lab.ClusterUID = "11111111-2222-3333-4444-555555555555"
	elsewhere := issue(t, other, record.Options{})
	if err := cell.CheckEvidence(elsewhere.loaded, elsewhere.loaded.Judge()); refusal(t, err) != record.RefusedEvidence {
		t.Errorf("the evidence of another cluster: %v", err)
	}
	cell.Judgement.Scenarios[0].Assertions++
	if err := cell.CheckEvidence(made.loaded, made.loaded.Judge()); refusal(t, err) != record.RefusedJudgement {
		t.Errorf("a cell that comes out differently: %v", err)
	}
}

func TestAnUnsignedCellIsRefused(t *testing.T) {
	d, err := dossier.Load(dossiertest.Passing(t).Store(t))
	if err != nil {
		t.Fatal(err)
	}
	r, err := record.Create(d, record.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := r.CellFiles(); err == nil || !strings.Contains(err.Error(), "is not signed") {
		t.Errorf("an unsigned cell was given away: %v", err)
	}
}

func TestSignedReviews(t *testing.T) {
	ctx := context.Background()
	private, public, err := record.GenerateKey(record.Ed25519)
	if err != nil {
		t.Fatal(err)
	}
	signer, err := record.LoadSigner(private)
	if err != nil {
		t.Fatal(err)
	}
	key, err := record.LoadVerifier(public)
	if err != nil {
		t.Fatal(err)
	}
	review := func() *carryover.ReviewStatement {
		return &carryover.ReviewStatement{Claim: "restore", Requirement: "PA-07", Statement: "Backups restore.", Claims: dossiertest.Digest("7"),
			From: carryover.Release{Name: "v1", Commit: releaseCommit}, To: carryover.Release{Name: "v2", Commit: harnessCommit, Images: map[string]string{"manager": dossiertest.Digest("1")}},
			Changes: []carryover.Change{{Kind: carryover.ChangedPath, Subject: "operator/x.go", Before: "1", After: "2"}}, NotCompared: []string{},
			Reason: "No step of a restore reads what this file writes.", By: "A Person", At: time.Unix(1800000000, 0).UTC()}
	}
	data, err := record.SignReview(ctx, review(), signer)
	if err != nil {
		t.Fatal(err)
	}
	read, ids, err := record.VerifyReview(ctx, data, []*record.Verifier{key})
	if err != nil || read.Claim != "restore" || read.To.Images["manager"] != dossiertest.Digest("1") || len(ids) != 1 {
		t.Fatalf("%+v, %v, %v", read, ids, err)
	}
	for i := 0; i < len(data); i += 5 {
		altered := slices.Clone(data)
		altered[i] ^= 1 << (i % 8)
		if _, _, err := record.VerifyReview(ctx, altered, []*record.Verifier{key}); err == nil {
			t.Fatalf("byte %d was flipped and the review still verifies", i)
		}
	}
	stranger := issue(t, dossiertest.Passing(t), record.Options{})
	if _, _, err := record.VerifyReview(ctx, data, []*record.Verifier{stranger.key}); refusal(t, err) != record.RefusedKey {
		t.Errorf("a key that was not given: %v", err)
	}
	files, err := stranger.record.CellFiles()
	if err != nil {
		t.Fatal(err)
	}
	if _, _, err := record.VerifyReview(ctx, files[0].Data, []*record.Verifier{stranger.key}); refusal(t, err) != record.RefusedStatement {
		t.Errorf("a cell as review: %v", err)
	}
	if _, err := record.VerifyCell(ctx, data, []*record.Verifier{key}); refusal(t, err) != record.RefusedStatement {
		t.Errorf("a review as cell: %v", err)
	}
	for name, change := range map[string]func(*carryover.ReviewStatement){
		"a review without a reason":         func(r *carryover.ReviewStatement) { r.Reason = "fine" },
		"a review about nothing":            func(r *carryover.ReviewStatement) { r.To = carryover.Release{Name: "v2"} },
		"a review of a digest that is none": func(r *carryover.ReviewStatement) { r.To.Images["manager"] = "latest" },
		"a review of a commit that is none": func(r *carryover.ReviewStatement) { r.To.Commit = "main" },
	} {
		r := review()
		change(r)
		if _, err := record.SignReview(ctx, r, signer); err == nil {
			t.Errorf("%s was signed", name)
		}
	}
}

func TestARecordTellsWhatIsComparedWithAnotherRelease(t *testing.T) {
	c := dossiertest.Passing(t)
	c.Facts.Lab.NativePlatform = false
	made := issue(t, c, record.Options{Ancestry: ancestry()})
	verified, err := made.verify(func(*record.Checks) {})
	if err != nil {
		t.Fatal(err)
	}
	side := verified.Side("v1")
	if side.Name != "v1" || side.Commit != releaseCommit || side.Images["manager"] != dossiertest.Digest("1") || side.Chart["ptah-operator"] != dossiertest.Digest("4") ||
		side.Policies["quickstart"] != made.loaded.Profile.Digest() || side.Platforms["linux/amd64"] != "emulated" {
		t.Errorf("%+v", side)
	}
}

func FuzzVerifyCell(f *testing.F) {
	f.Add([]byte(`{"payloadType":"application/vnd.in-toto+json","payload":"e30=","signatures":[]}`))
	f.Add([]byte(`{}`))
	_, public, err := record.GenerateKey(record.Ed25519)
	if err != nil {
		f.Fatal(err)
	}
	key, err := record.LoadVerifier(public)
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		if _, err := record.VerifyCell(context.Background(), data, []*record.Verifier{key}); err == nil {
			t.Fatal("bytes that nobody signed verify")
		}
		if _, _, err := record.VerifyReview(context.Background(), data, []*record.Verifier{key}); err == nil {
			t.Fatal("bytes that nobody signed verify")
		}
		record.ClaimedCell(data)
	})
}
