// Package shelter says where a scratch server may keep its files and under which account it runs.
package shelter

import (
	"fmt"
	"os/user"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// DirectoryVariable names the folder in which scratch servers keep their files; it should lie in memory.
const DirectoryVariable = "PTAH_SCRATCH_DIR"

// tmpfsMagic is the type of a memory file system in statfs(2).
const tmpfsMagic = 0x01021994

// Parent returns the folder for scratch files: the one asked for, else the folder for temporary files where one is
// set, else shared memory where it has room for that many bytes, else /tmp.
func Parent(getenv func(string) string, minimum uint64) string {
	for _, name := range []string{DirectoryVariable, "TMPDIR"} {
		if dir := getenv(name); dir != "" {
			return dir
		}
	}
	var stat unix.Statfs_t
	const shared = "/dev/shm"
	if unix.Statfs(shared, &stat) == nil && stat.Type == tmpfsMagic &&
		stat.Bavail*uint64(stat.Bsize) >= minimum && unix.Access(shared, unix.W_OK) == nil {
		return shared
	}
	return "/tmp"
}

// Account is the account of a server's processes.
type Account struct{ UID, GID uint32 }

// Find picks the account for a caller with that user id: nil for the caller's own. Neither server runs as root, so
// root hands over to the first of the accounts that exists and is not root's.
func Find(uid int, names ...string) (*Account, error) {
	if uid != 0 {
		return nil, nil
	}
	for _, name := range names {
		u, err := user.Lookup(name)
		if err != nil {
			continue
		}
		id, errID := strconv.ParseUint(u.Uid, 10, 32)
		gid, errGID := strconv.ParseUint(u.Gid, 10, 32)
		if errID != nil || errGID != nil || id == 0 {
			continue
		}
		return &Account{uint32(id), uint32(gid)}, nil
	}
	return nil, fmt.Errorf("a scratch server cannot run as root and there is no account %s; add one or run ptah as another user", strings.Join(names, " or "))
}
