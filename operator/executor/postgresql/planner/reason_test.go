package planner

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5/pgconn"

	"ptah.run/ptah/operator/executor/postgresql/dump"
	"ptah.run/ptah/operator/executor/postgresql/target"
)

func TestARefusalSaysWhyWithoutANameOfAnything(t *testing.T) {
	server := fmt.Errorf("run a statement on the clone: %w\nALTER TABLE secret", &pgconn.PgError{Code: "0A000", Message: `cannot alter "secret"`})
	incomplete := &incompleteError{now: []dump.Entry{table("secret integer")},
		left: []dump.Difference{{Key: dump.Key{Type: "TABLE", Schema: "public", Name: "secret"}}}}
	for name, test := range map[string]struct {
		failures []error
		want     string
	}{
		"nothing is known":          {[]error{errors.New("secret")}, ""},
		"the planner has a reason":  {[]error{server, because("a table holds rows")}, ": a table holds rows"},
		"the last strategy decides": {[]error{because("a table holds rows"), server}, ": PostgreSQL refuses a statement that it needs with SQLSTATE 0A000"},
		"something is left":         {[]error{incomplete}, ": what the known statements make of an object of type TABLE is not what is desired"},
	} {
		t.Run(name, func(t *testing.T) {
			if got := reasonOf(test.failures); got != test.want || strings.Contains(got, "secret") {
				t.Errorf("it says %q", got)
			}
			err := (&plan{}).refusal(test.failures)
			if text := err.Error(); !strings.Contains(text, test.want) || strings.Contains(text, "secret") {
				t.Errorf("the refusal says %q", text)
			}
			if detail := target.Detail(err); detail == "" {
				t.Error("a person at the terminal is told nothing more")
			}
		})
	}
}

func TestATableWithRowsIsNeverMadeAnew(t *testing.T) {
	tail := func(text string) dump.Entry { e := table("a integer"); e.Statements[0] += text; return e }
	sequence := entry("SEQUENCE", "ALTER TABLE public.t ALTER COLUMN a ADD GENERATED ALWAYS AS IDENTITY (SEQUENCE NAME public.s)")
	owned := entry("SEQUENCE OWNED BY", "ALTER SEQUENCE public.s OWNED BY public.t.a")
	for name, test := range map[string]struct {
		have  []dump.Entry
		want  dump.Entry
		roots int // -1 where it is refused
	}{
		"a plain table that is to have partitions":          {[]dump.Entry{tail("")}, tail("\nPARTITION BY RANGE (a)"), -1},
		"a partitioned table with another key":              {[]dump.Entry{tail("\nPARTITION BY RANGE (a)")}, tail("\nPARTITION BY LIST (a)"), 1},
		"a partitioned table that is to have none":          {[]dump.Entry{tail("\nPARTITION BY RANGE (a)")}, tail(""), 1},
		"a partitioned table that numbers its own rows":     {[]dump.Entry{tail("\nPARTITION BY RANGE (a)"), sequence}, tail("\nPARTITION BY LIST (a)"), -1},
		"a partitioned table that owns a sequence":          {[]dump.Entry{tail("\nPARTITION BY RANGE (a)"), owned}, tail("\nPARTITION BY LIST (a)"), 1},
		"a partitioned table that is the same in this only": {[]dump.Entry{tail("\nPARTITION BY RANGE (a)")}, tail("\nPARTITION BY RANGE (a)"), 0},
	} {
		t.Run(name, func(t *testing.T) {
			a := &attempt{have: test.have, want: []dump.Entry{test.want}}
			err := a.findRoots()
			if (err != nil) != (test.roots < 0) || err == nil && len(a.roots) != test.roots {
				t.Errorf("%v, %d tables", err, len(a.roots))
			}
		})
	}
	a := &attempt{want: []dump.Entry{table("a integer")}}
	if !a.losesRows(`DROP TABLE "public"."t"`) || a.losesRows(`DROP TABLE "public"."u"`) || a.losesRows(`ALTER TABLE "public"."t" DROP COLUMN a`) {
		t.Error("a statement that drops a desired table was not told from others")
	}
}
