package planner

import (
	"slices"
	"strings"

	"ptah.run/ptah/operator/executor/mysql/dump"
	"ptah.run/ptah/operator/executor/mysql/sqltext"
)

// addition is a statement that adds a foreign key to a table.
type addition struct{ table, sql string }

// pins returns the statements that make keys lasting which the plan wants to stay.
//
// A key that the server made by itself for a foreign key is marked as such, and the server takes it away as soon as
// another key can serve: one that is added, or one that it makes for a foreign key that is added. Nothing shows the
// mark, so a clone cannot have it, and a plan that is right on the clone would lose the key on the target. A key that is
// dropped and added by name in one statement is an ordinary one ever after.
func (a *attempt) pins(adds []addition) []string {
	var out []string
	for _, e := range a.have {
		before, after := a.before[e.Name], a.after[e.Name]
		if e.Kind != dump.KindTable || after == nil || !slices.ContainsFunc(adds, func(add addition) bool { return add.table == e.Name }) && !addsKey(before, after) {
			continue
		}
		stays := dump.ByName(after.Keys)
		var clauses []string
		for _, key := range before.Keys {
			if key.Kind == dump.PlainKey && stays[strings.ToLower(key.Name)].SQL == key.SQL && servesExactly(key, slices.Concat(before.Foreign, after.Foreign)) {
				clauses = append(clauses, "DROP KEY "+sqltext.Quote(key.Name)+", ADD "+key.SQL)
			}
		}
		if len(clauses) > 0 {
			out = append(out, "ALTER TABLE "+sqltext.Quote(e.Name)+" "+strings.Join(clauses, ", "))
		}
	}
	return out
}

// keepZeros prepares the session for a column with rows that becomes AUTO_INCREMENT: the server takes a 0 in it for a
// number that is still to be given, and would write another one into the row, unless the mode says otherwise.
func (a *attempt) keepZeros() error {
	for name, old := range a.before {
		if now := a.after[name]; now != nil && startsCounting(old, now) {
			zeros := base
			zeros.SQLMode += ",NO_AUTO_VALUE_ON_ZERO"
			return a.settings.set(zeros)
		}
	}
	return nil
}

// startsCounting says whether a column of a table becomes AUTO_INCREMENT.
func startsCounting(from, to *dump.Table) bool {
	was := dump.ByName(from.Columns)
	return slices.ContainsFunc(to.Columns, func(c dump.Item) bool {
		old, there := was[strings.ToLower(c.Name)]
		return there && counts(c) && !counts(old)
	})
}

func counts(c dump.Item) bool {
	return slices.ContainsFunc(sqltext.Tokens(c.SQL), func(t sqltext.Token) bool { return t.Is("AUTO_INCREMENT") })
}

func addsKey(before, after *dump.Table) bool {
	was := dump.ByName(before.Keys)
	return slices.ContainsFunc(after.Keys, func(key dump.Item) bool { return was[strings.ToLower(key.Name)].SQL != key.SQL })
}

// servesExactly says whether a key holds just the columns of a foreign key, as one that the server made does.
func servesExactly(key dump.Item, foreign []dump.Item) bool {
	return slices.ContainsFunc(foreign, func(f dump.Item) bool { return slices.Equal(f.Columns, key.Columns) })
}
