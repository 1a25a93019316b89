// Package v1alpha1 holds the kinds of operator.ptah.run/v1alpha1: what people declare, what the manager publishes,
// and the closed vocabularies of phases, condition types and reasons.
//
// +kubebuilder:object:generate=true
// +groupName=operator.ptah.run
package v1alpha1
