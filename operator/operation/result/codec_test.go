package result

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"ptah.run/ptah/operator/plan/report"
)

var at = time.Date(2026, 11, 29, 12, 0, 0, 0, time.UTC)

func step(name StepName) Step {
	return Step{Name: name, StartedAt: at, FinishedAt: at.Add(time.Second)}
}

func failing(name StepName, code ErrorCode) Step {
	s := step(name)
	s.Error = &Error{Code: code, Message: "it did not work"}
	if code == ErrorPtah {
		s.Error.Problem = &report.Problem{Code: report.CodeInternal, Message: "it did not work"}
	}
	return s
}

// refresh is a refresh that found changes.
func refresh() *Document {
	plan := []byte("plan\n")
	return &Document{
		ProtocolVersion: ProtocolVersion, Operation: OperationRefresh, OperationID: "op",
		Steps:   []Step{step(StepResolve), step(StepVerify), step(StepFetch), step(StepObserve), step(StepPlan)},
		Resolve: &report.Resolve{}, Verify: &report.Verify{}, Observe: &report.Drift{},
		Plan: &report.SchemaPlan{Outcome: report.OutcomeChanges, PlanDigest: report.Digest(plan)}, PlanBytes: plan,
		TargetIdentityDigest: "sha256:" + strings.Repeat("1", 64),
	}
}

// apply is an Apply that succeeded.
func apply() *Document {
	return &Document{
		ProtocolVersion: ProtocolVersion, Operation: OperationApply, OperationID: "op", Steps: []Step{step(StepApply)},
		Apply: &report.SchemaApply{Outcome: report.OutcomeApplied, MutationStarted: true}, MutationStarted: true,
	}
}

func TestADocumentIsReadAsItWasWritten(t *testing.T) {
	refused := refresh()
	refused.Steps = []Step{step(StepResolve), failing(StepVerify, ErrorPtah)}
	refused.Observe, refused.Plan, refused.PlanBytes, refused.TargetIdentityDigest = nil, nil, nil, ""
	foreign := &Document{ProtocolVersion: 2, Operation: OperationRefresh, OperationID: "op", Steps: []Step{failing(StepResolve, ErrorProtocolMismatch)}}
	for name, document := range map[string]*Document{"a refresh": refresh(), "an Apply": apply(), "a refusal": refused, "another protocol that says so": foreign} {
		t.Run(name, func(t *testing.T) {
			data, err := Encode(document)
			if err != nil {
				t.Fatal(err)
			}
			read, err := Decode(data)
			if err != nil {
				t.Fatal(err)
			}
			again, err := Encode(read)
			if err != nil || !bytes.Equal(again, data) {
				t.Errorf("written again as %s (%v), first %s", again, err, data)
			}
		})
	}
}

func TestADocumentThatContradictsItselfIsRefused(t *testing.T) {
	for name, test := range map[string]struct {
		document func() *Document
		spoil    func(*Document)
		want     string
	}{
		"another operation":           {refresh, func(d *Document) { d.Operation = "Drop" }, `operation "Drop" has no result`},
		"no operation ID":             {refresh, func(d *Document) { d.OperationID = "" }, "operationID is missing"},
		"no steps":                    {refresh, func(d *Document) { d.Steps = nil }, "at least one step"},
		"an unknown step":             {refresh, func(d *Document) { d.Steps[0].Name = "Guess" }, `"Guess" cannot come here`},
		"a step of another operation": {refresh, func(d *Document) { d.Steps[4].Name = StepApply }, `"Apply" cannot come here`},
		"steps in another order":      {refresh, func(d *Document) { d.Steps[0], d.Steps[1] = d.Steps[1], d.Steps[0] }, "cannot come here"},
		"a step twice":                {refresh, func(d *Document) { d.Steps[1].Name = StepResolve }, "cannot come here"},
		"a step after an error":       {refresh, func(d *Document) { d.Steps[3] = failing(StepObserve, ErrorExecution) }, "a step with an error is the last"},
		"no start":                    {refresh, func(d *Document) { d.Steps[0].StartedAt = time.Time{} }, "startedAt is missing"},
		"an end before the start":     {refresh, func(d *Document) { d.Steps[0].FinishedAt = at.Add(-1) }, "finishedAt is before it"},
		"an unknown error":            {refresh, func(d *Document) { d.Steps[4] = failing(StepPlan, "odd") }, `unknown error code "odd"`},
		"an error without a message":  {refresh, func(d *Document) { d.Steps[4] = failing(StepPlan, ErrorExecution); d.Steps[4].Error.Message = "" }, "the error message is empty"},
		"an endless message": {refresh, func(d *Document) {
			d.Steps[4] = failing(StepPlan, ErrorExecution)
			d.Steps[4].Error.Message = strings.Repeat("x", 4097)
		}, "longer than 4096 bytes"},
		"ptah's error without a problem": {refresh, func(d *Document) { d.Steps[4] = failing(StepPlan, ErrorPtah); d.Steps[4].Error.Problem = nil }, "without its problem"},
		"a problem under another code":   {refresh, func(d *Document) { d.Steps[4] = failing(StepPlan, ErrorPtah); d.Steps[4].Error.Code = ErrorExecution }, "a problem of ptah under another error code"},
		"evidence without a step":        {refresh, func(d *Document) { d.Steps = d.Steps[:4] }, "evidence of Plan without its step"},
		"a step without evidence":        {refresh, func(d *Document) { d.Observe = nil }, "step Observe succeeded without evidence"},
		"a mutation in a refresh":        {refresh, func(d *Document) { d.MutationStarted = true }, "in an operation that cannot mutate"},
		"a mutation that is denied":      {apply, func(d *Document) { d.MutationStarted = false }, "mutationStarted is false, but ptah reports a mutation"},
		"a malformed target":             {refresh, func(d *Document) { d.TargetIdentityDigest = "x" }, "targetIdentityDigest is not a sha256 digest"},
		"a plan both held and sent":      {refresh, func(d *Document) { d.PlanHeld = true }, "exclude each other"},
		"a plan without changes":         {refresh, func(d *Document) { d.Plan.Outcome = report.OutcomeNoChanges }, "a plan without a report of changes"},
		"changes without a plan":         {refresh, func(d *Document) { d.PlanBytes = nil }, "a report of changes without the plan"},
		"another plan":                   {refresh, func(d *Document) { d.PlanBytes[0] ^= 1 }, "planBytes does not have the digest"},
		"another protocol":               {refresh, func(d *Document) { d.ProtocolVersion = 2 }, "protocol version 2 is not 1"},
		"another protocol with evidence": {apply, func(d *Document) { d.ProtocolVersion = 2; d.Steps[0] = failing(StepApply, ErrorProtocolMismatch) }, "protocol version 2 is not 1"},
	} {
		t.Run(name, func(t *testing.T) {
			document := test.document()
			test.spoil(document)
			if _, err := Encode(document); err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("error %v, want one with %q", err, test.want)
			}
		})
	}
}

func TestOnlyOneStrictDocumentIsRead(t *testing.T) {
	data, err := Encode(refresh())
	if err != nil {
		t.Fatal(err)
	}
	for name, test := range map[string]struct {
		data []byte
		want string
	}{
		"an unknown field": {bytes.Replace(data, []byte("{"), []byte(`{"odd":1,`), 1), "unknown field"},
		"two documents":    {append(bytes.Clone(data), data...), "more than one JSON document"},
		"no JSON":          {[]byte("hello"), "not a result document"},
		"too much":         {bytes.Repeat([]byte(" "), MaxBytes+1), "larger than 12582912 bytes"},
	} {
		if _, err := Decode(test.data); err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s: error %v, want one with %q", name, err, test.want)
		}
	}
}

func FuzzDecode(f *testing.F) {
	for _, document := range []*Document{refresh(), apply()} {
		data, err := Encode(document)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(data)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		document, err := Decode(data)
		if err != nil {
			return
		}
		if _, err := Encode(document); err != nil {
			t.Errorf("%q was accepted and cannot be written: %v", data, err)
		}
	})
}
