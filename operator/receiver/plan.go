package receiver

import (
	"context"
	"errors"
	"net/http"
	"strconv"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"ptah.run/ptah/operator/operation/identity"
	"ptah.run/ptah/operator/plan"
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
	manifest, data, err := plan.Read(ctx, s.reader, claimed.Namespace, *claim.PlanRef)
	switch {
	case errors.Is(err, plan.ErrAltered) || apierrors.IsNotFound(err):
		s.logger.Error(err, "Plan is not intact")
		return refuse(http.StatusForbidden, "the claimed plan is missing or not intact")
	case err != nil:
		s.logger.Error(err, "Plan could not be read")
		return refuse(http.StatusServiceUnavailable, "the claimed plan could not be read; try again")
	case manifest.Spec.SchemaRef.UID != claimed.UID:
		return refuse(http.StatusForbidden, "the claimed plan belongs to another PtahSchema")
	}
	header := w.Header()
	header.Set("Content-Type", delivery.MediaTypePlan)
	header.Set("Content-Length", strconv.Itoa(len(data)))
	header.Set(delivery.DigestHeader, string(manifest.Spec.ContentDigest))
	w.WriteHeader(http.StatusOK)
	// The peer compares size and digest, so a short answer needs no second word.
	_, _ = w.Write(data)
	return nil
}
