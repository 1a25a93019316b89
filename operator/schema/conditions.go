package schema

import (
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	ptahv1 "ptah.run/ptah/operator/api/v1alpha1"
)

const (
	yes     = metav1.ConditionTrue
	no      = metav1.ConditionFalse
	unknown = metav1.ConditionUnknown
)

// owned are the conditions of a PtahSchema in the order in which people read them. Derived ones follow from the rest
// of the status and are computed by summarise alone; the others are evidence and are set where it arrives.
var owned = []struct {
	name    string
	derived func(*ptahv1.PtahSchema, situation) (metav1.ConditionStatus, ptahv1.Reason, string)
}{
	{ptahv1.ConditionReady, readyCondition},
	{ptahv1.ConditionReconciling, reconcilingCondition},
	{ptahv1.ConditionStalled, stalledCondition},
	{ptahv1.ConditionEngineSupported, engineCondition},
	{ptahv1.ConditionSuspended, suspendedCondition},
	{ptahv1.ConditionArtifactResolved, nil},
	{ptahv1.ConditionArtifactVerified, nil},
	{ptahv1.ConditionDatabaseReachable, nil},
	{ptahv1.ConditionDriftDetected, nil},
	{ptahv1.ConditionPlanReady, nil},
	{ptahv1.ConditionApprovalRequired, approvalCondition},
	{ptahv1.ConditionApplying, applyingCondition},
	{ptahv1.ConditionInSync, nil},
	{ptahv1.ConditionReconciliationFailed, nil},
}

// busyMessage names nobody, because the other resource may be in a namespace that the reader may not see.
const busyMessage = "Another resource works on this database; this one waits for its turn."

// situation is the one answer to "what is going on", from which phase and all summarising conditions follow.
type situation struct {
	phase   ptahv1.Phase
	ready   bool
	reason  ptahv1.Reason
	message string
	// progressing: something comes by itself. stalled: only another input helps.
	progressing bool
	stalled     bool
	// permission is set where a plan waits.
	permission permission
}

// rules are asked in order; the first that answers holds.
var rules = []func(*ptahv1.PtahSchema) (situation, bool){
	applyRule, pendingRule, suspendedRule, engineRule, realmRule, failedRule, unreadRule, refusedRule, planRule, syncRule,
}

// assess answers from spec and status alone.
func assess(schema *ptahv1.PtahSchema) situation {
	for _, rule := range rules {
		if s, ok := rule(schema); ok {
			return s
		}
	}
	return situation{phase: ptahv1.PhasePending, reason: ptahv1.ReasonNotYetKnown, message: "Nothing was read yet.", progressing: true}
}

// summarise is the only place that sets phase, observedGeneration and derived conditions.
func summarise(schema *ptahv1.PtahSchema, now time.Time) {
	s := assess(schema)
	schema.Status.ObservedGeneration = schema.Generation
	schema.Status.Phase = s.phase
	for _, condition := range owned {
		if condition.derived != nil {
			status, reason, message := condition.derived(schema, s)
			setCondition(schema, now, condition.name, status, reason, message)
		} else if meta.FindStatusCondition(schema.Status.Conditions, condition.name) == nil {
			setCondition(schema, now, condition.name, unknown, ptahv1.ReasonNotYetKnown, "Nothing was read yet.")
		}
	}
}

func setCondition(schema *ptahv1.PtahSchema, now time.Time, name string, status metav1.ConditionStatus, reason ptahv1.Reason, message string) {
	meta.SetStatusCondition(&schema.Status.Conditions, metav1.Condition{
		Type: name, Status: status, Reason: string(reason), Message: message,
		ObservedGeneration: schema.Generation, LastTransitionTime: metav1.NewTime(now),
	})
}

// conditionIs says whether a condition stands with a status, and returns it.
func conditionIs(schema *ptahv1.PtahSchema, name string, status metav1.ConditionStatus) (*metav1.Condition, bool) {
	condition := meta.FindStatusCondition(schema.Status.Conditions, name)
	return condition, condition != nil && condition.Status == status
}

func applyRule(schema *ptahv1.PtahSchema) (situation, bool) {
	claim := schema.Status.ActiveOperation
	if claim == nil || claim.Type != ptahv1.OperationApply {
		return situation{}, false
	}
	s := situation{phase: ptahv1.PhaseApplying, reason: ptahv1.ReasonApprovedPlan, message: "The plan is being applied.", progressing: true}
	if failed, ok := conditionIs(schema, ptahv1.ConditionReconciliationFailed, yes); ok && claim.RetryNotBefore != nil && !claim.DispatchStarted {
		s.reason, s.message = ptahv1.Reason(failed.Reason), failed.Message
	}
	if schema.Status.TargetBusySince != nil {
		s.reason, s.message = ptahv1.ReasonTargetBusy, busyMessage
	}
	return s, true
}

func pendingRule(schema *ptahv1.PtahSchema) (situation, bool) {
	pending := schema.Status.PendingObservation
	if pending == nil {
		return situation{}, false
	}
	s := situation{phase: ptahv1.PhaseVerifyingConvergence, progressing: true}
	switch {
	case schema.Spec.Suspend:
		s.phase, s.progressing = ptahv1.PhaseSuspended, false
		s.reason, s.message = ptahv1.ReasonSuspended, "Suspended while a proof is owed: the database stays reserved until the resource is resumed."
	case pending.Refusal != "":
		s.reason, s.message = ptahv1.ReasonStalePlan, "The executor refused the plan ("+pending.Refusal+"); the database is read again."
	case pending.Outcome == ptahv1.ApplySucceeded:
		s.reason, s.message = ptahv1.ReasonVerifyingConvergence, "The plan was applied; convergence is being proven."
	default:
		s.reason, s.message = ptahv1.ReasonApplyOutcomeUnknown, "An Apply may or may not have changed the database; it is read again and nothing is replayed."
	}
	if failed, ok := conditionIs(schema, ptahv1.ConditionReconciliationFailed, yes); ok && schema.Status.FailedAttempts > 0 && !schema.Spec.Suspend {
		s.reason, s.message = ptahv1.Reason(failed.Reason), failed.Message
	}
	return s, true
}

func suspendedRule(schema *ptahv1.PtahSchema) (situation, bool) {
	return situation{phase: ptahv1.PhaseSuspended, reason: ptahv1.ReasonSuspended, message: "spec.suspend is set: nothing starts."}, schema.Spec.Suspend
}

func engineRule(schema *ptahv1.PtahSchema) (situation, bool) {
	return situation{
		phase: ptahv1.PhaseBlocked, reason: ptahv1.ReasonUnsupportedEngine, stalled: true,
		message: fmt.Sprintf("Engine %s is not implemented; set spec.target.engine to PostgreSQL or MySQL.", schema.Spec.Target.Engine),
	}, !engineSupported(schema)
}

// realmRule reads the verdict of the census from the condition that the realm step left.
func realmRule(schema *ptahv1.PtahSchema) (situation, bool) {
	condition, ok := heldByRealm(schema)
	if !ok {
		return situation{}, false
	}
	return situation{phase: ptahv1.PhaseBlocked, reason: ptahv1.Reason(condition.Reason), message: condition.Message, stalled: true}, true
}

// heldByRealm says whether the last census held the resource, and returns the condition that says why.
func heldByRealm(schema *ptahv1.PtahSchema) (*metav1.Condition, bool) {
	condition, ok := conditionIs(schema, ptahv1.ConditionPlanReady, no)
	return condition, ok && (condition.Reason == string(ptahv1.ReasonRealmConflict) || condition.Reason == string(ptahv1.ReasonRealmNotAuthorized))
}

func failedRule(schema *ptahv1.PtahSchema) (situation, bool) {
	failed, ok := conditionIs(schema, ptahv1.ConditionReconciliationFailed, yes)
	if !ok || schema.Status.FailedAttempts == 0 {
		return situation{}, false
	}
	phase := ptahv1.PhaseFailed
	if schema.Status.ActiveOperation != nil {
		phase = ptahv1.PhaseRefreshing
	}
	return situation{phase: phase, reason: ptahv1.Reason(failed.Reason), message: failed.Message, progressing: true}, true
}

func unreadRule(schema *ptahv1.PtahSchema) (situation, bool) {
	if schema.Status.RefreshedGeneration == schema.Generation {
		return situation{}, false
	}
	if schema.Status.ActiveOperation != nil {
		return situation{phase: ptahv1.PhaseRefreshing, reason: ptahv1.ReasonRefreshing, message: "Artifact and database are being read.", progressing: true}, true
	}
	s := situation{phase: ptahv1.PhasePending, reason: ptahv1.ReasonNotYetKnown, message: "Artifact and database were not read yet for this generation.", progressing: true}
	if schema.Status.TargetBusySince != nil {
		s.reason, s.message = ptahv1.ReasonTargetBusy, busyMessage
	}
	return s, true
}

func refusedRule(schema *ptahv1.PtahSchema) (situation, bool) {
	for _, name := range []string{ptahv1.ConditionArtifactVerified, ptahv1.ConditionPlanReady} {
		condition, ok := conditionIs(schema, name, no)
		if !ok {
			continue
		}
		switch reason := ptahv1.Reason(condition.Reason); reason {
		case ptahv1.ReasonPolicyRefused, ptahv1.ReasonProtectedTable, ptahv1.ReasonPlanRefused:
			return situation{phase: ptahv1.PhaseBlocked, reason: reason, message: condition.Message, stalled: true}, true
		}
	}
	return situation{}, false
}

func planRule(schema *ptahv1.PtahSchema) (situation, bool) {
	current := schema.Status.Plan
	if current == nil {
		return situation{}, false
	}
	granted, reason := permit(schema.Spec.Policy, current)
	s := situation{reason: reason, permission: granted}
	switch granted {
	case permissionBlocked:
		s.phase, s.stalled = ptahv1.PhaseBlocked, reason == ptahv1.ReasonDestructiveChangesDisabled
		s.message = "spec.policy.apply is Never: the plan is kept and nothing runs."
		if s.stalled {
			s.message = "The plan destroys data or structure and spec.policy.allowDestructive is not set."
		}
	case permissionNeedsApproval:
		s.phase, s.reason = ptahv1.PhaseAwaitingApproval, ptahv1.ReasonAwaitingApproval
		s.message = fmt.Sprintf("Plan %s with %d statements waits for an approval.", current.Name, current.StatementCount)
		if reason == ptahv1.ReasonPrivilegeChanges {
			s.message = fmt.Sprintf("Plan %s changes privileges and waits for an approval.", current.Name)
		}
		if current.Attempted {
			s.message = fmt.Sprintf("Plan %s was applied before without leading to convergence and waits for a new approval.", current.Name)
		}
	case permissionGranted:
		s.phase, s.progressing = ptahv1.PhaseReadyToApply, true
		s.message = fmt.Sprintf("Plan %s runs by itself.", current.Name)
	}
	return s, true
}

func syncRule(schema *ptahv1.PtahSchema) (situation, bool) {
	condition, ok := conditionIs(schema, ptahv1.ConditionInSync, yes)
	if !ok {
		return situation{}, false
	}
	s := situation{phase: ptahv1.PhaseInSync, ready: true, reason: ptahv1.ReasonInSync, message: condition.Message}
	if condition.Reason == string(ptahv1.ReasonConvergedAfterUnknownOutcome) {
		s.reason = ptahv1.ReasonConvergedAfterUnknownOutcome
	}
	return s, true
}

func truth(value bool) metav1.ConditionStatus {
	if value {
		return yes
	}
	return no
}

func readyCondition(_ *ptahv1.PtahSchema, s situation) (metav1.ConditionStatus, ptahv1.Reason, string) {
	return truth(s.ready), s.reason, s.message
}

// reconcilingCondition says also of a resource whose evidence stands that it waits to read the database again.
func reconcilingCondition(schema *ptahv1.PtahSchema, s situation) (metav1.ConditionStatus, ptahv1.Reason, string) {
	if schema.Status.TargetBusySince != nil && !s.stalled {
		return yes, ptahv1.ReasonTargetBusy, busyMessage
	}
	return truth(s.progressing), s.reason, s.message
}

func stalledCondition(_ *ptahv1.PtahSchema, s situation) (metav1.ConditionStatus, ptahv1.Reason, string) {
	return truth(s.stalled), s.reason, s.message
}

func engineSupported(schema *ptahv1.PtahSchema) bool {
	return schema.Spec.Target.Engine == ptahv1.EnginePostgreSQL || schema.Spec.Target.Engine == ptahv1.EngineMySQL
}

func engineCondition(schema *ptahv1.PtahSchema, _ situation) (metav1.ConditionStatus, ptahv1.Reason, string) {
	if engineSupported(schema) {
		return yes, ptahv1.ReasonSupportedEngine, "The engine is implemented."
	}
	return no, ptahv1.ReasonUnsupportedEngine, "The engine is not implemented."
}

func suspendedCondition(schema *ptahv1.PtahSchema, _ situation) (metav1.ConditionStatus, ptahv1.Reason, string) {
	if schema.Spec.Suspend {
		return yes, ptahv1.ReasonRequested, "spec.suspend is set."
	}
	return no, ptahv1.ReasonActive, "spec.suspend is not set."
}

func approvalCondition(schema *ptahv1.PtahSchema, s situation) (metav1.ConditionStatus, ptahv1.Reason, string) {
	switch s.phase {
	case ptahv1.PhaseAwaitingApproval:
		_, why := permit(schema.Spec.Policy, schema.Status.Plan)
		return yes, why, s.message
	case ptahv1.PhaseReadyToApply:
		return no, ptahv1.ReasonNotRequired, "The policy waives the approval for this plan."
	case ptahv1.PhaseApplying:
		return no, ptahv1.ReasonSatisfied, "The requirements for this Apply are met."
	case ptahv1.PhaseInSync:
		return no, ptahv1.ReasonNoChanges, "There is nothing to approve."
	}
	return no, s.reason, "Nothing can be approved now."
}

func applyingCondition(schema *ptahv1.PtahSchema, s situation) (metav1.ConditionStatus, ptahv1.Reason, string) {
	if s.phase == ptahv1.PhaseApplying {
		return yes, ptahv1.ReasonApprovedPlan, "The plan is being applied."
	}
	if schema.Status.PendingObservation != nil {
		return no, ptahv1.ReasonJobCompleted, "The Apply ended; the database is read back."
	}
	return no, ptahv1.ReasonNotRequired, "No plan is being applied."
}
