package target

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	"ptah.run/ptah/operator/plan/report"
)

const plainURL = "postgres://app:p%40ss@db.example:5432/shop"

func TestParseRefuses(t *testing.T) {
	for name, text := range map[string]string{
		"nothing":                            "",
		"another scheme":                     "mysql://app:secret@db/shop",
		"no URL":                             "host=db user=app password=secret",
		"a password with a bare percent":     "postgres://app:se%cret@db/shop",
		"a password with a bare hash":        "postgres://app:sec#ret@db/shop",
		"no host":                            "postgres://app:secret@/shop",
		"no user":                            "postgres://db/shop",
		"no database":                        "postgres://app:secret@db/",
		"a database with a slash":            "postgres://app:secret@db/shop/more",
		"several hosts":                      "postgres://app:secret@db1,db2/shop",
		"several hosts with ports":           "postgres://app:secret@db1:5432,db2:5432/shop",
		"a port that is none":                "postgres://app:secret@db:0/shop",
		"a port that is too high":            "postgres://app:secret@db:65536/shop",
		"options that set anything":          plainURL + "?options=-c%20role%3Dpostgres",
		"a service":                          plainURL + "?service=other",
		"a second host":                      plainURL + "?host=other",
		"a host address":                     plainURL + "?hostaddr=10.0.0.1",
		"a password as parameter":            plainURL + "?password=secret",
		"a database as parameter":            plainURL + "?dbname=other",
		"a password file":                    plainURL + "?passfile=/etc/passwd",
		"a repeated parameter":               plainURL + "?sslmode=require&sslmode=disable",
		"an unknown parameter":               plainURL + "?session_preload_libraries=evil",
		"an unknown sslmode":                 plainURL + "?sslmode=maybe",
		"a search path with quotes":          plainURL + "?search_path=%22a%22",
		"a search path that runs on":         plainURL + "?search_path=a;b",
		"a search path with an empty name":   plainURL + "?search_path=a,,b",
		"parameters that are badly encoded":  plainURL + "?role=%zz",
		"a text that is longer than allowed": "postgres://app:secret@db/" + strings.Repeat("x", MaxURLBytes),
		"a NUL byte":                         "postgres://app:secret%00@db/shop",
	} {
		t.Run(name, func(t *testing.T) {
			_, err := Parse(text)
			if err == nil {
				t.Fatal("it was accepted")
			}
			for _, part := range []string{"secret", "p@ss", "p%40ss", "se%cret"} {
				if strings.Contains(err.Error(), part) {
					t.Errorf("the error holds the password: %v", err)
				}
			}
		})
	}
}

func identity(t *testing.T, text string) string {
	t.Helper()
	target, err := Parse(text)
	if err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	return target.Identity()
}

func TestIdentity(t *testing.T) {
	base := identity(t, plainURL)
	for name, text := range map[string]string{
		"another password":            "postgres://app:other@db.example:5432/shop",
		"the port left out":           "postgres://app:x@db.example/shop",
		"the other scheme":            "postgresql://app:x@db.example/shop",
		"the host in capitals":        "postgres://app:x@DB.example/shop",
		"the default sslmode":         plainURL + "?sslmode=prefer",
		"a timeout":                   plainURL + "?connect_timeout=5",
		"a name for the session":      plainURL + "?application_name=x",
		"a newline behind it":         plainURL + "\n",
		"a letter that needs no code": "postgres://%61pp:x@db.example/shop",
	} {
		if identity(t, text) != base {
			t.Errorf("%s changes the identity", name)
		}
	}
	for name, text := range map[string]string{
		"another user":          "postgres://app2:x@db.example/shop",
		"another host":          "postgres://app:x@db2.example/shop",
		"an absolute host name": "postgres://app:x@db.example./shop",
		"another port":          "postgres://app:x@db.example:5433/shop",
		"another database":      "postgres://app:x@db.example/Shop",
		"a role":                plainURL + "?role=owner",
		"a search path":         plainURL + "?search_path=app",
		"another sslmode":       plainURL + "?sslmode=require",
		"a CA file":             plainURL + "?sslrootcert=/ca",
	} {
		if identity(t, text) == base {
			t.Errorf("%s leaves the identity", name)
		}
	}
	if identity(t, "postgres://a:x@[::1]/d") != identity(t, "postgres://a:x@[0:0::1]:5432/d") {
		t.Error("two spellings of an address have two identities")
	}
	if identity(t, plainURL+"?search_path=a,%20b") != identity(t, plainURL+"?search_path=a,b") {
		t.Error("blanks in a search path change the identity")
	}
}

func TestConnectionsIgnoreTheEnvironment(t *testing.T) {
	for _, name := range []string{"PGHOST", "PGUSER", "PGDATABASE", "PGPASSWORD", "PGOPTIONS", "PGAPPNAME", "PGSSLROOTCERT", "PGTARGETSESSIONATTRS", "PGREQUIREAUTH", "PGSSLNEGOTIATION", "PGTZ"} {
		t.Setenv(name, "evil")
	}
	t.Setenv("PGPORT", "1")
	t.Setenv("PGSSLMODE", "disable")
	target, err := Parse(plainURL + "?role=owner&sslmode=require")
	if err != nil {
		t.Fatal(err)
	}
	config, err := target.Config(3 * time.Second)
	if err != nil {
		t.Fatal(err)
	}
	if config.Host != "db.example" || config.Port != 5432 || config.User != "app" || config.Database != "shop" || config.Password != "p@ss" ||
		config.TLSConfig == nil || config.ConnectTimeout != 3*time.Second || len(config.Fallbacks) != 0 {
		t.Errorf("the connection is %s@%s:%d/%s", config.User, config.Host, config.Port, config.Database)
	}
	if len(config.RuntimeParams) != 2 || config.RuntimeParams["role"] != "owner" || config.RuntimeParams["application_name"] != "ptah" {
		t.Errorf("the session's parameters are %v", config.RuntimeParams)
	}
	for _, variable := range target.Environment(1500 * time.Millisecond) {
		if strings.Contains(variable, "evil") {
			t.Errorf("the child inherits %s", variable)
		}
		if strings.HasPrefix(variable, "PGCONNECT_TIMEOUT=") && variable != "PGCONNECT_TIMEOUT=2" {
			t.Errorf("the timeout is not rounded up: %s", variable)
		}
	}
}

func TestAServiceInTheEnvironmentIsRefused(t *testing.T) {
	t.Setenv("PGSERVICE", "other")
	target, err := Parse(plainURL)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := target.Config(0); err == nil || !strings.Contains(err.Error(), "PGSERVICE") {
		t.Errorf("%v", err)
	}
}

func TestASocketDirectory(t *testing.T) {
	target, err := Parse("postgres://app@/shop?host=/run/pg")
	if err != nil || target.Host != "/run/pg" {
		t.Fatalf("%v", err)
	}
	if _, err := Parse("postgres://app@/shop?host=db"); err == nil {
		t.Error("a host as parameter was accepted")
	}
}

func TestConnectErrors(t *testing.T) {
	server := func(code string) error { return &pgconn.PgError{Code: code, Message: "password of app is secret"} }
	for name, test := range map[string]struct {
		err  error
		want report.Code
	}{
		"a wrong password":    {server("28P01"), report.CodeAuthentication},
		"a refused user":      {server("28000"), report.CodeAuthentication},
		"no such database":    {server("3D000"), report.CodeConnection},
		"no right to connect": {server("42501"), report.CodePermission},
		"no free connection":  {server("53300"), report.CodeConnection},
		"a starting server":   {server("57P03"), report.CodeConnection},
		"an unknown host":     {&net.DNSError{Name: "secret"}, report.CodeConnection},
		"nobody there":        {&net.OpError{Op: "dial", Err: errors.New("secret")}, report.CodeConnection},
		"no answer":           {fmt.Errorf("dial: %w", context.DeadlineExceeded), report.CodeConnection},
		"anything else":       {errors.New("secret"), report.CodeConnection},
	} {
		t.Run(name, func(t *testing.T) {
			problem := Problem(connectError(context.Background(), test.err))
			if problem.Code != test.want || problem.Message == "" || strings.Contains(problem.Message, "secret") {
				t.Errorf("%+v", problem)
			}
		})
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if got := Problem(connectError(ctx, errors.New("x"))); got.Code != report.CodeCanceled {
		t.Errorf("a cancelled connection is %+v", got)
	}
}

func TestStatementErrors(t *testing.T) {
	ctx := context.Background()
	stopped, cancel := context.WithCancel(ctx)
	cancel()
	server := func(code string) error { return &pgconn.PgError{Code: code, Message: `relation "salaries" is secret`} }
	for name, test := range map[string]struct {
		ctx  context.Context
		err  error
		want report.Code
	}{
		"a refused statement":          {ctx, server("23505"), report.CodeStatement},
		"a lock that was not granted":  {ctx, server("55P03"), report.CodeLockTimeout},
		"a missing privilege":          {ctx, server("42501"), report.CodePermission},
		"a server that stops":          {ctx, server("57P01"), report.CodeConnection},
		"a statement we cancelled":     {stopped, server("57014"), report.CodeCanceled},
		"a statement others cancelled": {ctx, server("57014"), report.CodeConnection},
		"a broken connection":          {ctx, errors.New("secret"), report.CodeConnection},
		"a connection we broke":        {stopped, errors.New("secret"), report.CodeCanceled},
		"an error that has a code":     {ctx, Fail(report.CodeStalePlan, "x"), report.CodeStalePlan},
	} {
		t.Run(name, func(t *testing.T) {
			problem := Problem(Statement(test.ctx, "testing", test.err))
			if problem.Code != test.want || strings.Contains(problem.Message, "secret") || strings.Contains(problem.Message, "salaries") {
				t.Errorf("%+v", problem)
			}
		})
	}
	if Statement(ctx, "testing", nil) != nil {
		t.Error("no error became one")
	}
}

func FuzzParse(f *testing.F) {
	for _, seed := range []string{plainURL, plainURL + "?sslmode=require&role=x", "postgres://a:b@[::1]/d", "postgres://a@/d?host=/s", "postgres://a:b@h,i/d"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		target, err := Parse(text)
		if err != nil {
			return
		}
		if !report.IsDigest(target.Identity()) {
			t.Fatal("no identity")
		}
		config, err := target.Config(time.Second)
		if err != nil {
			return
		}
		if config.Host != target.Host || config.User != target.User || config.Database != target.Database || config.Password != target.password {
			t.Fatalf("the connection goes elsewhere than the URL says: %q %q %q", config.Host, config.User, config.Database)
		}
		for key := range config.RuntimeParams {
			if key != "role" && key != "application_name" {
				t.Fatalf("the session gets the parameter %q", key)
			}
		}
	})
}

func TestMain(m *testing.M) {
	// A developer's own PG variables must not decide what is tested.
	for _, variable := range os.Environ() {
		if name, _, _ := strings.Cut(variable, "="); strings.HasPrefix(name, "PG") {
			_ = os.Unsetenv(name)
		}
	}
	m.Run() // the test program exits with what it returned
}
