package scratch

import (
	"fmt"
	"os"
	"path/filepath"

	"ptah.run/ptah/operator/executor/shelter"
)

// DirectoryVariable names the folder in which scratch servers keep their files; it should lie in memory.
const DirectoryVariable = shelter.DirectoryVariable

// BinariesVariable names the folder of initdb, pg_resetwal, postgres and pg_dump.
const BinariesVariable = "PTAH_PG_BINDIR"

// DefaultBinaries is where Debian keeps the programs of PostgreSQL 17.
const DefaultBinaries = "/usr/lib/postgresql/17/bin"

// minimumMemory is the free space under which a memory file system is not used unasked: 256 MiB.
const minimumMemory = 256 << 20

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

// accounts are those that root hands over to, best first.
var accounts = []string{"postgres", "ptah", "nobody"}
