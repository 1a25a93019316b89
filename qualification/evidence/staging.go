package evidence

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"ptah.run/ptah/qualification/evidence/ledger"
	"ptah.run/ptah/qualification/evidence/stream"
)

// SuiteLedger is the name, relative to a cell, under which the ledger of a suite is stored that is kept as a whole.
func SuiteLedger(suite string) string { return "suites/" + suite + "/" + ledger.FileName }

// PhaseLedger is the name, relative to a cell, under which the ledger of one phase of a suite is stored.
func PhaseLedger(suite, phase string) string {
	return "suites/" + suite + "/" + phase + "/" + ledger.FileName
}

// ImportSuite copies the staging directory of a suite into the cell: its ledger as a stream, every other regular
// file as a file under suites/<suite>/. A ledger without an end is imported as the cut stream it is, and a missing
// ledger stays missing: both are for the judge to see. Links and devices are refused.
func (c *Cell) ImportSuite(suite, dir string) error { return c.importDir("suites/"+suite, dir) }

// ImportPhase is ImportSuite for the staging directory of one phase, stored under suites/<suite>/<phase>/.
func (c *Cell) ImportPhase(suite, phase, dir string) error {
	return c.importDir("suites/"+suite+"/"+phase, dir)
}

// ImportPreparation stores what a phase left that was run for its fixtures alone, under preparation/<suite>/<phase>/.
// Nothing there is ever read as the ledger of a suite.
func (c *Cell) ImportPreparation(suite, phase, dir string) error {
	return c.importDir("preparation/"+suite+"/"+phase, dir)
}

func (c *Cell) importDir(prefix, dir string) error {
	err := filepath.WalkDir(dir, func(path string, item fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if item.IsDir() {
			return nil
		}
		if !item.Type().IsRegular() {
			return fmt.Errorf("%s is no regular file", path)
		}
		relative, err := filepath.Rel(dir, path)
		if err != nil {
			return err
		}
		return c.importFile(prefix+"/"+filepath.ToSlash(relative), path, relative == ledger.FileName)
	})
	if err != nil {
		return fmt.Errorf("import what was left for %s: %w", prefix, err)
	}
	return nil
}

func (c *Cell) importFile(name, path string, isLedger bool) error {
	file, err := os.Open(path)
	if err != nil {
		return err
	}
	defer func() { _ = file.Close() }()
	if !isLedger {
		_, err = c.PutFile(name, file)
		return err
	}
	if err := c.open(name); err != nil {
		return err
	}
	complete, err := stream.Read(file, func([]byte) error { return nil })
	entry := Entry{Name: c.entry.Prefix() + name, Kind: KindStream, Complete: &complete}
	if err != nil {
		if !errors.Is(err, stream.ErrIncomplete) && !errors.Is(err, stream.ErrAltered) && !errors.Is(err, stream.ErrMalformed) {
			return err
		}
		entry.Complete = nil
		if err := c.run.Note("the ledger "+name+" is not whole: "+err.Error(), nil); err != nil {
			return err
		}
	}
	if _, err := file.Seek(0, 0); err != nil {
		return err
	}
	_, err = c.run.put(entry, file)
	return err
}
