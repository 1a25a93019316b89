package bench

import (
	"context"
	"database/sql"
	"fmt"
	"os"
	"time"

	"ptah.run/ptah/operator/api/v1alpha1"
	"ptah.run/ptah/qualification/lab"
	"ptah.run/ptah/qualification/lab/tenant"
)

// Engine is the engine of the lab's database server, as a PtahSchema names it.
func (b *Bench) Engine() v1alpha1.DatabaseEngine {
	if len(b.Lab.Databases) > 0 && b.Lab.Databases[0].Engine == lab.MySQL {
		return v1alpha1.EngineMySQL
	}
	return v1alpha1.EnginePostgreSQL
}

// Database is a database of one scenario.
type Database struct{ *tenant.Database }

// Database makes an empty database owned by a login of the same name without any other right. It is dropped when
// the test ends.
func (s *Scenario) Database(ctx context.Context) *Database {
	s.T.Helper()
	server, err := tenant.Server(s.Bench.Lab)
	s.Fixture(err)
	made, err := tenant.CreateDatabase(ctx, server, "app_"+randomSuffix(), "p"+randomSuffix()+randomSuffix())
	s.Fixture(err)
	s.credentials = append(s.credentials, made.Password)
	s.T.Cleanup(func() {
		if err := made.Drop(context.Background()); err != nil {
			s.T.Errorf("remove database %s: %v", made.Name, err)
		}
	})
	return &Database{made}
}

// Session opens one session by hand, for a person who keeps it. Closing what is returned ends it.
func (d *Database) Session(ctx context.Context) (*sql.DB, *sql.Conn, error) {
	sessions, err := d.ByHand()
	if err != nil {
		return nil, nil, err
	}
	session, err := sessions.Conn(ctx)
	if err != nil {
		_ = sessions.Close()
		return nil, nil, fmt.Errorf("connect to database %s: %w", d.Name, err)
	}
	return sessions, session, nil
}

// columnsOf lists "table.column" of the user's tables.
var columnsOf = map[string]string{
	lab.PostgreSQL: `SELECT table_name || '.' || column_name FROM information_schema.columns
		WHERE table_schema NOT IN ('pg_catalog', 'information_schema') ORDER BY 1`,
	lab.MySQL: `SELECT CONCAT(table_name, '.', column_name) FROM information_schema.columns WHERE table_schema = DATABASE() ORDER BY 1`,
}

// Columns lists "table.column" of every table of the database outside the system schemas, sorted.
func (d *Database) Columns(ctx context.Context) ([]string, error) {
	sessions, err := d.ByHand()
	if err != nil {
		return nil, err
	}
	defer func() { _ = sessions.Close() }()
	rows, err := sessions.QueryContext(ctx, columnsOf[d.Server.Engine])
	if err != nil {
		return nil, fmt.Errorf("list the columns of database %s: %w", d.Name, err)
	}
	defer func() { _ = rows.Close() }()
	var columns []string
	for rows.Next() {
		var column string
		if err := rows.Scan(&column); err != nil {
			return nil, fmt.Errorf("list the columns of database %s: %w", d.Name, err)
		}
		columns = append(columns, column)
	}
	return columns, rows.Err()
}

// Journal reads what the server itself wrote down about this database since a time: every statement of every session
// but those of the suite.
func (d *Database) Journal(since time.Time) (*Journal, error) {
	file, err := os.Open(d.Server.StatementLog)
	if err != nil {
		return nil, fmt.Errorf("read the statement log of the database server: %w", err)
	}
	defer func() { _ = file.Close() }()
	if d.Server.Engine == lab.MySQL {
		return readGeneralLog(file, d.Name, since)
	}
	return readJournal(file, d.Name, since)
}
