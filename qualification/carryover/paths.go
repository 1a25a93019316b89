package carryover

import (
	"fmt"
	"path"
	"slices"
	"strings"

	"ptah.run/ptah/qualification/profile/document"
)

// Paths selects files of the repository. Paths are relative to it, with slashes.
type Paths struct {
	Include []string `json:"include"`          // a folder ends with a slash; anything else is one file
	Except  []string `json:"except,omitempty"` // patterns of base names, or of folder names where they end with a slash, at any depth
}

// Matches says whether the file is selected.
func (p Paths) Matches(file string) bool {
	return slices.ContainsFunc(p.Include, func(entry string) bool { return within(file, entry) }) && !p.excepted(file)
}

// within says whether an entry of a list of paths names the file or a folder above it.
func within(file, entry string) bool {
	return file == entry || (strings.HasSuffix(entry, "/") && strings.HasPrefix(file, entry))
}

func (p Paths) excepted(file string) bool {
	parts := strings.Split(file, "/")
	folders, base := parts[:len(parts)-1], parts[len(parts)-1]
	return slices.ContainsFunc(p.Except, func(pattern string) bool {
		folder, ok := strings.CutSuffix(pattern, "/")
		if !ok {
			return fits(pattern, base)
		}
		return slices.ContainsFunc(folders, func(name string) bool { return fits(folder, name) })
	})
}

func fits(pattern, name string) bool {
	matched, err := path.Match(pattern, name)
	return err == nil && matched
}

// Union selects what either selects: an exception of one of them does not hold against the other.
func Union(sets ...Paths) Selector { return union(sets) }

// Selector is a set of files. Its digest identifies what it was declared as.
type Selector interface {
	Matches(file string) bool
	Digest() string
}

// Digest identifies the declaration of the paths.
func (p Paths) Digest() string { return digest(p) }

type union []Paths

// Matches says whether one of the sets holds the file.
func (u union) Matches(file string) bool {
	return slices.ContainsFunc(u, func(p Paths) bool { return p.Matches(file) })
}

// Digest identifies the declarations of all sets. That of a single one is its own.
func (u union) Digest() string {
	if len(u) == 1 {
		return u[0].Digest()
	}
	return digest(u)
}

func digest(value any) string {
	found, err := document.Digest(value)
	if err != nil {
		panic(err) // the values hold nothing that cannot be encoded
	}
	return found
}

// validate refuses entries that could never match, or match more than they seem to.
func (p Paths) validate(at string) error {
	if len(p.Include) == 0 {
		return refuse(at+".include", "name at least one folder or file")
	}
	if err := validateEntries(at+".include", p.Include); err != nil {
		return err
	}
	for i, pattern := range p.Except {
		name := strings.TrimSuffix(pattern, "/")
		if _, err := path.Match(name, ""); err != nil || name == "" || name == "*" || strings.Contains(name, "/") {
			return refuse(fmt.Sprintf("%s.except[%d]", at, i), "give the pattern of one name, such as *_test.go or testdata/, not %q", pattern)
		}
	}
	return nil
}

func validateEntries(at string, entries []string) error {
	for i, entry := range entries {
		clean := strings.TrimSuffix(entry, "/")
		if clean == "" || clean == "." || strings.HasPrefix(clean, "/") || path.Clean(clean) != clean || strings.HasPrefix(clean, "..") || strings.ContainsAny(clean, "*?[\\") {
			return refuse(fmt.Sprintf("%s[%d]", at, i), "give a file, or a folder with a slash at its end, relative to the repository and without patterns, not %q", entry)
		}
		if slices.Contains(entries[:i], entry) {
			return refuse(fmt.Sprintf("%s[%d]", at, i), "%s is given twice", entry)
		}
	}
	return nil
}
