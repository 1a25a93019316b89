package receiver_test

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"math/big"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr"
	authenticationv1 "k8s.io/api/authentication/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"ptah.run/ptah/operator/api/v1alpha1"
	"ptah.run/ptah/operator/operation/env"
	"ptah.run/ptah/operator/operation/identity"
	"ptah.run/ptah/operator/operation/result"
	"ptah.run/ptah/operator/receiver"
	"ptah.run/ptah/operator/runner"
	"ptah.run/ptah/operator/testserver"
)

var apiServer = &testserver.Server{CRDs: filepath.Join("..", "..", "chart", "ptah-operator", "crds")}

func TestMain(m *testing.M) {
	m.Run() // the test program exits with what it returned
	if err := apiServer.Stop(); err != nil {
		panic("stop the API server: " + err.Error())
	}
}

// pod is one operation Pod on a real API server, with the token that the kubelet would mount.
type pod struct {
	client  client.Client
	clients *kubernetes.Clientset
	id      identity.Identity
	dir     string
	trust   []byte
	address string
}

func startPod(t *testing.T) *pod {
	t.Helper()
	config := apiServer.Config(t)
	scheme := runtime.NewScheme()
	if err := errors.Join(clientgoscheme.AddToScheme(scheme), v1alpha1.AddToScheme(scheme)); err != nil {
		t.Fatal(err)
	}
	c, err := client.New(config, client.Options{Scheme: scheme})
	if err != nil {
		t.Fatal(err)
	}
	clients, err := kubernetes.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	p := &pod{client: c, clients: clients, dir: t.TempDir()}
	p.create(t)
	p.serve(t)
	return p
}

func (p *pod) create(t *testing.T) {
	t.Helper()
	ctx := t.Context()
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "receiver-"}}
	must(p.client.Create(ctx, namespace))
	must(p.client.Create(ctx, &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: namespace.Name, Name: "default"}}))
	schema := &v1alpha1.PtahSchema{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace.Name, Name: "orders"},
		Spec: v1alpha1.PtahSchemaSpec{
			Target: v1alpha1.DatabaseTargetSpec{Engine: v1alpha1.EnginePostgreSQL, CoordinationKey: "orders", URLFrom: corev1.SecretKeySelector{LocalObjectReference: corev1.LocalObjectReference{Name: "db"}, Key: "url"}},
			Desired: v1alpha1.OCIArtifactSourceSpec{OCIRef: "oci://registry.example/orders:1", VerificationPolicyFrom: corev1.ConfigMapKeySelector{
				LocalObjectReference: corev1.LocalObjectReference{Name: "policy"}, Key: "policy",
			}},
			Policy:    v1alpha1.SchemaPolicy{Apply: v1alpha1.ApplyOnApproval, DriftSeverity: "all", LockTimeout: metav1.Duration{Duration: 30 * time.Second}, TransactionMode: "file"},
			Interval:  metav1.Duration{Duration: 10 * time.Minute},
			Execution: v1alpha1.ExecutionSpec{ActiveDeadlineSeconds: 900, FailureRetryInterval: metav1.Duration{Duration: 30 * time.Second}, ConnectTimeout: metav1.Duration{Duration: 10 * time.Second}},
		},
	}
	must(p.client.Create(ctx, schema))
	p.id = identity.Identity{
		Namespace: namespace.Name, Kind: "PtahSchema", Name: "orders", UID: string(schema.UID), Generation: schema.Generation,
		ExecutionBindingID: "v1-" + strings.Repeat("a", 32), InputFingerprint: "sha256:" + strings.Repeat("1", 64),
		Operation: result.OperationRefresh, OperationID: "sha256:" + strings.Repeat("2", 64), JobName: "ptah-refresh-orders", PodName: "ptah-refresh-orders-abcde",
	}
	schema.Status.ActiveOperation = &v1alpha1.ActiveOperationStatus{
		Type: v1alpha1.OperationRefresh, ID: p.id.OperationID, InputFingerprint: p.id.InputFingerprint, Generation: schema.Generation, JobName: p.id.JobName,
		StartedAt: metav1.Now(), Attempt: 1, ExecutionBindingID: p.id.ExecutionBindingID, DispatchStarted: true, TerminationGracePeriodSeconds: 30,
		CoordinationDigest: "sha256:" + strings.Repeat("3", 64), Target: v1alpha1.DatabaseTargetBinding{Engine: v1alpha1.EnginePostgreSQL, URLFrom: schema.Spec.Target.URLFrom},
	}
	must(p.client.Status().Update(ctx, schema))
	template := corev1.PodSpec{ServiceAccountName: "default", RestartPolicy: corev1.RestartPolicyNever, Containers: []corev1.Container{{Name: "database", Image: "executor"}}}
	job := &batchv1.Job{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace.Name, Name: p.id.JobName,
			Annotations:     map[string]string{v1alpha1.AnnotationOperationID: p.id.OperationID, v1alpha1.AnnotationInputs: p.id.InputFingerprint, v1alpha1.AnnotationBinding: p.id.ExecutionBindingID},
			OwnerReferences: []metav1.OwnerReference{{APIVersion: v1alpha1.GroupVersion.String(), Kind: "PtahSchema", Name: "orders", UID: schema.UID, Controller: ptr.To(true)}}},
		Spec: batchv1.JobSpec{Template: corev1.PodTemplateSpec{Spec: template}},
	}
	must(p.client.Create(ctx, job))
	running := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace.Name, Name: p.id.PodName,
			OwnerReferences: []metav1.OwnerReference{{APIVersion: "batch/v1", Kind: "Job", Name: job.Name, UID: job.UID, Controller: ptr.To(true)}}},
		Spec: template,
	}
	must(p.client.Create(ctx, running))
	p.id.JobUID, p.id.PodUID = string(job.UID), string(running.UID)
	p.mount(t, "token", v1alpha1.ResultTokenAudience, true)
}

// mount asks for a token as the kubelet does.
func (p *pod) mount(t *testing.T, file, audience string, bound bool) string {
	t.Helper()
	request := &authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{Audiences: []string{audience}, ExpirationSeconds: ptr.To(int64(3600))}}
	if bound {
		var pod corev1.Pod
		if err := p.client.Get(t.Context(), client.ObjectKey{Namespace: p.id.Namespace, Name: p.id.PodName}, &pod); err != nil {
			t.Fatal(err)
		}
		request.Spec.BoundObjectRef = &authenticationv1.BoundObjectReference{Kind: "Pod", APIVersion: "v1", Name: pod.Name, UID: pod.UID}
	}
	answer, err := p.clients.CoreV1().ServiceAccounts(p.id.Namespace).CreateToken(t.Context(), "default", request, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(p.dir, file)
	if err := os.WriteFile(path, []byte(answer.Status.Token), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// serve starts a receiver as the manager does.
func (p *pod) serve(t *testing.T) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, IsCA: true, BasicConstraintsValid: true}
	certificate, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	private, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	p.trust = pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: certificate})
	certs := t.TempDir()
	for name, data := range map[string][]byte{"tls.crt": p.trust, "tls.key": pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: private})} {
		if err := os.WriteFile(filepath.Join(certs, name), data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	free, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	port := free.Addr().(*net.TCPAddr).Port
	_ = free.Close() // a port that stays taken is seen below
	server, err := receiver.New(receiver.Options{Client: p.client, Reader: p.client, TokenReviewer: receiver.NewTokenReviewer(p.client), CertDir: certs, Port: port, Logger: logr.Discard()})
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- server.Start(ctx) }()
	t.Cleanup(func() {
		stop()
		if err := <-ended; err != nil {
			t.Errorf("the receiver ended with %v", err)
		}
	})
	for server.Ready(&http.Request{}) != nil {
		select {
		case err := <-ended:
			t.Fatalf("the receiver did not start: %v", err)
		case <-time.After(5 * time.Millisecond):
		}
	}
	p.address = fmt.Sprintf("https://127.0.0.1:%d", port)
}

// run lets the real runner fail at its first step and deliver that.
func (p *pod) run(t *testing.T, tokenFile string) (int, string) {
	t.Helper()
	frozen := p.id
	frozen.JobUID, frozen.PodName, frozen.PodUID = "", "", ""
	text, err := json.Marshal(frozen)
	if err != nil {
		t.Fatal(err)
	}
	variables := map[string]string{
		env.ProtocolVersion: "1", env.Operation: p.id.Operation, env.OperationID: p.id.OperationID, env.WorkDir: p.dir,
		env.ResultEndpoint: p.address, env.ResultTokenFile: tokenFile, env.ResultTrustPEM: string(p.trust), env.ResultIdentity: string(text),
		env.JobUID: p.id.JobUID, env.PodName: p.id.PodName, env.PodUID: p.id.PodUID,
	}
	var log bytes.Buffer
	program := &runner.Program{
		Environment: func(name string) (string, bool) { value, found := variables[name]; return value, found },
		Ptah:        "/nonexistent", Log: &log, Now: time.Now, RetryPause: 10 * time.Millisecond,
	}
	return program.Run(t.Context(), []string{"source"}), log.String()
}

func TestTheRunnerDeliversToARealAPIServer(t *testing.T) {
	p := startPod(t)
	publication := receiver.Publication(p.id.UID, p.id.OperationID, p.id.JobUID)
	if _, err := receiver.Load(t.Context(), p.client, p.id.Namespace, publication); !errors.Is(err, receiver.ErrNoResult) {
		t.Fatalf("before the delivery: %v", err)
	}
	if code, log := p.run(t, filepath.Join(p.dir, "token")); code != runner.ExitFailed {
		t.Fatalf("exit code %d, want that a failure was delivered\n%s", code, log)
	}
	document, err := receiver.Load(t.Context(), p.client, p.id.Namespace, publication)
	if err != nil {
		t.Fatal(err)
	}
	if failed := document.Failed(); failed.Code != result.ErrorInvalidConfiguration {
		t.Errorf("loaded %+v", failed)
	}
	var records v1alpha1.PtahResultRecordList
	if err := p.client.List(t.Context(), &records, client.InNamespace(p.id.Namespace), client.MatchingLabels{v1alpha1.LabelOperationID: strings.Repeat("2", 16)}); err != nil || len(records.Items) != 1 {
		t.Fatalf("%d records, %v", len(records.Items), err)
	}
	// What is stored is immutable for everybody.
	record := records.Items[0]
	record.Spec.Data = []byte("other")
	if err := p.client.Update(t.Context(), &record); err == nil || !strings.Contains(err.Error(), "a result record is immutable") {
		t.Errorf("a record was changed: %v", err)
	}
}

func TestARealTokenCountsOnlyForItsAudienceAndPod(t *testing.T) {
	p := startPod(t)
	if code, log := p.run(t, p.mount(t, "unbound", v1alpha1.ResultTokenAudience, false)); code != runner.ExitUndelivered || !strings.Contains(log, "not bound to the claimed Pod") {
		t.Errorf("a token without a Pod: exit code %d\n%s", code, log)
	}
	if code, log := p.run(t, p.mount(t, "audience", "https://kubernetes.default.svc.cluster.local", true)); code != runner.ExitUndelivered || !strings.Contains(log, "the token is not valid") {
		t.Errorf("a token of another audience: exit code %d\n%s", code, log)
	}
	if err := p.client.Delete(t.Context(), &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: p.id.Namespace, Name: p.id.PodName}}, client.GracePeriodSeconds(0)); err != nil {
		t.Fatal(err)
	}
	if code, log := p.run(t, filepath.Join(p.dir, "token")); code != runner.ExitUndelivered || !strings.Contains(log, "the token is not valid") && !strings.Contains(log, "the claimed Pod does not exist") {
		t.Errorf("the token of a Pod that is gone: exit code %d\n%s", code, log)
	}
}
