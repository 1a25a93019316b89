package operation

import (
	"context"
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	ptahv1 "ptah.run/ptah/operator/api/v1alpha1"
	"ptah.run/ptah/operator/testserver"
)

var server = &testserver.Server{CRDs: "../../chart/ptah-operator/crds"}

func TestMain(m *testing.M) {
	m.Run() // the test program exits with what it returned
	if err := server.Stop(); err != nil {
		panic("stop the API server: " + err.Error())
	}
}

// What the API server stores is what was built: it defaults nothing, and a namespace that enforces the restricted Pod
// Security Standard admits the Pods.
func TestTheAPIServerStoresTheJobAsItWasBuilt(t *testing.T) {
	config := server.Config(t)
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{corev1.AddToScheme, batchv1.AddToScheme} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	c, err := client.New(config, client.Options{Scheme: scheme})
	if err != nil {
		t.Fatal(err)
	}
	ctx := context.Background()
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "team-a", Labels: map[string]string{
		"pod-security.kubernetes.io/enforce": "restricted", "pod-security.kubernetes.io/enforce-version": "latest",
	}}}
	if err := c.Create(ctx, namespace); err != nil {
		t.Fatal(err)
	}
	if err := c.Create(ctx, &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: "default", Namespace: "team-a"}}); err != nil && !apierrors.IsAlreadyExists(err) {
		t.Fatal(err)
	}
	for _, operation := range []ptahv1.OperationType{ptahv1.OperationRefresh, ptahv1.OperationApply} {
		meant := mustBuild(t, fullOrder(operation))
		stored := meant.DeepCopy()
		if err := c.Create(ctx, stored); err != nil {
			t.Fatalf("%s: %v", operation, err)
		}
		if !apiequality.Semantic.DeepEqual(stored.Spec.Template.Spec, meant.Spec.Template.Spec) {
			t.Errorf("%s: the Pod is stored as\n%+v\nand was built as\n%+v", operation, stored.Spec.Template.Spec, meant.Spec.Template.Spec)
		}
		if !apiequality.Semantic.DeepEqual(stored.Annotations, meant.Annotations) || !IsFor(stored, "uid", &ptahv1.ActiveOperationStatus{
			ID: meant.Annotations[ptahv1.AnnotationOperationID], InputFingerprint: meant.Annotations[ptahv1.AnnotationInputs], ExecutionBindingID: meant.Annotations[ptahv1.AnnotationBinding],
		}) {
			t.Errorf("%s: annotations %v", operation, stored.Annotations)
		}
		pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: meant.Name, Namespace: "team-a", Labels: meant.Spec.Template.Labels}, Spec: meant.Spec.Template.Spec}
		if err := c.Create(ctx, pod, client.DryRunAll); err != nil {
			t.Errorf("%s: a restricted namespace refuses the Pod: %v", operation, err)
		}
		// The control: the same Pod as root is refused.
		pod = &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: meant.Name, Namespace: "team-a"}, Spec: *meant.Spec.Template.Spec.DeepCopy()}
		pod.Spec.Containers[0].SecurityContext.AllowPrivilegeEscalation = nil
		if err := c.Create(ctx, pod, client.DryRunAll); err == nil {
			t.Errorf("%s: a namespace that enforces nothing proves nothing", operation)
		}
	}
}
