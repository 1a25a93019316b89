package evidence

import (
	"bytes"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// died lets go of a run as a killed process does: the lock is free, everything on disk stays.
func died(t *testing.T, run *Run) {
	t.Helper()
	must(t, run.journal.Close())
}

func TestARunIsThereWithItsJournalOrNotAtAll(t *testing.T) {
	root := t.TempDir()
	must(t, os.MkdirAll(filepath.Join(root, "runs", "taken"), 0o755))
	must(t, os.WriteFile(filepath.Join(root, "runs", "taken", "file"), nil, 0o644))
	must(t, os.WriteFile(filepath.Join(root, "runs", "file"), nil, 0o644))
	for _, id := range []string{"taken", "file"} {
		if _, err := CreateRun(root, id); !errors.Is(err, ErrUnusableFolder) {
			t.Errorf("%s: %v", id, err)
		}
	}
	run, err := CreateRun(root, "new")
	must(t, err)
	died(t, run)
	items, err := os.ReadDir(filepath.Join(root, "runs"))
	must(t, err)
	for _, item := range items {
		if strings.HasPrefix(item.Name(), ".") {
			t.Errorf("%s was left behind", item.Name())
		}
	}
	again, err := OpenRun(filepath.Join(root, "runs", "new"))
	must(t, err)
	must(t, again.Abandon())
}

func TestAJournalWithoutASingleWholeLineIsAJournal(t *testing.T) {
	for name, content := range map[string]string{"empty": "", "cut": `{"seq":0,"at":"2026`} {
		run := create(t)
		died(t, run)
		must(t, os.WriteFile(filepath.Join(run.Dir(), journalFile), []byte(content), 0o644))
		again, err := OpenRun(run.Dir())
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		_, err = again.Close()
		must(t, err)
		_, err = ReadRun(run.Dir())
		must(t, err)
	}
}

func TestAnObjectThatWasNeverNamedIsKeptAndNamed(t *testing.T) {
	run := create(t)
	died(t, run)
	content := []byte("stored whole, and killed before the journal")
	name := strings.TrimPrefix(Digest(content), "sha256:")
	must(t, os.WriteFile(filepath.Join(run.Dir(), objectsDir, name), content, 0o444))
	must(t, os.WriteFile(filepath.Join(run.Dir(), ".writing-123"), []byte("half a manif"), 0o600))
	again, err := OpenRun(run.Dir())
	must(t, err)
	_, err = again.Close()
	must(t, err)
	snapshot, err := ReadRun(run.Dir())
	must(t, err)
	if data, err := snapshot.ReadFile(UnclaimedPrefix + name); err != nil || !bytes.Equal(data, content) {
		t.Errorf("%q, %v", data, err)
	}
}

func TestAnObjectThatIsNotWhatItsNameSaysIsRefused(t *testing.T) {
	run := create(t)
	died(t, run)
	must(t, os.WriteFile(filepath.Join(run.Dir(), objectsDir, strings.Repeat("0", 64)), []byte("x"), 0o444))
	if _, err := OpenRun(run.Dir()); !errors.Is(err, ErrTampered) {
		t.Errorf("%v", err)
	}
}

func TestARunThatDiedWhileItWasClosedIsClosedAgain(t *testing.T) {
	dir := filled(t)
	must(t, os.Remove(filepath.Join(dir, manifestFile)))
	again, err := OpenRun(dir)
	must(t, err)
	if _, ok := again.FinishedCell("cell-a"); !ok {
		t.Error("the finished cell is lost")
	}
	_, err = again.Close()
	must(t, err)
	_, err = ReadRun(dir)
	must(t, err)
}

func TestNotesOutliveTheirProcess(t *testing.T) {
	run := create(t)
	must(t, run.Note("place", map[string]string{"lab": "q-1"}))
	died(t, run)
	again, err := OpenRun(run.Dir())
	must(t, err)
	defer func() { _ = again.Abandon() }()
	must(t, again.Note("bare", nil))
	notes := again.Notes()
	if len(notes) != 2 || notes[0].Message != "place" || string(notes[0].Data) != `{"lab":"q-1"}` || notes[1].Data != nil {
		t.Errorf("%+v", notes)
	}
	if err := again.Note("odd", func() {}); err == nil {
		t.Error("what has no JSON form was journalled")
	}
}

func TestAFinishedCellTakesNothingMore(t *testing.T) {
	run := create(t)
	cell, err := run.BeginCell("a", "")
	must(t, err)
	s, err := cell.Stream("open.jsonl")
	must(t, err)
	if err := cell.Finish(); err == nil || !strings.Contains(err.Error(), "open.jsonl") {
		t.Errorf("a cell was finished with a stream open: %v", err)
	}
	_, err = s.Close()
	must(t, err)
	must(t, cell.Finish())
	if _, err := cell.PutFile("late", strings.NewReader("")); err == nil {
		t.Error("a file was added to a finished cell")
	}
	if _, err := cell.Stream("late.jsonl"); err == nil {
		t.Error("a stream was added to a finished cell")
	}
	if err := cell.Finish(); err == nil {
		t.Error("a cell was finished twice")
	}
	staging := t.TempDir()
	must(t, os.WriteFile(filepath.Join(staging, "ledger.jsonl"), nil, 0o644))
	if err := cell.ImportPhase("s", "p", staging); err == nil {
		t.Error("a ledger was added to a finished cell")
	}
	if attempts := run.Attempts(); len(attempts) != 1 || !attempts[0].Finished {
		t.Errorf("%+v", attempts)
	}
}

func TestPhasesAndPreparationHaveNamesOfTheirOwn(t *testing.T) {
	run := create(t)
	cell, err := run.BeginCell("a", "")
	must(t, err)
	staging := t.TempDir()
	must(t, os.WriteFile(filepath.Join(staging, "ledger.jsonl"), nil, 0o644))
	must(t, cell.ImportPhase("suite", "one", staging))
	must(t, cell.ImportPhase("suite", "two", staging))
	must(t, cell.ImportPreparation("suite", "one", staging))
	if err := cell.ImportPhase("suite", "one", staging); err == nil {
		t.Error("a phase was stored twice")
	}
	var names []string
	for _, entry := range run.Entries() {
		names = append(names, entry.Name)
	}
	want := "cells/a/1/preparation/suite/one/ledger.jsonl cells/a/1/" + PhaseLedger("suite", "one") + " cells/a/1/" + PhaseLedger("suite", "two")
	if strings.Join(names, " ") != want {
		t.Errorf("%v", names)
	}
}

func FuzzParseJournal(f *testing.F) {
	f.Add([]byte(`{"seq":0,"at":"2026-11-29T10:00:00Z","event":"created"}` + "\n"))
	f.Add([]byte("{\"seq\":0}\n{\"seq\":1,\"event\":\"note\",\"message\":\"x\"}\n"))
	f.Add([]byte("{\"seq\":1}\n"))
	f.Add([]byte("\n"))
	f.Fuzz(func(t *testing.T, data []byte) {
		lines, err := parseJournal(data)
		if err != nil {
			return
		}
		for i, line := range lines {
			if line.Seq != i {
				t.Fatalf("line %d has number %d", i, line.Seq)
			}
		}
		if len(lines) != bytes.Count(bytes.TrimSuffix(data, []byte("\n")), []byte("\n"))+min(len(data), 1) {
			t.Fatalf("%d lines of %q", len(lines), data)
		}
	})
}

func FuzzManifest(f *testing.F) {
	f.Add(encodeIndented(Manifest{Schema: Schema, Run: "r", Entries: []Entry{{Name: "a", Path: "b", Digest: Digest(nil), Kind: KindFile}}, Cells: []CellEntry{{Key: "c", Attempt: 1}}}))
	f.Add([]byte("{}"))
	f.Add([]byte("{\n  \"schema\": \"\",\n  \"run\": \"\",\n  \"entries\": null,\n  \"cells\": null\n}\n"))
	f.Fuzz(func(t *testing.T, data []byte) {
		var m Manifest
		if err := decodeExact(data, &m); err != nil {
			return
		}
		if !bytes.Equal(encodeIndented(m), data) {
			t.Fatal("a manifest was read from bytes that it is not written as")
		}
		// Whatever it names, nothing outside of its folder may be read.
		snapshot := &Snapshot{dir: t.TempDir(), manifest: m, byName: map[string]Entry{}}
		if snapshot.check() == nil {
			t.Fatal("a manifest without a single file passes")
		}
	})
}

func TestAReaderThatFailsIsNoDefectOfTheLedger(t *testing.T) {
	run := create(t)
	if _, err := run.put(Entry{Name: "x", Kind: KindStream}, io.MultiReader(strings.NewReader("{}"), failingReader{})); err == nil {
		t.Error("half a stream was stored")
	}
}

func TestAStreamWhoseWriterGaveUpIsKeptAsCut(t *testing.T) {
	run := create(t)
	cell, err := run.BeginCell("a", "")
	must(t, err)
	s, err := cell.Stream("numbers.jsonl")
	must(t, err)
	must(t, s.Append(map[string]int{"i": 1}))
	must(t, s.Abandon())
	if err := s.Abandon(); err == nil {
		t.Error("it was abandoned twice")
	}
	if _, err := s.Close(); err == nil {
		t.Error("an abandoned stream was closed as whole")
	}
	must(t, cell.Finish())
	_, err = run.Close()
	must(t, err)
	snapshot, err := ReadRun(run.Dir())
	must(t, err)
	entry, ok := snapshot.Lookup("cells/a/1/numbers.jsonl")
	if !ok || entry.Kind != KindStream || entry.Complete != nil || entry.Size == 0 {
		t.Errorf("%+v", entry)
	}
}
