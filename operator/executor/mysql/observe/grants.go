package observe

import (
	"context"
	"slices"
	"strings"

	"ptah.run/ptah/operator/executor/failure"
	"ptah.run/ptah/operator/executor/mysql/sqltext"
	"ptah.run/ptah/operator/executor/mysql/target"
	"ptah.run/ptah/operator/plan/report"
)

// needed are the privileges without which some objects of a database are not to be seen at all: what the server does
// not list would be planned for as if it were not there. Each line is a choice.
var needed = [][]string{{"SELECT"}, {"SHOW VIEW"}, {"TRIGGER"}, {"EVENT"},
	{"EXECUTE", "CREATE ROUTINE", "ALTER ROUTINE", "SHOW_ROUTINE"}}

// seesEverything refuses an account that the server would show only a part of the schema.
func seesEverything(ctx context.Context, s *target.Session, database string) error {
	_, rows, err := s.Texts(ctx, "SHOW GRANTS")
	if err != nil {
		return target.Statement(ctx, "reading the account's privileges", err)
	}
	var lines []string
	for _, row := range rows {
		lines = append(lines, row[0].String)
	}
	if lacking := Lacking(lines, database); len(lacking) > 0 {
		return failure.New(report.CodePermission, "the account would not see every object of the database; grant it "+
			strings.Join(lacking, ", ")+" on the whole database")
	}
	return nil
}

// Lacking returns the privileges that the lines of SHOW GRANTS do not give on a whole database.
func Lacking(lines []string, database string) []string {
	held := map[string]bool{}
	for _, line := range lines {
		privileges, granted, ok := grant(line, database)
		if !ok {
			continue
		}
		for _, p := range privileges {
			held[p] = granted
		}
	}
	var lacking []string
	for _, choice := range needed {
		if !held["ALL PRIVILEGES"] && !slices.ContainsFunc(choice, func(p string) bool { return held[p] }) {
			lacking = append(lacking, choice[0])
		}
	}
	return lacking
}

// grant reads one line of SHOW GRANTS. It is ok where it speaks of all objects of the database.
func grant(line, database string) (privileges []string, granted, ok bool) {
	tokens := sqltext.Tokens(line)
	if len(tokens) == 0 || !tokens[0].Is("GRANT") && !tokens[0].Is("REVOKE") {
		return nil, false, false
	}
	on := slices.IndexFunc(tokens, func(t sqltext.Token) bool { return t.Is("ON") })
	if on < 0 || on+4 >= len(tokens) || !tokens[on+2].Is(".") || !tokens[on+3].Is("*") {
		return nil, false, false
	}
	name := tokens[on+1]
	if !name.Is("*") && !like(name.Name(), database) {
		return nil, false, false
	}
	depth := 0
	word := ""
	for _, t := range tokens[1 : on+1] {
		switch {
		case t.Is("("):
			depth++
		case t.Is(")"):
			depth--
		case depth > 0:
		case t.Is(",") || t.Is("ON"):
			privileges = append(privileges, word)
			word = ""
		default:
			word = strings.TrimSpace(word + " " + strings.ToUpper(t.Text))
		}
	}
	return privileges, tokens[0].Is("GRANT"), true
}

// like matches a name with the pattern that GRANT takes for a database: % and _ are wildcards, a backslash takes their
// meaning.
func like(pattern, name string) bool {
	if pattern == "" {
		return name == ""
	}
	switch c := pattern[0]; {
	case c == '%':
		for i := 0; i <= len(name); i++ {
			if like(pattern[1:], name[i:]) {
				return true
			}
		}
		return false
	case c == '\\' && len(pattern) > 1:
		return name != "" && name[0] == pattern[1] && like(pattern[2:], name[1:])
	default:
		return name != "" && (c == '_' || c == name[0]) && like(pattern[1:], name[1:])
	}
}
