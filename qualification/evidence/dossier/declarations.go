package dossier

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"ptah.run/ptah/qualification/evidence"
)

// Declarations is what a run is judged against, stored before anything runs.
type Declarations struct {
	Profile  []byte            // bytes of the profile, as declared
	Matrices map[string][]byte // bytes of each matrix that the profile covers, by its name
	Suites   []byte            // bytes of the catalogue of suites
	Harness  Harness
}

// Names of the declarations. The first version has the bare prefix; a run that is resumed after one of them changed
// stores all of them again under the number of the version. The harness is stored last and completes a version.
const (
	inputsPrefix = "inputs/"
	profileName  = "profile.yaml"
	suitesName   = "suites.yaml"
	harnessName  = "harness.json"
	matrixPrefix = "matrices/"
)

// version is the prefix of the names of one version of the declarations, the first being 1.
func version(number int) string {
	if number == 1 {
		return inputsPrefix
	}
	return inputsPrefix + strconv.Itoa(number) + "/"
}

// latest finds the newest complete version among the names of a run, 0 where there is none, and the number of the
// newest that was ever begun.
func latest(names map[string]evidence.Entry) (complete, begun int) {
	for name := range names {
		rest, ok := strings.CutPrefix(name, inputsPrefix)
		if !ok {
			continue
		}
		number := 1
		if head, tail, nested := strings.Cut(rest, "/"); nested {
			if n, err := strconv.Atoi(head); err == nil && n > 1 && head == strconv.Itoa(n) {
				number, rest = n, tail
			}
		}
		begun = max(begun, number)
		if rest == harnessName {
			complete = max(complete, number)
		}
	}
	return complete, begun
}

// Begin stores the declarations of a run. A run that has the same ones already is left as it is; one that has others,
// because something was changed before it was resumed, gets them as a new version, which is the one that is judged.
func Begin(run *evidence.Run, declared Declarations) error {
	files, err := declared.files()
	if err != nil {
		return err
	}
	stored := map[string]evidence.Entry{}
	for _, entry := range run.Entries() {
		stored[entry.Name] = entry
	}
	complete, begun := latest(stored)
	if complete > 0 && sameFiles(stored, version(complete), files) {
		return nil
	}
	prefix := version(begun + 1)
	for _, name := range append(slices.DeleteFunc(slices.Sorted(maps.Keys(files)), func(name string) bool { return name == harnessName }), harnessName) {
		if _, err := run.PutFile(prefix+name, bytes.NewReader(files[name])); err != nil {
			return err
		}
	}
	return nil
}

func (d Declarations) files() (map[string][]byte, error) {
	harness, err := json.MarshalIndent(d.Harness, "", "  ")
	if err != nil {
		return nil, fmt.Errorf("store %s: %w", harnessName, err)
	}
	files := map[string][]byte{profileName: d.Profile, suitesName: d.Suites, harnessName: append(harness, '\n')}
	for name, data := range d.Matrices {
		files[matrixPrefix+name+".yaml"] = data
	}
	return files, nil
}

func sameFiles(stored map[string]evidence.Entry, prefix string, files map[string][]byte) bool {
	for name, data := range files {
		if stored[prefix+name].Digest != evidence.Digest(data) {
			return false
		}
	}
	for name := range stored {
		if rest, ok := strings.CutPrefix(name, prefix+matrixPrefix); ok && files[matrixPrefix+rest] == nil {
			return false
		}
	}
	return true
}
