// Command postgresql-start is the entry point of the lab's PostgreSQL image. On the first start it makes a
// cluster with one superuser and one database, without ever opening a port; then it becomes the server, so that a
// login over TCP proves the final start and a stop signal reaches the server itself.
//
// POSTGRES_PASSWORD (required on the first start), POSTGRES_USER (ptah), POSTGRES_DB (the user's name) and PGDATA
// (/var/lib/postgresql/data) are read; arguments are handed to the server, so `-c log_statement=all` works. A
// first argument that is no flag is run instead of the server.
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

// binaries is where Debian puts the programs of a major version; the image holds exactly one.
const binaries = "/usr/lib/postgresql/*/bin"

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "postgresql-start: "+err.Error())
		os.Exit(1)
	}
}

func run(arguments []string) error {
	found, err := filepath.Glob(binaries)
	if err != nil || len(found) != 1 {
		return fmt.Errorf("expected one PostgreSQL under %s, found %d", binaries, len(found))
	}
	if err := os.Setenv("PATH", found[0]+":"+os.Getenv("PATH")); err != nil {
		return fmt.Errorf("put the programs of PostgreSQL into PATH: %w", err)
	}
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
	_, err = os.Stat(filepath.Join(settings.data, "PG_VERSION"))
	if errors.Is(err, os.ErrNotExist) {
		err = initialise(found[0], settings)
	}
	if err != nil {
		return err
	}
	if err := os.Unsetenv("POSTGRES_PASSWORD"); err != nil {
		return fmt.Errorf("keep the password from the server: %w", err)
	}
	server := []string{"postgres", "-D", settings.data,
		"-c", "listen_addresses=*", "-c", "unix_socket_directories=/tmp", "-c", "jit=off"}
	return syscall.Exec(filepath.Join(found[0], "postgres"), append(server, arguments...), os.Environ())
}

type settings struct {
	user, password, database, data string
}

func settingsFrom(environment func(string) string) (settings, error) {
	s := settings{
		user: environment("POSTGRES_USER"), password: environment("POSTGRES_PASSWORD"),
		database: environment("POSTGRES_DB"), data: environment("PGDATA"),
	}
	if s.user == "" {
		s.user = "ptah"
	}
	if s.database == "" {
		s.database = s.user
	}
	if s.data == "" {
		s.data = "/var/lib/postgresql/data"
	}
	for name, value := range map[string]string{"POSTGRES_USER": s.user, "POSTGRES_DB": s.database} {
		if strings.ContainsAny(value, "\"\n\x00") || len(value) > 63 {
			return settings{}, fmt.Errorf("%s must be at most 63 bytes without quotes and line ends", name)
		}
	}
	if strings.ContainsAny(s.password, "\n\x00") {
		return settings{}, errors.New("POSTGRES_PASSWORD must not contain a line end")
	}
	return s, nil
}

// initialise builds the cluster beside its final place and renames it, so that a stop in the middle leaves no
// half-made cluster that a second start would take for a whole one.
func initialise(binaries string, s settings) (err error) {
	if s.password == "" {
		return errors.New("POSTGRES_PASSWORD is empty: give the superuser a password")
	}
	making := s.data + ".making"
	if err := os.RemoveAll(making); err != nil {
		return fmt.Errorf("remove what an interrupted start left: %w", err)
	}
	passwordFile := s.data + ".password"
	if err := os.WriteFile(passwordFile, []byte(s.password+"\n"), 0o600); err != nil {
		return fmt.Errorf("hand the password to initdb: %w", err)
	}
	defer func() { err = errors.Join(err, os.Remove(passwordFile)) }() // the password must not stay on the disk
	initdb := exec.Command(filepath.Join(binaries, "initdb"), "-D", making, "-U", s.user, "-E", "UTF8",
		"--locale=C.UTF-8", "--data-checksums", "--auth-local=trust", "--auth-host=scram-sha-256", "--pwfile="+passwordFile, "--no-sync")
	initdb.Stderr = os.Stderr
	if err := initdb.Run(); err != nil {
		return fmt.Errorf("initdb: %w", err)
	}
	if s.database != "postgres" {
		create := exec.Command(filepath.Join(binaries, "postgres"), "--single", "-D", making, "-c", "exit_on_error=on", "postgres")
		create.Stdin = strings.NewReader("CREATE DATABASE \"" + s.database + "\";\n")
		create.Stderr = os.Stderr
		if err := create.Run(); err != nil {
			return fmt.Errorf("create the database: %w", err)
		}
	}
	access, err := os.OpenFile(filepath.Join(making, "pg_hba.conf"), os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return fmt.Errorf("allow logins over TCP: %w", err)
	}
	if _, err := access.WriteString("host all all all scram-sha-256\n"); err != nil {
		return fmt.Errorf("allow logins over TCP: %w", err)
	}
	if err := access.Close(); err != nil {
		return fmt.Errorf("allow logins over TCP: %w", err)
	}
	if err := os.Rename(making, s.data); err != nil {
		return fmt.Errorf("put the cluster in place: %w", err)
	}
	return nil
}
