package schemafaults

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"

	"ptah.run/ptah/operator/api/v1alpha1"
	"ptah.run/ptah/qualification/lab"
	"ptah.run/ptah/qualification/suites/bench"
	"ptah.run/ptah/qualification/suites/subject"
)

// What changes authority. Every routine of MySQL runs as its definer unless it says otherwise, and grants are no part
// of what is managed there.
var (
	withFunction = with(subject.First, subject.Version{
		lab.PostgreSQL: "CREATE FUNCTION secret_total(customer bigint) RETURNS numeric LANGUAGE sql STABLE SECURITY DEFINER " +
			"SET search_path = pg_catalog, pg_temp AS $$ SELECT coalesce(sum(total), 0) FROM public.orders WHERE customer_id = customer $$;\n",
		lab.MySQL: "CREATE FUNCTION secret_total(customer bigint) RETURNS decimal(12,2) READS SQL DATA " +
			"RETURN (SELECT COALESCE(SUM(total), 0) FROM orders WHERE customer_id = customer);\n"})
	withMore = with(withFunction, subject.Version{
		lab.PostgreSQL: "GRANT SELECT ON customers TO PUBLIC;\n",
		lab.MySQL:      "CREATE PROCEDURE secret_customers() READS SQL DATA SELECT email FROM customers;\n"})
	withIndex = with(withMore, subject.Version{
		lab.PostgreSQL: "CREATE INDEX orders_total ON orders (total);\n", lab.MySQL: "CREATE INDEX orders_total ON orders (total);\n"})
	// more is what withMore adds, and the name that nobody may be shown.
	more = map[string]struct{ change, object string }{lab.PostgreSQL: {"grant", "customers"}, lab.MySQL: {"procedure", "secret_customers"}}
)

func with(version, added subject.Version) subject.Version {
	all := subject.Version{}
	for engine, sql := range version {
		all[engine] = sql + added[engine]
	}
	return all
}

// TestPrivilegeChangesAlwaysAsk lets plans that change authority wait for a person where every other additive plan runs by itself.
func TestPrivilegeChangesAlwaysAsk(t *testing.T) {
	t.Parallel()
	scenario(t, "privilege-changes-always-ask", func(ctx context.Context, s *bench.Scenario) {
		one := subject.Prepare(ctx, s, subject.First, subject.Interval)
		one.Shape = func(schema *v1alpha1.PtahSchema) { schema.Spec.Policy.Apply = v1alpha1.ApplyAlways }
		jobs := one.RecordJobs(ctx)
		one.Declare(ctx)
		one.Await(ctx, "convergence without a person", bench.InSync)
		s.Check("control: an additive plan runs by itself", len(jobs.Applies(ctx)) == 1, "Apply Jobs of the record: %v", jobs.Applies(ctx))

		waits(ctx, one, jobs, withFunction, "function", "secret_total")
		second := more[one.Database.Server.Engine]
		waits(ctx, one, jobs, withMore, second.change, second.object)

		applies := len(jobs.Applies(ctx))
		one.Publish(ctx, withIndex)
		one.Await(ctx, "convergence without a person again", func(now *v1alpha1.PtahSchema) bool {
			return bench.InSync(now) && now.Status.Applied != nil && now.Status.Applied.ArtifactDigest == one.Artifact.Digest
		})
		s.Check("control: the next additive plan runs by itself", len(jobs.Applies(ctx)) == applies+1, "Apply Jobs of the record: %v", jobs.Applies(ctx))
	})
}

// waits publishes a change of authority, and checks that it waits across two refreshes with the database untouched,
// names no object, and runs once it is approved.
func waits(ctx context.Context, one *subject.Subject, jobs *subject.Jobs, version subject.Version, approval, object string) {
	one.T.Helper()
	applies, since := len(jobs.Applies(ctx)), time.Now()
	waiting := one.PlanFor(ctx, version, "a plan that asks for the "+approval)
	one.Check("it asks because of privileges: "+approval, bench.Condition(waiting, v1alpha1.ConditionApprovalRequired, "True", v1alpha1.ReasonPrivilegeChanges),
		"conditions are %v", waiting.Status.Conditions)
	one.Check("the plan says what kind of change it is: "+approval, len(waiting.Status.Plan.PrivilegeChanges) > 0, "the plan names no change of privileges")
	for _, condition := range waiting.Status.Conditions {
		one.Check("no object is named: "+approval, !strings.Contains(condition.Message, object), "condition %s says %q", condition.Type, condition.Message)
	}
	one.Check("kinds only: "+approval, !slices.ContainsFunc(waiting.Status.Plan.PrivilegeChanges, func(kind string) bool { return strings.Contains(kind, object) }),
		"the plan's kinds are %v", waiting.Status.Plan.PrivilegeChanges)

	refreshes, last := 0, waiting.Status.LastSuccessfulReconciliation
	still, _ := one.Await(ctx, "two more refreshes", func(now *v1alpha1.PtahSchema) bool {
		if success := now.Status.LastSuccessfulReconciliation; bench.Settled(now) && success != nil && !success.Equal(last) {
			refreshes, last = refreshes+1, success
		}
		return refreshes == 2
	})
	one.Check("it still waits: "+approval, bench.AwaitingApproval(still) && still.Status.Plan.UID == waiting.Status.Plan.UID, "Ready is %v", meta.FindStatusCondition(still.Status.Conditions, v1alpha1.ConditionReady))
	one.Check("nothing was dispatched: "+approval, len(jobs.Applies(ctx)) == applies, "Apply Jobs of the record: %v", jobs.Applies(ctx))
	journal := one.Journal(since)
	one.Check("the database is untouched: "+approval, len(journal.Writes) == 0, "the journal shows writing statements: %v", journal.Writes)
	one.Check("control: the database was read: "+approval, len(journal.Reads) > 0, "the journal shows no reading either, so it proves nothing")
	one.AppliesOnce(ctx, jobs, still, approval)
}
