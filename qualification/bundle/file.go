package bundle

import (
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// WriteFile writes a file so that a reader sees either nothing new or all of it: into a file beside it, flushed, then
// renamed. On an error nothing is left behind. It is for files that are too large to be held in memory.
func WriteFile(path string, mode fs.FileMode, write func(io.Writer) error) (err error) {
	dir := filepath.Dir(path)
	file, err := os.CreateTemp(dir, ".writing-*")
	if err != nil {
		return fmt.Errorf("write %s: %w", path, err)
	}
	defer func() {
		if err != nil {
			_ = file.Close()
			_ = os.Remove(file.Name())
		}
	}()
	if err = write(file); err != nil {
		return err
	}
	for _, step := range []func() error{func() error { return file.Chmod(mode) }, file.Sync, file.Close, func() error { return os.Rename(file.Name(), path) }} {
		if err = step(); err != nil {
			return fmt.Errorf("write %s: %w", path, err)
		}
	}
	return nil
}

// Inside says whether a path lies in a folder, which need not exist.
func Inside(path, folder string) bool {
	absolute, err := filepath.Abs(path)
	if err != nil {
		return false
	}
	if folder, err = filepath.Abs(folder); err != nil {
		return false
	}
	relative, err := filepath.Rel(folder, absolute)
	return err == nil && relative != ".." && !strings.HasPrefix(relative, ".."+string(filepath.Separator))
}
