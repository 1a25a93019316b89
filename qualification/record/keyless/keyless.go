// Package keyless checks Sigstore bundles: a signature by a certificate that an identity got for a few minutes, and the
// entry of a transparency log that shows that it was used in them. Nobody keeps a key. Everything that a check needs is
// given, so that it uses no network: the bundle, and the trusted root with the authorities and logs to believe.
package keyless

import (
	"bytes"
	"errors"
	"fmt"

	"github.com/sigstore/sigstore-go/pkg/bundle"
	"github.com/sigstore/sigstore-go/pkg/root"
	"github.com/sigstore/sigstore-go/pkg/verify"
)

// Signer is who must have signed.
type Signer struct {
	Identity string // of the certificate: an address, or the URL of a workflow at a revision
	Issuer   string // who vouched for it, such as https://token.actions.githubusercontent.com
}

// Trust is what signatures are held against.
type Trust struct {
	material *root.TrustedRoot
	signer   Signer
}

// NewTrust reads a trusted root as Sigstore distributes it, trusted_root.json. The signer is exact: neither of its parts
// is a pattern.
func NewTrust(trustedRoot []byte, signer Signer) (*Trust, error) {
	if signer.Identity == "" || signer.Issuer == "" {
		return nil, errors.New("a keyless signature is by an identity that an issuer vouched for: give both")
	}
	material, err := root.NewTrustedRootFromJSON(trustedRoot)
	if err != nil {
		return nil, fmt.Errorf("it is no trusted root of Sigstore: %w", err)
	}
	if len(material.FulcioCertificateAuthorities()) == 0 || len(material.RekorLogs()) == 0 {
		return nil, errors.New("the trusted root names no certificate authority or no transparency log, so that no signature could be checked against it")
	}
	return &Trust{material: material, signer: signer}, nil
}

// Check refuses a bundle unless it holds a signature by the signer over exactly these bytes: with a certificate of a
// trusted authority that a trusted log of certificates lists, where the trusted root names any, made while the
// certificate was valid by the time of an entry of a trusted transparency log.
func (t *Trust) Check(data, bundled []byte) error {
	var signed bundle.Bundle
	if err := signed.UnmarshalJSON(bundled); err != nil {
		return fmt.Errorf("it is no Sigstore bundle: %w", err)
	}
	verifier, err := verify.NewVerifier(t.material, t.demands()...)
	if err != nil {
		return fmt.Errorf("make the verifier: %w", err)
	}
	identity, err := verify.NewShortCertificateIdentity(t.signer.Issuer, "", t.signer.Identity, "")
	if err != nil {
		return fmt.Errorf("the signer that is demanded: %w", err)
	}
	if _, err := verifier.Verify(&signed, verify.NewPolicy(verify.WithArtifact(bytes.NewReader(data)), verify.WithCertificateIdentity(identity))); err != nil {
		return fmt.Errorf("the keyless signature does not hold: %w", err)
	}
	return nil
}

func (t *Trust) demands() []verify.VerifierOption {
	demands := []verify.VerifierOption{verify.WithTransparencyLog(1), verify.WithObserverTimestamps(1)}
	if len(t.material.CTLogs()) > 0 {
		demands = append(demands, verify.WithSignedCertificateTimestamps(1))
	}
	return demands
}

// String names the signer.
func (t *Trust) String() string {
	return t.signer.Identity + " (vouched for by " + t.signer.Issuer + ")"
}
