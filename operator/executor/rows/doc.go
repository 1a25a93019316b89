// Package rows declares the rows that a database must hold beside its schema, and works out how it comes to hold them.
//
// A declaration names a table, how much of it is managed (the whole, or listed keys only), and the rows. What a value
// means is decided by a server: the declared values are written into columns of the very types of the table and read
// back, so that both sides are compared in the one form that the server prints, and rows are matched by the server's own
// idea of equal keys. Every statement has run before it enters a plan, with triggers and keys at work, and the managed
// rows are then read again and must be those that are declared.
//
// The package refuses what it cannot compare and guesses nothing. It holds no SQL of one engine: that is a Dialect.
// No error of it holds a value; one that names a column or a table does so in its detail only.
package rows
