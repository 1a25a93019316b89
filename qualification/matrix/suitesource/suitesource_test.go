package suitesource

import (
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"ptah.run/ptah/qualification/matrix/catalogue"
)

const source = `package s

import "testing"

func scenario(t *testing.T, name string, run func()) { t.Helper(); run() }

func TestOne(t *testing.T) {
	scenario(t, "one", func() {
		other.scenario(t, "of somebody else")
	})
}

func TestHelpers(t *testing.T) { table.Scenario(t, "no") }

func (s suite) helper() {}
`

func TestATestReportsTheScenarioItNames(t *testing.T) {
	reports, err := Parse("s_test.go", []byte(source))
	want := []catalogue.Report{{Test: "TestOne", Scenario: "one", Where: "s_test.go:8"}}
	if err != nil || !slices.Equal(reports, want) {
		t.Errorf("%v, %v", reports, err)
	}
}

func TestWhatNobodyCouldTellIsRefused(t *testing.T) {
	cases := map[string]struct{ source, want string }{
		"should refuse a name that is no literal":    {`func TestA(t *testing.T) { scenario(t, name, nil) }`, "s_test.go:2: name the scenario of TestA by a literal"},
		"should refuse a name that is a number":      {`func TestA(t *testing.T) { scenario(t, 3, nil) }`, "by a literal"},
		"should refuse a call without a name":        {`func TestA(t *testing.T) { scenario(t) }`, "by a literal"},
		"should refuse a scenario outside of a test": {`func helper(t *testing.T) { scenario(t, "a", nil) }`, "s_test.go:2: helper reports a scenario and is no test"},
		"should refuse a scenario of a method":       {`func (s suite) TestA(t *testing.T) { scenario(t, "a", nil) }`, "TestA reports a scenario and is no test"},
		"should refuse what is no Go":                {`func TestA(`, "read the tests of a suite: s_test.go:"},
	}
	for name, test := range cases {
		t.Run(name, func(t *testing.T) {
			_, err := Parse("s_test.go", []byte("package s\n"+test.source+"\n"))
			if err == nil || !strings.Contains(err.Error(), test.want) || strings.Contains(err.Error(), "\n") {
				t.Errorf("got %v, want %q", err, test.want)
			}
		})
	}
}

func TestScanReadsTheTestsOfOneFolderOnly(t *testing.T) {
	tree := fstest.MapFS{
		"suites/a/a_test.go":      {Data: []byte(source)},
		"suites/a/a.go":           {Data: []byte("package s\nfunc TestX() { scenario(t, name) }")},
		"suites/a/deep/b_test.go": {Data: []byte("no Go")},
		"suites/b/b.go":           {Data: []byte("package b")},
		"suites/README.md":        {Data: []byte("x")},
	}
	if reports, err := Scan(tree, "suites/a"); err != nil || len(reports) != 1 {
		t.Errorf("%v, %v", reports, err)
	}
	if reports, err := Scan(tree, "suites/none"); err != nil || reports != nil {
		t.Errorf("a folder that is not there: %v, %v", reports, err)
	}
	if folders, err := Folders(tree, "suites"); err != nil || !slices.Equal(folders, []string{"suites/a"}) {
		t.Errorf("%v, %v", folders, err)
	}
	if _, err := Folders(tree, "none"); err == nil || !strings.Contains(err.Error(), "list the suites in none") {
		t.Errorf("%v", err)
	}
	tree["suites/a/c_test.go"] = &fstest.MapFile{Data: []byte("no Go")}
	if _, err := Scan(tree, "suites/a"); err == nil {
		t.Error("a file that is no Go was read")
	}
}

func FuzzParse(f *testing.F) {
	f.Add([]byte(source))
	f.Add([]byte("package s\nfunc TestA() { scenario(t, `a`) }"))
	f.Fuzz(func(t *testing.T, data []byte) {
		if _, err := Parse("f_test.go", data); err != nil && strings.Contains(err.Error(), "\n") {
			t.Fatalf("a refusal of several lines: %q", err)
		}
	})
}
