package chart_test

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"
	"sigs.k8s.io/controller-runtime/pkg/webhook"

	"ptah.run/ptah/operator/admission"
	"ptah.run/ptah/operator/api/v1alpha1"
	"ptah.run/ptah/operator/plan"
	"ptah.run/ptah/operator/plan/report"
	"ptah.run/ptah/operator/testserver"
)

var apiServer = &testserver.Server{CRDs: filepath.Join("ptah-operator", "crds")}

func TestMain(m *testing.M) {
	m.Run() // the test program exits with what it returned
	if err := apiServer.Stop(); err != nil {
		panic("stop the API server: " + err.Error())
	}
}

const manager = "system:serviceaccount:ptah-system:ptah-operator"

// installation is the chart on a real API server, with the manager's webhooks served from this process.
type installation struct {
	config *rest.Config
	admin  client.Client
}

func knownKinds(t *testing.T) *runtime.Scheme {
	t.Helper()
	known := runtime.NewScheme()
	if err := errors.Join(clientgoscheme.AddToScheme(known), v1alpha1.AddToScheme(known)); err != nil {
		t.Fatal(err)
	}
	return known
}

// as returns a client of another user.
func (i *installation) as(t *testing.T, user string, groups ...string) client.Client {
	t.Helper()
	config := rest.CopyConfig(i.config)
	config.Impersonate = rest.ImpersonationConfig{UserName: user, Groups: append(groups, "system:authenticated")}
	c, err := client.New(config, client.Options{Scheme: knownKinds(t)})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// install creates every rendered object, with webhooks that call this process instead of a Service.
func install(t *testing.T) *installation {
	t.Helper()
	i := &installation{config: apiServer.Config(t)}
	var err error
	if i.admin, err = client.New(i.config, client.Options{Scheme: knownKinds(t)}); err != nil {
		t.Fatal(err)
	}
	if err := i.admin.Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}}); err != nil && !apierrors.IsAlreadyExists(err) {
		t.Fatal(err)
	}
	url, trust := i.serveWebhooks(t)
	for _, object := range (rendering{}).objects(t, qualified()) {
		switch typed := object.(type) {
		case *admissionregistrationv1.MutatingWebhookConfiguration:
			for n := range typed.Webhooks {
				redirect(&typed.Webhooks[n].ClientConfig, url, trust)
			}
		case *admissionregistrationv1.ValidatingWebhookConfiguration:
			for n := range typed.Webhooks {
				redirect(&typed.Webhooks[n].ClientConfig, url, trust)
			}
		}
		if err := i.admin.Create(t.Context(), object); err != nil {
			t.Fatalf("create %s %s: %v", object.GetObjectKind().GroupVersionKind().Kind, object.GetName(), err)
		}
		t.Cleanup(func() {
			if err := i.admin.Delete(context.Background(), object); err != nil && !apierrors.IsNotFound(err) {
				t.Errorf("delete %s: %v", object.GetName(), err)
			}
		})
	}
	return i
}

func redirect(config *admissionregistrationv1.WebhookClientConfig, url string, trust []byte) {
	config.URL = ptr.To(url + *config.Service.Path)
	config.Service, config.CABundle = nil, trust
}

func (i *installation) serveWebhooks(t *testing.T) (url string, trust []byte) {
	t.Helper()
	dir := t.TempDir()
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
	trust = pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: certificate})
	for name, data := range map[string][]byte{"tls.crt": trust, "tls.key": pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: private})} {
		if err := os.WriteFile(filepath.Join(dir, name), data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	free, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	port := free.Addr().(*net.TCPAddr).Port
	_ = free.Close() // a port that stays taken is seen below
	server := webhook.NewServer(webhook.Options{Host: "127.0.0.1", Port: port, CertDir: dir})
	mgr, err := ctrl.NewManager(i.config, ctrl.Options{Scheme: knownKinds(t), Logger: logr.Discard(), WebhookServer: server, Metrics: metricsserver.Options{BindAddress: "0"}})
	if err != nil {
		t.Fatal(err)
	}
	if err := admission.Register(mgr, admission.Options{Reader: mgr.GetAPIReader()}); err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- mgr.Start(ctx) }()
	t.Cleanup(func() {
		stop()
		if err := <-ended; err != nil {
			t.Errorf("the webhooks ended with %v", err)
		}
	})
	for server.StartedChecker()(nil) != nil {
		time.Sleep(10 * time.Millisecond)
	}
	return fmt.Sprintf("https://127.0.0.1:%d", port), trust
}

// eventually waits for what the API server's own informers need a moment for.
func eventually(t *testing.T, what string, check func() error) {
	t.Helper()
	deadline := time.Now().Add(60 * time.Second)
	for {
		err := check()
		if err == nil {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("%s: %v", what, err)
		}
		time.Sleep(100 * time.Millisecond)
	}
}

// schema creates a PtahSchema in a namespace of its own.
func (i *installation) schema(t *testing.T) *v1alpha1.PtahSchema {
	t.Helper()
	home := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "shop-"}}
	if err := i.admin.Create(t.Context(), home); err != nil {
		t.Fatal(err)
	}
	created := &v1alpha1.PtahSchema{
		ObjectMeta: metav1.ObjectMeta{Namespace: home.Name, Name: "orders"},
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
	if err := i.admin.Create(t.Context(), created); err != nil {
		t.Fatal(err)
	}
	return created
}

func TestStatusIsWrittenByTheManagerAlone(t *testing.T) {
	i := install(t)
	schema := i.schema(t)
	edit := func(c client.Client, phase v1alpha1.Phase) error {
		fresh := &v1alpha1.PtahSchema{}
		if err := i.admin.Get(t.Context(), client.ObjectKeyFromObject(schema), fresh); err != nil {
			return err
		}
		fresh.Status.Phase = phase
		return c.Status().Update(t.Context(), fresh)
	}
	eventually(t, "a cluster administrator writes status", func() error {
		err := edit(i.admin, v1alpha1.PhaseInSync)
		if err == nil {
			return errors.New("it was written")
		}
		if !strings.Contains(err.Error(), "status of operator.ptah.run is written by "+manager+" alone") {
			return err
		}
		return nil
	})
	patch := client.RawPatch("application/merge-patch+json", []byte(`{"status":{"phase":"InSync"}}`))
	if err := i.admin.Status().Patch(t.Context(), schema.DeepCopy(), patch); err == nil {
		t.Error("a patch of status by an administrator was accepted")
	}
	if err := edit(i.as(t, manager), v1alpha1.PhasePending); err != nil {
		t.Errorf("the manager may not write status: %v", err)
	}
	// The control: spec is a person's.
	labelled := schema.DeepCopy()
	if err := i.admin.Patch(t.Context(), labelled, client.RawPatch("application/merge-patch+json", []byte(`{"spec":{"suspend":true}}`))); err != nil {
		t.Errorf("an administrator may not write spec: %v", err)
	}
	if err := i.as(t, manager).Patch(t.Context(), labelled, client.RawPatch("application/merge-patch+json", []byte(`{"metadata":{"finalizers":["operator.ptah.run/active-operation"]}}`))); err != nil {
		t.Errorf("the manager may not set its finalizer: %v", err)
	}
	if err := i.admin.Patch(t.Context(), labelled, client.RawPatch("application/merge-patch+json", []byte(`{"metadata":{"finalizers":null}}`))); err != nil {
		t.Error(err)
	}
}

func TestTheManagerHasTheRightsOfTheTableAndNoOther(t *testing.T) {
	i := install(t)
	ask := func(group, resource, subresource, verb, inNamespace string) bool {
		review := &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{
			User: manager, Groups: []string{"system:serviceaccounts", "system:serviceaccounts:ptah-system", "system:authenticated"},
			ResourceAttributes: &authorizationv1.ResourceAttributes{Group: group, Resource: resource, Subresource: subresource, Verb: verb, Namespace: inNamespace},
		}}
		if err := i.admin.Create(t.Context(), review); err != nil {
			t.Fatal(err)
		}
		return review.Status.Allowed
	}
	eventually(t, "the manager's rights", func() error {
		if !ask("operator.ptah.run", "ptahschemas", "", "watch", "") {
			return errors.New("it may not watch PtahSchemas")
		}
		return nil
	})
	for _, denied := range []struct{ group, resource, subresource, verb, namespace string }{
		{"", "secrets", "", "get", namespace}, {"", "secrets", "", "list", ""}, {"", "secrets", "", "create", namespace},
		{"", "pods", "", "create", "shop"}, {"", "pods", "", "delete", "shop"}, {"", "pods", "exec", "create", "shop"},
		{"batch", "jobs", "", "update", "shop"}, {"operator.ptah.run", "ptahschemas", "", "update", "shop"},
		{"operator.ptah.run", "ptahschemas", "", "create", "shop"}, {"operator.ptah.run", "ptahschemaapprovals", "", "create", "shop"},
		{"operator.ptah.run", "ptahschemaplans", "", "update", "shop"}, {"operator.ptah.run", "ptahresultrecords", "", "update", "shop"},
		{"operator.ptah.run", "ptahrealms", "", "update", ""}, {"operator.ptah.run", "ptahrealms", "", "create", ""},
		{"coordination.k8s.io", "leases", "", "update", "shop"}, {"", "serviceaccounts", "token", "create", "shop"},
		{"rbac.authorization.k8s.io", "clusterrolebindings", "", "create", ""}, {"admissionregistration.k8s.io", "validatingadmissionpolicies", "", "update", ""},
	} {
		if ask(denied.group, denied.resource, denied.subresource, denied.verb, denied.namespace) {
			t.Errorf("the manager may %s %s/%s in %q", denied.verb, denied.resource, denied.subresource, denied.namespace)
		}
	}
	if !ask("operator.ptah.run", "ptahrealms", "", "watch", "") {
		t.Error("the manager may not watch PtahRealms")
	}
	if !ask("coordination.k8s.io", "leases", "", "update", namespace) {
		t.Error("the manager may not write Leases in its coordination namespace")
	}
}

// waiting makes a plan for a schema and lets it wait for an approval, writing as the manager does.
func (i *installation) waiting(t *testing.T, schema *v1alpha1.PtahSchema) *v1alpha1.PtahSchemaPlan {
	t.Helper()
	digest := func(c string) string { return "sha256:" + strings.Repeat(c, 64) }
	const policyText = "version: 1\n"
	policy := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: schema.Namespace, Name: "policy"}, Data: map[string]string{"policy": policyText}}
	if err := i.admin.Create(t.Context(), policy); err != nil {
		t.Fatal(err)
	}
	policyFingerprint, err := plan.PolicyFingerprint(schema.Spec.Target.Engine, schema.Spec.Policy)
	if err != nil {
		t.Fatal(err)
	}
	epoch := "v1-" + strings.Repeat("a", 32)
	writer := i.as(t, manager)
	var published *v1alpha1.PtahSchemaPlan
	eventually(t, "publish a plan as the manager", func() error {
		published, err = plan.Store{Writer: writer, Reader: writer}.Publish(t.Context(), schema, v1alpha1.PtahSchemaPlanSpec{
			ArtifactDigest: v1alpha1.Digest(digest("1")), CoordinationDigest: v1alpha1.Digest(digest("2")), TargetIdentityDigest: v1alpha1.Digest(digest("3")),
			ActualStateFingerprint: v1alpha1.Digest(digest("4")), DesiredStateFingerprint: v1alpha1.Digest(digest("5")), PolicyFingerprint: v1alpha1.Digest(policyFingerprint),
			VerificationPolicyUID: string(policy.UID), VerificationPolicyDigest: v1alpha1.Digest(report.Digest([]byte(policyText))),
			ExecutionBindingID: epoch, ControllerStateVersion: 1, PtahVersion: "0.1.0", ExecutorImage: "executor@" + digest("a"),
			RunnerProtocolVersion: 1, Dialect: report.DialectPostgreSQL, StatementCount: 1,
		}, []byte("plan\n"))
		return err
	})
	now := metav1.Now()
	schema.Status = v1alpha1.PtahSchemaStatus{
		ObservedGeneration: schema.Generation, Phase: v1alpha1.PhaseAwaitingApproval,
		ExecutionBinding: &v1alpha1.ExecutionBindingStatus{Epoch: epoch, ControllerStateVersion: 1, PtahVersion: "0.1.0", ExecutorImage: "executor@" + digest("a"), RunnerProtocolVersion: 1},
		Source:           &v1alpha1.SchemaSourceStatus{RequestedReference: "r", ResolvedReference: "r", Digest: digest("1"), Verified: true},
		Target:           &v1alpha1.TargetStatus{Engine: v1alpha1.EnginePostgreSQL, CoordinationDigest: digest("2"), IdentityDigest: digest("3"), StateFingerprint: digest("4")},
		Plan: &v1alpha1.CurrentPlanStatus{
			ImmutableObjectReference: v1alpha1.ImmutableObjectReference{Name: published.Name, UID: string(published.UID)},
			Fingerprint:              string(published.Spec.Fingerprint), ContentDigest: string(published.Spec.ContentDigest), Size: published.Spec.Size,
			StatementCount: 1, CreatedAt: published.CreationTimestamp, ControllerStateVersion: 1,
		},
		Conditions: []metav1.Condition{{Type: v1alpha1.ConditionApprovalRequired, Status: metav1.ConditionTrue, Reason: string(v1alpha1.ReasonAwaitingApproval), ObservedGeneration: schema.Generation, LastTransitionTime: now}},
	}
	if err := writer.Status().Update(t.Context(), schema); err != nil {
		t.Fatal(err)
	}
	return published
}

// approval is what a person writes: it lacks everything that admission stamps.
func approval(schema *v1alpha1.PtahSchema, name string, stored *v1alpha1.PtahSchemaPlan, typed map[string]any) *unstructured.Unstructured {
	spec := map[string]any{
		"schemaRef":       map[string]any{"name": schema.Name, "uid": string(schema.UID)},
		"planRef":         map[string]any{"name": stored.Name, "uid": string(stored.UID)},
		"planFingerprint": string(stored.Spec.Fingerprint),
	}
	for key, value := range typed {
		spec[key] = value
	}
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": v1alpha1.GroupVersion.String(), "kind": "PtahSchemaApproval",
		"metadata": map[string]any{"name": name, "namespace": schema.Namespace}, "spec": spec,
	}}
}

func TestAnApprovalNamesWhoTheAPIServerAuthenticated(t *testing.T) {
	i := install(t)
	schema := i.schema(t)
	stored := i.waiting(t, schema)
	// The chart's own role is what an approver needs.
	if _, err := controllerutil.CreateOrUpdate(t.Context(), i.admin, roleBinding(schema.Namespace), func() error { return nil }); err != nil {
		t.Fatal(err)
	}
	bob := i.as(t, "bob", "dba")
	probe := approval(schema, "probe", stored, nil)
	eventually(t, "a dry run of a good approval", func() error { return bob.Create(t.Context(), probe.DeepCopy(), client.DryRunAll) })

	for name, typed := range map[string]map[string]any{
		"nothing": nil,
		"lies":    {"approver": map[string]any{"username": "root", "groups": []any{"system:masters"}}, "approvedAt": "2001-01-01T00:00:00Z", "mutationRequestUID": "mine"},
	} {
		created := approval(schema, name, stored, typed)
		if err := bob.Create(t.Context(), created); err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		var found v1alpha1.PtahSchemaApproval
		if err := bob.Get(t.Context(), client.ObjectKeyFromObject(created), &found); err != nil {
			t.Fatal(err)
		}
		if approver := found.Spec.Approver; approver.Username != "bob" || !slices.Equal(approver.Groups, []string{"dba", "system:authenticated"}) {
			t.Errorf("%s: approver %+v", name, approver)
		}
		if age := time.Since(found.Spec.ApprovedAt.Time); age < -time.Minute || age > time.Minute || found.Spec.MutationRequestUID == "mine" {
			t.Errorf("%s: approved at %s by request %s", name, found.Spec.ApprovedAt, found.Spec.MutationRequestUID)
		}
		found.Spec.PlanFingerprint = v1alpha1.Digest("sha256:" + strings.Repeat("f", 64))
		if err := i.admin.Update(t.Context(), &found); err == nil || !strings.Contains(err.Error(), "immutable") {
			t.Errorf("%s: an approval was changed: %v", name, err)
		}
	}
	wrong := approval(schema, "wrong", stored, map[string]any{"planFingerprint": "sha256:" + strings.Repeat("f", 64)})
	if err := bob.Create(t.Context(), wrong); err == nil || !strings.Contains(err.Error(), "spec.planFingerprint: the current plan has the fingerprint") {
		t.Errorf("an approval of another fingerprint: %v", err)
	}
	if err := i.as(t, "mallory").Create(t.Context(), approval(schema, "mallory", stored, nil)); !apierrors.IsForbidden(err) {
		t.Errorf("an approval by somebody without the role: %v", err)
	}
	if err := bob.Create(t.Context(), &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": v1alpha1.GroupVersion.String(), "kind": "PtahSchemaApproval", "metadata": map[string]any{"name": "empty", "namespace": schema.Namespace},
	}}); err == nil {
		t.Error("an approval without a spec was stored")
	}
}

// roleBinding lets the group dba approve in a namespace.
func roleBinding(namespace string) *rbacv1.RoleBinding {
	return &rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "dba-approves"},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "ptah-operator-approver"},
		Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: "Group", Name: "dba"}},
	}
}
