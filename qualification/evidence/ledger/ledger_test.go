package ledger

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"ptah.run/ptah/qualification/evidence/scenario"
	"ptah.run/ptah/qualification/evidence/stream"
)

func open(t *testing.T) (*Ledger, string) {
	t.Helper()
	dir := t.TempDir()
	book, err := Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	return book, filepath.Join(dir, FileName)
}

func read(t *testing.T, path string) ([]scenario.Record, error) {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return scenario.Read(bytes.NewReader(data))
}

func TestScenariosReadBackAsWritten(t *testing.T) {
	book, path := open(t)
	s := book.Scenario("one")
	s.Observe("phase", "InSync")
	s.Observe("no JSON form", func() {})
	s.Witness("table", []string{"orders"})
	s.Assert("ready", true, "is ready")
	from := time.Now()
	s.Measure("refresh", "team/orders", from, from.Add(time.Second))
	s.Pass()
	book.Scenario("two").Fail("it broke")
	book.Scenario("three").NotRun("no arm64 machine")
	book.Scenario("four").FailBlaming(scenario.BlameHarness, "no registry")
	book.Scenario("five")
	if err := book.Close(); err != nil {
		t.Fatal(err)
	}
	records, err := read(t, path)
	if err != nil || len(records) != 5 {
		t.Fatalf("%d records, %v", len(records), err)
	}
	one := records[0]
	if one.Outcome != scenario.OutcomePass || len(one.Observations) != 2 || len(one.Witnesses) != 1 || len(one.Assertions) != 1 || len(one.Measurements) != 1 || one.End.Before(one.Start) {
		t.Errorf("the first scenario reads as %+v", one)
	}
	if records[1].Outcome != scenario.OutcomeFail || records[1].Blame != scenario.BlameProduct || records[2].Message != "no arm64 machine" || records[3].Blame != scenario.BlameHarness {
		t.Errorf("outcomes read as %+v", records[1:4])
	}
	if records[4].Ended {
		t.Error("a scenario that nobody ended reads as ended")
	}
}

func TestAFailedAssertionCanNotBePassedOver(t *testing.T) {
	book, path := open(t)
	s := book.Scenario("one")
	if s.Assert("rows", false, "3 rows, want 2") {
		t.Error("an assertion that did not hold says that it held")
	}
	s.Pass()
	if err := book.Close(); err != nil {
		t.Fatal(err)
	}
	records, err := read(t, path)
	if err != nil || records[0].Outcome != scenario.OutcomeFail || !strings.Contains(records[0].Message, "3 rows") {
		t.Errorf("%+v, %v", records, err)
	}
}

func TestTheFirstEndCounts(t *testing.T) {
	book, path := open(t)
	s := book.Scenario("one")
	s.NotRun("no time")
	s.End()
	if err := book.Close(); err != nil {
		t.Fatal(err)
	}
	if records, err := read(t, path); err != nil || records[0].Outcome != scenario.OutcomeNotRun {
		t.Errorf("%+v, %v", records, err)
	}
}

func TestALedgerThatIsNotClosedIsNotWholeAndKeepsWhatItHas(t *testing.T) {
	book, path := open(t)
	book.Scenario("one").Pass()
	records, err := read(t, path)
	if !errors.Is(err, stream.ErrIncomplete) || len(records) != 1 || !records[0].Ended {
		t.Errorf("%+v, %v", records, err)
	}
}

func TestMisuseMakesTheLedgerFail(t *testing.T) {
	cases := map[string]func(*Ledger){
		"a scenario that starts twice":     func(l *Ledger) { l.Scenario("one").Pass(); l.Scenario("one") },
		"a scenario without a name":        func(l *Ledger) { l.Scenario("") },
		"an observation after the end":     func(l *Ledger) { s := l.Scenario("one"); s.Pass(); s.Observe("late", 1) },
		"a scenario in a closed ledger":    func(l *Ledger) { _ = l.Close(); l.Scenario("late") },
		"an observation beyond the limits": func(l *Ledger) { l.Scenario("one").Observe("x", strings.Repeat("x", stream.MaxLine)) },
	}
	for name, misuse := range cases {
		book, _ := open(t)
		misuse(book)
		if err := book.Close(); err == nil {
			t.Errorf("%s: the ledger closes without an error", name)
		}
	}
}

func TestAFolderWithALedgerIsRefused(t *testing.T) {
	book, path := open(t)
	if err := book.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := Open(filepath.Dir(path)); err == nil {
		t.Error("a second ledger was opened over the first")
	}
	if _, err := Open(filepath.Join(filepath.Dir(path), "missing")); err == nil {
		t.Error("a folder that is not there was opened")
	}
}

func TestWithoutTheVariableALedgerKeepsNothing(t *testing.T) {
	t.Setenv(EnvironmentVariable, "")
	book, err := OpenFromEnvironment()
	if err != nil {
		t.Fatal(err)
	}
	book.Scenario("one").Pass()
	if err := book.Close(); err != nil || book.Dir() != "" {
		t.Errorf("%v, dir %q", err, book.Dir())
	}
	dir := t.TempDir()
	t.Setenv(EnvironmentVariable, dir)
	if book, err = OpenFromEnvironment(); err != nil || book.Dir() != dir {
		t.Errorf("%v, dir %q", err, book.Dir())
	}
}

func TestScenariosMayBeWrittenAtOnce(t *testing.T) {
	book, path := open(t)
	var group sync.WaitGroup
	for _, name := range []string{"a", "b", "c", "d"} {
		group.Add(1)
		go func() {
			defer group.Done()
			s := book.Scenario(name)
			for i := range 50 {
				s.Observe("i", i)
			}
			s.Assert("x", true, "")
			s.End()
		}()
	}
	group.Wait()
	if err := book.Close(); err != nil {
		t.Fatal(err)
	}
	if records, err := read(t, path); err != nil || len(records) != 4 {
		t.Errorf("%d records, %v", len(records), err)
	}
}

// recorder is a file that knows how much of it is on disk.
type recorder struct {
	bytes.Buffer
	synced int
	fail   bool
}

func (r *recorder) Sync() error {
	if r.fail {
		return errors.New("disk gone")
	}
	r.synced = r.Len()
	return nil
}
func (r *recorder) Close() error { return nil }

func TestAScenarioIsOnDiskAsItEnds(t *testing.T) {
	file := &recorder{}
	book := newLedger("", file, time.Now)
	s := book.Scenario("one")
	s.Assert("x", true, "")
	if file.synced != 0 {
		t.Fatal("control: nothing has ended yet")
	}
	s.End()
	if file.synced != file.Len() || !strings.Contains(file.String(), `"outcome":"pass"`) {
		t.Errorf("%d of %d bytes are on disk", file.synced, file.Len())
	}
	file.fail = true
	book.Scenario("two").Pass()
	if err := book.Close(); err == nil || !strings.Contains(err.Error(), "disk gone") {
		t.Errorf("a ledger that could not be kept closes as whole: %v", err)
	}
}
