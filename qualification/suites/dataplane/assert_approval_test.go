package dataplane

import (
	"context"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"ptah.run/ptah/operator/api/v1alpha1"
	"ptah.run/ptah/qualification/suites/bench"
	"ptah.run/ptah/qualification/suites/subject"
)

func TestApprovalBindsOnePlan(t *testing.T) {
	t.Parallel()
	scenario(t, "approval-binds-one-plan", func(ctx context.Context, s *bench.Scenario) {
		one, other := subject.Prepare(ctx, s, subject.First, subject.Seldom), subject.Prepare(ctx, s, subject.First, subject.Seldom)
		bare := s.Namespace(ctx)
		jobs, others := one.RecordJobs(ctx), other.RecordJobs(ctx)
		one.Declare(ctx)
		other.Declare(ctx)
		waiting, _ := one.Await(ctx, "a plan that waits for approval", bench.AwaitingApproval)
		theirs, _ := other.Await(ctx, "a plan of the same name's schema elsewhere", bench.AwaitingApproval)

		for _, wrong := range []struct {
			what   string
			change func(*v1alpha1.PtahSchemaApproval)
			words  string
		}{
			{"another fingerprint", func(a *v1alpha1.PtahSchemaApproval) {
				a.Spec.PlanFingerprint = v1alpha1.Digest("sha256:" + strings.Repeat("0", 64))
			}, "spec.planFingerprint: the current plan has the fingerprint " + waiting.Status.Plan.Fingerprint},
			{"another plan's UID", func(a *v1alpha1.PtahSchemaApproval) { a.Spec.PlanRef.UID = theirs.Status.Plan.UID }, "spec.planRef.uid"},
			{"another plan's name", func(a *v1alpha1.PtahSchemaApproval) { a.Spec.PlanRef.Name = "ptah-plan-other" }, `the PtahSchemaPlan "ptah-plan-other" does not exist`},
			{"another schema's UID", func(a *v1alpha1.PtahSchemaApproval) { a.Spec.SchemaRef.UID = string(theirs.UID) }, "spec.schemaRef.uid"},
			{"another schema's name", func(a *v1alpha1.PtahSchemaApproval) { a.Spec.SchemaRef.Name = "invoices" }, `the PtahSchema "invoices" does not exist`},
			{"a namespace without the schema", func(a *v1alpha1.PtahSchemaApproval) { a.Namespace = bare }, `does not exist in namespace "` + bare + `"`},
			{"a namespace with a schema of the same name", func(a *v1alpha1.PtahSchemaApproval) { a.Namespace = other.Key.Namespace }, `in namespace "` + other.Key.Namespace + `"`},
		} {
			approval := bench.Approval(waiting, "wrong")
			wrong.change(approval)
			refused(s, "an approval with "+wrong.what, s.Bench.Client.Create(ctx, approval), wrong.words)
		}
		nothing := func(when string) {
			s.Check("nothing was applied "+when, len(jobs.Applies(ctx)) == 0 && len(others.Applies(ctx)) == 0, "Apply Jobs of the records: %v, %v", jobs.Applies(ctx), others.Applies(ctx))
		}
		nothing("on an approval of another plan")

		one.AppliesOnce(ctx, jobs, waiting, "right")
		refused(s, "a second approval of the plan that was applied", s.Bench.Client.Create(ctx, bench.Approval(waiting, "again")), "spec.schemaRef")
		s.Check("the approval is used up", spent(ctx, one, "right"), "the approval must be Consumed")
		columns := other.Columns(ctx)
		s.Check("the other schema's database is untouched", len(columns) == 0 && len(others.Applies(ctx)) == 0, "its columns are %v, its Apply Jobs %v", columns, others.Applies(ctx))
		other.AppliesOnce(ctx, others, theirs, "theirs")
	})
}

func spent(ctx context.Context, one *subject.Subject, name string) bool {
	one.T.Helper()
	approval := &v1alpha1.PtahSchemaApproval{}
	one.Fixture(one.Bench.Client.Get(ctx, client.ObjectKey{Namespace: one.Key.Namespace, Name: name}, approval))
	for _, condition := range approval.Status.Conditions {
		if condition.Type == v1alpha1.ConditionConsumed && condition.Status == "True" {
			return true
		}
	}
	return false
}

// TestNobodyWritesForTheManager lets the cluster's administrator try what only the manager may do, and everybody what
// nobody may.
func TestNobodyWritesForTheManager(t *testing.T) {
	t.Parallel()
	scenario(t, "nobody-writes-for-the-manager", func(ctx context.Context, s *bench.Scenario) {
		one := subject.Prepare(ctx, s, subject.First, subject.Seldom)
		jobs := one.RecordJobs(ctx)
		one.Declare(ctx)
		waiting, _ := one.Await(ctx, "a plan that waits for approval", bench.AwaitingApproval)
		manager, err := s.Bench.As(bench.ManagerUser, bench.ServiceAccountGroups(bench.ReleaseNamespace)...)
		s.Fixture(err)
		plan, chunk := &v1alpha1.PtahSchemaPlan{}, &v1alpha1.PtahSchemaPlanChunk{}
		s.Fixture(s.Bench.Client.Get(ctx, client.ObjectKey{Namespace: one.Key.Namespace, Name: waiting.Status.Plan.Name}, plan))
		s.Fixture(s.Bench.Client.Get(ctx, client.ObjectKey{Namespace: one.Key.Namespace, Name: plan.Spec.Chunks[0].Name}, chunk))

		synced := client.RawPatch(types.MergePatchType, []byte(`{"status":{"phase":"InSync"}}`))
		refused(s, "a status that the administrator writes", s.Bench.Client.Status().Patch(ctx, waiting.DeepCopy(), synced), "people act through spec and approvals")
		s.Need("control: the manager may write it", manager.Status().Patch(ctx, waiting.DeepCopy(), synced, client.DryRunAll))
		unready := client.RawPatch(types.MergePatchType, []byte(`{"status":{"conditions":null}}`))
		refused(s, "a plan's status that the administrator writes", s.Bench.Client.Status().Patch(ctx, plan.DeepCopy(), unready), "people act through spec and approvals")

		altered := plan.DeepCopy()
		altered.Spec.Destructive = !altered.Spec.Destructive
		refused(s, "a changed plan", s.Bench.Client.Update(ctx, altered), "spec: a plan is immutable")
		emptied := chunk.DeepCopy()
		emptied.Spec.Data = []byte("DROP TABLE customers")
		refused(s, "changed statements", s.Bench.Client.Update(ctx, emptied), "spec: a plan chunk is immutable")
		refused(s, "statements that the manager would change", manager.Update(ctx, emptied), "cannot update resource")

		// What cannot be changed can be replaced by somebody with every right, and then it authorises nothing.
		replaced := take(ctx, one, chunk)
		replaced.Spec.Data = []byte("DROP TABLE customers")
		s.Fixture(s.Bench.Client.Create(ctx, replaced))
		s.Witness("UID of the chunk that was put in the place of another", replaced.UID)
		err = s.Bench.Client.Create(ctx, bench.Approval(waiting, "replaced"))
		s.Observe("what is said to an approval of a plan whose statements were replaced", text(err))
		if err == nil {
			given, _ := one.Await(ctx, "an Apply that refused to send it", func(now *v1alpha1.PtahSchema) bool {
				return now.Status.PendingObservation != nil && now.Status.PendingObservation.Refusal != ""
			})
			s.Observe("refusal of the Apply", given.Status.PendingObservation.Refusal)
		}
		journal := one.Journal(waiting.CreationTimestamp.Time)
		s.Check("no statement was sent of a plan that was replaced", len(journal.Writes) == 0, "the journal shows writing statements: %v", journal.Writes)
		s.Observe("Apply Jobs of the record", jobs.Applies(ctx))
	})
}

func text(err error) string {
	if err == nil || apierrors.IsNotFound(err) {
		return ""
	}
	return err.Error()
}
