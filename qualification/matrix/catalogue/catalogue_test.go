package catalogue

import (
	"slices"
	"strings"
	"testing"
	"time"
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
	// Records that were signed before a field came are still read, and their digests stay.
	if s.Suites[0].Digest() != "sha256:e4dcf3d443f6baabe4b3d6ae33ee64f68e8dd164abe2c5ed9430b92eaa836d2f" || s.Suites[0].Digest() == s.Suites[1].Digest() {
		t.Errorf("%s, %s", s.Suites[0].Digest(), s.Suites[1].Digest())
	}
}

func TestSuiteRefusals(t *testing.T) {
	cases := map[string]struct{ old, new, want string }{
		"should refuse an unknown field":                 {"summary: One.", "summry: One.", "s.yaml:5: suites[0].summry: it is no field, did you mean summary?"},
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
		"should refuse a package that two suites own":    {"package: suites/lifecycle", "package: suites/dataplane", "the package suites/dataplane is claimed by data-plane already"},
		"should refuse a package outside":                {"package: suites/lifecycle", "package: ../lifecycle", "it must be a folder of this repository"},
		"should refuse a phase that admits no value":     {"timeout: 2h, ", "timeout: 2h, where: {database: []}, ", "suites[1].phases[0].where.database: it admits no value"},
		"should refuse a preparation nobody owns":        {"    package: suites/lifecycle\n", "    package: suites/lifecycle\n    prepares: [zero]\n", `suites[1].prepares[0]: no suite owns the phase "zero"`},
		"should refuse a preparation of its own":         {"    package: suites/lifecycle\n", "    package: suites/lifecycle\n    prepares: [upgrade]\n", "the phase upgrade is the suite's own"},
		"should refuse a preparation that is not lent":   {"    package: suites/lifecycle\n", "    package: suites/lifecycle\n    prepares: [second]\n", "does not say through which scenario it may be borrowed"},
		"should refuse a preparation borrowed twice":     {"    package: suites/lifecycle\n", "    package: suites/lifecycle\n    prepares: [first, first]\n", "suites[1].prepares[1]: the phase first is borrowed twice"},
		"should refuse a scenario that runs alone after those that run together": {"scenarios: [one-by-one, two], ", "scenarios: [one-by-one, two], together: [one-by-one], ",
			"suites[0].phases[0].scenarios: two stands behind one-by-one, which runs together with others"},
		"should refuse one scenario in cells of one kind": {
			"- {name: second, timeout: 20m, scenarios: [three]}", "- {name: second, timeout: 20m, where: {database: [b]}, scenarios: [two]}", "the scenario two is claimed by data-plane/first already"},
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
		"should refuse an unknown field":          {"policy:", "polices:", "s.yaml:3: polices: it is no field, did you mean policy?"},
		"should refuse another policy":            {"upstream-active-minors", "all", "policy upstream-active-minors"},
		"should refuse a window of another size":  {"windowSize: 3", "windowSize: 2", "the window is of 2 minors and 3 are listed"},
		"should refuse an empty window":           {"windowSize: 3", "windowSize: 0", "the window is of 0 minors"},
		"should refuse a gap":                     {`{minor: "1.35", version: 1.35.4, pins: {modules: k8s.io/kubernetes@v1.35.4}}`, `{minor: "1.34", version: 1.34.4, pins: {modules: k8s.io/kubernetes@v1.34.4}}`, "1.36 does not follow 1.34"},
		"should refuse a patch of another minor":  {"version: 1.36.3", "version: 1.37.3", `"1.37.3" is no patch of 1.36`},
		"should refuse a patch that is no number": {"version: 1.36.3", "version: 1.36.x", `"1.36.x" is no patch of 1.36`},
		"should refuse a minor given twice":       {`minor: "1.36"`, `minor: "1.35"`, `"1.36.3" is no patch of 1.35`},
		"should refuse minors that descend": {`  - {minor: "1.36", version: 1.36.3, pins: {modules: k8s.io/kubernetes@v1.36.3}}
`, `  - {minor: "1.34", version: 1.34.3, pins: {modules: k8s.io/kubernetes@v1.34.3}}
`, "1.34 does not follow 1.35"},
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
	digest := "kindest/node@sha256:" + strings.Repeat("a", 64)
	both := strings.NewReplacer("modules: k8s.io/kubernetes@v1.37.2", "registry: "+digest, "modules: k8s.io/kubernetes@v1.36.3", "registry: "+digest).Replace(kubernetes)
	if _, err := DecodeKubernetes("k.yaml", []byte(both)); err == nil || !strings.Contains(err.Error(), "k.yaml: releases[2].pins.registry: "+digest+" is the pin of 1.36 already") {
		t.Errorf("two minors with one pin: %v", err)
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

func TestTheWindowMovesByOneMinorAtATime(t *testing.T) {
	k, err := DecodeKubernetes("k.yaml", []byte(kubernetes))
	if err != nil {
		t.Fatal(err)
	}
	if got := k.KubeVersion(); got != ">=1.35.0-0 <1.38.0-0" {
		t.Error(got)
	}
	next := Release{Minor: "1.38", Version: "1.38.0", Pins: map[string]string{"modules": "k8s.io/kubernetes@v1.38.0"}}
	moved, err := k.Move("k.yaml", next, "2026-12-20")
	if err != nil || !slices.Equal(moved.Minors(), []string{"1.36", "1.37", "1.38"}) || moved.Newest().Version != "1.38.0" || moved.LastVerified != "2026-12-20" || moved.KubeVersion() != ">=1.36.0-0 <1.39.0-0" {
		t.Errorf("%+v, %v", moved, err)
	}
	if !slices.Equal(k.Minors(), []string{"1.35", "1.36", "1.37"}) || k.LastVerified != "2026-11-29" {
		t.Errorf("the catalogue that moved was changed: %+v", k)
	}
	cases := map[string]struct {
		to   Release
		day  Day
		want string
	}{
		"should refuse the newest again":       {Release{Minor: "1.37", Version: "1.37.3", Pins: next.Pins}, "2026-12-20", "1.38 follows 1.37, not 1.37"},
		"should refuse to leave a minor out":   {Release{Minor: "1.39", Version: "1.39.0", Pins: next.Pins}, "2026-12-20", "1.38 follows 1.37, not 1.39"},
		"should refuse to move backwards":      {Release{Minor: "1.34", Version: "1.34.0", Pins: next.Pins}, "2026-12-20", "1.38 follows 1.37, not 1.34"},
		"should refuse what is no minor":       {Release{Minor: "next", Version: "1.38.0", Pins: next.Pins}, "2026-12-20", `"next" is no minor`},
		"should refuse a patch of another":     {Release{Minor: "1.38", Version: "1.37.3", Pins: next.Pins}, "2026-12-20", "is no patch of 1.38"},
		"should refuse a minor without a pin":  {Release{Minor: "1.38", Version: "1.38.0"}, "2026-12-20", "pin the minor"},
		"should refuse a pin of another patch": {Release{Minor: "1.38", Version: "1.38.1", Pins: next.Pins}, "2026-12-20", "is no pin"},
		"should refuse a day before the last":  {next, "2026-11-28", "verified on 2026-11-29"},
		"should refuse a pin that is taken":    {Release{Minor: "1.38", Version: "1.38.0", Pins: map[string]string{"registry": "n@sha256:" + strings.Repeat("a", 64)}}, "2026-12-20", "is the pin of 1.36 already"},
	}
	k.Releases[1].Pins["registry"] = "n@sha256:" + strings.Repeat("a", 64)
	for name, test := range cases {
		t.Run(name, func(t *testing.T) {
			if _, err := k.Move("k.yaml", test.to, test.day); err == nil || !strings.Contains(err.Error(), test.want) || !strings.HasPrefix(err.Error(), "k.yaml: ") {
				t.Errorf("got %v, want %q", err, test.want)
			}
		})
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
