package catalog

import (
	"errors"
	"os"
	"reflect"
	"strings"
	"testing"
)

const valid = `
schema: 1
filesystems:
  - {name: base, suite: bookworm, variant: minbase, include: [systemd]}
programs:
  - {name: tool-1, module: example.test/tool, version: v1.2.3, packages: [example.test/tool]}
images:
  - role: node
    version: "1.37"
    release: v1.37.2
    tag: local/node:v1.37.2
    default: true
    modules: {filesystem: base, programs: {kubernetes: tool-1}}
  - role: node
    version: "1.36"
    release: v1.36.3
    tag: local/node:v1.36.3
    registry: {repository: example.test/node, digest: "sha256:aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"}
`

func TestTheRepositorysCatalogueIsValidAndHoldsEveryRole(t *testing.T) {
	content, err := os.ReadFile("../../../support/images.yaml")
	if err != nil {
		t.Fatal(err)
	}
	catalog, err := Parse(content)
	if err != nil {
		t.Fatal(err)
	}
	for _, role := range Roles {
		if _, err := catalog.Image(role, ""); err != nil {
			t.Errorf("role %s: %v", role, err)
		}
	}
	if image, err := catalog.Image(PostgreSQL, "17"); err != nil || image.Tag != "ptah.local/postgresql:17" {
		t.Errorf("the tag that container tests use is %q (%v)", image.Tag, err)
	}
}

func TestAMalformedCatalogueIsRefused(t *testing.T) {
	cases := map[string]struct{ from, to, says string }{
		"an empty file":                          {valid, "", "empty"},
		"an unknown field":                       {"suite: bookworm", "suit: bookworm", "suit"},
		"another schema":                         {"schema: 1", "schema: 2", "schema is 2"},
		"a version that is no exact one":         {"version: v1.2.3", "version: latest", "exact version"},
		"a dangling file system":                 {"filesystem: base", "filesystem: other", `no file system "other"`},
		"a dangling program set":                 {"kubernetes: tool-1", "kubernetes: tool-2", `no program set "tool-2"`},
		"a registry without a digest":            {"sha256:" + strings.Repeat("a", 64), "latest", "sha256 digest"},
		"an unknown role":                        {"role: node\n    version: \"1.37\"", "role: nodes\n    version: \"1.37\"", "unknown"},
		"no source at all":                       {"    modules: {filesystem: base, programs: {kubernetes: tool-1}}\n", "", "neither"},
		"two images of one version":              {`version: "1.36"`, `version: "1.37"`, "twice"},
		"two images of one tag":                  {"local/node:v1.36.3", "local/node:v1.37.2", "twice"},
		"no default":                             {"    default: true\n", "", "0 default"},
		"no packages of a file system":           {"include: [systemd]", "include: []", "include is empty"},
		"an option smuggled in as a package":     {"include: [systemd]", `include: ["--hook=x"]`, "no package name"},
		"a variant that the builder cannot make": {"variant: minbase", "variant: essential", "minbase or extract"},
		"programs without packages or files":     {"packages: [example.test/tool]", "ldflags: x", "packages or files"},
		"a main that no package names":           {"packages: [example.test/tool]", "packages: [example.test/tool], main: package main", "belong together"},
		"a scratch package without a main":       {"packages: [example.test/tool]", "packages: [ptah.run/scratch=tool]", "belong together"},
		"a sum that is none":                     {"version: v1.2.3", "version: v1.2.3, sum: abc", "h1 digest"},
	}
	if _, err := Parse([]byte(valid)); err != nil {
		t.Fatalf("the case all others start from is refused: %v", err)
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			broken := strings.Replace(valid, c.from, c.to, 1)
			if broken == valid {
				t.Fatal("the case changes nothing")
			}
			_, err := Parse([]byte(broken))
			if err == nil || !strings.Contains(err.Error(), c.says) {
				t.Errorf("got %v, want an error that says %q", err, c.says)
			}
			if err != nil && strings.Contains(err.Error(), "\n") {
				t.Errorf("the error is no single line: %q", err)
			}
		})
	}
}

func TestAnImageIsFoundByShortVersionReleaseAndDefault(t *testing.T) {
	catalog, err := Parse([]byte(valid))
	if err != nil {
		t.Fatal(err)
	}
	for version, release := range map[string]string{"": "v1.37.2", "1.36": "v1.36.3", "v1.36.3": "v1.36.3"} {
		if image, err := catalog.Image(Node, version); err != nil || image.Release != release {
			t.Errorf("version %q gave %q, %v", version, image.Release, err)
		}
	}
	var unknown *UnknownImageError
	if _, err := catalog.Image(Node, "1.20"); !errors.As(err, &unknown) || !strings.Contains(err.Error(), "1.37, 1.36") {
		t.Errorf("an unknown version gave %v", err)
	}
	if _, err := catalog.Image("mainframe", ""); !errors.As(err, &unknown) || !strings.Contains(err.Error(), "no role") {
		t.Errorf("an unknown role gave %v", err)
	}
}

func TestADigestThatOnlyChecksIsNoPartOfTheRecipe(t *testing.T) {
	with := Program{Name: "a", Sum: "h1:x", With: []Pin{{Module: "m", Version: "v1.0.0", Sum: "h1:y"}}}
	without := Program{Name: "a", With: []Pin{{Module: "m", Version: "v1.0.0"}}}
	if !reflect.DeepEqual(with.Recipe(), without.Recipe()) {
		t.Errorf("got %+v", with.Recipe())
	}
	if with.With[0].Sum == "" {
		t.Error("the recipe changed the catalogue")
	}
}

func FuzzParse(f *testing.F) {
	f.Add([]byte(valid))
	f.Add([]byte("schema: 1"))
	f.Add([]byte("{"))
	f.Fuzz(func(t *testing.T, content []byte) {
		catalog, err := Parse(content)
		if err != nil {
			return
		}
		for _, image := range catalog.Images {
			if _, err := catalog.Image(image.Role, image.Version); err != nil {
				t.Errorf("an accepted catalogue does not find its own image: %v", err)
			}
		}
	})
}
