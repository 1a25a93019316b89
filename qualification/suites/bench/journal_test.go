package bench

import (
	"strings"
	"testing"
	"time"
)

const journalText = `{"timestamp":"2026-11-29 10:00:00.000 UTC","user":"app","dbname":"app","error_severity":"LOG","message":"statement: SELECT 1"}
{"timestamp":"2026-11-29 10:00:01.000 UTC","user":"app","dbname":"app","error_severity":"LOG","message":"statement: -- a comment\nCREATE TABLE t (id int)"}
{"timestamp":"2026-11-29 10:00:02.000 UTC","user":"app","dbname":"app","error_severity":"LOG","message":"execute stmtcache_1: INSERT INTO t VALUES (1)"}
{"timestamp":"2026-11-29 10:00:03.000 UTC","user":"app","dbname":"app","application_name":"qualify-by-hand","error_severity":"LOG","message":"statement: DROP TABLE t"}
{"timestamp":"2026-11-29 10:00:04.000 UTC","user":"app","dbname":"other","error_severity":"LOG","message":"statement: DROP TABLE t"}
{"timestamp":"2026-11-29 10:00:05.000 UTC","user":"app","dbname":"app","error_severity":"FATAL","state_code":"28P01","message":"password authentication failed for user \"app\""}
{"timestamp":"2026-11-29 10:00:06.000 UTC","user":"app","dbname":"app","error_severity":"LOG","message":"connection received"}
{"timestamp":"2026-11-29 10:00:07.000 UTC","user":"app","db`

func TestJournalSeparatesWritesFromReads(t *testing.T) {
	cases := map[string]struct {
		database string
		since    time.Time
		reads    int
		writes   int
		refused  int
	}{
		"should see every statement but the suite's own":       {"app", time.Time{}, 1, 2, 1},
		"should see nothing of another database":               {"third", time.Time{}, 0, 0, 0},
		"should count from the given moment on":                {"app", time.Date(2026, 11, 29, 10, 0, 2, 0, time.UTC), 0, 1, 1},
		"should leave out what lies a millisecond before that": {"app", time.Date(2026, 11, 29, 10, 0, 2, 1e6, time.UTC), 0, 0, 1},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			journal, err := readJournal(strings.NewReader(journalText), c.database, c.since)
			if err != nil {
				t.Fatal(err)
			}
			if len(journal.Reads) != c.reads || len(journal.Writes) != c.writes || journal.AuthenticationFailures != c.refused {
				t.Errorf("got %d reads, %d writes, %d refused logins; want %d, %d, %d",
					len(journal.Reads), len(journal.Writes), journal.AuthenticationFailures, c.reads, c.writes, c.refused)
			}
		})
	}
}

func TestReads(t *testing.T) {
	for sql, want := range map[string]bool{
		"SELECT 1":                             true,
		"/* hint */ select 1":                  true,
		"WITH a AS (SELECT 1) SELECT * FROM a": true,
		"WITH a AS (DELETE FROM t RETURNING *) SELECT * FROM a": false,
		"with a as (select 1) insert into t select * from a":    false,
		"DROP TABLE t":       false,
		"DO $$ BEGIN END $$": false,
		"":                   false,
	} {
		if reads(sql) != want {
			t.Errorf("reads(%q) is %t", sql, !want)
		}
	}
}

func TestJournalRefusesALineThatIsNotJSON(t *testing.T) {
	if _, err := readJournal(strings.NewReader("not json\n"), "app", time.Time{}); err == nil {
		t.Fatal("a broken log was read without an error")
	}
}

func FuzzJournal(f *testing.F) {
	f.Add(journalText)
	f.Fuzz(func(t *testing.T, text string) {
		journal, err := readJournal(strings.NewReader(text), "app", time.Time{})
		if err == nil && journal == nil {
			t.Fatal("neither a journal nor an error")
		}
	})
}
