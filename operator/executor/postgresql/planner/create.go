package planner

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"ptah.run/ptah/operator/executor/postgresql/dump"
)

// maxRepairs bounds how often the leftovers of a plan are looked at; each round must leave less.
const maxRepairs = 3

// create walks the desired objects in an order in which they can be made, makes what the clone lacks and changes what
// it has otherwise.
func (a *attempt) create(ctx context.Context) error {
	now, err := a.now(ctx)
	if err != nil {
		return err
	}
	have, want := dump.Index(now), dump.Index(a.want)
	for _, e := range a.want {
		key := e.Key()
		switch {
		case have.Equal(want, key):
		case len(have[key]) == 0:
			if err := a.make(ctx, e); err != nil {
				return err
			}
		case len(have[key]) != 1 || len(want[key]) != 1:
			return because("several objects of type " + e.Type + " have names that pg_dump prints alike")
		default:
			if err := a.change(ctx, have[key][0], e); err != nil {
				return err
			}
		}
	}
	return nil
}

// make runs the statements of a desired entry that the clone lacks.
func (a *attempt) make(ctx context.Context, e dump.Entry) error {
	if e.AccessMethod != "" {
		return because("a table has an access method of its own")
	}
	for i, statement := range e.Statements {
		if i == 0 && e.Type == "MATERIALIZED VIEW" && !a.unfilled[e.Key()] {
			// pg_dump fills views last of all; a plan must not leave one that nobody can read.
			statement = strings.TrimSpace(strings.TrimSuffix(strings.TrimSpace(statement), "WITH NO DATA"))
		}
		// Something made before may have brought this along, as a partition brings its indexes.
		if _, err := a.try(ctx, statement, present...); err != nil {
			return err
		}
	}
	return nil
}

// change turns one entry into another of the same key. Types that clear has taken away never come here.
func (a *attempt) change(ctx context.Context, from, to dump.Entry) error {
	statements, kept := a.inPlace(from, to)
	var err error
	switch to.Type {
	case "TABLE":
		if err = a.checkColumns(from, to); err == nil {
			statements, err = alterTable(from, to)
		}
	case "SEQUENCE":
		statements, err = a.changeSequence(from, to)
	case "SEQUENCE OWNED BY", "DEFAULT", "COMMENT":
		statements = to.Statements
	case "FUNCTION", "PROCEDURE":
		statements = []string{strings.Replace(to.Statements[0], "CREATE ", "CREATE OR REPLACE ", 1)}
	case "DOMAIN":
		statements, err = alterDomain(from, to)
	case "TYPE":
		statements, err = a.changeType(from, to)
	case "ACL", "DEFAULT ACL":
		return nil // repair compares grants once everything they are about exists
	default:
		if !kept {
			statements, err = remake(from, to)
		}
	}
	if err != nil {
		return err
	}
	for _, statement := range statements {
		// A change of a parent reaches its partitions, where the same change then has nothing left to do.
		if _, err := a.try(ctx, statement, append(append([]string{"42P16"}, absent...), present...)...); err != nil {
			return err
		}
	}
	return nil
}

// checkColumns refuses a table whose own columns are to be its parent's only: PostgreSQL has no way to disown a column
// but to drop it with its values.
func (a *attempt) checkColumns(from, to dump.Entry) error {
	before, okA := from.Table()
	after, okB := to.Table()
	if !okA || !okB {
		return because("a table has a form that cannot be compared")
	}
	for _, c := range before.Columns {
		if columnIndex(after, c.Name) < 0 && a.inherited(to, c.Name) {
			return because("a table keeps as its own the columns that it had before its parent; spell them in the child as well")
		}
	}
	return nil
}

// remake drops and makes again what holds no rows.
func remake(from, to dump.Entry) ([]string, error) {
	if !removable[to.Type] {
		return nil, because("an object of type " + to.Type + " cannot be changed")
	}
	drops, err := from.Drop()
	return append(drops, to.Statements...), err
}

func (a *attempt) changeSequence(from, to dump.Entry) ([]string, error) {
	if _, _, differ := sequenceKinds(from, to); differ {
		return a.convertSequence(from, to)
	}
	var out []string
	const unlogged = "CREATE UNLOGGED SEQUENCE "
	if before, after := strings.HasPrefix(from.Statements[0], unlogged), strings.HasPrefix(to.Statements[0], unlogged); before != after {
		object, _ := to.Object()
		kind := "LOGGED"
		if after {
			kind = "UNLOGGED"
		}
		out = append(out, "ALTER SEQUENCE "+object.Name.SQL()+" SET "+kind)
		if strings.TrimPrefix(from.Statements[0], "CREATE UNLOGGED ") == strings.TrimPrefix(to.Statements[0], "CREATE ") ||
			strings.TrimPrefix(from.Statements[0], "CREATE ") == strings.TrimPrefix(to.Statements[0], "CREATE UNLOGGED ") {
			return out, nil
		}
	}
	rest, err := alterSequence(to)
	return append(out, rest...), err
}

// removeRest drops what is desired no longer and was kept because it might have been in use.
func (a *attempt) removeRest(ctx context.Context) error {
	want := dump.Index(a.want)
	for _, e := range slices.Backward(a.have) {
		if !late[e.Type] || len(want[e.Key()]) > 0 || a.rebuilt.types[e.Key()] {
			continue
		}
		drops, err := e.Drop()
		if err != nil {
			return err
		}
		for _, drop := range drops {
			// A name that is no longer of this kind was given to another object meanwhile.
			if _, err := a.try(ctx, drop, append([]string{"42809"}, absent...)...); err != nil {
				return err
			}
		}
	}
	return nil
}

// repair compares the clone with what is desired and puts right what is left: comments and grants, and what one of
// the earlier steps made in a slightly different form.
func (a *attempt) repair(ctx context.Context) error {
	for range maxRepairs {
		now, err := a.now(ctx)
		if err != nil {
			return err
		}
		left := dump.Compare(now, a.want)
		if len(left) == 0 {
			return nil
		}
		if err := a.repairOnce(ctx, now, left); err != nil {
			return err
		}
	}
	return nil
}

func (a *attempt) repairOnce(ctx context.Context, now []dump.Entry, left []dump.Difference) error {
	differs := map[dump.Key]dump.Difference{}
	for _, d := range left {
		differs[d.Key] = d
	}
	for _, e := range slices.Backward(now) {
		d, ok := differs[e.Key()]
		if !ok {
			continue
		}
		drops, err := a.repairDrops(e, d)
		if err != nil {
			return err
		}
		for _, drop := range drops {
			if _, err := a.try(ctx, drop, absent...); err != nil {
				return err
			}
		}
	}
	for _, e := range a.want {
		d, ok := differs[e.Key()]
		if !ok {
			continue
		}
		if len(d.From) == 1 && len(d.To) == 1 && (!removable[e.Type] || a.keeps(d.From[0], e)) && e.Type != "ACL" && e.Type != "DEFAULT ACL" {
			if err := a.change(ctx, d.From[0], e); err != nil {
				return err
			}
			continue
		}
		if err := a.make(ctx, withoutStatements(e, d.From)); err != nil {
			return err
		}
	}
	return nil
}

// repairDrops returns what takes an entry, or the part of it that is not desired, away.
func (a *attempt) repairDrops(e dump.Entry, d dump.Difference) ([]string, error) {
	switch {
	case isTriggerState(e) && len(d.To) == 0:
		return a.asParent(e)
	case len(d.From) == 1 && len(d.To) == 1 && a.keeps(d.From[0], d.To[0]):
		return nil, nil
	case e.Type == "ACL" || e.Type == "DEFAULT ACL":
		return reverse(withoutStatements(e, d.To))
	case len(d.To) == 0 || removable[e.Type]:
		return e.Drop()
	}
	return nil, nil
}

// withoutStatements leaves out of an entry about privileges what the others hold as well: a grant that stays is
// neither taken away nor given again.
func withoutStatements(e dump.Entry, others []dump.Entry) dump.Entry {
	if e.Type != "ACL" && e.Type != "DEFAULT ACL" {
		return e
	}
	e.Statements = slices.DeleteFunc(slices.Clone(e.Statements), func(statement string) bool {
		return slices.ContainsFunc(others, func(o dump.Entry) bool { return slices.Contains(o.Statements, statement) })
	})
	return e
}

// check is the oracle: the plan is complete only if the clone now holds exactly what is desired.
func (a *attempt) check(ctx context.Context) error {
	now, err := a.now(ctx)
	if err != nil {
		return err
	}
	if left := dump.Compare(now, a.want); len(left) > 0 {
		return &incompleteError{now: now, left: left}
	}
	return nil
}

// incompleteError says that a plan would not lead to the desired schema.
type incompleteError struct {
	now  []dump.Entry
	left []dump.Difference
}

func (e *incompleteError) Error() string {
	return fmt.Sprintf("the plan would leave %d differences, the first of them at an object of type %s", len(e.left), e.left[0].Key.Type)
}

// first shows the first difference to a person.
func (e *incompleteError) first() string {
	text := ""
	for _, entry := range e.left[0].From {
		text += "is\n" + entry.SQL()
	}
	for _, entry := range e.left[0].To {
		text += "should be\n" + entry.SQL()
	}
	return text
}

func reverse(e dump.Entry) ([]string, error) {
	if len(e.Statements) == 0 {
		return nil, nil
	}
	return e.Drop()
}
