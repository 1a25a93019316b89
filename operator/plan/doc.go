// Package plan names, fingerprints, stores and reads schema plans. A plan is published once and never changed; what is
// read back is believed only after every name, owner, size, digest and the fingerprint were computed again. Only Store
// and Read talk to the API server; everything else is pure.
//
// The package does not decide whether a plan may run.
package plan
