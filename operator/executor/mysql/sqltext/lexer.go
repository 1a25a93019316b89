// Package sqltext reads MySQL's SQL as far as names, strings, comments and statements go. It knows no grammar beyond that,
// so it works on everything the server prints and on everything a person writes.
package sqltext

import "strings"

// Kind of a token.
type Kind int

// Kinds. Comments are no tokens; what stands inside a version comment (/*!80016 ... */) are tokens like any others, for
// the server reads them.
const (
	Word    Kind = iota // a word, a number, or a user variable's sign
	Quoted              // a name in backticks
	String              // a string in single or double quotes, without what stands before it
	Hint                // the start of a version comment
	HintEnd             // the end of one
	Symbol              // any other character
)

// Token is one piece of a statement, with its place in bytes.
type Token struct {
	Kind       Kind
	Text       string
	Start, End int
}

// Is says whether the token is that word or symbol; letter case does not matter.
func (t Token) Is(text string) bool {
	return (t.Kind == Word || t.Kind == Symbol) && strings.EqualFold(t.Text, text)
}

// Name returns the plain name that a word or a quoted name stands for, also one in double quotes, as under ANSI_QUOTES.
func (t Token) Name() string {
	switch {
	case t.Kind == Quoted:
		return Unquote(t.Text)
	case t.Kind == String && len(t.Text) > 1 && t.Text[0] == '"':
		return strings.ReplaceAll(t.Text[1:len(t.Text)-1], `""`, `"`)
	}
	return t.Text
}

// Quote writes a plain name as SQL.
func Quote(name string) string { return "`" + strings.ReplaceAll(name, "`", "``") + "`" }

// Unquote returns the plain name behind a name in backticks.
func Unquote(text string) string {
	if len(text) < 2 || text[0] != '`' || text[len(text)-1] != '`' {
		return text
	}
	return strings.ReplaceAll(text[1:len(text)-1], "``", "`")
}

// Literal writes a text as a string of SQL, in the default SQL mode.
func Literal(text string) string {
	return "'" + strings.NewReplacer(`\`, `\\`, "'", "''", "\n", `\n`, "\r", `\r`, "\x00", `\0`, "\x1a", `\Z`).Replace(text) + "'"
}

// Tokens returns the tokens of a text.
func Tokens(text string) []Token {
	l := lexer{text: text}
	var out []Token
	for {
		token, ok := l.next()
		if !ok {
			return out
		}
		out = append(out, token)
	}
}

type lexer struct {
	text string
	at   int
	hint bool
}

func (l *lexer) next() (Token, bool) {
	l.skip()
	if l.at >= len(l.text) {
		return Token{}, false
	}
	start := l.at
	kind := l.take()
	return Token{kind, l.text[start:l.at], start, l.at}, true
}

// skip passes over blanks and comments.
func (l *lexer) skip() {
	for l.at < len(l.text) {
		rest := l.text[l.at:]
		switch {
		case blank(rest[0]):
			l.at++
		case rest[0] == '#', strings.HasPrefix(rest, "--") && (len(rest) == 2 || rest[2] <= ' '):
			l.to(rest, "\n", 0)
		case strings.HasPrefix(rest, "/*") && !strings.HasPrefix(rest, "/*!"):
			l.to(rest, "*/", 2)
		default:
			return
		}
	}
}

// to moves behind the next end, searched from an offset, or to the end of the text.
func (l *lexer) to(rest, end string, from int) {
	if i := strings.Index(rest[from:], end); i >= 0 {
		l.at += from + i + len(end)
		return
	}
	l.at = len(l.text)
}

func blank(c byte) bool { return c == ' ' || c >= '\t' && c <= '\r' }

func wordByte(c byte) bool {
	return c == '_' || c == '$' || c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= 0x80
}

// take moves behind one token and returns its kind.
func (l *lexer) take() Kind {
	rest := l.text[l.at:]
	switch c := rest[0]; {
	case strings.HasPrefix(rest, "/*!"):
		l.at += 3
		for l.at < len(l.text) && l.text[l.at] >= '0' && l.text[l.at] <= '9' {
			l.at++
		}
		l.hint = true
		return Hint
	case l.hint && strings.HasPrefix(rest, "*/"):
		l.at += 2
		l.hint = false
		return HintEnd
	case c == '`':
		l.quoted(c, false)
		return Quoted
	case c == '\'' || c == '"':
		l.quoted(c, true)
		return String
	case wordByte(c):
		for l.at < len(l.text) && wordByte(l.text[l.at]) {
			l.at++
		}
		return Word
	}
	l.at++
	return Symbol
}

// quoted moves behind a quoted text; a doubled quote and, in strings, a backslash do not end it.
func (l *lexer) quoted(quote byte, escapes bool) {
	for l.at++; l.at < len(l.text); l.at++ {
		switch c := l.text[l.at]; {
		case c == '\\' && escapes:
			l.at++
		case c == quote && l.at+1 < len(l.text) && l.text[l.at+1] == quote:
			l.at++
		case c == quote:
			l.at++
			return
		}
	}
	l.at = len(l.text)
}
