package operation

import (
	"context"
	"errors"
	"fmt"

	"ptah.run/ptah/operator/operation/result"
	"ptah.run/ptah/operator/plan/report"
)

// ErrNoResult says that no complete result is stored. A result is complete before its Pod ends, so for a finished Job
// this is final.
var ErrNoResult = errors.New("no complete result is stored")

// ErrInvalidResult says that a stored result is not a usable document.
var ErrInvalidResult = errors.New("the stored result is not usable")

// Results reads durable results live. The error is ErrNoResult, ErrInvalidResult or one of the API server.
type Results interface {
	Load(ctx context.Context, namespace, publication string) (*result.Document, error)
}

// CheckEnvelope says whether a document is of this protocol and of the claimed operation, and whether its steps can be
// those of that operation: known, in order, and none after a failed one. The error wraps ErrInvalidResult.
func CheckEnvelope(document *result.Document, operation, operationID string) error {
	switch {
	case document.ProtocolVersion != result.ProtocolVersion:
		return fmt.Errorf("%w: protocol version %d is not %d", ErrInvalidResult, document.ProtocolVersion, result.ProtocolVersion)
	case document.Operation != operation || document.OperationID != operationID:
		return fmt.Errorf("%w: it belongs to another operation", ErrInvalidResult)
	case len(document.Steps) == 0:
		return fmt.Errorf("%w: it has no steps", ErrInvalidResult)
	}
	order := []result.StepName{result.StepResolve, result.StepVerify, result.StepFetch, result.StepObserve, result.StepPlan}
	if operation == "Apply" {
		order = []result.StepName{result.StepResolve, result.StepVerify, result.StepFetch, result.StepApply}
	}
	next := 0
	for i, step := range document.Steps {
		for next < len(order) && order[next] != step.Name {
			next++
		}
		if next == len(order) {
			return fmt.Errorf("%w: step %q has no place there", ErrInvalidResult, step.Name)
		}
		next++
		if step.Error != nil && i != len(document.Steps)-1 {
			return fmt.Errorf("%w: step %q failed and another followed", ErrInvalidResult, step.Name)
		}
	}
	if document.PlanBytes != nil && (document.Plan == nil || report.Digest(document.PlanBytes) != document.Plan.PlanDigest) {
		return fmt.Errorf("%w: the plan's bytes are not those that its report names", ErrInvalidResult)
	}
	return nil
}
