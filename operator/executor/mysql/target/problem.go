package target

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"

	"github.com/go-sql-driver/mysql"

	"ptah.run/ptah/operator/executor/failure"
	"ptah.run/ptah/operator/plan/report"
)

// Numbers of the server's errors.
const (
	interrupted = 1317
	lockWait    = 1205
	deadlock    = 1213
)

// denied are the errors that say that the account lacks a privilege.
var denied = []uint16{1044, 1142, 1143, 1227, 1370, 1419, 1410, 3899}

// unsure are the errors that may come when a statement has already taken effect in a part of the server: a commit or a
// rollback that failed, a binary log that could not be written, and what the server itself has no name for.
var unsure = []uint16{1026, 1105, 1180, 1181, 1598, 3100, 3101}

// Unsure says whether the server's answer to a statement leaves open whether it took effect.
func Unsure(err error) bool {
	var server *mysql.MySQLError
	return errors.As(err, &server) && slices.Contains(unsure, server.Number)
}

// leaving are the errors that say that the server ends the session.
var leaving = []uint16{1053, 1077, 1152, 1159, 1160, 1161, 3159, 3169, 4031}

func connectError(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return failure.New(report.CodeCanceled, "stopped while connecting to the database")
	}
	var server *mysql.MySQLError
	if errors.As(err, &server) {
		return refusedConnection(server)
	}
	var dns *net.DNSError
	var operation *net.OpError
	switch {
	case errors.As(err, &dns):
		return failure.New(report.CodeConnection, "the host of the database URL is not known to DNS")
	case errors.As(err, &operation) && operation.Timeout(), errors.Is(err, context.DeadlineExceeded):
		return failure.New(report.CodeConnection, "the database did not answer in time; check host, port and network policy, or raise the connect timeout")
	case errors.As(err, &operation):
		return failure.New(report.CodeConnection, "the database cannot be reached; check host, port and network policy")
	}
	return &failure.Error{Code: report.CodeConnection, Detail: err.Error(),
		Message: "the connection to the database could not be set up; check TLS settings and that a MySQL server listens there"}
}

func refusedConnection(server *mysql.MySQLError) error {
	e := &failure.Error{Code: report.CodeConnection, SQLState: state(server), Message: "the server refused the connection"}
	switch server.Number {
	case 1045, 1698, 1862, 3118:
		e.Code, e.Message = report.CodeAuthentication, "the database refused the user or password; check the credential in the database URL"
	case 1049:
		e.Message = "the server has no database of that name; check the path of the database URL"
	case 1044:
		e.Code, e.Message = report.CodePermission, "the account has no right in the database; grant it its privileges there"
	case 1040, 1203, 1226:
		e.Message = "the server has no free connection; raise max_connections or close some"
	case 1130:
		e.Message = "the server allows no connection from here; create the account for this host"
	}
	return e
}

// state writes the server's own code: SQLSTATE and number.
func state(server *mysql.MySQLError) string {
	if server.SQLState == [5]byte{} {
		return fmt.Sprint(server.Number)
	}
	return fmt.Sprintf("%s/%d", server.SQLState[:], server.Number)
}

// Statement turns the error of a statement into one with a code. doing says what was attempted, in a few words without
// names.
func Statement(ctx context.Context, doing string, err error) error {
	if err == nil {
		return nil
	}
	if e := (*failure.Error)(nil); errors.As(err, &e) {
		return err
	}
	var server *mysql.MySQLError
	if !errors.As(err, &server) {
		if ctx.Err() != nil {
			return failure.New(report.CodeCanceled, "stopped while "+doing)
		}
		return &failure.Error{Code: report.CodeConnection, Message: "the connection to the database broke while " + doing, Detail: err.Error()}
	}
	e := &failure.Error{Code: report.CodeStatement, SQLState: state(server), Detail: server.Message,
		Message: fmt.Sprintf("the server refused a statement while %s (error %d)", doing, server.Number)}
	switch {
	case server.Number == interrupted:
		e.Code, e.Message = report.CodeCanceled, "stopped while "+doing
	case server.Number == lockWait, server.Number == deadlock:
		e.Code, e.Message = report.CodeLockTimeout, "a lock was not granted in time while "+doing
	case slices.Contains(denied, server.Number):
		e.Code, e.Message = report.CodePermission, "the account lacks a privilege needed while "+doing
	case slices.Contains(leaving, server.Number):
		e.Code, e.Message = report.CodeConnection, "the server closed the connection while "+doing
	}
	return e
}
