package driver

import (
	"os"
	"path/filepath"
	"strconv"
	"testing"

	"ptah.run/ptah/qualification/evidence/driverload"
)

const (
	oneProcess  = "4242 (a) b (c) S 1 4242 4242 0 -1 4194560 1 2 3 4 150 50 20 30 20 0 9 0 100 1000000 256 18446744073709551615 0\n"
	pressure    = "some avg10=1.00 avg60=2.00 avg300=3.00 total=2500000\nfull avg10=0.00 avg60=0.00 avg300=0.00 total=7\n"
	hybrid      = "8:memory:/a/b\n2:cpu,cpuacct:/a\n1:name=systemd:/x\n0::/y\n"
	hybridMount = "30 20 0:26 / /sys/fs/cgroup/cpu,cpuacct rw,nosuid shared:5 - cgroup cgroup rw,cpu,cpuacct\n" +
		"31 20 0:27 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n" +
		"32 20 0:28 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw\n"
	unified      = "0::/user.slice/run.scope\n"
	unifiedMount = "32 20 0:28 / /sys/fs/cgroup rw shared:9 - cgroup2 cgroup2 rw,nsdelegate\n"
)

func TestWhatTheKernelSaysIsRead(t *testing.T) {
	if s, ok := parseStat([]byte(oneProcess)); !ok || s.seconds != 2.5 || s.pages != 256 {
		t.Errorf("%+v, %v", s, ok)
	}
	for _, bad := range []string{"", "1 (a", "1 (a) S 1", "1 (a) S 1 1 1 0 -1 4 1 2 3 4 x 50 20 30 20 0 9 0 100 1000000 256 18\n", "1 (a) S 1 1 1 0 -1 4 1 2 3 4 1 50 20 30 20 0 9 0 100 1000000 -1 18\n"} {
		if s, ok := parseStat([]byte(bad)); ok {
			t.Errorf("%q reads as %+v", bad, s)
		}
	}
	if total, ok := parsePressure([]byte(pressure)); !ok || total != 2.5 {
		t.Errorf("%v, %v", total, ok)
	}
	for _, bad := range []string{"", "full total=3\n", "some avg10=1\n", "some total=x\n"} {
		if total, ok := parsePressure([]byte(bad)); ok {
			t.Errorf("%q reads as %v", bad, total)
		}
	}
	if c := counter([]byte("a 1\nb 2 3\nnr_throttled 7\n"), "nr_throttled"); c == nil || *c != 7 {
		t.Errorf("%v", c)
	}
	if counter([]byte("a 1\n"), "b") != nil || counter([]byte("a x\n"), "a") != nil || counter([]byte("a -1\n"), "a") != nil || scaled(nil, "a", 1) != nil {
		t.Error("a counter that is not there reads as a number")
	}
	for text, want := range map[string]float64{"150000 100000\n": 1.5, "max 100000": 0, "-1\n 100000\n": 0, "": 0, "5 0": 0} {
		if got := parseMax([]byte(text)); got != want {
			t.Errorf("quota %q reads as %v", text, got)
		}
	}
	for text, want := range map[string]int64{"1073741824\n": 1 << 30, "max\n": 0, "9223372036854771712\n": 0, "": 0} {
		if got := limit([]byte(text)); got != want {
			t.Errorf("limit %q reads as %v", text, got)
		}
	}
}

func TestTheCgroupIsFoundWhereItIsMounted(t *testing.T) {
	cases := map[string]struct {
		membership, mounts string
		want               cgroup
	}{
		"the first version beside the second": {hybrid, hybridMount, cgroup{"v1", "/sys/fs/cgroup/cpu,cpuacct/a", "/sys/fs/cgroup/memory/a/b"}},
		"the second version alone":            {unified, unifiedMount, cgroup{"v2", "/sys/fs/cgroup/user.slice/run.scope", "/sys/fs/cgroup/user.slice/run.scope"}},
		"a part of the hierarchy":             {"0::/pod/box\n", "1 2 0:1 /pod /sys/fs/cgroup rw - cgroup2 cgroup rw\n", cgroup{"v2", "/sys/fs/cgroup/box", "/sys/fs/cgroup/box"}},
		"a path that leads outside":           {"0::/../../etc\n", unifiedMount, cgroup{"v2", "/sys/fs/cgroup/etc", "/sys/fs/cgroup/etc"}},
		"nothing mounted":                     {unified, "", cgroup{}},
		"no membership":                       {"", hybridMount[100:], cgroup{}},
		"a line that is none":                 {"hello", "hello\n - \n", cgroup{}},
	}
	for name, test := range cases {
		if got := findCgroup([]byte(test.membership), []byte(test.mounts)); got != test.want {
			t.Errorf("%s: %+v, want %+v", name, got, test.want)
		}
	}
}

// kernel writes files as a kernel shows them, for this process and one child.
func kernel(t *testing.T, files map[string]string) string {
	t.Helper()
	root := t.TempDir()
	own := "/proc/" + strconv.Itoa(os.Getpid())
	all := map[string]string{own + "/stat": oneProcess, own + "/task/1/children": "77 ", own + "/task/2/children": "",
		"/proc/77/stat": oneProcess, "/proc/77/task/77/children": "77 78", "/proc/self/stat": oneProcess}
	for name, content := range files {
		all[name] = content
	}
	for name, content := range all {
		path := filepath.Join(root, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return root
}

func TestBothVersionsOfCgroupsAreRead(t *testing.T) {
	for version, files := range map[string]map[string]string{
		"v1": {"/proc/self/cgroup": hybrid, "/proc/self/mountinfo": hybridMount,
			"/sys/fs/cgroup/cpu,cpuacct/a/cpu.stat":         "nr_periods 5\nnr_throttled 2\nthrottled_time 1500000000\n",
			"/sys/fs/cgroup/cpu,cpuacct/a/cpu.cfs_quota_us": "200000\n", "/sys/fs/cgroup/cpu,cpuacct/a/cpu.cfs_period_us": "100000\n",
			"/sys/fs/cgroup/memory/a/b/memory.limit_in_bytes": "1024\n", "/sys/fs/cgroup/memory/a/b/memory.oom_control": "under_oom 0\noom_kill 3\n"},
		"v2": {"/proc/self/cgroup": unified, "/proc/self/mountinfo": unifiedMount,
			"/sys/fs/cgroup/user.slice/run.scope/cpu.stat": "usage_usec 9\nthrottled_usec 1500000\n", "/sys/fs/cgroup/user.slice/run.scope/cpu.max": "200000 100000\n",
			"/sys/fs/cgroup/user.slice/run.scope/memory.max": "1024\n", "/sys/fs/cgroup/user.slice/run.scope/memory.events": "oom 4\noom_kill 3\n"},
	} {
		files["/proc/pressure/cpu"], files["/proc/pressure/memory"], files["/proc/pressure/io"] = pressure, pressure, pressure
		machine := NewMachine(kernel(t, files))
		var start driverload.Start
		machine.Describe(&start)
		if start.Cgroup != version || start.Quota != 2 || start.Memory != 1024 || !start.Pressure || !start.Children || start.Problem != "" {
			t.Errorf("%s: %+v", version, start)
		}
		var sample driverload.Sample
		machine.Read(&sample)
		if sample.Throttled == nil || *sample.Throttled != 1.5 || sample.Killed == nil || *sample.Killed != 3 || sample.Pressure == nil || sample.Pressure.IO != 2.5 {
			t.Errorf("%s: %+v", version, sample)
		}
		if sample.Processes != 2 || sample.CPU != 5 || sample.Memory != 512*int64(os.Getpagesize()) {
			t.Errorf("%s: %+v", version, sample)
		}
	}
}

func TestAMachineThatSaysNothingIsNotZero(t *testing.T) {
	machine := NewMachine(t.TempDir())
	var start driverload.Start
	machine.Describe(&start)
	var sample driverload.Sample
	machine.Read(&sample)
	if sample.Throttled != nil || sample.Killed != nil || sample.Pressure != nil || sample.Processes != 0 || start.Problem == "" || start.Pressure || start.Children {
		t.Errorf("%+v, %+v", start, sample)
	}
}

func FuzzKernel(f *testing.F) {
	f.Add([]byte(oneProcess), []byte(hybrid), []byte(hybridMount))
	f.Add([]byte(pressure), []byte(unified), []byte(unifiedMount))
	f.Add([]byte("nr_throttled 7\n"), []byte("0::/\n"), []byte("max 100000"))
	f.Fuzz(func(t *testing.T, a, b, c []byte) {
		if s, ok := parseStat(a); ok && (s.seconds < 0 || s.pages < 0) {
			t.Fatalf("%+v", s)
		}
		if total, ok := parsePressure(a); ok && total < 0 {
			t.Fatal(total)
		}
		if parseMax(c) < 0 || limit(a) < 0 {
			t.Fatal("a negative limit")
		}
		for _, pid := range parsePIDs(b) {
			if pid <= 0 {
				t.Fatal(pid)
			}
		}
		if found := findCgroup(b, c); found.version == "" && found != (cgroup{}) {
			t.Fatalf("%+v", found)
		}
		counter(a, "nr_throttled")
	})
}
