package evidence

import (
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"ptah.run/ptah/qualification/evidence/ledger"
)

func clock() func() time.Time {
	return func() time.Time { return time.Date(2026, 11, 29, 10, 0, 0, 0, time.UTC) }
}

func create(t *testing.T) *Run {
	t.Helper()
	run, err := CreateRun(t.TempDir(), "run-1", WithClock(clock()))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = run.Abandon() })
	return run
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// filled is a closed run with one file, one stream, and one finished cell.
func filled(t *testing.T) string {
	t.Helper()
	run := create(t)
	_, err := run.PutFile("inputs/profile.yaml", strings.NewReader("name: x\n"))
	must(t, err)
	cell, err := run.BeginCell("cell-a", "sha256:inputs")
	must(t, err)
	s, err := cell.Stream("samples.jsonl")
	must(t, err)
	for i := range 3 {
		must(t, s.Append(map[string]int{"i": i}))
	}
	_, err = s.Close()
	must(t, err)
	_, err = cell.PutFile("lab.json", strings.NewReader("{}"))
	must(t, err)
	must(t, cell.Finish())
	_, err = run.Close()
	must(t, err)
	return run.Dir()
}

func TestAClosedRunReadsBack(t *testing.T) {
	dir := filled(t)
	snapshot, err := ReadRun(dir)
	must(t, err)
	cell, ok := snapshot.FinishedCell("cell-a")
	if !ok || cell.Attempt != 1 || cell.Root == "" || len(snapshot.EntriesOf(cell)) != 2 {
		t.Errorf("cell %+v, entries %v", cell, snapshot.EntriesOf(cell))
	}
	data, err := snapshot.ReadFile("inputs/profile.yaml")
	if err != nil || string(data) != "name: x\n" {
		t.Errorf("%q, %v", data, err)
	}
	entry, _ := snapshot.Lookup("cells/cell-a/1/samples.jsonl")
	if entry.Complete == nil || entry.Complete.Lines != 3 {
		t.Errorf("the stream is %+v", entry)
	}
	if _, err := snapshot.ReadFile("no/such"); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a missing name is %v", err)
	}
}

func TestEveryFlippedByteOfARunIsSeen(t *testing.T) {
	dir := filled(t)
	files := 0
	must(t, filepath.WalkDir(dir, func(path string, item os.DirEntry, err error) error {
		if err != nil || item.IsDir() {
			return err
		}
		files++
		data, err := os.ReadFile(path)
		must(t, err)
		must(t, os.Chmod(path, 0o644))
		for i := range data {
			altered := bytes.Clone(data)
			altered[i] ^= 1 << (i % 8)
			must(t, os.WriteFile(path, altered, 0o644))
			if snapshot, err := ReadRun(dir); err == nil {
				// A flip that leaves the manifest consistent changes the root, and with it fits no record.
				if filepath.Base(path) != manifestFile || snapshot.Root == Digest(data) {
					t.Fatalf("%s: byte %d was flipped and nothing changed", path, i)
				}
			}
		}
		must(t, os.WriteFile(path, data, 0o644))
		return nil
	}))
	if _, err := ReadRun(dir); err != nil || files != 6 {
		t.Errorf("control: restored it must read: %v, %d files", err, files)
	}
}

func TestDamageIsRefusedAsTampering(t *testing.T) {
	object := func(t *testing.T, dir string) string {
		t.Helper()
		snapshot, err := ReadRun(dir)
		must(t, err)
		entry, _ := snapshot.Lookup("cells/cell-a/1/samples.jsonl")
		path := filepath.Join(dir, entry.Path)
		must(t, os.Chmod(path, 0o644))
		return path
	}
	cases := map[string]func(t *testing.T, dir string){
		"a missing file":   func(t *testing.T, dir string) { must(t, os.Remove(object(t, dir))) },
		"a truncated file": func(t *testing.T, dir string) { must(t, os.Truncate(object(t, dir), 10)) },
		"an emptied file":  func(t *testing.T, dir string) { must(t, os.Truncate(object(t, dir), 0)) },
		"an added file":    func(t *testing.T, dir string) { must(t, os.WriteFile(filepath.Join(dir, "more"), nil, 0o644)) },
		"a link for a file": func(t *testing.T, dir string) {
			path := object(t, dir)
			must(t, os.Rename(path, path+"x"))
			must(t, os.Symlink(path+"x", path))
		},
		"reordered lines": func(t *testing.T, dir string) {
			path := object(t, dir)
			data, err := os.ReadFile(path)
			must(t, err)
			lines := strings.SplitAfter(string(data), "\n")
			lines[0], lines[1] = lines[1], lines[0]
			must(t, os.WriteFile(path, []byte(strings.Join(lines, "")), 0o644))
		},
		"a cell root of other evidence": func(t *testing.T, dir string) {
			rewriteManifest(t, dir, func(m *Manifest) { m.Cells[0].Root = Digest(nil) })
		},
		"a name given twice": func(t *testing.T, dir string) {
			rewriteManifest(t, dir, func(m *Manifest) { m.Entries = append(m.Entries, m.Entries[0]) })
		},
		"a name that leads outside": func(t *testing.T, dir string) {
			rewriteManifest(t, dir, func(m *Manifest) { m.Entries[0].Path = "../x" })
		},
		"a stream stated as longer": func(t *testing.T, dir string) {
			rewriteManifest(t, dir, func(m *Manifest) { m.Entries[1].Complete.Lines++ })
		},
		"the manifest of another run": func(t *testing.T, dir string) { rewriteManifest(t, dir, func(m *Manifest) { m.Run = "run-2" }) },
	}
	for name, damage := range cases {
		t.Run(name, func(t *testing.T) {
			dir := filled(t)
			damage(t, dir)
			if _, err := ReadRun(dir); !errors.Is(err, ErrTampered) {
				t.Errorf("%v", err)
			}
		})
	}
}

func rewriteManifest(t *testing.T, dir string, change func(*Manifest)) {
	t.Helper()
	path := filepath.Join(dir, manifestFile)
	data, err := os.ReadFile(path)
	must(t, err)
	var m Manifest
	must(t, json.Unmarshal(data, &m))
	// The second entry must be the stream for the case that changes it.
	for i, entry := range m.Entries {
		if entry.Kind == KindStream {
			m.Entries[1], m.Entries[i] = m.Entries[i], m.Entries[1]
		}
	}
	change(&m)
	must(t, os.WriteFile(path, encodeIndented(m), 0o644))
}

func TestNothingIsOverwritten(t *testing.T) {
	run := create(t)
	_, err := run.PutFile("a", strings.NewReader("1"))
	must(t, err)
	if _, err := run.PutFile("a", strings.NewReader("2")); err == nil {
		t.Error("a file was replaced")
	}
	if _, err := run.Stream("a"); err == nil {
		t.Error("a file was replaced by a stream")
	}
	s, err := run.Stream("b")
	must(t, err)
	if _, err := run.PutFile("b", strings.NewReader("2")); err == nil {
		t.Error("an open stream was replaced")
	}
	if _, err := run.Close(); err == nil {
		t.Error("a run was closed with a stream open")
	}
	_, err = s.Close()
	must(t, err)
	if _, err := CreateRun(filepath.Dir(filepath.Dir(run.Dir())), "run-1"); err == nil {
		t.Error("a run was created over another")
	}
	_, err = run.Close()
	must(t, err)
	if _, err := run.PutFile("c", strings.NewReader("")); err == nil {
		t.Error("a closed run was added to")
	}
	if _, err := OpenRun(run.Dir()); err == nil {
		t.Error("a closed run was opened to be added to")
	}
}

func TestNamesThatLeadElsewhereAreRefused(t *testing.T) {
	run := create(t)
	for _, name := range []string{"", "/a", "../a", "a/../b", "a//b", "a/", ".hidden", "a b", "a\nb", strings.Repeat("a", 300)} {
		if _, err := run.PutFile(name, strings.NewReader("")); err == nil {
			t.Errorf("%q was stored", name)
		}
	}
	for _, id := range []string{"", "A", "../x", "a/b", strings.Repeat("a", 64)} {
		if _, err := CreateRun(t.TempDir(), id); err == nil {
			t.Errorf("run %q was created", id)
		}
	}
	if _, err := run.BeginCell("a/b", ""); err == nil {
		t.Error("a cell with a slash was begun")
	}
}

func TestAFileThatCannotBeReadWholeLeavesNothing(t *testing.T) {
	run := create(t)
	if _, err := run.PutFile("a", failingReader{}); err == nil {
		t.Fatal("control: it must fail")
	}
	if _, err := run.PutFile("a", strings.NewReader("whole")); err != nil {
		t.Errorf("the name must be free again: %v", err)
	}
	left, err := os.ReadDir(filepath.Join(run.Dir(), partialDir))
	if err != nil || len(left) != 0 {
		t.Errorf("%v left behind, %v", left, err)
	}
}

type failingReader struct{}

func (failingReader) Read([]byte) (int, error) { return 0, errors.New("connection lost") }

func TestARunThatDiedGoesOn(t *testing.T) {
	run := create(t)
	_, err := run.PutFile("before", strings.NewReader("x"))
	must(t, err)
	first, err := run.BeginCell("cell-a", "sha256:one")
	must(t, err)
	_, err = first.PutFile("file", strings.NewReader("first"))
	must(t, err)
	must(t, first.Finish())
	second, err := run.BeginCell("cell-b", "sha256:two")
	must(t, err)
	_, err = second.Stream("open.jsonl") // the process dies with it open
	must(t, err)
	must(t, run.journal.Close())
	journal := filepath.Join(run.Dir(), journalFile)
	file, err := os.OpenFile(journal, os.O_APPEND|os.O_WRONLY, 0)
	must(t, err)
	_, err = file.WriteString(`{"seq":9,"event":"sto`) // a line that the crash cut
	must(t, err)
	must(t, file.Close())

	if _, err := ReadRun(run.Dir()); !errors.Is(err, ErrNotClosed) {
		t.Errorf("an unfinished run reads as %v", err)
	}
	again, err := OpenRun(run.Dir(), WithClock(clock()))
	must(t, err)
	if cell, ok := again.FinishedCell("cell-a"); !ok || cell.InputDigest != "sha256:one" {
		t.Errorf("the finished cell is %+v, %v", cell, ok)
	}
	if _, ok := again.FinishedCell("cell-b"); ok {
		t.Error("the cell that was running counts as finished")
	}
	if _, err := again.PutFile("before", strings.NewReader("y")); err == nil {
		t.Error("what was stored before the crash was replaced")
	}
	redone, err := again.BeginCell("cell-b", "sha256:two")
	must(t, err)
	_, err = redone.PutFile("file", strings.NewReader("second"))
	must(t, err)
	must(t, redone.Finish())
	_, err = again.Close()
	must(t, err)
	snapshot, err := ReadRun(run.Dir())
	must(t, err)
	if cell, _ := snapshot.FinishedCell("cell-b"); cell.Attempt != 2 {
		t.Errorf("the cell done again is attempt %d", cell.Attempt)
	}
}

func TestADamagedJournalIsRefused(t *testing.T) {
	run := create(t)
	_, err := run.PutFile("a", strings.NewReader("1"))
	must(t, err)
	must(t, run.Abandon())
	journal := filepath.Join(run.Dir(), journalFile)
	data, err := os.ReadFile(journal)
	must(t, err)
	lines := strings.SplitAfter(string(data), "\n")
	for name, damaged := range map[string]string{"removed line": lines[1], "no JSON": "hello\n" + lines[1], "exchanged lines": lines[1] + lines[0]} {
		must(t, os.WriteFile(journal, []byte(damaged), 0o644))
		if _, err := OpenRun(run.Dir()); err == nil {
			t.Errorf("%s: it was opened", name)
		}
	}
	must(t, os.WriteFile(journal, data, 0o644))
	again, err := OpenRun(run.Dir())
	must(t, err)
	must(t, again.Abandon())
	for _, entry := range run.Entries() {
		must(t, os.Chmod(filepath.Join(run.Dir(), entry.Path), 0o644))
		must(t, os.WriteFile(filepath.Join(run.Dir(), entry.Path), []byte("2"), 0o644))
	}
	if _, err := OpenRun(run.Dir()); !errors.Is(err, ErrTampered) {
		t.Errorf("a run whose stored file changed was opened: %v", err)
	}
}

func TestASecondProcessIsRefused(t *testing.T) {
	run := create(t)
	if _, err := OpenRun(run.Dir()); err == nil || !strings.Contains(err.Error(), "another process") {
		t.Errorf("%v", err)
	}
}

func TestTheSameContentIsStoredOnce(t *testing.T) {
	run := create(t)
	for _, name := range []string{"a", "b"} {
		_, err := run.PutFile(name, strings.NewReader("same"))
		must(t, err)
	}
	objects, err := os.ReadDir(filepath.Join(run.Dir(), objectsDir))
	if err != nil || len(objects) != 1 || len(run.Entries()) != 2 {
		t.Errorf("%d objects, %d entries, %v", len(objects), len(run.Entries()), err)
	}
	_, err = run.Close()
	must(t, err)
	_, err = ReadRun(run.Dir())
	must(t, err)
}

func TestTheCellRootDependsOnEvidenceAlone(t *testing.T) {
	root := func(content string) string {
		run := create(t)
		cell, err := run.BeginCell("a", "sha256:in")
		must(t, err)
		_, err = cell.PutFile("x", strings.NewReader(content))
		must(t, err)
		must(t, cell.Finish())
		finished, _ := run.FinishedCell("a")
		return finished.Root
	}
	if first, again := root("1"), root("1"); first != again || first == root("2") {
		t.Error("the root must be the same for the same evidence and differ for other evidence")
	}
}

func TestImportOfASuite(t *testing.T) {
	staging := t.TempDir()
	book, err := ledger.Open(staging)
	must(t, err)
	book.Scenario("one").Pass()
	must(t, book.Close())
	must(t, os.MkdirAll(filepath.Join(staging, "logs"), 0o755))
	must(t, os.WriteFile(filepath.Join(staging, "logs", "manager.log"), []byte("x"), 0o644))
	run := create(t)
	cell, err := run.BeginCell("a", "")
	must(t, err)
	must(t, cell.ImportSuite("data-plane", staging))
	entries := run.Entries()
	if len(entries) != 2 || entries[0].Name != "cells/a/1/suites/data-plane/ledger.jsonl" || entries[0].Complete == nil || entries[0].Complete.Lines != 2 {
		t.Errorf("%+v", entries)
	}

	path := filepath.Join(staging, ledger.FileName)
	must(t, os.Truncate(path, 30))
	must(t, cell.ImportSuite("cut", staging))
	for _, entry := range run.Entries() {
		if strings.HasSuffix(entry.Name, "cut/ledger.jsonl") && (entry.Kind != KindStream || entry.Complete != nil) {
			t.Errorf("a cut ledger was imported as %+v", entry)
		}
	}
	must(t, os.Symlink("/etc/hostname", filepath.Join(staging, "link")))
	if err := cell.ImportSuite("linked", staging); err == nil {
		t.Error("a link was followed")
	}
	if err := cell.ImportSuite("missing", filepath.Join(staging, "none")); err == nil {
		t.Error("a missing folder was imported")
	}
}

func TestAtomicWrites(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "file")
	must(t, WriteFileAtomicMode(path, []byte("one"), 0o600))
	must(t, WriteFileAtomic(path, []byte("two")))
	data, err := os.ReadFile(path)
	if err != nil || string(data) != "two" {
		t.Errorf("%q, %v", data, err)
	}
	for name, bad := range map[string]string{"missing folder": filepath.Join(dir, "none", "x"), "a file for a folder": filepath.Join(path, "x")} {
		err := WriteFileAtomic(bad, nil)
		if !errors.Is(err, ErrUnusableFolder) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: %v", name, err)
		}
	}
	if err := WriteFileAtomic(dir, []byte("x")); err == nil {
		t.Error("a folder was replaced by a file")
	}
	left, err := os.ReadDir(dir)
	if err != nil || len(left) != 1 {
		t.Errorf("left behind: %v, %v", left, err)
	}
}

func TestAStreamErrorNamesTheStream(t *testing.T) {
	run := create(t)
	s, err := run.Stream("numbers")
	must(t, err)
	if err := s.Append(3); err == nil || !strings.Contains(err.Error(), "numbers") {
		t.Errorf("%v", err)
	}
	_, err = s.Close()
	must(t, err)
	if _, err := s.Close(); err == nil {
		t.Error("it was closed twice")
	}
}
