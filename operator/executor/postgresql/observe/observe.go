// Package observe reads the state of a PostgreSQL database without changing it: its facts from the catalog, its
// objects from pg_dump, both in one snapshot, and the digest that stands for the whole.
package observe

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"ptah.run/ptah/operator/executor/postgresql/dump"
	"ptah.run/ptah/operator/executor/postgresql/rowsql"
	"ptah.run/ptah/operator/executor/postgresql/target"
	"ptah.run/ptah/operator/executor/rows"
	"ptah.run/ptah/operator/plan/report"
)

// SupportedMajor is the only major version that is planned for: the one of the scratch server in the image.
const SupportedMajor = "17"

// fingerprintVersion changes when the content of a fingerprint changes its meaning.
const fingerprintVersion = "ptah-postgresql-1"

// State is what a database held at one moment.
type State struct {
	Version  string // such as 17.12
	Role     string // what the session acts as
	Roles    []string
	Encoding string
	// InvalidIndexes are the names, as SQL, of indexes that a failed build left behind; pg_dump does not show them.
	InvalidIndexes []string
	// ForeignOwned counts the objects that belong to another role than Role. It is not part of the fingerprint.
	ForeignOwned int
	// Unenforced counts the keys whose triggers a superuser disabled, which pg_dump does not show.
	Unenforced int
	// Entries are the objects that are not excluded, in the order of the dump.
	Entries []dump.Entry
	// Rows are the managed rows, one entry for each table that was asked for, and RowsFingerprint is their digest. Both are
	// empty where none was.
	Rows            []rows.Live
	RowsFingerprint string
	// Fingerprint is the digest of all of it that is schema, and of the managed rows.
	Fingerprint string
}

// Reader reads databases.
type Reader struct {
	// Binaries is the folder of pg_dump.
	Binaries string
	// Environment is pg_dump's whole environment; it holds the connection.
	Environment []string
	// Role is what pg_dump becomes after login, or empty.
	Role string
	// LockTimeout bounds the wait for each table's lock; zero means no bound.
	LockTimeout time.Duration
	// Exclude takes objects out.
	Exclude []string
	// Rows are read, too, in the same snapshot.
	Rows []rows.Wanted
}

// Read reads a database in one snapshot that pg_dump shares with conn. conn must not be in a transaction.
func (r Reader) Read(ctx context.Context, conn *pgx.Conn) (*State, error) {
	patterns, err := dump.ParsePatterns(r.Exclude, false)
	if err != nil {
		return nil, target.Fail(report.CodeInvalidInput, err.Error())
	}
	state := &State{}
	const doing = "reading the catalog"
	tx, err := conn.BeginTx(ctx, pgx.TxOptions{IsoLevel: pgx.RepeatableRead, AccessMode: pgx.ReadOnly})
	if err != nil {
		return nil, target.Statement(ctx, doing, err)
	}
	defer func() { _ = tx.Rollback(context.WithoutCancel(ctx)) }() // read only: nothing to lose
	public, err := state.facts(ctx, tx)
	if err != nil {
		return nil, err
	}
	if err := quiet(ctx, tx); err != nil {
		return nil, err
	}
	hidden, err := r.unreadable(ctx, tx, patterns)
	if err != nil {
		return nil, err
	}
	var snapshot string
	if err := tx.QueryRow(ctx, "SELECT pg_catalog.pg_export_snapshot()").Scan(&snapshot); err != nil {
		return nil, target.Statement(ctx, doing, err)
	}
	text, err := r.pgDump(ctx, snapshot, hidden)
	if err != nil {
		return nil, err
	}
	entries, err := dump.Parse(text)
	if err != nil {
		return nil, fmt.Errorf("observe the database: %w", err)
	}
	state.Entries = dump.Exclude(WithPublic(entries, public), patterns)
	state.InvalidIndexes, err = invalidIndexes(ctx, tx, patterns)
	if err != nil {
		return nil, err
	}
	if state.ForeignOwned, err = foreignOwners(ctx, tx, patterns); err != nil {
		return nil, err
	}
	if state.Unenforced, err = unenforced(ctx, tx, patterns); err != nil {
		return nil, err
	}
	if err := state.readRows(ctx, tx.Conn().PgConn(), r.Rows); err != nil {
		return nil, err
	}
	state.Fingerprint = rows.Fingerprint(Fingerprint(state.Entries, state.InvalidIndexes, r.Exclude), state.RowsFingerprint)
	return state, nil
}

// readRows reads the managed rows in the transaction that conn is in.
func (s *State) readRows(ctx context.Context, conn *pgconn.PgConn, wanted []rows.Wanted) (err error) {
	if len(wanted) == 0 {
		return nil
	}
	const doing = "reading the declared rows"
	if err := rowsql.Prepare(ctx, conn, true); err != nil {
		return target.Statement(ctx, doing, err)
	}
	if s.Rows, err = rows.Read(ctx, rowsql.Dialect{}, rowsql.Session{Conn: conn}, wanted); err != nil {
		return rows.Discreet(target.Statement(ctx, doing, err))
	}
	s.RowsFingerprint = rows.Digest(rowsql.Dialect{}, s.Rows)
	return nil
}

// SchemaLock names the advisory lock under which a schema is changed. Advisory locks belong to one database, so that one
// key is enough.
const SchemaLock int64 = 0x50746168536368 // "PtahSch"

// quiet refuses to read while another session holds SchemaLock: what it is about to do may come after the reading. The
// program of that session need not live any more, because a server may notice late that a client is gone.
func quiet(ctx context.Context, tx pgx.Tx) error {
	var held bool
	err := tx.QueryRow(ctx, `SELECT EXISTS (SELECT 1 FROM pg_catalog.pg_locks WHERE locktype = 'advisory' AND granted
		AND pid <> pg_catalog.pg_backend_pid() AND objsubid = 1
		AND database = (SELECT oid FROM pg_catalog.pg_database WHERE datname = pg_catalog.current_database())
		AND ((classid::bigint << 32) | objid::bigint) = $1)`, SchemaLock).Scan(&held)
	if err != nil {
		return target.Statement(ctx, "looking for another schema change of this database", err)
	}
	if held {
		return target.Fail(report.CodeLockTimeout, "another session is changing the schema of this database, so that a reading would not be final; it is read once that session ended")
	}
	return nil
}

// Fingerprint is the digest of a database's objects with the server's major version.
func Fingerprint(entries []dump.Entry, invalidIndexes, exclude []string) string {
	facts := []string{fingerprintVersion, SupportedMajor}
	facts = append(facts, fmt.Sprint(len(invalidIndexes)))
	facts = append(facts, invalidIndexes...)
	sorted := slices.Clone(exclude)
	slices.Sort(sorted)
	return dump.Digest(entries, append(facts, sorted...)...)
}

// publicKey is the entry of the schema every new database has. pg_dump says nothing when it is there and nothing when
// it is not, so its presence is read from the catalog and made an entry like any other.
var publicKey = dump.Key{Type: "SCHEMA", Schema: "-", Name: "public"}

// WithPublic replaces what the dump says about the schema public by whether it exists.
func WithPublic(entries []dump.Entry, exists bool) []dump.Entry {
	out := slices.DeleteFunc(slices.Clone(entries), func(e dump.Entry) bool { return e.Key() == publicKey })
	if !exists {
		return out
	}
	return append([]dump.Entry{{Type: publicKey.Type, Schema: publicKey.Schema, Name: publicKey.Name,
		Statements: []string{"CREATE SCHEMA public"}}}, out...)
}

// HasPublic says whether the entries hold the schema public.
func HasPublic(entries []dump.Entry) bool {
	return slices.ContainsFunc(entries, func(e dump.Entry) bool { return e.Key() == publicKey })
}

func (s *State) facts(ctx context.Context, tx pgx.Tx) (public bool, err error) {
	var number int
	err = tx.QueryRow(ctx, `SELECT pg_catalog.current_setting('server_version_num')::int, current_user::text,
		pg_catalog.current_setting('server_encoding'), EXISTS (SELECT 1 FROM pg_catalog.pg_namespace WHERE nspname = 'public'),
		ARRAY(SELECT rolname::text FROM pg_catalog.pg_roles WHERE rolname !~ '^pg_' ORDER BY rolname)`).
		Scan(&number, &s.Role, &s.Encoding, &public, &s.Roles)
	if err != nil {
		return false, target.Statement(ctx, "reading the catalog", err)
	}
	s.Version = fmt.Sprintf("%d.%d", number/10000, number%10000)
	if major := fmt.Sprint(number / 10000); major != SupportedMajor {
		return false, target.Fail(report.CodeServerVersion,
			fmt.Sprintf("the server is PostgreSQL %s and this executor plans for PostgreSQL %s only; use the executor image for that version", s.Version, SupportedMajor))
	}
	return public, nil
}

// unreadable returns excluded tables that the role may not read, for pg_dump to pass over. A table that is not
// excluded and may not be read is an error: a schema that is seen in part would be planned for in part.
func (r Reader) unreadable(ctx context.Context, tx pgx.Tx, patterns []dump.Pattern) ([]string, error) {
	rows, err := tx.Query(ctx, `SELECT n.nspname::text, c.relname::text
		FROM pg_catalog.pg_class c JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
		WHERE c.relkind IN ('r', 'p') AND n.nspname !~ '^pg_' AND n.nspname <> 'information_schema'
		AND NOT (pg_catalog.has_schema_privilege(n.oid, 'USAGE') AND pg_catalog.has_table_privilege(c.oid, 'SELECT'))
		AND NOT EXISTS (SELECT 1 FROM pg_catalog.pg_depend d WHERE d.objid = c.oid AND d.deptype = 'e')
		ORDER BY 1, 2`)
	if err != nil {
		return nil, target.Statement(ctx, "reading the catalog", err)
	}
	type table struct{ Schema, Name string }
	tables, err := pgx.CollectRows(rows, pgx.RowToStructByPos[table])
	if err != nil {
		return nil, target.Statement(ctx, "reading the catalog", err)
	}
	var hidden []string
	denied := 0
	for _, t := range tables {
		if dump.Match(patterns, t.Schema, t.Name) {
			hidden = append(hidden, dump.Quote(t.Schema)+"."+dump.Quote(t.Name))
			continue
		}
		denied++
	}
	if denied > 0 {
		return nil, &target.Error{Code: report.CodePermission, SQLState: "42501",
			Message: fmt.Sprintf("the role may not read %d of the tables; grant it SELECT on them, make it their owner, or exclude them", denied)}
	}
	return hidden, nil
}

func invalidIndexes(ctx context.Context, tx pgx.Tx, patterns []dump.Pattern) ([]string, error) {
	rows, err := tx.Query(ctx, `SELECT n.nspname::text, c.relname::text, t.relname::text
		FROM pg_catalog.pg_index i JOIN pg_catalog.pg_class c ON c.oid = i.indexrelid
		JOIN pg_catalog.pg_class t ON t.oid = i.indrelid JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
		WHERE NOT i.indisvalid AND c.relkind = 'i' AND n.nspname !~ '^pg_' ORDER BY 1, 2`)
	if err != nil {
		return nil, target.Statement(ctx, "reading the catalog", err)
	}
	type index struct{ Schema, Name, Table string }
	all, err := pgx.CollectRows(rows, pgx.RowToStructByPos[index])
	if err != nil {
		return nil, target.Statement(ctx, "reading the catalog", err)
	}
	out := []string{}
	for _, i := range all {
		if !dump.Match(patterns, i.Schema, i.Name) && !dump.Match(patterns, i.Schema, i.Table) {
			out = append(out, dump.Quote(i.Schema)+"."+dump.Quote(i.Name))
		}
	}
	return out, nil
}

// pgDump runs pg_dump. Names may stand in its error text, so that only its kind reaches a message.
func (r Reader) pgDump(ctx context.Context, snapshot string, hidden []string) (string, error) {
	args := []string{"--schema-only", "--no-owner", "--no-subscriptions", "--no-tablespaces"}
	if snapshot != "" {
		args = append(args, "--snapshot="+snapshot)
	}
	if r.Role != "" {
		args = append(args, "--role="+r.Role)
	}
	if r.LockTimeout > 0 {
		args = append(args, fmt.Sprintf("--lock-wait-timeout=%d", max(r.LockTimeout.Milliseconds(), 1)))
	}
	for _, table := range hidden {
		args = append(args, "--exclude-table="+table)
	}
	cmd := exec.CommandContext(ctx, filepath.Join(r.Binaries, "pg_dump"), args...)
	cmd.Env = append([]string{"PATH=/usr/bin:/bin"}, r.Environment...)
	var out, problem bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &problem
	if err := cmd.Run(); err != nil {
		return "", dumpError(ctx, err, problem.String())
	}
	return out.String(), nil
}

func dumpError(ctx context.Context, err error, text string) error {
	e := &target.Error{Code: report.CodeInternal, Detail: strings.TrimSpace(text),
		Message: "pg_dump could not read the database"}
	var exit *exec.ExitError
	switch {
	case ctx.Err() != nil:
		e.Code, e.Message = report.CodeCanceled, "stopped while pg_dump read the database"
	case !errors.As(err, &exit):
		e.Message, e.Detail = "pg_dump could not be started", err.Error()
	case strings.Contains(text, "permission denied"):
		e.Code, e.SQLState = report.CodePermission, "42501"
		e.Message = "the role lacks a privilege that pg_dump needs to read the schema"
	case strings.Contains(text, "lock timeout"), strings.Contains(text, "canceling statement"):
		e.Code, e.SQLState = report.CodeLockTimeout, "55P03"
		e.Message = "a table's lock was not granted in time while pg_dump read the database"
	case strings.Contains(text, "authentication failed"):
		e.Code, e.Message = report.CodeAuthentication, "the database refused the user or password to pg_dump"
	case strings.Contains(text, "connection to server"):
		e.Code, e.Message = report.CodeConnection, "the connection of pg_dump to the database failed"
	}
	return e
}

// Dump reads the objects of a scratch database, where nobody else works and everything may be read.
func Dump(ctx context.Context, conn *pgx.Conn, binaries string, environment []string) ([]dump.Entry, error) {
	var public bool
	err := conn.QueryRow(ctx, "SELECT EXISTS (SELECT 1 FROM pg_catalog.pg_namespace WHERE nspname = 'public')").Scan(&public)
	if err != nil {
		return nil, target.Statement(ctx, "reading a scratch database", err)
	}
	text, err := Reader{Binaries: binaries, Environment: environment}.pgDump(ctx, "", nil)
	if err != nil {
		return nil, fmt.Errorf("read a scratch database: %w", err)
	}
	entries, err := dump.Parse(text)
	if err != nil {
		return nil, fmt.Errorf("read a scratch database: %w", err)
	}
	return WithPublic(entries, public), nil
}
