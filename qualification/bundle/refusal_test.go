package bundle_test

import (
	"archive/tar"
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"time"

	"ptah.run/ptah/qualification/bundle"
	"ptah.run/ptah/qualification/bundle/secretscan"
)

// piece is a member of a tar file that a test changes.
type piece struct {
	header tar.Header
	data   []byte
}

const folder = "ptah-qualification-x"

func newPiece(path string, data []byte) piece {
	return piece{tar.Header{Typeflag: tar.TypeReg, Name: folder + "/" + path, Size: int64(len(data)), Mode: 0o644, ModTime: time.Unix(0, 0), Format: tar.FormatUSTAR}, data}
}

func join(t testing.TB, pieces []piece) []byte {
	t.Helper()
	var out bytes.Buffer
	w := tar.NewWriter(&out)
	for _, p := range pieces {
		must(t, w.WriteHeader(&p.header))
		_, err := w.Write(p.data)
		must(t, err)
	}
	must(t, w.Close())
	return out.Bytes()
}

// small returns the members of a small bundle. Its index is made with the change, and so are its sums.
func small(t testing.TB, change func(*bundle.Index)) []piece {
	t.Helper()
	contents, err := bundle.New(description(bundle.Public))
	must(t, err)
	must(t, contents.AddBytes("evidence/a", "text/plain", []byte("aaaa")))
	must(t, contents.AddBytes("evidence/b", "text/plain", []byte("bbbb")))
	prepared, err := contents.Prepare(scanner(t))
	must(t, err)
	var out bytes.Buffer
	_, err = prepared.WriteTo(&out)
	must(t, err)
	var pieces []piece
	reader := tar.NewReader(&out)
	for {
		header, err := reader.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		must(t, err)
		data, err := io.ReadAll(reader)
		must(t, err)
		pieces = append(pieces, newPiece(strings.TrimPrefix(header.Name, folder+"/"), data))
	}
	if change != nil {
		index := prepared.Index()
		change(&index)
		data, err := index.Encode()
		must(t, err)
		var sums strings.Builder
		fmt.Fprintf(&sums, "%s  INDEX.json\n", sum(data))
		for _, file := range index.Files {
			fmt.Fprintf(&sums, "%s  %s\n", file.SHA256, file.Path)
		}
		pieces[0], pieces[2] = newPiece("INDEX.json", data), newPiece("SHA256SUMS", []byte(sums.String()))
	}
	return pieces
}

func sum(data []byte) string {
	digest := sha256.Sum256(data)
	return hex.EncodeToString(digest[:])
}

func TestTheReaderRefuses(t *testing.T) {
	// Members: INDEX.json, README.txt, SHA256SUMS, evidence/a, evidence/b.
	if index, err := bundle.Read(bytes.NewReader(join(t, small(t, nil))), nil); err != nil || len(index.Files) != 3 {
		t.Fatalf("control: %v", err)
	}
	if _, err := bundle.Read(bytes.NewReader(join(t, small(t, func(*bundle.Index) {}))), nil); err != nil {
		t.Fatalf("control with a rebuilt index: %v", err)
	}
	link := func(kind byte, target string) piece {
		p := newPiece("evidence/c", nil)
		p.header.Typeflag, p.header.Linkname = kind, target
		return p
	}
	with := func(change func([]piece) []piece) []byte { return join(t, change(small(t, nil))) }
	indexed := func(change func(*bundle.Index)) []byte { return join(t, small(t, change)) }
	extra := bundle.File{Path: "evidence/c", Size: 1, SHA256: sum([]byte("c")), MediaType: "text/plain"}
	whole := join(t, small(t, nil))
	cases := map[string]struct {
		data []byte
		want string
	}{
		"an altered file":           {with(func(p []piece) []piece { p[3].data = []byte("aaab"); return p }), "was altered"},
		"a longer file":             {with(func(p []piece) []piece { p[3] = newPiece("evidence/a", []byte("aaaaa")); return p }), "was altered"},
		"a missing file":            {with(func(p []piece) []piece { return p[:4] }), "is missing"},
		"an extra file":             {with(func(p []piece) []piece { return append(p, newPiece("evidence/c", []byte("c"))) }), "does not name it"},
		"a file twice":              {with(func(p []piece) []piece { return append(p, p[4]) }), "twice"},
		"files in another order":    {with(func(p []piece) []piece { p[3], p[4] = p[4], p[3]; return p }), "sorted"},
		"a symbolic link":           {with(func(p []piece) []piece { return append(p, link(tar.TypeSymlink, "/etc/passwd")) }), "no regular file"},
		"a hard link":               {with(func(p []piece) []piece { return append(p, link(tar.TypeLink, folder+"/evidence/a")) }), "no regular file"},
		"a folder":                  {with(func(p []piece) []piece { return append(p, link(tar.TypeDir, "")) }), "no regular file"},
		"a device":                  {with(func(p []piece) []piece { return append(p, link(tar.TypeChar, "")) }), "no regular file"},
		"a path upwards":            {with(func(p []piece) []piece { p[4].header.Name = folder + "/../../etc/x"; return p }), "path"},
		"a path upwards in between": {with(func(p []piece) []piece { p[4].header.Name = folder + "/evidence/../b"; return p }), "path"},
		"an absolute path":          {with(func(p []piece) []piece { p[4].header.Name = "/etc/x"; return p }), "folder of a bundle"},
		"a backslash":               {with(func(p []piece) []piece { p[4].header.Name = folder + `/evidence\b`; return p }), "path"},
		"a hidden file":             {with(func(p []piece) []piece { p[4].header.Name = folder + "/evidence/.b"; return p }), "path"},
		"an empty segment":          {with(func(p []piece) []piece { p[4].header.Name = folder + "/evidence//b"; return p }), "path"},
		"another folder":            {with(func(p []piece) []piece { p[4].header.Name = "other/evidence/b"; return p }), "does not lie in the folder"},
		"no index":                  {with(func(p []piece) []piece { return p[1:] }), "begins with README.txt"},
		"no sums":                   {with(func(p []piece) []piece { return append(p[:2], p[3:]...) }), "SHA256SUMS is missing"},
		"other sums":                {with(func(p []piece) []piece { p[2].data[0] ^= 1; return p }), "does not hold the sums"},
		"another mode":              {with(func(p []piece) []piece { p[4].header.Mode = 0o755; return p }), "accounts for"},
		"another owner":             {with(func(p []piece) []piece { p[4].header.Uname = "me"; return p }), "accounts for"},
		"another time":              {with(func(p []piece) []piece { p[4].header.ModTime = time.Unix(1, 0); return p }), "accounts for"},
		"extended headers": {with(func(p []piece) []piece {
			p[4].header.Format, p[4].header.PAXRecords = tar.FormatPAX, map[string]string{"comment": "x"}
			return p
		}), "accounts for"},
		"bytes after the end":  {append(bytes.Clone(whole), 0), "accounts for"},
		"text after the end":   {append(bytes.Clone(whole), []byte(strings.Repeat("x", 512))...), "accounts for"},
		"bytes in the padding": {func() []byte { data := bytes.Clone(whole); data[len(data)-1024-1] = 'x'; return data }(), "accounts for"},
		"a cut tar file":       {whole[:len(whole)-1600], "cut"},
		"a cut end":            {whole[:len(whole)-512], "accounts for"},
		"no bytes":             {nil, "no member"},
		"no tar file":          {[]byte(strings.Repeat("hello ", 200)), "no tar file"},
		"an index in another form": {with(func(p []piece) []piece {
			return append([]piece{newPiece("INDEX.json", append(p[0].data, ' '))}, p[1:]...)
		}), "form"},
		"an index with an unknown field": {with(func(p []piece) []piece {
			return append([]piece{newPiece("INDEX.json", bytes.Replace(p[0].data, []byte(`"schema"`), []byte(`"x": 1, "schema"`), 1))}, p[1:]...)
		}), "no index"},
		"another schema":              {indexed(func(i *bundle.Index) { i.Schema = "x" }), "schema"},
		"another kind":                {indexed(func(i *bundle.Index) { i.Kind = "secret" }), "kind"},
		"another name":                {indexed(func(i *bundle.Index) { i.Name = "other" }), "is that of other"},
		"a name upwards":              {indexed(func(i *bundle.Index) { i.Name = ".." }), "name"},
		"no scope":                    {indexed(func(i *bundle.Index) { i.Scope.NotShown = nil }), "what it does not"},
		"a file in the index alone":   {indexed(func(i *bundle.Index) { i.Files = append(i.Files, extra) }), "is missing"},
		"a file twice in the index":   {indexed(func(i *bundle.Index) { i.Files = append(i.Files, i.Files[2]) }), "twice"},
		"an index out of order":       {indexed(func(i *bundle.Index) { i.Files[1], i.Files[2] = i.Files[2], i.Files[1] }), "not sorted"},
		"an index that names itself":  {indexed(func(i *bundle.Index) { i.Files[0].Path = "INDEX.json" }), "itself"},
		"a path upwards in the index": {indexed(func(i *bundle.Index) { i.Files[2].Path = "evidence/../b" }), "path"},
		"an unknown folder":           {indexed(func(i *bundle.Index) { i.Files[2].Path = "other/b" }), "no part of a bundle"},
		"a restricted file":           {indexed(func(i *bundle.Index) { i.Files[2].Path = "restricted/b" }), "restricted file"},
		"a negative size":             {indexed(func(i *bundle.Index) { i.Files[2].Size = -1 }), "no size"},
		"a short sum":                 {indexed(func(i *bundle.Index) { i.Files[2].SHA256 = "abc" }), "no size, sum"},
		"files that are too large":    {indexed(func(i *bundle.Index) { i.Files[2].Size = 9 << 30 }), "limit"},
		"admitted credentials": {indexed(func(i *bundle.Index) {
			i.Findings = []secretscan.Finding{{File: "a", Place: "b", Kind: secretscan.Token}}
		}), "admits"},
	}
	for name, test := range cases {
		t.Run(name, func(t *testing.T) {
			_, err := bundle.Read(bytes.NewReader(test.data), nil)
			if !errors.Is(err, bundle.ErrRefused) || !strings.Contains(err.Error(), test.want) {
				t.Errorf("%v, want %q", err, test.want)
			}
		})
	}
}

func TestEveryFlippedBitIsRefused(t *testing.T) {
	whole := join(t, small(t, nil))
	for i := range whole {
		altered := bytes.Clone(whole)
		altered[i] ^= 1 << (i % 8)
		if _, err := bundle.Read(bytes.NewReader(altered), nil); !errors.Is(err, bundle.ErrRefused) {
			t.Fatalf("byte %d: %v", i, err)
		}
	}
}

func TestEveryCutIsRefused(t *testing.T) {
	whole := join(t, small(t, nil))
	for length := 0; length < len(whole); length += 64 {
		if _, err := bundle.Read(bytes.NewReader(whole[:length]), nil); !errors.Is(err, bundle.ErrRefused) {
			t.Fatalf("%d bytes: %v", length, err)
		}
	}
}

func TestABrokenDiskIsNoRefusal(t *testing.T) {
	whole := join(t, small(t, nil))
	for _, length := range []int{0, 100, 600, 3000, len(whole)} {
		_, err := bundle.Read(io.MultiReader(bytes.NewReader(whole[:length]), failing{}), nil)
		if err == nil || errors.Is(err, bundle.ErrRefused) || !strings.Contains(err.Error(), "the disk is gone") {
			t.Errorf("after %d bytes: %v", length, err)
		}
	}
	_, err := bundle.Read(bytes.NewReader(whole), func(bundle.File, io.Reader) error { return errors.New("the target is full") })
	if err == nil || errors.Is(err, bundle.ErrRefused) {
		t.Errorf("%v", err)
	}
}

type failing struct{}

func (failing) Read([]byte) (int, error) { return 0, errors.New("the disk is gone") }

// FuzzRead holds that any bytes are read to an end, and that what is accepted is exactly what is written.
func FuzzRead(f *testing.F) {
	pieces := small(f, nil)
	f.Add(join(f, pieces))
	f.Add(join(f, pieces[:3]))
	f.Add(join(f, append(pieces, pieces[0])))
	f.Add([]byte("ustar"))
	original := join(f, small(f, nil))
	f.Fuzz(func(t *testing.T, data []byte) {
		visited := map[string]int64{}
		index, err := bundle.Read(bytes.NewReader(data), func(file bundle.File, content io.Reader) error {
			size, err := io.Copy(io.Discard, content)
			visited[file.Path] = size
			return err
		})
		if err != nil {
			if !errors.Is(err, bundle.ErrRefused) {
				t.Errorf("bytes in memory gave %v", err)
			}
			return
		}
		for _, file := range index.Files {
			if visited[file.Path] != file.Size || strings.Contains(file.Path, "..") || strings.HasPrefix(file.Path, "/") {
				t.Errorf("%+v", file)
			}
		}
		if len(data)%512 != 0 || len(data) < len(original)/2 {
			t.Errorf("%d bytes were accepted as a bundle", len(data))
		}
	})
}
