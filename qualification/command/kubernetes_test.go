package command

import (
	"bytes"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/spf13/cobra"

	"ptah.run/ptah/qualification/matrix/catalogue"
	"ptah.run/ptah/qualification/matrix/repository"
)

func contents(t *testing.T, root string) map[string]string {
	t.Helper()
	files := map[string]string{}
	err := filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		data, err := os.ReadFile(path)
		name, _ := filepath.Rel(root, path)
		files[name] = string(data)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return files
}

func nextMinor(t *testing.T) (flags advanceFlags, now time.Time) {
	t.Helper()
	tree, err := repository.Load(os.DirFS(repositoryRoot))
	if err != nil {
		t.Fatal(err)
	}
	day, err := time.Parse(time.DateOnly, string(tree.Kubernetes.LastVerified))
	if err != nil {
		t.Fatal(err)
	}
	return advanceFlags{minor: "1.38", version: "v1.38.0"}, day.Add(10 * 24 * time.Hour)
}

func TestTheWindowIsProposedAsADiffAndMovedAsAWhole(t *testing.T) {
	root := copyRepository(t)
	before := contents(t, root)
	flags, now := nextMinor(t)
	var out, errs bytes.Buffer
	streams := IOStreams{Out: &out, Err: &errs}
	if err := advance(streams, root, flags, now); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"--- a/support/kubernetes.yaml\n+++ b/support/kubernetes.yaml\n", `-  - minor: "1.35"`, `+  - minor: "1.38"`, "--- a/matrices/functional.yaml", "--- a/support/images.yaml",
		`+kubeVersion: ">=1.36.0-0 <1.39.0-0"`, "--- a/.github/workflows/ci.yaml", "+lastVerified: " + now.Format(time.DateOnly)} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("%q is not in the diff", want)
		}
	}
	if !strings.Contains(errs.String(), "left for a person: profiles/production.yaml: it speaks of Kubernetes 1.35, outside of the window") || !strings.Contains(errs.String(), "--write changes them") {
		t.Error(errs.String())
	}
	after := contents(t, root)
	for name, text := range before {
		if after[name] != text {
			t.Errorf("a proposal changed %s", name)
		}
	}
	flags.write = true
	if err := advance(streams, root, flags, now); err != nil {
		t.Fatal(err)
	}
	tree, err := repository.Load(os.DirFS(root))
	if err != nil {
		t.Fatal(err)
	}
	if got := strings.Join(tree.Kubernetes.Minors(), " "); got != "1.36 1.37 1.38" || len(contents(t, root)) != len(before) {
		t.Errorf("%s, %d files", got, len(contents(t, root)))
	}
	for _, finding := range catalogue.Check(tree, now) {
		if !strings.HasPrefix(finding.Where, "profiles/") {
			t.Error(finding)
		}
	}
	succeed(t, "catalogue", "workflows", "--repository", root)
}

func TestAdvanceRefusalsChangeNothing(t *testing.T) {
	flags, now := nextMinor(t)
	with := func(change func(*advanceFlags)) advanceFlags {
		changed := flags
		changed.write = true
		change(&changed)
		return changed
	}
	cases := map[string]struct {
		flags advanceFlags
		file  string
		old   string
		new   string
		want  string
	}{
		"should refuse to leave a minor out":           {flags: with(func(f *advanceFlags) { f.minor, f.version = "1.39", "1.39.0" }), want: "the window moves one minor at a time"},
		"should refuse a patch of another minor":       {flags: with(func(f *advanceFlags) { f.version = "1.37.9" }), want: "is no patch of 1.38"},
		"should refuse an image without a digest":      {flags: with(func(f *advanceFlags) { f.image = "kindest/node:v1.38.0" }), want: "is no pin"},
		"should refuse a day that is none":             {flags: with(func(f *advanceFlags) { f.verified = "soon" }), want: "--verified: it must be a day"},
		"should refuse a day in the future":            {flags: with(func(f *advanceFlags) { f.verified = "2999-01-01" }), want: "the changed tree would contradict itself: support/kubernetes.yaml: lastVerified 2999-01-01 lies in the future"},
		"should refuse a sum that is none":             {flags: with(func(f *advanceFlags) { f.sum = "sha256:1" }), want: "the change would break the tree: support/images.yaml: "},
		"should refuse modules that fall behind":       {flags: with(func(*advanceFlags) {}), file: "go.mod", old: "k8s.io/apiserver v0.37.", new: "k8s.io/apiserver v0.36.", want: "the changed tree would contradict itself: go.mod: "},
		"should refuse a tree that contradicts itself": {flags: with(func(*advanceFlags) {}), file: catalogue.MachinesFile, old: "cores: 4", new: "cores: 3", want: "the changed tree would contradict itself: matrices/functional.yaml: cell data-plane"},
		"should refuse a change that breaks a file":    {flags: with(func(*advanceFlags) {}), file: "matrices/functional.yaml", old: "name: data-plane\n", new: "name: data-plain\n", want: "the change would break the tree: matrices/functional.yaml: "},
		"should refuse a file in another form":         {flags: with(func(*advanceFlags) {}), file: catalogue.ChartFile, old: "kubeVersion", new: "kubernetesVersion", want: "there is no kubeVersion in it"},
	}
	for name, test := range cases {
		t.Run(name, func(t *testing.T) {
			root := copyRepository(t)
			if test.file != "" {
				damage(t, root, test.file, test.old, test.new)
			}
			before := contents(t, root)
			var out, errs bytes.Buffer
			err := advance(IOStreams{Out: &out, Err: &errs}, root, test.flags, now)
			if ExitCode(err) != ExitUsage || !strings.Contains(err.Error(), test.want) || strings.Contains(err.Error(), "\n") {
				t.Errorf("got %v, want %q", err, test.want)
			}
			after := contents(t, root)
			for name, text := range before {
				if after[name] != text {
					t.Errorf("a refused move changed %s", name)
				}
			}
			if len(after) != len(before) {
				t.Errorf("%d files, there were %d", len(after), len(before))
			}
		})
	}
}

func TestTheWindowIsShownWithItsAge(t *testing.T) {
	tree, err := repository.Load(os.DirFS(repositoryRoot))
	if err != nil {
		t.Fatal(err)
	}
	_, now := nextMinor(t)
	var out bytes.Buffer
	if err := showWindow(&out, tree.Kubernetes, now); err != nil || !strings.Contains(out.String(), "1.37   1.37.2  modules k8s.io/kubernetes@v1.37.2\n") || !strings.Contains(out.String(), "the chart admits >=1.35.0-0 <1.38.0-0") {
		t.Errorf("%v\n%s", err, out.String())
	}
	if err := showWindow(&out, tree.Kubernetes, now.Add(30*24*time.Hour)); ExitCode(err) != ExitUsage || !strings.Contains(err.Error(), "at most 35 are allowed") {
		t.Errorf("%v", err)
	}
	if got := strings.Fields(succeed(t, cobra.ShellCompNoDescRequestCmd, "kubernetes", "advance", "--repository", repositoryRoot, "--to", "")); got[0] != tree.Kubernetes.Next() {
		t.Errorf("%q is proposed", got)
	}
	if code, _, errs := qualify(t, "kubernetes", "advance"); code != ExitUsage || !strings.Contains(errs, `"to", "version"`) {
		t.Errorf("%d, %s", code, errs)
	}
}
