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

// SuiteLedger is the name, relative to a cell, under which the ledger of a suite is stored.
func SuiteLedger(suite string) string { return "suites/" + suite + "/" + ledger.FileName }

// ImportSuite copies the staging directory of a suite into the cell: its ledger as a stream, every other regular
// file as a file under suites/<suite>/. A ledger without an end is imported as the cut stream it is, and a missing
// ledger stays missing: both are for the judge to see. Links and devices are refused.
func (c *Cell) ImportSuite(suite, dir string) error {
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
		return c.importFile("suites/"+suite+"/"+filepath.ToSlash(relative), path, relative == ledger.FileName)
	})
	if err != nil {
		return fmt.Errorf("import what suite %s wrote: %w", suite, err)
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
