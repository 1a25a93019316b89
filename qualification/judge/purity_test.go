package judge_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

const module = "ptah.run/ptah/"

// pure are the packages that import no client, open no file and read no clock, and import only one another.
var pure = []string{
	"qualification/profile", "qualification/profile/document", "qualification/matrix", "qualification/matrix/catalogue", "qualification/verdict",
	"qualification/judge", "qualification/audit", "qualification/evidence/stream", "qualification/evidence/scenario", "qualification/evidence/sample", "qualification/evidence/driverload", "qualification/evidence/phase",
}

// allowed are the imports from elsewhere. Everything else is refused, so that a new one is a decision.
var allowed = []string{
	"bufio", "bytes", "cmp", "crypto/sha256", "encoding", "encoding/hex", "encoding/json", "errors", "fmt", "io", "maps", "math", "reflect", "regexp", "slices", "sort",
	"strconv", "strings", "time", "go.yaml.in/yaml/v3",
}

// clock are the names of package time that read it or wait for it.
var clock = []string{"Now", "Since", "Until", "After", "AfterFunc", "Sleep", "Tick", "NewTimer", "NewTicker"}

// impurities returns what a source file does that a pure package must not.
func impurities(t *testing.T, name string, source any) []string {
	t.Helper()
	file, err := parser.ParseFile(token.NewFileSet(), name, source, 0)
	if err != nil {
		t.Fatal(err)
	}
	var found []string
	for _, spec := range file.Imports {
		path, err := strconv.Unquote(spec.Path.Value)
		if err != nil {
			t.Fatal(err)
		}
		inside, ours := strings.CutPrefix(path, module)
		if !slices.Contains(allowed, path) && (!ours || !slices.Contains(pure, inside)) {
			found = append(found, "imports "+path)
		}
	}
	ast.Inspect(file, func(node ast.Node) bool {
		if selector, ok := node.(*ast.SelectorExpr); ok {
			if from, ok := selector.X.(*ast.Ident); ok && from.Name == "time" && slices.Contains(clock, selector.Sel.Name) {
				found = append(found, "reads the clock by time."+selector.Sel.Name)
			}
		}
		return true
	})
	return found
}

func TestPurePackagesImportNoClientOpenNoFileAndReadNoClock(t *testing.T) {
	for _, dir := range pure {
		files, err := filepath.Glob(filepath.Join("..", "..", dir, "*.go"))
		if err != nil {
			t.Fatal(err)
		}
		seen := 0
		for _, path := range files {
			if strings.HasSuffix(path, "_test.go") {
				continue
			}
			seen++
			source, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			for _, impurity := range impurities(t, path, source) {
				t.Errorf("%s %s", path, impurity)
			}
		}
		if seen == 0 {
			t.Errorf("package %s has no files", dir)
		}
	}
}

func TestThePurityCheckSeesEachKindOfImpurity(t *testing.T) {
	for source, want := range map[string]string{
		"package p\nimport \"os\"\n":                                                   "imports os",
		"package p\nimport \"net/http\"\n":                                             "imports net/http",
		"package p\nimport \"k8s.io/client-go/kubernetes\"\n":                          "imports k8s.io/client-go/kubernetes",
		"package p\nimport \"ptah.run/ptah/qualification/evidence\"\n":                 "imports ptah.run/ptah/qualification/evidence",
		"package p\nimport \"time\"\nvar now = time.Now()\n":                           "reads the clock by time.Now",
		"package p\nimport \"time\"\nfunc f(t time.Time) bool { return t.IsZero() }\n": "",
	} {
		found := strings.Join(impurities(t, "p.go", source), ", ")
		if found != want {
			t.Errorf("%q: found %q, want %q", source, found, want)
		}
	}
}
