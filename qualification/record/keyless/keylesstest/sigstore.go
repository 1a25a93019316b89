// Package keylesstest makes a Sigstore for tests: its trusted root, and bundles that its clients would write. It needs no
// network, and nobody else trusts it.
package keylesstest

import (
	"crypto"
	"encoding/base64"
	"encoding/hex"
	"testing"

	protobundle "github.com/sigstore/protobuf-specs/gen/pb-go/bundle/v1"
	protocommon "github.com/sigstore/protobuf-specs/gen/pb-go/common/v1"
	protorekor "github.com/sigstore/protobuf-specs/gen/pb-go/rekor/v1"
	"github.com/sigstore/sigstore-go/pkg/root"
	"github.com/sigstore/sigstore-go/pkg/testing/ca"
	"github.com/sigstore/sigstore-go/pkg/tlog"
	"google.golang.org/protobuf/encoding/protojson"

	"ptah.run/ptah/qualification/record/keyless"
)

// Signer is a workflow at a revision, as a certificate names it.
var Signer = keyless.Signer{
	Identity: "https://example.com/ptah/.github/workflows/qualification.yaml@refs/tags/v0.2.4",
	Issuer:   "https://token.actions.githubusercontent.com",
}

// New makes a Sigstore.
func New(t testing.TB) *ca.VirtualSigstore {
	t.Helper()
	made, err := ca.NewVirtualSigstore()
	if err != nil {
		t.Fatal(err)
	}
	return made
}

// TrustedRoot is what a Sigstore distributes. Logs of certificates are named where it is asked for.
func TrustedRoot(t testing.TB, of *ca.VirtualSigstore, certificateLogs bool) []byte {
	t.Helper()
	logs := func(known map[string]*root.TransparencyLog) map[string]*root.TransparencyLog {
		for id, log := range known {
			raw, err := hex.DecodeString(id)
			if err != nil {
				t.Fatal(err)
			}
			log.ID, log.HashFunc, log.SignatureHashFunc = raw, crypto.SHA256, crypto.SHA256
		}
		return known
	}
	listed := map[string]*root.TransparencyLog{}
	if certificateLogs {
		listed = logs(of.CTLogs())
	}
	made, err := root.NewTrustedRoot(root.TrustedRootMediaType01, of.FulcioCertificateAuthorities(), listed, nil, logs(of.RekorLogs()))
	if err != nil {
		t.Fatal(err)
	}
	encoded, err := made.MarshalJSON()
	if err != nil {
		t.Fatal(err)
	}
	return encoded
}

// promised completes an entry as the log answers with it: with its kind, and the promise to include it.
func promised(t testing.TB, of *ca.VirtualSigstore, entry *protorekor.TransparencyLogEntry) *protorekor.TransparencyLogEntry {
	t.Helper()
	signed, err := of.RekorSignPayload(tlog.RekorPayload{Body: base64.StdEncoding.EncodeToString(entry.CanonicalizedBody), IntegratedTime: entry.IntegratedTime,
		LogIndex: entry.LogIndex, LogID: hex.EncodeToString(entry.LogId.KeyId)})
	if err != nil {
		t.Fatal(err)
	}
	entry.KindVersion = &protorekor.KindVersion{Kind: "hashedrekord", Version: "0.0.1"}
	entry.InclusionPromise = &protorekor.InclusionPromise{SignedEntryTimestamp: signed}
	return entry
}

// Bundle is a bundle with a signature over some bytes, as a client of Sigstore writes it, changed by the function.
func Bundle(t testing.TB, of *ca.VirtualSigstore, by keyless.Signer, signed []byte, change func(*protobundle.Bundle)) []byte {
	t.Helper()
	entity, err := of.Sign(by.Identity, by.Issuer, signed)
	if err != nil {
		t.Fatal(err)
	}
	signature, err := entity.SignatureContent()
	if err != nil {
		t.Fatal(err)
	}
	content, err := entity.VerificationContent()
	if err != nil {
		t.Fatal(err)
	}
	entries, err := entity.TlogEntries()
	if err != nil {
		t.Fatal(err)
	}
	var logged []*protorekor.TransparencyLogEntry
	for _, entry := range entries {
		logged = append(logged, promised(t, of, entry.TransparencyLogEntry()))
	}
	made := &protobundle.Bundle{
		MediaType: "application/vnd.dev.sigstore.bundle+json;version=0.1",
		VerificationMaterial: &protobundle.VerificationMaterial{
			Content: &protobundle.VerificationMaterial_X509CertificateChain{X509CertificateChain: &protocommon.X509CertificateChain{
				Certificates: []*protocommon.X509Certificate{{RawBytes: content.Certificate().Raw}}}},
			TlogEntries: logged,
		},
		Content: &protobundle.Bundle_MessageSignature{MessageSignature: &protocommon.MessageSignature{
			MessageDigest: &protocommon.HashOutput{Algorithm: protocommon.HashAlgorithm_SHA2_256, Digest: signature.MessageSignatureContent().Digest()},
			Signature:     signature.Signature(),
		}},
	}
	if change != nil {
		change(made)
	}
	encoded, err := protojson.Marshal(made)
	if err != nil {
		t.Fatal(err)
	}
	return encoded
}
