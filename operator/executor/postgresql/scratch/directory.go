package scratch

import (
	"errors"
	"fmt"
	"os"
	"os/user"
	"path/filepath"
	"strconv"

	"golang.org/x/sys/unix"
)

// DirectoryVariable names the folder in which scratch servers keep their files; it should lie in memory.
const DirectoryVariable = "PTAH_SCRATCH_DIR"

// BinariesVariable names the folder of initdb, pg_resetwal, postgres and pg_dump.
const BinariesVariable = "PTAH_PG_BINDIR"

// DefaultBinaries is where Debian keeps the programs of PostgreSQL 17.
const DefaultBinaries = "/usr/lib/postgresql/17/bin"

// minimumMemory is the free space under which a memory file system is not used unasked: 256 MiB.
const minimumMemory = 256 << 20

// tmpfsMagic is the type of a memory file system in statfs(2).
const tmpfsMagic = 0x01021994

// Binaries returns the folder of the server's programs, or an error that says what to install.
func Binaries(getenv func(string) string) (string, error) {
	dir := getenv(BinariesVariable)
	if dir == "" {
		dir = DefaultBinaries
	}
	for _, program := range []string{"initdb", "postgres", "pg_dump", "pg_resetwal"} {
		info, err := os.Stat(filepath.Join(dir, program))
		if err != nil || info.IsDir() || info.Mode()&0o111 == 0 {
			return "", fmt.Errorf("the program %s of PostgreSQL 17 is not in %s; install postgresql-17 or set %s", program, dir, BinariesVariable)
		}
	}
	return dir, nil
}

// parent returns the folder for scratch files: the one asked for, else the folder for temporary files where one is
// set, else shared memory where it has room, else /tmp.
func parent(getenv func(string) string) string {
	for _, name := range []string{DirectoryVariable, "TMPDIR"} {
		if dir := getenv(name); dir != "" {
			return dir
		}
	}
	var stat unix.Statfs_t
	const shared = "/dev/shm"
	if unix.Statfs(shared, &stat) == nil && stat.Type == tmpfsMagic &&
		stat.Bavail*uint64(stat.Bsize) >= minimumMemory && unix.Access(shared, unix.W_OK) == nil {
		return shared
	}
	return "/tmp"
}

// credential is the account of the server's processes: nil for the caller's own.
type credential struct{ uid, gid uint32 }

// account picks the account. PostgreSQL refuses to run as root, so root hands over to an account that exists for it.
func account(uid int) (*credential, error) {
	if uid != 0 {
		return nil, nil
	}
	for _, name := range []string{"postgres", "ptah", "nobody"} {
		u, err := user.Lookup(name)
		if err != nil {
			continue
		}
		id, errID := strconv.ParseUint(u.Uid, 10, 32)
		gid, errGID := strconv.ParseUint(u.Gid, 10, 32)
		if errID != nil || errGID != nil || id == 0 {
			continue
		}
		return &credential{uint32(id), uint32(gid)}, nil
	}
	return nil, errors.New("a scratch server cannot run as root and there is no account postgres, ptah or nobody; add one or run ptah as another user")
}
