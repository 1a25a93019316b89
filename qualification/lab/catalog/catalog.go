// Package catalog is the typed form of support/images.yaml: which images the lab uses, each by role and version,
// and how each image source gets them. It is pure: it decodes, validates and looks up, and touches nothing.
package catalog

import (
	"bytes"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"sigs.k8s.io/yaml"
)

// Schema is the only version of the file that this package understands.
const Schema = 1

// Role says what an image is for.
type Role string

// Roles.
const (
	Node         Role = "node"          // a Kubernetes node for kind
	Registry     Role = "registry"      // an OCI registry
	PostgreSQL   Role = "postgresql"    // a PostgreSQL server
	MySQL        Role = "mysql"         // a MySQL server
	LoadBalancer Role = "load-balancer" // what kind puts in front of several control planes
	ExecutorBase Role = "executor-base" // the servers that the executor image carries
)

// Roles lists the roles there are.
var Roles = []Role{Node, Registry, PostgreSQL, MySQL, LoadBalancer, ExecutorBase}

// Catalog is the whole file.
type Catalog struct {
	Schema      int          `json:"schema"`
	Filesystems []Filesystem `json:"filesystems"`
	Programs    []Program    `json:"programs"`
	Images      []Image      `json:"images"`
}

// Filesystem is a root file system made from Debian packages.
type Filesystem struct {
	Name    string            `json:"name"`
	Suite   string            `json:"suite"`
	Variant string            `json:"variant"`
	Options []string          `json:"options,omitempty"` // further options of mmdebstrap
	Include []string          `json:"include"`
	Exclude []string          `json:"exclude,omitempty"` // path patterns left out, `**` matching across folders
	Keep    []string          `json:"keep,omitempty"`    // path patterns kept although excluded
	Expect  map[string]string `json:"expect,omitempty"`  // package to the prefix its version must have
}

// Program is a set of programs of one Go module, or a folder of files of it.
type Program struct {
	Name     string   `json:"name"`
	Module   string   `json:"module"`
	Version  string   `json:"version"`
	Sum      string   `json:"sum,omitempty"`      // h1: digest of the module, as go.sum has it
	With     []Pin    `json:"with,omitempty"`     // further modules the packages are taken from
	Staging  string   `json:"staging,omitempty"`  // version that replaces modules the module itself replaces by folders
	Packages []string `json:"packages,omitempty"` // import paths; `path=name` gives the program another name
	Main     string   `json:"main,omitempty"`     // source of the package ptah.run/scratch, where packages name it
	Files    string   `json:"files,omitempty"`    // instead of packages: a folder of the module that is copied
	LDFlags  string   `json:"ldflags,omitempty"`
	Tags     []string `json:"tags,omitempty"`
	CGO      bool     `json:"cgo,omitempty"` // linked statically against libc
}

// Pin is a module at one version.
type Pin struct {
	Module  string `json:"module"`
	Version string `json:"version"`
	Sum     string `json:"sum,omitempty"`
}

// Recipe returns what decides about the bytes of the programs: the set without the digests, which only check them.
func (p Program) Recipe() Program {
	p.Sum = ""
	p.With = slices.Clone(p.With)
	for i := range p.With {
		p.With[i].Sum = ""
	}
	return p
}

// Image is one image by role and version.
type Image struct {
	Role     Role         `json:"role"`
	Version  string       `json:"version"` // what a person asks for: 1.37, 17
	Release  string       `json:"release"` // the exact version: v1.37.2, 17.x
	Tag      string       `json:"tag"`     // the name it gets in the local engine
	Default  bool         `json:"default,omitempty"`
	Registry *RegistryPin `json:"registry,omitempty"`
	Modules  *Recipe      `json:"modules,omitempty"`
}

// RegistryPin is an image in a registry by digest.
type RegistryPin struct {
	Repository string `json:"repository"`
	Digest     string `json:"digest"`
}

// Recipe names what an image is built from.
type Recipe struct {
	Filesystem string            `json:"filesystem,omitempty"`
	Beside     string            `json:"beside,omitempty"`   // a second file system, of which the recipe takes single files
	Programs   map[string]string `json:"programs,omitempty"` // part of the image to program set
}

// UnknownImageError says that the catalogue has no such image.
type UnknownImageError struct {
	Role    Role
	Version string
	Known   []string
}

func (e *UnknownImageError) Error() string {
	if len(e.Known) == 0 {
		var roles []string
		for _, role := range Roles {
			roles = append(roles, string(role))
		}
		return fmt.Sprintf("the image catalogue has no role %q: use one of %s", e.Role, strings.Join(roles, ", "))
	}
	return fmt.Sprintf("the image catalogue has no %s image of version %q: use one of %s", e.Role, e.Version, strings.Join(e.Known, ", "))
}

// Parse decodes and validates a catalogue. Unknown fields, dangling names and unpinned registries are errors.
func Parse(content []byte) (*Catalog, error) {
	var catalog Catalog
	if err := yaml.UnmarshalStrict(content, &catalog, yaml.DisallowUnknownFields); err != nil {
		return nil, fmt.Errorf("decode the image catalogue: %s", strings.Join(strings.Fields(err.Error()), " "))
	}
	if len(bytes.TrimSpace(content)) == 0 {
		return nil, errors.New("decode the image catalogue: it is empty")
	}
	if err := catalog.validate(); err != nil {
		return nil, fmt.Errorf("the image catalogue is not valid: %w", err)
	}
	return &catalog, nil
}

// Image returns the image of a role. An empty version means the default one; a version is the short form (1.37)
// or the release (v1.37.2). The error is an *UnknownImageError.
func (c *Catalog) Image(role Role, version string) (Image, error) {
	var known []string
	for _, image := range c.Images {
		if image.Role != role {
			continue
		}
		known = append(known, image.Version)
		if version == image.Version || version == image.Release || version == "" && image.Default {
			return image, nil
		}
	}
	return Image{}, &UnknownImageError{Role: role, Version: version, Known: known}
}

// Filesystem returns a file system by name.
func (c *Catalog) Filesystem(name string) (Filesystem, error) {
	for _, filesystem := range c.Filesystems {
		if filesystem.Name == name {
			return filesystem, nil
		}
	}
	return Filesystem{}, fmt.Errorf("the image catalogue has no file system %q", name)
}

// Program returns a program set by name.
func (c *Catalog) Program(name string) (Program, error) {
	for _, program := range c.Programs {
		if program.Name == name {
			return program, nil
		}
	}
	return Program{}, fmt.Errorf("the image catalogue has no program set %q", name)
}

var (
	namePattern    = regexp.MustCompile(`^[a-z0-9]([a-z0-9.-]*[a-z0-9])?$`)
	versionPattern = regexp.MustCompile(`^v\d+\.\d+\.\d+[0-9A-Za-z.+-]*$`)
	digestPattern  = regexp.MustCompile(`^sha256:[0-9a-f]{64}$`)
	sumPattern     = regexp.MustCompile(`^h1:[A-Za-z0-9+/]{43}=$`)
	packagePattern = regexp.MustCompile(`^[a-z0-9][a-z0-9+.-]+$`)
)

func (c *Catalog) validate() error {
	if c.Schema != Schema {
		return fmt.Errorf("schema is %d, and this program understands %d", c.Schema, Schema)
	}
	for i, filesystem := range c.Filesystems {
		if err := filesystem.validate(); err != nil {
			return fmt.Errorf("filesystems[%d] (%s): %w", i, filesystem.Name, err)
		}
	}
	for i, program := range c.Programs {
		if err := program.validate(); err != nil {
			return fmt.Errorf("programs[%d] (%s): %w", i, program.Name, err)
		}
	}
	for i, image := range c.Images {
		if err := c.validateImage(image); err != nil {
			return fmt.Errorf("images[%d] (%s %s): %w", i, image.Role, image.Version, err)
		}
	}
	return c.unique()
}

func (f Filesystem) validate() error {
	if !namePattern.MatchString(f.Name) {
		return errors.New("name must be lower-case letters, digits, dots and hyphens")
	}
	if !namePattern.MatchString(f.Suite) {
		return fmt.Errorf("suite %q is no Debian suite", f.Suite)
	}
	if f.Variant != "minbase" && f.Variant != "extract" {
		return fmt.Errorf("variant %q must be minbase or extract", f.Variant)
	}
	if len(f.Include) == 0 {
		return errors.New("include is empty")
	}
	for _, name := range f.Include {
		if !packagePattern.MatchString(name) {
			return fmt.Errorf("include has %q, which is no package name", name)
		}
	}
	return nil
}

func (p Program) validate() error {
	if !namePattern.MatchString(p.Name) {
		return errors.New("name must be lower-case letters, digits, dots and hyphens")
	}
	for _, pin := range append([]Pin{{p.Module, p.Version, p.Sum}}, p.With...) {
		if pin.Module == "" || !versionPattern.MatchString(pin.Version) {
			return fmt.Errorf("module %q needs an exact version, not %q", pin.Module, pin.Version)
		}
		if pin.Sum != "" && !sumPattern.MatchString(pin.Sum) {
			return fmt.Errorf("sum %q of %s is no h1 digest", pin.Sum, pin.Module)
		}
	}
	if (len(p.Packages) == 0) == (p.Files == "") {
		return errors.New("it needs either packages or files")
	}
	if scratch := slices.ContainsFunc(p.Packages, isScratch); scratch != (p.Main != "") {
		return errors.New("main and the package ptah.run/scratch belong together")
	}
	if p.Staging != "" && !versionPattern.MatchString(p.Staging) {
		return fmt.Errorf("staging %q is no exact version", p.Staging)
	}
	return nil
}

// ScratchModule is the module in which programs are built.
const ScratchModule = "ptah.run/scratch"

func isScratch(entry string) bool {
	pkg, _, _ := strings.Cut(entry, "=")
	return pkg == ScratchModule
}

// unique refuses two things of one name, two images of one role and version, and a role without one default.
func (c *Catalog) unique() error {
	var names []string
	for _, filesystem := range c.Filesystems {
		names = append(names, "file system "+filesystem.Name)
	}
	for _, program := range c.Programs {
		names = append(names, "program set "+program.Name)
	}
	defaults := map[Role]int{}
	for _, image := range c.Images {
		names = append(names, fmt.Sprintf("%s image %s", image.Role, image.Version), "tag "+image.Tag)
		defaults[image.Role] += map[bool]int{true: 1}[image.Default]
	}
	slices.Sort(names)
	for i := 1; i < len(names); i++ {
		if names[i] == names[i-1] {
			return fmt.Errorf("%s is there twice", names[i])
		}
	}
	for _, role := range Roles {
		if count, used := defaults[role]; used && count != 1 {
			return fmt.Errorf("role %s has %d default images, and needs one", role, count)
		}
	}
	return nil
}

func (c *Catalog) validateImage(image Image) error {
	if !slices.Contains(Roles, image.Role) {
		return fmt.Errorf("role %q is unknown", image.Role)
	}
	if image.Version == "" || image.Release == "" || image.Tag == "" {
		return errors.New("version, release and tag are required")
	}
	if image.Registry == nil && image.Modules == nil {
		return errors.New("it has neither a registry pin nor a modules recipe")
	}
	if pin := image.Registry; pin != nil && (pin.Repository == "" || !digestPattern.MatchString(pin.Digest)) {
		return fmt.Errorf("registry needs a repository and a sha256 digest, not %q at %q", pin.Repository, pin.Digest)
	}
	if image.Modules == nil {
		return nil
	}
	for _, name := range []string{image.Modules.Filesystem, image.Modules.Beside} {
		if name == "" {
			continue
		}
		if _, err := c.Filesystem(name); err != nil {
			return err
		}
	}
	for _, name := range image.Modules.Programs {
		if _, err := c.Program(name); err != nil {
			return err
		}
	}
	return nil
}
