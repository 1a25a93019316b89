package keyless

import (
	"testing"

	"github.com/sigstore/sigstore-go/pkg/testing/data"
	"github.com/sigstore/sigstore-go/pkg/verify"
)

// What is demanded is what the public Sigstore gives: a bundle that it made for a published package holds under the
// public root, certificate logs included.
func TestTheDemandsAreThoseOfThePublicSigstore(t *testing.T) {
	trust := &Trust{material: data.TrustedRoot(t, "public-good.json")}
	if len(trust.demands()) != 3 {
		t.Fatalf("control: the public root names logs of certificates, and %d demands were made", len(trust.demands()))
	}
	verifier, err := verify.NewVerifier(trust.material, trust.demands()...)
	if err != nil {
		t.Fatal(err)
	}
	public := data.Bundle(t, "sigstore.js@2.0.0-provenance.sigstore.json")
	for workflow, holds := range map[string]bool{"release.yml@refs/heads/main": true, "release.yml@refs/heads/other": false} {
		demanded, err := verify.NewShortCertificateIdentity("https://token.actions.githubusercontent.com", "", "https://github.com/sigstore/sigstore-js/.github/workflows/"+workflow, "")
		if err != nil {
			t.Fatal(err)
		}
		_, err = verifier.Verify(public, verify.NewPolicy(verify.WithoutArtifactUnsafe(), verify.WithCertificateIdentity(demanded)))
		if (err == nil) != holds {
			t.Errorf("%s: %v", workflow, err)
		}
	}
}
