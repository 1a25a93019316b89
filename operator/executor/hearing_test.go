package executor_test

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/testcontainers/testcontainers-go"
)

// hearing cancels a context when nothing was said for a while.
type hearing struct {
	timer *time.Timer
	limit time.Duration
	stop  func()
}

var _ testcontainers.LogConsumer = (*hearing)(nil)

// listen returns a context that ends with a cause once nothing was said for as long as limit, and what is to hear it.
func listen(ctx context.Context, limit time.Duration) (context.Context, *hearing) {
	ctx, cancel := context.WithCancelCause(ctx)
	h := &hearing{limit: limit}
	h.timer = time.AfterFunc(limit, func() { cancel(fmt.Errorf("nothing was said for %s", limit)) })
	h.stop = func() {
		h.timer.Stop()
		cancel(nil)
	}
	return ctx, h
}

// Accept implements testcontainers.LogConsumer.
func (h *hearing) Accept(testcontainers.Log) {
	if h.timer.Stop() { // once the limit has passed, a late word changes nothing
		h.timer.Reset(h.limit)
	}
}

// What goes on saying something may take any time, and what falls silent ends, which a late word does not undo.
func TestSilenceEndsWhatHangs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, heard := listen(t.Context(), time.Minute)
		defer heard.stop()
		for range 100 {
			time.Sleep(59 * time.Second)
			synctest.Wait()
			if ctx.Err() != nil {
				t.Fatalf("it ended while words came: %v", context.Cause(ctx))
			}
			heard.Accept(testcontainers.Log{})
		}
		time.Sleep(time.Minute + time.Second)
		synctest.Wait()
		if ctx.Err() == nil || context.Cause(ctx).Error() != "nothing was said for 1m0s" {
			t.Errorf("after the silence: %v", context.Cause(ctx))
		}
		heard.Accept(testcontainers.Log{})
		if context.Cause(ctx).Error() != "nothing was said for 1m0s" {
			t.Error("a late word changed why")
		}
	})
}
