package evidence

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"time"

	"ptah.run/ptah/qualification/evidence/stream"
)

// journalLine is one line of journal.jsonl. The journal is the truth about an unfinished run: a name is stored once
// its line is on disk.
type journalLine struct {
	Seq     int             `json:"seq"`
	At      time.Time       `json:"at"`
	Event   string          `json:"event"`
	Entry   *Entry          `json:"entry,omitempty"`
	Cell    *CellEntry      `json:"cell,omitempty"`
	Message string          `json:"message,omitempty"`
	Data    json.RawMessage `json:"data,omitempty"`
}

// Note is what somebody journalled beside evidence.
type Note struct {
	At      time.Time
	Message string
	Data    json.RawMessage // nil where there is none
}

// Notes returns what was journalled with Note, in order, by this process and by those before it.
func (r *Run) Notes() []Note {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	return slices.Clone(r.notes)
}

// Note journals something a person or a resumed run may want to know. Data may be nil. It is on disk on return.
func (r *Run) Note(message string, data any) error {
	line := journalLine{Event: "note", Message: message}
	if data != nil {
		raw, err := stream.Encode(data)
		if err != nil {
			return fmt.Errorf("journal %q: %w", message, err)
		}
		line.Data = raw
	}
	return r.note(line)
}

// note appends a line, waits until it is on disk, and applies it to the state in memory.
func (r *Run) note(line journalLine) error {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	if r.closed {
		return fmt.Errorf("run %s is closed", r.identity.ID)
	}
	return r.noteLocked(line)
}

func (r *Run) noteLocked(line journalLine) error {
	line.Seq, line.At = r.lines, r.now().UTC()
	data, err := stream.Encode(line)
	if err != nil {
		return fmt.Errorf("journal of run %s: %w", r.identity.ID, err)
	}
	written, err := r.journal.Write(append(data, '\n'))
	if err == nil {
		err = r.sync(r.journal)
	}
	if err != nil {
		// What was written of the line would damage the next one.
		return fmt.Errorf("journal of run %s: %w", r.identity.ID, errors.Join(err, r.journal.Truncate(r.size)))
	}
	r.size += int64(written)
	r.lines++
	r.apply(line)
	return nil
}

func (r *Run) apply(line journalLine) {
	if line.Entry != nil {
		r.entries[line.Entry.Name] = *line.Entry
	}
	if line.Event == "note" {
		r.notes = append(r.notes, Note{At: line.At, Message: line.Message, Data: line.Data})
	}
	if line.Cell == nil {
		return
	}
	for i := range r.cells {
		if r.cells[i].Key == line.Cell.Key && r.cells[i].Attempt == line.Cell.Attempt {
			r.cells[i] = *line.Cell
			return
		}
	}
	r.cells = append(r.cells, *line.Cell)
}

// replay reads the journal of a run that is opened again. A last line that a crash cut in the middle was never
// acknowledged to anybody: it is removed. Any other damage is refused.
func (r *Run) replay() error {
	if _, err := r.journal.Seek(0, io.SeekStart); err != nil {
		return fmt.Errorf("read the journal: %w", err)
	}
	data, err := io.ReadAll(r.journal)
	if err != nil {
		return fmt.Errorf("read the journal: %w", err)
	}
	whole := bytes.LastIndexByte(data, '\n') + 1
	lines, err := parseJournal(data[:whole])
	if err != nil {
		return err
	}
	for _, line := range lines {
		if line.Entry != nil {
			if err := checkObject(r.dir, *line.Entry); err != nil {
				return err
			}
		}
		r.apply(line)
	}
	r.lines, r.size = len(lines), int64(whole)
	if whole < len(data) {
		if err := os.Truncate(r.journal.Name(), int64(whole)); err != nil {
			return fmt.Errorf("remove the line of the journal that the crash cut: %w", err)
		}
	}
	return nil
}

func parseJournal(data []byte) ([]journalLine, error) {
	var lines []journalLine
	if len(data) == 0 {
		return nil, nil // its process died before the first line was on disk
	}
	for i, raw := range bytes.Split(bytes.TrimSuffix(data, []byte("\n")), []byte("\n")) {
		var line journalLine
		if err := json.Unmarshal(raw, &line); err != nil {
			return nil, fmt.Errorf("line %d of the journal is damaged: %w", i+1, err)
		}
		if line.Seq != i {
			return nil, fmt.Errorf("line %d of the journal has number %d: lines were removed or reordered", i+1, line.Seq)
		}
		lines = append(lines, line)
	}
	return lines, nil
}
