package chart_test

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"slices"
	"strings"
	"testing"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	kuberuntime "k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	dynamicfake "k8s.io/client-go/dynamic/fake"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"ptah.run/ptah/operator/admission"
)

func TestEveryDocumentIsAValidObject(t *testing.T) {
	want := []string{
		"ClusterRole ptah-operator", "ClusterRole ptah-operator-approver", "ClusterRole ptah-operator-viewer",
		"ClusterRoleBinding ptah-operator", "Deployment ptah-operator", "MutatingWebhookConfiguration ptah-operator-admission",
		"PodDisruptionBudget ptah-operator", "Role ptah-operator-coordination", "RoleBinding ptah-operator-coordination",
		"Secret ptah-operator-certificate", "Service ptah-operator-metrics", "Service ptah-operator-results",
		"Service ptah-operator-webhook", "ServiceAccount ptah-operator", "ValidatingAdmissionPolicy ptah-operator-second-person",
		"ValidatingAdmissionPolicy ptah-operator-status-guard", "ValidatingAdmissionPolicyBinding ptah-operator-second-person",
		"ValidatingAdmissionPolicyBinding ptah-operator-status-guard", "ValidatingWebhookConfiguration ptah-operator-admission",
	}
	if got := kinds(rendering{}.objects(t, qualified())); !slices.Equal(got, want) {
		t.Errorf("rendered\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

func TestValuesAreRefusedInOneSentence(t *testing.T) {
	for name, test := range map[string]struct {
		path      string
		value     any
		namespace string
		want      string
	}{
		"no manager repository":            {"image.repository", "", "", "image.repository is not set: set it to the repository"},
		"a manager image without a digest": {"image.digest", "", "", "image.digest is not set: set it to the digest"},
		"a malformed manager digest":       {"image.digest", "sha256:abc", "", `image.digest is "sha256:abc": it must be sha256:`},
		"an uppercase manager digest":      {"image.digest", "sha256:" + strings.Repeat("A", 64), "", "lowercase hex digits"},
		"a manager tag":                    {"image.tag", "latest", "", `image.tag is "latest": a tag can move`},
		"a tag in the repository":          {"image.repository", "registry.example/ptah:1", "", "must name a repository without tag"},
		"a digest in the repository":       {"image.repository", "registry.example/ptah@" + digestA, "", "must name a repository without tag"},
		"no executor image":                {"execution.executorImage", "", "", "execution.executorImage is not set"},
		"an executor image by tag":         {"execution.executorImage", "registry.example/executor:1.0", "", `execution.executorImage is "registry.example/executor:1.0": a tag can move`},
		"no runner image":                  {"execution.runnerImage", "", "", "execution.runnerImage is not set"},
		"a runner image by tag":            {"execution.runnerImage", "registry.example/runner:latest", "", "the image must be pinned as repository@sha256:"},
		"no ptah version":                  {"execution.ptahVersion", "", "", "execution.ptahVersion is not set"},
		"a ptah version that is none":      {"execution.ptahVersion", "new one", "", "must be a version such as"},
		"two managers without a leader":    {"leaderElection", false, "", "replicaCount is 2 without leaderElection"},
		"a budget that blocks draining":    {"podDisruptionBudget.minAvailable", 2, "", "no node could ever be drained"},
		"a label the chart selects by":     {"podLabels", map[string]any{"app.kubernetes.io/name": "x"}, "", "the chart selects its Pods by labels"},
		"a shared namespace":               {"podAnnotations", map[string]any{}, "default", `the release namespace is "default"`},
		"a namespace of Kubernetes":        {"podAnnotations", map[string]any{}, "kube-system", `the release namespace is "kube-system"`},
		"an unknown value":                 {"imagePullSecret", "x", "", "additional properties 'imagePullSecret' not allowed"},
		"an unknown image value":           {"image.name", "x", "", "additional properties 'name' not allowed"},
		"an unknown execution value":       {"execution.image", "x", "", "additional properties 'image' not allowed"},
		"no replicas":                      {"replicaCount", 0, "", "replicaCount"},
		"a webhook timeout too long":       {"webhook.timeoutSeconds", 31, "", "timeoutSeconds"},
		"an unknown pull policy":           {"image.pullPolicy", "Sometimes", "", "pullPolicy"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := rendering{release: test.namespace}.files(t, with(qualified(), test.path, test.value))
			if err == nil || !strings.Contains(err.Error(), test.want) {
				t.Fatalf("error %v, want one with %q", err, test.want)
			}
		})
	}
}

func TestTheManagerReadsNoSecretAndWritesNoPod(t *testing.T) {
	objects := rendering{}.objects(t, qualified())
	for _, rule := range managerRules(t, objects) {
		all := append(slices.Clone(rule.APIGroups), append(slices.Clone(rule.Resources), rule.Verbs...)...)
		if slices.Contains(all, "*") {
			t.Errorf("a rule has a wildcard: %v", rule)
		}
		if slices.Contains(rule.Resources, "secrets") {
			t.Errorf("the manager may %v secrets", rule.Verbs)
		}
		if slices.Contains(rule.Resources, "pods") && !slices.Equal(rule.Verbs, []string{"get", "list"}) {
			t.Errorf("the manager may %v pods", rule.Verbs)
		}
		if slices.Contains(rule.Resources, "ptahrealms") && !slices.Equal(rule.Verbs, []string{"get", "list", "watch"}) {
			t.Errorf("the manager may %v the realms that administrators grant", rule.Verbs)
		}
		for _, own := range []string{"ptahschemas", "ptahschemaplans", "ptahschemaapprovals", "ptahschemaplanchunks"} {
			if slices.Contains(rule.Resources, own) && slices.Contains(rule.Verbs, "update") {
				t.Errorf("the manager may write the spec of %s", own)
			}
		}
	}
}

// managerRules follows the bindings, so that a role nobody is bound to does not count and a forgotten one does.
func managerRules(t *testing.T, objects []client.Object) []rbacv1.PolicyRule {
	t.Helper()
	var rules []rbacv1.PolicyRule
	bound := 0
	for _, object := range objects {
		switch binding := object.(type) {
		case *rbacv1.ClusterRoleBinding:
			rules = append(rules, one[*rbacv1.ClusterRole](t, objects, binding.RoleRef.Name).Rules...)
			bound += len(binding.Subjects)
		case *rbacv1.RoleBinding:
			rules = append(rules, one[*rbacv1.Role](t, objects, binding.RoleRef.Name).Rules...)
			bound += len(binding.Subjects)
		}
	}
	if bound != 2 || len(rules) == 0 {
		t.Fatalf("%d subjects with %d rules are bound, want the manager twice", bound, len(rules))
	}
	return rules
}

func TestPersonRolesAreBoundToNobodyAndAViewerSeesNoSQL(t *testing.T) {
	objects := rendering{}.objects(t, qualified())
	viewer := one[*rbacv1.ClusterRole](t, objects, "ptah-operator-viewer")
	for _, rule := range viewer.Rules {
		if slices.Contains(rule.Resources, "ptahschemaplanchunks") || slices.Contains(rule.Verbs, "create") {
			t.Errorf("a viewer may %v %v", rule.Verbs, rule.Resources)
		}
	}
	for _, object := range objects {
		if binding, ok := object.(*rbacv1.ClusterRoleBinding); ok && binding.RoleRef.Name != "ptah-operator" {
			t.Errorf("role %s is bound", binding.RoleRef.Name)
		}
	}
	without := rendering{}.objects(t, with(qualified(), "personRoles.create", false))
	if names := kinds(without); slices.Contains(names, "ClusterRole ptah-operator-approver") {
		t.Error("personRoles.create=false still creates roles")
	}
}

func TestEveryContainerIsRestricted(t *testing.T) {
	pod := one[*appsv1.Deployment](t, rendering{}.objects(t, qualified()), "ptah-operator").Spec.Template.Spec
	if pod.HostNetwork || pod.HostPID || pod.HostIPC {
		t.Error("the Pod uses a namespace of the host")
	}
	if pod.SecurityContext == nil || pod.SecurityContext.SeccompProfile == nil || pod.SecurityContext.SeccompProfile.Type != corev1.SeccompProfileTypeRuntimeDefault {
		t.Error("the Pod has no RuntimeDefault seccomp profile")
	}
	if len(pod.Containers) == 0 {
		t.Fatal("no containers")
	}
	for _, container := range append(pod.InitContainers, pod.Containers...) {
		security := container.SecurityContext
		switch {
		case security == nil,
			security.AllowPrivilegeEscalation == nil || *security.AllowPrivilegeEscalation,
			security.RunAsNonRoot == nil || !*security.RunAsNonRoot,
			security.ReadOnlyRootFilesystem == nil || !*security.ReadOnlyRootFilesystem,
			security.Capabilities == nil || !slices.Equal(security.Capabilities.Drop, []corev1.Capability{"ALL"}) || len(security.Capabilities.Add) > 0,
			security.Privileged != nil && *security.Privileged:
			t.Errorf("container %s is not restricted: %+v", container.Name, security)
		}
		for _, port := range container.Ports {
			if port.HostPort != 0 {
				t.Errorf("container %s uses a port of the host", container.Name)
			}
		}
	}
	for _, volume := range pod.Volumes {
		if volume.HostPath != nil {
			t.Errorf("volume %s is a path of the host", volume.Name)
		}
		if volume.Secret != nil && *volume.Secret.DefaultMode != 0o440 {
			t.Errorf("volume %s has mode %o, want 440", volume.Name, *volume.Secret.DefaultMode)
		}
	}
}

func TestTheManagerIsToldWhatItNeeds(t *testing.T) {
	values := with(with(qualified(), "coordination.namespace", "locks"), "podLabels", map[string]any{"team": "data"})
	objects := rendering{}.objects(t, values)
	deployment := one[*appsv1.Deployment](t, objects, "ptah-operator")
	manager := deployment.Spec.Template.Spec.Containers[0]
	want := []string{
		"--executor-image=registry.example:5000/ptah/executor@" + digestA,
		"--runner-image=registry.example:5000/ptah/runner@" + digestB,
		"--ptah-version=0.1.0",
		"--controller-image=registry.example:5000/ptah/manager@" + digestA,
		"--controller-revision=" + load(t).Metadata.Version,
		"--coordination-namespace=locks",
		"--leader-elect=true",
		"--require-distinct-approver=false",
		"--webhook-port=9443",
		"--webhook-cert-dir=/certs",
		"--results-port=9444",
		"--results-url=https://ptah-operator-results.ptah-system.svc",
		"--metrics-bind-address=:8080",
		"--health-probe-bind-address=:8081",
	}
	if !slices.Equal(manager.Args, want) {
		t.Errorf("arguments\n%s\nwant\n%s", strings.Join(manager.Args, "\n"), strings.Join(want, "\n"))
	}
	if manager.Image != "registry.example:5000/ptah/manager@"+digestA {
		t.Errorf("image %s", manager.Image)
	}
	if *deployment.Spec.Replicas != 2 {
		t.Errorf("%d replicas, want 2", *deployment.Spec.Replicas)
	}
	if role := one[*rbacv1.Role](t, objects, "ptah-operator-coordination"); role.Namespace != "locks" {
		t.Errorf("the Lease role is in %s, want locks", role.Namespace)
	}
	if deployment.Spec.Template.Labels["team"] != "data" {
		t.Error("podLabels are not on the Pods")
	}
}

func TestServicesSelectTheManagerAndItsNamedPorts(t *testing.T) {
	objects := rendering{}.objects(t, qualified())
	template := one[*appsv1.Deployment](t, objects, "ptah-operator").Spec.Template
	ports := map[string]bool{}
	for _, port := range template.Spec.Containers[0].Ports {
		ports[port.Name] = true
	}
	selectors := []map[string]string{one[*policyv1.PodDisruptionBudget](t, objects, "ptah-operator").Spec.Selector.MatchLabels}
	for _, name := range []string{"ptah-operator-webhook", "ptah-operator-results", "ptah-operator-metrics"} {
		service := one[*corev1.Service](t, objects, name)
		selectors = append(selectors, service.Spec.Selector)
		if target := service.Spec.Ports[0].TargetPort.StrVal; !ports[target] {
			t.Errorf("service %s targets port %q, which no container has", name, target)
		}
	}
	for _, selector := range selectors {
		for key, value := range selector {
			if template.Labels[key] != value {
				t.Errorf("selector %s=%s does not select the manager", key, value)
			}
		}
	}
	metrics := one[*corev1.Service](t, objects, "ptah-operator-metrics")
	if metrics.Labels["app.kubernetes.io/component"] != "metrics" {
		t.Error("the metrics Service lacks the label that a ServiceMonitor selects")
	}
}

func TestAdmissionFailsClosed(t *testing.T) {
	objects := rendering{}.objects(t, qualified())
	mutating := one[*admissionregistrationv1.MutatingWebhookConfiguration](t, objects, "ptah-operator-admission").Webhooks
	validating := one[*admissionregistrationv1.ValidatingWebhookConfiguration](t, objects, "ptah-operator-admission").Webhooks
	if len(mutating) != 1 || len(validating) != 1 {
		t.Fatalf("%d mutating and %d validating webhooks, want one each", len(mutating), len(validating))
	}
	bundle := one[*corev1.Secret](t, objects, "ptah-operator-certificate").Data["ca.crt"]
	check := func(name string, config admissionregistrationv1.WebhookClientConfig, failure *admissionregistrationv1.FailurePolicyType,
		effects *admissionregistrationv1.SideEffectClass, timeout *int32, path string) {
		if *failure != admissionregistrationv1.Fail || *effects != admissionregistrationv1.SideEffectClassNone || *timeout != 5 {
			t.Errorf("%s: failurePolicy %s, sideEffects %s, timeout %d", name, *failure, *effects, *timeout)
		}
		if *config.Service.Path != path || config.Service.Name != "ptah-operator-webhook" || config.Service.Namespace != namespace {
			t.Errorf("%s: service %+v, want path %s", name, config.Service, path)
		}
		if string(config.CABundle) != string(bundle) {
			t.Errorf("%s: trusts another authority than the certificate's", name)
		}
	}
	m, v := mutating[0], validating[0]
	check(m.Name, m.ClientConfig, m.FailurePolicy, m.SideEffects, m.TimeoutSeconds, admission.MutateSchemaApprovalPath)
	check(v.Name, v.ClientConfig, v.FailurePolicy, v.SideEffects, v.TimeoutSeconds, admission.ValidateSchemaApprovalPath)
	if operations := v.Rules[0].Operations; !slices.Contains(operations, admissionregistrationv1.Update) {
		t.Errorf("updates of approvals are not validated: %v", operations)
	}
	policy := one[*admissionregistrationv1.ValidatingAdmissionPolicy](t, objects, "ptah-operator-status-guard")
	if policy.Spec.ParamKind != nil {
		t.Error("the status guard has a parameter object")
	}
	if got := policy.Spec.Validations[0].Expression; got != `request.userInfo.username == "system:serviceaccount:ptah-system:ptah-operator"` {
		t.Errorf("the status guard admits %s", got)
	}
	binding := one[*admissionregistrationv1.ValidatingAdmissionPolicyBinding](t, objects, "ptah-operator-status-guard")
	if binding.Spec.PolicyName != policy.Name || !slices.Equal(binding.Spec.ValidationActions, []admissionregistrationv1.ValidationAction{admissionregistrationv1.Deny}) {
		t.Errorf("the status guard is bound as %+v", binding.Spec)
	}
}

func TestTheCertificateServesBothServices(t *testing.T) {
	secret := one[*corev1.Secret](t, rendering{}.objects(t, qualified()), "ptah-operator-certificate")
	if _, err := tls.X509KeyPair(secret.Data["tls.crt"], secret.Data["tls.key"]); err != nil {
		t.Fatalf("certificate and key: %v", err)
	}
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM(secret.Data["ca.crt"]) {
		t.Fatal("ca.crt holds no certificate")
	}
	block, _ := pem.Decode(secret.Data["tls.crt"])
	leaf, err := x509.ParseCertificate(block.Bytes)
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"ptah-operator-webhook.ptah-system.svc", "ptah-operator-results.ptah-system.svc"} {
		if _, err := leaf.Verify(x509.VerifyOptions{DNSName: name, Roots: roots}); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := leaf.Verify(x509.VerifyOptions{DNSName: "ptah-operator-other.ptah-system.svc", Roots: roots}); err == nil {
		t.Error("the certificate serves a Service that does not exist")
	}
}

// stored answers lookups with one Secret.
type stored struct{ secret *corev1.Secret }

func (s stored) GetClientFor(string, string) (dynamic.NamespaceableResourceInterface, bool, error) {
	content, err := kuberuntime.DefaultUnstructuredConverter.ToUnstructured(s.secret)
	if err != nil {
		return nil, false, err
	}
	object := &unstructured.Unstructured{Object: content}
	object.SetAPIVersion("v1")
	object.SetKind("Secret")
	client := dynamicfake.NewSimpleDynamicClient(kuberuntime.NewScheme(), object)
	return client.Resource(schema.GroupVersionResource{Version: "v1", Resource: "secrets"}), true, nil
}

func TestAnUpgradeKeepsTheCertificate(t *testing.T) {
	first := one[*corev1.Secret](t, rendering{}.objects(t, qualified()), "ptah-operator-certificate")
	whole := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: first.Name, Namespace: namespace}, Data: first.Data}
	again := rendering{provider: stored{whole}}.objects(t, qualified())
	kept := one[*corev1.Secret](t, again, "ptah-operator-certificate")
	for key, value := range first.Data {
		if string(kept.Data[key]) != string(value) {
			t.Errorf("%s changed over an upgrade", key)
		}
	}
	webhook := one[*admissionregistrationv1.ValidatingWebhookConfiguration](t, again, "ptah-operator-admission").Webhooks[0]
	if string(webhook.ClientConfig.CABundle) != string(first.Data["ca.crt"]) {
		t.Error("the webhook no longer trusts the kept certificate")
	}
	// The control: a Secret that lacks a part is replaced whole.
	half := whole.DeepCopy()
	delete(half.Data, "ca.crt")
	replaced := one[*corev1.Secret](t, rendering{provider: stored{half}}.objects(t, qualified()), "ptah-operator-certificate")
	if string(replaced.Data["tls.crt"]) == string(first.Data["tls.crt"]) {
		t.Error("half a certificate was kept")
	}
}

func TestNotesGiveThreeCommands(t *testing.T) {
	files, err := rendering{}.files(t, qualified())
	if err != nil {
		t.Fatal(err)
	}
	notes := files["ptah-operator/templates/NOTES.txt"]
	for _, want := range []string{"rollout status deployment/ptah-operator", "auth can-i get secrets", "kubectl create --dry-run=server"} {
		if !strings.Contains(notes, want) {
			t.Errorf("the notes lack %q", want)
		}
	}
}
