package main

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"io"
	"log/slog"
	"math/big"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr"
	coordinationv1 "k8s.io/api/coordination/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"ptah.run/ptah/operator/testserver"
)

var server = &testserver.Server{CRDs: "../../../chart/ptah-operator/crds"}

func TestMain(m *testing.M) {
	m.Run() // the test program exits with what it returned
	if err := server.Stop(); err != nil {
		panic("stop the API server: " + err.Error())
	}
}

func goodFlags(t *testing.T) []string {
	image := func(name string) string {
		return "registry.example/ptah/" + name + "@sha256:" + strings.Repeat("a", 64)
	}
	return []string{
		"--executor-image=" + image("executor"), "--runner-image=" + image("runner"), "--ptah-version=1.0.0",
		"--results-url=https://results.example", "--coordination-namespace=default", "--webhook-cert-dir=" + certificates(t),
		"--webhook-port=" + freePort(t), "--results-port=" + freePort(t), "--metrics-bind-address=0", "--health-probe-bind-address=127.0.0.1:" + freePort(t),
	}
}

func TestFlagsThatCannotWorkAreRefusedInOneSentence(t *testing.T) {
	for name, test := range map[string]struct{ flag, want string }{
		"an executor image by tag":      {"--executor-image=registry.example/ptah/executor:1.0", "--executor-image"},
		"a runner image by tag":         {"--runner-image=registry.example/ptah/runner:1.0", "--runner-image"},
		"no version of ptah":            {"--ptah-version=", "--ptah-version"},
		"a version over 128 bytes":      {"--ptah-version=" + strings.Repeat("1", 129), "--ptah-version"},
		"results over plain HTTP":       {"--results-url=http://results.example", "--results-url"},
		"a results URL with a path":     {"--results-url=https://results.example/v1", "--results-url"},
		"an argument that is no flag":   {"reconcile", "unexpected argument"},
		"a flag that nobody knows":      {"--colour=blue", "colour"},
		"a port that is not a number":   {"--results-port=many", "results-port"},
		"a digest of the wrong length":  {"--runner-image=registry.example/runner@sha256:abc", "--runner-image"},
		"an image with a second digest": {"--runner-image=a@sha256:" + strings.Repeat("a", 64) + "@sha256:" + strings.Repeat("a", 64), "--runner-image"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := parse(append(goodFlags(t), test.flag), io.Discard)
			if err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("parse said %v, not something about %s", err, test.want)
			}
		})
	}
	if _, err := parse(goodFlags(t), io.Discard); err != nil {
		t.Errorf("the control is refused: %v", err)
	}
}

// The whole program starts on a real API server, becomes ready, leads, caches what it needs and nothing else, and gives
// its Lease back when it stops. A process can have one manager, so that this is one test.
func TestTheManagerStartsBecomesReadyCachesLittleAndGivesItsLeaseBack(t *testing.T) {
	config, asked := recorded(server.Config(t))
	s, err := parse(goodFlags(t), io.Discard)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	logs := &bytes.Buffer{}
	ended := make(chan error, 1)
	mgr, err := assemble(config, s, logr.FromSlogHandler(slog.NewTextHandler(logs, nil)))
	if err != nil {
		t.Fatal(err)
	}
	go func() { ended <- mgr.Start(ctx) }()
	eventually(t, "ready", func() bool {
		response, err := http.Get("http://" + s.probeAddress + "/readyz")
		if err != nil {
			return false
		}
		defer func() { _ = response.Body.Close() }()
		return response.StatusCode == http.StatusOK
	})
	scheme, err := newScheme()
	if err != nil {
		t.Fatal(err)
	}
	direct, err := client.New(server.Config(t), client.Options{Scheme: scheme})
	if err != nil {
		t.Fatal(err)
	}
	holder := func() string {
		lease := &coordinationv1.Lease{}
		if err := direct.Get(context.Background(), client.ObjectKey{Namespace: "default", Name: leaderLease}, lease); err != nil {
			return ""
		}
		return ptr.Deref(lease.Spec.HolderIdentity, "")
	}
	eventually(t, "leading", func() bool { return holder() != "" })
	if !mgr.GetCache().WaitForCacheSync(ctx) {
		t.Fatal("the caches were not filled")
	}
	t.Run("the cache holds only what is watched", func(t *testing.T) { cachesOnly(t, mgr.GetCache(), asked) })
	t.Run("foreign objects take no memory", func(t *testing.T) { foreignObjectsTakeNoMemory(t, mgr.GetCache(), scheme) })
	stopped := time.Now()
	cancel()
	select {
	case err := <-ended:
		if err != nil {
			t.Errorf("the manager ended with %v", err)
		}
	case <-time.After(gracefulStop + 5*time.Second):
		t.Fatal("the manager did not stop")
	}
	if took := time.Since(stopped); took > gracefulStop {
		t.Errorf("stopping took %s", took)
	}
	if got := holder(); got != "" {
		t.Errorf("the leader Lease is still held by %s", got)
	}
}

func eventually(t *testing.T, what string, is func() bool) {
	t.Helper()
	for deadline := time.Now().Add(60 * time.Second); time.Now().Before(deadline); time.Sleep(100 * time.Millisecond) {
		if is() {
			return
		}
	}
	t.Fatalf("not %s within a minute", what)
}

func freePort(t *testing.T) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = listener.Close() }()
	_, port, err := net.SplitHostPort(listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	return port
}

func certificates(t *testing.T) string {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "localhost"}, NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		DNSNames: []string{"localhost"}, IsCA: true, BasicConstraintsValid: true,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	keyDER, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	for name, block := range map[string]*pem.Block{
		"tls.crt": {Type: "CERTIFICATE", Bytes: der}, "ca.crt": {Type: "CERTIFICATE", Bytes: der}, "tls.key": {Type: "PRIVATE KEY", Bytes: keyDER},
	} {
		if err := os.WriteFile(filepath.Join(dir, name), pem.EncodeToMemory(block), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}
