package evidence

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
)

// CellEntry is one attempt at one cell of a matrix. A cell that is done again gets a new attempt; the evidence of
// earlier ones stays.
type CellEntry struct {
	Key         string `json:"key"`
	Attempt     int    `json:"attempt"`
	InputDigest string `json:"inputDigest"`
	Finished    bool   `json:"finished"`
	Root        string `json:"root,omitempty"` // digest over the names and digests of the attempt, once finished
}

// Prefix is the prefix of the names that belong to the attempt.
func (c CellEntry) Prefix() string { return fmt.Sprintf("cells/%s/%d/", c.Key, c.Attempt) }

// Cell writes the evidence of one attempt at a cell.
type Cell struct {
	run   *Run
	entry CellEntry
}

// BeginCell starts a new attempt at the cell with this key. The input digest says what went into it, so that a
// resumed run can tell whether a finished cell still stands.
func (r *Run) BeginCell(key, inputDigest string) (*Cell, error) {
	if !namePattern.MatchString(key) || strings.Contains(key, "/") {
		return nil, fmt.Errorf("begin cell %q: a key is letters, digits, dots, dashes and underscores", key)
	}
	entry := CellEntry{Key: key, Attempt: 1, InputDigest: inputDigest}
	r.mutex.Lock()
	for _, earlier := range r.cells {
		if earlier.Key == key && earlier.Attempt >= entry.Attempt {
			entry.Attempt = earlier.Attempt + 1
		}
	}
	r.mutex.Unlock()
	if err := r.note(journalLine{Event: "cell-begun", Cell: &entry}); err != nil {
		return nil, err
	}
	return &Cell{run: r, entry: entry}, nil
}

// FinishedCell returns the latest finished attempt at a cell.
func (r *Run) FinishedCell(key string) (CellEntry, bool) {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	return latestFinished(r.cells, key)
}

func latestFinished(cells []CellEntry, key string) (CellEntry, bool) {
	var found CellEntry
	for _, cell := range cells {
		if cell.Key == key && cell.Finished && cell.Attempt > found.Attempt {
			found = cell
		}
	}
	return found, found.Attempt > 0
}

// Key is the key of the cell.
func (c *Cell) Key() string { return c.entry.Key }

// PutFile stores a file of the cell. A finished cell takes none.
func (c *Cell) PutFile(name string, content io.Reader) (Entry, error) {
	if err := c.open(name); err != nil {
		return Entry{}, err
	}
	return c.run.PutFile(c.entry.Prefix()+name, content)
}

// Stream starts a stream of the cell. A finished cell takes none.
func (c *Cell) Stream(name string) (*Stream, error) {
	if err := c.open(name); err != nil {
		return nil, err
	}
	return c.run.Stream(c.entry.Prefix() + name)
}

func (c *Cell) open(name string) error {
	if c.entry.Finished {
		return fmt.Errorf("store %s: cell %s is finished, and its evidence stays what it was then", name, c.entry.Key)
	}
	return nil
}

// Finish closes the attempt. A cell that was never finished is judged as not run. A cell with a stream that is still
// being written is not finished: its evidence would be without it.
func (c *Cell) Finish() error {
	if err := errors.Join(c.open("its end"), c.run.writing(c.entry.Prefix())); err != nil {
		return fmt.Errorf("finish cell %s: %w", c.entry.Key, err)
	}
	c.entry.Finished = true
	c.entry.Root = cellRoot(c.run.Entries(), c.entry)
	return c.run.note(journalLine{Event: "cell-finished", Cell: &c.entry})
}

// writing names what is still being written under a prefix.
func (r *Run) writing(prefix string) error {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	for name := range r.streams {
		if strings.HasPrefix(name, prefix) {
			return fmt.Errorf("%s is still being written", name)
		}
	}
	return nil
}

// Attempts returns every attempt at every cell up to now, in the order in which they began.
func (r *Run) Attempts() []CellEntry {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	return slices.Clone(r.cells)
}

// cellRoot digests the names and contents of an attempt, names relative to it: two runs that saw the same bytes
// have the same root.
func cellRoot(entries []Entry, cell CellEntry) string {
	var list strings.Builder
	fmt.Fprintf(&list, "ptah.evidence.cell.v1\n%s\n%s\n", cell.Key, cell.InputDigest)
	for _, entry := range entries {
		if name, ok := strings.CutPrefix(entry.Name, cell.Prefix()); ok {
			fmt.Fprintf(&list, "%s %s %s\n", entry.Kind, entry.Digest, name)
		}
	}
	return Digest([]byte(list.String()))
}
