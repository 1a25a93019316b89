package planner

import (
	"context"
	"fmt"

	"ptah.run/ptah/operator/executor/postgresql/dump"
)

// reduced returns the entries that the table planner needs of one side: the changed tables with their parts, and what is
// no table and no program, because a table may use it. other is the other side: an index or constraint that one side
// lacks is planned elsewhere, and so is every program. It says false where a partition or its parent changed, which say
// too little without each other.
func reduced(entries []dump.Entry, other dump.Set, changed map[string]bool) ([]dump.Entry, bool) {
	this := dump.Index(entries)
	owner := map[string]string{} // of sequences
	for _, e := range entries {
		if object, ok := e.Object(); ok && e.Type == "SEQUENCE OWNED BY" {
			owner[object.Name.SQL()] = object.On.SQL()
		}
	}
	var out []dump.Entry
	for _, e := range entries {
		object, ok := e.Object()
		if !ok {
			out = append(out, e)
			continue
		}
		keep := true
		switch e.Type {
		case "VIEW", "MATERIALIZED VIEW", "FUNCTION", "PROCEDURE", "AGGREGATE", "STATISTICS", "RULE", "TRIGGER", "POLICY", "COMMENT",
			"DEFAULT ACL", "INDEX ATTACH":
			keep = false
		case "TABLE ATTACH":
			if changed[object.Name.SQL()] || changed[object.On.SQL()] {
				return nil, false
			}
			keep = false
		case "TABLE", "ROW SECURITY", "ACL":
			keep = changed[object.Name.SQL()]
		case "INDEX", "CONSTRAINT", "CHECK CONSTRAINT":
			keep = object.Kind == "DOMAIN" || changed[object.On.SQL()] && len(other[e.Key()]) > 0
		case "FK CONSTRAINT":
			keep = changed[object.On.SQL()] && len(other[e.Key()]) > 0 && !this.Equal(other, e.Key())
		case "DEFAULT", "SEQUENCE OWNED BY":
			keep = changed[object.On.SQL()]
		case "SEQUENCE":
			if object.Kind == "IDENTITY" {
				keep = changed[object.On.SQL()]
			} else if table, owned := owner[object.Name.SQL()]; owned {
				keep = changed[table]
			}
		}
		if keep {
			out = append(out, e)
		}
	}
	return out, true
}

// smallPair makes two databases that hold only what the table planner needs of both sides. It returns none where
// something of that needs more, as a default needs a function: then the whole sides are copied and pruned.
func (a *attempt) smallPair(ctx context.Context, now []dump.Entry) (from, to *session, err error) {
	changed := changedTables(now, a.want)
	have, okFrom := reduced(now, dump.Index(a.want), changed)
	want, okTo := reduced(a.want, dump.Index(now), changed)
	if !okFrom || !okTo {
		return nil, nil, nil
	}
	if from, err = a.small(ctx, a.prefix+"smallfrom", have); err != nil || from == nil {
		return nil, nil, err
	}
	if to, err = a.small(ctx, a.prefix+"smallto", want); err != nil || to == nil {
		from.close(ctx)
		return nil, nil, err
	}
	return from, to, nil
}

// small makes a database of entries and returns nothing where the server refuses one of them.
func (a *attempt) small(ctx context.Context, name string, entries []dump.Entry) (*session, error) {
	if err := a.server.Create(ctx, name); err != nil {
		return nil, err
	}
	s, err := open(ctx, a.server, name)
	if err != nil {
		return nil, err
	}
	err = s.loadEntries(ctx, entries)
	switch {
	case err == nil:
		return s, nil
	case isServerError(err) && !broken(err):
		s.close(ctx)
		return nil, nil
	}
	s.close(ctx)
	return nil, fmt.Errorf("make a small copy for the table planner: %w", err)
}
