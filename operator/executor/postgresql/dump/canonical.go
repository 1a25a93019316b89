package dump

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"slices"
	"strings"
)

// Canonical returns the text by which two entries of one key are compared. The order of a table's columns and the
// order of grants are not differences: the first cannot be changed without rewriting the table and says nothing to a
// statement that names its columns, the second has no meaning.
func (e Entry) Canonical() string {
	statements := slices.Clone(e.Statements)
	switch {
	case len(statements) == 0:
	case e.Type == "TABLE" || e.Type == "FOREIGN TABLE":
		statements[0] = sortItems(statements[0])
		slices.Sort(statements[1:])
	case e.Type == "ACL" || e.Type == "DEFAULT ACL":
		slices.SortStableFunc(statements, func(a, b string) int {
			if c := cmp.Compare(grantRank(a), grantRank(b)); c != 0 {
				return c
			}
			return cmp.Compare(a, b)
		})
	}
	return strings.Join(append([]string{e.AccessMethod}, statements...), ";\n")
}

// grantRank puts revocations first: pg_dump revokes what an object has by default and then grants.
func grantRank(statement string) int {
	if strings.Contains(statement, "REVOKE ") {
		return 0
	}
	return 1
}

func sortItems(statement string) string {
	head, items, tail := Items(statement)
	if items == nil {
		return statement
	}
	slices.Sort(items)
	return head + "(" + strings.Join(items, ",") + ")" + tail
}

// Items cuts a CREATE TABLE statement into what stands before its list of columns and constraints, the list, and what
// stands behind it. Items is nil where the statement has no list.
func Items(statement string) (head string, items []string, tail string) {
	tokens := Tokens(statement)
	depth, start := 0, -1
	for i, token := range tokens {
		switch {
		case inName(tokens, i): // a table or a schema may be called "server" or "partition", which the server does not quote
		case depth == 0 && start < 0 && (token.Is("PARTITION") || token.Is("INHERITS") || token.Is("WITH") || token.Is("SERVER")):
			return statement, nil, "" // CREATE TABLE x OF y, or a foreign table without columns
		case token.Is("(") || token.Is("["):
			if depth == 0 {
				head, start = statement[:token.Start], token.End
				items = []string{}
			}
			depth++
		case token.Is(")") || token.Is("]"):
			depth--
			if depth == 0 {
				items = appendItem(items, statement[start:token.Start])
				return head, items, statement[token.End:]
			}
		case depth == 1 && token.Is(","):
			items = appendItem(items, statement[start:token.Start])
			start = token.End
		}
	}
	return statement, nil, ""
}

func appendItem(items []string, item string) []string {
	if item = strings.TrimSpace(item); item != "" {
		items = append(items, item)
	}
	return items
}

// Set is the entries of one database by key.
type Set map[Key][]Entry

// Index returns the entries by key.
func Index(entries []Entry) Set {
	set := Set{}
	for _, e := range entries {
		set[e.Key()] = append(set[e.Key()], e)
	}
	return set
}

// canonical returns the sorted canonical texts of one key.
func (s Set) canonical(key Key) []string {
	var out []string
	for _, e := range s[key] {
		out = append(out, e.Canonical())
	}
	slices.Sort(out)
	return out
}

// Equal says whether both sets hold the same entries under a key.
func (s Set) Equal(other Set, key Key) bool {
	return slices.Equal(s.canonical(key), other.canonical(key))
}

// Difference is a key whose entries are not the same in two databases.
type Difference struct {
	Key      Key
	From, To []Entry // either may be empty
}

// Compare returns the keys whose entries differ, in a stable order.
func Compare(from, to []Entry) []Difference {
	a, b := Index(from), Index(to)
	var out []Difference
	for key := range b {
		if !a.Equal(b, key) {
			out = append(out, Difference{key, a[key], b[key]})
		}
	}
	for key := range a {
		if len(b[key]) == 0 {
			out = append(out, Difference{key, a[key], nil})
		}
	}
	slices.SortFunc(out, func(x, y Difference) int { return compareKeys(x.Key, y.Key) })
	return out
}

func compareKeys(a, b Key) int {
	return cmp.Or(cmp.Compare(a.Type, b.Type), cmp.Compare(a.Schema, b.Schema), cmp.Compare(a.Name, b.Name))
}

// Digest returns "sha256:" and the digest of facts (in the order given) and of all entries (in an order of its own).
func Digest(entries []Entry, facts ...string) string {
	set := Index(entries)
	keys := make([]Key, 0, len(set))
	for key := range set {
		keys = append(keys, key)
	}
	slices.SortFunc(keys, compareKeys)
	hash := sha256.New()
	encoder := json.NewEncoder(hash) // JSON strings cannot run into each other
	_ = encoder.Encode(facts)
	for _, key := range keys {
		_ = encoder.Encode([]string{key.Type, key.Schema, key.Name})
		_ = encoder.Encode(set.canonical(key))
	}
	return "sha256:" + hex.EncodeToString(hash.Sum(nil))
}
