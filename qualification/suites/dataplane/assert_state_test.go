package dataplane

import (
	"context"
	"slices"
	"testing"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"ptah.run/ptah/operator/api/v1alpha1"
	"ptah.run/ptah/qualification/suites/bench"
	"ptah.run/ptah/qualification/suites/subject"
)

func TestUnsupportedEngineIsAState(t *testing.T) {
	t.Parallel()
	scenario(t, "unsupported-engine-is-a-state", func(ctx context.Context, s *bench.Scenario) {
		restarts := lives(ctx, s)
		one := subject.Prepare(ctx, s, subject.First, subject.Seldom)
		one.Shape = func(schema *v1alpha1.PtahSchema) { schema.Spec.Target.Engine = "Oracle" }
		jobs := one.RecordJobs(ctx)
		one.Declare(ctx)
		blocked := told(ctx, one, v1alpha1.ConditionReady, metav1.ConditionFalse, v1alpha1.ReasonUnsupportedEngine, "Oracle")
		s.Check("it is blocked until the spec changes", blocked.Status.Phase == v1alpha1.PhaseBlocked && bench.Condition(blocked, v1alpha1.ConditionStalled, metav1.ConditionTrue, ""), "phase %s, conditions %v", blocked.Status.Phase, blocked.Status.Conditions)
		s.Check("the engine's own condition says so", bench.Condition(blocked, v1alpha1.ConditionEngineSupported, metav1.ConditionFalse, v1alpha1.ReasonUnsupportedEngine), "conditions are %v", blocked.Status.Conditions)
		s.Check("nothing was started", len(jobs.All(ctx)) == 0, "Jobs of the record: %v", jobs.All(ctx))

		// A server that speaks another protocol than was declared is no crash either.
		other := v1alpha1.EngineMySQL
		if s.Bench.Engine() == v1alpha1.EngineMySQL {
			other = v1alpha1.EnginePostgreSQL
		}
		one.Patch(ctx, `{"spec":{"target":{"engine":"`+string(other)+`"},"policy":{"transactionMode":"none"}}}`)
		wrong, _ := one.Await(ctx, "a state with another engine than the database has", func(now *v1alpha1.PtahSchema) bool {
			return bench.Settled(now) && bench.Condition(now, v1alpha1.ConditionReady, metav1.ConditionFalse, "") &&
				slices.Contains([]v1alpha1.Phase{v1alpha1.PhaseFailed, v1alpha1.PhaseBlocked}, now.Status.Phase)
		})
		s.Observe("what it says of another engine", message(wrong, v1alpha1.ConditionReady))
		s.Check("no plan for another engine", wrong.Status.Plan == nil, "there is a plan")

		one.Patch(ctx, `{"spec":{"target":{"engine":"`+string(s.Bench.Engine())+`"}}}`)
		one.Await(ctx, "control: a plan with the right engine", bench.AwaitingApproval)
		now := lives(ctx, s)
		s.Check("no manager died of it", slices.Equal(now, restarts), "the managers' containers were %v and are %v", restarts, now)
	})
}

// lives tells the managers' containers and how often each was started.
func lives(ctx context.Context, s *bench.Scenario) []string {
	s.T.Helper()
	managers, err := s.Bench.Managers(ctx)
	s.Fixture(err)
	var all []string
	for _, manager := range managers {
		for _, status := range manager.Status.ContainerStatuses {
			all = append(all, manager.Name+" "+status.ContainerID)
		}
	}
	slices.Sort(all)
	return all
}

func TestSuspendedResourceStartsNothing(t *testing.T) {
	t.Parallel()
	scenario(t, "suspended-resource-starts-nothing", func(ctx context.Context, s *bench.Scenario) {
		one := subject.Prepare(ctx, s, subject.First, subject.Interval)
		one.Shape = func(schema *v1alpha1.PtahSchema) { schema.Spec.Suspend = true }
		jobs := one.RecordJobs(ctx)
		began := time.Now()
		one.Declare(ctx)
		told(ctx, one, v1alpha1.ConditionSuspended, metav1.ConditionTrue, v1alpha1.ReasonRequested, "")
		time.Sleep(subject.Interval + subject.Interval/2) // in which a refresh would be due
		s.Check("nothing was started", len(jobs.All(ctx)) == 0, "Jobs of the record: %v", jobs.All(ctx))
		journal := one.Journal(began)
		s.Check("the database was not read", len(journal.Reads)+len(journal.Writes) == 0, "the journal shows %v", journal)

		one.Patch(ctx, `{"spec":{"suspend":false}}`)
		waiting, _ := one.Await(ctx, "control: a plan once it goes on", bench.AwaitingApproval)
		s.Check("control: the record shows its Job", len(jobs.All(ctx)) > 0, "the record shows no Job, so that it proves nothing")
		one.Patch(ctx, `{"spec":{"suspend":true}}`)
		held := told(ctx, one, v1alpha1.ConditionSuspended, metav1.ConditionTrue, v1alpha1.ReasonRequested, "")
		refused(s, "an approval of a suspended schema's plan", s.Bench.Client.Create(ctx, bench.Approval(waiting, "suspended")), "is suspended")
		s.Check("the phase says so", held.Status.Phase == v1alpha1.PhaseSuspended, "phase %s", held.Status.Phase)
		s.Check("nothing was applied", len(jobs.Applies(ctx)) == 0, "Apply Jobs of the record: %v", jobs.Applies(ctx))
	})
}

const teamLabel = "example.com/team"

// TestPodMetadataAdmission runs in a namespace that takes only Pods with a label of its own.
func TestPodMetadataAdmission(t *testing.T) {
	t.Parallel()
	scenario(t, "pod-metadata-admission", func(ctx context.Context, s *bench.Scenario) {
		one := subject.Prepare(ctx, s, subject.First, subject.Seldom)
		one.Shape = func(schema *v1alpha1.PtahSchema) { schema.Spec.Execution.ActiveDeadlineSeconds = shortDeadline }
		labelledPodsOnly(ctx, one)
		one.Declare(ctx)
		one.Await(ctx, "a refresh whose Pod was refused", func(now *v1alpha1.PtahSchema) bool {
			return bench.Settled(now) && now.Status.FailedAttempts > 0
		})
		s.Check("no Pod came into being", len(operationPods(ctx, one)) == 0, "Pods of the namespace: %v", operationPods(ctx, one))
		one.Patch(ctx, `{"spec":{"execution":{"activeDeadlineSeconds":300,"podMetadata":{"labels":{"`+teamLabel+`":"shop"},"annotations":{"example.com/note":"of the shop"}}}}}`)
		waiting, _ := one.Await(ctx, "a plan with the label", bench.AwaitingApproval)
		one.Approve(ctx, waiting, "labelled")
		one.Await(ctx, "proven convergence with the label", bench.InSync)
		seen := map[string]int{}
		for _, pod := range operationPods(ctx, one) {
			seen[pod.Labels[v1alpha1.LabelOperation]]++
			s.Check("metadata of "+pod.Name, pod.Labels[teamLabel] == "shop" && pod.Annotations["example.com/note"] == "of the shop", "labels %v, annotations %v", pod.Labels, pod.Annotations)
			s.Check("the product's own labels of "+pod.Name, pod.Labels[v1alpha1.LabelSchema] == one.Key.Name && pod.Labels[v1alpha1.LabelComponent] == v1alpha1.SchemaOperation, "labels %v", pod.Labels)
		}
		s.Check("control: Pods of both operations were looked at", seen["refresh"] > 0 && seen["apply"] > 0, "Pods by operation: %v", seen)
	})
}

func operationPods(ctx context.Context, one *subject.Subject) []corev1.Pod {
	one.T.Helper()
	pods := &corev1.PodList{}
	one.Fixture(one.Bench.Client.List(ctx, pods, client.InNamespace(one.Key.Namespace)))
	return pods.Items
}

// labelledPodsOnly lets the API server refuse every other Pod of the namespace, as an administrator does, until the end
// of the test.
func labelledPodsOnly(ctx context.Context, one *subject.Subject) {
	one.T.Helper()
	name := one.Key.Namespace + "-labelled"
	policy := &admissionregistrationv1.ValidatingAdmissionPolicy{ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: admissionregistrationv1.ValidatingAdmissionPolicySpec{
			MatchConstraints: &admissionregistrationv1.MatchResources{ResourceRules: []admissionregistrationv1.NamedRuleWithOperations{{
				RuleWithOperations: admissionregistrationv1.RuleWithOperations{Operations: []admissionregistrationv1.OperationType{admissionregistrationv1.Create},
					Rule: admissionregistrationv1.Rule{APIGroups: []string{""}, APIVersions: []string{"v1"}, Resources: []string{"pods"}}}}}},
			Validations: []admissionregistrationv1.Validation{{
				Expression: "has(object.metadata.labels) && '" + teamLabel + "' in object.metadata.labels", Message: "a Pod of this namespace names its team"}},
		}}
	binding := &admissionregistrationv1.ValidatingAdmissionPolicyBinding{ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: admissionregistrationv1.ValidatingAdmissionPolicyBindingSpec{PolicyName: name, ValidationActions: []admissionregistrationv1.ValidationAction{admissionregistrationv1.Deny},
			MatchResources: &admissionregistrationv1.MatchResources{NamespaceSelector: &metav1.LabelSelector{MatchLabels: map[string]string{corev1.LabelMetadataName: one.Key.Namespace}}}}}
	for _, object := range []client.Object{policy, binding} {
		one.Fixture(one.Bench.Client.Create(ctx, object))
		one.T.Cleanup(func() {
			if err := one.Bench.Client.Delete(context.Background(), object); err != nil && !apierrors.IsNotFound(err) {
				one.T.Errorf("remove %s: %v", name, err)
			}
		})
	}
	for end := time.Now().Add(time.Minute); ; time.Sleep(200 * time.Millisecond) {
		err := one.Bench.Client.Create(ctx, ordinaryPod(one.Key.Namespace), client.DryRunAll)
		if refusal(err, "names its team") || refusal(err, "denied") {
			one.Witness("what the API server says to a Pod without the label", err.Error())
			return
		}
		one.Need("the rule about Pods takes effect", subject.ErrorUnless(time.Now().Before(end), "a Pod without the label is admitted after a minute"))
	}
}
