package cell

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"ptah.run/ptah/qualification/evidence"
	"ptah.run/ptah/qualification/evidence/driverload"
	"ptah.run/ptah/qualification/evidence/phase"
	"ptah.run/ptah/qualification/evidence/scenario"
	"ptah.run/ptah/qualification/matrix"
	"ptah.run/ptah/qualification/matrix/catalogue"
)

// boundVariable makes this test program a harness whose child must not outlive it.
const boundVariable = "PTAH_TEST_BOUND"

func TestMain(m *testing.M) {
	if os.Getenv(boundVariable) != "" {
		child := exec.Command("sleep", "60")
		reader, writer := io.Pipe()
		go func() {
			for child.Process == nil {
				time.Sleep(time.Millisecond)
			}
			_, _ = writer.Write([]byte(strconv.Itoa(child.Process.Pid) + "\n"))
		}()
		go func() { _, _ = io.Copy(os.Stdout, reader) }()
		_ = runBound(child)
		return
	}
	m.Run() // the test program exits with what it returned
}

const fakeSuite = "qualification/cell/testdata/fakesuite"

// suites is a catalogue whose suite "own" borrows the beginning of the phase of "lender", both run by the fake suite.
func suites(t *testing.T) *catalogue.Suites {
	t.Helper()
	loaded, err := catalogue.DecodeSuites("suites", []byte(`
apiVersion: qualification.ptah.run/v1
kind: Suites
suites:
  - name: own
    summary: Its own.
    package: qualification/cell/own
    prepares: [lent]
    phases:
      - {name: whole, timeout: 1m, scenarios: [first, second, third, fourth], together: [third, fourth]}
  - name: lender
    summary: It lends.
    package: qualification/cell/lender
    phases:
      - {name: lent, timeout: 1m, scenarios: [opening, rest], prepareThrough: opening}
`))
	if err != nil {
		t.Fatal(err)
	}
	return loaded
}

func coverage(timeout time.Duration, scenarios ...string) job {
	declared := catalogue.Phase{Name: "whole", Scenarios: scenarios, Together: []string{"third", "fourth"}}
	one := newJob("own", fakeSuite, phase.Coverage, declared)
	one.timeout = timeout
	return one
}

func preparation(scenarios ...string) job {
	one := newJob("lender", fakeSuite, phase.Preparation, catalogue.Phase{Name: "lent", Scenarios: scenarios})
	one.timeout = time.Minute
	return one
}

// kept is what a cell left in the store.
type kept struct {
	snapshot *evidence.Snapshot
	cell     evidence.CellEntry
	phases   []phase.Record
}

func (k kept) read(t *testing.T, name string) []byte {
	t.Helper()
	data, err := k.snapshot.ReadFile(k.cell.Prefix() + name)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

func (k kept) names() string {
	return strings.Join(slices.Sorted(maps.Keys(k.snapshot.EntriesOf(k.cell))), " ")
}

var programs map[string]string // compiled once

func runJobs(t *testing.T, mode string, jobs ...job) (kept, error) {
	t.Helper()
	t.Setenv("FAKE_SUITE", mode)
	repository, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	if programs == nil {
		if programs, _, err = compile(context.Background(), repository, jobs); err != nil {
			t.Fatal(err)
		}
	}
	run, err := evidence.CreateRun(t.TempDir(), "run")
	if err != nil {
		t.Fatal(err)
	}
	cell, err := run.BeginCell("cell", "")
	if err != nil {
		t.Fatal(err)
	}
	failed := withDriver(cell, func() error {
		return runPhases(context.Background(), cell, jobs, programs, Options{Repository: repository, Log: io.Discard})
	})
	if err := cell.Finish(); err != nil {
		t.Fatal(err)
	}
	if _, err := run.Close(); err != nil {
		t.Fatal(err)
	}
	result := kept{}
	if result.snapshot, err = evidence.ReadRun(run.Dir()); err != nil {
		t.Fatal(err)
	}
	result.cell, _ = result.snapshot.FinishedCell("cell")
	if result.phases, err = phase.Read(bytes.NewReader(result.read(t, phase.FileName))); err != nil && failed == nil {
		t.Fatal(err)
	}
	if _, samples, err := driverload.Read(bytes.NewReader(result.read(t, driverload.FileName))); failed == nil && (err != nil || len(samples) == 0) {
		t.Fatalf("the account of the driver has %d samples: %v", len(samples), err)
	}
	return result, failed
}

func TestAPhaseIsKeptWithItsLedgerAndItsEnd(t *testing.T) {
	whole := []string{"first", "second", "third", "fourth"}
	cases := map[string]struct {
		mode    string
		job     job
		outcome phase.Outcome
		problem phase.Kind
		ended   int // scenarios
	}{
		"should complete":                        {"", coverage(time.Minute, whole...), phase.Completed, "", 4},
		"should say that a test failed":          {"fail", coverage(time.Minute, whole...), phase.Failed, "", 4},
		"should see a suite that dies":           {"die", coverage(time.Minute, whole...), phase.Failed, phase.EndedEarly, 1},
		"should see a suite that hangs":          {"hang", coverage(2*time.Second, whole...), phase.TimedOut, phase.EndedEarly, 1},
		"should see a scenario that is no test":  {"", coverage(time.Minute, "first", "unwritten"), phase.Completed, phase.EndedEarly, 1},
		"should see another order than declared": {"", coverage(time.Minute, "second", "first", "third", "fourth"), phase.Completed, phase.OutOfOrder, 4},
	}
	for name, test := range cases {
		t.Run(name, func(t *testing.T) {
			result, err := runJobs(t, test.mode, test.job)
			if err != nil {
				t.Fatal(err)
			}
			if len(result.phases) != 1 || result.phases[0].Result == nil || result.phases[0].Result.Outcome != test.outcome {
				t.Fatalf("%+v", result.phases)
			}
			reported, _ := scenario.Read(bytes.NewReader(result.read(t, evidence.PhaseLedger("own", "whole"))))
			ended := 0
			for _, record := range reported {
				if record.Ended {
					ended++
				}
			}
			problems := result.phases[0].Problems(reported)
			if ended != test.ended || (test.problem == "") != (len(problems) == 0) {
				t.Errorf("%d scenarios ended, %+v", ended, problems)
			}
			if test.problem != "" && !slices.ContainsFunc(problems, func(p phase.Problem) bool { return p.Kind == test.problem }) {
				t.Errorf("%+v", problems)
			}
			if len(result.read(t, "suites/own/whole/whole.log")) == 0 {
				t.Error("the output of the phase is empty")
			}
		})
	}
}

func TestPreparationIsNeverCoverage(t *testing.T) {
	result, err := runJobs(t, "", preparation("first"), coverage(time.Minute, "first", "second", "third", "fourth"))
	if err != nil {
		t.Fatal(err)
	}
	if len(result.phases) != 2 || result.phases[0].Plan.Purpose != phase.Preparation {
		t.Fatalf("%+v", result.phases)
	}
	want := "driver.jsonl phases.jsonl preparation/lender/lent/ledger.jsonl preparation/lender/lent/lent.log suites/own/whole/ledger.jsonl suites/own/whole/whole.log"
	if result.names() != want {
		t.Errorf("%s", result.names())
	}
	reported, err := scenario.Read(bytes.NewReader(result.read(t, "preparation/lender/lent/ledger.jsonl")))
	if err != nil || len(reported) != 1 {
		t.Errorf("the preparation went beyond its boundary: %+v, %v", reported, err)
	}
}

func TestWithoutItsPreparationNothingIsBlamedOnTheProduct(t *testing.T) {
	for name, test := range map[string]struct {
		mode      string
		scenarios []string
	}{
		"a preparation that fails":                 {"fail", []string{"first", "second"}},
		"a preparation that dies":                  {"die", []string{"first", "second"}},
		"a preparation that stops too early":       {"", []string{"first", "unwritten"}},
		"a preparation that runs in another order": {"", []string{"second", "first"}},
	} {
		result, err := runJobs(t, test.mode, preparation(test.scenarios...), coverage(time.Minute, "first"))
		if err != nil {
			t.Fatal(err)
		}
		if len(result.phases) != 1 || strings.Contains(result.names(), "suites/") {
			t.Errorf("%s: %s", name, result.names())
		}
	}
}

func TestASuiteThatCannotBeStartedIsNoFinding(t *testing.T) {
	one := coverage(time.Minute, "first")
	one.folder = "qualification/cell/nowhere"
	if _, err := runJobs(t, "", one); err == nil {
		t.Error("a program that does not exist was run")
	}
}

func TestStoppingEndsTheSuite(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	time.AfterFunc(200*time.Millisecond, cancel)
	one := coverage(time.Minute, "first")
	begin := time.Now()
	one.folder = "."
	_, err := execute(ctx, job{plan: one.plan, timeout: time.Minute, folder: ".", tests: one.tests}, sleeper(t), t.TempDir(), Options{Repository: t.TempDir(), Log: io.Discard})
	if !errors.Is(err, context.Canceled) || time.Since(begin) > 20*time.Second {
		t.Errorf("%v after %s", err, time.Since(begin))
	}
}

// sleeper is a program that takes no notice of its arguments and waits.
func sleeper(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "sleeper")
	if err := os.WriteFile(path, []byte("#!/bin/sh\nexec sleep 60\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestHowAProcessEndedIsSaid(t *testing.T) {
	failed := exec.Command("false").Run()
	killed := exec.Command("sh", "-c", "kill -9 $$").Run()
	cases := map[string]struct {
		err  error
		late bool
		want phase.Outcome
		exit int
	}{
		"no error":                        {nil, false, phase.Completed, 0},
		"no error at the last moment":     {nil, true, phase.Completed, 0},
		"a failing test":                  {failed, false, phase.Failed, 1},
		"a signal":                        {killed, false, phase.Failed, -1},
		"a test that ended when time was": {failed, true, phase.TimedOut, 1},
		"a process that would not end":    {exec.ErrWaitDelay, true, phase.TimedOut, -1},
	}
	for name, test := range cases {
		result, err := resultOf(test.err, test.late, time.Minute)
		if err != nil || result.Outcome != test.want || result.Exit != test.exit {
			t.Errorf("%s: %+v, %v", name, result, err)
		}
	}
	if _, err := resultOf(errors.New("exec format error"), false, time.Minute); err == nil {
		t.Error("a process that never ran has a result")
	}
}

func TestTheSuiteOfAKilledHarnessDiesWithIt(t *testing.T) {
	harness := exec.Command(os.Args[0])
	harness.Env = append(os.Environ(), boundVariable+"=1")
	output, err := harness.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := harness.Start(); err != nil {
		t.Fatal(err)
	}
	line, err := bufio.NewReader(output).ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	child, err := strconv.Atoi(strings.TrimSpace(line))
	if err != nil {
		t.Fatal(err)
	}
	if err := syscall.Kill(child, 0); err != nil {
		t.Fatalf("control: the child must live: %v", err)
	}
	_ = harness.Process.Kill()
	_ = harness.Wait()
	for range 500 {
		stat, err := os.ReadFile("/proc/" + strconv.Itoa(child) + "/stat")
		if err != nil || bytes.Contains(stat, []byte(") Z ")) {
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
	_ = syscall.Kill(child, syscall.SIGKILL)
	t.Error("the child outlived its harness")
}

func TestTheJobsOfACellAreItsPreparationAndItsPhases(t *testing.T) {
	jobs, err := plan(suites(t), matrix.Cell{Key: "own", Axes: map[string]string{"suite": "own"}}, []string{"third", "of-another-suite"})
	if err != nil || len(jobs) != 2 {
		t.Fatalf("%+v, %v", jobs, err)
	}
	lent, own := jobs[0].plan, jobs[1].plan
	if lent.Purpose != phase.Preparation || lent.Suite != "lender" || !slices.Equal(lent.Scenarios, []string{"opening"}) || jobs[0].timeout != time.Minute {
		t.Errorf("%+v", jobs[0])
	}
	if own.Purpose != phase.Coverage || own.Suite != "own" || !slices.Equal(own.Together, []string{"third", "fourth"}) || !slices.Equal(jobs[1].tests, []string{"TestFirst", "TestSecond", "TestThird", "TestFourth"}) {
		t.Errorf("%+v", jobs[1])
	}
	if all, err := plan(suites(t), matrix.Cell{Key: "own", Axes: map[string]string{"suite": "own"}}, nil); err != nil || len(all) != 2 {
		t.Errorf("a profile that demands no scenario: %+v, %v", all, err)
	}
	if _, err := plan(suites(t), matrix.Cell{Key: "own", Axes: map[string]string{"suite": "own"}}, []string{"of-another-suite"}); err == nil {
		t.Error("a phase that reports nothing demanded was planned")
	}
	if _, err := plan(suites(t), matrix.Cell{Key: "x", Axes: map[string]string{"suite": "nobody"}}, nil); err == nil {
		t.Error("a cell of no suite was planned")
	}
}
