package trust

import (
	"crypto/tls"
	"crypto/x509"
	"io"
	"net"
	"strings"
	"testing"
	"time"

	"golang.org/x/crypto/bcrypt"
)

func TestAServersCertificateIsTrustedThroughItsAuthorityForItsNamesOnly(t *testing.T) {
	now := time.Now()
	authority, err := NewAuthority("lab x", now)
	if err != nil {
		t.Fatal(err)
	}
	certificate, key, err := authority.Server(now, "lab-registry", "localhost", "127.0.0.1")
	if err != nil {
		t.Fatal(err)
	}
	other, err := NewAuthority("lab y", now)
	if err != nil {
		t.Fatal(err)
	}
	pair, err := tls.X509KeyPair(certificate, key)
	if err != nil {
		t.Fatal(err)
	}
	listener, err := tls.Listen("tcp", "127.0.0.1:0", &tls.Config{Certificates: []tls.Certificate{pair}})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = listener.Close() }()
	go func() {
		for {
			connection, err := listener.Accept()
			if err != nil {
				return
			}
			go func(c net.Conn) { _, _ = io.Copy(io.Discard, c); _ = c.Close() }(connection)
		}
	}()
	cases := map[string]struct {
		authority *Authority
		name      string
		trusted   bool
	}{
		"by container name":       {authority, "lab-registry", true},
		"by localhost":            {authority, "localhost", true},
		"by address":              {authority, "127.0.0.1", true},
		"by another name":         {authority, "other-registry", false},
		"through another's lab":   {other, "lab-registry", false},
		"by an address of others": {authority, "127.0.0.2", false},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			pool := x509.NewCertPool()
			pool.AppendCertsFromPEM(c.authority.PEM())
			connection, err := tls.Dial("tcp", listener.Addr().String(), &tls.Config{RootCAs: pool, ServerName: c.name})
			if err == nil {
				_ = connection.Close()
			}
			if (err == nil) != c.trusted {
				t.Errorf("got %v, want trusted %v", err, c.trusted)
			}
		})
	}
}

func TestPasswordsAreRandomAndTheirFileMatches(t *testing.T) {
	first, err := Password()
	if err != nil || len(first) != 32 {
		t.Fatalf("got %q, %v", first, err)
	}
	if second, _ := Password(); second == first {
		t.Error("two passwords are the same")
	}
	line, err := PasswordFile("ptah", first)
	if err != nil {
		t.Fatal(err)
	}
	user, hash, _ := strings.Cut(strings.TrimSpace(string(line)), ":")
	if user != "ptah" || bcrypt.CompareHashAndPassword([]byte(hash), []byte(first)) != nil {
		t.Errorf("the line %q does not match", line)
	}
	if bcrypt.CompareHashAndPassword([]byte(hash), []byte("other")) == nil {
		t.Error("another password matches")
	}
}
