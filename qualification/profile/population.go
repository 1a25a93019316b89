package profile

// Populations: what one sample is. Those of durations are the names under which suites and drivers record their
// measurements, so that a name written differently in a profile is refused instead of never being measured.
const (
	PopulationRefresh   = "refresh"             // one read-only refresh of one resource
	PopulationApply     = "apply"               // one Apply, from the approval to the proof
	PopulationAll       = "every resource"      // resources changed or not
	PopulationUnchanged = "unchanged resources" // resources that no round of changes touches
	PopulationChanged   = "changed resources"

	PopulationProcess       = "manager process"
	PopulationServer        = "API server"
	PopulationChange        = "change"            // one change of one resource
	PopulationOperation     = "operation"         // one refresh or Apply
	PopulationQueued        = "queued item"       // one item taken from a work queue
	PopulationAdmission     = "admission request" // one call of a webhook of the operator
	PopulationScenario      = "scenario"          // one scenario, from start to end
	PopulationReading       = "reading"           // one reading of every operation Pod
	PopulationCheckpoint    = "checkpoint"        // one inventory after a maintenance
	PopulationDatabase      = "database"          // the statement journal of one database
	PopulationAuthorisation = "authorisation"     // one approval, or one permission by policy
	PopulationContainer     = "container"         // one running container of the product
	PopulationArtifact      = "artifact"          // one image, chart or client of the release
	PopulationFile          = "file"              // one stored file, archives opened
	PopulationStream        = "stream"            // one stored stream
)

// Populations of measured durations besides refresh and apply.
const (
	PopulationColdStart            = "cold start"                       // first accepted write to the last verified convergence
	PopulationChangeBatch          = "change batch"                     // first accepted write, or first needed approval, to the last verified convergence
	PopulationApprovalBacklog      = "approval backlog"                 // first approval admitted to the last verified convergence
	PopulationRegistryRecovery     = "registry recovery"                // the registry is back to the last verified convergence
	PopulationDatabaseRecovery     = "database recovery"                // the slow database is fast again to the last verified convergence
	PopulationManagersReplaced     = "managers replaced"                // every manager deleted to the last verified convergence
	PopulationApprovalAdmitted     = "approval admitted"                // every manager deleted to the admission of an approval
	PopulationApplyDispatched      = "apply dispatched"                 // every manager deleted to the dispatch of the approved Apply
	PopulationHungResultCanceled   = "hung result canceled"             // a result collection hangs to its cancellation
	PopulationUnrelatedConvergence = "unrelated convergence"            // a result collection hangs to the convergence of other resources
	PopulationOverloadRecovery     = "overload recovery"                // the fleet is back to its declared size to the last verified convergence
	PopulationRecovery             = "recovery"                         // injected loss to the verified service, manual steps included
	PopulationDatabasePoint        = "recovery point of the database"   // start of the used backup to the loss
	PopulationOperatorPoint        = "recovery point of operator state" // start of the used inventory to the loss
)

// Alerts returns the alerts whose incidents are measured. A suite records an incident as a measurement of the
// population that has the name of its alert: from the event that the alert is about to the verified recovery from it.
// The last one is a rule outside the chart, about the hook of an upgrade.
func Alerts() []string {
	return []string{"PtahOperatorUnresolvedApply", "PtahOperatorUnresolvedViewNotSynced", "PtahOperatorUnresolvedViewReadFailures",
		"PtahOperatorResourceOverdue", "PtahOperatorOperationStalled", "PtahOperatorLockReleaseOwed", "PtahOperatorWebhookCertificateExpiring",
		"PtahOperatorPlanStoreLarge", "PtahOperatorOperationsFailing", "PtahOperatorAdmissionUnavailable", "PtahOperatorUpgradeFailed"}
}

func measuredPopulations() []string {
	return []string{PopulationRefresh, PopulationApply, PopulationColdStart, PopulationChangeBatch, PopulationApprovalBacklog,
		PopulationRegistryRecovery, PopulationDatabaseRecovery, PopulationManagersReplaced, PopulationApprovalAdmitted, PopulationApplyDispatched,
		PopulationHungResultCanceled, PopulationUnrelatedConvergence, PopulationOverloadRecovery, PopulationRecovery, PopulationDatabasePoint,
		PopulationOperatorPoint}
}
