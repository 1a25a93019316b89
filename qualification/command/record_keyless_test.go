package command

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"ptah.run/ptah/qualification/evidence/dossier/dossiertest"
	"ptah.run/ptah/qualification/record/keyless/keylesstest"
)

func TestARecordSignedByAnIdentityVerifiesWithItsBundleAlone(t *testing.T) {
	dir := t.TempDir()
	path := func(name string) string { return filepath.Join(dir, name) }
	run := dossiertest.Passing(t).Store(t)
	succeed(t, "record", "create", "--run", run, "--output", path("record.json"))
	record, err := os.ReadFile(path("record.json"))
	if err != nil {
		t.Fatal(err)
	}
	of := keylesstest.New(t)
	for name, data := range map[string][]byte{"root.json": keylesstest.TrustedRoot(t, of, false), "bundle.json": keylesstest.Bundle(t, of, keylesstest.Signer, record, nil),
		"other.json": keylesstest.Bundle(t, of, keylesstest.Signer, append(record, '\n'), nil), "no.json": []byte("{}")} {
		if err := os.WriteFile(path(name), data, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	verify := func(bundle, root, identity string, more ...string) (int, string, string) {
		return qualify(t, append([]string{"record", "verify", "--record", path("record.json"), "--run", run, "--sigstore-bundle", path(bundle), "--trusted-root", path(root),
			"--certificate-identity", identity, "--certificate-issuer", keylesstest.Signer.Issuer}, more...)...)
	}
	code, out, errs := verify("bundle.json", "root.json", keylesstest.Signer.Identity)
	if code != ExitPass || !strings.Contains(out, "genuine: signed by "+keylesstest.Signer.Identity) || !strings.Contains(out, "checked: the signature over the whole file") {
		t.Fatalf("exit code %d: %s%s", code, out, errs)
	}
	succeed(t, "record", "key", "generate", "--output", dir)
	for name, test := range map[string]struct {
		bundle, root, identity string
		more                   []string
		code                   int
		want                   string
	}{
		"should refuse a bundle of another file":   {"other.json", "root.json", keylesstest.Signer.Identity, nil, ExitVerificationFailed, "the keyless signature does not hold"},
		"should refuse another signer":             {"bundle.json", "root.json", "somebody@example.com", nil, ExitVerificationFailed, "the keyless signature does not hold"},
		"should refuse what is no bundle":          {"no.json", "root.json", keylesstest.Signer.Identity, nil, ExitVerificationFailed, "no Sigstore bundle"},
		"should refuse what is no root":            {"bundle.json", "no.json", keylesstest.Signer.Identity, nil, ExitUsage, "no trusted root"},
		"should refuse a bundle that is not there": {"none.json", "root.json", keylesstest.Signer.Identity, nil, ExitUsage, "none.json"},
		"should still want the signature of a key": {"bundle.json", "root.json", keylesstest.Signer.Identity, []string{"--key", path("qualification.pub")}, ExitVerificationFailed, "is not signed"},
	} {
		t.Run(name, func(t *testing.T) {
			if code, _, errs := verify(test.bundle, test.root, test.identity, test.more...); code != test.code || !strings.Contains(errs, test.want) || strings.Contains(errs, "\n") {
				t.Errorf("exit code %d: %s", code, errs)
			}
		})
	}
	for arguments, want := range map[string]string{
		"record verify": "at least one of the flags in the group [key sigstore-bundle] is required",
		"record verify --sigstore-bundle x --trusted-root y": "[certificate-identity certificate-issuer]",
	} {
		if code, _, errs := qualify(t, strings.Fields(arguments)...); code != ExitUsage || !strings.Contains(errs, want) {
			t.Errorf("%s: exit code %d: %s", arguments, code, errs)
		}
	}
}
