package keyless_test

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	protobundle "github.com/sigstore/protobuf-specs/gen/pb-go/bundle/v1"

	"ptah.run/ptah/qualification/record/keyless"
	"ptah.run/ptah/qualification/record/keyless/keylesstest"
)

var signer = keylesstest.Signer

func TestASignatureByTheSignerHolds(t *testing.T) {
	ours := keylesstest.New(t)
	trust, err := keyless.NewTrust(keylesstest.TrustedRoot(t, ours, false), signer)
	if err != nil {
		t.Fatal(err)
	}
	if err := trust.Check([]byte("a record"), keylesstest.Bundle(t, ours, signer, []byte("a record"), nil)); err != nil {
		t.Error(err)
	}
	if name := trust.String(); !strings.Contains(name, signer.Identity) || !strings.Contains(name, signer.Issuer) {
		t.Error(name)
	}
}

func TestWhatIsNotSignedByTheSignerIsRefused(t *testing.T) {
	ours, others := keylesstest.New(t), keylesstest.New(t)
	trust, err := keyless.NewTrust(keylesstest.TrustedRoot(t, ours, false), signer)
	if err != nil {
		t.Fatal(err)
	}
	listing, err := keyless.NewTrust(keylesstest.TrustedRoot(t, ours, true), signer)
	if err != nil {
		t.Fatal(err)
	}
	another := func(change func(*keyless.Signer)) keyless.Signer {
		one := signer
		change(&one)
		return one
	}
	good := keylesstest.Bundle(t, ours, signer, []byte("a record"), nil)
	cases := map[string]struct {
		trust   *keyless.Trust
		data    string
		bundled []byte
		want    string
	}{
		"should refuse other bytes":             {trust, "a recorD", good, "does not hold"},
		"should refuse nothing":                 {trust, "", good, "does not hold"},
		"should refuse another identity":        {trust, "a record", keylesstest.Bundle(t, ours, another(func(s *keyless.Signer) { s.Identity = strings.Replace(s.Identity, "v0.2.4", "v0.2.3", 1) }), []byte("a record"), nil), "does not hold"},
		"should refuse a longer identity":       {trust, "a record", keylesstest.Bundle(t, ours, another(func(s *keyless.Signer) { s.Identity += "-evil" }), []byte("a record"), nil), "does not hold"},
		"should refuse another issuer":          {trust, "a record", keylesstest.Bundle(t, ours, another(func(s *keyless.Signer) { s.Issuer = "https://accounts.example.com" }), []byte("a record"), nil), "does not hold"},
		"should refuse another Sigstore":        {trust, "a record", keylesstest.Bundle(t, others, signer, []byte("a record"), nil), "does not hold"},
		"should refuse an unlisted certificate": {listing, "a record", good, "does not hold"},
		"should refuse a signature that is not logged": {trust, "a record", keylesstest.Bundle(t, ours, signer, []byte("a record"), func(b *protobundle.Bundle) { b.VerificationMaterial.TlogEntries = nil }),
			"does not hold"},
		"should refuse another signature": {trust, "a record", keylesstest.Bundle(t, ours, signer, []byte("a record"), func(b *protobundle.Bundle) { b.GetMessageSignature().Signature[10] ^= 1 }), "does not hold"},
		"should refuse a log entry of another time": {trust, "a record", keylesstest.Bundle(t, ours, signer, []byte("a record"), func(b *protobundle.Bundle) {
			b.VerificationMaterial.TlogEntries[0].IntegratedTime += int64(time.Hour.Seconds())
		}), "does not hold"},
		"should refuse what is no bundle": {trust, "a record", []byte(`{"payload":"x"}`), "no Sigstore bundle"},
		"should refuse an empty file":     {trust, "a record", nil, "no Sigstore bundle"},
	}
	for name, test := range cases {
		t.Run(name, func(t *testing.T) {
			if err := test.trust.Check([]byte(test.data), test.bundled); err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("got %v, want %q", err, test.want)
			}
		})
	}
}

func TestATrustedRootMustNameWhatIsBelieved(t *testing.T) {
	good := keylesstest.TrustedRoot(t, keylesstest.New(t), false)
	var parsed map[string]any
	if err := json.Unmarshal(good, &parsed); err != nil {
		t.Fatal(err)
	}
	without := func(field string) []byte {
		fewer := maps.Clone(parsed)
		delete(fewer, field)
		encoded, err := json.Marshal(fewer)
		if err != nil || len(fewer) == len(parsed) {
			t.Fatalf("%v: %q is not among %q", err, field, slices.Collect(maps.Keys(parsed)))
		}
		return encoded
	}
	for name, test := range map[string]struct {
		data []byte
		by   keyless.Signer
		want string
	}{
		"no authority":   {without("certificateAuthorities"), signer, "names no certificate authority"},
		"no log":         {without("tlogs"), signer, "no transparency log"},
		"no JSON":        {[]byte("x"), signer, "no trusted root"},
		"no identity":    {good, keyless.Signer{Issuer: signer.Issuer}, "give both"},
		"no issuer":      {good, keyless.Signer{Identity: signer.Identity}, "give both"},
		"another format": {[]byte(`{"mediaType":"x"}`), signer, "no trusted root"},
	} {
		if _, err := keyless.NewTrust(test.data, test.by); err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
