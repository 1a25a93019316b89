// Package dossier gives the evidence store its meaning for qualification: which names hold the profile, the matrices,
// the facts about lab and release, the ledgers and the audit logs. A driver writes a dossier while it runs; a judge
// loads it from a closed run.
//
//	run, err := evidence.CreateRun(root, id)
//	err = dossier.Begin(run, dossier.Declarations{...})
//	cell, err := dossier.BeginCell(run, inputs, release, labJSON)
//	err = cell.ImportSuite("data-plane", stagingDir)          // evidence.Cell
//	err = dossier.AddAuditLog(cell, "control-plane", 0, file)
//	err = cell.Finish()
//	root, err := run.Close()
//
//	d, err := dossier.Load(run.Dir())
//	judgement := d.Judge()
package dossier

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"

	"ptah.run/ptah/qualification/audit"
	"ptah.run/ptah/qualification/evidence"
	"ptah.run/ptah/qualification/matrix"
)

// Names of a cell, relative to it.
const (
	inputsName  = "inputs.json"
	releaseName = "release.json"
	labName     = "lab.json"
	policyName  = "audit/policy.yaml"
	auditPrefix = "audit/logs/"
)

// BeginCell starts an attempt at a cell and stores what went into it. The lab description is stored as it is given:
// it must name files with credentials, never hold any.
func BeginCell(run *evidence.Run, inputs matrix.Inputs, release Release, labDescription []byte) (*evidence.Cell, error) {
	if err := contradiction(inputs, release); err != nil {
		return nil, err
	}
	cell, err := run.BeginCell(inputs.Cell.Key, inputs.Digest())
	if err != nil {
		return nil, err
	}
	if err := putJSON(cell.PutFile, inputsName, inputs); err != nil {
		return nil, err
	}
	if err := putJSON(cell.PutFile, releaseName, release); err != nil {
		return nil, err
	}
	if _, err := cell.PutFile(labName, bytes.NewReader(labDescription)); err != nil {
		return nil, err
	}
	_, err = cell.PutFile(policyName, bytes.NewReader([]byte(audit.Policy)))
	return cell, err
}

// InputsOf returns what went into an attempt at a cell, as it was stored when the attempt began.
func InputsOf(run *evidence.Run, attempt evidence.CellEntry) (matrix.Inputs, error) {
	var inputs matrix.Inputs
	data, err := run.ReadFile(attempt.Prefix() + inputsName)
	if err != nil {
		return inputs, err
	}
	return inputs, decodeJSON(inputsName, data, &inputs)
}

// AddAuditLog stores one file of the audit log of an API server. A server whose log was rotated has several parts,
// the oldest first. The name of the server is letters, digits, dots and dashes, such as its node.
func AddAuditLog(cell *evidence.Cell, server string, part int, log io.Reader) error {
	_, err := cell.PutFile(fmt.Sprintf("%s%s/%d.log", auditPrefix, server, part), log)
	return err
}

func putJSON(put func(string, io.Reader) (evidence.Entry, error), name string, value any) error {
	data, err := json.MarshalIndent(value, "", "  ")
	if err != nil {
		return fmt.Errorf("store %s: %w", name, err)
	}
	_, err = put(name, bytes.NewReader(append(data, '\n')))
	return err
}
