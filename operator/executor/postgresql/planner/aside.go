package planner

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"ptah.run/ptah/operator/executor/postgresql/dump"
)

// stepAside renames the types whose names are used again.
func (a *attempt) stepAside(ctx context.Context) (map[dump.Key]dump.Name, error) {
	spare := map[dump.Key]dump.Name{}
	wanted := types(a.want)
	for _, e := range a.have {
		if !a.rebuilt.types[e.Key()] {
			continue
		}
		object, _ := e.Object()
		if _, again := wanted[typeName(e)]; !again {
			continue
		}
		name := a.spareName(object.Name)
		spare[e.Key()] = name
		if err := a.run(ctx, fmt.Sprintf("ALTER %s %s RENAME TO %s", e.Type, object.Name.SQL(), name.Object)); err != nil {
			return nil, err
		}
		// The rule keeps its name, which the new domain's is to have.
		if d, ok := parseDomain(e); ok && e.Type == "DOMAIN" && d.notNull {
			if err := a.run(ctx, "ALTER DOMAIN "+name.SQL()+" DROP NOT NULL"); err != nil {
				return nil, err
			}
		}
	}
	return spare, nil
}

// spareName returns a name that no object of either side has, for something that stands aside while the plan runs.
func (a *attempt) spareName(name dump.Name) dump.Name {
	taken := func(n dump.Name) bool {
		return slices.ContainsFunc(slices.Concat(a.have, a.want), func(e dump.Entry) bool {
			object, ok := e.Object()
			return ok && object.Name.Schema == n.Schema && dump.Unquote(object.Name.Object) == dump.Unquote(n.Object)
		}) || a.spares[n]
	}
	base := shorten(dump.Unquote(name.Object)) + "__ptah_old"
	name.Object = dump.Quote(base)
	for i := 2; taken(name); i++ {
		name.Object = dump.Quote(fmt.Sprintf("%s%d", base, i))
	}
	if a.spares == nil {
		a.spares = map[dump.Name]bool{}
	}
	a.spares[name] = true
	return name
}

// shorten leaves room for a suffix inside the 63 bytes of a name.
func shorten(name string) string {
	const limit = 48
	if len(name) <= limit {
		return name
	}
	return strings.ToValidUTF8(name[:limit], "")
}
