package secretscan

import (
	"archive/tar"
	"archive/zip"
	"bufio"
	"bytes"
	"compress/bzip2"
	"compress/gzip"
	"compress/zlib"
	"errors"
	"fmt"
	"io"
	"unicode/utf16"

	"github.com/klauspost/compress/zstd"
)

// format is what the first bytes of something say it is.
type format string

const (
	formatText   format = "text"
	formatGzip   format = "gzip"
	formatZstd   format = "zstd"
	formatBzip2  format = "bzip2"
	formatZlib   format = "zlib"
	formatTar    format = "tar"
	formatZip    format = "zip"
	formatUTF16  format = "UTF-16"
	formatOpaque format = "opaque"
)

// opaque are the first bytes of what this package cannot look into.
var opaque = map[string]string{
	"age-encryption.org/":                  "an encrypted file",
	"-----BEGIN AGE ENCRYPTED FILE-----":   "an encrypted file",
	"-----BEGIN PGP MESSAGE-----":          "an encrypted file",
	"Salted__":                             "an encrypted file",
	"\xfd7zXZ\x00":                         "an xz file",
	"7z\xbc\xaf\x27\x1c":                   "a 7z file",
	"Rar!\x1a\x07":                         "a rar file",
	"\x04\x22\x4d\x18":                     "an lz4 file",
	"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1":     "an office file",
	"SQLite format 3\x00":                  "a database file",
	"\x89HDF\r\n\x1a\n":                    "an HDF file",
	"%PDF-":                                "a PDF file",
	"-----BEGIN ENCRYPTED AGE IDENTITY---": "an encrypted file",
}

// sniff tells the format by the first bytes. The marks are long enough that no text and hardly any random bytes
// begin with one.
func sniff(head []byte) (format, string) {
	for mark, what := range opaque {
		if bytes.HasPrefix(head, []byte(mark)) {
			return formatOpaque, what
		}
	}
	switch {
	case len(head) > 4 && bytes.HasPrefix(head, []byte("\x1f\x8b\x08")) && head[3]&0xe0 == 0:
		return formatGzip, ""
	case bytes.HasPrefix(head, []byte("\x28\xb5\x2f\xfd")), len(head) > 4 && bytes.Equal(head[1:4], []byte("\x2a\x4d\x18")) && head[0]>>4 == 5:
		return formatZstd, ""
	case len(head) > 10 && bytes.HasPrefix(head, []byte("BZh")) && bytes.Equal(head[4:10], []byte("1AY&SY")):
		return formatBzip2, ""
	case bytes.HasPrefix(head, []byte("PK\x03\x04")), bytes.HasPrefix(head, []byte("PK\x05\x06")):
		return formatZip, ""
	case len(head) > 262 && bytes.Equal(head[257:262], []byte("ustar")):
		return formatTar, ""
	case len(head) > 2 && head[0] == 0x78 && (head[1] == 0x01 || head[1] == 0x9c || head[1] == 0xda):
		return formatZlib, ""
	case bytes.HasPrefix(head, []byte("\xff\xfe")), bytes.HasPrefix(head, []byte("\xfe\xff")), wide(head):
		return formatUTF16, ""
	}
	return formatText, ""
}

// wide says whether bytes look like UTF-16 of mostly Latin text without its mark.
func wide(head []byte) bool {
	if len(head) < 32 {
		return false
	}
	var zero [2]int
	for i, b := range head {
		if b == 0 {
			zero[i%2]++
		}
	}
	half := len(head) / 2
	return max(zero[0], zero[1]) > half*8/10 && min(zero[0], zero[1]) < half/10
}

// stream scans what a reader yields. Exact says that its first bytes are a promise: a container that cannot be read
// to its end is then a finding. Bytes that came out of a decoder may begin like a container by accident.
func (j *job) stream(r *bufio.Reader, place string, depth int, exact bool) error {
	if j.stopped {
		return nil
	}
	if depth > j.scanner.limits.Depth {
		j.limit(place, fmt.Sprintf("more than %d containers and encodings within each other", j.scanner.limits.Depth))
		return nil
	}
	head, err := r.Peek(512)
	if err != nil && !errors.Is(err, io.EOF) {
		return j.damaged(place, depth, exact, err)
	}
	format, what := sniff(head)
	switch format {
	case formatOpaque:
		if exact {
			j.add(join(place, what), Opaque)
			return nil
		}
		return j.blocks(r, place, depth, exact)
	case formatTar:
		return j.tar(r, join(place, "tar"), depth, exact)
	case formatZip:
		return j.zip(r, join(place, "zip"), depth, exact)
	case formatUTF16:
		return j.blocks(newUTF16Reader(r, head), join(place, "UTF-16"), depth, exact)
	case formatText:
		return j.blocks(r, place, depth, exact)
	default:
		return j.compressed(r, format, place, depth, exact)
	}
}

// damaged reports a container whose bytes are not what its first bytes promise. At depth 0 the file itself could not
// be read, which is an error of the caller's machine.
func (j *job) damaged(place string, depth int, exact bool, err error) error {
	var over *overLimit
	switch {
	case errors.As(err, &over):
		j.limit(place, "it yields more than a file of this size may")
		return nil
	case depth == 0:
		return err
	case exact:
		j.add(join(place, "damaged"), Opaque)
	}
	return nil
}

// compressed scans what a compressed stream holds, member after member.
func (j *job) compressed(r *bufio.Reader, kind format, place string, depth int, exact bool) error {
	place = join(place, string(kind))
	expanded, err := decompressor(r, kind)
	if err != nil {
		return j.damaged(place, depth+1, exact, err)
	}
	defer func() { _ = expanded.Close() }()
	if header, ok := expanded.(*gzip.Reader); ok {
		j.text([]byte(header.Name+"\n"+header.Comment+"\n"+string(header.Extra)), view{place: join(place, "its header"), depth: depth + 1, line: 1})
	}
	return j.stream(bufio.NewReaderSize(&spendingReader{job: j, reader: expanded}, 64<<10), place, depth+1, exact)
}

func decompressor(r io.Reader, kind format) (io.ReadCloser, error) {
	switch kind {
	case formatGzip:
		return gzip.NewReader(r)
	case formatZlib:
		return zlib.NewReader(r)
	case formatBzip2:
		return io.NopCloser(bzip2.NewReader(r)), nil
	default:
		decoder, err := zstd.NewReader(r, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxWindow(64<<20))
		if err != nil {
			return nil, err
		}
		return decoder.IOReadCloser(), nil
	}
}

// overLimit is the error of a reader whose file has yielded too much.
type overLimit struct{}

func (*overLimit) Error() string { return "it yields more than a file of this size may" }

// spendingReader takes what it yields from what the file may yield.
type spendingReader struct {
	job    *job
	reader io.Reader
}

func (s *spendingReader) Read(p []byte) (int, error) {
	if s.job.stopped {
		return 0, io.EOF
	}
	n, err := s.reader.Read(p)
	if !s.job.spend(int64(n)) {
		return 0, &overLimit{}
	}
	return n, err
}

// member counts a member of an archive and returns its place. A name that holds a credential is not part of it.
func (j *job) member(place, name string) (string, bool) {
	j.members++
	if j.members > j.scanner.limits.Members {
		j.limit(place, fmt.Sprintf("more than %d members of archives", j.scanner.limits.Members))
		return "", false
	}
	if kind, bad := j.badName(name); bad {
		inside := join(place, fmt.Sprintf("member %d", j.members))
		j.add(join(inside, "its name"), kind)
		return inside, true
	}
	return join(place, printable(name)), true
}

// tar scans the members of a tar file one by one, and all its bytes as they stand: what is in headers, in padding and
// after the end is published as well.
func (j *job) tar(r *bufio.Reader, place string, depth int, exact bool) error {
	raw := newBlockWriter(j, view{place: join(place, "as it stands"), depth: depth + 1, line: 1})
	tee := io.TeeReader(r, raw)
	archive := tar.NewReader(tee)
	for {
		header, err := archive.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			if err := j.damaged(place, depth+1, exact, err); err != nil {
				return err
			}
			break
		}
		inside, ok := j.member(place, header.Name)
		if !ok {
			return nil
		}
		if err := j.stream(bufio.NewReaderSize(archive, 64<<10), inside, depth+1, exact); err != nil {
			return err
		}
	}
	if _, err := io.Copy(io.Discard, tee); err != nil {
		return j.damaged(place, depth+1, exact, err)
	}
	raw.close()
	return nil
}

// zip scans the members of a zip file, which is read whole first, and all its bytes as they stand.
func (j *job) zip(r *bufio.Reader, place string, depth int, exact bool) error {
	data, err := io.ReadAll(io.LimitReader(r, j.scanner.limits.Archive+1))
	if err != nil {
		return j.damaged(place, depth, exact, err)
	}
	if int64(len(data)) > j.scanner.limits.Archive {
		j.limit(place, fmt.Sprintf("a zip file of more than %d bytes", j.scanner.limits.Archive))
		return nil
	}
	j.text(data, view{place: join(place, "as it stands"), depth: depth + 1, line: 1})
	archive, err := zip.NewReader(bytes.NewReader(data), int64(len(data)))
	if err != nil {
		return j.damaged(place, depth+1, exact, err)
	}
	for _, file := range archive.File {
		inside, ok := j.member(place, file.Name)
		if !ok {
			return nil
		}
		content, err := file.Open()
		if err != nil { // encrypted, or compressed in a way this program does not know
			j.add(inside, Opaque)
			continue
		}
		err = j.stream(bufio.NewReaderSize(&spendingReader{job: j, reader: content}, 64<<10), inside, depth+1, exact)
		_ = content.Close()
		if err != nil {
			return err
		}
	}
	return nil
}

// utf16Reader turns UTF-16 into UTF-8.
type utf16Reader struct {
	reader io.Reader
	big    bool
	left   []byte // an odd byte of the last read
	ready  []byte
}

func newUTF16Reader(r io.Reader, head []byte) *utf16Reader {
	big := bytes.HasPrefix(head, []byte("\xfe\xff"))
	if !big && !bytes.HasPrefix(head, []byte("\xff\xfe")) && len(head) > 1 {
		big = head[0] == 0
	}
	return &utf16Reader{reader: r, big: big}
}

func (u *utf16Reader) Read(p []byte) (int, error) {
	for len(u.ready) == 0 {
		buffer := make([]byte, 32<<10)
		n, err := u.reader.Read(buffer)
		u.left = append(u.left, buffer[:n]...)
		units := make([]uint16, 0, len(u.left)/2)
		for i := 0; i+1 < len(u.left); i += 2 {
			low, high := u.left[i], u.left[i+1]
			if u.big {
				low, high = high, low
			}
			units = append(units, uint16(high)<<8|uint16(low))
		}
		u.left = u.left[len(units)*2:]
		u.ready = []byte(string(utf16.Decode(units)))
		if err != nil && len(u.ready) == 0 {
			return 0, err
		}
	}
	n := copy(p, u.ready)
	u.ready = u.ready[n:]
	return n, nil
}
