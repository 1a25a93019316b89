package executor_test

import (
	"bytes"
	"context"
	_ "embed"
	"fmt"
	"os"
	"regexp"
	"strings"
	"testing"

	"ptah.run/ptah/operator/executor/command"
	"ptah.run/ptah/operator/executor/postgresql/scratch"
)

//go:embed testdata/transcripts/postgresql.txt
var postgresqlTranscript string

//go:embed testdata/transcripts/mysql.txt
var mysqlTranscript string

// transcript is what a person sees on a terminal without colours: each command, its two outputs and its exit code.
type transcript struct {
	person *person
	text   strings.Builder
}

var (
	anyDigest  = regexp.MustCompile(`sha256:[0-9a-f]{64}`)
	anyVersion = regexp.MustCompile(`\b(PostgreSQL 17|MySQL 9\.7)\.\d+`)
)

// ptah runs one command line, whose words have no blanks.
func (s *transcript) ptah(line string) {
	p := s.person
	p.t.Helper()
	p.t.Chdir(p.dir)
	var out bytes.Buffer
	code := command.Run(p.t.Context(), strings.Fields(line), command.Streams{In: strings.NewReader(""), Out: &out, Err: &out,
		Getenv: func(name string) string { return p.env[name] }})
	fmt.Fprintf(&s.text, "$ ptah %s\n%s[exit code %d]\n\n", line, anyVersion.ReplaceAllString(anyDigest.ReplaceAllString(out.String(), "sha256:..."), "$1.N"), code)
}

// note says what happens between two commands.
func (s *transcript) note(text string) { fmt.Fprintf(&s.text, "# %s\n", text) }

// check compares with what is committed. What was seen is printed whole: it is the file to commit once it is right.
func (s *transcript) check(want string) {
	s.person.t.Helper()
	if got := s.text.String(); got != want {
		s.person.t.Errorf("the transcript is another one:\n%s", got)
	}
}

func TestProgramTranscript(t *testing.T) {
	server := targetServer(t)
	for _, name := range []string{"transcript", "transcriptother"} {
		if err := server.Create(t.Context(), name); err != nil {
			t.Fatal(err)
		}
	}
	p := newPerson(t, server, "transcript")
	s := &transcript{person: p}
	p.write("schema/001.sql", "CREATE TABLE customers (\n  id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,\n  email text NOT NULL\n);\n")
	p.write("schema/002.sql", "CREATE VIEW emails AS SELECT email FROM customers;\nGRANT SELECT ON emails TO reader;\n")
	s.ptah("schema drift --schema schema")
	s.ptah("schema plan --schema schema --output plan.json")
	s.ptah("schema apply --plan plan.json --dry-run")
	s.ptah("schema apply --plan plan.json")
	s.ptah("schema apply --plan plan.json --auto-approve")
	s.ptah("schema apply --plan plan.json --auto-approve")
	s.ptah("schema drift --schema schema --fail-on all")
	s.note("somebody adds a column by hand")
	ownerRuns(t, server, "transcript", "ALTER TABLE customers ADD COLUMN salary int")
	s.ptah("schema drift --schema schema --fail-on destructive")
	s.ptah("schema plan --schema schema")
	s.ptah("schema plan --schema schema --protected-table customers")
	s.note("errors")
	p.write("bad/001.sql", "CREATE TABLE a (\n  id bigint,\n  name txt\n);\n")
	s.ptah("schema plan --schema bad")
	s.ptah("schema plan --schema absent")
	s.ptah("schema apply --plan absent.json --auto-approve")
	s.ptah("schema plan --shcema schema")
	s.ptah("schema paln")
	for _, replace := range [][2]string{{"/transcript?", "/transcriptother?"}, {"/transcriptother?", "/absent?"}, {"app:none@/absent?", "nobody:none@/transcript?"}, {"postgres:", "oracle:"}} {
		s.note("the URL now says " + replace[1] + " in place of " + replace[0])
		p.env["PTAH_DB_URL"] = strings.Replace(p.env["PTAH_DB_URL"], replace[0], replace[1], 1)
		s.ptah("schema apply --plan plan.json --auto-approve")
	}
	s.check(postgresqlTranscript)
}

func ownerRuns(t *testing.T, server *scratch.Server, database, sql string) {
	t.Helper()
	conn, err := server.Owner(t.Context(), database)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close(context.WithoutCancel(t.Context())) }()
	if _, err := conn.Exec(t.Context(), sql); err != nil {
		t.Fatal(err)
	}
}

func TestMySQLProgramTranscript(t *testing.T) {
	server := mysqlServer(t)
	p := newMySQLPerson(t, server, "transcript")
	s := &transcript{person: p}
	p.write("schema/001.sql", "CREATE TABLE customers (\n  id bigint AUTO_INCREMENT PRIMARY KEY,\n  email varchar(100) NOT NULL\n);\nCREATE VIEW emails AS SELECT email FROM customers;\n")
	s.ptah("schema drift --schema schema")
	s.ptah("schema plan --schema schema --output plan.json")
	s.ptah("schema apply --plan plan.json --auto-approve --journal plan.journal")
	s.ptah("schema apply --plan plan.json --auto-approve")
	s.ptah("schema plan --schema schema")
	s.note("somebody adds a column by hand")
	if err := loadMySQL(t.Context(), server, "transcript", "ALTER TABLE customers ADD COLUMN salary int"); err != nil {
		t.Fatal(err)
	}
	s.ptah("schema drift --schema schema --fail-on destructive")
	s.ptah("schema plan --schema schema")
	s.ptah("schema plan --schema schema --transaction-mode all")
	s.note("errors")
	p.write("bad/001.sql", "CREATE TABLE a (id bigint);\nCREATE TABEL b (id bigint);\n")
	s.ptah("schema plan --schema bad")
	url := p.env["PTAH_DB_URL"]
	p.env["PTAH_DB_URL"] = strings.Replace(url, "app@/", "app:wrong@/", 1)
	s.note("the URL now has a password that is wrong")
	s.ptah("schema drift --schema schema")
	p.env["PTAH_DB_URL"] = strings.Replace(url, "/transcript", "/absent", 1)
	s.note("the URL now has a database that is absent")
	s.ptah("schema drift --schema schema")
	if err := os.Remove(p.path("plan.journal")); err != nil {
		t.Error(err)
	}
	s.check(mysqlTranscript)
}
