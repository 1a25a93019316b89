// Package command holds the commands of ptah-qualify. Each constructor takes the streams it may use and returns
// a cobra command; the work itself lives in the packages the commands call. Nothing here ends the process: a
// command returns an error, and ExitCode says which exit code that error stands for.
package command

import (
	"context"
	"errors"
	"fmt"
	"io"
)

// Exit codes of ptah-qualify. They are an interface: CI tells a failed product from a failed harness by them.
const (
	ExitPass               = 0 // what was asked for holds
	ExitProductFailed      = 1 // the product failed
	ExitUsage              = 2 // the command line or a file given on it is wrong
	ExitHarnessFailed      = 3 // the harness or the machine under it failed
	ExitNotEstablished     = 4 // the evidence does not establish the claim
	ExitInterrupted        = 5 // interrupted, and a second run continues
	ExitVerificationFailed = 6 // a signature or a digest does not match
)

// IOStreams are the only streams a command reads from and writes to.
type IOStreams struct {
	In  io.Reader
	Out io.Writer
	Err io.Writer
}

// printf tells a person something. Where a stream takes no more there is nobody left to tell, and what was asked for is
// done all the same. Documents for programs, and tables, are written with their errors checked.
func printf(out io.Writer, format string, arguments ...any) {
	_, _ = fmt.Fprintf(out, format, arguments...)
}

// printLine is printf for whole lines.
func printLine(out io.Writer, words ...any) { _, _ = fmt.Fprintln(out, words...) }

// ExitError is an error with the exit code it stands for. Err is one clear sentence for the person at the
// terminal; a nil Err means that everything worth saying was written already.
type ExitError struct {
	Code int
	Err  error
}

// Error returns the message of the wrapped error, or nothing where there is none.
func (e *ExitError) Error() string {
	if e.Err == nil {
		return ""
	}
	return e.Err.Error()
}

// Unwrap returns the wrapped error.
func (e *ExitError) Unwrap() error { return e.Err }

// Exit wraps err with an exit code. It returns nil for a nil error.
func Exit(code int, err error) error {
	if err == nil {
		return nil
	}
	return &ExitError{Code: code, Err: err}
}

// ExitCode maps what a command returned to an exit code: 0 for nil, the code of an ExitError, 5 for a cancelled
// context, and 2 for anything else, which is what cobra returns for unknown commands, flags and arguments.
func ExitCode(err error) int {
	var exit *ExitError
	switch {
	case err == nil:
		return ExitPass
	case errors.As(err, &exit):
		return exit.Code
	case errors.Is(err, context.Canceled):
		return ExitInterrupted
	default:
		return ExitUsage
	}
}
