// Package programs carries the source of the small static programs that the lab puts into its images and onto
// machines that need the bounded runtime. They use the standard library only, so each builds from its embedded
// source in a scratch module, wherever ptah-qualify itself was put.
package programs

import (
	"embed"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"
)

//go:embed boundedruntime/*.go forwarder/*.go mysqlstart/*.go pause/*.go postgresqlstart/*.go
var sources embed.FS

// Names are the programs there are.
var Names = []string{"boundedruntime", "forwarder", "mysqlstart", "pause", "postgresqlstart"}

// Source returns a program's files by name, tests left out, with a go.mod for the given Go version.
func Source(name string, goVersion string) (map[string][]byte, error) {
	if !slices.Contains(Names, name) {
		return nil, fmt.Errorf("no program %q among %s", name, strings.Join(Names, ", "))
	}
	files := map[string][]byte{
		"go.mod": []byte("module ptah.run/" + name + "\n\ngo " + goVersion + "\n"),
	}
	entries, err := fs.ReadDir(sources, name)
	if err != nil {
		return nil, fmt.Errorf("read the source of %s: %w", name, err)
	}
	for _, entry := range entries {
		if strings.HasSuffix(entry.Name(), "_test.go") {
			continue
		}
		content, err := sources.ReadFile(path.Join(name, entry.Name()))
		if err != nil {
			return nil, fmt.Errorf("read the source of %s: %w", name, err)
		}
		files[entry.Name()] = content
	}
	return files, nil
}
