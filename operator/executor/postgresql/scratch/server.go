// Package scratch runs a PostgreSQL server of its own for the time of one command: on a Unix socket that only this
// account can reach, without durability, in memory where there is some, removed at the end.
//
// Two roles work on it. The administrator makes databases and extensions. The owner, named like the role on the
// target, is an ordinary role and loads everything that comes from a schema: SQL from outside never runs with a right
// to start programs or to read files, because the process beside it holds a database credential.
package scratch

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/jackc/pgx/v5"

	"ptah.run/ptah/operator/executor/postgresql/dump"
	"ptah.run/ptah/operator/executor/shelter"
)

// Administrator is the role of the administrator, unless the target has a role of that name.
const Administrator = "ptah_scratch"

// port names the socket; nothing listens on a network.
const port = 5432

// startLimit bounds initdb and start of an empty server. Both take under two seconds on an idle core; a starved node
// may take long, but never this long.
const startLimit = 2 * time.Minute

// Options describe a scratch server.
type Options struct {
	// Owner is the role that will own everything: the target's current role.
	Owner string
	// Roles are the other role names of the target. They exist without login, so that grants can name them.
	Roles []string
	// Encoding is the target's server encoding, such as UTF8.
	Encoding string
	// SearchPath is the owner's search_path, or empty for the server's default.
	SearchPath string
	// Getenv reads the environment.
	Getenv func(string) string
}

// Server is a running scratch server. Stop must be called.
type Server struct {
	dir      string
	socket   string
	binaries string
	admin    string
	options  Options
	account  *shelter.Account
	process  *exec.Cmd
	output   *tail
	exited   chan struct{}
}

// Start makes and starts a server.
func Start(ctx context.Context, options Options) (*Server, error) {
	binaries, err := Binaries(options.Getenv)
	if err != nil {
		return nil, err
	}
	who, err := shelter.Find(os.Geteuid(), accounts...)
	if err != nil {
		return nil, err
	}
	dir, err := os.MkdirTemp(shelter.Parent(options.Getenv, minimumMemory), "ptah-pg-")
	if err != nil {
		return nil, fmt.Errorf("make a folder for the scratch server: %w; set %s to a writable folder", err, DirectoryVariable)
	}
	s := &Server{dir: dir, socket: dir, binaries: binaries, options: options, account: who,
		admin: adminName(options), output: &tail{}}
	if err := s.start(ctx); err != nil {
		s.Stop()
		return nil, fmt.Errorf("start the scratch server: %w", err)
	}
	return s, nil
}

// adminName returns a role name that no role of the target has.
func adminName(options Options) string {
	taken := map[string]bool{options.Owner: true}
	for _, role := range options.Roles {
		taken[role] = true
	}
	name := Administrator
	for taken[name] {
		name += "_"
	}
	return name
}

func (s *Server) start(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, startLimit)
	defer cancel()
	if s.account != nil {
		if err := os.Chown(s.dir, int(s.account.UID), int(s.account.GID)); err != nil {
			return err
		}
	}
	data := filepath.Join(s.dir, "d")
	administrator, err := s.fill(ctx, data)
	if err != nil {
		return err
	}
	settings := []string{"listen_addresses=", "unix_socket_directories=" + s.socket, "unix_socket_permissions=0700",
		"fsync=off", "full_page_writes=off", "synchronous_commit=off", "wal_level=minimal", "max_wal_senders=0",
		"autovacuum=off", "jit=off", "shared_buffers=64MB", "max_connections=48", "max_locks_per_transaction=2048",
		"dynamic_shared_memory_type=mmap", "timezone=UTC", "log_timezone=UTC", "log_min_messages=fatal",
		"log_min_error_statement=panic"}
	args := []string{"-D", data, "-p", fmt.Sprint(port)}
	for _, setting := range settings {
		args = append(args, "-c", setting)
	}
	// The server must outlive the context: Stop ends it.
	s.process = s.command(context.WithoutCancel(ctx), "postgres", args...)
	s.process.Stdout, s.process.Stderr = s.output, s.output
	if err := s.process.Start(); err != nil {
		return err
	}
	s.exited = make(chan struct{})
	go func() {
		_ = s.process.Wait() // the exit code of a server that is being killed says nothing
		close(s.exited)
	}()
	if err := s.waitReady(ctx, administrator); err != nil {
		return err
	}
	if err := s.rename(ctx, administrator); err != nil {
		return err
	}
	return s.makeRoles(ctx)
}

// command prepares a program of the server with an environment of its own: nothing of ours, credentials above all.
func (s *Server) command(ctx context.Context, program string, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, filepath.Join(s.binaries, program), args...)
	cmd.Env = []string{"LC_ALL=C.UTF-8", "PATH=/usr/bin:/bin", "HOME=" + s.dir, "TZ=UTC", "PGTZ=UTC"}
	cmd.Dir = s.dir
	if s.account != nil {
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: s.account.UID, Gid: s.account.GID}}
	}
	return cmd
}

func (s *Server) waitReady(ctx context.Context, administrator string) error {
	ticker := time.NewTicker(20 * time.Millisecond)
	defer ticker.Stop()
	for {
		conn, err := s.connect(ctx, administrator, "postgres")
		if err == nil {
			return conn.Close(ctx)
		}
		select {
		case <-s.exited:
			return fmt.Errorf("the server ended at its start: %s", lastLine(s.output.bytes()))
		case <-ctx.Done():
			return fmt.Errorf("the server did not become ready: %w", ctx.Err())
		case <-ticker.C:
		}
	}
}

// makeRoles makes the owner and the target's other roles. The owner is a member of the others, as ALTER DEFAULT
// PRIVILEGES FOR ROLE asks; none of them may log in or has a right of its own.
func (s *Server) makeRoles(ctx context.Context) error {
	var sql strings.Builder
	owner := dump.Quote(s.options.Owner)
	fmt.Fprintf(&sql, "CREATE ROLE %s LOGIN;\n", owner)
	if s.options.SearchPath != "" {
		fmt.Fprintf(&sql, "ALTER ROLE %s SET search_path = %s;\n", owner, s.options.SearchPath)
	}
	for _, role := range s.options.Roles {
		if role != s.options.Owner {
			fmt.Fprintf(&sql, "CREATE ROLE %s NOLOGIN;\nGRANT %s TO %s;\n", dump.Quote(role), dump.Quote(role), owner)
		}
	}
	conn, err := s.Admin(ctx, "postgres")
	if err != nil {
		return fmt.Errorf("reach the scratch server: %w", err)
	}
	defer func() { _ = conn.Close(context.WithoutCancel(ctx)) }()
	if _, err := conn.PgConn().Exec(ctx, sql.String()).ReadAll(); err != nil {
		return fmt.Errorf("make the roles of the target on the scratch server: %w", err)
	}
	return nil
}

// Create makes an empty database that belongs to the owner.
func (s *Server) Create(ctx context.Context, name string) error {
	locale := "C.UTF-8"
	encoding := s.options.Encoding
	if encoding == "" {
		encoding = "UTF8"
	}
	if encoding != "UTF8" {
		locale = "C"
	}
	return s.administer(ctx, fmt.Sprintf("CREATE DATABASE %s TEMPLATE template0 ENCODING '%s' LOCALE '%s' OWNER %s",
		dump.Quote(name), strings.ReplaceAll(encoding, "'", "''"), locale, dump.Quote(s.options.Owner)))
}

// Copy makes a database that equals another, to which nobody may be connected.
func (s *Server) Copy(ctx context.Context, from, to string) error {
	return s.administer(ctx, fmt.Sprintf("CREATE DATABASE %s TEMPLATE %s OWNER %s STRATEGY file_copy",
		dump.Quote(to), dump.Quote(from), dump.Quote(s.options.Owner)))
}

// Remove drops a database and whoever is connected to it.
func (s *Server) Remove(ctx context.Context, name string) error {
	return s.administer(ctx, fmt.Sprintf("DROP DATABASE %s WITH (FORCE)", dump.Quote(name)))
}

func (s *Server) administer(ctx context.Context, sql string) error {
	conn, err := s.Admin(ctx, "postgres")
	if err != nil {
		return fmt.Errorf("reach the scratch server: %w", err)
	}
	defer func() { _ = conn.Close(context.WithoutCancel(ctx)) }()
	if _, err := conn.Exec(ctx, sql); err != nil {
		return fmt.Errorf("prepare a scratch database: %w", err)
	}
	return nil
}

// Admin opens a connection as the administrator.
func (s *Server) Admin(ctx context.Context, database string) (*pgx.Conn, error) {
	return s.connect(ctx, s.admin, database)
}

// Owner opens a connection as the owner.
func (s *Server) Owner(ctx context.Context, database string) (*pgx.Conn, error) {
	return s.connect(ctx, s.options.Owner, database)
}

func (s *Server) connect(ctx context.Context, role, database string) (*pgx.Conn, error) {
	config, err := s.Config(role, database)
	if err != nil {
		return nil, err
	}
	return pgx.ConnectConfig(ctx, config)
}

// AdminConfig returns the configuration of an administrator's connection.
func (s *Server) AdminConfig(database string) (*pgx.ConnConfig, error) {
	return s.Config(s.admin, database)
}

// Config returns the configuration of a connection as a role.
func (s *Server) Config(role, database string) (*pgx.ConnConfig, error) {
	quote := func(text string) string {
		return "'" + strings.ReplaceAll(strings.ReplaceAll(text, `\`, `\\`), "'", `\'`) + "'"
	}
	config, err := pgx.ParseConfig(fmt.Sprintf("host=%s port=%d user=%s dbname=%s password=none sslmode=disable passfile='/dev/null' servicefile='/dev/null' target_session_attrs=any options=''",
		quote(s.socket), port, quote(role), quote(database)))
	if err != nil {
		return nil, fmt.Errorf("address of the scratch server: %w", err)
	}
	config.RuntimeParams = map[string]string{"application_name": "ptah"}
	return config, nil
}

// Environment returns the libpq environment for a program that reads a scratch database as the administrator.
func (s *Server) Environment(database string) []string {
	return []string{"PGHOST=" + s.socket, fmt.Sprintf("PGPORT=%d", port), "PGUSER=" + s.admin, "PGDATABASE=" + database,
		"PGPASSFILE=/dev/null", "PGTZ=UTC", "PGCLIENTENCODING=UTF8", "LC_ALL=C", "HOME=/nonexistent"}
}

// Binaries returns the folder of the server's programs.
func (s *Server) Binaries() string { return s.binaries }

// AdminName returns the administrator's role name.
func (s *Server) AdminName() string { return s.admin }

// Socket returns the directory of the server's socket.
func (s *Server) Socket() string { return s.socket }

// Stop ends the server at once and removes its files. It may be called more than once.
func (s *Server) Stop() {
	if s.process != nil && s.exited != nil {
		_ = s.process.Process.Signal(syscall.SIGQUIT) // fails only when it has ended
		select {
		case <-s.exited:
		case <-time.After(5 * time.Second):
			_ = s.process.Process.Kill()
			<-s.exited
		}
	}
	_ = os.RemoveAll(s.dir) // nothing of it is needed; what cannot be removed lies in a folder for temporary files
}

// tail keeps the last bytes that the server wrote.
type tail struct{ buffer []byte }

var _ io.Writer = (*tail)(nil)

func (t *tail) Write(p []byte) (int, error) {
	const limit = 4096
	t.buffer = append(t.buffer, p...)
	if len(t.buffer) > limit {
		t.buffer = t.buffer[len(t.buffer)-limit:]
	}
	return len(p), nil
}

// bytes may be called once the process has ended.
func (t *tail) bytes() []byte { return t.buffer }

func lastLine(out []byte) string {
	lines := bytes.Split(bytes.TrimSpace(out), []byte("\n"))
	if text := string(lines[len(lines)-1]); text != "" {
		return text
	}
	return "no message"
}
