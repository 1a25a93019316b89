package evidence

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
)

// ErrUnusableFolder marks an error of writing that is about the named folder: it is not there, or may not be written
// to. Other errors are those of the machine, such as a full disk.
var ErrUnusableFolder = errors.New("unusable folder")

// unusable keeps the message of an error and adds that mark.
type unusable struct{ error }

func (u unusable) Unwrap() []error { return []error{u.error, ErrUnusableFolder} }

// draftPattern names the files that are being written and become visible under another name.
const draftPattern = ".writing-*"

// WriteFileAtomic writes data to path so that a reader sees either nothing new or all of it: into a file beside it,
// flushed, then renamed. On an error nothing is left behind. The directory must exist.
func WriteFileAtomic(path string, data []byte) error { return WriteFileAtomicMode(path, data, 0o644) }

// WriteFileAtomicMode is WriteFileAtomic with the permissions of the file.
func WriteFileAtomicMode(path string, data []byte, mode fs.FileMode) (err error) {
	dir := filepath.Dir(path)
	file, err := os.CreateTemp(dir, draftPattern)
	if err != nil {
		return unwritable(dir, err)
	}
	defer func() {
		if err != nil {
			_ = file.Close()
			_ = os.Remove(file.Name())
		}
	}()
	if err = file.Chmod(mode); err != nil {
		return fmt.Errorf("write %s: %w", path, err)
	}
	if _, err = file.Write(data); err != nil {
		return fmt.Errorf("write %s: %w", path, err)
	}
	if err = file.Sync(); err != nil {
		return fmt.Errorf("write %s: %w", path, err)
	}
	if err = file.Close(); err != nil {
		return fmt.Errorf("write %s: %w", path, err)
	}
	if err = os.Rename(file.Name(), path); err != nil {
		return fmt.Errorf("write %s: %w", path, err)
	}
	return syncDir(dir)
}

func unwritable(dir string, err error) error {
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return unusable{fmt.Errorf("cannot write into %s: the folder does not exist, create it or name another", dir)}
	case errors.Is(err, fs.ErrPermission), errors.Is(err, syscall.EROFS), errors.Is(err, syscall.ENOTDIR):
		return unusable{fmt.Errorf("cannot write into %s: %w, choose a folder you may write to", dir, reason(err))}
	default:
		return fmt.Errorf("cannot write into %s: %w", dir, err)
	}
}

// reason takes the path out of an error that names it already.
func reason(err error) error {
	var path *fs.PathError
	if errors.As(err, &path) {
		return path.Err
	}
	return err
}

func syncDir(dir string) error {
	handle, err := os.Open(dir)
	if err != nil {
		return fmt.Errorf("flush %s: %w", dir, err)
	}
	defer func() { _ = handle.Close() }()
	if err := handle.Sync(); err != nil && !errors.Is(err, syscall.EINVAL) {
		return fmt.Errorf("flush %s: %w", dir, err)
	}
	return nil
}
