package realm

import (
	"crypto/sha256"
	"encoding/base32"
	"encoding/hex"
	"fmt"
	"regexp"
	"strings"

	"ptah.run/ptah/operator/plan"
)

var (
	dnsLabel        = regexp.MustCompile(`^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$`)
	dnsSubdomain    = regexp.MustCompile(`^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$`)
	coordinationKey = regexp.MustCompile(`^[a-z0-9]([a-z0-9._:/-]*[a-z0-9])?$`)
	nameEncoding    = base32.StdEncoding.WithPadding(base32.NoPadding)
)

const (
	contractVersion = 1
	maxNameBytes    = 253
	leasePrefix     = "ptah-t-"
	holderPrefix    = "ptah-h-"
)

// CanonicalEngine is the one spelling of an engine family that digests use.
func CanonicalEngine(engine string) (string, error) {
	switch strings.ToLower(engine) {
	case "postgresql", "postgres", "pgx":
		return "postgresql", nil
	case "mysql", "mariadb":
		return "mysql", nil
	}
	return "", fmt.Errorf("engine %q is not known", engine)
}

// KeyDigest names the database of a coordination key. A key is scoped to its namespace, so that nobody can hold up a
// database of another namespace by guessing a name.
func KeyDigest(engine, namespace, key string) (string, error) {
	canonical, err := CanonicalEngine(engine)
	if err != nil {
		return "", fmt.Errorf("coordination digest: %w", err)
	}
	if !dnsLabel.MatchString(namespace) {
		return "", fmt.Errorf("coordination digest: namespace %q is not a DNS label", namespace)
	}
	if len(key) > maxNameBytes || !coordinationKey.MatchString(key) {
		return "", fmt.Errorf("coordination digest: the key is not 1 to 253 lowercase letters, digits and . _ : / - between alphanumerics")
	}
	return plan.CanonicalDigest(struct {
		ContractVersion int    `json:"contractVersion"`
		Engine          string `json:"engine"`
		Namespace       string `json:"namespace"`
		CoordinationKey string `json:"coordinationKey"`
	}{contractVersion, canonical, namespace, key})
}

// NameDigest names the database of a cluster-scoped realm. It never equals a KeyDigest, because its fields differ.
func NameDigest(engine, name string) (string, error) {
	canonical, err := CanonicalEngine(engine)
	if err != nil {
		return "", fmt.Errorf("coordination digest: %w", err)
	}
	if len(name) > maxNameBytes || !dnsSubdomain.MatchString(name) {
		return "", fmt.Errorf("coordination digest: realm %q is not a DNS subdomain of at most 253 bytes", name)
	}
	return plan.CanonicalDigest(struct {
		ContractVersion int    `json:"contractVersion"`
		Engine          string `json:"engine"`
		Realm           string `json:"realm"`
	}{contractVersion, canonical, name})
}

// LeaseName is the name of the Lease of a coordination digest.
func LeaseName(digest string) (string, error) {
	raw, err := hex.DecodeString(strings.TrimPrefix(digest, "sha256:"))
	if err != nil || len(raw) != sha256.Size || !strings.HasPrefix(digest, "sha256:") {
		return "", fmt.Errorf("%q is not a coordination digest", digest)
	}
	return leasePrefix + strings.ToLower(nameEncoding.EncodeToString(raw)), nil
}

// Holder is the identity under which a resource holds Leases. It is the same for all operations of the resource: it
// has only one at a time, epochs tell them apart, and a manager that stopped between taking the Lease and writing the
// claim finds its own Lease again instead of waiting for it to lapse.
func Holder(resourceUID string) string {
	sum := sha256.Sum256([]byte(resourceUID))
	return holderPrefix + strings.ToLower(nameEncoding.EncodeToString(sum[:]))
}
