package driver

import (
	"bytes"
	"path"
	"slices"
	"strconv"
	"strings"
)

// ticks is the number of clock ticks in a second in /proc, which is fixed for every program on Linux.
const ticks = 100

// stat is what /proc/PID/stat says about a process.
type stat struct {
	seconds float64 // of processor time, its own and that of children it waited for
	pages   int64   // resident
}

// parseStat reads /proc/PID/stat. The name of the program stands in parentheses and may hold anything.
func parseStat(data []byte) (stat, bool) {
	end := bytes.LastIndexByte(data, ')')
	if end < 0 {
		return stat{}, false
	}
	fields := strings.Fields(string(data[end+1:])) // from the third field on, which is the state
	if len(fields) < 22 {
		return stat{}, false
	}
	var total uint64
	for _, field := range fields[11:15] { // utime, stime, cutime, cstime
		value, err := strconv.ParseUint(field, 10, 48)
		if err != nil {
			return stat{}, false
		}
		total += value
	}
	pages, err := strconv.ParseInt(fields[21], 10, 48)
	if err != nil || pages < 0 {
		return stat{}, false
	}
	return stat{seconds: float64(total) / ticks, pages: pages}, true
}

func parsePIDs(data []byte) []int {
	var pids []int
	for _, field := range strings.Fields(string(data)) {
		if pid, err := strconv.Atoi(field); err == nil && pid > 0 {
			pids = append(pids, pid)
		}
	}
	return pids
}

// counter returns a counter from a file of "name value" lines, and nil where it is not there.
func counter(data []byte, name string) *int64 {
	for line := range strings.Lines(string(data)) {
		fields := strings.Fields(line)
		if len(fields) != 2 || fields[0] != name {
			continue
		}
		if value, err := strconv.ParseInt(fields[1], 10, 64); err == nil && value >= 0 {
			return &value
		}
	}
	return nil
}

// scaled is counter in seconds, of which the file counts so many parts.
func scaled(data []byte, name string, parts float64) *float64 {
	value := counter(data, name)
	if value == nil {
		return nil
	}
	seconds := float64(*value) / parts
	return &seconds
}

// parsePressure returns the total of "some" in a file of pressure stall information, in seconds.
func parsePressure(data []byte) (float64, bool) {
	for line := range strings.Lines(string(data)) {
		fields := strings.Fields(line)
		if len(fields) == 0 || fields[0] != "some" {
			continue
		}
		for _, field := range fields[1:] {
			if text, ok := strings.CutPrefix(field, "total="); ok {
				value, err := strconv.ParseUint(text, 10, 63)
				return float64(value) / 1e6, err == nil
			}
		}
	}
	return 0, false
}

// parseMax returns the processors that a quota and a period grant, 0 where there is no limit.
func parseMax(data []byte) float64 {
	fields := strings.Fields(string(data))
	if len(fields) != 2 {
		return 0
	}
	quota, errQuota := strconv.ParseInt(fields[0], 10, 64) // "max", or -1, is no limit
	period, errPeriod := strconv.ParseInt(fields[1], 10, 64)
	if errQuota != nil || errPeriod != nil || quota <= 0 || period <= 0 {
		return 0
	}
	return float64(quota) / float64(period)
}

// unlimited is from where on a limit of memory is the kernel's word for none.
const unlimited = 1 << 60

// limit returns a limit in bytes, 0 where there is none.
func limit(data []byte) int64 {
	value, err := strconv.ParseInt(strings.TrimSpace(string(data)), 10, 64) // "max" is no limit
	if err != nil || value < 0 || value >= unlimited {
		return 0
	}
	return value
}

// cgroup says where the kernel accounts for this process.
type cgroup struct {
	version     string // v1, v2 or empty
	cpu, memory string // folders
}

// findCgroup reads which cgroup a process is in, and where the hierarchies are mounted. Where the first version has a
// processor controller, that one is in force, whatever else is mounted.
func findCgroup(membership, mounts []byte) cgroup {
	paths := map[string]string{} // controller, empty for the second version, to path in its hierarchy
	for line := range strings.Lines(string(membership)) {
		parts := strings.SplitN(strings.TrimSuffix(line, "\n"), ":", 3)
		if len(parts) != 3 {
			continue
		}
		for _, controller := range strings.Split(parts[1], ",") {
			paths[controller] = parts[2]
		}
	}
	found := cgroup{}
	for line := range strings.Lines(string(mounts)) {
		mount, ok := parseMount(line)
		if !ok {
			continue
		}
		folder := func(controller string) string { return mount.folder(paths[controller]) }
		switch {
		case mount.kind == "cgroup" && slices.Contains(mount.options, "cpu"):
			found.version, found.cpu = "v1", folder("cpu")
		case mount.kind == "cgroup" && slices.Contains(mount.options, "memory"):
			found.memory = folder("memory")
		case mount.kind == "cgroup2" && found.version == "" && paths["cpu"] == "" && paths[""] != "":
			found = cgroup{version: "v2", cpu: folder(""), memory: folder("")}
		}
	}
	if found.version == "" {
		return cgroup{}
	}
	return found
}

// mount is one line of /proc/self/mountinfo.
type mount struct {
	root, point, kind string
	options           []string // of the file system
}

func parseMount(line string) (mount, bool) {
	before, after, ok := strings.Cut(line, " - ")
	first, second := strings.Fields(before), strings.Fields(after)
	if !ok || len(first) < 5 || len(second) < 3 {
		return mount{}, false
	}
	return mount{root: first[3], point: first[4], kind: second[0], options: strings.Split(second[2], ",")}, true
}

// folder is where a path of the hierarchy lies. A mount may show only a part of the hierarchy.
func (m mount) folder(in string) string {
	if rest, below := strings.CutPrefix(in, m.root); below && m.root != "/" {
		in = rest
	}
	return path.Join(m.point, path.Clean("/"+in))
}
