package source

import (
	"archive/tar"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"

	"ptah.run/ptah/qualification/lab/layer"
)

// The executor starts a scratch server for each plan, and initdb is most of what that costs. The image therefore
// carries a data directory that initdb has made, without the three things in it that differ from run to run: the
// control file, the write-ahead log and the statistics. The executor makes the first two anew with pg_resetwal, for
// which the image carries the arguments; the server makes the third. Package operator/executor/postgresql/scratch
// reads both.
const (
	// dataDirectoryRoot holds one folder for each major version, as scratch.DefaultTemplates says.
	dataDirectoryRoot = "usr/share/ptah/postgresql"
	// scratchAdministrator is scratch.Administrator.
	scratchAdministrator = "ptah_scratch"
)

// varying are the files of a fresh data directory that differ between two runs of initdb, or that say something about
// the machine it ran on. The server's settings come from its command line alone.
var varying = []string{"global/pg_control", "pg_stat/pgstat.stat", "postgresql.conf", "postgresql.auto.conf"}

// dataDirectory runs the file system's own initdb and adds what it made.
func dataDirectory(ctx context.Context, w *layer.Writer, in inputs) error {
	root, err := os.MkdirTemp("", "ptah-initdb-")
	if err != nil {
		return fmt.Errorf("make a folder for a data directory: %w", err)
	}
	defer func() { _ = os.RemoveAll(root) }() // what is left lies in the temporary folder
	if err := unpack(in.filesystem.Path(), root); err != nil {
		return fmt.Errorf("unpack the file system of PostgreSQL: %w", err)
	}
	binaries := "/usr/lib/postgresql/" + in.entry.Version + "/bin/"
	if err := furnish(root); err != nil {
		return fmt.Errorf("prepare the file system of PostgreSQL: %w", err)
	}
	if _, err := inside(ctx, root, binaries+"initdb", "-D", "/work/data", "-U", scratchAdministrator, "--auth=trust", "-E", "UTF8",
		"--locale=C.UTF-8", "--no-sync", "--no-instructions"); err != nil {
		return err
	}
	control, err := inside(ctx, root, binaries+"pg_controldata", "-D", "/work/data")
	if err != nil {
		return err
	}
	arguments, err := resetArguments(control)
	if err != nil {
		return err
	}
	into := dataDirectoryRoot + "/" + in.entry.Version
	if err := w.Bytes(into+"/pg_resetwal.json", arguments, 0o644, layer.Root); err != nil {
		return err
	}
	return addData(w, filepath.Join(root, "work", "data"), into+"/data")
}

// unpack writes the files, folders and links of a layer into a folder of this machine, owned by whoever runs this.
func unpack(path, root string) error {
	file, err := os.Open(path)
	if err != nil {
		return err
	}
	defer func() { _ = file.Close() }()
	inner, err := os.OpenRoot(root)
	if err != nil {
		return err
	}
	defer func() { _ = inner.Close() }()
	for reader := tar.NewReader(file); ; {
		header, err := reader.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		name := strings.Trim(header.Name, "/")
		mode := fs.FileMode(header.Mode)&0o755 | 0o700
		// What the catalogue left out may be a folder of something that it kept.
		if err := inner.MkdirAll(filepath.Dir(name), 0o755); err != nil {
			return err
		}
		switch header.Typeflag {
		case tar.TypeDir:
			if name != "." {
				err = inner.MkdirAll(name, mode)
			}
		case tar.TypeSymlink:
			err = inner.Symlink(header.Linkname, name)
		case tar.TypeLink:
			err = inner.Link(strings.Trim(header.Linkname, "/"), name)
		case tar.TypeReg:
			err = unpackFile(inner, name, mode, reader)
		}
		if err != nil {
			return err
		}
	}
}

func unpackFile(root *os.Root, name string, mode fs.FileMode, content io.Reader) error {
	file, err := root.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, mode)
	if err != nil {
		return err
	}
	_, err = io.Copy(file, content)
	return errors.Join(err, file.Close())
}

// furnish adds what initdb needs and a file system of packages lacks: an account, a null device (a file will do, for it
// is only written to and read at its end) and a folder to write into.
func furnish(root string) error {
	passwd := fmt.Sprintf("root:x:0:0:root:/root:/bin/sh\nptah:x:%[1]d:%[1]d:ptah:/work:/bin/sh\n", UnprivilegedID)
	work := filepath.Join(root, "work")
	return errors.Join(os.WriteFile(filepath.Join(root, "etc/passwd"), []byte(passwd), 0o644), os.MkdirAll(filepath.Join(root, "dev"), 0o755),
		os.WriteFile(filepath.Join(root, "dev/null"), nil, 0o666), os.Chmod(filepath.Join(root, "dev/null"), 0o666),
		os.Mkdir(work, 0o777), os.Chmod(work, 0o777), os.MkdirAll(filepath.Join(root, "tmp"), 0o777), os.Chmod(filepath.Join(root, "tmp"), 0o777), os.Chmod(root, 0o755))
}

// inside runs a program of the file system in it, as an ordinary user. Who is not root gets the right to change into
// it from a user namespace of its own.
func inside(ctx context.Context, root, program string, arguments ...string) ([]byte, error) {
	command := exec.CommandContext(ctx, program, arguments...)
	command.Dir = "/work"
	command.Env = []string{"LC_ALL=C.UTF-8", "PATH=/usr/bin:/bin", "HOME=/work", "TZ=UTC", "PGTZ=UTC"}
	command.SysProcAttr = &syscall.SysProcAttr{Chroot: root, Credential: &syscall.Credential{Uid: UnprivilegedID, Gid: UnprivilegedID}}
	if os.Geteuid() != 0 {
		mapped := func(id int) []syscall.SysProcIDMap {
			return []syscall.SysProcIDMap{{ContainerID: UnprivilegedID, HostID: id, Size: 1}}
		}
		command.SysProcAttr.Cloneflags = syscall.CLONE_NEWUSER
		command.SysProcAttr.UidMappings, command.SysProcAttr.GidMappings = mapped(os.Geteuid()), mapped(os.Getegid())
		command.SysProcAttr.Credential.NoSetGroups = true
	}
	var stderr bytes.Buffer
	command.Stderr = &stderr
	out, err := command.Output()
	if err != nil {
		return nil, fmt.Errorf("run %s for the data directory that the executor starts from: %w: %s", filepath.Base(program), err, strings.TrimSpace(stderr.String()))
	}
	return out, nil
}

// resetArguments are the arguments with which pg_resetwal makes the control file and a write-ahead log for the data
// directory, as a JSON list: the counters of the server that made it, and a log far behind every page of it.
func resetArguments(control []byte) ([]byte, error) {
	values := map[string]string{}
	for _, name := range []string{"NextXID", "oldestXID", "NextMultiXactId", "oldestMultiXid"} {
		found := regexp.MustCompile(`(?m)^Latest checkpoint's ` + name + `: +(?:0:)?(\d+)$`).FindSubmatch(control)
		if found == nil {
			return nil, fmt.Errorf("pg_controldata does not say the %s of the data directory that the executor starts from", name)
		}
		values[name] = string(found[1])
	}
	// 16384 is the first object id that is not the server's own; segment 256 of 1 MiB lies behind all that initdb wrote.
	arguments := []string{"-f", "-x", values["NextXID"], "-u", values["oldestXID"], "-m", values["NextMultiXactId"] + "," + values["oldestMultiXid"],
		"-o", "16384", "-l", "000000010000000000000100", "--wal-segsize=1"}
	return json.Marshal(arguments)
}

// addData adds the data directory, names in order, without what varies. Whoever copies it sets owner and modes.
func addData(w *layer.Writer, data, into string) error {
	if err := w.Dir(into, 0o755, layer.Root); err != nil {
		return err
	}
	if err := w.Bytes(into+"/postgresql.conf", nil, 0o644, layer.Root); err != nil {
		return err
	}
	return filepath.WalkDir(data, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || path == data {
			return err
		}
		name, err := filepath.Rel(data, path)
		if err != nil {
			return err
		}
		switch {
		case entry.IsDir():
			return w.Dir(into+"/"+name, 0o755, layer.Root)
		case slices.Contains(varying, name) || strings.HasPrefix(name, "pg_wal/"):
			return nil
		}
		return w.FromFile(into+"/"+name, path, 0o644, layer.Root)
	})
}
