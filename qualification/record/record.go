// Package record makes, signs and verifies qualification records. A record is one in-toto test-result statement per
// cell and one statement over them, each in its own DSSE envelope, in one file. It binds the profile, the release by
// digests, the clusters, the harness, the evidence root and the rendered reports.
//
// A record is verified with a key file and no network. With the evidence at hand it is judged again from the raw
// evidence, and must come out the same. The package opens no file, runs no git and reads no clock: what it is to
// check comes from its callers.
package record

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/secure-systems-lab/go-securesystemslib/dsse"

	"ptah.run/ptah/qualification/carryover"
	"ptah.run/ptah/qualification/evidence/dossier"
	"ptah.run/ptah/qualification/judge"
	"ptah.run/ptah/qualification/profile/document"
	"ptah.run/ptah/qualification/report"
)

// MediaType heads a record file.
const MediaType = "application/vnd.ptah.run.qualification.record.v1+json"

// FileName is the usual name of a record file.
const FileName = "qualification-record.json"

// Record is a record file. An unsigned record has envelopes without signatures and verifies nowhere.
type Record struct {
	MediaType string          `json:"mediaType"`
	Cells     []dsse.Envelope `json:"cells"`
	Summary   dsse.Envelope   `json:"summary"`
}

// Options of Create.
type Options struct {
	Time     time.Time           // when the judgement was made
	Version  string              // of the program that made it
	Manifest []byte              // the release manifest, nil where there is none
	Ancestry *carryover.Ancestry // of the harness, nil where nobody asked git

	manifest string // digest of the manifest
	reports  []Resource
}

// Create builds the unsigned record of a run: it judges the evidence, renders the reports to bind their digests, and
// states both. A manifest that does not name what was tested is refused.
func Create(d *dossier.Dossier, options Options) (*Record, error) {
	judgement := d.Judge()
	files, err := report.Files(report.Build(d, judgement))
	if err != nil {
		return nil, fmt.Errorf("create the record: %w", err)
	}
	options.reports = []Resource{}
	for _, file := range files {
		options.reports = append(options.reports, Resource{Name: file.Name, Digest: sha256Of(digest(file.Data))})
	}
	if options.Manifest != nil {
		options.manifest = digest(options.Manifest)
	}
	record, err := build(d, judgement, options)
	if err != nil {
		return nil, fmt.Errorf("create the record: %w", err)
	}
	return record, nil
}

func build(d *dossier.Dossier, judgement judge.Judgement, options Options) (*Record, error) {
	subject, err := release(d, options)
	if err != nil {
		return nil, err
	}
	cells, err := cellStatements(d, judgement, subject, options)
	if err != nil {
		return nil, err
	}
	record := &Record{MediaType: MediaType, Cells: []dsse.Envelope{}}
	var payloads [][]byte
	for _, cell := range cells {
		payload, err := document.Canonical(cell)
		if err != nil {
			return nil, err
		}
		payloads = append(payloads, payload)
		record.Cells = append(record.Cells, unsigned(payload))
	}
	payload, err := document.Canonical(summaryStatement(d, judgement, cells, payloads, options))
	if err != nil {
		return nil, err
	}
	record.Summary = unsigned(payload)
	return record, nil
}

// Sign signs every envelope of an unsigned record. A record that has signatures is refused: it would replace them.
func (r *Record) Sign(ctx context.Context, signer *Signer) error {
	if r.Signed() {
		return errors.New("sign the record: it is signed already, create it anew to sign it with another key")
	}
	for _, envelope := range r.envelopes() {
		if err := signEnvelope(ctx, envelope, signer); err != nil {
			return fmt.Errorf("sign the record: %w", err)
		}
	}
	return nil
}

// Signed says whether any envelope has a signature.
func (r *Record) Signed() bool {
	for _, envelope := range r.envelopes() {
		if len(envelope.Signatures) > 0 {
			return true
		}
	}
	return false
}

func (r *Record) envelopes() []*dsse.Envelope {
	var list []*dsse.Envelope
	for i := range r.Cells {
		list = append(list, &r.Cells[i])
	}
	return append(list, &r.Summary)
}

// Encode returns the bytes of the record file. There is one form: Decode refuses any other.
func (r *Record) Encode() ([]byte, error) {
	data, err := json.MarshalIndent(r, "", "  ")
	if err != nil {
		return nil, fmt.Errorf("encode the record: %w", err)
	}
	return append(data, '\n'), nil
}

// MaxSize is the largest record file in bytes that is decoded.
const MaxSize = 64 << 20

// Decode reads a record file. Bytes that differ from what Encode gives are refused, so that nothing in the file is
// outside of what is checked.
func Decode(data []byte) (*Record, error) {
	var r Record
	if err := decodeFile("record", data, &r); err != nil {
		return nil, err
	}
	if r.MediaType != MediaType {
		return nil, fmt.Errorf("the file has the media type %.80q, a record has %q", r.MediaType, MediaType)
	}
	exact, err := r.Encode()
	if err != nil {
		return nil, err
	}
	if !bytes.Equal(exact, data) {
		return nil, errNotExact
	}
	for _, envelope := range r.envelopes() {
		if err := exactBase64(envelope); err != nil {
			return nil, err
		}
	}
	return &r, nil
}
