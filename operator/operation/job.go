package operation

import (
	"encoding/json"
	"fmt"
	"maps"
	"strings"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	ptahv1 "ptah.run/ptah/operator/api/v1alpha1"
	"ptah.run/ptah/operator/operation/identity"
)

const (
	// GraceSeconds is how long a container may take to stop.
	GraceSeconds = int64(30)
	// refreshTTL lets a finished Job outlive a change of leader and needs no patch. Its result goes with it.
	refreshTTL = int32(300)
	// applyTTL keeps the Job of an Apply as evidence while its outcome is settled.
	applyTTL = int32(3600)
)

// Annotations for audit only. They bind nothing.
const (
	AnnotationControllerImage    = "operator.ptah.run/controller-image"
	AnnotationControllerRevision = "operator.ptah.run/controller-revision"
	AnnotationRunnerImage        = "operator.ptah.run/runner-image"
	annotationSafeToEvict        = "cluster-autoscaler.kubernetes.io/safe-to-evict"
)

// Config is what every operation of one manager shares.
type Config struct {
	// ExecutorImage and RunnerImage are pinned by digest.
	ExecutorImage string
	RunnerImage   string
	PtahVersion   string
	// ResultsURL is the receiver's address without a path, such as https://ptah-operator-results.ptah-system.svc.
	ResultsURL string
	// TrustPEM returns the certificates that sign the receiver's.
	TrustPEM func() (string, error)
	Manager  ptahv1.ManagerRecord
}

// Subject is the resource that an operation is for.
type Subject struct {
	APIVersion string
	Kind       string
	Namespace  string
	Name       string
	UID        types.UID
	// NameLabel is the label key that carries Name.
	NameLabel string
	Component string
	Execution ptahv1.ExecutionSpec
}

// Order is everything that a Job is built from.
type Order struct {
	Subject Subject
	Claim   ptahv1.ActiveOperationStatus
	Policy  ptahv1.SchemaPolicy
	// HeldPlanDigest is the content digest of the plan that is stored already.
	HeldPlanDigest string
	// Proven is the last proof of convergence, nil where it must not shorten this operation.
	Proven *ptahv1.ConvergedStatus
	// PlanFingerprint and PlanContentDigest are set for an Apply.
	PlanFingerprint   string
	PlanContentDigest string
}

// Build returns the Job of an order. It reads no clock and no cluster: equal orders give equal Jobs.
func Build(config Config, order Order) (*batchv1.Job, error) {
	pod, err := podSpec(config, order)
	if err != nil {
		return nil, fmt.Errorf("build Job %s: %w", order.Claim.JobName, err)
	}
	labels := map[string]string{
		ptahv1.LabelManagedBy:   ptahv1.ManagedByValue,
		ptahv1.LabelComponent:   order.Subject.Component,
		order.Subject.NameLabel: order.Subject.Name,
		ptahv1.LabelOperation:   strings.ToLower(string(order.Claim.Type)),
		ptahv1.LabelOperationID: identity.ShortID(order.Claim.ID),
	}
	annotations := map[string]string{
		ptahv1.AnnotationOperationID: order.Claim.ID,
		ptahv1.AnnotationInputs:      order.Claim.InputFingerprint,
		ptahv1.AnnotationBinding:     order.Claim.ExecutionBindingID,
		AnnotationControllerImage:    config.Manager.ControllerImage,
		AnnotationControllerRevision: config.Manager.ControllerRevision,
		AnnotationRunnerImage:        config.Manager.RunnerImage,
	}
	ttl := refreshTTL
	if mutates(order) {
		ttl = applyTTL
		annotations[ptahv1.AnnotationPlan] = order.PlanFingerprint
	}
	return &batchv1.Job{
		ObjectMeta: metav1.ObjectMeta{
			Name:        order.Claim.JobName,
			Namespace:   order.Subject.Namespace,
			Labels:      labels,
			Annotations: annotations,
			OwnerReferences: []metav1.OwnerReference{{
				APIVersion: order.Subject.APIVersion, Kind: order.Subject.Kind,
				Name: order.Subject.Name, UID: order.Subject.UID,
				Controller: ptr.To(true), BlockOwnerDeletion: ptr.To(true),
			}},
		},
		Spec: batchv1.JobSpec{
			Parallelism:             ptr.To(int32(1)),
			Completions:             ptr.To(int32(1)),
			CompletionMode:          ptr.To(batchv1.NonIndexedCompletion),
			BackoffLimit:            ptr.To(int32(0)),
			ActiveDeadlineSeconds:   ptr.To(order.Subject.Execution.ActiveDeadlineSeconds),
			TTLSecondsAfterFinished: ptr.To(ttl),
			PodReplacementPolicy:    ptr.To(batchv1.Failed),
			Suspend:                 ptr.To(false),
			Template: corev1.PodTemplateSpec{
				ObjectMeta: podMetadata(order, labels, annotations),
				Spec:       pod,
			},
		},
	}, nil
}

func podMetadata(order Order, labels, annotations map[string]string) metav1.ObjectMeta {
	podLabels, podAnnotations := map[string]string{}, map[string]string{}
	if extra := order.Subject.Execution.PodMetadata; extra != nil {
		for key, value := range extra.Labels {
			podLabels[key] = string(value)
		}
		for key, value := range extra.Annotations {
			podAnnotations[key] = string(value)
		}
	}
	maps.Copy(podLabels, labels)
	maps.Copy(podAnnotations, annotations)
	if mutates(order) {
		podAnnotations[annotationSafeToEvict] = "false"
	}
	return metav1.ObjectMeta{Labels: podLabels, Annotations: podAnnotations}
}

func mutates(order Order) bool { return order.Claim.Type == ptahv1.OperationApply }

// identityJSON is the identity without what only the Pod knows.
func identityJSON(order Order) (string, error) {
	data, err := json.Marshal(identity.Identity{
		Namespace: order.Subject.Namespace, Kind: order.Subject.Kind, Name: order.Subject.Name,
		UID: string(order.Subject.UID), Generation: order.Claim.Generation,
		ExecutionBindingID: order.Claim.ExecutionBindingID, InputFingerprint: order.Claim.InputFingerprint,
		Operation: string(order.Claim.Type), OperationID: order.Claim.ID, JobName: order.Claim.JobName,
	})
	if err != nil {
		return "", fmt.Errorf("identity: %w", err)
	}
	if len(data) > identity.MaxBytes {
		return "", fmt.Errorf("identity: %d bytes are more than %d", len(data), identity.MaxBytes)
	}
	return string(data), nil
}

// IsFor says whether job is the Job of claim: controlled by the resource and annotated with the claim's identity.
func IsFor(job *batchv1.Job, owner types.UID, claim *ptahv1.ActiveOperationStatus) bool {
	controller := metav1.GetControllerOfNoCopy(job)
	return controller != nil && controller.UID == owner &&
		job.Annotations[ptahv1.AnnotationOperationID] == claim.ID &&
		job.Annotations[ptahv1.AnnotationInputs] == claim.InputFingerprint &&
		job.Annotations[ptahv1.AnnotationBinding] == claim.ExecutionBindingID
}

// Cached is the transform of the manager's cache for Jobs: it keeps what names a Job and says how it goes, and drops the
// Pod template, which is most of it.
func Cached(object any) (any, error) {
	job, ok := object.(*batchv1.Job)
	if !ok {
		return object, nil
	}
	kept := &batchv1.Job{TypeMeta: job.TypeMeta, ObjectMeta: job.ObjectMeta, Status: job.Status}
	kept.ManagedFields = nil
	return kept, nil
}

// Finished says whether nothing of the Job runs any more, and why it ended. A Job gets its final condition only after
// its Pods ended.
func Finished(job *batchv1.Job) (bool, string) {
	for _, condition := range job.Status.Conditions {
		if condition.Status != corev1.ConditionTrue {
			continue
		}
		switch condition.Type {
		case batchv1.JobComplete:
			return true, ""
		case batchv1.JobFailed:
			return true, strings.TrimSpace(condition.Reason + " " + condition.Message)
		}
	}
	return false, ""
}

// DispatchedBy is the manager that created the Job, as the Job says; nil where it does not.
func DispatchedBy(job *batchv1.Job) *ptahv1.ManagerRecord {
	if job == nil || job.Annotations[AnnotationControllerImage] == "" {
		return nil
	}
	return &ptahv1.ManagerRecord{
		ControllerImage:    job.Annotations[AnnotationControllerImage],
		ControllerRevision: job.Annotations[AnnotationControllerRevision],
		RunnerImage:        job.Annotations[AnnotationRunnerImage],
	}
}
