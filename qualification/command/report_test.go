package command_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"ptah.run/ptah/qualification/command"
	"ptah.run/ptah/qualification/evidence/dossier/dossiertest"
)

func TestReportRendersAndVerifies(t *testing.T) {
	p := newPacked(t, dossiertest.Passing(t))
	again := p.path("again")
	noError(t, os.Mkdir(again, 0o700))
	if code, out := qualify(t, "report", "--run", p.run, "--output", again); code != command.ExitPass || strings.Count(out, "\n") != 4 {
		t.Fatalf("exit %d: %s", code, out)
	}
	verify := []string{"report", "verify", "--reports", again, "--record", p.path("record.json"), "--key", p.path("qualification.pub")}
	if code, out := qualify(t, verify...); code != command.ExitPass {
		t.Fatalf("exit %d: %s", code, out)
	}
	for _, name := range []string{"report.html", "report.md", "junit.xml", "report.json"} {
		path := filepath.Join(again, name)
		data, err := os.ReadFile(path)
		noError(t, err)
		noError(t, os.WriteFile(path, append(slices.Clone(data), ' '), 0o600))
		if code, out := qualify(t, verify...); code != command.ExitVerificationFailed || !strings.Contains(out, name) {
			t.Errorf("%s altered: exit %d: %s", name, code, out)
		}
		noError(t, os.WriteFile(path, data, 0o600))
	}
	if code, out := qualify(t, "report", "--run", p.run, "--output", p.path("none")); code != command.ExitUsage {
		t.Errorf("a missing folder: exit %d: %s", code, out)
	}
}

func TestReportAndBundleFlagsComplete(t *testing.T) {
	t.Chdir(t.TempDir())
	for _, dir := range []string{".ptah/quickstart/runs/20261129-1", ".ptah/quickstart/runs/20261130-1"} {
		noError(t, os.MkdirAll(dir, 0o700))
		noError(t, os.WriteFile(filepath.Join(dir, "run.json"), nil, 0o600))
	}
	noError(t, os.MkdirAll(".ptah/quickstart/runs/no-run", 0o700))
	for _, args := range [][]string{{"report", "--run", ""}, {"bundle", "public", "--run", ""}, {"bundle", "restricted", "--run", ""}} {
		_, out := qualify(t, append([]string{"__complete"}, args...)...)
		want := ".ptah/quickstart/runs/20261130-1\n.ptah/quickstart/runs/20261129-1\n:"
		if !strings.HasPrefix(out, want) {
			t.Errorf("%v completes to %q", args, out)
		}
	}
	if _, out := qualify(t, "__complete", "bundle", "verify", ""); !strings.Contains(out, "tar\nage\n") {
		t.Errorf("bundle verify completes to %q", out)
	}
}
