package bench

import (
	"context"
	"fmt"
	"os"
	"time"

	"github.com/jackc/pgx/v5"

	"ptah.run/ptah/qualification/lab/tenant"
)

// handApplication marks sessions of the suite itself, so that the journal tells them from the operator's.
const handApplication = "qualify-by-hand"

// Database is a database of one scenario.
type Database struct{ *tenant.Database }

// Database makes an empty database owned by a login of the same name without any other right. It is dropped when
// the test ends.
func (s *Scenario) Database(ctx context.Context) *Database {
	s.T.Helper()
	server, err := tenant.PostgreSQL(s.Bench.Lab)
	s.Fixture(err)
	made, err := tenant.CreateDatabase(ctx, server, "app_"+randomSuffix(), "p"+randomSuffix()+randomSuffix())
	s.Fixture(err)
	s.T.Cleanup(func() {
		if err := made.Drop(context.Background()); err != nil {
			s.T.Errorf("remove database %s: %v", made.Name, err)
		}
	})
	return &Database{made}
}

// Exec runs statements by hand, as a person with the owner's password does.
func (d *Database) Exec(ctx context.Context, statements ...string) error {
	return d.Database.Exec(ctx, handApplication, statements...)
}

// Columns lists "table.column" of every table of the database outside the system schemas, sorted.
func (d *Database) Columns(ctx context.Context) ([]string, error) {
	connection, err := pgx.Connect(ctx, d.LocalURL(handApplication))
	if err != nil {
		return nil, fmt.Errorf("connect to database %s: %w", d.Name, err)
	}
	defer func() { _ = connection.Close(ctx) }()
	rows, err := connection.Query(ctx, `SELECT table_name || '.' || column_name FROM information_schema.columns
		WHERE table_schema NOT IN ('pg_catalog', 'information_schema') ORDER BY 1`)
	if err != nil {
		return nil, fmt.Errorf("list the columns of database %s: %w", d.Name, err)
	}
	return pgx.CollectRows(rows, pgx.RowTo[string])
}

// Journal reads what the server itself wrote down about this database since a time: every statement of every session
// but those of the suite.
func (d *Database) Journal(since time.Time) (*Journal, error) {
	file, err := os.Open(d.Server.StatementLog)
	if err != nil {
		return nil, fmt.Errorf("read the statement log of the database server: %w", err)
	}
	defer func() { _ = file.Close() }()
	return readJournal(file, d.Name, since)
}
