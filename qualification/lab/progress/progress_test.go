package progress

import (
	"bytes"
	"errors"
	"testing"
	"time"
)

func TestStepsAreWrittenWithTheirTimes(t *testing.T) {
	now := time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)
	var out bytes.Buffer
	reporter := NewAt(&out, func() time.Time { return now })
	now = now.Add(time.Second)
	done := reporter.Step("building %s", "etcd")
	now = now.Add(1500 * time.Millisecond)
	done(nil)
	reporter.Step("loading")(errors.New("no space"))
	reporter.Say("over")
	const want = "[    1.0s] building etcd ...\n[    2.5s] building etcd done in 1.5s\n[    2.5s] loading ...\n[    2.5s] loading failed after 0.0s\n[    2.5s] over\n"
	if out.String() != want {
		t.Errorf("got\n%s", out.String())
	}
}

func TestANilReporterIsSilent(t *testing.T) {
	var reporter *Reporter
	reporter.Step("x")(nil)
	reporter.Say("x")
}
