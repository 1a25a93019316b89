package dataplane

import (
	"context"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"ptah.run/ptah/operator/api/v1alpha1"
	"ptah.run/ptah/qualification/lab/tenant"
	"ptah.run/ptah/qualification/suites/bench"
	"ptah.run/ptah/qualification/suites/subject"
)

// shortDeadline is the smallest that the API accepts: a Pod whose Secret is missing waits for it as long as it may.
const shortDeadline = 30

// TestCredentialsStayInTheirNamespace declares a schema in a namespace that lacks what it names, beside a namespace that
// has all of it under the same names.
func TestCredentialsStayInTheirNamespace(t *testing.T) {
	t.Parallel()
	scenario(t, "credentials-stay-in-their-namespace", func(ctx context.Context, s *bench.Scenario) {
		neighbour := subject.Prepare(ctx, s, subject.First, subject.Seldom)
		one := subject.Prepare(ctx, s, subject.First, subject.Seldom)
		one.Shape = func(schema *v1alpha1.PtahSchema) { schema.Spec.Execution.ActiveDeadlineSeconds = shortDeadline }
		own := func(name string) metav1.ObjectMeta {
			return metav1.ObjectMeta{Namespace: one.Key.Namespace, Name: name}
		}
		url := take(ctx, one, &corev1.Secret{ObjectMeta: own("orders-db")})
		credential := take(ctx, one, &corev1.Secret{ObjectMeta: own(tenant.RegistrySecret)})
		policy := take(ctx, one, &corev1.ConfigMap{ObjectMeta: own(tenant.PolicyMap)})
		began := time.Now()
		one.Declare(ctx)

		told(ctx, one, v1alpha1.ConditionArtifactVerified, metav1.ConditionFalse, v1alpha1.ReasonConfigurationError, tenant.PolicyMap)
		s.Fixture(s.Bench.Client.Create(ctx, policy))
		told(ctx, one, v1alpha1.ConditionArtifactResolved, metav1.ConditionFalse, v1alpha1.ReasonConfigurationError, "registry Secret")
		s.Fixture(s.Bench.Client.Create(ctx, credential))
		// The artifact can be read now; the database's credential is still the neighbour's alone.
		failed := told(ctx, one, v1alpha1.ConditionReady, metav1.ConditionFalse, v1alpha1.ReasonOperationFailed, "")
		s.Check("no plan without a credential", failed.Status.Plan == nil, "there is a plan of a database that could not be reached")
		there := neighbour.Journal(began)
		s.Check("nobody used the neighbour's credential", len(there.Reads)+len(there.Writes)+there.AuthenticationFailures == 0, "the journal of the neighbour's database shows %v", there)
		for _, list := range []client.ObjectList{&v1alpha1.PtahSchemaPlanList{}, &v1alpha1.PtahSchemaPlanChunkList{}, &corev1.PodList{}} {
			s.Fixture(s.Bench.Client.List(ctx, list, client.InNamespace(neighbour.Key.Namespace)))
			s.Check("nothing was made in the neighbour's namespace", empty(list), "its namespace holds %v", list)
		}

		s.Fixture(s.Bench.Client.Create(ctx, url))
		one.Patch(ctx, `{"spec":{"execution":{"activeDeadlineSeconds":300}}}`)
		one.Await(ctx, "a plan once the namespace has its own credential", bench.AwaitingApproval)
		s.Check("control: its own database is reached then", len(one.Journal(began).Reads) > 0, "the journal shows no reading, so that it proves nothing")
		neighbour.Declare(ctx)
		neighbour.Await(ctx, "a plan of the neighbour", bench.AwaitingApproval)
		s.Check("control: the neighbour's credential works in its own namespace", len(neighbour.Journal(began).Reads) > 0, "the journal shows no reading, so that it proves nothing")
	})
}

// take removes an object and returns it as it can be created again.
func take[T client.Object](ctx context.Context, one *subject.Subject, object T) T {
	one.T.Helper()
	one.Fixture(one.Bench.Client.Get(ctx, client.ObjectKeyFromObject(object), object))
	one.Fixture(one.Bench.Client.Delete(ctx, object))
	object.SetResourceVersion("")
	object.SetUID("")
	return object
}

func empty(list client.ObjectList) bool {
	switch items := list.(type) {
	case *v1alpha1.PtahSchemaPlanList:
		return len(items.Items) == 0
	case *v1alpha1.PtahSchemaPlanChunkList:
		return len(items.Items) == 0
	case *corev1.PodList:
		return len(items.Items) == 0
	}
	return false
}
