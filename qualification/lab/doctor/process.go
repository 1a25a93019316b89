package doctor

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"ptah.run/ptah/qualification/lab/engine"
)

// Limits of starting and stopping an engine.
const (
	engineStartLimit = 60 * time.Second
	engineStopLimit  = 60 * time.Second
	engineLookPeriod = 200 * time.Millisecond
)

// engineRecord says which engine this program started, so that it stops that one and no other.
type engineRecord struct {
	PID        int       `json:"pid"`
	StartTicks uint64    `json:"startTicks"` // field 22 of /proc/PID/stat: a reused process id has another
	Log        string    `json:"log"`
	StartedAt  time.Time `json:"startedAt"`
}

// Process starts and stops the engine of a machine whose init system does not.
type Process struct {
	StateDir string // where the record and the log go
	RunDir   string // /var/run
	ProcDir  string // /proc
}

// NewProcess returns the Process of this machine.
func NewProcess(stateDir string) *Process {
	return &Process{StateDir: stateDir, RunDir: "/var/run", ProcDir: "/proc"}
}

func (p *Process) recordFile() string { return filepath.Join(p.StateDir, "engine.json") }

// Start starts dockerd in a session of its own, records it, and returns when it answers. It first removes what a
// killed engine left, as a reboot would. Its error carries the end of the engine's log.
func (p *Process) Start(ctx context.Context) error {
	if err := os.MkdirAll(p.StateDir, 0o700); err != nil {
		return fmt.Errorf("make the folder for the engine's log and record: %w", err)
	}
	if err := p.RemoveLeftovers(); err != nil {
		return err
	}
	logFile := filepath.Join(p.StateDir, "dockerd.log")
	output, err := os.OpenFile(logFile, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return fmt.Errorf("open the engine's log: %w", err)
	}
	defer func() { _ = output.Close() }() // the engine has it open for itself
	begin, err := output.Seek(0, io.SeekEnd)
	if err != nil {
		return fmt.Errorf("open the engine's log: %w", err)
	}
	command := exec.Command("dockerd")
	command.Stdout, command.Stderr = output, output
	command.Dir = "/"
	command.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if err := command.Start(); err != nil {
		return fmt.Errorf("start dockerd: %w", err)
	}
	ticks, err := p.startTicks(command.Process.Pid)
	if err != nil {
		return fmt.Errorf("start dockerd: it ended at once: %s", tail(logFile, begin))
	}
	record := engineRecord{PID: command.Process.Pid, StartTicks: ticks, Log: logFile, StartedAt: time.Now().UTC()}
	if err := p.writeRecord(record); err != nil {
		return err
	}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = command.Wait() // its log says why it ended
	}()
	return p.waitForAnswer(ctx, ended, logFile, begin)
}

// awaitStarting says whether an engine answers, and waits for one that somebody else is starting just now.
func (p *Process) awaitStarting(ctx context.Context) bool {
	ctx, cancel := context.WithTimeout(ctx, engineStartLimit/2)
	defer cancel()
	for {
		connection, err := engine.Connect(ctx)
		if err == nil {
			return connection.Close() == nil
		}
		if !p.alive("dockerd") {
			return false
		}
		select {
		case <-ctx.Done():
			return false
		case <-time.After(engineLookPeriod):
		}
	}
}

func (p *Process) waitForAnswer(ctx context.Context, ended <-chan struct{}, logFile string, begin int64) error {
	ctx, cancel := context.WithTimeout(ctx, engineStartLimit)
	defer cancel()
	for {
		connection, err := engine.Connect(ctx)
		if err == nil {
			return connection.Close()
		}
		select {
		case <-ended:
			_ = os.Remove(p.recordFile()) // a record of a process that has ended counts for nothing
			return fmt.Errorf("dockerd ended while starting: %s", tail(logFile, begin))
		case <-ctx.Done():
			return fmt.Errorf("dockerd did not answer within %s: %s", engineStartLimit, tail(logFile, begin))
		case <-time.After(engineLookPeriod):
		}
	}
}

// Stop ends the engine that Start started and waits for its end. It returns false where this program started none
// or where it is gone already.
func (p *Process) Stop(ctx context.Context) (bool, error) {
	content, err := os.ReadFile(p.recordFile())
	if errors.Is(err, os.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("read which engine was started here: %w", err)
	}
	var record engineRecord
	if err := json.Unmarshal(content, &record); err != nil {
		return false, fmt.Errorf("read which engine was started here: %s: %w", p.recordFile(), err)
	}
	running := func() bool {
		ticks, err := p.startTicks(record.PID)
		return err == nil && ticks == record.StartTicks
	}
	if !running() {
		return false, os.Remove(p.recordFile())
	}
	if err := syscall.Kill(record.PID, syscall.SIGTERM); err != nil {
		return false, fmt.Errorf("stop dockerd (process %d): %w", record.PID, err)
	}
	deadline := time.Now().Add(engineStopLimit)
	for running() {
		if time.Now().After(deadline) {
			return false, fmt.Errorf("dockerd (process %d) did not end within %s; see %s", record.PID, engineStopLimit, record.Log)
		}
		select {
		case <-ctx.Done():
			return false, ctx.Err()
		case <-time.After(engineLookPeriod):
		}
	}
	return true, os.Remove(p.recordFile())
}

// RemoveLeftovers removes process id files that name no engine and, where no shim of a container lives, the
// runtime state of dead containers, which on a machine without a fresh /run would stop them from being removed.
func (p *Process) RemoveLeftovers() error {
	if p.alive("dockerd") {
		return errors.New("a dockerd process runs already but does not answer: look at its log, or end it and try again")
	}
	docker := filepath.Join(p.RunDir, "docker")
	remove := []string{filepath.Join(p.RunDir, "docker.pid")}
	if !p.alive("containerd") {
		remove = append(remove, filepath.Join(docker, "containerd", "containerd.pid"))
		if !p.alive("containerd-shim") {
			for _, pattern := range []string{"runtime-*", filepath.Join("containerd", "daemon", "io.containerd.runtime.v2.task"), "netns", "containerd/*.sock*"} {
				found, _ := filepath.Glob(filepath.Join(docker, pattern))
				remove = append(remove, found...)
			}
		}
	}
	for _, path := range remove {
		if err := p.unmountUnder(path); err != nil {
			return err
		}
		if err := os.RemoveAll(path); err != nil {
			return fmt.Errorf("remove what a killed engine left: %w", err)
		}
	}
	return nil
}

// alive says whether a process whose name starts with the given one runs; the kernel cuts names after 15 bytes.
func (p *Process) alive(name string) bool {
	files, _ := filepath.Glob(filepath.Join(p.ProcDir, "[0-9]*", "comm"))
	for _, file := range files {
		content, err := os.ReadFile(file)
		comm := strings.TrimSpace(string(content))
		if err == nil && (comm == name || name == "containerd-shim" && strings.HasPrefix(comm, name)) {
			return !p.zombie(filepath.Dir(file))
		}
	}
	return false
}

func (p *Process) zombie(dir string) bool {
	content, err := os.ReadFile(filepath.Join(dir, "stat"))
	if err != nil {
		return true
	}
	_, rest, _ := strings.Cut(string(content), ") ")
	return strings.HasPrefix(rest, "Z")
}

func (p *Process) unmountUnder(path string) error {
	content, err := os.ReadFile(filepath.Join(p.ProcDir, "self", "mounts"))
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("read the mounts of this machine: %w", err)
	}
	resolved, err := filepath.EvalSymlinks(path)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("find what a killed engine left mounted under %s: %w", path, err)
	}
	for _, line := range strings.Split(string(content), "\n") {
		fields := strings.Fields(line)
		if len(fields) < 2 || fields[1] != resolved && !strings.HasPrefix(fields[1], resolved+"/") {
			continue
		}
		// A list that was read a moment ago may name what is gone by now.
		err := syscall.Unmount(fields[1], syscall.MNT_DETACH)
		if err != nil && !errors.Is(err, syscall.ENOENT) && !errors.Is(err, syscall.EINVAL) {
			return fmt.Errorf("unmount %s, which a killed engine left: %w", fields[1], err)
		}
	}
	return nil
}

func (p *Process) startTicks(pid int) (uint64, error) {
	content, err := os.ReadFile(filepath.Join(p.ProcDir, strconv.Itoa(pid), "stat"))
	if err != nil {
		return 0, err
	}
	_, rest, found := strings.Cut(string(content), ") ")
	fields := strings.Fields(rest)
	if !found || len(fields) < 20 || fields[0] == "Z" {
		return 0, os.ErrNotExist
	}
	return strconv.ParseUint(fields[19], 10, 64)
}

func (p *Process) writeRecord(record engineRecord) error {
	content, err := json.Marshal(record)
	if err != nil {
		return err
	}
	if err := writeFile(p.recordFile(), append(content, '\n'), 0o600); err != nil {
		return fmt.Errorf("record which engine was started: %w", err)
	}
	return nil
}

// writeFile replaces a file whole.
func writeFile(path string, content []byte, mode os.FileMode) error {
	temporary, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+"-")
	if err != nil {
		return err
	}
	defer func() { _ = os.Remove(temporary.Name()) }() // gone where it was renamed
	_, errWrite := temporary.Write(content)
	if err := errors.Join(errWrite, temporary.Chmod(mode), temporary.Sync(), temporary.Close()); err != nil {
		return err
	}
	return os.Rename(temporary.Name(), path)
}

// tail returns the last lines written to a log since an offset, as one line.
func tail(path string, begin int64) string {
	content, err := os.ReadFile(path)
	if err != nil || int64(len(content)) <= begin {
		return "it wrote nothing to " + path
	}
	lines := strings.Split(strings.TrimSpace(string(content[begin:])), "\n")
	if len(lines) > 3 {
		lines = lines[len(lines)-3:]
	}
	return strings.Join(lines, "; ") + " (" + path + ")"
}
