package planner

import (
	"fmt"
	"slices"
	"strings"

	"ptah.run/ptah/operator/executor/postgresql/dump"
)

// alterDomain changes a domain's default, its NOT NULL and its checks. The base type cannot be altered.
func alterDomain(from, to dump.Entry) ([]string, error) {
	a, okA := parseDomain(from)
	b, okB := parseDomain(to)
	if !okA || !okB || a.base != b.base {
		return nil, because("the base type of a domain cannot be altered")
	}
	object, _ := to.Object()
	var out []string
	add := func(format string, args ...any) {
		out = append(out, "ALTER DOMAIN "+object.Name.SQL()+" "+fmt.Sprintf(format, args...))
	}
	for _, c := range a.constraints {
		if !slices.Contains(b.constraints, c) {
			add("DROP CONSTRAINT %s", c.Name)
		}
	}
	switch {
	case a.byDefault == b.byDefault:
	case b.byDefault == "":
		add("DROP DEFAULT")
	default:
		add("SET DEFAULT %s", b.byDefault)
	}
	switch {
	case b.notNull && !a.notNull:
		add("SET NOT NULL")
	case a.notNull && !b.notNull:
		add("DROP NOT NULL")
	}
	for _, c := range b.constraints {
		if !slices.Contains(a.constraints, c) {
			add("ADD %s", c.Text)
		}
	}
	return out, nil
}

type domain struct {
	base        string // type and collation
	byDefault   string
	notNull     bool
	constraints []dump.Constraint
}

// parseDomain reads CREATE DOMAIN name AS type [COLLATE c] [NOT NULL] [DEFAULT d] [CONSTRAINT n CHECK (...)]...
func parseDomain(e dump.Entry) (domain, bool) {
	sql := e.Statements[0]
	tokens := dump.Tokens(sql)
	var marks []int // the clauses' first tokens, outside parentheses
	depth := 0
	for i, t := range tokens {
		switch {
		case t.Is("("):
			depth++
		case t.Is(")"):
			depth--
		case depth == 0 && (t.Is("AS") && marks == nil || marks != nil && (t.Is("CONSTRAINT") || t.Is("DEFAULT") || t.Is("NOT"))):
			marks = append(marks, i)
		}
	}
	if marks == nil || len(e.Statements) != 1 {
		return domain{}, false
	}
	var d domain
	for k, i := range marks {
		end := len(sql)
		if k+1 < len(marks) {
			end = tokens[marks[k+1]].Start
		}
		text := strings.TrimSpace(sql[tokens[i].Start:end])
		switch {
		case tokens[i].Is("AS"):
			d.base = text
		case tokens[i].Is("DEFAULT"):
			d.byDefault = strings.TrimSpace(text[len("DEFAULT"):])
		case tokens[i].Is("NOT"):
			d.notNull = true
		case i+1 < len(tokens):
			d.constraints = append(d.constraints, dump.Constraint{Name: tokens[i+1].Text, Text: text})
		}
	}
	return d, true
}

// rebuiltEnum says whether labels leave or change their order, which PostgreSQL cannot do in place.
func rebuiltEnum(from, to dump.Entry) bool {
	a, b := dump.EnumLabels(from), dump.EnumLabels(to)
	if a == nil || b == nil {
		return false
	}
	i := 0
	for _, label := range b {
		if i < len(a) && a[i] == label {
			i++
		}
	}
	return i < len(a)
}

// changeType changes an enum or a composite type.
func (a *attempt) changeType(from, to dump.Entry) ([]string, error) {
	object, ok := to.Object()
	if !ok {
		return nil, because("a type has a form that cannot be altered")
	}
	switch labels := dump.EnumLabels(to); {
	case labels == nil || dump.EnumLabels(from) == nil:
		return alterComposite(object.Name.SQL(), from, to)
	case rebuiltEnum(from, to):
		return nil, because("the labels of an enum type leave or change their order while something that cannot be moved uses it")
	default:
		return addLabels(object.Name.SQL(), dump.EnumLabels(from), labels), nil
	}
}

// addLabels adds each new label at its place. The first label has none before it, so it is put before the first old one.
func addLabels(name string, from, to []string) []string {
	var out []string
	for i, label := range to {
		if slices.Contains(from, label) {
			continue
		}
		place := ""
		switch {
		case i > 0:
			place = " AFTER " + to[i-1]
		case len(from) > 0:
			place = " BEFORE " + from[0]
		}
		out = append(out, "ALTER TYPE "+name+" ADD VALUE "+label+place)
	}
	return out
}

// alterComposite adds, drops and retypes the attributes of a composite type.
func alterComposite(name string, from, to dump.Entry) ([]string, error) {
	a, okA := attributes(from)
	b, okB := attributes(to)
	if !okA || !okB {
		return nil, because("a type of this form cannot be altered")
	}
	var out []string
	kept := []string{}
	for _, x := range a {
		i := slices.IndexFunc(b, func(y dump.Constraint) bool { return y.Name == x.Name })
		switch {
		case i < 0:
			out = append(out, fmt.Sprintf("ALTER TYPE %s DROP ATTRIBUTE %s", name, x.Name))
			continue
		case b[i] != x:
			out = append(out, fmt.Sprintf("ALTER TYPE %s ALTER ATTRIBUTE %s TYPE %s", name, x.Name, strings.TrimSpace(b[i].Text[len(x.Name):])))
		}
		kept = append(kept, x.Name)
	}
	for i, y := range b {
		if i < len(kept) && kept[i] == y.Name {
			continue
		}
		if i < len(kept) {
			return nil, because("the order of a composite type's attributes cannot be altered")
		}
		out = append(out, fmt.Sprintf("ALTER TYPE %s ADD ATTRIBUTE %s", name, y.Text))
	}
	return out, nil
}

func attributes(e dump.Entry) ([]dump.Constraint, bool) {
	head, items, tail := dump.Items(e.Statements[0])
	if !strings.HasSuffix(strings.TrimSpace(head), " AS") || strings.TrimSpace(tail) != "" {
		return nil, false
	}
	var out []dump.Constraint
	for _, item := range items {
		tokens := dump.Tokens(item)
		if len(tokens) < 2 {
			return nil, false
		}
		out = append(out, dump.Constraint{Name: tokens[0].Text, Text: item})
	}
	return out, true
}
