package dossiertest

import (
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"ptah.run/ptah/qualification/evidence/ledger"
)

const (
	profileFile = "profile.yaml"
	matrixFile  = "matrix.yaml"
	suitesFile  = "suites.yaml"
	factsFile   = "facts.json"
	auditSuffix = ".audit.log"
	streamsDir  = "cell" // folder with the names that streams have within the cell
)

// Write stores the case as files that a person can read and change: a golden case.
func (c *Case) Write(t testing.TB, dir string) {
	t.Helper()
	if err := os.RemoveAll(dir); err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	facts, err := json.MarshalIndent(c.Facts, "", "  ")
	if err != nil {
		t.Fatal(err)
	}
	files := map[string][]byte{profileFile: c.Profile, matrixFile: c.Matrix, suitesFile: c.Suites, factsFile: append(facts, '\n')}
	if c.Ledger != nil {
		files[ledger.FileName] = c.Ledger
	}
	for server, log := range c.Audit {
		files[server+auditSuffix] = log
	}
	for name, data := range c.Streams {
		files[filepath.Join(streamsDir, filepath.FromSlash(name))] = data
	}
	for name, data := range files {
		if err := os.MkdirAll(filepath.Dir(filepath.Join(dir, name)), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, name), data, 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// Read loads a golden case.
func Read(t testing.TB, dir string) *Case {
	t.Helper()
	read := func(name string) []byte {
		data, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		return data
	}
	c := &Case{Profile: read(profileFile), Matrix: read(matrixFile), Suites: read(suitesFile), Audit: map[string][]byte{}}
	if err := json.Unmarshal(read(factsFile), &c.Facts); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(filepath.Join(dir, ledger.FileName)); !errors.Is(err, fs.ErrNotExist) {
		c.Ledger = read(ledger.FileName)
	}
	logs, err := filepath.Glob(filepath.Join(dir, "*"+auditSuffix))
	if err != nil {
		t.Fatal(err)
	}
	for _, log := range logs {
		c.Audit[strings.TrimSuffix(filepath.Base(log), auditSuffix)] = read(filepath.Base(log))
	}
	c.Streams = readStreams(t, filepath.Join(dir, streamsDir))
	return c
}

func readStreams(t testing.TB, dir string) map[string][]byte {
	t.Helper()
	streams := map[string][]byte{}
	err := filepath.WalkDir(dir, func(path string, item fs.DirEntry, err error) error {
		if errors.Is(err, fs.ErrNotExist) {
			return nil // a case without streams
		}
		if err != nil || item.IsDir() {
			return err
		}
		name, err := filepath.Rel(dir, path)
		if err != nil {
			return err
		}
		streams[filepath.ToSlash(name)], err = os.ReadFile(path)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return streams
}
