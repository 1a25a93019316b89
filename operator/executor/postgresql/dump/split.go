package dump

import "strings"

// Split cuts SQL text into statements without their terminators. A semicolon inside parentheses, a string, a comment
// or the body of an SQL function (BEGIN ATOMIC ... END) ends nothing.
func Split(sql string) []string {
	var out []string
	for _, span := range statementSpans(sql, Tokens(sql)) {
		out = append(out, strings.TrimSpace(sql[span.start:span.end]))
	}
	return out
}

// span is a half-open range of bytes.
type span struct{ start, end int }

func statementSpans(sql string, tokens []Token) []span {
	var out []span
	parens, atomic := 0, 0
	first := -1 // index of the first token of the statement
	for i, token := range tokens {
		if first < 0 && !token.Is(";") {
			first = i
		}
		switch {
		case token.Is("(") || token.Is("["):
			parens++
		case token.Is(")") || token.Is("]"):
			parens = max(parens-1, 0)
		case token.Is("BEGIN") && i+1 < len(tokens) && tokens[i+1].Is("ATOMIC"):
			atomic++
		case atomic > 0 && token.Is("CASE"):
			atomic++
		case atomic > 0 && token.Is("END"):
			atomic--
		case token.Is(";") && parens == 0 && atomic == 0:
			if first >= 0 {
				out = append(out, span{tokens[first].Start, token.Start})
			}
			first = -1
		}
	}
	if first >= 0 {
		out = append(out, span{tokens[first].Start, tokens[len(tokens)-1].End})
	}
	return out
}
