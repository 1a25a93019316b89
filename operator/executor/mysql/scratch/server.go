// Package scratch runs a MySQL server of its own for the time of one command: on a Unix socket that only this account
// can reach, without durability, in memory where there is some, removed at the end.
//
// Two accounts work on it. The administrator makes and drops the database. The owner, named like the account on the
// target, has rights in that database only and loads everything that comes from a schema: SQL from outside never runs
// with a right to read files, to load code or to change the server, because the process beside it holds a database
// credential.
package scratch

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/go-sql-driver/mysql"

	"ptah.run/ptah/operator/executor/mysql/observe"
	"ptah.run/ptah/operator/executor/mysql/sqltext"
	"ptah.run/ptah/operator/executor/mysql/target"
	"ptah.run/ptah/operator/executor/shelter"
)

// Administrator is the account of the administrator, unless the target's account has that name.
const Administrator = "ptah_scratch"

// startLimit bounds making and starting an empty server. Both take about four seconds on an idle core; a starved node
// may take long, but never this long.
const startLimit = 5 * time.Minute

// Options describe a scratch server.
type Options struct {
	// User is the name of the owner: the target's account.
	User string
	// Database is the name of the one database. It is the target's, so that a name with its database in front means the
	// same on both.
	Database string
	// Server are the settings of the target that change what a statement makes.
	Server observe.Server
	// Getenv reads the environment.
	Getenv func(string) string
}

// Server is a running scratch server. Stop must be called.
type Server struct {
	dir     string
	program string
	admin   string
	options Options
	account *shelter.Account
	process *exec.Cmd
	output  *tail
	exited  chan struct{}
	lent    bool // by For
}

// Start makes and starts a server. The database does not exist yet.
func Start(ctx context.Context, options Options) (*Server, error) {
	program, err := Program(options.Getenv)
	if err != nil {
		return nil, err
	}
	account, err := shelter.Find(os.Geteuid(), accounts...)
	if err != nil {
		return nil, err
	}
	dir, err := os.MkdirTemp(shelter.Parent(options.Getenv, minimumMemory), "ptah-my-")
	if err != nil {
		return nil, fmt.Errorf("make a folder for the scratch server: %w; set %s to a writable folder", err, DirectoryVariable)
	}
	s := &Server{dir: dir, program: program, admin: Administrator, options: options, account: account, output: &tail{}}
	for s.admin == options.User {
		s.admin += "_"
	}
	if err := s.start(ctx); err != nil {
		s.Stop()
		return nil, fmt.Errorf("start the scratch server: %w", err)
	}
	return s, nil
}

func (s *Server) start(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, startLimit)
	defer cancel()
	if s.account != nil {
		if err := os.Chown(s.dir, int(s.account.UID), int(s.account.GID)); err != nil {
			return err
		}
	}
	if len(s.Socket()) > 100 { // the longest that the system takes is 107 bytes
		return fmt.Errorf("the folder %s has too long a name for a socket; set %s to a shorter one", s.dir, DirectoryVariable)
	}
	if err := s.fill(ctx); err != nil {
		return err
	}
	accountsFile := filepath.Join(s.dir, "accounts.sql")
	if err := os.WriteFile(accountsFile, []byte(s.accounts()), 0o644); err != nil { // the folder is closed to others
		return err
	}
	// The server must outlive the context: Stop ends it.
	s.process = s.command(context.WithoutCancel(ctx), append(append(s.storage(), s.settings()...), "--init-file="+accountsFile)...)
	s.process.Stdout, s.process.Stderr = s.output, s.output
	if err := s.process.Start(); err != nil {
		return err
	}
	s.exited = make(chan struct{})
	go func() {
		_ = s.process.Wait() // the exit code of a server that is being killed says nothing
		close(s.exited)
	}()
	return s.waitReady(ctx)
}

// storage are the settings with which a data directory is made and then used.
func (s *Server) storage() []string {
	return []string{"--no-defaults", "--datadir=" + filepath.Join(s.dir, "d"), "--tmpdir=" + s.dir,
		fmt.Sprintf("--lower-case-table-names=%d", s.options.Server.LowerCase), "--performance-schema=OFF", "--disable-log-bin",
		"--innodb-redo-log-capacity=8388608", "--innodb-doublewrite=OFF", "--innodb-flush-method=nosync", "--innodb-use-native-aio=OFF",
		"--innodb-buffer-pool-size=67108864", "--auto-generate-certs=OFF", "--caching-sha2-password-auto-generate-rsa-keys=OFF",
		"--log-error-verbosity=1", "--innodb-log-writer-threads=OFF", "--secure-file-priv=NULL"}
}

func (s *Server) settings() []string {
	onOff := map[bool]string{true: "ON", false: "OFF"}
	return []string{"--skip-networking", "--mysqlx=OFF", "--socket=" + s.Socket(), "--pid-file=" + filepath.Join(s.dir, "pid"),
		"--local-infile=OFF", "--event-scheduler=DISABLED", "--innodb-flush-log-at-trx-commit=0",
		"--innodb-fast-shutdown=2", "--innodb-validate-tablespace-paths=OFF", "--max-connections=20", "--max-allowed-packet=67108864",
		"--default-time-zone=+00:00", "--character-set-server=" + target.Charset, "--collation-server=" + target.Collation,
		"--sql-require-primary-key=" + onOff[s.options.Server.PrimaryKeyRequired],
		"--sql-generate-invisible-primary-key=" + onOff[s.options.Server.PrimaryKeyMade]}
}

// accounts is what the server runs at its start: it leaves the administrator and the owner, both without a password on
// a socket that nobody else reaches, and no root.
func (s *Server) accounts() string {
	admin := account(s.admin)
	return fmt.Sprintf("CREATE USER %s;\nGRANT ALL ON *.* TO %s WITH GRANT OPTION;\nCREATE USER %s;\n%s;\nDROP USER 'root'@'localhost';\n",
		admin, admin, account(s.options.User), s.grant())
}

// grant gives the owner its rights in the database.
func (s *Server) grant() string {
	// In GRANT the name of a database is a pattern.
	database := sqltext.Quote(strings.NewReplacer(`\`, `\\`, "_", `\_`, "%", `\%`).Replace(s.options.Database))
	return fmt.Sprintf("GRANT ALL ON %s.* TO %s", database, account(s.options.User))
}

func account(name string) string { return sqltext.Literal(name) + "@'%'" }

// command prepares the server program with an environment of its own: nothing of ours, credentials above all.
func (s *Server) command(ctx context.Context, args ...string) *exec.Cmd {
	words, places := start(s.program)
	// The server insists on --no-defaults as its first argument.
	args = append(append(append(words[1:len(words):len(words)], args[0]), places...), args[1:]...)
	cmd := exec.CommandContext(ctx, words[0], args...)
	cmd.Env = []string{"LC_ALL=C.UTF-8", "PATH=/usr/bin:/bin", "HOME=" + s.dir, "TZ=UTC"}
	cmd.Dir = s.dir
	if s.account != nil {
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: s.account.UID, Gid: s.account.GID}}
	}
	return cmd
}

func (s *Server) waitReady(ctx context.Context) error {
	ticker := time.NewTicker(20 * time.Millisecond)
	defer ticker.Stop()
	for {
		session, err := s.open(ctx, s.admin, "")
		if err == nil {
			session.Close()
			return nil
		}
		select {
		case <-s.exited:
			return fmt.Errorf("the server ended at its start: %s", s.output.lastLine())
		case <-ctx.Done():
			return fmt.Errorf("the server did not become ready: %w", ctx.Err())
		case <-ticker.C:
		}
	}
}

// Renew makes the database anew, empty, with the target's defaults.
func (s *Server) Renew(ctx context.Context) error {
	session, err := s.open(ctx, s.admin, "")
	if err != nil {
		return fmt.Errorf("reach the scratch server: %w", err)
	}
	defer session.Close()
	name := sqltext.Quote(s.options.Database)
	for _, sql := range []string{"DROP DATABASE IF EXISTS " + name,
		fmt.Sprintf("CREATE DATABASE %s CHARACTER SET %s COLLATE %s", name, s.options.Server.Charset, s.options.Server.Collation)} {
		if _, err := session.ExecContext(ctx, sql); err != nil {
			return fmt.Errorf("prepare the scratch database: %w", err)
		}
	}
	return nil
}

// For returns the same server with another database, in which the owner gets its rights. Stopping what is returned stops
// nothing. It serves many computations in one process, which spares each a server of its own; they must not share a
// database.
func (s *Server) For(ctx context.Context, database string) (*Server, error) {
	other := *s
	other.options.Database, other.lent = database, true
	session, err := s.open(ctx, s.admin, "")
	if err != nil {
		return nil, fmt.Errorf("reach the scratch server: %w", err)
	}
	defer session.Close()
	if _, err := session.ExecContext(ctx, other.grant()); err != nil {
		return nil, fmt.Errorf("prepare the scratch server: %w", err)
	}
	return &other, nil
}

// Admin opens a session of the administrator in the database.
func (s *Server) Admin(ctx context.Context) (*target.Session, error) {
	return s.open(ctx, s.admin, s.options.Database)
}

// Owner opens a session of the owner in the database.
func (s *Server) Owner(ctx context.Context) (*target.Session, error) {
	return s.open(ctx, s.options.User, s.options.Database)
}

// Script opens a session of the owner that takes several statements in one text.
func (s *Server) Script(ctx context.Context) (*target.Session, error) {
	config := s.Config(s.options.User, s.options.Database)
	config.MultiStatements = true
	return target.Open(ctx, config, 0)
}

func (s *Server) open(ctx context.Context, user, database string) (*target.Session, error) {
	return target.Open(ctx, s.Config(user, database), 0)
}

// Config returns the configuration of a connection of an account of the server.
func (s *Server) Config(user, database string) *mysql.Config {
	config := mysql.NewConfig()
	config.User, config.DBName, config.Net, config.Addr = user, database, "unix", s.Socket()
	config.Logger = &mysql.NopLogger{}
	config.MaxAllowedPacket = 64 << 20
	return config
}

// AdminName returns the administrator's account name.
func (s *Server) AdminName() string { return s.admin }

// Socket returns the path of the server's socket.
func (s *Server) Socket() string { return filepath.Join(s.dir, "s") }

// Stop ends the server at once and removes its files. It may be called more than once.
func (s *Server) Stop() {
	if s.lent {
		return
	}
	if s.process != nil && s.exited != nil {
		_ = s.process.Process.Kill() // it keeps nothing that anybody needs; fails only when it has ended
		<-s.exited
	}
	_ = os.RemoveAll(s.dir) // what cannot be removed lies in a folder for temporary files
}

// tail keeps the last bytes that a program wrote.
type tail struct {
	mutex  sync.Mutex
	buffer []byte
}

func (t *tail) Write(p []byte) (int, error) {
	const limit = 4096
	t.mutex.Lock()
	defer t.mutex.Unlock()
	t.buffer = append(t.buffer, p...)
	if len(t.buffer) > limit {
		t.buffer = t.buffer[len(t.buffer)-limit:]
	}
	return len(p), nil
}

func (t *tail) lastLine() string {
	t.mutex.Lock()
	defer t.mutex.Unlock()
	lines := bytes.Split(bytes.TrimSpace(t.buffer), []byte("\n"))
	if text := string(lines[len(lines)-1]); text != "" {
		return text
	}
	return "no message"
}
