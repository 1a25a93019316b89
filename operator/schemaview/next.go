package schemaview

import (
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"

	"ptah.run/ptah/operator/api/v1alpha1"
)

// silence is how long after something was due a person should look whether the manager runs.
const silence = 2 * time.Minute

const lookAtManager = "kubectl get deployments -A -l app.kubernetes.io/name=ptah-operator"

// nextOf says what a person should do. Nothing that the status says is worth much where nobody keeps it.
func nextOf(schema *v1alpha1.PtahSchema, v *View, now time.Time) Next {
	status := &schema.Status
	switch {
	case v.Reason == "" || status.ObservedGeneration != schema.Generation:
		return Next{
			Needed: now.Sub(schema.CreationTimestamp.Time) > silence && v.Reason == "", Command: lookAtManager,
			Action: "Wait: the operator did not look at this generation of the spec yet. If that lasts, look whether it runs.",
		}
	case overdue(schema, now):
		return Next{
			Needed: true, Command: lookAtManager,
			Action: fmt.Sprintf("A refresh was due at %s and did not start: look whether the operator runs. What stands here may be out of date.", moment(status.NextReconciliationTime)),
		}
	case !schema.DeletionTimestamp.IsZero():
		return Next{Action: "Wait: it is being deleted after what an Apply did was read."}
	}
	entry, known := v1alpha1.Explain(v.Reason)
	if !known {
		return Next{Needed: !v.Ready, Action: fmt.Sprintf("Read the message: this kubectl-ptah is older than the operator and does not know the reason %s.", v.Reason)}
	}
	next := Next{Action: entry.Action, Needed: stalled(schema) || entry.Reason == v1alpha1.ReasonAwaitingApproval || status.FailedAttempts > 0}
	switch {
	case entry.Reason == v1alpha1.ReasonAwaitingApproval && status.Plan != nil && status.Plan.Approval != nil:
		next = Next{Action: "Wait: the plan is approved and about to run."}
	case status.Plan != nil && (entry.Reason == v1alpha1.ReasonAwaitingApproval || entry.Reason == v1alpha1.ReasonDestructiveChangesDisabled || entry.Reason == v1alpha1.ReasonApplyDisabled):
		next.Command = fmt.Sprintf("kubectl ptah plan %s -n %s", schema.Name, schema.Namespace)
	case next.Action == "":
		next.Action = "Nothing."
	}
	return next
}

func stalled(schema *v1alpha1.PtahSchema) bool {
	return meta.IsStatusConditionTrue(schema.Status.Conditions, v1alpha1.ConditionStalled)
}

// overdue says whether nobody did what was due.
func overdue(schema *v1alpha1.PtahSchema, now time.Time) bool {
	next := schema.Status.NextReconciliationTime
	return next != nil && now.Sub(next.Time) > silence && schema.Status.ActiveOperation == nil && schema.Status.PendingObservation == nil &&
		schema.Status.TargetBusySince == nil && !schema.Spec.Suspend
}
