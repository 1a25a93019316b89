package command

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"

	"ptah.run/ptah/qualification/evidence"
	"ptah.run/ptah/qualification/evidence/dossier"
)

// installedPath is where a lab keeps what was installed into it.
func installedPath(labFile string) string {
	return filepath.Join(filepath.Dir(labFile), "installation.json")
}

func writeInstalled(labFile string, release dossier.Release) error {
	data, err := json.MarshalIndent(release, "", "  ")
	if err != nil {
		return err
	}
	return evidence.WriteFileAtomic(installedPath(labFile), append(data, '\n'))
}

func readInstalled(labFile string) (dossier.Release, error) {
	var release dossier.Release
	data, err := os.ReadFile(installedPath(labFile))
	if errors.Is(err, os.ErrNotExist) {
		return release, Exit(ExitUsage, errors.New("the operator is not installed in this lab: run `ptah-qualify quickstart --until install`"))
	}
	if err == nil {
		err = json.Unmarshal(data, &release)
	}
	return release, Exit(ExitHarnessFailed, err)
}
