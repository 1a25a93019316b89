package lab

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/v1/random"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/jackc/pgx/v5"
	"github.com/moby/moby/client"

	"ptah.run/ptah/qualification/lab/catalog"
	"ptah.run/ptah/qualification/lab/cluster"
	"ptah.run/ptah/qualification/lab/engine"
	"ptah.run/ptah/qualification/lab/journal"
	"ptah.run/ptah/qualification/lab/progress"
	"ptah.run/ptah/qualification/lab/source"
)

// containersVariable switches the tests on that start containers of the lab's real images.
const containersVariable = "PTAH_TEST_CONTAINERS"

func connect(t *testing.T) *engine.Engine {
	t.Helper()
	if os.Getenv(containersVariable) != "1" {
		t.Skipf("starts containers; set %s=1", containersVariable)
	}
	connection, err := engine.Connect(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = connection.Close() })
	return connection
}

// parts makes the network, the registry and the database of a lab without a cluster.
func parts(ctx context.Context, e *engine.Engine, id string) (*folder, *Description, error) {
	dir, err := Dir(id)
	if err != nil {
		return nil, nil, err
	}
	lock, err := lockFolder(dir)
	if err != nil {
		return nil, nil, err
	}
	f, err := openFolder(id, dir, lock)
	if err != nil {
		return nil, nil, err
	}
	repository, err := FindRepository(".")
	if err != nil {
		return f, nil, err
	}
	images, err := OpenImages(repository, source.ModulesName, progress.New(os.Stderr))
	if err != nil {
		return f, nil, err
	}
	description := &Description{ID: id, Images: map[string]ImageDescription{}}
	for _, role := range []catalog.Role{catalog.Registry, catalog.PostgreSQL} {
		if description.Images[string(role)], err = images.Prepare(ctx, e, role, ""); err != nil {
			return f, nil, err
		}
	}
	made, err := f.prepare(registryName(id)+":5000", registryName(id), nil)
	if err != nil {
		return f, nil, err
	}
	if err := f.makeNetwork(ctx, e); err != nil {
		return f, nil, err
	}
	if description.Registry, err = f.startRegistry(ctx, description.Images["registry"].Reference, 0); err != nil {
		return f, nil, err
	}
	database, err := f.startDatabase(ctx, PostgreSQL, description.Images["postgresql"].Reference, made.databasePassword, 0)
	description.Databases = []DatabaseDescription{database}
	return f, description, err
}

// leftovers returns what the engine and the disk still hold of a lab.
func leftovers(t *testing.T, e *engine.Engine, id string) []string {
	t.Helper()
	ctx := context.Background()
	var left []string
	for _, label := range []string{Label + "=" + id, cluster.Label + "=" + clusterName(id)} {
		containers, err := e.Client().ContainerList(ctx, client.ContainerListOptions{All: true, Filters: make(client.Filters).Add("label", label)})
		if err != nil {
			t.Fatal(err)
		}
		for _, item := range containers.Items {
			left = append(left, "container "+item.Names[0])
		}
	}
	networks, err := e.Client().NetworkList(ctx, client.NetworkListOptions{Filters: make(client.Filters).Add("name", networkName(id))})
	if err != nil {
		t.Fatal(err)
	}
	for _, item := range networks.Items {
		left = append(left, "network "+item.Name)
	}
	dir, err := Dir(id)
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range append([]string{"lab.json", "journal.jsonl"}, secrets...) {
		if _, err := os.Stat(filepath.Join(dir, path)); err == nil {
			left = append(left, "file "+path)
		}
	}
	return left
}

func volumes(t *testing.T, e *engine.Engine) map[string]bool {
	t.Helper()
	list, err := e.Client().VolumeList(context.Background(), client.VolumeListOptions{Filters: make(client.Filters).Add("dangling", "true")})
	if err != nil {
		t.Fatal(err)
	}
	names := map[string]bool{}
	for _, volume := range list.Items {
		names[volume.Name] = true
	}
	return names
}

func TestTheRegistryTakesImagesFromItsAccountOverTLSAndFromNobodyElse(t *testing.T) {
	e := connect(t)
	t.Setenv("XDG_STATE_HOME", t.TempDir())
	ctx := context.Background()
	const id = "test-parts"
	f, description, err := parts(ctx, e, id)
	defer func() {
		if f != nil {
			if err := f.close(); err != nil {
				t.Error(err)
			}
		}
		if _, err := Down(ctx, id, true); err != nil {
			t.Error(err)
		}
		if left := leftovers(t, e, id); len(left) != 0 {
			t.Errorf("left: %v", left)
		}
	}()
	if err != nil {
		t.Fatal(err)
	}
	t.Run("push and pull", func(t *testing.T) { checkRegistry(t, ctx, description) })
	t.Run("every statement is journalled with who sent it", func(t *testing.T) { checkStatements(t, ctx, description.Databases[0]) })
	t.Run("only this machine reaches the ports", func(t *testing.T) { checkAddresses(t, ctx, e, id) })
}

func checkRegistry(t *testing.T, ctx context.Context, description *Description) {
	image, err := random.Image(1000, 1)
	if err != nil {
		t.Fatal(err)
	}
	digest, err := PushImage(ctx, description.Registry, "test/image", image)
	if err != nil {
		t.Fatal(err)
	}
	reference, err := name.NewDigest(description.Registry.LocalHost + "/test/image@" + digest)
	if err != nil {
		t.Fatal(err)
	}
	options, err := RemoteOptions(ctx, description.Registry)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := remote.Image(reference, options...); err != nil {
		t.Errorf("pull with the account: %v", err)
	}
	if _, err := remote.Image(reference, append(options, remote.WithAuth(authn.Anonymous))...); err == nil {
		t.Error("pulled without an account")
	}
	if _, err := remote.Image(reference, append(options, remote.WithAuth(&authn.Basic{Username: RegistryUser, Password: "wrong"}))...); err == nil {
		t.Error("pulled with a wrong password")
	}
	if _, err := remote.Image(reference); err == nil || !strings.Contains(err.Error(), "certificate") {
		t.Errorf("without the lab's authority: %v", err)
	}
}

func checkStatements(t *testing.T, ctx context.Context, database DatabaseDescription) {
	password, err := os.ReadFile(database.AdminPasswordFile)
	if err != nil {
		t.Fatal(err)
	}
	address := PostgreSQLURL(database.LocalHost, database.LocalPort, database.AdminUser, string(password), database.AdminDatabase)
	connection, err := pgx.Connect(ctx, address+"&application_name=witness")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = connection.Close(ctx) }()
	if _, err := connection.Exec(ctx, "SELECT 'the statement to find'"); err != nil {
		t.Fatal(err)
	}
	if !journalled(t, database.StatementLog, "the statement to find", "witness") {
		t.Errorf("%s does not hold the statement", database.StatementLog)
	}
	if journalled(t, database.StatementLog, "a statement nobody sent", "witness") {
		t.Error("the journal holds what nobody sent")
	}
	if other, err := pgx.Connect(ctx, PostgreSQLURL(database.LocalHost, database.LocalPort, database.AdminUser, "wrong", "postgres")); err == nil {
		_ = other.Close(ctx)
		t.Error("logged in with a wrong password")
	}
}

// journalled looks for a statement of an application; the server's log collector may be a moment behind.
func journalled(t *testing.T, path, statement, application string) bool {
	t.Helper()
	for range 20 {
		file, err := os.Open(path)
		if err != nil {
			t.Fatal(err)
		}
		scanner := bufio.NewScanner(file)
		for scanner.Scan() {
			var line struct {
				Message string `json:"message"`
				Name    string `json:"application_name"`
			}
			if json.Unmarshal(scanner.Bytes(), &line) == nil && strings.Contains(line.Message, statement) && line.Name == application {
				_ = file.Close()
				return true
			}
		}
		_ = file.Close()
		time.Sleep(50 * time.Millisecond)
	}
	return false
}

func checkAddresses(t *testing.T, ctx context.Context, e *engine.Engine, id string) {
	list, err := e.Client().ContainerList(ctx, client.ContainerListOptions{Filters: make(client.Filters).Add("label", Label+"="+id)})
	if err != nil || len(list.Items) != 2 {
		t.Fatalf("%d containers, %v", len(list.Items), err)
	}
	for _, item := range list.Items {
		for _, port := range item.Ports {
			if port.IP.IsValid() && !port.IP.IsLoopback() {
				t.Errorf("%s listens on %s", item.Names[0], port.IP)
			}
		}
	}
}

// TestHelperMakesPartsAndHangs is the process that the test below kills.
func TestHelperMakesPartsAndHangs(t *testing.T) {
	stage := os.Getenv("LAB_TEST_STAGE")
	if stage == "" {
		t.Skip("only run by another test, in a process of its own")
	}
	e := connect(t)
	go func() {
		for {
			dir, _ := Dir("test-crash")
			entries, _, _ := journal.Read(journalPath(dir))
			for _, entry := range entries {
				if string(entry.Event)+" "+entry.Name == stage {
					_ = os.WriteFile(os.Getenv("LAB_TEST_REACHED"), nil, 0o600) // the other process waits for it
				}
			}
			time.Sleep(2 * time.Millisecond)
		}
	}()
	if _, _, err := parts(context.Background(), e, "test-crash"); err != nil {
		t.Fatal(err)
	}
	time.Sleep(time.Minute)
}

func TestALabKilledAtAnyMomentIsRemovedFromItsJournal(t *testing.T) {
	e := connect(t)
	t.Setenv("XDG_STATE_HOME", t.TempDir())
	for _, stage := range []string{"intended ptah-test-crash", "made ptah-test-crash", "intended ptah-test-crash-registry",
		"made ptah-test-crash-registry", "intended ptah-test-crash-postgresql", "made ptah-test-crash-postgresql"} {
		t.Run(stage, func(t *testing.T) {
			before := volumes(t, e)
			reached := filepath.Join(t.TempDir(), "reached")
			command := exec.Command(os.Args[0], "-test.run=^TestHelperMakesPartsAndHangs$")
			command.Env = append(os.Environ(), "LAB_TEST_STAGE="+stage, "LAB_TEST_REACHED="+reached)
			if err := command.Start(); err != nil {
				t.Fatal(err)
			}
			waitForFile(t, reached)
			if err := command.Process.Kill(); err != nil {
				t.Fatal(err)
			}
			_ = command.Wait() // it was killed
			removal, err := Down(context.Background(), "test-crash", true)
			if err != nil || !removal.Found {
				t.Fatalf("got %+v, %v", removal, err)
			}
			if left := leftovers(t, e, "test-crash"); len(left) != 0 {
				t.Errorf("left: %v", left)
			}
			for name := range volumes(t, e) {
				if !before[name] {
					t.Errorf("left the volume %s", name)
				}
			}
		})
	}
}

func waitForFile(t *testing.T, path string) {
	t.Helper()
	for range 6000 {
		if _, err := os.Stat(path); err == nil {
			return
		} else if !errors.Is(err, os.ErrNotExist) {
			t.Fatal(err)
		}
		time.Sleep(10 * time.Millisecond)
	}
	t.Fatal("the other process did not come so far")
}

// TestWhatTheEngineMakesForADeadProcessIsRemovedToo lets the network appear after the removal began, as the engine does
// that finishes a request whose sender was killed.
func TestWhatTheEngineMakesForADeadProcessIsRemovedToo(t *testing.T) {
	e := connect(t)
	t.Setenv("XDG_STATE_HOME", t.TempDir())
	const id = "test-late"
	dir, err := Dir(id)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	book, err := journal.Open(journalPath(dir), time.Now)
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(book.Append(journal.Intended, journal.Network, networkName(id), ""), book.Close()); err != nil {
		t.Fatal(err)
	}
	late := make(chan error, 1)
	go func() {
		time.Sleep(time.Second)
		_, err := e.Client().NetworkCreate(context.Background(), networkName(id), client.NetworkCreateOptions{Driver: "bridge", Labels: map[string]string{Label: id}})
		late <- err
	}()
	removal, err := Down(t.Context(), id, true)
	if err != nil || !removal.Found {
		t.Fatalf("got %+v, %v", removal, err)
	}
	if err := <-late; err != nil {
		t.Fatal(err)
	}
	if left := leftovers(t, e, id); len(left) != 0 {
		t.Errorf("left: %v", left)
	}
}
