package doctor

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// Purpose is what the machine is wanted for.
type Purpose string

// Purposes.
const (
	ForTest       Purpose = "test"       // unit, API server and container tests
	ForLab        Purpose = "lab"        // images and clusters
	ForQuickstart Purpose = "quickstart" // everything, from nothing to a signed record
)

// Purposes lists the purposes there are.
var Purposes = []Purpose{ForTest, ForLab, ForQuickstart}

// State of a finding.
type State string

// States. Only Missing makes a machine unfit.
const (
	OK      State = "ok"
	Note    State = "note"
	Missing State = "missing"
)

// Remedy names what Fixer can do about a finding; the empty remedy is a person's work.
type Remedy string

// Remedies.
const (
	ByPackages Remedy = "packages"
	ByRuntime  Remedy = "runtime"
	ByEngine   Remedy = "engine"
)

// Finding is one line of the doctor's report.
type Finding struct {
	Name     string
	State    State
	Detail   string
	Fix      string
	Remedy   Remedy
	Packages []string
}

// The smallest Go toolchain.
const (
	GoMajor = 1
	GoMinor = 26
)

// Sizes in bytes.
const (
	gibibyte        = uint64(1) << 30
	coldLabSpace    = 25 * gibibyte // module and build caches, binaries, images in the cache and in the engine, one lab
	warmLabSpace    = 8 * gibibyte  // images in the engine, one lab
	testSpace       = 12 * gibibyte // module and build caches, database image, API server binaries
	warmTestSpace   = 4 * gibibyte
	smallestMemory  = 4 * gibibyte
	roundingPercent = 97 // machines sold as 4 GiB show a little less
)

// RuntimeName is the name under which the bounded runtime is registered with the engine.
const RuntimeName = "ptah-bounded"

// Check judges the facts for a purpose. The order is the order in which a person would fix things.
func Check(f Facts, purpose Purpose) []Finding {
	findings := []Finding{
		checkGo(f),
		checkTools(f, purpose),
		checkSeccomp(f, purpose),
		checkMmdebstrap(f),
		checkClient(f),
		checkEngine(f),
	}
	if f.EngineError == "" {
		findings = append(findings, checkCapabilities(f), checkStorage(f), checkCgroup(f))
	}
	findings = append(findings, checkMemory(f, purpose), checkSpace(f, purpose), checkBrowser(f))
	return slices.DeleteFunc(findings, func(f Finding) bool { return f.Name == "" })
}

// Unfit returns the findings that make the machine unfit.
func Unfit(findings []Finding) []Finding {
	var unfit []Finding
	for _, finding := range findings {
		if finding.State == Missing {
			unfit = append(unfit, finding)
		}
	}
	return unfit
}

func checkGo(f Facts) Finding {
	finding := Finding{Name: "Go", Fix: fmt.Sprintf("install Go %d.%d or newer from https://go.dev/dl/ and put it into PATH", GoMajor, GoMinor)}
	switch {
	case !f.Tools["go"]:
		finding.State, finding.Detail = Missing, "no go command in PATH"
	case !goAtLeast(f.GoVersion):
		finding.State, finding.Detail = Missing, fmt.Sprintf("found %s, which is older than Go %d.%d", f.GoVersion, GoMajor, GoMinor)
	default:
		finding.State, finding.Detail = OK, f.GoVersion
	}
	return finding
}

func goAtLeast(version string) bool {
	parts := strings.SplitN(strings.TrimPrefix(version, "go"), ".", 3)
	if len(parts) < 2 {
		return false
	}
	major, errMajor := strconv.Atoi(parts[0])
	minor, errMinor := leadingNumber(parts[1]) // "26rc1" counts as 26
	if errMajor != nil || errMinor != nil {
		return false
	}
	return major > GoMajor || major == GoMajor && minor >= GoMinor
}

func leadingNumber(text string) (int, error) {
	end := strings.IndexFunc(text, func(r rune) bool { return r < '0' || r > '9' })
	if end < 0 {
		end = len(text)
	}
	return strconv.Atoi(text[:end])
}

func checkTools(f Facts, purpose Purpose) Finding {
	if purpose == ForTest {
		return Finding{}
	}
	return toolFinding(f, "C compiler", []string{"gcc", "pkg-config"}, []string{"gcc", "libc6-dev", "pkg-config"}, "builds runc for the cluster nodes")
}

func checkMmdebstrap(f Facts) Finding {
	return toolFinding(f, "mmdebstrap", []string{"mmdebstrap"}, []string{"mmdebstrap"}, "makes root file systems from Debian packages")
}

func toolFinding(f Facts, name string, tools, packages []string, why string) Finding {
	var absent []string
	for _, tool := range tools {
		if !f.Tools[tool] {
			absent = append(absent, tool)
		}
	}
	if len(absent) == 0 {
		return Finding{Name: name, State: OK, Detail: strings.Join(tools, ", ") + " in PATH"}
	}
	return Finding{Name: name, State: Missing, Detail: fmt.Sprintf("no %s in PATH (%s)", strings.Join(absent, " and no "), why),
		Fix: "apt-get install " + strings.Join(packages, " "), Remedy: ByPackages, Packages: packages}
}

func checkSeccomp(f Facts, purpose Purpose) Finding {
	if purpose == ForTest {
		return Finding{}
	}
	if f.Seccomp {
		return Finding{Name: "libseccomp", State: OK, Detail: "headers found by pkg-config"}
	}
	return Finding{Name: "libseccomp", State: Missing, Detail: "pkg-config does not find libseccomp (runc needs its headers)",
		Fix: "apt-get install libseccomp-dev pkg-config", Remedy: ByPackages, Packages: []string{"libseccomp-dev", "pkg-config"}}
}

func checkClient(f Facts) Finding {
	finding := Finding{Name: "Docker client", Fix: "apt-get install docker.io", Remedy: ByPackages, Packages: enginePackages}
	switch {
	case !f.Tools["docker"]:
		finding.State, finding.Detail = Missing, "no docker command in PATH (kind calls it)"
	case f.ClientError != "":
		finding.State, finding.Detail = Missing, fmt.Sprintf("client %s cannot talk to the engine: %s", f.ClientVersion, f.ClientError)
		finding.Fix, finding.Remedy, finding.Packages = "remove that client from PATH or install one that speaks API "+f.Engine.APIVersion, "", nil
	default:
		finding.State, finding.Detail = OK, f.ClientVersion
	}
	return finding
}

// enginePackages are what Debian needs for an engine of its own.
var enginePackages = []string{"docker.io", "iptables", "ca-certificates"}

func checkEngine(f Facts) Finding {
	if f.EngineError == "" {
		return Finding{Name: "Docker engine", State: OK, Detail: fmt.Sprintf("%s, API %s, at %s", f.Engine.Version, f.Engine.APIVersion, f.Engine.Host)}
	}
	finding := Finding{Name: "Docker engine", State: Missing, Detail: f.EngineError, Remedy: ByEngine}
	switch {
	case !f.Tools["dockerd"]:
		finding.Fix, finding.Packages = "apt-get install docker.io, then start the engine", enginePackages
	case f.Systemd:
		finding.Fix = "systemctl start docker"
	default:
		finding.Fix = "start dockerd (no init system runs here that would)"
	}
	return finding
}

func checkCapabilities(f Facts) Finding {
	finding := Finding{Name: "capabilities", State: OK, Detail: "the bounding set is full"}
	if !f.MissingCapabilities() {
		return finding
	}
	missing := strings.Join(capabilityNames(f.Bounding, f.LastCap), ", ")
	if f.Engine.DefaultRuntime == RuntimeName {
		finding.Detail = fmt.Sprintf("this machine lacks %s; the bounded runtime leaves it out of containers", missing)
		return finding
	}
	finding.State, finding.Remedy = Missing, ByRuntime
	finding.Detail = fmt.Sprintf("this machine lacks %s, so the engine cannot start the privileged containers that a cluster needs", missing)
	finding.Fix = "register the bounded runtime, which leaves it out of containers, as the engine's default in /etc/docker/daemon.json"
	return finding
}

func capabilityNames(bounding uint64, last int) []string {
	known := map[int]string{21: "CAP_SYS_ADMIN", 12: "CAP_NET_ADMIN", 16: "CAP_SYS_MODULE", 24: "CAP_SYS_RESOURCE",
		25: "CAP_SYS_TIME", 27: "CAP_MKNOD", 34: "CAP_SYSLOG", 38: "CAP_PERFMON", 39: "CAP_BPF", 40: "CAP_CHECKPOINT_RESTORE"}
	var names []string
	for bit := 0; bit <= last; bit++ {
		if bounding&(1<<bit) != 0 {
			continue
		}
		name := known[bit]
		if name == "" {
			name = fmt.Sprintf("capability %d", bit)
		}
		names = append(names, name)
	}
	return names
}

func checkStorage(f Facts) Finding {
	finding := Finding{Name: "storage driver", State: OK, Detail: f.Engine.StorageDriver}
	switch f.Engine.StorageDriver {
	case "overlay2", "overlayfs":
	case "fuse-overlayfs":
		finding.Detail += " (nodes are told to use overlayfs on their volume)"
	default:
		finding.State = Note
		finding.Detail += " is slow or untested"
		finding.Fix = `set "storage-driver": "overlay2" in /etc/docker/daemon.json`
	}
	return finding
}

func checkCgroup(f Facts) Finding {
	finding := Finding{Name: "cgroup", State: OK, Detail: fmt.Sprintf("v%s, driver %s", f.Engine.CgroupVersion, f.Engine.CgroupDriver)}
	if len(f.CgroupMissing) > 0 {
		finding.State = Missing
		finding.Detail = fmt.Sprintf("the cgroup controllers %s are not mounted under /sys/fs/cgroup", strings.Join(f.CgroupMissing, ", "))
		finding.Fix = "mount them, as `apt-get install cgroupfs-mount && cgroupfs-mount` does"
	}
	return finding
}

func checkMemory(f Facts, purpose Purpose) Finding {
	finding := Finding{Name: "memory", State: OK, Detail: gibibytes(f.MemoryBytes)}
	if f.MemoryBytes < smallestMemory*roundingPercent/100 {
		finding.State = Missing
		finding.Detail += fmt.Sprintf(" is less than the %s a %s needs", gibibytes(smallestMemory), purpose)
		finding.Fix = "use a machine with more memory"
	}
	return finding
}

// SpaceNeeded returns the free space in bytes that a purpose needs, with and without a filled cache.
func SpaceNeeded(purpose Purpose, warm bool) uint64 {
	switch {
	case purpose == ForTest && warm:
		return warmTestSpace
	case purpose == ForTest:
		return testSpace
	case warm:
		return warmLabSpace
	default:
		return coldLabSpace
	}
}

func checkSpace(f Facts, purpose Purpose) Finding {
	need := SpaceNeeded(purpose, f.CacheWarm)
	state := "nothing built yet"
	if f.CacheWarm {
		state = "images built before"
	}
	var enough []string
	for _, space := range f.Space {
		if space.Free < need {
			return Finding{Name: "disk space", State: Missing,
				Detail: fmt.Sprintf("%s free under %s, and %s are needed (%s)", gibibytes(space.Free), strings.Join(space.Paths, ", "), gibibytes(need), state),
				Fix:    "free space there, or point XDG_CACHE_HOME, XDG_STATE_HOME, TMPDIR or the engine's data-root to a larger disk"}
		}
		enough = append(enough, fmt.Sprintf("%s free under %s", gibibytes(space.Free), strings.Join(space.Paths, ", ")))
	}
	return Finding{Name: "disk space", State: OK, Detail: strings.Join(enough, "; ")}
}

func checkBrowser(f Facts) Finding {
	if f.Tools["chromium"] || f.Tools["google-chrome"] {
		return Finding{Name: "browser", State: OK, Detail: "found, for picture checks of reports"}
	}
	return Finding{Name: "browser", State: Note, Detail: "no chromium in PATH; only picture checks of reports want it", Fix: "apt-get install chromium"}
}

func gibibytes(bytes uint64) string {
	return fmt.Sprintf("%.1f GiB", float64(bytes)/float64(gibibyte))
}
