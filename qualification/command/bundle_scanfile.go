package command

import (
	"fmt"
	"io/fs"
	"os"

	"ptah.run/ptah/qualification/bundle/secretscan"
)

// scanFile scans one file. A link is refused: what it leads to is scanned where it lies, or not at all.
func scanFile(scanner *secretscan.Scanner, path string, entry fs.DirEntry) ([]secretscan.Finding, error) {
	if !entry.Type().IsRegular() {
		return nil, fmt.Errorf("%s is no regular file, and links are not followed", path)
	}
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer func() { _ = file.Close() }()
	return scanner.Scan(path, file)
}
