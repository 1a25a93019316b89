package bench

import (
	"context"
	"fmt"
	"net"
	"net/url"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"ptah.run/ptah/qualification/lab"
)

// Database is one PostgreSQL database with an owner of its own, on the lab's server.
type Database struct {
	Name     string // also the name of its owner
	Password string
	server   lab.Database
	admin    string
}

// Database makes an empty database owned by a login of the same name without any other right. It is dropped when
// the test ends.
func (s *Scenario) Database(ctx context.Context) *Database {
	s.T.Helper()
	server, err := s.Bench.postgresql()
	s.Fixture(err)
	password, err := os.ReadFile(server.AdminPasswordFile)
	s.Fixture(err)
	database := &Database{Name: "app_" + randomSuffix(), Password: "p-" + randomSuffix() + randomSuffix(), server: server, admin: strings.TrimSpace(string(password))}
	s.Fixture(database.asAdmin(ctx,
		fmt.Sprintf("CREATE ROLE %s LOGIN PASSWORD '%s'", database.Name, database.Password),
		fmt.Sprintf("CREATE DATABASE %s OWNER %s", database.Name, database.Name)))
	s.T.Cleanup(func() {
		err := database.asAdmin(context.Background(),
			fmt.Sprintf("DROP DATABASE %s WITH (FORCE)", database.Name), "DROP ROLE "+database.Name)
		if err != nil {
			s.T.Errorf("remove database %s: %v", database.Name, err)
		}
	})
	return database
}

func (b *Bench) postgresql() (lab.Database, error) {
	for _, database := range b.Lab.Databases {
		if database.Engine == "PostgreSQL" {
			return database, nil
		}
	}
	return lab.Database{}, fmt.Errorf("the lab %s has no PostgreSQL server", b.Lab.ID)
}

// ClusterURL is the connection URL as Pods use it.
func (d *Database) ClusterURL() string {
	return d.url(d.server.ClusterHost, d.server.ClusterPort, d.Name, d.Password, d.Name)
}

func (d *Database) url(host string, port int, user, password, database string) string {
	address := url.URL{Scheme: "postgres", User: url.UserPassword(user, password),
		Host: net.JoinHostPort(host, strconv.Itoa(port)), Path: "/" + database, RawQuery: "sslmode=disable"}
	return address.String()
}

// Secret holds the database's URL under the key "url".
func (d *Database) Secret(namespace, name, address string) *corev1.Secret {
	return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}, StringData: map[string]string{"url": address}}
}

// WrongPasswordURL is ClusterURL with a password that the server refuses.
func (d *Database) WrongPasswordURL() string {
	return d.url(d.server.ClusterHost, d.server.ClusterPort, d.Name, "not-"+d.Password, d.Name)
}

func (d *Database) asAdmin(ctx context.Context, statements ...string) error {
	return d.run(ctx, d.url(d.server.LocalHost, d.server.LocalPort, d.server.AdminUser, d.admin, "postgres"), statements...)
}

// Exec runs statements by hand, as a person with the owner's password does. The session is marked so that the journal
// tells it from the operator's.
func (d *Database) Exec(ctx context.Context, statements ...string) error {
	return d.run(ctx, d.local()+"&application_name="+handApplication, statements...)
}

func (d *Database) local() string {
	return d.url(d.server.LocalHost, d.server.LocalPort, d.Name, d.Password, d.Name)
}

// handApplication marks sessions of the suite itself.
const handApplication = "qualify-by-hand"

func (d *Database) run(ctx context.Context, address string, statements ...string) error {
	connection, err := pgx.Connect(ctx, address)
	if err != nil {
		return fmt.Errorf("connect to database %s: %w", d.Name, err)
	}
	defer connection.Close(ctx)
	for _, statement := range statements {
		if _, err := connection.Exec(ctx, statement); err != nil {
			return fmt.Errorf("run %q in database %s: %w", statement, d.Name, err)
		}
	}
	return nil
}

// Columns lists "table.column" of every table of the database outside the system schemas, sorted.
func (d *Database) Columns(ctx context.Context) ([]string, error) {
	connection, err := pgx.Connect(ctx, d.local()+"&application_name="+handApplication)
	if err != nil {
		return nil, fmt.Errorf("connect to database %s: %w", d.Name, err)
	}
	defer connection.Close(ctx)
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
	file, err := os.Open(d.server.StatementLog)
	if err != nil {
		return nil, fmt.Errorf("read the statement log of the database server: %w", err)
	}
	defer file.Close()
	return readJournal(file, d.Name, since)
}
