package gate_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// pure are the packages that only compute, with what they may import besides the pure packages of qualification.
var pure = map[string][]string{
	".":            {"fmt", "maps", "slices", "strings"},
	"../carryover": {"cmp", "errors", "fmt", "path", "regexp", "slices", "strings", "time", "unicode"},
	"../record": {"bytes", "context", "crypto", "crypto/ecdsa", "crypto/ed25519", "crypto/elliptic", "crypto/rand", "crypto/sha256", "crypto/x509", "encoding/base64", "encoding/hex",
		"encoding/json", "encoding/pem", "errors", "fmt", "io", "maps", "path", "slices", "sort", "strconv", "strings", "time", "github.com/in-toto/attestation/go/v1",
		"github.com/secure-systems-lab/go-securesystemslib/dsse", "google.golang.org/protobuf/encoding/protojson"},
}

// modules are the packages of this module that they may import. A record also takes a loaded dossier and the report of
// it; it loads and writes neither.
var modules = []string{"carryover", "judge", "matrix", "profile", "profile/document", "verdict", "evidence/dossier", "report"}

func TestGateCarryOverAndRecordOpenNoFileAndReadNoClock(t *testing.T) {
	for dir, allowed := range pure {
		files, err := filepath.Glob(filepath.Join(dir, "*.go"))
		if err != nil || len(files) == 0 {
			t.Fatalf("%s: %v", dir, err)
		}
		for _, name := range files {
			if strings.HasSuffix(name, "_test.go") {
				continue
			}
			for _, imported := range importsOf(t, name, nil) {
				inside, ours := strings.CutPrefix(imported, "ptah.run/ptah/qualification/")
				if !slices.Contains(allowed, imported) && (!ours || !slices.Contains(modules, inside)) {
					t.Errorf("%s imports %s", name, imported)
				}
			}
		}
	}
	found := importsOf(t, "x.go", "package x\nimport (\n\"os\"\n\"time\"\n)\nvar now = time.Now()\n")
	if !slices.Equal(found, []string{"os", "time", "the clock by time.Now"}) {
		t.Errorf("control: a file that opens files and reads the clock is seen as %v", found)
	}
}

func importsOf(t *testing.T, name string, source any) []string {
	t.Helper()
	file, err := parser.ParseFile(token.NewFileSet(), name, source, 0)
	if err != nil {
		t.Fatal(err)
	}
	var imports []string
	for _, spec := range file.Imports {
		imported, err := strconv.Unquote(spec.Path.Value)
		if err != nil {
			t.Fatal(err)
		}
		imports = append(imports, imported)
	}
	ast.Inspect(file, func(node ast.Node) bool {
		if selector, ok := node.(*ast.SelectorExpr); ok {
			if from, ok := selector.X.(*ast.Ident); ok && from.Name == "time" && slices.Contains([]string{"Now", "Since", "Until", "After", "Sleep", "Tick", "NewTimer", "NewTicker"}, selector.Sel.Name) {
				imports = append(imports, "the clock by time."+selector.Sel.Name)
			}
		}
		return true
	})
	return imports
}
