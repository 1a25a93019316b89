// Package evidence is the append-only, content-addressed store of what a qualification run saw.
//
// A run is one directory, <root>/runs/<run id>/, created exclusively:
//
//	run.json        who and when
//	journal.jsonl   one fsynced line per thing that happened, the index of an unfinished run
//	objects/sha256/ every file, under the digest of its content
//	manifest.json   written last: every name with digest, size and completeness; the evidence root is its digest
//
// Names are written once and never replaced. A run that died is opened again with OpenRun and goes on; only what
// had not been journalled is lost. A closed run is read with ReadRun, which hashes every byte first and refuses a
// missing, altered or additional file.
//
// The store keeps what it is given. It redacts nothing: callers hand over no credentials.
package evidence

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"sort"
	"strings"
	"sync"
	"syscall"
	"time"

	"ptah.run/ptah/qualification/evidence/stream"
)

// Names inside a run directory.
const (
	identityFile = "run.json"
	journalFile  = "journal.jsonl"
	manifestFile = "manifest.json"
	objectsDir   = "objects/sha256"
	partialDir   = "partial" // files being written; never part of a closed run
)

// Schema identifies the layout of a run directory.
const Schema = "ptah.run/evidence/v1"

// Kind says how an entry is to be read.
type Kind string

// Kinds. A stream without completeness was cut, and is kept as what it is.
const (
	KindFile   Kind = "file"
	KindStream Kind = "stream"
)

// Entry is one name of a run and the content it stands for.
type Entry struct {
	Name     string               `json:"name"`
	Path     string               `json:"path"`
	Digest   string               `json:"digest"`
	Size     int64                `json:"size"`
	Kind     Kind                 `json:"kind"`
	Complete *stream.Completeness `json:"complete,omitempty"`
}

// Identity is the content of run.json.
type Identity struct {
	Schema    string    `json:"schema"`
	ID        string    `json:"id"`
	CreatedAt time.Time `json:"createdAt"`
}

// Run is a run that is being written. It is safe for concurrent use within one process; a second process is
// refused while the first is alive.
type Run struct {
	dir      string
	identity Identity
	now      func() time.Time
	sync     func(*os.File) error // (*os.File).Sync but in tests

	mutex   sync.Mutex
	journal *os.File
	lines   int
	size    int64 // of these lines in bytes
	entries map[string]Entry
	cells   []CellEntry
	notes   []Note
	streams map[string]bool
	closed  bool
}

// Option changes how a run is opened.
type Option func(*Run)

// WithClock makes the run take times from now instead of the clock of the machine.
func WithClock(now func() time.Time) Option { return func(r *Run) { r.now = now } }

var (
	idPattern   = regexp.MustCompile(`^[a-z0-9][a-z0-9-]{0,62}$`)
	namePattern = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]*(/[A-Za-z0-9][A-Za-z0-9._-]*)*$`)
)

// CreateRun creates <root>/runs/<id> and returns the run. The id is lower-case letters, digits and dashes. The folder
// appears with its identity and its journal in it or not at all, so that a run that can be seen can be opened again.
func CreateRun(root, id string, options ...Option) (*Run, error) {
	if !idPattern.MatchString(id) {
		return nil, fmt.Errorf("create run: the id %q must be at most 63 lower-case letters, digits and dashes", id)
	}
	runs := filepath.Join(root, "runs")
	dir := filepath.Join(runs, id)
	if err := os.MkdirAll(runs, 0o755); err != nil {
		return nil, fmt.Errorf("create run %s: %w", id, unwritable(runs, err))
	}
	if _, err := os.Lstat(dir); err == nil {
		return nil, existing(id, dir)
	}
	draft, err := os.MkdirTemp(runs, ".creating-")
	if err != nil {
		return nil, fmt.Errorf("create run %s: %w", id, unwritable(runs, err))
	}
	run, err := draftRun(draft, id, options)
	if err != nil {
		_ = os.RemoveAll(draft)
		return nil, fmt.Errorf("create run %s: %w", id, err)
	}
	// A rename replaces nothing but an empty folder, which holds no evidence.
	if err := os.Rename(draft, dir); err != nil {
		_ = run.journal.Close()
		_ = os.RemoveAll(draft)
		if errors.Is(err, fs.ErrExist) || errors.Is(err, syscall.ENOTEMPTY) || errors.Is(err, syscall.ENOTDIR) {
			return nil, existing(id, dir)
		}
		return nil, fmt.Errorf("create run %s: %w", id, err)
	}
	run.dir = dir
	if err := syncDir(runs); err != nil {
		_ = run.journal.Close()
		return nil, fmt.Errorf("create run %s: %w", id, err)
	}
	return run, nil
}

func existing(id, dir string) error {
	return unusable{fmt.Errorf("create run %s: %s exists already, evidence is never overwritten; choose another id", id, dir)}
}

// draftRun makes everything that a run has from its first moment, in a folder that nobody looks into.
func draftRun(draft, id string, options []Option) (*Run, error) {
	if err := os.Chmod(draft, 0o755); err != nil {
		return nil, err
	}
	run := newRun(draft, options)
	run.identity = Identity{Schema: Schema, ID: id, CreatedAt: run.now().UTC()}
	for _, sub := range []string{objectsDir, partialDir} {
		if err := os.MkdirAll(filepath.Join(draft, sub), 0o755); err != nil {
			return nil, err
		}
	}
	if err := WriteFileAtomic(filepath.Join(draft, identityFile), encodeIndented(run.identity)); err != nil {
		return nil, err
	}
	if err := run.openJournal(); err != nil {
		return nil, err
	}
	if err := errors.Join(run.note(journalLine{Event: "created"}), syncDir(draft)); err != nil {
		return nil, errors.Join(err, run.journal.Close())
	}
	return run, nil
}

// ErrClosed marks a run that is complete.
var ErrClosed = errors.New("it is closed")

// OpenRun opens a run that was created and not closed, to go on with it. Everything journalled is kept.
func OpenRun(dir string, options ...Option) (*Run, error) {
	run := newRun(dir, options)
	data, err := os.ReadFile(filepath.Join(dir, identityFile))
	if err != nil {
		return nil, fmt.Errorf("open run %s: it is no run directory: %w", dir, err)
	}
	if err := decodeIdentity(data, &run.identity); err != nil {
		return nil, fmt.Errorf("open run %s: %w", dir, err)
	}
	if _, err := os.Stat(filepath.Join(dir, manifestFile)); err == nil {
		return nil, fmt.Errorf("open run %s: %w, and a closed run is never added to", dir, ErrClosed)
	}
	if err := run.openJournal(); err != nil {
		return nil, err
	}
	for _, step := range []func() error{run.replay, run.clear, func() error { return run.note(journalLine{Event: "resumed"}) }, run.claimObjects} {
		if err := step(); err != nil {
			_ = run.journal.Close()
			return nil, fmt.Errorf("open run %s: %w", dir, err)
		}
	}
	return run, nil
}

func newRun(dir string, options []Option) *Run {
	run := &Run{dir: dir, now: time.Now, sync: (*os.File).Sync, entries: map[string]Entry{}, streams: map[string]bool{}}
	for _, option := range options {
		option(run)
	}
	return run
}

func (r *Run) openJournal() error {
	path := filepath.Join(r.dir, journalFile)
	file, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|os.O_APPEND, 0o644)
	if err != nil {
		return fmt.Errorf("open the journal of run %s: %w", r.identity.ID, err)
	}
	if err := syscall.Flock(int(file.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		_ = file.Close()
		return fmt.Errorf("open the journal of run %s: another process is writing this run, wait for it or stop it", r.identity.ID)
	}
	r.journal = file
	return nil
}

// Dir is the directory of the run.
func (r *Run) Dir() string { return r.dir }

// ID is the id of the run.
func (r *Run) ID() string { return r.identity.ID }

// PutFile stores what content yields under a name that was not used before.
func (r *Run) PutFile(name string, content io.Reader) (Entry, error) {
	return r.put(Entry{Name: name, Kind: KindFile}, content)
}

// put stores content under an entry whose name and kind are set.
func (r *Run) put(entry Entry, content io.Reader) (Entry, error) {
	if err := r.reserve(entry.Name); err != nil {
		return Entry{}, err
	}
	partial, err := os.CreateTemp(filepath.Join(r.dir, partialDir), "file-")
	if err != nil {
		r.release(entry.Name)
		return Entry{}, fmt.Errorf("store %s: %w", entry.Name, err)
	}
	defer func() { _ = os.Remove(partial.Name()); _ = partial.Close() }()
	if _, err := io.Copy(partial, content); err != nil {
		r.release(entry.Name)
		return Entry{}, fmt.Errorf("store %s: %w", entry.Name, err)
	}
	return r.adopt(partial, entry)
}

// Stream starts a stream under a name that was not used before. It is part of the evidence once it is closed.
func (r *Run) Stream(name string) (*Stream, error) {
	if err := r.reserve(name); err != nil {
		return nil, err
	}
	partial, err := os.CreateTemp(filepath.Join(r.dir, partialDir), "stream-")
	if err != nil {
		r.release(name)
		return nil, fmt.Errorf("start stream %s: %w", name, err)
	}
	return &Stream{run: r, name: name, file: partial, writer: stream.NewWriter(partial)}, nil
}

// Stream is a JSONL stream of a run. It is safe for concurrent use.
type Stream struct {
	run    *Run
	name   string
	mutex  sync.Mutex
	file   *os.File
	writer *stream.Writer
}

// Append writes value as one line.
func (s *Stream) Append(value any) error {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	if err := s.writer.Append(value); err != nil {
		return fmt.Errorf("stream %s: %w", s.name, err)
	}
	return nil
}

// Close writes the completeness record and makes the stream part of the evidence.
func (s *Stream) Close() (Entry, error) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	complete, err := s.writer.Close()
	if err != nil {
		return Entry{}, fmt.Errorf("stream %s: %w", s.name, err)
	}
	defer func() { _ = os.Remove(s.file.Name()); _ = s.file.Close() }()
	return s.run.adopt(s.file, Entry{Name: s.name, Kind: KindStream, Complete: &complete})
}

// Abandon ends a stream whose writer gave up. What was written is kept as the cut stream that it is.
func (s *Stream) Abandon() error {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	defer func() { _ = os.Remove(s.file.Name()); _ = s.file.Close() }()
	_, err := s.run.adopt(s.file, Entry{Name: s.name, Kind: KindStream})
	return err
}

// reserve claims a name, so that two writers cannot race for it.
func (r *Run) reserve(name string) error {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	switch _, used := r.entries[name]; {
	case r.closed:
		return fmt.Errorf("store %s: run %s is closed", name, r.identity.ID)
	case !namePattern.MatchString(name) || len(name) > 240:
		return fmt.Errorf("store %q: a name is at most 240 characters in segments of letters, digits, dots, dashes and underscores", name)
	case used || r.streams[name]:
		return fmt.Errorf("store %s: the name is used already, evidence is never replaced", name)
	}
	r.streams[name] = true
	return nil
}

func (r *Run) release(name string) {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	delete(r.streams, name)
}

// adopt moves a written file under its digest and journals the name.
func (r *Run) adopt(file *os.File, entry Entry) (Entry, error) {
	defer r.release(entry.Name)
	if err := r.sync(file); err != nil {
		return Entry{}, fmt.Errorf("store %s: %w", entry.Name, err)
	}
	digest, size, err := digestFile(file.Name())
	if err != nil {
		return Entry{}, fmt.Errorf("store %s: %w", entry.Name, err)
	}
	entry.Digest, entry.Size = digest, size
	entry.Path = objectsDir + "/" + strings.TrimPrefix(digest, "sha256:")
	target := filepath.Join(r.dir, entry.Path)
	if err := os.Chmod(file.Name(), 0o444); err != nil {
		return Entry{}, fmt.Errorf("store %s: %w", entry.Name, err)
	}
	// Link fails where the object exists, and then the same bytes are there already.
	if err := os.Link(file.Name(), target); err != nil && !errors.Is(err, fs.ErrExist) {
		return Entry{}, fmt.Errorf("store %s: %w", entry.Name, err)
	}
	if err := syncDir(filepath.Dir(target)); err != nil {
		return Entry{}, fmt.Errorf("store %s: %w", entry.Name, err)
	}
	return entry, r.note(journalLine{Event: "stored", Entry: &entry})
}

// Entries returns what is stored so far, sorted by name.
func (r *Run) Entries() []Entry {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	return sortedEntries(r.entries)
}

// ReadFile returns what is stored under a name.
func (r *Run) ReadFile(name string) ([]byte, error) {
	r.mutex.Lock()
	entry, ok := r.entries[name]
	r.mutex.Unlock()
	if !ok {
		return nil, fmt.Errorf("run %s holds no %s: %w", r.identity.ID, name, fs.ErrNotExist)
	}
	return os.ReadFile(filepath.Join(r.dir, filepath.FromSlash(entry.Path)))
}

func sortedEntries(byName map[string]Entry) []Entry {
	entries := make([]Entry, 0, len(byName))
	for _, entry := range byName {
		entries = append(entries, entry)
	}
	sort.Slice(entries, func(i, j int) bool { return entries[i].Name < entries[j].Name })
	return entries
}

// Digest returns the sha256 digest of data in the form used everywhere: "sha256:" and 64 lower-case hex digits.
func Digest(data []byte) string {
	sum := sha256.Sum256(data)
	return "sha256:" + hex.EncodeToString(sum[:])
}

func digestFile(path string) (string, int64, error) {
	file, err := os.Open(path)
	if err != nil {
		return "", 0, err
	}
	defer func() { _ = file.Close() }()
	hash := sha256.New()
	size, err := io.Copy(hash, file)
	if err != nil {
		return "", 0, err
	}
	return "sha256:" + hex.EncodeToString(hash.Sum(nil)), size, nil
}

func encodeIndented(value any) []byte {
	data, err := json.MarshalIndent(value, "", "  ")
	if err != nil {
		panic(err) // only called with the plain structs of this package
	}
	return append(data, '\n')
}
