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
	for name, data := range files {
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
	return c
}
