package bundle_test

import (
	"archive/tar"
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"filippo.io/age"

	"ptah.run/ptah/qualification/bundle"
	"ptah.run/ptah/qualification/bundle/secretscan"
	"ptah.run/ptah/qualification/evidence/dossier"
	"ptah.run/ptah/qualification/evidence/dossier/dossiertest"
	"ptah.run/ptah/qualification/record"
)

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func scanner(t testing.TB, secrets ...[]byte) *secretscan.Scanner {
	t.Helper()
	s, err := secretscan.New(secretscan.DefaultLimits, secrets...)
	must(t, err)
	return s
}

// kit is a run with its signed record.
type kit struct {
	run     string
	dossier *dossier.Dossier
	record  []byte
	key     []byte
}

func newKit(t testing.TB, c *dossiertest.Case) kit {
	t.Helper()
	k := kit{run: c.Store(t)}
	k.load(t)
	return k
}

func (k *kit) load(t testing.TB) {
	t.Helper()
	var err error
	k.dossier, err = dossier.Load(k.run)
	must(t, err)
	private, public, err := record.GenerateKey(record.Ed25519)
	must(t, err)
	signer, err := record.LoadSigner(private)
	must(t, err)
	r, err := record.Create(k.dossier, record.Options{Time: dossiertest.Start, Version: "test"})
	must(t, err)
	must(t, r.Sign(context.Background(), signer))
	k.record, err = r.Encode()
	must(t, err)
	k.key = public
}

func (k kit) contents(t testing.TB, kind bundle.Kind) *bundle.Contents {
	t.Helper()
	contents, err := bundle.Assemble(kind, k.run, k.dossier, bundle.Sources{Record: k.record, Keys: map[string][]byte{"qualification.pub": k.key}})
	must(t, err)
	return contents
}

func (k kit) tar(t testing.TB) []byte {
	t.Helper()
	prepared, err := k.contents(t, bundle.Public).Prepare(scanner(t))
	must(t, err)
	var out bytes.Buffer
	size, err := prepared.WriteTo(&out)
	must(t, err)
	if size != int64(out.Len()) {
		t.Errorf("%d bytes written, %d said", out.Len(), size)
	}
	return out.Bytes()
}

func TestTwoBuildsAreTheSameBytes(t *testing.T) {
	k := newKit(t, dossiertest.Passing(t))
	first := k.tar(t)
	// Neither the order in the file system nor the times of files nor their modes may show.
	must(t, filepath.WalkDir(k.run, func(path string, entry os.DirEntry, err error) error {
		if err == nil && !entry.IsDir() {
			must(t, os.Chmod(path, 0o600))
			must(t, os.Chtimes(path, time.Now(), time.Now().Add(-time.Hour)))
		}
		return err
	}))
	if second := k.tar(t); !bytes.Equal(first, second) {
		t.Error("two builds differ")
	}
	reader, last := tar.NewReader(bytes.NewReader(first)), ""
	for {
		header, err := reader.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		must(t, err)
		if header.Name <= last || header.Mode != 0o644 || header.Uid != 0 || header.Gid != 0 || header.Uname != "" || header.Gname != "" || header.ModTime.Unix() != 0 || header.Format != tar.FormatUSTAR {
			t.Errorf("after %s: %+v", last, header)
		}
		last = header.Name
	}
}

func TestTheIndexDescribesEveryFile(t *testing.T) {
	k := newKit(t, dossiertest.Passing(t))
	seen := map[string]bundle.File{}
	index, err := bundle.Read(bytes.NewReader(k.tar(t)), func(file bundle.File, content io.Reader) error {
		data, err := io.ReadAll(content)
		sum := sha256.Sum256(data)
		if hex.EncodeToString(sum[:]) != file.SHA256 || int64(len(data)) != file.Size || file.MediaType == "" {
			t.Errorf("%+v is not what it says", file)
		}
		seen[file.Path] = file
		return err
	})
	must(t, err)
	for _, path := range []string{"README.txt", "evidence/manifest.json", "evidence/run.json", "evidence/journal.jsonl", "record/qualification-record.json", "record/qualification.pub", "reports/report.html", "reports/report.json", "reports/report.md", "reports/junit.xml"} {
		if _, ok := seen[path]; !ok {
			t.Errorf("there is no %s", path)
		}
	}
	if len(seen) != len(index.Files) || index.Verdict != "pass" || index.Acceptance || index.Run != "test-run" || index.EvidenceRoot != k.dossier.Root || len(index.Scope.NotShown) == 0 {
		t.Errorf("%+v", index)
	}
	named := slices.ContainsFunc(index.Files, func(file bundle.File) bool {
		return file.MediaType == "application/jsonl" && slices.ContainsFunc(file.Names, func(name string) bool { return strings.HasSuffix(name, "/ledger.jsonl") })
	})
	if !named {
		t.Error("the ledger is not findable by its name")
	}
}

func TestTheSumsWorkWithSha256sum(t *testing.T) {
	program, err := exec.LookPath("sha256sum")
	if err != nil {
		t.Skip("not-run: there is no sha256sum on this machine")
	}
	k := newKit(t, dossiertest.Passing(t))
	dir := t.TempDir()
	unpack := exec.Command("tar", "xf", "-", "-C", dir)
	unpack.Stdin = bytes.NewReader(k.tar(t))
	if out, err := unpack.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	folder := filepath.Join(dir, "ptah-qualification-test-run")
	check := func() (string, error) {
		command := exec.Command(program, "--check", "--strict", "--quiet", "SHA256SUMS")
		command.Dir = folder
		out, err := command.CombinedOutput()
		return string(out), err
	}
	if out, err := check(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	must(t, os.WriteFile(filepath.Join(folder, "reports", "report.md"), []byte("x"), 0o644))
	if out, err := check(); err == nil || !strings.Contains(out, "reports/report.md") {
		t.Errorf("control: an altered file passes: %s", out)
	}
}

func TestWhatIsUnpackedVerifies(t *testing.T) {
	k := newKit(t, dossiertest.Passing(t))
	dir := t.TempDir()
	index, err := bundle.Extract(bytes.NewReader(k.tar(t)), dir)
	must(t, err)
	data, err := os.ReadFile(filepath.Join(dir, "record", record.FileName))
	must(t, err)
	key, err := record.LoadVerifier(k.key)
	must(t, err)
	verified, err := record.Verify(context.Background(), data, record.Checks{Keys: []*record.Verifier{key},
		Evidence: func() (*dossier.Dossier, error) { return dossier.Load(filepath.Join(dir, "evidence")) },
		Reports:  func(name string) ([]byte, error) { return os.ReadFile(filepath.Join(dir, "reports", name)) }})
	must(t, err)
	must(t, index.Fits(verified, k.dossier))
	for name, change := range map[string]func(*bundle.Index){
		"a better verdict":  func(i *bundle.Index) { i.Verdict = "pass!" },
		"an acceptance":     func(i *bundle.Index) { i.Acceptance = true },
		"another profile":   func(i *bundle.Index) { i.Profile = "production, revision 1 (acceptance)" },
		"fewer limits":      func(i *bundle.Index) { i.Scope.NotShown = i.Scope.NotShown[1:] },
		"another run":       func(i *bundle.Index) { i.EvidenceRoot = dossiertest.Digest("9") },
		"a greater promise": func(i *bundle.Index) { i.Scope.Shows = "everything" },
	} {
		altered := *index
		change(&altered)
		if err := altered.Fits(verified, k.dossier); !errors.Is(err, bundle.ErrRefused) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestARecordThatDoesNotBelongIsRefused(t *testing.T) {
	k := newKit(t, dossiertest.Passing(t))
	failing := dossiertest.Passing(t)
	failing.Audit = nil
	other := newKit(t, failing)
	unsigned, err := record.Create(k.dossier, record.Options{Time: dossiertest.Start, Version: "test"})
	must(t, err)
	bare, err := unsigned.Encode()
	must(t, err)
	for name, test := range map[string]struct {
		sources bundle.Sources
		want    string
	}{
		"of another run":   {bundle.Sources{Record: other.record}, "the run that belongs"},
		"without a sign":   {bundle.Sources{Record: bare}, "not signed"},
		"no record":        {bundle.Sources{Record: []byte("{}")}, "record"},
		"another report":   {bundle.Sources{Record: k.record, Reports: func(string) ([]byte, error) { return []byte("x"), nil }}, "is not the one"},
		"a lost report":    {bundle.Sources{Record: k.record, Reports: func(string) ([]byte, error) { return nil, os.ErrNotExist }}, "binds the report"},
		"a key's bad name": {bundle.Sources{Record: k.record, Keys: map[string][]byte{"../x": nil}}, "path"},
	} {
		_, err := bundle.Assemble(bundle.Public, k.run, k.dossier, test.sources)
		if err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

const secret = "postgres://shop:hunter22@db:5432/shop"

func TestACredentialIsNotPublished(t *testing.T) {
	c := dossiertest.Passing(t)
	c.Audit["control-plane"] = append(c.Audit["control-plane"], []byte(strings.Replace(dossiertest.AuditLine("x", dossiertest.At(179), "a", "get", "", "pods", "a", "b", 200), `"userAgent":"test"`, `"userAgent":"`+secret+`"`, 1))...)
	k := newKit(t, c)
	_, err := k.contents(t, bundle.Public).Prepare(scanner(t))
	var refusal *bundle.CredentialsError
	if !errors.As(err, &refusal) || len(refusal.Findings) == 0 {
		t.Fatalf("%v", err)
	}
	finding := refusal.Findings[0]
	if finding.Kind != secretscan.DatabaseURL || !strings.Contains(finding.File, "audit/logs/control-plane/0.log") || !strings.Contains(finding.Place, "line ") || strings.Contains(err.Error(), "hunter22") {
		t.Errorf("%s; %v", finding, err)
	}
}

func TestAGivenValueIsNotPublished(t *testing.T) {
	k := newKit(t, dossiertest.Passing(t))
	uid := dossiertest.Passing(t).Facts.Lab.ClusterUID
	_, err := k.contents(t, bundle.Public).Prepare(scanner(t, []byte(uid)))
	var refusal *bundle.CredentialsError
	if !errors.As(err, &refusal) || refusal.Findings[0].Kind != secretscan.KnownSecret {
		t.Errorf("%v", err)
	}
}

func TestWhatChangesAfterTheScanIsNotWritten(t *testing.T) {
	for name, change := range map[string]string{"other bytes": "B", "more bytes": "AAAA", "fewer bytes": ""} {
		contents, err := bundle.New(description(bundle.Restricted))
		must(t, err)
		file := filepath.Join(t.TempDir(), "kept")
		must(t, os.WriteFile(file, []byte("A"), 0o600))
		must(t, contents.AddRestricted(file))
		prepared, err := contents.Prepare(scanner(t))
		must(t, err)
		must(t, os.WriteFile(file, []byte(change), 0o600))
		if _, err := prepared.WriteTo(io.Discard); err == nil || !strings.Contains(err.Error(), "changed after it was scanned") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func description(kind bundle.Kind) bundle.Description {
	return bundle.Description{Kind: kind, Name: "ptah-qualification-x", Run: "x", EvidenceRoot: dossiertest.Digest("1"), Profile: "p", Policy: dossiertest.Digest("2"), Verdict: "pass",
		Scope: bundle.Scope{Shows: "something", NotShown: []string{"everything else"}}}
}

func TestFilesThatCannotBeAddedAreRefused(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "file")
	must(t, os.WriteFile(file, nil, 0o600))
	must(t, os.Symlink(file, filepath.Join(dir, "link")))
	must(t, os.WriteFile(filepath.Join(dir, "a name"), nil, 0o600))
	public, err := bundle.New(description(bundle.Public))
	must(t, err)
	restricted, err := bundle.New(description(bundle.Restricted))
	must(t, err)
	for name, err := range map[string]error{
		"a restricted file of a public bundle": public.AddRestricted(file),
		"a link":                               restricted.AddRestricted(filepath.Join(dir, "link")),
		"a name with a space":                  restricted.AddRestricted(filepath.Join(dir, "a name")),
		"a path upwards":                       restricted.AddFile("restricted/../x", file),
		"an absolute path":                     restricted.AddFile("/etc/x", file),
		"a hidden file":                        restricted.AddFile("restricted/.x", file),
		"a long segment":                       restricted.AddFile("restricted/"+strings.Repeat("a", 150), file),
		"a long path":                          restricted.AddFile("restricted/"+strings.Repeat("a/", 100), file),
		"a missing file":                       restricted.AddRestricted(filepath.Join(dir, "none")),
		"a second README":                      restricted.AddBytes("README.txt", "text/plain", nil),
	} {
		if err == nil {
			t.Errorf("%s was added", name)
		}
	}
	if _, err := bundle.New(bundle.Description{}); err == nil {
		t.Error("a bundle without a description was begun")
	}
	silent := description(bundle.Public)
	silent.Scope.NotShown = nil
	if _, err := bundle.New(silent); err == nil {
		t.Error("a bundle that does not say what it does not show was begun")
	}
}

func TestARestrictedBundleIsReadByItsRecipientAlone(t *testing.T) {
	k := newKit(t, dossiertest.Passing(t))
	dir := filepath.Join(t.TempDir(), "lab")
	must(t, os.MkdirAll(filepath.Join(dir, "logs"), 0o700))
	must(t, os.WriteFile(filepath.Join(dir, "logs", "full.log"), []byte("url "+secret), 0o600))
	contents := k.contents(t, bundle.Restricted)
	must(t, contents.AddRestricted(dir))
	prepared, err := contents.Prepare(scanner(t))
	must(t, err)
	if found := prepared.Index().Findings; len(found) != 1 || found[0].File != "restricted/lab/logs/full.log" {
		t.Errorf("the index admits %v", found)
	}
	owner, stranger := identity(t), identity(t)
	var sealed bytes.Buffer
	about, err := prepared.Seal(&sealed, []string{owner.Recipient().String()})
	must(t, err)
	sum := sha256.Sum256(sealed.Bytes())
	if about.Ciphertext.SHA256 != hex.EncodeToString(sum[:]) || about.Ciphertext.Size != int64(sealed.Len()) || about.Recipients[0] != owner.Recipient().String() {
		t.Errorf("%+v", about)
	}
	if bytes.Contains(sealed.Bytes(), []byte("hunter22")) || bytes.Contains(sealed.Bytes(), []byte("INDEX.json")) {
		t.Error("the bundle is not encrypted")
	}
	var plain bytes.Buffer
	_, err = prepared.WriteTo(&plain)
	must(t, err)
	if sum := sha256.Sum256(plain.Bytes()); about.Plaintext.SHA256 != hex.EncodeToString(sum[:]) {
		t.Error("the sum of the plaintext is wrong")
	}
	opened, err := bundle.Open(bytes.NewReader(sealed.Bytes()), []byte(owner.String()))
	must(t, err)
	target := t.TempDir()
	index, err := bundle.Extract(opened, target)
	must(t, err)
	if index.Kind != bundle.Restricted {
		t.Errorf("%+v", index)
	}
	if _, err := os.Stat(filepath.Join(target, "restricted")); !errors.Is(err, os.ErrNotExist) {
		t.Error("restricted files were unpacked")
	}
	for name, identities := range map[string][][]byte{"nobody": nil, "a stranger": {[]byte(stranger.String())}, "no identity": {[]byte("x " + owner.String())}} {
		_, err := bundle.Open(bytes.NewReader(sealed.Bytes()), identities...)
		if err == nil || strings.Contains(err.Error(), owner.String()) {
			t.Errorf("%s: %v", name, err)
		}
	}
	altered := bytes.Clone(sealed.Bytes())
	altered[len(altered)/2] ^= 1
	for name, data := range map[string][]byte{"altered": altered, "cut": sealed.Bytes()[:sealed.Len()-10]} {
		opened, err := bundle.Open(bytes.NewReader(data), []byte(owner.String()))
		must(t, err)
		if _, err := bundle.Read(opened, nil); !errors.Is(err, bundle.ErrRefused) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func identity(t testing.TB) *age.X25519Identity {
	t.Helper()
	identity, err := age.GenerateX25519Identity()
	must(t, err)
	return identity
}

func TestRecipientsAreRecipients(t *testing.T) {
	own := identity(t)
	if _, err := bundle.ParseRecipients([]string{own.Recipient().String(), " " + own.Recipient().String() + "\n"}); err != nil {
		t.Errorf("control: %v", err)
	}
	for name, list := range map[string][]string{"none": nil, "empty": {""}, "a word": {"age1abc"}, "a secret key": {own.String()}, "a comment": {"# x"}, "two": {own.Recipient().String() + "\n" + own.Recipient().String()}} {
		_, err := bundle.ParseRecipients(list)
		if err == nil || strings.Contains(err.Error(), own.String()) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestTheIndexHasOneForm(t *testing.T) {
	k := newKit(t, dossiertest.Passing(t))
	index, err := bundle.Read(bytes.NewReader(k.tar(t)), nil)
	must(t, err)
	data, err := index.Encode()
	must(t, err)
	var again bundle.Index
	must(t, json.Unmarshal(data, &again))
	second, err := again.Encode()
	must(t, err)
	if !bytes.Equal(data, second) {
		t.Error("the index does not read back as it was written")
	}
}
