package v1alpha1

import "slices"

// Reason is why a condition is what it is. The vocabulary is closed: a reason is never given another meaning; a new
// one is compatible; removing one is a decision about the API. Vocabulary says what each means.
type Reason string

// Reasons.
const (
	ReasonActive                       Reason = "Active"
	ReasonApplyDisabled                Reason = "ApplyDisabled"
	ReasonApplyOutcomeUnknown          Reason = "ApplyOutcomeUnknown"
	ReasonApplyPending                 Reason = "ApplyPending"
	ReasonApprovedPlan                 Reason = "ApprovedPlan"
	ReasonArtifactUnverified           Reason = "ArtifactUnverified"
	ReasonAuthenticationFailed         Reason = "AuthenticationFailed"
	ReasonAwaitingApproval             Reason = "AwaitingApproval"
	ReasonConfigurationError           Reason = "ConfigurationError"
	ReasonConnectionFailed             Reason = "ConnectionFailed"
	ReasonConvergedAfterUnknownOutcome Reason = "ConvergedAfterUnknownOutcome"
	ReasonCurrentPlan                  Reason = "CurrentPlan"
	ReasonDesiredStateChanged          Reason = "DesiredStateChanged"
	ReasonDestructiveChangesDisabled   Reason = "DestructiveChangesDisabled"
	ReasonDigestPinned                 Reason = "DigestPinned"
	ReasonDispatchCommitted            Reason = "DispatchCommitted"
	ReasonExecutionBindingChanged      Reason = "ExecutionBindingChanged"
	ReasonInSync                       Reason = "InSync"
	ReasonJobCompleted                 Reason = "JobCompleted"
	ReasonNoChanges                    Reason = "NoChanges"
	ReasonNotRequired                  Reason = "NotRequired"
	ReasonNotYetKnown                  Reason = "NotYetKnown"
	ReasonObserved                     Reason = "Observed"
	ReasonOperationFailed              Reason = "OperationFailed"
	ReasonPlanNoLongerCurrent          Reason = "PlanNoLongerCurrent"
	ReasonPlanReady                    Reason = "PlanReady"
	ReasonPlanRefused                  Reason = "PlanRefused"
	ReasonPodAdmissionRefused          Reason = "PodAdmissionRefused"
	ReasonPolicyChanged                Reason = "PolicyChanged"
	ReasonPolicyRefused                Reason = "PolicyRefused"
	ReasonPolicySatisfied              Reason = "PolicySatisfied"
	ReasonPrivilegeChanges             Reason = "PrivilegeChanges"
	ReasonProtectedTable               Reason = "ProtectedTable"
	ReasonPublished                    Reason = "Published"
	ReasonRealmConflict                Reason = "RealmConflict"
	ReasonRealmNotAuthorized           Reason = "RealmNotAuthorized"
	ReasonRefreshFailed                Reason = "RefreshFailed"
	ReasonRefreshing                   Reason = "Refreshing"
	ReasonRequested                    Reason = "Requested"
	ReasonResolveFailed                Reason = "ResolveFailed"
	ReasonRunnerProtocolMismatch       Reason = "RunnerProtocolMismatch"
	ReasonSatisfied                    Reason = "Satisfied"
	ReasonScopedChanges                Reason = "ScopedChanges"
	ReasonScopedConverged              Reason = "ScopedConverged"
	ReasonSourceFreshnessUnknown       Reason = "SourceFreshnessUnknown"
	ReasonStalePlan                    Reason = "StalePlan"
	ReasonSucceeded                    Reason = "Succeeded"
	ReasonSupersededApproval           Reason = "SupersededApproval"
	ReasonSupportedEngine              Reason = "SupportedEngine"
	ReasonSuspended                    Reason = "Suspended"
	ReasonTargetBusy                   Reason = "TargetBusy"
	ReasonUnsupportedEngine            Reason = "UnsupportedEngine"
	ReasonVerifyingConvergence         Reason = "VerifyingConvergence"
)

// ConditionOf is a condition of a kind.
type ConditionOf struct {
	Kind string
	Type string
}

// ReasonEntry is what the vocabulary says of a reason.
type ReasonEntry struct {
	Reason Reason
	// Meaning is one sentence without the reason's name.
	Meaning string
	// Action is what a person should do, in one sentence; empty where there is nothing to do.
	Action string
	// Conditions in which the reason stands.
	Conditions []ConditionOf
}

// Explain returns what the vocabulary says of a reason.
func Explain(reason string) (ReasonEntry, bool) {
	for _, entry := range Vocabulary() {
		if string(entry.Reason) == reason {
			return entry, true
		}
	}
	return ReasonEntry{}, false
}

const (
	kindSchema   = "PtahSchema"
	kindPlan     = "PtahSchemaPlan"
	kindApproval = "PtahSchemaApproval"
)

func of(kind string, types ...string) []ConditionOf {
	conditions := make([]ConditionOf, len(types))
	for i, name := range types {
		conditions[i] = ConditionOf{kind, name}
	}
	return conditions
}

// summary is the conditions that say what is going on as a whole; more are added.
func summary(more ...string) []ConditionOf {
	return of(kindSchema, slices.Concat([]string{ConditionReady, ConditionReconciling, ConditionStalled}, more)...)
}

// Vocabulary is every reason, in alphabetical order.
func Vocabulary() []ReasonEntry {
	return slices.SortedFunc(slices.Values(slices.Concat(settledReasons(), workReasons(), heldReasons(), failureReasons(), objectReasons())),
		func(a, b ReasonEntry) int {
			if a.Reason < b.Reason {
				return -1
			}
			return 1
		})
}

// settledReasons say that all is well.
func settledReasons() []ReasonEntry {
	return []ReasonEntry{
		{ReasonInSync, "The database was read and matches the verified artifact.", "", summary()},
		{ReasonScopedConverged, "Nothing in the managed scope differs from the artifact.", "", of(kindSchema, ConditionDriftDetected, ConditionInSync)},
		{ReasonConvergedAfterUnknownOutcome, "The database matches the artifact; no Apply is credited, because it was never established what the last one did.",
			"Look at the Job, the Pod and the database's own log if you must know what ran; nothing is owed.", summary(ConditionInSync)},
		{ReasonNoChanges, "The plan of the managed scope is empty.", "", of(kindSchema, ConditionPlanReady, ConditionApprovalRequired)},
		{ReasonDigestPinned, "The reference was resolved to a digest.", "", of(kindSchema, ConditionArtifactResolved)},
		{ReasonPolicySatisfied, "The artifact has the right type and meets the verification policy.", "", of(kindSchema, ConditionArtifactVerified)},
		{ReasonObserved, "The database was read.", "", of(kindSchema, ConditionDatabaseReachable)},
		{ReasonSupportedEngine, "The engine is implemented.", "", of(kindSchema, ConditionEngineSupported)},
		{ReasonActive, "The resource is not suspended.", "", of(kindSchema, ConditionSuspended)},
		{ReasonSucceeded, "The last operation succeeded.", "", of(kindSchema, ConditionReconciliationFailed)},
	}
}

// workReasons say that something comes by itself.
func workReasons() []ReasonEntry {
	return []ReasonEntry{
		{ReasonNotYetKnown, "Nothing was read yet for this generation of the spec.", "Wait for the first refresh.",
			summary(ConditionApprovalRequired, ConditionArtifactResolved, ConditionArtifactVerified, ConditionDatabaseReachable, ConditionDriftDetected,
				ConditionPlanReady, ConditionInSync, ConditionReconciliationFailed)},
		{ReasonRefreshing, "A Pod reads the artifact and the database.", "Wait; the Job is in status.activeOperation.", summary(ConditionApprovalRequired)},
		{ReasonTargetBusy, "Another resource works on this database at this moment; this one waits for its turn.",
			"Wait; if it lasts, look for another resource with the same spec.target that is suspended while a proof is owed.", summary(ConditionApprovalRequired)},
		{ReasonApplyPending, "The policy lets the plan run by itself, and it is about to.", "Wait.", summary()},
		{ReasonApprovedPlan, "The plan is running.", "Wait; the Job is in status.activeOperation.", summary(ConditionApplying)},
		{ReasonSatisfied, "The requirements for this Apply are met.", "", of(kindSchema, ConditionApprovalRequired)},
		{ReasonJobCompleted, "The Apply ended and the database is read back.", "Wait.", of(kindSchema, ConditionApplying, ConditionPlanReady)},
		{ReasonVerifyingConvergence, "The Apply ended and its convergence is being proven.", "Wait.", summary(ConditionApprovalRequired, ConditionInSync)},
		{ReasonApplyOutcomeUnknown, "An Apply may or may not have changed the database; it is read again, and nothing is replayed.",
			"Wait for the reading; it alone settles what the database looks like.", summary(ConditionApprovalRequired, ConditionPlanReady)},
		{ReasonStalePlan, "The plan can no longer run: the executor refused it before it changed anything, or its object is gone.",
			"Wait; the database is read again and a new plan is made.", summary(ConditionApprovalRequired, ConditionPlanReady)},
		{ReasonDesiredStateChanged, "The spec changed, and the database was not read for it yet.", "Wait.", of(kindSchema, ConditionDriftDetected, ConditionPlanReady, ConditionInSync)},
		{ReasonExecutionBindingChanged, "The executor changed; what was read and planned before authorises nothing any more.", "Wait; a new plan needs a new approval.",
			of(kindSchema, ConditionArtifactResolved, ConditionArtifactVerified, ConditionDatabaseReachable, ConditionDriftDetected, ConditionPlanReady, ConditionInSync)},
		{ReasonScopedChanges, "The managed scope differs from the artifact.", "Read the plan with kubectl ptah plan.", of(kindSchema, ConditionDriftDetected, ConditionInSync)},
		{ReasonPlanReady, "The plan is stored and can be read and approved.", "", of(kindSchema, ConditionPlanReady)},
	}
}

// heldReasons say that a person has to decide or to change something.
func heldReasons() []ReasonEntry {
	return []ReasonEntry{
		{ReasonAwaitingApproval, "The plan runs only after somebody approved exactly this plan.", "Read the plan with kubectl ptah plan and approve it, or change the artifact.",
			summary(ConditionApprovalRequired)},
		{ReasonPrivilegeChanges, "The plan changes who may do what, so that it needs an approval whatever the policy says.",
			"Read the plan with kubectl ptah plan and approve it, or change the artifact.", of(kindSchema, ConditionApprovalRequired)},
		{ReasonNotRequired, "Nothing of the kind is needed now.", "", of(kindSchema, ConditionApprovalRequired, ConditionApplying)},
		{ReasonApplyDisabled, "spec.policy.apply is Never: the plan is kept and nothing runs.", "Set spec.policy.apply to OnApproval or Always if it shall run.",
			summary(ConditionApprovalRequired)},
		{ReasonDestructiveChangesDisabled, "The plan destroys data or structure, and spec.policy.allowDestructive is not set.",
			"Set spec.policy.allowDestructive and approve the plan, or publish an artifact that destroys nothing.", summary(ConditionApprovalRequired)},
		{ReasonProtectedTable, "The plan would touch a table of spec.policy.protectedTables.", "Publish an artifact that leaves the table alone, or remove the entry.",
			summary(ConditionApprovalRequired, ConditionPlanReady, ConditionInSync)},
		{ReasonPlanRefused, "No complete plan exists for this change; the message says what cannot be planned.",
			"Change the artifact, exclude the object in spec.policy.exclude, or make that change by hand.", summary(ConditionApprovalRequired, ConditionPlanReady, ConditionInSync)},
		{ReasonPolicyRefused, "The artifact does not meet the verification policy.", "Publish an artifact that does, or correct the policy.",
			summary(ConditionApprovalRequired, ConditionArtifactVerified)},
		{ReasonArtifactUnverified, "There is no plan, because the artifact was not verified.", "See ArtifactVerified.", of(kindSchema, ConditionPlanReady)},
		{ReasonSuspended, "spec.suspend is set: nothing starts.", "Remove spec.suspend to go on.", summary(ConditionApprovalRequired)},
		{ReasonRequested, "spec.suspend is set.", "Remove spec.suspend to go on.", of(kindSchema, ConditionSuspended)},
		{ReasonUnsupportedEngine, "The engine is not implemented.", "Correct spec.target.engine.",
			summary(ConditionApprovalRequired, ConditionEngineSupported, ConditionDatabaseReachable, ConditionDriftDetected, ConditionPlanReady, ConditionInSync, ConditionReconciliationFailed)},
		{ReasonRealmConflict, "Several resources claim the database, and not all of them agreed to share it.",
			"Delete or suspend all but one, or let each set spec.target.sharedRealm if each manages a part of its own.",
			summary(ConditionApprovalRequired, ConditionDatabaseReachable, ConditionDriftDetected, ConditionPlanReady, ConditionInSync, ConditionReconciliationFailed)},
		{ReasonRealmNotAuthorized, "The PtahRealm that the resource names does not admit it.", "Have an administrator correct the PtahRealm, or correct spec.target.",
			summary(ConditionApprovalRequired, ConditionDatabaseReachable, ConditionDriftDetected, ConditionPlanReady, ConditionInSync, ConditionReconciliationFailed)},
	}
}

// failureReasons say that something went wrong and is tried again.
func failureReasons() []ReasonEntry {
	failed := summary(ConditionApprovalRequired, ConditionReconciliationFailed)
	return []ReasonEntry{
		{ReasonAuthenticationFailed, "The database or the registry refused the credential.", "Correct the Secret that the message names; it is tried again by itself.",
			slices.Concat(failed, of(kindSchema, ConditionArtifactResolved, ConditionArtifactVerified, ConditionDatabaseReachable))},
		{ReasonConnectionFailed, "The database or the registry could not be reached.", "Look whether it runs and whether Pods of this namespace may reach it; it is tried again by itself.",
			slices.Concat(failed, of(kindSchema, ConditionArtifactResolved, ConditionArtifactVerified, ConditionDatabaseReachable))},
		{ReasonConfigurationError, "Something that was declared is missing or wrong.", "Correct what the message names.",
			slices.Concat(failed, of(kindSchema, ConditionArtifactResolved, ConditionArtifactVerified, ConditionDatabaseReachable, ConditionPlanReady))},
		{ReasonOperationFailed, "An operation failed; the message says how.", "Read the message and the log of the operation Pod; it is tried again by itself.",
			slices.Concat(failed, of(kindSchema, ConditionArtifactResolved, ConditionArtifactVerified, ConditionDatabaseReachable, ConditionPlanReady))},
		{ReasonPodAdmissionRefused, "The API server refused the operation Job.", "Look for a quota, an admission policy or a webhook that the message names; it is tried again by itself.", failed},
		{ReasonResolveFailed, "The reference names nothing in the registry.", "Publish the artifact or correct spec.desired.ociRef.",
			slices.Concat(failed, of(kindSchema, ConditionArtifactResolved))},
		{ReasonRefreshFailed, "A source that was resolved before could not be resolved again, so that it is not known what it names now.",
			"See ReconciliationFailed for the cause; nothing runs meanwhile.", of(kindSchema, ConditionArtifactResolved)},
		{ReasonSourceFreshnessUnknown, "The last refresh did not complete, so that what was read before may be out of date.", "See ReconciliationFailed for the cause.",
			of(kindSchema, ConditionPlanReady, ConditionInSync)},
		{ReasonPolicyChanged, "The verification policy is another one than the artifact was verified by, or than the refresh was started with.", "Wait; the artifact is verified again.",
			slices.Concat(failed, of(kindSchema, ConditionArtifactVerified, ConditionPlanReady))},
		{ReasonRunnerProtocolMismatch, "The runner image speaks another protocol than the manager.", "Install the runner image of the manager's release.",
			slices.Concat(failed, of(kindSchema, ConditionArtifactResolved))},
	}
}

// objectReasons stand in the conditions of plans and approvals.
func objectReasons() []ReasonEntry {
	return []ReasonEntry{
		{ReasonPublished, "All chunks of the plan are stored.", "", of(kindPlan, ConditionReady)},
		{ReasonCurrentPlan, "The approval matched the plan that was current.", "", of(kindApproval, ConditionAccepted)},
		{ReasonDispatchCommitted, "The approval was used up by one dispatch and authorises nothing further.", "", of(kindApproval, ConditionConsumed)},
		{ReasonPlanNoLongerCurrent, "The plan that was approved is not current any more.", "Read the current plan and approve that one.", of(kindApproval, ConditionStale)},
		{ReasonSupersededApproval, "Another approval of the same plan was used.", "", of(kindApproval, ConditionStale)},
	}
}
