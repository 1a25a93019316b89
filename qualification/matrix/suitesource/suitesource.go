// Package suitesource reads from Go source which test of a suite reports which scenario, so that the catalogue of
// suites can be compared with what is written. A test reports a scenario by calling scenario(t, "its-name", …); it
// runs nothing and resolves no types.
package suitesource

import (
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path"
	"slices"
	"strconv"
	"strings"

	"ptah.run/ptah/qualification/matrix/catalogue"
)

// reporter is the function of a suite by which a test reports a scenario.
const reporter = "scenario"

// Folders returns the folders below dir that hold Go tests, sorted.
func Folders(tree fs.FS, dir string) ([]string, error) {
	entries, err := fs.ReadDir(tree, dir)
	if err != nil {
		return nil, fmt.Errorf("list the suites in %s: %w", dir, err)
	}
	var folders []string
	for _, entry := range entries {
		if !entry.IsDir() {
			continue
		}
		tests, err := fs.Glob(tree, path.Join(dir, entry.Name(), "*_test.go"))
		if err != nil {
			return nil, fmt.Errorf("list the tests of %s: %w", entry.Name(), err)
		}
		if len(tests) > 0 {
			folders = append(folders, path.Join(dir, entry.Name()))
		}
	}
	return folders, nil
}

// Scan returns what the tests of the package in a folder report, in the order of the source. A folder that does not
// exist reports nothing. A scenario whose name is no literal, and one that is reported outside of a test, is an error:
// nobody could tell who runs it.
func Scan(tree fs.FS, folder string) ([]catalogue.Report, error) {
	names, err := fs.ReadDir(tree, folder)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read the package %s: %w", folder, err)
	}
	var reports []catalogue.Report
	for _, entry := range names {
		if entry.IsDir() || !strings.HasSuffix(entry.Name(), "_test.go") {
			continue
		}
		name := path.Join(folder, entry.Name())
		source, err := fs.ReadFile(tree, name)
		if err != nil {
			return nil, fmt.Errorf("read %s: %w", name, err)
		}
		found, err := Parse(name, source)
		if err != nil {
			return nil, err
		}
		reports = append(reports, found...)
	}
	return reports, nil
}

// Parse returns what the tests in one source file report.
func Parse(name string, source []byte) ([]catalogue.Report, error) {
	files := token.NewFileSet()
	file, err := parser.ParseFile(files, name, source, parser.SkipObjectResolution)
	if err != nil {
		return nil, fmt.Errorf("read the tests of a suite: %s", strings.Join(strings.Fields(err.Error()), " "))
	}
	var reports []catalogue.Report
	for _, declaration := range file.Decls {
		function, ok := declaration.(*ast.FuncDecl)
		if !ok {
			continue
		}
		for _, call := range calls(function) {
			position := files.Position(call.Pos())
			where := fmt.Sprintf("%s:%d", name, position.Line)
			if function.Recv != nil || !strings.HasPrefix(function.Name.Name, "Test") {
				return nil, fmt.Errorf("%s: %s reports a scenario and is no test, report it in a test of its own", where, function.Name.Name)
			}
			scenario, ok := literal(call)
			if !ok {
				return nil, fmt.Errorf("%s: name the scenario of %s by a literal, so that the catalogue can be compared with it", where, function.Name.Name)
			}
			reports = append(reports, catalogue.Report{Test: function.Name.Name, Scenario: scenario, Where: where})
		}
	}
	return reports, nil
}

func calls(function *ast.FuncDecl) []*ast.CallExpr {
	var found []*ast.CallExpr
	if function.Body == nil {
		return nil
	}
	ast.Inspect(function.Body, func(node ast.Node) bool {
		call, ok := node.(*ast.CallExpr)
		if !ok {
			return true
		}
		if called, ok := call.Fun.(*ast.Ident); ok && called.Name == reporter {
			found = append(found, call)
		}
		return true
	})
	return slices.Clip(found)
}

// literal returns the name of the scenario, the second argument.
func literal(call *ast.CallExpr) (string, bool) {
	if len(call.Args) < 2 {
		return "", false
	}
	text, ok := call.Args[1].(*ast.BasicLit)
	if !ok || text.Kind != token.STRING {
		return "", false
	}
	name, err := strconv.Unquote(text.Value)
	return name, err == nil
}
