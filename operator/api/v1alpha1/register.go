package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// GroupVersion is the group and version of every kind of this package.
var GroupVersion = schema.GroupVersion{Group: "operator.ptah.run", Version: "v1alpha1"}

var schemeBuilder = runtime.NewSchemeBuilder(func(s *runtime.Scheme) error {
	s.AddKnownTypes(GroupVersion,
		&PtahSchema{}, &PtahSchemaList{},
		&PtahSchemaPlan{}, &PtahSchemaPlanList{},
		&PtahSchemaPlanChunk{}, &PtahSchemaPlanChunkList{},
		&PtahSchemaApproval{}, &PtahSchemaApprovalList{},
		&PtahResultRecord{}, &PtahResultRecordList{},
		&PtahRealm{}, &PtahRealmList{},
	)
	metav1.AddToGroupVersion(s, GroupVersion)
	return nil
})

// AddToScheme registers the kinds of this package.
var AddToScheme = schemeBuilder.AddToScheme
