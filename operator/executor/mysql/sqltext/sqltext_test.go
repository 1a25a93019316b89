package sqltext

import (
	"slices"
	"strings"
	"testing"
)

func texts(tokens []Token) []string {
	var out []string
	for _, t := range tokens {
		out = append(out, t.Text)
	}
	return out
}

func TestTokens(t *testing.T) {
	for name, test := range map[string]struct {
		sql  string
		want []string
	}{
		"names, strings and symbols":             {"CREATE TABLE `a``b`(x INT DEFAULT 'it''s')", []string{"CREATE", "TABLE", "`a``b`", "(", "x", "INT", "DEFAULT", "'it''s'", ")"}},
		"a backslash before a quote":             {`'a\'b' c`, []string{`'a\'b'`, "c"}},
		"a backslash in a name is a character":   {"`a\\` b", []string{"`a\\`", "b"}},
		"comments are left out":                  {"a -- b\n# c\n/* d */ e", []string{"a", "e"}},
		"two minus signs without a blank":        {"5--3", []string{"5", "-", "-", "3"}},
		"a version comment is read":              {"a /*!80023 INVISIBLE */ b", []string{"a", "/*!80023", "INVISIBLE", "*/", "b"}},
		"a multiplication before a division":     {"a */ b", []string{"a", "*", "/", "b"}},
		"a string that does not end":             {"'abc", []string{"'abc"}},
		"a comment that does not end":            {"a /* b", []string{"a"}},
		"an introducer":                          {"_utf8mb4'x'", []string{"_utf8mb4", "'x'"}},
		"a comment sign inside a string is text": {"'/* -- #' x", []string{"'/* -- #'", "x"}},
	} {
		if got := texts(Tokens(test.sql)); !slices.Equal(got, test.want) {
			t.Errorf("%s: %q gives %q", name, test.sql, got)
		}
	}
}

func TestNamesSurviveQuoting(t *testing.T) {
	for _, name := range []string{"a", "a`b", "`", "``", "a b", "ü", "it's", `\`} {
		tokens := Tokens(Quote(name))
		if len(tokens) != 1 || tokens[0].Name() != name {
			t.Errorf("%q becomes %q", name, texts(tokens))
		}
	}
	for _, text := range []string{"it's", `a\b`, "a\nb", "';DROP TABLE t;'"} {
		if tokens := Tokens(Literal(text)); len(tokens) != 1 || tokens[0].Kind != String {
			t.Errorf("%q becomes %q", text, texts(tokens))
		}
	}
}

func TestScript(t *testing.T) {
	for name, test := range map[string]struct {
		text string
		want []Piece
	}{
		"nothing":                                   {" -- e\n", nil},
		"statements with a semicolon":               {"a;\nb;\n", []Piece{{"a;\nb;\n", 1}}},
		"a body between two delimiters":             {"a;\nDELIMITER //\nb; c //\nd;//\nDELIMITER ;\ne;", []Piece{{"a;\n", 1}, {"\nb; c ", 3}, {"\nd;", 4}, {"\ne;", 6}}},
		"the word as a column on a line of its own": {"CREATE TABLE t (\n delimiter x,\n b int)", []Piece{{"CREATE TABLE t (\n delimiter x,\n b int)", 1}}},
		"such a column between two delimiters":      {"DELIMITER //\nCREATE TABLE t (\n delimiter x\n)//\nDELIMITER ;\n", []Piece{{"\nCREATE TABLE t (\n delimiter x\n)", 2}}},
		"a command behind a comment":                {"a; -- b\nDELIMITER //\nc;//", []Piece{{"a; -- b\n", 1}, {"\nc;", 3}}},
		"the word as a column":                      {"SELECT delimiter FROM t;", []Piece{{"SELECT delimiter FROM t;", 1}}},
		"a delimiter inside a string":               {"delimiter $$\nSELECT '$$' $$", []Piece{{"\nSELECT '$$' ", 2}}},
		"a delimiter behind a word":                 {"delimiter $$\nEND$$\nb$$", []Piece{{"\nEND", 2}, {"\nb", 3}}},
		"a delimiter inside a comment":              {"delimiter //\na /* // */ b//", []Piece{{"\na /* // */ b", 2}}},
	} {
		if got := Script(test.text); !slices.Equal(got, test.want) {
			t.Errorf("%s: %q gives %+v", name, test.text, got)
		}
	}
}

func FuzzTokens(f *testing.F) {
	for _, seed := range []string{"CREATE TABLE `a` (b int) /*!50100 PARTITION BY HASH (b) */", "'\\", "DELIMITER //\na//", "`", "\"a\"\"b\""} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		last := 0
		for _, token := range Tokens(text) {
			if token.Start < last || token.End <= token.Start || token.End > len(text) || text[token.Start:token.End] != token.Text {
				t.Fatalf("token %+v after %d", token, last)
			}
			last = token.End
		}
		for _, piece := range Script(text) {
			if !strings.Contains(text, piece.SQL) || piece.Line < 1 {
				t.Fatalf("piece %+v is not in the text", piece)
			}
		}
	})
}
