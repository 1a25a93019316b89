// Package layer makes image layers: from trees of files given as data, and from tar streams, which it cleans so
// that the same files always give the same bytes. Layers lie in files, uncompressed, with their digests beside
// them, so that using one reads nothing.
package layer

import (
	"archive/tar"
	"bufio"
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"hash"
	"io"
	"os"
	"path"
	"path/filepath"
	"strings"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/types"
)

// Epoch is the modification time of every file in a layer.
var Epoch = time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC)

const (
	tarName  = "layer.tar"
	metaName = "layer.json"
)

// Meta is what lies beside a layer's bytes.
type Meta struct {
	DiffID   string   `json:"diffID"` // sha256:...
	Size     int64    `json:"size"`   // bytes
	Packages []string `json:"packages,omitempty"`
}

// File is a layer whose bytes lie in a folder. It implements v1.Layer as an uncompressed layer.
type File struct {
	dir  string
	Meta Meta
	hash v1.Hash
}

// Open returns the layer that Writer.Close left in a folder.
func Open(dir string) (*File, error) {
	content, err := os.ReadFile(filepath.Join(dir, metaName))
	if err != nil {
		return nil, fmt.Errorf("read the digest of a layer: %w", err)
	}
	file := &File{dir: dir}
	if err := json.Unmarshal(content, &file.Meta); err != nil {
		return nil, fmt.Errorf("read the digest of the layer in %s: %w", dir, err)
	}
	if file.hash, err = v1.NewHash(file.Meta.DiffID); err != nil {
		return nil, fmt.Errorf("read the digest of the layer in %s: %w", dir, err)
	}
	return file, nil
}

// Path returns the file of the layer's bytes.
func (f *File) Path() string { return filepath.Join(f.dir, tarName) }

// Digest implements v1.Layer.
func (f *File) Digest() (v1.Hash, error) { return f.hash, nil }

// DiffID implements v1.Layer.
func (f *File) DiffID() (v1.Hash, error) { return f.hash, nil }

// Compressed implements v1.Layer; the bytes are not compressed, as MediaType says.
func (f *File) Compressed() (io.ReadCloser, error) { return os.Open(f.Path()) }

// Uncompressed implements v1.Layer.
func (f *File) Uncompressed() (io.ReadCloser, error) { return os.Open(f.Path()) }

// Size implements v1.Layer.
func (f *File) Size() (int64, error) { return f.Meta.Size, nil }

// MediaType implements v1.Layer.
func (f *File) MediaType() (types.MediaType, error) { return types.DockerUncompressedLayer, nil }

// Writer writes a layer into a folder. Entries must come parents first; the writer cleans their times and names.
type Writer struct {
	dir      string
	file     *os.File
	buffer   *bufio.Writer
	counter  *counter
	tar      *tar.Writer
	packages []string
	made     map[string]bool
}

type counter struct {
	hash hash.Hash
	size int64
}

func (c *counter) Write(content []byte) (int, error) {
	c.size += int64(len(content))
	return c.hash.Write(content)
}

// NewWriter begins a layer in a folder.
func NewWriter(dir string) (*Writer, error) {
	file, err := os.Create(filepath.Join(dir, tarName))
	if err != nil {
		return nil, fmt.Errorf("begin a layer: %w", err)
	}
	w := &Writer{dir: dir, file: file, buffer: bufio.NewWriterSize(file, 1<<20), counter: &counter{hash: sha256.New()}, made: map[string]bool{}}
	w.tar = tar.NewWriter(io.MultiWriter(w.buffer, w.counter))
	return w, nil
}

// Packages says which packages the layer holds.
func (w *Writer) Packages(packages []string) { w.packages = packages }

// Copy writes one entry of another tar. PAX records that carry times are left out.
func (w *Writer) Copy(header *tar.Header, content io.Reader) error {
	clean := *header
	clean.Name = cleanName(header.Name, header.Typeflag == tar.TypeDir)
	if header.Typeflag == tar.TypeLink {
		clean.Linkname = cleanName(header.Linkname, false)
	}
	clean.ModTime, clean.AccessTime, clean.ChangeTime = Epoch, time.Time{}, time.Time{}
	clean.Uname, clean.Gname = "", ""
	clean.Format = tar.FormatUnknown
	clean.PAXRecords = nil
	for name, value := range header.PAXRecords {
		if strings.HasPrefix(name, "SCHILY.xattr.") {
			if clean.PAXRecords == nil {
				clean.PAXRecords = map[string]string{}
			}
			clean.PAXRecords[name] = value
		}
	}
	w.made[strings.TrimSuffix(clean.Name, "/")] = true
	if err := w.tar.WriteHeader(&clean); err != nil {
		return fmt.Errorf("write %s into a layer: %w", clean.Name, err)
	}
	if header.Typeflag != tar.TypeReg {
		return nil
	}
	if _, err := io.Copy(w.tar, content); err != nil {
		return fmt.Errorf("write %s into a layer: %w", clean.Name, err)
	}
	return nil
}

func cleanName(name string, dir bool) string {
	cleaned := strings.TrimPrefix(path.Clean("/"+name), "/")
	if dir && cleaned != "" {
		cleaned += "/"
	}
	if cleaned == "" {
		return "./"
	}
	return cleaned
}

// Owner of a file in a layer.
type Owner struct{ UID, GID int }

// Root owns most files.
var Root = Owner{}

// Dir adds a folder, and the folders above it with mode 0755 owned by root where this layer has not made them.
func (w *Writer) Dir(name string, mode int64, owner Owner) error {
	if err := w.parents(name); err != nil {
		return err
	}
	return w.Copy(&tar.Header{Typeflag: tar.TypeDir, Name: name, Mode: mode, Uid: owner.UID, Gid: owner.GID}, nil)
}

// Bytes adds a file with the given content.
func (w *Writer) Bytes(name string, content []byte, mode int64, owner Owner) error {
	if err := w.parents(name); err != nil {
		return err
	}
	header := &tar.Header{Typeflag: tar.TypeReg, Name: name, Mode: mode, Size: int64(len(content)), Uid: owner.UID, Gid: owner.GID}
	return w.Copy(header, bytes.NewReader(content))
}

// FromFile adds a file with the content of a file of this machine.
func (w *Writer) FromFile(name, source string, mode int64, owner Owner) error {
	file, err := os.Open(source)
	if err != nil {
		return fmt.Errorf("read what goes into a layer: %w", err)
	}
	defer func() { _ = file.Close() }()
	info, err := file.Stat()
	if err != nil {
		return fmt.Errorf("read what goes into a layer: %w", err)
	}
	if err := w.parents(name); err != nil {
		return err
	}
	header := &tar.Header{Typeflag: tar.TypeReg, Name: name, Mode: mode, Size: info.Size(), Uid: owner.UID, Gid: owner.GID}
	return w.Copy(header, file)
}

// Symlink adds a symbolic link.
func (w *Writer) Symlink(name, target string) error {
	if err := w.parents(name); err != nil {
		return err
	}
	return w.Copy(&tar.Header{Typeflag: tar.TypeSymlink, Name: name, Linkname: target, Mode: 0o777}, nil)
}

// Remove hides a file of a layer below.
func (w *Writer) Remove(name string) error {
	return w.Bytes(path.Join(path.Dir(name), ".wh."+path.Base(name)), nil, 0o644, Root)
}

func (w *Writer) parents(name string) error {
	dir := path.Dir(cleanName(name, false))
	if dir == "." || dir == "/" || w.made[dir] {
		return nil
	}
	return w.Dir(dir, 0o755, Root)
}

// Close finishes the layer and returns it.
func (w *Writer) Close() (*File, error) {
	if err := errors.Join(w.tar.Close(), w.buffer.Flush(), w.file.Close()); err != nil {
		return nil, fmt.Errorf("finish a layer: %w", err)
	}
	meta := Meta{DiffID: "sha256:" + hex.EncodeToString(w.counter.hash.Sum(nil)), Size: w.counter.size, Packages: w.packages}
	content, err := json.MarshalIndent(meta, "", "  ")
	if err != nil {
		return nil, err
	}
	if err := os.WriteFile(filepath.Join(w.dir, metaName), append(content, '\n'), 0o644); err != nil {
		return nil, fmt.Errorf("write the digest of a layer: %w", err)
	}
	return Open(w.dir)
}

// Abort closes the file of an unfinished layer, which nobody reads. It does nothing to a finished one.
func (w *Writer) Abort() { _ = w.file.Close() }
