package cell

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"ptah.run/ptah/qualification/lab"
	"ptah.run/ptah/qualification/matrix"
	"ptah.run/ptah/qualification/matrix/catalogue"
	"ptah.run/ptah/qualification/profile"
)

func TestALabThatIsNotTheDeclaredOneIsRefused(t *testing.T) {
	cell := matrix.Cell{Key: "c", Attributes: map[string]string{"kubernetes.minor": "1.37", "database.engine": "PostgreSQL", "database.version": "17", "platform.platform": "linux/amd64"}}
	cluster := profile.Cluster{ControlPlanes: 1}
	fitting := func() *lab.Description {
		return &lab.Description{ID: "lab", KubernetesVersion: "v1.37.2", Platform: "linux/amd64", ControlPlanes: 1, Databases: []lab.DatabaseDescription{{Engine: "PostgreSQL", Version: "17.6"}}}
	}
	cases := map[string]struct {
		change func(*lab.Description)
		want   string
	}{
		"another minor":                {func(d *lab.Description) { d.KubernetesVersion = "v1.36.4" }, "Kubernetes v1.36.4"},
		"a minor that begins the same": {func(d *lab.Description) { d.KubernetesVersion = "v1.371.0" }, "Kubernetes v1.371.0"},
		"another platform":             {func(d *lab.Description) { d.Platform = "linux/arm64" }, "linux/arm64"},
		"more control planes":          {func(d *lab.Description) { d.ControlPlanes = 3 }, "3 control planes"},
		"more workers":                 {func(d *lab.Description) { d.Workers = 2 }, "2 workers"},
		"another database":             {func(d *lab.Description) { d.Databases[0].Engine = "MySQL" }, "MySQL 17.6"},
		"another release line":         {func(d *lab.Description) { d.Databases[0].Version = "170.1" }, "PostgreSQL 170.1"},
		"no database":                  {func(d *lab.Description) { d.Databases = nil }, "PostgreSQL 17"},
	}
	for name, test := range cases {
		description := fitting()
		test.change(description)
		if err := Fits(cell, cluster, description); err == nil || !strings.Contains(err.Error(), test.want) || !strings.Contains(err.Error(), "cell c") {
			t.Errorf("%s: %v", name, err)
		}
	}
	if err := Fits(cell, cluster, fitting()); err != nil {
		t.Errorf("control: %v", err)
	}
	anywhere := fitting()
	anywhere.Platform, anywhere.KubernetesVersion, anywhere.Databases = "linux/riscv64", "v1.99.0", nil
	if err := Fits(matrix.Cell{Key: "open"}, cluster, anywhere); err != nil {
		t.Errorf("a cell that leaves it open: %v", err)
	}
}

// What may overlap is said twice: by the suites, whose tests are t.Parallel, and by the catalogue, which the order of a
// run is compared with. They must say the same.
func TestTheCatalogueNamesTheScenariosThatRunTogether(t *testing.T) {
	data, err := os.ReadFile("../../support/suites.yaml")
	if err != nil {
		t.Fatal(err)
	}
	suites, err := catalogue.DecodeSuites("support/suites.yaml", data)
	if err != nil {
		t.Fatal(err)
	}
	for _, suite := range suites.Suites {
		if suite.Planned != "" {
			continue
		}
		parallel := parallelTests(t, filepath.Join("../..", suite.Package))
		for _, phase := range suite.Phases {
			for i, scenario := range phase.Scenarios {
				if slices.Contains(phase.Together, scenario) != parallel[phase.Tests()[i]] {
					t.Errorf("suite %s, phase %s: the catalogue and %s disagree on whether %s may run together with others", suite.Name, phase.Name, phase.Tests()[i], scenario)
				}
			}
		}
	}
}

// parallelTests says of each test of a package whether it calls t.Parallel.
func parallelTests(t *testing.T, dir string) map[string]bool {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(dir, "*_test.go"))
	if err != nil || len(files) == 0 {
		t.Fatalf("%s holds no tests: %v", dir, err)
	}
	found := map[string]bool{}
	for _, path := range files {
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		for _, declaration := range file.Decls {
			function, ok := declaration.(*ast.FuncDecl)
			if !ok || !strings.HasPrefix(function.Name.Name, "Test") || function.Body == nil {
				continue
			}
			found[function.Name.Name] = false
			for _, statement := range function.Body.List {
				if call, ok := statement.(*ast.ExprStmt); ok && strings.HasSuffix(source(call), "Parallel") {
					found[function.Name.Name] = true
				}
			}
		}
	}
	return found
}

func source(statement *ast.ExprStmt) string {
	call, ok := statement.X.(*ast.CallExpr)
	if !ok {
		return ""
	}
	selector, ok := call.Fun.(*ast.SelectorExpr)
	if !ok {
		return ""
	}
	return selector.Sel.Name
}
