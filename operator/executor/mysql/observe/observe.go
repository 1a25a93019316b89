// Package observe reads the state of a MySQL database without changing it: every object through SHOW CREATE, and the
// digest that stands for the whole.
package observe

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/go-sql-driver/mysql"

	"ptah.run/ptah/operator/executor/failure"
	"ptah.run/ptah/operator/executor/mysql/dump"
	"ptah.run/ptah/operator/executor/mysql/rowsql"
	"ptah.run/ptah/operator/executor/mysql/target"
	"ptah.run/ptah/operator/executor/pattern"
	"ptah.run/ptah/operator/executor/rows"
	"ptah.run/ptah/operator/plan/report"
)

// SupportedMajor is the only release series that is planned for: the one of the scratch server in the image.
const SupportedMajor = "9.7"

// fingerprintVersion changes when the content of a fingerprint changes its meaning.
const fingerprintVersion = "ptah-mysql-1"

const reading = "reading the schema"

// State is what a database held at one moment.
type State struct {
	Version string // such as 9.7.4
	// User and Host are the account that the session acts as.
	User, Host string
	Database   string
	Server     Server
	// Barred says that this account may make no function and no trigger: the server keeps a binary log and wants the
	// privilege SUPER for them.
	Barred bool
	// Entries are the objects that are not excluded, in the order in which they can be made.
	Entries []dump.Entry
	// Foreign are those of them that another account made. They act with its rights, and with this account's once they
	// are made anew.
	Foreign map[dump.Key]bool
	// Rows are the managed rows, one entry for each table that was asked for, and RowsFingerprint is their digest. Both are
	// empty where none was.
	Rows            []rows.Live
	RowsFingerprint string
	// Fingerprint is the digest of all of it that is schema, and of the managed rows.
	Fingerprint string
}

// Server is what a server or a database adds to a schema that is loaded into it.
type Server struct {
	Charset, Collation string // the database's defaults
	// LowerCase is lower_case_table_names: 0 keeps names as they are, 1 makes them lower case.
	LowerCase int
	// PrimaryKeyRequired and PrimaryKeyMade are sql_require_primary_key and sql_generate_invisible_primary_key.
	PrimaryKeyRequired, PrimaryKeyMade bool
}

// Wants says which rows to read, once the database is known.
type Wants func(rows.Dialect) ([]rows.Wanted, error)

// Read reads a database whose session it is given.
func Read(ctx context.Context, s *target.Session, exclude []string) (*State, error) {
	return ReadWith(ctx, s, exclude, nil)
}

// ReadWith reads a database and its managed rows; wants may be nil.
func ReadWith(ctx context.Context, s *target.Session, exclude []string, wants Wants) (*State, error) {
	state := &State{}
	if err := state.facts(ctx, s); err != nil {
		return nil, err
	}
	if err := quiet(ctx, s, state.Database); err != nil {
		return nil, err
	}
	patterns, err := state.Server.Patterns(exclude)
	if err != nil {
		return nil, err
	}
	privileges, err := readPrivileges(ctx, s, state.Database)
	if err != nil {
		return nil, err
	}
	if err := privileges.seesEverything(); err != nil {
		return nil, err
	}
	state.Barred = state.Barred && !privileges.Super()
	found, err := read(ctx, s, func(kind, name, on string) bool {
		return kind != dump.KindTrigger && pattern.Match(patterns, state.Database, name) ||
			kind == dump.KindTrigger && pattern.Match(patterns, state.Database, on)
	})
	if err != nil {
		return nil, err
	}
	state.Entries, state.Foreign = found.entries, map[dump.Key]bool{}
	for key, definer := range found.definers {
		state.Foreign[key] = definer != state.User+"@"+state.Host
	}
	if err := state.readRows(ctx, s, wants); err != nil {
		return nil, err
	}
	state.Fingerprint = rows.Fingerprint(Fingerprint(state.Entries, state.Server, exclude), state.RowsFingerprint)
	return state, nil
}

// Dialect is how rows of the database are read and written.
func (s *State) Dialect() rowsql.Dialect {
	return rowsql.Dialect{Database: s.Database, Fold: s.Server.LowerCase != 0}
}

func (s *State) readRows(ctx context.Context, session *target.Session, wants Wants) error {
	if wants == nil {
		return nil
	}
	wanted, err := wants(s.Dialect())
	if err != nil || len(wanted) == 0 {
		return err
	}
	if s.Rows, err = rows.Read(ctx, s.Dialect(), rowsql.Session{Session: session}, wanted); err != nil {
		return rows.Discreet(target.Statement(ctx, "reading the declared rows", err))
	}
	s.RowsFingerprint = rows.Digest(s.Dialect(), s.Rows)
	return nil
}

// Patterns reads patterns of names. Letter case does not matter in them where the server makes names lower case.
func (s Server) Patterns(texts []string) ([]pattern.Pattern, error) {
	patterns, err := pattern.Parse(texts, s.LowerCase != 0)
	if err != nil {
		return nil, failure.New(report.CodeInvalidInput, err.Error())
	}
	return patterns, nil
}

// CheckAllowed refuses a plan that this server would stop in the middle.
func (s *State) CheckAllowed(statements []report.Statement) error {
	if s.Barred && slices.ContainsFunc(statements, func(s report.Statement) bool {
		return s.Kind == "CREATE FUNCTION" || s.Kind == "CREATE TRIGGER"
	}) {
		return failure.New(report.CodePermission, "the plan makes a function or a trigger, which a server with a binary log takes from this account only where log_bin_trust_function_creators is on; set it there, or make them with an account that has the privilege SUPER")
	}
	return nil
}

// Fingerprint is the digest of a database's objects with the server's release series and what the server adds.
func Fingerprint(entries []dump.Entry, server Server, exclude []string) string {
	sorted := slices.Clone(exclude)
	slices.Sort(sorted)
	return dump.Digest(entries, append([]string{fingerprintVersion, SupportedMajor, fmt.Sprintf("%+v", server)}, sorted...)...)
}

func (s *State) facts(ctx context.Context, session *target.Session) error {
	var account, comment string
	err := session.QueryRowContext(ctx, `SELECT VERSION(), @@version_comment, CURRENT_USER(), DATABASE(), @@lower_case_table_names,
		@@sql_require_primary_key, @@sql_generate_invisible_primary_key, @@character_set_database, @@collation_database,
		@@log_bin AND NOT @@log_bin_trust_function_creators`).
		Scan(&s.Version, &comment, &account, &s.Database, &s.Server.LowerCase, &s.Server.PrimaryKeyRequired,
			&s.Server.PrimaryKeyMade, &s.Server.Charset, &s.Server.Collation, &s.Barred)
	if unknownVariable(err) {
		return failure.New(report.CodeServerVersion, "the server is not one that this executor plans for; it plans for MySQL "+SupportedMajor+" only")
	}
	if err != nil {
		return target.Statement(ctx, reading, err)
	}
	at := strings.LastIndex(account, "@")
	s.User, s.Host = account[:max(at, 0)], account[at+1:]
	full := s.Version
	s.Version, _, _ = strings.Cut(s.Version, "-")
	if !strings.HasPrefix(s.Version+".", SupportedMajor+".") || strings.Contains(full+comment, "MariaDB") {
		return failure.New(report.CodeServerVersion,
			fmt.Sprintf("the server is %s and this executor plans for MySQL %s only; use the executor image for that version", full, SupportedMajor))
	}
	if s.Server.LowerCase > 1 {
		return failure.New(report.CodeServerVersion, "the server compares names of tables in a way (lower_case_table_names=2) that no plan can be computed for")
	}
	return nil
}

func unknownVariable(err error) bool {
	var server *mysql.MySQLError
	return errors.As(err, &server) && server.Number == 1193
}

// Dump reads the objects of a scratch database, where everything may be read.
func Dump(ctx context.Context, s *target.Session) ([]dump.Entry, error) {
	found, err := read(ctx, s, func(string, string, string) bool { return false })
	return found.entries, err
}
