// Package realm keeps several resources from working on one database at the same time. A coordination digest names a
// Lease; the Lease has a holder and an epoch. Timestamps that another machine wrote are never compared with the local
// clock: a Lease is taken over only after this process watched it unchanged for its whole duration.
//
// Taking turns does not make two owners one: they could undo each other's work for ever. The census therefore refuses a
// database that several resources claim, unless each of them says that it manages a part.
//
// The Lease is an outer fence. The database's own lock lies underneath, and both must hold.
package realm
