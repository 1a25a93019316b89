package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// ResultRecordType says which part of a delivered result a record holds.
//
// +kubebuilder:validation:Enum=intent;chunk;complete
type ResultRecordType string

// Result record types. A result counts only when its complete record exists.
const (
	ResultIntent   ResultRecordType = "intent"
	ResultChunk    ResultRecordType = "chunk"
	ResultComplete ResultRecordType = "complete"
)

// PtahResultRecord is an immutable part of a result that an operation Pod delivered. Its bytes can hold SQL.
//
// +kubebuilder:object:root=true
// +kubebuilder:resource:shortName=ptahresult,categories=ptah
// +kubebuilder:printcolumn:name="Type",type=string,JSONPath=`.spec.type`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
type PtahResultRecord struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="spec: a result record is immutable"
	Spec PtahResultRecordSpec `json:"spec"`
}

// PtahResultRecordSpec holds the bytes.
type PtahResultRecordSpec struct {
	Type ResultRecordType `json:"type"`
	// Data is at most 512 KiB before base64.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=699052
	Data []byte `json:"data"`
}

// PtahResultRecordList is a list of PtahResultRecord.
//
// +kubebuilder:object:root=true
type PtahResultRecordList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []PtahResultRecord `json:"items"`
}
