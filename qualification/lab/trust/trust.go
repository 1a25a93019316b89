// Package trust makes a lab's own certificate authority, certificates and passwords. Each lab has its own, nothing
// of it outlives the lab, and nothing outside the lab trusts it.
package trust

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/hex"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"time"

	"golang.org/x/crypto/bcrypt"
)

// Lifetime of the authority and of what it signs: longer than any soak.
const Lifetime = 90 * 24 * time.Hour

// passwordCost is bcrypt's smallest: the registry checks it on every request, and the passwords are random.
const passwordCost = bcrypt.MinCost

// Authority signs certificates.
type Authority struct {
	certificate *x509.Certificate
	key         *ecdsa.PrivateKey
	pem         []byte
}

// NewAuthority makes an authority that is valid from an hour before now.
func NewAuthority(name string, now time.Time) (*Authority, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, fmt.Errorf("make the key of the lab's certificate authority: %w", err)
	}
	template := &x509.Certificate{
		Subject:  pkix.Name{CommonName: name},
		KeyUsage: x509.KeyUsageCertSign | x509.KeyUsageCRLSign, IsCA: true, BasicConstraintsValid: true, MaxPathLenZero: true,
	}
	der, err := sign(template, template, key, key, now)
	if err != nil {
		return nil, fmt.Errorf("make the lab's certificate authority: %w", err)
	}
	certificate, err := x509.ParseCertificate(der)
	if err != nil {
		return nil, fmt.Errorf("make the lab's certificate authority: %w", err)
	}
	return &Authority{certificate: certificate, key: key, pem: encode("CERTIFICATE", der)}, nil
}

// PEM returns the authority's certificate.
func (a *Authority) PEM() []byte { return a.pem }

// Server returns the certificate and key, both PEM, of a server with the given names and addresses.
func (a *Authority) Server(now time.Time, hosts ...string) (certificate, key []byte, err error) {
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, nil, fmt.Errorf("make the key of a server: %w", err)
	}
	template := &x509.Certificate{
		Subject:  pkix.Name{CommonName: hosts[0]},
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
		BasicConstraintsValid: true,
	}
	for _, host := range hosts {
		if address := net.ParseIP(host); address != nil {
			template.IPAddresses = append(template.IPAddresses, address)
		} else {
			template.DNSNames = append(template.DNSNames, host)
		}
	}
	der, err := sign(template, a.certificate, private, a.key, now)
	if err != nil {
		return nil, nil, fmt.Errorf("make the certificate of a server: %w", err)
	}
	encoded, err := x509.MarshalPKCS8PrivateKey(private)
	if err != nil {
		return nil, nil, fmt.Errorf("encode the key of a server: %w", err)
	}
	return encode("CERTIFICATE", der), encode("PRIVATE KEY", encoded), nil
}

func sign(template, parent *x509.Certificate, key, signer *ecdsa.PrivateKey, now time.Time) ([]byte, error) {
	serial, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 120))
	if err != nil {
		return nil, err
	}
	template.SerialNumber = serial
	template.NotBefore, template.NotAfter = now.Add(-time.Hour), now.Add(Lifetime)
	return x509.CreateCertificate(rand.Reader, template, parent, &key.PublicKey, signer)
}

func encode(kind string, der []byte) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der})
}

// Password returns 32 random hexadecimal digits.
func Password() (string, error) {
	random := make([]byte, 16)
	if _, err := rand.Read(random); err != nil {
		return "", fmt.Errorf("make a password: %w", err)
	}
	return hex.EncodeToString(random), nil
}

// PasswordFile returns a line of an htpasswd file.
func PasswordFile(user, password string) ([]byte, error) {
	hash, err := bcrypt.GenerateFromPassword([]byte(password), passwordCost)
	if err != nil {
		return nil, fmt.Errorf("hash a password: %w", err)
	}
	return []byte(user + ":" + string(hash) + "\n"), nil
}
