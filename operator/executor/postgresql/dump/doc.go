// Package dump reads what pg_dump prints for a schema and turns it into comparable objects.
//
// It is pure: text in, values out. It promises that two databases whose objects the server prints alike have equal
// digests, that every statement of the dump belongs to exactly one entry, and that a name is never taken out of a
// comment but always out of the SQL itself, where the server quoted it. It does not understand data (COPY), large
// objects or psql meta commands; the last are left out.
package dump
