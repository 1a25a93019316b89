package command

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"ptah.run/ptah/qualification/evidence"
	"ptah.run/ptah/qualification/evidence/dossier"
	"ptah.run/ptah/qualification/lab"
	"ptah.run/ptah/qualification/matrix"
	"ptah.run/ptah/qualification/run"
)

// sourceTree is the root of this repository.
func sourceTree(t *testing.T) string {
	t.Helper()
	root, err := lab.FindRepository(".")
	if err != nil {
		t.Fatal(err)
	}
	return root
}

// noLabs makes this user one without labs.
func noLabs(t *testing.T) string {
	t.Helper()
	state := t.TempDir()
	t.Setenv("XDG_STATE_HOME", state)
	return state
}

func TestRunRefusesFlagsThatContradictOneAnother(t *testing.T) {
	noLabs(t)
	for arguments, want := range map[string]string{
		"--labs rented":                       `--labs "rented" is unknown: use existing or own`,
		"--labs own --lab lab":                "--lab names an existing lab",
		"--source registry":                   "--source is for labs that are made",
		"--resume x --profile quickstart":     "--profile cannot be given with --resume",
		"--resume x --cell a":                 "--cell cannot be given with --resume",
		"--resume x --output y":               "--output cannot be given with --resume",
		"--resume x --lab lab":                "--lab cannot be given with --resume",
		"--resume /nowhere":                   "no run directory",
		"--profile nobody":                    "there is no file",
		"--matrix restore":                    `covers no matrix "restore", use one of: functional`,
		"--depth deep":                        `has no depth "deep"`,
		"--cell nothing":                      `covers no cell "nothing"`,
		"--lab none":                          "there is no lab none",
		"--lab NONE":                          "is not usable",
		"--labs own --source somewhere":       `the image source "somewhere" is unknown`,
		"--depth release --matrix functional": "none of the 1 cells",
	} {
		output := t.TempDir()
		words := append([]string{"run"}, strings.Fields(arguments)...)
		if !strings.Contains(arguments, "--resume") {
			words = append(words, "--output", output)
		}
		root := NewRootCommand(IOStreams{In: strings.NewReader(""), Out: io.Discard, Err: io.Discard})
		root.SetArgs(words)
		err := root.ExecuteContext(t.Context())
		if err == nil || ExitCode(err) != ExitUsage || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: exit code %d, %v", arguments, ExitCode(err), err)
		}
		if left, _ := os.ReadDir(output); len(left) != 0 {
			t.Errorf("%s: %s was written", arguments, left[0].Name())
		}
	}
}

func TestWhatEndsARunEarlyHasItsExitCodeAndSaysHowToGoOn(t *testing.T) {
	place := &run.PlaceError{Place: "q-1", Err: errors.New("busy")}
	for name, test := range map[string]struct {
		err  error
		code int
		want string
	}{
		"an interrupt":                      {errors.Join(run.ErrInterrupted, context.Canceled), ExitInterrupted, "interrupted, and what was made is removed; go on with `ptah-qualify run --resume runs/x`"},
		"a context that ended":              {fmt.Errorf("x: %w", context.Canceled), ExitInterrupted, "--resume runs/x`"},
		"two interrupts":                    {run.ErrAborted, ExitInterrupted, "may still be there; go on with `ptah-qualify run --resume runs/x`"},
		"an interrupt that left a lab":      {errors.Join(run.ErrInterrupted, place), ExitInterrupted, "the lab q-1 could not be removed: busy"},
		"a lab that could not be removed":   {place, ExitHarnessFailed, "remove q-1: busy; what is finished is kept, go on with"},
		"a product that could not be built": {errors.Join(Exit(ExitProductFailed, errors.New("compile")), errors.New("more")), ExitProductFailed, "compile; more; what is finished is kept"},
		"a harness that failed":             {errors.New("no disk"), ExitHarnessFailed, "no disk; what is finished is kept"},
		"evidence that nobody asks for":     {&run.UndeclaredError{Run: "x", Cell: "c"}, ExitUsage, "begin a new run"},
	} {
		err := resumable(test.err, "runs/x")
		if ExitCode(err) != test.code || !strings.Contains(err.Error(), test.want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: exit code %d, %v", name, ExitCode(err), err)
		}
	}
	if resumable(nil, "runs/x") != nil {
		t.Error("a run that ended well is an error")
	}
	for path, want := range map[string]string{"a/b-1": "a/b-1", "a b": "'a b'", "it's": `'it'\''s'`, "": "''"} {
		if got := quoted(path); got != want {
			t.Errorf("%q is quoted as %s", path, got)
		}
	}
}

// begunAt opens a run in a folder with the given options, as the command does, without a lab.
func begunAt(t *testing.T, options runOptions) *begunRun {
	t.Helper()
	if options.profile == "" {
		options.profile = "quickstart"
	}
	begun, err := open(t.Context(), sourceTree(t), options)
	if err == nil {
		err = begun.begin(options.output)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(begun.abandon)
	return begun
}

func TestAResumedRunIsTheRunThatWasBegun(t *testing.T) {
	options := runOptions{output: t.TempDir(), id: "one", labs: labsOwn, source: "modules", depth: "smoke"}
	begun := begunAt(t, options)
	begun.abandon()
	again, err := open(t.Context(), sourceTree(t), runOptions{resume: begun.dir})
	if err != nil {
		t.Fatal(err)
	}
	defer again.abandon()
	if fmt.Sprint(again.request) != fmt.Sprint(begun.request) || again.request.Labs != labsOwn || again.request.Depth != "smoke" || again.dir != begun.dir || again.id != "one" {
		t.Errorf("%+v, want %+v", again.request, begun.request)
	}
	if len(again.items) != 1 || again.items[0].NotRun != "" {
		t.Errorf("%+v", again.items)
	}
	if _, err := open(t.Context(), sourceTree(t), runOptions{resume: begun.dir}); err == nil || !strings.Contains(err.Error(), "another process") {
		t.Errorf("a run that is open was opened again: %v", err)
	}
}

func TestARunThatCannotBeGoneOnWithIsRefused(t *testing.T) {
	root := sourceTree(t)
	bare, err := evidence.CreateRun(t.TempDir(), "bare")
	if err != nil {
		t.Fatal(err)
	}
	if err := bare.Abandon(); err != nil {
		t.Fatal(err)
	}
	if _, err := open(t.Context(), root, runOptions{resume: bare.Dir()}); ExitCode(err) != ExitUsage || !strings.Contains(err.Error(), "begin a new run") {
		t.Errorf("a run that holds nothing: %v", err)
	}

	damaged := begunAt(t, runOptions{output: t.TempDir(), id: "damaged"})
	damaged.abandon()
	object := damaged.store.Entries()[0].Path
	if err := errors.Join(os.Chmod(filepath.Join(damaged.dir, object), 0o644), os.WriteFile(filepath.Join(damaged.dir, object), []byte("other"), 0o644)); err != nil {
		t.Fatal(err)
	}
	if _, err := open(t.Context(), root, runOptions{resume: damaged.dir}); ExitCode(err) != ExitVerificationFailed {
		t.Errorf("a run that was altered: exit code %d, %v", ExitCode(err), err)
	}

	data, err := os.ReadFile(filepath.Join(root, "profiles", "quickstart.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "profile.yaml")
	if err := os.WriteFile(path, data, 0o644); err != nil {
		t.Fatal(err)
	}
	renamed := begunAt(t, runOptions{output: t.TempDir(), id: "renamed", profile: path})
	renamed.abandon()
	if err := os.WriteFile(path, bytes.Replace(data, []byte("name: quickstart"), []byte("name: other"), 1), 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := open(t.Context(), root, runOptions{resume: renamed.dir}); ExitCode(err) != ExitUsage || !strings.Contains(err.Error(), "now declares other") {
		t.Errorf("another profile at the same place: %v", err)
	}
}

func TestACompleteRunHasNothingToGoOnWith(t *testing.T) {
	begun := begunAt(t, runOptions{output: t.TempDir(), id: "done"})
	if _, err := begun.store.Close(); err != nil {
		t.Fatal(err)
	}
	var log, out bytes.Buffer
	root := NewRootCommand(IOStreams{In: strings.NewReader(""), Out: &out, Err: &log})
	root.SetArgs([]string{"run", "--resume", begun.dir})
	if err := root.ExecuteContext(t.Context()); err != nil || strings.TrimSpace(out.String()) != begun.dir || !strings.Contains(log.String(), "is complete") {
		t.Errorf("%v, %q, %q", err, out.String(), log.String())
	}
}

func TestCellsThatAreNotRunHaveAReason(t *testing.T) {
	declared, err := LoadDeclared(filepath.Join(sourceTree(t), "profiles", "quickstart.yaml"), filepath.Join(sourceTree(t), "matrices"),
		filepath.Join(sourceTree(t), "support", "suites.yaml"), dossier.Harness{})
	if err != nil {
		t.Fatal(err)
	}
	runs := declared.Cells[0]
	planned, elsewhere, other := runs, runs, runs
	planned.Key, planned.Planned = "planned", []string{"nobody wrote it"}
	elsewhere.Key, elsewhere.Attributes = "elsewhere", map[string]string{"platform.platform": "linux/riscv64"}
	other.Key = "other"
	declared.Cells = []matrix.Cell{runs, planned, elsewhere, other}
	items, err := runRequest{Cells: []string{runs.Key, "planned", "elsewhere"}}.items(declared)
	if err != nil {
		t.Fatal(err)
	}
	for i, want := range []string{"", "nobody wrote it", "it needs a machine of linux/riscv64", "this run was asked for other cells"} {
		if got := items[i].NotRun; !strings.Contains(got, want) || (want == "") != (got == "") {
			t.Errorf("cell %s: %q, want %q", items[i].Cell.Key, got, want)
		}
	}
}

func TestAnExistingLabMustFitEachCell(t *testing.T) {
	state := noLabs(t)
	path, err := lab.DescriptionPath("small")
	if err != nil {
		t.Fatal(err)
	}
	dir := filepath.Dir(path)
	if !strings.HasPrefix(dir, state) {
		t.Fatalf("the labs of this test are in %s", dir)
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	description := &lab.Description{ID: "small", KubernetesVersion: "v1.30.0", ControlPlanes: 1, Platform: thisPlatform}
	if err := errors.Join(description.Save(path), writeInstalled(path, dossier.Release{Images: map[string]string{}})); err != nil {
		t.Fatal(err)
	}
	output := t.TempDir()
	_, err = runCells(t.Context(), sourceTree(t), runOptions{profile: "quickstart", labID: "small", output: output}, io.Discard)
	if ExitCode(err) != ExitUsage || err == nil || !strings.Contains(err.Error(), "it runs Kubernetes v1.30.0, and the cell is about 1.37") {
		t.Errorf("exit code %d, %v", ExitCode(err), err)
	}
	if left, _ := os.ReadDir(output); len(left) != 0 {
		t.Error("a run was begun in a lab that does not fit")
	}
	if err := os.Remove(installedPath(path)); err != nil {
		t.Fatal(err)
	}
	_, err = runCells(t.Context(), sourceTree(t), runOptions{profile: "quickstart", labID: "small", output: output}, io.Discard)
	if ExitCode(err) != ExitUsage || !strings.Contains(err.Error(), "the operator is not installed") {
		t.Errorf("exit code %d, %v", ExitCode(err), err)
	}
}

func TestOwnLabsAreNamedAfterTheirRun(t *testing.T) {
	name := func(dir, key string, attempt int) string {
		return (&ownLabs{run: dir}).Place(matrix.Cell{Matrix: "functional", Key: key}, attempt)
	}
	one := name("/a/runs/1", "cell", 1)
	if _, err := lab.Dir(name("/a/runs/1", "cell", 99999)); err != nil {
		t.Errorf("the name is none for a lab: %v", err)
	}
	for _, other := range []string{name("/b/runs/1", "cell", 1), name("/a/runs/1", "other", 1), name("/a/runs/1", "cell", 2)} {
		if other == one {
			t.Errorf("two labs are called %s", one)
		}
	}
	if one != name("/a/runs/1", "cell", 1) {
		t.Error("the name changes")
	}
}

func TestTheFlagsOfRunComplete(t *testing.T) {
	state := noLabs(t)
	t.Chdir(sourceTree(t))
	if err := os.MkdirAll(filepath.Join(state, "none"), 0o755); err != nil {
		t.Fatal(err)
	}
	for arguments, want := range map[string]string{
		"--labs o":     "own\n",
		"--source r":   "registry\n",
		"--profile qu": "quickstart\n",
		"--matrix f":   "functional\n",
		"--depth s":    "smoke\n",
		"--cell data":  "data-plane.kubernetes-1.37.postgresql-17\n",
	} {
		var out bytes.Buffer
		root := NewRootCommand(IOStreams{In: strings.NewReader(""), Out: &out, Err: io.Discard})
		root.SetArgs(append([]string{"__complete", "run"}, strings.Fields(arguments)...))
		if err := root.ExecuteContext(t.Context()); err != nil || !strings.HasPrefix(out.String(), want) {
			t.Errorf("%s: %v, %q", arguments, err, out.String())
		}
	}
}
