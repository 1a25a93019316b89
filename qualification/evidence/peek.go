package evidence

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"syscall"
	"time"
)

// Glimpse is what the journal of a run says at one moment, read beside the process that may be writing it. It is for
// telling a person where a run is: no stored byte is checked, and nothing is judged by it.
type Glimpse struct {
	Identity Identity
	Dir      string
	Closed   bool      // it is complete, and nothing is added any more
	Alive    bool      // a process is writing it
	Last     time.Time // of the last line of the journal; zero where there is none
	Attempts []GlimpsedAttempt
	Notes    []Note

	entries map[string]Entry
}

// GlimpsedAttempt is an attempt at a cell with the times between which it ran.
type GlimpsedAttempt struct {
	CellEntry
	Begun time.Time
	Ended time.Time // zero where it was not finished
}

// Peek reads the journal of a run that is being written, was interrupted or is closed. It changes nothing. A last line
// that is not whole is one that is being written, and left out.
func Peek(dir string) (*Glimpse, error) {
	g := &Glimpse{Dir: dir}
	identity, err := os.ReadFile(filepath.Join(dir, identityFile))
	if err != nil {
		return nil, fmt.Errorf("look at run %s: it is no run directory: %w", dir, err)
	}
	if err := decodeIdentity(identity, &g.Identity); err != nil {
		return nil, fmt.Errorf("look at run %s: %w", dir, err)
	}
	_, err = os.Stat(filepath.Join(dir, manifestFile))
	g.Closed = err == nil
	journal, err := os.Open(filepath.Join(dir, journalFile))
	if err != nil {
		return nil, fmt.Errorf("look at run %s: %w", dir, err)
	}
	defer func() { _ = journal.Close() }()
	// The lock is given back at once. A process that opens the run in this very moment is told that another one has it.
	g.Alive = errors.Is(syscall.Flock(int(journal.Fd()), syscall.LOCK_SH|syscall.LOCK_NB), syscall.EWOULDBLOCK)
	if !g.Alive {
		_ = syscall.Flock(int(journal.Fd()), syscall.LOCK_UN)
	}
	data, err := os.ReadFile(filepath.Join(dir, journalFile))
	if err != nil {
		return nil, fmt.Errorf("look at run %s: %w", dir, err)
	}
	lines, err := parseJournal(data[:bytes.LastIndexByte(data, '\n')+1])
	if err != nil {
		return nil, fmt.Errorf("look at run %s: %w", dir, err)
	}
	g.follow(lines)
	return g, nil
}

func (g *Glimpse) follow(lines []journalLine) {
	state := newRun(g.Dir, nil)
	begun, ended := map[string]time.Time{}, map[string]time.Time{}
	for _, line := range lines {
		state.apply(line)
		g.Last = line.At
		if line.Cell == nil {
			continue
		}
		if prefix := line.Cell.Prefix(); line.Cell.Finished {
			ended[prefix] = line.At
		} else {
			begun[prefix] = line.At
		}
	}
	g.Notes, g.entries = state.notes, state.entries
	for _, cell := range state.cells {
		g.Attempts = append(g.Attempts, GlimpsedAttempt{CellEntry: cell, Begun: begun[cell.Prefix()], Ended: ended[cell.Prefix()]})
	}
}

// Entries returns what was stored, sorted by name.
func (g *Glimpse) Entries() []Entry { return sortedEntries(g.entries) }

// ReadFile returns what is stored under a name.
func (g *Glimpse) ReadFile(name string) ([]byte, error) {
	entry, ok := g.entries[name]
	if !ok {
		return nil, fmt.Errorf("run %s holds no %s: %w", g.Identity.ID, name, fs.ErrNotExist)
	}
	return os.ReadFile(filepath.Join(g.Dir, filepath.FromSlash(entry.Path)))
}

// Finished returns the latest finished attempt at a cell.
func (g *Glimpse) Finished(key string) (GlimpsedAttempt, bool) {
	for _, attempt := range slices.Backward(g.Attempts) {
		if attempt.Key == key && attempt.Finished {
			return attempt, true
		}
	}
	return GlimpsedAttempt{}, false
}
