package receiver

import (
	"context"
	"errors"
	"fmt"
	"net/http"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"ptah.run/ptah/operator/api/v1alpha1"
	"ptah.run/ptah/operator/operation/identity"
	"ptah.run/ptah/operator/receiver/delivery"
)

// authority is what the API server said a moment ago.
type authority struct {
	schema *v1alpha1.PtahSchema
	job    *batchv1.Job
	pod    *corev1.Pod
}

// authorize reads resource, Job and Pod past every cache and compares them with the claimed identity. An object that
// is gone or differs is a definite refusal; one that could not be read leaves the authority unknown.
func (s *Server) authorize(ctx context.Context, claimed identity.Identity, account string) (*authority, *refusal) {
	found := &authority{schema: &v1alpha1.PtahSchema{}, job: &batchv1.Job{}, pod: &corev1.Pod{}}
	if refused := s.read(ctx, claimed.Namespace, claimed.Name, "PtahSchema", found.schema); refused != nil {
		return nil, refused
	}
	if err := matchClaim(found.schema, claimed); err != nil {
		return nil, refuse(http.StatusForbidden, "%v", err)
	}
	if refused := s.read(ctx, claimed.Namespace, claimed.JobName, "Job", found.job); refused != nil {
		return nil, refused
	}
	if err := matchJob(found.job, claimed); err != nil {
		return nil, refuse(http.StatusForbidden, "%v", err)
	}
	if refused := s.read(ctx, claimed.Namespace, claimed.PodName, "Pod", found.pod); refused != nil {
		return nil, refused
	}
	if err := matchPod(found.pod, claimed, account); err != nil {
		return nil, refuse(http.StatusForbidden, "%v", err)
	}
	return found, nil
}

func (s *Server) read(ctx context.Context, namespace, name, kind string, into client.Object) *refusal {
	err := s.reader.Get(ctx, client.ObjectKey{Namespace: namespace, Name: name}, into)
	if apierrors.IsNotFound(err) {
		return refuse(http.StatusForbidden, "the claimed %s does not exist", kind)
	}
	if err != nil {
		s.logger.Error(err, "Authority could not be read", "kind", kind, "namespace", namespace, "name", name)
		return refuse(http.StatusServiceUnavailable, "the %s could not be read; try again", kind)
	}
	return nil
}

// matchClaim accepts the live claim, and an Apply whose claim has become an owed observation.
func matchClaim(schema *v1alpha1.PtahSchema, claimed identity.Identity) error {
	if string(schema.UID) != claimed.UID {
		return errors.New("the PtahSchema was created anew since the operation began")
	}
	if claim := schema.Status.ActiveOperation; claim != nil && claim.ID == claimed.OperationID {
		switch {
		case string(claim.Type) != claimed.Operation:
			return errors.New("the claim is for another operation")
		case claim.JobName != claimed.JobName || claim.JobUID != "" && claim.JobUID != claimed.JobUID:
			return errors.New("the claim names another Job")
		case claim.InputFingerprint != claimed.InputFingerprint:
			return errors.New("the claim has other inputs")
		case claim.ExecutionBindingID != claimed.ExecutionBindingID:
			return errors.New("the claim belongs to another execution binding")
		case claim.Generation != claimed.Generation:
			return errors.New("the claim is for another generation")
		case !claim.DispatchStarted:
			return errors.New("the claim was never dispatched")
		}
		return nil
	}
	owed := schema.Status.PendingObservation
	if owed == nil || owed.ApplyOperationID != claimed.OperationID || claimed.Operation != delivery.OperationApply {
		return errors.New("the PtahSchema has no claim for this operation")
	}
	switch {
	case owed.ApplyJobName != claimed.JobName || owed.ApplyJobUID != "" && owed.ApplyJobUID != claimed.JobUID:
		return errors.New("the owed observation names another Job")
	case owed.ApplyGeneration != claimed.Generation:
		return errors.New("the owed observation is for another generation")
	}
	return nil
}

func matchJob(job *batchv1.Job, claimed identity.Identity) error {
	owner := metav1.GetControllerOf(job)
	switch {
	case string(job.UID) != claimed.JobUID:
		return errors.New("the Job was created anew since the operation began")
	case owner == nil || string(owner.UID) != claimed.UID || owner.Kind != claimed.Kind || owner.APIVersion != v1alpha1.GroupVersion.String():
		return errors.New("the Job does not belong to the PtahSchema")
	}
	for _, annotation := range []struct{ key, want string }{
		{v1alpha1.AnnotationOperationID, claimed.OperationID},
		{v1alpha1.AnnotationInputs, claimed.InputFingerprint},
		{v1alpha1.AnnotationBinding, claimed.ExecutionBindingID},
	} {
		if job.Annotations[annotation.key] != annotation.want {
			return fmt.Errorf("the Job's annotation %s does not agree with the claimed identity", annotation.key)
		}
	}
	return nil
}

func matchPod(pod *corev1.Pod, claimed identity.Identity, account string) error {
	owner := metav1.GetControllerOf(pod)
	switch {
	case string(pod.UID) != claimed.PodUID:
		return errors.New("the Pod was created anew since the operation began")
	case owner == nil || string(owner.UID) != claimed.JobUID || owner.Kind != "Job":
		return errors.New("the Pod does not belong to the Job")
	case pod.Spec.ServiceAccountName != account:
		return errors.New("the Pod runs under another ServiceAccount than the token's")
	case pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed:
		return errors.New("the Pod has ended")
	}
	return nil
}
