package runner

import (
	"context"
	"os"
	"path/filepath"
	"testing"
	"time"

	"ptah.run/ptah/operator/operation/env"
	"ptah.run/ptah/operator/operation/result"
	"ptah.run/ptah/operator/plan/report"
)

// stopWhen ends the context once a file exists, as a signal would.
func stopWhen(t *testing.T, path string) context.Context {
	ctx, cancel := context.WithCancel(context.Background())
	t.Cleanup(cancel)
	go func() {
		for ctx.Err() == nil {
			if _, err := os.Stat(path); err == nil {
				cancel()
			}
			time.Sleep(5 * time.Millisecond)
		}
	}()
	return ctx
}

func TestARequestToStopReachesPtahAndItsReportIsDelivered(t *testing.T) {
	b := applyBench(t)
	told := b.script["schema apply"]
	stopped := told.Report.(report.SchemaApply)
	stopped.Outcome, stopped.Executed = report.OutcomeUnknown, 0
	stopped.Problem = &report.Problem{Code: report.CodeCanceled, Message: "stopped while statements ran"}
	b.script["schema apply"] = answer{Report: stopped, Exit: 4, Hang: true}
	b.wantExit(b.runWith(stopWhen(t, filepath.Join(b.dir, "hanging")), "database"), ExitFailed)
	document := b.wantError(result.StepApply, result.ErrorPtah, "stopped while statements ran")
	if !document.MutationStarted || document.Apply.Outcome != report.OutcomeUnknown {
		t.Errorf("delivered %+v", document)
	}
}

func TestPtahThatDoesNotEndIsKilledInTimeForTheDelivery(t *testing.T) {
	b := applyBench(t)
	b.env[env.TerminationGraceSecs] = "3"
	b.script["schema apply"] = answer{HangHard: true}
	ctx := stopWhen(t, filepath.Join(b.dir, "hanging"))
	asked := make(chan time.Time, 1)
	context.AfterFunc(ctx, func() { asked <- time.Now() })
	b.wantExit(b.runWith(ctx, "database"), ExitFailed)
	if took := time.Since(<-asked); took < 1900*time.Millisecond || took > 3*time.Second {
		t.Errorf("the delivery ended %s after the request to stop, want between 2s and 3s", took)
	}
	document := b.wantError(result.StepApply, result.ErrorExecution, "was killed, because the Pod was asked to stop and it did not end")
	if !document.MutationStarted {
		t.Error("a killed Apply says that it changed nothing")
	}
}

func TestTheExecutionDeadlineStopsAnApply(t *testing.T) {
	b := applyBench(t)
	limit := time.Now().Add(3 * time.Second).UTC().Truncate(time.Second)
	b.env[env.DispatchNotAfter] = limit.Format(time.RFC3339)
	b.env[env.ExecutionNotAfter] = limit.Format(time.RFC3339)
	told := b.script["schema apply"]
	told.Hang, told.Exit, told.Report = true, 1, nil
	b.script["schema apply"] = told
	b.wantExit(b.run("database"), ExitFailed)
	document := b.wantError(result.StepApply, result.ErrorExecution, "because its time was up")
	if !document.MutationStarted || time.Now().Before(limit) {
		t.Errorf("mutationStarted %v, ended at %s before %s", document.MutationStarted, time.Now(), limit)
	}
}

func TestAPodThatIsToStopStartsNothingMore(t *testing.T) {
	for name, make := range map[string]func(*testing.T) *bench{"source": sourceBench, "database": refreshBench} {
		t.Run(name, func(t *testing.T) {
			b := make(t)
			ctx, cancel := context.WithCancel(context.Background())
			cancel()
			b.wantExit(b.runWith(ctx, name), ExitFailed)
			document := b.delivered()
			if failed := document.Failed(); failed == nil || failed.Code != result.ErrorExecution {
				t.Errorf("delivered %+v", failed)
			}
			b.wantCommands()
		})
	}
}
