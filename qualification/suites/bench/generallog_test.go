package bench

import (
	"strings"
	"testing"
	"time"
)

const generalText = "/usr/sbin/mysqld, Version: 9.7.1 (Debian). started with:\n" +
	"Tcp port: 3306  Unix socket: /tmp/mysql.sock\n" +
	"Time                 Id Command    Argument\n" +
	"2026-11-29T10:00:00.000001Z\t    8 Connect\tapp@172.18.0.3 on app using SSL/TLS\n" +
	"2026-11-29T10:00:00.100000Z\t    8 Query\tSELECT 1\n" +
	"2026-11-29T10:00:00.200000Z\t    9 Connect\tapp_hand@172.18.0.1 on app using SSL/TLS\n" +
	"2026-11-29T10:00:01.000000Z\t    8 Query\tCREATE TABLE t (\n  id int\n)\n" +
	"2026-11-29T10:00:01.100000Z\t    9 Query\tDROP TABLE t\n" +
	"2026-11-29T10:00:02.000000Z\t    8 Prepare\tINSERT INTO t VALUES (?)\n" +
	"2026-11-29T10:00:02.100000Z\t    8 Execute\tINSERT INTO t VALUES (1)\n" +
	"2026-11-29T10:00:03.000000Z\t   10 Connect\tapp@172.18.0.3 on app using SSL/TLS\n" +
	"2026-11-29T10:00:03.000001Z\t   10 Connect\tAccess denied for user 'app'@'172.18.0.3' (using password: YES)\n" +
	"2026-11-29T10:00:04.000000Z\t    8 Quit\t\n" +
	"2026-11-29T10:00:05.000000Z\t    8 Connect\tother@172.18.0.3 on app using TCP/IP\n" +
	"2026-11-29T10:00:05.100000Z\t    8 Query\tDROP TABLE t\n" +
	"2026-11-29T10:00:06.000000Z\t    8 Query\tDROP"

func TestTheGeneralLogSeparatesWritesFromReads(t *testing.T) {
	cases := map[string]struct {
		account string
		since   time.Time
		reads   int
		writes  int
		refused int
	}{
		"should see every statement of the account alone":     {"app", time.Time{}, 1, 2, 1},
		"should see nothing of an account without a session":  {"third", time.Time{}, 0, 0, 0},
		"should see a session that another account took over": {"other", time.Time{}, 0, 1, 0},
		"should count from the given moment on":               {"app", time.Date(2026, 11, 29, 10, 0, 2, 0, time.UTC), 0, 1, 1},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			journal, err := readGeneralLog(strings.NewReader(generalText), c.account, c.since)
			if err != nil {
				t.Fatal(err)
			}
			if len(journal.Reads) != c.reads || len(journal.Writes) != c.writes || journal.AuthenticationFailures != c.refused {
				t.Errorf("got reads %v, writes %v, %d refused logins; want %d, %d, %d", journal.Reads, journal.Writes, journal.AuthenticationFailures, c.reads, c.writes, c.refused)
			}
		})
	}
	journal, err := readGeneralLog(strings.NewReader(generalText), "app", time.Time{})
	if err != nil || journal.Writes[0].SQL != "CREATE TABLE t (\n  id int\n)" {
		t.Errorf("a statement of several lines is %q (%v)", journal.Writes[0].SQL, err)
	}
}

func TestReadsMySQL(t *testing.T) {
	for sql, want := range map[string]bool{
		"SELECT GET_LOCK('a', 1)":           true,
		"SHOW CREATE TABLE t":               true,
		"SET SESSION sql_mode = ''":         true,
		"SET GLOBAL read_only = 1":          false,
		"SET @@GLOBAL.read_only = 1":        false,
		"SET PERSIST read_only = 1":         false,
		"ALTER TABLE t ADD COLUMN a int":    false,
		"LOCK TABLES t WRITE":               false,
		"/* x */ REPLACE INTO t VALUES (1)": false,
		"":                                  false,
	} {
		if readsMySQL(sql) != want {
			t.Errorf("readsMySQL(%q) is %t", sql, !want)
		}
	}
}

func FuzzGeneralLog(f *testing.F) {
	f.Add(generalText)
	f.Fuzz(func(t *testing.T, text string) {
		journal, err := readGeneralLog(strings.NewReader(text), "app", time.Time{})
		if err == nil && journal == nil {
			t.Fatal("neither a journal nor an error")
		}
	})
}
