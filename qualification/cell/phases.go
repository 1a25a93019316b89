package cell

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"ptah.run/ptah/qualification/evidence"
	"ptah.run/ptah/qualification/evidence/dossier"
	"ptah.run/ptah/qualification/evidence/ledger"
	"ptah.run/ptah/qualification/evidence/phase"
	"ptah.run/ptah/qualification/evidence/scenario"
	"ptah.run/ptah/qualification/lab"
	"ptah.run/ptah/qualification/lab/gobuild"
	"ptah.run/ptah/qualification/matrix"
	"ptah.run/ptah/qualification/matrix/catalogue"
)

// together is how many scenarios that allow it run at the same time. They mostly wait for Pods, so that it is more than
// the processors of a small machine, and the same on every machine, so that runs compare.
const together = "5"

// grace is how much longer than its own timeout the process of a phase may take to say that its time is up.
const grace = time.Minute

// job is one phase that the cell runs.
type job struct {
	plan    phase.Plan
	folder  string // Go package, relative to the repository
	timeout time.Duration
	tests   []string
}

// plan lists the phases of a cell: what it borrows as preparation, then those of its own of which a wanted scenario is
// one. Without a wanted scenario they are all run.
func plan(suites *catalogue.Suites, cell matrix.Cell, wanted []string) ([]job, error) {
	suite, err := suites.Find(cell.Suite())
	if err != nil {
		return nil, err
	}
	borrowed, err := suites.Preparation(cell)
	if err != nil {
		return nil, err
	}
	var jobs []job
	for _, one := range borrowed {
		jobs = append(jobs, newJob(path.Base(one.Package), one.Package, phase.Preparation, one.Phase))
	}
	own := slices.DeleteFunc(suite.PhasesOf(cell), func(one catalogue.Phase) bool {
		return len(wanted) > 0 && !slices.ContainsFunc(one.Scenarios, func(name string) bool { return slices.Contains(wanted, name) })
	})
	if len(own) == 0 {
		return nil, fmt.Errorf("suite %s has no phase that runs in the cell %s and reports what the profile demands of it", suite.Name, cell.Key)
	}
	for _, one := range own {
		jobs = append(jobs, newJob(suite.Name, suite.Package, phase.Coverage, one))
	}
	return jobs, nil
}

func newJob(suite, folder string, purpose phase.Purpose, declared catalogue.Phase) job {
	return job{folder: folder, timeout: declared.Timeout.Std(), tests: declared.Tests(),
		plan: phase.Plan{Suite: suite, Name: declared.Name, Purpose: purpose, Scenarios: declared.Scenarios, Together: declared.Together}}
}

// compile builds the test program of each suite once, so that its own start-up costs nothing in the cell. It returns
// the programs by their folder in the repository.
func compile(ctx context.Context, repository string, jobs []job) (programs map[string]string, remove func(), err error) {
	dir, err := os.MkdirTemp("", "ptah-suite-program-")
	if err != nil {
		return nil, nil, fmt.Errorf("make a folder for the suite's program: %w", err)
	}
	programs = map[string]string{}
	for _, one := range jobs {
		if programs[one.folder] != "" {
			continue
		}
		program := filepath.Join(dir, strings.ReplaceAll(one.folder, "/", "-")+".test")
		// Built as the product is, so that both share what the Go build cache holds.
		if _, err := gobuild.Run(ctx, repository, gobuild.Environment{}, "test", "-c", "-trimpath", "-o", program, "./"+one.folder); err != nil {
			_ = os.RemoveAll(dir)
			return nil, nil, fmt.Errorf("compile the suite in %s: %w", one.folder, err)
		}
		programs[one.folder] = program
	}
	return programs, func() { _ = os.RemoveAll(dir) }, nil
}

// runPhases runs the phases one after another and keeps the account of them. Where a preparation did not leave what it
// was to leave, the phases that need it are not run: they would blame the product.
func runPhases(ctx context.Context, cell *evidence.Cell, jobs []job, programs map[string]string, options Options) error {
	account, err := dossier.PhaseStream(cell)
	if err != nil {
		return err
	}
	for _, one := range jobs {
		prepared, err := runPhase(ctx, cell, account, one, programs[one.folder], options)
		if err != nil {
			return errors.Join(err, account.Abandon())
		}
		if !prepared {
			break
		}
	}
	_, err = account.Close()
	return err
}

// runPhase runs one phase and keeps what it left as soon as it ended. It says whether the next may run.
func runPhase(ctx context.Context, cell *evidence.Cell, account *evidence.Stream, one job, program string, options Options) (goOn bool, err error) {
	staging, err := os.MkdirTemp("", "ptah-suite-")
	if err != nil {
		return false, fmt.Errorf("make a staging folder for the suite: %w", err)
	}
	defer func() { _ = os.RemoveAll(staging) }()
	if err := account.Append(phase.Entry{Event: phase.Begun, At: time.Now().UTC(), Plan: one.plan}); err != nil {
		return false, err
	}
	result, err := execute(ctx, one, program, staging, options)
	if err != nil {
		return false, err
	}
	if err := account.Append(phase.Entry{Event: phase.Ended, At: time.Now().UTC(), Plan: one.plan, Result: &result}); err != nil {
		return false, err
	}
	if one.plan.Purpose == phase.Preparation {
		return prepared(one.plan, result, staging), cell.ImportPreparation(one.plan.Suite, one.plan.Name, staging)
	}
	return true, cell.ImportPhase(one.plan.Suite, one.plan.Name, staging)
}

// prepared says whether a preparation ran to its declared boundary and passed.
func prepared(plan phase.Plan, result phase.Result, staging string) bool {
	file, err := os.Open(filepath.Join(staging, ledger.FileName))
	if err != nil {
		return false
	}
	defer func() { _ = file.Close() }()
	reported, err := scenario.Read(file)
	if err != nil || result.Outcome != phase.Completed || len(phase.Record{Plan: plan, Result: &result}.Problems(reported)) > 0 {
		return false
	}
	for _, one := range reported {
		if one.Outcome != scenario.OutcomePass {
			return false
		}
	}
	return true
}

// execute runs the process of a phase. A failing test is no error here, and neither is a process that died or ran out of
// time; an error means that the phase could not be run, or that the harness was told to stop.
func execute(ctx context.Context, one job, program, staging string, options Options) (phase.Result, error) {
	log, err := os.Create(filepath.Join(staging, one.plan.Name+".log"))
	if err != nil {
		return phase.Result{}, fmt.Errorf("keep the output of phase %s: %w", one.plan.Name, err)
	}
	defer func() { _ = log.Close() }()
	limited, cancel := context.WithTimeout(ctx, one.timeout+grace)
	defer cancel()
	command := exec.CommandContext(limited, program, "-test.v", "-test.run", "^("+strings.Join(one.tests, "|")+")$",
		"-test.timeout", one.timeout.String(), "-test.parallel", together)
	command.Dir = filepath.Join(options.Repository, one.folder)
	output := io.MultiWriter(log, options.Log)
	command.Stdout, command.Stderr = output, output
	command.Env = append(os.Environ(), lab.EnvironmentVariable+"="+options.LabFile, ledger.EnvironmentVariable+"="+staging)
	command.Cancel = func() error { return command.Process.Signal(os.Interrupt) }
	command.WaitDelay = 30 * time.Second
	begin := time.Now()
	err = runBound(command)
	if ctx.Err() != nil {
		return phase.Result{}, fmt.Errorf("run phase %s of suite %s: %w", one.plan.Name, one.plan.Suite, ctx.Err())
	}
	result, err := resultOf(err, time.Since(begin) >= one.timeout, one.timeout)
	if err != nil {
		return phase.Result{}, fmt.Errorf("run phase %s of suite %s: %w", one.plan.Name, one.plan.Suite, err)
	}
	return result, log.Sync()
}

// resultOf says how a process ended. Late is whether its time was up by then.
func resultOf(err error, late bool, timeout time.Duration) (phase.Result, error) {
	var failed *exec.ExitError
	switch {
	case err == nil:
		return phase.Result{Outcome: phase.Completed}, nil
	case late && (errors.As(err, &failed) || errors.Is(err, context.DeadlineExceeded) || errors.Is(err, exec.ErrWaitDelay)):
		exit := -1
		if failed != nil {
			exit = failed.ExitCode()
		}
		return phase.Result{Outcome: phase.TimedOut, Exit: exit, Message: fmt.Sprintf("its %s were up", timeout)}, nil
	case errors.As(err, &failed):
		return phase.Result{Outcome: phase.Failed, Exit: failed.ExitCode(), Message: failed.String()}, nil
	default:
		return phase.Result{}, err
	}
}
