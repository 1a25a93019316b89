package admission

import (
	"encoding/json"
	"errors"
	"net/http"
	"strings"
	"testing"

	admissionv1 "k8s.io/api/admission/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"ptah.run/ptah/operator/api/v1alpha1"
)

func TestAnApprovalOfExactlyTheWaitingPlanIsAdmitted(t *testing.T) {
	w := newWorld(t)
	if response := w.validate(t, w.request(t, admissionv1.Create)); !response.Allowed {
		t.Fatalf("refused: %s", response.Result.Message)
	}
	if w.reads != 3 {
		t.Errorf("%d reads, want 3", w.reads)
	}
}

func TestARefreshDoesNotKeepAPersonFromApproving(t *testing.T) {
	w := newWorld(t)
	w.schema.Status.ActiveOperation = &v1alpha1.ActiveOperationStatus{Type: v1alpha1.OperationRefresh, ID: digest("f"), InputFingerprint: digest("f"), JobName: "j"}
	for _, phase := range []v1alpha1.Phase{v1alpha1.PhaseAwaitingApproval, v1alpha1.PhaseRefreshing} {
		w.schema.Status.Phase = phase
		if response := w.validate(t, w.request(t, admissionv1.Create)); !response.Allowed {
			t.Errorf("phase %s: refused: %s", phase, response.Result.Message)
		}
	}
}

func TestAnApprovalIsRefusedInOneSentence(t *testing.T) {
	for name, test := range map[string]struct {
		change func(*world)
		want   string
	}{
		"not stamped": {func(w *world) { w.approval.Spec.MutationRequestUID = "" }, "spec.approver: the identity was not stamped"},
		"no time":     {func(w *world) { w.approval.Spec.ApprovedAt = metav1.Time{} }, "spec.approver: the identity was not stamped"},
		"another name": {func(w *world) { w.approval.Spec.Approver.Username = "root" },
			`spec.approver: is not the authenticated user "alice"`},
		"another UID":        {func(w *world) { w.approval.Spec.Approver.UID = "0" }, "spec.approver: is not the authenticated user"},
		"another group":      {func(w *world) { w.approval.Spec.Approver.Groups = []string{"system:masters"} }, "spec.approver: is not the authenticated user"},
		"no such schema":     {func(w *world) { w.schema = nil }, `spec.schemaRef.name: the PtahSchema "orders" does not exist in namespace "shop"`},
		"no such plan":       {func(w *world) { w.plan = nil }, `spec.planRef.name: the PtahSchemaPlan "ptah-plan-`},
		"no policy":          {func(w *world) { w.policy = nil }, `the verification policy ConfigMap "policy" does not exist`},
		"a newer plan":       {func(w *world) { w.plan.Spec.ControllerStateVersion = 2 }, "was written by a newer manager (state version 2"},
		"a newer schema":     {func(w *world) { w.schema.Status.ExecutionBinding.ControllerStateVersion = 3 }, "was written by a newer manager (state version 3"},
		"another schema UID": {func(w *world) { w.approval.Spec.SchemaRef.UID = "older" }, `spec.schemaRef.uid: PtahSchema "orders" was created anew`},
		"suspended":          {func(w *world) { w.schema.Spec.Suspend = true }, "is suspended"},
		"an edited spec":     {func(w *world) { w.schema.Generation = 5 }, "changed (generation 5) and was not looked at yet"},
		"an Apply in flight": {func(w *world) {
			w.schema.Status.ActiveOperation = &v1alpha1.ActiveOperationStatus{Type: v1alpha1.OperationApply}
		}, `an operation (Apply) of PtahSchema "orders" is running`},
		"a proof owed":              {func(w *world) { w.schema.Status.PendingObservation = &v1alpha1.PendingObservationStatus{} }, "the outcome of an Apply"},
		"another phase":             {func(w *world) { w.schema.Status.Phase = v1alpha1.PhaseBlocked }, "does not wait for an approval (phase Blocked)"},
		"no need":                   {func(w *world) { w.schema.Status.Conditions[0].Status = metav1.ConditionFalse }, "does not say that an approval is required"},
		"an older need":             {func(w *world) { w.schema.Status.Conditions[0].ObservedGeneration = 3 }, "does not say that an approval is required"},
		"no condition":              {func(w *world) { w.schema.Status.Conditions = nil }, "does not say that an approval is required"},
		"no plan":                   {func(w *world) { w.schema.Status.Plan = nil }, "has no plan"},
		"already approved":          {func(w *world) { w.schema.Status.Plan.Approval = &v1alpha1.PlanApprovalStatus{Name: "earlier"} }, "has an approval already (earlier)"},
		"a plan that moved on":      {func(w *world) { w.schema.Status.Plan.Name = "ptah-plan-new" }, `spec.planRef.name: the current plan of PtahSchema "orders" is "ptah-plan-new"`},
		"another plan UID":          {func(w *world) { w.approval.Spec.PlanRef.UID = "older" }, "spec.planRef.uid: the current plan"},
		"a plan created anew":       {func(w *world) { w.plan.UID = "newer" }, "spec.planRef.uid: the current plan"},
		"another fingerprint":       {func(w *world) { w.approval.Spec.PlanFingerprint = v1alpha1.Digest(digest("f")) }, "spec.planFingerprint: the current plan has the fingerprint sha256:"},
		"a plan of another":         {func(w *world) { w.plan.OwnerReferences[0].UID = "other" }, `does not belong to PtahSchema "orders"`},
		"a plan of nobody":          {func(w *world) { w.plan.OwnerReferences = nil }, `does not belong to PtahSchema "orders"`},
		"a plan not stored":         {func(w *world) { w.plan.Status.Conditions[0].Status = metav1.ConditionFalse }, "are not all stored (condition Ready is not True)"},
		"a plan that names another": {func(w *world) { w.plan.Spec.SchemaRef.UID = "other" }, `does not belong to PtahSchema "orders"`},
		"an altered plan":           {func(w *world) { w.plan.Spec.Destructive = true }, "is not intact"},
		"a plan without chunks":     {func(w *world) { w.plan.Status.PublishedChunks = nil }, "is not intact"},
		"another plan stored":       {func(w *world) { w.plan.Spec.Fingerprint = v1alpha1.Digest(digest("f")) }, "does not have the fingerprint that PtahSchema"},
		"a retired epoch":           {func(w *world) { w.schema.Status.ExecutionBinding.Epoch = "v1-new" }, "belongs to a retired execution binding"},
		"no epoch":                  {func(w *world) { w.schema.Status.ExecutionBinding = nil }, "belongs to a retired execution binding"},
		"another artifact":          {func(w *world) { w.schema.Status.Source.Digest = digest("f") }, "was computed from another artifact"},
		"an unverified source":      {func(w *world) { w.schema.Status.Source.Verified = false }, "was computed from another artifact"},
		"no source":                 {func(w *world) { w.schema.Status.Source = nil }, "was computed from another artifact"},
		"another realm":             {func(w *world) { w.schema.Status.Target.CoordinationDigest = digest("f") }, "was computed for another database"},
		"another database":          {func(w *world) { w.schema.Status.Target.IdentityDigest = digest("f") }, "was computed for another database"},
		"no target":                 {func(w *world) { w.schema.Status.Target = nil }, "was computed for another database"},
		"a changed database":        {func(w *world) { w.schema.Status.Target.StateFingerprint = digest("f") }, "the database has changed since plan"},
		"a changed policy":          {func(w *world) { w.schema.Spec.Policy.AllowDestructive = true }, `the policy of PtahSchema "orders" has changed`},
		"another policy object":     {func(w *world) { w.policy.UID = "newer" }, "the verification policy policy/policy.yaml has changed"},
		"other policy bytes":        {func(w *world) { w.policy.Data["policy.yaml"] += "#" }, "the verification policy policy/policy.yaml has changed"},
		"no policy bytes":           {func(w *world) { delete(w.policy.Data, "policy.yaml") }, "the verification policy policy/policy.yaml has changed"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			test.change(w)
			response := w.validate(t, w.request(t, admissionv1.Create))
			if response.Allowed || response.Result.Code != http.StatusForbidden || !strings.Contains(response.Result.Message, test.want) {
				t.Fatalf("allowed %v, code %d, %q, want a refusal with %q", response.Allowed, response.Result.Code, response.Result.Message, test.want)
			}
			if strings.Contains(response.Result.Message, "\n") || !strings.HasPrefix(response.Result.Message, "spec.") {
				t.Errorf("%q is not one sentence that begins with a field", response.Result.Message)
			}
		})
	}
}

func TestASchemaThatIsDeletedIsNotApproved(t *testing.T) {
	w := newWorld(t)
	now := metav1.NewTime(start)
	w.schema.DeletionTimestamp, w.schema.Finalizers = &now, []string{v1alpha1.FinalizerSchema}
	response := w.validate(t, w.request(t, admissionv1.Create))
	if response.Allowed || !strings.Contains(response.Result.Message, "is being deleted") {
		t.Errorf("allowed %v, %q", response.Allowed, response.Result.Message)
	}
}

func TestAReadThatFailsAdmitsNothing(t *testing.T) {
	w := newWorld(t)
	w.readFail = errors.New("overloaded")
	response := w.validate(t, w.request(t, admissionv1.Create))
	if response.Allowed || response.Result.Code != http.StatusInternalServerError || !strings.Contains(response.Result.Message, "could not be read; try again") {
		t.Errorf("allowed %v, %+v", response.Allowed, response.Result)
	}
}

func TestAnUpdateMayNotTouchTheSpec(t *testing.T) {
	w := newWorld(t)
	request := w.request(t, admissionv1.Update)
	w.approval.Labels = map[string]string{"a": "b"}
	labelled, err := json.Marshal(w.approval)
	if err != nil {
		t.Fatal(err)
	}
	request.Object.Raw = labelled
	if response := w.validate(t, request); !response.Allowed {
		t.Errorf("a label is refused: %s", response.Result.Message)
	}
	w.approval.Spec.PlanRef.UID = "other"
	changed, err := json.Marshal(w.approval)
	if err != nil {
		t.Fatal(err)
	}
	request.Object.Raw = changed
	response := w.validate(t, request)
	if response.Allowed || !strings.Contains(response.Result.Message, "an approval is immutable; delete it and create another") {
		t.Errorf("allowed %v, %q", response.Allowed, response.Result.Message)
	}
	if w.reads != 0 {
		t.Errorf("an update took %d reads", w.reads)
	}
}
