package schemafaults

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"
)

// podIdentity is what an operation Pod says of itself to the result receiver, in the order in which it is encoded.
type podIdentity struct {
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
	JobUID             string `json:"jobUID"`
	PodName            string `json:"podName"`
	PodUID             string `json:"podUID"`
}

// publication is the path element under which the Pod may deliver.
func (i podIdentity) publication() string {
	sum := sha256.Sum256([]byte(strings.Join([]string{i.UID, i.OperationID, i.JobUID}, "\x00")))
	return hex.EncodeToString(sum[:16])
}
