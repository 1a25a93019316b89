package dossier

import (
	"bytes"
	"errors"

	"ptah.run/ptah/qualification/evidence"
	"ptah.run/ptah/qualification/evidence/driverload"
	"ptah.run/ptah/qualification/evidence/phase"
	"ptah.run/ptah/qualification/evidence/stream"
)

// The accounts of the harness itself: what it ran in which order, and what its own load was. The types are those of
// the packages that read them, so that the judge may use them without a file in its hands.
type (
	// DriverSample is one reading of the driver's own load.
	DriverSample = driverload.Sample
	// DriverSummary is what the readings of a cell come to.
	DriverSummary = driverload.Summary
	// DriverAccount is the driver's account of a cell.
	DriverAccount = driverload.Account
	// PhaseAccount is the harness's account of the phases of a cell.
	PhaseAccount = phase.Account
)

// DriverStream starts the stream of the driver's load of a cell.
func DriverStream(cell *evidence.Cell) (*evidence.Stream, error) {
	return cell.Stream(driverload.FileName)
}

// PhaseStream starts the stream of the phases of a cell.
func PhaseStream(cell *evidence.Cell) (*evidence.Stream, error) { return cell.Stream(phase.FileName) }

// loadDriver reads the driver's account of a cell, nil where it kept none.
func loadDriver(snapshot *evidence.Snapshot, cell evidence.CellEntry, files []evidence.Entry) (*DriverAccount, error) {
	data, digest, err := readAccount(snapshot, cell, files, driverload.FileName)
	if data == nil || err != nil {
		return nil, err
	}
	account := &DriverAccount{Whole: true, Digest: digest}
	account.Start, account.Samples, err = driverload.Read(bytes.NewReader(data))
	if err != nil {
		if !isDefect(err) {
			return nil, err
		}
		account.Whole, account.Problem = false, err.Error()
	}
	return account, nil
}

// loadPhases reads the account of the phases of a cell, nil where the harness kept none.
func loadPhases(snapshot *evidence.Snapshot, cell evidence.CellEntry, files []evidence.Entry) (*PhaseAccount, error) {
	data, digest, err := readAccount(snapshot, cell, files, phase.FileName)
	if data == nil || err != nil {
		return nil, err
	}
	account := &PhaseAccount{Whole: true, Digest: digest}
	account.Records, err = phase.Read(bytes.NewReader(data))
	if err != nil {
		if !isDefect(err) {
			return nil, err
		}
		account.Whole, account.Problem = false, err.Error()
	}
	return account, nil
}

func readAccount(snapshot *evidence.Snapshot, cell evidence.CellEntry, files []evidence.Entry, name string) (data []byte, digest string, err error) {
	for _, entry := range files {
		if entry.Name == name {
			data, err = snapshot.ReadFile(cell.Prefix() + name)
			return append([]byte{}, data...), entry.Digest, err
		}
	}
	return nil, "", nil
}

// isDefect says whether an error is about the content of a stream, which is for the judge, and not about reading it.
func isDefect(err error) bool {
	return errors.Is(err, stream.ErrIncomplete) || errors.Is(err, stream.ErrAltered) || errors.Is(err, stream.ErrMalformed)
}
