package lab

import (
	"context"
	"fmt"
	"time"

	cerrdefs "github.com/containerd/errdefs"
	"github.com/moby/moby/client"

	"ptah.run/ptah/qualification/lab/engine"
	"ptah.run/ptah/qualification/lab/journal"
)

// inFlightLimit bounds the wait for what the engine may still be making for a process that died. The engine finishes a
// request although nobody waits for its answer; it needs a fraction of a second for a network or a container, and longer
// on a busy machine.
const inFlightLimit = 5 * time.Second

// awaitInFlight waits until everything that an ended process asked the engine for, without hearing that it was made,
// exists, or until the engine cannot be at it any more. What is removed before it exists would stay.
func awaitInFlight(ctx context.Context, e *engine.Engine, entries []journal.Entry) error {
	bounded, cancel := context.WithTimeout(ctx, inFlightLimit)
	defer cancel()
	for _, asked := range journal.Asked(entries) {
		for bounded.Err() == nil {
			there, err := exists(ctx, e, asked)
			if err != nil {
				return err
			}
			if there {
				break
			}
			select {
			case <-bounded.Done():
			case <-time.After(50 * time.Millisecond):
			}
		}
	}
	return ctx.Err()
}

func exists(ctx context.Context, e *engine.Engine, asked journal.Entry) (bool, error) {
	var err error
	switch asked.Kind {
	case journal.Network:
		_, err = e.Client().NetworkInspect(ctx, asked.Name, client.NetworkInspectOptions{})
	case journal.Container:
		_, err = e.Client().ContainerInspect(ctx, asked.Name, client.ContainerInspectOptions{})
	default:
		return true, nil // kind's commands are ended before, and what they asked for is looked for by label
	}
	if cerrdefs.IsNotFound(err) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("look for the %s %s of the lab: %w", asked.Kind, asked.Name, err)
	}
	return true, nil
}
