package bench

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"regexp"
	"strings"
	"time"

	"ptah.run/ptah/qualification/lab/tenant"
)

// Statement is one statement that a database server says it was given.
type Statement struct {
	At   time.Time `json:"at"`
	User string    `json:"user"`
	SQL  string    `json:"sql"`
}

// String is the beginning of the statement: enough to recognise it in a message.
func (s Statement) String() string {
	words := strings.Fields(s.SQL)
	return strings.Join(words[:min(8, len(words))], " ")
}

// Journal is a server's own record of one database.
type Journal struct {
	// Reads are statements that change nothing; Writes are all others, unknown ones among them.
	Reads  []Statement
	Writes []Statement
	// AuthenticationFailures counts refused logins to the database.
	AuthenticationFailures int
}

// logLine is a line of PostgreSQL's jsonlog.
type logLine struct {
	Timestamp   string `json:"timestamp"`
	User        string `json:"user"`
	Database    string `json:"dbname"`
	Application string `json:"application_name"`
	Severity    string `json:"error_severity"`
	State       string `json:"state_code"`
	Message     string `json:"message"`
}

var (
	statementText = regexp.MustCompile(`(?s)^(?:statement|execute [^:]*): (.*)$`)
	firstWord     = regexp.MustCompile(`^(?:\s|--[^\n]*\n|/\*.*?\*/)*([A-Za-z]+)`)
)

// reading are the first words of statements that change no data and no schema.
var reading = map[string]bool{"SELECT": true, "SHOW": true, "SET": true, "BEGIN": true, "START": true, "COMMIT": true,
	"ROLLBACK": true, "LOCK": true, "DEALLOCATE": true, "DISCARD": true, "RESET": true, "CLOSE": true, "FETCH": true,
	"DECLARE": true, "SAVEPOINT": true, "RELEASE": true, "PREPARE": true, "EXECUTE": true, "END": true, "ABORT": true}

// readJournal keeps the lines of one database from a time on. A line that is not JSON is an error, except a last line
// without its end, which the server is still writing.
func readJournal(source io.Reader, database string, since time.Time) (*Journal, error) {
	journal := &Journal{}
	reader := bufio.NewReaderSize(source, 1<<20)
	for number := 1; ; number++ {
		text, err := reader.ReadString('\n')
		if errors.Is(err, io.EOF) {
			return journal, nil
		}
		if err != nil {
			return nil, fmt.Errorf("read the statement log: %w", err)
		}
		var line logLine
		if err := json.Unmarshal([]byte(text), &line); err != nil {
			return nil, fmt.Errorf("line %d of the statement log is not JSON: %w", number, err)
		}
		if line.Database != database || line.Application == tenant.HandApplication {
			continue
		}
		at, err := time.Parse("2006-01-02 15:04:05.000 MST", line.Timestamp)
		if err != nil {
			return nil, fmt.Errorf("line %d of the statement log has timestamp %q: %w", number, line.Timestamp, err)
		}
		if at.Before(since.Truncate(time.Millisecond)) {
			continue
		}
		journal.add(at, line)
	}
}

func (j *Journal) add(at time.Time, line logLine) {
	if line.Severity == "FATAL" && line.State == "28P01" {
		j.AuthenticationFailures++
		return
	}
	match := statementText.FindStringSubmatch(line.Message)
	if line.Severity != "LOG" || match == nil {
		return
	}
	statement := Statement{At: at, User: line.User, SQL: match[1]}
	if reads(match[1]) {
		j.Reads = append(j.Reads, statement)
		return
	}
	j.Writes = append(j.Writes, statement)
}

// reads is true for a statement that changes nothing. A WITH reads unless any of its parts may write; a word that only
// looks like one, in a name or a string, makes it count as a write, which errs on the safe side.
func reads(sql string) bool {
	word := firstWord.FindStringSubmatch(sql)
	if word == nil {
		return false
	}
	first := strings.ToUpper(word[1])
	return reading[first] || first == "WITH" && !modifying.MatchString(sql)
}

var modifying = regexp.MustCompile(`(?i)\b(INSERT|UPDATE|DELETE|MERGE)\b`)
