package driverload_test

import (
	"bytes"
	"errors"
	"strings"
	"testing"
	"time"

	"ptah.run/ptah/qualification/evidence/driverload"
	"ptah.run/ptah/qualification/evidence/stream"
)

func written(t testing.TB, entries ...any) []byte {
	t.Helper()
	var buffer bytes.Buffer
	w := stream.NewWriter(&buffer)
	for _, entry := range entries {
		if err := w.Append(entry); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return buffer.Bytes()
}

func start() driverload.Entry {
	return driverload.Entry{Start: &driverload.Start{PID: 1, Processors: 2, Interval: 1}}
}

func sample(elapsed float64, change func(*driverload.Sample)) driverload.Entry {
	s := &driverload.Sample{Elapsed: elapsed, CPU: elapsed / 2, Memory: 100, Processes: 2}
	if change != nil {
		change(s)
	}
	return driverload.Entry{Sample: s}
}

func TestAnAccountReadsBack(t *testing.T) {
	start, samples, err := driverload.Read(bytes.NewReader(written(t, start(), sample(1, nil), sample(2, nil))))
	if err != nil || start.Processors != 2 || len(samples) != 2 || samples[1].CPU != 1 {
		t.Errorf("%+v, %+v, %v", start, samples, err)
	}
}

func TestLinesThatNoDriverWritesAreRefused(t *testing.T) {
	lost := func(n int64) func(*driverload.Sample) {
		return func(s *driverload.Sample) { s.Lost = map[string]int64{"audit": n} }
	}
	cases := map[string][]any{
		"nothing at all":                      {},
		"a sample before the start":           {sample(1, nil)},
		"two starts":                          {start(), start()},
		"a line that is neither":              {start(), driverload.Entry{}},
		"a start without an interval":         {driverload.Entry{Start: &driverload.Start{Processors: 1}}},
		"a start without a processor":         {driverload.Entry{Start: &driverload.Start{Interval: 1}}},
		"a time that went back":               {start(), sample(2, nil), sample(1, nil)},
		"a time that stood still":             {start(), sample(2, nil), sample(2, nil)},
		"a negative lateness":                 {start(), sample(1, func(s *driverload.Sample) { s.Late = -1 })},
		"a negative number of missed samples": {start(), sample(1, func(s *driverload.Sample) { s.Missed = -1 })},
		"a count of losses that went back":    {start(), sample(1, lost(2)), sample(2, lost(1))},
		"a count of losses that vanished":     {start(), sample(1, lost(2)), sample(2, nil)},
		"a line of another shape":             {map[string]any{"sample": 3}},
	}
	for name, entries := range cases {
		if _, _, err := driverload.Read(bytes.NewReader(written(t, entries...))); !errors.Is(err, stream.ErrMalformed) {
			t.Errorf("%s: %v", name, err)
		}
	}
	whole := written(t, start(), sample(1, nil))
	if _, samples, err := driverload.Read(bytes.NewReader(whole[:bytes.LastIndexByte(whole[:len(whole)-1], '\n')+1])); !errors.Is(err, stream.ErrIncomplete) || len(samples) != 1 {
		t.Errorf("a cut account: %v", err)
	}
}

// account returns n samples, one each second, changed by the function.
func account(n int, change func(i int, s *driverload.Sample)) []driverload.Sample {
	var list []driverload.Sample
	for i := range n {
		s := driverload.Sample{Elapsed: float64(i + 1), CPU: 1.9 * float64(i), Memory: int64(i), Late: 0.02}
		if change != nil {
			change(i, &s)
		}
		list = append(list, s)
	}
	return list
}

func count(n int64) *int64 { return &n }

func seconds(s float64) *float64 { return &s }

func TestOnlyWhatHarmsTheEvidenceIsHarm(t *testing.T) {
	cases := map[string]struct {
		samples []driverload.Sample
		want    string // empty for no harm
	}{
		"should let a busy machine that keeps up pass": {account(100, func(i int, s *driverload.Sample) {
			s.Late, s.Throttled = 0.3, seconds(float64(i)/2)
			s.Pressure = &driverload.Pressure{CPU: float64(i), Memory: float64(i), IO: float64(i)}
		}), ""},
		"should let a driver that is late now and then pass": {account(100, func(i int, s *driverload.Sample) {
			if i%25 == 0 {
				s.Late = 3
			}
		}), ""},
		"should void one reading that was lost":             {account(100, func(i int, s *driverload.Sample) { s.Lost = map[string]int64{"audit": int64(i / 99)} }), "lost 1 readings (audit 1)"},
		"should add up what several queues lost":            {account(2, func(_ int, s *driverload.Sample) { s.Lost = map[string]int64{"b": 2, "a": 1, "c": 0} }), "lost 3 readings (a 1, b 2)"},
		"should void a driver that is late too often":       {account(100, func(i int, s *driverload.Sample) { s.Late = 0.4 + float64(i%10/9)*0.2 }), "late in 10 of 100 intervals (10.0 %)"},
		"should count intervals without a sample as late":   {account(100, func(i int, s *driverload.Sample) { s.Missed = i % 20 / 19 * 2 }), "late in 15 of 110"},
		"should say that a late driver was throttled":       {account(100, func(i int, s *driverload.Sample) { s.Late, s.Throttled = 0.8, seconds(float64(i)) }), "throttled for 99.0 s"},
		"should void a driver that stood still":             {account(100, func(i int, s *driverload.Sample) { s.Missed = i / 99 * 11 }), "stood still for 11.0 s"},
		"should void a clock that jumped":                   {account(100, func(i int, s *driverload.Sample) { s.ClockStep = -float64(i / 99 * 2) }), "moved by 2.0 s"},
		"should void a cell whose processes were killed":    {account(100, func(i int, s *driverload.Sample) { s.Killed = count(int64(7 + i/99)) }), "killed 1 processes"},
		"should not take kills of before for kills now":     {account(100, func(_ int, s *driverload.Sample) { s.Killed = count(7) }), ""},
		"should not speak of a part of too few intervals":   {account(19, func(_ int, s *driverload.Sample) { s.Late = 0.9 }), ""},
		"should speak of a part of just enough intervals":   {account(20, func(_ int, s *driverload.Sample) { s.Late = 0.9 }), "late in 20 of 20"},
		"should find no harm where there are no samples":    {nil, ""},
		"should let exactly the declared lateness pass":     {account(100, func(_ int, s *driverload.Sample) { s.Late = 0.5 }), ""},
		"should let exactly the declared part pass":         {account(100, func(i int, s *driverload.Sample) { s.Late = float64(i % 20 / 19) }), ""},
		"should void a little more than the declared part":  {account(99, func(i int, s *driverload.Sample) { s.Late = float64(i%19/18) * 0.6 }), "late in 5 of 99"},
		"should let a standstill of the declared length be": {account(100, func(i int, s *driverload.Sample) { s.Late = float64(i / 99 * 10) }), ""},
	}
	bounds := driverload.Declared()
	for name, test := range cases {
		t.Run(name, func(t *testing.T) {
			harm := strings.Join(driverload.Summarize(driverload.Start{Interval: 1}, test.samples, bounds).Harm(bounds), "; ")
			if (test.want == "") != (harm == "") || !strings.Contains(harm, test.want) {
				t.Errorf("got %q, want %q", harm, test.want)
			}
		})
	}
}

func TestASummarySaysWhatTheMachineWasAskedFor(t *testing.T) {
	samples := account(11, func(i int, s *driverload.Sample) {
		s.CPU, s.Memory, s.Pressure = 3+float64(i)*1.5, int64(1000-(i-5)*(i-5)), &driverload.Pressure{CPU: 10 + float64(i)}
	})
	s := driverload.Summarize(driverload.Start{Interval: 1}, samples, driverload.Declared())
	if s.Samples != 11 || s.Cores != 1.5 || s.Memory != 1000 || s.Pressure.CPU != 10 || s.Throttled != nil || s.Killed != nil || s.Seconds != 11 || s.Late != 0 {
		t.Errorf("%+v", s)
	}
	if empty := driverload.Summarize(driverload.Start{Interval: 1}, nil, driverload.Declared()); empty.Samples != 0 || empty.LatePart != 0 {
		t.Errorf("%+v", empty)
	}
}

func TestTheDeclaredBoundsLeaveRoomForTheDriversOwnInterval(t *testing.T) {
	b := driverload.Declared()
	if b.Lost != 0 || b.Late <= 0 || b.Late >= time.Second || b.LatePart <= 0 || b.LatePart > 0.1 || b.Enough < 2 || b.Stall < 2*time.Second || b.ClockStep <= 0 {
		t.Errorf("%+v", b)
	}
}

func FuzzRead(f *testing.F) {
	f.Add(written(f, start(), sample(1, nil), sample(2, func(s *driverload.Sample) { s.Lost = map[string]int64{"a": 1} })))
	f.Add(written(f, start()))
	f.Add([]byte(`{"start":{"processors":1}}` + "\n"))
	f.Fuzz(func(t *testing.T, data []byte) {
		start, samples, err := driverload.Read(bytes.NewReader(data))
		if err != nil {
			return
		}
		s := driverload.Summarize(start, samples, driverload.Declared())
		if s.Late > s.Intervals || s.Intervals < s.Samples {
			t.Fatalf("%+v", s)
		}
		s.Harm(driverload.Declared())
	})
}
