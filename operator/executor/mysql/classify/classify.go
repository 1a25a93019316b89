// Package classify says what a statement of a plan can do: how much it can hurt, which lock it takes, whether it rewrites
// rows, whether it changes authority, and which tables it touches.
//
// Statements about tables and views are read with Vitess's grammar, all others by their words. It works by allow-list: a
// statement that is not known to be harmless is destructive, and one that cannot be read is, too. It only ever raises.
package classify

import (
	"slices"
	"strings"
	"sync"

	"vitess.io/vitess/go/vt/sqlparser"

	"ptah.run/ptah/operator/executor/mysql/dump"
	"ptah.run/ptah/operator/executor/mysql/sqltext"
	"ptah.run/ptah/operator/executor/pattern"
	"ptah.run/ptah/operator/plan/report"
)

// Lock classes in the words of ALTER TABLE's own LOCK clause, weakest first.
const (
	none      = "none"
	noLock    = "LOCK=NONE" // reads and writes go on, but for a moment at the start and at the end
	shared    = "LOCK=SHARED"
	exclusive = "LOCK=EXCLUSIVE"
)

var lockOrder = []string{none, noLock, shared, exclusive}

const (
	safe        = report.SeveritySafe
	warning     = report.SeverityWarning
	destructive = report.SeverityDestructive
)

// Classifier classifies the statements of one plan in order. It knows what the database holds before the plan.
type Classifier struct {
	tables  map[string]*dump.Table // by name in lower case; nil for one that cannot be read
	made    map[string]bool        // tables that the plan itself made and that are still empty
	foreign map[string]bool        // objects of other accounts, by kind and name in lower case
}

// New returns a classifier for a plan that starts from the given objects. foreign are those of them that another account
// made.
func New(entries []dump.Entry, foreign map[dump.Key]bool) *Classifier {
	c := &Classifier{tables: map[string]*dump.Table{}, made: map[string]bool{}, foreign: map[string]bool{}}
	for key, is := range foreign {
		c.foreign[key.Kind+" "+strings.ToLower(key.Name)] = is
	}
	for _, e := range entries {
		if e.Kind == dump.KindTable {
			// A table that cannot be read has no columns here, so nothing about it counts as known.
			c.tables[strings.ToLower(e.Name)], _ = dump.ParseTable(e.SQL)
		}
	}
	return c
}

// effect is what one statement does. Its zero value is harmless.
type effect struct {
	kind       string
	severity   report.Severity
	reason     string
	lock       string
	rewrite    report.RewriteRisk
	privileges []report.PrivilegeChange
}

// raise keeps the worse of two effects.
func (e *effect) raise(severity report.Severity, reason string) {
	if report.Worse(e.severity, severity) != e.severity {
		e.severity, e.reason = severity, reason
	}
}

func (e *effect) locks(class string) {
	if slices.Index(lockOrder, class) > slices.Index(lockOrder, e.lock) {
		e.lock = class
	}
}

var rewriteOrder = []report.RewriteRisk{report.RewriteNone, report.RewriteScan, report.RewriteMaybe, report.RewriteTable}

func (e *effect) rewrites(risk report.RewriteRisk) {
	if slices.Index(rewriteOrder, risk) > slices.Index(rewriteOrder, e.rewrite) {
		e.rewrite = risk
	}
}

// unknown is the effect of what is not on the list.
func (e *effect) unknown() {
	e.raise(destructive, "a statement of this kind is not known to be harmless")
	e.locks(exclusive)
	e.rewrites(report.RewriteMaybe)
}

// parser reads one statement strictly.
var parser = sync.OnceValues(func() (*sqlparser.Parser, error) {
	return sqlparser.New(sqlparser.Options{MySQLServerVersion: "8.4.6"})
})

func parse(sql string) sqlparser.Statement {
	p, err := parser()
	if err != nil {
		return nil
	}
	statement, err := p.ParseStrictDDL(sql)
	if err != nil {
		return nil
	}
	return statement
}

// Statement classifies the next statement of the plan.
func (c *Classifier) Statement(sql string) report.Statement {
	e := &effect{severity: safe, lock: none, rewrite: report.RewriteNone}
	tokens := sqltext.Tokens(sql)
	e.kind = kind(tokens)
	if !c.program(e, tokens) {
		c.table(e, parse(sql))
	}
	slices.Sort(e.privileges)
	return report.Statement{SQL: sql, Kind: e.kind, Severity: e.severity, Reason: e.reason, LockClass: e.lock,
		RewriteRisk: e.rewrite, PrivilegeChanges: slices.Compact(e.privileges)}
}

// kinds are the words of which a statement's kind is made; what stands between them (OR REPLACE, DEFINER) is passed
// over.
var kinds = []string{"TABLE", "VIEW", "FUNCTION", "PROCEDURE", "TRIGGER", "EVENT", "INDEX", "SESSION", "DATABASE", "USER", "ROLE"}

func kind(tokens []sqltext.Token) string {
	if len(tokens) == 0 || tokens[0].Kind != sqltext.Word {
		return "UNKNOWN"
	}
	verb := strings.ToUpper(tokens[0].Text)
	if verb == "CREATE" || verb == "ALTER" || verb == "DROP" || verb == "SET" {
		for _, t := range tokens[1:] {
			if t.Kind == sqltext.Word && slices.Contains(kinds, strings.ToUpper(t.Text)) {
				return verb + " " + strings.ToUpper(t.Text)
			}
			if t.Is("(") {
				break
			}
		}
	}
	return verb
}

// object returns the kind and the name of what a CREATE statement makes.
func object(tokens []sqltext.Token) (kind, name string) {
	place := len(head(tokens))
	if place == 0 {
		return "", ""
	}
	kind = strings.ToUpper(tokens[place].Text)
	place++
	for place < len(tokens) && (tokens[place].Is("IF") || tokens[place].Is("NOT") || tokens[place].Is("EXISTS")) {
		place++
	}
	return kind, qualified(tokens, place)
}

// qualified returns the name at a place, without the database before it.
func qualified(tokens []sqltext.Token, place int) string {
	if place+2 < len(tokens) && tokens[place+1].Is(".") {
		place += 2
	}
	if place >= len(tokens) {
		return ""
	}
	return tokens[place].Name()
}

// program classifies statements about routines, triggers, events and the session. It returns false for all others.
func (c *Classifier) program(e *effect, tokens []sqltext.Token) bool {
	for i, t := range head(tokens) {
		if t.Is("DEFINER") && tokens[i+1].Is("=") { // and not SQL SECURITY DEFINER
			e.privileges = append(e.privileges, report.PrivilegeDefiner)
		}
	}
	if kind, name := object(tokens); strings.HasPrefix(e.kind, "CREATE ") && c.foreign[kind+" "+strings.ToLower(name)] {
		e.privileges = append(e.privileges, report.PrivilegeDefiner) // what acted with one account's rights acts with another's
	}
	switch e.kind {
	case "CREATE FUNCTION", "CREATE PROCEDURE":
		if !invoker(tokens) {
			e.privileges = append(e.privileges, report.PrivilegeSecurityDefiner)
		}
	case "CREATE TRIGGER", "DROP TRIGGER":
		e.locks(exclusive)
		e.raise(warning, "changes what happens to rows that are written")
	case "CREATE EVENT":
		e.raise(warning, "the server runs its statements by itself")
	case "DROP EVENT":
		e.raise(warning, "the server no longer runs its statements")
	case "DROP FUNCTION", "DROP PROCEDURE":
		e.raise(destructive, "a routine goes, and the rights granted on it")
	case "SET SESSION":
		if !harmlessSettings(tokens) {
			e.unknown()
		}
	default:
		return false
	}
	return true
}

// head is the part of a CREATE statement before the word that says what is made; something always follows it.
func head(tokens []sqltext.Token) []sqltext.Token {
	for i, t := range tokens {
		if i > 0 && t.Kind == sqltext.Word && slices.Contains(kinds, strings.ToUpper(t.Text)) {
			return tokens[:i]
		}
	}
	return nil
}

// invoker says whether a routine states that it runs with its caller's rights. Anything that looks like it inside the
// body counts for nothing: the words stand before it. In a body they only follow one of the words at which this stops.
func invoker(tokens []sqltext.Token) bool {
	for i := 1; i+2 < len(tokens); i++ {
		switch {
		case tokens[i].Is("CREATE"), tokens[i].Is("ALTER"), tokens[i].Is("AS"), tokens[i].Is("BEGIN"), tokens[i].Is("RETURN"), tokens[i].Is("SELECT"), tokens[i].Is("INSERT"), tokens[i].Is("UPDATE"), tokens[i].Is("DELETE"):
			return false
		case tokens[i].Is("SQL") && tokens[i+1].Is("SECURITY"):
			return tokens[i+2].Is("INVOKER")
		}
	}
	return false
}

// sessionSettings are those that the planner sets for an object that remembers them.
var sessionSettings = []string{"sql_mode", "character_set_client", "collation_connection", "time_zone"}

func harmlessSettings(tokens []sqltext.Token) bool {
	for i := 2; i < len(tokens); i += 4 {
		if i+2 >= len(tokens) || !slices.Contains(sessionSettings, strings.ToLower(tokens[i].Text)) || !tokens[i+1].Is("=") {
			return false
		}
		if tokens[i+2].Kind != sqltext.Word && tokens[i+2].Kind != sqltext.String {
			return false
		}
		if i+3 < len(tokens) && !tokens[i+3].Is(",") {
			return false
		}
	}
	return len(tokens) > 4
}

// Protected says whether one of the statements names a table that the patterns match. In a
// statement of an unknown kind every name counts. A view or a routine that only reads a table does not touch it.
// entries are what the database holds: they say to which table a trigger belongs.
func Protected(statements []report.Statement, entries []dump.Entry, patterns []pattern.Pattern, database string) bool {
	triggers := map[string]string{}
	for _, e := range entries {
		if e.Kind == dump.KindTrigger {
			triggers[strings.ToLower(e.Name)] = e.On
		}
	}
	for _, s := range statements {
		for _, name := range tablesNamed(s, triggers) {
			if pattern.Match(patterns, database, name) {
				return true
			}
		}
	}
	return false
}

// tablesNamed returns the names in a statement that may be those of tables which it changes or locks.
func tablesNamed(s report.Statement, triggers map[string]string) []string {
	tokens := sqltext.Tokens(s.SQL)
	var out []string
	switch s.Kind {
	case "CREATE VIEW", "DROP VIEW", "CREATE FUNCTION", "CREATE PROCEDURE", "DROP FUNCTION", "DROP PROCEDURE", "CREATE EVENT", "DROP EVENT",
		"SET SESSION":
		return nil
	case "DROP TRIGGER":
		_, name := object(tokens)
		return []string{triggers[strings.ToLower(name)]}
	case "INSERT", "UPDATE", "DELETE":
		if s.RewriteRisk == report.RewriteNone { // the plain forms, which name one table
			return changed(tokens)
		}
	case "CREATE TRIGGER":
		for i, t := range tokens {
			if t.Is("ON") {
				return []string{qualified(tokens, i+1)}
			}
		}
		return nil
	case "ALTER TABLE", "CREATE TABLE", "DROP TABLE":
		// The table itself, and what a foreign key refers to: columns may be named like a table.
		for i, t := range tokens {
			if t.Is("TABLE") || t.Is("REFERENCES") {
				out = append(out, qualified(tokens, i+1))
			}
		}
		return out
	}
	for _, t := range tokens {
		if t.Kind == sqltext.Word || t.Kind == sqltext.Quoted {
			out = append(out, t.Name())
		}
	}
	return out
}
