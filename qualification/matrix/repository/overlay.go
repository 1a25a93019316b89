package repository

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"slices"
	"time"
)

// Overlay is a repository as it would be with some of its files changed. Files that are new appear in no listing.
func Overlay(under fs.FS, changes []File) fs.FS {
	over := overlay{FS: under, files: map[string][]byte{}}
	for _, change := range changes {
		over.files[change.Path] = change.After
	}
	return over
}

type overlay struct {
	fs.FS

	files map[string][]byte
}

// Open returns the changed file, and the file underneath where it was not changed.
func (o overlay) Open(name string) (fs.File, error) {
	if data, changed := o.files[name]; changed {
		return &file{Reader: bytes.NewReader(data), name: name, size: int64(len(data))}, nil
	}
	return o.FS.Open(name)
}

type file struct {
	*bytes.Reader

	name string
	size int64
}

// Stat returns the file, which describes itself.
func (f *file) Stat() (fs.FileInfo, error) { return f, nil }

// Close has nothing to close.
func (f *file) Close() error { return nil }

// Name is the path under which the file was opened.
func (f *file) Name() string { return f.name }

// Size is the length of the changed content in bytes.
func (f *file) Size() int64 { return f.size }

// Mode says that the file is regular and cannot be written.
func (f *file) Mode() fs.FileMode { return 0o444 }

// ModTime is the zero time: the change is not made.
func (f *file) ModTime() time.Time { return time.Time{} }

// IsDir says that it is no folder.
func (f *file) IsDir() bool { return false }

// Sys is nothing: no system has the file.
func (f *file) Sys() any { return nil }

// Stale returns what must be written so that the generated files stand in the repository, sorted by path, and nothing
// where they do.
func Stale(repository fs.FS, generated map[string][]byte) ([]File, error) {
	var stale []File
	for _, name := range slices.Sorted(maps.Keys(generated)) {
		now, err := fs.ReadFile(repository, name)
		switch {
		case errors.Is(err, fs.ErrNotExist):
			stale = append(stale, File{Path: name, After: generated[name]})
		case err != nil:
			return nil, fmt.Errorf("read %s: %w", name, err)
		case !bytes.Equal(now, generated[name]):
			stale = append(stale, File{Path: name, Before: now, After: generated[name]})
		}
	}
	return stale, nil
}
