package target

import (
	"context"
	"errors"
	"net"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"ptah.run/ptah/operator/executor/failure"
	"ptah.run/ptah/operator/plan/report"
)

// Error is a failure with the code that a report carries.
type Error = failure.Error

// Fail returns an Error.
func Fail(code report.Code, message string) *Error { return failure.New(code, message) }

// Problem returns what a report says about an error.
func Problem(err error) *report.Problem { return failure.Problem(err) }

// Detail returns what only a person at the terminal may read about an error.
func Detail(err error) string { return failure.Detail(err) }

// Connect opens one connection. The error has a code.
func Connect(ctx context.Context, config *pgx.ConnConfig) (*pgx.Conn, error) {
	conn, err := pgx.ConnectConfig(ctx, config)
	if err != nil {
		return nil, connectError(ctx, err)
	}
	return conn, nil
}

func connectError(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return Fail(report.CodeCanceled, "stopped while connecting to the database")
	}
	var server *pgconn.PgError
	if errors.As(err, &server) {
		switch server.Code {
		case "28000", "28P01":
			return &Error{Code: report.CodeAuthentication, SQLState: server.Code,
				Message: "the database refused the user or password; check the credential in the database URL"}
		case "3D000":
			return &Error{Code: report.CodeConnection, SQLState: server.Code,
				Message: "the server has no database of that name; check the path of the database URL"}
		case "42501":
			return &Error{Code: report.CodePermission, SQLState: server.Code,
				Message: "the role may not connect to the database; grant it CONNECT"}
		case "53300":
			return &Error{Code: report.CodeConnection, SQLState: server.Code,
				Message: "the server has no free connection; raise max_connections or close some"}
		}
		return &Error{Code: report.CodeConnection, SQLState: server.Code, Message: "the server refused the connection"}
	}
	var dns *net.DNSError
	var operation *net.OpError
	switch {
	case errors.As(err, &dns):
		return Fail(report.CodeConnection, "the host of the database URL is not known to DNS")
	case errors.As(err, &operation) && operation.Timeout(), errors.Is(err, context.DeadlineExceeded):
		return Fail(report.CodeConnection, "the database did not answer in time; check host, port and network policy, or raise the connect timeout")
	case errors.As(err, &operation):
		return Fail(report.CodeConnection, "the database cannot be reached; check host, port and network policy")
	}
	return Fail(report.CodeConnection, "the connection to the database could not be set up; check TLS settings and that a PostgreSQL server listens there")
}

// Statement turns the error of a statement into an Error. doing says what was attempted, in a few words without names.
func Statement(ctx context.Context, doing string, err error) error {
	if err == nil {
		return nil
	}
	if e := (*Error)(nil); errors.As(err, &e) {
		return err
	}
	var server *pgconn.PgError
	if !errors.As(err, &server) {
		if ctx.Err() != nil {
			return Fail(report.CodeCanceled, "stopped while "+doing)
		}
		return &Error{Code: report.CodeConnection, Message: "the connection to the database broke while " + doing, Detail: err.Error()}
	}
	e := &Error{Code: report.CodeStatement, SQLState: server.Code, Detail: server.Message,
		Message: "the server refused a statement while " + doing + " (SQLSTATE " + server.Code + ")"}
	switch {
	case server.Code == "57014" && ctx.Err() != nil:
		e.Code, e.Message = report.CodeCanceled, "stopped while "+doing
	case server.Code == "55P03":
		e.Code, e.Message = report.CodeLockTimeout, "a lock was not granted in time while "+doing
	case server.Code == "42501":
		e.Code, e.Message = report.CodePermission, "the role lacks a privilege needed while "+doing
	case strings.HasPrefix(server.Code, "57") || strings.HasPrefix(server.Code, "08"):
		e.Code, e.Message = report.CodeConnection, "the server closed the connection while "+doing
	}
	return e
}
