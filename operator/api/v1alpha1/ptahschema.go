package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// PtahSchema declares the schema of one database.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:shortName=ptahs,categories=ptah
// +kubebuilder:printcolumn:name="Phase",type=string,JSONPath=`.status.phase`
// +kubebuilder:printcolumn:name="Digest",type=string,priority=1,JSONPath=`.status.source.digest`
// +kubebuilder:printcolumn:name="Drift",type=string,JSONPath=`.status.conditions[?(@.type=="DriftDetected")].status`
// +kubebuilder:printcolumn:name="Approval",type=string,JSONPath=`.status.conditions[?(@.type=="ApprovalRequired")].status`
// +kubebuilder:printcolumn:name="In Sync",type=string,JSONPath=`.status.conditions[?(@.type=="InSync")].status`
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].status`
// +kubebuilder:printcolumn:name="Reason",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].reason`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:validation:XValidation:rule="oldSelf.hasValue() || size(self.metadata.name) <= 63",optionalOldSelf=true,message="metadata.name: must be at most 63 bytes, because it becomes a label value"
type PtahSchema struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec PtahSchemaSpec `json:"spec"`
	// +optional
	Status PtahSchemaStatus `json:"status,omitempty"`
}

// PtahSchemaList is a list of PtahSchema.
//
// +kubebuilder:object:root=true
type PtahSchemaList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []PtahSchema `json:"items"`
}

// PtahSchemaSpec is what a person declares.
//
// +kubebuilder:validation:XValidation:rule="!has(self.policy) || !has(self.policy.lockTimeout) || !has(self.execution) || !has(self.execution.activeDeadlineSeconds) || timestamp(0) + duration(self.policy.lockTimeout) <= timestamp(self.execution.activeDeadlineSeconds)",message="spec.policy.lockTimeout: must not exceed spec.execution.activeDeadlineSeconds"
// +kubebuilder:validation:XValidation:rule="self.target.engine != 'MySQL' || !has(self.policy) || !has(self.policy.transactionMode) || self.policy.transactionMode == 'none'",message="spec.policy.transactionMode: must be none or left out for MySQL, which ends a transaction at each statement that changes a schema"
// +kubebuilder:validation:XValidation:rule="!has(self.interval) || duration(self.interval) >= duration('10s') && duration(self.interval) <= duration('24h')",message="spec.interval: must be between 10s and 24h"
type PtahSchemaSpec struct {
	Target  DatabaseTargetSpec    `json:"target"`
	Desired OCIArtifactSourceSpec `json:"desired"`
	// +optional
	// +kubebuilder:default={}
	Policy SchemaPolicy `json:"policy,omitzero"`
	// Interval runs from start to start of two refreshes: 10s to 24h.
	// +optional
	// +kubebuilder:default="10m"
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:MaxLength=32
	Interval metav1.Duration `json:"interval,omitzero"`
	// +optional
	// +kubebuilder:default={}
	Execution ExecutionSpec `json:"execution,omitzero"`
	// Suspend stops new Jobs.
	// +optional
	Suspend bool `json:"suspend,omitempty"`
}

// SchemaPolicy says what may change and who decides.
//
// +kubebuilder:validation:XValidation:rule="!has(self.lockTimeout) || duration(self.lockTimeout) >= duration('1s') && duration(self.lockTimeout) <= duration('10m')",message="spec.policy.lockTimeout: must be between 1s and 10m"
type SchemaPolicy struct {
	// +optional
	// +kubebuilder:default=OnApproval
	Apply ApplyPolicy `json:"apply,omitempty"`
	// AllowDestructive permits destructive plans. It does not replace an approval.
	// +optional
	AllowDestructive bool `json:"allowDestructive,omitempty"`
	// DriftSeverity says which differences count as drift.
	// +optional
	// +kubebuilder:default=all
	// +kubebuilder:validation:Enum=all;destructive
	DriftSeverity string `json:"driftSeverity,omitempty"`
	// Exclude names objects outside the managed scope.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MaxItems=128
	Exclude []ExcludeSelector `json:"exclude,omitempty"`
	// LockTimeout is how long a statement waits for the database's own lock: 1s to 10m.
	// +optional
	// +kubebuilder:default="30s"
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:MaxLength=32
	LockTimeout metav1.Duration `json:"lockTimeout,omitzero"`
	// TransactionMode says what of a plan takes effect together. It has no default here, because the engine decides:
	// PostgreSQL takes file, and MySQL, whose statements about a schema end a transaction each, knows none alone.
	// +optional
	// +kubebuilder:validation:Enum=all;file;none
	TransactionMode string `json:"transactionMode,omitempty"`
	// ProtectedTables are tables that no plan may touch.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MaxItems=128
	ProtectedTables []ProtectedTable `json:"protectedTables,omitempty"`
}

// ExcludeSelector names objects outside the managed scope.
//
// +kubebuilder:validation:MinLength=1
// +kubebuilder:validation:MaxLength=256
// +kubebuilder:validation:Pattern=`^[^\x00-\x20\x7f]([^\x00-\x1f\x7f]*[^\x00-\x20\x7f])?$`
type ExcludeSelector string

// ProtectedTable is "table" or "schema.table".
//
// +kubebuilder:validation:MinLength=1
// +kubebuilder:validation:MaxLength=256
// +kubebuilder:validation:Pattern=`^[^\x00-\x20\x7f.]+(\.[^\x00-\x20\x7f.]+)?$`
type ProtectedTable string

// Phase is a word for people. Automation reads conditions.
//
// +kubebuilder:validation:Enum=Pending;Refreshing;ReadyToApply;AwaitingApproval;Blocked;Applying;VerifyingConvergence;InSync;Suspended;Failed
type Phase string

// Phases.
const (
	PhasePending              Phase = "Pending"
	PhaseRefreshing           Phase = "Refreshing"
	PhaseReadyToApply         Phase = "ReadyToApply"
	PhaseAwaitingApproval     Phase = "AwaitingApproval"
	PhaseBlocked              Phase = "Blocked"
	PhaseApplying             Phase = "Applying"
	PhaseVerifyingConvergence Phase = "VerifyingConvergence"
	PhaseInSync               Phase = "InSync"
	PhaseSuspended            Phase = "Suspended"
	PhaseFailed               Phase = "Failed"
)

// PtahSchemaStatus is written by the manager alone.
type PtahSchemaStatus struct {
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`
	// +optional
	Phase Phase `json:"phase,omitempty"`
	// +optional
	ExecutionBinding *ExecutionBindingStatus `json:"executionBinding,omitempty"`
	// +optional
	Source *SchemaSourceStatus `json:"source,omitempty"`
	// +optional
	Target *TargetStatus `json:"target,omitempty"`
	// +optional
	Plan *CurrentPlanStatus `json:"plan,omitempty"`
	// Applied is the last Apply that was proven to have converged.
	// +optional
	Applied *AppliedStatus `json:"applied,omitempty"`
	// Converged is the last proof of convergence, which makes the next refresh cheap.
	// +optional
	Converged *ConvergedStatus `json:"converged,omitempty"`
	// PendingObservation is the proof owed after a possible mutation.
	// +optional
	PendingObservation *PendingObservationStatus `json:"pendingObservation,omitempty"`
	// +optional
	PendingLockRelease *TargetLockReleaseStatus `json:"pendingLockRelease,omitempty"`
	// ActiveOperation is the single claim.
	// +optional
	ActiveOperation *ActiveOperationStatus `json:"activeOperation,omitempty"`
	// TargetBusySince is when the resource began to wait for another one that works on the same database; unset where it
	// does not wait.
	// +optional
	TargetBusySince *metav1.Time `json:"targetBusySince,omitempty"`
	// RefreshedGeneration is the generation whose inputs the last completed refresh used. A plan may be approved or
	// applied only while it equals the resource's generation.
	// +optional
	RefreshedGeneration int64 `json:"refreshedGeneration,omitempty"`
	// FailedAttempts counts consecutive failures of the current work. While it is not zero no plan is applied.
	// +optional
	FailedAttempts int32 `json:"failedAttempts,omitempty"`
	// +optional
	LastAttemptTime *metav1.Time `json:"lastAttemptTime,omitempty"`
	// +optional
	LastSuccessfulReconciliation *metav1.Time `json:"lastSuccessfulReconciliation,omitempty"`
	// NextReconciliationTime is the durable earliest start of the next scheduled refresh.
	// +optional
	NextReconciliationTime *metav1.Time `json:"nextReconciliationTime,omitempty"`
	// +optional
	// +listType=map
	// +listMapKey=type
	// +kubebuilder:validation:MaxItems=32
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// SchemaSourceStatus is the artifact as last resolved and verified.
type SchemaSourceStatus struct {
	RequestedReference       string       `json:"requestedReference"`
	ResolvedReference        string       `json:"resolvedReference"`
	Digest                   string       `json:"digest"`
	MediaType                string       `json:"mediaType,omitempty"`
	ArtifactType             string       `json:"artifactType,omitempty"`
	Size                     int64        `json:"size,omitempty"`
	Verified                 bool         `json:"verified"`
	VerificationPolicyUID    string       `json:"verificationPolicyUID,omitempty"`
	VerificationPolicyDigest string       `json:"verificationPolicyDigest,omitempty"`
	ResolvedAt               *metav1.Time `json:"resolvedAt,omitempty"`
	VerifiedAt               *metav1.Time `json:"verifiedAt,omitempty"`
}

// DriftFindingStatus counts the differences of one category; it never holds a name.
type DriftFindingStatus struct {
	// +kubebuilder:validation:MaxLength=64
	Category string `json:"category"`
	// +kubebuilder:validation:Minimum=1
	Count int32 `json:"count"`
	// +kubebuilder:validation:Enum=safe;info;warning;error;destructive
	Severity string `json:"severity"`
}

// TargetStatus is the database as last read.
//
// +kubebuilder:validation:XValidation:rule="!has(self.driftFindingsTruncated) || !self.driftFindingsTruncated || has(self.driftFindings) && size(self.driftFindings) == 64",message="status.target.driftFindingsTruncated: only a list of 64 findings can be truncated"
type TargetStatus struct {
	Engine             DatabaseEngine `json:"engine"`
	CoordinationDigest string         `json:"coordinationDigest"`
	IdentityDigest     string         `json:"identityDigest,omitempty"`
	ServerVersion      string         `json:"serverVersion,omitempty"`
	// StateFingerprint is the digest of the normalised dump.
	StateFingerprint     string       `json:"stateFingerprint,omitempty"`
	LastObservedAt       *metav1.Time `json:"lastObservedAt,omitempty"`
	HighestDriftSeverity string       `json:"highestDriftSeverity,omitempty"`
	DriftFindingCount    int32        `json:"driftFindingCount,omitempty"`
	// +optional
	// +listType=map
	// +listMapKey=category
	// +kubebuilder:validation:MaxItems=64
	DriftFindings          []DriftFindingStatus `json:"driftFindings,omitempty"`
	DriftFindingsTruncated bool                 `json:"driftFindingsTruncated,omitempty"`
}

// PlanApprovalStatus is the approval that was accepted for the current plan.
type PlanApprovalStatus struct {
	Name       string           `json:"name"`
	UID        string           `json:"uid"`
	Approver   ApprovalIdentity `json:"approver"`
	ApprovedAt metav1.Time      `json:"approvedAt"`
}

// CurrentPlanStatus is a copy of the plan's identity, and its approval.
type CurrentPlanStatus struct {
	ImmutableObjectReference `json:",inline"`

	Fingerprint              string   `json:"fingerprint"`
	ContentDigest            string   `json:"contentDigest"`
	Size                     int64    `json:"size"`
	ArtifactDigest           string   `json:"artifactDigest"`
	CoordinationDigest       string   `json:"coordinationDigest"`
	TargetIdentityDigest     string   `json:"targetIdentityDigest"`
	ActualStateFingerprint   string   `json:"actualStateFingerprint"`
	DesiredStateFingerprint  string   `json:"desiredStateFingerprint"`
	PolicyFingerprint        string   `json:"policyFingerprint"`
	VerificationPolicyUID    string   `json:"verificationPolicyUID"`
	VerificationPolicyDigest string   `json:"verificationPolicyDigest"`
	ExecutionBindingID       string   `json:"executionBindingID"`
	ControllerStateVersion   int32    `json:"controllerStateVersion"`
	Destructive              bool     `json:"destructive"`
	PrivilegeChanges         []string `json:"privilegeChanges,omitempty"`
	StatementCount           int32    `json:"statementCount"`
	// TransactionMode is the one that the plan runs in: the policy's, or the engine's own where the policy names none.
	TransactionMode string      `json:"transactionMode,omitempty"`
	CreatedAt       metav1.Time `json:"createdAt"`
	// Attempted says that an Apply of this very plan ran before and did not lead to convergence, so that only a new
	// approval lets it run again, whatever the policy.
	Attempted bool                `json:"attempted,omitempty"`
	Approval  *PlanApprovalStatus `json:"approval,omitempty"`
}

// AppliedStatus is the last Apply that was proven to have converged.
type AppliedStatus struct {
	ArtifactDigest       string                   `json:"artifactDigest"`
	PlanRef              ImmutableObjectReference `json:"planRef"`
	PlanFingerprint      string                   `json:"planFingerprint"`
	CoordinationDigest   string                   `json:"coordinationDigest"`
	TargetIdentityDigest string                   `json:"targetIdentityDigest"`
	ExecutionBindingID   string                   `json:"executionBindingID"`
	// ControllerStateVersion keeps an older manager from interpreting what a newer one recorded.
	// +optional
	// +kubebuilder:validation:Minimum=0
	ControllerStateVersion int32          `json:"controllerStateVersion,omitempty"`
	DispatchedBy           *ManagerRecord `json:"dispatchedBy,omitempty"`
	// CompletedAt is when convergence was observed.
	CompletedAt metav1.Time `json:"completedAt"`
}

// ConvergedStatus is what the last proof of convergence established.
type ConvergedStatus struct {
	ArtifactDigest       string `json:"artifactDigest"`
	PolicyFingerprint    string `json:"policyFingerprint"`
	TargetIdentityDigest string `json:"targetIdentityDigest"`
	StateFingerprint     string `json:"stateFingerprint"`
	ExecutionBindingID   string `json:"executionBindingID"`
}

// ApplyOutcome says what is known about an Apply whose proof is owed.
//
// +kubebuilder:validation:Enum=ApplySucceeded;OutcomeUnknown
type ApplyOutcome string

// Apply outcomes.
const (
	ApplySucceeded ApplyOutcome = "ApplySucceeded"
	OutcomeUnknown ApplyOutcome = "OutcomeUnknown"
)

// PendingObservationStatus is the proof owed after a possible mutation, with its frozen inputs.
type PendingObservationStatus struct {
	Outcome          ApplyOutcome `json:"outcome"`
	ApplyOperationID string       `json:"applyOperationID"`
	// +kubebuilder:validation:MaxLength=253
	ApplyJobName    string `json:"applyJobName"`
	ApplyJobUID     string `json:"applyJobUID,omitempty"`
	ApplyGeneration int64  `json:"applyGeneration"`
	// ApplyPodUIDs are the Pods of the Apply that were seen when it ended, 8 at most; ApplyPodCount counts all of them,
	// and those that were gone. More than one makes the outcome unknown, whatever any of them delivered.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MaxItems=8
	ApplyPodUIDs []string `json:"applyPodUIDs,omitempty"`
	// +optional
	// +kubebuilder:validation:Minimum=0
	ApplyPodCount int32 `json:"applyPodCount,omitempty"`
	// ObserveAfter is the earliest time of the proof, where the Job's create was uncertain.
	ObserveAfter *metav1.Time      `json:"observeAfter,omitempty"`
	Plan         CurrentPlanStatus `json:"plan"`
	DispatchedBy *ManagerRecord    `json:"dispatchedBy,omitempty"`
	// Inputs of the proof, frozen when the Apply was claimed. The source is pinned to the artifact that was planned.
	Inputs               ProofInputs `json:"inputs"`
	LeaseDurationSeconds int32       `json:"leaseDurationSeconds"`
	LeaseEpoch           string      `json:"leaseEpoch"`
	// Refusal is the executor's own reason where it refused before it changed anything.
	Refusal string `json:"refusal,omitempty"`
}

// ProofInputs are what a proof of convergence reads, whatever the spec says by then.
type ProofInputs struct {
	Target             DatabaseTargetBinding `json:"target"`
	CoordinationDigest string                `json:"coordinationDigest"`
	Source             OCISourceBinding      `json:"source"`
	Policy             SchemaPolicy          `json:"policy"`
}

// OperationType is a kind of operation Pod.
//
// +kubebuilder:validation:Enum=Refresh;Apply
type OperationType string

// Operation types.
const (
	OperationRefresh OperationType = "Refresh"
	OperationApply   OperationType = "Apply"
)

// ActiveOperationStatus is the single claim of a resource: which operation is authorised, with frozen inputs.
type ActiveOperationStatus struct {
	Type OperationType `json:"type"`
	// ID and InputFingerprint are digests; ID is the identity of the claim.
	ID               string `json:"id"`
	InputFingerprint string `json:"inputFingerprint"`
	// Generation of the spec that the inputs were frozen from.
	Generation int64 `json:"generation"`
	// JobName is reserved before the Job is created.
	// +kubebuilder:validation:MaxLength=63
	JobName   string      `json:"jobName"`
	JobUID    string      `json:"jobUID,omitempty"`
	StartedAt metav1.Time `json:"startedAt"`
	Attempt   int32       `json:"attempt"`
	// ExecutionBindingID is the epoch that the claim was authorised under.
	ExecutionBindingID string `json:"executionBindingID"`
	// DispatchStarted marks that the Job may exist.
	DispatchStarted bool `json:"dispatchStarted,omitempty"`
	// DispatchNotAfter and ExecutionNotAfter bound a mutating executor absolutely.
	DispatchNotAfter              *metav1.Time              `json:"dispatchNotAfter,omitempty"`
	ExecutionNotAfter             *metav1.Time              `json:"executionNotAfter,omitempty"`
	TerminationGracePeriodSeconds int64                     `json:"terminationGracePeriodSeconds"`
	CoordinationDigest            string                    `json:"coordinationDigest"`
	TargetIdentityDigest          string                    `json:"targetIdentityDigest,omitempty"`
	Target                        DatabaseTargetBinding     `json:"target"`
	Source                        *OCISourceBinding         `json:"source,omitempty"`
	PlanRef                       *ImmutableObjectReference `json:"planRef,omitempty"`
	ApprovalRef                   *ImmutableObjectReference `json:"approvalRef,omitempty"`
	// Policy is frozen for an Apply; a refresh takes it from the spec of Generation or from the proof's inputs.
	Policy *SchemaPolicy `json:"policy,omitempty"`
	// RetryNotBefore delays the next dispatch after the API server refused the Job.
	RetryNotBefore *metav1.Time `json:"retryNotBefore,omitempty"`
	// ProofOf is the ID of the Apply whose outcome this refresh proves.
	ProofOf              string `json:"proofOf,omitempty"`
	LeaseEpoch           string `json:"leaseEpoch,omitempty"`
	LeaseDurationSeconds int32  `json:"leaseDurationSeconds,omitempty"`
	LeaseContinuityLost  bool   `json:"leaseContinuityLost,omitempty"`
}
