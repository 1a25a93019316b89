package artifact

import (
	"context"
	"crypto/x509"
	"errors"
	"net"
	"net/http"
	"strings"

	"github.com/google/go-containerregistry/pkg/v1/remote/transport"

	"ptah.run/ptah/operator/plan/report"
)

// Error is a failure with the code that a report carries. Its message holds no credential.
type Error struct {
	Code    report.Code
	Message string
	// Detail is what lies behind it, for the person at the terminal.
	Detail string
}

func (e *Error) Error() string { return e.Message }

func fail(code report.Code, message string) *Error { return &Error{Code: code, Message: message} }

// Problem returns what a report says about an error.
func Problem(err error) *report.Problem {
	var e *Error
	if errors.As(err, &e) {
		return &report.Problem{Code: e.Code, Message: e.Message}
	}
	return &report.Problem{Code: report.CodeInternal, Message: "internal failure; the program's error output says more"}
}

// Detail returns what a person at the terminal may read about an error beside its message.
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

// errPlainHTTP is what the guard answers to a request without TLS that nobody asked for.
var errPlainHTTP = errors.New("plain HTTP was not asked for")

// errTooLarge is what a bounded body answers at its limit.
var errTooLarge = errors.New("the answer is larger than allowed")

// registryError turns an error of the registry client into an Error. doing says what was attempted.
func registryError(ctx context.Context, doing string, err error) error {
	if err == nil {
		return nil
	}
	var known *Error
	if errors.As(err, &known) {
		return err
	}
	e := &Error{Code: report.CodeConnection, Detail: err.Error()}
	var answer *transport.Error
	var authority x509.UnknownAuthorityError
	var hostname x509.HostnameError
	var dns *net.DNSError
	switch {
	case ctx.Err() != nil:
		e.Code, e.Message = report.CodeCanceled, "stopped while "+doing
	case errors.Is(err, errTooLarge):
		e.Code, e.Message = report.CodeInvalidArtifact, "the registry's answer is larger than an artifact may be, while "+doing
	case errors.As(err, &answer):
		statusError(e, answer.StatusCode, doing)
	case errors.As(err, &authority):
		e.Message = "the registry's certificate is signed by an unknown authority, while " + doing + "; give its CA file"
	case errors.As(err, &hostname):
		e.Message = "the registry's certificate is for another host, while " + doing
	case errors.As(err, &dns):
		e.Message = "the registry's host is not known to DNS, while " + doing
	case strings.Contains(err.Error(), "server gave HTTP response to HTTPS client"):
		e.Message = "the registry answers without TLS, while " + doing + "; plain HTTP must be asked for"
	case strings.Contains(err.Error(), "error verifying"):
		e.Code, e.Message = report.CodeInvalidArtifact, "the registry sent content that does not have its digest, while "+doing
	default:
		e.Message = "the registry cannot be reached, while " + doing
	}
	return e
}

func statusError(e *Error, status int, doing string) {
	switch status {
	case http.StatusUnauthorized, http.StatusForbidden:
		e.Code, e.Message = report.CodeAuthentication, "the registry refused the credential, while "+doing+"; check user, password or token and their rights on this repository"
	case http.StatusNotFound:
		e.Code, e.Message = report.CodeNotFound, "the registry does not have it, while "+doing
	case http.StatusTooManyRequests:
		e.Message = "the registry asks to slow down, while " + doing
	default:
		e.Message = "the registry answered with the status " + http.StatusText(status) + ", while " + doing
	}
}
