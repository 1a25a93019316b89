package runner

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"ptah.run/ptah/operator/operation/env"
	"ptah.run/ptah/operator/operation/result"
	"ptah.run/ptah/operator/plan/report"
)

func TestARefreshDeliversWhatEveryStepFound(t *testing.T) {
	b := refreshBench(t)
	b.wantExit(b.run("database"), ExitDone)
	b.wantCommands("schema plan", "schema apply --dry-run")
	document := b.delivered()
	names := []result.StepName{}
	for _, step := range document.Steps {
		names = append(names, step.Name)
	}
	if want := []result.StepName{result.StepResolve, result.StepVerify, result.StepFetch, result.StepObserve, result.StepPlan}; !slices.Equal(names, want) {
		t.Errorf("steps %v, want %v", names, want)
	}
	if string(document.PlanBytes) != string(examplePlan(t)) || document.PlanHeld || document.MutationStarted {
		t.Error("the plan was not delivered as ptah wrote it")
	}
	if document.TargetIdentityDigest != target || document.Resolve.Digest != artifact {
		t.Errorf("target %s, artifact %s", document.TargetIdentityDigest, document.Resolve.Digest)
	}
	if left, err := os.ReadDir(filepath.Join(b.dir, "scratch")); err != nil || len(left) != 0 {
		t.Errorf("scratch holds %v after the run (%v)", left, err)
	}
}

func TestDatabaseChildrenSeeTheDatabaseURLAndNothingElse(t *testing.T) {
	b := refreshBench(t)
	b.wantExit(b.run("database"), ExitDone)
	for _, one := range b.calls() {
		want := []string{"PATH=/usr/bin", env.DatabaseURL + "=" + databaseURL, "TMPDIR=" + filepath.Join(b.dir, "scratch")}
		got := slices.Sorted(slices.Values(one.Environment))
		if !slices.Equal(got, want) {
			t.Errorf("ptah %s saw %v, want %v", one.command(), got, want)
		}
	}
}

func TestADatabaseChildIsToldTheScopeAndLimits(t *testing.T) {
	b := refreshBench(t)
	b.wantExit(b.run("database"), ExitDone)
	calls := b.calls()
	source := "--schema=" + filepath.Join(b.dir, "work", "source")
	connection := []string{"--format=json", "--connect-timeout=10s", "--lock-timeout=30s"}
	scope := []string{"--transaction-mode=file", "--exclude=audit.*", "--protected-table=public.money"}
	wants := [][]string{
		append(append([]string{"schema", "plan", source, "--output=" + calls[0].flag("output")}, connection...), scope...),
		append(append([]string{"schema", "apply", "--plan=" + calls[0].flag("output"), "--expect-digest=" + report.Digest(examplePlan(t)), "--dry-run"}, connection...), scope...),
	}
	for i, want := range wants {
		if !slices.Equal(calls[i].Arguments, want) {
			t.Errorf("ptah was called with\n%v, want\n%v", calls[i].Arguments, want)
		}
	}
}

func TestAPlanThatTheManagerHoldsIsNotSentAgain(t *testing.T) {
	b := refreshBench(t)
	b.env[env.HeldPlanDigest] = report.Digest(examplePlan(t))
	b.wantExit(b.run("database"), ExitDone)
	b.wantCommands("schema plan")
	if document := b.delivered(); !document.PlanHeld || len(document.PlanBytes) != 0 {
		t.Error("the plan was sent although the manager holds it")
	}
}

func TestAnotherPlanThanTheHeldOneIsSent(t *testing.T) {
	b := refreshBench(t)
	b.env[env.HeldPlanDigest] = artifact
	b.wantExit(b.run("database"), ExitDone)
	if document := b.delivered(); document.PlanHeld || len(document.PlanBytes) == 0 {
		t.Error("a new plan was taken for the held one")
	}
}

func TestNoChangesNeedNoPlan(t *testing.T) {
	b := refreshBench(t)
	b.script["schema plan"] = answer{Report: report.SchemaPlan{ContractVersion: 1, Outcome: report.OutcomeNoChanges, Dialect: report.DialectPostgreSQL, TargetIdentity: target, FromFingerprint: state, ToFingerprint: state}}
	b.wantExit(b.run("database"), ExitDone)
	b.wantCommands("schema plan")
	if document := b.delivered(); document.Plan.Outcome != report.OutcomeNoChanges || len(document.PlanBytes) != 0 {
		t.Error("a refresh without changes delivered a plan")
	}
}

func TestAProofShortensPlanningOnlyForWhatWasProven(t *testing.T) {
	for name, test := range map[string]struct {
		change func(*bench)
		passed bool
	}{
		"the same artifact": {func(*bench) {}, true},
		"another artifact":  {func(b *bench) { b.env[env.ProvenArtifact] = state }, false},
		"no proven state":   {func(b *bench) { delete(b.env, env.ProvenDumpDigest) }, false},
		"no proven target":  {func(b *bench) { delete(b.env, env.ProvenTargetIdentity) }, false},
	} {
		t.Run(name, func(t *testing.T) {
			b := refreshBench(t)
			b.env[env.ProvenArtifact], b.env[env.ProvenDumpDigest], b.env[env.ProvenTargetIdentity] = artifact, desired, target
			test.change(b)
			b.wantExit(b.run("database"), ExitDone)
			if passed := b.calls()[0].flag("proven-dump-digest") == desired; passed != test.passed {
				t.Errorf("the proof was passed: %v, want %v", passed, test.passed)
			}
		})
	}
}

func TestAnAnswerFromAProofIsBelievedForTheProvenDatabaseAlone(t *testing.T) {
	for name, test := range map[string]struct {
		proven string
		runs   int
	}{"the proven database": {target, 1}, "another database": {otherTarget, 2}} {
		t.Run(name, func(t *testing.T) {
			b := refreshBench(t)
			b.env[env.ProvenArtifact], b.env[env.ProvenDumpDigest], b.env[env.ProvenTargetIdentity] = artifact, state, test.proven
			b.script["schema plan"] = answer{Report: report.SchemaPlan{ContractVersion: 1, Outcome: report.OutcomeNoChanges, Dialect: report.DialectPostgreSQL,
				TargetIdentity: target, FromFingerprint: state, ToFingerprint: state, Unchanged: true}}
			b.wantExit(b.run("database"), ExitDone)
			calls := b.calls()
			if len(calls) != test.runs {
				t.Fatalf("ptah ran %v, want %d runs", b.commands(), test.runs)
			}
			if last := calls[len(calls)-1]; test.runs == 2 && last.flag("proven-dump-digest") != "" {
				t.Error("the second run was given the proof again")
			}
		})
	}
}

func TestTheReadingIsEvidenceEvenWhereNoPlanExists(t *testing.T) {
	b := refreshBench(t)
	edit(b, "schema plan", func(r *report.SchemaPlan) {
		r.Outcome, r.PlanDigest = report.OutcomeRefused, ""
		r.Problem = &report.Problem{Code: report.CodeUnsupported, Message: "no complete plan exists", Categories: []string{"domains"}}
	})
	edit(b, "schema drift", func(r *report.Drift) {
		r.Findings = []report.Finding{{Category: "domains", Count: 1, Severity: report.SeverityWarning}}
	})
	b.wantExit(b.run("database"), ExitFailed)
	b.wantCommands("schema plan", "schema drift")
	document := b.wantError(result.StepPlan, result.ErrorPtah, "no complete plan exists")
	if document.Observe == nil || len(document.Observe.Findings) != 1 || document.Observe.Fingerprint != state {
		t.Errorf("observed %+v", document.Observe)
	}
}

func TestARefreshRefusesWhatDoesNotAgree(t *testing.T) {
	for name, test := range map[string]struct {
		change  func(*bench)
		step    result.StepName
		code    result.ErrorCode
		message string
		ran     []string
	}{
		"no database URL":    {func(b *bench) { delete(b.env, env.DatabaseURL) }, result.StepObserve, result.ErrorInvalidConfiguration, "PTAH_DB_URL is missing", nil},
		"an unknown dialect": {func(b *bench) { b.env[env.ExpectedDialect] = "oracle" }, result.StepObserve, result.ErrorInvalidConfiguration, `PTAH_EXPECTED_DIALECT is "oracle"`, nil},
		"a URL of PostgreSQL for MySQL": {func(b *bench) { b.env[env.ExpectedDialect] = report.DialectMySQL }, result.StepObserve,
			result.ErrorInvalidConfiguration, "the database URL starts with something else than mysql: and spec.target.engine is for mysql", nil},
		"a URL of MySQL for PostgreSQL": {func(b *bench) { b.env[env.DatabaseURL] = "MySQL://app:secret@db/shop" }, result.StepObserve,
			result.ErrorInvalidConfiguration, "the database URL starts with mysql: and spec.target.engine is for postgresql", nil},
		"a malformed timeout":          {func(b *bench) { b.env[env.ConnectTimeout] = "soon" }, result.StepObserve, result.ErrorInvalidConfiguration, "PTAH_CONNECT_TIMEOUT is not a positive duration", nil},
		"an exclusion that is no list": {func(b *bench) { b.env[env.Exclude] = "audit" }, result.StepObserve, result.ErrorInvalidConfiguration, "PTAH_EXCLUDE is not a JSON list", nil},
		"an empty exclusion":           {func(b *bench) { b.env[env.Exclude] = `[""]` }, result.StepObserve, result.ErrorInvalidConfiguration, "PTAH_EXCLUDE is not a JSON list", nil},
		"an unknown transaction mode":  {func(b *bench) { b.env[env.TransactionMode] = "some" }, result.StepObserve, result.ErrorInvalidConfiguration, "PTAH_TRANSACTION_MODE", nil},
		"a malformed proof":            {func(b *bench) { b.env[env.ProvenDumpDigest] = "x" }, result.StepObserve, result.ErrorInvalidConfiguration, "PTAH_PROVEN_DUMP_DIGEST is not a sha256 digest", nil},
		"a registry password beside":   {func(b *bench) { b.env[env.OCIPassword] = "registry-password" }, result.StepObserve, result.ErrorInvalidConfiguration, "PTAH_OCI_PASSWORD is set in the container that holds the database credential", nil},
		"no source result": {func(b *bench) {
			if err := os.Remove(filepath.Join(b.dir, "work", "source-result.json")); err != nil {
				panic(err)
			}
		}, result.StepObserve, result.ErrorExecution, "the source container's result: the file cannot be opened", nil},
		"a source result that is none": {func(b *bench) { b.write("work/source-result.json", "{}") }, result.StepObserve, result.ErrorExecution, "the source container's result could not be read", nil},
		"another operation's source result": {func(b *bench) {
			path := filepath.Join(b.dir, "work", "source-result.json")
			data, _ := os.ReadFile(path)
			b.write("work/source-result.json", strings.Replace(string(data), `"op-1"`, `"op-0"`, 1))
		}, result.StepObserve, result.ErrorExecution, "is of another operation", nil},
		"another dialect": {func(b *bench) {
			edit(b, "schema plan", func(r *report.SchemaPlan) { r.Dialect = report.DialectMySQL })
		}, result.StepObserve, result.ErrorTargetMismatch, `read a database of dialect "mysql"`, []string{"schema plan"}},
		"no identity": {func(b *bench) {
			edit(b, "schema plan", func(r *report.SchemaPlan) { r.TargetIdentity = "" })
		}, result.StepObserve, result.ErrorTargetMismatch, "named no identity of the database", []string{"schema plan"}},
		"no fingerprint": {func(b *bench) {
			edit(b, "schema plan", func(r *report.SchemaPlan) { r.FromFingerprint = "" })
		}, result.StepObserve, result.ErrorExecution, "named no fingerprint", []string{"schema plan"}},
		"another database than the Apply's": {func(b *bench) { b.env[env.ExpectedTargetIdentity] = otherTarget },
			result.StepObserve, result.ErrorTargetMismatch, "leads to another database", []string{"schema plan"}},
		"a wrong password": {func(b *bench) {
			b.script["schema plan"] = answer{Exit: 1, Report: report.SchemaPlan{ContractVersion: 1, Outcome: report.OutcomeFailed, Dialect: report.DialectPostgreSQL, TargetIdentity: target,
				Problem: &report.Problem{Code: report.CodeAuthentication, Message: "the server refused the password", SQLState: "28P01"}}}
		}, result.StepObserve, result.ErrorPtah, "the server refused the password", []string{"schema plan"}},
		"two databases": {func(b *bench) {
			edit(b, "schema plan", func(r *report.SchemaPlan) {
				r.Outcome, r.Problem = report.OutcomeRefused, &report.Problem{Code: report.CodeUnsupported, Message: "no"}
			})
			edit(b, "schema drift", func(r *report.Drift) { r.TargetIdentity = otherTarget })
		}, result.StepObserve, result.ErrorTargetMismatch, "read different databases", []string{"schema plan", "schema drift"}},
		"an unsupported change": {func(b *bench) {
			edit(b, "schema plan", func(r *report.SchemaPlan) {
				r.Outcome, r.PlanDigest = report.OutcomeRefused, ""
				r.Problem = &report.Problem{Code: report.CodeUnsupported, Message: "no complete plan exists"}
			})
		}, result.StepPlan, result.ErrorPtah, "no complete plan exists", []string{"schema plan", "schema drift"}},
		"a plan of another digest": {func(b *bench) {
			edit(b, "schema plan", func(r *report.SchemaPlan) { r.PlanDigest = artifact })
		}, result.StepPlan, result.ErrorPlanDigestMismatch, "does not have the digest and size", []string{"schema plan"}},
		"a plan of another size": {func(b *bench) {
			edit(b, "schema plan", func(r *report.SchemaPlan) { r.PlanSize++ })
		}, result.StepPlan, result.ErrorPlanDigestMismatch, "does not have the digest and size", []string{"schema plan"}},
		"a plan that is missing": {func(b *bench) {
			told := b.script["schema plan"]
			told.Output = ""
			b.script["schema plan"] = told
		}, result.StepPlan, result.ErrorExecution, "the plan that ptah wrote: the file cannot be opened", []string{"schema plan"}},
		"a plan that is none": {func(b *bench) {
			told := b.script["schema plan"]
			told.Output = "{}"
			b.script["schema plan"] = told
			edit(b, "schema plan", func(r *report.SchemaPlan) { r.PlanDigest, r.PlanSize = report.Digest([]byte("{}")), 2 })
		}, result.StepPlan, result.ErrorExecution, "could not be read", []string{"schema plan"}},
		"a plan of another count": {func(b *bench) {
			edit(b, "schema plan", func(r *report.SchemaPlan) { r.Statements = 2 })
		}, result.StepPlan, result.ErrorExecution, "is not the one that it reported", []string{"schema plan"}},
		"a plan to another state": {func(b *bench) {
			edit(b, "schema plan", func(r *report.SchemaPlan) { r.ToFingerprint = state })
		}, result.StepPlan, result.ErrorExecution, "is not the one that it reported", []string{"schema plan"}},
		"a rehearsal of another plan": {func(b *bench) {
			edit(b, "schema apply --dry-run", func(r *report.SchemaApply) { r.PlanDigest = artifact })
		}, result.StepPlan, result.ErrorPlanDigestMismatch, "read another plan", []string{"schema plan", "schema apply --dry-run"}},
		"a rehearsal that executes": {func(b *bench) {
			edit(b, "schema apply --dry-run", func(r *report.SchemaApply) { r.Executed, r.MutationStarted = 1, true })
		}, result.StepPlan, result.ErrorExecution, "reports that it executed statements", []string{"schema plan", "schema apply --dry-run"}},
		"a rehearsal of fewer statements": {func(b *bench) {
			edit(b, "schema apply --dry-run", func(r *report.SchemaApply) { r.Statements = 0 })
		}, result.StepPlan, result.ErrorExecution, "counts 0 statements where the plan has 1", []string{"schema plan", "schema apply --dry-run"}},
		"a rehearsal that applies": {func(b *bench) {
			edit(b, "schema apply --dry-run", func(r *report.SchemaApply) { r.Outcome = report.OutcomeApplied })
		}, result.StepPlan, result.ErrorExecution, `its outcome "applied" is not one of this command`, []string{"schema plan", "schema apply --dry-run"}},
	} {
		t.Run(name, func(t *testing.T) {
			b := refreshBench(t)
			test.change(b)
			b.wantExit(b.run("database"), ExitFailed)
			document := b.wantError(test.step, test.code, test.message)
			b.wantCommands(test.ran...)
			if len(document.PlanBytes) != 0 || document.PlanHeld {
				t.Error("a refresh that failed delivered a plan")
			}
		})
	}
}
