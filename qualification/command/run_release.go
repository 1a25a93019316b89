package command

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"ptah.run/ptah/qualification/evidence"
	"ptah.run/ptah/qualification/evidence/dossier"
)

// harnessOf says which commit of this repository is at work. A tree outside git has no commit, and says so.
func harnessOf(ctx context.Context, repository string) (dossier.Harness, error) {
	harness := dossier.Harness{Version: Version}
	commit, err := exec.CommandContext(ctx, "git", "-C", repository, "rev-parse", "--verify", "HEAD").Output()
	if err != nil {
		return harness, ctx.Err() // no git here: the record then says that the commit is unknown
	}
	harness.Commit = strings.TrimSpace(string(commit))
	changes, err := exec.CommandContext(ctx, "git", "-C", repository, "status", "--porcelain").Output()
	if err != nil {
		return harness, fmt.Errorf("ask git whether %s was changed: %w", repository, err)
	}
	harness.Dirty = len(changes) > 0
	return harness, nil
}

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
