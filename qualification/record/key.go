package record

import (
	"context"
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"crypto/x509"
	"encoding/hex"
	"encoding/pem"
	"errors"
	"fmt"
	"strings"
)

// Algorithms of keys.
const (
	Ed25519 = "ed25519"
	ECDSA   = "ecdsa" // on the curve P-256, with SHA-256
)

// PEM block types.
const (
	privateBlock = "PRIVATE KEY"
	publicBlock  = "PUBLIC KEY"
)

// GenerateKey returns a new key pair as PEM: PKCS #8 and PKIX.
func GenerateKey(algorithm string) (private, public []byte, err error) {
	var signer crypto.Signer
	switch algorithm {
	case Ed25519:
		_, signer, err = ed25519.GenerateKey(rand.Reader)
	case ECDSA:
		signer, err = ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	default:
		return nil, nil, fmt.Errorf("there is no key algorithm %q, use %s or %s", algorithm, Ed25519, ECDSA)
	}
	if err != nil {
		return nil, nil, fmt.Errorf("generate the key: %w", err)
	}
	privateDER, err := x509.MarshalPKCS8PrivateKey(signer)
	if err != nil {
		return nil, nil, fmt.Errorf("encode the private key: %w", err)
	}
	publicDER, err := x509.MarshalPKIXPublicKey(signer.Public())
	if err != nil {
		return nil, nil, fmt.Errorf("encode the public key: %w", err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: privateBlock, Bytes: privateDER}), pem.EncodeToMemory(&pem.Block{Type: publicBlock, Bytes: publicDER}), nil
}

// Signer signs with a private key. It implements the signer of the DSSE library.
type Signer struct {
	key crypto.Signer
	id  string
}

// LoadSigner reads a PEM private key: PKCS #8, ed25519 or ECDSA.
func LoadSigner(data []byte) (*Signer, error) {
	block, err := onlyBlock(data, privateBlock)
	if err != nil {
		return nil, fmt.Errorf("the signing key: %w", err)
	}
	parsed, err := x509.ParsePKCS8PrivateKey(block.Bytes)
	if err != nil {
		return nil, fmt.Errorf("the signing key is no PKCS #8 key: %w", err)
	}
	key, ok := parsed.(crypto.Signer)
	if !ok {
		return nil, errors.New("the signing key can not sign, use an ed25519 or ECDSA key")
	}
	id, err := keyID(key.Public())
	if err != nil {
		return nil, fmt.Errorf("the signing key: %w", err)
	}
	return &Signer{key: key, id: id}, nil
}

// KeyID is the sha256 of the public key in PKIX form.
func (s *Signer) KeyID() (string, error) { return s.id, nil }

// Sign signs data.
func (s *Signer) Sign(_ context.Context, data []byte) ([]byte, error) {
	if _, ok := s.key.(ed25519.PrivateKey); ok {
		return s.key.Sign(rand.Reader, data, crypto.Hash(0))
	}
	sum := sha256.Sum256(data)
	return s.key.Sign(rand.Reader, sum[:], crypto.SHA256)
}

// Verifier checks signatures of one public key. It implements the verifier of the DSSE library.
type Verifier struct {
	key crypto.PublicKey
	id  string
}

// LoadVerifier reads a PEM public key: PKIX, ed25519 or ECDSA.
func LoadVerifier(data []byte) (*Verifier, error) {
	block, err := onlyBlock(data, publicBlock)
	if err != nil {
		return nil, fmt.Errorf("the verification key: %w", err)
	}
	key, err := x509.ParsePKIXPublicKey(block.Bytes)
	if err != nil {
		return nil, fmt.Errorf("the verification key is no PKIX key: %w", err)
	}
	id, err := keyID(key)
	if err != nil {
		return nil, fmt.Errorf("the verification key: %w", err)
	}
	return &Verifier{key: key, id: id}, nil
}

// KeyID is the sha256 of the public key in PKIX form.
func (v *Verifier) KeyID() (string, error) { return v.id, nil }

// Public returns the public key.
func (v *Verifier) Public() crypto.PublicKey { return v.key }

var errSignature = errors.New("the signature does not fit")

// Verify checks the signature of data.
func (v *Verifier) Verify(_ context.Context, data, signature []byte) error {
	switch key := v.key.(type) {
	case ed25519.PublicKey:
		if ed25519.Verify(key, data, signature) {
			return nil
		}
	case *ecdsa.PublicKey:
		sum := sha256.Sum256(data)
		if ecdsa.VerifyASN1(key, sum[:], signature) {
			return nil
		}
	}
	return errSignature
}

func keyID(key crypto.PublicKey) (string, error) {
	switch known := key.(type) {
	case ed25519.PublicKey:
	case *ecdsa.PublicKey:
		if known.Curve != elliptic.P256() {
			return "", errors.New("an ECDSA key must be on the curve P-256")
		}
	default:
		return "", fmt.Errorf("a %T is not supported, use an ed25519 or ECDSA key", key)
	}
	der, err := x509.MarshalPKIXPublicKey(key)
	if err != nil {
		return "", err
	}
	sum := sha256.Sum256(der)
	return "sha256:" + hex.EncodeToString(sum[:]), nil
}

func onlyBlock(data []byte, kind string) (*pem.Block, error) {
	block, rest := pem.Decode(data)
	if block == nil {
		return nil, errors.New("the file holds no PEM block")
	}
	if block.Type != kind {
		return nil, fmt.Errorf("the file holds a %q, not a %q", block.Type, kind)
	}
	if strings.TrimSpace(string(rest)) != "" {
		return nil, errors.New("the file holds more than one key")
	}
	return block, nil
}
