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

// Names of a run.
const (
	profileName  = "inputs/profile.yaml"
	suitesName   = "inputs/suites.yaml"
	harnessName  = "inputs/harness.json"
	matrixPrefix = "inputs/matrices/"
)

// Names of a cell, relative to it.
const (
	inputsName  = "inputs.json"
	releaseName = "release.json"
	labName     = "lab.json"
	policyName  = "audit/policy.yaml"
	auditPrefix = "audit/logs/"
)

// Declarations is what a run is judged against, stored before anything runs.
type Declarations struct {
	Profile  []byte            // bytes of the profile, as declared
	Matrices map[string][]byte // bytes of each matrix that the profile covers, by its name
	Suites   []byte            // bytes of the catalogue of suites
	Harness  Harness
}

// Begin stores the declarations of a run.
func Begin(run *evidence.Run, declared Declarations) error {
	if _, err := run.PutFile(profileName, bytes.NewReader(declared.Profile)); err != nil {
		return err
	}
	for name, data := range declared.Matrices {
		if _, err := run.PutFile(matrixPrefix+name+".yaml", bytes.NewReader(data)); err != nil {
			return err
		}
	}
	if _, err := run.PutFile(suitesName, bytes.NewReader(declared.Suites)); err != nil {
		return err
	}
	return putJSON(func(name string, r io.Reader) (evidence.Entry, error) { return run.PutFile(name, r) }, harnessName, declared.Harness)
}

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
