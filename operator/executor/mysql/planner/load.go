package planner

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/go-sql-driver/mysql"

	"ptah.run/ptah/operator/executor/failure"
	"ptah.run/ptah/operator/executor/mysql/dump"
	"ptah.run/ptah/operator/executor/mysql/observe"
	"ptah.run/ptah/operator/executor/mysql/sqltext"
	"ptah.run/ptah/operator/executor/mysql/target"
	"ptah.run/ptah/operator/plan/report"
)

// clock stops the time of a session that loads a schema, at the start of the year 2000: an event whose schedule names no
// start begins at the moment at which it is made, and then two loads of one schema would differ.
const clock = "SET SESSION timestamp = 946684800"

// loadDesired loads the files of the desired schema into the empty database, in order, as the target's account would,
// and reads what came of it.
func (p *plan) loadDesired(ctx context.Context) ([]dump.Entry, error) {
	if err := p.server.Renew(ctx); err != nil {
		return nil, err
	}
	if err := p.loadFiles(ctx); err != nil {
		return nil, err
	}
	admin, err := p.server.Admin(ctx)
	if err != nil {
		return nil, fmt.Errorf("open the scratch database: %w", err)
	}
	defer admin.Close()
	entries, err := observe.Dump(ctx, admin)
	if err != nil {
		return nil, err
	}
	return entries, p.checkLoaded(ctx, admin, entries)
}

// loadFiles runs the files in one session. It ends before anything is read: a file may leave tables locked.
func (p *plan) loadFiles(ctx context.Context) error {
	s, err := p.server.Script(ctx)
	if err != nil {
		return fmt.Errorf("open the scratch database: %w", err)
	}
	defer s.Close()
	if _, err := s.ExecContext(ctx, clock); err != nil {
		return fmt.Errorf("prepare a scratch session: %w", err)
	}
	for _, file := range p.request.Desired {
		for _, piece := range sqltext.Script(file.SQL) {
			if _, err := s.ExecContext(ctx, piece.SQL); err != nil {
				return loadError(ctx, file, piece, err)
			}
		}
	}
	return nil
}

func loadError(ctx context.Context, file File, piece sqltext.Piece, err error) error {
	var server *mysql.MySQLError
	if !errors.As(err, &server) {
		return target.Statement(ctx, "loading the desired schema", err)
	}
	place := "the file " + file.Name
	switch {
	case file.Place != "":
		place = file.Place
	case piece.Line > 1:
		place = fmt.Sprintf("what starts at line %d of the file %s", piece.Line, file.Name)
	}
	e := &failure.Error{Code: report.CodeInvalidSchema, SQLState: fmt.Sprintf("%s/%d", server.SQLState[:], server.Number), Detail: server.Message,
		Message: fmt.Sprintf("the desired schema does not load: %s is refused by MySQL with error %d", place, server.Number)}
	switch server.Number {
	case 1044, 1142, 1227, 1410:
		e.Message += "; a schema is loaded with the rights of the target's account in its own database, so it can name no other database, definer, account or setting of the server"
	case 1146, 1305, 1824:
		e.Message += "; it names something that does not exist at that place of the file"
	}
	return e
}

// checkLoaded refuses what a reading of the schema would lose without a word.
func (p *plan) checkLoaded(ctx context.Context, admin *target.Session, entries []dump.Entry) error {
	var charset, collation, options string
	if err := admin.QueryRowContext(ctx, `SELECT s.DEFAULT_CHARACTER_SET_NAME, s.DEFAULT_COLLATION_NAME, CONCAT(s.DEFAULT_ENCRYPTION, COALESCE(e.OPTIONS, ''))
		FROM information_schema.SCHEMATA s JOIN information_schema.SCHEMATA_EXTENSIONS e USING (SCHEMA_NAME) WHERE SCHEMA_NAME = DATABASE()`).
		Scan(&charset, &collation, &options); err != nil {
		return fmt.Errorf("check the loaded schema: %w", err)
	}
	if charset != p.request.State.Server.Charset || collation != p.request.State.Server.Collation || options != "NO" {
		return &failure.Error{Code: report.CodeUnsupported, Categories: []string{"database_modified"},
			Message: "the desired schema changes the defaults of the database itself; these are not planned, so take ALTER DATABASE out"}
	}
	for _, e := range entries {
		if e.Kind == dump.KindEvent && ends(e.SQL) {
			return &failure.Error{Code: report.CodeUnsupported, Categories: []string{"events_modified"},
				Message: "the desired schema holds an event that happens once or until a time; the server removes or disables it afterwards, so it is no state and is not planned"}
		}
	}
	return checkEmpty(ctx, admin, entries)
}

// ends says whether an event's schedule comes to an end.
func ends(sql string) bool {
	tokens := sqltext.Tokens(sql)
	scheduled := false
	for i, t := range tokens {
		switch {
		case i > 0 && t.Is("SCHEDULE") && tokens[i-1].Is("ON"):
			scheduled = true
		case scheduled && (t.Is("AT") || t.Is("ENDS")):
			return true
		case scheduled && t.Is("DO"):
			return false
		}
	}
	return false
}

// checkEmpty refuses rows.
func checkEmpty(ctx context.Context, admin *target.Session, entries []dump.Entry) error {
	var parts []string
	for _, e := range entries {
		if e.Kind == dump.KindTable {
			parts = append(parts, "EXISTS (SELECT 1 FROM "+sqltext.Quote(e.Name)+")")
		}
	}
	const atOnce = 50 // the server opens every table of one statement
	for len(parts) > 0 {
		n := min(atOnce, len(parts))
		var filled bool
		if err := admin.QueryRowContext(ctx, "SELECT "+strings.Join(parts[:n], " OR ")).Scan(&filled); err != nil {
			return fmt.Errorf("check the loaded schema for rows: %w", err)
		}
		if filled {
			return &failure.Error{Code: report.CodeUnsupported, Categories: []string{"data_rows_inserted"},
				Message: "the desired schema inserts rows; take INSERT and CREATE TABLE AS out, and declare reference rows in a file whose name ends in .rows.yaml"}
		}
		parts = parts[n:]
	}
	return nil
}

// canonical loads entries into the empty database and reads them again.
func (p *plan) canonical(ctx context.Context, entries []dump.Entry, what string) ([]dump.Entry, error) {
	if err := p.rebuild(ctx, entries); err != nil {
		var server *mysql.MySQLError
		if ctx.Err() != nil || !errors.As(err, &server) || broken(err) {
			return nil, err
		}
		return nil, &failure.Error{Code: report.CodeUnsupported, SQLState: fmt.Sprintf("%s/%d", server.SQLState[:], server.Number),
			Detail: server.Message, Categories: []string{"other_objects"},
			Message: what + " cannot be rebuilt on the scratch server: it uses something that this executor lacks, that names another database, or that depends on an excluded object"}
	}
	admin, err := p.server.Admin(ctx)
	if err != nil {
		return nil, fmt.Errorf("open the scratch database: %w", err)
	}
	defer admin.Close()
	return observe.Dump(ctx, admin)
}

// clone makes the database hold what the target does.
func (p *plan) clone(ctx context.Context) error {
	if p.fresh {
		return nil
	}
	if err := p.rebuild(ctx, p.request.State.Entries); err != nil {
		return fmt.Errorf("clone the target: %w", err)
	}
	p.fresh = true
	return nil
}

// rebuild makes the database anew from entries.
func (p *plan) rebuild(ctx context.Context, entries []dump.Entry) error {
	if err := p.server.Renew(ctx); err != nil {
		return err
	}
	s, err := p.server.Owner(ctx)
	if err != nil {
		return fmt.Errorf("open the scratch database: %w", err)
	}
	defer s.Close()
	for _, statement := range []string{clock, "SET SESSION foreign_key_checks = 0"} {
		if _, err := s.ExecContext(ctx, statement); err != nil {
			return fmt.Errorf("prepare a scratch session: %w", err)
		}
	}
	run := func(sql string) error {
		_, err := s.ExecContext(ctx, sql)
		return err
	}
	return createAll(entries, &sessionSettings{run: run}, run)
}
