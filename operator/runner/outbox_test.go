package runner

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"io"
	"log"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"ptah.run/ptah/operator/operation/env"
	"ptah.run/ptah/operator/receiver/delivery"
)

func TestDeliveryIsRepeatedWhileItCanStillArrive(t *testing.T) {
	b := refreshBench(t)
	b.post.answers = []int{0, 503, 500, 200}
	b.wantExit(b.run("database"), ExitDone)
	if len(b.post.documents) != 4 {
		t.Fatalf("%d attempts, want 4", len(b.post.documents))
	}
	for _, document := range b.post.documents {
		if string(document) != string(b.post.documents[0]) {
			t.Error("two attempts sent different bytes")
		}
	}
}

func TestDeliveryEndsAtItsBound(t *testing.T) {
	b := refreshBench(t)
	b.post.answers = []int{503, 503, 503, 503, 200}
	b.wantExit(b.run("database"), ExitUndelivered)
	if len(b.post.documents) != deliveryAttempts {
		t.Errorf("%d attempts, want %d", len(b.post.documents), deliveryAttempts)
	}
}

func TestADefiniteRefusalIsNotAskedAgain(t *testing.T) {
	for _, status := range []int{400, 401, 403, 409, 411, 413, 415, 422} {
		b := refreshBench(t)
		b.post.answers = []int{status}
		b.wantExit(b.run("database"), ExitUndelivered)
		if len(b.post.documents) != 1 {
			t.Errorf("status %d: %d attempts, want 1", status, len(b.post.documents))
		}
		if !strings.Contains(b.log.String(), "so it is") {
			t.Errorf("status %d: the log does not say why: %s", status, b.log.String())
		}
	}
}

func TestOnlyTheReceiptOfThisResultIsOne(t *testing.T) {
	for name, spoil := range map[string]func(*delivery.Receipt){
		"another digest":      func(r *delivery.Receipt) { r.Digest = artifact },
		"another size":        func(r *delivery.Receipt) { r.Size++ },
		"another publication": func(r *delivery.Receipt) { r.Publication = strings.Repeat("0", 32) },
		"no record":           func(r *delivery.Receipt) { r.UID = "" },
	} {
		t.Run(name, func(t *testing.T) {
			b := refreshBench(t)
			b.post.receipt = spoil
			b.wantExit(b.run("database"), ExitUndelivered)
		})
	}
}

func TestWithoutAUsableAddressNothingIsStarted(t *testing.T) {
	for name, change := range map[string]func(*bench){
		"no endpoint":            func(b *bench) { delete(b.env, env.ResultEndpoint) },
		"plain HTTP":             func(b *bench) { b.env[env.ResultEndpoint] = "http://results" },
		"an endpoint with path":  func(b *bench) { b.env[env.ResultEndpoint] += "/v1" },
		"no token file":          func(b *bench) { delete(b.env, env.ResultTokenFile) },
		"no trust":               func(b *bench) { delete(b.env, env.ResultTrustPEM) },
		"trust that is none":     func(b *bench) { b.env[env.ResultTrustPEM] = "x" },
		"no identity":            func(b *bench) { delete(b.env, env.ResultIdentity) },
		"an identity that is no": func(b *bench) { b.env[env.ResultIdentity] = `{"odd":1}` },
		"no Job UID":             func(b *bench) { delete(b.env, env.JobUID) },
		"no Pod name":            func(b *bench) { delete(b.env, env.PodName) },
		"no Pod UID":             func(b *bench) { delete(b.env, env.PodUID) },
		"another operation":      func(b *bench) { b.env[env.OperationID] = "op-2" },
		"no operation":           func(b *bench) { delete(b.env, env.Operation) },
	} {
		t.Run(name, func(t *testing.T) {
			b := refreshBench(t)
			change(b)
			b.wantExit(b.run("database"), ExitUndelivered)
			b.wantCommands()
			if !strings.Contains(b.log.String(), "No result can be delivered") {
				t.Errorf("the log does not say so: %s", b.log.String())
			}
		})
	}
}

// selfSigned is a certificate for loopback that nobody trusts.
func selfSigned(t *testing.T) tls.Certificate {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
	}
	certificate, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	return tls.Certificate{Certificate: [][]byte{certificate}, PrivateKey: key}
}

func TestTheReceiverMustBeTheTrustedOneAndSpeakTLS13(t *testing.T) {
	reached := false
	old := httptest.NewUnstartedServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { reached = true }))
	old.Config.ErrorLog = log.New(io.Discard, "", 0)
	old.TLS = &tls.Config{MaxVersion: tls.VersionTLS12}
	old.StartTLS()
	defer old.Close()
	// Another certificate than the one that the Pod trusts.
	pair := selfSigned(t)
	stranger := httptest.NewUnstartedServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { reached = true }))
	stranger.Config.ErrorLog = log.New(io.Discard, "", 0)
	stranger.TLS = &tls.Config{Certificates: []tls.Certificate{pair}, MinVersion: tls.VersionTLS13}
	stranger.StartTLS()
	defer stranger.Close()
	for name, endpoint := range map[string]string{"TLS 1.2": old.URL, "another certificate": stranger.URL} {
		t.Run(name, func(t *testing.T) {
			b := applyBench(t)
			b.env[env.ResultTrustPEM] = string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: old.Certificate().Raw}))
			b.env[env.ResultEndpoint] = endpoint
			b.wantExit(b.run("database"), ExitUndelivered)
			b.wantCommands()
			if reached {
				t.Error("a request reached a receiver that is not to be trusted")
			}
		})
	}
}

func TestARedirectIsNotFollowed(t *testing.T) {
	b := refreshBench(t)
	b.post.answers = []int{http.StatusTemporaryRedirect}
	b.wantExit(b.run("database"), ExitUndelivered)
	if len(b.post.requests) != 1 {
		t.Errorf("requests %v, want one", b.post.requests)
	}
}
