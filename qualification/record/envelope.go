package record

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"

	ita "github.com/in-toto/attestation/go/v1"
	"github.com/secure-systems-lab/go-securesystemslib/dsse"
	"google.golang.org/protobuf/encoding/protojson"
)

func unsigned(payload []byte) dsse.Envelope {
	return dsse.Envelope{PayloadType: PayloadType, Payload: base64.StdEncoding.EncodeToString(payload), Signatures: []dsse.Signature{}}
}

// signEnvelope replaces an envelope by the signed one of the same payload.
func signEnvelope(ctx context.Context, envelope *dsse.Envelope, signer *Signer) error {
	envelopes, err := dsse.NewEnvelopeSigner(signer)
	if err != nil {
		return err
	}
	payload, err := envelope.DecodeB64Payload()
	if err != nil {
		return err
	}
	signed, err := envelopes.SignPayload(ctx, PayloadType, payload)
	if err != nil {
		return err
	}
	*envelope = *signed
	return nil
}

// verifyEnvelope checks that an envelope is signed, and every signature of it by a given key. A signature by another
// key is refused even beside a good one: what is not checked must not be in the file. It returns the ids of the keys.
func verifyEnvelope(ctx context.Context, envelope *dsse.Envelope, what string, keys []*Verifier) ([]string, error) {
	if len(keys) == 0 {
		return nil, refused(RefusedKey, "no key is given to verify %s with", what)
	}
	if len(envelope.Signatures) == 0 {
		return nil, refused(RefusedUnsigned, "%s is not signed", what)
	}
	if envelope.PayloadType != PayloadType {
		return nil, refused(RefusedStatement, "%s has the payload type %.80q, an in-toto statement has %q", what, envelope.PayloadType, PayloadType)
	}
	verifiers := make([]dsse.Verifier, len(keys))
	for i, key := range keys {
		verifiers[i] = key
	}
	for _, signature := range envelope.Signatures {
		if !slices.ContainsFunc(keys, func(key *Verifier) bool { return key.id == signature.KeyID }) {
			return nil, refused(RefusedKey, "%s is signed by the key %.80s, which is not among those given", what, signature.KeyID)
		}
	}
	checker, err := dsse.NewMultiEnvelopeVerifier(1, verifiers...)
	if err != nil {
		return nil, refused(RefusedKey, "%v", err)
	}
	accepted, err := checker.Verify(ctx, envelope)
	if err != nil || len(accepted) != len(envelope.Signatures) {
		return nil, refused(RefusedAltered, "a signature of %s does not fit: it was altered", what)
	}
	var ids []string
	for _, key := range accepted {
		ids = append(ids, key.KeyID)
	}
	return ids, nil
}

// payload returns the bytes of an in-toto statement that is valid by the rules of in-toto.
func payload(envelope *dsse.Envelope, what string) ([]byte, error) {
	data, err := envelope.DecodeB64Payload()
	if err != nil {
		return nil, refused(RefusedAltered, "%s: %v", what, err)
	}
	var standard ita.Statement
	if err := protojson.Unmarshal(data, &standard); err != nil {
		return nil, refused(RefusedStatement, "%s is no in-toto statement: %v", what, err)
	}
	if err := standard.Validate(); err != nil {
		return nil, refused(RefusedStatement, "%s is no valid in-toto statement: %v", what, err)
	}
	return data, nil
}

// encodeEnvelope returns the bytes of a file that holds one envelope.
func encodeEnvelope(envelope *dsse.Envelope) ([]byte, error) {
	data, err := json.MarshalIndent(envelope, "", "  ")
	if err != nil {
		return nil, fmt.Errorf("encode the envelope: %w", err)
	}
	return append(data, '\n'), nil
}

// decodeEnvelope reads a file that holds one envelope, in the one form that encodeEnvelope gives.
func decodeEnvelope(data []byte) (*dsse.Envelope, error) {
	var envelope dsse.Envelope
	if err := decodeFile("signed statement", data, &envelope); err != nil {
		return nil, err
	}
	exact, err := encodeEnvelope(&envelope)
	if err != nil {
		return nil, err
	}
	if !bytes.Equal(exact, data) {
		return nil, errNotExact
	}
	return &envelope, exactBase64(&envelope)
}

var errNotExact = errors.New("the file is not in the form in which it was written: it was edited or damaged")

func decodeFile(what string, data []byte, into any) error {
	if len(data) > MaxSize {
		return fmt.Errorf("the %s has %d bytes, the limit is %d", what, len(data), MaxSize)
	}
	decoder := json.NewDecoder(bytes.NewReader(data))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(into); err != nil {
		if errors.Is(err, io.EOF) {
			return fmt.Errorf("the file is no %s: it is empty", what)
		}
		return fmt.Errorf("the file is no %s: %w", what, err)
	}
	return nil
}

// exactBase64 refuses encodings that decode to the same bytes as another text.
func exactBase64(envelope *dsse.Envelope) error {
	texts := []string{envelope.Payload}
	for _, signature := range envelope.Signatures {
		texts = append(texts, signature.Sig)
	}
	for _, text := range texts {
		data, err := base64.StdEncoding.Strict().DecodeString(text)
		if err != nil || base64.StdEncoding.EncodeToString(data) != text {
			return errors.New("the file holds base64 that is not in its one exact form")
		}
	}
	return nil
}

func digest(data []byte) string {
	sum := sha256.Sum256(data)
	return "sha256:" + hex.EncodeToString(sum[:])
}
