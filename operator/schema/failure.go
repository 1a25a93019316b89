package schema

import (
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"

	ptahv1 "ptah.run/ptah/operator/api/v1alpha1"
	"ptah.run/ptah/operator/operation/result"
	"ptah.run/ptah/operator/plan/report"
	"ptah.run/ptah/operator/telemetry"
)

// stageController is the stage of a failure outside an operation Pod.
const stageController = "controller"

// failure is why a refresh did not end in convergence or a plan. The same value sets conditions, event and metric.
type failure struct {
	// condition is the evidence that is affected, with its new status.
	condition string
	status    corev1.ConditionStatus
	reason    ptahv1.Reason
	message   string
	stage     string
	// refused means that only another input can end it: it is reported and read again on the interval, not retried.
	refused bool
	// read means that the database was read before the refusal.
	read bool
}

func (f *failure) category() string {
	switch f.reason {
	case ptahv1.ReasonConfigurationError, ptahv1.ReasonRunnerProtocolMismatch, ptahv1.ReasonAuthenticationFailed:
		return telemetry.CategoryConfiguration
	case ptahv1.ReasonConnectionFailed, ptahv1.ReasonPodAdmissionRefused:
		return telemetry.CategoryInfrastructure
	case ptahv1.ReasonPolicyChanged, ptahv1.ReasonStalePlan:
		return telemetry.CategoryStaleInput
	}
	return telemetry.CategoryOperation
}

// diagnose says what a failed step means. resolvedBefore tells an outage from a source that never worked.
func diagnose(step *result.Step, claim *ptahv1.ActiveOperationStatus, resolvedBefore bool) *failure {
	f := &failure{stage: strings.ToLower(string(step.Name)), status: corev1.ConditionFalse, message: sentence(step.Error.Message)}
	switch step.Name {
	case result.StepResolve, result.StepFetch:
		f.condition = ptahv1.ConditionArtifactResolved
		if resolvedBefore {
			f.status = corev1.ConditionUnknown
		}
	case result.StepVerify:
		f.condition = ptahv1.ConditionArtifactVerified
	case result.StepObserve, result.StepApply:
		f.condition = ptahv1.ConditionDatabaseReachable
	case result.StepPlan:
		f.condition = ptahv1.ConditionPlanReady
	}
	if step.Error.Problem != nil && step.Error.Code == result.ErrorPtah {
		f.fromProblem(step.Error.Problem, claim)
		return f
	}
	switch step.Error.Code {
	case result.ErrorProtocolMismatch:
		f.reason = ptahv1.ReasonRunnerProtocolMismatch
	case result.ErrorInvalidConfiguration, result.ErrorInvalidAccess, result.ErrorMissingTarget, result.ErrorTargetMismatch:
		f.reason = ptahv1.ReasonConfigurationError
	case result.ErrorPolicyMismatch:
		f.reason = ptahv1.ReasonPolicyChanged
	default:
		f.reason = ptahv1.ReasonOperationFailed
	}
	return f
}

// fromProblem translates ptah's own code.
func (f *failure) fromProblem(problem *report.Problem, claim *ptahv1.ActiveOperationStatus) {
	source := f.condition == ptahv1.ConditionArtifactResolved || f.condition == ptahv1.ConditionArtifactVerified
	f.message = sentence(problem.Message)
	switch problem.Code {
	case report.CodeAuthentication:
		f.reason = ptahv1.ReasonAuthenticationFailed
		if source {
			f.message = join("The registry refused the credential; correct the Secret that spec.desired.registryAuthFrom names.", f.message)
			return
		}
		f.condition = ptahv1.ConditionDatabaseReachable
		url := claim.Target.URLFrom
		f.message = join(fmt.Sprintf("The database refused the credential in key %s of Secret %s; correct the user or password there.", url.Key, url.Name), f.message)
	case report.CodeConnection:
		f.reason = ptahv1.ReasonConnectionFailed
		if !source {
			f.condition = ptahv1.ConditionDatabaseReachable
		}
	case report.CodeNotFound:
		f.reason = ptahv1.ReasonResolveFailed
	case report.CodePolicy:
		f.reason, f.refused = ptahv1.ReasonPolicyRefused, true
	case report.CodeProtectedTable:
		f.reason, f.refused, f.read = ptahv1.ReasonProtectedTable, true, true
	case report.CodeUnsupported, report.CodeTransactionMode, report.CodeTooLarge, report.CodeServerVersion, report.CodeInvalidSchema:
		f.reason, f.refused, f.read = ptahv1.ReasonPlanRefused, true, true
		f.condition = ptahv1.ConditionPlanReady
		if len(problem.Categories) > 0 {
			f.message = join(f.message, "Concerned: "+strings.Join(problem.Categories, ", ")+".")
		}
	case report.CodeInvalidPolicy, report.CodeInvalidArtifact, report.CodeInvalidInput:
		f.reason = ptahv1.ReasonConfigurationError
	default:
		f.reason = ptahv1.ReasonOperationFailed
	}
}

// sentence makes a message that can stand beside another.
func sentence(message string) string {
	message = strings.TrimSpace(message)
	if message == "" || strings.HasSuffix(message, ".") {
		return message
	}
	return message + "."
}

func join(sentences ...string) string {
	return strings.TrimSpace(strings.Join(sentences, " "))
}
