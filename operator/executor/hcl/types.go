package hcl

import (
	"slices"
	"strings"

	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/zclconf/go-cty/cty"
)

// columnType is a column's type as a file gives it.
type columnType struct {
	// sql is the type as the engine would write it.
	sql string
	// enum is the name of the PostgreSQL enum that the column refers to, in place of sql.
	enum string
}

// declaredType reads the type of a column.
func (w *walker) declaredType(attribute *hclsyntax.Attribute, e hclsyntax.Expression) (columnType, error) {
	none := refuse(attribute.NameRange, `the type is none of a name, a name with plain arguments, sql("...") and enum.NAME`)
	if sql, ok := rawSQL(e); ok {
		if strings.TrimSpace(sql) == "" {
			return columnType{}, none
		}
		return columnType{sql: sql}, nil
	}
	switch e := e.(type) {
	case *hclsyntax.ScopeTraversalExpr:
		steps := path(e)
		switch {
		case len(steps) == 1:
			return columnType{sql: spaced(steps[0])}, nil
		case (len(steps) == 2 || len(steps) == 3) && steps[0] == "enum" && !w.mysql:
			for _, name := range steps[1:] {
				if err := checkName(e.Range(), name); err != nil {
					return columnType{}, err
				}
			}
			return columnType{enum: steps[len(steps)-1]}, nil
		}
	case *hclsyntax.FunctionCallExpr:
		if e.ExpandFinal || len(e.Args) == 0 || e.Name == "sql" {
			return columnType{}, none
		}
		if w.mysql && (e.Name == "enum" || e.Name == "set") {
			if err := w.strings(attribute, e.Args); err != nil {
				return columnType{}, err
			}
		}
		var arguments []string
		for _, argument := range e.Args {
			v, ok := literal(argument)
			switch {
			case ok && v.Type() == cty.Number && v.AsBigFloat().IsInt():
				arguments = append(arguments, v.AsBigFloat().Text('f', -1))
			case ok && v.Type() == cty.String && w.mysql && (e.Name == "enum" || e.Name == "set"):
				arguments = append(arguments, "'"+v.AsString()+"'")
			default:
				return columnType{}, none
			}
		}
		return columnType{sql: spaced(e.Name) + "(" + strings.Join(arguments, ",") + ")"}, nil
	}
	return columnType{}, none
}

// spaced writes the name of a type as SQL does: an underscore stands for a space.
func spaced(name string) string {
	if slices.Contains([]string{"bit_varying", "character_varying", "double_precision"}, name) {
		return strings.ReplaceAll(name, "_", " ")
	}
	return name
}

// aliases are names of one type.
var aliases = map[bool]map[string]string{
	false: {"int": "integer", "int4": "integer", "int2": "smallint", "int8": "bigint", "bool": "boolean", "char": "character",
		"varchar": "character varying", "decimal": "numeric", "float4": "real", "float8": "double precision", "float": "double precision",
		"timestamp without time zone": "timestamp", "timestamp with time zone": "timestamptz", "time without time zone": "time",
		"time with time zone": "timetz", "serial2": "smallserial", "serial4": "serial", "serial8": "bigserial", "varbit": "bit varying"},
	true: {"integer": "int", "numeric": "decimal", "dec": "decimal", "real": "double", "boolean": "bool"},
}

// displayWidths are the types of MySQL of which the server forgets the width.
var displayWidths = map[string]bool{"tinyint": true, "smallint": true, "mediumint": true, "int": true, "bigint": true}

// sameType says whether two types are one, written in two ways.
func sameType(mysql bool, a, b string) bool { return plainType(mysql, a) == plainType(mysql, b) }

// plainType writes a type in the one way in which two are compared.
func plainType(mysql bool, sql string) string {
	if strings.Contains(sql, `"`) { // capitals count in a quoted name
		return strings.TrimSpace(sql)
	}
	head, rest, found := strings.Cut(strings.TrimSpace(sql), "(")
	arguments, tail := "", ""
	if found {
		end := strings.LastIndexByte(rest, ')')
		if end < 0 {
			return sql
		}
		arguments, tail = rest[:end], rest[end+1:]
	}
	words := strings.Fields(strings.ToLower(head + " " + tail))
	unsigned := slices.Contains(words, "unsigned")
	words = slices.DeleteFunc(words, func(word string) bool { return word == "unsigned" })
	name := strings.Join(words, " ")
	array := ""
	if i := strings.IndexByte(name, '['); i >= 0 {
		name, array = strings.TrimSpace(name[:i]), strings.ReplaceAll(name[i:], " ", "")
	}
	if other, ok := aliases[mysql][name]; ok {
		name = other
	}
	if !strings.Contains(arguments, "'") {
		arguments = strings.ReplaceAll(arguments, " ", "")
	} else {
		arguments = strings.ReplaceAll(arguments, "', '", "','")
	}
	name, arguments = implied(mysql, name, arguments)
	if arguments != "" {
		arguments = "(" + arguments + ")"
	}
	if unsigned {
		arguments += " unsigned"
	}
	return name + arguments + array
}

// implied leaves out arguments that say what is so without them.
func implied(mysql bool, name, arguments string) (string, string) {
	switch {
	case (name == "decimal" || name == "numeric") && strings.HasSuffix(arguments, ",0"):
		arguments = strings.TrimSuffix(arguments, ",0")
	case name == "bit" && arguments == "1", name == "character" && arguments == "1" && !mysql:
		arguments = ""
	case !mysql:
	case name == "tinyint" && arguments == "1":
		name, arguments = "bool", ""
	case displayWidths[name], arguments == "0" && slices.Contains([]string{"timestamp", "datetime", "time"}, name),
		name == "char" && arguments == "1", name == "year" && arguments == "4":
		arguments = ""
	}
	if mysql && name == "decimal" && arguments == "10" {
		arguments = ""
	}
	return name, arguments
}
