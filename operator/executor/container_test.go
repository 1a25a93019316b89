package executor_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/moby/moby/api/types/container"
	"github.com/testcontainers/testcontainers-go"
	"github.com/testcontainers/testcontainers-go/wait"
)

// image carries PostgreSQL 17 and its programs. It is built by "ptah-qualify lab images".
const image = "ptah.local/postgresql:17"

// mysqlImage carries MySQL 9.7 and its programs. It is built by "ptah-qualify lab images", too.
const mysqlImage = "ptah.local/mysql:9.7"

// executorImage is what the executor's image is made on.
const executorImage = "ptah.local/executor-base:17"

// silenceLimit ends what hangs in a container: the time in which no test inside says a word. A limit on the whole would
// measure what else the machine has to do: the cases, 138 pairs of schemas, were seen to take two minutes alone, and on
// another machine, beside three other containers, were not done after half an hour.
const silenceLimit = 10 * time.Minute

// inside is what runs in a container, or what PTAH_TEST_INSIDE narrows it to.
func inside(tests string) string {
	if pattern := os.Getenv("PTAH_TEST_INSIDE"); pattern != "" {
		return pattern
	}
	return tests
}

// TestInContainer runs the tests of this package that need PostgreSQL 17 inside the image that has it, as the
// ordinary user of that image, which is how ptah runs in a Pod. The machine itself needs Docker only.
func TestInContainer(t *testing.T) {
	runInside(t, image, inside("TestPostgreSQLPairs|TestDriftOnPostgreSQL|TestApply|TestProgram|TestScratch|TestSeen"), "PTAH_TEST_SERVERS")
}

// TestCasesInContainer does the same for the planner's cases, which are as much work as everything else together.
func TestCasesInContainer(t *testing.T) {
	runInside(t, image, inside("TestPostgreSQLCases"), "PTAH_TEST_SERVERS")
}

// TestMySQLInContainer does the same for MySQL 9.7.
func TestMySQLInContainer(t *testing.T) {
	runInside(t, mysqlImage, inside("TestMySQLCases|TestMySQLPairs|TestDriftOnMySQL|TestMySQLApply"), "PTAH_TEST_MYSQL")
}

// TestExecutorImageInContainer runs ptah on MySQL as the executor's image has it: with the server in a folder of its own,
// beside PostgreSQL and the libraries of another release.
func TestExecutorImageInContainer(t *testing.T) {
	runInside(t, executorImage, inside("TestMySQLProgram"), "PTAH_TEST_MYSQL")
}

// TestBenchmarksInContainer runs the benchmarks in the executor's image, which has both servers, and passes on what they
// measured. It asks for nothing but that they run: how fast they are is for a person to read.
func TestBenchmarksInContainer(t *testing.T) {
	pattern := os.Getenv("PTAH_BENCH")
	if pattern == "" {
		t.Skip("set PTAH_BENCH to the benchmarks to run, such as . for all")
	}
	count := os.Getenv("PTAH_BENCH_COUNT")
	if count == "" {
		count = "1"
	}
	runProgram(t, executorImage, "PTAH_TEST_SERVERS", "-test.run", "^$", "-test.bench", pattern, "-test.benchtime", "1x",
		"-test.count", count, "-test.timeout", "0")
}

// programFolder is where testProgram puts what it builds; TestMain removes it.
var programFolder string

// testProgram builds the tests of this package as one program that needs nothing of the machine it runs on. Where this
// process is such a program, it is the one; so is what PTAH_TEST_PROGRAM names: a long search goes on with it while its
// source changes.
var testProgram = sync.OnceValues(func() (string, error) {
	if program := os.Getenv("PTAH_TEST_PROGRAM"); program != "" {
		return program, nil
	}
	if info, ok := debug.ReadBuildInfo(); ok && slices.Contains(info.Settings, debug.BuildSetting{Key: "CGO_ENABLED", Value: "0"}) {
		return os.Executable()
	}
	var err error
	if programFolder, err = os.MkdirTemp("", "executor-test"); err != nil {
		return "", err
	}
	program := filepath.Join(programFolder, "executor.test")
	build := exec.Command("go", "test", "-c", "-trimpath", "-o", program, ".")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		return "", fmt.Errorf("build the tests: %w\n%s", err, out)
	}
	return program, nil
})

// runInside runs tests of this package in an image. The variable tells them that a server must be there.
func runInside(t *testing.T, image, tests, variable string) {
	t.Helper()
	if passed := runProgram(t, image, variable, "-test.v", "-test.run", tests); passed == 0 {
		t.Error("no test passed inside")
	}
}

// runProgram runs the tests of this package as one program in an image, and returns how many passed.
func runProgram(t *testing.T, image, variable string, arguments ...string) (passed int) {
	t.Helper()
	if os.Getenv("PTAH_TEST_CONTAINERS") != "1" {
		t.Skip("set PTAH_TEST_CONTAINERS=1 to run tests in containers")
	}
	t.Parallel() // each waits for its servers much of the time
	program, err := testProgram()
	if err != nil {
		t.Fatal(err)
	}
	ctx, heard := listen(t.Context(), silenceLimit)
	defer heard.stop()
	if deadline, ok := t.Deadline(); ok { // a process that ends at its deadline leaves its containers behind
		var cancel context.CancelFunc
		ctx, cancel = context.WithDeadlineCause(ctx, deadline.Add(-time.Minute), errors.New("the package has had its time"))
		defer cancel()
	}
	c, err := testcontainers.GenericContainer(ctx, testcontainers.GenericContainerRequest{
		ContainerRequest: testcontainers.ContainerRequest{
			Image:      image,
			Entrypoint: append([]string{"/executor.test"}, arguments...),
			Env:        environment(variable),
			HostConfigModifier: func(h *container.HostConfig) {
				h.Tmpfs = map[string]string{"/scratch": "rw,size=4g,mode=1777"}
				h.NetworkMode = "none"
				// Copying it into a container takes half a minute of a processor under the race detector.
				h.Binds = []string{program + ":/executor.test:ro"}
				if folder := os.Getenv(findingsVariable); folder != "" {
					h.Binds = append(h.Binds, folder+":/findings")
				}
			},
			LogConsumerCfg: &testcontainers.LogConsumerConfig{Consumers: []testcontainers.LogConsumer{heard}},
			// Each look at it costs the engine something, and there are four of them.
			WaitingFor: wait.ForExit().WithPollInterval(time.Second),
		},
		Started: true,
	})
	if c != nil {
		t.Cleanup(func() {
			if err := c.Terminate(context.Background()); err != nil {
				t.Errorf("remove the container: %v", err)
			}
		})
	}
	if cause := context.Cause(ctx); cause != nil { // what was said until then is printed already
		t.Fatalf("run the tests in %s: %v", image, cause)
	}
	if err != nil {
		t.Fatalf("run the tests in %s; \"ptah-qualify lab images\" builds it: %v", image, err)
	}
	return relay(t, c)
}

// environment is what the tests inside are told.
func environment(server string) map[string]string {
	out := map[string]string{server: "1", "PTAH_SCRATCH_DIR": "/scratch", "TMPDIR": "/scratch", "PTAH_BENCH_TABLES": os.Getenv("PTAH_BENCH_TABLES"),
		"PTAH_TEST_PAIRS": os.Getenv("PTAH_TEST_PAIRS"), "PTAH_TEST_SEED": os.Getenv("PTAH_TEST_SEED")}
	if os.Getenv(findingsVariable) != "" {
		out[findingsVariable] = "/findings"
	}
	return out
}

// relay passes on what the tests said inside, fails if they did, and returns how many passed.
func relay(t *testing.T, c testcontainers.Container) (passed int) {
	t.Helper()
	logs, err := c.Logs(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = logs.Close() }()
	lines := bufio.NewScanner(logs)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		line := lines.Text()
		if strings.Contains(line, "--- PASS") {
			passed++
		}
		if !strings.Contains(line, "=== RUN") && !strings.Contains(line, "--- PASS") {
			t.Log(line)
		}
		if strings.Contains(line, "--- SKIP") {
			t.Error("a test was skipped where everything it needs is there")
		}
	}
	state, err := c.State(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	if state.ExitCode != 0 {
		t.Errorf("the tests inside ended with exit code %d after %d passes", state.ExitCode, passed)
	}
	return passed
}
