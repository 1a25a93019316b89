// Package journal is the record of what a lab made and was about to make. An intention is on disk before the object
// can exist, so that a lab can be taken away from the journal alone, whatever moment it stopped at. A line that a
// crash cut off is ignored: what it was to say had not begun.
package journal

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"slices"
	"time"
)

// Event says what happened to an object or to the whole lab.
type Event string

// Events.
const (
	Intended Event = "intended" // the object may exist from here on
	Made     Event = "made"
	Ready    Event = "ready"  // the whole lab
	Failed   Event = "failed" // the whole lab
	Removed  Event = "removed"
)

// Kind of an object.
type Kind string

// Kinds.
const (
	Container Kind = "container"
	Network   Kind = "network"
	Cluster   Kind = "cluster" // kind's containers of one cluster
	Secret    Kind = "secret"  // a file or folder with credentials, relative to the lab's folder
	Lab       Kind = "lab"
)

// Entry is one line.
type Entry struct {
	At    time.Time `json:"at"`
	Event Event     `json:"event"`
	Kind  Kind      `json:"kind"`
	Name  string    `json:"name"`
	Note  string    `json:"note,omitempty"`
}

// Journal appends entries to a file.
type Journal struct {
	file *os.File
	now  func() time.Time
}

// Open opens a journal for appending and makes it where it is absent. A line that a crash cut off is ended first.
func Open(path string, now func() time.Time) (*Journal, error) {
	content, err := os.ReadFile(path)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, fmt.Errorf("read the lab's journal: %w", err)
	}
	file, err := os.OpenFile(path, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return nil, fmt.Errorf("open the lab's journal: %w", err)
	}
	if len(content) > 0 && content[len(content)-1] != '\n' {
		if _, err := file.WriteString("\n"); err != nil {
			return nil, errors.Join(fmt.Errorf("end a torn line of the lab's journal: %w", err), file.Close())
		}
	}
	return &Journal{file: file, now: now}, nil
}

// Append writes an entry and returns when it is on disk.
func (j *Journal) Append(event Event, kind Kind, name, note string) error {
	line, err := json.Marshal(Entry{At: j.now().UTC(), Event: event, Kind: kind, Name: name, Note: note})
	if err != nil {
		return fmt.Errorf("write the lab's journal: %w", err)
	}
	if _, err := j.file.Write(append(line, '\n')); err != nil {
		return fmt.Errorf("write the lab's journal: %w", err)
	}
	if err := j.file.Sync(); err != nil {
		return fmt.Errorf("write the lab's journal: %w", err)
	}
	return nil
}

// Close closes the file.
func (j *Journal) Close() error { return j.file.Close() }

// Read returns the entries of a journal and how many lines could not be read. An absent journal has none.
func Read(path string) ([]Entry, int, error) {
	file, err := os.Open(path)
	if errors.Is(err, os.ErrNotExist) {
		return nil, 0, nil
	}
	if err != nil {
		return nil, 0, fmt.Errorf("read the lab's journal: %w", err)
	}
	defer func() { _ = file.Close() }()
	var entries []Entry
	torn := 0
	scanner := bufio.NewScanner(file)
	scanner.Buffer(nil, 1<<20)
	for scanner.Scan() {
		var entry Entry
		if len(scanner.Bytes()) == 0 {
			continue
		}
		if err := json.Unmarshal(scanner.Bytes(), &entry); err != nil || entry.Event == "" {
			torn++
			continue
		}
		entries = append(entries, entry)
	}
	if err := scanner.Err(); err != nil {
		return nil, 0, fmt.Errorf("read the lab's journal: %w", err)
	}
	return entries, torn, nil
}

// Objects returns the names of a kind that may still exist, in the order in which they were intended.
func Objects(entries []Entry, kind Kind) []string {
	var names []string
	state := map[string]bool{}
	for _, entry := range entries {
		if entry.Kind != kind {
			continue
		}
		if _, seen := state[entry.Name]; !seen {
			names = append(names, entry.Name)
		}
		state[entry.Name] = entry.Event != Removed
	}
	var left []string
	for _, name := range names {
		if state[name] {
			left = append(left, name)
		}
	}
	return left
}

// Asked returns the intentions that nothing followed: whether their objects exist is not known.
func Asked(entries []Entry) []Entry {
	type object struct {
		kind Kind
		name string
	}
	settled := map[object]bool{}
	var asked []Entry
	for i := len(entries) - 1; i >= 0; i-- {
		one := object{entries[i].Kind, entries[i].Name}
		if entries[i].Event == Intended && !settled[one] {
			asked = append(asked, entries[i])
		}
		settled[one] = true
	}
	slices.Reverse(asked)
	return asked
}

// Finished says whether the lab became ready and has not failed since.
func Finished(entries []Entry) bool {
	finished := false
	for _, entry := range entries {
		if entry.Kind == Lab {
			finished = entry.Event == Ready
		}
	}
	return finished
}

// Exported says whether the lab failed under the eyes of the process that made it, which keeps the logs then.
func Exported(entries []Entry) bool {
	return len(entries) > 0 && entries[len(entries)-1].Kind == Lab && entries[len(entries)-1].Event == Failed
}
