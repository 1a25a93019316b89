package dump

import "strings"

// Column is one column as pg_dump prints it inside CREATE TABLE. Every field is SQL text.
type Column struct {
	Name      string
	Type      string
	Default   string
	Generated string // the expression of a stored generated column
	Collation string
	NotNull   bool
	Text      string // the whole item
}

// Table is a CREATE TABLE statement taken apart, with the ALTER TABLE statements that pg_dump adds to it.
type Table struct {
	Name        Name
	Unlogged    bool
	Columns     []Column
	Constraints []Constraint
	// Options are the storage parameters as written: name='value'.
	Options []string
	// Inherits are the parents' names as SQL text.
	Inherits []string
	// Rest is whatever else stands behind the list, such as PARTITION BY; it cannot be altered.
	Rest string
	// Extra are the further statements of the entry.
	Extra []string
}

// Constraint is a constraint inside CREATE TABLE.
type Constraint struct {
	Name string // SQL text
	Text string // the whole item
}

// Table takes the entry of a table apart. It says false where the statement has an unknown form.
func (e Entry) Table() (Table, bool) {
	object, ok := e.Object()
	if !ok || e.Type != "TABLE" {
		return Table{}, false
	}
	head, items, tail := Items(e.Statements[0])
	c := newCursor(head)
	if items == nil || strings.Contains(head, " OF ") && !c.plainHead() {
		return Table{}, false
	}
	table := Table{Name: object.Name, Unlogged: strings.HasPrefix(head, "CREATE UNLOGGED "), Extra: e.Statements[1:]}
	for _, item := range items {
		if name, found := constraintName(item); found {
			table.Constraints = append(table.Constraints, Constraint{name, item})
			continue
		}
		column, ok := parseColumn(item)
		if !ok {
			return Table{}, false
		}
		table.Columns = append(table.Columns, column)
	}
	table.tail(tail)
	return table, true
}

// plainHead says whether the statement's head is only CREATE [UNLOGGED] TABLE name, and not a typed table.
func (c *cursor) plainHead() bool {
	c.optional("CREATE", "UNLOGGED", "TABLE")
	_, ok := c.name()
	return ok && c.done()
}

func constraintName(item string) (string, bool) {
	c := newCursor(item)
	if !c.accept("CONSTRAINT") {
		return "", false
	}
	name, ok := c.name()
	return name.SQL(), ok
}

func parseColumn(item string) (Column, bool) {
	c := newCursor(item)
	first := c.peek()
	if first.Kind != Word && first.Kind != Quoted {
		return Column{}, false
	}
	c.at++
	column := Column{Name: first.Text, Text: item}
	stop := func(t Token) bool {
		return t.Is("DEFAULT") || t.Is("GENERATED") || t.Is("NOT") || t.Is("COLLATE")
	}
	column.Type = c.until(item, stop)
	for !c.done() {
		switch {
		case c.accept("NOT", "NULL"):
			column.NotNull = true
		case c.accept("DEFAULT"):
			column.Default = c.expression(item)
		case c.accept("COLLATE"):
			column.Collation = c.until(item, stop)
		case c.accept("GENERATED", "ALWAYS", "AS"):
			text := c.until(item, func(t Token) bool { return t.Is("STORED") })
			if !c.accept("STORED") {
				return Column{}, false
			}
			column.Generated = text
		default:
			return Column{}, false
		}
	}
	return column, column.Type != ""
}

// expression reads a default up to NOT NULL or COLLATE, which the server never prints bare inside an expression.
func (c *cursor) expression(item string) string {
	at := c.at
	return c.until(item, func(t Token) bool {
		return t.Is("COLLATE") || t.Is("NOT") && c.at > at
	})
}

func (t *Table) tail(text string) {
	c := newCursor(text)
	var rest []string
	for !c.done() {
		start := c.at
		switch {
		case c.accept("WITH") && c.peek().Is("("):
			t.Options = c.list(text)
		case c.accept("INHERITS") && c.peek().Is("("):
			t.Inherits = c.list(text)
		default:
			c.at = start + 1
			rest = append(rest, c.tokens[start].Text)
		}
	}
	t.Rest = strings.Join(rest, " ")
}

// list reads a parenthesised list.
func (c *cursor) list(text string) []string {
	open := c.peek().Start
	_, items, tail := Items("CREATE" + text[open:])
	end := len(text) - len(tail)
	for !c.done() && c.peek().Start < end {
		c.at++
	}
	return items
}
