package catalogue

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"ptah.run/ptah/qualification/profile/document"
)

var (
	minorPattern = regexp.MustCompile(`^1\.(0|[1-9][0-9]{0,3})$`)
	patchPattern = regexp.MustCompile(`^1\.[0-9]{1,4}\.(0|[1-9][0-9]{0,3})$`)
	imagePattern = regexp.MustCompile(`^[^\s@]+@sha256:[0-9a-f]{64}$`)
)

// Kubernetes is the catalogue of supported minors.
type Kubernetes struct {
	APIVersion   string    `json:"apiVersion"`
	Kind         string    `json:"kind"`
	Policy       string    `json:"policy"`
	WindowSize   int       `json:"windowSize"`
	LastVerified Day       `json:"lastVerified"` // the day the window was last compared with the upstream releases
	Releases     []Release `json:"releases"`
}

// Release is one minor with the patch that is tested, and how each image source pins it.
type Release struct {
	Minor   string            `json:"minor"`
	Version string            `json:"version"`
	Pins    map[string]string `json:"pins"` // image source to pin: modules to a Go module version, registry to an image digest
}

// Day is a day, written 2026-11-29.
type Day string

// UnmarshalText refuses what is no day of the calendar.
func (d *Day) UnmarshalText(text []byte) error {
	if _, err := time.Parse(time.DateOnly, string(text)); err != nil {
		return fmt.Errorf("it must be a day such as 2026-11-29, not %q", text)
	}
	*d = Day(text)
	return nil
}

// MaxAge is how old lastVerified may be.
const MaxAge = 35 * 24 * time.Hour

// DecodeKubernetes reads the catalogue of minors and refuses a window that is not consecutive, ascending and of the
// declared size, a version of another minor, and a minor that no image source pins.
func DecodeKubernetes(name string, data []byte) (*Kubernetes, error) {
	var k Kubernetes
	if err := document.Decode(name, data, &k); err != nil {
		return nil, err
	}
	if k.APIVersion != APIVersion || k.Kind != "Kubernetes" || k.Policy != "upstream-active-minors" || k.LastVerified == "" {
		return nil, named(name, refuse("", "it must have apiVersion %s, kind Kubernetes, policy upstream-active-minors and lastVerified", APIVersion))
	}
	if k.WindowSize < 1 || len(k.Releases) != k.WindowSize {
		return nil, named(name, refuse("releases", "the window is of %d minors and %d are listed", k.WindowSize, len(k.Releases)))
	}
	for i, release := range k.Releases {
		if err := release.validate(fmt.Sprintf("releases[%d]", i)); err != nil {
			return nil, named(name, err)
		}
		if i > 0 && number(release.Minor) != number(k.Releases[i-1].Minor)+1 {
			return nil, named(name, refuse(fmt.Sprintf("releases[%d].minor", i), "minors ascend one by one, %s does not follow %s", release.Minor, k.Releases[i-1].Minor))
		}
	}
	return &k, k.unique(name)
}

func (r Release) validate(path string) error {
	switch {
	case !minorPattern.MatchString(r.Minor):
		return refuse(path+".minor", "it must be a minor such as \"1.37\", not %q", r.Minor)
	case !patchPattern.MatchString(r.Version) || !strings.HasPrefix(r.Version, r.Minor+"."):
		return refuse(path+".version", "%q is no patch of %s", r.Version, r.Minor)
	case len(r.Pins) == 0:
		return refuse(path+".pins", "pin the minor for at least one image source")
	}
	for source, pin := range r.Pins {
		switch {
		case source == "modules" && pin == "k8s.io/kubernetes@v"+r.Version:
		case source == "registry" && imagePattern.MatchString(pin):
		default:
			return refuse(path+".pins."+source, "%q is no pin: modules takes k8s.io/kubernetes@v%s, registry takes an image with its digest", pin, r.Version)
		}
	}
	return nil
}

// number is the 37 of 1.37; the minor matches minorPattern.
func number(minor string) int {
	n, _ := strconv.Atoi(strings.TrimPrefix(minor, "1."))
	return n
}

// Minors returns the supported minors, oldest first.
func (k *Kubernetes) Minors() []string {
	minors := make([]string, len(k.Releases))
	for i, release := range k.Releases {
		minors[i] = release.Minor
	}
	return minors
}

// Newest returns the newest supported release.
func (k *Kubernetes) Newest() Release { return k.Releases[len(k.Releases)-1] }

// Next returns the minor after the newest.
func (k *Kubernetes) Next() string { return fmt.Sprintf("1.%d", number(k.Newest().Minor)+1) }

// KubeVersion is the constraint of the chart that admits exactly the supported minors, pre-releases of them included.
func (k *Kubernetes) KubeVersion() string {
	return fmt.Sprintf(">=%s.0-0 <%s.0-0", k.Releases[0].Minor, k.Next())
}

// Move returns the catalogue with the given release as the newest and without the oldest. It refuses a release that
// does not follow the newest, and a day before the one of the last verification.
func (k *Kubernetes) Move(name string, to Release, verified Day) (*Kubernetes, error) {
	switch {
	case !minorPattern.MatchString(to.Minor):
		return nil, named(name, refuse("", "%q is no minor such as 1.38", to.Minor))
	case to.Minor != k.Next():
		return nil, named(name, refuse("", "the window moves one minor at a time: %s follows %s, not %s", k.Next(), k.Newest().Minor, to.Minor))
	case verified < k.LastVerified:
		return nil, named(name, refuse("", "the window was verified on %s, a later change cannot be of %s", k.LastVerified, verified))
	}
	if err := to.validate(""); err != nil {
		return nil, named(name, err)
	}
	moved := *k
	moved.LastVerified = verified
	moved.Releases = append(slices.Clone(k.Releases[1:]), to)
	return &moved, moved.unique(name)
}

// unique refuses a pin that two minors share.
func (k *Kubernetes) unique(name string) error {
	seen := map[string]string{}
	for i, release := range k.Releases {
		for source, pin := range release.Pins {
			if other, taken := seen[pin]; taken {
				return named(name, refuse(fmt.Sprintf("releases[%d].pins.%s", i, source), "%s is the pin of %s already", pin, other))
			}
			seen[pin] = release.Minor
		}
	}
	return nil
}

// CheckAge refuses a catalogue whose lastVerified lies in the future or more than 35 days before now.
func (k *Kubernetes) CheckAge(now time.Time) error {
	day, err := time.Parse(time.DateOnly, string(k.LastVerified))
	if err != nil {
		return fmt.Errorf("lastVerified: %w", err)
	}
	switch age := now.Sub(day); {
	case age < 0:
		return fmt.Errorf("lastVerified %s lies in the future", k.LastVerified)
	case age > MaxAge:
		return fmt.Errorf("lastVerified %s is %d days ago, at most 35 are allowed; compare the window with the upstream releases and record the day",
			k.LastVerified, int(age.Hours()/24))
	}
	return nil
}
