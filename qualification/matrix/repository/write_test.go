package repository

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func folder(t *testing.T, files map[string]string) string {
	t.Helper()
	root := t.TempDir()
	for name, content := range files {
		path := filepath.Join(root, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return root
}

// holds says that a folder holds exactly these files.
func holds(t *testing.T, root string, want map[string]string) {
	t.Helper()
	found := 0
	err := filepath.WalkDir(root, func(path string, entry os.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		found++
		name, _ := filepath.Rel(root, path)
		data, err := os.ReadFile(path)
		if content, there := want[name]; !there || content != string(data) {
			t.Errorf("%s holds %q, want %q", name, data, content)
		}
		return err
	})
	if err != nil || found != len(want) {
		t.Errorf("%d files, want %d (%v)", found, len(want), err)
	}
}

func TestAllFilesAreWritten(t *testing.T) {
	root := folder(t, map[string]string{"a": "1", "b/c": "2"})
	files := []File{{"a", []byte("1"), []byte("x")}, {"b/c", []byte("2"), []byte("y")}, {"b/d", nil, []byte("z")}}
	if err := Write(root, files); err != nil {
		t.Fatal(err)
	}
	holds(t, root, map[string]string{"a": "x", "b/c": "y", "b/d": "z"})
	if info, err := os.Stat(filepath.Join(root, "a")); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v", info.Mode(), err)
	}
}

func TestNothingIsWrittenWhereOneFileCannotBe(t *testing.T) {
	before := map[string]string{"a": "1", "b/c": "2", "d/e": "3"}
	good := []File{{"a", []byte("1"), []byte("x")}, {"n", nil, []byte("new")}}
	cases := map[string]struct {
		file File
		want string
		is   error
	}{
		"should refuse a file that was changed in the meantime": {File{"b/c", []byte("9"), []byte("y")}, "b/c: it was changed in the meantime; nothing was changed", ErrChanged},
		"should refuse a file that is there already":            {File{"b/c", nil, []byte("y")}, "b/c: it was changed in the meantime", ErrChanged},
		"should refuse a file that is gone":                     {File{"b/x", []byte("2"), []byte("y")}, "b/x: ", os.ErrNotExist},
		"should refuse a folder":                                {File{"d", []byte("2"), []byte("y")}, "d: it is no regular file", nil},
		"should refuse a file in a folder that is not there":    {File{"no/x", nil, []byte("y")}, "no/x: ", os.ErrNotExist},
	}
	for name, test := range cases {
		t.Run(name, func(t *testing.T) {
			root := folder(t, before)
			err := Write(root, append(append([]File{}, good...), test.file))
			if err == nil || !strings.Contains(err.Error(), test.want) || test.is != nil && !errors.Is(err, test.is) {
				t.Errorf("got %v, want %q", err, test.want)
			}
			holds(t, root, before)
		})
	}
}

func TestWhatIsInPlaceIsPutBackWhereALaterFileCannotBe(t *testing.T) {
	before := map[string]string{"a": "1"}
	root := folder(t, before)
	files := []File{{"a", []byte("1"), []byte("x")}, {"n", nil, []byte("new")}, {"m", nil, []byte("late")}}
	renamed := 0
	rename := func(from, to string) error {
		if renamed++; renamed == 3 {
			return errors.New("the disk is full")
		}
		return os.Rename(from, to)
	}
	if err := write(root, files, rename); err == nil || !strings.Contains(err.Error(), "put m in place: the disk is full; the files before it are put back") {
		t.Errorf("%v", err)
	}
	holds(t, root, before)
	if info, err := os.Stat(filepath.Join(root, "a")); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v", info.Mode(), err)
	}
}

func TestAnOverlayShowsTheChangedFilesAndStaleNamesWhatDiffers(t *testing.T) {
	under := os.DirFS(folder(t, map[string]string{"m/a": "1", "m/b": "2"}))
	over := Overlay(under, []File{{"m/a", []byte("1"), []byte("changed")}})
	for name, want := range map[string]string{"m/a": "changed", "m/b": "2"} {
		if data, err := fs.ReadFile(over, name); err != nil || string(data) != want {
			t.Errorf("%s: %q, %v", name, data, err)
		}
	}
	if names, err := fs.Glob(over, "m/*"); err != nil || len(names) != 2 {
		t.Errorf("%v, %v", names, err)
	}
	if info, err := fs.Stat(over, "m/a"); err != nil || info.Size() != 7 || info.IsDir() {
		t.Errorf("%v, %v", info, err)
	}
	if _, err := fs.ReadFile(over, "m/c"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("%v", err)
	}
	stale, err := Stale(over, map[string][]byte{"m/b": []byte("2"), "m/a": []byte("other"), "m/new": []byte("n")})
	if err != nil || len(stale) != 2 || stale[0].Path != "m/a" || string(stale[0].Before) != "changed" || stale[1].Path != "m/new" || stale[1].Before != nil {
		t.Errorf("%+v, %v", stale, err)
	}
	if _, err := Stale(over, map[string][]byte{"m": nil}); err == nil {
		t.Error("a folder was read")
	}
}
