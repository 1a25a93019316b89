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
