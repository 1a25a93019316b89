package source

import (
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// The machine's own shell stands for a server: it needs a library and the program that loads it.
func TestAProgramBringsItsLibrariesAndTheirLoader(t *testing.T) {
	shell, err := filepath.EvalSymlinks("/bin/sh")
	if err != nil {
		t.Fatal(err)
	}
	files, err := libraryTree{"/"}.needs(strings.TrimPrefix(shell, "/"))
	if err != nil {
		t.Fatal(err)
	}
	has := func(prefix string) bool {
		return slices.ContainsFunc(files, func(name string) bool { return strings.HasPrefix(path.Base(name), prefix) })
	}
	if !has("libc.") || !has("ld-") || !slices.IsSorted(files) {
		t.Errorf("%s needs %v", shell, files)
	}
	root := t.TempDir()
	data, err := os.ReadFile(shell)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(root, "sh"), data, 0o755); err != nil {
		t.Fatal(err)
	}
	if files, err := (libraryTree{root}).needs("sh"); err == nil || !strings.Contains(err.Error(), "has no such library") {
		t.Errorf("a tree without libraries gives %v, %v", files, err)
	}
}
