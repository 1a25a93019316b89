package driver

import (
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"ptah.run/ptah/qualification/evidence/driverload"
	"ptah.run/ptah/qualification/evidence/stream"
)

// book is a stream in memory that may be slow, full or broken.
type book struct {
	mutex   sync.Mutex
	entries []driverload.Entry
	delay   time.Duration
	fail    int // from which line on
}

func (b *book) Append(value any) error {
	time.Sleep(b.delay)
	b.mutex.Lock()
	defer b.mutex.Unlock()
	if b.fail > 0 && len(b.entries) >= b.fail {
		return errors.New("disk full")
	}
	b.entries = append(b.entries, value.(driverload.Entry))
	return nil
}

func (b *book) samples() []driverload.Sample {
	var samples []driverload.Sample
	for _, entry := range b.entries[1:] {
		samples = append(samples, *entry.Sample)
	}
	return samples
}

// busy is a machine whose readings take as long as it is told.
type busy struct{ takes func(n int) time.Duration }

func (b busy) Describe(*driverload.Start) {}

func (b busy) Read(sample *driverload.Sample) {
	time.Sleep(b.takes(int(sample.Elapsed + 0.5)))
}

func always(d time.Duration) func(int) time.Duration { return func(int) time.Duration { return d } }

func keep(t *testing.T, b *book, machine Machine, length time.Duration) *Account {
	t.Helper()
	account, err := Begin(b, Options{Machine: machine})
	if err != nil {
		t.Fatal(err)
	}
	time.Sleep(length)
	return account
}

func TestADriverThatKeepsUpIsOnTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := &book{}
		account := keep(t, b, busy{always(time.Millisecond)}, 30*time.Second+500*time.Millisecond)
		if err := account.End(); err != nil {
			t.Fatal(err)
		}
		samples := b.samples()
		if len(samples) != 31 || b.entries[0].Start.Interval != 1 || b.entries[0].Start.Processors < 1 {
			t.Fatalf("%d samples, start %+v", len(samples), b.entries[0].Start)
		}
		for i, s := range samples {
			if s.Late > 0.01 || s.Missed != 0 || s.ClockStep != 0 || s.Lost[ownQueue] != 0 {
				t.Errorf("sample %d is %+v", i, s)
			}
		}
		if samples[30].Elapsed != 30.5 {
			t.Errorf("the last sample is from %v s", samples[30].Elapsed)
		}
		if err := account.End(); err != nil {
			t.Errorf("a second end: %v", err)
		}
	})
}

func TestADriverThatStandsStillSaysSo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := &book{}
		stall := func(n int) time.Duration {
			if n == 5 {
				return 13200 * time.Millisecond // from second 5 to 18.2: the samples of 6 to 17 are missed, that of 18 is late
			}
			return 0
		}
		account := keep(t, b, busy{stall}, 40*time.Second)
		if err := account.End(); err != nil {
			t.Fatal(err)
		}
		samples := b.samples()
		after := samples[5]
		if after.Missed != 12 || after.Late < 0.19 || after.Late > 0.21 {
			t.Fatalf("after the standstill: %+v", after)
		}
		bounds := driverload.Declared()
		summary := driverload.Summarize(*b.entries[0].Start, samples, bounds)
		if harm := strings.Join(summary.Harm(bounds), "; "); !strings.Contains(harm, "stood still for 12.2 s") {
			t.Errorf("%+v: %q", summary, harm)
		}
		if summary.Intervals != 40 {
			t.Errorf("%d intervals in 40 s", summary.Intervals)
		}
		if next := samples[6]; next.Missed != 0 || next.Late != 0 {
			t.Errorf("the driver does not find back into step: %+v", next)
		}
	})
}

func TestASlowDiskLosesSamplesAndSaysSo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := &book{delay: 3 * time.Second} // a third of the samples can be written
		account := keep(t, b, busy{always(0)}, 600*time.Second+500*time.Millisecond)
		if err := account.End(); err != nil {
			t.Fatal(err)
		}
		samples := b.samples()
		lost := samples[len(samples)-1].Lost[ownQueue]
		if lost < 100 || int64(len(samples))+lost != 601 {
			t.Errorf("%d samples kept and %d lost, of 601", len(samples), lost)
		}
		bounds := driverload.Declared()
		if harm := driverload.Summarize(*b.entries[0].Start, samples, bounds).Harm(bounds); len(harm) == 0 {
			t.Error("no harm")
		}
	})
}

func TestWhatOthersLoseIsInTheAccount(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := &book{}
		account := keep(t, b, busy{always(0)}, 2500*time.Millisecond)
		account.Queue("audit").Add(2)
		account.Queue("audit").Add(1)
		account.Queue("watch")
		if err := account.End(); err != nil {
			t.Fatal(err)
		}
		samples := b.samples()
		if last := samples[len(samples)-1].Lost; last["audit"] != 3 || len(last) != 3 || len(samples[0].Lost) != 1 {
			t.Errorf("%v, then %v", samples[0].Lost, last)
		}
	})
}

func TestAnAccountThatCannotBeKeptIsAnError(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		account := keep(t, &book{fail: 3}, busy{always(0)}, 10*time.Second)
		if err := account.End(); err == nil || !strings.Contains(err.Error(), "disk full") {
			t.Errorf("%v", err)
		}
	})
	if _, err := Begin(brokenStream{}, Options{}); err == nil {
		t.Error("an account without its first line was begun")
	}
}

type brokenStream struct{}

func (brokenStream) Append(any) error { return errors.New("disk full") }

// written is a stream whose bytes are read back.
type written struct{ *stream.Writer }

func TestTheRealMachineIsReadAndReadBack(t *testing.T) {
	if _, err := os.Stat("/proc/self/stat"); err != nil {
		t.Skip("not-run: this system has no /proc")
	}
	var buffer bytes.Buffer
	writer := written{stream.NewWriter(&buffer)}
	account, err := Begin(writer, Options{Interval: 20 * time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	child := exec.Command("sleep", "5")
	if err := child.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = child.Process.Kill(); _ = child.Wait() }()
	spin := time.Now()
	for time.Since(spin) < 300*time.Millisecond {
		_ = strings.Repeat("x", 1000)
	}
	if err := account.End(); err != nil {
		t.Fatal(err)
	}
	if _, err := writer.Close(); err != nil {
		t.Fatal(err)
	}
	start, samples, err := driverload.Read(bytes.NewReader(buffer.Bytes()))
	if err != nil || len(samples) < 2 {
		t.Fatalf("%d samples, %v", len(samples), err)
	}
	last := samples[len(samples)-1]
	if last.CPU <= 0 || last.Memory < 1<<20 || start.PID != os.Getpid() {
		t.Errorf("start %+v, last sample %+v", start, last)
	}
	if start.Children && last.Processes < 2 {
		t.Errorf("the child is not counted: %+v", last)
	}
	if (start.Cgroup != "") != (last.Throttled != nil) {
		data, _ := json.Marshal(start)
		t.Logf("throttling is not to be had here: %s", data)
	}
}
