package dossier

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"

	"ptah.run/ptah/qualification/evidence"
)

const notRunPrefix = "not-run/"

// notRun says why a cell was not run.
type notRun struct {
	Cell   string `json:"cell"`
	Reason string `json:"reason"`
}

// NotRun stores why a cell of the declared set was not run, for the reader of its verdict. It is said again where the
// reason is another one than before; a cell that has finished evidence all the same is judged by that.
func NotRun(run *evidence.Run, cell, reason string) error {
	data, err := json.MarshalIndent(notRun{Cell: cell, Reason: reason}, "", "  ")
	if err != nil {
		return fmt.Errorf("store why the cell %s is not run: %w", cell, err)
	}
	data = append(data, '\n')
	newest, digest := 0, ""
	for _, entry := range run.Entries() {
		if number := reasonNumber(entry.Name, cell); number > newest {
			newest, digest = number, entry.Digest
		}
	}
	if digest == evidence.Digest(data) {
		return nil
	}
	_, err = run.PutFile(fmt.Sprintf("%s%s/%d.json", notRunPrefix, cell, newest+1), bytes.NewReader(data))
	return err
}

// reasonNumber is the number of the reason of a cell that a name stands for, 0 where it stands for none.
func reasonNumber(name, cell string) int {
	rest, ok := strings.CutPrefix(name, notRunPrefix+cell+"/")
	digits, isFile := strings.CutSuffix(rest, ".json")
	number, err := strconv.Atoi(digits)
	if !ok || !isFile || err != nil {
		return 0
	}
	return number
}

// Stored is a run as it can be read: one that is closed and checked, or a glimpse of one that is not.
type Stored interface {
	Entries() []evidence.Entry
	ReadFile(name string) ([]byte, error)
}

// Reasons reads the newest reason of each cell that is not run.
func Reasons(snapshot Stored) (map[string]string, error) {
	newest, reasons := map[string]int{}, map[string]string{}
	for _, entry := range snapshot.Entries() {
		cell, _, ok := strings.Cut(strings.TrimPrefix(entry.Name, notRunPrefix), "/")
		if !ok || !strings.HasPrefix(entry.Name, notRunPrefix) {
			continue
		}
		number := reasonNumber(entry.Name, cell)
		if number <= newest[cell] {
			continue
		}
		data, err := snapshot.ReadFile(entry.Name)
		if err != nil {
			return nil, err
		}
		var said notRun
		if err := decodeJSON(entry.Name, data, &said); err != nil {
			return nil, err
		}
		if said.Cell != cell || said.Reason == "" {
			return nil, fmt.Errorf("%s gives the cell %q no reason: %w", entry.Name, cell, evidence.ErrTampered)
		}
		newest[cell], reasons[cell] = number, said.Reason
	}
	return reasons, nil
}
