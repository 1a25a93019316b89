package receiver

import (
	"context"
	"net/http"
	"strconv"

	"ptah.run/ptah/operator/api/v1alpha1"
	"ptah.run/ptah/operator/operation/identity"
	"ptah.run/ptah/operator/plan/report"
	"ptah.run/ptah/operator/receiver/delivery"
)

// servePlan writes the bytes of the plan that the live claim names. It is stricter than taking a result: whoever gets
// these bytes is about to run them.
func (s *Server) servePlan(ctx context.Context, w http.ResponseWriter, claimed identity.Identity, found *authority) *refusal {
	claim := found.schema.Status.ActiveOperation
	binding := found.schema.Status.ExecutionBinding
	switch {
	case claim == nil || claim.ID != claimed.OperationID:
		return refuse(http.StatusForbidden, "the Apply is no longer the PtahSchema's operation")
	case claim.PlanRef == nil:
		return refuse(http.StatusForbidden, "the claim names no plan")
	case claim.LeaseContinuityLost:
		return refuse(http.StatusForbidden, "the database Lease was not held without a gap")
	case binding == nil || binding.Epoch != claim.ExecutionBindingID:
		return refuse(http.StatusForbidden, "the execution binding has changed since the Apply was claimed")
	case found.schema.DeletionTimestamp != nil:
		return refuse(http.StatusForbidden, "the PtahSchema is being deleted")
	case claim.DispatchNotAfter == nil || s.clock.Now().After(claim.DispatchNotAfter.Time):
		return refuse(http.StatusForbidden, "the Apply's time to start has passed")
	}
	var plan v1alpha1.PtahSchemaPlan
	if refused := s.read(ctx, claimed.Namespace, claim.PlanRef.Name, "PtahSchemaPlan", &plan); refused != nil {
		return refused
	}
	if string(plan.UID) != claim.PlanRef.UID || plan.Spec.SchemaRef.UID != claimed.UID {
		return refuse(http.StatusForbidden, "the claimed plan was created anew or belongs to another PtahSchema")
	}
	data, refused := s.planBytes(ctx, &plan)
	if refused != nil {
		return refused
	}
	header := w.Header()
	header.Set("Content-Type", delivery.MediaTypePlan)
	header.Set("Content-Length", strconv.Itoa(len(data)))
	header.Set(delivery.DigestHeader, string(plan.Spec.ContentDigest))
	w.WriteHeader(http.StatusOK)
	// The peer compares size and digest, so a short answer needs no second word.
	_, _ = w.Write(data)
	return nil
}

func (s *Server) planBytes(ctx context.Context, plan *v1alpha1.PtahSchemaPlan) ([]byte, *refusal) {
	if plan.Spec.Size > v1alpha1.MaxPlanBytes || len(plan.Spec.Chunks) > v1alpha1.MaxPlanChunks {
		return nil, refuse(http.StatusForbidden, "the claimed plan is larger than a plan may be")
	}
	data := make([]byte, 0, plan.Spec.Size)
	for i, want := range plan.Spec.Chunks {
		var chunk v1alpha1.PtahSchemaPlanChunk
		if refused := s.read(ctx, plan.Namespace, want.Name, "PtahSchemaPlanChunk", &chunk); refused != nil {
			return nil, refused
		}
		if int(want.Index) != i || int64(len(chunk.Spec.Data)) != want.Size || report.Digest(chunk.Spec.Data) != string(want.Digest) {
			return nil, refuse(http.StatusForbidden, "chunk %d of the claimed plan does not have its size and digest", i)
		}
		data = append(data, chunk.Spec.Data...)
	}
	if int64(len(data)) != plan.Spec.Size || report.Digest(data) != string(plan.Spec.ContentDigest) {
		return nil, refuse(http.StatusForbidden, "the claimed plan's bytes do not have its size and digest")
	}
	return data, nil
}
