package dataplane

import (
	"context"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"ptah.run/ptah/operator/api/v1alpha1"
	"ptah.run/ptah/qualification/lab/tenant"
	"ptah.run/ptah/qualification/suites/bench"
	"ptah.run/ptah/qualification/suites/subject"
)

// values are values by their dotted paths in a PtahSchema; nil removes what stands there.
type values map[string]any

// unusable are inputs that the API server itself refuses, with what it must say.
var unusable = []struct {
	what  string
	input values
	words string
}{
	{"an interval of a nanosecond", values{"spec.interval": "1ns"}, "spec.interval: must be between 10s and 24h"},
	{"a negative interval", values{"spec.interval": "-10m"}, "spec.interval: must be between 10s and 24h"},
	{"an interval just below the smallest", values{"spec.interval": "9.999999999s"}, "spec.interval: must be between 10s and 24h"},
	{"an interval above the largest", values{"spec.interval": "24h0m1s"}, "spec.interval: must be between 10s and 24h"},
	{"a lock timeout of a nanosecond", values{"spec.policy.lockTimeout": "1ns"}, "spec.policy.lockTimeout: must be between 1s and 10m"},
	{"a negative lock timeout", values{"spec.policy.lockTimeout": "-1s"}, "spec.policy.lockTimeout: must be between 1s and 10m"},
	{"a lock timeout over the deadline", values{"spec.policy.lockTimeout": "61s", "spec.execution.activeDeadlineSeconds": int64(60)}, "spec.policy.lockTimeout: must not exceed spec.execution.activeDeadlineSeconds"},
	{"a connect timeout of a nanosecond", values{"spec.execution.connectTimeout": "1ns"}, "spec.execution.connectTimeout: must be between 1s and 10m"},
	{"a negative connect timeout", values{"spec.execution.connectTimeout": "-10s"}, "spec.execution.connectTimeout: must be between 1s and 10m"},
	{"a connect timeout over the deadline", values{"spec.execution.connectTimeout": "31s", "spec.execution.activeDeadlineSeconds": int64(30)}, "spec.execution.connectTimeout: must not exceed activeDeadlineSeconds"},
	{"a retry after a nanosecond", values{"spec.execution.failureRetryInterval": "1ns"}, "spec.execution.failureRetryInterval: must be between 5s and 1h"},
	{"a negative retry", values{"spec.execution.failureRetryInterval": "-30s"}, "spec.execution.failureRetryInterval: must be between 5s and 1h"},
	{"a deadline of a second", values{"spec.execution.activeDeadlineSeconds": int64(1)}, "should be greater than or equal to 30"},
	{"a duration that is none", values{"spec.interval": "soon"}, "spec.interval"},

	{"a database URL without a Secret", values{"spec.target.urlFrom.name": ""}, "spec.target.urlFrom: name and key must not be empty"},
	{"a database URL without a key", values{"spec.target.urlFrom.key": ""}, "spec.target.urlFrom: name and key must not be empty"},
	{"an optional database URL", values{"spec.target.urlFrom.optional": true}, "spec.target.urlFrom.optional: must not be true"},
	{"a verification policy without a ConfigMap", values{"spec.desired.verificationPolicyFrom.name": ""}, "verificationPolicyFrom: name and key must not be empty"},
	{"a verification policy without a key", values{"spec.desired.verificationPolicyFrom.key": ""}, "verificationPolicyFrom: name and key must not be empty"},
	{"an authority without a key", values{"spec.desired.transport.caFrom.key": ""}, "transport.caFrom: name and key must not be empty"},
	{"a registry credential without a Secret", values{"spec.desired.registryAuthFrom.name": ""}, "spec.desired.registryAuthFrom.name"},
	{"a registry credential without a key", values{"spec.desired.registryAuthFrom.usernameKey": ""}, "spec.desired.registryAuthFrom.usernameKey"},
	{"two ways to name the database", values{"spec.target.realmRef": map[string]any{"name": "orders"}}, "spec.target: set exactly one of coordinationKey and realmRef"},
	{"no way to name the database", values{"spec.target.coordinationKey": nil}, "spec.target: set exactly one of coordinationKey and realmRef"},
	{"a reference that is none", values{"spec.desired.ociRef": "https://registry.example/orders"}, "spec.desired.ociRef"},
	{"a transaction mode that is none", values{"spec.policy.transactionMode": "maybe"}, "spec.policy.transactionMode"},

	// References are to the schema's own namespace: there is no field that could say another.
	{"a Secret of another namespace", values{"spec.target.urlFrom.namespace": "other"}, `unknown field "spec.target.urlFrom.namespace"`},
	{"a registry credential of another namespace", values{"spec.desired.registryAuthFrom.namespace": "other"}, `unknown field "spec.desired.registryAuthFrom.namespace"`},
	{"a verification policy of another namespace", values{"spec.desired.verificationPolicyFrom.namespace": "other"}, `unknown field "spec.desired.verificationPolicyFrom.namespace"`},
	{"an authority of another namespace", values{"spec.desired.transport.caFrom.namespace": "other"}, `unknown field "spec.desired.transport.caFrom.namespace"`},

	{"a selector that is empty", values{"spec.policy.exclude": []any{""}}, "spec.policy.exclude[0]"},
	{"a selector that begins with a blank", values{"spec.policy.exclude": []any{" public.orders"}}, "spec.policy.exclude[0]"},
	{"a selector that ends with a tab", values{"spec.policy.exclude": []any{"public.orders\t"}}, "spec.policy.exclude[0]"},
	{"a selector with a control character", values{"spec.policy.exclude": []any{"public.\x01orders"}}, "spec.policy.exclude[0]"},
	{"a selector of two lines", values{"spec.policy.exclude": []any{"public.orders\npublic.customers"}}, "spec.policy.exclude[0]"},
	{"a selector twice", values{"spec.policy.exclude": []any{"public.orders", "public.orders"}}, "Duplicate value"},
	{"a protected table twice", values{"spec.policy.protectedTables": []any{"orders", "orders"}}, "Duplicate value"},
	{"a protected table with a blank", values{"spec.policy.protectedTables": []any{"or ders"}}, "spec.policy.protectedTables[0]"},

	{"a label of the product on Pods", values{"spec.execution.podMetadata": map[string]any{"labels": map[string]any{"operator.ptah.run/schema": "x"}}}, "are reserved"},
	{"a label of Kubernetes on Pods", values{"spec.execution.podMetadata": map[string]any{"labels": map[string]any{"job-name": "x"}}}, "are reserved"},
	{"an annotation of Kubernetes on Pods", values{"spec.execution.podMetadata": map[string]any{"annotations": map[string]any{"container.apparmor.security.beta.kubernetes.io/database": "unconfined"}}}, "are reserved"},
	{"a label that is none on Pods", values{"spec.execution.podMetadata": map[string]any{"labels": map[string]any{"team": "no blanks"}}}, "spec.execution.podMetadata.labels.team"},
}

// usable are the same fields on the other side of their bounds.
var usable = []struct {
	what  string
	input values
}{
	{"nothing unusual", nil},
	{"the smallest durations", values{"spec.interval": "10s", "spec.policy.lockTimeout": "1s", "spec.execution.connectTimeout": "1s", "spec.execution.failureRetryInterval": "5s"}},
	{"the largest durations", values{"spec.interval": "24h", "spec.policy.lockTimeout": "10m", "spec.execution.connectTimeout": "10m", "spec.execution.failureRetryInterval": "1h", "spec.execution.activeDeadlineSeconds": int64(600)}},
	{"timeouts as long as the deadline", values{"spec.policy.lockTimeout": "30s", "spec.execution.connectTimeout": "30s", "spec.execution.activeDeadlineSeconds": int64(30)}},
	{"selectors that differ", values{"spec.policy.exclude": []any{"public.orders", "public.order lines"}, "spec.policy.protectedTables": []any{"orders", "public.orders"}}},
	{"metadata of Pods", values{"spec.execution.podMetadata": map[string]any{"labels": map[string]any{"team": "shop", "example.com/cost": "7"}, "annotations": map[string]any{"note": "any text"}}}},
}

func TestUnusableInputRefused(t *testing.T) {
	t.Parallel()
	scenario(t, "unusable-input-refused", func(ctx context.Context, s *bench.Scenario) {
		namespace := s.Namespace(ctx)
		try := func(input values) error {
			return s.Bench.Client.Create(ctx, changed(s, namespace, input), client.DryRunAll, client.FieldValidation("Strict"))
		}
		for _, one := range usable {
			s.Need("control: accepted with "+one.what, try(one.input))
		}
		for _, one := range unusable {
			refused(s, one.what, try(one.input), one.words)
		}
	})
}

// changed is a schema as a user of the lab writes it, with some values of its own.
func changed(s *bench.Scenario, namespace string, input values) *unstructured.Unstructured {
	s.T.Helper()
	schema := s.Bench.Schema(namespace, "orders", tenant.Artifact{Reference: "oci://registry.example/orders:v1"}, "orders-db", subject.Seldom, subject.Retry)
	object, err := runtime.DefaultUnstructuredConverter.ToUnstructured(schema)
	s.Fixture(err)
	delete(object, "status")
	for path, value := range input {
		s.Fixture(set(object, path, value))
	}
	written := &unstructured.Unstructured{Object: object}
	written.SetGroupVersionKind(v1alpha1.GroupVersion.WithKind("PtahSchema"))
	return written
}

// set writes a value at a dotted path; nil removes what stands there.
func set(object map[string]any, path string, value any) error {
	fields := strings.Split(path, ".")
	if value == nil {
		unstructured.RemoveNestedField(object, fields...)
		return nil
	}
	return unstructured.SetNestedField(object, value, fields...)
}
