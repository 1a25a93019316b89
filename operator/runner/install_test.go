package runner

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestInstallCopiesTheRunnerSoThatItCanBeStarted(t *testing.T) {
	dir := t.TempDir()
	self := filepath.Join(dir, "self")
	if err := os.WriteFile(self, []byte("program"), 0o700); err != nil {
		t.Fatal(err)
	}
	var log bytes.Buffer
	program := &Program{Executable: func() (string, error) { return self, nil }, Log: &log}
	destination := filepath.Join(dir, "bin", "ptah-runner")
	for range 2 {
		if code := program.Run(t.Context(), []string{"install", destination}); code != ExitDone {
			t.Fatalf("exit code %d: %s", code, log.String())
		}
	}
	data, err := os.ReadFile(destination)
	if err != nil || string(data) != "program" {
		t.Fatalf("installed %q, %v", data, err)
	}
	info, err := os.Stat(destination)
	if err != nil || info.Mode().Perm() != 0o555 {
		t.Errorf("mode %v, %v", info.Mode(), err)
	}
	if left, _ := os.ReadDir(filepath.Dir(destination)); len(left) != 1 {
		t.Errorf("the folder holds %v", left)
	}
}

func TestInstallSaysWhatItCouldNotDo(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for name, test := range map[string]struct {
		executable func() (string, error)
		to, want   string
	}{
		"no executable":  {func() (string, error) { return "", errors.New("lost") }, file + "x", "find the runner itself"},
		"a missing file": {func() (string, error) { return file + ".none", nil }, file + "x", "open the runner itself"},
		"no folder":      {func() (string, error) { return file, nil }, filepath.Join(file, "x"), "make the folder"},
	} {
		t.Run(name, func(t *testing.T) {
			var log bytes.Buffer
			program := &Program{Executable: test.executable, Log: &log}
			if code := program.Run(t.Context(), []string{"install", test.to}); code != ExitUndelivered || !strings.Contains(log.String(), test.want) {
				t.Errorf("exit code %d, %q", code, log.String())
			}
		})
	}
}

func TestAnUnknownCommandLineIsNotUnderstood(t *testing.T) {
	for _, arguments := range [][]string{nil, {"install"}, {"source", "x"}, {"apply"}} {
		var log bytes.Buffer
		if code := (&Program{Log: &log}).Run(t.Context(), arguments); code != ExitUndelivered || !strings.Contains(log.String(), "usage: ptah-runner") {
			t.Errorf("%v: exit code %d, %q", arguments, code, log.String())
		}
	}
}
