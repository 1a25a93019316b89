package planner

import (
	"errors"
	"fmt"

	"github.com/go-sql-driver/mysql"

	"ptah.run/ptah/operator/executor/mysql/dump"
	"ptah.run/ptah/operator/executor/mysql/sqltext"
	"ptah.run/ptah/operator/executor/mysql/target"
)

// base are the settings of a session as it is opened.
var base = dump.Settings{SQLMode: target.SQLMode, Charset: target.Charset, Collation: target.Collation, TimeZone: target.TimeZone}

// sessionSettings keeps the settings of one session and changes them where an object was made under others.
type sessionSettings struct {
	run  func(string) error
	now  dump.Settings
	once bool
}

// use makes the session's settings those of an object.
func (s *sessionSettings) use(e dump.Entry) error {
	want := base
	if e.Kind != dump.KindTable {
		want = e.Settings
		want.DBCollation = ""
		if want.TimeZone == "" { // only an event keeps one
			want.TimeZone = base.TimeZone
		}
		if e.Kind == dump.KindView { // a view keeps no mode
			want.SQLMode = base.SQLMode
		}
	}
	return s.set(want)
}

func (s *sessionSettings) set(want dump.Settings) error {
	if !s.once {
		s.now, s.once = base, true
	}
	if want == s.now {
		return nil
	}
	err := s.run(fmt.Sprintf("SET SESSION sql_mode = %s, character_set_client = %s, collation_connection = %s, time_zone = %s",
		sqltext.Literal(want.SQLMode), want.Charset, want.Collation, sqltext.Literal(want.TimeZone)))
	if err == nil {
		s.now = want
	}
	return err
}

// createAll makes objects in the order given. What is refused because it needs something that comes later is tried
// again behind it, as long as anything succeeds.
func createAll(todo []dump.Entry, settings *sessionSettings, run func(string) error) error {
	for len(todo) > 0 {
		var rest []dump.Entry
		var last error
		for _, e := range todo {
			if err := settings.use(e); err != nil {
				return fmt.Errorf("set the session for an object: %w", err)
			}
			err := run(e.SQL)
			var server *mysql.MySQLError
			switch {
			case err == nil:
			case errors.As(err, &server) && !broken(err):
				last = err
				rest = append(rest, e)
			default:
				return err
			}
		}
		if len(rest) == len(todo) {
			return last
		}
		todo = rest
	}
	return nil
}
