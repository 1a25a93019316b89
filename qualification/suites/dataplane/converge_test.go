package dataplane

import (
	"context"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"ptah.run/ptah/operator/api/v1alpha1"
	"ptah.run/ptah/qualification/suites/bench"
	"ptah.run/ptah/qualification/suites/subject"
)

func TestConvergeFromEmptyAfterApproval(t *testing.T) {
	scenario(t, "converge-from-empty-after-approval", func(ctx context.Context, s *bench.Scenario) {
		// No refresh of the schedule falls into the Apply, whose requests are counted.
		one := subject.Prepare(ctx, s, subject.First, 10*time.Minute)
		began := time.Now()
		one.Declare(ctx)
		waiting, _ := one.Await(ctx, "a plan that waits for approval", bench.AwaitingApproval)
		before := one.Journal(began)
		s.Observe("statements before the approval", len(before.Reads))
		s.Check("nothing written before the approval", len(before.Writes) == 0, "the server's journal shows %d writing statements before an approval existed: %v", len(before.Writes), before.Writes)
		s.Check("database still empty before the approval", len(one.Columns(ctx)) == 0, "the database must be empty before the approval")
		s.Check("plan is bound to the artifact", waiting.Status.Plan.ArtifactDigest == one.Artifact.Digest, "plan names artifact %s, published was %s", waiting.Status.Plan.ArtifactDigest, one.Artifact.Digest)

		// Control: an approval of another fingerprint is refused, so that admission is known to compare.
		wrong := bench.Approval(waiting, "wrong")
		wrong.Spec.PlanFingerprint = v1alpha1.Digest("sha256:" + strings.Repeat("0", 64))
		err := s.Bench.Client.Create(ctx, wrong)
		s.Check("control: approval of another plan refused", apierrors.IsForbidden(err) || apierrors.IsInvalid(err), "an approval with a foreign fingerprint must be refused, got %v", err)

		approved := time.Now()
		one.Approve(ctx, waiting, "first")
		admitted := time.Now()
		schema, seen := one.Await(ctx, "proven convergence", bench.InSync)
		s.Check("one Apply", len(subject.Operations(seen, v1alpha1.OperationApply)) == 1, "%d operations of type Apply were seen", len(subject.Operations(seen, v1alpha1.OperationApply)))
		time.Sleep(subject.Afterwork)
		s.Measure("apply", one.Key.String(), admitted, time.Now())
		after := one.Journal(approved)
		s.Observe("writing statements of the Apply", after.Writes)
		s.Check("control: the journal shows the approved statements", len(after.Writes) >= int(waiting.Status.Plan.StatementCount), "the journal shows %d writing statements, the plan has %d", len(after.Writes), waiting.Status.Plan.StatementCount)
		want := []string{"customers.email", "customers.id", "orders.customer_id", "orders.id", "orders.total"}
		s.Check("database has the declared tables", slices.Equal(one.Columns(ctx), want), "columns are %v, want %v", one.Columns(ctx), want)
		s.Check("the Apply is credited", schema.Status.Applied != nil && schema.Status.Applied.PlanFingerprint == waiting.Status.Plan.Fingerprint, "status.applied must name the approved plan")
	})
}

func TestSecondRefreshChangesNothing(t *testing.T) {
	scenario(t, "second-refresh-changes-nothing", func(ctx context.Context, s *bench.Scenario) {
		one := subject.Prepare(ctx, s, subject.First, subject.Interval)
		schema := one.Converge(ctx)
		// Control: the same inventory does see the writes of the convergence.
		held := inventory(ctx, one)
		s.Check("control: the inventory holds the plan and approval", held["plans"] == 1 && held["approvals"] == 1, "inventory after convergence is %v", held)
		told := events(ctx, one)
		began := time.Now()
		finished := 0
		last := schema.Status.LastSuccessfulReconciliation
		_, seen := one.Await(ctx, "three more refreshes", func(now *v1alpha1.PtahSchema) bool {
			if success := now.Status.LastSuccessfulReconciliation; bench.Settled(now) && success != nil && !success.Equal(last) {
				finished, last = finished+1, success
			}
			return finished == 3
		})
		time.Sleep(subject.Afterwork) // so that no other scenario begins within what is measured
		for _, refresh := range subject.Operations(seen, v1alpha1.OperationRefresh) {
			s.Measure("refresh", one.Key.String(), refresh.From, refresh.To)
		}
		journal := one.Journal(began)
		s.Check("nothing written", len(journal.Writes) == 0, "the journal shows writing statements: %v", journal.Writes)
		s.Check("control: the database was read", len(journal.Reads) > 0, "the journal shows no reading either, so it proves nothing")
		now := inventory(ctx, one)
		s.Check("no plan, chunk or approval added", maps.Equal(now, held), "inventory was %v and is %v", held, now)
		s.Check("no event added", events(ctx, one) == told, "there were %d events of the schema and are %d", told, events(ctx, one))
		for _, state := range seen {
			if !s.Check("stays in sync", state.Ready == "True", "Ready became %s (%s) during a refresh", state.Ready, state.Reason) {
				break
			}
		}
	})
}

// inventory counts what a refresh may leave behind.
func inventory(ctx context.Context, s *subject.Subject) map[string]int {
	s.T.Helper()
	lists := map[string]client.ObjectList{"plans": &v1alpha1.PtahSchemaPlanList{}, "chunks": &v1alpha1.PtahSchemaPlanChunkList{}, "approvals": &v1alpha1.PtahSchemaApprovalList{}}
	counts := map[string]int{}
	for name, list := range lists {
		s.Fixture(s.Bench.Client.List(ctx, list, client.InNamespace(s.Key.Namespace)))
		switch items := list.(type) {
		case *v1alpha1.PtahSchemaPlanList:
			counts[name] = len(items.Items)
		case *v1alpha1.PtahSchemaPlanChunkList:
			counts[name] = len(items.Items)
		case *v1alpha1.PtahSchemaApprovalList:
			counts[name] = len(items.Items)
		}
	}
	return counts
}

func events(ctx context.Context, s *subject.Subject) int {
	s.T.Helper()
	events := &corev1.EventList{}
	s.Fixture(s.Bench.Client.List(ctx, events, client.InNamespace(s.Key.Namespace)))
	count := 0
	for _, event := range events.Items {
		if event.InvolvedObject.Kind == "PtahSchema" {
			count += int(max(event.Count, 1))
		}
	}
	return count
}

func TestTypedApproverReplaced(t *testing.T) {
	t.Parallel()
	scenario(t, "typed-approver-replaced", func(ctx context.Context, s *bench.Scenario) {
		one := subject.Prepare(ctx, s, subject.First, 10*time.Minute)
		one.Declare(ctx)
		waiting, _ := one.Await(ctx, "a plan that waits for approval", bench.AwaitingApproval)
		approval := bench.Approval(waiting, "typed")
		approval.Spec.Approver = v1alpha1.ApprovalIdentity{Username: "mallory", Groups: []string{"auditors"}}
		s.Witness("typed username", approval.Spec.Approver.Username)

		// The person who creates it is impersonated, so that the stamp is known to follow the authenticated identity.
		alice, err := s.Bench.As("alice@example.com", "system:masters", "approvers")
		s.Fixture(err)
		s.Need("approval created", alice.Create(ctx, approval))
		stored := &v1alpha1.PtahSchemaApproval{}
		s.Fixture(s.Bench.Client.Get(ctx, client.ObjectKeyFromObject(approval), stored))
		s.Observe("stored approver", stored.Spec.Approver)
		s.Check("authenticated name is stored", stored.Spec.Approver.Username == "alice@example.com", "approver is %q, want the authenticated alice@example.com", stored.Spec.Approver.Username)
		s.Check("typed groups are gone", !slices.Contains(stored.Spec.Approver.Groups, "auditors") && slices.Contains(stored.Spec.Approver.Groups, "approvers"), "groups are %v", stored.Spec.Approver.Groups)
		s.Check("time is stamped", !stored.Spec.ApprovedAt.IsZero() && stored.Spec.MutationRequestUID != "", "approvedAt and mutationRequestUID must be stamped")
		schema, _ := one.Await(ctx, "proven convergence", bench.InSync)
		s.Check("the plan was applied on that approval", schema.Status.Applied != nil, "status.applied must be set")
	})
}
