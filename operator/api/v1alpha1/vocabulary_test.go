package v1alpha1_test

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"ptah.run/ptah/operator/api/v1alpha1"
)

// programs are the folders whose code writes conditions and Events.
var programs = []string{"schema", "operation", "plan", "realm", "receiver", "admission", "cmd", "telemetry", "planview", "schemaview"}

// reasonArgument is which argument of a function is a reason.
var reasonArgument = map[string]int{"set": 2, "setCondition": 4, "block": 0, "warn": 0, "inform": 0, "event": 1, "markStale": 2, "Eventf": 3}

// loose finds reasons that a file makes from a text instead of taking them from the vocabulary.
func loose(file *ast.File) []token.Pos {
	found := []token.Pos{}
	text := func(e ast.Expr) {
		if call, ok := e.(*ast.CallExpr); ok && len(call.Args) == 1 && isName(call.Fun, "string") {
			e = call.Args[0]
		}
		if literal, ok := e.(*ast.BasicLit); ok && literal.Kind == token.STRING {
			found = append(found, e.Pos())
		}
	}
	ast.Inspect(file, func(node ast.Node) bool {
		switch node := node.(type) {
		case *ast.CallExpr:
			name := lastName(node.Fun)
			if name == "Reason" || name == "EventReason" {
				text(node.Args[0])
			}
			if at, ok := reasonArgument[name]; ok && len(node.Args) > at {
				text(node.Args[at])
			}
		case *ast.KeyValueExpr:
			if isName(node.Key, "Reason") || isName(node.Key, "reason") {
				text(node.Value)
			}
		case *ast.CompositeLit:
			if isName(node.Type, "mark") && len(node.Elts) > 1 {
				text(node.Elts[1])
			}
		case *ast.AssignStmt:
			for i, left := range node.Lhs {
				if name := lastName(left); (name == "reason" || name == "Reason") && len(node.Rhs) == len(node.Lhs) {
					text(node.Rhs[i])
				}
			}
		}
		return true
	})
	return found
}

func lastName(e ast.Expr) string {
	switch e := e.(type) {
	case *ast.Ident:
		return e.Name
	case *ast.SelectorExpr:
		return e.Sel.Name
	}
	return ""
}

func isName(e ast.Expr, name string) bool { return e != nil && lastName(e) == name }

// sources are the parsed files of the programs, without tests.
func sources(t *testing.T) (*token.FileSet, []*ast.File) {
	t.Helper()
	set, files := token.NewFileSet(), []*ast.File{}
	for _, folder := range programs {
		err := filepath.WalkDir(filepath.Join("..", "..", folder), func(path string, _ fs.DirEntry, err error) error {
			if err != nil || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
				return err
			}
			file, err := parser.ParseFile(set, path, nil, parser.SkipObjectResolution)
			files = append(files, file)
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	return set, files
}

func TestNoCodeSetsAReasonOutsideTheVocabulary(t *testing.T) {
	set, files := sources(t)
	if len(files) < 40 {
		t.Fatalf("only %d files were read", len(files))
	}
	for _, file := range files {
		for _, at := range loose(file) {
			t.Errorf("%s: a reason is made from a text; add it to the vocabulary", set.Position(at))
		}
	}
}

func TestALooseReasonIsFound(t *testing.T) {
	for _, statement := range []string{
		`p.set(ptahv1.ConditionReady, yes, "Odd", "message")`,
		`p.warn("Odd", "Apply", "note")`,
		`_ = metav1.Condition{Type: "Ready", Reason: "Odd"}`,
		`_ = metav1.Condition{Type: "Ready", Reason: string("Odd")}`,
		`_ = ptahv1.Reason("Odd")`,
		`_ = mark{ptahv1.ConditionStale, "Odd", "message"}`,
		`s.reason = "Odd"`,
		`_ = &failure{reason: "Odd"}`,
	} {
		file, err := parser.ParseFile(token.NewFileSet(), "x.go", "package x\nfunc f() {\n"+statement+"\n}", 0)
		if err != nil {
			t.Fatal(err)
		}
		if len(loose(file)) == 0 {
			t.Errorf("%s is not found", statement)
		}
	}
}

// declared are the constants of a type in a file of this package, with their values.
func declared(t *testing.T, path, kind string) map[string]string {
	t.Helper()
	file, err := parser.ParseFile(token.NewFileSet(), path, nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	constants := map[string]string{}
	ast.Inspect(file, func(node ast.Node) bool {
		if spec, ok := node.(*ast.ValueSpec); ok && isName(spec.Type, kind) {
			value, err := strconv.Unquote(spec.Values[0].(*ast.BasicLit).Value)
			if err != nil {
				t.Fatal(err)
			}
			constants[spec.Names[0].Name] = value
		}
		return true
	})
	if len(constants) == 0 {
		t.Fatalf("%s declares no %s", path, kind)
	}
	return constants
}

func TestEveryReasonIsExplainedOnceAndUsed(t *testing.T) {
	used := map[string]bool{}
	_, files := sources(t)
	for _, file := range files {
		ast.Inspect(file, func(node ast.Node) bool {
			if name, ok := node.(*ast.SelectorExpr); ok {
				used[name.Sel.Name] = true
			}
			return true
		})
	}
	explained := map[string]int{}
	for _, entry := range v1alpha1.Vocabulary() {
		explained["Reason "+string(entry.Reason)]++
		sentences(t, string(entry.Reason), entry.Meaning, entry.Action)
		if len(entry.Conditions) == 0 {
			t.Errorf("reason %s stands nowhere", entry.Reason)
		}
	}
	for _, entry := range v1alpha1.Events() {
		explained["EventReason "+string(entry.Reason)]++
		sentences(t, string(entry.Reason), entry.When)
	}
	for _, source := range []struct{ path, kind string }{{"reasons.go", "Reason"}, {"events.go", "EventReason"}} {
		for name, value := range declared(t, source.path, source.kind) {
			if !used[name] {
				t.Errorf("%s is used by no code", name)
			}
			key := source.kind + " " + value
			if explained[key] != 1 {
				t.Errorf("%s is explained %d times", name, explained[key])
			}
			delete(explained, key)
		}
	}
	for key := range explained {
		t.Errorf("%s is explained and not declared", key)
	}
	if _, found := v1alpha1.Explain("Odd"); found {
		t.Error("a reason outside the vocabulary is explained")
	}
}

func sentences(t *testing.T, name string, texts ...string) {
	t.Helper()
	for _, text := range texts {
		if text != "" && (!strings.HasSuffix(text, ".") || strings.Contains(text, "\n")) {
			t.Errorf("%s: %q is no sentence", name, text)
		}
	}
}

func TestTheVocabularyIsInOrder(t *testing.T) {
	reasons := []string{}
	for _, entry := range v1alpha1.Vocabulary() {
		reasons = append(reasons, string(entry.Reason))
	}
	events := []string{}
	for _, entry := range v1alpha1.Events() {
		events = append(events, string(entry.Reason))
	}
	if !slices.IsSorted(reasons) || !slices.IsSorted(events) {
		t.Errorf("not in order: %s", fmt.Sprint(reasons, events))
	}
}

func TestEveryPhaseIsExplained(t *testing.T) {
	explained := []string{}
	for _, entry := range v1alpha1.Phases() {
		explained = append(explained, string(entry.Phase))
		sentences(t, string(entry.Phase), entry.Meaning, entry.Next)
	}
	for name, value := range declared(t, "ptahschema.go", "Phase") {
		if !slices.Contains(explained, value) {
			t.Errorf("%s is not explained", name)
		}
	}
}
