// Package progress tells a person how far a long operation is: one line when a step begins and one when it ends,
// with the time it took and the time since the start. It writes plain lines only, so that a log keeps them.
package progress

import (
	"fmt"
	"io"
	"sync"
	"time"
)

// Reporter writes progress lines. It is safe for concurrent use; a nil Reporter is silent.
type Reporter struct {
	mutex sync.Mutex
	out   io.Writer
	now   func() time.Time
	begin time.Time
}

// New returns a Reporter that writes to out and counts from now.
func New(out io.Writer) *Reporter { return NewAt(out, time.Now) }

// NewAt returns a Reporter with a clock of its own.
func NewAt(out io.Writer, now func() time.Time) *Reporter {
	return &Reporter{out: out, now: now, begin: now()}
}

// Step says that a step begins and returns the function that says how it ended.
func (r *Reporter) Step(format string, arguments ...any) func(error) {
	if r == nil {
		return func(error) {}
	}
	name := fmt.Sprintf(format, arguments...)
	begin := r.now()
	r.line("%s ...", name)
	return func(err error) {
		took := r.now().Sub(begin)
		if err != nil {
			r.line("%s failed after %s", name, seconds(took))
			return
		}
		r.line("%s done in %s", name, seconds(took))
	}
}

// Say writes one line.
func (r *Reporter) Say(format string, arguments ...any) {
	if r != nil {
		r.line(format, arguments...)
	}
}

// line tells a person. Where nobody can be told, the operation goes on.
func (r *Reporter) line(format string, arguments ...any) {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	_, _ = fmt.Fprintf(r.out, "[%8s] %s\n", seconds(r.now().Sub(r.begin)), fmt.Sprintf(format, arguments...))
}

func seconds(d time.Duration) string { return fmt.Sprintf("%.1fs", d.Seconds()) }
