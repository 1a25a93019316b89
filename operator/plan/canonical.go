package plan

import (
	"bytes"
	"encoding/json"
	"fmt"

	"ptah.run/ptah/operator/plan/report"
)

// CanonicalJSON returns the one JSON text that stands for value: object keys in byte order, no insignificant space, no
// HTML escapes, numbers as encoding/json writes them, no trailing newline. Two values with the same JSON meaning have
// the same text, whatever the order of their Go fields.
func CanonicalJSON(value any) ([]byte, error) {
	first, err := json.Marshal(value)
	if err != nil {
		return nil, fmt.Errorf("canonical JSON: %w", err)
	}
	decoder := json.NewDecoder(bytes.NewReader(first))
	decoder.UseNumber()
	var generic any
	if err := decoder.Decode(&generic); err != nil {
		return nil, fmt.Errorf("canonical JSON: %w", err)
	}
	var out bytes.Buffer
	encoder := json.NewEncoder(&out)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(generic); err != nil {
		return nil, fmt.Errorf("canonical JSON: %w", err)
	}
	return bytes.TrimSuffix(out.Bytes(), []byte("\n")), nil
}

// CanonicalDigest is the SHA-256 of the canonical JSON of value, as "sha256:" and hex.
func CanonicalDigest(value any) (string, error) {
	data, err := CanonicalJSON(value)
	if err != nil {
		return "", err
	}
	return report.Digest(data), nil
}
