package hcl

import (
	"strings"
	"unicode"

	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/zclconf/go-cty/cty"
)

// value holds the value of an attribute against its kind.
func (w *walker) value(attribute *hclsyntax.Attribute, want kind) error {
	e := attribute.Expr
	no := func(format string) error {
		return refuse(attribute.NameRange, "the attribute %s "+format, shown(attribute.Name))
	}
	switch want {
	case text:
		if _, ok := literalText(e); !ok {
			return no("is not a plain string; write one, without variables and functions")
		}
	case said:
		s, ok := literalText(e)
		if !ok {
			return no("is not a plain string; write one, without variables and functions")
		}
		return w.sayable(attribute, s)
	case truth, number:
		v, ok := literal(e)
		switch {
		case want == truth && (!ok || v.Type() != cty.Bool):
			return no("is neither true nor false")
		case want == number && (!ok || v.Type() != cty.Number || !v.AsBigFloat().IsInt()):
			return no("is not a whole number")
		}
	case reference:
		return w.reference(attribute, e)
	case references:
		list, ok := e.(*hclsyntax.TupleConsExpr)
		if !ok || len(list.Exprs) == 0 {
			return no("is not a list of columns, such as [column.id]")
		}
		for _, one := range list.Exprs {
			if err := w.reference(attribute, one); err != nil {
				return err
			}
		}
	case word:
		s, ok := literalText(e)
		if steps := path(e); len(steps) == 1 {
			s, ok = steps[0], true
		}
		if !ok || s == "" || strings.Trim(s, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_") != "" {
			return no("is not one plain word")
		}
	case raw:
		if _, ok := rawSQL(e); !ok {
			return no(`is not written as sql("...")`)
		}
	case labelsOf:
		return w.list(attribute, e)
	case typeName:
		_, err := w.declaredType(attribute, e)
		return err
	case preset:
		return w.preset(attribute, e)
	}
	return nil
}

// reference holds a reference against what may be referred to.
func (w *walker) reference(attribute *hclsyntax.Attribute, e hclsyntax.Expression) error {
	steps := path(e)
	ok := len(steps) == 2 && (steps[0] == "schema" && attribute.Name == "schema" || steps[0] == "column" && attribute.Name != "schema") ||
		attribute.Name == "ref_columns" && (len(steps) == 4 || len(steps) == 5) && steps[0] == "table" && steps[len(steps)-2] == "column"
	if !ok {
		return refuse(e.Range(), "the attribute %s does not refer to what belongs there, as schema.NAME or column.NAME does (a foreign key: table.NAME.column.NAME)", shown(attribute.Name))
	}
	for _, name := range steps[1:] {
		if err := checkName(e.Range(), name); err != nil {
			return err
		}
	}
	return nil
}

// sayable refuses strings that Atlas would put into SQL as something else than they say.
func (w *walker) sayable(attribute *hclsyntax.Attribute, s string) error {
	no := func(why string) error {
		return refuse(attribute.NameRange, "the string of the attribute %s %s, which Atlas does not write as it stands; declare this object in an .sql file", shown(attribute.Name), why)
	}
	if len(s) > 1 && s[0] == s[len(s)-1] && strings.ContainsAny(s[:1], `'"`) {
		return no("starts and ends with a quote")
	}
	if strings.ContainsFunc(s, func(r rune) bool { return r == 0 || r == 0xfffd }) {
		return no("holds a character that is not text")
	}
	if w.mysql && strings.ContainsFunc(s, func(r rune) bool { return !unicode.IsPrint(r) && r != '\n' && r != '\r' && r != '\t' }) {
		return no("holds a character that cannot be printed")
	}
	return nil
}

// list holds the values of an enum or a set.
func (w *walker) list(attribute *hclsyntax.Attribute, e hclsyntax.Expression) error {
	list, ok := e.(*hclsyntax.TupleConsExpr)
	if !ok || len(list.Exprs) == 0 {
		return refuse(attribute.NameRange, "the attribute %s is not a list of strings", shown(attribute.Name))
	}
	return w.strings(attribute, list.Exprs)
}

func (w *walker) strings(attribute *hclsyntax.Attribute, expressions []hclsyntax.Expression) error {
	for _, one := range expressions {
		s, ok := literalText(one)
		if !ok {
			return refuse(attribute.NameRange, "the attribute %s is not a list of plain strings", shown(attribute.Name))
		}
		if err := w.sayable(attribute, s); err != nil {
			return err
		}
		if w.mysql && strings.ContainsAny(s, `'"\`) {
			return refuse(attribute.NameRange, "a value of the attribute %s holds a quote or a backslash, which Atlas does not write as it stands; declare this table in an .sql file", shown(attribute.Name))
		}
	}
	return nil
}

// preset holds a column's default.
func (w *walker) preset(attribute *hclsyntax.Attribute, e hclsyntax.Expression) error {
	if sql, ok := rawSQL(e); ok {
		sql = strings.TrimSpace(sql)
		wrapped := strings.HasPrefix(sql, "(") && strings.HasSuffix(sql, ")")
		if w.mysql && !wrapped && !strings.HasPrefix(strings.ToLower(sql), "current_timestamp") {
			return refuse(attribute.NameRange, `the default is an expression without parentheses, which Atlas would write as a string; write sql("(...)")`)
		}
		return nil
	}
	v, ok := literal(e)
	if !ok {
		return refuse(attribute.NameRange, `the default is neither a plain value nor sql("...")`)
	}
	if v.Type() == cty.String {
		s := v.AsString()
		if w.mysql && strings.HasPrefix(strings.ToLower(s), "0x") {
			return refuse(attribute.NameRange, "the default starts like a hexadecimal number, which Atlas would write without quotes; declare this table in an .sql file")
		}
		return w.sayable(attribute, s)
	}
	return nil
}
