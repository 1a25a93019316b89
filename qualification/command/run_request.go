package command

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"runtime"
	"slices"
	"strings"

	"ptah.run/ptah/qualification/matrix"
	"ptah.run/ptah/qualification/profile"
	"ptah.run/ptah/qualification/run"
)

// noteRequest heads what a run was asked for in its journal.
const noteRequest = "request"

// runRequest is what a run was asked for. It is journalled as the first thing, so that --resume needs nothing else.
type runRequest struct {
	Profile string   `json:"profile"` // file
	Name    string   `json:"name"`    // of the profile
	Matrix  string   `json:"matrix,omitempty"`
	Depth   string   `json:"depth,omitempty"`
	Cells   []string `json:"cells,omitempty"`
	Labs    string   `json:"labs"`
	Lab     string   `json:"lab,omitempty"`    // of existing
	Source  string   `json:"source,omitempty"` // of own
}

func (o runOptions) request(repository string) runRequest {
	path := o.profile
	if !strings.ContainsAny(path, "/\\") && filepath.Ext(path) == "" {
		path = filepath.Join(repository, "profiles", path+".yaml")
	}
	request := runRequest{Profile: path, Matrix: o.matrix, Depth: o.depth, Cells: o.cells, Labs: o.labs}
	if request.Labs == labsOwn {
		request.Source = o.source
	} else {
		request.Labs, request.Lab = labsExisting, o.labID
	}
	return request
}

// recall reads what the run was asked for from its journal.
func (b *begunRun) recall() error {
	for _, note := range b.store.Notes() {
		if note.Message != noteRequest {
			continue
		}
		b.request = runRequest{}
		if err := json.Unmarshal(note.Data, &b.request); err != nil {
			return b.refuse("what the run %s was asked for cannot be read: %w", b.store.ID(), err)
		}
		return nil
	}
	return b.refuse("the run %s was killed before it began and holds nothing: remove the folder and begin a new run", b.store.ID())
}

func (b *begunRun) refuse(format string, arguments ...any) error {
	b.abandon()
	return Exit(ExitUsage, fmt.Errorf(format, arguments...))
}

// load reads the declarations as they are now and lists the cells.
func (b *begunRun) load(repository string) error {
	var err error
	b.declared, err = LoadDeclared(b.request.Profile, filepath.Join(repository, "matrices"), filepath.Join(repository, "support", "suites.yaml"), b.harness)
	if err != nil {
		return err
	}
	if name := b.declared.Profile.Name; b.store != nil && name != b.request.Name {
		return Exit(ExitUsage, fmt.Errorf("the run %s is one of the profile %s, and %s now declares %s: begin a new run", b.store.ID(), b.request.Name, b.request.Profile, name))
	}
	b.items, err = b.request.items(b.declared)
	return err
}

// items lists the covered cells in order, each with the reason for which it is not run, if there is one.
func (r runRequest) items(declared *Declared) ([]run.Item, error) {
	selected, err := r.selection(declared)
	if err != nil {
		return nil, err
	}
	var items []run.Item
	for _, cell := range declared.Cells {
		item := run.Item{Cell: cell, NotRun: strings.Join(declared.Suites.NotRun(cell), "; ")}
		switch platform := cell.Platform(); {
		case !selected(cell):
			item.NotRun = "this run was asked for other cells"
		case item.NotRun == "" && platform != "" && platform != thisPlatform:
			item.NotRun = fmt.Sprintf("it needs a machine of %s, and this one is of %s", platform, thisPlatform)
		}
		items = append(items, item)
	}
	return items, nil
}

// thisPlatform is what labs on this machine run on.
const thisPlatform = "linux/" + runtime.GOARCH

// selection returns which of the covered cells were asked for. Asking for what the profile does not cover is refused:
// its evidence would count for nothing.
func (r runRequest) selection(declared *Declared) (func(matrix.Cell) bool, error) {
	profile := declared.Profile
	if r.Matrix != "" && declared.Matrices[r.Matrix] == nil {
		return nil, Exit(ExitUsage, fmt.Errorf("the profile %s covers no matrix %q, use one of: %s", profile.Name, r.Matrix, strings.Join(coveredMatrices(profile), ", ")))
	}
	ofDepth := map[string]bool{}
	for name, m := range declared.Matrices {
		if r.Depth == "" || r.Matrix != "" && name != r.Matrix {
			continue
		}
		cells, err := m.Select(r.Depth)
		if err != nil {
			return nil, Exit(ExitUsage, err)
		}
		for _, cell := range cells {
			ofDepth[name+"/"+cell.Key] = true
		}
	}
	covered := func(key string) bool {
		return slices.ContainsFunc(declared.Cells, func(cell matrix.Cell) bool { return cell.Key == key })
	}
	for _, key := range r.Cells {
		if !covered(key) {
			return nil, Exit(ExitUsage, fmt.Errorf("the profile %s covers no cell %q: list them with `ptah-qualify matrix list`", profile.Name, key))
		}
	}
	selected := func(cell matrix.Cell) bool {
		return (r.Matrix == "" || cell.Matrix == r.Matrix) && (r.Depth == "" || ofDepth[cell.Matrix+"/"+cell.Key]) &&
			(len(r.Cells) == 0 || slices.Contains(r.Cells, cell.Key))
	}
	if !slices.ContainsFunc(declared.Cells, selected) {
		return nil, Exit(ExitUsage, fmt.Errorf("none of the %d cells that the profile %s covers is of what --matrix, --depth and --cell ask for together", len(declared.Cells), profile.Name))
	}
	return selected, nil
}

func coveredMatrices(p *profile.Profile) []string {
	var names []string
	for _, coverage := range p.Coverage {
		names = append(names, coverage.Matrix)
	}
	return names
}
