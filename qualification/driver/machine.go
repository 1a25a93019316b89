package driver

import (
	"os"
	"path/filepath"
	"strconv"

	"ptah.run/ptah/qualification/evidence/driverload"
)

// linux reads /proc and /sys below a root. On another system the files are missing, and nothing is read.
type linux struct {
	root   string
	pid    int
	page   int64
	cgroup cgroup
}

// NewMachine returns the machine whose /proc and /sys lie below root, which is "/" for this one.
func NewMachine(root string) Machine {
	m := &linux{root: root, pid: os.Getpid(), page: int64(os.Getpagesize())}
	m.cgroup = findCgroup(m.file("/proc/self/cgroup"), m.file("/proc/self/mountinfo"))
	return m
}

// file returns the content of a file of the kernel, and nothing where it cannot be read.
func (m *linux) file(path string) []byte {
	data, err := os.ReadFile(filepath.Join(m.root, path))
	if err != nil {
		return nil
	}
	return data
}

// Describe fills in what the kernel says of this process's cgroup and of what can be read.
func (m *linux) Describe(start *driverload.Start) {
	start.Cgroup = m.cgroup.version
	start.Pressure = m.file("/proc/pressure/cpu") != nil
	_, start.Children = m.children(m.pid)
	switch {
	case m.file("/proc/self/stat") == nil:
		start.Problem = "the kernel offers no account of processes here"
	case m.cgroup.version == "":
		start.Problem = "the cgroup of this process was not found"
	}
	switch m.cgroup.version {
	case "v2":
		start.Quota = parseMax(m.file(m.cgroup.cpu + "/cpu.max"))
		start.Memory = limit(m.file(m.cgroup.memory + "/memory.max"))
	case "v1":
		start.Quota = parseMax([]byte(string(m.file(m.cgroup.cpu+"/cpu.cfs_quota_us")) + " " + string(m.file(m.cgroup.cpu+"/cpu.cfs_period_us"))))
		start.Memory = limit(m.file(m.cgroup.memory + "/memory.limit_in_bytes"))
	}
}

// Read fills in what the kernel says now.
func (m *linux) Read(sample *driverload.Sample) {
	m.readProcesses(sample)
	switch m.cgroup.version {
	case "v2":
		sample.Throttled = scaled(m.file(m.cgroup.cpu+"/cpu.stat"), "throttled_usec", 1e6)
		sample.Killed = counter(m.file(m.cgroup.memory+"/memory.events"), "oom_kill")
	case "v1":
		sample.Throttled = scaled(m.file(m.cgroup.cpu+"/cpu.stat"), "throttled_time", 1e9)
		sample.Killed = counter(m.file(m.cgroup.memory+"/memory.oom_control"), "oom_kill")
	}
	cpu, okCPU := parsePressure(m.file("/proc/pressure/cpu"))
	memory, okMemory := parsePressure(m.file("/proc/pressure/memory"))
	io, okIO := parsePressure(m.file("/proc/pressure/io"))
	if okCPU && okMemory && okIO {
		sample.Pressure = &driverload.Pressure{CPU: cpu, Memory: memory, IO: io}
	}
}

// readProcesses adds up this process and its living descendants. Those that ended are in the account of whoever waited
// for them.
func (m *linux) readProcesses(sample *driverload.Sample) {
	queue, seen := []int{m.pid}, map[int]bool{}
	for len(queue) > 0 {
		pid := queue[0]
		queue = queue[1:]
		if seen[pid] {
			continue
		}
		seen[pid] = true
		stat, ok := parseStat(m.file("/proc/" + strconv.Itoa(pid) + "/stat"))
		if !ok {
			continue
		}
		sample.Processes++
		sample.CPU += stat.seconds
		sample.Memory += stat.pages * m.page
		children, _ := m.children(pid)
		queue = append(queue, children...)
	}
}

// children returns the children of a process, and whether the kernel tells them.
func (m *linux) children(pid int) ([]int, bool) {
	tasks, err := filepath.Glob(filepath.Join(m.root, "proc", strconv.Itoa(pid), "task", "*", "children"))
	if err != nil || len(tasks) == 0 {
		return nil, false
	}
	var pids []int
	for _, task := range tasks {
		data, err := os.ReadFile(task)
		if err != nil {
			continue // the thread ended
		}
		pids = append(pids, parsePIDs(data)...)
	}
	return pids, true
}
