package schema

import (
	"cmp"
	"slices"

	"k8s.io/apimachinery/pkg/api/meta"

	ptahv1 "ptah.run/ptah/operator/api/v1alpha1"
)

// permission says whether a plan may run, and on whose word.
type permission int

const (
	permissionBlocked permission = iota
	permissionNeedsApproval
	permissionGranted
)

// permit decides what the policy says about a plan. Destructive plans, plans that change authority, and a plan that
// ran before without leading to convergence need a person whatever the policy says.
func permit(policy ptahv1.SchemaPolicy, plan *ptahv1.CurrentPlanStatus) (permission, ptahv1.Reason) {
	switch {
	case policy.Apply == ptahv1.ApplyNever:
		return permissionBlocked, ptahv1.ReasonApplyDisabled
	case plan.Destructive && !policy.AllowDestructive:
		return permissionBlocked, ptahv1.ReasonDestructiveChangesDisabled
	case len(plan.PrivilegeChanges) > 0:
		return permissionNeedsApproval, ptahv1.ReasonPrivilegeChanges
	case policy.Apply == ptahv1.ApplyAlways && !plan.Destructive && !plan.Attempted:
		return permissionGranted, ptahv1.ReasonApplyPending
	}
	return permissionNeedsApproval, ptahv1.ReasonAwaitingApproval
}

// sorted splits the approvals of a schema into the one that decides and those that never will.
type sorted struct {
	// chosen is the oldest stamped approval of exactly this plan, nil where there is none.
	chosen *ptahv1.PtahSchemaApproval
	// superseded are later approvals of the same plan.
	superseded []*ptahv1.PtahSchemaApproval
	// outdated are approvals of other plans.
	outdated []*ptahv1.PtahSchemaApproval
}

// sortApprovals looks at approvals that are neither consumed nor stale. plan is nil where no plan is current.
func sortApprovals(approvals []ptahv1.PtahSchemaApproval, schema *ptahv1.PtahSchema, plan *ptahv1.CurrentPlanStatus) sorted {
	out := sorted{}
	matching := []*ptahv1.PtahSchemaApproval{}
	for i := range approvals {
		approval := &approvals[i]
		switch {
		case approval.Spec.SchemaRef.Name != schema.Name || approval.DeletionTimestamp != nil || settled(approval):
		case matches(approval, schema, plan):
			if stamped(approval) {
				matching = append(matching, approval)
			}
		default:
			out.outdated = append(out.outdated, approval)
		}
	}
	slices.SortFunc(matching, func(a, b *ptahv1.PtahSchemaApproval) int {
		return cmp.Or(a.Spec.ApprovedAt.Compare(b.Spec.ApprovedAt.Time),
			a.CreationTimestamp.Compare(b.CreationTimestamp.Time), cmp.Compare(a.Name, b.Name))
	})
	if len(matching) > 0 {
		out.chosen, out.superseded = matching[0], matching[1:]
	}
	return out
}

func matches(approval *ptahv1.PtahSchemaApproval, schema *ptahv1.PtahSchema, plan *ptahv1.CurrentPlanStatus) bool {
	return plan != nil && approval.Spec.SchemaRef.UID == string(schema.UID) &&
		approval.Spec.PlanRef.Name == plan.Name && approval.Spec.PlanRef.UID == plan.UID &&
		string(approval.Spec.PlanFingerprint) == plan.Fingerprint
}

// stamped says whether admission wrote down who approved.
func stamped(approval *ptahv1.PtahSchemaApproval) bool {
	return approval.Spec.Approver.Username != "" && !approval.Spec.ApprovedAt.IsZero() && approval.Spec.MutationRequestUID != ""
}

// settled says whether an approval was used up or is void.
func settled(approval *ptahv1.PtahSchemaApproval) bool {
	return meta.IsStatusConditionTrue(approval.Status.Conditions, ptahv1.ConditionConsumed) ||
		meta.IsStatusConditionTrue(approval.Status.Conditions, ptahv1.ConditionStale)
}
