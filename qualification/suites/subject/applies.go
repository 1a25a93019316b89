package subject

import (
	"context"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"ptah.run/ptah/operator/api/v1alpha1"
	"ptah.run/ptah/qualification/suites/bench"
)

// AppliesOnce approves a plan and checks that exactly one Apply follows, of exactly that plan and with exactly its
// statements. After a refusal it is the control: the same fixture does apply what is approved.
func (s *Subject) AppliesOnce(ctx context.Context, jobs *Jobs, waiting *v1alpha1.PtahSchema, approval string) *v1alpha1.PtahSchema {
	s.T.Helper()
	before, began := jobs.Applies(ctx), time.Now()
	s.Approve(ctx, waiting, approval)
	schema, _ := s.Await(ctx, "proven convergence after approval "+approval, bench.InSync)
	plan := waiting.Status.Plan
	after := jobs.Applies(ctx)
	if s.Check("control: approval "+approval+" causes exactly one Apply", len(after) == len(before)+1, "there were %d Apply Jobs and are %d", len(before), len(after)) {
		s.Check("control: the Apply is of the approved plan", after[len(before)].Plan == plan.Fingerprint, "the Apply Job is of plan %s, approved was %s", after[len(before)].Plan, plan.Fingerprint)
	}
	writes := s.Journal(began).Writes
	s.Check("control: the journal shows exactly the approved statements", len(writes) == int(plan.StatementCount), "the plan has %d statements, the journal shows %v", plan.StatementCount, writes)
	s.Check("control: the Apply is credited", schema.Status.Applied != nil && schema.Status.Applied.PlanFingerprint == plan.Fingerprint, "status.applied must name the approved plan")
	return schema
}

// marking is how long the manager may take to mark an approval after it wrote the state that ends it: it writes the
// status of the resource first, and no claim can use the approval from then on.
const marking = 10 * time.Second

// Spent checks that an approval authorises nothing any more.
func (s *Subject) Spent(ctx context.Context, name string) {
	s.T.Helper()
	approval := &v1alpha1.PtahSchemaApproval{}
	spent := false
	for end := time.Now().Add(marking); !spent && time.Now().Before(end); time.Sleep(200 * time.Millisecond) {
		s.Fixture(s.Bench.Client.Get(ctx, client.ObjectKey{Namespace: s.Key.Namespace, Name: name}, approval))
		spent = meta.IsStatusConditionTrue(approval.Status.Conditions, v1alpha1.ConditionConsumed) ||
			meta.IsStatusConditionTrue(approval.Status.Conditions, v1alpha1.ConditionStale)
	}
	s.Observe("conditions of approval "+name, approval.Status.Conditions)
	s.Check("approval "+name+" is spent", spent, "the approval must be Consumed or Stale and authorise nothing further")
}
