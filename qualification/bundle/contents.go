package bundle

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"ptah.run/ptah/qualification/bundle/secretscan"
	"ptah.run/ptah/qualification/evidence"
)

// Contents is what a bundle will hold. Files are added, then prepared, then written.
type Contents struct {
	description Description
	sources     map[string]*source
}

type source struct {
	file File
	open func() (io.ReadCloser, error)
}

// New returns empty contents with the README.
func New(description Description) (*Contents, error) {
	c := &Contents{description: description, sources: map[string]*source{}}
	if err := (Index{Schema: Schema, Description: description}).check(); err != nil {
		return nil, fmt.Errorf("make the bundle: %w", err)
	}
	return c, c.AddBytes(ReadmeName, "text/plain; charset=utf-8", readme(description))
}

// AddBytes adds a file that is held in memory.
func (c *Contents) AddBytes(path, mediaType string, data []byte) error {
	return c.add(File{Path: path, MediaType: mediaType}, func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(data)), nil })
}

// AddFile adds a file of the file system. It is opened when it is needed; a link is refused.
func (c *Contents) AddFile(path, name string) error { return c.addFile(File{Path: path}, name) }

func (c *Contents) addFile(file File, name string) error {
	info, err := os.Lstat(name)
	if err != nil {
		return fmt.Errorf("add %s to the bundle: %w", name, err)
	}
	if !info.Mode().IsRegular() {
		return fmt.Errorf("add %s to the bundle: it is no regular file, and links are not followed", name)
	}
	if file.MediaType == "" {
		file.MediaType = MediaType(name)
	}
	return c.add(file, func() (io.ReadCloser, error) { return os.Open(name) })
}

func (c *Contents) add(file File, open func() (io.ReadCloser, error)) error {
	if err := checkPath(file.Path); err != nil {
		return fmt.Errorf("add %s to the bundle, rename it: %w", file.Path, err)
	}
	if !representable(c.description.Name, file.Path) {
		return fmt.Errorf("add %s to the bundle: the path is too long for a tar file, shorten it", file.Path)
	}
	if _, twice := c.sources[file.Path]; twice {
		return fmt.Errorf("add %s to the bundle: it is there already", file.Path)
	}
	c.sources[file.Path] = &source{file: file, open: open}
	return nil
}

// AddRun adds a closed run after checking every byte of it, as it lies in its directory, so that it verifies where the
// bundle is unpacked.
func (c *Contents) AddRun(dir string) error {
	snapshot, err := evidence.ReadRun(dir)
	if err != nil {
		return fmt.Errorf("add the evidence to the bundle: %w", err)
	}
	files := map[string]*File{}
	for _, entry := range snapshot.Entries() {
		file := files[entry.Path]
		if file == nil {
			file = &File{Path: path.Join(EvidenceFolder, entry.Path), MediaType: MediaType(entry.Name)}
			files[entry.Path] = file
		}
		if entry.Name != entry.Path {
			file.Names = append(file.Names, entry.Name)
		}
	}
	files[manifestName] = &File{Path: path.Join(EvidenceFolder, manifestName), MediaType: MediaType(manifestName)}
	for name, file := range files {
		slices.Sort(file.Names)
		if err := c.addFile(*file, filepath.Join(dir, filepath.FromSlash(name))); err != nil {
			return err
		}
	}
	return nil
}

// manifestName is the file of a run that no entry of its manifest names.
const manifestName = "manifest.json"

// AddRestricted adds a file, or a folder with everything in it, to the restricted files.
func (c *Contents) AddRestricted(name string) error {
	if c.description.Kind != Restricted {
		return fmt.Errorf("add %s to the bundle: a public bundle has no restricted files", name)
	}
	base := filepath.Base(filepath.Clean(name))
	return filepath.WalkDir(name, func(file string, entry fs.DirEntry, err error) error {
		if err != nil {
			return fmt.Errorf("add %s to the bundle: %w", name, err)
		}
		if entry.IsDir() {
			return nil
		}
		relative, err := filepath.Rel(name, file)
		if err != nil {
			return fmt.Errorf("add %s to the bundle: %w", name, err)
		}
		return c.AddFile(path.Join(RestrictedFolder, base, filepath.ToSlash(relative)), file)
	})
}

// CredentialsError is why contents are not published. Its findings hold no secret.
type CredentialsError struct{ Findings []secretscan.Finding }

func (e *CredentialsError) Error() string {
	files := map[string]bool{}
	for _, finding := range e.Findings {
		files[finding.File] = true
	}
	return fmt.Sprintf("nothing was written: %d places in %d files hold credentials or cannot be looked into, first %s", len(e.Findings), len(files), e.Findings[0])
}

// Prepared is a bundle that was read once and may be written.
type Prepared struct {
	index   Index
	sources []*source
}

// Prepare reads every file once: it scans it for credentials and takes its size and sum. A finding is a
// *CredentialsError with all findings; in restricted files it is only noted in the index.
func (c *Contents) Prepare(scanner *secretscan.Scanner) (*Prepared, error) {
	p := &Prepared{index: Index{Schema: Schema, Description: c.description, Files: []File{}}}
	for _, s := range c.sources {
		p.sources = append(p.sources, s)
	}
	slices.SortFunc(p.sources, func(a, b *source) int { return strings.Compare(a.file.Path, b.file.Path) })
	var refusing []secretscan.Finding
	for _, s := range p.sources {
		findings, err := s.prepare(scanner)
		if err != nil {
			return nil, err
		}
		if strings.HasPrefix(s.file.Path, RestrictedFolder+"/") {
			p.index.Findings = append(p.index.Findings, findings...)
		} else {
			refusing = append(refusing, findings...)
		}
		p.index.Files = append(p.index.Files, s.file)
	}
	if len(refusing) > 0 {
		return nil, &CredentialsError{Findings: refusing}
	}
	if err := p.index.check(); err != nil {
		return nil, fmt.Errorf("make the bundle: %w", err)
	}
	return p, nil
}

// prepare scans one file under the name that a person knows it by.
func (s *source) prepare(scanner *secretscan.Scanner) ([]secretscan.Finding, error) {
	content, err := s.open()
	if err != nil {
		return nil, fmt.Errorf("read %s for the bundle: %w", s.file.Path, err)
	}
	defer func() { _ = content.Close() }()
	hash, count := sha256.New(), &counter{}
	tee := io.TeeReader(content, io.MultiWriter(hash, count))
	name := s.file.Path
	if len(s.file.Names) > 0 {
		name = path.Join(EvidenceFolder, s.file.Names[0])
	}
	findings, err := scanner.Scan(name, tee)
	if err != nil {
		return nil, err
	}
	// A scan that a finding ended has not read the rest.
	if _, err := io.Copy(io.Discard, tee); err != nil {
		return nil, fmt.Errorf("read %s for the bundle: %w", s.file.Path, err)
	}
	s.file.Size, s.file.SHA256 = count.n, hexSum(hash.Sum(nil))
	return findings, nil
}

type counter struct{ n int64 }

func (c *counter) Write(p []byte) (int, error) {
	c.n += int64(len(p))
	return len(p), nil
}

// Index is the index of the bundle.
func (p *Prepared) Index() Index { return p.index }

func readme(d Description) []byte {
	var out strings.Builder
	fmt.Fprintf(&out, `Qualification of the Ptah operator: %s bundle of run %s
Profile %s, verdict %s.

To check that the files are the ones that were packed, in this folder:

  sha256sum -c SHA256SUMS

To check the signatures, every byte of the evidence, and that judging it again gives the same verdicts, with a public
key that you have from elsewhere:

  ptah-qualify bundle verify FILE.tar --key KEY.pub

or unpacked:

  ptah-qualify record verify --record record/qualification-record.json --key KEY.pub --run evidence --reports reports

Neither uses a network. reports/report.html is for reading, and needs none either.

What the evidence shows:
  %s

What it does not show:
`, d.Kind, d.Run, d.Profile, d.Verdict, d.Scope.Shows)
	for _, limit := range d.Scope.NotShown {
		fmt.Fprintf(&out, "- %s\n", limit)
	}
	return []byte(out.String())
}

// MediaType tells the media type by the name of a file.
func MediaType(name string) string {
	switch strings.ToLower(path.Ext(name)) {
	case ".json":
		return "application/json"
	case ".jsonl":
		return "application/jsonl"
	case ".yaml", ".yml":
		return "application/yaml"
	case ".html":
		return "text/html; charset=utf-8"
	case ".md":
		return "text/markdown; charset=utf-8"
	case ".xml":
		return "application/xml"
	case ".csv":
		return "text/csv; charset=utf-8"
	case ".pub", ".pem", ".crt":
		return "application/x-pem-file"
	case ".log", ".txt":
		return "text/plain; charset=utf-8"
	default:
		return "application/octet-stream"
	}
}
