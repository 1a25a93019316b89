package schema

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	ptahv1 "ptah.run/ptah/operator/api/v1alpha1"
	"ptah.run/ptah/operator/telemetry"
)

// listApprovals reads the namespace's approvals from the cache. The one that decides is read live before it counts.
func (p *pass) listApprovals(ctx context.Context) ([]ptahv1.PtahSchemaApproval, error) {
	list := &ptahv1.PtahSchemaApprovalList{}
	if err := p.Client.List(ctx, list, client.InNamespace(p.schema.Namespace)); err != nil {
		return nil, fmt.Errorf("list approvals: %w", err)
	}
	return list.Items, nil
}

// mark is a condition that becomes true.
type mark struct {
	name    string
	reason  ptahv1.Reason
	message string
}

// markApproval writes conditions of an approval in one request. It carries the resource version of approval.
func (p *pass) markApproval(ctx context.Context, approval *ptahv1.PtahSchemaApproval, marks ...mark) error {
	changed := approval.DeepCopy()
	any := false
	for _, m := range marks {
		any = meta.SetStatusCondition(&changed.Status.Conditions, metav1.Condition{
			Type: m.name, Status: yes, Reason: string(m.reason), Message: m.message,
			ObservedGeneration: approval.Generation, LastTransitionTime: metav1.NewTime(p.now),
		}) || any
	}
	if !any {
		return nil
	}
	if err := p.Client.Status().Update(ctx, changed); err != nil {
		return fmt.Errorf("mark approval %s as %s: %w", approval.Name, marks[len(marks)-1].name, err)
	}
	*approval = *changed
	return nil
}

func (p *pass) markStale(ctx context.Context, approval *ptahv1.PtahSchemaApproval, reason ptahv1.Reason, message string) error {
	if err := p.markApproval(ctx, approval, mark{ptahv1.ConditionStale, reason, message}); err != nil {
		return client.IgnoreNotFound(err)
	}
	p.Metrics.Approval(telemetry.FamilySchema, telemetry.OutcomeStale)
	p.Events.Eventf(approval, p.schema, corev1.EventTypeWarning, string(ptahv1.EventApprovalStale), "Approve", "%s", message)
	return nil
}

// markOutdated marks approvals of plans that are not current.
func (p *pass) markOutdated(ctx context.Context, outdated []*ptahv1.PtahSchemaApproval) error {
	for _, approval := range outdated {
		if err := p.markStale(ctx, approval, ptahv1.ReasonPlanNoLongerCurrent, "The plan that was approved is not current any more."); err != nil {
			return err
		}
	}
	return nil
}

// markSuperseded marks the approvals of the same plan that lost against the chosen one.
func (p *pass) markSuperseded(ctx context.Context, superseded []*ptahv1.PtahSchemaApproval) error {
	for _, approval := range superseded {
		if err := p.markStale(ctx, approval, ptahv1.ReasonSupersededApproval, "Another approval of the same plan was used."); err != nil {
			return err
		}
	}
	return nil
}

// staleApprovals marks every open approval of a resource that cannot have a plan.
func (p *pass) staleApprovals(ctx context.Context) error {
	approvals, err := p.listApprovals(ctx)
	if err != nil {
		return err
	}
	return p.markOutdated(ctx, sortApprovals(approvals, p.schema, nil).outdated)
}
