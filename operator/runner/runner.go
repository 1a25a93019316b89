// Package runner is what runs first in every operation container. It checks what the manager asked for, runs ptah as a
// child with the least environment that the child needs, reads the child's reports strictly, and delivers one result
// document. It holds no Kubernetes client and uses no shell. It opens no database and no registry itself, and it never
// decides that something succeeded: the manager decides by the delivered document, never by an exit code.
package runner

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"strings"
	"time"

	"ptah.run/ptah/operator/operation/result"
)

// Exit codes of the runner. They are for people who read a Pod's status.
const (
	// ExitDone says that a document was delivered, or handed to the next container, and that the operation did what
	// was asked.
	ExitDone = 0
	// ExitFailed says that a document was delivered and that it ends with an error.
	ExitFailed = 1
	// ExitUndelivered says that nothing was delivered: the configuration is not usable or nobody acknowledged.
	ExitUndelivered = 2
)

// PtahPath is where the executor image holds ptah.
const PtahPath = "/usr/local/bin/ptah"

// Program is a runner with what it takes from its process.
type Program struct {
	// Environment looks a variable up.
	Environment func(name string) (value string, found bool)
	// Executable returns the path of the runner itself, for install.
	Executable func() (string, error)
	// Ptah is the path of the executor program.
	Ptah string
	// Log gets lines for people, redacted.
	Log io.Writer
	// Now is the clock that deadlines are held against.
	Now func() time.Time
	// RetryPause is the time between two attempts to deliver.
	RetryPause time.Duration
}

// Run does what one container does: "install PATH", "source" or "database". The end of ctx is a request to stop.
func (p *Program) Run(ctx context.Context, arguments []string) int {
	usage := "usage: ptah-runner install PATH | source | database"
	switch {
	case len(arguments) == 2 && arguments[0] == "install":
		if err := p.install(arguments[1]); err != nil {
			_, _ = fmt.Fprintf(p.Log, "ptah-runner: install: %v\n", err) // the exit code says it too
			return ExitUndelivered
		}
		return ExitDone
	case len(arguments) == 1 && (arguments[0] == "source" || arguments[0] == "database"):
		return p.operate(ctx, arguments[0])
	}
	_, _ = fmt.Fprintf(p.Log, "ptah-runner: %q is not understood; %s\n", strings.Join(arguments, " "), usage)
	return ExitUndelivered
}

// session is one container's work.
type session struct {
	program  *Program
	redactor *redactor
	log      *slog.Logger
	common   common
	stop     *stopping
	child    *ptah
	outbox   *outbox
	document *result.Document
}

func (p *Program) operate(ctx context.Context, container string) int {
	redactor := newRedactor()
	redactor.addEnvironment(p.Environment)
	log := slog.New(slog.NewTextHandler(&redactingWriter{to: p.Log, redactor: redactor}, nil))

	basic, problem := readCommon(p.Environment)
	box, err := newOutbox(p.Environment, basic, p.RetryPause)
	if err != nil {
		log.Error("No result can be delivered", "error", err)
		return ExitUndelivered
	}
	s := &session{
		program:  p,
		redactor: redactor,
		log:      log,
		common:   basic,
		stop:     newStopping(ctx, basic.grace),
		outbox:   box,
		document: &result.Document{
			ProtocolVersion: result.ProtocolVersion,
			Operation:       basic.operation,
			OperationID:     basic.operationID,
		},
	}
	s.child = &ptah{path: p.Ptah, environment: p.Environment, stop: s.stop, redactor: redactor}
	switch {
	case problem != nil:
		s.fail(firstStep(container, basic.operation), problem)
	case container == "source":
		return s.runSource()
	case basic.operation == result.OperationApply:
		return s.runApply()
	default:
		s.runRefresh()
	}
	return s.deliver()
}

// firstStep is the step that an error before any step belongs to.
func firstStep(container, operation string) result.StepName {
	switch {
	case operation == result.OperationApply:
		return result.StepApply
	case container == "source":
		return result.StepResolve
	}
	return result.StepObserve
}

// step runs one step and records it. It returns whether the chain goes on.
func (s *session) step(name result.StepName, work func() *result.Error) bool {
	if err := s.stop.stopped(); err != nil {
		return s.fail(name, executionError("the operation was stopped before this step: %v", err))
	}
	started := s.program.Now()
	problem := work()
	return s.record(result.Step{Name: name, StartedAt: started, FinishedAt: s.program.Now(), Error: problem})
}

func (s *session) fail(name result.StepName, problem *result.Error) bool {
	now := s.program.Now()
	return s.record(result.Step{Name: name, StartedAt: now, FinishedAt: now, Error: problem})
}

func (s *session) record(step result.Step) bool {
	// Times travel without their monotonic part.
	step.StartedAt, step.FinishedAt = step.StartedAt.UTC().Round(0), step.FinishedAt.UTC().Round(0)
	if step.FinishedAt.Before(step.StartedAt) {
		step.FinishedAt = step.StartedAt
	}
	if step.Error != nil {
		step.Error.Message = s.redactor.message(step.Error.Message)
		if step.Error.Problem != nil {
			step.Error.Problem.Message = s.redactor.message(step.Error.Problem.Message)
		}
	}
	s.document.Steps = append(s.document.Steps, step)
	if step.Error != nil {
		s.log.Error("Step failed", "step", step.Name, "code", step.Error.Code, "message", step.Error.Message)
		return false
	}
	s.log.Info("Step done", "step", step.Name, "took", step.FinishedAt.Sub(step.StartedAt).String())
	return true
}

// deliver sends the document and returns the exit code.
func (s *session) deliver() int {
	data, err := result.Encode(s.document)
	if err != nil {
		s.log.Error("The result contradicts itself", "error", err)
		return ExitUndelivered
	}
	receipt, err := s.outbox.deliver(s.stop.delivery, data)
	if err != nil {
		s.log.Error("The result was not acknowledged", "error", err)
		return ExitUndelivered
	}
	s.log.Info("Result acknowledged", "record", receipt.Record, "bytes", receipt.Size)
	if s.document.Failed() != nil {
		return ExitFailed
	}
	return ExitDone
}

func newError(code result.ErrorCode, format string, arguments ...any) *result.Error {
	return &result.Error{Code: code, Message: fmt.Sprintf(format, arguments...)}
}

func executionError(format string, arguments ...any) *result.Error {
	return newError(result.ErrorExecution, format, arguments...)
}

func configurationError(format string, arguments ...any) *result.Error {
	return newError(result.ErrorInvalidConfiguration, format, arguments...)
}
