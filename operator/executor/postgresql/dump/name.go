package dump

import (
	"slices"
	"strings"
)

// Name is a possibly schema-qualified name as the server wrote it: its parts are quoted where they need it.
type Name struct {
	Schema string // SQL text, or empty
	Object string // SQL text
}

// SQL returns the name as SQL text.
func (n Name) SQL() string {
	if n.Schema == "" {
		return n.Object
	}
	return n.Schema + "." + n.Object
}

// Plain returns schema and object without quotes, for comparison with what a person wrote.
func (n Name) Plain() (schema, object string) { return Unquote(n.Schema), Unquote(n.Object) }

// Unquote returns the identifier that SQL text stands for.
func Unquote(text string) string {
	if len(text) >= 2 && text[0] == '"' && text[len(text)-1] == '"' {
		return strings.ReplaceAll(text[1:len(text)-1], `""`, `"`)
	}
	return text
}

// Quote returns an identifier as SQL text. It always adds quotes, so that no list of keywords can be out of date.
func Quote(identifier string) string {
	return `"` + strings.ReplaceAll(identifier, `"`, `""`) + `"`
}

// cursor reads the head of one statement.
type cursor struct {
	tokens []Token
	at     int
}

func newCursor(statement string) *cursor { return &cursor{tokens: Tokens(statement)} }

func (c *cursor) done() bool { return c.at >= len(c.tokens) }

func (c *cursor) peek() Token {
	if c.done() {
		return Token{Kind: Symbol}
	}
	return c.tokens[c.at]
}

// accept passes the given keywords when all of them come next.
func (c *cursor) accept(words ...string) bool {
	if c.at+len(words) > len(c.tokens) {
		return false
	}
	for i, word := range words {
		if !c.tokens[c.at+i].Is(word) {
			return false
		}
	}
	c.at += len(words)
	return true
}

// optional passes each given phrase that comes next, in order.
func (c *cursor) optional(phrases ...string) {
	for _, phrase := range phrases {
		c.accept(strings.Fields(phrase)...)
	}
}

// inName says whether a token is part of a name with a dot, and so no keyword whatever its text is.
func inName(tokens []Token, i int) bool {
	return tokens[i].Kind == Word && (i > 0 && tokens[i-1].Is(".") || i+1 < len(tokens) && tokens[i+1].Is("."))
}

// find moves behind the next occurrence of a keyword outside parentheses.
func (c *cursor) find(words ...string) bool {
	depth := 0
	for i := c.at; i < len(c.tokens); i++ {
		token := c.tokens[i]
		switch {
		case token.Is("("):
			depth++
		case token.Is(")"):
			depth--
		case depth == 0 && !inName(c.tokens, i) && slices.ContainsFunc(words, token.Is):
			c.at = i + 1
			return true
		}
	}
	return false
}

// parts reads a dotted name.
func (c *cursor) parts() []string {
	var out []string
	for !c.done() {
		token := c.peek()
		if token.Kind != Word && token.Kind != Quoted {
			return out
		}
		out = append(out, token.Text)
		c.at++
		if !c.peek().Is(".") {
			return out
		}
		c.at++
	}
	return out
}

// name reads a name of one or two parts; extra parts (a column) are dropped.
func (c *cursor) name() (Name, bool) {
	return nameOf(c.parts())
}

func nameOf(parts []string) (Name, bool) {
	switch len(parts) {
	case 0:
		return Name{}, false
	case 1:
		return Name{Object: parts[0]}, true
	}
	return Name{Schema: parts[0], Object: parts[1]}, true
}

// until returns the statement's text from the cursor to the next token that fits, or to the end.
func (c *cursor) until(sql string, stop func(Token) bool) string {
	if c.done() {
		return ""
	}
	start := c.peek().Start
	end := len(sql)
	depth := 0
	for ; c.at < len(c.tokens); c.at++ {
		token := c.tokens[c.at]
		if depth == 0 && !inName(c.tokens, c.at) && stop(token) {
			end = token.Start
			break
		}
		switch {
		case token.Is("("):
			depth++
		case token.Is(")"):
			depth--
		}
	}
	return strings.TrimSpace(sql[start:end])
}
