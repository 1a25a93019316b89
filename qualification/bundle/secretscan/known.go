package secretscan

import (
	"bytes"
	"encoding/base64"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"html"
	"net/url"
	"strings"
)

// MinimumSecret is the least number of bytes of a secret value that can be looked for.
const MinimumSecret = 8

// known finds given values and their usual encodings in one pass over the bytes.
type known struct {
	filter [1 << 16]bool       // by a hash of the first four bytes of a form
	forms  map[uint32][][]byte // by the first four bytes
}

func newKnown(secrets [][]byte) (*known, error) {
	k := &known{forms: map[uint32][][]byte{}}
	for i, secret := range secrets {
		if len(secret) < MinimumSecret {
			return nil, fmt.Errorf("secret value %d has %d bytes, a value of fewer than %d would be found everywhere", i+1, len(secret), MinimumSecret)
		}
		for _, form := range forms(secret) {
			k.add(form)
		}
	}
	return k, nil
}

// forms returns a value as it is and as it is usually written down. Base64 has three forms, one for each position that
// the value can have in what was encoded; only the characters that depend on nothing else are looked for.
func forms(secret []byte) [][]byte {
	text := string(secret)
	quoted, err := json.Marshal(text)
	if err != nil {
		quoted = []byte(`""`)
	}
	list := [][]byte{secret, quoted[1 : len(quoted)-1], []byte(html.EscapeString(text)), []byte(url.QueryEscape(text)), []byte(url.PathEscape(text)),
		[]byte(strings.ToLower(url.QueryEscape(text))), []byte(hex.EncodeToString(secret)), []byte(strings.ToUpper(hex.EncodeToString(secret)))}
	for before := range 3 {
		padded := append(make([]byte, before), secret...)
		first, last := (before*8+5)/6, len(padded)*8/6
		for _, encoding := range []*base64.Encoding{base64.RawStdEncoding, base64.RawURLEncoding} {
			list = append(list, []byte(encoding.EncodeToString(padded))[first:last])
		}
	}
	return list
}

func (k *known) add(form []byte) {
	if len(form) < MinimumSecret {
		return
	}
	head := binary.LittleEndian.Uint32(form)
	for _, other := range k.forms[head] {
		if bytes.Equal(other, form) {
			return
		}
	}
	k.filter[slot(head)] = true
	k.forms[head] = append(k.forms[head], form)
}

func slot(head uint32) uint16 { return uint16((head * 2654435761) >> 16) }

// find calls found with the offset of each form in data.
func (k *known) find(data []byte, found func(at int)) {
	if len(k.forms) == 0 {
		return
	}
	for i := 0; i+4 <= len(data); i++ {
		head := binary.LittleEndian.Uint32(data[i:])
		if !k.filter[slot(head)] {
			continue
		}
		for _, form := range k.forms[head] {
			if bytes.HasPrefix(data[i:], form) {
				found(i)
				break
			}
		}
	}
}

// ParseSecrets reads the values of a secret file: one value a line, or one PEM private key. Empty lines are skipped.
// Errors name a line and never its content.
func ParseSecrets(data []byte) ([][]byte, error) {
	if block, rest := pem.Decode(data); block != nil {
		if len(bytes.TrimSpace(rest)) > 0 {
			return nil, errors.New("it holds more than one PEM block, give each its own file")
		}
		return [][]byte{block.Bytes}, nil
	}
	var secrets [][]byte
	for i, line := range bytes.Split(data, []byte("\n")) {
		line = bytes.TrimSuffix(line, []byte("\r"))
		switch {
		case len(line) == 0:
		case len(line) < MinimumSecret:
			return nil, fmt.Errorf("the value on line %d has %d bytes, a value of fewer than %d would be found everywhere", i+1, len(line), MinimumSecret)
		default:
			secrets = append(secrets, bytes.Clone(line))
		}
	}
	if len(secrets) == 0 {
		return nil, errors.New("it holds no value")
	}
	return secrets, nil
}
