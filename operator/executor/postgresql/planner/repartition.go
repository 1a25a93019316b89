package planner

import (
	"context"
	"strings"

	"ptah.run/ptah/operator/executor/postgresql/dump"
)

// A partitioned table holds no rows of its own: its partitions do. Where the key by which it is partitioned changes, or
// the type of that key, the plan lets the partitions stand alone, makes the table anew and attaches them again.

// isPartitioned says whether the entry is a table that has partitions, and not rows.
func isPartitioned(e dump.Entry) bool {
	table, ok := e.Table()
	return ok && strings.Contains(" "+table.Rest+" ", " PARTITION BY ")
}

// findRoots finds the partitioned tables that are made anew because how they are partitioned differs.
func (a *attempt) findRoots() error {
	from, to := dump.Index(a.have), dump.Index(a.want)
	for _, e := range a.have {
		key := e.Key()
		if e.Type != "TABLE" || len(from[key]) != 1 || len(to[key]) != 1 {
			continue
		}
		before, okA := e.Table()
		after, okB := to[key][0].Table()
		if !okA || !okB || before.Rest == after.Rest {
			continue
		}
		if !isPartitioned(e) {
			return because("a table that holds rows becomes a partitioned one, or is defined in another form, for which PostgreSQL knows no statement")
		}
		if err := a.addRoot(e); err != nil {
			return err
		}
	}
	return nil
}

// addRoot makes sure that a partitioned table can leave without a row or the place of a sequence.
func (a *attempt) addRoot(e dump.Entry) error {
	root, _ := e.Object()
	for _, other := range a.have {
		object, ok := other.Object()
		if !ok || object.On != root.Name {
			continue
		}
		switch other.Type {
		case "SEQUENCE":
			return because("a partitioned table that must be made anew has an identity column, whose next value would be lost")
		case "SEQUENCE OWNED BY":
			a.release("ALTER SEQUENCE " + object.Name.SQL() + " OWNED BY NONE")
		}
	}
	if a.roots == nil {
		a.roots = map[dump.Key]bool{}
	}
	a.roots[e.Key()] = true
	return nil
}

// rootParts adds to a set the tables that are made anew, with what binds their partitions to them.
func (a *attempt) rootParts(gone map[dump.Key]bool) {
	if len(a.roots) == 0 {
		return
	}
	names := map[dump.Name]bool{}
	for _, e := range a.have {
		if object, ok := e.Object(); ok && a.roots[e.Key()] {
			names[object.Name] = true
			gone[e.Key()] = true
		}
	}
	for _, e := range a.have {
		if object, ok := e.Object(); ok && e.Type == "TABLE ATTACH" && names[object.On] {
			gone[e.Key()] = true
		}
	}
}

// dropTypes drops, in an exploration, the types that are made anew after the tables that are.
func (a *attempt) dropTypes(ctx context.Context, s *session) error {
	gone := map[dump.Key]bool{}
	a.rootParts(gone)
	if err := dropCascading(ctx, s, a.have, gone); err != nil {
		return err
	}
	return dropCascading(ctx, s, a.have, a.rebuilt.types)
}
