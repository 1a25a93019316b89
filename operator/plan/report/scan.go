package report

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
)

// errNotCanonical says what to do, because a person gets here by editing a file.
var errNotCanonical = errors.New("the document is not in canonical form; use the file that \"ptah schema plan\" wrote, unchanged")

// emptyTail is how a document without statements ends.
const emptyTail = "]}\n"

// ScanPlan reads a plan document as strictly as DecodePlan does, and holds one statement at a time: visit gets each in
// order, and what it points to is overwritten by the next. document and same must read the same bytes; the second is
// compared with what EncodePlan would write. It returns the plan without its statements. Nothing that visit saw counts
// before ScanPlan returned without an error.
func ScanPlan(document, same io.Reader, visit func(*Statement) error) (*Plan, error) {
	s := &scanner{decoder: json.NewDecoder(document), canonical: comparer{same: same}}
	s.decoder.DisallowUnknownFields()
	plan, err := s.scan(visit)
	if err != nil {
		return nil, fmt.Errorf("decode plan: %w", err)
	}
	return plan, nil
}

type scanner struct {
	decoder   *json.Decoder
	canonical comparer
	buffer    bytes.Buffer
}

func (s *scanner) scan(visit func(*Statement) error) (*Plan, error) {
	plan, err := s.header()
	if err != nil {
		return nil, err
	}
	if err := plan.validateHeader(); err != nil {
		return nil, err
	}
	empty, err := marshalPlan(*plan)
	if err != nil {
		return nil, err
	}
	if err := s.canonical.expect(bytes.TrimSuffix(empty, []byte(emptyTail))); err != nil {
		return nil, err
	}
	destructive, changes, err := s.statements(visit)
	if err != nil {
		return nil, err
	}
	if err := s.end(); err != nil {
		return nil, err
	}
	plan.Statements = nil
	return plan, plan.validateSummary(destructive, changes)
}

// header reads the fields before the statements. They stand in the order of Plan, or the document is not canonical.
func (s *scanner) header() (*Plan, error) {
	plan := &Plan{Statements: []Statement{}}
	if err := s.delim('{'); err != nil {
		return nil, err
	}
	name, err := s.token()
	for _, field := range []struct {
		name string
		into any
		free bool // may be left out
	}{
		{name: "formatVersion", into: &plan.FormatVersion}, {name: "dialect", into: &plan.Dialect}, {name: "serverMajor", into: &plan.ServerMajor},
		{name: "transactionMode", into: &plan.TransactionMode}, {name: "fromFingerprint", into: &plan.FromFingerprint},
		{name: "toFingerprint", into: &plan.ToFingerprint}, {name: "exclude", into: &plan.Exclude}, {name: "destructive", into: &plan.Destructive},
		{name: "privilegeChanges", into: &plan.PrivilegeChanges}, {name: "managedRows", into: &plan.ManagedRows, free: true},
		{name: "rowsFingerprint", into: &plan.RowsFingerprint, free: true}, {name: "statements"},
	} {
		if err != nil {
			return nil, err
		}
		if name != field.name && field.free {
			continue
		}
		if name != field.name {
			return nil, fmt.Errorf("the field %v stands where %q belongs: %w", name, field.name, errNotCanonical)
		}
		if field.into == nil {
			break
		}
		if err := s.decoder.Decode(field.into); err != nil {
			return nil, notADocument(err)
		}
		name, err = s.token()
	}
	return plan, s.delim('[')
}

func (s *scanner) statements(visit func(*Statement) error) (destructive bool, changes []PrivilegeChange, err error) {
	var statement Statement
	changes = []PrivilegeChange{}
	count := 0
	for ; s.decoder.More(); count++ {
		statement = Statement{}
		if err := s.decoder.Decode(&statement); err != nil {
			return false, nil, notADocument(err)
		}
		if err := statement.validate(); err != nil {
			return false, nil, fmt.Errorf("statements[%d]: %w", count, err)
		}
		if err := s.compare(count, &statement); err != nil {
			return false, nil, err
		}
		destructive = destructive || statement.Severity == SeverityDestructive
		for _, change := range statement.PrivilegeChanges {
			if !slices.Contains(changes, change) {
				changes = append(changes, change)
			}
		}
		if err := visit(&statement); err != nil {
			return false, nil, err
		}
	}
	if count == 0 {
		return false, nil, errNoStatement
	}
	slices.Sort(changes)
	return destructive, changes, nil
}

// compare holds a statement against the bytes that EncodePlan would write for it.
func (s *scanner) compare(index int, statement *Statement) error {
	s.buffer.Reset()
	if index > 0 {
		s.buffer.WriteByte(',')
	}
	encoder := json.NewEncoder(&s.buffer)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(statement); err != nil {
		return err
	}
	return s.canonical.expect(bytes.TrimSuffix(s.buffer.Bytes(), []byte("\n")))
}

// end reads what follows the statements: nothing but the two brackets and a newline.
func (s *scanner) end() error {
	for _, bracket := range []json.Delim{']', '}'} {
		if err := s.delim(bracket); err != nil {
			return err
		}
	}
	if _, err := s.decoder.Token(); !errors.Is(err, io.EOF) {
		return errors.New("more than one JSON document")
	}
	if err := s.canonical.expect([]byte(emptyTail)); err != nil {
		return err
	}
	return s.canonical.end()
}

func (s *scanner) token() (json.Token, error) {
	token, err := s.decoder.Token()
	if err != nil {
		return nil, notADocument(err)
	}
	return token, nil
}

func (s *scanner) delim(want json.Delim) error {
	token, err := s.token()
	if err == nil && token != want {
		err = fmt.Errorf("%v stands where %v belongs: %w", token, want, errNotCanonical)
	}
	return err
}

func notADocument(err error) error {
	if errors.Is(err, io.EOF) {
		err = io.ErrUnexpectedEOF
	}
	return fmt.Errorf("not a plan document: %w", err)
}

// comparer reads what must be the same bytes.
type comparer struct {
	same   io.Reader
	buffer []byte
}

func (c *comparer) expect(want []byte) error {
	if cap(c.buffer) < len(want) {
		c.buffer = make([]byte, len(want))
	}
	got := c.buffer[:len(want)]
	_, err := io.ReadFull(c.same, got)
	switch {
	case errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF):
		return errNotCanonical
	case err != nil:
		return err
	case !bytes.Equal(got, want):
		return errNotCanonical
	}
	return nil
}

func (c *comparer) end() error {
	n, err := io.ReadFull(c.same, make([]byte, 1))
	if n == 0 && errors.Is(err, io.EOF) {
		return nil
	}
	if n > 0 {
		return errNotCanonical
	}
	return err
}
