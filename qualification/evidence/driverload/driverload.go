// Package driverload is what the driver of a cell says about its own load: the harness process and everything it
// started. It is pure; package driver takes the samples, package judge reads them.
//
// The account is one stream of a cell. Its first line is the Start, every other line is one Sample. A driver that was
// the bottleneck measured itself and not the product: Summary.Harm says so, and such a cell is void. Only what harms
// the evidence counts as harm: readings that were lost, a clock that jumped, processes that were killed for memory,
// and a driver that ran later than it wanted to for a part of the time. Pressure, processor use and throttling are
// kept as information, because a machine may be busy and keep up.
package driverload

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"

	"ptah.run/ptah/qualification/evidence/stream"
)

// FileName is the name of the stream, relative to the cell.
const FileName = "driver.jsonl"

// Entry is one line of the stream: the start on the first, a sample on every other.
type Entry struct {
	Start  *Start  `json:"start,omitempty"`
	Sample *Sample `json:"sample,omitempty"`
}

// Start says what the samples are samples of.
type Start struct {
	At         time.Time `json:"at"`
	PID        int       `json:"pid"`                 // of the harness
	Processors int       `json:"processors"`          // that the driver may use
	Interval   float64   `json:"intervalSeconds"`     // from one sample to the next, as intended
	Cgroup     string    `json:"cgroup,omitempty"`    // v1 or v2; empty where the driver's cgroup cannot be read
	Quota      float64   `json:"quota,omitempty"`     // processors that the cgroup grants; 0 where it sets no limit
	Memory     int64     `json:"memoryMax,omitempty"` // bytes that the cgroup grants; 0 where it sets no limit
	Pressure   bool      `json:"pressure"`            // whether the kernel accounts for pressure
	Children   bool      `json:"children"`            // whether children that still run can be measured
	Problem    string    `json:"problem,omitempty"`   // why something above cannot be had
}

// Sample is one reading. Counters run from the start of the driver and never go back; a reading that the machine
// does not offer is nil, which is not zero.
type Sample struct {
	At time.Time `json:"at"` // by the wall clock
	// Elapsed is the time since the start by the monotonic clock, in seconds.
	Elapsed float64 `json:"elapsedSeconds"`
	// Late is how much later than intended the sample was taken, in seconds. The driver asks for a wake-up each
	// interval; what it waits longer is what any of its own measurements may be wrong by.
	Late float64 `json:"lateSeconds"`
	// Missed counts intervals since the sample before that passed without one, because the driver did not run at all.
	Missed int `json:"missed,omitempty"`
	// ClockStep is by how many seconds the wall clock moved against the monotonic clock since the sample before. A
	// suspended machine and a clock that was set both show here.
	ClockStep float64 `json:"clockStepSeconds"`
	// CPU is the processor time of the driver and its children up to now, in seconds.
	CPU float64 `json:"cpuSeconds"`
	// Memory is what the driver and its children hold resident, in bytes; shared pages count for each of them.
	Memory int64 `json:"memoryBytes"`
	// Processes is the number of processes that CPU and Memory are about.
	Processes int `json:"processes"`
	// Lost counts readings, by the queue that had no room for them, that were taken and could not be kept.
	Lost map[string]int64 `json:"lost,omitempty"`
	// Throttled is how long the driver's cgroup was stopped for using up its processor quota, in seconds.
	Throttled *float64 `json:"throttledSeconds,omitempty"`
	// Killed counts processes of the driver's cgroup that the kernel killed for memory.
	Killed *int64 `json:"killed,omitempty"`
	// Pressure is the machine's own account of tasks that waited: seconds in which some task waited for a
	// processor, for memory, for storage.
	Pressure *Pressure `json:"pressure,omitempty"`
}

// Pressure is the kernel's pressure stall information: the total of "some", in seconds.
type Pressure struct {
	CPU    float64 `json:"cpuSeconds"`
	Memory float64 `json:"memorySeconds"`
	IO     float64 `json:"ioSeconds"`
}

// Account is the stream of a cell as it was read. Whole is false where the stream has no completeness record or one
// that does not fit; then Problem says so, and Samples are what could be read.
type Account struct {
	Start   Start    `json:"start"`
	Samples []Sample `json:"samples"`
	Whole   bool     `json:"whole"`
	Problem string   `json:"problem,omitempty"`
	Digest  string   `json:"digest"` // of the stored stream
}

// Read reads the stream. Where it is not whole it returns what could be read together with an error that wraps a
// defect of package stream.
func Read(r io.Reader) (Start, []Sample, error) {
	var start *Start
	var samples []Sample
	_, err := stream.Read(r, func(line []byte) error {
		var entry Entry
		if err := json.Unmarshal(line, &entry); err != nil {
			return fmt.Errorf("%w: %w", stream.ErrMalformed, err)
		}
		if err := check(entry, start, samples); err != nil {
			return fmt.Errorf("%w: %w", stream.ErrMalformed, err)
		}
		if entry.Start != nil {
			start = entry.Start
		} else {
			samples = append(samples, *entry.Sample)
		}
		return nil
	})
	if start == nil {
		start = &Start{}
		if err == nil {
			err = fmt.Errorf("%w: it does not say what it is an account of", stream.ErrMalformed)
		}
	}
	return *start, samples, err
}

// check refuses a line out of place, and counters that went back: such lines were not written by one driver.
func check(entry Entry, start *Start, samples []Sample) error {
	if (entry.Start == nil) == (entry.Sample == nil) {
		return errors.New("a line is either the start or a sample")
	}
	if entry.Start != nil {
		if start != nil {
			return errors.New("the account starts twice")
		}
		if entry.Start.Interval <= 0 || entry.Start.Processors < 1 {
			return errors.New("the start names no interval or no processor")
		}
		return nil
	}
	if start == nil {
		return errors.New("a sample comes before the start")
	}
	sample := entry.Sample
	if sample.Late < 0 || sample.Missed < 0 || sample.Elapsed < 0 {
		return errors.New("a sample has a negative length of time")
	}
	if len(samples) == 0 {
		return nil
	}
	before := samples[len(samples)-1]
	if sample.Elapsed <= before.Elapsed {
		return errors.New("a sample is not later than the one before it")
	}
	for queue, lost := range before.Lost {
		if sample.Lost[queue] < lost {
			return fmt.Errorf("the count of readings lost by %s went back", queue)
		}
	}
	return nil
}
