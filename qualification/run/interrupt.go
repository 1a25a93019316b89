package run

import (
	"context"
	"os"
)

// Interrupts turns signals into the two contexts of Do: the first signal ends ctx, so that the run stops after it took
// down what it had made, and the second ends abort, so that it stops at once. Each is told to say once. Release ends
// both and lets go of the signals.
func Interrupts(parent context.Context, signals <-chan os.Signal, say func(format string, arguments ...any)) (ctx, abort context.Context, release func()) {
	// What ends the parent is the first signal too, which reaches everybody who listens.
	ctx, stop := context.WithCancel(parent)
	abort, stopNow := context.WithCancel(context.WithoutCancel(parent))
	released := make(chan struct{})
	go func() {
		for count := 1; count <= 2; count++ {
			select {
			case <-signals:
			case <-released:
				return
			}
			if count == 1 {
				say("stopping after the cell under way is taken down; interrupt again to stop at once")
				stop()
				continue
			}
			say("stopping at once")
			stopNow()
		}
	}()
	return ctx, abort, func() { close(released); stop(); stopNow() }
}
