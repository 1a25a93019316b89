// Package doctor finds out what a machine lacks for the tests, the lab or the quickstart, names each thing in one
// line with its fix, and installs it on request on Debian. Checks are pure functions over gathered facts; only
// Gather and Fixer touch the machine, and nothing is installed or changed without Fixer.
package doctor

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"

	"ptah.run/ptah/qualification/lab/engine"
)

// Facts are what the checks judge.
type Facts struct {
	OS            string // ID of /etc/os-release
	OSName        string // PRETTY_NAME of /etc/os-release
	Root          bool
	Systemd       bool            // a systemd runs as init
	Tools         map[string]bool // in PATH
	GoVersion     string          // as `go env GOVERSION` prints it
	Seccomp       bool            // libseccomp's headers are found by pkg-config
	Bounding      uint64          // capability bounding set of this process
	LastCap       int             // the kernel's highest capability number
	CgroupMissing []string        // cgroup v1 controllers a container needs and that are not mounted
	MemoryBytes   uint64
	Space         []Space
	CacheWarm     bool // images were built here before

	ClientVersion string // of the docker command in PATH, with its path
	ClientError   string // why that command cannot talk to the engine
	EngineError   string // why no engine answers
	Engine        engine.Facts
}

// Space is the free space of one file system and what lies on it.
type Space struct {
	Free  uint64
	Paths []string
}

// MissingCapabilities says whether the machine's bounding set lacks a capability the kernel knows.
func (f Facts) MissingCapabilities() bool {
	all := uint64(1)<<(f.LastCap+1) - 1
	return f.Bounding&all != all
}

// Paths are the folders whose space matters.
type Paths struct {
	Cache, State string
}

// toolNames are the commands the checks look for.
var toolNames = []string{"go", "gcc", "pkg-config", "mmdebstrap", "docker", "dockerd", "runc", "iptables", "git", "chromium", "google-chrome"}

// Gather reads the facts of this machine. It changes nothing. Its error says what could not be read.
func Gather(ctx context.Context, paths Paths) (Facts, error) {
	facts := Facts{Root: os.Geteuid() == 0, Tools: map[string]bool{}}
	release := osRelease("/etc/os-release")
	facts.OS, facts.OSName = release["ID"], release["PRETTY_NAME"]
	_, err := os.Stat("/run/systemd/system")
	facts.Systemd = err == nil
	for _, name := range toolNames {
		_, err := exec.LookPath(name)
		facts.Tools[name] = err == nil
	}
	if facts.Tools["go"] {
		output, _ := exec.CommandContext(ctx, "go", "env", "GOVERSION").Output()
		facts.GoVersion = strings.TrimSpace(string(output))
	}
	facts.Seccomp = exec.CommandContext(ctx, "pkg-config", "--exists", "libseccomp").Run() == nil
	if facts.Bounding, err = boundingSet("/proc/self/status"); err != nil {
		return Facts{}, err
	}
	if facts.LastCap, err = lastCapability("/proc/sys/kernel/cap_last_cap"); err != nil {
		return Facts{}, err
	}
	facts.CgroupMissing = missingControllers("/sys/fs/cgroup")
	if facts.MemoryBytes, err = memory("/proc/meminfo"); err != nil {
		return Facts{}, err
	}
	facts.CacheWarm = CacheWarm(paths.Cache)
	gatherEngine(ctx, &facts)
	root := facts.Engine.RootDir
	if root == "" {
		root = "/var/lib/docker"
	}
	places := append([]string{paths.Cache, root, paths.State, os.TempDir()}, goPlaces(ctx)...)
	facts.Space, err = SpaceOf(places...)
	return facts, err
}

// goPlaces returns the folders that Go fills while it builds.
func goPlaces(ctx context.Context) []string {
	output, err := exec.CommandContext(ctx, "go", "env", "GOCACHE", "GOMODCACHE").Output()
	if err != nil {
		return nil // the check of Go itself says so
	}
	var places []string
	for _, place := range strings.Fields(string(output)) {
		if filepath.IsAbs(place) {
			places = append(places, place)
		}
	}
	return places
}

// CacheWarm says whether a node image was built in a cache folder before.
func CacheWarm(root string) bool {
	entries, _ := filepath.Glob(filepath.Join(root, "images", "node-*"))
	return len(entries) > 0
}

// LacksSysResource says whether this process, and with it what it starts, can never have CAP_SYS_RESOURCE. Where it
// cannot be known, the answer is no, which is right on every ordinary machine.
func LacksSysResource() bool {
	const bit = 24
	bounding, err := boundingSet("/proc/self/status")
	return err == nil && bounding&(1<<bit) == 0
}

func gatherEngine(ctx context.Context, facts *Facts) {
	if path, err := exec.LookPath("docker"); err == nil {
		output, _ := exec.CommandContext(ctx, path, "version", "--format", "{{.Client.Version}}").Output()
		facts.ClientVersion = strings.TrimSpace(string(output)) + " at " + path
	}
	connection, err := engine.Connect(ctx)
	var unreachable *engine.UnreachableError
	if errors.As(err, &unreachable) {
		facts.EngineError = "no Docker engine answers at " + unreachable.Host // the check adds the fix
		return
	}
	if err != nil {
		facts.EngineError = err.Error()
		return
	}
	defer func() { _ = connection.Close() }()
	if facts.Engine, err = connection.Facts(ctx); err != nil {
		facts.EngineError = err.Error()
		return
	}
	if facts.Tools["docker"] {
		output, err := exec.CommandContext(ctx, "docker", "version", "--format", "{{.Server.APIVersion}}").CombinedOutput()
		if err != nil {
			facts.ClientError = strings.Join(strings.Fields(string(output)), " ")
		}
	}
}

func osRelease(path string) map[string]string {
	values := map[string]string{}
	content, err := os.ReadFile(path)
	if err != nil {
		return values
	}
	for _, line := range strings.Split(string(content), "\n") {
		if name, value, found := strings.Cut(line, "="); found {
			values[name] = strings.Trim(value, `"`)
		}
	}
	return values
}

func boundingSet(statusFile string) (uint64, error) {
	content, err := os.ReadFile(statusFile)
	if err != nil {
		return 0, fmt.Errorf("read the capability bounding set: %w", err)
	}
	for _, line := range strings.Split(string(content), "\n") {
		if text, found := strings.CutPrefix(line, "CapBnd:"); found {
			return strconv.ParseUint(strings.TrimSpace(text), 16, 64)
		}
	}
	return 0, fmt.Errorf("read the capability bounding set: %s has no CapBnd line", statusFile)
}

func lastCapability(path string) (int, error) {
	content, err := os.ReadFile(path)
	if err != nil {
		return 0, fmt.Errorf("read the kernel's highest capability: %w", err)
	}
	last, err := strconv.Atoi(strings.TrimSpace(string(content)))
	if err != nil || last < 0 || last > 62 {
		return 0, fmt.Errorf("read the kernel's highest capability: %s holds %q", path, strings.TrimSpace(string(content)))
	}
	return last, nil
}

// missingControllers returns the cgroup v1 controllers without a mount, or nothing on cgroup v2.
func missingControllers(root string) []string {
	if _, err := os.Stat(filepath.Join(root, "cgroup.controllers")); err == nil {
		return nil
	}
	var missing []string
	for _, controller := range []string{"cpu", "cpuset", "memory", "devices", "freezer", "pids"} {
		if _, err := os.Stat(filepath.Join(root, controller, "tasks")); err != nil {
			missing = append(missing, controller)
		}
	}
	return missing
}

func memory(path string) (uint64, error) {
	file, err := os.Open(path)
	if err != nil {
		return 0, fmt.Errorf("read the size of memory: %w", err)
	}
	defer func() { _ = file.Close() }()
	scanner := bufio.NewScanner(file)
	for scanner.Scan() {
		var kilobytes uint64
		if _, err := fmt.Sscanf(scanner.Text(), "MemTotal: %d kB", &kilobytes); err == nil {
			return kilobytes << 10, nil
		}
	}
	return 0, fmt.Errorf("read the size of memory: %s has no MemTotal line", path)
}

// SpaceOf returns the free space available to this user under each path, file systems taken together.
func SpaceOf(paths ...string) ([]Space, error) {
	var spaces []Space
	indexes := map[uint64]int{}
	for _, path := range paths {
		existing, err := nearestExisting(path)
		if err != nil {
			return nil, err
		}
		var file syscall.Stat_t
		var system syscall.Statfs_t
		if err := errors.Join(syscall.Stat(existing, &file), syscall.Statfs(existing, &system)); err != nil {
			return nil, fmt.Errorf("read the free space under %s: %w", path, err)
		}
		if index, known := indexes[file.Dev]; known {
			spaces[index].Paths = append(spaces[index].Paths, path)
			continue
		}
		indexes[file.Dev] = len(spaces)
		spaces = append(spaces, Space{Free: system.Bavail * uint64(system.Bsize), Paths: []string{path}})
	}
	return spaces, nil
}

func nearestExisting(path string) (string, error) {
	for current := path; ; current = filepath.Dir(current) {
		if _, err := os.Stat(current); err == nil {
			return current, nil
		} else if !errors.Is(err, os.ErrNotExist) {
			return "", fmt.Errorf("look at %s: %w", current, err)
		}
		if current == filepath.Dir(current) {
			return "", fmt.Errorf("look at %s: no folder above it exists", path)
		}
	}
}
