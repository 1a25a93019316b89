package impostor

import (
	"context"
	"database/sql"
	"fmt"
	"testing"
	"time"

	_ "github.com/go-sql-driver/mysql" // both drivers are clients of the impostor
	_ "github.com/jackc/pgx/v5/stdlib"

	"ptah.run/ptah/qualification/lab"
)

// How each driver is told to trust only what it can verify, and to trust everybody.
var addresses = map[string]struct{ driver, verified, trusting string }{
	lab.PostgreSQL: {"pgx", "postgres://someuser:p@%s/d?sslmode=verify-full", "postgres://someuser:p@%s/d?sslmode=require"},
	lab.MySQL:      {"mysql", "someuser:p@tcp(%s)/d?tls=true", "someuser:p@tcp(%s)/d?tls=skip-verify"},
}

func TestAClientThatVerifiesSaysNothingAndOneThatDoesNotSaysItsName(t *testing.T) {
	for engine, address := range addresses {
		t.Run(engine, func(t *testing.T) {
			server, err := Start("127.0.0.1", engine)
			if err != nil {
				t.Fatal(err)
			}
			defer func() {
				if err := server.Close(); err != nil {
					t.Error(err)
				}
			}()
			connect(t, address.driver, fmt.Sprintf(address.verified, server.Address()))
			settled(t, server, func(r Record) bool { return r.Refused > 0 && r.Refused == r.Connections })
			if r := server.Record(); r.Spoken != 0 || server.Heard("someuser") {
				t.Errorf("a client that verifies spoke: %+v", r)
			}
			connect(t, address.driver, fmt.Sprintf(address.trusting, server.Address()))
			settled(t, server, func(r Record) bool { return r.Spoken > 0 })
			if !server.Heard("someuser") || server.Heard("somebody else") {
				t.Error("the name that a trusting client says was not heard, or another was")
			}
		})
	}
}

// connect tries once, or as often as the driver does by itself. It cannot succeed.
func connect(t *testing.T, driver, address string) {
	t.Helper()
	sessions, err := sql.Open(driver, address)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = sessions.Close() }()
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	if err := sessions.PingContext(ctx); err == nil {
		t.Error("the impostor let somebody in")
	}
}

// settled waits for the server's side of a conversation.
func settled(t *testing.T, server *Server, done func(Record) bool) {
	t.Helper()
	for end := time.Now().Add(10 * time.Second); !done(server.Record()); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("the record is %+v", server.Record())
		}
	}
}

func TestAnUnknownEngineHasNoImpostor(t *testing.T) {
	if _, err := Start("127.0.0.1", "Oracle"); err == nil {
		t.Error("an impostor of an unknown engine started")
	}
}
