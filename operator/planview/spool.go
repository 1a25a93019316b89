package planview

import (
	"bufio"
	"bytes"
	"crypto/aes"
	"crypto/cipher"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"os"

	"ptah.run/ptah/operator/api/v1alpha1"
)

// spool keeps the bytes of a plan from when they are verified until they are printed. One chunk stays in memory. More go
// to a file of a name that is gone at once, encrypted by a key that nobody else has, because a plan can hold rows: what
// is left on the disk, whatever happens, is noise.
type spool struct {
	memory *bytes.Buffer
	file   *os.File
	block  cipher.Block
	write  cipher.StreamWriter
	size   int64
}

func newSpool(size int64) (*spool, error) {
	if size <= v1alpha1.MaxChunkBytes {
		return &spool{memory: &bytes.Buffer{}}, nil
	}
	s, err := newFileSpool()
	if err != nil {
		return nil, fmt.Errorf("keep the plan in a temporary file until it is verified (set TMPDIR to a folder that takes %d bytes): %w", size, err)
	}
	return s, nil
}

func newFileSpool() (*spool, error) {
	key := make([]byte, 32)
	if _, err := rand.Read(key); err != nil {
		return nil, err
	}
	block, err := aes.NewCipher(key)
	if err != nil {
		return nil, err
	}
	file, err := os.CreateTemp("", "kubectl-ptah-")
	if err != nil {
		return nil, err
	}
	if err := os.Remove(file.Name()); err != nil {
		return nil, errors.Join(err, file.Close())
	}
	s := &spool{file: file, block: block}
	s.write = cipher.StreamWriter{S: s.stream(), W: file}
	return s, nil
}

// stream begins the key stream anew. The key is used for one sequence of bytes, so that it needs no nonce.
func (s *spool) stream() cipher.Stream { return cipher.NewCTR(s.block, make([]byte, aes.BlockSize)) }

// Write appends.
func (s *spool) Write(p []byte) (int, error) {
	if s.memory != nil {
		return s.memory.Write(p)
	}
	n, err := s.write.Write(p)
	s.size += int64(n)
	return n, err
}

// Open reads from the beginning. Several readers do not disturb each other.
func (s *spool) Open() io.Reader {
	if s.memory != nil {
		return bytes.NewReader(s.memory.Bytes())
	}
	return bufio.NewReaderSize(&cipher.StreamReader{S: s.stream(), R: io.NewSectionReader(s.file, 0, s.size)}, 64<<10)
}

// Close forgets the bytes.
func (s *spool) Close() error {
	if s.file == nil {
		return nil
	}
	return s.file.Close()
}
