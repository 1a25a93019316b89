package doctor

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"ptah.run/ptah/qualification/lab/engine"
	"ptah.run/ptah/qualification/lab/gobuild"
	"ptah.run/ptah/qualification/lab/programs"
)

// Places of what the fixer installs.
const (
	RuntimePath      = "/usr/local/lib/ptah/runc-bounded"
	DaemonConfigPath = "/etc/docker/daemon.json"
	keptConfigSuffix = ".before-ptah"
)

// reloadLimit is how long an engine may take to see a changed daemon.json.
const reloadLimit = 10 * time.Second

// Fixer installs what the checks found missing.
type Fixer struct {
	Out     io.Writer // one line for each action
	Process *Process
}

// say tells a person of one action. Where nobody can be told, the action is taken all the same.
func (x *Fixer) say(format string, arguments ...any) {
	_, _ = fmt.Fprintf(x.Out, format+"\n", arguments...)
}

// RefusedError says that the fixer does not work here.
type RefusedError struct{ Reason string }

func (e *RefusedError) Error() string { return e.Reason }

// Fix repairs what it can of the findings: packages first, then the engine, then the runtime, because each needs
// what comes before it. Findings without a remedy stay as they are.
func (x *Fixer) Fix(ctx context.Context, facts Facts, unfit []Finding) error {
	if len(unfit) == 0 {
		return nil
	}
	if facts.OS != "debian" {
		return &RefusedError{fmt.Sprintf("--fix works on Debian only, and this machine says it is %q: follow the fixes above by hand", facts.OSName)}
	}
	if !facts.Root {
		return &RefusedError{"--fix installs packages and starts the engine, so it must run as root: use sudo, or follow the fixes above by hand"}
	}
	var packages []string
	remedies := map[Remedy]bool{}
	for _, finding := range unfit {
		packages = append(packages, finding.Packages...)
		remedies[finding.Remedy] = true
	}
	if err := x.installPackages(ctx, packages); err != nil {
		return err
	}
	needsRuntime := facts.MissingCapabilities() && (remedies[ByRuntime] || remedies[ByEngine])
	// The runtime goes in before the first start where it is known to be needed: it spares a reload.
	if needsRuntime {
		if err := x.installRuntime(ctx); err != nil {
			return err
		}
	}
	if remedies[ByEngine] {
		if err := x.ensureEngine(ctx, facts.Systemd); err != nil {
			return err
		}
	}
	if needsRuntime && !runtimeIsDefault(ctx) {
		return x.reloadEngine(ctx)
	}
	return nil
}

func (x *Fixer) installPackages(ctx context.Context, packages []string) error {
	slices.Sort(packages)
	packages = slices.Compact(packages)
	if len(packages) == 0 {
		return nil
	}
	x.say("installing %s", strings.Join(packages, " "))
	install := append([]string{"install", "-y", "--no-install-recommends"}, packages...)
	if _, err := apt(ctx, install...); err == nil {
		return nil
	}
	// The package lists of a fresh image are absent or old.
	if output, err := apt(ctx, "update"); err != nil {
		return fmt.Errorf("apt-get update: %w: %s", err, output)
	}
	if output, err := apt(ctx, install...); err != nil {
		return fmt.Errorf("apt-get install %s: %w: %s", strings.Join(packages, " "), err, output)
	}
	return nil
}

func apt(ctx context.Context, arguments ...string) (string, error) {
	command := exec.CommandContext(ctx, "apt-get", arguments...)
	command.Env = append(os.Environ(), "DEBIAN_FRONTEND=noninteractive")
	output, err := command.CombinedOutput()
	lines := strings.Split(strings.TrimSpace(string(output)), "\n")
	if len(lines) > 3 {
		lines = lines[len(lines)-3:]
	}
	return strings.Join(lines, "; "), err
}

func (x *Fixer) installRuntime(ctx context.Context) error {
	x.say("building the bounded runtime %s", RuntimePath)
	source, err := programs.Source("boundedruntime", fmt.Sprintf("%d.%d", GoMajor, GoMinor))
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(RuntimePath), 0o755); err != nil {
		return fmt.Errorf("make the folder of the bounded runtime: %w", err)
	}
	temporary := RuntimePath + ".new"
	if err := gobuild.FromSource(ctx, source, temporary); err != nil {
		return fmt.Errorf("build the bounded runtime: %w", err)
	}
	if err := errors.Join(os.Chmod(temporary, 0o755), os.Rename(temporary, RuntimePath)); err != nil {
		return fmt.Errorf("put the bounded runtime in place: %w", err)
	}
	return x.writeDaemonConfig(DaemonConfigPath)
}

// writeDaemonConfig merges the runtime into the engine's configuration and keeps the file it found.
func (x *Fixer) writeDaemonConfig(path string) error {
	existing, err := os.ReadFile(path)
	found := err == nil
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("read the engine's configuration: %w", err)
	}
	merged, err := mergeDaemonConfig(existing, RuntimePath)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return fmt.Errorf("make the folder of the engine's configuration: %w", err)
	}
	if found && string(existing) == string(merged) {
		return nil
	}
	kept := path + keptConfigSuffix
	if _, err := os.Stat(kept); found && errors.Is(err, os.ErrNotExist) {
		if err := writeFile(kept, existing, 0o644); err != nil {
			return fmt.Errorf("keep the engine's configuration: %w", err)
		}
		x.say("keeping the engine's configuration as %s", kept)
	}
	x.say("writing %s", path)
	if err := writeFile(path, merged, 0o644); err != nil {
		return fmt.Errorf("write the engine's configuration: %w", err)
	}
	return nil
}

// ensureEngine starts the engine unless it answers by now: on some machines the package starts it.
func (x *Fixer) ensureEngine(ctx context.Context, systemd bool) error {
	if x.Process.awaitStarting(ctx) {
		return nil
	}
	x.say("starting the Docker engine")
	if !systemd {
		return x.Process.Start(ctx)
	}
	output, err := exec.CommandContext(ctx, "systemctl", "start", "docker").CombinedOutput()
	if err != nil {
		return fmt.Errorf("systemctl start docker: %w: %s", err, strings.Join(strings.Fields(string(output)), " "))
	}
	return nil
}

// reloadEngine makes a running engine read its configuration and waits until it says that it has.
func (x *Fixer) reloadEngine(ctx context.Context) error {
	x.say("making the Docker engine read its configuration")
	content, err := os.ReadFile("/var/run/docker.pid")
	if err != nil {
		return fmt.Errorf("find the engine's process to make it read its configuration: %w", err)
	}
	var pid int
	if _, err := fmt.Sscanf(string(content), "%d", &pid); err != nil || pid < 2 {
		return fmt.Errorf("find the engine's process to make it read its configuration: /var/run/docker.pid holds %q", strings.TrimSpace(string(content)))
	}
	if err := syscall.Kill(pid, syscall.SIGHUP); err != nil {
		return fmt.Errorf("make the engine read its configuration: %w", err)
	}
	deadline := time.Now().Add(reloadLimit)
	for time.Now().Before(deadline) {
		if runtimeIsDefault(ctx) {
			return nil
		}
		time.Sleep(engineLookPeriod)
	}
	return fmt.Errorf("the engine did not take %s from %s within %s: restart it", RuntimeName, DaemonConfigPath, reloadLimit)
}

func runtimeIsDefault(ctx context.Context) bool {
	connection, err := engine.Connect(ctx)
	if err != nil {
		return false
	}
	defer func() { _ = connection.Close() }()
	facts, err := connection.Facts(ctx)
	return err == nil && facts.DefaultRuntime == RuntimeName
}
