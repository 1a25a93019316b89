package evidence

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// clear removes what a process that died was writing and had not finished: files that never had a name of evidence.
func (r *Run) clear() error {
	if err := os.RemoveAll(filepath.Join(r.dir, partialDir)); err != nil {
		return fmt.Errorf("clear unfinished files: %w", err)
	}
	drafts, err := filepath.Glob(filepath.Join(r.dir, draftPattern))
	if err != nil {
		return err
	}
	for _, draft := range drafts {
		if err := os.Remove(draft); err != nil {
			return fmt.Errorf("clear unfinished files: %w", err)
		}
	}
	return os.MkdirAll(filepath.Join(r.dir, partialDir), 0o755)
}

// UnclaimedPrefix begins the names of objects that were stored whole by a process that died before it could journal
// their names. They are kept, because evidence is never removed, and belong to no cell.
const UnclaimedPrefix = "unclaimed/"

// claimObjects journals every object that no line of the journal names. An object whose bytes are not those that its
// name says is refused.
func (r *Run) claimObjects() error {
	dir := filepath.Join(r.dir, objectsDir)
	items, err := os.ReadDir(dir)
	if err != nil {
		return fmt.Errorf("list the stored objects: %w", err)
	}
	known := map[string]bool{}
	for _, entry := range r.Entries() {
		known[strings.TrimPrefix(entry.Path, objectsDir+"/")] = true
	}
	for _, item := range items {
		if known[item.Name()] {
			continue
		}
		digest, size, err := digestFile(filepath.Join(dir, item.Name()))
		if err != nil {
			return fmt.Errorf("read the object %s: %w", item.Name(), err)
		}
		if digest != "sha256:"+item.Name() {
			return fmt.Errorf("the object %s holds bytes of digest %s: %w", item.Name(), digest, ErrTampered)
		}
		entry := Entry{Name: UnclaimedPrefix + item.Name(), Path: objectsDir + "/" + item.Name(), Digest: digest, Size: size, Kind: KindFile}
		if err := r.note(journalLine{Event: "stored", Entry: &entry}); err != nil {
			return err
		}
	}
	return nil
}
