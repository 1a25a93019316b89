package dataplane

import (
	"context"
	"encoding/json"
	"net"
	"os"
	"slices"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"ptah.run/ptah/operator/api/v1alpha1"
	"ptah.run/ptah/qualification/lab"
	"ptah.run/ptah/qualification/suites/bench"
	"ptah.run/ptah/qualification/suites/subject"
)

// failures is how many refreshes in a row are let fail.
const failures = 3

// TestRegistryOutageKeepsEvidence does not run beside the others: all of them use the registry.
func TestRegistryOutageKeepsEvidence(t *testing.T) {
	scenario(t, "registry-outage-keeps-evidence", func(ctx context.Context, s *bench.Scenario) {
		one := subject.Prepare(ctx, s, subject.First, subject.Interval)
		jobs := one.RecordJobs(ctx)
		one.Converge(ctx)
		waiting := one.PlanFor(ctx, subject.Second, "a plan for the second version")
		last := waiting.Status.LastSuccessfulReconciliation
		one.Await(ctx, "a refresh that just ended", func(now *v1alpha1.PtahSchema) bool {
			return bench.AwaitingApproval(now) && !now.Status.LastSuccessfulReconciliation.Equal(last)
		})
		start := outage(ctx, s)
		before := evidence(ctx, one)

		failed := told(ctx, one, v1alpha1.ConditionArtifactResolved, metav1.ConditionUnknown, v1alpha1.ReasonRefreshFailed, "registry")
		s.Check("not ready", bench.Condition(failed, v1alpha1.ConditionReady, metav1.ConditionFalse, ""), "Ready must be False while the registry is away")
		s.Check("what was in sync is unknown now", bench.Condition(failed, v1alpha1.ConditionInSync, metav1.ConditionUnknown, v1alpha1.ReasonSourceFreshnessUnknown), "InSync must be Unknown, conditions are %v", failed.Status.Conditions)
		since := time.Now()
		attempts := failed.Status.FailedAttempts
		one.Await(ctx, "more refreshes that failed", func(now *v1alpha1.PtahSchema) bool {
			return bench.Settled(now) && now.Status.FailedAttempts >= attempts+failures
		})
		after := evidence(ctx, one)
		s.Check("the evidence is the same to the byte", slices.Equal(before, after), "before the outage it was %v and is %v", before, after)
		journal := one.Journal(since)
		s.Check("nothing was planned or read after the failed Resolve", len(journal.Reads) == 0 && len(journal.Writes) == 0, "the journal shows %d reading and %d writing statements", len(journal.Reads), len(journal.Writes))
		s.Check("nothing was applied", len(jobs.Applies(ctx)) == 1, "Apply Jobs of the record, the first of them of the first version: %v", jobs.Applies(ctx))

		start()
		began := time.Now()
		recovered, _ := one.Await(ctx, "a refresh once the registry is back", func(now *v1alpha1.PtahSchema) bool {
			return bench.AwaitingApproval(now) && now.Status.FailedAttempts == 0 && bench.Condition(now, v1alpha1.ConditionArtifactResolved, metav1.ConditionTrue, "")
		})
		s.Check("the plan is the one that waited before", recovered.Status.Plan.UID == waiting.Status.Plan.UID, "plan %s waited, now %s does", waiting.Status.Plan.UID, recovered.Status.Plan.UID)
		s.Check("control: the database is read again", len(one.Journal(began).Reads) > 0, "the journal shows no reading, so that it proves nothing")
		one.AppliesOnce(ctx, jobs, recovered, "second")
	})
}

// outage stops the registry, and returns what starts it again. The end of the test starts it at the latest.
func outage(ctx context.Context, s *bench.Scenario) (start func()) {
	s.T.Helper()
	s.Fixture(lab.StopRegistry(ctx, s.Bench.Lab))
	down := true
	start = func() {
		if down {
			down = false
			s.Fixture(lab.StartRegistry(context.Background(), s.Bench.Lab, os.Getenv(lab.EnvironmentVariable)))
		}
	}
	s.T.Cleanup(start)
	_, err := net.DialTimeout("tcp", s.Bench.Lab.Registry.LocalHost, 5*time.Second)
	s.Need("nothing listens where the registry did", subject.ErrorUnless(err != nil, "the registry that was stopped still takes connections"))
	s.Witness("what a connection to the registry gives", err.Error())
	return start
}

// evidence is what was proven of a schema, as it is stored: the parts of its status that a plan and a convergence rest
// on, every plan with every chunk, and every approval.
func evidence(ctx context.Context, one *subject.Subject) []string {
	one.T.Helper()
	schema := &v1alpha1.PtahSchema{}
	one.Fixture(one.Bench.Client.Get(ctx, one.Key, schema))
	plans, chunks, approvals := &v1alpha1.PtahSchemaPlanList{}, &v1alpha1.PtahSchemaPlanChunkList{}, &v1alpha1.PtahSchemaApprovalList{}
	for _, list := range []client.ObjectList{plans, chunks, approvals} {
		one.Fixture(one.Bench.Client.List(ctx, list, client.InNamespace(one.Key.Namespace)))
	}
	var kept []string
	for _, part := range []any{schema.Status.Source, schema.Status.Target, schema.Status.Plan, schema.Status.Applied, schema.Status.Converged,
		plans.Items, chunks.Items, approvals.Items} {
		text, err := json.Marshal(part)
		one.Fixture(err)
		kept = append(kept, string(text))
	}
	return kept
}
