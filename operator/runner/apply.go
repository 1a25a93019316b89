package runner

import (
	"errors"
	"os"
	"path/filepath"
	"time"

	"ptah.run/ptah/operator/operation/env"
	"ptah.run/ptah/operator/operation/result"
	"ptah.run/ptah/operator/plan/report"
)

// applySettings is what the database container of an Apply is told.
type applySettings struct {
	databaseSettings
	planDigest        string
	dispatchNotAfter  time.Time
	executionNotAfter time.Time
}

// runApply executes one approved plan. The receiver is asked for its bytes first, under the very checks that the result
// will be taken by: an Apply that could not deliver would leave its outcome unknown, so it does not begin.
func (s *session) runApply() int {
	need := &requirements{lookup: s.program.Environment}
	settings := applySettings{
		databaseSettings:  readDatabaseSettings(need),
		planDigest:        need.digest(env.ExpectedPlanDigest),
		dispatchNotAfter:  need.instant(env.DispatchNotAfter),
		executionNotAfter: need.instant(env.ExecutionNotAfter),
	}
	need.digest(env.ExpectedTargetIdentity)
	if !s.common.graceGiven {
		need.fail("%s is missing", env.TerminationGraceSecs)
	}
	s.refuseRegistryCredentials(need)
	if need.problem == nil && settings.executionNotAfter.Before(settings.dispatchNotAfter) {
		need.fail("%s is before %s", env.ExecutionNotAfter, env.DispatchNotAfter)
	}
	s.step(result.StepApply, func() *result.Error {
		if need.problem != nil {
			return need.problem
		}
		return s.apply(settings)
	})
	return s.deliver()
}

func (s *session) apply(settings applySettings) *result.Error {
	if problem := s.checkDeadlines(settings); problem != nil {
		return problem
	}
	data, err := s.outbox.plan(s.stop.ctx)
	if err != nil {
		return executionError("the approved plan could not be fetched: %v", err)
	}
	if report.Digest(data) != settings.planDigest {
		return newError(result.ErrorPlanDigestMismatch, "the plan that was fetched is not the one that was approved")
	}
	decoded, err := report.DecodePlan(data)
	if err != nil {
		return executionError("the approved plan could not be read: %v", err)
	}
	if decoded.Dialect != settings.dialect {
		return newError(result.ErrorTargetMismatch, "the approved plan is for %q and the database is %q", decoded.Dialect, settings.dialect)
	}
	directory, err := os.MkdirTemp(s.temporary(), "apply-")
	if err != nil {
		return executionError("the folder for the plan could not be made: %v", err)
	}
	defer func() { _ = os.RemoveAll(directory) }() // the folder ends with the Pod
	file := filepath.Join(directory, "plan.json")
	if err := os.WriteFile(file, data, 0o400); err != nil {
		return executionError("the plan could not be written: %v", err)
	}
	// The rehearsal reads which database the URL leads to, before anything can change there.
	if problem := s.rehearse(settings.databaseSettings, file, settings.planDigest, len(decoded.Statements)); problem != nil {
		return problem
	}
	if err := s.stop.stopped(); err != nil {
		return executionError("%v before anything was executed", err)
	}
	return s.execute(settings, file, len(decoded.Statements))
}

func (s *session) checkDeadlines(settings applySettings) *result.Error {
	now := s.program.Now()
	switch {
	case !now.Before(settings.dispatchNotAfter):
		return newError(result.ErrorDispatchExpired, "the Apply was to start before %s; nothing was executed", settings.dispatchNotAfter.Format(time.RFC3339))
	case !now.Before(settings.executionNotAfter):
		return newError(result.ErrorExecutionExpired, "the Apply was to end before %s; nothing was executed", settings.executionNotAfter.Format(time.RFC3339))
	}
	return nil
}

// errDeadline carries the problem that stopped a child from being started.
var errDeadline = errors.New("a deadline passed before ptah was started")

// execute starts the one child that changes the database.
func (s *session) execute(settings applySettings, file string, statements int) *result.Error {
	arguments := append([]string{"schema", "apply", "--plan=" + file, "--expect-digest=" + settings.planDigest, "--auto-approve"}, settings.connection()...)
	arguments = append(arguments, settings.scope()...)
	var expired *result.Error
	left, err := s.child.run(invocation{
		arguments: arguments,
		variables: databaseVariables,
		notAfter:  settings.executionNotAfter,
		now:       s.program.Now,
		beforeStart: func() error {
			if expired = s.checkDeadlines(settings); expired != nil {
				return errDeadline
			}
			return nil
		},
	})
	if expired != nil {
		return expired
	}
	s.document.MutationStarted = left.started
	if err != nil {
		return executionError("%v; nothing was executed", err)
	}
	var found report.SchemaApply
	decoded, problem := readReport("schema apply", left, &found, report.OutcomeApplied, report.OutcomeNoChanges)
	if decoded {
		s.document.Apply = &found
	}
	switch {
	case problem != nil:
		return problem
	case found.Outcome != report.OutcomeApplied:
		return executionError("ptah schema apply reported %q; an approved plan must be applied", found.Outcome)
	case found.PlanDigest != settings.planDigest:
		return newError(result.ErrorPlanDigestMismatch, "ptah schema apply executed another plan than was approved")
	case found.Statements != statements || found.Executed != statements:
		return executionError("ptah schema apply reported success after %d of %d statements", found.Executed, statements)
	}
	return settings.checkTarget("schema apply", found.Dialect, found.TargetIdentity)
}
