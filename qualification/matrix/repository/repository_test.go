package repository

import (
	"io/fs"
	"os"
	"path"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"ptah.run/ptah/qualification/matrix/catalogue"
)

// today is a day on which the catalogue of this repository is young enough, whenever the test runs.
func today(t *testing.T, tree catalogue.Tree) time.Time {
	t.Helper()
	day, err := time.Parse(time.DateOnly, string(tree.Kubernetes.LastVerified))
	if err != nil {
		t.Fatal(err)
	}
	return day.Add(time.Hour)
}

func TestThisRepositoryHoldsNoContradiction(t *testing.T) {
	tree, err := Load(os.DirFS("../../.."))
	if err != nil {
		t.Fatal(err)
	}
	for _, finding := range catalogue.Check(tree, today(t, tree)) {
		t.Error(finding)
	}
}

// files is a copy in memory of the parts of this repository that are read, for breaking them.
func files(t *testing.T) fstest.MapFS {
	t.Helper()
	root := os.DirFS("../../..")
	copied := fstest.MapFS{}
	add := func(names ...string) {
		for _, name := range names {
			data, err := fs.ReadFile(root, name)
			if err != nil {
				t.Fatal(err)
			}
			copied[name] = &fstest.MapFile{Data: data}
		}
	}
	add(catalogue.SuitesFile, catalogue.KubernetesFile, catalogue.MachinesFile, catalogue.ImagesFile, catalogue.ChartFile, catalogue.ModulesFile)
	for _, pattern := range []string{"matrices/*.yaml", "profiles/*.yaml", "qualification/suites/*/*_test.go"} {
		names, err := fs.Glob(root, pattern)
		if err != nil || len(names) == 0 {
			t.Fatalf("%s: %d files, %v", pattern, len(names), err)
		}
		add(names...)
	}
	return copied
}

func TestEachBrokenFileIsFoundAndNamed(t *testing.T) {
	const suite = "qualification/suites/dataplane/"
	cases := map[string]struct{ file, old, new, want string }{
		"should find a scenario that its phase never reports": {catalogue.SuitesFile, "          - converge-from-empty-after-approval\n", "          - converge-from-empty-after-approval\n          - drift-seen-at-once\n", "it never reports the scenario drift-seen-at-once"},
		"should find a test that no phase owns":               {suite + "refusal_test.go", `scenario(t, "drift-seen-within-one-interval"`, `scenario(t, "drift-seen-at-once"`, "no phase of suite data-plane owns the scenario drift-seen-at-once"},
		"should find a test of another name":                  {suite + "refusal_test.go", "func TestDriftSeenWithinOneInterval(", "func TestDrift(", "is reported by TestDrift"},
		"should find another kubeVersion":                     {catalogue.ChartFile, "<1.38.0-0", "<1.39.0-0", catalogue.ChartFile + ": kubeVersion is"},
		"should find modules of two minors":                   {catalogue.ModulesFile, "k8s.io/apiserver v0.37.", "k8s.io/apiserver v0.36.", "require modules of one Kubernetes minor"},
		"should find a node image of another patch":           {catalogue.ImagesFile, "release: v1.36.3", "release: v1.36.2", "the node image of Kubernetes 1.36 is of v1.36.2"},
		"should find a server that the lab lost":              {catalogue.ImagesFile, "  - role: postgresql\n    version: \"17\"", "  - role: postgresql\n    version: \"16\"", "the lab has no PostgreSQL 17 server"},
		"should find a minor that a matrix lost":              {"matrices/functional.yaml", "      - name: kubernetes-1.36\n        attributes: {minor: \"1.36\"}\n        minutes: 2\n", "", "axis kubernetes has 1.35, 1.37"},
	}
	for name, test := range cases {
		t.Run(name, func(t *testing.T) {
			copied := files(t)
			before := string(copied[test.file].Data)
			if !strings.Contains(before, test.old) {
				t.Fatalf("nothing to replace in %s: %q", test.file, test.old)
			}
			copied[test.file] = &fstest.MapFile{Data: []byte(strings.Replace(before, test.old, test.new, 1))}
			tree, err := Load(copied)
			if err != nil {
				t.Fatal(err)
			}
			found := catalogue.Check(tree, today(t, tree))
			if !slices.ContainsFunc(found, func(f catalogue.Finding) bool { return strings.Contains(f.String(), test.want) }) {
				t.Errorf("%q is not among %v", test.want, found)
			}
		})
	}
}

func TestAPackageOfTestsThatNoSuiteOwnsIsFound(t *testing.T) {
	copied := files(t)
	copied["qualification/suites/stray/stray_test.go"] = &fstest.MapFile{Data: []byte("package stray\n\nfunc TestLost(t *testing.T) { scenario(t, \"lost\", nil) }\n")}
	tree, err := Load(copied)
	if err != nil {
		t.Fatal(err)
	}
	found := catalogue.Check(tree, today(t, tree))
	if len(found) != 1 || !strings.Contains(found[0].String(), "qualification/suites/stray/stray_test.go:3: the scenario lost is of the package qualification/suites/stray, which no suite") {
		t.Errorf("%v", found)
	}
}

func TestAFileThatCannotBeReadIsNamed(t *testing.T) {
	for name := range files(t) {
		if strings.HasPrefix(name, "qualification/") || path.Dir(name) == "matrices" || path.Dir(name) == "profiles" {
			continue
		}
		copied := files(t)
		delete(copied, name)
		if _, err := Load(copied); err == nil || !strings.Contains(err.Error(), "there is no file "+name) {
			t.Errorf("%s: %v", name, err)
		}
	}
	for name, want := range map[string]string{
		"matrices/functional.yaml":                       "matrices/functional.yaml: the document is empty",
		"profiles/quickstart.yaml":                       "profiles/quickstart.yaml: the document is empty",
		catalogue.ImagesFile:                             catalogue.ImagesFile + ": ",
		"qualification/suites/dataplane/refusal_test.go": "read the tests of a suite: qualification/suites/dataplane/refusal_test.go",
	} {
		copied := files(t)
		copied[name] = &fstest.MapFile{}
		if _, err := Load(copied); err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: got %v, want %q", name, err, want)
		}
	}
	for name, other := range map[string]string{"matrices/functional.yaml": "matrices/other.yaml", "profiles/quickstart.yaml": "profiles/other.yaml"} {
		copied := files(t)
		copied[other] = copied[name]
		if _, err := Load(copied); err == nil || !strings.Contains(err.Error(), other+" declares the") {
			t.Errorf("%s: %v", other, err)
		}
	}
	copied := files(t)
	for name := range copied {
		if path.Dir(name) == "matrices" {
			delete(copied, name)
		}
	}
	if _, err := Load(copied); err == nil || !strings.Contains(err.Error(), "no file in the folder matrices") {
		t.Errorf("%v", err)
	}
}
