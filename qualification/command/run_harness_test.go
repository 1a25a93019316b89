package command

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// tree is a git repository with one commit.
func tree(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	write(t, dir, "code.go", "package code\n")
	write(t, dir, ".gitignore", "/ignored/\n")
	for _, arguments := range [][]string{{"init", "-q"}, {"add", "."}, {"-c", "user.name=t", "-c", "user.email=t@t.example", "commit", "-q", "-m", "First"}} {
		command := exec.Command("git", append([]string{"-C", dir}, arguments...)...)
		if output, err := command.CombinedOutput(); err != nil {
			t.Skipf("not-run: git cannot make a repository here: %v, %s", err, output)
		}
	}
	return dir
}

func write(t *testing.T, dir, name, content string) {
	t.Helper()
	path := filepath.Join(dir, name)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
		t.Fatal(err)
	}
}

func identity(t *testing.T, dir string, outputs ...string) string {
	t.Helper()
	harness, err := harnessOf(t.Context(), dir, outputs...)
	if err != nil {
		t.Fatal(err)
	}
	return harness.String()
}

func TestTwoChangedTreesOfOneCommitAreTwoHarnesses(t *testing.T) {
	dir := tree(t)
	clean := identity(t, dir)
	if len(clean) != 40 {
		t.Fatalf("a clean tree is %s", clean)
	}
	seen := map[string]string{clean: "clean"}
	for _, change := range []struct{ name, content string }{
		{"code.go", "package code // changed\n"}, {"code.go", "package code // again\n"}, {"new.go", "package code\n"}, {"new.go", "package code // more\n"}, {"newer.go", ""},
	} {
		write(t, dir, change.name, change.content)
		got := identity(t, dir)
		if before, known := seen[got]; known || !strings.HasPrefix(got, clean+"-dirty-") {
			t.Errorf("after %q the tree is %s, as %s", change.content, got, before)
		}
		seen[got] = change.content
		if again := identity(t, dir); again != got {
			t.Errorf("the same tree is %s and %s", got, again)
		}
	}
}

func TestWhatARunWritesIsNoChange(t *testing.T) {
	dir := tree(t)
	clean := identity(t, dir)
	write(t, dir, "ignored/x", "x")
	write(t, dir, "out [1]/runs/a/run.json", "{}")
	if got := identity(t, dir, filepath.Join(dir, "out [1]"), "/elsewhere", dir, filepath.Dir(dir)); got != clean {
		t.Errorf("%s, want %s", got, clean)
	}
	if identity(t, dir) == clean {
		t.Error("control: the same folder must count where it is no output")
	}
}

func TestATreeOutsideGitHasNoCommit(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("GIT_CEILING_DIRECTORIES", filepath.Dir(dir))
	if got := identity(t, dir); got != "unknown" {
		t.Errorf("%s", got)
	}
}
