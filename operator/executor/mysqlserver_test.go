package executor_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"ptah.run/ptah/operator/executor/mysql/observe"
	"ptah.run/ptah/operator/executor/mysql/scratch"
	"ptah.run/ptah/operator/executor/mysql/target"
)

// mysqlServers are the servers of one run of this package: each test has databases of its own on them. Making one takes
// seconds of a processor, and a case milliseconds.
var mysqlServers struct {
	once     sync.Once
	template string          // a data directory for the scratch servers of ptah itself
	target   *scratch.Server // plays the databases of a user
	scratch  *scratch.Server // is lent to the planner
	err      error
}

var mysqlTestServer = observe.Server{Charset: target.Charset, Collation: target.Collation}

func TestMain(m *testing.M) {
	// Its image cannot be had here; Cleanup removes a container.
	if err := os.Setenv("TESTCONTAINERS_RYUK_DISABLED", "true"); err != nil {
		panic("prepare the container tests: " + err.Error())
	}
	m.Run() // the test program exits with what it returned
	_ = os.RemoveAll(programFolder)
	for _, server := range []*scratch.Server{mysqlServers.target, mysqlServers.scratch} {
		if server != nil {
			server.Stop()
		}
	}
	_ = os.RemoveAll(mysqlServers.template) // what cannot be removed lies in a folder for temporary files
}

// mysqlServer returns a MySQL server that plays the databases of a user. Its owner is an ordinary account.
func mysqlServer(t *testing.T) *scratch.Server {
	t.Helper()
	if _, err := scratch.Program(os.Getenv); err != nil {
		if os.Getenv("PTAH_TEST_MYSQL") != "" {
			t.Fatalf("PTAH_TEST_MYSQL asks for a server: %v", err)
		}
		t.Skipf("no MySQL 9.7 here; TestMySQLInContainer runs this test where it is: %v", err)
	}
	s := &mysqlServers
	s.once.Do(func() { s.err = startMySQL(context.Background()) })
	if s.err != nil {
		t.Fatal(s.err)
	}
	t.Setenv(scratch.TemplateVariable, filepath.Join(s.template, "t"))
	return s.target
}

func startMySQL(ctx context.Context) (err error) {
	s := &mysqlServers
	if s.template, err = os.MkdirTemp(os.Getenv("PTAH_SCRATCH_DIR"), "template"); err != nil {
		return err
	}
	if err := scratch.MakeTemplate(ctx, filepath.Join(s.template, "t"), os.Getenv); err != nil {
		return err
	}
	getenv := func(name string) string {
		if name == scratch.TemplateVariable {
			return filepath.Join(s.template, "t")
		}
		return os.Getenv(name)
	}
	options := scratch.Options{User: "app", Database: "main", Server: mysqlTestServer, Getenv: getenv}
	var problem error
	s.target, err = scratch.Start(ctx, options)
	s.scratch, problem = scratch.Start(ctx, options)
	return errors.Join(err, problem)
}

// lendScratch gives a computation the scratch server of this run, with a database of its own.
func lendScratch(ctx context.Context, options scratch.Options) (*scratch.Server, error) {
	if options.User != "app" || options.Server != mysqlTestServer {
		return scratch.Start(ctx, options)
	}
	return mysqlServers.scratch.For(ctx, options.Database)
}
