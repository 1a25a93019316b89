package receiver

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"sigs.k8s.io/controller-runtime/pkg/certwatcher"

	"ptah.run/ptah/operator/operation/result"
	"ptah.run/ptah/operator/plan/report"
	"ptah.run/ptah/operator/receiver/delivery"
)

// writeCertificate puts a certificate for loopback into a folder and returns what trusts it.
func writeCertificate(t *testing.T, dir, name string) *x509.CertPool {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: name}, NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, IsCA: true, BasicConstraintsValid: true,
	}
	certificate, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	private, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	for file, block := range map[string]*pem.Block{"tls.crt": {Type: "CERTIFICATE", Bytes: certificate}, "tls.key": {Type: "EC PRIVATE KEY", Bytes: private}} {
		temporary := filepath.Join(dir, "new")
		if err := os.WriteFile(temporary, pem.EncodeToMemory(block), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Rename(temporary, filepath.Join(dir, file)); err != nil {
			t.Fatal(err)
		}
	}
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: certificate}))
	return pool
}

// running is a receiver that serves on loopback.
type running struct {
	world   *world
	dir     string
	address string
	trust   *x509.CertPool
	stop    context.CancelFunc
	ended   chan error
}

func serveWorld(t *testing.T) *running {
	t.Helper()
	r := &running{world: newWorld(t, delivery.OperationRefresh), dir: t.TempDir(), ended: make(chan error, 1)}
	r.trust = writeCertificate(t, r.dir, "first")
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	r.address = listener.Addr().String()
	watcher, err := certwatcher.New(filepath.Join(r.dir, "tls.crt"), filepath.Join(r.dir, "tls.key"))
	if err != nil {
		t.Fatal(err)
	}
	watcher = watcher.WithWatchInterval(50 * time.Millisecond)
	ctx, cancel := context.WithCancel(context.Background())
	r.stop = cancel
	t.Cleanup(cancel)
	go func() { r.ended <- r.world.server.serve(ctx, listener, watcher) }()
	return r
}

func (r *running) client(config *tls.Config) *http.Client {
	return &http.Client{Transport: &http.Transport{TLSClientConfig: config, DisableKeepAlives: true}, Timeout: 20 * time.Second}
}

func (r *running) request(t *testing.T, body []byte) *http.Request {
	t.Helper()
	request, err := http.NewRequest(http.MethodPut, "https://"+r.address+r.world.path(), bytes.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	header, err := delivery.Encode(r.world.id)
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set(delivery.IdentityHeader, header)
	request.Header.Set("Authorization", "Bearer "+token)
	request.Header.Set("Content-Type", result.MediaType)
	request.Header.Set(delivery.DigestHeader, report.Digest(body))
	return request
}

func TestItServesTLS13Only(t *testing.T) {
	r := serveWorld(t)
	body := r.world.document(t)
	response, err := r.client(&tls.Config{RootCAs: r.trust}).Do(r.request(t, body))
	if err != nil {
		t.Fatal(err)
	}
	_ = response.Body.Close()
	if response.StatusCode != http.StatusOK || response.TLS.Version != tls.VersionTLS13 {
		t.Errorf("status %d over TLS %x", response.StatusCode, response.TLS.Version)
	}
	if response, err := r.client(&tls.Config{RootCAs: r.trust, MaxVersion: tls.VersionTLS12}).Do(r.request(t, body)); err == nil {
		_ = response.Body.Close()
		t.Error("TLS 1.2 was accepted")
	}
}

func TestAHeaderTooLargeIsRefused(t *testing.T) {
	r := serveWorld(t)
	request := r.request(t, r.world.document(t))
	request.Header.Set("X-Filler", strings.Repeat("a", 64<<10))
	response, err := r.client(&tls.Config{RootCAs: r.trust}).Do(request)
	if err == nil {
		_ = response.Body.Close()
		if response.StatusCode != http.StatusRequestHeaderFieldsTooLarge {
			t.Errorf("status %d, want 431", response.StatusCode)
		}
	}
}

func TestANewCertificateIsServedWithoutARestart(t *testing.T) {
	r := serveWorld(t)
	trust := writeCertificate(t, r.dir, "second")
	deadline := time.Now().Add(20 * time.Second)
	for {
		connection, err := tls.Dial("tcp", r.address, &tls.Config{RootCAs: trust})
		if err == nil {
			_ = connection.Close()
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("the new certificate is not served: %v", err)
		}
		time.Sleep(20 * time.Millisecond)
	}
}

func TestStoppingLetsARunningDeliveryFinish(t *testing.T) {
	r := serveWorld(t)
	reached, finish := make(chan struct{}), make(chan struct{})
	r.world.fail = func(request string) error {
		if strings.HasPrefix(request, "create record") {
			close(reached)
			<-finish
		}
		return nil
	}
	answered := make(chan int, 1)
	body := r.world.document(t)
	request := r.request(t, body)
	go func() {
		response, err := r.client(&tls.Config{RootCAs: r.trust}).Do(request)
		if err != nil {
			answered <- 0
			return
		}
		_ = response.Body.Close()
		answered <- response.StatusCode
	}()
	<-reached
	if err := r.world.server.Ready(nil); err != nil {
		t.Errorf("while it serves: %v", err)
	}
	r.stop()
	select {
	case err := <-r.ended:
		t.Fatalf("the receiver ended with a delivery running: %v", err)
	case <-time.After(100 * time.Millisecond):
	}
	if r.world.server.Ready(nil) == nil {
		t.Error("a receiver that stops says that it is ready")
	}
	close(finish)
	if status := <-answered; status != http.StatusOK {
		t.Errorf("the delivery ended with status %d", status)
	}
	if err := <-r.ended; err != nil {
		t.Errorf("stopped with %v", err)
	}
}

func TestItIsNotReadyBeforeItServes(t *testing.T) {
	w := newWorld(t, delivery.OperationRefresh)
	if w.server.Ready(nil) == nil {
		t.Error("ready before Start")
	}
	if w.server.NeedLeaderElection() {
		t.Error("only the leader would receive")
	}
}

func TestOptionsAreChecked(t *testing.T) {
	w := newWorld(t, delivery.OperationRefresh)
	for name, options := range map[string]Options{
		"no client":      {Reader: w.client, TokenReviewer: w},
		"no reader":      {Client: w.client, TokenReviewer: w},
		"no reviewer":    {Client: w.client, Reader: w.client},
		"too many slots": {Client: w.client, Reader: w.client, TokenReviewer: w, Slots: MaxSlots + 1},
		"no such port":   {Client: w.client, Reader: w.client, TokenReviewer: w, Port: 70000},
	} {
		if _, err := New(options); err == nil {
			t.Errorf("%s: accepted", name)
		}
	}
	server, err := New(Options{Client: w.client, Reader: w.client, TokenReviewer: w, CertDir: t.TempDir(), Logger: logr.Discard()})
	if err != nil {
		t.Fatal(err)
	}
	if err := server.Start(context.Background()); err == nil || !strings.Contains(err.Error(), "read the serving certificate") {
		t.Errorf("without a certificate: %v", err)
	}
}
