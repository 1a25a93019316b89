package tenant

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net"
	"net/url"
	"os"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"ptah.run/ptah/qualification/lab"
)

// Database is one database with an owner of the same name that has no other right, on a lab's server.
type Database struct {
	Name     string // also the name of its owner
	Password string
	Server   lab.DatabaseDescription

	admin string
}

// What marks the sessions of a person in a server's journal: the name of an application, or, where an engine has no
// such names, the end of the name of a second account with the same rights.
const (
	HandApplication = "qualify-by-hand"
	HandAccount     = "_hand"
)

// Server returns the database server of a lab.
func Server(description *lab.Description) (lab.DatabaseDescription, error) {
	if len(description.Databases) == 0 {
		return lab.DatabaseDescription{}, fmt.Errorf("the lab %s has no database server", description.ID)
	}
	return description.Databases[0], nil
}

// CreateDatabase makes an empty database and its owner. Name and password are plain words of this program's own.
func CreateDatabase(ctx context.Context, server lab.DatabaseDescription, name, password string) (*Database, error) {
	admin, err := os.ReadFile(server.AdminPasswordFile)
	if err != nil {
		return nil, fmt.Errorf("read the database server's password: %w", err)
	}
	database := &Database{Name: name, Password: password, Server: server, admin: strings.TrimSpace(string(admin))}
	statements := []string{
		fmt.Sprintf("CREATE ROLE %s LOGIN PASSWORD '%s'", name, password), fmt.Sprintf("CREATE DATABASE %s OWNER %s", name, name),
	}
	if server.Engine == lab.MySQL {
		statements = []string{"CREATE DATABASE " + name}
		for _, account := range []string{name, name + HandAccount} {
			statements = append(statements, fmt.Sprintf("CREATE USER '%s'@'%%' IDENTIFIED BY '%s'", account, password),
				fmt.Sprintf("GRANT ALL ON %s.* TO '%s'@'%%'", name, account))
		}
		// A person looks at what other sessions do.
		statements = append(statements, fmt.Sprintf("GRANT PROCESS ON *.* TO '%s%s'@'%%'", name, HandAccount))
	}
	return database, database.asAdmin(ctx, statements...)
}

// Drop removes the database and its owner, and ends sessions that are still open. What does not exist is no error.
func (d *Database) Drop(ctx context.Context) error {
	if d.Server.Engine == lab.MySQL {
		return d.asAdmin(ctx, "DROP DATABASE IF EXISTS "+d.Name, fmt.Sprintf("DROP USER IF EXISTS '%[1]s'@'%%', '%[1]s%[2]s'@'%%'", d.Name, HandAccount))
	}
	return d.asAdmin(ctx, fmt.Sprintf("DROP DATABASE IF EXISTS %s WITH (FORCE)", d.Name), "DROP ROLE IF EXISTS "+d.Name)
}

// ClusterURL is the connection URL as Pods use it.
func (d *Database) ClusterURL() string { return d.url(d.Password) }

// WrongPasswordURL is ClusterURL with a password that the server refuses.
func (d *Database) WrongPasswordURL() string { return d.url("not-" + d.Password) }

func (d *Database) url(password string) string {
	scheme, query := "postgres", "sslmode=disable"
	if d.Server.Engine == lab.MySQL {
		scheme, query = "mysql", "tls=preferred"
	}
	address := url.URL{Scheme: scheme, User: url.UserPassword(d.Name, password),
		Host: net.JoinHostPort(d.Server.ClusterHost, strconv.Itoa(d.Server.ClusterPort)), Path: "/" + d.Name, RawQuery: query}
	return address.String()
}

// Secret holds a URL under the key "url".
func Secret(namespace, name, address string) *corev1.Secret {
	return &corev1.Secret{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Secret"},
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}, StringData: map[string]string{"url": address}}
}

// ByHand opens sessions of a person with the owner's rights, which the server's journal tells from all others. The
// caller closes them.
func (d *Database) ByHand() (*sql.DB, error) {
	account := d.Name
	if d.Server.Engine == lab.MySQL {
		account += HandAccount
	}
	return d.Server.OpenDatabase(account, d.Password, d.Name, HandApplication)
}

// Exec runs statements by hand in one session.
func (d *Database) Exec(ctx context.Context, statements ...string) error {
	sessions, err := d.ByHand()
	if err != nil {
		return err
	}
	return run(ctx, sessions, statements)
}

func (d *Database) asAdmin(ctx context.Context, statements ...string) error {
	sessions, err := d.Server.OpenDatabase(d.Server.AdminUser, d.admin, d.Server.AdminDatabase, HandApplication)
	if err != nil {
		return err
	}
	return run(ctx, sessions, statements)
}

// run runs statements in one session and closes what it was given.
func run(ctx context.Context, sessions *sql.DB, statements []string) (err error) {
	defer func() { err = errors.Join(err, sessions.Close()) }()
	session, err := sessions.Conn(ctx)
	if err != nil {
		return fmt.Errorf("connect to the database: %w", err)
	}
	defer func() { err = errors.Join(err, session.Close()) }()
	for _, statement := range statements {
		if _, err := session.ExecContext(ctx, statement); err != nil {
			return fmt.Errorf("run %q: %w", firstWords(statement), err)
		}
	}
	return nil
}

// firstWords keeps passwords out of errors: the first three words say which statement it was.
func firstWords(statement string) string {
	words := strings.Fields(statement)
	return strings.Join(words[:min(3, len(words))], " ")
}
