// Package driver keeps the account of the driver's own load beside a cell: what the harness process and everything it
// started ask of the machine, and whether they run when they want to. It is what tells a slow product from a harness
// that was too slow to see. Package driverload holds the form of the account and says what harms; this package only
// reads clocks and the kernel.
//
//	account, err := driver.Begin(stream, driver.Options{})
//	lost := account.Queue("audit")       // whoever drops a reading counts it here
//	...
//	err = account.End()                  // after the last thing that is measured
package driver

import (
	"fmt"
	"maps"
	"os"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"ptah.run/ptah/qualification/evidence/driverload"
)

// Interval is how often a sample is taken where Options name no other. It is the finest that costs nothing: a sample
// takes about a millisecond.
const Interval = time.Second

// queueLength is how many samples wait for a slow disk before one is lost: more than four minutes of them.
const queueLength = 256

// ownQueue is the name under which the account counts its own samples that were lost.
const ownQueue = "driver"

// Stream takes lines of evidence.
type Stream interface {
	Append(value any) error
}

// Machine reads what the kernel says about this process. Package driver has one for Linux; others are for tests.
type Machine interface {
	// Describe fills in what holds for the whole account.
	Describe(*driverload.Start)
	// Read fills in the readings of a sample. What cannot be read stays nil.
	Read(*driverload.Sample)
}

// Options change how an account is kept.
type Options struct {
	Interval time.Duration // Interval where zero
	Machine  Machine       // this machine where nil
}

// Account is an account that is being kept. It is safe for concurrent use.
type Account struct {
	stream   Stream
	interval time.Duration
	machine  Machine
	start    time.Time

	stop  chan struct{}
	ended chan struct{} // the sampler is done
	queue chan driverload.Sample
	kept  chan error // the writer is done
	once  sync.Once
	err   error

	mutex  sync.Mutex
	queues map[string]*atomic.Int64
}

// Begin writes the first line of the account and samples until End. An error means that nothing is sampled.
func Begin(stream Stream, options Options) (*Account, error) {
	a := &Account{stream: stream, interval: options.Interval, machine: options.Machine, start: time.Now(),
		stop: make(chan struct{}), ended: make(chan struct{}), queue: make(chan driverload.Sample, queueLength), kept: make(chan error, 1),
		queues: map[string]*atomic.Int64{}}
	if a.interval <= 0 {
		a.interval = Interval
	}
	if a.machine == nil {
		a.machine = NewMachine("/")
	}
	start := driverload.Start{At: a.start.UTC(), PID: os.Getpid(), Processors: runtime.NumCPU(), Interval: a.interval.Seconds()}
	a.machine.Describe(&start)
	if err := stream.Append(driverload.Entry{Start: &start}); err != nil {
		return nil, fmt.Errorf("begin the account of the driver's load: %w", err)
	}
	a.Queue(ownQueue)
	go a.write()
	go a.sample()
	return a, nil
}

// Queue returns the counter of readings that a queue had no room for. Whoever drops a reading adds to it; a queue that
// nobody asked for is not in the account, and one that lost nothing is there with zero.
func (a *Account) Queue(name string) *atomic.Int64 {
	a.mutex.Lock()
	defer a.mutex.Unlock()
	counter, known := a.queues[name]
	if !known {
		counter = &atomic.Int64{}
		a.queues[name] = counter
	}
	return counter
}

// End takes a last sample and returns when every sample is in the stream, with the first error of writing one. It does
// not close the stream. Calling it again returns the same.
func (a *Account) End() error {
	a.once.Do(func() {
		close(a.stop)
		<-a.ended
		close(a.queue)
		a.err = <-a.kept
	})
	return a.err
}

// sample asks for a wake-up each interval and notes how late it came. A wake-up that came whole intervals late stands
// for those that were missed.
func (a *Account) sample() {
	defer close(a.ended)
	previous := driverload.Sample{}
	before, due := a.start, a.start.Add(a.interval)
	timer := time.NewTimer(a.interval)
	defer timer.Stop()
	for {
		stopped := false
		select {
		case <-timer.C:
		case <-a.stop:
			stopped = true
		}
		now := time.Now()
		if now.After(before) {
			previous = a.take(now, before, due, previous)
			a.hand(previous, stopped)
			before = now
		}
		if stopped {
			return
		}
		due = due.Add(time.Duration(previous.Missed+1) * a.interval)
		timer.Reset(time.Until(due))
	}
}

// take makes one sample at now. The one before was at before, and this one was due at due.
func (a *Account) take(now, before, due time.Time, previous driverload.Sample) driverload.Sample {
	late := max(now.Sub(due), 0)
	sample := driverload.Sample{At: now.UTC().Round(0), Elapsed: now.Sub(a.start).Seconds(), Missed: int(late / a.interval),
		Late: (late % a.interval).Seconds(), ClockStep: (now.Round(0).Sub(before.Round(0)) - now.Sub(before)).Seconds(), Lost: a.lost()}
	a.machine.Read(&sample)
	// Processes that come and go between two files that are read may take time with them.
	sample.CPU = max(sample.CPU, previous.CPU)
	return sample
}

// hand gives a sample to the writer, or counts it as lost where the writer has too many. The last sample waits for its
// place: it tells how many were lost.
func (a *Account) hand(sample driverload.Sample, last bool) {
	if last {
		a.queue <- sample
		return
	}
	select {
	case a.queue <- sample:
	default:
		a.Queue(ownQueue).Add(1)
	}
}

func (a *Account) lost() map[string]int64 {
	a.mutex.Lock()
	defer a.mutex.Unlock()
	lost := map[string]int64{}
	for name, counter := range maps.All(a.queues) {
		lost[name] = counter.Load()
	}
	return lost
}

// write puts samples into the stream, which may wait for a disk, while the next ones are taken.
func (a *Account) write() {
	var first error
	for sample := range a.queue {
		if first != nil {
			continue
		}
		if err := a.stream.Append(driverload.Entry{Sample: &sample}); err != nil {
			first = fmt.Errorf("keep a sample of the driver's load: %w", err)
		}
	}
	a.kept <- first
}
