// Package cell runs one cell of a matrix in a lab: it starts each phase of the cell's suite as a process of its own,
// keeps what the suite and the API servers wrote down together with its own account of both, and finishes the cell. It
// judges nothing: a suite that fails leaves evidence of that, and a cell is finished all the same.
package cell

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"ptah.run/ptah/qualification/driver"
	"ptah.run/ptah/qualification/evidence"
	"ptah.run/ptah/qualification/evidence/dossier"
	"ptah.run/ptah/qualification/lab"
	"ptah.run/ptah/qualification/matrix"
	"ptah.run/ptah/qualification/matrix/catalogue"
)

// Options say what to run and where.
type Options struct {
	Repository string // root of this repository, which holds the suites
	LabFile    string // lab.json of a lab with the operator installed
	Lab        *lab.Description
	Suites     *catalogue.Suites // of which the cell runs one, and may borrow from others
	Inputs     matrix.Inputs
	// Wanted are the scenarios that the profile demands of the cell. A phase that reports none of them is not run.
	Wanted  []string
	Release dossier.Release
	// Log receives the output of the suite as it comes.
	Log io.Writer
}

// auditSettle is how long the audit log is left to reach past the last measured interval. API servers write an event
// before they answer (blocking mode), so that this covers clocks and the requests that follow the last write.
const auditSettle = 2 * time.Second

// Run runs the cell into a run of the evidence store. An error means that the harness could not do its part, or was
// told to stop; then the attempt is not finished. What the suite found is in the evidence alone.
func Run(ctx context.Context, run *evidence.Run, options Options) error {
	description, err := os.ReadFile(options.LabFile)
	if err != nil {
		return fmt.Errorf("read the description of the lab: %w", err)
	}
	jobs, err := plan(options.Suites, options.Inputs.Cell, options.Wanted)
	if err != nil {
		return err
	}
	programs, remove, err := compile(ctx, options.Repository, jobs)
	if err != nil {
		return err
	}
	defer remove()
	cell, err := dossier.BeginCell(run, options.Inputs, options.Release, description)
	if err != nil {
		return err
	}
	err = withDriver(cell, func() error {
		if err := runPhases(ctx, cell, jobs, programs, options); err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(auditSettle):
			return nil
		}
	})
	if err != nil {
		return err
	}
	if err := collect(ctx, cell, options); err != nil {
		return err
	}
	return cell.Finish()
}

// withDriver keeps the account of the driver's load while something is measured.
func withDriver(cell *evidence.Cell, work func() error) error {
	stream, err := dossier.DriverStream(cell)
	if err != nil {
		return err
	}
	account, err := driver.Begin(stream, driver.Options{})
	if err != nil {
		return errors.Join(err, stream.Abandon())
	}
	if err := errors.Join(work(), account.End()); err != nil {
		return errors.Join(err, stream.Abandon())
	}
	_, err = stream.Close()
	return err
}

// collect keeps what others wrote down while the cell ran.
func collect(ctx context.Context, cell *evidence.Cell, options Options) error {
	for _, path := range options.Lab.AuditLogs {
		if err := addAuditLog(cell, path); err != nil {
			return err
		}
	}
	return addManagerLogs(ctx, cell, options.Lab, options.Release.Images["manager"])
}
