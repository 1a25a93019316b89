package record

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"ptah.run/ptah/qualification/evidence/dossier"
	"ptah.run/ptah/qualification/judge"
	"ptah.run/ptah/qualification/matrix"
)

// CellSuffix ends the usual name of a file that holds the signed statement of one cell.
const CellSuffix = ".cell.json"

// CellFile is the signed statement of one cell, as a file of its own: a DSSE envelope. Cells that ran on different
// machines are gathered as such files.
type CellFile struct {
	Name string // usual name of the file
	Cell matrix.Cell
	Data []byte
}

// CellFiles returns the files of the cells that left evidence, of a signed record. Keys limits them to these cells; a
// key that the record has no evidence for is refused.
func (r *Record) CellFiles(keys ...string) ([]CellFile, error) {
	o, err := open(r)
	if err != nil {
		return nil, err
	}
	var files []CellFile
	found := map[string]bool{}
	for i, cell := range o.cells {
		judged := cell.Predicate.Judgement
		if judged.Root == "" || (len(keys) > 0 && !slices.Contains(keys, judged.Cell.Key)) {
			continue
		}
		if len(r.Cells[i].Signatures) == 0 {
			return nil, fmt.Errorf("cell %s is not signed, sign the record first", judged.Cell.Key)
		}
		data, err := encodeEnvelope(&r.Cells[i])
		if err != nil {
			return nil, err
		}
		found[judged.Cell.Key] = true
		files = append(files, CellFile{Name: judged.Cell.Matrix + "." + judged.Cell.Key + CellSuffix, Cell: judged.Cell, Data: data})
	}
	for _, key := range keys {
		if !found[key] {
			return nil, fmt.Errorf("the record has no finished cell %s, so that there is nothing to give away", key)
		}
	}
	if len(files) == 0 {
		return nil, errors.New("the record has no finished cell, so that there is nothing to give away")
	}
	return files, nil
}

// VerifiedCell is the statement of one cell whose signatures were checked and that does not contradict itself.
type VerifiedCell struct {
	TestResult
	Subject []Resource
	Keys    []string // ids of the keys that signed it
	Digest  string   // of the statement
}

// VerifyCell checks the bytes of a cell file against the given keys. Every error is a *Refusal.
func VerifyCell(ctx context.Context, data []byte, keys []*Verifier) (*VerifiedCell, error) {
	const what = "the statement of the cell"
	envelope, err := decodeEnvelope(data)
	if err != nil {
		return nil, refused(RefusedAltered, "%v", err)
	}
	ids, err := verifyEnvelope(ctx, envelope, what, keys)
	if err != nil {
		return nil, err
	}
	content, err := payload(envelope, what)
	if err != nil {
		return nil, err
	}
	cell, err := openCell(content, what)
	if err != nil {
		return nil, err
	}
	if err := consistentCell(cell.Predicate); err != nil {
		return nil, err
	}
	return &VerifiedCell{TestResult: cell.Predicate, Subject: cell.Subject, Keys: ids, Digest: digest(content)}, nil
}

// ClaimedCell returns the cell that a file claims to be about, unchecked, so that a refusal of the file can name it.
// It returns an empty cell where the file does not even say that.
func ClaimedCell(data []byte) matrix.Cell {
	envelope, err := decodeEnvelope(data)
	if err != nil {
		return matrix.Cell{}
	}
	content, err := envelope.DecodeB64Payload()
	if err != nil {
		return matrix.Cell{}
	}
	cell, err := openCell(content, "it")
	if err != nil {
		return matrix.Cell{}
	}
	return cell.Predicate.Judgement.Cell
}

// Kind says what a file claims to be, unchecked.
type Kind string

// Kinds of files.
const (
	KindRecord Kind = "record"
	KindCell   Kind = "cell"
	KindReview Kind = "review"
	KindOther  Kind = ""
)

// KindOf says what the bytes of a file claim to be. It checks nothing: what the file holds may be altered or unsigned.
func KindOf(data []byte) Kind {
	var head struct {
		MediaType   string `json:"mediaType"`
		PayloadType string `json:"payloadType"`
		Payload     []byte `json:"payload"`
	}
	if len(data) > MaxSize || json.Unmarshal(data, &head) != nil {
		return KindOther
	}
	if head.MediaType == MediaType {
		return KindRecord
	}
	var claimed struct {
		PredicateType string `json:"predicateType"`
	}
	if head.PayloadType != PayloadType || json.Unmarshal(head.Payload, &claimed) != nil {
		return KindOther
	}
	switch claimed.PredicateType {
	case TestResultType:
		return KindCell
	case ReviewType:
		return KindReview
	default:
		return KindOther
	}
}

// UnsignedCells returns the statements of the cells that a run left evidence of, from its judgement and signed by nobody.
func UnsignedCells(d *dossier.Dossier, judgement judge.Judgement) ([]*VerifiedCell, error) {
	if len(d.Cells) == 0 {
		return nil, nil
	}
	subject, err := release(d, Options{})
	if err != nil {
		return nil, err
	}
	statements, err := cellStatements(d, judgement, subject, Options{})
	if err != nil {
		return nil, err
	}
	var cells []*VerifiedCell
	for _, statement := range statements {
		if statement.Predicate.Judgement.Root != "" {
			cells = append(cells, &VerifiedCell{TestResult: statement.Predicate, Subject: statement.Subject})
		}
	}
	return cells, nil
}

// Statements returns the cells of a verified record, each as if it had come in a file of its own.
func (v *Verified) Statements() []*VerifiedCell {
	cells := make([]*VerifiedCell, len(v.Cells))
	for i, cell := range v.Cells {
		cells[i] = &VerifiedCell{TestResult: cell, Subject: v.Subject, Keys: v.Keys, Digest: "sha256:" + v.Summary.InputAttestations[i].Digest["sha256"]}
	}
	return cells
}

// CheckEvidence refuses the cell if it comes out differently when the run that it was part of is judged again. The
// judgement is that of the run, made now. The error is a *Refusal.
func (c *VerifiedCell) CheckEvidence(d *dossier.Dossier, judgement judge.Judgement) error {
	key := c.Judgement.Cell.Key
	if run := c.Facts().Run; run != d.Root {
		return refused(RefusedEvidence, "the given run is %s with root %s, cell %s is of the run with root %s", d.RunID, d.Root, key, run)
	}
	options := claimed(c.Subject, c.Ancestry)
	subject, err := release(d, options)
	if err != nil {
		return refused(RefusedJudgement, "the run of cell %s can not be judged again: %v", key, err)
	}
	again, err := cellStatements(d, judgement, subject, options)
	if err != nil {
		return refused(RefusedJudgement, "the run of cell %s can not be judged again: %v", key, err)
	}
	for _, cell := range again {
		if !sameCell(cell.Predicate.Judgement.Cell, c.Judgement.Cell) {
			continue
		}
		if !sameJSON(cell.Predicate, c.TestResult) || !sameJSON(cell.Subject, c.Subject) {
			return refused(RefusedJudgement, "cell %s comes out differently when it is judged again: %s, its statement says %s", key, cell.Predicate.Judgement.Verdict, c.Judgement.Verdict)
		}
		return nil
	}
	return refused(RefusedEvidence, "run %s declares no cell %s", d.RunID, key)
}
