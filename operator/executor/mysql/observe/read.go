package observe

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/go-sql-driver/mysql"

	"ptah.run/ptah/operator/executor/failure"
	"ptah.run/ptah/operator/executor/mysql/dump"
	"ptah.run/ptah/operator/executor/mysql/sqltext"
	"ptah.run/ptah/operator/executor/mysql/target"
	"ptah.run/ptah/operator/plan/report"
)

// list names every object: kind, name, a trigger's table and place. One of a kind that is not planned is refused, not
// passed over.
const list = `SELECT TABLE_TYPE, TABLE_NAME, '', '0' FROM information_schema.TABLES WHERE TABLE_SCHEMA = DATABASE()
UNION ALL SELECT ROUTINE_TYPE, ROUTINE_NAME, '', '0' FROM information_schema.ROUTINES WHERE ROUTINE_SCHEMA = DATABASE()
UNION ALL SELECT 'TRIGGER', TRIGGER_NAME, EVENT_OBJECT_TABLE, ACTION_ORDER FROM information_schema.TRIGGERS WHERE TRIGGER_SCHEMA = DATABASE()
UNION ALL SELECT 'EVENT', EVENT_NAME, '', '0' FROM information_schema.EVENTS WHERE EVENT_SCHEMA = DATABASE()
UNION ALL SELECT 'LIBRARY', LIBRARY_NAME, '', '0' FROM information_schema.LIBRARIES WHERE LIBRARY_SCHEMA = DATABASE()`

// columns are those of SHOW CREATE that hold the definition.
var columns = map[string]string{dump.KindTable: "Create Table", dump.KindView: "Create View", dump.KindFunction: "Create Function",
	dump.KindProcedure: "Create Procedure", dump.KindTrigger: "SQL Original Statement", dump.KindEvent: "Create Event"}

// contents are the objects of a database, and for those that have one the account that made them, as user@host.
type contents struct {
	entries  []dump.Entry
	definers map[dump.Key]string
}

// read reads every object that is not skipped.
func read(ctx context.Context, s *target.Session, skip func(kind, name, on string) bool) (contents, error) {
	_, rows, err := s.Texts(ctx, list)
	if err != nil {
		return contents{}, target.Statement(ctx, reading, err)
	}
	found := contents{make([]dump.Entry, 0, len(rows)), map[dump.Key]string{}}
	for _, row := range rows {
		e := dump.Entry{Kind: row[0].String, Name: row[1].String, On: row[2].String}
		if e.Kind == "BASE TABLE" {
			e.Kind = dump.KindTable
		}
		if e.Order, err = strconv.Atoi(row[3].String); err != nil {
			return contents{}, fmt.Errorf("read the schema: the place of a trigger is no number: %w", err)
		}
		if skip(e.Kind, e.Name, e.On) {
			continue
		}
		if columns[e.Kind] == "" {
			return contents{}, &failure.Error{Code: report.CodeUnsupported, Categories: []string{"other_objects"},
				Message: "there is an object of a kind that this executor does not plan; exclude it", Detail: e.Kind + " " + e.Name}
		}
		definer, err := show(ctx, s, &e)
		if err != nil {
			return contents{}, err
		}
		if definer != "" {
			found.definers[e.Key()] = definer
		}
		found.entries = append(found.entries, e)
	}
	dump.Sort(found.entries)
	return found, nil
}

// gone are the errors that say that an object is no longer there.
var gone = map[uint16]bool{1146: true, 1305: true, 1360: true, 1539: true}

// show reads the definition of an object and returns its definer, where it has one.
func show(ctx context.Context, s *target.Session, e *dump.Entry) (definer string, err error) {
	names, rows, err := s.Texts(ctx, "SHOW CREATE "+e.Kind+" "+sqltext.Quote(e.Name))
	var server *mysql.MySQLError
	if errors.As(err, &server) && gone[server.Number] || err == nil && len(rows) != 1 {
		return "", failure.New(report.CodeStatement, "somebody changed the schema while it was read; try again")
	}
	if err != nil {
		return "", target.Statement(ctx, reading, err)
	}
	values := map[string]sql.NullString{}
	for i, name := range names {
		values[name] = rows[0][i]
	}
	definition := values[columns[e.Kind]]
	if !definition.Valid {
		return "", &failure.Error{Code: report.CodePermission, Detail: e.Kind + " " + e.Name,
			Message: "the account may not read the definition of a routine that another account made; grant it SHOW_ROUTINE, or exclude the routine"}
	}
	e.SQL = definition.String
	if e.Kind == dump.KindTable {
		e.SQL, err = dump.Canonical(e.SQL)
		if err != nil {
			return "", fmt.Errorf("read the schema: %w", err)
		}
		return "", nil
	}
	text, definer := dump.WithoutDefiner(e.SQL)
	// A statement that was one of several in a text keeps the mark of its end.
	e.SQL = strings.TrimRight(text, "; \t\r\n")
	e.Settings = dump.Settings{SQLMode: values["sql_mode"].String, Charset: values["character_set_client"].String,
		Collation: values["collation_connection"].String, TimeZone: values["time_zone"].String, DBCollation: values["Database Collation"].String}
	return definer, nil
}
