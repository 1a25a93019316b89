// Package secretscan looks for credentials in files that are about to be published: in plain text, in the strings of
// JSON documents, in base64, hexadecimal, percent-encoded and HTML-escaped text, in Kubernetes Secrets, and inside
// gzip, zstd, bzip2, zlib, tar and zip, each within the other.
//
// It says where a credential is and of what kind, and never what it is. What it cannot look into, such as an encrypted
// file, and what goes deeper or grows larger than its limits, it reports as well: a file passes only if all of it was
// read. Digests, UIDs, certificates, public keys and signatures pass.
//
// It is a net for accidents. Somebody who hides a credential on purpose can hide it from any such net.
package secretscan

import (
	"bufio"
	"fmt"
	"io"
	"slices"
	"strings"
)

// Kind says what was found.
type Kind string

// Kinds of findings.
const (
	KnownSecret      Kind = "known-secret"      // one of the values given to New, in whatever encoding
	PrivateKey       Kind = "private-key"       // PEM, OpenSSH, PuTTY, PGP, or PKCS in DER
	AgeIdentity      Kind = "age-identity"      // the secret half of an age key
	Token            Kind = "token"             // a signed JWT
	Authorization    Kind = "authorization"     // a bearer token or basic credentials, as in an HTTP header
	DatabaseURL      Kind = "database-url"      // the address of a database with a password in it
	URLPassword      Kind = "url-password"      // any other address with a password in it
	Password         Kind = "password"          // a value under the name of a password, or a password in SQL
	PasswordHash     Kind = "password-hash"     // a verifier that a password can be guessed against
	APIKey           Kind = "api-key"           // a value under the name of a token or key
	CloudKey         Kind = "cloud-key"         // a key whose form tells which service it belongs to
	RegistryAuth     Kind = "registry-auth"     // user and password in a registry configuration
	KubernetesSecret Kind = "kubernetes-secret" // a Secret with data
	Opaque           Kind = "opaque"            // encrypted, damaged, or a container that cannot be opened
	Limit            Kind = "limit"             // deeper or larger than the limits, so that it was not read to its end
)

// Finding is one credential, or one place that could not be looked into. None of its fields holds a secret.
type Finding struct {
	File  string `json:"file"`
	Place string `json:"place"`
	Kind  Kind   `json:"kind"`
}

// String is "file: place: kind".
func (f Finding) String() string { return fmt.Sprintf("%s: %s: %s", f.File, f.Place, f.Kind) }

// Limits bound what one file may make the scanner do.
type Limits struct {
	Depth   int   // containers and encodings within each other
	Derived int64 // bytes that decompression and decoding may yield besides Ratio times the size of the file
	Ratio   int64 // bytes that each byte of the file may yield
	Members int   // members of archives
	Archive int64 // bytes of a zip file, which has to be held in memory
	Block   int   // bytes of text that are looked at together, besides what spans the end of a block
	Line    int   // bytes of a line, or of wrapped base64, which mean nothing in halves
}

// DefaultLimits are generous for logs and small for a bomb.
var DefaultLimits = Limits{Depth: 16, Derived: 256 << 20, Ratio: 40, Members: 100_000, Archive: 256 << 20, Block: 4 << 20, Line: 64 << 20}

// most findings of one file that are reported: one is enough to refuse it.
const mostFindings = 25

// Scanner scans files. It holds no state between files and may be used concurrently.
type Scanner struct {
	known  *known
	limits Limits
}

// New returns a scanner that besides everything else looks for the given secret values. A value of fewer than
// MinimumSecret bytes is refused: it would be found everywhere.
func New(limits Limits, secrets ...[]byte) (*Scanner, error) {
	known, err := newKnown(secrets)
	if err != nil {
		return nil, err
	}
	return &Scanner{known: known, limits: limits}, nil
}

// Scan reads a file to its end and returns what it found, in the order of the file, at most 25 findings. The error
// is one of reading. The name is scanned too, so that it must not be one the caller wants to keep.
func (s *Scanner) Scan(name string, content io.Reader) ([]Finding, error) {
	job := &job{scanner: s, file: name, seen: map[string]bool{}}
	if kind, bad := job.badName(name); bad {
		job.file = "a file whose name must not be shown"
		job.add("its name", kind)
	}
	counted := &countingReader{reader: content}
	job.input = counted
	if err := job.stream(bufio.NewReaderSize(counted, 64<<10), "", 0, true); err != nil {
		return nil, fmt.Errorf("scan %s for credentials: %w", job.file, err)
	}
	return job.findings, nil
}

// job is the scan of one file.
type job struct {
	scanner  *Scanner
	file     string
	input    *countingReader
	derived  int64
	members  int
	findings []Finding
	seen     map[string]bool
	stopped  bool // by a limit; said once
}

func (j *job) add(place string, kind Kind) {
	finding := Finding{File: j.file, Place: place, Kind: kind}
	if len(j.findings) >= mostFindings || j.seen[finding.String()] {
		return
	}
	j.seen[finding.String()] = true
	j.findings = append(j.findings, finding)
}

// spend takes bytes from what the file may yield, and says whether they were there.
func (j *job) spend(bytes int64) bool {
	j.derived += bytes
	return j.derived <= j.scanner.limits.Derived+j.scanner.limits.Ratio*j.input.count
}

// limit reports that something was not read to its end.
func (j *job) limit(place, what string) {
	if !j.stopped {
		j.add(join(place, what), Limit)
	}
	j.stopped = true
}

// badName says whether a name holds a credential, so that it must not be printed.
func (j *job) badName(name string) (Kind, bool) {
	probe := &job{scanner: j.scanner, file: "name", input: &countingReader{}, seen: map[string]bool{}}
	probe.text([]byte(name), view{place: "", depth: 0, line: 1})
	at := slices.IndexFunc(probe.findings, func(f Finding) bool { return f.Kind != Limit })
	if at < 0 {
		return "", false
	}
	return probe.findings[at].Kind, true
}

// join appends a step to a place.
func join(place, step string) string {
	switch {
	case place == "":
		return step
	case step == "":
		return place
	default:
		return place + " > " + step
	}
}

// countingReader counts what was read of the file itself.
type countingReader struct {
	reader io.Reader
	count  int64
}

func (c *countingReader) Read(p []byte) (int, error) {
	n, err := c.reader.Read(p)
	c.count += int64(n)
	return n, err
}

// printable makes the name of a member fit to be printed.
func printable(name string) string {
	quoted := fmt.Sprintf("%+q", name)
	if len(quoted) > 120 {
		quoted = quoted[:117] + "..."
	}
	return strings.ReplaceAll(quoted, " > ", " ")
}
