// Package bundle packs the record, the reports and the evidence of a run into one file that somebody else can keep,
// check and read years later, and reads such a file back without trusting it.
//
// A bundle is a tar file with one folder. Its first member, INDEX.json, names every file with size, SHA-256 and media
// type; SHA256SUMS holds the same sums for sha256sum -c. The same content gives the same bytes: names are sorted,
// times are zero, owners are root, modes are 0644.
//
// A public bundle is scanned for credentials before its first byte is written, and one finding refuses it. A
// restricted bundle holds further files, which may hold anything; it is only ever written encrypted with age.
//
// Reading refuses whatever Write would not have written: a missing, altered, additional or doubled file, a link, a
// path that leads elsewhere, and any byte of the tar file that stands for nothing.
package bundle

import (
	"archive/tar"
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"regexp"
	"strings"

	"ptah.run/ptah/qualification/bundle/secretscan"
)

// Schema identifies the form of INDEX.json.
const Schema = "ptah.run/bundle/v1"

// Names of the members that every bundle has, and of its folders.
const (
	IndexName  = "INDEX.json"
	ReadmeName = "README.txt"
	SumsName   = "SHA256SUMS"

	EvidenceFolder   = "evidence"
	RecordFolder     = "record"
	ReportsFolder    = "reports"
	RestrictedFolder = "restricted"
)

// Kind says who may have a bundle.
type Kind string

// Kinds of bundles.
const (
	Public     Kind = "public"
	Restricted Kind = "restricted"
)

// Limits of what is written and read. A bundle is one file that is downloaded whole.
const (
	MaxFiles = 100_000
	MaxSize  = 32 << 30  // bytes of all files
	maxIndex = 64 << 20  // bytes of INDEX.json and of SHA256SUMS
	maxFile  = 8<<30 - 1 // bytes of one file, which ustar can state
	maxPath  = 200
)

// ErrRefused marks the error of a file that is no bundle, or not as it was written.
var ErrRefused = errors.New("the bundle is refused")

func refused(format string, arguments ...any) error {
	return fmt.Errorf("%w: %s", ErrRefused, fmt.Sprintf(format, arguments...))
}

// Description is what a bundle says of itself. All of it is checked against the record by who reads the bundle.
type Description struct {
	Kind         Kind   `json:"kind"`
	Name         string `json:"name"` // of the folder in the tar file
	Run          string `json:"run"`
	EvidenceRoot string `json:"evidenceRoot"`
	Profile      string `json:"profile"` // name and revision, for people
	Policy       string `json:"policy"`  // digest of the profile
	Verdict      string `json:"verdict"`
	Acceptance   bool   `json:"acceptance"`
	Scope        Scope  `json:"scope"`
}

// Scope says what the evidence shows and what it does not. A bundle without it is refused.
type Scope struct {
	Shows    string   `json:"shows"`
	NotShown []string `json:"notShown"`
}

// Index is the content of INDEX.json.
type Index struct {
	Schema string `json:"schema"`
	Description
	Findings []secretscan.Finding `json:"findings,omitempty"` // of a restricted bundle: credentials in its restricted files
	Files    []File               `json:"files"`
}

// File is one file of a bundle. INDEX.json and SHA256SUMS are not in the index.
type File struct {
	Path      string   `json:"path"`
	Size      int64    `json:"size"`
	SHA256    string   `json:"sha256"` // 64 hexadecimal digits
	MediaType string   `json:"mediaType"`
	Names     []string `json:"names,omitempty"` // of evidence, which lies under its digest: what it is called in the run
}

// Encode returns the bytes of INDEX.json. There is one form: a reader refuses any other.
func (i Index) Encode() ([]byte, error) {
	var buffer bytes.Buffer
	encoder := json.NewEncoder(&buffer)
	encoder.SetEscapeHTML(false)
	encoder.SetIndent("", "  ")
	if err := encoder.Encode(i); err != nil {
		return nil, fmt.Errorf("encode %s: %w", IndexName, err)
	}
	return buffer.Bytes(), nil
}

// decodeIndex reads INDEX.json and refuses one that Encode would not have written, or that names what no bundle holds.
func decodeIndex(data []byte) (*Index, error) {
	var index Index
	decoder := json.NewDecoder(bytes.NewReader(data))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&index); err != nil {
		return nil, refused("%s is no index: %v", IndexName, err)
	}
	again, err := index.Encode()
	if err != nil || !bytes.Equal(again, data) {
		return nil, refused("%s is not in the form in which it is written", IndexName)
	}
	return &index, index.check()
}

var (
	pathPattern = regexp.MustCompile(`^[A-Za-z0-9_][A-Za-z0-9._-]*(/[A-Za-z0-9_][A-Za-z0-9._-]*)*$`)
	namePattern = regexp.MustCompile(`^[a-z0-9][a-z0-9-]{0,99}$`)
	hexPattern  = regexp.MustCompile(`^[0-9a-f]{64}$`)
)

func (i Index) check() error {
	switch {
	case i.Schema != Schema:
		return refused("%s has the schema %.80q, this program reads %q", IndexName, i.Schema, Schema)
	case i.Kind != Public && i.Kind != Restricted:
		return refused("%s is of the kind %.80q, there are %s and %s", IndexName, i.Kind, Public, Restricted)
	case !namePattern.MatchString(i.Name):
		return refused("%s has the name %.120q, a name is lower-case letters, digits and dashes", IndexName, i.Name)
	case i.Scope.Shows == "" || len(i.Scope.NotShown) == 0:
		return refused("%s does not say what the evidence shows and what it does not", IndexName)
	case len(i.Files) > MaxFiles:
		return refused("%s names %d files, the limit is %d", IndexName, len(i.Files), MaxFiles)
	case i.Kind == Public && len(i.Findings) > 0:
		return refused("%s is of a public bundle and admits credentials", IndexName)
	}
	return i.checkFiles()
}

func (i Index) checkFiles() error {
	total, last := int64(0), ""
	for _, file := range i.Files {
		if err := checkPath(file.Path); err != nil {
			return err
		}
		folder, _, _ := strings.Cut(file.Path, "/")
		switch {
		case file.Path == IndexName || file.Path == SumsName:
			return refused("%s names %s itself", IndexName, file.Path)
		case file.Path == last:
			return refused("%s names %s twice", IndexName, file.Path)
		case file.Path < last:
			return refused("%s is not sorted: %s stands after %s", IndexName, file.Path, last)
		case !representable(i.Name, file.Path):
			return refused("the path %s is too long for a tar file", file.Path)
		case file.Size > maxFile:
			return refused("%s has %d bytes, the limit is %d", file.Path, file.Size, int64(maxFile))
		case file.Size < 0 || !hexPattern.MatchString(file.SHA256) || file.MediaType == "":
			return refused("%s has no size, sum and media type for %s", IndexName, file.Path)
		case folder == RestrictedFolder && i.Kind == Public:
			return refused("%s is of a public bundle and names the restricted file %s", IndexName, file.Path)
		case folder != EvidenceFolder && folder != RecordFolder && folder != ReportsFolder && folder != RestrictedFolder && file.Path != ReadmeName:
			return refused("%s names %s, which is no part of a bundle", IndexName, file.Path)
		}
		if total += file.Size; total > MaxSize || total < 0 {
			return refused("its files have more than %d bytes together", int64(MaxSize))
		}
		last = file.Path
	}
	return nil
}

// checkPath refuses a path that leads out of its folder, or that another system would read as another path.
func checkPath(path string) error {
	if len(path) > maxPath || !pathPattern.MatchString(path) {
		return refused("the path %.120q is not %d letters, digits, dots, dashes and underscores at most, in segments that begin with none of the first two", path, maxPath)
	}
	return nil
}

// sums returns the bytes of SHA256SUMS.
func (i Index) sums(indexSum string) []byte {
	var out bytes.Buffer
	fmt.Fprintf(&out, "%s  %s\n", indexSum, IndexName)
	for _, file := range i.Files {
		fmt.Fprintf(&out, "%s  %s\n", file.SHA256, file.Path)
	}
	return out.Bytes()
}

func hexSum(sum []byte) string { return hex.EncodeToString(sum) }

func sumOf(data []byte) string {
	sum := sha256.Sum256(data)
	return hexSum(sum[:])
}

// representable says whether the header of a tar file can hold a path in its oldest form, which every program reads.
func representable(folder, path string) bool {
	header := header(folder, path, 0)
	return tar.NewWriter(io.Discard).WriteHeader(&header) == nil
}
