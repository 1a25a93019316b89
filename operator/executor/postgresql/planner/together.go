package planner

import (
	"context"
	"fmt"
	"sync"

	"ptah.run/ptah/operator/executor/postgresql/dump"
)

// together runs two things at the same time and waits for both. The first's error comes first, whichever failed
// earlier, so that the same inputs end in the same message.
func together(first, second func() error) error {
	var group sync.WaitGroup
	var other error
	group.Go(func() { other = second() })
	err := first()
	group.Wait()
	if err != nil {
		return err
	}
	return other
}

// canonicalBoth makes the two canonical sides, each in a database of its own.
func (p *plan) canonicalBoth(ctx context.Context, loaded []dump.Entry) error {
	return together(func() (err error) {
		p.want, err = p.canonical(ctx, wantDB, loaded, "the desired schema")
		return err
	}, func() (err error) {
		p.have, err = p.canonical(ctx, haveDB, p.request.State.Entries, "the target")
		return err
	})
}

// secondError says that a strategy has a plan the first time and none the second.
type secondError struct{ err error }

func (e *secondError) Error() string { return "compute the plan a second time: " + e.err.Error() }
func (e *secondError) Unwrap() error { return e.err }

// computeBoth computes a plan twice at the same time, each on a copy of its own of the target's clone. Where the first
// computation fails, the second is stopped.
func (p *plan) computeBoth(ctx context.Context, how strategy) (first, second []string, err error) {
	again, stop := context.WithCancel(ctx)
	defer stop()
	err = together(func() (err error) {
		if first, err = p.compute(ctx, how, fmt.Sprintf("a%d", how)); err != nil {
			stop()
		}
		return err
	}, func() (err error) {
		if second, err = p.compute(again, how, fmt.Sprintf("b%d", how)); err != nil {
			return &secondError{err}
		}
		return nil
	})
	return first, second, err
}
