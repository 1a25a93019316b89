package dataplane

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"net"
	"net/url"
	"os"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"ptah.run/ptah/operator/api/v1alpha1"
	"ptah.run/ptah/qualification/lab"
	"ptah.run/ptah/qualification/lab/tenant"
	"ptah.run/ptah/qualification/lab/trust"
	"ptah.run/ptah/qualification/suites/bench"
	"ptah.run/ptah/qualification/suites/impostor"
	"ptah.run/ptah/qualification/suites/subject"
)

func TestUntrustedAuthorityRefused(t *testing.T) {
	t.Parallel()
	scenario(t, "untrusted-authority-refused", func(ctx context.Context, s *bench.Scenario) {
		one := subject.Prepare(ctx, s, subject.First, subject.Seldom)
		untrustedRegistry(ctx, one)
		untrustedDatabase(ctx, one)
	})
}

// untrustedRegistry lets the schema meet the lab's registry with one thing wrong at a time. What reached the registry is
// read in its own log.
func untrustedRegistry(ctx context.Context, one *subject.Subject) {
	one.T.Helper()
	own, err := os.ReadFile(one.Bench.Lab.Registry.CAFile)
	one.Fixture(err)
	foreign, err := trust.NewAuthority("not the registry's", time.Now())
	one.Fixture(err)
	host := one.Bench.Lab.Registry.ClusterHost
	address := registryAddress(ctx, one)
	elsewhere := strings.Replace(one.Artifact.Reference, host, address, 1)
	began := time.Now()
	trusts(ctx, one, string(foreign.PEM()), fingerprint(string(own)), host)
	one.Declare(ctx)

	notResolved(ctx, one, "an authority that the credential is not granted for", v1alpha1.ReasonConfigurationError, "not granted for this certificate authority")
	met := time.Now()
	trusts(ctx, one, string(foreign.PEM()), fingerprint(string(foreign.PEM())), host)
	notResolved(ctx, one, "another authority than the registry's", v1alpha1.ReasonConnectionFailed, "signed by an unknown authority")
	one.Witness("connections on which the client went away", refusedHandshakes(registryLog(ctx, one, met)))
	trusts(ctx, one, string(own), fingerprint(string(own)), "registry.example:5000")
	notResolved(ctx, one, "a credential for another registry", v1alpha1.ReasonConfigurationError, "is granted for registry.example:5000")
	trusts(ctx, one, string(own), fingerprint(string(own)), address)
	one.Patch(ctx, fmt.Sprintf(`{"spec":{"desired":{"ociRef":%q}}}`, elsewhere))
	notResolved(ctx, one, "a registry whose certificate names another server", v1alpha1.ReasonConnectionFailed, "for another host")
	log := registryLog(ctx, one, began)
	one.Check("no request reached the registry", requests(log, one.Key.Namespace) == 0, "its log shows %d requests for the artifact", requests(log, one.Key.Namespace))

	trusts(ctx, one, string(own), fingerprint(string(own)), host)
	one.Patch(ctx, fmt.Sprintf(`{"spec":{"desired":{"ociRef":%q}}}`, one.Artifact.Reference))
	one.Await(ctx, "a plan once the registry is trusted", bench.AwaitingApproval)
	log = registryLog(ctx, one, began)
	one.Check("control: requests reach the registry then", requests(log, one.Key.Namespace) > 0, "its log shows no request for the artifact, so that it proves nothing")
}

// untrustedDatabase points the schema at a server with a certificate of an authority that nobody knows.
func untrustedDatabase(ctx context.Context, one *subject.Subject) {
	one.T.Helper()
	gateway, err := lab.Gateway(ctx, one.Bench.Lab)
	one.Fixture(err)
	server, err := impostor.Start(gateway.String(), one.Database.Server.Engine)
	one.Fixture(err)
	one.T.Cleanup(func() {
		if err := server.Close(); err != nil {
			one.T.Errorf("end the impostor: %v", err)
		}
	})
	verified, trusting := "sslmode=verify-full", "sslmode=require"
	if one.Database.Server.Engine == lab.MySQL {
		verified, trusting = "tls=true", "tls=skip-verify"
	}
	one.PointAt(ctx, at(one, server.Address(), verified))
	one.Touch(ctx)
	failed := told(ctx, one, v1alpha1.ConditionDatabaseReachable, metav1.ConditionFalse, v1alpha1.ReasonConnectionFailed, "")
	record := server.Record()
	one.Witness("what clients did at the impostor", record)
	one.Need("the impostor was met", subject.ErrorUnless(record.Refused > 0, "no client came as far as its certificate"))
	one.Check("nothing was said to it", record.Spoken == 0, "%d clients went on", record.Spoken)
	for _, condition := range failed.Status.Conditions {
		one.Check("no credential in "+condition.Type, !strings.Contains(condition.Message, one.Database.Password), "the message holds the password")
	}

	// Control: the same server hears who somebody is that trusts everybody.
	one.PointAt(ctx, at(one, server.Address(), trusting))
	one.Touch(ctx)
	for end := time.Now().Add(subject.Patience); !server.Heard(one.Database.Name) && time.Now().Before(end); {
		time.Sleep(200 * time.Millisecond)
	}
	one.Check("control: a client that does not verify says its name", server.Heard(one.Database.Name), "the impostor did not hear %s, so that its record proves nothing", one.Database.Name)
	one.PointAt(ctx, one.Database.ClusterURL())
	one.Touch(ctx)
	one.Await(ctx, "a plan for the right database", func(now *v1alpha1.PtahSchema) bool {
		return bench.AwaitingApproval(now) && bench.Condition(now, v1alpha1.ConditionDatabaseReachable, metav1.ConditionTrue, "")
	})
}

// at is the URL of the schema's database on another server.
func at(one *subject.Subject, address, query string) string {
	one.T.Helper()
	place, err := url.Parse(one.Database.ClusterURL())
	one.Fixture(err)
	place.Host, place.RawQuery = address, query
	return place.String()
}

// notResolved waits until the schema says why it got nothing.
func notResolved(ctx context.Context, one *subject.Subject, what string, reason v1alpha1.Reason, words string) {
	one.T.Helper()
	failed := told(ctx, one, v1alpha1.ConditionArtifactResolved, metav1.ConditionFalse, reason, words)
	one.Check("no plan: "+what, failed.Status.Plan == nil, "there is a plan of an artifact that could not be read")
}

// trusts writes which authority the namespace trusts, for which one its credential is granted, and for which registry.
func trusts(ctx context.Context, one *subject.Subject, authority, granted, registry string) {
	one.T.Helper()
	meta := func(name string) metav1.ObjectMeta {
		return metav1.ObjectMeta{Namespace: one.Key.Namespace, Name: name}
	}
	for _, change := range []struct {
		object client.Object
		values any
	}{
		{&corev1.ConfigMap{ObjectMeta: meta(tenant.RegistryCA)}, map[string]any{"data": map[string]string{"ca.crt": authority}}},
		{&corev1.Secret{ObjectMeta: meta(tenant.RegistrySecret)}, map[string]any{"stringData": map[string]string{"caSHA256": granted, "registry": registry}}},
	} {
		patch, err := json.Marshal(change.values)
		one.Fixture(err)
		one.Fixture(one.Bench.Client.Patch(ctx, change.object, client.RawPatch(types.MergePatchType, patch)))
	}
}

func fingerprint(authority string) string {
	sum := sha256.Sum256([]byte(authority))
	return "sha256:" + hex.EncodeToString(sum[:])
}

// registryAddress is the registry by its address, which its certificate does not name.
func registryAddress(ctx context.Context, one *subject.Subject) string {
	one.T.Helper()
	address, err := lab.RegistryAddress(ctx, one.Bench.Lab)
	one.Fixture(err)
	_, port, err := net.SplitHostPort(one.Bench.Lab.Registry.ClusterHost)
	one.Fixture(err)
	return net.JoinHostPort(address.String(), port)
}

func registryLog(ctx context.Context, one *subject.Subject, since time.Time) []string {
	one.T.Helper()
	lines, err := lab.RegistryLog(ctx, one.Bench.Lab, since)
	one.Fixture(err)
	return lines
}

// requests counts the requests of a registry's log that are for repositories of a namespace.
func requests(log []string, namespace string) int {
	count := 0
	for _, line := range log {
		if strings.Contains(line, `"GET /v2/schemas/`+namespace+"/") || strings.Contains(line, `"HEAD /v2/schemas/`+namespace+"/") {
			count++
		}
	}
	return count
}

// refusedHandshakes are the lines of a registry's log about connections whose client did not take its certificate.
func refusedHandshakes(log []string) []string {
	var lines []string
	for _, line := range log {
		if strings.Contains(line, "TLS handshake error") {
			lines = append(lines, line)
		}
	}
	return lines
}
