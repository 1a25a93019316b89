package result

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"unicode/utf8"

	"ptah.run/ptah/operator/plan/report"
)

// Operations as they stand in a document.
const (
	OperationRefresh = "Refresh"
	OperationApply   = "Apply"
)

// order of the steps of each operation.
var order = map[string][]StepName{
	OperationRefresh: {StepResolve, StepVerify, StepFetch, StepObserve, StepPlan},
	OperationApply:   {StepApply},
}

// Encode returns the bytes of a document. It refuses a document that Decode would refuse.
func Encode(document *Document) ([]byte, error) {
	if err := document.Validate(); err != nil {
		return nil, fmt.Errorf("encode result: %w", err)
	}
	var buffer bytes.Buffer
	encoder := json.NewEncoder(&buffer)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(document); err != nil {
		return nil, fmt.Errorf("encode result: %w", err)
	}
	if buffer.Len() > MaxBytes {
		return nil, fmt.Errorf("encode result: larger than %d bytes", MaxBytes)
	}
	return buffer.Bytes(), nil
}

// Decode reads a document strictly: at most MaxBytes, no unknown field, nothing after it, and only a combination of
// steps, evidence and errors that a runner can have meant.
func Decode(data []byte) (*Document, error) {
	if len(data) > MaxBytes {
		return nil, fmt.Errorf("decode result: larger than %d bytes", MaxBytes)
	}
	decoder := json.NewDecoder(bytes.NewReader(data))
	decoder.DisallowUnknownFields()
	var document Document
	if err := decoder.Decode(&document); err != nil {
		return nil, fmt.Errorf("decode result: not a result document: %w", err)
	}
	if _, err := decoder.Token(); !errors.Is(err, io.EOF) {
		return nil, errors.New("decode result: more than one JSON document")
	}
	if err := document.Validate(); err != nil {
		return nil, fmt.Errorf("decode result: %w", err)
	}
	return &document, nil
}

// Validate says what contradicts itself. A runner of another protocol can say one thing only: that it is one.
func (d *Document) Validate() error {
	steps, known := order[d.Operation]
	switch {
	case !known:
		return fmt.Errorf("operation %q has no result", d.Operation)
	case d.OperationID == "" || len(d.OperationID) > 128:
		return errors.New("operationID is missing or longer than 128 bytes")
	case len(d.Steps) == 0:
		return errors.New("a result holds at least one step")
	}
	at := -1
	for i := range d.Steps {
		next := slices.Index(steps, d.Steps[i].Name)
		if next <= at {
			return fmt.Errorf("steps[%d]: %q cannot come here", i, d.Steps[i].Name)
		}
		at = next
		if err := d.Steps[i].validate(); err != nil {
			return fmt.Errorf("steps[%d]: %w", i, err)
		}
		if d.Steps[i].Error != nil && i != len(d.Steps)-1 {
			return fmt.Errorf("steps[%d]: a step with an error is the last", i)
		}
	}
	if d.ProtocolVersion != ProtocolVersion {
		return d.validateForeign()
	}
	return d.validateEvidence()
}

func (d *Document) validateForeign() error {
	failed := d.Failed()
	if failed == nil || failed.Code != ErrorProtocolMismatch || d.evidence() || d.MutationStarted || d.TargetIdentityDigest != "" {
		return fmt.Errorf("protocol version %d is not %d", d.ProtocolVersion, ProtocolVersion)
	}
	return nil
}

func (d *Document) evidence() bool {
	return d.Resolve != nil || d.Verify != nil || d.Observe != nil || d.Plan != nil || d.Apply != nil ||
		len(d.PlanBytes) > 0 || d.PlanHeld
}

func (d *Document) validateEvidence() error {
	for _, part := range []struct {
		step    StepName
		present bool
	}{
		{StepResolve, d.Resolve != nil},
		{StepVerify, d.Verify != nil},
		{StepObserve, d.Observe != nil},
		{StepPlan, d.Plan != nil},
		{StepApply, d.Apply != nil},
	} {
		step := d.step(part.step)
		switch {
		case part.present && step == nil:
			return fmt.Errorf("evidence of %s without its step", part.step)
		case !part.present && step != nil && step.Error == nil:
			return fmt.Errorf("step %s succeeded without evidence", part.step)
		}
	}
	if d.MutationStarted && d.Operation != OperationApply {
		return errors.New("mutationStarted in an operation that cannot mutate")
	}
	if d.Apply != nil && d.Apply.MutationStarted && !d.MutationStarted {
		return errors.New("mutationStarted is false, but ptah reports a mutation")
	}
	if d.TargetIdentityDigest != "" && !report.IsDigest(d.TargetIdentityDigest) {
		return errors.New("targetIdentityDigest is not a sha256 digest")
	}
	return d.validatePlan()
}

func (d *Document) validatePlan() error {
	changes := d.Plan != nil && d.Plan.Outcome == report.OutcomeChanges
	switch {
	case len(d.PlanBytes) > 0 && d.PlanHeld:
		return errors.New("planBytes and planHeld exclude each other")
	case !changes && (len(d.PlanBytes) > 0 || d.PlanHeld):
		return errors.New("a plan without a report of changes")
	case len(d.PlanBytes) > report.MaxPlanBytes:
		return fmt.Errorf("planBytes is larger than %d bytes", report.MaxPlanBytes)
	case len(d.PlanBytes) > 0 && report.Digest(d.PlanBytes) != d.Plan.PlanDigest:
		return errors.New("planBytes does not have the digest of the report")
	case changes && d.Failed() == nil && len(d.PlanBytes) == 0 && !d.PlanHeld:
		return errors.New("a report of changes without the plan")
	}
	return nil
}

func (d *Document) step(name StepName) *Step {
	for i := range d.Steps {
		if d.Steps[i].Name == name {
			return &d.Steps[i]
		}
	}
	return nil
}

func (s *Step) validate() error {
	if s.StartedAt.IsZero() || s.FinishedAt.Before(s.StartedAt) {
		return errors.New("startedAt is missing, or finishedAt is before it")
	}
	if s.Error == nil {
		return nil
	}
	switch s.Error.Code {
	case ErrorProtocolMismatch, ErrorInvalidConfiguration, ErrorInvalidAccess, ErrorMissingTarget, ErrorTargetMismatch,
		ErrorPolicyMismatch, ErrorPlanDigestMismatch, ErrorDispatchExpired, ErrorExecutionExpired, ErrorExecution:
		if s.Error.Problem != nil {
			return errors.New("a problem of ptah under another error code")
		}
	case ErrorPtah:
		if s.Error.Problem == nil {
			return errors.New("an error of ptah without its problem")
		}
	default:
		return fmt.Errorf("unknown error code %q", s.Error.Code)
	}
	if s.Error.Message == "" || len(s.Error.Message) > MaxMessageBytes || !utf8.ValidString(s.Error.Message) {
		return fmt.Errorf("the error message is empty, not UTF-8 or longer than %d bytes", MaxMessageBytes)
	}
	return nil
}
