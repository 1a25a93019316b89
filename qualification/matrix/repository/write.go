package repository

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
)

// File is a file with what shall stand in it, and what stood there when the change was made up.
type File struct {
	Path          string // relative to the repository
	Before, After []byte // Before is nil where there was no such file
}

// ErrChanged says that a file is no longer what the change was made from.
var ErrChanged = errors.New("it was changed in the meantime")

// Write puts all files in place or none: everything is written beside its place first, and where one cannot be put in
// place, those before it are put back. A file that is no longer what the change was made from is refused with
// ErrChanged. Only a machine that stops between two renames leaves a part, which `catalogue check` finds.
func Write(root string, files []File) error { return write(root, files, os.Rename) }

func write(root string, files []File, rename func(from, to string) error) error {
	places := make([]place, 0, len(files))
	defer func() {
		for _, place := range places {
			_ = os.Remove(place.staged) // of those that are in place nothing is left here
		}
	}()
	for _, file := range files {
		place, err := stage(root, file)
		if err != nil {
			return fmt.Errorf("%s: %w; nothing was changed", file.Path, err)
		}
		places = append(places, place)
	}
	for i, place := range places {
		if err := rename(place.staged, place.target); err != nil {
			return errors.Join(fmt.Errorf("put %s in place: %w; the files before it are put back", place.Path, err), putBack(places[:i]))
		}
	}
	return nil
}

// place is a file that is written beside its place.
type place struct {
	File

	target, staged string
	mode           os.FileMode
}

func stage(root string, file File) (place, error) {
	to := place{File: file, target: filepath.Join(root, file.Path), mode: 0o644}
	info, err := os.Lstat(to.target)
	switch {
	case errors.Is(err, os.ErrNotExist) && file.Before == nil:
	case err != nil:
		return to, err
	case !info.Mode().IsRegular():
		return to, errors.New("it is no regular file")
	default:
		to.mode = info.Mode().Perm()
		now, err := os.ReadFile(to.target)
		if err != nil {
			return to, err
		}
		if file.Before == nil || string(now) != string(file.Before) {
			return to, ErrChanged
		}
	}
	to.staged, err = beside(to.target, file.After, to.mode)
	return to, err
}

// beside writes a new file beside its place, durably, and returns where.
func beside(target string, data []byte, mode os.FileMode) (path string, err error) {
	file, err := os.CreateTemp(filepath.Dir(target), "."+filepath.Base(target)+".*")
	if err != nil {
		return "", err
	}
	defer func() {
		err = errors.Join(err, file.Close())
		if err != nil {
			_ = os.Remove(file.Name())
		}
	}()
	if err := file.Chmod(mode); err != nil {
		return "", err
	}
	if _, err := file.Write(data); err != nil {
		return "", err
	}
	return file.Name(), file.Sync()
}

func putBack(places []place) error {
	var errs []error
	for _, place := range places {
		if place.Before == nil {
			errs = append(errs, os.Remove(place.target))
			continue
		}
		path, err := beside(place.target, place.Before, place.mode)
		if err == nil {
			err = os.Rename(path, place.target)
		}
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}
