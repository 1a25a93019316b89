package target

import (
	"context"
	"database/sql"
	"fmt"
	"math"
	"time"

	"github.com/go-sql-driver/mysql"
)

// SQLMode is the mode in which every statement of a plan runs: the server's default.
const SQLMode = "ONLY_FULL_GROUP_BY,STRICT_TRANS_TABLES,NO_ZERO_IN_DATE,NO_ZERO_DATE,ERROR_FOR_DIVISION_BY_ZERO,NO_ENGINE_SUBSTITUTION"

// Charset and Collation are those in which every text is sent.
const (
	Charset   = "utf8mb4"
	Collation = "utf8mb4_0900_ai_ci"
	TimeZone  = "+00:00"
)

// settings are what a session sets before it runs anything, on the scratch server and on the target alike, so that no
// statement means two things.
var settings = []string{
	"SET SESSION default_collation_for_utf8mb4 = " + Collation, // of what names the character set alone
	"SET NAMES " + Charset + " COLLATE " + Collation,
	"SET SESSION sql_mode = '" + SQLMode + "'",
	"SET SESSION time_zone = '" + TimeZone + "'",
	"SET SESSION autocommit = 1, completion_type = 0, foreign_key_checks = 1, unique_checks = 1, default_storage_engine = InnoDB",
	"SET SESSION group_concat_max_len = 1048576, max_execution_time = 0, explicit_defaults_for_timestamp = 1",
	// How much the server shows: every row of a list, and of a table what was said about it, no less and no more.
	"SET SESSION sql_select_limit = 18446744073709551615, sql_quote_show_create = 1, show_create_table_verbosity = 0," +
		" show_create_table_skip_secondary_engine = 0, show_gipk_in_create_table_and_information_schema = 1",
}

// Session is one connection with prepared settings. It never moves to another connection.
type Session struct {
	*sql.Conn
	db *sql.DB
	ID int64 // of the connection on the server
	// Server is the identity of the server. One host name may lead to several, where ID means another connection.
	Server string
}

// Open opens a session. lockTimeout bounds the wait for each lock, in whole seconds rounded up; zero means the longest.
func Open(ctx context.Context, config *mysql.Config, lockTimeout time.Duration) (*Session, error) {
	config.ClientFoundRows = true // a row that is changed to what it holds already counts as reached
	connector, err := mysql.NewConnector(config)
	if err != nil {
		return nil, fmt.Errorf("configure the connection: %w", err)
	}
	db := sql.OpenDB(connector)
	db.SetMaxOpenConns(1)
	conn, err := db.Conn(ctx)
	if err != nil {
		_ = db.Close() // nothing is open
		return nil, connectError(ctx, err)
	}
	s := &Session{Conn: conn, db: db}
	seconds := Seconds(lockTimeout)
	all := append(append([]string{}, settings...), fmt.Sprintf("SET SESSION lock_wait_timeout = %d, innodb_lock_wait_timeout = %d", seconds, min(seconds, 1<<30)))
	for _, statement := range all {
		if _, err := s.ExecContext(ctx, statement); err != nil {
			s.Close()
			return nil, Statement(ctx, "preparing the session", err)
		}
	}
	if err := s.QueryRowContext(ctx, "SELECT CONNECTION_ID(), @@server_uuid").Scan(&s.ID, &s.Server); err != nil {
		s.Close()
		return nil, Statement(ctx, "preparing the session", err)
	}
	return s, nil
}

// Seconds rounds a time up to what the server's timeouts take. Zero means no bound, which the server calls a year.
func Seconds(d time.Duration) int64 {
	const year = 31536000
	if d <= 0 {
		return year
	}
	return min(max(int64(math.Ceil(d.Seconds())), 1), year)
}

// Close ends the connection.
func (s *Session) Close() {
	_ = s.Conn.Close() // a session that ends has nothing to lose
	_ = s.db.Close()
}

// Texts reads rows of texts. A missing value becomes an empty text.
func (s *Session) Texts(ctx context.Context, query string, args ...any) (columns []string, rows [][]sql.NullString, err error) {
	result, err := s.QueryContext(ctx, query, args...)
	if err != nil {
		return nil, nil, err
	}
	defer func() { _ = result.Close() }()
	if columns, err = result.Columns(); err != nil {
		return nil, nil, err
	}
	for result.Next() {
		values := make([]sql.NullString, len(columns))
		places := make([]any, len(columns))
		for i := range values {
			places[i] = &values[i]
		}
		if err := result.Scan(places...); err != nil {
			return nil, nil, err
		}
		rows = append(rows, values)
	}
	return columns, rows, result.Err()
}
