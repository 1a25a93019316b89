// Package dump is the form in which a MySQL schema is compared: one entry per object, with what SHOW CREATE says about
// it and the settings under which it was made, and nothing that differs between two databases of the same schema.
package dump

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"slices"
	"strings"

	"ptah.run/ptah/operator/executor/mysql/sqltext"
	"ptah.run/ptah/operator/executor/pattern"
)

// Kinds of objects, in the words of SQL.
const (
	KindTable     = "TABLE"
	KindView      = "VIEW"
	KindFunction  = "FUNCTION"
	KindProcedure = "PROCEDURE"
	KindTrigger   = "TRIGGER"
	KindEvent     = "EVENT"
)

// Kinds in the order in which objects are created.
var Kinds = []string{KindTable, KindFunction, KindProcedure, KindView, KindTrigger, KindEvent}

// Key identifies an entry. Names of tables and views are one set, names of routines two.
type Key struct{ Kind, Name string }

// Entry is one object.
type Entry struct {
	Kind, Name string
	// SQL is the statement that makes the object: without DEFINER, without the counter of AUTO_INCREMENT.
	SQL string
	// Settings are those of the session in which a view, routine, trigger or event was made. It keeps them.
	Settings Settings
	// On is a trigger's table, and Order its place among the triggers of one moment of that table.
	On    string
	Order int
}

// Settings of a session that an object remembers. A table has none.
type Settings struct {
	SQLMode     string
	Charset     string // character_set_client
	Collation   string // collation_connection
	TimeZone    string // of an event
	DBCollation string // the database's default at that time, of a routine, trigger or event
}

// Key returns the entry's key.
func (e Entry) Key() Key { return Key{e.Kind, e.Name} }

// Group is what an entry is made anew together with: triggers of one moment of one table run in the order in which they
// were made.
func (e Entry) Group() string {
	if e.Kind != KindTrigger {
		return e.Kind + "\x00" + e.Name
	}
	moment := ""
	tokens := sqltext.Tokens(e.SQL)
	for i, t := range tokens {
		if i+1 < len(tokens) && (t.Is("BEFORE") || t.Is("AFTER")) {
			moment = strings.ToUpper(t.Text + " " + tokens[i+1].Text)
			break
		}
	}
	return e.Kind + "\x00" + e.On + "\x00" + moment
}

// Drop returns the statement that removes the object.
func (e Entry) Drop() string { return "DROP " + e.Kind + " " + sqltext.Quote(e.Name) }

// Sort puts entries into the one order in which they are written and made: by kind, then by name, triggers by table and
// by their order there.
func Sort(entries []Entry) {
	slices.SortFunc(entries, func(a, b Entry) int {
		return cmp.Or(cmp.Compare(slices.Index(Kinds, a.Kind), slices.Index(Kinds, b.Kind)), cmp.Compare(a.On, b.On),
			cmp.Compare(a.Order, b.Order), cmp.Compare(a.Name, b.Name))
	})
}

// Index finds entries by key.
func Index(entries []Entry) map[Key]Entry {
	out := make(map[Key]Entry, len(entries))
	for _, e := range entries {
		out[e.Key()] = e
	}
	return out
}

// Difference is an object that is not the same on both sides. From or To is nil where the side lacks it.
type Difference struct {
	Key      Key
	From, To *Entry
}

// Compare returns what differs, by kind and name.
func Compare(from, to []Entry) []Difference {
	a, b := Index(from), Index(to)
	var out []Difference
	for key, e := range b {
		if old, ok := a[key]; !ok {
			out = append(out, Difference{key, nil, &e})
		} else if old != e {
			out = append(out, Difference{key, &old, &e})
		}
	}
	for key, e := range a {
		if _, ok := b[key]; !ok {
			out = append(out, Difference{key, &e, nil})
		}
	}
	slices.SortFunc(out, func(x, y Difference) int {
		return cmp.Or(cmp.Compare(slices.Index(Kinds, x.Key.Kind), slices.Index(Kinds, y.Key.Kind)), cmp.Compare(x.Key.Name, y.Key.Name))
	})
	return out
}

// Digest returns "sha256:" and the digest of facts (in the order given) and of all entries (in an order of its own).
func Digest(entries []Entry, facts ...string) string {
	sorted := slices.Clone(entries)
	Sort(sorted)
	hash := sha256.New()
	encoder := json.NewEncoder(hash) // JSON strings cannot run into each other
	_ = encoder.Encode(facts)        // a hash takes every byte
	for _, e := range sorted {
		_ = encoder.Encode(e)
	}
	return "sha256:" + hex.EncodeToString(hash.Sum(nil))
}

// Exclude returns the entries that are not about an excluded object: the object itself, and the triggers of an excluded
// table. database is what a pattern calls the schema.
func Exclude(entries []Entry, patterns []pattern.Pattern, database string) []Entry {
	if len(patterns) == 0 {
		return entries
	}
	return slices.DeleteFunc(slices.Clone(entries), func(e Entry) bool {
		return e.Kind != KindTrigger && pattern.Match(patterns, database, e.Name) ||
			e.Kind == KindTrigger && pattern.Match(patterns, database, e.On)
	})
}
