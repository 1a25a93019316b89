package runner

import (
	"os"
	"path/filepath"

	"ptah.run/ptah/operator/operation/env"
	"ptah.run/ptah/operator/operation/result"
	"ptah.run/ptah/operator/plan/report"
)

// refreshSettings is what the database container of a refresh is told.
type refreshSettings struct {
	databaseSettings
	heldPlan       string
	provenArtifact string
	provenDump     string
	provenTarget   string
}

// runRefresh observes and plans, with the database credential and without the registry's.
func (s *session) runRefresh() {
	need := &requirements{lookup: s.program.Environment}
	settings := refreshSettings{
		databaseSettings: readDatabaseSettings(need),
		heldPlan:         need.optionalDigest(env.HeldPlanDigest),
		provenArtifact:   need.optionalDigest(env.ProvenArtifact),
		provenDump:       need.optionalDigest(env.ProvenDumpDigest),
		provenTarget:     need.optionalDigest(env.ProvenTargetIdentity),
	}
	need.path(env.WorkDir)
	s.refuseRegistryCredentials(need)
	if problem := s.takeOver(); problem != nil {
		s.fail(result.StepObserve, problem)
		return
	}
	var read reading
	if s.step(result.StepObserve, func() *result.Error {
		if need.problem != nil {
			return need.problem
		}
		return s.observe(settings, &read)
	}) {
		s.step(result.StepPlan, func() *result.Error { return s.plan(settings, &read) })
	}
	if read.directory != "" {
		_ = os.RemoveAll(read.directory) // the folder ends with the Pod
	}
}

func (s *session) refuseRegistryCredentials(need *requirements) {
	for _, name := range []string{env.OCIUsername, env.OCIPassword, env.OCIToken, env.OCIDockerConfig, env.AuthRegistryGrant} {
		if _, found := s.program.Environment(name); found {
			need.fail("%s is set in the container that holds the database credential", name)
		}
	}
}

// database runs a child that may open the database.
func (s *session) database(call invocation) (outcome, *result.Error) {
	call.variables = databaseVariables
	left, err := s.child.run(call)
	if err != nil {
		return outcome{}, executionError("%v", err)
	}
	return left, nil
}

// reading is what one run of "ptah schema plan" left: it reads the database once, reports the drift of that reading and
// the plan that follows from it. Two runs could see two states, and would cost a scratch server each.
type reading struct {
	directory string // of the plan file
	file      string
	report    report.SchemaPlan
	problem   *result.Error // of the plan, where the database was read
}

// observe lets ptah read and plan, and takes the evidence of the reading. What went wrong before the database was read
// is this step's error; what went wrong after it is the plan's.
func (s *session) observe(settings refreshSettings, read *reading) *result.Error {
	directory, err := os.MkdirTemp(s.temporary(), "plan-")
	if err != nil {
		return executionError("the folder for the plan could not be made: %v", err)
	}
	read.directory, read.file = directory, filepath.Join(directory, "plan.json")
	decoded, problem := s.readAndPlan(settings, read, s.proof(settings))
	if decoded && read.report.Unchanged && read.report.TargetIdentity != settings.provenTarget {
		// The proof was made for another database: the answer is computed instead of remembered.
		decoded, problem = s.readAndPlan(settings, read, nil)
	}
	if !decoded {
		return problem
	}
	found := &read.report
	if report.IsDigest(found.TargetIdentity) {
		s.document.TargetIdentityDigest = found.TargetIdentity
	}
	if found.FromFingerprint == "" {
		if problem != nil {
			return problem
		}
		return executionError("ptah schema plan named no fingerprint of what it read")
	}
	if problem := settings.checkTarget("schema plan", found.Dialect, found.TargetIdentity); problem != nil {
		return problem
	}
	if read.problem = problem; problem != nil {
		return s.drift(settings)
	}
	s.document.Observe = &report.Drift{
		ContractVersion: found.ContractVersion, Outcome: found.Outcome, Dialect: found.Dialect, ServerVersion: found.ServerVersion,
		Fingerprint: found.FromFingerprint, TargetIdentity: found.TargetIdentity,
		HighestSeverity: found.HighestSeverity, Findings: found.Findings,
	}
	return nil
}

func (s *session) readAndPlan(settings refreshSettings, read *reading, proof []string) (bool, *result.Error) {
	arguments := append([]string{"schema", "plan", "--schema=" + s.common.sourceDir(), "--output=" + read.file}, settings.connection()...)
	arguments = append(append(arguments, settings.scope()...), proof...)
	left, problem := s.database(invocation{arguments: arguments})
	if problem != nil {
		return false, problem
	}
	read.report = report.SchemaPlan{}
	return readReport("schema plan", left, &read.report, report.OutcomeChanges, report.OutcomeNoChanges)
}

// drift counts the differences where no plan exists that could say them.
func (s *session) drift(settings refreshSettings) *result.Error {
	arguments := append([]string{"schema", "drift", "--schema=" + s.common.sourceDir()}, settings.connection()...)
	left, problem := s.database(invocation{arguments: append(arguments, settings.scope()...)})
	if problem != nil {
		return problem
	}
	var found report.Drift
	decoded, problem := readReport("schema drift", left, &found, report.OutcomeChanges, report.OutcomeNoChanges)
	if decoded {
		s.document.Observe = &found
	}
	if problem != nil {
		return problem
	}
	if !report.IsDigest(found.Fingerprint) {
		return executionError("ptah schema drift named no fingerprint of what it read")
	}
	if problem := settings.checkTarget("schema drift", found.Dialect, found.TargetIdentity); problem != nil {
		return problem
	}
	if found.TargetIdentity != s.document.TargetIdentityDigest {
		return newError(result.ErrorTargetMismatch, "ptah schema plan and ptah schema drift read different databases")
	}
	return nil
}

// checkTarget compares what a report says of the database with what the operation was claimed for.
func (d databaseSettings) checkTarget(command, dialect, identity string) *result.Error {
	switch {
	case dialect != d.dialect:
		return newError(result.ErrorTargetMismatch, "ptah %s read a database of dialect %q, and the operation is for %q", command, dialect, d.dialect)
	case !report.IsDigest(identity):
		return newError(result.ErrorTargetMismatch, "ptah %s named no identity of the database", command)
	case d.expectedTarget != "" && identity != d.expectedTarget:
		return newError(result.ErrorTargetMismatch, "the database URL leads to another database (%s) than the operation was claimed for (%s)", identity, d.expectedTarget)
	}
	return nil
}

// plan judges what ptah planned, and checks that it would run.
func (s *session) plan(settings refreshSettings, read *reading) *result.Error {
	found := &read.report
	s.document.Plan = found
	switch {
	case read.problem != nil:
		return read.problem
	case !report.IsDigest(found.FromFingerprint):
		return executionError("ptah schema plan named no fingerprint of what it read")
	case found.Outcome == report.OutcomeNoChanges:
		return nil
	case found.PlanDigest == settings.heldPlan:
		s.document.PlanHeld = true
		return nil
	}
	return s.takePlan(settings, found, read.file)
}

// proof are the flags by which an unchanged database is recognised without planning. They hold only for the artifact
// that was proven.
func (s *session) proof(settings refreshSettings) []string {
	if settings.provenDump == "" || settings.provenTarget == "" || settings.provenArtifact != s.document.Resolve.Digest {
		return nil
	}
	return []string{"--proven-dump-digest=" + settings.provenDump, "--proven-artifact=" + settings.provenArtifact}
}

// temporary is where ptah's scratch files are, too.
func (s *session) temporary() string {
	directory, _ := s.program.Environment("TMPDIR")
	return directory
}

// takePlan reads the plan file, compares it with the report, and lets ptah try it without executing anything.
func (s *session) takePlan(settings refreshSettings, found *report.SchemaPlan, file string) *result.Error {
	data, err := readBounded(file, report.MaxPlanBytes)
	if err != nil {
		return executionError("the plan that ptah wrote: %v", err)
	}
	if report.Digest(data) != found.PlanDigest || int64(len(data)) != found.PlanSize {
		return newError(result.ErrorPlanDigestMismatch, "the plan that ptah wrote does not have the digest and size that it reported")
	}
	decoded, err := report.DecodePlan(data)
	switch {
	case err != nil:
		return executionError("the plan that ptah wrote could not be read: %v", err)
	case decoded.Dialect != settings.dialect || decoded.FromFingerprint != found.FromFingerprint || decoded.ToFingerprint != found.ToFingerprint ||
		len(decoded.Statements) != found.Statements || decoded.Destructive != found.Destructive:
		return executionError("the plan that ptah wrote is not the one that it reported")
	}
	if problem := s.rehearse(settings.databaseSettings, file, found.PlanDigest, found.Statements); problem != nil {
		return problem
	}
	s.document.PlanBytes = data
	return nil
}

// rehearse lets ptah do everything of an Apply but execute: the digest and the number of statements must agree.
func (s *session) rehearse(settings databaseSettings, file, digest string, statements int) *result.Error {
	arguments := append([]string{"schema", "apply", "--plan=" + file, "--expect-digest=" + digest, "--dry-run"}, settings.connection()...)
	arguments = append(arguments, settings.scope()...)
	left, problem := s.database(invocation{arguments: arguments})
	if problem != nil {
		return problem
	}
	var found report.SchemaApply
	if _, problem := readReport("schema apply --dry-run", left, &found, report.OutcomeDryRun); problem != nil {
		return problem
	}
	switch {
	case found.MutationStarted || found.Executed != 0:
		return executionError("ptah schema apply --dry-run reports that it executed statements")
	case found.PlanDigest != digest:
		return newError(result.ErrorPlanDigestMismatch, "ptah schema apply --dry-run read another plan than it was given")
	case statements > 0 && found.Statements != statements:
		return executionError("ptah schema apply --dry-run counts %d statements where the plan has %d", found.Statements, statements)
	}
	return settings.checkTarget("schema apply --dry-run", found.Dialect, found.TargetIdentity)
}
