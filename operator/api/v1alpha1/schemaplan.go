package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Limits of stored plans and results.
const (
	// MaxPlanBytes is the largest executable plan: 8 MiB.
	MaxPlanBytes = 8 << 20
	// MaxChunkBytes is the largest chunk of a plan or result: 512 KiB.
	MaxChunkBytes = 512 << 10
	// MaxPlanChunks is how many chunks a plan may have.
	MaxPlanChunks = 16
	// PlanContractVersion is the version of the fingerprint contract.
	PlanContractVersion = 1
)

// PtahSchemaPlan is one immutable plan. Its bytes are in its chunks.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:shortName=ptahplan,categories=ptah
// +kubebuilder:printcolumn:name="Schema",type=string,JSONPath=`.spec.schemaRef.name`
// +kubebuilder:printcolumn:name="Statements",type=integer,JSONPath=`.spec.statementCount`
// +kubebuilder:printcolumn:name="Destructive",type=boolean,JSONPath=`.spec.destructive`
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].status`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
type PtahSchemaPlan struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="spec: a plan is immutable"
	Spec PtahSchemaPlanSpec `json:"spec"`
	// +optional
	Status PtahSchemaPlanStatus `json:"status,omitempty"`
}

// PtahSchemaPlanList is a list of PtahSchemaPlan.
//
// +kubebuilder:object:root=true
type PtahSchemaPlanList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []PtahSchemaPlan `json:"items"`
}

// Digest is "sha256:" and 64 lowercase hex digits.
//
// +kubebuilder:validation:Pattern=`^sha256:[0-9a-f]{64}$`
type Digest string

// PlanChunkReference names one chunk of a plan.
type PlanChunkReference struct {
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Name string `json:"name"`
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=15
	Index int32 `json:"index"`
	// Digest of the chunk's own bytes.
	Digest Digest `json:"digest"`
	// Size in bytes.
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=524288
	Size int64 `json:"size"`
}

// PtahSchemaPlanSpec binds exact bytes to everything they were computed from.
type PtahSchemaPlanSpec struct {
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=1
	ContractVersion int32                    `json:"contractVersion"`
	SchemaRef       ImmutableObjectReference `json:"schemaRef"`
	Fingerprint     Digest                   `json:"fingerprint"`
	ContentDigest   Digest                   `json:"contentDigest"`
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=8388608
	Size                    int64  `json:"size"`
	ArtifactDigest          Digest `json:"artifactDigest"`
	CoordinationDigest      Digest `json:"coordinationDigest"`
	TargetIdentityDigest    Digest `json:"targetIdentityDigest"`
	ActualStateFingerprint  Digest `json:"actualStateFingerprint"`
	DesiredStateFingerprint Digest `json:"desiredStateFingerprint"`
	PolicyFingerprint       Digest `json:"policyFingerprint"`
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=128
	VerificationPolicyUID    string `json:"verificationPolicyUID"`
	VerificationPolicyDigest Digest `json:"verificationPolicyDigest"`
	// +kubebuilder:validation:Pattern=`^v1-[0-9a-f]{32}$`
	ExecutionBindingID string `json:"executionBindingID"`
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
	// CreatedBy is recorded and binds nothing.
	CreatedBy ManagerRecord `json:"createdBy"`
	// +kubebuilder:validation:Enum=postgresql;mysql
	Dialect string `json:"dialect"`
	// TransactionMode is shown and binds nothing: the policy's fingerprint and the content do.
	// +optional
	// +kubebuilder:validation:Enum=all;file;none
	TransactionMode string `json:"transactionMode,omitempty"`
	Destructive     bool   `json:"destructive"`
	// +optional
	// +listType=set
	// +kubebuilder:validation:MaxItems=16
	PrivilegeChanges []PrivilegeChange `json:"privilegeChanges,omitempty"`
	// +kubebuilder:validation:Minimum=1
	StatementCount int32 `json:"statementCount"`
	// +listType=map
	// +listMapKey=index
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=16
	Chunks []PlanChunkReference `json:"chunks"`
}

// PrivilegeChange names one way in which a plan changes authority.
//
// +kubebuilder:validation:Enum=Grant;Revoke;RoleMembership;Role;Ownership;RowSecurityPolicy;SecurityDefiner;Definer;FunctionReplacement
type PrivilegeChange string

// PublishedChunk is a chunk that was stored and read back.
type PublishedChunk struct {
	Name  string `json:"name"`
	UID   string `json:"uid"`
	Index int32  `json:"index"`
}

// PtahSchemaPlanStatus says whether the plan's bytes are stored. Its only condition is Ready.
type PtahSchemaPlanStatus struct {
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`
	// +optional
	// +listType=map
	// +listMapKey=index
	// +kubebuilder:validation:MaxItems=16
	PublishedChunks []PublishedChunk `json:"publishedChunks,omitempty"`
	// +optional
	// +listType=map
	// +listMapKey=type
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// PtahSchemaPlanChunk is a part of a plan's bytes. Reading it is reading SQL, so it has its own RBAC resource.
//
// +kubebuilder:object:root=true
// +kubebuilder:resource:shortName=ptahchunk,categories=ptah
type PtahSchemaPlanChunk struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="spec: a plan chunk is immutable"
	Spec PtahSchemaPlanChunkSpec `json:"spec"`
}

// PtahSchemaPlanChunkSpec holds the bytes.
type PtahSchemaPlanChunkSpec struct {
	// Data is at most 512 KiB before base64. A boundary is a byte position and may split a character.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=699052
	Data []byte `json:"data"`
}

// PtahSchemaPlanChunkList is a list of PtahSchemaPlanChunk.
//
// +kubebuilder:object:root=true
type PtahSchemaPlanChunkList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []PtahSchemaPlanChunk `json:"items"`
}

// PtahSchemaApproval is one person's decision on one exact plan. It is used up by one dispatch.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:shortName=ptahapprove,categories=ptah
// +kubebuilder:printcolumn:name="Schema",type=string,JSONPath=`.spec.schemaRef.name`
// +kubebuilder:printcolumn:name="Approver",type=string,JSONPath=`.spec.approver.username`
// +kubebuilder:printcolumn:name="Accepted",type=string,JSONPath=`.status.conditions[?(@.type=="Accepted")].status`
// +kubebuilder:printcolumn:name="Consumed",type=string,JSONPath=`.status.conditions[?(@.type=="Consumed")].status`
// +kubebuilder:printcolumn:name="Stale",type=string,JSONPath=`.status.conditions[?(@.type=="Stale")].status`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
type PtahSchemaApproval struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="spec: an approval is immutable"
	Spec PtahSchemaApprovalSpec `json:"spec"`
	// +optional
	Status PtahSchemaApprovalStatus `json:"status,omitempty"`
}

// PtahSchemaApprovalSpec names the plan. The last three fields are stamped by admission, whatever was typed.
type PtahSchemaApprovalSpec struct {
	SchemaRef       ImmutableObjectReference `json:"schemaRef"`
	PlanRef         ImmutableObjectReference `json:"planRef"`
	PlanFingerprint Digest                   `json:"planFingerprint"`

	Approver   ApprovalIdentity `json:"approver"`
	ApprovedAt metav1.Time      `json:"approvedAt"`
	// MutationRequestUID is the UID of the admission request that stamped the identity.
	// +kubebuilder:validation:MinLength=1
	MutationRequestUID string `json:"mutationRequestUID"`
}

// PtahSchemaApprovalStatus has the conditions Accepted, Consumed and Stale.
type PtahSchemaApprovalStatus struct {
	// +optional
	// +listType=map
	// +listMapKey=type
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// PtahSchemaApprovalList is a list of PtahSchemaApproval.
//
// +kubebuilder:object:root=true
type PtahSchemaApprovalList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []PtahSchemaApproval `json:"items"`
}
