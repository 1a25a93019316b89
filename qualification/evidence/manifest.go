package evidence

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"ptah.run/ptah/qualification/evidence/stream"
)

// ErrTampered marks a run directory whose bytes are not those that were written. Errors of ReadRun that mean this
// wrap it; other errors mean that the directory could not be read or is not a closed run.
var ErrTampered = errors.New("the evidence was altered after it was written")

// ErrNotClosed marks a run directory that is still being written or whose writer died.
var ErrNotClosed = errors.New("the run was not closed")

// Manifest is the content of manifest.json.
type Manifest struct {
	Schema  string      `json:"schema"`
	Run     string      `json:"run"`
	Entries []Entry     `json:"entries"`
	Cells   []CellEntry `json:"cells"`
}

// Close ends the run: it writes the manifest, after which nothing can be added.
func (r *Run) Close() (root string, err error) {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	if r.closed {
		return "", fmt.Errorf("run %s is closed already", r.identity.ID)
	}
	if len(r.streams) > 0 {
		return "", fmt.Errorf("close run %s: %d streams or files are still being written", r.identity.ID, len(r.streams))
	}
	if err := r.noteLocked(journalLine{Event: "closed"}); err != nil {
		return "", err
	}
	if err := os.RemoveAll(filepath.Join(r.dir, partialDir)); err != nil {
		return "", fmt.Errorf("close run %s: %w", r.identity.ID, err)
	}
	manifest := Manifest{Schema: Schema, Run: r.identity.ID, Entries: sortedEntries(r.entries), Cells: r.cells}
	for _, path := range []string{identityFile, journalFile} {
		digest, size, err := digestFile(filepath.Join(r.dir, path))
		if err != nil {
			return "", fmt.Errorf("close run %s: %w", r.identity.ID, err)
		}
		manifest.Entries = append(manifest.Entries, Entry{Name: path, Path: path, Digest: digest, Size: size, Kind: KindFile})
	}
	data := encodeIndented(manifest)
	if err := WriteFileAtomic(filepath.Join(r.dir, manifestFile), data); err != nil {
		return "", fmt.Errorf("close run %s: %w", r.identity.ID, err)
	}
	r.closed = true
	return Digest(data), r.journal.Close()
}

// Abandon lets go of a run without closing it, so that it can be opened again.
func (r *Run) Abandon() error {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	if r.closed {
		return nil
	}
	r.closed = true
	return r.journal.Close()
}

// Snapshot is a closed run of which every byte was checked.
type Snapshot struct {
	dir      string
	manifest Manifest
	byName   map[string]Entry

	Identity Identity
	Root     string // digest of the manifest, and through it of everything
}

// ReadRun checks a closed run and returns it. Every file is hashed, every stream is followed to its completeness
// record, and a file that the manifest does not name is refused.
func ReadRun(dir string) (*Snapshot, error) {
	data, err := os.ReadFile(filepath.Join(dir, manifestFile))
	if errors.Is(err, fs.ErrNotExist) {
		if _, err := os.Stat(filepath.Join(dir, identityFile)); err == nil {
			return nil, fmt.Errorf("read run %s: %w: its process still runs or died, and there is nothing to judge", dir, ErrNotClosed)
		}
		return nil, fmt.Errorf("read run %s: it is no run directory, there is no %s in it", dir, manifestFile)
	}
	if err != nil {
		return nil, fmt.Errorf("read run %s: %w", dir, err)
	}
	snapshot := &Snapshot{dir: dir, byName: map[string]Entry{}, Root: Digest(data)}
	if err := decodeExact(data, &snapshot.manifest); err != nil {
		return nil, fmt.Errorf("read run %s: %s: %w", dir, manifestFile, err)
	}
	if err := snapshot.check(); err != nil {
		return nil, fmt.Errorf("read run %s: %w", dir, err)
	}
	return snapshot, nil
}

func (s *Snapshot) check() error {
	if s.manifest.Schema != Schema {
		return fmt.Errorf("%s has the unknown schema %q: %w", manifestFile, s.manifest.Schema, ErrTampered)
	}
	paths := map[string]bool{manifestFile: true}
	for _, entry := range s.manifest.Entries {
		if _, twice := s.byName[entry.Name]; twice {
			return fmt.Errorf("%s is named twice: %w", entry.Name, ErrTampered)
		}
		if !namePattern.MatchString(entry.Name) || !namePattern.MatchString(entry.Path) {
			return fmt.Errorf("%q is no name of evidence: %w", entry.Name, ErrTampered)
		}
		if err := checkObject(s.dir, entry); err != nil {
			return err
		}
		s.byName[entry.Name], paths[filepath.FromSlash(entry.Path)] = entry, true
	}
	for _, cell := range s.manifest.Cells {
		if cell.Finished && cell.Root != cellRoot(s.manifest.Entries, cell) {
			return fmt.Errorf("the evidence of cell %s is not what was there when it finished: %w", cell.Key, ErrTampered)
		}
	}
	if err := refuseOthers(s.dir, paths); err != nil {
		return err
	}
	return s.checkIdentity()
}

func (s *Snapshot) checkIdentity() error {
	data, err := s.ReadFile(identityFile)
	if err != nil {
		return fmt.Errorf("%w: %w", err, ErrTampered)
	}
	if err := decodeIdentity(data, &s.Identity); err != nil {
		return fmt.Errorf("%w: %w", err, ErrTampered)
	}
	if s.Identity.ID != s.manifest.Run {
		return fmt.Errorf("the manifest is that of run %s and the directory that of run %s: %w", s.manifest.Run, s.Identity.ID, ErrTampered)
	}
	return nil
}

// checkObject hashes the file of an entry, and follows a stream to its end.
func checkObject(dir string, entry Entry) error {
	path := filepath.Join(dir, filepath.FromSlash(entry.Path))
	info, err := os.Lstat(path)
	if err != nil || !info.Mode().IsRegular() {
		return fmt.Errorf("%s: its file %s is missing: %w", entry.Name, entry.Path, ErrTampered)
	}
	digest, size, err := digestFile(path)
	if err != nil {
		return fmt.Errorf("%s: %w", entry.Name, err)
	}
	if digest != entry.Digest || size != entry.Size {
		return fmt.Errorf("%s: the file holds %d bytes of digest %s, it was stored as %d bytes of %s: %w",
			entry.Name, size, digest, entry.Size, entry.Digest, ErrTampered)
	}
	if entry.Kind != KindStream || entry.Complete == nil {
		return nil
	}
	file, err := os.Open(path)
	if err != nil {
		return fmt.Errorf("%s: %w", entry.Name, err)
	}
	defer func() { _ = file.Close() }()
	complete, err := stream.Read(file, func([]byte) error { return nil })
	if err != nil {
		return fmt.Errorf("%s: %w: %w", entry.Name, err, ErrTampered)
	}
	if complete != *entry.Complete {
		return fmt.Errorf("%s: the stream ends in another completeness record than the manifest says: %w", entry.Name, ErrTampered)
	}
	return nil
}

func refuseOthers(dir string, known map[string]bool) error {
	return filepath.WalkDir(dir, func(path string, item fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		relative, err := filepath.Rel(dir, path)
		if err != nil {
			return err
		}
		if !item.IsDir() && !known[relative] {
			return fmt.Errorf("%s is not part of the run: %w", relative, ErrTampered)
		}
		return nil
	})
}

// Entries returns the entries of the run, sorted by name except for the run's own two files at the end.
func (s *Snapshot) Entries() []Entry { return s.manifest.Entries }

// Cells returns every attempt at every cell, in the order in which they began.
func (s *Snapshot) Cells() []CellEntry { return s.manifest.Cells }

// FinishedCell returns the latest finished attempt at a cell.
func (s *Snapshot) FinishedCell(key string) (CellEntry, bool) {
	return latestFinished(s.manifest.Cells, key)
}

// EntriesOf returns the entries of an attempt by their names relative to it.
func (s *Snapshot) EntriesOf(cell CellEntry) map[string]Entry {
	found := map[string]Entry{}
	for _, entry := range s.manifest.Entries {
		if name, ok := strings.CutPrefix(entry.Name, cell.Prefix()); ok {
			found[name] = entry
		}
	}
	return found
}

// Lookup returns the entry of a name.
func (s *Snapshot) Lookup(name string) (Entry, bool) {
	entry, ok := s.byName[name]
	return entry, ok
}

// Open opens the content of a name.
func (s *Snapshot) Open(name string) (io.ReadCloser, error) {
	entry, ok := s.byName[name]
	if !ok {
		return nil, fmt.Errorf("run %s holds no %s: %w", s.manifest.Run, name, fs.ErrNotExist)
	}
	return os.Open(filepath.Join(s.dir, filepath.FromSlash(entry.Path)))
}

// ReadFile returns the content of a name.
func (s *Snapshot) ReadFile(name string) ([]byte, error) {
	file, err := s.Open(name)
	if err != nil {
		return nil, err
	}
	defer func() { _ = file.Close() }()
	return io.ReadAll(file)
}

func decodeIdentity(data []byte, into *Identity) error {
	if err := json.Unmarshal(data, into); err != nil {
		return fmt.Errorf("%s is damaged: %w", identityFile, err)
	}
	if into.Schema != Schema {
		return fmt.Errorf("%s has the schema %q, this program reads %q", identityFile, into.Schema, Schema)
	}
	return nil
}

// decodeExact decodes data and refuses bytes that differ from what encoding the result gives.
func decodeExact(data []byte, into *Manifest) error {
	decoder := json.NewDecoder(bytes.NewReader(data))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(into); err != nil {
		return fmt.Errorf("it is no manifest: %w: %w", err, ErrTampered)
	}
	if !bytes.Equal(data, encodeIndented(into)) {
		return fmt.Errorf("it is not in the form in which it was written: %w", ErrTampered)
	}
	return nil
}
