package driverload

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"
)

// Bounds say from where on a driver was the bottleneck.
type Bounds struct {
	// Lost is how many readings may be lost in all. A reading that is missing may be the one that would have shown a
	// failure, so that none may be.
	Lost int64
	// Late is how much later than intended the driver may run before an interval counts as late. What it measures is
	// timed in seconds and more; half a second is below what any declared target tells apart, and far above what a
	// task that mostly sleeps waits for on a machine that is merely busy (tens of milliseconds).
	Late time.Duration
	// LatePart is the part of all intervals that may be late. A driver that is late now and then, while an image is
	// unpacked or a database starts, measures a few things late; one that is late for a twentieth of its time cannot
	// say which of its numbers are its own.
	LatePart float64
	// Enough is the least number of intervals for a part of them to mean anything.
	Enough int
	// Stall is the longest that the driver may stand still at once. Scenarios wait in steps of seconds and for
	// minutes in all; a driver that slept longer than this may have missed the whole of what it was to observe.
	Stall time.Duration
	// ClockStep is the most that the wall clock may move against the monotonic one from one sample to the next.
	// Requests are counted in intervals between times of this machine, and a second is the finest of them.
	ClockStep time.Duration
}

// Declared returns the bounds that cells are judged by.
func Declared() Bounds {
	return Bounds{Lost: 0, Late: 500 * time.Millisecond, LatePart: 0.05, Enough: 20, Stall: 10 * time.Second, ClockStep: time.Second}
}

// Summary is what the samples of one account come to. Numbers that no sample shows are nil.
type Summary struct {
	Samples   int              `json:"samples"`
	Intervals int              `json:"intervals"`    // samples, and the intervals that passed without one
	Seconds   float64          `json:"seconds"`      // from the start to the last sample
	Late      int              `json:"late"`         // intervals that were late by more than the bound
	LatePart  float64          `json:"latePart"`     // of all intervals
	Stall     float64          `json:"stallSeconds"` // the longest that the driver stood still
	ClockStep float64          `json:"clockStepSeconds"`
	Cores     float64          `json:"cores"` // processors in use on average, from the first sample to the last
	Memory    int64            `json:"memoryMaxBytes"`
	Lost      map[string]int64 `json:"lost,omitempty"`
	Throttled *float64         `json:"throttledSeconds,omitempty"` // from the first sample to the last
	Killed    *int64           `json:"killed,omitempty"`           // likewise
	Pressure  *Pressure        `json:"pressure,omitempty"`         // likewise
}

// Summarize adds up an account.
func Summarize(start Start, samples []Sample, bounds Bounds) Summary {
	s := Summary{Samples: len(samples)}
	if len(samples) == 0 {
		return s
	}
	first, last := samples[0], samples[len(samples)-1]
	for _, sample := range samples {
		s.Intervals += 1 + sample.Missed
		// A sample after missed intervals came late for each of them.
		stall := sample.Late + float64(sample.Missed)*start.Interval
		if stall > bounds.Late.Seconds() {
			s.Late += 1 + sample.Missed
		}
		s.Stall = max(s.Stall, stall)
		s.ClockStep = max(s.ClockStep, sample.ClockStep, -sample.ClockStep)
		s.Memory = max(s.Memory, sample.Memory)
	}
	s.Seconds, s.LatePart, s.Lost = last.Elapsed, float64(s.Late)/float64(s.Intervals), maps.Clone(last.Lost)
	if length := last.Elapsed - first.Elapsed; length > 0 {
		s.Cores = (last.CPU - first.CPU) / length
	}
	s.Throttled, s.Killed = since(first.Throttled, last.Throttled), since(first.Killed, last.Killed)
	if first.Pressure != nil && last.Pressure != nil {
		s.Pressure = &Pressure{CPU: last.Pressure.CPU - first.Pressure.CPU, Memory: last.Pressure.Memory - first.Pressure.Memory, IO: last.Pressure.IO - first.Pressure.IO}
	}
	return s
}

func since[N int64 | float64](first, last *N) *N {
	if first == nil || last == nil {
		return nil
	}
	difference := *last - *first
	return &difference
}

// Harm says in words what the driver's own load did to the evidence, one sentence for each bound that it broke, and
// nothing where it kept up. An account without a single sample says nothing, and whoever judges must not take that for
// a driver that kept up.
func (s Summary) Harm(bounds Bounds) []string {
	var harm []string
	add := func(broken bool, format string, arguments ...any) {
		if broken {
			harm = append(harm, fmt.Sprintf(format, arguments...))
		}
	}
	var lost int64
	for _, queue := range slices.Sorted(maps.Keys(s.Lost)) {
		lost += s.Lost[queue]
	}
	add(lost > bounds.Lost, "the driver lost %d readings (%s), and at most %d may be", lost, s.lostBy(), bounds.Lost)
	add(s.Intervals >= bounds.Enough && s.LatePart > bounds.LatePart, "the driver ran more than %v late in %d of %d intervals (%.1f %%), at most %.0f %% may be%s",
		bounds.Late, s.Late, s.Intervals, 100*s.LatePart, 100*bounds.LatePart, s.throttling())
	add(s.Stall > bounds.Stall.Seconds(), "the driver stood still for %.1f s at once, at most %v may be%s", s.Stall, bounds.Stall, s.throttling())
	add(s.ClockStep > bounds.ClockStep.Seconds(), "the wall clock moved by %.1f s against the monotonic clock, at most %v may be", s.ClockStep, bounds.ClockStep)
	add(s.Killed != nil && *s.Killed > 0, "the kernel killed %d processes of the driver's cgroup for memory", value(s.Killed))
	return harm
}

func (s Summary) lostBy() string {
	var parts []string
	for _, queue := range slices.Sorted(maps.Keys(s.Lost)) {
		if s.Lost[queue] > 0 {
			parts = append(parts, fmt.Sprintf("%s %d", queue, s.Lost[queue]))
		}
	}
	return strings.Join(parts, ", ")
}

// throttling names the likely cause of lateness, where the kernel gives one.
func (s Summary) throttling() string {
	if s.Throttled == nil || *s.Throttled < 0.1 {
		return ""
	}
	return fmt.Sprintf("; its cgroup was throttled for %.1f s", *s.Throttled)
}

func value(count *int64) int64 {
	if count == nil {
		return 0
	}
	return *count
}
