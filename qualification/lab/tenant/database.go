package tenant

import (
	"context"
	"fmt"
	"net"
	"net/url"
	"os"
	"strconv"
	"strings"

	"github.com/jackc/pgx/v5"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"ptah.run/ptah/qualification/lab"
)

// Database is one PostgreSQL database with an owner of the same name that has no other right, on a lab's server.
type Database struct {
	Name     string // also the name of its owner
	Password string
	Server   lab.DatabaseDescription

	admin string
}

// PostgreSQL finds the PostgreSQL server of a lab.
func PostgreSQL(description *lab.Description) (lab.DatabaseDescription, error) {
	for _, database := range description.Databases {
		if database.Engine == "PostgreSQL" {
			return database, nil
		}
	}
	return lab.DatabaseDescription{}, fmt.Errorf("the lab %s has no PostgreSQL server", description.ID)
}

// CreateDatabase makes an empty database and its owner. Name and password are plain words of this program's own.
func CreateDatabase(ctx context.Context, server lab.DatabaseDescription, name, password string) (*Database, error) {
	admin, err := os.ReadFile(server.AdminPasswordFile)
	if err != nil {
		return nil, fmt.Errorf("read the database server's password: %w", err)
	}
	database := &Database{Name: name, Password: password, Server: server, admin: strings.TrimSpace(string(admin))}
	err = database.asAdmin(ctx,
		fmt.Sprintf("CREATE ROLE %s LOGIN PASSWORD '%s'", name, password), fmt.Sprintf("CREATE DATABASE %s OWNER %s", name, name))
	if err != nil {
		return nil, err
	}
	return database, nil
}

// Drop removes the database and its owner, and ends sessions that are still open. What does not exist is no error.
func (d *Database) Drop(ctx context.Context) error {
	return d.asAdmin(ctx, fmt.Sprintf("DROP DATABASE IF EXISTS %s WITH (FORCE)", d.Name), "DROP ROLE IF EXISTS "+d.Name)
}

// ClusterURL is the connection URL as Pods use it.
func (d *Database) ClusterURL() string {
	return address(d.Server.ClusterHost, d.Server.ClusterPort, d.Name, d.Password, d.Name)
}

// WrongPasswordURL is ClusterURL with a password that the server refuses.
func (d *Database) WrongPasswordURL() string {
	return address(d.Server.ClusterHost, d.Server.ClusterPort, d.Name, "not-"+d.Password, d.Name)
}

// LocalURL is the connection URL as this machine uses it, for sessions of an application name.
func (d *Database) LocalURL(application string) string {
	return address(d.Server.LocalHost, d.Server.LocalPort, d.Name, d.Password, d.Name) + "&application_name=" + application
}

func address(host string, port int, user, password, database string) string {
	address := url.URL{Scheme: "postgres", User: url.UserPassword(user, password),
		Host: net.JoinHostPort(host, strconv.Itoa(port)), Path: "/" + database, RawQuery: "sslmode=disable"}
	return address.String()
}

// Secret holds a URL under the key "url".
func Secret(namespace, name, address string) *corev1.Secret {
	return &corev1.Secret{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Secret"},
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}, StringData: map[string]string{"url": address}}
}

func (d *Database) asAdmin(ctx context.Context, statements ...string) error {
	return run(ctx, address(d.Server.LocalHost, d.Server.LocalPort, d.Server.AdminUser, d.admin, "postgres"), statements)
}

// Exec runs statements as the owner, in sessions of an application name.
func (d *Database) Exec(ctx context.Context, application string, statements ...string) error {
	return run(ctx, d.LocalURL(application), statements)
}

func run(ctx context.Context, address string, statements []string) error {
	connection, err := pgx.Connect(ctx, address)
	if err != nil {
		return fmt.Errorf("connect to the database: %w", err)
	}
	defer func() { _ = connection.Close(ctx) }()
	for _, statement := range statements {
		if _, err := connection.Exec(ctx, statement); err != nil {
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
