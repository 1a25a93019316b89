package command

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"ptah.run/ptah/qualification/evidence"
	"ptah.run/ptah/qualification/evidence/dossier"
	"ptah.run/ptah/qualification/matrix"
	"ptah.run/ptah/qualification/matrix/catalogue"
	"ptah.run/ptah/qualification/profile"
)

// Declared is everything that a run is judged against, read and checked.
type Declared struct {
	Profile      *profile.Profile
	Matrices     map[string]*matrix.Matrix
	Suites       *catalogue.Suites
	Cells        []matrix.Cell // that the coverage of the profile demands, in order
	Declarations dossier.Declarations
}

// LoadDeclared reads a profile, the matrices that it covers from a folder and the catalogue of suites. A profile that
// contradicts itself and a cell whose suite the catalogue does not have are refused. Errors carry their exit code.
func LoadDeclared(profilePath, matricesDir, suitesPath string, harness dossier.Harness) (*Declared, error) {
	p, data, err := LoadProfile(profilePath)
	if err != nil {
		return nil, err
	}
	if findings := profile.Lint(p); len(findings) > 0 {
		return nil, Exit(ExitUsage, fmt.Errorf("%s contradicts itself: %s", profilePath, findings[0]))
	}
	declared := &Declared{Profile: p, Matrices: map[string]*matrix.Matrix{}}
	declared.Declarations = dossier.Declarations{Profile: data, Matrices: map[string][]byte{}, Harness: harness}
	for _, coverage := range p.Coverage {
		m, data, err := LoadMatrix(filepath.Join(matricesDir, coverage.Matrix+".yaml"))
		if err != nil {
			return nil, err
		}
		if m.Name != coverage.Matrix {
			return nil, Exit(ExitUsage, fmt.Errorf("the file of matrix %s declares the matrix %s, rename one of them", coverage.Matrix, m.Name))
		}
		declared.Matrices[m.Name], declared.Declarations.Matrices[m.Name] = m, data
	}
	if declared.Declarations.Suites, err = readInput(suitesPath); err != nil {
		return nil, err
	}
	if declared.Suites, err = catalogue.DecodeSuites(suitesPath, declared.Declarations.Suites); err != nil {
		return nil, Exit(ExitUsage, err)
	}
	declared.Cells, err = dossier.Expected(p, func(name string) (*matrix.Matrix, error) { return declared.Matrices[name], nil })
	if err != nil {
		return nil, Exit(ExitUsage, err)
	}
	for _, cell := range declared.Cells {
		if cell.Suite() == "" {
			continue
		}
		if _, err := declared.Suites.Find(cell.Suite()); err != nil {
			return nil, Exit(ExitUsage, fmt.Errorf("cell %s: %w", cell.Key, err))
		}
	}
	return declared, nil
}

// LoadProfile reads a profile and returns it with its bytes. A name without a slash or an ending is looked up in the
// folder profiles. Errors carry their exit code.
func LoadProfile(path string) (*profile.Profile, []byte, error) {
	path = profilePath(path)
	data, err := readInput(path)
	if err != nil {
		return nil, nil, err
	}
	p, err := profile.Decode(path, data)
	if err != nil {
		return nil, nil, Exit(ExitUsage, err)
	}
	return p, data, nil
}

// LoadMatrix reads a matrix and returns it with its bytes. Errors carry their exit code.
func LoadMatrix(path string) (*matrix.Matrix, []byte, error) {
	data, err := readInput(path)
	if err != nil {
		return nil, nil, err
	}
	m, err := matrix.Decode(path, data)
	if err != nil {
		return nil, nil, Exit(ExitUsage, err)
	}
	return m, data, nil
}

// readInput reads a file that the command line names.
func readInput(path string) ([]byte, error) {
	data, err := os.ReadFile(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, Exit(ExitUsage, fmt.Errorf("there is no file %s, check the path", path))
	case err != nil:
		return nil, Exit(ExitUsage, fmt.Errorf("cannot read %s: %w", path, reason(err)))
	}
	return data, nil
}

// reason takes the path out of an error that names it already.
func reason(err error) error {
	var path *fs.PathError
	if errors.As(err, &path) {
		return path.Err
	}
	return err
}

// writeOutput writes a file that the command line names, whole or not at all.
func writeOutput(path string, data []byte) error { return writeOutputMode(path, data, 0o644) }

func writeOutputMode(path string, data []byte, mode fs.FileMode) error {
	err := evidence.WriteFileAtomicMode(path, data, mode)
	return Exit(outputCode(err), err)
}

// outputCode is usage where the named folder is wrong, and harness failure where the machine failed.
func outputCode(err error) int {
	if errors.Is(err, evidence.ErrUnusableFolder) {
		return ExitUsage
	}
	return ExitHarnessFailed
}
