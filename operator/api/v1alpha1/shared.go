package v1alpha1

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// DatabaseEngine names an engine family. Only PostgreSQL and MySQL are implemented; any other well-formed value is
// stored and refused through status.
//
// +kubebuilder:validation:MinLength=1
// +kubebuilder:validation:MaxLength=63
// +kubebuilder:validation:Pattern=`^[A-Za-z][A-Za-z0-9._-]*$`
type DatabaseEngine string

// Engines with an implementation or a plan for one.
const (
	EnginePostgreSQL DatabaseEngine = "PostgreSQL"
	EngineMySQL      DatabaseEngine = "MySQL"
)

// ApplyPolicy says who decides that a plan runs.
//
// +kubebuilder:validation:Enum=Never;OnApproval;Always
type ApplyPolicy string

// Apply policies.
const (
	ApplyNever      ApplyPolicy = "Never"
	ApplyOnApproval ApplyPolicy = "OnApproval"
	ApplyAlways     ApplyPolicy = "Always"
)

// RealmReference names a cluster-scoped PtahRealm.
type RealmReference struct {
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$`
	Name string `json:"name"`
}

// DatabaseTargetSpec declares one database.
//
// +kubebuilder:validation:XValidation:rule="has(self.coordinationKey) != has(self.realmRef)",message="spec.target: set exactly one of coordinationKey and realmRef"
// +kubebuilder:validation:XValidation:rule="size(self.urlFrom.name) > 0 && size(self.urlFrom.key) > 0",message="spec.target.urlFrom: name and key must not be empty"
// +kubebuilder:validation:XValidation:rule="!has(self.urlFrom.optional) || !self.urlFrom.optional",message="spec.target.urlFrom.optional: must not be true, a database URL is required"
type DatabaseTargetSpec struct {
	Engine DatabaseEngine `json:"engine"`
	// CoordinationKey is a non-secret stable name of the physical database, scoped to the namespace.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([a-z0-9._:/-]*[a-z0-9])?$`
	CoordinationKey string `json:"coordinationKey,omitempty"`
	// +optional
	RealmRef *RealmReference `json:"realmRef,omitempty"`
	// SharedRealm says that this claimant manages only a part and agrees to others.
	// +optional
	SharedRealm bool `json:"sharedRealm,omitempty"`
	// URLFrom selects the connection URL. The manager never reads it.
	URLFrom corev1.SecretKeySelector `json:"urlFrom"`
}

// RegistryAuthMode says how a registry credential is written down.
//
// +kubebuilder:validation:Enum=Environment;DockerConfigJSON
type RegistryAuthMode string

// Registry authentication modes.
const (
	RegistryAuthEnvironment      RegistryAuthMode = "Environment"
	RegistryAuthDockerConfigJSON RegistryAuthMode = "DockerConfigJSON"
)

// RegistryAuthSource selects a registry credential. The Secret must also hold the key "registry": the authority
// host[:port] that the credential is granted for.
type RegistryAuthSource struct {
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Name string `json:"name"`
	// +optional
	// +kubebuilder:default=Environment
	Mode RegistryAuthMode `json:"mode,omitempty"`
	// +optional
	// +kubebuilder:default=username
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	UsernameKey string `json:"usernameKey,omitempty"`
	// +optional
	// +kubebuilder:default=password
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	PasswordKey string `json:"passwordKey,omitempty"`
	// +optional
	// +kubebuilder:default=token
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	TokenKey string `json:"tokenKey,omitempty"`
	// +optional
	// +kubebuilder:default=".dockerconfigjson"
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	DockerConfigJSONKey string `json:"dockerConfigJSONKey,omitempty"`
}

// OCITransport says how a registry is reached.
//
// +kubebuilder:validation:XValidation:rule="!(has(self.plainHTTP) && self.plainHTTP && has(self.caFrom))",message="transport: plainHTTP and caFrom exclude each other"
// +kubebuilder:validation:XValidation:rule="!has(self.caFrom) || (size(self.caFrom.name) > 0 && size(self.caFrom.key) > 0 && (!has(self.caFrom.optional) || !self.caFrom.optional))",message="transport.caFrom: name and key must not be empty and optional must not be true"
type OCITransport struct {
	// +optional
	PlainHTTP bool `json:"plainHTTP,omitempty"`
	// CAFrom selects a bundle of at most 1 MiB.
	// +optional
	CAFrom *corev1.ConfigMapKeySelector `json:"caFrom,omitempty"`
}

// OCIArtifactSourceSpec declares an artifact by tag or digest.
//
// +kubebuilder:validation:XValidation:rule="size(self.verificationPolicyFrom.name) > 0 && size(self.verificationPolicyFrom.key) > 0",message="verificationPolicyFrom: name and key must not be empty"
// +kubebuilder:validation:XValidation:rule="!has(self.verificationPolicyFrom.optional) || !self.verificationPolicyFrom.optional",message="verificationPolicyFrom.optional: must not be true, a verification policy is required"
type OCIArtifactSourceSpec struct {
	// +kubebuilder:validation:MinLength=7
	// +kubebuilder:validation:MaxLength=1024
	// +kubebuilder:validation:Pattern=`^oci://[^\s?#]+$`
	OCIRef string `json:"ociRef"`
	// +optional
	RegistryAuthFrom       *RegistryAuthSource         `json:"registryAuthFrom,omitempty"`
	VerificationPolicyFrom corev1.ConfigMapKeySelector `json:"verificationPolicyFrom"`
	// +optional
	Transport *OCITransport `json:"transport,omitempty"`
}

// PodMetadata is added to operation Pods.
//
// +kubebuilder:validation:XValidation:rule="!has(self.labels) || self.labels.all(k, k != 'controller-uid' && k != 'job-name' && !k.matches('^([a-z0-9.-]+\\\\.)?(ptah\\\\.run|kubernetes\\\\.io|k8s\\\\.io)/.*$'))",message="spec.execution.podMetadata.labels: keys of ptah.run, kubernetes.io and k8s.io, controller-uid and job-name are reserved"
// +kubebuilder:validation:XValidation:rule="!has(self.annotations) || self.annotations.all(k, k != 'controller-uid' && k != 'job-name' && !k.matches('^([a-z0-9.-]+\\\\.)?(ptah\\\\.run|kubernetes\\\\.io|k8s\\\\.io)/.*$'))",message="spec.execution.podMetadata.annotations: keys of ptah.run, kubernetes.io and k8s.io, controller-uid and job-name are reserved"
// +kubebuilder:validation:XValidation:rule="!has(self.labels) || self.labels.all(k, size(k) <= 317 && k.matches('^([a-z0-9]([a-z0-9-]*[a-z0-9])?(\\\\.[a-z0-9]([a-z0-9-]*[a-z0-9])?)*/)?[A-Za-z0-9]([A-Za-z0-9_.-]{0,61}[A-Za-z0-9])?$'))",message="spec.execution.podMetadata.labels: keys must be qualified names, such as example.com/team"
// +kubebuilder:validation:XValidation:rule="!has(self.annotations) || self.annotations.all(k, size(k) <= 317 && k.matches('^([a-z0-9]([a-z0-9-]*[a-z0-9])?(\\\\.[a-z0-9]([a-z0-9-]*[a-z0-9])?)*/)?[A-Za-z0-9]([A-Za-z0-9_.-]{0,61}[A-Za-z0-9])?$'))",message="spec.execution.podMetadata.annotations: keys must be qualified names, such as example.com/team"
type PodMetadata struct {
	// +optional
	// +kubebuilder:validation:MaxProperties=16
	Labels map[string]PodLabelValue `json:"labels,omitempty"`
	// +optional
	// +kubebuilder:validation:MaxProperties=16
	Annotations map[string]PodAnnotationValue `json:"annotations,omitempty"`
}

// PodLabelValue is a Kubernetes label value.
//
// +kubebuilder:validation:MaxLength=63
// +kubebuilder:validation:Pattern=`^(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?$`
type PodLabelValue string

// PodAnnotationValue is an annotation value of at most 1024 bytes.
//
// +kubebuilder:validation:MaxLength=1024
type PodAnnotationValue string

// ExecutionSpec says how operation Pods run.
//
// +kubebuilder:validation:XValidation:rule="!has(self.connectTimeout) || duration(self.connectTimeout) >= duration('1s') && duration(self.connectTimeout) <= duration('10m')",message="spec.execution.connectTimeout: must be between 1s and 10m"
// +kubebuilder:validation:XValidation:rule="!has(self.connectTimeout) || !has(self.activeDeadlineSeconds) || timestamp(0) + duration(self.connectTimeout) <= timestamp(self.activeDeadlineSeconds)",message="spec.execution.connectTimeout: must not exceed activeDeadlineSeconds"
// +kubebuilder:validation:XValidation:rule="!has(self.failureRetryInterval) || duration(self.failureRetryInterval) >= duration('5s') && duration(self.failureRetryInterval) <= duration('1h')",message="spec.execution.failureRetryInterval: must be between 5s and 1h"
type ExecutionSpec struct {
	// +optional
	// +kubebuilder:default=900
	// +kubebuilder:validation:Minimum=30
	// +kubebuilder:validation:Maximum=86400
	ActiveDeadlineSeconds int64 `json:"activeDeadlineSeconds,omitempty"`
	// +optional
	// +kubebuilder:default="30s"
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:MaxLength=32
	FailureRetryInterval metav1.Duration `json:"failureRetryInterval,omitzero"`
	// +optional
	// +kubebuilder:default="10s"
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:MaxLength=32
	ConnectTimeout metav1.Duration `json:"connectTimeout,omitzero"`
	// Resources of the container that runs SQL.
	// +optional
	Resources corev1.ResourceRequirements `json:"resources,omitempty"`
	// ServiceAccountName is the identity of operation Pods; it needs no permission. Empty means "default".
	// +optional
	// +kubebuilder:validation:MaxLength=253
	ServiceAccountName string `json:"serviceAccountName,omitempty"`
	// +optional
	// +kubebuilder:validation:MaxItems=16
	ImagePullSecrets []corev1.LocalObjectReference `json:"imagePullSecrets,omitempty"`
	// +optional
	NodeSelector map[string]string `json:"nodeSelector,omitempty"`
	// +optional
	Tolerations []corev1.Toleration `json:"tolerations,omitempty"`
	// +optional
	Affinity *corev1.Affinity `json:"affinity,omitempty"`
	// +optional
	// +kubebuilder:validation:MaxLength=253
	RuntimeClassName *string `json:"runtimeClassName,omitempty"`
	// +optional
	// +kubebuilder:validation:MaxLength=253
	PriorityClassName string `json:"priorityClassName,omitempty"`
	// +optional
	PodMetadata *PodMetadata `json:"podMetadata,omitempty"`
}

// ImmutableObjectReference names one object and no later one of the same name.
type ImmutableObjectReference struct {
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Name string `json:"name"`
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=128
	UID string `json:"uid"`
}

// ApprovalIdentity is who the API server authenticated.
type ApprovalIdentity struct {
	// +kubebuilder:validation:MinLength=1
	Username string `json:"username"`
	// +optional
	UID string `json:"uid,omitempty"`
	// +optional
	// +kubebuilder:validation:MaxItems=64
	Groups []string `json:"groups,omitempty"`
}

// ExecutionBindingStatus is the evidence epoch: evidence and plans made under another epoch authorize nothing.
type ExecutionBindingStatus struct {
	// Epoch is "v1-" and 32 lowercase hex digits.
	Epoch string `json:"epoch"`
	// +kubebuilder:validation:Minimum=1
	ControllerStateVersion int32 `json:"controllerStateVersion"`
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=128
	PtahVersion string `json:"ptahVersion"`
	// +kubebuilder:validation:MaxLength=512
	// +kubebuilder:validation:Pattern=`^[^@[:space:]]+@sha256:[0-9a-f]{64}$`
	ExecutorImage string `json:"executorImage"`
	// +kubebuilder:validation:Minimum=1
	RunnerProtocolVersion int32 `json:"runnerProtocolVersion"`
}

// ManagerRecord says which manager did something. It is for audit and binds nothing.
type ManagerRecord struct {
	ControllerImage    string `json:"controllerImage"`
	ControllerRevision string `json:"controllerRevision"`
	RunnerImage        string `json:"runnerImage"`
}

// TargetLockReleaseStatus is a Lease release that is still owed.
type TargetLockReleaseStatus struct {
	CoordinationDigest   string `json:"coordinationDigest"`
	OperationID          string `json:"operationID"`
	LeaseEpoch           string `json:"leaseEpoch"`
	LeaseDurationSeconds int32  `json:"leaseDurationSeconds"`
}

// DatabaseTargetBinding is the target as frozen into a claim. It never holds the plain coordination key.
type DatabaseTargetBinding struct {
	Engine  DatabaseEngine           `json:"engine"`
	URLFrom corev1.SecretKeySelector `json:"urlFrom"`
}

// VerificationPolicyBinding is the verification policy as frozen into a claim.
type VerificationPolicyBinding struct {
	From corev1.ConfigMapKeySelector `json:"from"`
	// UID of the ConfigMap.
	UID string `json:"uid"`
	// Digest of the selected bytes.
	Digest string `json:"digest"`
}

// OCISourceBinding is the source as frozen into a claim: selectors only, so that a later edit of the spec cannot
// send new credentials to an old registry.
type OCISourceBinding struct {
	RequestedReference string                    `json:"requestedReference"`
	RegistryAuthFrom   *RegistryAuthSource       `json:"registryAuthFrom,omitempty"`
	Transport          *OCITransport             `json:"transport,omitempty"`
	VerificationPolicy VerificationPolicyBinding `json:"verificationPolicy"`
}
