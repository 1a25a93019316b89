package runner

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"ptah.run/ptah/operator/operation/env"
	"ptah.run/ptah/operator/operation/result"
	"ptah.run/ptah/operator/plan/report"
)

// runSource resolves, verifies and fetches the artifact, with the registry credential and without the database's. Its
// success is handed to the database container; its failure is delivered, and ends the Pod.
func (s *session) runSource() int {
	if s.common.operation != result.OperationRefresh {
		s.fail(result.StepApply, configurationError("an Apply has no source container"))
		return s.deliver()
	}
	if !s.source() {
		return s.deliver()
	}
	if err := s.handOver(); err != nil {
		s.log.Error("The next container could not be told", "error", err)
		// The last step is taken back, because a document ends with its error.
		s.document.Steps = s.document.Steps[:len(s.document.Steps)-1]
		s.fail(result.StepFetch, executionError("the result of this container could not be kept: %v", err))
		return s.deliver()
	}
	return ExitDone
}

// sourceSettings is what the source container is told.
type sourceSettings struct {
	reference    string
	policyFile   string
	policyDigest string
}

func (s *session) source() bool {
	need := &requirements{lookup: s.program.Environment}
	settings := sourceSettings{
		reference:    need.text(env.RequestedReference),
		policyFile:   need.path(env.VerificationPolicy),
		policyDigest: need.digest(env.ExpectedPolicyDigest),
	}
	need.path(env.WorkDir)
	if _, found := s.program.Environment(env.DatabaseURL); found {
		need.fail("a database URL is set in the container that holds the registry credential")
	}
	var reach *access
	var policy string
	return s.step(result.StepResolve, func() *result.Error {
		if need.problem != nil {
			return need.problem
		}
		var problem *result.Error
		if reach, problem = s.prepareAccess(settings.reference); problem != nil {
			return problem
		}
		if policy, problem = s.readPolicy(settings.policyFile, settings.policyDigest); problem != nil {
			return problem
		}
		return s.resolve(settings.reference, reach)
	}) && s.step(result.StepVerify, func() *result.Error {
		return s.verify(settings, policy, reach)
	}) && s.step(result.StepFetch, func() *result.Error {
		return s.fetch(reach)
	})
}

// registry runs a child that may talk to the registry.
func (s *session) registry(reach *access, arguments ...string) (outcome, *result.Error) {
	call := invocation{arguments: arguments, variables: registryVariables}
	if reach.caFile != "" {
		call.extra = []string{env.OCICAFile + "=" + reach.caFile}
	}
	left, err := s.child.run(call)
	if err != nil {
		return outcome{}, executionError("%v", err)
	}
	return left, nil
}

func (s *session) resolve(reference string, reach *access) *result.Error {
	left, problem := s.registry(reach, "oci", "resolve", reference, "--format=json")
	if problem != nil {
		return problem
	}
	var found report.Resolve
	decoded, problem := readReport("oci resolve", left, &found, report.OutcomeFound)
	if decoded {
		s.document.Resolve = &found
	}
	if problem != nil {
		return problem
	}
	authority, err := authorityOf(found.PinnedReference)
	asked := pinnedDigest(reference)
	switch {
	case !report.IsDigest(found.Digest) || pinnedDigest(found.PinnedReference) != found.Digest:
		return executionError("ptah oci resolve named no digest for the reference")
	case err != nil || authority != reach.authority:
		return executionError("ptah oci resolve answered with a reference to another registry")
	case asked != "" && asked != found.Digest:
		return executionError("ptah oci resolve answered with another digest than the reference has")
	}
	return nil
}

func (s *session) verify(settings sourceSettings, policy string, reach *access) *result.Error {
	pinned := s.document.Resolve
	left, problem := s.registry(reach, "oci", "verify", pinned.PinnedReference, "--policy="+policy, "--requested="+settings.reference, "--format=json")
	if problem != nil {
		return problem
	}
	var found report.Verify
	decoded, problem := readReport("oci verify", left, &found, report.OutcomeFound)
	if decoded {
		s.document.Verify = &found
	}
	switch {
	case problem != nil:
		return problem
	case found.Digest != pinned.Digest:
		return executionError("ptah oci verify looked at another artifact than was resolved")
	case found.PolicyDigest != settings.policyDigest:
		return newError(result.ErrorPolicyMismatch, "ptah oci verify used the policy %s instead of %s", found.PolicyDigest, settings.policyDigest)
	case len(found.Findings) > 0:
		return executionError("ptah oci verify reported success with %d findings", len(found.Findings))
	case len(found.Satisfied) == 0:
		return executionError("ptah oci verify reported success without a requirement that is met")
	}
	return nil
}

func (s *session) fetch(reach *access) *result.Error {
	// The folder must be new: nothing but what this fetch wrote may be planned.
	if err := os.Mkdir(s.common.sourceDir(), 0o755); err != nil {
		return executionError("the folder for the artifact could not be made: %v", errors.Unwrap(err))
	}
	left, problem := s.registry(reach, "schema", "pull", s.document.Resolve.PinnedReference, "--output="+s.common.sourceDir(), "--format=json")
	if problem != nil {
		return problem
	}
	var found report.Pull
	if _, problem := readReport("schema pull", left, &found, report.OutcomeFound); problem != nil {
		return problem
	}
	if found.Digest != s.document.Resolve.Digest {
		return executionError("ptah schema pull fetched another artifact than was resolved")
	}
	entries, err := os.ReadDir(s.common.sourceDir())
	if err != nil || len(entries) != found.Files || found.Files == 0 {
		return executionError("ptah schema pull left %d files and reported %d", len(entries), found.Files)
	}
	return nil
}

// handOver writes the document so far for the database container.
func (s *session) handOver() error {
	data, err := result.Encode(s.document)
	if err != nil {
		return err
	}
	temporary := s.common.sourceResultPath() + ".new"
	if err := os.WriteFile(temporary, data, 0o444); err != nil {
		return fmt.Errorf("write %s: %w", filepath.Base(temporary), err)
	}
	return os.Rename(temporary, s.common.sourceResultPath())
}

// takeOver reads what the source container left, and refuses what is not a whole success of this very operation.
func (s *session) takeOver() *result.Error {
	data, err := readBounded(s.common.sourceResultPath(), maxReportBytes)
	if err != nil {
		return executionError("the source container's result: %v", err)
	}
	before, err := result.Decode(data)
	if err != nil {
		return executionError("the source container's result could not be read: %v", err)
	}
	names := make([]string, 0, len(before.Steps))
	for _, step := range before.Steps {
		names = append(names, string(step.Name))
	}
	whole := strings.Join([]string{string(result.StepResolve), string(result.StepVerify), string(result.StepFetch)}, " ")
	switch {
	case before.Operation != s.common.operation || before.OperationID != s.common.operationID:
		return executionError("the source container's result is of another operation")
	case before.Failed() != nil || strings.Join(names, " ") != whole:
		return executionError("the source container's result is not a success")
	}
	s.document.Steps = append(s.document.Steps, before.Steps...)
	s.document.Resolve, s.document.Verify = before.Resolve, before.Verify
	return nil
}
