package bundle

import (
	"archive/tar"
	"bytes"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"time"
)

// WriteTo writes the bundle. A file that changed since it was prepared ends it with an error: what is written is what
// was scanned.
func (p *Prepared) WriteTo(w io.Writer) (int64, error) {
	count := &counter{}
	out := tar.NewWriter(io.MultiWriter(w, count))
	index, err := p.index.Encode()
	if err != nil {
		return 0, err
	}
	sums := p.index.sums(sumOf(index))
	for _, member := range p.members(index, sums) {
		if err := member.write(out, p.index.Name); err != nil {
			return count.n, err
		}
	}
	if err := out.Close(); err != nil {
		return count.n, fmt.Errorf("write the bundle: %w", err)
	}
	return count.n, nil
}

type member struct {
	file File
	open func() (io.ReadCloser, error)
}

// members returns everything in the order of names.
func (p *Prepared) members(index, sums []byte) []member {
	own := func(path string, data []byte) member {
		return member{File{Path: path, Size: int64(len(data)), SHA256: sumOf(data)}, func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(data)), nil }}
	}
	list := []member{own(IndexName, index)}
	summed := false
	for _, s := range p.sources {
		if !summed && s.file.Path > SumsName {
			list, summed = append(list, own(SumsName, sums)), true
		}
		list = append(list, member{s.file, s.open})
	}
	if !summed {
		list = append(list, own(SumsName, sums))
	}
	return list
}

func (m member) write(out *tar.Writer, folder string) error {
	header := header(folder, m.file.Path, m.file.Size)
	if err := out.WriteHeader(&header); err != nil {
		return fmt.Errorf("write %s into the bundle: %w", m.file.Path, err)
	}
	content, err := m.open()
	if err != nil {
		return fmt.Errorf("write %s into the bundle: %w", m.file.Path, err)
	}
	defer func() { _ = content.Close() }()
	hash := sha256.New()
	size, err := io.Copy(out, io.TeeReader(content, hash))
	if errors.Is(err, tar.ErrWriteTooLong) || err == nil && (size != m.file.Size || hexSum(hash.Sum(nil)) != m.file.SHA256) {
		return fmt.Errorf("write %s into the bundle: it changed after it was scanned, begin again", m.file.Path)
	}
	if err != nil {
		return fmt.Errorf("write %s into the bundle: %w", m.file.Path, err)
	}
	return nil
}

// header is the only header that a member of a bundle has.
func header(folder, path string, size int64) tar.Header {
	return tar.Header{Typeflag: tar.TypeReg, Name: folder + "/" + path, Size: size, Mode: 0o644, ModTime: time.Unix(0, 0).UTC(), Format: tar.FormatUSTAR}
}
