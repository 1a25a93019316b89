// Package identity says who an operation Pod is, in the words that the manager writes into the Pod, the Pod repeats
// when it delivers, and the receiver compares with the API server. It is pure data: an identity is a claim, and
// believing it is the receiver's business.
package identity

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"
)

// MaxBytes is the largest JSON form of an Identity: 4 KiB.
const MaxBytes = 4 << 10

// Identity names one operation Pod and everything above it. The manager fills all but the last three fields, which
// are not known before the Job exists and which the Pod takes from the downward API.
type Identity struct {
	Namespace          string `json:"namespace"`
	Kind               string `json:"kind"`
	Name               string `json:"name"`
	UID                string `json:"uid"`
	Generation         int64  `json:"generation"`
	ExecutionBindingID string `json:"executionBindingID"`
	InputFingerprint   string `json:"inputFingerprint"`
	Operation          string `json:"operation"`
	OperationID        string `json:"operationID"`
	JobName            string `json:"jobName"`
	JobUID             string `json:"jobUID,omitempty"`
	PodName            string `json:"podName,omitempty"`
	PodUID             string `json:"podUID,omitempty"`
}

// Publication names the one result that a Job can deliver: the first 32 hex digits of the SHA-256 over the resource
// UID, the operation ID and the Job UID, joined by NUL.
func Publication(resourceUID, operationID, jobUID string) string {
	sum := sha256.Sum256([]byte(strings.Join([]string{resourceUID, operationID, jobUID}, "\x00")))
	return hex.EncodeToString(sum[:16])
}

// ShortID is the label form of an operation ID: the first 16 hex digits of its digest. Labels find; they prove nothing.
func ShortID(operationID string) string {
	hexDigits := strings.TrimPrefix(operationID, "sha256:")
	return hexDigits[:min(len(hexDigits), 16)]
}
