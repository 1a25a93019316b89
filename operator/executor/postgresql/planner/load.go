package planner

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"ptah.run/ptah/operator/executor/postgresql/dump"
	"ptah.run/ptah/operator/executor/postgresql/observe"
	"ptah.run/ptah/operator/executor/postgresql/scratch"
	"ptah.run/ptah/operator/executor/postgresql/target"
	"ptah.run/ptah/operator/plan/report"
)

// Settings are what a session sets before it runs statements of a dump or a plan, on the scratch server and on the
// target alike, so that no statement means two things.
const Settings = `SET search_path = ''; SET check_function_bodies = off; SET timezone = 'UTC'; SET datestyle = 'ISO';
SET intervalstyle = 'postgres'; SET standard_conforming_strings = on; SET xmloption = content;
SET default_table_access_method = heap; SET default_tablespace = ''; SET default_transaction_isolation = 'read committed';
SET row_security = off; SET client_min_messages = warning`

// File is one file of the desired schema.
type File struct {
	Name string
	SQL  string
	// Place says where in the file the SQL stands, in words of a message, when it is not the file itself: it was made of
	// a declaration there.
	Place string
}

// session is a database of the scratch server with one connection per role.
type session struct {
	server *scratch.Server
	name   string
	owner  *pgx.Conn
	admin  *pgx.Conn
}

func open(ctx context.Context, server *scratch.Server, name string) (*session, error) {
	owner, err := server.Owner(ctx, name)
	if err != nil {
		return nil, fmt.Errorf("open a scratch database: %w", err)
	}
	admin, err := server.Admin(ctx, name)
	if err != nil {
		_ = owner.Close(context.WithoutCancel(ctx))
		return nil, fmt.Errorf("open a scratch database: %w", err)
	}
	return &session{server, name, owner, admin}, nil
}

// close ends both connections, so that the database can be copied.
func (s *session) close(ctx context.Context) {
	_ = s.owner.Close(context.WithoutCancel(ctx)) // a scratch session has nothing to lose
	_ = s.admin.Close(context.WithoutCancel(ctx))
}

func (s *session) dump(ctx context.Context) ([]dump.Entry, error) {
	return observe.Dump(ctx, s.admin, s.server.Binaries(), s.server.Environment(s.name))
}

func (s *session) prepare(ctx context.Context) error {
	for _, conn := range []*pgx.Conn{s.owner, s.admin} {
		if _, err := conn.PgConn().Exec(ctx, Settings).ReadAll(); err != nil {
			return fmt.Errorf("prepare a scratch session: %w", err)
		}
	}
	return nil
}

// run executes one statement as the role that may: extensions as the administrator, everything else as the owner.
func (s *session) run(ctx context.Context, statement string) error {
	if sql, ok := extensionStatement(statement); ok {
		return exec(ctx, s.admin, sql)
	}
	return exec(ctx, s.owner, statement)
}

// exec sends exactly one statement; the server refuses a text that holds two.
func exec(ctx context.Context, conn *pgx.Conn, sql string) error {
	return conn.PgConn().ExecParams(ctx, sql, nil, nil, nil, nil).Read().Err
}

// loadEntries makes the objects of a dump in a fresh database.
func (s *session) loadEntries(ctx context.Context, entries []dump.Entry) error {
	if err := s.prepare(ctx); err != nil {
		return err
	}
	if !observe.HasPublic(entries) {
		if err := exec(ctx, s.admin, "DROP SCHEMA public"); err != nil {
			return fmt.Errorf("load a dump: %w", err)
		}
	}
	var batch strings.Builder
	flush := func() error {
		if batch.Len() == 0 {
			return nil
		}
		_, err := s.owner.PgConn().Exec(ctx, batch.String()).ReadAll()
		batch.Reset()
		return err
	}
	for _, e := range entries {
		switch {
		case e.Type == "SCHEMA" && e.Name == "public":
			continue // every database of the scratch server starts with it
		case e.Type == "EXTENSION" || e.Type == "COMMENT" && strings.HasPrefix(e.Name, "EXTENSION "):
			if err := flush(); err != nil {
				return err
			}
			for _, statement := range e.Statements {
				if err := s.run(ctx, statement); err != nil {
					return err
				}
			}
			continue
		}
		if e.AccessMethod != "" {
			fmt.Fprintf(&batch, "SET default_table_access_method = %s;\n", dump.Quote(e.AccessMethod))
		}
		batch.WriteString(e.SQL())
		if e.AccessMethod != "" {
			batch.WriteString("RESET default_table_access_method;\n")
		}
	}
	return flush()
}

// fill refreshes the materialized views of a dump, so that what reads them can be filled, too. There are no rows; a query
// that fails all the same leaves its view as it is.
func (s *session) fill(ctx context.Context, entries []dump.Entry) error {
	for _, e := range entries {
		object, ok := e.Object()
		if e.Type != "MATERIALIZED VIEW" || !ok {
			continue
		}
		if err := exec(ctx, s.owner, "REFRESH MATERIALIZED VIEW "+object.Name.SQL()); err != nil && !isServerError(err) {
			return fmt.Errorf("fill a materialized view: %w", err)
		}
	}
	return nil
}

// unfilled returns the materialized views that hold nothing because they were made so.
func (s *session) unfilled(ctx context.Context) (map[dump.Key]bool, error) {
	rows, err := s.admin.Query(ctx, `SELECT 'MATERIALIZED VIEW', n.nspname::text, c.relname::text FROM pg_catalog.pg_class c
		JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace WHERE c.relkind = 'm' AND NOT c.relispopulated`)
	if err != nil {
		return nil, fmt.Errorf("read the materialized views: %w", err)
	}
	keys, err := pgx.CollectRows(rows, pgx.RowToStructByPos[dump.Key])
	if err != nil {
		return nil, fmt.Errorf("read the materialized views: %w", err)
	}
	out := map[dump.Key]bool{}
	for _, key := range keys {
		out[key] = true
	}
	return out, nil
}

// extensionStatement recognises the statements about extensions and writes them anew from their parts. Only what is
// written here runs as the administrator, so that no text from outside does.
func extensionStatement(statement string) (string, bool) {
	tokens := dump.Tokens(statement)
	word := func(i int, words ...string) bool {
		for k, w := range words {
			if i+k >= len(tokens) || !tokens[i+k].Is(w) {
				return false
			}
		}
		return true
	}
	name := func(i int) (string, bool) {
		if i >= len(tokens) || tokens[i].Kind != dump.Word && tokens[i].Kind != dump.Quoted {
			return "", false
		}
		text := tokens[i].Text
		if tokens[i].Kind == dump.Word {
			text = strings.ToLower(text)
		}
		if strings.HasPrefix(text, "u&") || strings.HasPrefix(text, "U&") {
			return "", false
		}
		return dump.Quote(dump.Unquote(text)), true
	}
	switch {
	case word(0, "CREATE", "EXTENSION"):
		return createExtension(tokens, word, name)
	case word(0, "DROP", "EXTENSION"):
		i := 2
		if word(i, "IF", "EXISTS") {
			i += 2
		}
		n, ok := name(i)
		return "DROP EXTENSION " + n, ok && i+1 == len(tokens)
	case word(0, "COMMENT", "ON", "EXTENSION"):
		n, ok := name(3)
		if !ok || !word(4, "IS") || len(tokens) != 6 || !tokens[5].Is("NULL") && (tokens[5].Kind != dump.String || tokens[5].Text[0] != '\'') {
			return "", false
		}
		return "COMMENT ON EXTENSION " + n + " IS " + tokens[5].Text, true
	}
	return "", false
}

func createExtension(tokens []dump.Token, word func(int, ...string) bool, name func(int) (string, bool)) (string, bool) {
	i := 2
	sql := "CREATE EXTENSION "
	if word(i, "IF", "NOT", "EXISTS") {
		i += 3
		sql += "IF NOT EXISTS "
	}
	n, ok := name(i)
	if !ok {
		return "", false
	}
	sql += n
	i++
	if word(i, "WITH") {
		i++
	}
	for i < len(tokens) {
		switch {
		case word(i, "SCHEMA"):
			if n, ok = name(i + 1); !ok {
				return "", false
			}
			sql += " SCHEMA " + n
			i += 2
		case word(i, "CASCADE"):
			sql += " CASCADE"
			i++
		default:
			return "", false // a pinned version would not be seen in a dump, so it is not promised
		}
	}
	return sql, true
}

// loadDesired runs the files of the desired schema in a fresh database, in order, as the target's role would.
func (s *session) loadDesired(ctx context.Context, files []File) error {
	before, err := s.clusterState(ctx)
	if err != nil {
		return err
	}
	for _, file := range files {
		if err := s.loadFile(ctx, file); err != nil {
			return err
		}
	}
	after, err := s.clusterState(ctx)
	if err != nil {
		return err
	}
	if before != after {
		return &target.Error{Code: report.CodeUnsupported, Categories: []string{"roles_modified"},
			Message: "the desired schema changes roles or settings of roles and databases; these belong to the whole server and are not planned, so take them out"}
	}
	return s.checkLoaded(ctx)
}

// clusterState is a digest of what a schema file could change outside its database.
func (s *session) clusterState(ctx context.Context) (string, error) {
	var state string
	err := s.admin.QueryRow(ctx, `SELECT md5(
		(SELECT coalesce(string_agg(a::text, ',' ORDER BY a.oid), '') FROM pg_catalog.pg_authid a) ||
		(SELECT coalesce(string_agg(m::text, ',' ORDER BY m.oid), '') FROM pg_catalog.pg_auth_members m) ||
		(SELECT coalesce(string_agg(c::text, ',' ORDER BY c.setdatabase, c.setrole), '') FROM pg_catalog.pg_db_role_setting c) ||
		(SELECT coalesce(string_agg(d.oid::text || coalesce(d.datacl::text, '') || d.datconnlimit::text, ',' ORDER BY d.oid), '') FROM pg_catalog.pg_database d))`).Scan(&state)
	if err != nil {
		return "", fmt.Errorf("read the scratch server's roles: %w", err)
	}
	return state, nil
}

func (s *session) loadFile(ctx context.Context, file File) error {
	statements := dump.Split(file.SQL)
	special := false
	for _, statement := range statements {
		_, ok := extensionStatement(statement)
		special = special || ok
	}
	if !special {
		if _, err := s.owner.PgConn().Exec(ctx, file.SQL).ReadAll(); err != nil {
			return loadError(ctx, file, err)
		}
		return nil
	}
	for _, statement := range statements {
		sql, ok := extensionStatement(statement)
		if !ok {
			if _, err := s.owner.PgConn().Exec(ctx, statement).ReadAll(); err != nil {
				return loadError(ctx, file, err)
			}
			continue
		}
		// The extension goes into the schema that the file's own session would have chosen.
		var schema string
		if err := s.owner.QueryRow(ctx, "SELECT coalesce(pg_catalog.quote_ident(pg_catalog.current_schema()), '')").Scan(&schema); err != nil {
			return loadError(ctx, file, err)
		}
		if _, err := s.admin.PgConn().Exec(ctx, "SET search_path = "+orEmpty(schema)).ReadAll(); err != nil {
			return loadError(ctx, file, err)
		}
		if err := exec(ctx, s.admin, sql); err != nil {
			return loadError(ctx, file, err)
		}
	}
	return nil
}

func orEmpty(schema string) string {
	if schema == "" {
		return "''"
	}
	return schema
}

func loadError(ctx context.Context, file File, err error) error {
	var server *pgconn.PgError
	if !errors.As(err, &server) {
		return target.Statement(ctx, "loading the desired schema", err)
	}
	place := "the file " + file.Name
	switch {
	case file.Place != "":
		place = file.Place
	case server.Position > 0:
		// The position counts characters.
		text := []rune(file.SQL)
		at := min(int(server.Position)-1, len(text))
		place = fmt.Sprintf("line %d of the file %s", 1+strings.Count(string(text[:at]), "\n"), file.Name)
	}
	e := &target.Error{Code: report.CodeInvalidSchema, SQLState: server.Code, Detail: server.Message,
		Message: fmt.Sprintf("the desired schema does not load: %s is refused by PostgreSQL with SQLSTATE %s", place, server.Code)}
	switch server.Code {
	case "42501":
		e.Message += "; a schema is loaded with the rights of an ordinary role that owns the database"
	case "42704":
		e.Message += "; it names something that does not exist, such as a role that the target lacks"
	case "0A000", "58P01":
		e.Message += "; an extension may be missing from this executor"
	}
	return e
}

// checkLoaded refuses what a schema-only dump would lose without a word.
func (s *session) checkLoaded(ctx context.Context) error {
	var owners, rows bool
	err := s.admin.QueryRow(ctx, `SELECT
		EXISTS (SELECT 1 FROM pg_catalog.pg_shdepend d JOIN pg_catalog.pg_roles r ON r.oid = d.refobjid
			WHERE d.deptype = 'o' AND d.refclassid = 'pg_catalog.pg_authid'::pg_catalog.regclass
			AND d.dbid = (SELECT oid FROM pg_catalog.pg_database WHERE datname = pg_catalog.current_database())
			AND r.rolname <> $1 AND NOT r.rolsuper),
		EXISTS (SELECT 1 FROM pg_catalog.pg_class c WHERE c.relkind = 'r' AND c.oid >= 16384
			AND c.relnamespace <> 'pg_toast'::pg_catalog.regnamespace
			AND pg_catalog.pg_relation_size(c.oid) > 0
			AND NOT EXISTS (SELECT 1 FROM pg_catalog.pg_depend e WHERE e.objid = c.oid AND e.deptype = 'e'))`,
		s.owner.Config().User).Scan(&owners, &rows)
	if err != nil {
		return fmt.Errorf("check the loaded schema: %w", err)
	}
	switch {
	case owners:
		return &target.Error{Code: report.CodeUnsupported, Categories: []string{"owners_modified"},
			Message: "the desired schema gives objects to another owner; ownership is not planned, so take OWNER TO and AUTHORIZATION out"}
	case rows:
		return &target.Error{Code: report.CodeUnsupported, Categories: []string{"data_rows_inserted"},
			Message: "the desired schema inserts rows; take INSERT and CREATE TABLE AS out, and declare reference rows in a file whose name ends in .rows.yaml"}
	}
	return nil
}
