package rowsql

import (
	"errors"
	"strings"
	"testing"

	"github.com/go-sql-driver/mysql"

	"ptah.run/ptah/operator/executor/mysql/sqltext"
	"ptah.run/ptah/operator/executor/rows"
)

func TestLiteral(t *testing.T) {
	for _, test := range []struct {
		class rows.Class
		text  string
		want  string
	}{
		{rows.Other, "it's", "'it''s'"}, {rows.Other, `a\`, `_utf8mb4 x'615c'`}, {rows.Other, "a\x1ab", `_utf8mb4 x'611a62'`}, {rows.Other, "a\nb", "'a\nb'"},
		{rows.Integer, "18446744073709551615", "18446744073709551615"}, {rows.Integer, "x", "'x'"}, {rows.Decimal, "-1.10", "-1.10"},
		{rows.Float, "0.1", "0.1e0"}, {rows.Float, "1e100", "1e100"}, {rows.BinaryData, "00ff", "x'00ff'"}, {rows.Other, "1", "'1'"},
	} {
		if got := (Dialect{}).Literal(rows.Column{Class: test.class}, &test.text); got != test.want {
			t.Errorf("%q is written as %s", test.text, got)
		}
	}
	if got := (Dialect{}).Literal(rows.Column{}, nil); got != "NULL" {
		t.Error(got)
	}
}

func FuzzALiteralIsOneString(f *testing.F) {
	for _, seed := range []string{"", "'", `\`, `\'`, "a'b\\", "\x00", "-- ", "/*!"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		literal := Text(text)
		tokens := sqltext.Tokens("SELECT " + strings.TrimPrefix(literal, "_utf8mb4 x") + ", 1")
		if len(tokens) != 4 || tokens[1].Kind != sqltext.String || strings.ContainsAny(literal, "\\\x00") {
			t.Fatalf("%q is written as %s", text, literal)
		}
	})
}

func TestState(t *testing.T) {
	state := func(number uint16) string {
		return Dialect{}.State(errors.Join(&mysql.MySQLError{Number: number, SQLState: [5]byte([]byte("23000"))}))
	}
	for number, want := range map[uint16]string{1062: "23000/1062", 1452: "23000/1452", 1205: "", 1053: "", 1317: ""} {
		if got := state(number); got != want {
			t.Errorf("%d: %q", number, got)
		}
	}
	if (Dialect{}).State(mysql.ErrInvalidConn) != "" {
		t.Error("what is no answer of the server has a code")
	}
}

func TestRefusal(t *testing.T) {
	for _, test := range []struct {
		dialect Dialect
		schema  string
		refused bool
	}{{Dialect{"shop", false}, "", false}, {Dialect{"shop", false}, "shop", false}, {Dialect{"shop", false}, "Shop", true}, {Dialect{"shop", true}, "Shop", false}, {Dialect{"shop", true}, "mysql", true}} {
		if (test.dialect.Refusal(test.schema) != "") != test.refused {
			t.Errorf("%+v", test)
		}
	}
}
