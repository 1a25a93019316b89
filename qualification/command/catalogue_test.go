package command

import (
	"bytes"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/spf13/cobra"

	"ptah.run/ptah/qualification/matrix/catalogue"
	"ptah.run/ptah/qualification/matrix/repository"
	"ptah.run/ptah/qualification/matrix/workflow"
)

const repositoryRoot = "../.."

// copyRepository copies what the catalogues are checked against, for breaking it.
func copyRepository(t *testing.T) string {
	t.Helper()
	root := t.TempDir()
	from := os.DirFS(repositoryRoot)
	for _, pattern := range []string{"support/*.yaml", "matrices/*.yaml", "profiles/*.yaml", "chart/ptah-operator/Chart.yaml", "go.mod", "qualification/suites/*/*_test.go", ".github/workflows/*"} {
		names, err := fs.Glob(from, pattern)
		if err != nil || len(names) == 0 {
			t.Fatalf("%s: %d files, %v", pattern, len(names), err)
		}
		for _, name := range names {
			data, err := fs.ReadFile(from, name)
			if err != nil {
				t.Fatal(err)
			}
			path := filepath.Join(root, name)
			if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(path, data, 0o644); err != nil {
				t.Fatal(err)
			}
		}
	}
	return root
}

func damage(t *testing.T, root, name, old, new string) {
	t.Helper()
	path := filepath.Join(root, name)
	data, err := os.ReadFile(path)
	if err != nil || !strings.Contains(string(data), old) {
		t.Fatalf("nothing to replace in %s: %q (%v)", name, old, err)
	}
	if err := os.WriteFile(path, []byte(strings.Replace(string(data), old, new, 1)), 0o644); err != nil {
		t.Fatal(err)
	}
}

// verifiedDay is a day on which the window of this repository is young.
func verifiedDay(t *testing.T) string {
	t.Helper()
	tree, err := repository.Load(os.DirFS(repositoryRoot))
	if err != nil {
		t.Fatal(err)
	}
	return string(tree.Kubernetes.LastVerified)
}

func TestTheCataloguesOfThisRepositoryPass(t *testing.T) {
	out := succeed(t, "catalogue", "check", "--repository", repositoryRoot, "--at", verifiedDay(t))
	if !strings.Contains(out, "no contradictions") {
		t.Error(out)
	}
}

func TestCatalogueCheckRefusals(t *testing.T) {
	broken := copyRepository(t)
	damage(t, broken, "chart/ptah-operator/Chart.yaml", "kubeVersion: ", "kubeVersion: \">=1.20.0-0\" # ")
	unreadable := copyRepository(t)
	damage(t, unreadable, catalogue.SuitesFile, "kind: Suites", "kind: Sweets")
	day, err := time.Parse(time.DateOnly, verifiedDay(t))
	if err != nil {
		t.Fatal(err)
	}
	late := day.Add(36 * 24 * time.Hour).Format(time.DateOnly)
	cases := map[string]struct {
		arguments []string
		out, err  string
	}{
		"should refuse a window that is 36 days old":   {[]string{"--repository", repositoryRoot, "--at", late}, catalogue.KubernetesFile + ": lastVerified", "contradict one another (1 findings)"},
		"should refuse a chart of another window":      {[]string{"--repository", broken, "--at", verifiedDay(t)}, `kubeVersion is ">=1.20.0-0"`, "contradict one another"},
		"should refuse a catalogue that is none":       {[]string{"--repository", unreadable, "--at", verifiedDay(t)}, "", catalogue.SuitesFile + ": it must have apiVersion"},
		"should refuse a day that is none":             {[]string{"--repository", repositoryRoot, "--at", "soon"}, "", `"soon" is no day`},
		"should refuse a folder that is no repository": {[]string{"--repository", t.TempDir()}, "", "give --repository"},
	}
	for name, test := range cases {
		t.Run(name, func(t *testing.T) {
			code, out, errs := qualify(t, append([]string{"catalogue", "check"}, test.arguments...)...)
			if code != ExitUsage || !strings.Contains(out, test.out) || !strings.Contains(errs, test.err) || strings.Contains(errs, "\n") {
				t.Errorf("exit code %d, %q, %q", code, out, errs)
			}
		})
	}
	last := day.Add(35 * 24 * time.Hour).Format(time.DateOnly)
	if code, _, errs := qualify(t, "catalogue", "check", "--repository", repositoryRoot, "--at", last); code != ExitPass {
		t.Errorf("a window that is 35 days old: exit code %d, %s", code, errs)
	}
}

func TestTheWorkflowFilesAreWhatTheCataloguesSay(t *testing.T) {
	succeed(t, "catalogue", "workflows", "--repository", repositoryRoot)
}

func TestAWorkflowFileThatWasEditedIsRefusedAndWrittenAnew(t *testing.T) {
	root := copyRepository(t)
	damage(t, root, workflow.Folder+"/ci.yaml", "bash .ci/run", "true")
	code, out, errs := qualify(t, "catalogue", "workflows", "--repository", root)
	if code != ExitUsage || !strings.Contains(out, "-      - run: true\n+      - run: bash .ci/run") || !strings.Contains(errs, "1 workflow files are not what") {
		t.Errorf("exit code %d, %q, %q", code, out, errs)
	}
	succeed(t, "catalogue", "workflows", "--repository", root, "--write")
	succeed(t, "catalogue", "workflows", "--repository", root)
	stray := filepath.Join(root, workflow.Folder, "extra.yml")
	if err := os.WriteFile(stray, []byte("on: push\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	if code, _, errs := qualify(t, "catalogue", "workflows", "--repository", root, "--write"); code != ExitUsage || !strings.Contains(errs, "nothing makes .github/workflows/extra.yml") {
		t.Errorf("exit code %d, %q", code, errs)
	}
}

// Workflows call commands with flags that are written nowhere else, so that nothing but this would notice one that is gone.
func TestTheWorkflowsCallCommandsThatExist(t *testing.T) {
	tree, err := repository.Load(os.DirFS(repositoryRoot))
	if err != nil {
		t.Fatal(err)
	}
	files, err := workflow.Files(tree)
	if err != nil {
		t.Fatal(err)
	}
	calls := regexp.MustCompile(`(?m)(?:^\s+(?:- run: )?|cmd/)ptah-qualify (.*)$`)
	seen := 0
	for name, text := range files {
		for _, call := range calls.FindAllSubmatch(text, -1) {
			seen++
			root := NewRootCommand(IOStreams{In: strings.NewReader(""), Out: &bytes.Buffer{}, Err: &bytes.Buffer{}})
			if err := understood(root, strings.Fields(string(call[1]))); err != nil {
				t.Errorf("%s: ptah-qualify %s: %v", name, call[1], err)
			}
		}
	}
	if seen < 6 {
		t.Errorf("%d calls were found", seen)
	}
	root := NewRootCommand(IOStreams{In: strings.NewReader(""), Out: &bytes.Buffer{}, Err: &bytes.Buffer{}})
	for _, call := range [][]string{{"gate", "--no-such-flag"}, {"no-such-command"}, {"record", "create", "stray"}} {
		if understood(root, call) == nil {
			t.Errorf("the control %q was understood", call)
		}
	}
}

// understood says that the command line would be taken, without running it.
func understood(root *cobra.Command, words []string) error {
	command, rest, err := root.Find(words)
	if err != nil {
		return err
	}
	if err := command.ParseFlags(rest); err != nil {
		return err
	}
	if err := command.ValidateArgs(command.Flags().Args()); err != nil {
		return err
	}
	return errors.Join(command.ValidateRequiredFlags(), command.ValidateFlagGroups())
}

func TestAPlanNamesCellsMinutesMachinesAndWhatIsNotRun(t *testing.T) {
	flags := []string{"--matrices", repositoryRoot + "/matrices", "--suites", repositoryRoot + "/support/suites.yaml", "--machines", repositoryRoot + "/support/machines.yaml"}
	plan := func(arguments ...string) string {
		return succeed(t, append(append([]string{"matrix"}, arguments...), flags...)...)
	}
	smoke := plan("plan", "functional")
	for _, want := range []string{
		"matrix functional, depth smoke: 1 cells, 1 to run, 0 not run\n",
		"data-plane.kubernetes-1.37.postgresql-17  20       ubuntu-24.04  postgresql, assert, data-plane-boundaries, closing-audit\n",
		"ubuntu-24.04 (linux/amd64, 4 cores, 16 GiB): 1 cells, about 20 min one after the other, the longest 20 min\n",
	} {
		if !strings.Contains(smoke, want) {
			t.Errorf("%q is not in\n%s", want, smoke)
		}
	}
	release := plan("plan", "functional", "--depth", "release")
	for _, want := range []string{
		"96 cells, 9 to run, 87 not run\n", "  (2) No image source of the lab has MySQL 8.4.\n", ") suite migrations is planned: The suite and the reconciler that it tests are not written yet.\n",
		"schema-faults.kubernetes-1.36.postgresql-17.linux-amd64     14       ubuntu-24.04  schema-faults\n",
	} {
		if !strings.Contains(release, want) {
			t.Errorf("%q is not in\n%s", want, release)
		}
	}
	if capacity := plan("plan", "capacity", "--depth", "release"); !strings.Contains(capacity, "9 cells, 0 to run, 9 not run") || !strings.Contains(capacity, "No cell can run.") {
		t.Error(capacity)
	}
	var cells []catalogue.CellPlan
	if err := json.Unmarshal([]byte(plan("plan", "restore", "--depth", "release", "--format", "json")), &cells); err != nil || len(cells) != 18 || len(cells[0].NotRun) == 0 || cells[0].Key == "" {
		t.Errorf("%d cells, %v", len(cells), err)
	}
	if list := plan("list"); !strings.Contains(list, "functional  release       96     9        Every suite") {
		t.Error(list)
	}
	var github workflow.Include
	line := plan("github", "functional", "--depth", "pull-request")
	if err := json.Unmarshal([]byte(line), &github); err != nil || strings.Count(line, "\n") != 1 || len(github.Include) != 2 || github.Include[1].RunsOn != "ubuntu-24.04" || github.Include[1].Minor != "1.37" {
		t.Errorf("%s, %v", line, err)
	}
	code, out, errs := qualify(t, append([]string{"matrix", "github", "capacity", "--depth", "release"}, flags...)...)
	if code != ExitNotEstablished || out != "" || !strings.Contains(errs, "not run: kubernetes-1.37-mysql-8.4-arm64.soak: No image source of the lab has MySQL 8.4, and") || !strings.Contains(errs, "none of the 9 cells of matrix capacity at depth release can run") {
		t.Errorf("exit code %d, %q, %q", code, out, errs)
	}
	for _, bad := range [][]string{{"plan", "functional", "--depth", "deep"}, {"plan", "functional", "--format", "xml"}, {"plan", "none"}, {"plan"}, {"github", "functional", "--depth", "deep"}} {
		if code, _, errs := qualify(t, append(append([]string{"matrix"}, bad...), flags...)...); code != ExitUsage || errs == "" {
			t.Errorf("%q: exit code %d, %q", bad, code, errs)
		}
	}
	if code, _, errs := qualify(t, "matrix", "plan", "functional", "--matrices", repositoryRoot+"/matrices", "--suites", "none.yaml"); code != ExitUsage || !strings.Contains(errs, "there is no file none.yaml") {
		t.Errorf("exit code %d, %q", code, errs)
	}
}

func TestMatricesAndDepthsComplete(t *testing.T) {
	complete := func(words ...string) []string {
		out := succeed(t, append([]string{cobra.ShellCompNoDescRequestCmd}, words...)...)
		return strings.Fields(out)
	}
	if got := complete("matrix", "plan", "--matrices", repositoryRoot+"/matrices", ""); !slices.Contains(got, "functional") || !slices.Contains(got, "capacity") || !slices.Contains(got, "restore") {
		t.Errorf("%q", got)
	}
	if got := complete("matrix", "plan", "--matrices", repositoryRoot+"/matrices", "functional", "--depth", ""); !slices.Contains(got, "pull-request") {
		t.Errorf("%q", got)
	}
	if got := complete("matrix", "github", "--depth", ""); !slices.Contains(got, "release") {
		t.Errorf("%q", got)
	}
	if got := complete("matrix", "plan", "--matrices", repositoryRoot+"/matrices", "functional", ""); slices.Contains(got, "capacity") {
		t.Errorf("a second matrix is proposed: %q", got)
	}
	if got := complete("matrix", "plan", "--format", ""); !slices.Contains(got, "json") {
		t.Errorf("%q", got)
	}
}
