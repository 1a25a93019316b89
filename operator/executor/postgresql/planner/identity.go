package planner

import (
	"fmt"
	"strings"

	"ptah.run/ptah/operator/executor/postgresql/dump"
)

// sequenceKinds says whether a sequence that both sides have under one name stands alone on one side and belongs to an
// identity column on the other.
func sequenceKinds(from, to dump.Entry) (before, after dump.Object, differ bool) {
	before, okA := from.Object()
	after, okB := to.Object()
	return before, after, from.Type == "SEQUENCE" && okA && okB && (before.Kind == "IDENTITY") != (after.Kind == "IDENTITY")
}

// convertSequence turns a sequence into an identity column or the other way round. The new sequence goes on where the
// old one stood: one that starts again would hand out keys that rows already have.
func (a *attempt) convertSequence(from, to dump.Entry) ([]string, error) {
	before, after, _ := sequenceKinds(from, to)
	sequence, identity := before, after
	if before.Kind == "IDENTITY" {
		sequence, identity = after, before
	}
	name := sequence.Name
	spare := a.spareName(name)
	carry := func(from, to dump.Name) string {
		literal := "'" + strings.ReplaceAll(to.SQL(), "'", "''") + "'"
		return fmt.Sprintf("SELECT pg_catalog.setval(%s, last_value, is_called) FROM %s", literal, from.SQL())
	}
	if before.Kind != "IDENTITY" {
		var out []string
		for _, e := range a.have {
			if object, ok := e.Object(); ok && e.Type == "DEFAULT" && object.On == identity.On && object.Name == identity.Name {
				drops, err := e.Drop()
				if err != nil {
					return nil, err
				}
				out = append(out, drops...)
			}
		}
		out = append(out, fmt.Sprintf("ALTER SEQUENCE %s RENAME TO %s", name.SQL(), spare.Object))
		out = append(out, to.Statements...)
		return append(out, carry(spare, name), "DROP SEQUENCE "+spare.SQL()), nil
	}
	definition, found := strings.CutPrefix(to.Statements[0], "CREATE SEQUENCE "+name.SQL())
	if !found {
		return nil, because("a sequence has a form that cannot be altered")
	}
	return []string{
		"CREATE SEQUENCE " + spare.SQL() + definition,
		carry(name, spare),
		fmt.Sprintf("ALTER TABLE %s ALTER COLUMN %s DROP IDENTITY", identity.On.SQL(), identity.Name.SQL()),
		fmt.Sprintf("ALTER SEQUENCE %s RENAME TO %s", spare.SQL(), name.Object),
	}, nil
}
