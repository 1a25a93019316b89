package v1alpha1

// Condition types of PtahSchema.
const (
	ConditionReady                = "Ready"
	ConditionReconciling          = "Reconciling"
	ConditionStalled              = "Stalled"
	ConditionArtifactResolved     = "ArtifactResolved"
	ConditionArtifactVerified     = "ArtifactVerified"
	ConditionEngineSupported      = "EngineSupported"
	ConditionDatabaseReachable    = "DatabaseReachable"
	ConditionDriftDetected        = "DriftDetected"
	ConditionPlanReady            = "PlanReady"
	ConditionApprovalRequired     = "ApprovalRequired"
	ConditionApplying             = "Applying"
	ConditionInSync               = "InSync"
	ConditionSuspended            = "Suspended"
	ConditionReconciliationFailed = "ReconciliationFailed"
)

// Condition types of PtahSchemaApproval.
const (
	ConditionAccepted = "Accepted"
	ConditionConsumed = "Consumed"
	ConditionStale    = "Stale"
)

// Reason is why a condition is what it is. The vocabulary is closed: a reason is never given another meaning; a new
// one is compatible; removing one is a decision about the API.
type Reason string

// Reasons.
const (
	ReasonActive                       Reason = "Active"                       // not suspended
	ReasonApplyDisabled                Reason = "ApplyDisabled"                // policy Never: the plan is kept, nothing runs
	ReasonApplyOutcomeUnknown          Reason = "ApplyOutcomeUnknown"          // an Apply may or may not have changed the database
	ReasonApplyPending                 Reason = "ApplyPending"                 // the plan will run by itself
	ReasonApprovalRevoked              Reason = "ApprovalRevoked"              // a reserved approval stopped being valid before dispatch
	ReasonApprovedPlan                 Reason = "ApprovedPlan"                 // the approved plan is running
	ReasonArtifactUnverified           Reason = "ArtifactUnverified"           // no usable plan, because verification failed
	ReasonAuthenticationFailed         Reason = "AuthenticationFailed"         // the database or registry refused the credential
	ReasonAwaitingApproval             Reason = "AwaitingApproval"             // an exact approval is needed
	ReasonConfigurationError           Reason = "ConfigurationError"           // a declared input is wrong
	ReasonConnectionFailed             Reason = "ConnectionFailed"             // the database or registry could not be reached
	ReasonConvergedAfterUnknownOutcome Reason = "ConvergedAfterUnknownOutcome" // the proof converged, no Apply is credited
	ReasonCurrentPlan                  Reason = "CurrentPlan"                  // the approval matches the live plan
	ReasonDesiredStateChanged          Reason = "DesiredStateChanged"          // newer inputs arrived during older work
	ReasonDestructiveChangesDisabled   Reason = "DestructiveChangesDisabled"   // destructive plan, permission off
	ReasonDigestPinned                 Reason = "DigestPinned"                 // the reference was resolved
	ReasonDispatchCommitted            Reason = "DispatchCommitted"            // one approval was spent on one dispatch
	ReasonExecutionBindingChanged      Reason = "ExecutionBindingChanged"      // the evidence belongs to a retired epoch
	ReasonInputsChanged                Reason = "InputsChanged"                // a result was thrown away, inputs moved
	ReasonInSync                       Reason = "InSync"                       // an independent plan proved convergence
	ReasonJobCompleted                 Reason = "JobCompleted"                 // the Apply ended, the proof is owed
	ReasonLeaseContinuityLost          Reason = "LeaseContinuityLost"          // the lock was not held without a gap
	ReasonNoChanges                    Reason = "NoChanges"                    // the scoped plan is empty
	ReasonNotRequired                  Reason = "NotRequired"                  // the policy waives the approval for this plan
	ReasonNotYetKnown                  Reason = "NotYetKnown"                  // nothing was read yet
	ReasonObserved                     Reason = "Observed"                     // the database was read
	ReasonOperationFailed              Reason = "OperationFailed"              // an operation failed
	ReasonOperationInProgress          Reason = "OperationInProgress"          // a claim is live
	ReasonPending                      Reason = "Pending"                      // resolved, not verified
	ReasonPlanNoLongerCurrent          Reason = "PlanNoLongerCurrent"          // the approval's plan moved on
	ReasonPlanReady                    Reason = "PlanReady"                    // the plan is stored and can be approved
	ReasonPlanRefused                  Reason = "PlanRefused"                  // no complete plan exists for this change
	ReasonPodAdmissionRefused          Reason = "PodAdmissionRefused"          // the API server refused the operation Pod
	ReasonPolicyChanged                Reason = "PolicyChanged"                // the verification policy moved
	ReasonPolicyRefused                Reason = "PolicyRefused"                // the verification policy said no
	ReasonPolicySatisfied              Reason = "PolicySatisfied"              // type and policy checks passed
	ReasonPrivilegeChanges             Reason = "PrivilegeChanges"             // the plan changes authority, approval is forced
	ReasonProtectedTable               Reason = "ProtectedTable"               // a fenced table would change
	ReasonPublished                    Reason = "Published"                    // the plan bytes are stored immutably
	ReasonRealmConflict                Reason = "RealmConflict"                // several claimants, not all agreed
	ReasonRealmNotAuthorized           Reason = "RealmNotAuthorized"           // the realm does not admit this claim
	ReasonRefreshFailed                Reason = "RefreshFailed"                // a source resolved before could not refresh
	ReasonRefreshing                   Reason = "Refreshing"                   // resolving again
	ReasonRequested                    Reason = "Requested"                    // suspension is asked for in spec
	ReasonResolveFailed                Reason = "ResolveFailed"                // never resolved
	ReasonRunnerProtocolMismatch       Reason = "RunnerProtocolMismatch"       // the runner image speaks another protocol
	ReasonSatisfied                    Reason = "Satisfied"                    // approval requirements are met
	ReasonScopedChanges                Reason = "ScopedChanges"                // the scoped plan has changes
	ReasonScopedConverged              Reason = "ScopedConverged"              // the scoped plan has none
	ReasonSourceFreshnessUnknown       Reason = "SourceFreshnessUnknown"       // the refresh did not complete
	ReasonStalePlan                    Reason = "StalePlan"                    // the plan went stale
	ReasonSucceeded                    Reason = "Succeeded"                    // the last operation cleared the failure
	ReasonSupersededApproval           Reason = "SupersededApproval"           // a duplicate approval lost
	ReasonSupportedEngine              Reason = "SupportedEngine"              // the engine is implemented
	ReasonSuspended                    Reason = "Suspended"                    // nothing may start
	ReasonUnsupportedEngine            Reason = "UnsupportedEngine"            // the engine is not implemented
	ReasonVerifyingConvergence         Reason = "VerifyingConvergence"         // the Apply ended, the proof is running
)

// Names that more than one program must agree on.
const (
	LabelManagedBy         = "app.kubernetes.io/managed-by"
	LabelComponent         = "app.kubernetes.io/component"
	ManagedByValue         = "ptah-operator"
	SchemaOperation        = "schema-operation"
	LabelSchema            = "operator.ptah.run/schema"
	LabelPlan              = "operator.ptah.run/plan"
	LabelOperation         = "operator.ptah.run/operation"
	LabelOperationID       = "operator.ptah.run/operation-id"
	AnnotationOperationID  = "operator.ptah.run/operation-id"
	AnnotationInputs       = "operator.ptah.run/input-fingerprint"
	AnnotationBinding      = "operator.ptah.run/execution-binding-id"
	AnnotationPlan         = "operator.ptah.run/plan-fingerprint"
	AnnotationLeaseEpoch   = "operator.ptah.run/lease-epoch"
	FinalizerSchema        = "operator.ptah.run/active-operation"
	ResultTokenAudience    = "operator.ptah.run/results"
	ControllerStateVersion = int32(1)
	RunnerProtocolVersion  = int32(1)
)

// Annotations that say who wrote the spec of a PtahSchema last, and which generation that made. Admission alone writes
// them, where an installation requires a second person.
const (
	AnnotationWriterName       = "operator.ptah.run/last-spec-writer-username"
	AnnotationWriterUID        = "operator.ptah.run/last-spec-writer-uid"
	AnnotationWriterGeneration = "operator.ptah.run/last-spec-writer-generation"
)
