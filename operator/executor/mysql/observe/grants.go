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

const all = "ALL PRIVILEGES"

// Privileges are what an account may do with every object of one database.
type Privileges struct {
	everywhere, here map[string]bool
	revoked          map[string]bool // of those held everywhere
}

// readPrivileges reads what the session may do: the server counts the roles in that are active in it.
func readPrivileges(ctx context.Context, s *target.Session, database string) (Privileges, error) {
	const doing = "reading the account's privileges"
	var literal bool
	if err := s.QueryRowContext(ctx, "SELECT @@partial_revokes").Scan(&literal); err != nil {
		return Privileges{}, target.Statement(ctx, doing, err)
	}
	_, rows, err := s.Texts(ctx, "SHOW GRANTS")
	if err != nil {
		return Privileges{}, target.Statement(ctx, doing, err)
	}
	var lines []string
	for _, row := range rows {
		lines = append(lines, row[0].String)
	}
	return Held(lines, database, literal), nil
}

// Held reads the lines of SHOW GRANTS as far as they speak of all objects of a database. literal says that the names of
// databases in them are no patterns, which is so on a server with partial revocations.
func Held(lines []string, database string, literal bool) Privileges {
	p := Privileges{map[string]bool{}, map[string]bool{}, map[string]bool{}}
	for _, line := range lines {
		tokens := sqltext.Tokens(line)
		if len(tokens) == 0 || !tokens[0].Is("GRANT") && !tokens[0].Is("REVOKE") {
			continue
		}
		on := slices.IndexFunc(tokens, func(t sqltext.Token) bool { return t.Is("ON") })
		if on < 0 || on+4 >= len(tokens) || !tokens[on+2].Is(".") || !tokens[on+3].Is("*") {
			continue
		}
		into, name := p.here, tokens[on+1]
		switch {
		case name.Is("*"):
			into = p.everywhere
		case literal && escaped.Replace(name.Name()) != database, !literal && !like(name.Name(), database):
			continue
		}
		if tokens[0].Is("REVOKE") {
			into = p.revoked
		}
		for _, privilege := range privileges(tokens[1 : on+1]) {
			into[privilege] = true
		}
	}
	return p
}

// escaped are wildcards without their meaning, which is also how a name that is no pattern may be written.
var escaped = strings.NewReplacer(`\_`, "_", `\%`, "%")

// privileges reads a list that the word ON ends. Lists of columns are passed over.
func privileges(tokens []sqltext.Token) (out []string) {
	depth := 0
	word := ""
	for _, t := range tokens {
		switch {
		case t.Is("("):
			depth++
		case t.Is(")"):
			depth--
		case depth > 0:
		case t.Is(",") || t.Is("ON"):
			out = append(out, word)
			word = ""
		default:
			word = strings.TrimSpace(word + " " + strings.ToUpper(t.Text))
		}
	}
	return out
}

// Has says whether a privilege is held on every object of the database.
func (p Privileges) Has(privilege string) bool {
	return p.here[privilege] || p.here[all] || (p.everywhere[privilege] || p.everywhere[all]) && !p.revoked[privilege]
}

// Super says whether the account has the privilege SUPER, which no single database gives.
func (p Privileges) Super() bool { return p.everywhere["SUPER"] || p.everywhere[all] }

// Lacking returns what is missing to see every object of the database.
func (p Privileges) Lacking() []string {
	var lacking []string
	for _, choice := range needed {
		if !slices.ContainsFunc(choice, p.Has) {
			lacking = append(lacking, choice[0])
		}
	}
	return lacking
}

// seesEverything refuses an account that the server would show only a part of the schema.
func (p Privileges) seesEverything() error {
	if lacking := p.Lacking(); len(lacking) > 0 {
		return failure.New(report.CodePermission, "the account would not see every object of the database; grant it "+
			strings.Join(lacking, ", ")+" on the whole database")
	}
	return nil
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
