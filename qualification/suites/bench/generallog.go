package bench

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"regexp"
	"strings"
	"time"
)

// entryHead begins an entry of MySQL's general log: time, session, command and the first line of its argument. What
// does not begin so goes on with the argument of the entry before. A statement whose own text has such a line counts as
// one more, which errs on the safe side.
var entryHead = regexp.MustCompile(`^(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d+Z)\s+(\d+) ([A-Z][A-Za-z ]*)(?:\t(.*))?$`)

var (
	connected  = regexp.MustCompile(`^([^@]*)@\S+ on (\S*) using `)
	turnedAway = regexp.MustCompile(`^Access denied for user '([^']*)'@`)
)

// generalEntry is one entry of the log.
type generalEntry struct {
	at               time.Time
	session, command string
	argument         []string
}

// readGeneralLog keeps what one account was given from a time on. The account of a database has the database's name. A
// last line without its end is left out, which the server is still writing.
func readGeneralLog(source io.Reader, account string, since time.Time) (*Journal, error) {
	reader := generalReader{account: account, since: since.Truncate(time.Microsecond), journal: &Journal{}, users: map[string]string{}}
	lines := bufio.NewReaderSize(source, 1<<20)
	var current *generalEntry
	for {
		text, err := lines.ReadString('\n')
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, fmt.Errorf("read the statement log: %w", err)
		}
		text = strings.TrimSuffix(text, "\n")
		head := entryHead.FindStringSubmatch(text)
		if head == nil {
			if current != nil {
				current.argument = append(current.argument, text)
			}
			continue
		}
		at, err := time.Parse(time.RFC3339Nano, head[1])
		if err != nil {
			return nil, fmt.Errorf("the statement log has the timestamp %q: %w", head[1], err)
		}
		reader.take(current)
		current = &generalEntry{at: at, session: head[2], command: head[3], argument: []string{head[4]}}
	}
	reader.take(current)
	return reader.journal, nil
}

// generalReader follows which session is whose.
type generalReader struct {
	account string
	since   time.Time
	journal *Journal
	users   map[string]string
}

func (r *generalReader) take(entry *generalEntry) {
	if entry == nil {
		return
	}
	text := strings.Join(entry.argument, "\n")
	switch entry.command {
	case "Connect":
		if away := turnedAway.FindStringSubmatch(text); away != nil {
			if away[1] == r.account && !entry.at.Before(r.since) {
				r.journal.AuthenticationFailures++
			}
			return
		}
		r.users[entry.session] = ""
		if made := connected.FindStringSubmatch(text); made != nil {
			r.users[entry.session] = made[1]
		}
	case "Query", "Execute":
		if r.users[entry.session] != r.account || entry.at.Before(r.since) {
			return
		}
		statement := Statement{At: entry.at, User: r.account, SQL: text}
		if readsMySQL(text) {
			r.journal.Reads = append(r.journal.Reads, statement)
		} else {
			r.journal.Writes = append(r.journal.Writes, statement)
		}
	}
}

// readingMySQL are first words of statements that change no data and no schema.
var readingMySQL = map[string]bool{"SELECT": true, "SHOW": true, "SET": true, "BEGIN": true, "START": true, "COMMIT": true,
	"ROLLBACK": true, "USE": true, "EXPLAIN": true, "DESCRIBE": true, "DESC": true, "UNLOCK": true, "KILL": true, "SAVEPOINT": true,
	"RELEASE": true}

// changesServer are settings that outlive the session.
var changesServer = regexp.MustCompile(`(?i)^\W*SET\s+(@@)?(GLOBAL|PERSIST)`)

func readsMySQL(sql string) bool {
	word := firstWord.FindStringSubmatch(sql)
	if word == nil {
		return false
	}
	first := strings.ToUpper(word[1])
	return readingMySQL[first] && !changesServer.MatchString(sql) || first == "WITH" && !modifying.MatchString(sql)
}
