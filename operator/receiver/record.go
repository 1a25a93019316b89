package receiver

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	batchv1 "k8s.io/api/batch/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"ptah.run/ptah/operator/api/v1alpha1"
	"ptah.run/ptah/operator/operation/identity"
	"ptah.run/ptah/operator/plan/report"
	"ptah.run/ptah/operator/receiver/delivery"
)

// manifestVersion is the version of the JSON in intent and complete records.
const manifestVersion = 1

// maxInlineBytes is the largest result that is stored in its complete record alone. It leaves room for base64 and for
// the manifest within one record.
const maxInlineBytes = 256 << 10

// manifest says which result a publication holds. An intent record holds one without intent, inline and UIDs.
type manifest struct {
	Version  int               `json:"version"`
	Identity identity.Identity `json:"identity"`
	Digest   string            `json:"digest"`
	Size     int64             `json:"size"` // bytes
	// Inline is the whole result, where it is small.
	Inline []byte `json:"inline,omitempty"`
	// Intent is the record under which the chunks were written, in a complete record.
	Intent *part  `json:"intent,omitempty"`
	Chunks []part `json:"chunks,omitempty"`
}

// part names one record and the bytes it holds.
type part struct {
	Name   string `json:"name"`
	UID    string `json:"uid,omitempty"`
	Digest string `json:"digest"`
	Size   int64  `json:"size"` // bytes
}

func intentName(publication string) string   { return "ptah-r-" + publication + "-intent" }
func completeName(publication string) string { return "ptah-r-" + publication + "-complete" }
func chunkName(publication string, index int) string {
	return fmt.Sprintf("ptah-r-%s-%03d", publication, index)
}

func encodeManifest(m manifest) ([]byte, error) {
	data, err := json.Marshal(m)
	if err != nil {
		return nil, fmt.Errorf("encode a result manifest: %w", err)
	}
	return data, nil
}

func decodeManifest(data []byte) (*manifest, error) {
	decoder := json.NewDecoder(bytes.NewReader(data))
	decoder.DisallowUnknownFields()
	var m manifest
	if err := decoder.Decode(&m); err != nil {
		return nil, fmt.Errorf("not a result manifest: %w", err)
	}
	if _, err := decoder.Token(); !errors.Is(err, io.EOF) {
		return nil, errors.New("more than one JSON document")
	}
	switch {
	case m.Version != manifestVersion:
		return nil, fmt.Errorf("manifest version %d is not %d", m.Version, manifestVersion)
	case !report.IsDigest(m.Digest) || m.Size < 1:
		return nil, errors.New("the manifest names no bytes")
	case len(m.Inline) > 0 && (len(m.Chunks) > 0 || m.Intent != nil):
		return nil, errors.New("the manifest holds both the bytes and chunks of them")
	}
	if err := delivery.Validate(m.Identity); err != nil {
		return nil, fmt.Errorf("identity: %w", err)
	}
	return &m, nil
}

// newRecord gives a refresh's record to its Job, so that both leave together, and an Apply's to the PtahSchema, which
// settles it.
func newRecord(name string, kind v1alpha1.ResultRecordType, data []byte, claimed identity.Identity, job *batchv1.Job) *v1alpha1.PtahResultRecord {
	owner := metav1.OwnerReference{APIVersion: batchv1.SchemeGroupVersion.String(), Kind: "Job", Name: claimed.JobName, UID: job.UID}
	if claimed.Operation == delivery.OperationApply {
		owner = *metav1.GetControllerOf(job)
		owner.Controller, owner.BlockOwnerDeletion = nil, nil
	}
	labels := map[string]string{
		v1alpha1.LabelManagedBy:   v1alpha1.ManagedByValue,
		v1alpha1.LabelSchema:      claimed.Name,
		v1alpha1.LabelOperationID: identity.ShortID(claimed.OperationID),
	}
	return &v1alpha1.PtahResultRecord{
		ObjectMeta: metav1.ObjectMeta{
			Namespace:       claimed.Namespace,
			Name:            name,
			Labels:          labels,
			OwnerReferences: []metav1.OwnerReference{owner},
		},
		Spec: v1alpha1.PtahResultRecordSpec{Type: kind, Data: data},
	}
}
