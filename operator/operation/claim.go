package operation

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"

	ptahv1 "ptah.run/ptah/operator/api/v1alpha1"
	"ptah.run/ptah/operator/plan"
)

const (
	claimContractVersion = 1
	nameDigits           = 16
)

// ID is the identity of a claim: a digest of the resource, the kind of operation and its inputs. Inputs that must not
// be confused with an earlier attempt have to differ, so that they include when the claim was made.
func ID(resourceUID string, operation ptahv1.OperationType, inputs map[string]string) (string, error) {
	id, err := plan.CanonicalDigest(struct {
		ContractVersion int               `json:"contractVersion"`
		ResourceUID     string            `json:"resourceUID"`
		Operation       string            `json:"operation"`
		Inputs          map[string]string `json:"inputs"`
	}{claimContractVersion, resourceUID, string(operation), inputs})
	if err != nil {
		return "", fmt.Errorf("operation ID: %w", err)
	}
	return id, nil
}

// JobName is the name reserved for the Job of a claim: "ptah-<operation>-<resource name>-<16 hex>", at most 63 bytes.
// The hex digits depend on everything that tells two attempts apart.
func JobName(resourceName, resourceUID string, claim *ptahv1.ActiveOperationStatus) string {
	sum := sha256.Sum256([]byte(strings.Join([]string{
		resourceUID, string(claim.Type), claim.ID, claim.ExecutionBindingID, claim.InputFingerprint,
		strconv.FormatInt(int64(claim.Attempt), 10),
	}, "\x00")))
	suffix := "-" + hex.EncodeToString(sum[:])[:nameDigits]
	prefix := "ptah-" + strings.ToLower(string(claim.Type)) + "-"
	room := validation.DNS1123LabelMaxLength - len(prefix) - len(suffix)
	middle := strings.ReplaceAll(resourceName[:min(len(resourceName), room)], ".", "-")
	return prefix + strings.Trim(middle, "-") + suffix
}
