// Package executor is the part of the operator that opens databases. Everything of substance lies in its folders:
// postgresql and mysql each plan and apply for one engine, command is the program's command line. This package itself only holds
// the test that runs the planner over every known case; it has no code.
package executor
