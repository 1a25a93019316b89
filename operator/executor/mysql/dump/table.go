package dump

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"ptah.run/ptah/operator/executor/mysql/sqltext"
)

// Item is a named part of a table: a column, a key or a constraint.
type Item struct {
	Name string // plain; "PRIMARY" for the primary key
	SQL  string // as the server prints it, its name included
	Kind ItemKind
	// Columns are those of a key or the own ones of a foreign key. An expression in a key has none.
	Columns []string
	// Parent and ParentColumns are what a foreign key refers to; Parent is empty where that is another database.
	Parent        string
	ParentColumns []string
}

// ItemKind tells the parts of a table apart.
type ItemKind int

// Kinds of items.
const (
	Column   ItemKind = iota
	PlainKey          // an index that allows duplicates
	UniqueKey
	SpecialKey // FULLTEXT or SPATIAL
	Check
	ForeignKey
)

// Table is a CREATE TABLE statement taken apart.
type Table struct {
	Name    string
	Columns []Item
	Keys    []Item
	Checks  []Item
	Foreign []Item
	// Options stand behind the definitions, Partition behind those: with its version comment, or empty.
	Options, Partition string
}

// ParseTable takes apart what SHOW CREATE TABLE prints.
func ParseTable(sql string) (*Table, error) {
	tokens := sqltext.Tokens(sql)
	start, end, err := body(tokens)
	if err != nil {
		return nil, err
	}
	t := &Table{Name: tokens[2].Name()}
	depth, from := 0, start+1
	for i := start + 1; i <= end; i++ {
		switch {
		case tokens[i].Is("("):
			depth++
		case tokens[i].Is(")") && i < end:
			depth--
		case depth == 0 && (tokens[i].Is(",") || i == end):
			if err := t.add(sql, tokens[from:i]); err != nil {
				return nil, err
			}
			from = i + 1
		}
	}
	rest := sql[tokens[end].End:]
	for i := end + 1; i < len(tokens); i++ {
		if tokens[i].Is("PARTITION") && tokens[i-1].Kind == sqltext.Hint {
			t.Partition = strings.TrimSpace(sql[tokens[i-1].Start:])
			rest = sql[tokens[end].End:tokens[i-1].Start]
			break
		}
	}
	t.Options = strings.TrimSpace(rest)
	return t, nil
}

func (t *Table) add(sql string, tokens []sqltext.Token) error {
	if len(tokens) < 2 {
		return fmt.Errorf("the server's description of a table has an empty definition")
	}
	item := Item{SQL: sql[tokens[0].Start:tokens[len(tokens)-1].End]}
	if tokens[0].Kind == sqltext.Quoted {
		item.Name, item.Kind = tokens[0].Name(), Column
		t.Columns = append(t.Columns, item)
		return nil
	}
	// A CHECK may stand in a version comment of its own, and so may what follows it.
	words := make([]sqltext.Token, 0, len(tokens))
	for _, token := range tokens {
		if token.Kind != sqltext.Hint && token.Kind != sqltext.HintEnd {
			words = append(words, token)
		}
	}
	return t.addNamed(item, words)
}

func (t *Table) addNamed(item Item, words []sqltext.Token) error {
	at := func(i int, word string) bool { return i < len(words) && words[i].Is(word) }
	name := func(i int) string {
		if i < len(words) {
			return words[i].Name()
		}
		return ""
	}
	switch {
	case at(0, "PRIMARY") && at(1, "KEY"):
		item.Name, item.Kind = "PRIMARY", UniqueKey
		item.Columns, _ = names(words, 2)
		t.Keys = append(t.Keys, item)
	case at(0, "KEY"), at(0, "UNIQUE") && at(1, "KEY"), at(0, "FULLTEXT") && at(1, "KEY"), at(0, "SPATIAL") && at(1, "KEY"):
		place := 1
		switch {
		case at(0, "UNIQUE"):
			item.Kind, place = UniqueKey, 2
		case at(1, "KEY"):
			item.Kind, place = SpecialKey, 2
		default:
			item.Kind = PlainKey
		}
		item.Name = name(place)
		item.Columns, _ = names(words, place+1)
		t.Keys = append(t.Keys, item)
	case at(0, "CONSTRAINT") && at(2, "CHECK"):
		item.Name, item.Kind = name(1), Check
		t.Checks = append(t.Checks, item)
	case at(0, "CONSTRAINT") && at(2, "FOREIGN") && at(3, "KEY"):
		item.Name, item.Kind = name(1), ForeignKey
		next := 0
		item.Columns, next = names(words, 4)
		if !at(next, "REFERENCES") {
			return fmt.Errorf("the server describes a foreign key in an unknown form")
		}
		if at(next+2, ".") {
			item.ParentColumns, _ = names(words, next+4)
		} else {
			item.Parent = name(next + 1)
			item.ParentColumns, _ = names(words, next+2)
		}
		t.Foreign = append(t.Foreign, item)
	default:
		return fmt.Errorf("the server's description of a table holds a definition of an unknown kind")
	}
	return nil
}

// names reads the names in one pair of parentheses and returns them with the place behind it.
func names(words []sqltext.Token, i int) (out []string, next int) {
	depth := 0
	for ; i < len(words); i++ {
		switch {
		case words[i].Is("("):
			depth++
		case words[i].Is(")"):
			if depth--; depth == 0 {
				return out, i + 1
			}
		case depth == 1 && words[i].Kind == sqltext.Quoted:
			out = append(out, words[i].Name())
		}
	}
	return out, i
}

// Bare returns the statement that makes the table without its foreign keys.
func (t *Table) Bare() string { return t.sql(nil) }

func (t *Table) sql(foreign []Item) string {
	var lines []string
	for _, items := range [][]Item{t.Columns, t.Keys, t.Checks, foreign} {
		for _, item := range items {
			lines = append(lines, "  "+item.SQL)
		}
	}
	sql := "CREATE TABLE " + sqltext.Quote(t.Name) + " (\n" + strings.Join(lines, ",\n") + "\n) " + t.Options
	if t.Partition != "" {
		sql += "\n" + t.Partition
	}
	return sql
}

// ByName finds items by name, folded as the server compares names of columns, keys and constraints.
func ByName(items []Item) map[string]Item {
	out := make(map[string]Item, len(items))
	for _, item := range items {
		out[strings.ToLower(item.Name)] = item
	}
	return out
}

// Canonical is the one text for what SHOW CREATE TABLE prints: without the counter of AUTO_INCREMENT, with keys, checks
// and foreign keys in the order of their names. In which order the server keeps them depends on when each was added.
func Canonical(sql string) (string, error) {
	sql, err := WithoutCounter(sql)
	if err != nil {
		return "", err
	}
	t, err := ParseTable(sql)
	if err != nil {
		return "", err
	}
	byName := func(a, b Item) int {
		return cmp.Or(cmp.Compare(strings.ToLower(a.Name), strings.ToLower(b.Name)), cmp.Compare(a.Name, b.Name))
	}
	for _, items := range [][]Item{t.Keys, t.Checks, t.Foreign} {
		slices.SortFunc(items, byName)
	}
	// The primary key stands first, as in what the server prints.
	slices.SortStableFunc(t.Keys, func(a, b Item) int {
		return cmp.Compare(b2i(a.Name != "PRIMARY"), b2i(b.Name != "PRIMARY"))
	})
	return t.sql(t.Foreign), nil
}

func b2i(b bool) int {
	if b {
		return 1
	}
	return 0
}
