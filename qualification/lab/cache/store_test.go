package cache

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

var one = Recipe{Kind: "things", Name: "one", Inputs: map[string]any{"version": 1}}

func open(t *testing.T) *Store {
	t.Helper()
	store, err := Open(t.TempDir(), nil)
	if err != nil {
		t.Fatal(err)
	}
	return store
}

func write(content string) func(context.Context, string) error {
	return func(_ context.Context, dir string) error {
		return os.WriteFile(filepath.Join(dir, "content"), []byte(content), 0o644)
	}
}

func TestWhatWasBuiltOnceIsNotBuiltAgain(t *testing.T) {
	store := open(t)
	dir, err := store.Ensure(context.Background(), one, write("first"))
	if err != nil {
		t.Fatal(err)
	}
	again, err := store.Ensure(context.Background(), one, func(context.Context, string) error {
		t.Error("it was built again")
		return nil
	})
	if err != nil || again != dir {
		t.Errorf("got %s, %v", again, err)
	}
}

func TestAnotherRecipeIsAnotherEntry(t *testing.T) {
	keys := map[string]bool{}
	for _, recipe := range []Recipe{one, {Kind: "things", Name: "one", Inputs: map[string]any{"version": 2}},
		{Kind: "things", Name: "two", Inputs: one.Inputs}, {Kind: "others", Name: "one", Inputs: one.Inputs}} {
		key, err := recipe.Key()
		if err != nil {
			t.Fatal(err)
		}
		keys[key] = true
	}
	if len(keys) != 4 {
		t.Errorf("four recipes gave %d keys", len(keys))
	}
}

func TestAFailedBuildLeavesNothing(t *testing.T) {
	store := open(t)
	broken := errors.New("no compiler")
	_, err := store.Ensure(context.Background(), one, func(ctx context.Context, dir string) error {
		return errors.Join(write("half")(ctx, dir), broken)
	})
	if !errors.Is(err, broken) {
		t.Fatalf("got %v", err)
	}
	if entries, _ := os.ReadDir(filepath.Join(store.Root(), "things")); len(entries) != 0 {
		t.Errorf("left %v", entries)
	}
	if _, err := store.Ensure(context.Background(), one, write("whole")); err != nil {
		t.Errorf("a later build is refused: %v", err)
	}
}

func TestAFolderOfADeadBuildIsRemoved(t *testing.T) {
	store := open(t)
	key, _ := one.Key()
	dead := filepath.Join(store.Root(), "things", ".building-one-"+key+"-123")
	if err := os.MkdirAll(dead, 0o755); err != nil {
		t.Fatal(err)
	}
	if _, err := store.Ensure(context.Background(), one, write("whole")); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(dead); !errors.Is(err, os.ErrNotExist) {
		t.Error("the dead build's folder is still there")
	}
}

func TestOfManyThatWantOneEntryOneBuilds(t *testing.T) {
	root := t.TempDir()
	var builds atomic.Int32
	var group sync.WaitGroup
	for range 8 {
		group.Add(1)
		go func() {
			defer group.Done()
			store, err := Open(root, nil) // as another process would
			if err != nil {
				t.Error(err)
				return
			}
			_, err = store.Ensure(context.Background(), one, func(ctx context.Context, dir string) error {
				builds.Add(1)
				time.Sleep(50 * time.Millisecond)
				return write("whole")(ctx, dir)
			})
			if err != nil {
				t.Error(err)
			}
		}()
	}
	group.Wait()
	if builds.Load() != 1 {
		t.Errorf("it was built %d times", builds.Load())
	}
}

// TestHelperBuildsForEver is the other process of the test below.
func TestHelperBuildsForEver(t *testing.T) {
	root := os.Getenv("CACHE_TEST_ROOT")
	if root == "" {
		t.Skip("only run by another test, in a process of its own")
	}
	store, err := Open(root, nil)
	if err != nil {
		t.Fatal(err)
	}
	_, err = store.Ensure(context.Background(), one, func(context.Context, string) error {
		err := os.WriteFile(filepath.Join(root, "building"), nil, 0o644)
		time.Sleep(time.Minute)
		return err
	})
	t.Errorf("the build ended: %v", err)
}

func TestAKilledBuildBlocksNobodyAndLeavesNoEntry(t *testing.T) {
	root := t.TempDir()
	command := exec.Command(os.Args[0], "-test.run=^TestHelperBuildsForEver$")
	command.Env = append(os.Environ(), "CACHE_TEST_ROOT="+root)
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	for range 1000 {
		if _, err := os.Stat(filepath.Join(root, "building")); err == nil {
			break
		}
		time.Sleep(10 * time.Millisecond)
	}
	store, err := Open(root, nil)
	if err != nil {
		t.Fatal(err)
	}
	waiting, cancel := context.WithTimeout(context.Background(), 300*time.Millisecond)
	defer cancel()
	if _, err := store.Ensure(waiting, one, write("whole")); !errors.Is(err, context.DeadlineExceeded) {
		t.Fatalf("while another process builds, got %v", err)
	}
	if err := command.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = command.Wait() // it was killed
	if _, found, _ := store.Lookup(one); found {
		t.Fatal("the killed build looks finished")
	}
	if _, err := store.Ensure(context.Background(), one, write("whole")); err != nil {
		t.Errorf("after the kill, got %v", err)
	}
}

func TestAFolderThatCannotBeWrittenIsNamedWithTheRemedy(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	_, err := Open(filepath.Join(file, "cache"), nil)
	if err == nil || !strings.Contains(err.Error(), "XDG_CACHE_HOME") || !strings.Contains(err.Error(), file) {
		t.Errorf("got %v", err)
	}
}

func TestTheRootsFollowTheEnvironment(t *testing.T) {
	t.Setenv("HOME", "/home/somebody")
	t.Setenv("XDG_CACHE_HOME", "")
	t.Setenv("XDG_STATE_HOME", "/state")
	if root, err := Root(); err != nil || root != "/home/somebody/.cache/ptah" {
		t.Errorf("got %s, %v", root, err)
	}
	if root, err := StateRoot(); err != nil || root != "/state/ptah" {
		t.Errorf("got %s, %v", root, err)
	}
	t.Setenv("XDG_CACHE_HOME", "relative")
	if _, err := Root(); err == nil {
		t.Error("a relative folder must be refused")
	}
	t.Setenv("XDG_CACHE_HOME", "")
	t.Setenv("HOME", "")
	if _, err := Root(); err == nil {
		t.Error("no home at all must be refused")
	}
}
