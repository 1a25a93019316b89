package runner

import (
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"ptah.run/ptah/operator/operation/env"
	"ptah.run/ptah/operator/operation/result"
	"ptah.run/ptah/operator/plan/report"
)

func (b *bench) wantRequests(methods ...string) {
	b.t.Helper()
	got := []string{}
	for _, request := range b.post.requests {
		method, _, _ := strings.Cut(request, " ")
		got = append(got, method)
	}
	if !slices.Equal(got, methods) {
		b.t.Errorf("the receiver was asked %v, want %v", got, methods)
	}
}

func TestAnApplyAsksTheReceiverFirstAndExecutesTheApprovedBytes(t *testing.T) {
	b := applyBench(t)
	b.wantExit(b.run("database"), ExitDone)
	b.wantRequests(http.MethodGet, http.MethodPut)
	b.wantCommands("schema apply --dry-run", "schema apply")
	document := b.delivered()
	if !document.MutationStarted || document.Apply.Outcome != report.OutcomeApplied || document.TargetIdentityDigest != "" && document.TargetIdentityDigest != target {
		t.Errorf("delivered %+v", document)
	}
	executed := b.calls()[1]
	if !slices.Contains(executed.Arguments, "--auto-approve") || executed.flag("expect-digest") != report.Digest(examplePlan(t)) {
		t.Errorf("ptah was called with %v", executed.Arguments)
	}
}

func TestNothingIsExecutedWhereTheReceiverWouldNotTakeTheResult(t *testing.T) {
	b := applyBench(t)
	b.post.planFault = true
	b.post.answers = []int{http.StatusForbidden}
	b.wantExit(b.run("database"), ExitUndelivered)
	b.wantRequests(http.MethodGet, http.MethodPut)
	b.wantCommands()
}

func TestAnApplyIsRefusedBeforeAnythingIsExecuted(t *testing.T) {
	past := time.Now().Add(-time.Minute).UTC().Format(time.RFC3339)
	rehearsed := []string{"schema apply --dry-run"}
	for name, test := range map[string]struct {
		change  func(*bench)
		code    result.ErrorCode
		message string
		ran     []string
	}{
		"no plan digest":             {func(b *bench) { delete(b.env, env.ExpectedPlanDigest) }, result.ErrorInvalidConfiguration, "PTAH_EXPECTED_PLAN_DIGEST is missing", nil},
		"no expected database":       {func(b *bench) { delete(b.env, env.ExpectedTargetIdentity) }, result.ErrorInvalidConfiguration, "PTAH_EXPECTED_TARGET_IDENTITY_DIGEST is missing", nil},
		"no database URL":            {func(b *bench) { delete(b.env, env.DatabaseURL) }, result.ErrorInvalidConfiguration, "PTAH_DB_URL is missing", nil},
		"no dispatch deadline":       {func(b *bench) { delete(b.env, env.DispatchNotAfter) }, result.ErrorInvalidConfiguration, "PTAH_DISPATCH_NOT_AFTER is missing", nil},
		"no execution deadline":      {func(b *bench) { delete(b.env, env.ExecutionNotAfter) }, result.ErrorInvalidConfiguration, "PTAH_EXECUTION_NOT_AFTER is missing", nil},
		"a malformed deadline":       {func(b *bench) { b.env[env.DispatchNotAfter] = "tomorrow" }, result.ErrorInvalidConfiguration, "is not an RFC 3339 time", nil},
		"deadlines in wrong order":   {func(b *bench) { b.env[env.ExecutionNotAfter] = past }, result.ErrorInvalidConfiguration, "PTAH_EXECUTION_NOT_AFTER is before PTAH_DISPATCH_NOT_AFTER", nil},
		"no grace":                   {func(b *bench) { delete(b.env, env.TerminationGraceSecs) }, result.ErrorInvalidConfiguration, "PTAH_TERMINATION_GRACE_PERIOD_SECONDS is missing", nil},
		"a registry credential":      {func(b *bench) { b.env[env.OCIToken] = "x" }, result.ErrorInvalidConfiguration, "PTAH_OCI_TOKEN is set in the container", nil},
		"the dispatch deadline past": {func(b *bench) { b.env[env.DispatchNotAfter] = past }, result.ErrorDispatchExpired, "nothing was executed", nil},
		"no plan served":             {func(b *bench) { b.post.planFault = true }, result.ErrorExecution, "the approved plan could not be fetched: the receiver answered 403: the Apply is no longer", nil},
		"other bytes served":         {func(b *bench) { b.post.plan = append(slices.Clone(b.post.plan), ' ') }, result.ErrorPlanDigestMismatch, "is not the one that was approved", nil},
		"bytes that are no plan": {func(b *bench) {
			b.post.plan = []byte("{}")
			b.env[env.ExpectedPlanDigest] = report.Digest(b.post.plan)
		}, result.ErrorExecution, "the approved plan could not be read", nil},
		"a plan for another dialect": {func(b *bench) {
			b.env[env.ExpectedDialect], b.env[env.DatabaseURL] = report.DialectMySQL, "mysql://app:secret@db/shop"
		}, result.ErrorTargetMismatch, `the approved plan is for "postgresql"`, nil},
		"another database": {func(b *bench) {
			edit(b, "schema apply --dry-run", func(r *report.SchemaApply) { r.TargetIdentity = otherTarget })
		}, result.ErrorTargetMismatch, "leads to another database", rehearsed},
		"a changed database": {func(b *bench) {
			edit(b, "schema apply --dry-run", func(r *report.SchemaApply) {
				r.Outcome, r.Problem = report.OutcomeRefused, &report.Problem{Code: report.CodeStalePlan, Message: "the database changed since the plan was computed"}
			})
			told := b.script["schema apply --dry-run"]
			told.Exit = 3
			b.script["schema apply --dry-run"] = told
		}, result.ErrorPtah, "the database changed since the plan was computed", rehearsed},
	} {
		t.Run(name, func(t *testing.T) {
			b := applyBench(t)
			test.change(b)
			b.wantExit(b.run("database"), ExitFailed)
			document := b.wantError(result.StepApply, test.code, test.message)
			b.wantCommands(test.ran...)
			if document.MutationStarted || document.Apply != nil {
				t.Error("a refused Apply says that it may have changed something")
			}
		})
	}
}

func TestDeadlinesAreCheckedAgainImmediatelyBeforeTheStart(t *testing.T) {
	for name, test := range map[string]struct {
		dispatch time.Duration
		code     result.ErrorCode
	}{
		"the dispatch deadline":  {time.Minute, result.ErrorDispatchExpired},
		"the execution deadline": {2 * time.Hour, result.ErrorDispatchExpired},
	} {
		t.Run(name, func(t *testing.T) {
			b := applyBench(t)
			start := time.Now()
			b.env[env.DispatchNotAfter] = start.Add(test.dispatch).UTC().Format(time.RFC3339)
			b.env[env.ExecutionNotAfter] = start.Add(test.dispatch + time.Second).UTC().Format(time.RFC3339)
			// The clock jumps when the rehearsal has run.
			b.now = func() time.Time {
				if len(b.calls()) > 0 {
					return start.Add(3 * time.Hour)
				}
				return start
			}
			b.wantExit(b.run("database"), ExitFailed)
			document := b.wantError(result.StepApply, test.code, "nothing was executed")
			b.wantCommands("schema apply --dry-run")
			if document.MutationStarted {
				t.Error("an Apply that did not start says that it did")
			}
		})
	}
}

func TestAnApplyThatIsNotASuccessSaysThatItMayHaveChangedSomething(t *testing.T) {
	for name, test := range map[string]struct {
		change  func(*bench)
		code    result.ErrorCode
		message string
		report  bool
	}{
		"no report": {func(b *bench) { b.script["schema apply"] = answer{Exit: 1} }, result.ErrorExecution, "wrote no report", false},
		"an unknown outcome": {func(b *bench) {
			edit(b, "schema apply", func(r *report.SchemaApply) {
				r.Outcome, r.Executed, r.Problem = report.OutcomeUnknown, 0, &report.Problem{Code: report.CodeConnection, Message: "the answer was lost"}
			})
		}, result.ErrorPtah, "the answer was lost", true},
		"another plan": {func(b *bench) {
			edit(b, "schema apply", func(r *report.SchemaApply) { r.PlanDigest = artifact })
		}, result.ErrorPlanDigestMismatch, "executed another plan", true},
		"nothing to do": {func(b *bench) {
			edit(b, "schema apply", func(r *report.SchemaApply) { r.Outcome = report.OutcomeNoChanges })
		}, result.ErrorExecution, "an approved plan must be applied", true},
		"some statements": {func(b *bench) {
			edit(b, "schema apply", func(r *report.SchemaApply) { r.Executed = 0 })
		}, result.ErrorExecution, "reported success after 0 of 1 statements", true},
		"another database": {func(b *bench) {
			edit(b, "schema apply", func(r *report.SchemaApply) { r.TargetIdentity = otherTarget })
		}, result.ErrorTargetMismatch, "leads to another database", true},
		"success with another exit code": {func(b *bench) {
			told := b.script["schema apply"]
			told.Exit = 4
			b.script["schema apply"] = told
		}, result.ErrorExecution, "reported success but ended with exit code 4", false},
	} {
		t.Run(name, func(t *testing.T) {
			b := applyBench(t)
			test.change(b)
			b.wantExit(b.run("database"), ExitFailed)
			document := b.wantError(result.StepApply, test.code, test.message)
			if !document.MutationStarted || (document.Apply != nil) != test.report {
				t.Errorf("mutationStarted %v, report %v", document.MutationStarted, document.Apply)
			}
		})
	}
}

func TestAnApplyWithoutAReceiptEndsWithoutOne(t *testing.T) {
	b := applyBench(t)
	b.post.answers = []int{503, 503, 503, 503}
	b.wantExit(b.run("database"), ExitUndelivered)
	b.wantCommands("schema apply --dry-run", "schema apply")
}
