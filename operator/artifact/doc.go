// Package artifact moves schema artifacts between files and an OCI registry, and judges them by a verification policy.
//
// A reference names a tag or a digest, never neither. Plain HTTP is used only when asked for, and credential helpers
// are never run. Every answer of a registry is bounded and checked against its digest. Errors have one type with a
// code. The package does not verify signatures cryptographically and does not read an artifact's SQL.
package artifact
