// Package result holds the one document that an operation Pod delivers: what each of its steps did, with typed
// evidence. It is pure data. The runner writes it, the receiver stores it, the reconciler believes it only after the
// receiver's complete record exists.
package result

import (
	"time"

	"ptah.run/ptah/operator/plan/report"
)

// ProtocolVersion is the version of this document and of the runner's environment.
const ProtocolVersion = 1

// MaxBytes is the largest document: an 8 MiB plan in base64, and room for everything else. 12 MiB.
const MaxBytes = 12 << 20

// MaxMessageBytes bounds a message. 4 KiB.
const MaxMessageBytes = 4 << 10

// MediaType of the document in transport.
const MediaType = "application/vnd.ptah.run.result.v1+json"

// StepName names a step.
type StepName string

// Steps, in the order in which they can run.
const (
	StepResolve StepName = "Resolve"
	StepVerify  StepName = "Verify"
	StepFetch   StepName = "Fetch"
	StepObserve StepName = "Observe"
	StepPlan    StepName = "Plan"
	StepApply   StepName = "Apply"
)

// ErrorCode classifies a failure of the runner itself. A failure or refusal of ptah is carried as its report.Code.
type ErrorCode string

// Error codes of the runner.
const (
	ErrorProtocolMismatch     ErrorCode = "runner_protocol_mismatch"
	ErrorInvalidConfiguration ErrorCode = "invalid_configuration"
	ErrorInvalidAccess        ErrorCode = "invalid_oci_access"
	ErrorMissingTarget        ErrorCode = "missing_target"
	ErrorTargetMismatch       ErrorCode = "target_binding_mismatch"
	ErrorPolicyMismatch       ErrorCode = "policy_binding_mismatch"
	ErrorPlanDigestMismatch   ErrorCode = "plan_digest_mismatch"
	ErrorDispatchExpired      ErrorCode = "dispatch_deadline_expired"
	ErrorExecutionExpired     ErrorCode = "execution_deadline_expired"
	ErrorExecution            ErrorCode = "execution_error" // ptah could not be run, or its report could not be read
	ErrorPtah                 ErrorCode = "ptah"            // ptah said no: Problem says what
)

// Error ends a chain of steps.
type Error struct {
	Code ErrorCode `json:"code"`
	// Message is one sentence, redacted, at most MaxMessageBytes.
	Message string `json:"message"`
	// Problem is ptah's own word, where Code is ErrorPtah.
	Problem *report.Problem `json:"problem,omitempty"`
}

// Step is what one step did.
type Step struct {
	Name       StepName  `json:"name"`
	StartedAt  time.Time `json:"startedAt"`
	FinishedAt time.Time `json:"finishedAt"`
	Error      *Error    `json:"error,omitempty"`
}

// Document is the result of one operation Pod. The evidence of a step is set where that step gave one.
type Document struct {
	ProtocolVersion int    `json:"protocolVersion"`
	Operation       string `json:"operation"` // Refresh or Apply
	OperationID     string `json:"operationID"`
	// Steps in the order in which they ran. A step with an error is the last.
	Steps []Step `json:"steps"`

	Resolve *report.Resolve     `json:"resolve,omitempty"`
	Verify  *report.Verify      `json:"verify,omitempty"`
	Observe *report.Drift       `json:"observe,omitempty"`
	Plan    *report.SchemaPlan  `json:"plan,omitempty"`
	Apply   *report.SchemaApply `json:"apply,omitempty"`

	// PlanBytes are the bytes of the plan document, absent where the manager said that it holds them already
	// (env.HeldPlanDigest), which PlanHeld then says.
	PlanBytes []byte `json:"planBytes,omitempty"`
	PlanHeld  bool   `json:"planHeld,omitempty"`

	// TargetIdentityDigest is the runner's own reading of the database URL.
	TargetIdentityDigest string `json:"targetIdentityDigest,omitempty"`
	// MutationStarted says that ptah apply was started. It being false is not believed without the receiver's record.
	MutationStarted bool `json:"mutationStarted,omitempty"`
}

// Failed returns the error that ended the chain, or nil.
func (d *Document) Failed() *Error {
	for i := range d.Steps {
		if d.Steps[i].Error != nil {
			return d.Steps[i].Error
		}
	}
	return nil
}
