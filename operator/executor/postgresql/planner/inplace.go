package planner

import (
	"slices"
	"strings"

	"ptah.run/ptah/operator/executor/postgresql/dump"
)

// inPlace returns the statements that turn an index, a key or a trigger into another without making it anew: its
// storage parameters, what pg_dump adds behind its definition, and whether a trigger fires. It says false where the
// definitions themselves differ.
func (a *attempt) inPlace(from, to dump.Entry) ([]string, bool) {
	if len(from.Statements) == 0 || len(to.Statements) == 0 || from.Type != to.Type {
		return nil, false
	}
	object, ok := to.Object()
	if !ok {
		return nil, false
	}
	switch from.Type {
	case "TRIGGER", "RULE":
		return switched(object, from, to)
	case "PUBLICATION":
		before, _ := withoutOptions(from.Statements[0])
		after, options := withoutOptions(to.Statements[0])
		if before != after || len(options) == 0 {
			return nil, false
		}
		return []string{"ALTER PUBLICATION " + object.Name.SQL() + " SET (" + strings.Join(options, ", ") + ")"}, true
	case "INDEX", "CONSTRAINT":
	default:
		return nil, false
	}
	before, options := withoutOptions(from.Statements[0])
	after, wanted := withoutOptions(to.Statements[0])
	if before != after {
		return nil, false
	}
	var out []string
	if !slices.Equal(options, wanted) {
		if a.hasPartitions(object.On) {
			return nil, false // an index over partitions has no parameters of its own
		}
		name := dump.Name{Schema: object.On.Schema, Object: object.Name.Object}
		out = setOptions("ALTER INDEX "+name.SQL(), options, wanted)
	}
	for _, statement := range from.Statements[1:] {
		if slices.Contains(to.Statements, statement) {
			continue
		}
		reverse, err := reverseExtra(statement)
		if err != nil {
			return nil, false
		}
		out = append(out, reverse)
	}
	for _, statement := range to.Statements[1:] {
		if !slices.Contains(from.Statements, statement) {
			out = append(out, statement)
		}
	}
	return out, true
}

// switched changes when a trigger or rule fires.
func switched(object dump.Object, from, to dump.Entry) ([]string, bool) {
	if from.Statements[0] != to.Statements[0] && object.Kind != dump.TriggerState {
		return nil, false
	}
	if object.Kind == dump.TriggerState || len(to.Statements) > 1 {
		return []string{to.Statements[len(to.Statements)-1]}, true
	}
	return []string{"ALTER TABLE " + object.On.SQL() + " ENABLE " + to.Type + " " + object.Name.SQL()}, true
}

// withoutOptions cuts the storage parameters out of the definition of an index or a key.
func withoutOptions(sql string) (string, []string) {
	tokens := dump.Tokens(sql)
	depth, start := 0, -1
	for i, token := range tokens {
		switch {
		case token.Is("("):
			depth++
		case token.Is(")"):
			depth--
			if depth == 0 && start >= 0 {
				_, options, _ := dump.Items("CREATE " + sql[tokens[start+1].Start:token.End])
				return strings.TrimSpace(sql[:tokens[start].Start]) + sql[token.End:], options
			}
		case depth == 0 && start < 0 && token.Is("WITH") && i+1 < len(tokens) && tokens[i+1].Is("("):
			start = i
		}
	}
	return sql, nil
}

// setOptions resets the parameters that leave and sets those that are new or different.
func setOptions(alter string, from, to []string) []string {
	var out, gone, set []string
	names := map[string]bool{}
	for _, option := range to {
		names[optionName(option)] = true
		if !slices.Contains(from, option) {
			set = append(set, option)
		}
	}
	for _, option := range from {
		if !names[optionName(option)] {
			gone = append(gone, optionName(option))
		}
	}
	if len(gone) > 0 {
		out = append(out, alter+" RESET ("+strings.Join(gone, ", ")+")")
	}
	if len(set) > 0 {
		out = append(out, alter+" SET ("+strings.Join(set, ", ")+")")
	}
	return out
}

func optionName(option string) string {
	name, _, _ := strings.Cut(option, "=")
	return strings.TrimSpace(name)
}

// hasPartitions says whether a table is to have partitions.
func (a *attempt) hasPartitions(name dump.Name) bool {
	return slices.ContainsFunc(a.want, func(e dump.Entry) bool {
		object, ok := e.Object()
		return ok && e.Type == "TABLE" && object.Name == name && isPartitioned(e)
	})
}

// asParent returns the statement by which the trigger of a partition fires as that of the nearest table above it does,
// for which pg_dump prints what is desired.
func (a *attempt) asParent(e dump.Entry) ([]string, error) {
	object, _ := e.Object()
	table := object.On
	for {
		parent, ok := a.parentOf(table)
		if !ok {
			return nil, because("the trigger of a partition fires in another way than that of its table, and the table is no longer known")
		}
		for _, other := range a.want {
			o, ok := other.Object()
			if !ok || other.Type != "TRIGGER" || o.On != parent || o.Name != object.Name {
				continue
			}
			verb := "ENABLE"
			if last := other.Statements[len(other.Statements)-1]; len(other.Statements) > 1 || o.Kind == dump.TriggerState {
				verb = dump.TriggerVerb(last)
			}
			return []string{"ALTER TABLE " + object.On.SQL() + " " + verb + " TRIGGER " + object.Name.SQL()}, nil
		}
		table = parent
	}
}

func (a *attempt) parentOf(table dump.Name) (dump.Name, bool) {
	for _, e := range a.want {
		if object, ok := e.Object(); ok && e.Type == "TABLE ATTACH" && object.Name == table {
			return object.On, true
		}
	}
	return dump.Name{}, false
}
