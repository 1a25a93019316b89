package doctor

import (
	"bytes"
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"ptah.run/ptah/qualification/lab/engine"
)

const full = uint64(1)<<41 - 1

func fit() Facts {
	tools := map[string]bool{}
	for _, name := range toolNames {
		tools[name] = true
	}
	return Facts{
		OS: "debian", OSName: "Debian", Root: true, Tools: tools, GoVersion: "go1.26.8", Seccomp: true, Bounding: full, LastCap: 40,
		MemoryBytes: 8 * gibibyte, Space: []Space{{Free: 100 * gibibyte, Paths: []string{"/"}}}, ClientVersion: "28 at /usr/bin/docker",
		Engine: engine.Facts{Version: "20.10", StorageDriver: "overlay2", CgroupDriver: "cgroupfs", CgroupVersion: "1", DefaultRuntime: "runc"},
	}
}

func TestEachMissingThingIsNamedWithItsFix(t *testing.T) {
	cases := map[string]struct {
		change  func(*Facts)
		purpose Purpose
		names   []string // of missing findings
		says    string
	}{
		"a fit machine":              {func(*Facts) {}, ForQuickstart, nil, ""},
		"no Go":                      {func(f *Facts) { f.Tools["go"] = false }, ForTest, []string{"Go"}, "go.dev/dl"},
		"an old Go":                  {func(f *Facts) { f.GoVersion = "go1.25.9" }, ForTest, []string{"Go"}, "older than Go 1.26"},
		"a release candidate of Go":  {func(f *Facts) { f.GoVersion = "go1.26rc1" }, ForTest, nil, ""},
		"a newer Go":                 {func(f *Facts) { f.GoVersion = "go2.0" }, ForTest, nil, ""},
		"no compiler for a lab":      {func(f *Facts) { f.Tools["gcc"] = false }, ForLab, []string{"C compiler"}, "apt-get install gcc"},
		"no compiler for tests":      {func(f *Facts) { f.Tools["gcc"], f.Seccomp = false, false }, ForTest, nil, ""},
		"no libseccomp":              {func(f *Facts) { f.Seccomp = false }, ForLab, []string{"libseccomp"}, "libseccomp-dev"},
		"no mmdebstrap":              {func(f *Facts) { f.Tools["mmdebstrap"] = false }, ForTest, []string{"mmdebstrap"}, "apt-get install mmdebstrap"},
		"no docker command":          {func(f *Facts) { f.Tools["docker"] = false }, ForLab, []string{"Docker client"}, "docker.io"},
		"a client that is too new":   {func(f *Facts) { f.ClientError = "client version 1.52 is too new" }, ForLab, []string{"Docker client"}, "too new"},
		"no engine":                  {func(f *Facts) { f.EngineError = "does not answer" }, ForLab, []string{"Docker engine"}, "start dockerd"},
		"no engine, systemd":         {func(f *Facts) { f.EngineError, f.Systemd = "does not answer", true }, ForLab, []string{"Docker engine"}, "systemctl start docker"},
		"no engine installed":        {func(f *Facts) { f.EngineError = "x"; f.Tools["dockerd"] = false }, ForLab, []string{"Docker engine"}, "apt-get install docker.io"},
		"a bounded machine":          {func(f *Facts) { f.Bounding &^= 1 << 24 }, ForLab, []string{"capabilities"}, "CAP_SYS_RESOURCE"},
		"a bounded machine, handled": {func(f *Facts) { f.Bounding &^= 1 << 24; f.Engine.DefaultRuntime = RuntimeName }, ForLab, nil, ""},
		"unmounted cgroups":          {func(f *Facts) { f.CgroupMissing = []string{"memory"} }, ForLab, []string{"cgroup"}, "memory"},
		"a slow storage driver":      {func(f *Facts) { f.Engine.StorageDriver = "vfs" }, ForLab, nil, ""},
		"fuse-overlayfs":             {func(f *Facts) { f.Engine.StorageDriver = "fuse-overlayfs" }, ForLab, nil, ""},
		"little memory":              {func(f *Facts) { f.MemoryBytes = 3 * gibibyte }, ForLab, []string{"memory"}, "3.0 GiB"},
		"memory sold as enough":      {func(f *Facts) { f.MemoryBytes = smallestMemory * 98 / 100 }, ForLab, nil, ""},
		"space just short, cold":     {func(f *Facts) { f.Space[0].Free = coldLabSpace - 1 }, ForLab, []string{"disk space"}, "25.0 GiB are needed"},
		"space just enough, cold":    {func(f *Facts) { f.Space[0].Free = coldLabSpace }, ForLab, nil, ""},
		"space just enough, warm":    {func(f *Facts) { f.Space[0].Free, f.CacheWarm = warmLabSpace, true }, ForLab, nil, ""},
		"space just short, warm":     {func(f *Facts) { f.Space[0].Free, f.CacheWarm = warmLabSpace-1, true }, ForLab, []string{"disk space"}, "XDG_CACHE_HOME"},
		"no browser":                 {func(f *Facts) { f.Tools["chromium"], f.Tools["google-chrome"] = false, false }, ForQuickstart, nil, ""},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			facts := fit()
			c.change(&facts)
			var names []string
			text := ""
			for _, finding := range Unfit(Check(facts, c.purpose)) {
				names = append(names, finding.Name)
				text += finding.Detail + "; " + finding.Fix
				if finding.Fix == "" || strings.Contains(finding.Detail+finding.Fix, "\n") {
					t.Errorf("%q has no fix in one line", finding.Name)
				}
			}
			if strings.Join(names, ",") != strings.Join(c.names, ",") || !strings.Contains(text, c.says) {
				t.Errorf("missing %v (%s), want %v with %q", names, text, c.names, c.says)
			}
		})
	}
}

func TestFixingIsRefusedWhereItIsNotSafe(t *testing.T) {
	cases := map[string]func(*Facts){
		"not Debian": func(f *Facts) { f.OS = "fedora" },
		"not root":   func(f *Facts) { f.Root = false },
	}
	for name, change := range cases {
		t.Run(name, func(t *testing.T) {
			facts := fit()
			facts.Tools["mmdebstrap"] = false
			change(&facts)
			fixer := &Fixer{Out: &bytes.Buffer{}, Process: NewProcess(t.TempDir())}
			var refused *RefusedError
			if err := fixer.Fix(context.Background(), facts, Unfit(Check(facts, ForLab))); !errors.As(err, &refused) {
				t.Errorf("got %v", err)
			}
		})
	}
	fixer := &Fixer{Out: &bytes.Buffer{}}
	if err := fixer.Fix(context.Background(), Facts{OS: "fedora"}, nil); err != nil {
		t.Errorf("with nothing to fix, got %v", err)
	}
}

func TestTheEnginesConfigurationKeepsWhatStoodThere(t *testing.T) {
	cases := map[string]struct{ existing, want, says string }{
		"no file": {"", `{
  "default-runtime": "ptah-bounded",
  "runtimes": {
    "ptah-bounded": {
      "path": "/x"
    }
  }
}
`, ""},
		"another setting and runtime": {`{"data-root":"/big","runtimes":{"kata":{"path":"/k"}}}`, `{
  "data-root": "/big",
  "default-runtime": "ptah-bounded",
  "runtimes": {
    "kata": {
      "path": "/k"
    },
    "ptah-bounded": {
      "path": "/x"
    }
  }
}
`, ""},
		"somebody's default runtime": {`{"default-runtime":"nvidia"}`, "", "nvidia"},
		"no JSON":                    {`{`, "", "nothing was changed"},
		"no object":                  {`[]`, "", "nothing was changed"},
		"runtimes of another kind":   {`{"runtimes":[]}`, "", "nothing was changed"},
		"a default of another kind":  {`{"default-runtime":3}`, "", "nothing was changed"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			got, err := mergeDaemonConfig([]byte(c.existing), "/x")
			if c.says != "" {
				if err == nil || !strings.Contains(err.Error(), c.says) {
					t.Errorf("got %s, %v", got, err)
				}
				return
			}
			if err != nil || string(got) != c.want {
				t.Errorf("got %s, %v", got, err)
			}
			again, err := mergeDaemonConfig(got, "/x")
			if err != nil || string(again) != c.want {
				t.Errorf("a second merge gives %s, %v", again, err)
			}
		})
	}
}

func TestTheOriginalConfigurationIsKeptOnce(t *testing.T) {
	path := filepath.Join(t.TempDir(), "docker", "daemon.json")
	if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, []byte(`{"debug":true}`), 0o644)); err != nil {
		t.Fatal(err)
	}
	fixer := &Fixer{Out: &bytes.Buffer{}}
	for range 2 {
		if err := fixer.writeDaemonConfig(path); err != nil {
			t.Fatal(err)
		}
	}
	kept, err := os.ReadFile(path + keptConfigSuffix)
	if err != nil || string(kept) != `{"debug":true}` {
		t.Errorf("kept %s, %v", kept, err)
	}
	if merged, _ := os.ReadFile(path); !strings.Contains(string(merged), `"debug": true`) || !strings.Contains(string(merged), RuntimeName) {
		t.Errorf("merged %s", merged)
	}
}

// machine is a folder that stands for /proc and /var/run.
func machine(t *testing.T) *Process {
	t.Helper()
	root := t.TempDir()
	p := &Process{StateDir: filepath.Join(root, "state"), RunDir: filepath.Join(root, "run"), ProcDir: filepath.Join(root, "proc")}
	for _, dir := range []string{p.StateDir, filepath.Join(p.RunDir, "docker", "containerd"), filepath.Join(p.RunDir, "docker", "runtime-runc", "moby", "dead"), p.ProcDir} {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	for _, file := range []string{"docker.pid", "docker/containerd/containerd.pid"} {
		if err := os.WriteFile(filepath.Join(p.RunDir, file), []byte("4242"), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return p
}

func addProcess(t *testing.T, p *Process, pid int, name, state string) {
	t.Helper()
	dir := filepath.Join(p.ProcDir, strconv.Itoa(pid))
	if err := errors.Join(os.MkdirAll(dir, 0o755), os.WriteFile(filepath.Join(dir, "comm"), []byte(name+"\n"), 0o644),
		os.WriteFile(filepath.Join(dir, "stat"), []byte(strconv.Itoa(pid)+" ("+name+") "+state+" 1 "+strings.Repeat("0 ", 17)+"777 0\n"), 0o644)); err != nil {
		t.Fatal(err)
	}
}

func TestOnlyWhatNoLivingProcessUsesIsRemoved(t *testing.T) {
	cases := map[string]struct {
		running          map[string]string // name to state
		pid, state, task bool              // what is left: docker.pid, containerd.pid, runtime state
		refused          bool
	}{
		"everything was killed":             {nil, false, false, false, false},
		"another process has the old id":    {map[string]string{"bash": "S"}, false, false, false, false},
		"containerd and shims live":         {map[string]string{"containerd": "S", "containerd-shim": "S"}, false, true, true, false},
		"shims live alone":                  {map[string]string{"containerd-shim": "S"}, false, false, true, false},
		"the engine lives but is deaf":      {map[string]string{"dockerd": "S"}, true, true, true, true},
		"the engine is a zombie of another": {map[string]string{"dockerd": "Z"}, false, false, false, false},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			p := machine(t)
			pid := 4242
			for process, state := range c.running {
				addProcess(t, p, pid, process, state)
				pid++
			}
			if err := p.RemoveLeftovers(); (err != nil) != c.refused {
				t.Fatalf("got %v", err)
			}
			for path, want := range map[string]bool{"docker.pid": c.pid, "docker/containerd/containerd.pid": c.state, "docker/runtime-runc": c.task} {
				if _, err := os.Stat(filepath.Join(p.RunDir, path)); (err == nil) != want {
					t.Errorf("%s is left: %v, want %v", path, err == nil, want)
				}
			}
		})
	}
}

func TestOnlyTheEngineThatWasStartedHereIsStopped(t *testing.T) {
	p := NewProcess(t.TempDir())
	if stopped, err := p.Stop(context.Background()); stopped || err != nil {
		t.Errorf("without a record: %v, %v", stopped, err)
	}
	// A process that reuses the id of a dead engine must live.
	command := exec.Command("sleep", "60")
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = command.Process.Kill(); _ = command.Wait() }()
	ticks, err := p.startTicks(command.Process.Pid)
	if err != nil {
		t.Fatal(err)
	}
	if err := p.writeRecord(engineRecord{PID: command.Process.Pid, StartTicks: ticks + 1}); err != nil {
		t.Fatal(err)
	}
	if stopped, err := p.Stop(context.Background()); stopped || err != nil {
		t.Errorf("with another's process id: %v, %v", stopped, err)
	}
	if _, err := p.startTicks(command.Process.Pid); err != nil {
		t.Fatal("a process of somebody else was ended")
	}
	if err := p.writeRecord(engineRecord{PID: command.Process.Pid, StartTicks: ticks}); err != nil {
		t.Fatal(err)
	}
	if stopped, err := p.Stop(context.Background()); !stopped || err != nil {
		t.Errorf("with the right record: %v, %v", stopped, err)
	}
	if _, err := os.Stat(p.recordFile()); !errors.Is(err, os.ErrNotExist) {
		t.Error("the record is still there")
	}
}

func TestFactsOfThisMachineAreRead(t *testing.T) {
	facts, err := Gather(context.Background(), Paths{Cache: filepath.Join(t.TempDir(), "a", "b"), State: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	if facts.MemoryBytes == 0 || len(facts.Space) == 0 || facts.Space[0].Free == 0 || facts.LastCap < 20 || !facts.Tools["go"] {
		t.Errorf("got %+v", facts)
	}
}

func TestUnmountedControllersAreFound(t *testing.T) {
	root := t.TempDir()
	if got := missingControllers(root); len(got) != 6 {
		t.Errorf("of an empty folder: %v", got)
	}
	for _, controller := range []string{"cpu", "cpuset", "memory", "devices", "freezer", "pids"} {
		if err := errors.Join(os.MkdirAll(filepath.Join(root, controller), 0o755), os.WriteFile(filepath.Join(root, controller, "tasks"), nil, 0o644)); err != nil {
			t.Fatal(err)
		}
	}
	if got := missingControllers(root); len(got) != 0 {
		t.Errorf("of mounted ones: %v", got)
	}
	unified := t.TempDir()
	if err := os.WriteFile(filepath.Join(unified, "cgroup.controllers"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	if got := missingControllers(unified); len(got) != 0 {
		t.Errorf("of version 2: %v", got)
	}
}
