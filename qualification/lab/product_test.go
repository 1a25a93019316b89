package lab

import (
	"context"
	"os"
	"path/filepath"
	"testing"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/mutate"

	"ptah.run/ptah/qualification/lab/cache"
	"ptah.run/ptah/qualification/lab/gobuild"
)

// fixture writes a small program into a folder of its own.
func fixture(t *testing.T, message string) string {
	t.Helper()
	dir := t.TempDir()
	files := map[string]string{
		"go.mod":            "module example.test/fixture\n\ngo 1.26\n",
		"cmd/hello/main.go": "package main\n\nfunc main() { println(\"" + message + "\") }\n",
	}
	for name, content := range files {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func buildFixture(t *testing.T, dir string, options BuildOptions) v1.Image {
	t.Helper()
	store, err := cache.Open(t.TempDir(), nil)
	if err != nil {
		t.Fatal(err)
	}
	images := &Images{Store: store}
	program := Program{Role: "hello", Package: "./cmd/hello", Path: "/hello"}
	built, err := images.BuildOperatorImages(context.Background(), dir, []Program{program}, options)
	if err != nil {
		t.Fatal(err)
	}
	return built["hello"]
}

func digest(t *testing.T, image v1.Image) string {
	t.Helper()
	hash, err := image.Digest()
	if err != nil {
		t.Fatal(err)
	}
	return hash.String()
}

func TestTwoBuildsInTwoFoldersGiveOneDigest(t *testing.T) {
	first := digest(t, buildFixture(t, fixture(t, "one"), BuildOptions{Version: "v1"}))
	second := digest(t, buildFixture(t, fixture(t, "one"), BuildOptions{Version: "v1"}))
	if first != second {
		t.Errorf("the same source gave %s and %s", first, second)
	}
	// Without this the comparison above could pass for any two programs.
	if other := digest(t, buildFixture(t, fixture(t, "two"), BuildOptions{Version: "v1"})); other == first {
		t.Error("another source gave the same digest")
	}
	if other := digest(t, buildFixture(t, fixture(t, "one"), BuildOptions{Version: "v2"})); other == first {
		t.Error("another version gave the same digest")
	}
}

func TestTheSourceIsBuiltInAnotherFolderToo(t *testing.T) {
	dir := fixture(t, "one")
	if err := os.Rename(filepath.Join(dir, "cmd"), filepath.Join(dir, "operator")); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "go.sum"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	store, err := cache.Open(t.TempDir(), nil)
	if err != nil {
		t.Fatal(err)
	}
	program := Program{Role: "hello", Package: "./operator/hello", Path: "/hello"}
	digests, err := (&Images{Store: store}).VerifyReproducible(context.Background(), dir, []Program{program}, BuildOptions{})
	if err != nil || digests["hello"] == "" {
		t.Errorf("got %v, %v", digests, err)
	}
	program.Package = "./operator/absent"
	if _, err := (&Images{Store: store}).VerifyReproducible(context.Background(), dir, []Program{program}, BuildOptions{}); err == nil {
		t.Error("a program that is not there was verified")
	}
}

func TestAProgramImageHoldsTheProgramAndAnUnprivilegedUser(t *testing.T) {
	image := buildFixture(t, fixture(t, "one"), BuildOptions{Version: "v1"})
	config, err := image.ConfigFile()
	if err != nil {
		t.Fatal(err)
	}
	if config.Config.User != "65532:65532" || config.Config.Entrypoint[0] != "/hello" || config.OS != "linux" {
		t.Errorf("user %q, entry %v, system %q", config.Config.User, config.Config.Entrypoint, config.OS)
	}
	files := filesOf(t, image)
	for name, mode := range map[string]int64{"hello": 0o755, "etc/passwd": 0o644, "etc/group": 0o644} {
		if got, found := files[name]; !found || got != mode {
			t.Errorf("%s has mode %o (found %v), want %o", name, got, found, mode)
		}
	}
	if len(files) != 3 {
		t.Errorf("the image holds %v, and should hold three files", files)
	}
}

func TestAProgramThatDoesNotCompileIsRefusedWithTheCompilersWords(t *testing.T) {
	dir := fixture(t, "one")
	if err := os.WriteFile(filepath.Join(dir, "cmd/hello/main.go"), []byte("package main\n\nfunc main() { undefined() }\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	output := filepath.Join(t.TempDir(), "hello")
	err := gobuild.Program(context.Background(), dir, "./cmd/hello", output, "")
	if err == nil || !contains(err.Error(), "undefined: undefined") {
		t.Errorf("got %v", err)
	}
	if _, err := os.Stat(output); !os.IsNotExist(err) {
		t.Error("something was written")
	}
}

func filesOf(t *testing.T, image v1.Image) map[string]int64 {
	t.Helper()
	files := map[string]int64{}
	reader := mutate.Extract(image)
	defer func() { _ = reader.Close() }()
	for header := range tarHeaders(t, reader) {
		files[header.Name] = header.Mode
	}
	return files
}
