// Package carryover decides what a change does to what was shown before it: whether a change of the harness leaves the
// release alone, which claims a change of shipped bytes reaches, and whether a claim it reaches must be shown again or
// may stand on a written review.
//
// What a claim depends on is data. The package is pure: it opens no file, runs no git and reads no clock. It never
// decides that a change does not matter: a shipped file that no claim names reaches every claim.
package carryover

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"ptah.run/ptah/qualification/profile"
	"ptah.run/ptah/qualification/profile/document"
)

// APIVersion and Kind head the declaration of claims.
const (
	APIVersion = "qualification.ptah.run/v1"
	Kind       = "Claims"
)

// Claims declares what a release ships and what each claim about it depends on.
type Claims struct {
	APIVersion string  `json:"apiVersion"`
	Kind       string  `json:"kind"`
	Shipped    Paths   `json:"shipped"` // files that decide what a release ships
	Chart      string  `json:"chart"`   // the folder among them that the chart is packed from, with a slash at its end
	Images     []Image `json:"images"`
	Claims     []Claim `json:"claims"`
}

// Image is an image of the release and what it is built from.
type Image struct {
	Name  string   `json:"name"` // role of the image, such as manager
	Paths []string `json:"paths"`
}

// Claim is one thing that a qualification shows about a release.
type Claim struct {
	Name        string              `json:"name"`
	Requirement profile.Requirement `json:"requirement"`
	Statement   string              `json:"statement"`
	Repeat      Dependence          `json:"repeat,omitempty"` // a change of any of this takes the evidence away
	Review      Dependence          `json:"review,omitempty"` // a change of any of this may be reviewed instead
}

// Dependence is what a claim rests on.
type Dependence struct {
	Paths     []string `json:"paths,omitempty"`     // files, and folders with a slash at their end
	Images    []string `json:"images,omitempty"`    // by role; reached by another digest or by a change of what they are built from
	Policies  []string `json:"policies,omitempty"`  // profiles, by name
	Platforms []string `json:"platforms,omitempty"` // such as linux/amd64; reached where cells run there no more, or another way
}

func (d Dependence) empty() bool {
	return len(d.Paths)+len(d.Images)+len(d.Policies)+len(d.Platforms) == 0
}

// Find returns the claim of that name.
func (c *Claims) Find(name string) (Claim, error) {
	for _, claim := range c.Claims {
		if claim.Name == name {
			return claim, nil
		}
	}
	return Claim{}, fmt.Errorf("there is no claim %q, use one of: %s", name, strings.Join(c.Names(), ", "))
}

// Names returns the names of the claims in their order.
func (c *Claims) Names() []string {
	names := make([]string, len(c.Claims))
	for i, claim := range c.Claims {
		names[i] = claim.Name
	}
	return names
}

// Digest identifies the declaration: the SHA-256 of its canonical JSON.
func (c *Claims) Digest() string { return digest(c) }

// Decode reads the declaration strictly. Errors are one sentence with document, line and field.
func Decode(name string, data []byte) (*Claims, error) {
	var c Claims
	if err := document.Decode(name, data, &c); err != nil {
		return nil, err
	}
	if err := c.validate(); err != nil {
		if refusal, ok := err.(*document.Error); ok { //nolint:errorlint // validate returns it unwrapped
			refusal.Document = name
		}
		return nil, err
	}
	return &c, nil
}

func refuse(at, format string, arguments ...any) error {
	return &document.Error{Path: at, Problem: fmt.Sprintf(format, arguments...)}
}

var (
	namePattern     = regexp.MustCompile(`^[a-z0-9]+(-[a-z0-9]+)*$`)
	platformPattern = regexp.MustCompile(`^[a-z0-9]+/[a-z0-9]+$`)
)

func (c *Claims) validate() error {
	switch {
	case c.APIVersion != APIVersion:
		return refuse("apiVersion", "it must be %s, not %q", APIVersion, c.APIVersion)
	case c.Kind != Kind:
		return refuse("kind", "it must be %s, not %q", Kind, c.Kind)
	case len(c.Claims) == 0:
		return refuse("claims", "declare at least one claim")
	}
	if err := c.Shipped.validate("shipped"); err != nil {
		return err
	}
	if err := c.validateShipped("chart", []string{c.Chart}); err != nil {
		return err
	}
	for i, image := range c.Images {
		at := fmt.Sprintf("images[%d]", i)
		if !namePattern.MatchString(image.Name) || slices.ContainsFunc(c.Images[:i], func(other Image) bool { return other.Name == image.Name }) {
			return refuse(at+".name", "give each image a name of its own of lower-case words, not %q", image.Name)
		}
		if len(image.Paths) == 0 {
			return refuse(at+".paths", "say what the image is built from")
		}
		if err := c.validateShipped(at+".paths", image.Paths); err != nil {
			return err
		}
	}
	for i, claim := range c.Claims {
		if err := c.validateClaim(fmt.Sprintf("claims[%d]", i), claim, c.Claims[:i]); err != nil {
			return err
		}
	}
	return nil
}

func (c *Claims) validateClaim(at string, claim Claim, before []Claim) error {
	switch {
	case !namePattern.MatchString(claim.Name) || slices.ContainsFunc(before, func(other Claim) bool { return other.Name == claim.Name }):
		return refuse(at+".name", "give each claim a name of its own of lower-case words, not %q", claim.Name)
	case claim.Requirement == "":
		return refuse(at+".requirement", "name the requirement that it serves")
	case strings.TrimSpace(claim.Statement) == "":
		return refuse(at+".statement", "say what it claims")
	case claim.Repeat.empty() && claim.Review.empty():
		return refuse(at, "a claim that depends on nothing would stand for ever, say what it depends on")
	}
	if err := c.validateDependence(at+".repeat", claim.Repeat); err != nil {
		return err
	}
	return c.validateDependence(at+".review", claim.Review)
}

func (c *Claims) validateDependence(at string, d Dependence) error {
	if err := c.validateShipped(at+".paths", d.Paths); err != nil {
		return err
	}
	for i, name := range d.Images {
		if !slices.ContainsFunc(c.Images, func(image Image) bool { return image.Name == name }) {
			return refuse(fmt.Sprintf("%s.images[%d]", at, i), "no image %q is declared under images", name)
		}
	}
	for i, name := range d.Policies {
		if !namePattern.MatchString(name) {
			return refuse(fmt.Sprintf("%s.policies[%d]", at, i), "give the name of a profile, not %q", name)
		}
	}
	for i, name := range d.Platforms {
		if !platformPattern.MatchString(name) {
			return refuse(fmt.Sprintf("%s.platforms[%d]", at, i), "give a platform such as linux/amd64, not %q", name)
		}
	}
	return nil
}

// validateShipped refuses a dependence on what no release ships: no change of it would ever be seen.
func (c *Claims) validateShipped(at string, entries []string) error {
	if err := validateEntries(at, entries); err != nil {
		return err
	}
	for i, entry := range entries {
		if !slices.ContainsFunc(c.Shipped.Include, func(shipped string) bool { return within(entry, shipped) }) {
			return refuse(fmt.Sprintf("%s[%d]", at, i), "%s is not shipped, so that a change of it would never be seen; add it to shipped or remove it", entry)
		}
	}
	return nil
}
