package sample

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"ptah.run/ptah/qualification/evidence/stream"
)

// File is what is known about one stored stream. Problem says why it is not whole; then the lines that could be read
// prove nothing by their absence.
type File struct {
	Digest  string
	Problem string
	Lines   int
}

// Set is every stream of readings that a cell kept. A source without an entry in Files was never looked at.
type Set struct {
	Files      map[Source]File
	Alerts     []Delivery
	Artifacts  []Artifact
	Containers []Running
	History    []Change
	Inventory  []Stored
	Pods       []PodCount
	Processes  []Scrape
	Scans      []Scan
	Statements []Journal
}

// Add reads the stream of a source into the set. A stream that was cut or altered is kept with its problem; the error
// is that of the reader alone.
func (s *Set) Add(source Source, digest string, r io.Reader) error {
	file := File{Digest: digest}
	_, err := stream.Read(r, func(line []byte) error {
		if err := s.line(source, line); err != nil {
			return fmt.Errorf("%w: %w", stream.ErrMalformed, err)
		}
		file.Lines++
		return nil
	})
	if err != nil {
		if !isDefect(err) {
			return fmt.Errorf("read %s: %w", source.Name(), err)
		}
		file.Problem = err.Error()
	}
	if s.Files == nil {
		s.Files = map[Source]File{}
	}
	s.Files[source] = file
	return nil
}

// isDefect tells what is wrong with a stream from what is wrong with its reader.
func isDefect(err error) bool {
	return errors.Is(err, stream.ErrIncomplete) || errors.Is(err, stream.ErrAltered) || errors.Is(err, stream.ErrMalformed)
}

func (s *Set) line(source Source, line []byte) error {
	switch source {
	case Alerts:
		return decode(line, &s.Alerts, Delivery.check)
	case Artifacts:
		return decode(line, &s.Artifacts, Artifact.check)
	case Containers:
		return decode(line, &s.Containers, Running.check)
	case History:
		return decode(line, &s.History, Change.check)
	case Inventory:
		return decode(line, &s.Inventory, Stored.check)
	case Pods:
		return decode(line, &s.Pods, PodCount.check)
	case Processes:
		return decode(line, &s.Processes, Scrape.check)
	case Scans:
		return decode(line, &s.Scans, Scan.check)
	case Statements:
		return decode(line, &s.Statements, Journal.check)
	default:
		return fmt.Errorf("there is no source %q", source)
	}
}

// decode takes one line strictly: a field that nobody knows may be one that somebody meant.
func decode[T any](line []byte, into *[]T, check func(T) error) error {
	var value T
	decoder := json.NewDecoder(bytes.NewReader(line))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&value); err != nil {
		return err
	}
	if err := check(value); err != nil {
		return err
	}
	*into = append(*into, value)
	return nil
}

func (r Reading) check(values bool) error {
	switch {
	case r.From.IsZero() || r.To.IsZero() || r.To.Before(r.From):
		return errors.New("a reading has a start and an end after it")
	case r.Failed != "" && values:
		return errors.New("a reading that failed has no values")
	case r.Failed == "" && !values:
		return errors.New("a reading without values says why it failed")
	}
	return nil
}

func (r Resource) check() error {
	if (r.Family != Schema && r.Family != Migration) || r.Name == "" || r.UID == "" {
		return errors.New("a resource has a family, a name and a UID")
	}
	if r.Active != nil && (r.Active.ID == "" || r.Active.Started.IsZero()) {
		return fmt.Errorf("the operation of %s has an id and a start", r.Slot())
	}
	return nil
}

func (c Change) check() error {
	if c.At.IsZero() {
		return errors.New("a change has a time")
	}
	switch c.Type {
	case Initial, Added, Modified, Deleted:
		if c.Resource == nil {
			return fmt.Errorf("a change of the type %s has a resource", c.Type)
		}
		return c.Resource.check()
	case Mark, Gap:
		return nil
	default:
		return fmt.Errorf("there is no change of the type %q", c.Type)
	}
}

func (s Scrape) check() error {
	if (s.Process.Role != Manager && s.Process.Role != APIServer) || s.Process.Pod == "" {
		return errors.New("a scrape names the role and the Pod of its process")
	}
	if s.Failed == "" && (s.Process.UID == "" || s.Process.Started.IsZero()) {
		return fmt.Errorf("a scrape of %s says which life of the process it read", s.Process.Pod)
	}
	return s.Reading.check(s.Values != nil)
}

func (p PodCount) check() error {
	if (p.Running == nil) != (p.Pending == nil) {
		return errors.New("a count of Pods has both running and pending")
	}
	return p.Reading.check(p.Running != nil)
}

func (s Stored) check() error {
	known := s.Plans != nil
	if known != (s.PayloadBytes != nil) || known != (s.Pins != nil) || known != (s.BrokenPins != nil) {
		return errors.New("an inventory has the number of plans, their bytes, the pins and the broken ones")
	}
	return s.Reading.check(known)
}

func (j Journal) check() error {
	if j.Database == "" {
		return errors.New("a journal names its database")
	}
	return j.Reading.check(j.Statements != nil)
}

func (r Running) check() error {
	for _, container := range r.Containers {
		if container.Pod == "" || container.Name == "" {
			return errors.New("a container has a Pod and a name")
		}
	}
	return r.Reading.check(r.Containers != nil)
}

func (a Artifact) check() error {
	if a.Name == "" {
		return errors.New("an artifact has a name")
	}
	return a.Reading.check(a.Matches != nil)
}

func (s Scan) check() error {
	if s.File == "" {
		return errors.New("a scan names its file")
	}
	return s.Reading.check(s.Findings != nil)
}

func (d Delivery) check() error {
	switch {
	case d.At.IsZero():
		return errors.New("a delivery has a time")
	case d.Alert == "" && d.Status == "":
		return nil
	case d.Alert == "" || (d.Status != Firing && d.Status != Resolved) || d.Started.IsZero():
		return errors.New("a delivery has an alert, a status and the start of the incident")
	}
	return nil
}
