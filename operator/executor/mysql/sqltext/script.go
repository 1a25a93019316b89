package sqltext

import "strings"

// Piece is a part of an SQL file that is sent to the server in one go. It holds one statement where the file sets a
// delimiter of its own, and otherwise as many as the file has: the server itself finds their ends, bodies of routines
// included.
type Piece struct {
	SQL string
	// Line is the line of the file at which the piece's first statement starts, from 1.
	Line int
}

// Script cuts a file at its DELIMITER lines, which are a command of the mysql client and which the server does not know.
func Script(text string) []Piece {
	var out []Piece
	delimiter, start := ";", 0
	add := func(from, to int) {
		if tokens := Tokens(text[from:to]); len(tokens) > 0 {
			out = append(out, Piece{text[from:to], 1 + strings.Count(text[:from+tokens[0].Start], "\n")})
		}
	}
	l := lexer{text: text}
	between := true // statements: where a DELIMITER command may stand, while in one the word may be a name
	for {
		l.skip()
		if l.at >= len(text) {
			add(start, len(text))
			return out
		}
		if next, end, ok := delimiterLine(text, l.at); ok && between {
			add(start, l.at)
			delimiter, start, l.at = next, end, end
			continue
		}
		if delimiter != ";" && strings.HasPrefix(text[l.at:], delimiter) {
			add(start, l.at)
			l.at += len(delimiter)
			start, between = l.at, true
			continue
		}
		from := l.at
		between = delimiter == ";" && text[from] == ';'
		if l.take() == Word && delimiter != ";" { // a delimiter may start inside what looks like a word
			if i := strings.Index(text[from:l.at], delimiter); i > 0 {
				l.at = from + i
			}
		}
	}
}

// delimiterLine reads a DELIMITER command at a place that begins a line.
func delimiterLine(text string, at int) (delimiter string, end int, ok bool) {
	if strings.TrimSpace(text[strings.LastIndexByte(text[:at], '\n')+1:at]) != "" {
		return "", 0, false
	}
	line := text[at:]
	if i := strings.IndexByte(line, '\n'); i >= 0 {
		line = line[:i]
	}
	words := strings.Fields(line)
	if len(words) != 2 || !strings.EqualFold(words[0], "delimiter") {
		return "", 0, false
	}
	return words[1], at + len(line), true
}
