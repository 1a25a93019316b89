// Package cell runs one cell of a matrix in a lab: it starts the cell's suite as a process of its own, keeps what the
// suite and the API servers wrote down, and finishes the cell. It judges nothing: a suite that fails leaves evidence
// of that, and a cell is finished all the same.
package cell

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"ptah.run/ptah/qualification/evidence"
	"ptah.run/ptah/qualification/evidence/dossier"
	"ptah.run/ptah/qualification/evidence/ledger"
	"ptah.run/ptah/qualification/lab"
	"ptah.run/ptah/qualification/lab/gobuild"
	"ptah.run/ptah/qualification/matrix"
	"ptah.run/ptah/qualification/matrix/catalogue"
)

// Options say what to run and where.
type Options struct {
	Repository string // root of this repository, which holds the suites
	LabFile    string // lab.json of a lab with the operator installed
	Lab        *lab.Description
	Suite      catalogue.Suite
	Inputs     matrix.Inputs
	Release    dossier.Release
	// Log receives the output of the suite as it comes.
	Log io.Writer
}

// auditSettle is how long the audit log is left to reach past the last measured interval. API servers write an event
// before they answer (blocking mode), so that this covers clocks and the requests that follow the last write.
const auditSettle = 2 * time.Second

// together is how many scenarios that allow it run at the same time. They mostly wait for Pods, so that it is more than
// the processors of a small machine, and the same on every machine, so that runs compare.
const together = "3"

// Run runs the cell into a run of the evidence store. An error means that the harness could not do its part; what the
// suite found is in the evidence alone.
func Run(ctx context.Context, run *evidence.Run, options Options) error {
	description, err := os.ReadFile(options.LabFile)
	if err != nil {
		return fmt.Errorf("read the description of the lab: %w", err)
	}
	program, remove, err := compile(ctx, options)
	if err != nil {
		return err
	}
	defer remove()
	cell, err := dossier.BeginCell(run, options.Inputs, options.Release, description)
	if err != nil {
		return err
	}
	staging, err := os.MkdirTemp("", "ptah-suite-")
	if err != nil {
		return fmt.Errorf("make a staging folder for the suite: %w", err)
	}
	defer os.RemoveAll(staging)
	for _, phase := range options.Suite.Phases {
		if err := runPhase(ctx, program, staging, phase, options); err != nil {
			return err
		}
	}
	if err := cell.ImportSuite(options.Suite.Name, staging); err != nil {
		return err
	}
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(auditSettle):
	}
	for _, path := range options.Lab.AuditLogs {
		if err := addAuditLog(cell, path); err != nil {
			return err
		}
	}
	if err := addManagerLogs(ctx, cell, options.Lab, options.Release.Images["manager"]); err != nil {
		return err
	}
	return cell.Finish()
}

// compile builds the suite's test program once, so that its own start-up costs nothing in the cell.
func compile(ctx context.Context, options Options) (program string, remove func(), err error) {
	dir, err := os.MkdirTemp("", "ptah-suite-program-")
	if err != nil {
		return "", nil, fmt.Errorf("make a folder for the suite's program: %w", err)
	}
	program = filepath.Join(dir, options.Suite.Name+".test")
	// Built as the product is, so that both share what the Go build cache holds.
	if _, err := gobuild.Run(ctx, options.Repository, gobuild.Environment{}, "test", "-c", "-trimpath", "-o", program, "./"+options.Suite.Package); err != nil {
		os.RemoveAll(dir)
		return "", nil, fmt.Errorf("compile the suite %s: %w", options.Suite.Name, err)
	}
	return program, func() { os.RemoveAll(dir) }, nil
}

// runPhase runs the tests of a phase. A failing test is no error here. A suite that could not start leaves no ledger,
// which the judge sees.
func runPhase(ctx context.Context, program, staging string, phase catalogue.Phase, options Options) error {
	log, err := os.Create(filepath.Join(staging, phase.Name+".log"))
	if err != nil {
		return fmt.Errorf("keep the output of phase %s: %w", phase.Name, err)
	}
	defer log.Close()
	command := exec.CommandContext(ctx, program, "-test.v", "-test.run", "^("+strings.Join(phase.Tests(), "|")+")$",
		"-test.timeout", phase.Timeout.Std().String(), "-test.parallel", together)
	command.Dir = filepath.Join(options.Repository, options.Suite.Package)
	output := io.MultiWriter(log, options.Log)
	command.Stdout, command.Stderr = output, output
	command.Env = append(os.Environ(), lab.EnvironmentVariable+"="+options.LabFile, ledger.EnvironmentVariable+"="+staging)
	command.Cancel = func() error { return command.Process.Signal(os.Interrupt) }
	command.WaitDelay = 30 * time.Second
	err = command.Run()
	var failed *exec.ExitError
	if err != nil && (ctx.Err() != nil || !errors.As(err, &failed)) {
		return fmt.Errorf("run phase %s of suite %s: %w", phase.Name, options.Suite.Name, errors.Join(ctx.Err(), err))
	}
	return log.Sync()
}

func addAuditLog(cell *evidence.Cell, path string) error {
	file, err := os.Open(path)
	if err != nil {
		return fmt.Errorf("read the audit log of an API server: %w", err)
	}
	defer file.Close()
	// The log is still being written. What was read up to now is whole lines and perhaps the beginning of one more,
	// which is not part of the time that is counted in.
	server := filepath.Base(filepath.Dir(path))
	return dossier.AddAuditLog(cell, server, 0, &wholeLines{source: bufio.NewReaderSize(file, 1<<20)})
}

// wholeLines reads up to the last line that has its end.
type wholeLines struct {
	source *bufio.Reader
	line   []byte
}

func (w *wholeLines) Read(buffer []byte) (int, error) {
	if len(w.line) == 0 {
		line, err := w.source.ReadBytes('\n')
		if err != nil { // io.EOF with an unfinished line, which is left out
			return 0, err
		}
		w.line = line
	}
	n := copy(buffer, w.line)
	w.line = w.line[n:]
	return n, nil
}
