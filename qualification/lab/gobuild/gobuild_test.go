package gobuild

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

var hello = map[string][]byte{
	"go.mod":  []byte("module example.test/hello\n\ngo 1.26\n"),
	"main.go": []byte("package main\n\nfunc main() {}\n"),
}

func TestTheSameSourceGivesTheSameBytes(t *testing.T) {
	var before []byte
	for range 2 {
		output := filepath.Join(t.TempDir(), "hello")
		if err := FromSource(context.Background(), hello, output); err != nil {
			t.Fatal(err)
		}
		content, err := os.ReadFile(output)
		if err != nil {
			t.Fatal(err)
		}
		if before != nil && string(before) != string(content) {
			t.Error("two builds differ")
		}
		before = content
	}
}

func TestWithoutGoTheFixIsNamed(t *testing.T) {
	t.Setenv("PATH", t.TempDir())
	if err := FromSource(context.Background(), hello, filepath.Join(t.TempDir(), "x")); err == nil || !strings.Contains(err.Error(), "go.dev/dl") {
		t.Errorf("got %v", err)
	}
}

func TestACancelledBuildSaysSo(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := Run(ctx, "", Environment{}, "version"); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
}

func TestAFailureIsQuoted(t *testing.T) {
	broken := map[string][]byte{"go.mod": hello["go.mod"], "main.go": []byte("package main\n\nfunc main() { nothing() }\n")}
	err := FromSource(context.Background(), broken, filepath.Join(t.TempDir(), "x"))
	if err == nil || !strings.Contains(err.Error(), "undefined: nothing") || strings.Contains(err.Error(), "\n") {
		t.Errorf("got %v", err)
	}
}
