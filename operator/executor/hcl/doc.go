// Package hcl turns schemas that are declared in Atlas's HCL into SQL, for PostgreSQL and MySQL.
//
// Atlas evaluates the files and writes the statements. It also passes over what it does not know without a word: a
// misspelt attribute, a block of another edition, a width that it does not model. So each file is first read against a
// closed grammar, which holds only what Atlas is known to carry into SQL, and afterwards what came of it is counted and
// its types are compared with what the files say. Whatever does not fit is refused with the place in the file. The
// statements are then loaded on a scratch server like any SQL file, and everything behind that is the same.
//
// It opens no connection and reads no file, no variable and no clock.
package hcl
