package v1alpha1

// EventReason is the reason of an Event. The vocabulary is closed, like that of the conditions.
type EventReason string

// Reasons of Events.
const (
	EventApplyOutcomeUnknown         EventReason = "ApplyOutcomeUnknown"
	EventApprovalAccepted            EventReason = "ApprovalAccepted"
	EventApprovalRequired            EventReason = "ApprovalRequired"
	EventApprovalRevoked             EventReason = "ApprovalRevoked"
	EventApprovalStale               EventReason = "ApprovalStale"
	EventArtifactVerificationRefused EventReason = "ArtifactVerificationRefused"
	EventExecutionBindingChanged     EventReason = "ExecutionBindingChanged"
	EventLeaseContinuityLost         EventReason = "LeaseContinuityLost"
	EventOperationCompleted          EventReason = "OperationCompleted"
	EventOperationFailed             EventReason = "OperationFailed"
	EventOperationStarted            EventReason = "OperationStarted"
	EventPlanRefused                 EventReason = "PlanRefused"
	EventPlanStale                   EventReason = "PlanStale"
	EventPodAdmissionRefused         EventReason = "PodAdmissionRefused"
	EventProtectedTableRefused       EventReason = "ProtectedTableRefused"
	EventTargetBusy                  EventReason = "TargetBusy"
	EventVerificationPolicyChanged   EventReason = "VerificationPolicyInvalidated"
)

// EventEntry is what the vocabulary says of an Event.
type EventEntry struct {
	Reason EventReason
	// Warning tells a Warning from a Normal Event.
	Warning bool
	Kind    string
	When    string
}

// Events is every Event in alphabetical order. A refresh that changes nothing sends none.
func Events() []EventEntry {
	return []EventEntry{
		{EventApplyOutcomeUnknown, true, kindSchema, "An Apply ended without an established outcome, and its proof begins; or the resource was deleted before it could be proven."},
		{EventApprovalAccepted, false, kindSchema, "An approval authorises one Apply."},
		{EventApprovalRequired, false, kindSchema, "A new plan waits for an approval."},
		{EventApprovalRevoked, true, kindSchema, "An approval stopped being valid before anything was dispatched."},
		{EventApprovalStale, true, kindApproval, "The approval will never be used."},
		{EventArtifactVerificationRefused, true, kindSchema, "The verification policy refused the artifact."},
		{EventExecutionBindingChanged, true, kindSchema, "The executor changed, and everything that was read and planned is void."},
		{EventLeaseContinuityLost, true, kindSchema, "The database was not reserved without a gap, so that a result does not count."},
		{EventOperationCompleted, false, kindSchema, "A plan was applied, and the database was proven to have converged."},
		{EventOperationFailed, true, kindSchema, "An operation failed for the first time, or for another reason than before."},
		{EventOperationStarted, false, kindSchema, "The Job of an Apply was created."},
		{EventPlanRefused, true, kindSchema, "No complete plan exists for this change."},
		{EventPlanStale, true, kindSchema, "A plan is no longer current."},
		{EventPodAdmissionRefused, true, kindSchema, "The API server refused the Job of an Apply."},
		{EventProtectedTableRefused, true, kindSchema, "The plan would touch a protected table."},
		{EventTargetBusy, false, kindSchema, "The resource begins to wait for another one that works on the same database."},
		{EventVerificationPolicyChanged, true, kindSchema, "The verification policy changed after the artifact was verified."},
	}
}

// PhaseEntry is what the vocabulary says of a phase.
type PhaseEntry struct {
	Phase Phase
	// Meaning is one sentence. Next is what happens next.
	Meaning, Next string
}

// Phases is every phase, in the order in which a resource usually meets them.
func Phases() []PhaseEntry {
	return []PhaseEntry{
		{PhasePending, "Nothing was read yet for this generation.", "A refresh."},
		{PhaseRefreshing, "A Pod reads the artifact and the database.", "Its result."},
		{PhaseReadyToApply, "There is a plan, and the policy lets it run by itself.", "The Apply, or a refresh when one is due."},
		{PhaseAwaitingApproval, "There is a plan, and a person has to decide.", "The Apply after an approval, or a refresh when one is due."},
		{PhaseBlocked, "Something is refused that only another input can end.", "A refresh when one is due, or nothing before the spec or the realm changes."},
		{PhaseApplying, "An Apply is claimed or running.", "Its end."},
		{PhaseVerifyingConvergence, "An Apply ended, and the database has to be read.", "The proof."},
		{PhaseInSync, "The database was read and matches.", "A refresh when one is due."},
		{PhaseSuspended, "spec.suspend is set.", "Nothing before it is removed."},
		{PhaseFailed, "The last refresh failed.", "Another one after spec.execution.failureRetryInterval."},
	}
}
