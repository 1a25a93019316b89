package dump

import "strings"

// Kind is the kind of a token.
type Kind int

// Token kinds. Comments and blanks are not tokens.
const (
	Word   Kind = iota // an unquoted identifier, keyword or number
	Quoted             // a "quoted" identifier
	String             // a string constant of any form
	Symbol             // one punctuation or operator character
)

// Token is one token of SQL text. Start and End are byte offsets.
type Token struct {
	Kind       Kind
	Text       string
	Start, End int
}

// Is says whether the token is the given keyword or symbol. Keywords are compared without case.
func (t Token) Is(text string) bool {
	switch t.Kind {
	case Word:
		return strings.EqualFold(t.Text, text)
	case Symbol:
		return t.Text == text
	}
	return false
}

// lexer walks over SQL as PostgreSQL reads it with standard_conforming_strings on, which pg_dump sets.
type lexer struct {
	text string
	pos  int
	// comment is called with each line comment at the place where it stands, its "--" included.
	comment func(text string, start, end int)
}

// Tokens returns the tokens of SQL text. Text that ends inside a string or comment ends the last token there.
func Tokens(sql string) []Token {
	l := lexer{text: sql}
	var out []Token
	for {
		token, ok := l.next()
		if !ok {
			return out
		}
		out = append(out, token)
	}
}

func (l *lexer) next() (Token, bool) {
	l.skip()
	if l.pos >= len(l.text) {
		return Token{}, false
	}
	start := l.pos
	kind := l.scan()
	return Token{Kind: kind, Text: l.text[start:l.pos], Start: start, End: l.pos}, true
}

// skip passes blanks and comments.
func (l *lexer) skip() {
	for l.pos < len(l.text) {
		rest := l.text[l.pos:]
		switch {
		case strings.ContainsRune(" \t\r\n\f\v", rune(rest[0])):
			l.pos++
		case strings.HasPrefix(rest, "--"):
			start := l.pos
			l.pos += lineLength(rest)
			if l.comment != nil {
				l.comment(l.text[start:l.pos], start, l.pos)
			}
		case strings.HasPrefix(rest, "/*"):
			l.blockComment()
		default:
			return
		}
	}
}

func lineLength(text string) int {
	if i := strings.IndexByte(text, '\n'); i >= 0 {
		return i
	}
	return len(text)
}

// blockComment passes a comment that may hold others.
func (l *lexer) blockComment() {
	depth := 0
	for l.pos < len(l.text) {
		rest := l.text[l.pos:]
		switch {
		case strings.HasPrefix(rest, "/*"):
			depth++
			l.pos += 2
		case strings.HasPrefix(rest, "*/"):
			depth--
			l.pos += 2
			if depth == 0 {
				return
			}
		default:
			l.pos++
		}
	}
}

func (l *lexer) scan() Kind {
	c := l.text[l.pos]
	switch {
	case c == '\'':
		l.quoted('\'', false)
		return String
	case c == '"':
		l.quoted('"', false)
		return Quoted
	case c == '$':
		if l.dollar() {
			return String
		}
		l.pos++
		return Symbol
	case isWordByte(c):
		return l.word()
	}
	l.pos++
	return Symbol
}

// quoted passes a quoted text whose quote is doubled inside; backslash escapes are for E” strings.
func (l *lexer) quoted(quote byte, backslash bool) {
	l.pos++
	for l.pos < len(l.text) {
		switch c := l.text[l.pos]; {
		case backslash && c == '\\':
			l.pos += 2
		case c == quote && l.pos+1 < len(l.text) && l.text[l.pos+1] == quote:
			l.pos += 2
		case c == quote:
			l.pos++
			return
		default:
			l.pos++
		}
	}
	l.pos = min(l.pos, len(l.text))
}

// dollar passes a $tag$ string, and says false where there is none.
func (l *lexer) dollar() bool {
	rest := l.text[l.pos:]
	end := 1
	for end < len(rest) && isWordByte(rest[end]) && rest[end] != '$' {
		end++
	}
	if end >= len(rest) || rest[end] != '$' || end > 1 && rest[1] >= '0' && rest[1] <= '9' {
		return false
	}
	tag := rest[:end+1]
	closing := strings.Index(rest[len(tag):], tag)
	if closing < 0 {
		l.pos = len(l.text)
		return true
	}
	l.pos += 2*len(tag) + closing
	return true
}

// word passes an identifier, keyword or number, or a string with a letter before its quote.
func (l *lexer) word() Kind {
	start := l.pos
	for l.pos < len(l.text) && (isWordByte(l.text[l.pos]) || l.text[l.pos] == '$') {
		l.pos++
	}
	word, rest := l.text[start:l.pos], l.text[l.pos:]
	switch {
	case strings.HasPrefix(rest, "'") && len(word) == 1 && strings.ContainsAny(word, "eEbBxXnN"):
		l.quoted('\'', word == "e" || word == "E")
		return String
	case (word == "U" || word == "u") && strings.HasPrefix(rest, "&'"):
		l.pos++
		l.quoted('\'', false)
		return String
	case (word == "U" || word == "u") && strings.HasPrefix(rest, `&"`):
		l.pos++
		l.quoted('"', false)
		return Quoted
	}
	return Word
}

func isWordByte(c byte) bool {
	return c == '_' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c >= 0x80
}
