package cache

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"ptah.run/ptah/qualification/lab/progress"
)

// recipeFile lies in each entry and says what it was built from.
const recipeFile = "recipe.json"

// lockPeriod is how often a process that waits for another's build looks again.
const lockPeriod = 200 * time.Millisecond

// Recipe names a thing and everything it is made from. Two recipes with equal inputs are one entry.
type Recipe struct {
	Kind   string // the folder of the cache it lies in
	Name   string // for people; part of the entry's name
	Inputs any    // marshalled to JSON: versions, flags, digests of what goes in
}

// Key returns the digest of the recipe as 32 hexadecimal digits.
func (r Recipe) Key() (string, error) {
	content, err := json.Marshal(r.Inputs)
	if err != nil {
		return "", fmt.Errorf("describe the recipe of %s %s: %w", r.Kind, r.Name, err)
	}
	sum := sha256.Sum256(append([]byte(r.Kind+"\x00"+r.Name+"\x00"), content...))
	return hex.EncodeToString(sum[:16]), nil
}

// Store is one cache folder. Several processes may use it at once.
type Store struct {
	root     string
	progress *progress.Reporter
}

// Open returns the store in a folder, which is made where it is absent. Its error says that nothing can be written
// there and what to do.
func Open(root string, reporter *progress.Reporter) (*Store, error) {
	if err := os.MkdirAll(filepath.Join(root, "locks"), 0o755); err != nil {
		return nil, fmt.Errorf("the cache folder %s cannot be made: %w; make it writable or set XDG_CACHE_HOME to a folder that is", root, err)
	}
	probe, err := os.CreateTemp(filepath.Join(root, "locks"), ".probe-")
	if err != nil {
		return nil, fmt.Errorf("the cache folder %s is not writable: %w; make it writable or set XDG_CACHE_HOME to a folder that is", root, err)
	}
	return &Store{root: root, progress: reporter}, errors.Join(probe.Close(), os.Remove(probe.Name()))
}

// Root returns the folder of the store.
func (s *Store) Root() string { return s.root }

// Progress returns the reporter that builds use.
func (s *Store) Progress() *progress.Reporter { return s.progress }

// Lookup returns the folder of a finished entry.
func (s *Store) Lookup(recipe Recipe) (string, bool, error) {
	key, err := recipe.Key()
	if err != nil {
		return "", false, err
	}
	dir := filepath.Join(s.root, recipe.Kind, recipe.Name+"-"+key)
	_, err = os.Stat(filepath.Join(dir, recipeFile))
	if errors.Is(err, os.ErrNotExist) {
		return dir, false, nil
	}
	if err != nil {
		return "", false, fmt.Errorf("look into the cache: %w", err)
	}
	return dir, true, nil
}

// Ensure returns the folder of an entry and builds it first where it is absent. The build writes into a folder of
// its own, which gets the entry's name only when it returned without error. Of several processes that want one
// entry, one builds and the others wait.
func (s *Store) Ensure(ctx context.Context, recipe Recipe, build func(ctx context.Context, dir string) error) (string, error) {
	dir, found, err := s.Lookup(recipe)
	if err != nil || found {
		return dir, err
	}
	unlock, err := s.lock(ctx, recipe, filepath.Base(dir))
	if err != nil {
		return "", err
	}
	defer unlock()
	if _, found, err := s.Lookup(recipe); err != nil || found {
		return dir, err
	}
	done := s.progress.Step("building %s %s", recipe.Kind, recipe.Name)
	err = s.build(ctx, recipe, dir, build)
	done(err)
	if err != nil {
		return "", fmt.Errorf("build %s %s: %w", recipe.Kind, recipe.Name, err)
	}
	return dir, nil
}

func (s *Store) build(ctx context.Context, recipe Recipe, dir string, build func(context.Context, string) error) error {
	parent := filepath.Dir(dir)
	if err := os.MkdirAll(parent, 0o755); err != nil {
		return fmt.Errorf("make the folder for it in the cache: %w", err)
	}
	// The lock is held, so what lies here under this name is a dead build's.
	stale, _ := filepath.Glob(filepath.Join(parent, ".building-"+filepath.Base(dir)+"-*"))
	for _, path := range stale {
		if err := os.RemoveAll(path); err != nil {
			return fmt.Errorf("remove what an interrupted build left: %w", err)
		}
	}
	temporary, err := os.MkdirTemp(parent, ".building-"+filepath.Base(dir)+"-")
	if err != nil {
		return fmt.Errorf("make a folder to build in: %w", err)
	}
	defer func() { _ = os.RemoveAll(temporary) }() // the next build of it removes what is left
	if err := build(ctx, temporary); err != nil {
		return err
	}
	content, err := json.MarshalIndent(recipe, "", "  ")
	if err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(temporary, recipeFile), append(content, '\n'), 0o644); err != nil {
		return fmt.Errorf("write its recipe: %w", err)
	}
	if err := errors.Join(os.Chmod(temporary, 0o755), os.Rename(temporary, dir)); err != nil {
		return fmt.Errorf("put it in place: %w", err)
	}
	return nil
}

// lock takes the entry's file lock. The kernel releases it with the process, so a killed build blocks nobody.
func (s *Store) lock(ctx context.Context, recipe Recipe, name string) (func(), error) {
	file, err := os.OpenFile(filepath.Join(s.root, "locks", recipe.Kind+"-"+name), os.O_CREATE|os.O_RDWR, 0o644)
	if err != nil {
		return nil, fmt.Errorf("open the cache's lock file: %w", err)
	}
	waiting := false
	for {
		err := syscall.Flock(int(file.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
		if err == nil {
			return func() { _ = file.Close() }, nil // the lock ends with the process at the latest
		}
		if !errors.Is(err, syscall.EWOULDBLOCK) {
			return nil, errors.Join(fmt.Errorf("lock the cache entry %s: %w", name, err), file.Close())
		}
		if !waiting {
			s.progress.Say("another process builds %s %s; waiting for it", recipe.Kind, recipe.Name)
			waiting = true
		}
		select {
		case <-ctx.Done():
			return nil, errors.Join(ctx.Err(), file.Close())
		case <-time.After(lockPeriod):
		}
	}
}
