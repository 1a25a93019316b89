package receiver

import (
	"errors"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"ptah.run/ptah/operator/api/v1alpha1"
	"ptah.run/ptah/operator/plan/report"
	"ptah.run/ptah/operator/receiver/delivery"
)

func (w *world) planPath() string { return delivery.PlansPath + delivery.Publication(w.id) }

func TestAnApplyIsServedTheBytesThatItsClaimNames(t *testing.T) {
	w := newWorld(t, delivery.OperationApply)
	data := w.publishPlan(t)
	response := w.ask(http.MethodGet, w.planPath(), nil)
	if response.Code != http.StatusOK || response.Body.String() != string(data) {
		t.Fatalf("status %d: %s", response.Code, response.Body)
	}
	if response.Header().Get(delivery.DigestHeader) != report.Digest(data) {
		t.Errorf("digest %s", response.Header().Get(delivery.DigestHeader))
	}
	kinds := []string{}
	for _, request := range w.requests {
		kinds = append(kinds, strings.Join(strings.Fields(request)[:min(2, len(strings.Fields(request)))], " "))
	}
	if want := []string{"review", "get schema", "get job", "get pod", "get plan", "get planchunk"}; !slices.Equal(kinds, want) {
		t.Errorf("requests %v, want %v", kinds, want)
	}
}

func TestWhoIsNotServedAPlan(t *testing.T) {
	schema := func(edit func(*v1alpha1.PtahSchema)) func(*testing.T, *world) {
		return func(_ *testing.T, w *world) { change(w, &v1alpha1.PtahSchema{}, "orders", edit) }
	}
	claim := func(edit func(*v1alpha1.ActiveOperationStatus)) func(*testing.T, *world) {
		return schema(func(s *v1alpha1.PtahSchema) { edit(s.Status.ActiveOperation) })
	}
	stored := func(w *world) string {
		var schema v1alpha1.PtahSchema
		change(w, &schema, "orders", func(*v1alpha1.PtahSchema) {})
		return schema.Status.ActiveOperation.PlanRef.Name
	}
	for name, test := range map[string]struct {
		change func(*testing.T, *world)
		status int
		want   string
	}{
		"a claim without a plan": {claim(func(c *v1alpha1.ActiveOperationStatus) { c.PlanRef = nil }), 403, "the claim names no plan"},
		"a lost Lease":           {claim(func(c *v1alpha1.ActiveOperationStatus) { c.LeaseContinuityLost = true }), 403, "was not held without a gap"},
		"no deadline":            {claim(func(c *v1alpha1.ActiveOperationStatus) { c.DispatchNotAfter = nil }), 403, "time to start has passed"},
		"a deadline that passed": {func(_ *testing.T, w *world) { w.clock.SetTime(start.Add(time.Minute + time.Second)) }, 403, "time to start has passed"},
		"another epoch":          {schema(func(s *v1alpha1.PtahSchema) { s.Status.ExecutionBinding.Epoch = "v1-new" }), 403, "the execution binding has changed"},
		"no epoch":               {schema(func(s *v1alpha1.PtahSchema) { s.Status.ExecutionBinding = nil }), 403, "the execution binding has changed"},
		"another plan UID":       {claim(func(c *v1alpha1.ActiveOperationStatus) { c.PlanRef.UID = "older" }), 403, "missing or not intact"},
		"a plan that is gone":    {claim(func(c *v1alpha1.ActiveOperationStatus) { c.PlanRef.Name = "gone" }), 403, "missing or not intact"},
		"an owed observation alone": {schema(func(s *v1alpha1.PtahSchema) {
			s.Status.PendingObservation = &v1alpha1.PendingObservationStatus{ApplyOperationID: s.Status.ActiveOperation.ID, ApplyJobName: "ptah-job", ApplyGeneration: 3}
			s.Status.ActiveOperation = nil
		}), 403, "no longer the PtahSchema's operation"},
		"an altered chunk": {func(_ *testing.T, w *world) {
			change(w, &v1alpha1.PtahSchemaPlanChunk{}, stored(w)+"-000", func(c *v1alpha1.PtahSchemaPlanChunk) { c.Spec.Data[2] = 'b' })
		}, 403, "missing or not intact"},
		"an altered plan": {func(_ *testing.T, w *world) {
			change(w, &v1alpha1.PtahSchemaPlan{}, stored(w), func(p *v1alpha1.PtahSchemaPlan) { p.Spec.Destructive = true })
		}, 403, "missing or not intact"},
		"an unreadable plan": {func(_ *testing.T, w *world) {
			w.fail = func(request string) error {
				if strings.HasPrefix(request, "get plan ") {
					return errors.New("overloaded")
				}
				return nil
			}
		}, 503, "the claimed plan could not be read"},
		"a schema that is deleted": {func(t *testing.T, w *world) {
			change(w, &v1alpha1.PtahSchema{}, "orders", func(s *v1alpha1.PtahSchema) { s.Finalizers = []string{v1alpha1.FinalizerSchema} })
			if err := w.client.Delete(t.Context(), &v1alpha1.PtahSchema{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "orders"}}); err != nil {
				t.Fatal(err)
			}
		}, 403, "is being deleted"},
		"a wrong token": {func(_ *testing.T, w *world) { w.review.Authenticated = false }, 401, "the token is not valid"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, delivery.OperationApply)
			w.publishPlan(t)
			test.change(t, w)
			response := w.ask(http.MethodGet, w.planPath(), nil)
			if response.Code != test.status || !strings.Contains(response.Body.String(), test.want) {
				t.Errorf("status %d %s, want %d with %q", response.Code, response.Body, test.status, test.want)
			}
			if strings.Contains(response.Body.String(), `"plan"`) {
				t.Error("the plan was served")
			}
		})
	}
}

func TestARefreshIsServedNoPlan(t *testing.T) {
	w := newWorld(t, delivery.OperationRefresh)
	change(w, &v1alpha1.PtahSchema{}, "orders", func(s *v1alpha1.PtahSchema) {
		s.Status.ActiveOperation.DispatchNotAfter = ptr.To(metav1.NewTime(start.Add(time.Hour)))
	})
	w.publishPlan(t)
	if response := w.ask(http.MethodGet, w.planPath(), nil); response.Code != http.StatusForbidden || len(w.requests) != 0 {
		t.Errorf("status %d, requests %v", response.Code, w.requests)
	}
}
