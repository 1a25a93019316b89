package document

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
)

// Canonical returns the canonical JSON of value: object keys sorted by bytes, no white space, no escaping beyond
// what JSON requires, numbers as encoding/json writes them. Two documents that declare the same have the same
// canonical JSON, whatever the order of their keys, their comments or their line breaks.
func Canonical(value any) ([]byte, error) {
	plain, err := encode(value)
	if err != nil {
		return nil, err
	}
	// A second pass through maps sorts the keys; numbers stay as they were written.
	decoder := json.NewDecoder(bytes.NewReader(plain))
	decoder.UseNumber()
	var tree any
	if err := decoder.Decode(&tree); err != nil {
		return nil, fmt.Errorf("canonical form: %w", err)
	}
	return encode(tree)
}

// Digest returns the sha256 digest of the canonical JSON of value.
func Digest(value any) (string, error) {
	data, err := Canonical(value)
	if err != nil {
		return "", err
	}
	sum := sha256.Sum256(data)
	return "sha256:" + hex.EncodeToString(sum[:]), nil
}

func encode(value any) ([]byte, error) {
	var buffer bytes.Buffer
	encoder := json.NewEncoder(&buffer)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(value); err != nil {
		return nil, fmt.Errorf("canonical form: %w", err)
	}
	return bytes.TrimSuffix(buffer.Bytes(), []byte("\n")), nil
}
