package lab

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net"
	"net/url"
	"path/filepath"
	"strconv"

	"github.com/go-sql-driver/mysql" // the readiness checks name both drivers
	_ "github.com/jackc/pgx/v5/stdlib"
	"github.com/moby/moby/api/types/network"
	"github.com/testcontainers/testcontainers-go"
	"github.com/testcontainers/testcontainers-go/wait"

	"ptah.run/ptah/qualification/lab/catalog"
)

// AdminUser is the superuser of the lab's databases.
const AdminUser = "ptah"

// Engines of a lab's database, as DatabaseDescription.Engine and the matrices name them.
const (
	PostgreSQL = "PostgreSQL"
	MySQL      = "MySQL"
)

// DatabaseRole returns the role of the catalogue whose image serves an engine.
func DatabaseRole(engine string) (catalog.Role, error) {
	server, ok := servers[engine]
	if !ok {
		return "", &UsageError{fmt.Sprintf("a lab has no database engine %q: use %s or %s", engine, PostgreSQL, MySQL)}
	}
	return server.role, nil
}

// server is how a lab runs one engine. Whatever the engine, the server writes every statement, with the session that
// sent it, into one file that is never turned over.
type server struct {
	role      catalog.Role
	driver    string // of database/sql
	port      int
	database  string // that exists from the start
	logs      string // folder of the journal in the container
	journal   string // name of the journal
	arguments []string
	version   string // statement that asks for it
	env       func(password string) map[string]string
	address   func(host string, port int, user, password, database string) string
}

var servers = map[string]server{
	PostgreSQL: {
		role: catalog.PostgreSQL, driver: "pgx", port: postgresqlPort, database: "postgres", logs: "/var/log/postgresql", journal: "statements.json",
		arguments: []string{
			"-c", "log_statement=all", "-c", "log_connections=on", "-c", "log_disconnections=on", "-c", "log_destination=jsonlog",
			"-c", "logging_collector=on", "-c", "log_directory=/var/log/postgresql", "-c", "log_filename=statements.log",
			"-c", "log_file_mode=0644", "-c", "log_rotation_age=0", "-c", "log_rotation_size=0", "-c", "log_truncate_on_rotation=off",
			"-c", "log_timezone=UTC",
		},
		version: "SHOW server_version",
		env: func(password string) map[string]string {
			return map[string]string{"POSTGRES_USER": AdminUser, "POSTGRES_PASSWORD": password, "POSTGRES_DB": "postgres"}
		},
		address: PostgreSQLURL,
	},
	MySQL: {
		role: catalog.MySQL, driver: "mysql", port: mysqlPort, database: AdminUser, logs: "/var/log/mysql", journal: "statements.log",
		// The accounts of databases administer nothing, and may make routines nevertheless.
		arguments: []string{"--general-log=ON", "--general-log-file=/var/log/mysql/statements.log", "--log-output=FILE", "--log-timestamps=UTC",
			"--log-bin-trust-function-creators=ON"},
		version: "SELECT VERSION()",
		env: func(password string) map[string]string {
			// UMASK is how the server is told that others may read its files.
			return map[string]string{"MYSQL_USER": AdminUser, "MYSQL_PASSWORD": password, "MYSQL_DATABASE": AdminUser, "UMASK": "0644"}
		},
		address: MySQLAddress,
	},
}

func (f *folder) startDatabase(ctx context.Context, engine, image, password string, hostPort int) (DatabaseDescription, error) {
	server := servers[engine]
	_ = mysql.SetLogger(&mysql.NopLogger{}) // of the driver, which reports every try until the server is ready; fails for nil only
	name := "ptah-" + f.id + "-" + string(server.role)
	address := func(host string, port network.Port) string {
		return server.address(host, int(port.Num()), AdminUser, password, server.database)
	}
	port, err := f.run(ctx, image, name, server.port,
		published(server.port, hostPort),
		testcontainers.WithEnv(server.env(password)),
		testcontainers.WithCmd(server.arguments...),
		testcontainers.WithHostConfigModifier(appendBind(f.path("database"), server.logs, "rw")),
		testcontainers.WithWaitStrategyAndDeadline(containerReadyLimit, wait.ForSQL(fmt.Sprintf("%d/tcp", server.port), server.driver, address)),
	)
	if err != nil {
		return DatabaseDescription{}, err
	}
	description := DatabaseDescription{
		Engine: engine, ClusterHost: name, ClusterPort: server.port, LocalHost: "127.0.0.1", LocalPort: port,
		AdminUser: AdminUser, AdminPasswordFile: f.path("credentials", "database-password"), AdminDatabase: server.database,
		ContainerName: name, StatementLog: filepath.Join(f.path("database"), server.journal),
	}
	description.Version, err = serverVersion(ctx, server, server.address("127.0.0.1", port, AdminUser, password, server.database))
	return description, err
}

// OpenDatabase opens sessions of this machine to a lab's database server. Where the engine has names of applications,
// application is the sessions' name. The caller closes them.
func (d DatabaseDescription) OpenDatabase(user, password, database, application string) (*sql.DB, error) {
	server, ok := servers[d.Engine]
	if !ok {
		return nil, fmt.Errorf("the lab's database server has the unknown engine %q", d.Engine)
	}
	address := server.address(d.LocalHost, d.LocalPort, user, password, database)
	if d.Engine == PostgreSQL {
		address += "&application_name=" + url.QueryEscape(application)
	}
	sessions, err := sql.Open(server.driver, address)
	if err != nil {
		return nil, fmt.Errorf("open sessions to the database server of the lab: %w", err)
	}
	return sessions, nil
}

// PostgreSQLURL returns a connection string for a login with a password over plain TCP.
func PostgreSQLURL(host string, port int, user, password, database string) string {
	address := url.URL{Scheme: "postgres", User: url.UserPassword(user, password), Host: net.JoinHostPort(host, strconv.Itoa(port)),
		Path: "/" + database, RawQuery: "sslmode=disable"}
	return address.String()
}

// MySQLAddress returns the same for the driver of MySQL, which has a form of its own.
func MySQLAddress(host string, port int, user, password, database string) string {
	config := mysql.NewConfig()
	config.Net, config.Addr = "tcp", net.JoinHostPort(host, strconv.Itoa(port))
	config.User, config.Passwd, config.DBName = user, password, database
	config.TLSConfig = "preferred" // the account's method hands the password over an encrypted session only
	return config.FormatDSN()
}

func serverVersion(ctx context.Context, server server, address string) (version string, err error) {
	sessions, err := sql.Open(server.driver, address)
	if err != nil {
		return "", fmt.Errorf("open a session to the database: %w", err)
	}
	defer func() { err = errors.Join(err, sessions.Close()) }()
	if err := sessions.QueryRowContext(ctx, server.version).Scan(&version); err != nil {
		return "", fmt.Errorf("ask the database for its version: %w", err)
	}
	return version, nil
}
