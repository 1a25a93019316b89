package catalogue

import (
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"ptah.run/ptah/qualification/matrix"
	"ptah.run/ptah/qualification/profile"
)

const suites = `apiVersion: qualification.ptah.run/v1
kind: Suites
suites:
  - name: data-plane
    summary: One.
    package: suites/dataplane
    phases:
      - {name: first, timeout: 20m, scenarios: [one-by-one, two], prepareThrough: one-by-one}
      - {name: second, timeout: 20m, scenarios: [three]}
  - name: lifecycle
    summary: Two.
    package: suites/lifecycle
    phases:
      - {name: upgrade, timeout: 2h, scenarios: [four]}
`

const kubernetes = `apiVersion: qualification.ptah.run/v1
kind: Kubernetes
policy: upstream-active-minors
windowSize: 3
lastVerified: 2026-11-29
releases:
  - {minor: "1.35", version: 1.35.4, pins: {modules: k8s.io/kubernetes@v1.35.4}}
  - {minor: "1.36", version: 1.36.3, pins: {modules: k8s.io/kubernetes@v1.36.3}}
  - {minor: "1.37", version: 1.37.2, pins: {modules: k8s.io/kubernetes@v1.37.2}}
`

func read(t *testing.T, path string) []byte {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

func TestTheCataloguesOfTheRepositoryAreSoundAndFitTogether(t *testing.T) {
	s, err := DecodeSuites("suites.yaml", read(t, "../../../support/suites.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	k, err := DecodeKubernetes("kubernetes.yaml", read(t, "../../../support/kubernetes.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	m, err := matrix.Decode("functional.yaml", read(t, "../../../matrices/functional.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	p, err := profile.Decode("quickstart.yaml", read(t, "../../../profiles/quickstart.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	reported := map[string]bool{}
	for _, cell := range m.Cells() {
		suite, err := s.Find(cell.Suite())
		if err != nil {
			t.Error(err)
		}
		for _, scenario := range suite.Scenarios() {
			reported[scenario] = true
		}
		supported := slices.ContainsFunc(k.Releases, func(r Release) bool { return r.Minor == cell.Attributes["kubernetes.minor"] })
		if !supported {
			t.Errorf("cell %s is of the minor %s, which support/kubernetes.yaml does not have", cell.Key, cell.Attributes["kubernetes.minor"])
		}
	}
	for _, scenario := range p.Scenarios {
		if !reported[scenario.Name] {
			t.Errorf("profile quickstart demands %s, which no suite of its matrix reports", scenario.Name)
		}
	}
}

// Every scenario of the catalogue is a Go test of its suite, and every test of a scenario is in the catalogue.
func TestTheCatalogueNamesTheTestsThatExist(t *testing.T) {
	s, err := DecodeSuites("suites.yaml", read(t, "../../../support/suites.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	for _, suite := range s.Suites {
		source := sources(t, "../../../"+suite.Package)
		for _, phase := range suite.Phases {
			for i, test := range phase.Tests() {
				if !strings.Contains(source, "func "+test+"(t *testing.T)") || !strings.Contains(source, `"`+phase.Scenarios[i]+`"`) {
					t.Errorf("suite %s has no test %s of the scenario %s", suite.Name, test, phase.Scenarios[i])
				}
			}
		}
		if declared, there := len(suite.Scenarios()), strings.Count(source, "\tscenario(t, \""); declared != there {
			t.Errorf("the catalogue has %d scenarios of suite %s, its package has %d", declared, suite.Name, there)
		}
	}
}

func sources(t *testing.T, dir string) string {
	t.Helper()
	files, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	var all strings.Builder
	for _, file := range files {
		if strings.HasSuffix(file.Name(), "_test.go") {
			all.Write(read(t, dir+"/"+file.Name()))
		}
	}
	return all.String()
}

func TestTestsAreNamedAfterScenarios(t *testing.T) {
	s, err := DecodeSuites("s.yaml", []byte(suites))
	if err != nil {
		t.Fatal(err)
	}
	if got := s.Suites[0].Phases[0].Tests(); !slices.Equal(got, []string{"TestOneByOne", "TestTwo"}) {
		t.Errorf("%v", got)
	}
	if _, err := s.Find("other"); err == nil || !strings.Contains(err.Error(), "it has: data-plane, lifecycle") {
		t.Errorf("%v", err)
	}
	if s.Suites[0].Digest() == s.Suites[1].Digest() {
		t.Error("two suites have one digest")
	}
}

func TestSuiteRefusals(t *testing.T) {
	cases := map[string]struct{ old, new, want string }{
		"should refuse an unknown field":                 {"summary: One.", "sumary: One.", "s.yaml:5: suites[0].sumary: it is no field, did you mean summary?"},
		"should refuse another kind":                     {"kind: Suites", "kind: Suite", "it must have apiVersion"},
		"should refuse a suite given twice":              {"name: lifecycle", "name: data-plane", "the suite data-plane is claimed by data-plane already"},
		"should refuse a phase that two suites own":      {"name: upgrade", "name: first", "the phase first is claimed by data-plane already"},
		"should refuse a scenario that two phases own":   {"[three]", "[two]", "the scenario two is claimed by data-plane/first already"},
		"should refuse a scenario given twice":           {"[one-by-one, two]", "[one-by-one, one-by-one]", "is claimed by data-plane/first already"},
		"should refuse a phase without scenarios":        {"[three]", "[]", "a phase has a timeout and at least one scenario"},
		"should refuse a phase without a timeout":        {"timeout: 2h, ", "", "a phase has a timeout"},
		"should refuse a preparation the phase lacks":    {"prepareThrough: one-by-one", "prepareThrough: nine", `the phase has no scenario "nine"`},
		"should refuse a suite without a package":        {"    package: suites/lifecycle\n", "", "a suite has a summary, a package and at least one phase"},
		"should refuse a scenario with capital letters":  {"[four]", "[Four]", "a scenario has a name of lower-case words"},
		"should refuse a phase with blanks in its name":  {"name: second", "name: the second", "a phase has a name of lower-case words"},
		"should refuse a suite with blanks in its name":  {"name: lifecycle", "name: life cycle", "a suite has a name of lower-case words"},
		"should refuse a timeout that is no length time": {"timeout: 2h", "timeout: long", "it must be a positive length of time"},
	}
	for name, test := range cases {
		t.Run(name, func(t *testing.T) {
			refused(t, suites, test.old, test.new, test.want, func(data []byte) error { _, err := DecodeSuites("s.yaml", data); return err })
		})
	}
	if _, err := DecodeSuites("s.yaml", []byte(suites)); err != nil {
		t.Errorf("control: %v", err)
	}
}

func TestKubernetesRefusals(t *testing.T) {
	cases := map[string]struct{ old, new, want string }{
		"should refuse an unknown field":           {"policy:", "polices:", "s.yaml:3: polices: it is no field, did you mean policy?"},
		"should refuse another policy":             {"upstream-active-minors", "all", "policy upstream-active-minors"},
		"should refuse a window of another size":   {"windowSize: 3", "windowSize: 2", "the window is of 2 minors and 3 are listed"},
		"should refuse an empty window":            {"windowSize: 3", "windowSize: 0", "the window is of 0 minors"},
		"should refuse a gap":                      {`{minor: "1.35", version: 1.35.4, pins: {modules: k8s.io/kubernetes@v1.35.4}}`, `{minor: "1.34", version: 1.34.4, pins: {modules: k8s.io/kubernetes@v1.34.4}}`, "1.36 does not follow 1.34"},
		"should refuse a patch of another minor":   {"version: 1.36.3", "version: 1.37.3", `"1.37.3" is no patch of 1.36`},
		"should refuse a minor of another major":   {`minor: "1.37"`, `minor: "2.37"`, "it must be a minor"},
		"should refuse a minor without a pin":      {"pins: {modules: k8s.io/kubernetes@v1.37.2}", "pins: {}", "pin the minor"},
		"should refuse a pin of another version":   {"k8s.io/kubernetes@v1.37.2", "k8s.io/kubernetes@v1.37.1", "is no pin"},
		"should refuse a pin without a digest":     {"modules: k8s.io/kubernetes@v1.37.2", "registry: kindest/node:v1.37.2", "is no pin"},
		"should refuse an unknown image source":    {"modules: k8s.io/kubernetes@v1.37.2", "floppy: x", "is no pin"},
		"should refuse a day that is none":         {"2026-11-29", "yesterday", "it must be a day"},
		"should refuse a catalogue without a date": {"lastVerified: 2026-11-29\n", "", "lastVerified"},
	}
	for name, test := range cases {
		t.Run(name, func(t *testing.T) {
			refused(t, kubernetes, test.old, test.new, test.want, func(data []byte) error { _, err := DecodeKubernetes("s.yaml", data); return err })
		})
	}
	pinned := strings.Replace(kubernetes, "modules: k8s.io/kubernetes@v1.37.2", "registry: kindest/node@sha256:"+strings.Repeat("a", 64), 1)
	for name, text := range map[string]string{"modules": kubernetes, "registry": pinned} {
		if _, err := DecodeKubernetes("s.yaml", []byte(text)); err != nil {
			t.Errorf("control %s: %v", name, err)
		}
	}
}

func refused(t *testing.T, base, old, new, want string, decode func([]byte) error) {
	t.Helper()
	if !strings.Contains(base, old) {
		t.Fatalf("nothing to replace: %q", old)
	}
	err := decode([]byte(strings.Replace(base, old, new, 1)))
	if err == nil || !strings.Contains(err.Error(), want) || !strings.HasPrefix(err.Error(), "s.yaml") || strings.Contains(err.Error(), "\n") {
		t.Errorf("got %v, want one sentence with %q", err, want)
	}
}

func TestACatalogueGoesStaleAfter35Days(t *testing.T) {
	k, err := DecodeKubernetes("k.yaml", []byte(kubernetes))
	if err != nil {
		t.Fatal(err)
	}
	verified := time.Date(2026, 11, 29, 0, 0, 0, 0, time.UTC)
	for _, test := range []struct {
		now  time.Time
		want string
	}{{verified, ""}, {verified.Add(35 * 24 * time.Hour), ""}, {verified.Add(35*24*time.Hour + time.Second), "35 days ago"}, {verified.Add(-time.Second), "lies in the future"}} {
		err := k.CheckAge(test.now)
		if (test.want == "") != (err == nil) || (err != nil && !strings.Contains(err.Error(), test.want)) {
			t.Errorf("%s: %v, want %q", test.now, err, test.want)
		}
	}
}

func FuzzDecodeSuites(f *testing.F) {
	f.Add([]byte(suites))
	f.Add([]byte(kubernetes))
	f.Fuzz(func(t *testing.T, data []byte) {
		if s, err := DecodeSuites("f", data); err == nil {
			for _, suite := range s.Suites {
				for _, phase := range suite.Phases {
					phase.Tests()
				}
			}
		}
		if _, err := DecodeKubernetes("f", data); err != nil && strings.Contains(err.Error(), "\n") {
			t.Fatalf("a refusal of several lines: %q", err)
		}
	})
}
