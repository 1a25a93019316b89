package artifact

import (
	"strings"

	"github.com/google/go-containerregistry/pkg/name"

	"ptah.run/ptah/operator/plan/report"
)

// Scheme is what a reference starts with in resources and reports.
const Scheme = "oci://"

// maxReferenceBytes is the longest reference that is read.
const maxReferenceBytes = 1024

// Reference names an artifact by tag or digest.
type Reference struct {
	ref name.Reference
	// text is the reference as it was given, with its scheme.
	text string
}

// ParseReference reads "oci://host/repository:tag" or "oci://host/repository@sha256:...". The scheme may be left out;
// tag and digest may not both be. Where both stand, the digest counts.
func ParseReference(text string) (Reference, error) {
	bare := strings.TrimPrefix(text, Scheme)
	refuse := func(why string) (Reference, error) {
		return Reference{}, fail(report.CodeInvalidInput, "the artifact reference "+why+"; the form is oci://host/repository:tag or oci://host/repository@sha256:digest")
	}
	switch {
	case bare == "":
		return refuse("is empty")
	case len(text) > maxReferenceBytes:
		return refuse("is longer than 1024 bytes")
	case strings.Contains(bare, "://"):
		return refuse("has another scheme than oci")
	case strings.ContainsAny(bare, " \t\r\n?#"):
		return refuse("holds a blank, '?' or '#'")
	case strings.HasPrefix(bare, "/") || !strings.Contains(bare, "/"):
		return refuse("has no host or no repository")
	}
	host := bare[:strings.IndexByte(bare, '/')]
	if !strings.ContainsAny(host, ".:") {
		return refuse("does not start with a registry host")
	}
	if at := strings.LastIndexByte(bare, '@'); at >= 0 {
		repository := bare[:at]
		if colon := strings.LastIndexByte(repository, ':'); colon > strings.LastIndexByte(repository, '/') {
			repository = repository[:colon]
		}
		digest, err := name.NewDigest(repository+bare[at:], name.StrictValidation)
		if err != nil || !report.IsDigest(digest.DigestStr()) {
			return refuse("has a malformed digest or repository")
		}
		return Reference{digest, Scheme + bare}, nil
	}
	tag, err := name.NewTag(bare, name.StrictValidation)
	if err != nil {
		return refuse("has no tag and no digest, or a malformed one")
	}
	return Reference{tag, Scheme + bare}, nil
}

// String returns the reference with its scheme.
func (r Reference) String() string { return r.text }

// Digest returns the digest of a pinned reference, or "".
func (r Reference) Digest() string {
	if d, ok := r.ref.(name.Digest); ok {
		return d.DigestStr()
	}
	return ""
}

// Pinned returns the reference of the same repository with a digest.
func (r Reference) Pinned(digest string) string {
	return Scheme + r.ref.Context().Name() + "@" + digest
}

// Host returns the registry's authority.
func (r Reference) Host() string { return r.ref.Context().RegistryStr() }
