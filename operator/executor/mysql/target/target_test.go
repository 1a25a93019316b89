package target

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/go-sql-driver/mysql"

	"ptah.run/ptah/operator/executor/failure"
	"ptah.run/ptah/operator/plan/report"
)

func TestParse(t *testing.T) {
	target, err := Parse("mysql://app:s%23cret@DB.example:3307/shop?tls=true\n")
	if err != nil || target.Host != "db.example" || target.Port != 3307 || target.Database != "shop" || target.User != "app" || target.password != "s#cret" {
		t.Fatalf("%+v %v", target, err)
	}
	for url, says := range map[string]string{
		"postgres://app@db/shop":                      "mysql://",
		"mysql://db/shop":                             "no user",
		"mysql://app@/shop":                           "no host",
		"mysql://app@db":                              "no database",
		"mysql://app@db/":                             "no database",
		"mysql://app@db/a/b":                          "slash",
		"mysql://app@db/mysql":                        "server itself",
		"mysql://app@a,b/shop":                        "several hosts",
		"mysql://app@db:0/shop":                       "port",
		"mysql://app@db/shop?tls=maybe":               "tls",
		"mysql://app@db/shop?tls=true&tls=false":      "more than once",
		"mysql://app@db/shop?multiStatements=true":    "not supported",
		"mysql://app@db/shop?allowAllFiles=true":      "not supported",
		"mysql://app@db/shop?socket=/tmp/s":           "no host beside it",
		"mysql://app@/shop?socket=s":                  "absolute path",
		"mysql://app@db/shop?ssl-cert=/c":             "belong together",
		"mysql://app@db/shop?tls=false&ssl-ca=/c":     "tls=true",
		"mysql://app:p%zz@db/shop":                    "not a URL",
		"mysql://app@db/shop#x":                       "percent-encode",
		"mysql://app@db/" + strings.Repeat("a", 9000): "longer",
	} {
		_, err := Parse(url)
		if err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%.60s: %v", url, err)
		}
		if err != nil && strings.Contains(err.Error(), "p%zz") {
			t.Errorf("the message holds the password: %v", err)
		}
	}
}

func TestIdentity(t *testing.T) {
	identity := func(url string) string {
		t.Helper()
		target, err := Parse(url)
		if err != nil {
			t.Fatal(err)
		}
		return target.Identity()
	}
	base := identity("mysql://app:a@db/shop")
	for _, same := range []string{"mysql://app:other@db/shop", "mysql://app@DB:3306/shop", "mysql://app@db/shop?tls=preferred"} {
		if identity(same) != base {
			t.Errorf("%s is another database", same)
		}
	}
	for _, other := range []string{"mysql://app@db2/shop", "mysql://app@db:3307/shop", "mysql://app@db/shop2", "mysql://app2@db/shop", "mysql://app@db/shop?tls=true", "mysql://app@/shop?socket=/s"} {
		if identity(other) == base {
			t.Errorf("%s is the same database", other)
		}
	}
}

func TestScheme(t *testing.T) {
	for text, want := range map[string]bool{"mysql://a": true, "MySQL://a": true, "postgres://a": false, "": false, "mysqlx://a": false} {
		if Scheme(text) != want {
			t.Errorf("%q", text)
		}
	}
}

func TestSeconds(t *testing.T) {
	for d, want := range map[time.Duration]int64{0: 31536000, time.Millisecond: 1, 1500 * time.Millisecond: 2, time.Minute: 60} {
		if got := Seconds(d); got != want {
			t.Errorf("%s is %d", d, got)
		}
	}
}

func TestErrorsHaveCodes(t *testing.T) {
	canceled, cancel := context.WithCancel(t.Context())
	cancel()
	for name, test := range map[string]struct {
		ctx  context.Context
		err  error
		want report.Code
	}{
		"a wait that was too long": {t.Context(), &mysql.MySQLError{Number: 1205}, report.CodeLockTimeout},
		"a missing privilege":      {t.Context(), &mysql.MySQLError{Number: 1142}, report.CodePermission},
		"an interruption":          {t.Context(), &mysql.MySQLError{Number: 1317}, report.CodeCanceled},
		"a server that goes":       {t.Context(), &mysql.MySQLError{Number: 1053}, report.CodeConnection},
		"any other error":          {t.Context(), &mysql.MySQLError{Number: 1064}, report.CodeStatement},
		"a broken connection":      {t.Context(), mysql.ErrInvalidConn, report.CodeConnection},
		"a stop without an answer": {canceled, context.Canceled, report.CodeCanceled},
	} {
		var e *failure.Error
		if err := Statement(test.ctx, "trying", test.err); !errors.As(err, &e) || e.Code != test.want || !strings.Contains(e.Message, "trying") {
			t.Errorf("%s: %v", name, err)
		}
	}
	for number, want := range map[uint16]report.Code{1045: report.CodeAuthentication, 1044: report.CodePermission, 1049: report.CodeConnection, 1040: report.CodeConnection, 9999: report.CodeConnection} {
		var e *failure.Error
		if err := connectError(t.Context(), &mysql.MySQLError{Number: number}); !errors.As(err, &e) || e.Code != want {
			t.Errorf("%d: %v", number, err)
		}
	}
	if Statement(t.Context(), "trying", nil) != nil {
		t.Error("no error became one")
	}
}

func TestSomeAnswersDoNotSayWhetherAStatementTookEffect(t *testing.T) {
	for number, want := range map[uint16]bool{1180: true, 1598: true, 1064: false, 1205: false, 1317: false} {
		if got := Unsure(fmt.Errorf("run: %w", &mysql.MySQLError{Number: number})); got != want {
			t.Errorf("%d: %t", number, got)
		}
	}
	if Unsure(mysql.ErrInvalidConn) || Unsure(nil) {
		t.Error("what is no answer of the server is one")
	}
}
