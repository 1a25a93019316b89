package runner

import (
	"context"
	"errors"
	"time"
)

// deliveryMargin is kept free at the end of the grace, so that a delivery ends before the kubelet kills.
const deliveryMargin = time.Second

// stopping divides the grace of a Pod: ptah has two thirds of it, the delivery of what it did has the rest.
type stopping struct {
	ctx   context.Context
	grace time.Duration
	// delivery ends when the grace is used up; without a request to stop it never ends.
	delivery context.Context
}

func newStopping(ctx context.Context, grace time.Duration) *stopping {
	delivery, cancel := context.WithCancel(context.WithoutCancel(ctx))
	context.AfterFunc(ctx, func() {
		time.AfterFunc(grace-min(deliveryMargin, grace/10), cancel)
	})
	return &stopping{ctx: ctx, grace: grace, delivery: delivery}
}

// stopped returns an error once the Pod was asked to stop.
func (s *stopping) stopped() error {
	if s.ctx.Err() != nil {
		return errors.New("the Pod was asked to stop")
	}
	return nil
}

// patience is how long ptah may take to end after it was asked to.
func (s *stopping) patience() time.Duration { return s.grace * 2 / 3 }
