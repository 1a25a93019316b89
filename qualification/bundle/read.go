package bundle

import (
	"archive/tar"
	"bytes"
	"crypto/sha256"
	"errors"
	"fmt"
	"hash"
	"io"
	"strings"
)

// Visit is called with each file of a bundle while it is read. That the content is what the index says is known only
// when Read returns without an error.
type Visit func(file File, content io.Reader) error

// Read reads a bundle from its first to its last byte and refuses whatever WriteTo would not have written. Errors that
// wrap ErrRefused are about the bundle, others are those of reading and of visit, which may be nil.
func Read(r io.Reader, visit Visit) (*Index, error) {
	reader := &bundleReader{raw: sha256.New(), again: sha256.New(), visit: visit, seen: map[string]bool{}}
	source := &failureReader{reader: r}
	tee := io.TeeReader(source, reader.raw)
	reader.in, reader.out = tar.NewReader(tee), tar.NewWriter(reader.again)
	err := reader.members()
	if err == nil {
		err = reader.end(tee)
	}
	switch {
	case source.err != nil:
		return nil, fmt.Errorf("read the bundle: %w", source.err)
	case err != nil:
		return nil, err
	}
	return reader.index, nil
}

// failureReader remembers an error of reading, so that a broken disk is not taken for a broken bundle.
type failureReader struct {
	reader io.Reader
	err    error
}

func (f *failureReader) Read(p []byte) (int, error) {
	n, err := f.reader.Read(p)
	if err != nil && !errors.Is(err, io.EOF) && !errors.Is(err, ErrRefused) {
		f.err = err
	}
	return n, err
}

type bundleReader struct {
	in    *tar.Reader
	out   *tar.Writer // writes the same members again: the bundle must come out the same
	raw   hash.Hash
	again hash.Hash
	visit Visit

	folder string
	index  *Index
	files  map[string]File
	sums   []byte
	seen   map[string]bool
	last   string
}

func (b *bundleReader) members() error {
	for {
		header, err := b.in.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return refused("it is no tar file, or cut: %v", err)
		}
		path, err := b.path(header)
		if err != nil {
			return err
		}
		if b.index == nil {
			err = b.readIndex(header, path)
		} else {
			err = b.readMember(header, path)
		}
		if err != nil {
			return err
		}
	}
}

// path checks the header of a member and returns its path in the bundle.
func (b *bundleReader) path(header *tar.Header) (string, error) {
	if header.Typeflag != tar.TypeReg {
		return "", refused("%.120q is no regular file: links, folders and devices are never part of a bundle", header.Name)
	}
	folder, path, _ := strings.Cut(header.Name, "/")
	if !namePattern.MatchString(folder) {
		return "", refused("%.120q does not lie in the folder of a bundle", header.Name)
	}
	if err := checkPath(path); err != nil {
		return "", err
	}
	if b.folder == "" {
		b.folder = folder
	}
	switch {
	case folder != b.folder:
		return "", refused("%.120q does not lie in the folder %s", header.Name, b.folder)
	case b.seen[path]:
		return "", refused("%s is there twice", path)
	case path < b.last:
		return "", refused("%s stands after %s, members are sorted", path, b.last)
	case header.Size > MaxSize:
		return "", refused("%s has %d bytes, the limit is %d", path, header.Size, int64(MaxSize))
	}
	b.seen[path], b.last = true, path
	return path, nil
}

func (b *bundleReader) readIndex(header *tar.Header, path string) error {
	if path != IndexName {
		return refused("it begins with %s and not with %s", path, IndexName)
	}
	data, err := b.own(header, path)
	if err != nil {
		return err
	}
	if b.index, err = decodeIndex(data); err != nil {
		return err
	}
	if b.index.Name != b.folder {
		return refused("%s is that of %s, the folder is %s", IndexName, b.index.Name, b.folder)
	}
	b.files = map[string]File{}
	for _, file := range b.index.Files {
		b.files[file.Path] = file
	}
	b.sums = b.index.sums(sumOf(data))
	return nil
}

// own reads INDEX.json or SHA256SUMS.
func (b *bundleReader) own(header *tar.Header, path string) ([]byte, error) {
	if header.Size > maxIndex {
		return nil, refused("%s has %d bytes, the limit is %d", path, header.Size, maxIndex)
	}
	var data bytes.Buffer
	err := b.copy(header, path, func(content io.Reader) error {
		if _, err := io.Copy(&data, content); err != nil {
			return refused("%s is cut: %v", path, err)
		}
		return nil
	})
	return data.Bytes(), err
}

// copy gives the content of a member to take and writes the member again.
func (b *bundleReader) copy(from *tar.Header, path string, take func(io.Reader) error) error {
	canonical := header(b.folder, path, from.Size)
	if err := b.out.WriteHeader(&canonical); err != nil {
		return refused("%s: %v", path, err)
	}
	tee := io.TeeReader(b.in, b.out)
	if err := take(tee); err != nil {
		return err
	}
	if _, err := io.Copy(io.Discard, tee); err != nil {
		return refused("%s is cut: %v", path, err)
	}
	return nil
}

func (b *bundleReader) readMember(header *tar.Header, path string) error {
	if path == SumsName {
		data, err := b.own(header, path)
		if err == nil && !bytes.Equal(data, b.sums) {
			return refused("%s does not hold the sums of %s", SumsName, IndexName)
		}
		return err
	}
	file, known := b.files[path]
	switch {
	case !known:
		return refused("%s is there and %s does not name it", path, IndexName)
	case header.Size != file.Size:
		return refused("%s was altered: it has %d bytes, %s says %d", path, header.Size, IndexName, file.Size)
	}
	sum := sha256.New()
	err := b.copy(header, path, func(content io.Reader) error {
		tee := io.TeeReader(content, sum)
		if b.visit != nil {
			if err := b.visit(file, tee); err != nil {
				return err
			}
		}
		if _, err := io.Copy(io.Discard, tee); err != nil {
			return refused("%s is cut: %v", path, err)
		}
		return nil
	})
	if err != nil {
		return err
	}
	if hexSum(sum.Sum(nil)) != file.SHA256 {
		return refused("%s was altered: its sum is not the one in %s", path, IndexName)
	}
	return nil
}

// end checks that nothing is missing and that the whole file is what these members make.
func (b *bundleReader) end(rest io.Reader) error {
	if b.index == nil {
		return refused("it has no member")
	}
	for _, file := range b.index.Files {
		if !b.seen[file.Path] {
			return refused("%s is missing", file.Path)
		}
	}
	if !b.seen[SumsName] {
		return refused("%s is missing", SumsName)
	}
	if _, err := io.Copy(io.Discard, rest); err != nil {
		return refused("it cannot be read to its end: %v", err)
	}
	if err := b.out.Close(); err != nil {
		return fmt.Errorf("read the bundle: %w", err)
	}
	if !bytes.Equal(b.raw.Sum(nil), b.again.Sum(nil)) {
		return refused("it has bytes that no file in it accounts for, or headers that no bundle has")
	}
	return nil
}
