package runner

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os/exec"
	"strings"
	"syscall"
	"time"

	"ptah.run/ptah/operator/operation/env"
)

// Bounds of what is read from ptah.
const (
	maxReportBytes = 1 << 20
	maxStderrBytes = 16 << 10
)

// passed are the variables that every child may see. Everything else is left behind, so that neither the token's path
// nor a grant nor anything the image or kubelet adds can steer ptah.
var passed = []string{"PATH", "HOME", "TMPDIR", "LANG", "LC_ALL", "TZ"}

// registryVariables are what a child that talks to a registry sees besides; databaseVariables the same for a database.
// No child gets both.
var (
	registryVariables = []string{env.OCIUsername, env.OCIPassword, env.OCIToken, env.OCIDockerConfig, env.OCIPlainHTTP}
	databaseVariables = []string{env.DatabaseURL}
)

// ptah starts the executor program.
type ptah struct {
	path        string
	environment func(string) (string, bool)
	stop        *stopping
	redactor    *redactor
}

// invocation is one run of ptah.
type invocation struct {
	arguments []string
	variables []string // names passed on, besides the common ones
	extra     []string // NAME=value
	// notAfter stops the child like a request to stop does; zero means never.
	notAfter time.Time
	// now and beforeStart belong to a mutating child: beforeStart is the last thing before the process exists.
	now         func() time.Time
	beforeStart func() error
}

// outcome is what a child left.
type outcome struct {
	started   bool
	exitCode  int
	stdout    []byte
	truncated bool
	usage     string // the first line of stderr, where ptah did not understand its command line
	ended     string // how the child ended, in words
}

// run starts ptah and waits for it. The error says that no process existed; every end of a process is an outcome.
func (p *ptah) run(call invocation) (outcome, error) {
	if p.redactor.holds(call.arguments...) {
		return outcome{}, errors.New("a command line would have held a credential; put credentials into the Secret alone")
	}
	stdout, stderr := &boundedBuffer{limit: maxReportBytes}, &boundedBuffer{limit: maxStderrBytes}
	command := exec.Command(p.path, call.arguments...)
	command.Env = p.childEnvironment(call)
	command.Stdout, command.Stderr = stdout, stderr
	command.Dir = "/"
	// A scratch server that ptah started must not outlive it: the group is killed as one.
	command.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	command.WaitDelay = time.Second
	if call.beforeStart != nil {
		if err := call.beforeStart(); err != nil {
			return outcome{}, err
		}
	}
	if err := command.Start(); err != nil {
		return outcome{}, fmt.Errorf("ptah could not be started: %w", err)
	}
	how := p.supervise(command, call)
	result := outcome{started: true, exitCode: command.ProcessState.ExitCode(), stdout: p.redactor.json(stdout.data.Bytes()), truncated: stdout.truncated, ended: how}
	if result.exitCode == 2 {
		result.usage, _, _ = strings.Cut(strings.TrimSpace(stderr.data.String()), "\n")
	}
	return result, nil
}

// supervise waits for the child, asks it to end when the Pod stops or its time is up, and kills its group when it does
// not end within two thirds of the grace.
func (p *ptah) supervise(command *exec.Cmd, call invocation) string {
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = command.Wait() // the state of the process says how it ended
	}()
	group := -command.Process.Pid
	// Whatever the child left behind ends with it. A group that is already empty is no error.
	defer func() { _ = syscall.Kill(group, syscall.SIGKILL) }()

	deadline, cancel := context.WithCancel(context.Background())
	defer cancel()
	if !call.notAfter.IsZero() {
		timer := time.AfterFunc(call.notAfter.Sub(call.now()), cancel)
		defer timer.Stop()
	}
	var why string
	select {
	case <-done:
		return describe(command)
	case <-p.stop.ctx.Done():
		why = "the Pod was asked to stop"
	case <-deadline.Done():
		why = "its time was up"
	}
	_ = syscall.Kill(command.Process.Pid, syscall.SIGTERM)
	kill := time.NewTimer(p.stop.patience())
	defer kill.Stop()
	select {
	case <-done:
		return describe(command) + " after it was asked to end, because " + why
	case <-kill.C:
	}
	_ = syscall.Kill(group, syscall.SIGKILL)
	<-done
	return "was killed, because " + why + " and it did not end"
}

func describe(command *exec.Cmd) string {
	if status, ok := command.ProcessState.Sys().(syscall.WaitStatus); ok && status.Signaled() {
		return "ended by signal " + status.Signal().String()
	}
	return fmt.Sprintf("ended with exit code %d", command.ProcessState.ExitCode())
}

func (p *ptah) childEnvironment(call invocation) []string {
	variables := []string{}
	for _, names := range [][]string{passed, call.variables} {
		for _, name := range names {
			if value, found := p.environment(name); found && value != "" {
				variables = append(variables, name+"="+value)
			}
		}
	}
	return append(variables, call.extra...)
}

// boundedBuffer keeps the first bytes and counts on: a child is never blocked by its own output.
type boundedBuffer struct {
	data      bytes.Buffer
	limit     int
	truncated bool
}

func (b *boundedBuffer) Write(data []byte) (int, error) {
	kept := data[:min(len(data), b.limit-b.data.Len())]
	b.data.Write(kept)
	b.truncated = b.truncated || len(kept) < len(data)
	return len(data), nil
}
