package dump

import (
	"fmt"
	"strings"

	"ptah.run/ptah/operator/executor/mysql/sqltext"
)

// WithoutDefiner takes the clause DEFINER=user@host out of the head of a CREATE statement and returns the account in it
// as user@host. Who owns an object is not planned: it belongs to whoever makes it.
func WithoutDefiner(sql string) (without, definer string) {
	tokens := sqltext.Tokens(sql)
	for i, t := range tokens {
		switch {
		case t.Is("VIEW"), t.Is("FUNCTION"), t.Is("PROCEDURE"), t.Is("TRIGGER"), t.Is("EVENT"):
			return sql, ""
		case t.Is("DEFINER") && i+4 < len(tokens) && tokens[i+1].Is("=") && tokens[i+3].Is("@"):
			return strings.TrimRight(sql[:t.Start], " ") + sql[tokens[i+4].End:], tokens[i+2].Name() + "@" + tokens[i+4].Name()
		}
	}
	return sql, ""
}

// WithoutCounter takes the option AUTO_INCREMENT=n out of a CREATE TABLE statement as the server prints it: it says how
// far the rows have come, which is not schema.
func WithoutCounter(sql string) (string, error) {
	tokens := sqltext.Tokens(sql)
	_, end, err := body(tokens)
	if err != nil {
		return "", err
	}
	for i := end; i+2 < len(tokens); i++ {
		if tokens[i].Is("AUTO_INCREMENT") && tokens[i+1].Is("=") {
			return strings.TrimRight(sql[:tokens[i].Start], " ") + sql[tokens[i+2].End:], nil
		}
	}
	return sql, nil
}

// body returns the places of the two parentheses around the definitions of a CREATE TABLE statement.
func body(tokens []sqltext.Token) (start, end int, err error) {
	if len(tokens) < 4 || !tokens[0].Is("CREATE") || !tokens[1].Is("TABLE") || !tokens[3].Is("(") {
		return 0, 0, fmt.Errorf("the server describes a table in an unknown form")
	}
	depth := 0
	for i := 3; i < len(tokens); i++ {
		switch {
		case tokens[i].Is("("):
			depth++
		case tokens[i].Is(")"):
			depth--
			if depth == 0 {
				return 3, i, nil
			}
		}
	}
	return 0, 0, fmt.Errorf("the server's description of a table does not end")
}
