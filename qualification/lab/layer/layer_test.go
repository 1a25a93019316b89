package layer

import (
	"archive/tar"
	"errors"
	"io"
	"os"
	"path/filepath"
	"reflect"
	"testing"
	"time"
)

func build(t *testing.T, fill func(*Writer) error) *File {
	t.Helper()
	w, err := NewWriter(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	if err := fill(w); err != nil {
		t.Fatal(err)
	}
	file, err := w.Close()
	if err != nil {
		t.Fatal(err)
	}
	return file
}

func headers(t *testing.T, file *File) []tar.Header {
	t.Helper()
	content, err := file.Uncompressed()
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = content.Close() }()
	var list []tar.Header
	reader := tar.NewReader(content)
	for {
		header, err := reader.Next()
		if errors.Is(err, io.EOF) {
			return list
		}
		if err != nil {
			t.Fatal(err)
		}
		list = append(list, *header)
	}
}

func TestFoldersComeBeforeWhatLiesInThemAndOnce(t *testing.T) {
	file := build(t, func(w *Writer) error {
		return errors.Join(w.Bytes("a/b/one", []byte("1"), 0o644, Root), w.Bytes("/a/b/two", nil, 0o600, Owner{1, 2}), w.Symlink("a/c", "b"))
	})
	var names []string
	for _, header := range headers(t, file) {
		names = append(names, header.Name)
		if !header.ModTime.Equal(Epoch) {
			t.Errorf("%s has the time %s", header.Name, header.ModTime)
		}
	}
	if want := []string{"a/", "a/b/", "a/b/one", "a/b/two", "a/c"}; !reflect.DeepEqual(names, want) {
		t.Errorf("got %v, want %v", names, want)
	}
}

func TestTheSameFilesGiveTheSameDigestWhateverTheirTimes(t *testing.T) {
	one := func(at time.Time, text string) string {
		return build(t, func(w *Writer) error {
			header := &tar.Header{Typeflag: tar.TypeReg, Name: "./file", Mode: 0o644, Size: 1, ModTime: at, AccessTime: at, Uname: at.String(), Format: tar.FormatPAX}
			return w.Copy(header, io.LimitReader(readerOf(text), 1))
		}).Meta.DiffID
	}
	first, second := one(time.Now(), "a"), one(time.Now().Add(-time.Hour), "a")
	if first != second {
		t.Error("times changed the digest")
	}
	if one(time.Now(), "b") == first {
		t.Error("another content has the same digest")
	}
}

func TestALayerIsOpenedWithWhatWasWrittenDown(t *testing.T) {
	dir := t.TempDir()
	w, err := NewWriter(dir)
	if err != nil {
		t.Fatal(err)
	}
	w.Packages([]string{"a=1"})
	if err := w.Remove("etc/gone"); err != nil {
		t.Fatal(err)
	}
	written, err := w.Close()
	if err != nil {
		t.Fatal(err)
	}
	opened, err := Open(dir)
	if err != nil || !reflect.DeepEqual(opened.Meta, written.Meta) || opened.Meta.Packages[0] != "a=1" {
		t.Fatalf("got %+v, %v", opened, err)
	}
	info, err := os.Stat(opened.Path())
	if err != nil || info.Size() != opened.Meta.Size {
		t.Errorf("size %d, file %d, %v", opened.Meta.Size, info.Size(), err)
	}
	if list := headers(t, opened); list[1].Name != "etc/.wh.gone" {
		t.Errorf("got %v", list)
	}
	if err := os.WriteFile(filepath.Join(dir, metaName), []byte(`{"diffID":"md5:1"}`), 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := Open(dir); err == nil {
		t.Error("a digest that is none must be refused")
	}
}

func TestAFileThatIsNotThereIsAnError(t *testing.T) {
	w, err := NewWriter(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	defer w.Abort()
	if err := w.FromFile("x", filepath.Join(t.TempDir(), "absent"), 0o755, Root); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("got %v", err)
	}
}

type readerOf string

func (r readerOf) Read(content []byte) (int, error) { return copy(content, r), nil }
