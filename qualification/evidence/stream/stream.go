// Package stream reads and writes JSONL streams that can prove they are whole. Each line is one JSON object; the
// last line is a completeness record with the number of lines before it and the end of a SHA-256 chain over them.
//
// A reader can therefore tell apart: a stream that holds nothing (closed with zero lines), a stream that was cut
// (no completeness record), and a stream whose lines were changed, removed, repeated or reordered (the chain
// differs). The chain proves order and completeness, not authorship: that is what the signed record is for.
package stream

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
)

// MaxLine is the longest line in bytes that is written or read.
const MaxLine = 4 << 20

// seed starts the chain, so that an empty stream has a digest of its own and versions cannot be confused.
const seed = "ptah.evidence.stream.v1"

// Defects of a stream. Errors returned by Read wrap one of them.
var (
	ErrIncomplete = errors.New("the stream has no completeness record: it was cut, or its writer did not end")
	ErrAltered    = errors.New("the lines of the stream are not the lines that were written")
	ErrMalformed  = errors.New("the stream holds something that is not a JSON object on one line")
)

// Completeness is what the last line of a closed stream says about the lines before it.
type Completeness struct {
	Lines int    `json:"lines"`
	Chain string `json:"chain"`
}

type closing struct {
	Complete *Completeness `json:"complete"`
}

// Writer appends lines to w and closes with a completeness record. It is not safe for concurrent use.
type Writer struct {
	w      io.Writer
	chain  [sha256.Size]byte
	lines  int
	closed bool
	err    error
}

// NewWriter returns a writer of an empty stream.
func NewWriter(w io.Writer) *Writer {
	return &Writer{w: w, chain: sha256.Sum256([]byte(seed))}
}

// Append writes value as one line. A value must encode to a JSON object without a field named "complete".
// After an error every later call returns the same error, so that a stream with a hole is never closed as whole.
func (s *Writer) Append(value any) error {
	if s.err != nil {
		return s.err
	}
	if s.closed {
		return errors.New("the stream is closed already")
	}
	line, err := Encode(value)
	if err != nil {
		return err
	}
	if complete, err := completenessOf(line); err != nil || complete != nil {
		return fmt.Errorf("a line must be a JSON object without a field named complete, got %.60s", line)
	}
	if s.err = writeLine(s.w, line); s.err != nil {
		return s.err
	}
	s.chain = link(s.chain, line)
	s.lines++
	return nil
}

// Close writes the completeness record. It does not close the underlying writer.
func (s *Writer) Close() (Completeness, error) {
	if s.err != nil {
		return Completeness{}, s.err
	}
	if s.closed {
		return Completeness{}, errors.New("the stream is closed already")
	}
	complete := Completeness{Lines: s.lines, Chain: chainText(s.chain)}
	line, err := Encode(closing{Complete: &complete})
	if err != nil {
		return Completeness{}, err
	}
	if s.err = writeLine(s.w, line); s.err != nil {
		return Completeness{}, s.err
	}
	s.closed = true
	return complete, nil
}

// Read calls each for every line in order and checks the chain at the end. It returns an error that wraps
// ErrIncomplete, ErrAltered or ErrMalformed where the stream is not whole. Lines handed to each before such an
// error are what was there, and prove nothing.
func Read(r io.Reader, each func(line []byte) error) (Completeness, error) {
	scanner := bufio.NewScanner(r)
	scanner.Buffer(make([]byte, 0, 64<<10), MaxLine+1)
	scanner.Split(splitWholeLines)
	chain := sha256.Sum256([]byte(seed))
	lines := 0
	for scanner.Scan() {
		line := scanner.Bytes()
		complete, err := completenessOf(line)
		if err != nil {
			return Completeness{}, fmt.Errorf("line %d: %w", lines+1, err)
		}
		if complete != nil {
			return checkEnd(scanner, line, *complete, Completeness{Lines: lines, Chain: chainText(chain)})
		}
		chain = link(chain, line)
		lines++
		if err := each(line); err != nil {
			return Completeness{}, fmt.Errorf("line %d: %w", lines, err)
		}
	}
	if err := scanner.Err(); err != nil {
		if errors.Is(err, bufio.ErrTooLong) {
			return Completeness{}, fmt.Errorf("line %d is longer than %d bytes: %w", lines+1, MaxLine, ErrMalformed)
		}
		return Completeness{}, err
	}
	return Completeness{}, fmt.Errorf("after %d lines: %w", lines, ErrIncomplete)
}

// checkEnd compares what the completeness record says with what was read, and refuses anything after it. The
// record itself must be the exact bytes a Writer writes.
func checkEnd(rest *bufio.Scanner, line []byte, said, found Completeness) (Completeness, error) {
	if said != found {
		return Completeness{}, fmt.Errorf("the completeness record says %d lines ending in %s, found %d ending in %s: %w",
			said.Lines, said.Chain, found.Lines, found.Chain, ErrAltered)
	}
	exact, err := Encode(closing{Complete: &said})
	if err != nil {
		return Completeness{}, err
	}
	if !bytes.Equal(exact, line) {
		return Completeness{}, fmt.Errorf("the completeness record is not in canonical form: %w", ErrAltered)
	}
	if rest.Scan() {
		return Completeness{}, fmt.Errorf("there are bytes after the completeness record: %w", ErrAltered)
	}
	return said, rest.Err()
}

// splitWholeLines is bufio.ScanLines, but it keeps carriage returns and never yields a last line without its end:
// a line cut in the middle must not be taken for a line.
func splitWholeLines(data []byte, atEOF bool) (int, []byte, error) {
	if i := bytes.IndexByte(data, '\n'); i >= 0 {
		return i + 1, data[:i], nil
	}
	if atEOF && len(data) > 0 {
		return 0, nil, fmt.Errorf("the last line has no end: %w", ErrIncomplete)
	}
	return 0, nil, nil
}

func completenessOf(line []byte) (*Completeness, error) {
	if len(line) == 0 || line[0] != '{' {
		return nil, ErrMalformed
	}
	var probe closing
	if err := json.Unmarshal(line, &probe); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrMalformed, err)
	}
	return probe.Complete, nil
}

func writeLine(w io.Writer, line []byte) error {
	if len(line) > MaxLine {
		return fmt.Errorf("a line of %d bytes is longer than the limit of %d", len(line), MaxLine)
	}
	if _, err := w.Write(append(line, '\n')); err != nil {
		return fmt.Errorf("write a line of the stream: %w", err)
	}
	return nil
}

// Encode returns value as JSON on one line, without the escaping of characters that only matters inside HTML.
func Encode(value any) ([]byte, error) {
	var buffer bytes.Buffer
	encoder := json.NewEncoder(&buffer)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(value); err != nil {
		return nil, fmt.Errorf("encode a line of the stream: %w", err)
	}
	return bytes.TrimSuffix(buffer.Bytes(), []byte("\n")), nil
}

func link(previous [sha256.Size]byte, line []byte) [sha256.Size]byte {
	hash := sha256.New()
	hash.Write(previous[:])
	hash.Write(line)
	return [sha256.Size]byte(hash.Sum(nil))
}

func chainText(chain [sha256.Size]byte) string { return "sha256:" + hex.EncodeToString(chain[:]) }
