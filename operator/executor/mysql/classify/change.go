package classify

import (
	"slices"
	"strings"

	"vitess.io/vitess/go/vt/sqlparser"
)

// typeChange is what a MODIFY does to the values of a column.
type typeChange int

const (
	narrower typeChange = iota // or anything that is not known
	sameType
	wider          // the stored values stay as they are
	widerRewritten // they are written in a longer form
)

var integers = []string{"tinyint", "smallint", "mediumint", "int", "bigint"}

var lobs = [][]string{{"tinytext", "text", "mediumtext", "longtext"}, {"tinyblob", "blob", "mediumblob", "longblob"}}

// change compares the types of a column, character set and collation included, by a list of what loses nothing.
func change(from, to *sqlparser.ColumnDefinition) typeChange {
	a, b := typeName(from), typeName(to)
	if a == b && sameText(from, to) {
		switch {
		case sameLength(from.Type, to.Type) && slices.Equal(from.Type.EnumValues, to.Type.EnumValues):
			return sameType
		case a == "enum" || a == "set":
			return labels(from.Type.EnumValues, to.Type.EnumValues)
		case (a == "varchar" || a == "varbinary") && longer(from.Type, to.Type):
			return wider // the server decides by bytes whether the length still fits its prefix
		case (a == "decimal") && roomier(from.Type, to.Type):
			return widerRewritten
		case slices.Contains(integers, a): // a display width says nothing about values
			return sameType
		}
		return narrower
	}
	if from.Type.Unsigned != to.Type.Unsigned || from.Type.Zerofill != to.Type.Zerofill || !sameText(from, to) {
		return narrower
	}
	for _, family := range append([][]string{integers}, lobs...) {
		if i, j := slices.Index(family, a), slices.Index(family, b); i >= 0 && j > i {
			return widerRewritten
		}
	}
	return narrower
}

func typeName(c *sqlparser.ColumnDefinition) string { return strings.ToLower(c.Type.Type) }

// sameText says whether sign, character set and collation stay.
func sameText(from, to *sqlparser.ColumnDefinition) bool {
	return from.Type.Unsigned == to.Type.Unsigned && from.Type.Zerofill == to.Type.Zerofill &&
		strings.EqualFold(from.Type.Charset.Name, to.Type.Charset.Name) && from.Type.Charset.Binary == to.Type.Charset.Binary &&
		strings.EqualFold(collation(from), collation(to))
}

func collation(c *sqlparser.ColumnDefinition) string {
	if c.Type.Options == nil {
		return ""
	}
	return c.Type.Options.Collate
}

func value(n *int) int {
	if n == nil {
		return -1
	}
	return *n
}

func sameLength(a, b *sqlparser.ColumnType) bool {
	return value(a.Length) == value(b.Length) && value(a.Scale) == value(b.Scale)
}

func longer(a, b *sqlparser.ColumnType) bool {
	return value(a.Length) >= 0 && value(b.Length) > value(a.Length)
}

// roomier says whether a decimal keeps its digits on both sides of the point.
func roomier(a, b *sqlparser.ColumnType) bool {
	scaleA, scaleB := max(value(a.Scale), 0), max(value(b.Scale), 0)
	return value(a.Length) > 0 && value(b.Length) > 0 && scaleB >= scaleA && value(b.Length)-scaleB >= value(a.Length)-scaleA
}

// labels compares those of an enum or a set: added at the end nothing changes, added in between the numbers that are
// stored do, and where one goes rows may hold it.
func labels(from, to []string) typeChange {
	at := 0
	for _, label := range from {
		i := slices.Index(to[at:], label)
		if i < 0 {
			return narrower
		}
		at += i + 1
	}
	if len(to) >= len(from) && slices.Equal(from, to[:len(from)]) {
		return wider
	}
	return widerRewritten
}

func nullable(c *sqlparser.ColumnDefinition) bool {
	return c.Type.Options == nil || c.Type.Options.Null == nil || *c.Type.Options.Null
}

// generated returns how a column's values are computed, or an empty text.
func generated(c *sqlparser.ColumnDefinition) string {
	if c.Type.Options == nil || c.Type.Options.As == nil {
		return ""
	}
	return sqlparser.CanonicalString(c.Type.Options.As)
}

func autoIncrement(c *sqlparser.ColumnDefinition) bool {
	return c.Type.Options != nil && c.Type.Options.Autoincrement
}
