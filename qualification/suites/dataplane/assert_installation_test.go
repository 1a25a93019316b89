package dataplane

import (
	"context"
	"fmt"
	"maps"
	"os/exec"
	"slices"
	"strings"
	"testing"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/discovery"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"ptah.run/ptah/operator/api/v1alpha1"
	"ptah.run/ptah/qualification/lab/tenant"
	"ptah.run/ptah/qualification/suites/bench"
	"ptah.run/ptah/qualification/suites/subject"
)

// kind is what discovery says of one kind.
type kind struct {
	Short      string `json:"short"`
	Namespaced bool   `json:"namespaced"`
	Status     bool   `json:"status"`
}

// kinds are those of the group, by their names.
var kinds = map[string]kind{
	"PtahSchema":          {"ptahs", true, true},
	"PtahSchemaPlan":      {"ptahplan", true, true},
	"PtahSchemaPlanChunk": {"ptahchunk", true, false},
	"PtahSchemaApproval":  {"ptahapprove", true, true},
	"PtahResultRecord":    {"ptahresult", true, false},
	"PtahRealm":           {"ptahr", false, false},
}

func TestManagersReadyAndKindsServed(t *testing.T) {
	t.Parallel()
	scenario(t, "managers-ready-and-kinds-served", func(ctx context.Context, s *bench.Scenario) {
		deployment := &appsv1.Deployment{}
		s.Fixture(s.Bench.Client.Get(ctx, client.ObjectKey{Namespace: bench.ReleaseNamespace, Name: bench.ManagerDeployment}, deployment))
		managers, err := s.Bench.Managers(ctx)
		s.Fixture(err)
		s.Check("every declared manager is available", deployment.Status.AvailableReplicas == *deployment.Spec.Replicas && len(managers) == int(*deployment.Spec.Replicas),
			"%d are declared, %d available, %d exist", *deployment.Spec.Replicas, deployment.Status.AvailableReplicas, len(managers))
		pods, err := corev1client.NewForConfig(s.Bench.Config)
		s.Fixture(err)
		for _, manager := range managers {
			answer, err := ask(ctx, pods, manager.Name, "readyz")
			s.Check("ready: "+manager.Name, err == nil && answer == "ok", "its /readyz answers %q, %v", answer, err)
			_, err = ask(ctx, pods, manager.Name, "readyz/no-such-check")
			s.Check("control: a check that does not exist is not ready: "+manager.Name, apierrors.IsNotFound(err), "it answers %v", err)
		}

		served := discovered(s)
		for name, want := range kinds {
			s.Check("served as declared: "+name, served[name] == want, "discovery says %+v, want %+v", served[name], want)
		}
		s.Check("no other kind is served", len(served) == len(kinds), "discovery shows %v", slices.Sorted(maps.Keys(served)))
		_, err = kubectl(ctx, s, "get", "ptah", "--all-namespaces")
		s.Check("kubectl knows the category", err == nil, "kubectl get ptah says %v", err)
		_, err = kubectl(ctx, s, "get", "ptahnothing", "--all-namespaces")
		s.Check("control: and no other word", err != nil, "kubectl get ptahnothing answers")
	})
}

// ask reads a path of a manager's health endpoint through the API server.
func ask(ctx context.Context, pods corev1client.CoreV1Interface, name, path string) (string, error) {
	answer, err := pods.RESTClient().Get().Namespace(bench.ReleaseNamespace).Resource("pods").Name(name + ":8081").SubResource("proxy").Suffix(path).DoRaw(ctx)
	return string(answer), err
}

func discovered(s *bench.Scenario) map[string]kind {
	s.T.Helper()
	asked, err := discovery.NewDiscoveryClientForConfig(s.Bench.Config)
	s.Fixture(err)
	list, err := asked.ServerResourcesForGroupVersion(v1alpha1.GroupVersion.String())
	s.Need("the group is served", err)
	served, statuses := map[string]kind{}, map[string]bool{}
	for _, resource := range list.APIResources {
		if name, sub, found := strings.Cut(resource.Name, "/"); found {
			statuses[name] = statuses[name] || sub == "status"
			continue
		}
		found := kind{Namespaced: resource.Namespaced, Short: strings.Join(resource.ShortNames, " ")}
		if !slices.Contains(resource.Categories, "ptah") {
			found.Short += ", not of the category ptah"
		}
		served[resource.Kind] = found
	}
	for _, resource := range list.APIResources {
		if statuses[resource.Name] {
			found := served[resource.Kind]
			found.Status = true
			served[resource.Kind] = found
		}
	}
	return served
}

func kubectl(ctx context.Context, s *bench.Scenario, arguments ...string) (string, error) {
	command := exec.CommandContext(ctx, tenant.Program(s.Bench.Lab, "kubectl"), append([]string{"--kubeconfig", s.Bench.Lab.Kubeconfig}, arguments...)...)
	output, err := command.CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("kubectl %s: %w: %s", strings.Join(arguments, " "), err, output)
	}
	return string(output), nil
}

// right is something that somebody may or may not do.
type right struct {
	who, verb, group, resource, subresource string
	may                                     bool
}

const (
	nobody   = "norman@example.com"
	viewer   = "victor@example.com"
	approver = "ada@example.com"
	workload = "workload" // the ServiceAccount that operation Pods run as
	ptah     = "operator.ptah.run"
)

var rights = []right{
	// What the manager needs, and nothing that would let it read credentials, run Pods of its own or widen its rights.
	{bench.ManagerUser, "update", ptah, "ptahschemas", "finalizers", true},
	{bench.ManagerUser, "update", ptah, "ptahschemas", "status", true},
	{bench.ManagerUser, "create", ptah, "ptahschemaplanchunks", "", true},
	{bench.ManagerUser, "get", ptah, "ptahrealms", "", true},
	{bench.ManagerUser, "create", "batch", "jobs", "", true},
	{bench.ManagerUser, "get", "", "secrets", "", false},
	{bench.ManagerUser, "list", "", "secrets", "", false},
	{bench.ManagerUser, "watch", "", "secrets", "", false},
	{bench.ManagerUser, "create", "", "pods", "", false},
	{bench.ManagerUser, "create", "", "pods", "exec", false},
	{bench.ManagerUser, "create", "", "serviceaccounts", "token", false},
	{bench.ManagerUser, "create", ptah, "ptahrealms", "", false},
	{bench.ManagerUser, "update", ptah, "ptahrealms", "", false},
	{bench.ManagerUser, "update", ptah, "ptahschemaplanchunks", "", false},
	{bench.ManagerUser, "delete", ptah, "ptahschemaplanchunks", "", false},
	{bench.ManagerUser, "update", ptah, "ptahschemaplans", "", false},
	{bench.ManagerUser, "create", ptah, "ptahschemaapprovals", "", false},
	{bench.ManagerUser, "delete", ptah, "ptahschemas", "", false},
	{bench.ManagerUser, "escalate", "rbac.authorization.k8s.io", "clusterroles", "", false},
	{bench.ManagerUser, "impersonate", "", "users", "", false},
	// Operation Pods write nothing: their results go to the receiver.
	{workload, "get", "", "secrets", "", false},
	{workload, "create", ptah, "ptahresultrecords", "", false},
	{workload, "update", ptah, "ptahschemas", "status", false},
	{workload, "create", ptah, "ptahschemaapprovals", "", false},
	// Who sees states does not see statements, and who approves declares nothing.
	{viewer, "get", ptah, "ptahschemas", "", true},
	{viewer, "get", ptah, "ptahschemaplans", "", true},
	{viewer, "get", ptah, "ptahschemaplanchunks", "", false},
	{viewer, "create", ptah, "ptahschemaapprovals", "", false},
	{approver, "get", ptah, "ptahschemaplanchunks", "", true},
	{approver, "create", ptah, "ptahschemaapprovals", "", true},
	{approver, "update", ptah, "ptahschemas", "", false},
	{approver, "update", ptah, "ptahschemas", "finalizers", false},
	{approver, "update", ptah, "ptahschemas", "status", false},
	{approver, "create", ptah, "ptahschemaplanchunks", "", false},
	{approver, "get", ptah, "ptahresultrecords", "", false},
	{nobody, "get", ptah, "ptahschemas", "", false},
	{nobody, "get", ptah, "ptahschemaplanchunks", "", false},
	{nobody, "create", ptah, "ptahschemaapprovals", "", false},
}

func TestRightsAreAsSmallAsDeclared(t *testing.T) {
	t.Parallel()
	scenario(t, "rights-are-as-small-as-declared", func(ctx context.Context, s *bench.Scenario) {
		namespace, elsewhere := s.Namespace(ctx), s.Namespace(ctx)
		s.Fixture(s.Bench.Grant(ctx, namespace, "ptah-operator-viewer", viewer))
		s.Fixture(s.Bench.Grant(ctx, namespace, "ptah-operator-approver", approver))
		users := map[string]string{workload: "system:serviceaccount:" + namespace + ":default"}
		groups := map[string][]string{workload: bench.ServiceAccountGroups(namespace), bench.ManagerUser: bench.ServiceAccountGroups(bench.ReleaseNamespace)}
		for _, one := range rights {
			user, member := one.who, groups[one.who]
			if name, ok := users[one.who]; ok {
				user = name
			}
			if member == nil {
				member = []string{"system:authenticated"}
			}
			what := authorizationv1.ResourceAttributes{Namespace: namespace, Verb: one.verb, Group: one.group, Resource: one.resource, Subresource: one.subresource}
			may, err := s.Bench.May(ctx, user, member, what)
			s.Fixture(err)
			s.Check(fmt.Sprintf("%s may %s %s/%s: %v", one.who, one.verb, one.resource, one.subresource, one.may), may == one.may, "the API server says %v", may)
			if one.who == viewer || one.who == approver {
				what.Namespace = elsewhere
				may, err = s.Bench.May(ctx, user, member, what)
				s.Fixture(err)
				s.Check(fmt.Sprintf("elsewhere %s may not %s %s/%s", one.who, one.verb, one.resource, one.subresource), !may, "the API server says %v", may)
			}
		}
		refusedForReal(ctx, s, namespace)
	})
}

// refusedForReal tries some of it, so that what the API server says is known to be what it does.
func refusedForReal(ctx context.Context, s *bench.Scenario, namespace string) {
	s.T.Helper()
	as := func(user string, groups ...string) client.Client {
		somebody, err := s.Bench.As(user, groups...)
		s.Fixture(err)
		return somebody
	}
	manager := as(bench.ManagerUser, bench.ServiceAccountGroups(bench.ReleaseNamespace)...)
	key := client.ObjectKey{Namespace: namespace, Name: tenant.RegistrySecret}
	refused(s, "the manager reads a Secret", manager.Get(ctx, key, &corev1.Secret{}), `cannot get resource "secrets"`)
	refused(s, "the manager lists Secrets", manager.List(ctx, &corev1.SecretList{}), `cannot list resource "secrets"`)
	s.Need("control: the manager reads a ConfigMap", manager.Get(ctx, client.ObjectKey{Namespace: namespace, Name: tenant.PolicyMap}, &corev1.ConfigMap{}))
	refused(s, "a viewer lists chunks", as(viewer, "system:authenticated").List(ctx, &v1alpha1.PtahSchemaPlanChunkList{}, client.InNamespace(namespace)), `cannot list resource "ptahschemaplanchunks"`)
	s.Need("control: an approver lists chunks", as(approver, "system:authenticated").List(ctx, &v1alpha1.PtahSchemaPlanChunkList{}, client.InNamespace(namespace)))
	refused(s, "somebody without rights declares", as(nobody, "system:authenticated").Create(ctx, &v1alpha1.PtahSchema{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "orders"}}),
		`cannot create resource "ptahschemas"`)
}

// TestWebhookOutageStopsApprovalsOnly does not run beside the others: it ends every manager for a while.
func TestWebhookOutageStopsApprovalsOnly(t *testing.T) {
	scenario(t, "webhook-outage-stops-approvals-only", func(ctx context.Context, s *bench.Scenario) {
		one := subject.Prepare(ctx, s, subject.First, subject.Seldom)
		one.Declare(ctx)
		waiting, _ := one.Await(ctx, "a plan that waits for approval", bench.AwaitingApproval)
		failClosed(ctx, s)

		before, err := s.Bench.ScaleManagers(ctx, 0)
		back := func() {
			if before > 0 {
				_, err := s.Bench.ScaleManagers(context.Background(), before)
				s.Fixture(err)
				before = 0
			}
		}
		s.T.Cleanup(back)
		s.Fixture(err)
		managers, err := s.Bench.Managers(ctx)
		s.Fixture(err)
		s.Witness("managers that run", len(managers))
		err = s.Bench.Client.Create(ctx, bench.Approval(waiting, "unseen"))
		s.Observe("what the API server says to an approval", fmt.Sprint(err))
		s.Check("an approval is refused while nobody looks at it", err != nil && strings.Contains(err.Error(), "failed calling webhook") && strings.Contains(err.Error(), "approval.operator.ptah.run"), "the API server said %v", err)
		other := s.Namespace(ctx) // with its Secrets and ConfigMaps, which is a part of what must go on
		s.Need("a Pod of somebody else is admitted", s.Bench.Client.Create(ctx, ordinaryPod(other), client.DryRunAll))
		s.Need("a schema is declared", s.Bench.Client.Create(ctx, s.Bench.Schema(other, "orders", one.Artifact, "orders-db", subject.Seldom, subject.Retry)))
		s.Need("and deleted", s.Bench.Client.Delete(ctx, &v1alpha1.PtahSchema{ObjectMeta: metav1.ObjectMeta{Namespace: other, Name: "orders"}}))
		back()
		answered(ctx, s, bench.Approval(waiting, "seen"))
		one.Approve(ctx, waiting, "seen")
		one.Await(ctx, "control: convergence once somebody looks", bench.InSync)
	})
}

// failClosed checks what the webhooks are asked about, and what happens where they do not answer.
func failClosed(ctx context.Context, s *bench.Scenario) {
	s.T.Helper()
	mutating, validating := &admissionregistrationv1.MutatingWebhookConfiguration{}, &admissionregistrationv1.ValidatingWebhookConfiguration{}
	key := client.ObjectKey{Name: "ptah-operator-admission"}
	s.Fixture(s.Bench.Client.Get(ctx, key, mutating))
	s.Fixture(s.Bench.Client.Get(ctx, key, validating))
	check := func(name string, policy *admissionregistrationv1.FailurePolicyType, rules []admissionregistrationv1.RuleWithOperations) {
		s.Check("fails closed: "+name, policy != nil && *policy == admissionregistrationv1.Fail, "its failure policy is %s", ptr.Deref(policy, "not set"))
		for _, rule := range rules {
			s.Check("is asked about the product's kinds alone: "+name, slices.Equal(rule.APIGroups, []string{ptah}) && !slices.Contains(rule.Resources, "*"), "its rule is %v", rule)
		}
	}
	for _, webhook := range mutating.Webhooks {
		check(webhook.Name, webhook.FailurePolicy, webhook.Rules)
	}
	for _, webhook := range validating.Webhooks {
		check(webhook.Name, webhook.FailurePolicy, webhook.Rules)
	}
	s.Check("control: there are webhooks", len(mutating.Webhooks) > 0 && len(validating.Webhooks) > 0, "there are %d and %d", len(mutating.Webhooks), len(validating.Webhooks))
}

// ordinaryPod is a Pod that has nothing to do with the product, as a restricted namespace takes it.
func ordinaryPod(namespace string) *corev1.Pod {
	yes, no, user := true, false, int64(65532)
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "ordinary"},
		Spec: corev1.PodSpec{
			SecurityContext: &corev1.PodSecurityContext{RunAsNonRoot: &yes, RunAsUser: &user, SeccompProfile: &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault}},
			Containers: []corev1.Container{{Name: "ordinary", Image: "registry.example/ordinary:1",
				SecurityContext: &corev1.SecurityContext{AllowPrivilegeEscalation: &no, Capabilities: &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}}}}},
		},
	}
}
