package operation

import (
	"context"
	"errors"
	"fmt"

	ptahv1 "ptah.run/ptah/operator/api/v1alpha1"
	"ptah.run/ptah/operator/operation/result"
)

// ErrNoResult says that no complete result is stored. A result is complete before its Pod ends, so for a finished Job
// this is final.
var ErrNoResult = errors.New("no complete result is stored")

// ErrInvalidResult says that a stored result is not a usable document.
var ErrInvalidResult = errors.New("the stored result is not usable")

// Receipt is a result that was stored, and the Pod that the receiver took it from.
type Receipt struct {
	Document *result.Document
	PodUID   string
}

// Results reads durable results live. The error is ErrNoResult, ErrInvalidResult or one of the API server.
type Results interface {
	Load(ctx context.Context, namespace, publication string) (Receipt, error)
}

// CheckOperation says whether a document, which Load checked in itself, is of the claimed operation.
func CheckOperation(document *result.Document, claim *ptahv1.ActiveOperationStatus) error {
	if document.Operation != string(claim.Type) || document.OperationID != claim.ID {
		return fmt.Errorf("%w: it belongs to another operation", ErrInvalidResult)
	}
	return nil
}
