package operation

import (
	"context"
	"fmt"
	"strings"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// dispatchBound is how long a started dispatch may take after the manager was told to stop. It ends well inside the
// graceful stop of 20 s.
const dispatchBound = 15 * time.Second

// Dispatched says what is known after a Job was created, or after the attempt.
type Dispatched int

// What a dispatch can end in.
const (
	// NotStarted: nothing was sent.
	NotStarted Dispatched = iota
	// Created: the Job is stored.
	Created
	// Refused: the API server answered in a way which proves that nothing was stored.
	Refused
	// Uncertain: the Job may or may not exist. It must be looked for; it must not be created again if it mutates.
	Uncertain
)

// Create sends one create request. It does not start on a cancelled context; once started, it goes on when ctx is
// cancelled, for at most 15 s, because a lost answer would leave an uncertain outcome behind. On Created, job is what
// the API server stored. The error says why for every other outcome.
func Create(ctx context.Context, writer client.Client, job *batchv1.Job) (Dispatched, error) {
	if err := ctx.Err(); err != nil {
		return NotStarted, fmt.Errorf("create Job %s: not started: %w", job.Name, err)
	}
	bounded, cancel := context.WithTimeout(context.WithoutCancel(ctx), dispatchBound)
	defer cancel()
	err := writer.Create(bounded, job)
	if err == nil {
		return Created, nil
	}
	err = fmt.Errorf("create Job %s: %w", job.Name, err)
	if DefinitelyNotStored(err) {
		return Refused, err
	}
	return Uncertain, err
}

// DefinitelyNotStored says whether the error of a create request proves that nothing was stored: denied, invalid,
// forbidden (quota and terminating namespaces too), too large, rate limited, or stopped because a webhook could not be
// reached. A timeout, a broken connection, an unexplained server error and "already exists" prove nothing.
func DefinitelyNotStored(err error) bool {
	switch {
	case apierrors.IsForbidden(err), apierrors.IsInvalid(err), apierrors.IsBadRequest(err),
		apierrors.IsUnauthorized(err), apierrors.IsNotFound(err), apierrors.IsMethodNotSupported(err),
		apierrors.IsNotAcceptable(err), apierrors.IsUnsupportedMediaType(err),
		apierrors.IsRequestEntityTooLargeError(err), apierrors.IsTooManyRequests(err):
		return true
	case apierrors.IsInternalError(err):
		return strings.Contains(err.Error(), "failed calling webhook")
	}
	// A webhook may deny with any code it likes; the API server says so in these words.
	return apierrors.ReasonForError(err) != "" && strings.Contains(err.Error(), "denied the request")
}
