package source

import (
	"context"
	"debug/elf"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"ptah.run/ptah/qualification/lab/layer"
)

// The executor's image holds PostgreSQL of one Debian release, and MySQL is to be had of another only. The server
// therefore stands in a folder of its own with the libraries it needs and the program that loads them, so that neither
// engine ever runs with the other's libraries. Package operator/executor/mysql/scratch starts it from there.
const (
	mysqlRoot    = "usr/lib/ptah/mysql" // scratch.BundledProgram lies in it
	mysqlProgram = "usr/sbin/mysqld"
)

// mysqlShare is what the server reads beside its libraries: messages and the character sets that are not built in.
var mysqlShare = []string{"english", "charsets"}

// mysqlServer adds MySQL's server to the executor's base.
func mysqlServer(_ context.Context, w *layer.Writer, in inputs) error {
	root, err := os.MkdirTemp("", "ptah-mysql-")
	if err != nil {
		return fmt.Errorf("make a folder for MySQL: %w", err)
	}
	defer func() { _ = os.RemoveAll(root) }() // what is left lies in the temporary folder
	if err := unpack(in.beside.Path(), root); err != nil {
		return fmt.Errorf("unpack the file system of MySQL: %w", err)
	}
	tree := libraryTree{root}
	files, err := tree.needs(mysqlProgram)
	if err != nil {
		return fmt.Errorf("find the libraries of MySQL: %w", err)
	}
	if err := w.FromFile(mysqlRoot+"/mysqld", filepath.Join(root, mysqlProgram), 0o755, layer.Root); err != nil {
		return err
	}
	for _, name := range files {
		if err := w.FromFile(mysqlRoot+"/lib/"+path.Base(name), filepath.Join(root, name), 0o755, layer.Root); err != nil {
			return err
		}
	}
	for _, dir := range mysqlShare {
		if err := addFolder(w, filepath.Join(root, "usr/share/mysql", dir), mysqlRoot+"/share/"+dir); err != nil {
			return err
		}
	}
	var list []byte
	for _, name := range in.beside.Meta.Packages {
		list = append(list, name+"\n"...)
	}
	return w.Bytes("usr/share/ptah/packages-mysql", list, 0o644, layer.Root)
}

func addFolder(w *layer.Writer, from, into string) error {
	return filepath.WalkDir(from, func(file string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name, err := filepath.Rel(from, file)
		if err != nil || entry.IsDir() {
			return err
		}
		return w.FromFile(path.Join(into, name), file, 0o644, layer.Root)
	})
}

// libraryTree is an unpacked file system in which libraries are looked up.
type libraryTree struct{ root string }

// libraryFolders are where the loader looks, as patterns.
var libraryFolders = []string{"usr/lib/*-linux-gnu*", "usr/lib", "usr/lib64", "lib/*-linux-gnu*"}

// needs returns the files that a program loads, its loader among them, by the names under which they are asked for,
// sorted.
func (t libraryTree) needs(program string) ([]string, error) {
	found := map[string]bool{}
	todo := []string{program}
	for len(todo) > 0 {
		name := todo[0]
		todo = todo[1:]
		libraries, loader, err := t.imports(name)
		if err != nil {
			return nil, err
		}
		if loader != "" {
			libraries = append(libraries, path.Base(loader))
		}
		for _, library := range libraries {
			at, err := t.find(library)
			if err != nil {
				return nil, fmt.Errorf("%s of %s: %w", library, name, err)
			}
			if !found[at] {
				found[at] = true
				todo = append(todo, at)
			}
		}
	}
	out := make([]string, 0, len(found))
	for name := range found {
		out = append(out, name)
	}
	slices.Sort(out)
	return out, nil
}

func (t libraryTree) imports(name string) (libraries []string, loader string, err error) {
	file, err := elf.Open(filepath.Join(t.root, name))
	if err != nil {
		return nil, "", fmt.Errorf("read %s: %w", name, err)
	}
	defer func() { _ = file.Close() }()
	if libraries, err = file.ImportedLibraries(); err != nil {
		return nil, "", fmt.Errorf("read what %s needs: %w", name, err)
	}
	if section := file.Section(".interp"); section != nil {
		text, err := section.Data()
		if err != nil {
			return nil, "", fmt.Errorf("read the loader of %s: %w", name, err)
		}
		loader = strings.TrimRight(string(text), "\x00")
	}
	return libraries, loader, nil
}

func (t libraryTree) find(library string) (string, error) {
	for _, pattern := range libraryFolders {
		found, err := filepath.Glob(filepath.Join(t.root, pattern, library))
		if err != nil {
			return "", err
		}
		if len(found) > 0 {
			return filepath.Rel(t.root, found[0])
		}
	}
	return "", errors.New("the file system has no such library")
}
