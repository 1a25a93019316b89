package lab

import (
	"context"
	"errors"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"ptah.run/ptah/qualification/lab/catalog"
	"ptah.run/ptah/qualification/lab/cluster"
	"ptah.run/ptah/qualification/lab/doctor"
	"ptah.run/ptah/qualification/lab/engine"
	"ptah.run/ptah/qualification/lab/journal"
)

// away points everything a lab writes into folders of the test, and the engine to an address where none is.
func away(t *testing.T) (state string) {
	t.Helper()
	state = t.TempDir()
	t.Setenv("XDG_STATE_HOME", state)
	t.Setenv("XDG_CACHE_HOME", t.TempDir())
	t.Setenv("DOCKER_HOST", "unix://"+filepath.Join(t.TempDir(), "docker.sock"))
	return state
}

func TestWhatCannotBeALabIsRefusedInOneSentenceAndNothingIsWritten(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = listener.Close() }()
	taken := listener.Addr().(*net.TCPAddr).Port
	var usage *UsageError
	var unknown *catalog.UnknownImageError
	var unreachable *engine.UnreachableError
	var port *PortInUseError
	cases := map[string]struct {
		options Options
		target  any
		says    string
	}{
		"no engine":               {Options{}, &unreachable, "doctor --fix"},
		"two control planes":      {Options{ControlPlanes: 2}, &usage, "1 or 3 control planes"},
		"too many workers":        {Options{Workers: 10}, &usage, "0 to 9 workers"},
		"an unusable id":          {Options{ID: "A/B"}, &usage, "not usable"},
		"an id that is too long":  {Options{ID: strings.Repeat("a", 25)}, &usage, "not usable"},
		"an unknown source":       {Options{Source: "internet"}, &usage, "modules or registry"},
		"an unknown Kubernetes":   {Options{Kubernetes: "1.20"}, &unknown, `"1.20"`},
		"a port in use":           {Options{RegistryPort: taken}, &port, "--registry-port"},
		"a port that is none":     {Options{APIPort: 70000}, &usage, "no port"},
		"a folder without a lab":  {Options{Repository: t.TempDir()}, new(*os.PathError), CatalogPath},
		"the API's port in use":   {Options{APIPort: taken}, &port, "--api-port"},
		"the database's is taken": {Options{DatabasePort: taken}, &port, "--database-port"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			state := away(t)
			if c.options.Repository == "" {
				c.options.Repository = "../.."
			}
			_, err := Up(context.Background(), c.options)
			if err == nil || !errors.As(err, c.target) || !strings.Contains(err.Error(), c.says) || strings.Contains(err.Error(), "\n") {
				t.Errorf("got %v, want %T that says %q", err, c.target, c.says)
			}
			if entries, _ := os.ReadDir(state); len(entries) != 0 {
				t.Errorf("it wrote %v", entries)
			}
		})
	}
}

func TestAFolderThatCannotBeWrittenIsNamedWithTheRemedy(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	away(t)
	t.Setenv("XDG_CACHE_HOME", file)
	if _, err := Up(context.Background(), Options{Repository: "../.."}); err == nil || !strings.Contains(err.Error(), "XDG_CACHE_HOME") {
		t.Errorf("the cache: %v", err)
	}
	if _, err := lockFolder(filepath.Join(file, "labs", "lab")); err == nil || !strings.Contains(err.Error(), "XDG_STATE_HOME") {
		t.Errorf("the state: %v", err)
	}
}

func TestTooLittleSpaceIsSaidWithTheFiguresAndThePlace(t *testing.T) {
	for warm, enough := range map[bool]uint64{false: doctor.SpaceNeeded(doctor.ForLab, false), true: doctor.SpaceNeeded(doctor.ForLab, true)} {
		if err := checkSpace([]doctor.Space{{Free: enough, Paths: []string{"/here"}}}, warm); err != nil {
			t.Errorf("just enough is refused: %v", err)
		}
		var insufficient *InsufficientSpaceError
		err := checkSpace([]doctor.Space{{Free: enough, Paths: []string{"/here"}}, {Free: enough - 1, Paths: []string{"/there"}}}, warm)
		if !errors.As(err, &insufficient) || !strings.Contains(err.Error(), "/there") || !strings.Contains(err.Error(), "GiB") {
			t.Errorf("just too little gives %v", err)
		}
	}
}

func TestOneProcessAtATimeTakesALabUpOrDown(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "labs", "lab")
	lock, err := lockFolder(dir)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := lockFolder(dir); err == nil || !strings.Contains(err.Error(), "another process") {
		t.Errorf("got %v", err)
	}
	if other, err := lockFolder(filepath.Join(filepath.Dir(dir), "other")); err != nil {
		t.Errorf("another lab is locked too: %v", err)
	} else {
		_ = other.Close()
	}
	if err := lock.Close(); err != nil {
		t.Fatal(err)
	}
	if lock, err = lockFolder(dir); err != nil {
		t.Errorf("after the first has ended: %v", err)
	} else {
		_ = lock.Close()
	}
}

func TestALabThatIsUpIsNotMadeTwice(t *testing.T) {
	dir := t.TempDir()
	j, err := journal.Open(journalPath(dir), clock)
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(j.Append(journal.Ready, journal.Lab, "lab", ""), j.Close()); err != nil {
		t.Fatal(err)
	}
	var up *AlreadyUpError
	if err := clearUnfinished(context.Background(), nil, Options{ID: "lab"}, dir); !errors.As(err, &up) {
		t.Errorf("got %v", err)
	}
}

func TestCredentialsLieWhereTheRemovalLooksForThem(t *testing.T) {
	dir := t.TempDir()
	lock, err := lockFolder(filepath.Join(t.TempDir(), "lab"))
	if err != nil {
		t.Fatal(err)
	}
	f, err := openFolder("lab", dir, lock)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = f.close() }()
	spec := cluster.Spec{Name: "ptah-lab", ControlPlanes: 1, AuditRoot: f.path("audit")}
	made, err := f.prepare("ptah-lab-registry:5000", "ptah-lab-registry", spec.AuditDirs())
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range secrets {
		if err := os.RemoveAll(f.path(name)); err != nil {
			t.Fatal(err)
		}
	}
	err = filepath.WalkDir(dir, func(path string, entry os.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		content, err := os.ReadFile(path)
		for _, secret := range []string{made.registryPassword, made.databasePassword, "PRIVATE KEY", "$2a$"} {
			if strings.Contains(string(content), secret) {
				t.Errorf("%s holds a credential and would stay", path)
			}
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	entries, _, err := journal.Read(journalPath(dir))
	if err != nil || len(journal.Objects(entries, journal.Secret)) != len(secrets) {
		t.Errorf("journalled %v, %v", entries, err)
	}
}

func TestDownOfNothingSaysSo(t *testing.T) {
	away(t)
	removal, err := Down(context.Background(), DefaultID, false)
	if err != nil || removal.Found {
		t.Errorf("got %+v, %v", removal, err)
	}
	var usage *UsageError
	if _, err := Down(context.Background(), "../etc", false); !errors.As(err, &usage) {
		t.Errorf("an id that leads elsewhere: %v", err)
	}
}

func TestDownWithoutAnEngineRefusesWhereSomethingMayBeLeft(t *testing.T) {
	away(t)
	dir, err := Dir("lab")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	var unreachable *engine.UnreachableError
	if _, err := Down(context.Background(), "lab", false); !errors.As(err, &unreachable) {
		t.Errorf("got %v", err)
	}
	if _, err := os.Stat(dir); err != nil {
		t.Error("the folder that says what to remove is gone")
	}
}

func TestWhatAFailedLabLoggedIsKeptAsideWithoutItsCredentials(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "labs", "lab")
	for _, file := range []string{"logs/kind.log", "audit/a/audit.log", "database/statements.json", "journal.jsonl", "kubeconfig", "credentials/x"} {
		path := filepath.Join(dir, file)
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, []byte("x"), 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	kept, err := keepAside(dir)
	if err != nil {
		t.Fatal(err)
	}
	for file, want := range map[string]bool{"logs/kind.log": true, "audit/a/audit.log": true, "database/statements.json": true, "journal.jsonl": true, "kubeconfig": false, "credentials": false} {
		if _, err := os.Stat(filepath.Join(kept, file)); (err == nil) != want {
			t.Errorf("%s is kept: %v, want %v", file, err == nil, want)
		}
	}
	other := filepath.Join(filepath.Dir(kept), "lab-2-20300101T000000.000")
	if err := os.MkdirAll(other, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := removeKept(dir); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(kept); !errors.Is(err, os.ErrNotExist) {
		t.Error("the kept logs are still there")
	}
	if _, err := os.Stat(other); err != nil {
		t.Error("the logs of another lab are gone")
	}
}

func TestSeveralErrorsAreOneLineAndStayThemselves(t *testing.T) {
	first, second := errors.New("one\ntwo"), context.Canceled
	joined := problems{first, nil, second}
	if joined.Error() != "one two; context canceled" || !errors.Is(joined, second) || !errors.Is(joined, first) {
		t.Errorf("got %q", joined)
	}
}

func TestOnlyCommandsOfTheLabAreEnded(t *testing.T) {
	if holds([]byte("A=1\x00"+cluster.NetworkVariable+"=ptah-lab2\x00"), []byte(cluster.NetworkVariable+"=ptah-lab")) {
		t.Error("a command of another lab would be ended")
	}
	if !holds([]byte("A=1\x00"+cluster.NetworkVariable+"=ptah-lab\x00B=2"), []byte(cluster.NetworkVariable+"=ptah-lab")) {
		t.Error("a command of the lab would live on")
	}
}

func TestADescriptionIsReadAsItWasWritten(t *testing.T) {
	path := filepath.Join(t.TempDir(), "lab.json")
	want := &Description{ID: "lab", CreatedAt: clock(), Databases: []DatabaseDescription{{Engine: "PostgreSQL", LocalPort: 1}}}
	if err := want.Save(path); err != nil {
		t.Fatal(err)
	}
	got, err := Load(path)
	if err != nil || got.ID != "lab" || got.Databases[0] != want.Databases[0] || !got.CreatedAt.Equal(want.CreatedAt) {
		t.Errorf("got %+v, %v", got, err)
	}
	for name, content := range map[string]string{"no JSON": "{", "no id": "{}"} {
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := Load(path); err == nil {
			t.Errorf("%s is taken for a lab", name)
		}
	}
}

func TestTheRepositoryIsFoundFromAFolderInIt(t *testing.T) {
	found, err := FindRepository("programs/pause")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(filepath.Join(found, CatalogPath)); err != nil {
		t.Error(err)
	}
	var usage *UsageError
	if _, err := FindRepository(t.TempDir()); !errors.As(err, &usage) {
		t.Errorf("outside: %v", err)
	}
}
