package dataplane

import (
	"context"
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"ptah.run/ptah/operator/api/v1alpha1"
	"ptah.run/ptah/qualification/installation"
	"ptah.run/ptah/qualification/suites/bench"
	"ptah.run/ptah/qualification/suites/subject"
)

// chart is what the lab was installed from, from this package's folder.
const chart = "../../../chart/ptah-operator"

// TestDistinctApproverRequired does not run beside the others: it changes the installation, for everybody.
func TestDistinctApproverRequired(t *testing.T) {
	scenario(t, "distinct-approver-required", func(ctx context.Context, s *bench.Scenario) {
		one := subject.Prepare(ctx, s, subject.First, subject.Seldom)
		jobs := one.RecordJobs(ctx)
		alice, bob := person(ctx, one, "alice"), person(ctx, one, "bob")
		one.Author = alice
		one.Declare(ctx)
		waiting, _ := one.Await(ctx, "a plan that waits for approval", bench.AwaitingApproval)
		s.Need("control: where one person is enough the author may approve", alice.Create(ctx, bench.Approval(waiting, "alone"), client.DryRunAll))
		refused(s, "a record of somebody else, made in advance", patched(ctx, one, alice, forgery("carol")), "are written by the operator alone")

		requireSecondPerson(ctx, s)
		answered(ctx, s, bench.Approval(waiting, "answered"))
		refused(s, "an approval of what was declared while nobody kept a record", bob.Create(ctx, bench.Approval(waiting, "unrecorded")), "it is not recorded who wrote the spec")
		s.Need("alice changes the spec", patched(ctx, one, alice, `{"spec":{"interval":"61m"}}`))
		waiting, _ = one.Await(ctx, "a plan for what alice wrote", func(now *v1alpha1.PtahSchema) bool {
			return bench.AwaitingApproval(now) && now.Generation > waiting.Generation
		})
		s.Need("a record is forged without an error", patched(ctx, one, alice, forgery("carol")))
		now := &v1alpha1.PtahSchema{}
		s.Fixture(s.Bench.Client.Get(ctx, one.Key, now))
		s.Check("the record is of the one who was authenticated", now.Annotations[v1alpha1.AnnotationWriterName] == "alice", "annotations are %v", now.Annotations)

		refused(s, "the author's own approval", alice.Create(ctx, bench.Approval(waiting, "own")), `"alice" wrote the spec of PtahSchema "orders" last`)
		refused(s, "a policy that asks nobody", patched(ctx, one, alice, `{"spec":{"policy":{"apply":"Always"}}}`), "this installation requires a second person")
		s.Check("nothing was applied before a second person came", len(jobs.Applies(ctx)) == 0, "Apply Jobs of the record: %v", jobs.Applies(ctx))

		approved := time.Now()
		s.Need("the second person's approval is accepted", bob.Create(ctx, bench.Approval(waiting, "second-person")))
		one.Await(ctx, "proven convergence", bench.InSync)
		s.Check("control: it causes one Apply", len(jobs.Applies(ctx)) == 1, "Apply Jobs of the record: %v", jobs.Applies(ctx))
		writes := one.Journal(approved).Writes
		s.Check("control: its statements ran", len(writes) == int(waiting.Status.Plan.StatementCount), "the plan has %d statements, the journal shows %v", waiting.Status.Plan.StatementCount, writes)
	})
}

func forgery(name string) string {
	return fmt.Sprintf(`{"metadata":{"annotations":{%q:%q,%q:""}}}`, v1alpha1.AnnotationWriterName, name, v1alpha1.AnnotationWriterUID)
}

// person is somebody who may do everything with the product's kinds in the namespace.
func person(ctx context.Context, one *subject.Subject, name string) client.Client {
	one.T.Helper()
	meta := metav1.ObjectMeta{Namespace: one.Key.Namespace, Name: "qualify-" + name}
	one.Fixture(one.Bench.Client.Create(ctx, &rbacv1.Role{ObjectMeta: meta, Rules: []rbacv1.PolicyRule{{
		APIGroups: []string{v1alpha1.GroupVersion.Group}, Resources: []string{"*"}, Verbs: []string{"*"}}}}))
	one.Fixture(one.Bench.Client.Create(ctx, &rbacv1.RoleBinding{ObjectMeta: meta,
		RoleRef:  rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: meta.Name},
		Subjects: []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: name}}}))
	somebody, err := one.Bench.As(name, "system:authenticated")
	one.Fixture(err)
	return somebody
}

func patched(ctx context.Context, one *subject.Subject, by client.Client, patch string) error {
	schema := &v1alpha1.PtahSchema{ObjectMeta: metav1.ObjectMeta{Namespace: one.Key.Namespace, Name: one.Key.Name}}
	return by.Patch(ctx, schema, client.RawPatch(types.MergePatchType, []byte(patch)))
}

// requireSecondPerson changes the installation as its administrator does, until the end of the test.
func requireSecondPerson(ctx context.Context, s *bench.Scenario) {
	s.T.Helper()
	set := func(ctx context.Context, required bool) error {
		return installation.Change(ctx, installation.Options{Kubeconfig: s.Bench.Lab.Kubeconfig, ChartDir: chart,
			Values: map[string]any{"approvals": map[string]any{"requireDistinctApprover": required}}})
	}
	s.T.Cleanup(func() {
		if err := set(context.Background(), false); err != nil {
			s.T.Errorf("put the installation back: %v", err)
		}
	})
	s.Need("the installation takes the value", set(ctx, true))
	managers, err := s.Bench.Managers(ctx)
	s.Fixture(err)
	arguments := map[string][]string{}
	for _, pod := range managers {
		if pod.Status.Phase == corev1.PodRunning {
			arguments[pod.Name] = pod.Spec.Containers[0].Args
		}
	}
	s.Observe("arguments of the managers", arguments)
}
