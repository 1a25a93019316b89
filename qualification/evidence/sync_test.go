package evidence

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// withSync makes a run wait for its bytes with another function than the system's.
func withSync(sync func(*os.File) error) Option { return func(r *Run) { r.sync = sync } }

func TestNothingCountsBeforeItIsOnTheDisk(t *testing.T) {
	lines, objects := 0, 0
	dir := ""
	run, err := CreateRun(t.TempDir(), "run", withSync(func(file *os.File) error {
		if filepath.Base(file.Name()) != journalFile {
			objects++
			return nil
		}
		lines++
		data, err := os.ReadFile(file.Name())
		if dir != "" { // the run has its name, and no longer that of a draft
			data, err = os.ReadFile(filepath.Join(dir, journalFile))
		}
		if err == nil && strings.Count(string(data), "\n") != lines {
			t.Errorf("line %d was waited for when %d were written", lines, strings.Count(string(data), "\n"))
		}
		return nil
	}))
	if err != nil {
		t.Fatal(err)
	}
	dir = run.Dir()
	cell, err := run.BeginCell("one", "sha256:in")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := cell.PutFile("a", strings.NewReader("x")); err != nil {
		t.Fatal(err)
	}
	stream, err := cell.Stream("s")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := stream.Close(); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(cell.Finish(), run.Note("done", nil)); err != nil {
		t.Fatal(err)
	}
	if lines != 6 || objects != 2 { // created, begun, two stored, finished, the note
		t.Errorf("%d lines and %d objects were waited for", lines, objects)
	}
}

func TestWhatADiskDoesNotTakeWasNotStored(t *testing.T) {
	full, broken := errors.New("no space left"), ""
	run, err := CreateRun(t.TempDir(), "run", withSync(func(file *os.File) error {
		if journal := filepath.Base(file.Name()) == journalFile; broken == "journal" && journal || broken == "object" && !journal {
			return full
		}
		return nil
	}))
	if err != nil {
		t.Fatal(err)
	}
	for _, broken = range []string{"journal", "object"} {
		if _, err := run.PutFile("a", strings.NewReader("x")); !errors.Is(err, full) {
			t.Errorf("%s: %v", broken, err)
		}
		if len(run.Entries()) != 0 {
			t.Errorf("%s: it counts as stored: %v", broken, run.Entries())
		}
	}
	broken = ""
	if _, err := run.PutFile("a", strings.NewReader("x")); err != nil {
		t.Errorf("control: %v", err)
	}
	// What was written and not taken is no half line, and no second line of the same number, for whoever goes on.
	if err := run.Abandon(); err != nil {
		t.Fatal(err)
	}
	again, err := OpenRun(run.Dir())
	if err != nil {
		t.Fatalf("the journal is damaged: %v", err)
	}
	if entries := again.Entries(); len(entries) != 1 || entries[0].Name != "a" {
		t.Errorf("%v", entries)
	}
	_ = again.Abandon()
}
