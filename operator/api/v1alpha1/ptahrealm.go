package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// PtahRealm is an administrator's grant: it names one database across namespaces and lists who may claim it. It has no
// status, because the manager only reads it.
//
// +kubebuilder:object:root=true
// +kubebuilder:resource:scope=Cluster,shortName=ptahr,categories=ptah
// +kubebuilder:printcolumn:name="Engine",type=string,JSONPath=`.spec.engine`
// +kubebuilder:printcolumn:name="Sharing",type=string,JSONPath=`.spec.sharing`
// +kubebuilder:printcolumn:name="Namespaces",type=string,JSONPath=`.spec.namespaces`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
type PtahRealm struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec PtahRealmSpec `json:"spec"`
}

// PtahRealmSpec says which database it is and who may claim it.
type PtahRealmSpec struct {
	// Engine is part of the database's identity and never changes.
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="spec.engine: is immutable, because it is part of the identity of the database; create another PtahRealm"
	Engine DatabaseEngine `json:"engine"`
	// Namespaces are the 1 to 256 namespaces that may claim the database. They are listed by name and never selected,
	// so that nobody joins by labelling a namespace.
	// +listType=set
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=256
	Namespaces []RealmNamespace `json:"namespaces"`
	// Sharing says whether several resources may claim the database at the same time.
	// +optional
	// +kubebuilder:default=Exclusive
	Sharing RealmSharing `json:"sharing,omitempty"`
}

// RealmNamespace is the name of a namespace.
//
// +kubebuilder:validation:MinLength=1
// +kubebuilder:validation:MaxLength=63
// +kubebuilder:validation:Pattern=`^[a-z0-9]([-a-z0-9]*[a-z0-9])?$`
type RealmNamespace string

// RealmSharing says how many resources may claim a database.
//
// +kubebuilder:validation:Enum=Exclusive;Shared
type RealmSharing string

// Kinds of sharing.
const (
	// RealmExclusive admits one claimant at a time, whatever the claimants declare.
	RealmExclusive RealmSharing = "Exclusive"
	// RealmShared admits several claimants, if each of them sets spec.target.sharedRealm.
	RealmShared RealmSharing = "Shared"
)

// PtahRealmList is a list of PtahRealm.
//
// +kubebuilder:object:root=true
type PtahRealmList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []PtahRealm `json:"items"`
}
