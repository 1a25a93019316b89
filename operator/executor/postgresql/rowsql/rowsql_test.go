package rowsql

import (
	"errors"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5/pgconn"

	"ptah.run/ptah/operator/executor/postgresql/dump"
	"ptah.run/ptah/operator/executor/rows"
)

func TestLiteral(t *testing.T) {
	for _, test := range []struct {
		class rows.Class
		text  string
		want  string
	}{
		{rows.Other, "it's", "'it''s'"}, {rows.Other, `a\'b`, `E'a\\''b'`}, {rows.Other, "1", "'1'"}, {rows.Other, "", "''"},
		{rows.Integer, "-7", "-7"}, {rows.Integer, "1e3", "'1e3'"}, {rows.Decimal, "1.10", "1.10"}, {rows.Decimal, "NaN", "'NaN'"},
		{rows.Decimal, "1; DROP", "'1; DROP'"}, {rows.BinaryData, "00ff", `E'\\x00ff'`}, {rows.JSON, `{"a":"\n"}`, `E'{"a":"\\n"}'`},
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
	for _, seed := range []string{"", "'", `\`, `\'`, "a'b\\", "$$", "--", "E'"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		if strings.ContainsRune(text, 0) {
			return // refused before
		}
		tokens := dump.Tokens("SELECT " + Text(text) + ", 1")
		if len(tokens) != 4 || tokens[1].Kind != dump.String {
			t.Fatalf("%q is written as %s", text, Text(text))
		}
	})
}

func TestState(t *testing.T) {
	for code, want := range map[string]string{"23505": "23505", "22P02": "22P02", "42501": "42501", "57014": "", "53200": "", "XX000": "", "08006": ""} {
		if got := (Dialect{}).State(errors.Join(&pgconn.PgError{Code: code})); got != want {
			t.Errorf("%s: %q", code, got)
		}
	}
	if (Dialect{}).State(errors.New("x")) != "" {
		t.Error("what is no answer of the server has a code")
	}
}

func TestHome(t *testing.T) {
	for _, test := range [][2]string{{"", "public"}, {"shop", "shop"}, {" shop , public", "shop"}} {
		if got := New(test[0]).Home(); got != test[1] {
			t.Errorf("%q: %q", test[0], got)
		}
	}
	for schema, refused := range map[string]bool{"": false, "shop": false, "pg_catalog": true, "information_schema": true} {
		if (New("").Refusal(schema) != "") != refused {
			t.Errorf("%q", schema)
		}
	}
}
