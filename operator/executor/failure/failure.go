// Package failure holds the error that every part of the executor speaks: one code for the report, one message without
// names, and a detail that only a person at a terminal may read.
package failure

import (
	"context"
	"errors"

	"ptah.run/ptah/operator/plan/report"
)

// Error is a failure with the code that a report carries. Its message names no object and no credential.
type Error struct {
	Code    report.Code
	Message string
	// SQLState is the server's own code where there is one.
	SQLState string
	// Categories are drift categories, for a plan that is refused as unsupported.
	Categories []string
	// Detail may name objects. It is for the person at the terminal and never enters a report.
	Detail string
}

func (e *Error) Error() string { return e.Message }

// New returns an Error.
func New(code report.Code, message string) *Error { return &Error{Code: code, Message: message} }

// Problem returns what a report says about an error.
func Problem(err error) *report.Problem {
	var e *Error
	if errors.As(err, &e) {
		return &report.Problem{Code: e.Code, Message: e.Message, SQLState: e.SQLState, Categories: e.Categories}
	}
	if errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return &report.Problem{Code: report.CodeCanceled, Message: "stopped by a signal or deadline"}
	}
	return &report.Problem{Code: report.CodeInternal, Message: "internal failure; the program's error output says more"}
}

// Detail returns what only a person at the terminal may read about an error.
func Detail(err error) string {
	var e *Error
	if errors.As(err, &e) {
		return e.Detail
	}
	if err == nil {
		return ""
	}
	return err.Error()
}
