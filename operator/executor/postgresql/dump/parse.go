package dump

import (
	"errors"
	"fmt"
	"regexp"
	"strings"
)

// Entry is one object of a dump, or one fact about an object (its comment, its grants, its row security).
type Entry struct {
	// Type, Schema and Name stand as pg_dump prints them above the object. They identify and order entries; they are
	// not quoted, so SQL is never made of them.
	Type, Schema, Name string
	// AccessMethod is the table access method in force, where it is not the server's default.
	AccessMethod string
	// Statements are the statements of the object in order, without terminators.
	Statements []string
}

// Key identifies an entry among the entries of a dump. Two entries may share one where names hold blanks.
type Key struct{ Type, Schema, Name string }

// Key returns the entry's key.
func (e Entry) Key() Key { return Key{e.Type, e.Schema, e.Name} }

// SQL returns all statements, each with its terminator.
func (e Entry) SQL() string {
	if len(e.Statements) == 0 {
		return ""
	}
	return strings.Join(e.Statements, ";\n") + ";\n"
}

var header = regexp.MustCompile(`^-- Name: (.*); Type: ([A-Z ]+); Schema: (.*); Owner:`)

// Parse reads the plain output of pg_dump for a schema. Entries stand in the order of the dump, which is an order in
// which they can be created. Settings, psql meta commands and comments belong to no entry and are left out.
func Parse(text string) ([]Entry, error) {
	if !strings.Contains(text, "-- PostgreSQL database dump") {
		return nil, errors.New("read the dump: this is not the output of pg_dump")
	}
	if !strings.Contains(text, "-- PostgreSQL database dump complete") {
		return nil, errors.New("read the dump: the output of pg_dump is cut off")
	}
	text = dropMetaCommands(text)
	p := parser{}
	l := lexer{text: text, comment: p.comment}
	for {
		token, ok := l.next()
		if !ok {
			break
		}
		p.tokens = append(p.tokens, token)
	}
	p.flush(text)
	if p.err != nil {
		return nil, fmt.Errorf("read the dump: %w", p.err)
	}
	return p.entries, nil
}

// dropMetaCommands blanks the two commands that pg_dump writes for psql around its output. They stand on lines of
// their own outside any statement: before the first header and after the last statement.
func dropMetaCommands(text string) string {
	lines := strings.SplitAfter(text, "\n")
	blank := func(i int) bool {
		if strings.HasPrefix(lines[i], `\restrict `) || strings.HasPrefix(lines[i], `\unrestrict `) {
			lines[i] = "\n"
			return true
		}
		return false
	}
	for i := range lines {
		if blank(i) || strings.HasPrefix(lines[i], "-- Name: ") {
			break
		}
	}
	for i := len(lines) - 1; i >= 0; i-- {
		if blank(i) || strings.HasPrefix(lines[i], "-- PostgreSQL database dump complete") {
			break
		}
	}
	return strings.Join(lines, "")
}

type parser struct {
	entries []Entry
	// pending holds the tokens since the last header.
	tokens []Token
	// cuts are the headers found, with the number of tokens before each.
	cuts []cut
	err  error
}

type cut struct {
	tokens int
	entry  Entry
}

// comment sees every comment outside strings, so a header inside a function body or a comment text is not one.
func (p *parser) comment(text string, _, _ int) {
	match := header.FindStringSubmatch(text)
	if match == nil {
		if strings.HasPrefix(text, "-- Name: ") {
			p.err = errors.New("an object header has an unknown form")
		}
		return
	}
	p.cuts = append(p.cuts, cut{len(p.tokens), Entry{Name: match[1], Type: match[2], Schema: match[3]}})
}

// flush turns cuts and tokens into entries.
func (p *parser) flush(text string) {
	method := ""
	if len(p.cuts) > 0 {
		for _, s := range statementSpans(text, p.tokens[:p.cuts[0].tokens]) {
			method = settingOf(text[s.start:s.end], method)
		}
	}
	for i, c := range p.cuts {
		end := len(p.tokens)
		if i+1 < len(p.cuts) {
			end = p.cuts[i+1].tokens
		}
		entry := c.entry
		if entry.Type == "TABLE" || entry.Type == "MATERIALIZED VIEW" {
			entry.AccessMethod = method
		}
		for _, s := range statementSpans(text, p.tokens[c.tokens:end]) {
			statement := strings.TrimSpace(text[s.start:s.end])
			if strings.HasPrefix(statement, "SET default_") {
				method = settingOf(statement, method)
				continue
			}
			entry.Statements = append(entry.Statements, statement)
		}
		p.entries = append(p.entries, entry)
	}
}

// settingOf follows the table access method that pg_dump sets between objects; it belongs to the objects that come
// after it.
func settingOf(statement, method string) string {
	c := newCursor(statement)
	if !c.accept("SET", "default_table_access_method", "=") {
		return method
	}
	name := Unquote(c.peek().Text)
	if name == "heap" || c.peek().Kind == String {
		return ""
	}
	return name
}
