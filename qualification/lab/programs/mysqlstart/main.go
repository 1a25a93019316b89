// Command mysql-start is the entry point of the lab's MySQL image. On the first start it makes a data directory with one
// administrator and one database, without ever opening a port; then it becomes the server, so that a login over TCP
// proves the final start and a stop signal reaches the server itself.
//
// MYSQL_PASSWORD (required on the first start), MYSQL_USER (ptah), MYSQL_DATABASE (the user's name) and MYSQL_DATA
// (/var/lib/mysql/data) are read; arguments are handed to the server, so `--general-log=ON` works. A first argument that
// is no flag is run instead of the server.
package main

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
)

// server is where Debian puts the program.
const server = "/usr/sbin/mysqld"

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "mysql-start: "+err.Error())
		os.Exit(1)
	}
}

func run(arguments []string) error {
	if len(arguments) > 0 && !strings.HasPrefix(arguments[0], "-") {
		program, err := exec.LookPath(arguments[0])
		if err != nil {
			return fmt.Errorf("find %s: %w", arguments[0], err)
		}
		return syscall.Exec(program, arguments, os.Environ())
	}
	settings, err := settingsFrom(os.Getenv)
	if err != nil {
		return err
	}
	_, err = os.Stat(settings.data)
	if errors.Is(err, os.ErrNotExist) {
		err = initialise(settings)
	}
	if err != nil {
		return err
	}
	if err := os.Unsetenv("MYSQL_PASSWORD"); err != nil {
		return fmt.Errorf("keep the password from the server: %w", err)
	}
	return syscall.Exec(server, append(serverArguments(settings.data), arguments...), os.Environ())
}

func serverArguments(data string) []string {
	return []string{"mysqld", "--no-defaults", "--datadir=" + data, "--bind-address=*", "--port=3306", "--mysqlx=OFF",
		"--socket=/tmp/mysql.sock", "--pid-file=/tmp/mysql.pid", "--secure-file-priv=NULL"}
}

type settings struct {
	user, password, database, data string
}

func settingsFrom(environment func(string) string) (settings, error) {
	s := settings{
		user: environment("MYSQL_USER"), password: environment("MYSQL_PASSWORD"),
		database: environment("MYSQL_DATABASE"), data: environment("MYSQL_DATA"),
	}
	if s.user == "" {
		s.user = "ptah"
	}
	if s.database == "" {
		s.database = s.user
	}
	if s.data == "" {
		s.data = "/var/lib/mysql/data"
	}
	// The user first: a database is named like it where nothing else is said.
	for _, one := range []struct{ name, value string }{{"MYSQL_USER", s.user}, {"MYSQL_DATABASE", s.database}} {
		if strings.ContainsAny(one.value, "'\"`\\\n\x00") || len(one.value) > 32 {
			return settings{}, fmt.Errorf("%s must be at most 32 bytes without quotes, backslashes and line ends", one.name)
		}
	}
	if strings.ContainsAny(s.password, "\n\x00") {
		return settings{}, errors.New("MYSQL_PASSWORD must not contain a line end")
	}
	return s, nil
}

// accounts is what the first server runs before it opens anything: one statement a line.
func accounts(s settings) string {
	password := strings.NewReplacer(`\`, `\\`, "'", "''").Replace(s.password)
	return fmt.Sprintf("CREATE USER '%[1]s'@'%%' IDENTIFIED BY '%[2]s';\nGRANT ALL ON *.* TO '%[1]s'@'%%' WITH GRANT OPTION;\n"+
		"CREATE DATABASE `%[3]s`;\nDROP USER 'root'@'localhost';\n", s.user, password, s.database)
}

// initialise makes the data directory beside its final place and renames it, so that a stop in the middle leaves no
// half-made one that a second start would take for a whole one.
func initialise(s settings) (err error) {
	if s.password == "" {
		return errors.New("MYSQL_PASSWORD is empty: give the administrator a password")
	}
	making := s.data + ".making"
	if err := os.RemoveAll(making); err != nil {
		return fmt.Errorf("remove what an interrupted start left: %w", err)
	}
	file := filepath.Clean(s.data) + ".sql"
	if err := os.WriteFile(file, []byte(accounts(s)), 0o600); err != nil {
		return fmt.Errorf("hand the account to the server: %w", err)
	}
	defer func() { err = errors.Join(err, os.Remove(file)) }() // the password must not stay on the disk
	command := exec.Command(server, "--no-defaults", "--initialize-insecure", "--datadir="+making, "--init-file="+file, "--secure-file-priv=NULL", "--log-error-verbosity=1")
	command.Stderr = os.Stderr
	if err := command.Run(); err != nil {
		return fmt.Errorf("make the data directory: %w", err)
	}
	if err := os.Rename(making, s.data); err != nil {
		return fmt.Errorf("put the data directory in place: %w", err)
	}
	return nil
}
