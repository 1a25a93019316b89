package run_test

import (
	"bufio"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/secure-systems-lab/go-securesystemslib/dsse"

	"ptah.run/ptah/qualification/evidence"
	"ptah.run/ptah/qualification/evidence/dossier"
	"ptah.run/ptah/qualification/record"
	"ptah.run/ptah/qualification/run"
)

// Variables that make a test process the process of a run.
const (
	rootVariable   = "PTAH_TEST_RUN_ROOT"
	placesVariable = "PTAH_TEST_RUN_PLACES"
	hangVariable   = "PTAH_TEST_RUN_HANG"
)

// exitInterrupted is what ptah-qualify exits with.
const exitInterrupted = 5

// TestRunProcess is the process of a run where another test started it, and nothing otherwise.
func TestRunProcess(t *testing.T) {
	root := os.Getenv(rootVariable)
	if root == "" {
		return
	}
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, os.Interrupt)
	say := func(format string, arguments ...any) { fmt.Printf(format+"\n", arguments...) }
	ctx, abort, release := run.Interrupts(context.Background(), signals, say)
	err := process(ctx, abort, t, root, say)
	release()
	switch {
	case errors.Is(err, run.ErrInterrupted), errors.Is(err, run.ErrAborted):
		os.Exit(exitInterrupted) //nolint:forbidigo // this test is the main function of its process
	case err != nil:
		t.Fatal(err)
	}
}

func process(ctx, abort context.Context, t *testing.T, root string, say func(string, ...any)) error {
	d := declare(t)
	store, err := evidence.CreateRun(root, "run")
	if errors.Is(err, evidence.ErrUnusableFolder) {
		store, err = evidence.OpenRun(filepath.Join(root, "runs", "run"))
	}
	if err == nil {
		err = dossier.Begin(store, d.contents)
	}
	if err != nil {
		return err
	}
	f := &fake{d: d, places: os.Getenv(placesVariable), step: 5 * time.Millisecond, hang: os.Getenv(hangVariable), say: func(what string) { say("%s", what) }}
	_, err = run.Do(ctx, abort, run.Options{Store: store, Items: d.items(), Cells: f, Say: say})
	return err
}

// child is a process of a run.
type child struct {
	command *exec.Cmd
	output  *bufio.Reader
	root    string
	places  string
}

func start(t *testing.T, root, places, hang string) *child {
	t.Helper()
	command := exec.Command(os.Args[0], "-test.run", "^TestRunProcess$", "-test.count", "1")
	command.Env = append(os.Environ(), rootVariable+"="+root, placesVariable+"="+places, hangVariable+"="+hang)
	command.Stderr = os.Stderr
	output, err := command.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	return &child{command: command, output: bufio.NewReader(output), root: root, places: places}
}

// until reads what the process says up to a line that holds a text.
func (c *child) until(t *testing.T, text string) {
	t.Helper()
	var said strings.Builder
	for {
		line, err := c.output.ReadString('\n')
		said.WriteString(line)
		if strings.Contains(line, text) {
			return
		}
		if err != nil {
			t.Fatalf("the process never said %q: %v\n%s", text, err, said.String())
		}
	}
}

// wait returns the exit status and the rest of what the process says.
func (c *child) wait(t *testing.T) (int, string) {
	t.Helper()
	rest, err := io.ReadAll(c.output)
	if err != nil {
		t.Fatal(err)
	}
	err = c.command.Wait()
	var failed *exec.ExitError
	if err != nil && !errors.As(err, &failed) {
		t.Fatal(err)
	}
	return c.command.ProcessState.ExitCode(), string(rest)
}

// finish runs a run to its end in processes of its own.
func finish(t *testing.T, root, places string) string {
	t.Helper()
	status, said := start(t, root, places, "").wait(t)
	if status != 0 {
		t.Fatalf("exit status %d\n%s", status, said)
	}
	return said
}

func TestARunKilledThreeTimesComesToTheSameRecord(t *testing.T) {
	if testing.Short() {
		t.Skip("not-run: it takes seconds")
	}
	whole, wholePlaces := t.TempDir(), t.TempDir()
	begin := time.Now()
	finish(t, whole, wholePlaces)
	length := time.Since(begin)
	want := statements(t, whole)

	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d, an uninterrupted run takes %s", seed, length)
	random := rand.New(rand.NewPCG(seed, 0))
	for round := range 3 {
		root, places := t.TempDir(), t.TempDir()
		var done [][]string // cells that were finished at each kill
		for kill := range 3 {
			c := start(t, root, places, "")
			after := time.Duration(random.Int64N(int64(length / 2))) // so that three of them mostly fall into one run
			time.Sleep(after)
			_ = c.command.Process.Kill()
			status, _ := c.wait(t)
			done = append(done, finishedCells(t, root))
			t.Logf("round %d, kill %d after %s: status %d, %s", round, kill, after, status, progress(root))
			if status == 0 {
				break // the dice let it end
			}
		}
		if _, err := evidence.ReadRun(filepath.Join(root, "runs", "run")); errors.Is(err, evidence.ErrNotClosed) || err != nil && !exists(filepath.Join(root, "runs", "run", "manifest.json")) {
			said := finish(t, root, places)
			t.Logf("resumed:\n%s", said)
		} else if err != nil {
			t.Fatal(err)
		}
		atEnd := finishedCells(t, root)
		for kill, before := range done {
			if !slices.Equal(atEnd[:len(before)], before) {
				t.Errorf("round %d (seed %d): of %q that were finished at kill %d, a cell was done again: %q", round, seed, before, kill, atEnd)
			}
		}
		if len(atEnd) != 3 {
			t.Errorf("round %d (seed %d): %q", round, seed, atEnd)
		}
		if got := statements(t, root); got != want {
			t.Errorf("round %d (seed %d): the records differ\n%s\n---\n%s", round, seed, got, want)
		}
		if left, _ := os.ReadDir(places); len(left) != 0 {
			t.Errorf("round %d (seed %d): the place %s was left", round, seed, left[0].Name())
		}
	}
}

// finishedCells are the cells that a run finished, in order, as often as it did.
func finishedCells(t *testing.T, root string) []string {
	t.Helper()
	file, err := os.Open(filepath.Join(root, "runs", "run", "journal.jsonl"))
	if errors.Is(err, os.ErrNotExist) {
		return nil // it was killed before it began
	}
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = file.Close() }()
	var cells []string
	lines := bufio.NewScanner(file)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		var line struct {
			Event string
			Cell  struct{ Key string }
		}
		if json.Unmarshal(lines.Bytes(), &line) == nil && line.Event == "cell-finished" {
			cells = append(cells, line.Cell.Key)
		}
	}
	return cells
}

// progress says how far a run is.
func progress(root string) string {
	data, err := os.ReadFile(filepath.Join(root, "runs", "run", "journal.jsonl"))
	if err != nil {
		return "no journal"
	}
	return fmt.Sprintf("%d lines in the journal, %d cells begun, %d finished", strings.Count(string(data), "\n"),
		strings.Count(string(data), `"event":"cell-begun"`), strings.Count(string(data), `"event":"cell-finished"`))
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

// statements builds the record of a run as the command does, and returns its statements without ids: the id and the
// root of the run, and the digests of what holds these. The roots of the cells stay, and with them every byte of their
// evidence.
func statements(t *testing.T, root string) string {
	t.Helper()
	d, err := dossier.Load(filepath.Join(root, "runs", "run"))
	if err != nil {
		t.Fatal(err)
	}
	created, err := record.Create(d, record.Options{Time: time.Unix(0, 0), Version: "test"})
	if err != nil {
		t.Fatal(err)
	}
	var text strings.Builder
	for _, envelope := range append([]dsse.Envelope{created.Summary}, created.Cells...) {
		payload, err := base64.StdEncoding.DecodeString(envelope.Payload)
		if err != nil {
			t.Fatal(err)
		}
		var statement map[string]any
		if err := json.Unmarshal(payload, &statement); err != nil {
			t.Fatal(err)
		}
		predicate := statement["predicate"].(map[string]any)
		for _, digests := range []string{"inputAttestations", "reports"} {
			for _, resource := range list(predicate[digests]) {
				delete(resource, "digest")
			}
		}
		delete(predicate, "evidence") // of the run as a whole
		encoded, err := json.MarshalIndent(statement, "", " ")
		if err != nil {
			t.Fatal(err)
		}
		text.WriteString(strings.ReplaceAll(string(encoded), d.Root, "ROOT") + "\n")
	}
	return text.String()
}

func list(value any) []map[string]any {
	var found []map[string]any
	items, _ := value.([]any)
	for _, item := range items {
		found = append(found, item.(map[string]any))
	}
	return found
}

// Beside the random moments, every moment that the journal can tell apart: a run of one cell is cut back to each line of
// its journal, and to the middle of each, and gone on with.
func TestARunCutAtAnyLineOfItsJournalComesToTheSameRecord(t *testing.T) {
	d := declare(t)
	store := create(t, d)
	single := func(options *run.Options) {
		for i := range options.Items[1:] {
			options.Items[i+1].NotRun = "this run was asked for other cells"
		}
	}
	if _, err := do(t.Context(), store, &fake{d: d}, single); err != nil {
		t.Fatal(err)
	}
	want := statements(t, filepath.Dir(filepath.Dir(store.Dir())))
	journal, err := os.ReadFile(filepath.Join(store.Dir(), "journal.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	cuts := []int{0}
	for at, line := 0, ""; at < len(journal); at += len(line) {
		line, _, _ = strings.Cut(string(journal[at:]), "\n")
		line += "\n"
		cuts = append(cuts, at+len(line)/2, at+len(line))
	}
	for _, cut := range cuts {
		root := t.TempDir()
		dir := filepath.Join(root, "runs", "run")
		if err := os.CopyFS(dir, os.DirFS(store.Dir())); err != nil {
			t.Fatal(err)
		}
		if err := errors.Join(os.Remove(filepath.Join(dir, "manifest.json")), os.Truncate(filepath.Join(dir, "journal.jsonl"), int64(cut))); err != nil {
			t.Fatal(err)
		}
		again, err := evidence.OpenRun(dir)
		if err == nil {
			err = dossier.Begin(again, d.contents)
		}
		if err == nil {
			_, err = do(t.Context(), again, &fake{d: d}, single)
		}
		if err != nil {
			t.Errorf("cut at byte %d: %v", cut, err)
			continue
		}
		if got := statements(t, root); got != want {
			t.Errorf("cut at byte %d: the records differ\n%s\n---\n%s", cut, got, want)
		}
	}
}

func TestTheComparisonSeesOtherEvidence(t *testing.T) {
	var texts []string
	for _, harm := range []string{"", two} {
		d := declare(t)
		store := create(t, d)
		if _, err := do(t.Context(), store, &fake{d: d, harm: harm}, nil); err != nil {
			t.Fatal(err)
		}
		texts = append(texts, statements(t, filepath.Dir(filepath.Dir(store.Dir()))))
	}
	if texts[0] == texts[1] || !strings.Contains(texts[0], two) {
		t.Error("two runs with other evidence have the same statements")
	}
}

func TestOneInterruptTakesDownAndExitsAsResumable(t *testing.T) {
	root, places := t.TempDir(), t.TempDir()
	c := start(t, root, places, "run")
	c.until(t, "run "+one)
	if !exists(filepath.Join(places, one+"-1")) {
		t.Fatal("control: the place must be there while the cell runs")
	}
	if err := c.command.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	status, said := c.wait(t)
	if status != exitInterrupted || !strings.Contains(said, "interrupt again to stop at once") || !strings.Contains(said, "teardown "+one+"-1") {
		t.Errorf("exit status %d:\n%s", status, said)
	}
	if exists(filepath.Join(places, one+"-1")) {
		t.Error("the place was left")
	}
	said = finish(t, root, places)
	if !strings.Contains(said, "redone    "+one+": it was begun but never finished") || strings.Contains(said, "removing  ") {
		t.Errorf("%s", said)
	}
}

func TestTwoInterruptsExitAtOnceAndTheNextRunTakesDown(t *testing.T) {
	root, places := t.TempDir(), t.TempDir()
	c := start(t, root, places, "teardown")
	c.until(t, "teardown "+one+"-1") // which never ends by itself
	for range 2 {
		if err := c.command.Process.Signal(os.Interrupt); err != nil {
			t.Fatal(err)
		}
		time.Sleep(50 * time.Millisecond)
	}
	status, said := c.wait(t)
	if status != exitInterrupted || !strings.Contains(said, "stopping at once") {
		t.Errorf("exit status %d:\n%s", status, said)
	}
	if !exists(filepath.Join(places, one+"-1")) {
		t.Fatal("control: the place must still be there")
	}
	said = finish(t, root, places)
	for _, want := range []string{"removing  " + one + "-1", "kept      " + one, "running   " + two} {
		if !strings.Contains(said, want) {
			t.Errorf("nobody said %q:\n%s", want, said)
		}
	}
	if left, _ := os.ReadDir(places); len(left) != 0 {
		t.Errorf("%v is left", left)
	}
}

func TestASecondProcessDoesNotWriteTheSameRun(t *testing.T) {
	root, places := t.TempDir(), t.TempDir()
	c := start(t, root, places, "run")
	c.until(t, "run "+one)
	if _, err := evidence.OpenRun(filepath.Join(root, "runs", "run")); err == nil || !strings.Contains(err.Error(), "another process") {
		t.Errorf("%v", err)
	}
	_ = c.command.Process.Signal(syscall.SIGKILL)
	c.wait(t)
	again, err := evidence.OpenRun(filepath.Join(root, "runs", "run"))
	if err != nil {
		t.Fatalf("after its process was killed: %v", err)
	}
	_ = again.Abandon()
}
