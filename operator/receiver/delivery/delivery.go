// Package delivery is what the runner and the receiver agree on: how a Pod's identity is encoded in a header, the
// paths, and the receipt. It is pure and imports no client, because the runner holds none.
package delivery

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"

	"ptah.run/ptah/operator/operation/identity"
)

// Paths of the receiver. A publication follows.
const (
	ResultsPath = "/v1/results/"
	PlansPath   = "/v1/plans/"
)

// Headers.
const (
	// IdentityHeader carries an encoded Identity. It is a claim, never a proof.
	IdentityHeader = "X-Ptah-Result-Identity"
	// DigestHeader carries "sha256:" and the digest of the body, in requests and in responses that have a body.
	DigestHeader = "X-Ptah-Result-Digest"
)

// MediaTypePlan is the media type of plan bytes that the receiver serves.
const MediaTypePlan = "application/vnd.ptah.run.plan.v1+json"

// Limits.
const (
	// MaxTokenBytes bounds a bearer token: 8 KiB.
	MaxTokenBytes = 8 << 10
	// MaxReceiptBytes bounds a receipt and a refusal: 8 KiB.
	MaxReceiptBytes = 8 << 10
)

// KindPtahSchema is the only kind whose operations deliver results.
const KindPtahSchema = "PtahSchema"

// Operations that deliver.
const (
	OperationRefresh = "Refresh"
	OperationApply   = "Apply"
)

// Receipt is the acknowledgment of a stored result.
type Receipt struct {
	Publication string `json:"publication"`
	// Record and UID are those of the complete record.
	Record string `json:"record"`
	UID    string `json:"uid"`
	Digest string `json:"digest"`
	Size   int64  `json:"size"` // bytes
}

// Publication is the only publication that an identity may write or read.
func Publication(i identity.Identity) string {
	return identity.Publication(i.UID, i.OperationID, i.JobUID)
}

// IsPublication says whether text has the form of a publication.
func IsPublication(text string) bool {
	return len(text) == 32 && strings.Trim(text, "0123456789abcdef") == ""
}

// Encode returns the header value: canonical JSON in base64url without padding. It refuses an identity that Decode
// would refuse.
func Encode(i identity.Identity) (string, error) {
	if err := Validate(i); err != nil {
		return "", fmt.Errorf("encode identity: %w", err)
	}
	data, err := canonical(i)
	if err != nil {
		return "", fmt.Errorf("encode identity: %w", err)
	}
	return base64.RawURLEncoding.EncodeToString(data), nil
}

// Decode reads a header value strictly: bounded, no unknown or repeated field, every field present and in its bounds,
// and exactly the bytes that Encode writes.
func Decode(header string) (identity.Identity, error) {
	if len(header) > base64.RawURLEncoding.EncodedLen(identity.MaxBytes) {
		return identity.Identity{}, fmt.Errorf("decode identity: longer than %d bytes", identity.MaxBytes)
	}
	data, err := base64.RawURLEncoding.Strict().DecodeString(header)
	if err != nil {
		return identity.Identity{}, errors.New("decode identity: not base64url without padding")
	}
	claimed, err := DecodeJSON(data)
	if err != nil {
		return identity.Identity{}, err
	}
	if err := Validate(claimed); err != nil {
		return identity.Identity{}, fmt.Errorf("decode identity: %w", err)
	}
	canonical, err := canonical(claimed)
	if err != nil {
		return identity.Identity{}, fmt.Errorf("decode identity: %w", err)
	}
	if !bytes.Equal(canonical, data) {
		return identity.Identity{}, errors.New("decode identity: not in canonical form")
	}
	return claimed, nil
}

// DecodeJSON reads the JSON of an identity, refusing unknown fields and anything after it. It does not ask that every
// field be present: what the manager writes lacks the Pod's own.
func DecodeJSON(data []byte) (identity.Identity, error) {
	if len(data) > identity.MaxBytes {
		return identity.Identity{}, fmt.Errorf("decode identity: longer than %d bytes", identity.MaxBytes)
	}
	decoder := json.NewDecoder(bytes.NewReader(data))
	decoder.DisallowUnknownFields()
	var claimed identity.Identity
	if err := decoder.Decode(&claimed); err != nil {
		return identity.Identity{}, fmt.Errorf("decode identity: not an identity: %w", err)
	}
	if _, err := decoder.Token(); !errors.Is(err, io.EOF) {
		return identity.Identity{}, errors.New("decode identity: more than one JSON document")
	}
	return claimed, nil
}

// Validate says which field is missing or out of its bounds.
func Validate(i identity.Identity) error {
	for _, field := range []struct {
		name, value string
		limit       int
	}{
		{"namespace", i.Namespace, 63},
		{"name", i.Name, 253},
		{"uid", i.UID, 128},
		{"executionBindingID", i.ExecutionBindingID, 64},
		{"inputFingerprint", i.InputFingerprint, 128},
		{"operationID", i.OperationID, 128},
		{"jobName", i.JobName, 63},
		{"jobUID", i.JobUID, 128},
		{"podName", i.PodName, 253},
		{"podUID", i.PodUID, 128},
	} {
		if field.value == "" {
			return fmt.Errorf("%s is missing", field.name)
		}
		if len(field.value) > field.limit {
			return fmt.Errorf("%s is longer than %d bytes", field.name, field.limit)
		}
		for _, r := range field.value {
			if r <= ' ' || r > '~' || r == '"' || r == '\\' {
				return fmt.Errorf("%s holds a character that no identifier has", field.name)
			}
		}
	}
	if i.Kind != KindPtahSchema {
		return fmt.Errorf("kind %q delivers no results", i.Kind)
	}
	if i.Operation != OperationRefresh && i.Operation != OperationApply {
		return fmt.Errorf("operation %q delivers no results", i.Operation)
	}
	if i.Generation < 1 {
		return errors.New("generation is not positive")
	}
	return nil
}

func canonical(i identity.Identity) ([]byte, error) {
	var buffer bytes.Buffer
	encoder := json.NewEncoder(&buffer)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(i); err != nil {
		return nil, err
	}
	return bytes.TrimSuffix(buffer.Bytes(), []byte("\n")), nil
}
