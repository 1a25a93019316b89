package scratch

import (
	"fmt"
	"os"
	"path/filepath"

	"ptah.run/ptah/operator/executor/shelter"
)

// DirectoryVariable names the folder in which scratch servers keep their files; it should lie in memory.
const DirectoryVariable = shelter.DirectoryVariable

// ProgramVariable names the server program.
const ProgramVariable = "PTAH_MYSQLD"

// BundledProgram is where the executor's image has the server, with its libraries and their loader in the folder lib
// beside it: they are of another release than the rest of the image.
const BundledProgram = "/usr/lib/ptah/mysql/mysqld"

// DefaultProgram is where Debian keeps the server.
const DefaultProgram = "/usr/sbin/mysqld"

// minimumMemory is the free space under which a memory file system is not used unasked: 512 MiB. An empty server takes
// about 80 MiB of it.
const minimumMemory = 512 << 20

// accounts are those that root hands over to, best first.
var accounts = []string{"mysql", "ptah", "nobody"}

// Program returns the path of the server, or an error that says what to install.
func Program(getenv func(string) string) (string, error) {
	candidates := []string{BundledProgram, DefaultProgram}
	if asked := getenv(ProgramVariable); asked != "" {
		candidates = []string{filepath.Clean(asked)}
	}
	for _, path := range candidates {
		if info, err := os.Stat(path); err == nil && !info.IsDir() && info.Mode()&0o111 != 0 {
			return path, nil
		}
	}
	return "", fmt.Errorf("the program mysqld of MySQL 9.7 is not at %s; install mysql-server-core or set %s", candidates[len(candidates)-1], ProgramVariable)
}

// start returns the words that start a server program: the program itself, or the loader beside it with the libraries
// beside it, and then where its messages and character sets lie.
func start(program string) (words, arguments []string) {
	dir := filepath.Dir(program)
	words = []string{program}
	if loaders, err := filepath.Glob(filepath.Join(dir, "lib", "ld-linux-*.so.*")); err == nil && len(loaders) == 1 {
		words = []string{loaders[0], "--library-path", filepath.Join(dir, "lib"), program}
		share := filepath.Join(dir, "share")
		arguments = []string{"--lc-messages-dir=" + share, "--character-sets-dir=" + filepath.Join(share, "charsets")}
	}
	return words, arguments
}
