package bundle

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"

	"filippo.io/age"
)

// Sealed says what an encrypted bundle is, without what is in it. It is written beside the bundle, so that whoever
// keeps the bundle can name it and say who can open it.
type Sealed struct {
	Schema     string   `json:"schema"`
	Bundle     string   `json:"bundle"`
	Recipients []string `json:"recipients"`
	Plaintext  Sum      `json:"plaintext"`
	Ciphertext Sum      `json:"ciphertext"`
}

// Sum identifies bytes.
type Sum struct {
	Size   int64  `json:"size"`
	SHA256 string `json:"sha256"`
}

// SealedSchema identifies the form of Sealed.
const SealedSchema = "ptah.run/sealed-bundle/v1"

// Encode returns the bytes of the file beside the bundle.
func (s Sealed) Encode() ([]byte, error) {
	data, err := json.MarshalIndent(s, "", "  ")
	if err != nil {
		return nil, fmt.Errorf("encode the description of the sealed bundle: %w", err)
	}
	return append(data, '\n'), nil
}

// ParseRecipients reads age recipients. A secret key given for one is refused, and nothing that is refused is printed:
// it may be one.
func ParseRecipients(texts []string) ([]age.Recipient, error) {
	var recipients []age.Recipient
	for i, text := range texts {
		if strings.HasPrefix(strings.ToUpper(strings.TrimSpace(text)), "AGE-SECRET-KEY-") {
			return nil, fmt.Errorf("recipient %d is a secret key, give the recipient that belongs to it (age-keygen -y); the key may now be in the history of the shell", i+1)
		}
		parsed, err := age.ParseRecipients(strings.NewReader(strings.TrimSpace(text)))
		if err != nil || len(parsed) != 1 {
			return nil, fmt.Errorf("recipient %d is no age recipient, one begins with age1", i+1)
		}
		recipients = append(recipients, parsed[0])
	}
	if len(recipients) == 0 {
		return nil, errors.New("a restricted bundle needs a recipient, without one nobody could open it")
	}
	return recipients, nil
}

// Seal writes the bundle encrypted for the recipients. The plaintext is never written.
func (p *Prepared) Seal(w io.Writer, recipients []string) (Sealed, error) {
	parsed, err := ParseRecipients(recipients)
	if err != nil {
		return Sealed{}, err
	}
	plain, cipher := newSummer(io.Discard), newSummer(w)
	encrypted, err := age.Encrypt(cipher, parsed...)
	if err != nil {
		return Sealed{}, fmt.Errorf("encrypt the bundle: %w", err)
	}
	plain.out = encrypted
	if _, err := p.WriteTo(plain); err != nil {
		return Sealed{}, err
	}
	if err := encrypted.Close(); err != nil {
		return Sealed{}, fmt.Errorf("encrypt the bundle: %w", err)
	}
	sealed := Sealed{Schema: SealedSchema, Bundle: p.index.Name, Plaintext: plain.sum(), Ciphertext: cipher.sum()}
	for _, recipient := range recipients {
		sealed.Recipients = append(sealed.Recipients, strings.TrimSpace(recipient))
	}
	return sealed, nil
}

// WriteSummed writes the bundle and returns size and sum of the file.
func (p *Prepared) WriteSummed(w io.Writer) (Sum, error) {
	summed := newSummer(w)
	_, err := p.WriteTo(summed)
	return summed.sum(), err
}

// summer sums what it passes on.
type summer struct {
	out   io.Writer
	count int64
	hash  interface {
		io.Writer
		Sum([]byte) []byte
	}
}

func newSummer(out io.Writer) *summer { return &summer{out: out, hash: sha256.New()} }

func (s *summer) Write(p []byte) (int, error) {
	n, err := s.out.Write(p)
	s.count += int64(n)
	_, _ = s.hash.Write(p[:n]) // never fails
	return n, err
}

func (s *summer) sum() Sum { return Sum{Size: s.count, SHA256: hexSum(s.hash.Sum(nil))} }

const ageMark = "age-encryption.org/v1\n"

// Open returns the bytes of a bundle, decrypted where it is encrypted. Identities are the content of age identity
// files; without one that fits, an encrypted bundle is refused.
func Open(r io.Reader, identities ...[]byte) (io.Reader, error) {
	buffered := bufio.NewReaderSize(r, 64<<10)
	head, _ := buffered.Peek(len(ageMark))
	if !bytes.Equal(head, []byte(ageMark)) {
		return buffered, nil
	}
	var parsed []age.Identity
	for i, identity := range identities {
		list, err := age.ParseIdentities(bytes.NewReader(identity))
		if err != nil {
			return nil, fmt.Errorf("identity file %d holds no age identity", i+1) // the error of age quotes the line
		}
		parsed = append(parsed, list...)
	}
	if len(parsed) == 0 {
		return nil, refused("it is encrypted, give an identity that it was encrypted for")
	}
	plain, err := age.Decrypt(buffered, parsed...)
	var foreign *age.NoIdentityMatchError
	switch {
	case errors.As(err, &foreign):
		return nil, refused("it was encrypted for none of the given identities")
	case err != nil:
		return nil, refused("it cannot be decrypted: %v", err)
	}
	return &decrypting{plain}, nil
}

// decrypting turns the errors of decryption, which mean altered bytes, into refusals.
type decrypting struct{ plain io.Reader }

func (d *decrypting) Read(p []byte) (int, error) {
	n, err := d.plain.Read(p)
	if err != nil && !errors.Is(err, io.EOF) {
		err = refused("it was altered or cut: %v", err)
	}
	return n, err
}
